/*
 * open.c - opening and making files.
 *
 * What is opened is given to the guest by the descriptor, never by a path: the guest's own open of /proc/PID/fd/N then is the
 * kernel's open in all that matters (permissions, blocking on a FIFO, terminals, O_APPEND, limits), of exactly that object.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/special.h"

/* --- making a name ------------------------------------------------------------------------------------------------------------- */

/* As who the name is made; in a scaffold the kernel would look at the wrong attributes. */
int make_enter(const struct vfs_who *who, const struct vfs_place *place)
{
	struct vfs *vfs = who->vfs;

	if (vfs->umask != who->fs->umask) { /* the kernel leaves it aside where the directory has a default ACL */
		umask(who->fs->umask);
		vfs->umask = who->fs->umask;
	}
	return place->dir->scaffold ? 0 : cred_enter(who->cred);
}

void make_leave(const struct vfs_who *who, const struct vfs_place *place)
{
	if (!place->dir->scaffold)
		cred_leave(who->cred);
}

/* The directory in which NAME may be made now. A whiteout makes room; make_end() puts it back on failure. */
int make_start(const struct vfs_who *who, struct vfs_place *place, int *dirfd)
{
	struct vfs_node *dir = place->dir, *node = place->node;
	int error;

	if (place->last != VFS_LAST_NORM)
		return -EEXIST;
	if (place->late)
		return place->late;
	if (vfs_exists(place) || (node && node->covered))
		return -EEXIST;
	if (mark_reserved(node->name))
		return -EINVAL;
	error = perm_dir_write(who, dir);
	if (error < 0)
		return error;
	if (dir->mount->kind == VFS_PROC || dir->mount->kind == VFS_DEV)
		return -EACCES;
	*dirfd = dir->mount->overlay ? layer_dir(who->vfs, dir) : dir_lower(who->vfs, dir);
	if (*dirfd < 0)
		return *dirfd;
	if (node->whiteout && unlinkat(*dirfd, node->name, 0))
		return -errno;
	return 0;
}

/* The name exists now, or (ERROR) could not be made. */
int make_end(const struct vfs_who *who, struct vfs_place *place, int error, uint8_t type)
{
	struct vfs_node *dir = place->dir, *node = place->node;
	struct vfs *vfs = who->vfs;
	struct mark opaque = { .opaque = true };

	if (error < 0) {
		if (node->whiteout)
			mark_whiteout(dir_upper(vfs, dir), node->name);
		return error;
	}
	node->type = type;
	node->gen = dir->watch_gen ? dir->watch_gen : 1;
	place->fresh = false;
	listing_stale(dir);
	if (!dir->mount->overlay) {
		node->in_lower = true;
		node->gen = 0; /* its number is not known: the next lookup asks */
		return 0;
	}
	node->in_upper = true;
	if (type == DT_DIR && node->whiteout) { /* what the lower has at this place is not in it */
		int fd = dir_upper(vfs, node);

		node->opaque = true;
		error = fd < 0 ? fd : layer_mark_write(fd, &opaque);
	}
	node->whiteout = false;
	return error;
}

/* --- opening what is there --------------------------------------------------------------------------------------------------------- */

/* An O_PATH descriptor for the guest: through the mount that shows guest paths, where the upper has one. */
int node_view(const struct vfs_who *who, struct vfs_node *node)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
	struct vfs_place place = { .node = node, .dir = node->parent, .fd = -1 };
	struct upper *upper = node->mount->upper;
	char path[PATH_LONGEST];
	int fd = -1;

	if (node->in_upper && !(node_is_dir(node) && node->scaffold && node->in_lower) && upper->view_fd >= 0 && !node->dead &&
	    node_guest_path(node, who->vfs->root, path, sizeof(path)) > 0) {
		if (node->type == DT_LNK)
			how.resolve = RESOLVE_BENEATH;
		fd = syscall(SYS_openat2, upper->view_fd, path[1] ? path + 1 : ".", &how, sizeof(how));
	}
	return fd >= 0 ? fd : place_hold(who, &place);
}

