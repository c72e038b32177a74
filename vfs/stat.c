/* stat.c - what is asked of a place: attributes, access, links, extended attributes, a descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs/special.h"

enum { COPY_AHEAD_MOST = 64 << 20 }; /* bytes */
enum { EMPTY_NOFOLLOW = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT };

/* Where the object of a node is: a scaffold's attributes are its lower's. */
int node_at(struct vfs *vfs, struct vfs_node *node, struct at *at)
{
	bool upper = node->in_upper && !(node_is_dir(node) && node->scaffold && node->in_lower);
	int fd;

	if (node_is_dir(node) || !node->parent) {
		fd = upper ? dir_upper(vfs, node) : dir_lower(vfs, node);
		at->name = "";
	} else {
		fd = upper ? dir_upper(vfs, node->parent) : dir_lower(vfs, node->parent);
		at->name = node->name;
	}
	at->fd = fd;
	return fd < 0 ? fd : 0;
}

/* Whether there is something, and whether it may be named as it was. */
int place_usable(const struct vfs_place *place)
{
	if (!vfs_exists(place))
		return -ENOENT;
	if (place->slash && (!place->node || !node_is_dir(place->node)))
		return -ENOTDIR;
	return 0;
}

/* A directory is held by its own descriptor, and is there even after its name has gone. */
int place_at(const struct vfs_who *who, struct vfs_place *place, struct at *at)
{
	int error = place_usable(place);

	if (error < 0)
		return error;
	if (place->fd >= 0) {
		*at = (struct at){ place->fd, "" };
		return 0;
	}
	return node_at(who->vfs, place->node, at);
}

int vfs_stat(const struct vfs_who *who, struct vfs_place *place, unsigned mask, int sync_flags, struct statx *st)
{
	struct at at;
	int error;

	if (place->fresh) {
		*st = place->st;
		return 0;
	}
	error = place_at(who, place, &at);
	if (error < 0)
		return error;
	error = cred_enter(who->cred);
	if (error < 0)
		return error;
	if (statx(at.fd, at.name, EMPTY_NOFOLLOW | sync_flags, mask, st))
		error = -errno;
	cred_leave(who->cred);
	if (error == 0 && place->node && place->node->dead)
		st->stx_nlink = 0; /* the host's may live on */
	return error;
}

mode_t vfs_type(const struct vfs_place *place)
{
	return vfs_exists(place) && place->node ? DTTOIF(place->node->type) : 0;
}

