/* change.c - making, removing, renaming, linking, and changing attributes. Rules: fs/namei.c, fs/attr.c. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs/special.h"

enum { RENAME_NOREPLACE_ = 1, RENAME_EXCHANGE_ = 2, RENAME_WHITEOUT_ = 4 };

/* --- making ---------------------------------------------------------------------------------------------------------------------- */

int vfs_mkdir(const struct vfs_who *who, struct vfs_place *place, mode_t mode)
{
	int dirfd, error = make_start(who, place, &dirfd);

	if (error < 0)
		return error;
	error = make_enter(who, place);
	if (error == 0)
		error = mkdirat(dirfd, place->node->name, mode) ? -errno : 0;
	make_leave(who, place);
	return make_end(who, place, error, DT_DIR);
}

/* A device node would be the host's device. FIFOs, sockets, files are made. */
int vfs_mknod(const struct vfs_who *who, struct vfs_place *place, mode_t mode, dev_t dev)
{
	mode_t type = mode & S_IFMT ? mode & S_IFMT : S_IFREG;
	int dirfd, error;

	if (place->slash && !place->late && !vfs_exists(place))
		return -ENOENT;
	if (type == S_IFCHR || type == S_IFBLK)
		return vfs_exists(place) ? -EEXIST : -EPERM;
	error = make_start(who, place, &dirfd);
	if (error < 0)
		return error;
	error = make_enter(who, place);
	if (error == 0)
		error = mknodat(dirfd, place->node->name, mode, dev) ? -errno : 0;
	make_leave(who, place);
	return make_end(who, place, error, IFTODT(type));
}

int vfs_symlink(const struct vfs_who *who, struct vfs_place *place, const char *target)
{
	int dirfd, error;

	if (!*target || (place->slash && !place->late && !vfs_exists(place)))
		return -ENOENT;
	if (mark_reserved(target))
		return -EINVAL;
	error = make_start(who, place, &dirfd);
	if (error < 0)
		return error;
	error = make_enter(who, place);
	if (error == 0)
		error = symlinkat(target, dirfd, place->node->name) ? -errno : 0;
	make_leave(who, place);
	return make_end(who, place, error, DT_LNK);
}

/* --- sockets --------------------------------------------------------------------------------------------------------------------- */

/* The address of a socket has 107 bytes at most, and the kernel keeps it for getsockname(2): the socket is bound under a short
   reserved name, which nobody sees, and linked to its own. */
int vfs_bind_start(const struct vfs_who *who, struct vfs_place *place, int *dirfd, char address[VFS_ADDRESS_MAX])
{
	static uint64_t serial;
	int fd, error;

	if (place->slash && !vfs_exists(place))
		return -ENOENT;
	error = make_start(who, place, &fd);
	if (error < 0)
		return error == -EEXIST ? -EADDRINUSE : error;
	*dirfd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (*dirfd < 0)
		return make_end(who, place, -errno, DT_SOCK);
	snprintf(address, VFS_ADDRESS_MAX, "/proc/%d/fd/%d/" MARK_PREFIX "socket.%llu", getpid(), *dirfd, (unsigned long long)++serial);
	return 0;
}

int vfs_bind_end(const struct vfs_who *who, struct vfs_place *place, int dirfd, const char *address, int error)
{
	const char *temp = strrchr(address, '/') + 1;

	if (error == 0)
		error = linkat(dirfd, temp, dirfd, place->node->name, 0) ? -errno : 0;
	unlinkat(dirfd, temp, 0);
	return make_end(who, place, error == -EEXIST ? -EADDRINUSE : error, DT_SOCK);
}

int vfs_bind(const struct vfs_who *who, struct vfs_place *place, int sock, char address[VFS_ADDRESS_MAX])
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int dirfd, error = vfs_bind_start(who, place, &dirfd, address);

	if (error < 0)
		return error;
	memcpy(name.sun_path, address, strlen(address));
	error = make_enter(who, place);
	if (error == 0)
		error = bind(sock, (struct sockaddr *)&name, sizeof(name)) ? -errno : 0;
	make_leave(who, place);
	error = vfs_bind_end(who, place, dirfd, address, error);
	close(dirfd);
	return error;
}

/* --- removing -------------------------------------------------------------------------------------------------------------------- */

