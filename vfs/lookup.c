/* lookup.c - what a name in a directory of the view stands for: upper, lower, both, or nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vfs/special.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

struct fd_path fd_path(int fd)
{
	struct fd_path path;

	snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
	return path;
}

/* --- directories' descriptors ---------------------------------------------------------------------------------------------- */

static int keep_fd(struct vfs *vfs, int *slot, int fd)
{
	if (fd < 0)
		return -errno;
	*slot = fd;
	vfs->fd_count++;
	return fd;
}

/* The host's directory at a path below HOST_ROOT in which no component is a link: they were resolved when it was found. */
static int open_host_dir(struct vfs *vfs, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
	                        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

	while (*path == '/')
		path++;
	return syscall(SYS_openat2, vfs->host_root, *path ? path : ".", &how, sizeof(how));
}

/* One step: the parent's descriptor is open. */
static int open_lower_step(struct vfs *vfs, struct vfs_node *dir)
{
	int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	if (dir->lower_fd >= 0)
		return dir->lower_fd;
	if (!dir->in_lower)
		return -ENOENT;
	if (dir->lower_at)
		return keep_fd(vfs, &dir->lower_fd, open_host_dir(vfs, dir->lower_at));
	if (!dir->parent)
		return keep_fd(vfs, &dir->lower_fd, open_host_dir(vfs, dir->mount->source));
	return keep_fd(vfs, &dir->lower_fd, openat(dir->parent->lower_fd, dir->name, flags));
}

