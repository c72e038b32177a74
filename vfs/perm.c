/*
 * perm.c - the checks that the kernel cannot make for us.
 *
 * Where what will be changed does not exist in the upper yet, or stands there as a scaffold, the attributes that count are the
 * lower's; the kernel answers for them by faccessat2(2) with the file-system ids. A lower that is mounted read-only is no
 * reason to refuse: the change goes to the upper.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/internal.h"

/* By mode alone (fs/namei.c: acl_permission_check, without ACLs): where faccessat2 says EROFS before it looks at the mode. */
static int mode_allows(const struct vfs_cred *cred, const struct stat *st, int mask)
{
	unsigned bits = st->st_mode;

	if (cred_capable(cred, CAP_DAC_OVERRIDE))
		return 0;
	if (st->st_uid == cred->uid)
		bits >>= 6;
	else if (cred_in_group(cred, st->st_gid))
		bits >>= 3;
	return (bits & mask & 7) == (unsigned)mask ? 0 : -EACCES;
}

/* FD is an O_PATH descriptor. */
int perm_file(const struct vfs_who *who, int fd, int mask)
{
	struct stat st;
	int error = cred_enter(who->cred);

	if (error < 0)
		return error;
	if (syscall(SYS_faccessat2, fd, "", mask, AT_EACCESS | AT_EMPTY_PATH))
		error = -errno;
	cred_leave(who->cred);
	if (error == -EROFS && fstat(fd, &st) == 0)
		error = mode_allows(who->cred, &st, mask);
	return error;
}

/* May names be made and removed in DIR? Where it is real in the upper the kernel itself says so at the change. */
int perm_dir_write(const struct vfs_who *who, struct vfs_node *dir)
{
	int fd;

	if (dir->dead)
		return -ENOENT;
	if (dir->mount->read_only)
		return -EROFS;
	if (dir->mount->kind == VFS_PROC || dir->mount->kind == VFS_DEV)
		return -EACCES;
	if (!dir->mount->overlay)
		return 0;
	fd = dir->in_upper && !dir->scaffold ? dir_upper(who->vfs, dir) : dir_lower(who->vfs, dir);
	return fd < 0 ? fd : perm_file(who, fd, W_OK | X_OK);
}

/* fs/namei.c: may_delete(), check_sticky(). */
int perm_delete(const struct vfs_who *who, struct vfs_node *dir, struct vfs_node *node, bool is_dir)
{
	struct vfs_place of_dir = { .node = dir, .fd = -1 }, of_node = { .node = node, .fd = -1 };
	struct statx dir_st, st;
	int error = perm_dir_write(who, dir);

	if (error < 0)
		return error;
	if (node->covered || !node->parent)
		return -EBUSY;
	error = vfs_stat(who, &of_dir, STATX_MODE | STATX_UID, 0, &dir_st);
	if (error == 0 && dir_st.stx_mode & S_ISVTX && dir_st.stx_uid != who->cred->uid && !cred_capable(who->cred, CAP_FOWNER)) {
		error = vfs_stat(who, &of_node, STATX_UID, 0, &st);
		if (error == 0 && st.stx_uid != who->cred->uid)
			return -EPERM;
	}
	if (error < 0)
		return error;
	if (is_dir)
		return node_is_dir(node) ? 0 : -ENOTDIR;
	return node_is_dir(node) ? -EISDIR : 0;
}

/* fs/namei.c: may_follow_link(), sysctl fs.protected_symlinks. */
bool perm_follow(const struct vfs_who *who, struct vfs_node *dir, struct vfs_node *link)
{
	struct vfs_place of_dir = { .node = dir, .fd = -1 }, of_link = { .node = link, .fd = -1 };
	struct statx dir_st, st;
	enum { STICKY_FOR_ALL = S_ISVTX | S_IWOTH };

	if (!who->vfs->protected_symlinks || link->mount->kind == VFS_PROC || link->mount->kind == VFS_DEV)
		return true;
	if (link->followed)
		return true;
	if (vfs_stat(who, &of_dir, STATX_MODE | STATX_UID, 0, &dir_st) < 0)
		return false;
	if ((dir_st.stx_mode & STICKY_FOR_ALL) != STICKY_FOR_ALL) {
		link->followed = !who->cred->foreign;
		return true;
	}
	return vfs_stat(who, &of_link, STATX_UID, 0, &st) == 0 && (st.stx_uid == who->cred->uid || st.stx_uid == dir_st.stx_uid);
}

/* Whether the caller may change the attributes of what is the host's still (fs/attr.c: inode_owner_or_capable); the copy of a file
   of somebody else may be his own. */
int perm_owner(const struct vfs_who *who, struct vfs_place *place)
{
	struct statx st;
	int error = vfs_stat(who, place, STATX_UID, 0, &st);

	if (error < 0)
		return error;
	return st.stx_uid == who->cred->uid || cred_capable(who->cred, CAP_FOWNER) ? 0 : -EPERM;
}