/* fs/namei.c: may_create_in_sticky(). Applies to opens with O_CREAT of what exists. */
static int check_sticky_create(const struct vfs_who *who, struct vfs_place *place)
{
	struct vfs_place of_dir = { .node = place->dir, .fd = -1 };
	struct vfs *vfs = who->vfs;
	struct statx dir, st;
	bool fifo = place->node->type == DT_FIFO;

	if (!(fifo ? vfs->protected_fifos : vfs->protected_regular) || (!fifo && place->node->type != DT_REG))
		return 0;
	if (vfs_stat(who, &of_dir, STATX_MODE | STATX_UID, 0, &dir) < 0 || !(dir.stx_mode & S_ISVTX))
		return 0;
	if (vfs_stat(who, place, STATX_UID, 0, &st) < 0 || st.stx_uid == dir.stx_uid || st.stx_uid == who->cred->uid)
		return 0;
	return dir.stx_mode & S_IWOTH ? -EACCES : 0;
}

static bool wants_write(int flags)
{
	return !(flags & O_PATH) && ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC);
}

static int want_mask(int flags)
{
	int mask = (flags & O_ACCMODE) != O_WRONLY ? R_OK : 0;

	return wants_write(flags) ? mask | W_OK : mask;
}

/* Before a write: the file is in the upper afterwards. */
static int open_for_write(const struct vfs_who *who, struct vfs_place *place, int flags)
{
	struct vfs_node *node = place->node;
	int fd, error;

	/* A FIFO of the host would be a way to its programs, and its times tell of reads and writes. */
	if (flags & O_PATH || (node->type != DT_FIFO && (node->type != DT_REG || !wants_write(flags))))
		return 0;
	if (node->mount->overlay && !node->in_upper) {
		fd = place_hold(who, place);
		if (fd < 0)
			return fd;
		error = perm_file(who, fd, want_mask(flags));
		close(fd);
		if (error < 0)
			return error;
		place->fresh = false;
		return layer_copy_up(who, node, !(flags & O_TRUNC));
	}
	return node->mount->read_only && node->type == DT_REG ? -EROFS : 0;
}

/* Foreign credentials cannot open our descriptors: the open is made here, with them. What blocks must not block us. */
static int open_as(const struct vfs_who *who, int held, int flags)
{
	int fd, error = cred_enter(who->cred);

	if (error < 0)
		return error;
	fd = open(fd_path(held).text, flags | O_CLOEXEC | O_NOCTTY | (flags & O_PATH ? 0 : O_NONBLOCK));
	if (fd < 0)
		fd = -errno;
	cred_leave(who->cred);
	if (fd >= 0 && !(flags & (O_NONBLOCK | O_PATH)))
		fcntl(fd, F_SETFL, flags & ~O_CREAT);
	return fd;
}

/* HELD, an O_PATH descriptor, is given away. */
static int give(const struct vfs_who *who, struct vfs_open *open, int held)
{
	int fd;

	if (held < 0)
		return held;
	open->flags &= ~(O_CREAT | O_EXCL | O_NOFOLLOW);
	if (open->flags & O_PATH)
		open->flags &= O_PATH | O_CLOEXEC | O_DIRECTORY;
	open->fd = held;
	if (!who->cred->foreign)
		return 0;
	fd = open_as(who, held, open->flags);
	close(held);
	open->fd = fd;
	return fd < 0 ? fd : 0;
}

/* A device is the host's wherever its node is: as on a file system that is mounted nodev. */
static int check_device(const struct vfs_who *who, mode_t mode, dev_t device)
{
	return S_ISBLK(mode) || (S_ISCHR(mode) && !dev_allowed(who->vfs, device)) ? -EACCES : 0;
}