/* An O_PATH descriptor; as who, since the last directory must be searchable for him. */
int place_hold(const struct vfs_who *who, struct vfs_place *place)
{
	struct at at;
	int fd, error = place_at(who, place, &at);

	if (error < 0)
		return error;
	if (!*at.name) {
		fd = fcntl(at.fd, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	error = cred_enter(who->cred);
	if (error < 0)
		return error;
	fd = openat(at.fd, at.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	cred_leave(who->cred);
	return fd;
}

/* access(2) asks by the real ids: the caller's, as file-system ids for the time of the question. */
static void real_cred(const struct vfs_cred *cred, struct vfs_cred *real)
{
	*real = *cred;
	if (cred->uid == cred->ruid && cred->gid == cred->rgid && (!cred->foreign || cred->ruid == 0))
		return;
	real->uid = cred->ruid;
	real->gid = cred->rgid;
	real->foreign = true;
	if (cred->ruid != 0)
		real->caps = 0;
}

static int access_fd(const struct vfs_who *who, int fd, int mode, bool effective)
{
	struct vfs_cred real;
	struct vfs_who asked = *who;

	if (!effective) {
		real_cred(who->cred, &real);
		asked.cred = &real;
	}
	return perm_file(&asked, fd, mode);
}

/* Who has read a file and asks whether it may be written is about to do so (vim). It may compare the file's number before its open
   with that behind it: so the copy is made now. A failure is told when it is opened. */
static int copy_ahead(const struct vfs_who *who, struct vfs_place *place)
{
	struct statx st;
	int error = vfs_stat(who, place, STATX_SIZE, 0, &st);

	if (error < 0 || st.stx_size > COPY_AHEAD_MOST)
		return 0;
	place->fresh = false;
	error = layer_copy_up(who, place->node, true);
	return error == -EINPROGRESS ? error : 0;
}

int vfs_access(const struct vfs_who *who, struct vfs_place *place, int mode, bool effective)
{
	struct vfs_node *node = place->node;
	int fd, error;

	if (mode == F_OK) {
		struct statx st;

		return place->fresh ? place_usable(place) : vfs_stat(who, place, STATX_TYPE, 0, &st);
	}
	fd = place_hold(who, place);
	if (fd < 0)
		return fd;
	error = node && (node->mount->kind == VFS_PROC || node->mount->kind == VFS_DEV) ? special_access(who, node, mode) : 0;
	if (error == 0)
		error = access_fd(who, fd, mode, effective);
	if (error == 0 && mode & W_OK && node && node->mount->read_only && node->type != DT_CHR && node->type != DT_FIFO &&
	    node->type != DT_SOCK && node->type != DT_BLK)
		error = -EROFS;
	close(fd);
	return error == 0 && mode & W_OK && node && reader_was(who->vfs, node) ? copy_ahead(who, place) : error;
}

ssize_t vfs_readlink(const struct vfs_who *who, struct vfs_place *place, char *buf, size_t size)
{
	struct vfs_node *node = place->node;
	const char *target;
	int error = place_usable(place);
	size_t len;

	if (error < 0)
		return error;
	if (!node || node->type != DT_LNK)
		return place->last == VFS_LAST_DOT && !node ? -ENOENT : -EINVAL;
	if (node->mount->kind == VFS_PROC || node->mount->kind == VFS_DEV) {
		char text[PATH_LONGEST];
		ssize_t n = special_readlink(who, node, text, sizeof(text));

		if (n > 0)
			memcpy(buf, text, (size_t)n < size ? (size_t)n : size);
		return n > 0 && (size_t)n > size ? (ssize_t)size : n;
	}
	target = node_link_target(who->vfs, node, &error);
	if (!target)
		return error;
	len = strlen(target);
	if (len > size)
		len = size;
	memcpy(buf, target, len);
	return len;
}

/* --- a descriptor to change ------------------------------------------------------------------------------------------------ */

/* An object without a name in the view: what of it is the guest's own may be changed; of the host's there is a copy without a name. */
static int object_for_change(const struct vfs_who *who, struct vfs_place *place)
{
	int fd = place->fd;
	char path[PATH_LONGEST];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return place_hold(who, place);
	n = readlink(fd_path(fd).text, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = 0;
	return object_is_own(who->vfs, &st, path) ? place_hold(who, place) : layer_copy_object(who, fd);
}

int vfs_hold(const struct vfs_who *who, struct vfs_place *place, enum vfs_intent intent)
{
	struct vfs_node *node = place->node;
	int error = place_usable(place);

	if (error < 0 || intent == VFS_LOOK)
		return error < 0 ? error : place_hold(who, place);
	if (!node)
		return object_for_change(who, place);
	if (node->mount->read_only)
		return -EROFS;
	if (node->mount->kind == VFS_PROC || node->mount->kind == VFS_DEV)
		error = special_access(who, node, SPECIAL_CHANGE);
	else if (node->dead && !node->in_upper && node->mount->overlay)
		return layer_dead_dir(who->vfs, node->mount->upper);
	else if (node->mount->overlay)
		error = node_is_dir(node) ? layer_dir(who->vfs, node) : layer_copy_up(who, node, intent == VFS_CHANGE);
	place->fresh = false;
	return error < 0 ? error : place_hold(who, place);
}

int vfs_hold_watch(const struct vfs_who *who, struct vfs_place *place)
{
	struct vfs_node *node = place->node;
	int fd = -ENOENT, error = place_usable(place);

	if (error < 0)
		return error;
	if (node && node_is_dir(node) && node->mount->overlay)
		fd = layer_dir(who->vfs, node);
	fd = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? place_hold(who, place) : fd;
}

/* --- extended attributes ------------------------------------------------------------------------------------------------------ */

/* Links have them too; a path below /proc/self/fd would follow one, so the name itself is used. */
static int xattr_path(const struct vfs_who *who, struct vfs_place *place, struct fd_path *path, int *fd)
{
	*fd = place_hold(who, place);
	if (*fd < 0)
		return *fd;
	*path = fd_path(*fd);
	return 0;
}

ssize_t vfs_getxattr(const struct vfs_who *who, struct vfs_place *place, const char *name, void *value, size_t size)
{
	struct fd_path path;
	int fd, error = xattr_path(who, place, &path, &fd);
	ssize_t n;

	if (error < 0)
		return error;
	error = cred_enter(who->cred);
	n = error < 0 ? error : getxattr(path.text, name, value, size);
	if (error == 0 && n < 0)
		n = -errno;
	cred_leave(who->cred);
	close(fd);
	return n;
}

ssize_t vfs_listxattr(const struct vfs_who *who, struct vfs_place *place, char *list, size_t size)
{
	struct fd_path path;
	int fd, error = xattr_path(who, place, &path, &fd);
	ssize_t n;

	if (error < 0)
		return error;
	error = cred_enter(who->cred);
	n = error < 0 ? error : listxattr(path.text, list, size);
	if (error == 0 && n < 0)
		n = -errno;
	cred_leave(who->cred);
	close(fd);
	return n;
}
