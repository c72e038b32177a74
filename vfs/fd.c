/*
 * fd.c - what a guest's descriptor refers to in the view.
 *
 * Directories that were opened for guests are remembered by device and inode. Everything else is found by the path that the
 * kernel tells of our own copy of the descriptor, walked in the view, and believed only where the same object is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/internal.h"

enum { DIRS_BUCKETS = 1024, DIRS_MOST = 16384 };

/* --- directories that guests hold -------------------------------------------------------------------------------------------------- */

static struct dir_entry **dirs_at(struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	struct dir_entry **at = &vfs->dirs[(ino ^ dev * 31) % DIRS_BUCKETS];

	while (*at && ((*at)->dev != dev || (*at)->ino != ino))
		at = &(*at)->chain;
	return at;
}

static void dirs_detach(struct vfs *vfs, struct dir_entry *entry)
{
	*(entry->older ? &entry->older->newer : &vfs->dirs_oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &vfs->dirs_newest) = entry->older;
}

static void dirs_append(struct vfs *vfs, struct dir_entry *entry)
{
	entry->newer = NULL;
	entry->older = vfs->dirs_newest;
	*(entry->older ? &entry->older->newer : &vfs->dirs_oldest) = entry;
	vfs->dirs_newest = entry;
}

static void dirs_remove(struct vfs *vfs, struct dir_entry *entry)
{
	*dirs_at(vfs, entry->dev, entry->ino) = entry->chain;
	dirs_detach(vfs, entry);
	vfs->dir_count--;
	vfs_node_unref(vfs, entry->node);
	free(entry);
}