/* What was mounted for reading and writing may have the devices that were meant. */
static int check_node_device(const struct vfs_who *who, struct vfs_place *place)
{
	const struct vfs_node *node = place->node;
	enum vfs_kind kind = node->mount->kind;
	struct statx st;
	int error;

	if ((node->type != DT_CHR && node->type != DT_BLK) || kind == VFS_RW || kind == VFS_BIND || kind == VFS_DEV)
		return 0;
	error = vfs_stat(who, place, STATX_TYPE, 0, &st);
	return error < 0 ? error : check_device(who, st.stx_mode, makedev(st.stx_rdev_major, st.stx_rdev_minor));
}

static int open_object(const struct vfs_who *who, struct vfs_place *place, struct vfs_open *open)
{
	struct stat st;
	int fd;

	if (fstat(place->fd, &st))
		return -errno;
	if (open->flags & O_DIRECTORY && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if ((open->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (!(open->flags & O_PATH) && check_device(who, st.st_mode, st.st_rdev) < 0)
		return -EACCES;
	fd = vfs_hold(who, place, wants_write(open->flags) ? VFS_CHANGE : VFS_LOOK);
	return give(who, open, fd);
}

static int check_open(const struct vfs_who *who, struct vfs_place *place, int flags)
{
	struct vfs_node *node = place->node;

	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (flags & O_CREAT && (place->slash || place->last != VFS_LAST_NORM || node_is_dir(node)))
		return -EISDIR;
	if (place->slash && !node_is_dir(node))
		return -ENOTDIR;
	if (flags & O_DIRECTORY && !node_is_dir(node))
		return -ENOTDIR;
	if (node->type == DT_LNK)
		return flags & O_PATH ? 0 : -ELOOP;
	if (node_is_dir(node) && wants_write(flags))
		return -EISDIR;
	return flags & O_CREAT ? check_sticky_create(who, place) : 0;
}

static int open_existing(const struct vfs_who *who, struct vfs_place *place, struct vfs_open *open)
{
	struct vfs_node *node = place->node;
	bool special = node->mount->kind == VFS_PROC || node->mount->kind == VFS_DEV;
	int fd = -1, error = check_open(who, place, open->flags);

	if (error == 0 && !(open->flags & O_PATH))
		error = check_node_device(who, place);
	if (error == 0 && special && !(open->flags & O_PATH))
		error = special_open(who, node, open->flags, &fd);
	if (error > 0)
		return give(who, open, fd);
	if (error == 0)
		error = open_for_write(who, place, open->flags);
	if (error == 0 && (node->type == DT_REG || node_is_dir(node)) && node->mount->overlay && !node->in_upper)
		readers_add(who->vfs, node->dev, node->ino);
	return error < 0 ? error : give(who, open, node_view(who, node));
}

/* --- new files ------------------------------------------------------------------------------------------------------------------------ */

/* The guest opens the file once more, by its mode: which must allow what the first open of a new file always may. */
static int allow_reopen(const struct vfs_who *who, struct vfs_open *open, int fd)
{
	int needed = 0;
	struct stat st;

	if (cred_capable(who->cred, CAP_DAC_OVERRIDE) || who->cred->foreign)
		return 0;
	if (fstat(fd, &st))
		return -errno;
	if (want_mask(open->flags) & R_OK)
		needed |= S_IRUSR;
	if (want_mask(open->flags) & W_OK)
		needed |= S_IWUSR;
	if ((st.st_mode & needed) == (mode_t)needed)
		return 0;
	open->chmod_after = st.st_mode & 07777;
	return chmod(fd_path(fd).text, open->chmod_after | needed) ? -errno : 0;
}

/* Made by mknod(2): an open here would be told by inotify, and so would its end. */
static int make_file(const struct vfs_who *who, struct vfs_place *place, struct vfs_open *open, int dirfd)
{
	const char *name = place->node->name;
	int flags = (open->flags & ~(O_TRUNC | O_PATH)) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, error = make_enter(who, place);

	if (error < 0)
		return error;
	if (who->cred->foreign) { /* who cannot open it once more */
		open->fd = openat(dirfd, name, flags, open->mode & 07777);
		error = open->fd < 0 ? -errno : 0;
	} else if (mknodat(dirfd, name, S_IFREG | (open->mode & 07777), 0)) {
		error = -errno;
	}
	make_leave(who, place);
	return error;
}

static int open_new(const struct vfs_who *who, struct vfs_place *place, struct vfs_open *open)
{
	int dirfd, fd, error = make_start(who, place, &dirfd);

	if (error < 0)
		return error;
	error = make_end(who, place, make_file(who, place, open, dirfd), DT_REG);
	if (error < 0)
		return error;
	open->created = true;
	open->flags &= ~(O_CREAT | O_EXCL | O_NOFOLLOW | O_TRUNC);
	if (who->cred->foreign)
		return 0;
	fd = node_view(who, place->node);
	error = fd < 0 ? fd : allow_reopen(who, open, fd);
	if (error < 0 && fd >= 0)
		close(fd);
	return error < 0 ? error : give(who, open, fd);
}

/* The directory is a place like any; the file has no name. It is made through the mount that guests see, so that it can be
   linked there. */
static int open_tmpfile(const struct vfs_who *who, struct vfs_place *place, struct vfs_open *open)
{
	int flags = (open->flags & ~(O_CREAT | O_NOFOLLOW)) | O_CLOEXEC, dirfd, fd, error = place_usable(place);
	struct vfs_place in = { .dir = place->node, .fd = -1 };

	if (error < 0)
		return error;
	if (!place->node || !node_is_dir(place->node))
		return -ENOTDIR;
	if ((open->flags & O_ACCMODE) == O_RDONLY)
		return -EINVAL;
	error = perm_dir_write(who, place->node);
	if (error == 0 && place->node->mount->overlay)
		error = layer_dir(who->vfs, place->node);
	if (error < 0)
		return error;
	dirfd = node_view(who, place->node);
	if (dirfd < 0)
		return dirfd;
	if (place->node->scaffold) { /* node_view() shows the lower */
		close(dirfd);
		dirfd = fcntl(dir_upper(who->vfs, place->node), F_DUPFD_CLOEXEC, 3);
	}
	error = make_enter(who, &in);
	fd = error < 0 ? error : openat(dirfd, ".", flags, open->mode & 07777);
	if (error == 0 && fd < 0)
		fd = -errno;
	make_leave(who, &in);
	close(dirfd);
	if (fd < 0)
		return fd;
	error = allow_reopen(who, open, fd);
	open->fd = fd;
	open->created = true;
	open->flags &= ~(O_TMPFILE | O_CREAT | O_EXCL | O_NOFOLLOW | O_TRUNC);
	return error;
}

int vfs_open(const struct vfs_who *who, struct vfs_place *place, struct vfs_open *open)
{
	open->fd = open->chmod_after = -1;
	open->created = false;
	linked_end(who->vfs, who->fs);
	if ((open->flags & O_TMPFILE) == O_TMPFILE)
		return open_tmpfile(who, place, open);
	if (place->fd >= 0)
		return open_object(who, place, open);
	if (vfs_exists(place))
		return open_existing(who, place, open);
	if (!(open->flags & O_CREAT))
		return -ENOENT;
	if (place->slash)
		return -EISDIR;
	return open_new(who, place, open);
}

void vfs_opened_dir(struct vfs *vfs, const struct vfs_place *place)
{
	struct vfs_node *node = place->node;
	struct stat st;
	struct at at;

	if (node && node_is_dir(node) && node_at(vfs, node, &at) == 0 && fstat(at.fd, &st) == 0)
		dirs_add(vfs, st.st_dev, st.st_ino, node);
}