static int open_upper_step(struct vfs *vfs, struct vfs_node *dir)
{
	if (dir->upper_fd >= 0)
		return dir->upper_fd;
	if (!dir->in_upper || !dir->parent)
		return -ENOENT;
	return keep_fd(vfs, &dir->upper_fd, openat(dir->parent->upper_fd, dir->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* From the nearest directory that is open down to DIR. How deep it is, guests decide: no recursion. */
static int open_chain(struct vfs *vfs, struct vfs_node *dir, bool upper)
{
	struct vfs_node *local[64], **chain = local, *node = dir;
	size_t depth = 0, at;
	int fd = -ENOENT;

	for (; node; node = node->parent) {
		depth++;
		if (!node->parent || (upper ? node->parent->upper_fd : node->parent->lower_fd) >= 0 || (!upper && node->lower_at))
			break;
	}
	if (depth > sizeof(local) / sizeof(local[0]))
		chain = calloc(depth, sizeof(*chain));
	if (!chain)
		return -ENOMEM;
	for (node = dir, at = depth; at > 0; node = node->parent)
		chain[--at] = node;
	for (at = 0; at < depth; at++) {
		fd = upper ? open_upper_step(vfs, chain[at]) : open_lower_step(vfs, chain[at]);
		if (fd < 0)
			break;
	}
	if (chain != local)
		free(chain);
	return fd;
}

int dir_lower(struct vfs *vfs, struct vfs_node *dir)
{
	if (dir->lower_fd >= 0)
		return dir->lower_fd;
	return dir->in_lower ? open_chain(vfs, dir, false) : -ENOENT;
}

int dir_upper(struct vfs *vfs, struct vfs_node *dir)
{
	if (dir->upper_fd >= 0)
		return dir->upper_fd;
	return dir->in_upper ? open_chain(vfs, dir, true) : -ENOENT;
}

/* Where a node's lower is on the host: as d_path() would print it. Length without the NUL. */
ssize_t node_lower_path(struct vfs *vfs, const struct vfs_node *node, char *buf, size_t size)
{
	size_t at = size;
	const char *base;
	size_t len;

	(void)vfs;
	for (; node->parent && !node->lower_at; node = node->parent) {
		if (at < (size_t)node->name_len + 1)
			return -ENAMETOOLONG;
		at -= node->name_len;
		memcpy(buf + at, node->name, node->name_len);
		buf[--at] = '/';
	}
	base = node->lower_at ? node->lower_at : node->mount->source;
	if (!base)
		return -ENOENT;
	len = strlen(base);
	while (len > 0 && base[len - 1] == '/')
		len--;
	if (len + (size - at) + 2 > size)
		return -ENAMETOOLONG;
	memmove(buf + len, buf + at, size - at);
	memcpy(buf, base, len);
	len += size - at;
	if (len == 0)
		buf[len++] = '/';
	buf[len] = 0;
	return len;
}

/* --- permission to search ---------------------------------------------------------------------------------------------------- */

/* Whether the caller may search the directory. Looking up "." asks the kernel just that, by file-system ids
   (fs/namei.c: may_lookup). */
int lookup_search(const struct vfs_who *who, struct vfs_node *dir)
{
	bool own = !who->cred->foreign;
	struct stat st;
	int fd;

	if (own && dir->search != SEARCH_UNKNOWN && (!dir->in_lower || (dir->in_upper && !dir->scaffold) || dir->watch_gen))
		return dir->search == SEARCH_OK ? 0 : -EACCES;
	fd = dir->in_upper && !dir->scaffold ? dir_upper(who->vfs, dir) : dir_lower(who->vfs, dir);
	if (fd < 0)
		return fd;
	if (fstatat(fd, ".", &st, 0) == 0) {
		if (own)
			dir->search = SEARCH_OK;
		return 0;
	}
	if (own && errno == EACCES)
		dir->search = SEARCH_DENIED;
	return -errno;
}

/* --- probing ------------------------------------------------------------------------------------------------------------------ */

static int statx_at(int fd, const char *name, struct statx *st)
{
	return statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, st) ? -errno : 0;
}

static uint64_t statx_dev(const struct statx *st)
{
	return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

/* Looks into the lower. 0; -ENOENT. */
static int probe_lower(struct vfs *vfs, struct vfs_node *dir, const char *name, struct statx *st)
{
	int fd, error;

	if (dir->opaque)
		return -ENOENT;
	fd = dir_lower(vfs, dir);
	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR ? -ENOENT : fd;
	error = statx_at(fd, name, st);
	vfs->counts.probes++;
	if (error == 0 && vfs->hidden && hidden_in(vfs, dir, name, statx_dev(st), st->stx_ino))
		return -ENOENT;
	return error;
}

bool lower_has(struct vfs *vfs, struct vfs_node *dir, const char *name, struct stat *st)
{
	int fd = dir->opaque || !dir->in_lower ? -ENOENT : dir_lower(vfs, dir);

	return fd >= 0 && fstatat(fd, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static uint8_t type_of(const struct statx *st)
{
	return IFTODT(st->stx_mode);
}

/* A directory of the upper: is it merged, and with what? */
static int probe_merge(struct vfs *vfs, struct vfs_node *dir, struct vfs_node *node, struct statx *st)
{
	struct mark mark;
	struct statx lower;
	int fd = dir_upper(vfs, node), error;

	if (fd < 0)
		return fd;
	error = layer_mark_read(fd, &mark);
	if (error < 0 && error != -ENOENT)
		return error == -EUCLEAN ? -EIO : error;
	node->opaque = mark.opaque;
	node->scaffold = mark.scaffold;
	if (mark.lower[0]) {
		node->lower_at = strdup(mark.lower);
		if (!node->lower_at)
			return -ENOMEM;
		moved_add(vfs, node);
		node->in_lower = true;
		fd = hidden_has(vfs, mark.lower) ? -ENOENT : open_lower_step(vfs, node);
		node->in_lower = fd >= 0 && statx_at(fd, "", &lower) == 0 && !hidden_is(vfs, statx_dev(&lower), lower.stx_ino);
	} else if (!mark.opaque) {
		node->in_lower = dir->in_lower && probe_lower(vfs, dir, node->name, &lower) == 0 && S_ISDIR(lower.stx_mode);
	}
	if (node->in_lower && fd >= 0) {
		node->ino = lower.stx_ino;
		node->dev = statx_dev(&lower);
	}
	if (node->scaffold && node->in_lower)
		*st = lower;
	return 0;
}

static int probe_upper(struct vfs *vfs, struct vfs_node *dir, struct vfs_node *node, struct statx *st)
{
	struct stat short_st;
	int fd = dir_upper(vfs, dir), error;

	if (fd < 0)
		return fd;
	error = statx_at(fd, node->name, st);
	vfs->counts.probes++;
	if (error < 0)
		return error;
	short_st.st_mode = st->stx_mode;
	short_st.st_size = st->stx_size;
	if (S_ISLNK(st->stx_mode) && mark_is_whiteout(fd, node->name, &short_st)) {
		node->whiteout = true;
		return 0;
	}
	node->in_upper = true;
	node->type = type_of(st);
	return node_is_dir(node) ? probe_merge(vfs, dir, node, st) : 0;
}

/* What of the node stays when the lower is looked at again: the upper is changed by us alone. */
static bool knows_upper(const struct vfs_node *node)
{
	return node->in_upper || node->whiteout;
}

/* A mount of the host's. */
static bool is_proc(struct vfs *vfs, struct vfs_node *dir)
{
	int fd = dir->mount->kind == VFS_PROC ? -1 : dir_lower(vfs, dir);
	struct statfs st;

	return fd >= 0 && fstatfs(fd, &st) == 0 && st.f_type == PROC_SUPER_MAGIC;
}

static void take_lower(struct vfs *vfs, struct vfs_node *node, const struct statx *st)
{
	node->type = type_of(st);
	node->in_lower = true;
	node->ino = st->stx_ino;
	node->dev = statx_dev(st);
	node->host_proc = node_is_dir(node) && node->dev != node->parent->dev && is_proc(vfs, node);
}

/* Another name of a lower file that was copied up is a name of the copy. */
static int find_alias(const struct vfs_who *who, struct vfs_node *node, const struct statx *st, bool *fresh)
{
	int error;

	if (!node->mount->overlay || S_ISDIR(st->stx_mode) || st->stx_nlink < 2 ||
	    !layer_is_indexed(who->vfs, statx_dev(st), st->stx_ino))
		return 0;
	*fresh = false;
	cred_leave(who->cred); /* a walk has taken them */
	error = layer_alias(who->vfs, node, st);
	return cred_enter(who->cred) < 0 ? -EPERM : error;
}

/* Fills a node that knows nothing. */
static int probe(const struct vfs_who *who, struct vfs_node *dir, struct vfs_node *node, struct statx *st, bool *fresh)
{
	struct vfs *vfs = who->vfs;
	int error = dir->in_upper ? probe_upper(vfs, dir, node, st) : -ENOENT;

	if (error < 0 && error != -ENOENT)
		return error;
	*fresh = error == 0 && !node->whiteout;
	if (error == 0)
		return 0;
	if (!dir->in_lower)
		return 0;
	error = probe_lower(vfs, dir, node->name, st);
	if (error == -ENOENT)
		return 0;
	if (error < 0)
		return error;
	take_lower(vfs, node, st);
	*fresh = true;
	return find_alias(who, node, st, fresh);
}

/* Whether what was found of the lower at this name still holds. */
static bool is_current(const struct vfs_node *dir, const struct vfs_node *node)
{
	if (node->whiteout || (node->in_upper && (!node_is_dir(node) || node->opaque || node->lower_at)))
		return true;
	if (!dir->in_lower || dir->opaque)
		return true;
	return dir->watch_gen && node->gen == dir->watch_gen;
}

/* Numbers of inodes are used again at once. A directory that we hold and that was removed has no links; a link's target may
   be another one. */
static bool is_reused(struct vfs_node *node)
{
	struct stat st;

	free(node->link);
	node->link = NULL;
	return node->lower_fd >= 0 && (fstat(node->lower_fd, &st) || st.st_nlink == 0);
}

/* The host may have changed it. A directory that is still the same keeps its node, and so all that is known below it. */
static int look_again(const struct vfs_who *who, struct vfs_node *dir, struct vfs_node **node, struct statx *st, bool *fresh)
{
	struct vfs *vfs = who->vfs;
	struct vfs_node *old = *node, *new;
	int error;

	if (old->gen == 0 && !node_exists(old) && !old->covered && old->refs == 1 && !knows_upper(old)) {
		error = probe(who, dir, old, st, fresh); /* new, or nothing was there */
		return error;
	}
	error = probe_lower(vfs, dir, old->name, st);
	if (error < 0 && error != -ENOENT)
		return error;
	if (knows_upper(old)) { /* a merged directory */
		bool merged = error == 0 && S_ISDIR(st->stx_mode);

		if (!merged || !old->in_lower || old->ino != st->stx_ino || old->dev != statx_dev(st)) {
			watch_drop(vfs, old);
			if (old->lower_fd >= 0) {
				close(old->lower_fd);
				vfs->fd_count--;
			}
			old->lower_fd = -1;
			old->in_lower = merged;
			old->ino = merged ? st->stx_ino : 0;
			old->dev = merged ? statx_dev(st) : 0;
			old->search = SEARCH_UNKNOWN;
		}
		return 0;
	}
	if (error == 0 && old->in_lower && type_of(st) == old->type && old->ino == st->stx_ino && old->dev == statx_dev(st) &&
	    !is_reused(old)) {
		*fresh = true;
		return find_alias(who, old, st, fresh);
	}
	if (error == -ENOENT && !node_exists(old))
		return 0;
	if (old->covered) { /* a mount point stays one, whatever is below it */
		node_close(vfs, old);
		if (error == 0)
			take_lower(vfs, old, st);
		return 0;
	}
	node_forget(vfs, vfs_node_ref(old));
	new = node_get(vfs, dir, old->name, old->name_len);
	vfs_node_unref(vfs, old); /* the reference above */
	if (!new)
		return -ENOMEM;
	vfs_node_unref(vfs, old);
	*node = new;
	return probe(who, dir, new, st, fresh);
}

static bool is_invisible(const struct vfs_who *who, struct vfs_node *dir, const char *name, size_t len)
{
	if (len >= sizeof(MARK_PREFIX) - 1 && !memcmp(name, MARK_PREFIX, sizeof(MARK_PREFIX) - 1))
		return true;
	return (dir->mount->kind == VFS_PROC || dir->mount->kind == VFS_DEV) && !special_visible(who, dir, name, len);
}

/*
 * The node of NAME in DIR, with a reference; negative where nothing is. The caller may search DIR. Where it was looked at now, the
 * place gets its attributes.
 */
int lookup(const struct vfs_who *who, struct vfs_node *dir, const char *name, size_t len, struct vfs_place *place,
           struct vfs_node **node)
{
	struct vfs *vfs = who->vfs;
	struct vfs_node *found;
	bool fresh = false;
	int error = 0;

	if (len > NAME_LONGEST)
		return -ENAMETOOLONG;
	if (!dir->watch_gen && dir->in_lower && !dir->opaque && dir->visits < 2 && ++dir->visits == 2 && dir_lower(vfs, dir) >= 0)
		watch_add(vfs, dir);
	place->fresh = false;
	if (is_invisible(who, dir, name, len)) {
		*node = node_new(vfs, dir, dir->mount, name, len); /* for this caller alone */
		return *node ? 0 : -ENOMEM;
	}
	found = node_get(vfs, dir, name, len);
	if (!found)
		return -ENOMEM;
	if (found->gen != 0 && is_current(dir, found)) {
		vfs->counts.hits++;
	} else {
		error = look_again(who, dir, &found, &place->st, &fresh);
		found->gen = error ? 0 : dir->watch_gen ? dir->watch_gen : 1;
	}
	if (error) {
		vfs_node_unref(vfs, found);
		return error;
	}
	place->fresh = fresh;
	*node = found;
	return 0;
}

/* The target of a symbolic link, kept as long as the node: another target is another link. */
const char *node_link_target(struct vfs *vfs, struct vfs_node *node, int *error)
{
	char buf[PATH_LONGEST];
	ssize_t n;
	int fd;

	if (node->link)
		return node->link;
	fd = node->in_upper ? dir_upper(vfs, node->parent) : dir_lower(vfs, node->parent);
	n = fd < 0 ? fd : readlinkat(fd, node->name, buf, sizeof(buf));
	if (n < 0) {
		*error = fd < 0 ? fd : -errno;
		return NULL;
	}
	node->link = strndup(buf, n);
	if (!node->link)
		*error = -ENOMEM;
	return node->link;
}