void dirs_add(struct vfs *vfs, uint64_t dev, uint64_t ino, struct vfs_node *node)
{
	struct dir_entry **at, *entry;

	if (!vfs->dirs)
		vfs->dirs = calloc(DIRS_BUCKETS, sizeof(*vfs->dirs));
	if (!vfs->dirs)
		return; /* found by its path then */
	at = dirs_at(vfs, dev, ino);
	entry = *at;
	if (entry) {
		vfs_node_ref(node);
		vfs_node_unref(vfs, entry->node);
		entry->node = node;
		dirs_detach(vfs, entry);
		dirs_append(vfs, entry);
		return;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return;
	entry->dev = dev;
	entry->ino = ino;
	entry->node = vfs_node_ref(node);
	*at = entry;
	dirs_append(vfs, entry);
	if (++vfs->dir_count > DIRS_MOST)
		dirs_remove(vfs, vfs->dirs_oldest);
}

struct vfs_node *dirs_find(struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	struct dir_entry *entry = vfs->dirs ? *dirs_at(vfs, dev, ino) : NULL;

	return entry ? entry->node : NULL;
}

/* Kept as long as it is there: its files' host paths say nothing of where the guest has them. */
void moved_add(struct vfs *vfs, struct vfs_node *node)
{
	size_t kept = 0;

	if (vfs->moved_count == vfs->moved_room) {
		size_t room = vfs->moved_room ? vfs->moved_room * 2 : 16;
		struct vfs_node **grown = realloc(vfs->moved, room * sizeof(*grown));

		if (!grown)
			return;
		vfs->moved = grown;
		vfs->moved_room = room;
		for (size_t i = 0; i < vfs->moved_count; i++) {
			if (vfs->moved[i]->dead)
				vfs_node_unref(vfs, vfs->moved[i]);
			else
				vfs->moved[kept++] = vfs->moved[i];
		}
		vfs->moved_count = kept;
	}
	vfs->moved[vfs->moved_count++] = vfs_node_ref(node);
}

void dirs_free(struct vfs *vfs)
{
	while (vfs->moved_count)
		vfs_node_unref(vfs, vfs->moved[--vfs->moved_count]);
	free(vfs->moved);
	vfs->moved = NULL;
	while (vfs->dirs_oldest)
		dirs_remove(vfs, vfs->dirs_oldest);
	free(vfs->dirs);
	vfs->dirs = NULL;
}

/* --- from the host's path to the view -------------------------------------------------------------------------------------------------- */

/* What is left of PATH below BASE, or NULL. */
static const char *below(const char *path, const char *base)
{
	size_t len = strlen(base);

	while (len > 1 && base[len - 1] == '/')
		len--;
	if (len == 1)
		return path;
	return !strncmp(path, base, len) && (path[len] == '/' || !path[len]) ? path + len : NULL;
}

static bool is_upper(const struct upper *upper, dev_t dev, const char *path, const char **rest)
{
	char base[PATH_LONGEST];

	if (!upper)
		return false;
	if (!upper->path) {
		*rest = !strncmp(path, "/fs/", 4) || !strcmp(path, "/fs") ? path + 3 : path; /* by which of its mounts it was opened */
		return dev == upper->dev;
	}
	if (dev != upper->dev)
		return false;
	snprintf(base, sizeof(base), "%s/fs", upper->path);
	*rest = below(path, base);
	if (!*rest && upper->view_fd >= 0)
		*rest = path;
	return below(path, base) != NULL;
}

bool object_is_own(struct vfs *vfs, const struct stat *st, const char *path)
{
	const char *rest;
	size_t deepest = 0;
	bool writes = false;

	if (path[0] != '/') /* memfd:, pipe:, anon_inode: */
		return true;
	if (is_upper(vfs->options.upper, st->st_dev, path, &rest) || is_upper(vfs->options.memory, st->st_dev, path, &rest))
		return true;
	if (!strncmp(path, "/memfd:", 7) && st->st_nlink == 0)
		return true;
	/* The deepest mount says it: one for reading may be within one for writing. */
	for (const struct vfs_mount *mount = vfs->mounts; mount; mount = mount->next) {
		if (!mount->source || !below(path, mount->source) || strlen(mount->source) < deepest)
			continue;
		writes = mount->kind == VFS_RW || mount->kind == VFS_BIND || (writes && strlen(mount->source) == deepest);
		deepest = strlen(mount->source);
	}
	return writes;
}

/* Guest path of the host's, by the deepest mount that shows it. */
bool guest_path_of(struct vfs *vfs, const struct stat *st, const char *path, char *out, size_t size)
{
	const struct vfs_mount *best = NULL;
	const char *rest = NULL;
	size_t best_len = 0;

	if (is_upper(vfs->options.upper, st->st_dev, path, &rest) || is_upper(vfs->options.memory, st->st_dev, path, &rest))
		return (size_t)snprintf(out, size, "%s", *rest ? rest : "/") < size;
	for (const struct vfs_mount *mount = vfs->mounts; mount; mount = mount->next) {
		if (!mount->source || !mount->root || !below(path, mount->source))
			continue;
		if (best && strlen(mount->source) < best_len)
			continue;
		best = mount;
		best_len = strlen(mount->source);
	}
	if (!best)
		return false;
	rest = below(path, best->source);
	return (size_t)snprintf(out, size, "%s%s", best->path[1] || !*rest ? best->path : "", *rest == '/' || !*rest ? rest : path) < size;
}

/* Whether the place is the object of ST. */
static bool is_same(const struct vfs_who *who, struct vfs_place *place, const struct stat *st)
{
	struct statx found;

	return vfs_exists(place) && place->node && vfs_stat(who, place, STATX_INO, 0, &found) == 0 && found.stx_ino == st->st_ino &&
	       makedev(found.stx_dev_major, found.stx_dev_minor) == st->st_dev;
}

/* The object of ST is at this guest path, or not. */
static bool is_at(const struct vfs_who *who, const char *path, const struct stat *st, struct vfs_place *place)
{
	struct vfs_fs top = { .refs = 1, .cwd = who->vfs->root, .root = who->vfs->root };
	struct vfs_who whole = *who;

	whole.fs = &top;
	whole.cred = &who->vfs->own;
	if (vfs_walk(&whole, NULL, path, VFS_NO_SYMLINKS, place) < 0)
		return false;
	if (is_same(&whole, place, st))
		return true;
	vfs_place_end(who->vfs, place);
	return false;
}

/* Below a directory that was renamed. */
static bool find_moved(const struct vfs_who *who, const char *host, const struct stat *st, struct vfs_place *place)
{
	char path[2 * PATH_LONGEST];

	for (size_t i = who->vfs->moved_count; i-- > 0;) {
		const struct vfs_node *node = who->vfs->moved[i];
		const char *rest = node->lower_at ? below(host, node->lower_at) : NULL;
		ssize_t n = rest && !node->dead ? node_guest_path(node, who->vfs->root, path, PATH_LONGEST) : -1;

		if (n < 0)
			continue;
		strcpy(path + n - 1, rest);
		if (strlen(path) < PATH_LONGEST && is_at(who, path, st, place))
			return true;
	}
	return false;
}

static bool find_place(const struct vfs_who *who, int fd, const struct stat *st, struct vfs_place *place)
{
	char host[PATH_LONGEST], path[PATH_LONGEST];
	ssize_t n = readlink(fd_path(fd).text, host, sizeof(host) - 1);

	if (n <= 0 || host[0] != '/')
		return false;
	host[n] = 0;
	if (guest_path_of(who->vfs, st, host, path, sizeof(path)) && is_at(who, path, st, place))
		return true;
	return find_moved(who, host, st, place);
}

/* FD is ours, an O_PATH descriptor of what the guest means; it is taken over. */
int vfs_place_of(const struct vfs_who *who, int fd, struct vfs_place *place)
{
	struct vfs_node *node, *up;
	struct stat st;

	*place = VFS_PLACE_NONE;
	if (fstat(fd, &st)) {
		close(fd);
		return -errno;
	}
	if (who->vfs->changed)
		watch_read(who->vfs);
	node = S_ISDIR(st.st_mode) ? dirs_find(who->vfs, st.st_dev, st.st_ino) : NULL;
	if (node) {
		up = node_up(node);
		place->node = vfs_node_ref(node);
		place->dir = vfs_node_ref(up ? up : node);
		place->last = VFS_LAST_DOT;
		close(fd);
		return 0;
	}
	if (st.st_nlink > 0 && find_place(who, fd, &st, place)) {
		if (S_ISDIR(st.st_mode)) {
			dirs_add(who->vfs, st.st_dev, st.st_ino, place->node);
			place->last = VFS_LAST_DOT;
		}
		close(fd);
		return 0;
	}
	place->fd = fd;
	return 0;
}

int vfs_walk_fd(const struct vfs_who *who, int fd, struct vfs_place *place)
{
	char path[48];
	int own;

	*place = VFS_PLACE_NONE;
	if (fd < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", who->tid, fd);
	own = open(path, O_PATH | O_CLOEXEC);
	if (own < 0)
		return errno == ENOENT ? -EBADF : errno == EACCES || errno == EPERM ? -EACCES : -errno;
	return vfs_place_of(who, own, place);
}
