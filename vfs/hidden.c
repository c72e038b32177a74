/*
 * hidden.c - what is hidden on the host, wherever in the view it would be met.
 *
 * A mount of the kind VFS_HIDE or VFS_DENY covers one name of the view. The same object of the host may have others: a directory that
 * was renamed in an overlay shows its lower at a new place, so does a bind; the host has hard links, mounts of its own, and
 * directories that do not tell capitals from small letters. So what is hidden is known by its number, too. A descriptor of it is held:
 * the number is nobody else's as long as that is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/internal.h"

struct hidden {
	struct hidden *next;
	char *path;        /* the host's; as it was given where nothing is there yet */
	const char *name;  /* its last component */
	int fd;            /* O_PATH; -1 where nothing was there */
	uint64_t dev, ino; /* as struct vfs_node has them */
};

static int hidden_find(struct hidden *hidden, const char *path)
{
	char real[PATH_LONGEST];
	struct stat st;
	ssize_t n;

	hidden->fd = open(path, O_PATH | O_CLOEXEC);
	if (hidden->fd >= 0 && fstat(hidden->fd, &st) == 0) {
		hidden->dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
		hidden->ino = st.st_ino;
		n = readlink(fd_path(hidden->fd).text, real, sizeof(real) - 1);
		real[n > 0 ? n : 0] = 0;
	}
	hidden->path = strdup(hidden->fd >= 0 && real[0] == '/' ? real : path);
	if (!hidden->path)
		return -ENOMEM;
	hidden->name = strrchr(hidden->path, '/') ? strrchr(hidden->path, '/') + 1 : hidden->path;
	return 0;
}

/* PATH, absolute, is hidden. Nothing needs to be there. -ENOMEM. */
int hidden_add(struct vfs *vfs, const char *path)
{
	struct hidden *hidden = calloc(1, sizeof(*hidden));

	if (!hidden)
		return -ENOMEM;
	hidden->fd = -1;
	hidden->next = vfs->hidden;
	vfs->hidden = hidden;
	return hidden_find(hidden, path);
}

void hidden_free(struct vfs *vfs)
{
	struct hidden *hidden;

	while ((hidden = vfs->hidden)) {
		vfs->hidden = hidden->next;
		if (hidden->fd >= 0)
			close(hidden->fd);
		free(hidden->path);
		free(hidden);
	}
}

/* Whether an object of that number is hidden. */
bool hidden_is(const struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	for (const struct hidden *hidden = vfs->hidden; hidden; hidden = hidden->next)
		if (hidden->ino == ino && hidden->dev == dev && hidden->fd >= 0)
			return true;
	return false;
}

/* Whether an entry of a directory is worth a look. */
bool hidden_may_be(const struct vfs *vfs, const char *name, uint64_t ino)
{
	for (const struct hidden *hidden = vfs->hidden; hidden; hidden = hidden->next)
		if ((hidden->ino == ino && hidden->fd >= 0) || !strcmp(hidden->name, name))
			return true;
	return false;
}

/* Whether the host's PATH, in which nothing is a link, is hidden or is below what is. */
bool hidden_has(const struct vfs *vfs, const char *path)
{
	for (const struct hidden *hidden = vfs->hidden; hidden; hidden = hidden->next) {
		size_t len = strlen(hidden->path);

		if (!strncmp(hidden->path, path, len) && (path[len] == '/' || !path[len]))
			return true;
	}
	return false;
}

/* Whether NAME in the lower of DIR is hidden by its path: for what the host has made since the start. */
static bool is_at(struct vfs *vfs, const struct hidden *hidden, const struct vfs_node *dir, const char *name)
{
	char path[PATH_LONGEST + NAME_LONGEST + 2];
	ssize_t len;

	if (strcmp(hidden->name, name))
		return false;
	len = node_lower_path(vfs, dir, path, PATH_LONGEST);
	if (len < 0)
		return true;
	snprintf(path + len, sizeof(path) - len, "/%s", name);
	return !strcmp(path + (path[1] == '/'), hidden->path);
}

/* Whether NAME, of that number in the lower of DIR, is hidden. Where a mount is on the name, that says what it is. */
bool hidden_in(struct vfs *vfs, const struct vfs_node *dir, const char *name, uint64_t dev, uint64_t ino)
{
	const struct vfs_node *node;

	for (const struct hidden *hidden = vfs->hidden; hidden; hidden = hidden->next) {
		if (!(hidden->ino == ino && hidden->dev == dev && hidden->fd >= 0) && !is_at(vfs, hidden, dir, name))
			continue;
		node = node_find(vfs, dir, name, strlen(name));
		return !node || !node->covered;
	}
	return false;
}