/* The name is nobody's now; who is in the directory stays there. */
static void removed(struct vfs *vfs, struct vfs_place *place)
{
	struct vfs_node *node = place->node, *dir = place->dir;

	node->dead = node_is_dir(node);
	node_forget(vfs, node);
	listing_stale(dir);
	place->fresh = false;
}

static int remove_host(const struct vfs_who *who, struct vfs_place *place, int flags)
{
	int fd = dir_lower(who->vfs, place->dir), error = fd < 0 ? fd : cred_enter(who->cred);

	if (error < 0)
		return error;
	error = unlinkat(fd, place->node->name, flags) ? -errno : 0;
	cred_leave(who->cred);
	return error;
}

int vfs_unlink(const struct vfs_who *who, struct vfs_place *place)
{
	struct vfs_node *node = place->node;
	int error;

	if (place->last != VFS_LAST_NORM)
		return -EISDIR;
	if (place->late)
		return place->late;
	if (!vfs_exists(place))
		return -ENOENT;
	if (place->slash)
		return node_is_dir(node) ? -EISDIR : -ENOTDIR;
	error = perm_delete(who, place->dir, node, false);
	if (error < 0)
		return error;
	if (reader_holds(who->vfs, node)) {
		error = layer_copy_up(who, node, true);
		if (error < 0)
			return error;
	}
	if (!node->mount->overlay)
		error = remove_host(who, place, 0);
	else
		error = node->in_upper ? layer_remove(who->vfs, place->dir, node->name) : layer_hide(who->vfs, place->dir, node->name);
	if (error == 0)
		removed(who->vfs, place);
	return error;
}

int vfs_rmdir(const struct vfs_who *who, struct vfs_place *place)
{
	static const int of_last[] = { 0, -EINVAL, -ENOTEMPTY, -EBUSY };
	struct vfs_node *node = place->node;
	int error = of_last[place->last];

	if (error == 0)
		error = place->late;
	if (error == 0 && !vfs_exists(place))
		error = -ENOENT;
	if (error == 0)
		error = perm_delete(who, place->dir, node, true);
	if (error < 0)
		return error;
	if (!node->mount->overlay) {
		error = remove_host(who, place, AT_REMOVEDIR);
	} else {
		if (node_holds_mount(who->vfs, node))
			return -EBUSY;
		if (!dir_is_empty(who, node, &error))
			return error < 0 ? error : -ENOTEMPTY;
		error = layer_discard_dir(who->vfs, node);
	}
	if (error == 0)
		removed(who->vfs, place);
	return error;
}

/* --- linking ---------------------------------------------------------------------------------------------------------------------- */

