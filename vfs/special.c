/* special.c - /proc and /dev: which of proc.c and dev.c answers. */
#include "vfs/special.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "vfs/special_impl.h"

bool special_visible(const struct vfs_who *who, const struct vfs_node *dir, const char *name, size_t len)
{
	return dir->mount->kind == VFS_PROC ? proc_visible(who, dir, name, len) : dev_visible(who, dir, name, len);
}

enum special_link special_link(const struct vfs_who *who, const struct vfs_node *node)
{
	return node->mount->kind == VFS_PROC ? proc_link(who, node) : SPECIAL_PLAIN;
}

ssize_t special_readlink(const struct vfs_who *who, struct vfs_node *node, char *buf, size_t size)
{
	return node->mount->kind == VFS_PROC ? proc_readlink(who, node, buf, size) : special_host_link(who, node, buf, size);
}

int special_jump(const struct vfs_who *who, struct vfs_node *node, struct vfs_place *place)
{
	return node->mount->kind == VFS_PROC ? proc_jump(who, node, place) : -EACCES;
}

int special_open(const struct vfs_who *who, struct vfs_node *node, int flags, int *fd)
{
	return node->mount->kind == VFS_PROC ? proc_open(who, node, flags, fd) : dev_open(who, node, flags);
}

int special_access(const struct vfs_who *who, const struct vfs_node *node, int mask)
{
	return node->mount->kind == VFS_PROC ? proc_access(who, node, mask) : dev_access(who, node, mask);
}

int special_start(struct vfs *vfs)
{
	vfs->proc = calloc(1, sizeof(*vfs->proc));
	if (!vfs->proc)
		return -ENOMEM;
	proc_start(vfs);
	dev_start(vfs);
	return 0;
}

void special_end(struct vfs *vfs)
{
	if (!vfs->proc)
		return;
	dev_end(vfs);
	free(vfs->proc);
	vfs->proc = NULL;
}

/* --- the host's own ------------------------------------------------------------------------------------------------------- */

/* Not within a walk, which has the caller's credentials already. */
int special_host_open(const struct vfs_who *who, struct vfs_node *node, int flags)
{
	int dir = node->parent ? dir_lower(who->vfs, node->parent) : -ENOENT, fd, error = dir < 0 ? dir : cred_enter(who->cred);

	if (error < 0)
		return error;
	fd = openat(dir, node->name, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		fd = -errno;
	cred_leave(who->cred);
	return fd;
}

/* Length without a NUL, which is not written. */
ssize_t special_host_link(const struct vfs_who *who, struct vfs_node *node, char *buf, size_t size)
{
	int dir = node->parent ? dir_lower(who->vfs, node->parent) : -ENOENT;
	ssize_t n = dir < 0 ? dir : readlinkat(dir, node->name, buf, size);

	return n < 0 && dir >= 0 ? -errno : n;
}