/* fs/namei.c: may_linkat(), sysctl fs.protected_hardlinks; of a lower file, whose copy could be the caller's own. */
static int check_link(const struct vfs_who *who, struct vfs_place *from)
{
	struct statx st;
	int fd, error = vfs_stat(who, from, STATX_BASIC_STATS, 0, &st);

	if (error < 0)
		return error;
	if (S_ISDIR(st.stx_mode))
		return -EPERM;
	if (!who->vfs->protected_hardlinks || st.stx_uid == who->cred->uid || cred_capable(who->cred, CAP_FOWNER))
		return 0;
	if (!S_ISREG(st.stx_mode) || st.stx_mode & S_ISUID || (st.stx_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return -EPERM;
	fd = place_hold(who, from);
	error = fd < 0 ? fd : perm_file(who, fd, R_OK | W_OK);
	if (fd >= 0)
		close(fd);
	return error < 0 ? -EPERM : 0;
}

/* What is the host's has no name in the view any more: a new link to it would be a way to write it. */
static int object_own(const struct vfs_who *who, int fd)
{
	char path[PATH_LONGEST];
	struct stat st;
	ssize_t n = readlink(fd_path(fd).text, path, sizeof(path) - 1);

	if (n < 0 || fstat(fd, &st))
		return -errno;
	path[n] = 0;
	return object_is_own(who->vfs, &st, path) ? 0 : -ENOENT;
}

/* A file without a name (O_TMPFILE) gets one: in the mount that it was opened through. */
static int link_object(const struct vfs_who *who, int fd, struct vfs_place *to, int dirfd)
{
	int through, error = object_own(who, fd);

	if (error < 0)
		return error;
	through = to->dir->mount->overlay && !to->dir->scaffold ? node_view(who, to->dir) : fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
	if (through < 0)
		return through;
	error = linkat(AT_FDCWD, fd_path(fd).text, through, to->node->name, AT_SYMLINK_FOLLOW) ? -errno : 0;
	close(through);
	return error;
}

int vfs_link(const struct vfs_who *who, struct vfs_place *from, struct vfs_place *to)
{
	struct vfs_node *node = from->node;
	bool overlay = to->dir->mount->overlay;
	int dirfd, from_fd = -1, error = place_usable(from);
	uint8_t type = node ? node->type : DT_REG;

	if (error < 0)
		return error;
	if (node && node->mount != to->dir->mount)
		return vfs_exists(to) ? -EEXIST : -EXDEV;
	if (to->last != VFS_LAST_NORM || vfs_exists(to))
		return -EEXIST;
	if (to->late || to->slash)
		return to->late ? to->late : -ENOENT;
	if (node)
		error = check_link(who, from);
	if (error == 0 && node && overlay && !node->in_upper)
		linked_start(who, from);
	if (error == 0 && node && overlay)
		error = layer_copy_up(who, node, true);
	if (error == 0 && node && !node->parent)
		error = -EXDEV;
	if (error == 0 && node)
		error = from_fd = overlay ? dir_upper(who->vfs, node->parent) : dir_lower(who->vfs, node->parent);
	if (error >= 0)
		error = make_start(who, to, &dirfd);
	if (error < 0)
		return error;
	error = make_enter(who, to);
	if (error == 0 && node)
		error = linkat(from_fd, node->name, dirfd, to->node->name, 0) ? -errno : 0;
	else if (error == 0)
		error = link_object(who, from->fd, to, dirfd);
	make_leave(who, to);
	from->fresh = false;
	error = make_end(who, to, error, type);
	if (error == 0 && node && overlay)
		linked_made(who, node, to->node);
	return error;
}

/* --- renaming ---------------------------------------------------------------------------------------------------------------------- */

static bool same_file(const struct vfs_who *who, struct vfs_place *a, struct vfs_place *b)
{
	struct statx of_a, of_b;

	return vfs_stat(who, a, STATX_INO, 0, &of_a) == 0 && vfs_stat(who, b, STATX_INO, 0, &of_b) == 0 && of_a.stx_ino == of_b.stx_ino &&
	       of_a.stx_dev_major == of_b.stx_dev_major && of_a.stx_dev_minor == of_b.stx_dev_minor;
}

static int check_names(struct vfs_place *from, struct vfs_place *to, unsigned flags)
{
	bool exchange = flags & RENAME_EXCHANGE_;

	if (flags & ~(RENAME_NOREPLACE_ | RENAME_EXCHANGE_) || (exchange && flags & RENAME_NOREPLACE_))
		return -EINVAL; /* RENAME_WHITEOUT: as on a file system without */
	if (from->dir->mount != to->dir->mount)
		return -EXDEV;
	if (from->last != VFS_LAST_NORM)
		return -EBUSY;
	if (to->last != VFS_LAST_NORM)
		return flags & RENAME_NOREPLACE_ ? -EEXIST : -EBUSY;
	if (from->late)
		return from->late;
	if (vfs_exists(from) && to->late)
		return to->late;
	if (!vfs_exists(from))
		return -ENOENT;
	if (flags & RENAME_NOREPLACE_ && vfs_exists(to))
		return -EEXIST;
	if (exchange && !vfs_exists(to))
		return -ENOENT;
	if (exchange && !node_is_dir(to->node) && to->slash)
		return -ENOTDIR;
	if (!node_is_dir(from->node) && (from->slash || (!exchange && to->slash)))
		return -ENOTDIR;
	if (node_is_below(to->dir, from->node))
		return -EINVAL;
	if (node_is_below(from->dir, to->node))
		return exchange ? -EINVAL : -ENOTEMPTY;
	if (mark_reserved(to->node->name))
		return -EINVAL;
	return 0;
}

/* `..` of a directory changes with its parent: it must be writable itself. */
static int check_moved_dir(const struct vfs_who *who, struct vfs_place *of, struct vfs_place *to)
{
	int fd, error;

	if (!node_is_dir(of->node))
		return 0;
	if (node_holds_mount(who->vfs, of->node))
		return -EBUSY;
	if (of->dir == to->dir)
		return 0;
	fd = place_hold(who, of);
	if (fd < 0)
		return fd;
	error = perm_file(who, fd, W_OK);
	close(fd);
	return error;
}

static int check_rights(const struct vfs_who *who, struct vfs_place *from, struct vfs_place *to, unsigned flags)
{
	bool exchange = flags & RENAME_EXCHANGE_;
	int error = perm_delete(who, from->dir, from->node, node_is_dir(from->node));

	if (error == 0 && !vfs_exists(to))
		error = to->node->covered ? -EBUSY : perm_dir_write(who, to->dir);
	else if (error == 0)
		error = perm_delete(who, to->dir, to->node, node_is_dir(exchange ? to->node : from->node));
	if (error == 0)
		error = check_moved_dir(who, from, to);
	if (error == 0 && exchange)
		error = check_moved_dir(who, to, from);
	return error;
}

/* Before a directory of the upper moves: it says where its lower is, or that it has none where another would show through. */
static int mark_moved(const struct vfs_who *who, struct vfs_node *node, struct vfs_node *to_dir, const char *to_name)
{
	struct mark mark = { .scaffold = node->scaffold, .opaque = node->opaque };
	struct stat st;
	char path[PATH_LONGEST];
	ssize_t len;
	int fd = layer_dir(who->vfs, node);

	if (fd < 0)
		return fd;
	if (node->lower_at || (!node->in_lower && (node->opaque || !lower_has(who->vfs, to_dir, to_name, &st))))
		return 0;
	mark.scaffold = node->scaffold;
	if (!node->in_lower) {
		mark.opaque = true;
	} else {
		len = node_lower_path(who->vfs, node, path, sizeof(path));
		if (len < 0)
			return -EXDEV; /* too deep to be told: the caller copies */
		memcpy(mark.lower, path, len + 1);
		node->lower_at = strdup(path);
		if (!node->lower_at)
			return -ENOMEM;
		moved_add(who->vfs, node);
	}
	node->opaque = mark.opaque;
	return layer_mark_write(fd, &mark);
}

static int lift(const struct vfs_who *who, struct vfs_node *node, struct vfs_node *to_dir, const char *to_name)
{
	return node_is_dir(node) ? mark_moved(who, node, to_dir, to_name) : layer_copy_up(who, node, true);
}

/* The place that a directory moves to is made free. */
static int vacate(const struct vfs_who *who, struct vfs_place *to, int up)
{
	struct stat st;
	int error = 0;

	if (vfs_exists(to)) {
		if (!dir_is_empty(who, to->node, &error))
			return error < 0 ? error : -ENOTEMPTY;
		error = layer_discard_dir(who->vfs, to->node);
		if (error < 0)
			return error;
	}
	if (fstatat(up, to->node->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && unlinkat(up, to->node->name, 0))
		return -errno;
	return 0;
}

static int rename_overlay(const struct vfs_who *who, struct vfs_place *from, struct vfs_place *to, unsigned flags)
{
	struct vfs *vfs = who->vfs;
	int up_from, up_to, error = lift(who, from->node, to->dir, to->node->name);

	if (error == 0 && flags & RENAME_EXCHANGE_)
		error = lift(who, to->node, from->dir, from->node->name);
	else if (error == 0 && vfs_exists(to) && reader_holds(vfs, to->node))
		error = layer_copy_up(who, to->node, true);
	if (error < 0)
		return error;
	up_to = layer_dir(vfs, to->dir);
	up_from = up_to < 0 ? up_to : layer_dir(vfs, from->dir);
	if (up_from < 0)
		return up_from;
	if (node_is_dir(from->node) && !(flags & RENAME_EXCHANGE_))
		error = vacate(who, to, up_to);
	if (error < 0)
		return error;
	if (renameat2(up_from, from->node->name, up_to, to->node->name, flags & RENAME_EXCHANGE_))
		return -errno;
	return flags & RENAME_EXCHANGE_ ? 0 : layer_hide(vfs, from->dir, from->node->name);
}

static int rename_host(const struct vfs_who *who, struct vfs_place *from, struct vfs_place *to, unsigned flags)
{
	int fd_from = dir_lower(who->vfs, from->dir), fd_to = dir_lower(who->vfs, to->dir), error;

	if (fd_from < 0 || fd_to < 0)
		return fd_from < 0 ? fd_from : fd_to;
	error = cred_enter(who->cred);
	if (error < 0)
		return error;
	error = renameat2(fd_from, from->node->name, fd_to, to->node->name, flags) ? -errno : 0;
	cred_leave(who->cred);
	return error;
}

static void forget_listings(struct vfs_place *from, struct vfs_place *to)
{
	listing_stale(from->dir);
	listing_stale(to->dir);
}

/* The cache follows. */
static int moved(struct vfs *vfs, struct vfs_place *from, struct vfs_place *to, bool exchange)
{
	struct vfs_node *a = from->node, *b = to->node;
	char *name = strdup(a->name), *name_to = strdup(b->name);
	size_t len = a->name_len, len_to = b->name_len;
	int error = name && name_to ? 0 : -ENOMEM;

	if (error == 0) {
		node_unlink(vfs, b);
		if (!exchange)
			b->dead = node_is_dir(b);
		error = node_move(vfs, a, to->dir, name_to, len_to);
		if (error == 0 && exchange)
			error = node_move(vfs, b, from->dir, name, len);
	}
	a->followed = b->followed = false;
	a->gen = b->gen = 0;
	if (a->in_upper)
		a->gen = to->dir->watch_gen ? to->dir->watch_gen : 1;
	if (exchange && b->in_upper)
		b->gen = from->dir->watch_gen ? from->dir->watch_gen : 1;
	forget_listings(from, to);
	from->fresh = to->fresh = false;
	free(name);
	free(name_to);
	return error;
}

int vfs_rename(const struct vfs_who *who, struct vfs_place *from, struct vfs_place *to, unsigned flags)
{
	int error = check_names(from, to, flags);

	if (error < 0)
		return error;
	if (from->node == to->node || (vfs_exists(to) && same_file(who, from, to)))
		return 0;
	error = check_rights(who, from, to, flags);
	if (error < 0)
		return error;
	if (from->dir->mount->overlay)
		error = rename_overlay(who, from, to, flags);
	else
		error = rename_host(who, from, to, flags);
	return error < 0 ? error : moved(who->vfs, from, to, flags & RENAME_EXCHANGE_);
}

/* --- attributes ----------------------------------------------------------------------------------------------------------------------- */

/* Whether the host's own attributes still count. */
static bool is_lower(const struct vfs_place *place)
{
	const struct vfs_node *node = place->node;

	return node && node->mount->overlay && (!node->in_upper || node->scaffold);
}

struct change { int fd; struct fd_path path; };

/* A descriptor of what may be changed, and the caller's credentials taken. */
static int change_start(const struct vfs_who *who, struct vfs_place *place, enum vfs_intent intent, struct change *change)
{
	int error;

	change->fd = vfs_hold(who, place, intent);
	if (change->fd < 0)
		return change->fd;
	change->path = fd_path(change->fd);
	place->fresh = false;
	error = cred_enter(who->cred);
	if (error < 0)
		close(change->fd);
	return error;
}

static int change_end(const struct vfs_who *who, struct vfs_place *place, struct change *change, int result)
{
	int error = result < 0 ? -errno : 0;

	cred_leave(who->cred);
	close(change->fd);
	if (place->node)
		place->node->search = SEARCH_UNKNOWN;
	return error;
}

static int owner_start(const struct vfs_who *who, struct vfs_place *place, struct change *change)
{
	int error = place_usable(place);

	if (error == 0 && place->node && place->node->mount->read_only)
		error = -EROFS;
	if (error == 0 && is_lower(place))
		error = perm_owner(who, place);
	return error < 0 ? error : change_start(who, place, VFS_CHANGE, change);
}

int vfs_chmod(const struct vfs_who *who, struct vfs_place *place, mode_t mode)
{
	struct change change;
	int error;

	if (place->node && place->node->type == DT_LNK)
		return vfs_exists(place) ? -EOPNOTSUPP : -ENOENT;
	error = owner_start(who, place, &change);
	return error < 0 ? error : change_end(who, place, &change, chmod(change.path.text, mode & 07777));
}

int vfs_chown(const struct vfs_who *who, struct vfs_place *place, uid_t uid, gid_t gid)
{
	struct change change;
	int error = owner_start(who, place, &change);

	return error < 0 ? error : change_end(who, place, &change, fchownat(change.fd, "", uid, gid, AT_EMPTY_PATH));
}

static bool is_now(const struct timespec times[2])
{
	return !times || (times[0].tv_nsec == UTIME_NOW && times[1].tv_nsec == UTIME_NOW);
}

/* fs/utimes.c: vfs_utimes(), after the file was found. */
static int check_times(const struct timespec times[2])
{
	for (int i = 0; times && i < 2; i++)
		if (times[i].tv_nsec != UTIME_NOW && times[i].tv_nsec != UTIME_OMIT && (times[i].tv_nsec < 0 || times[i].tv_nsec > 999999999))
			return -EINVAL;
	return 0;
}

/* UTIME_OMIT twice asks nothing of anybody, not even that the caller may. */
int vfs_utimens(const struct vfs_who *who, struct vfs_place *place, const struct timespec times[2])
{
	struct change change;
	int error = place_usable(place), fd;

	if (error == 0)
		error = check_times(times);
	if (error < 0)
		return error;
	if (times && times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT)
		return 0;
	if (is_lower(place) && is_now(times) && perm_owner(who, place) < 0) {
		fd = place_hold(who, place);
		error = fd < 0 ? fd : perm_file(who, fd, W_OK);
		if (fd >= 0)
			close(fd);
		if (error == 0)
			error = change_start(who, place, VFS_CHANGE, &change);
	} else {
		error = owner_start(who, place, &change);
	}
	return error < 0 ? error : change_end(who, place, &change, utimensat(AT_FDCWD, change.path.text, times, 0));
}

static int write_start(const struct vfs_who *who, struct vfs_place *place, enum vfs_intent intent, struct change *change)
{
	int fd, error = place_usable(place);

	if (error == 0 && is_lower(place)) {
		fd = place_hold(who, place);
		error = fd < 0 ? fd : perm_file(who, fd, W_OK);
		if (fd >= 0)
			close(fd);
	}
	return error < 0 ? error : change_start(who, place, intent, change);
}

int vfs_truncate(const struct vfs_who *who, struct vfs_place *place, off_t length)
{
	struct change change;
	int error = place_usable(place);

	if (length < 0)
		return -EINVAL;
	if (error == 0 && place->node && place->node->type != DT_REG)
		error = node_is_dir(place->node) ? -EISDIR : -EINVAL;
	if (error == 0)
		error = write_start(who, place, length ? VFS_CHANGE : VFS_TRUNCATE, &change);
	return error < 0 ? error : change_end(who, place, &change, truncate(change.path.text, length));
}

/* fs/xattr.c: xattr_permission(). user.* needs write access, the rest is the kernel's own to check. */
static int xattr_start(const struct vfs_who *who, struct vfs_place *place, const char *name, struct change *change)
{
	if (!strncmp(name, XATTR_USER_PREFIX, XATTR_USER_PREFIX_LEN)) {
		if (place->node && !node_is_dir(place->node) && place->node->type != DT_REG)
			return vfs_exists(place) ? -EPERM : -ENOENT;
		return write_start(who, place, VFS_CHANGE, change);
	}
	return owner_start(who, place, change);
}

int vfs_setxattr(const struct vfs_who *who, struct vfs_place *place, const char *name, const void *value, size_t size, int flags)
{
	struct change change;
	int error = xattr_start(who, place, name, &change);

	return error < 0 ? error : change_end(who, place, &change, setxattr(change.path.text, name, value, size, flags));
}

int vfs_removexattr(const struct vfs_who *who, struct vfs_place *place, const char *name)
{
	struct change change;
	int error = xattr_start(who, place, name, &change);

	return error < 0 ? error : change_end(who, place, &change, removexattr(change.path.text, name));
}

/* --- the process ------------------------------------------------------------------------------------------------------------------------ */

static int enter(const struct vfs_who *who, struct vfs_place *place, struct vfs_node **slot)
{
	struct vfs_node *node = place->node, *old = *slot;
	int error = vfs_exists(place) ? 0 : -ENOENT;

	if (error == 0 && (!node || !node_is_dir(node)))
		error = -ENOTDIR;
	if (error == 0)
		error = cred_enter(who->cred);
	if (error < 0)
		return error;
	error = lookup_search(who, node);
	cred_leave(who->cred);
	if (error < 0)
		return error;
	*slot = vfs_node_ref(node);
	vfs_node_unref(who->vfs, old);
	return 0;
}

int vfs_chdir(const struct vfs_who *who, struct vfs_place *place)
{
	return enter(who, place, &who->fs->cwd);
}

int vfs_chroot(const struct vfs_who *who, struct vfs_place *place)
{
	if (!cred_capable(who->cred, CAP_SYS_CHROOT))
		return vfs_exists(place) ? -EPERM : -ENOENT;
	return enter(who, place, &who->fs->root);
}
