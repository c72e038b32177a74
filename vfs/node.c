/*
 * node.c - the names that were looked up, in a hash table.
 *
 * A node lives while something refers to it: its children, a working directory, a place, a mount. One that nobody refers to
 * stays in the table, on a list from which the oldest are taken when there are too many.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

#include "vfs/internal.h"

enum { BUCKETS_FIRST = 256, UNUSED_MOST = 32768 };

static uint32_t name_hash(const struct vfs_node *parent, const char *name, size_t len)
{
#ifdef HAVE_XXHASH
	return (uint32_t)XXH3_64bits_withSeed(name, len, (uintptr_t)parent);
#else
	uint64_t hash = (uintptr_t)parent * 0x9e3779b97f4a7c15u; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
	return (uint32_t)(hash ^ hash >> 32);
#endif
}

/* --- the table --------------------------------------------------------------------------------------------------------- */

static int table_grow(struct vfs *vfs)
{
	size_t old_count = vfs->bucket_count, count = old_count ? old_count * 2 : BUCKETS_FIRST;
	struct vfs_node **old = vfs->buckets, **buckets = calloc(count, sizeof(*buckets)), *node, *next;

	if (!buckets)
		return old_count ? 0 : -ENOMEM;
	for (size_t i = 0; i < old_count; i++) {
		for (node = old[i]; node; node = next) {
			next = node->chain;
			node->chain = buckets[node->hash & (count - 1)];
			buckets[node->hash & (count - 1)] = node;
		}
	}
	free(old);
	vfs->buckets = buckets;
	vfs->bucket_count = count;
	return 0;
}

struct vfs_node *node_find(struct vfs *vfs, const struct vfs_node *parent, const char *name, size_t len)
{
	uint32_t hash = name_hash(parent, name, len);
	struct vfs_node *node = vfs->bucket_count ? vfs->buckets[hash & (vfs->bucket_count - 1)] : NULL;

	while (node && (node->hash != hash || node->parent != parent || node->name_len != len || memcmp(node->name, name, len)))
		node = node->chain;
	return node;
}

void node_link(struct vfs *vfs, struct vfs_node *node)
{
	struct vfs_node **bucket;

	node->hash = name_hash(node->parent, node->name, node->name_len);
	bucket = &vfs->buckets[node->hash & (vfs->bucket_count - 1)];
	node->chain = *bucket;
	*bucket = node;
	node->hashed = true;
}

void node_unlink(struct vfs *vfs, struct vfs_node *node)
{
	struct vfs_node **at;

	if (!node->hashed)
		return;
	at = &vfs->buckets[node->hash & (vfs->bucket_count - 1)];
	while (*at != node)
		at = &(*at)->chain;
	*at = node->chain;
	node->hashed = false;
}

/* --- life -------------------------------------------------------------------------------------------------------------- */

static void lru_remove(struct vfs *vfs, struct vfs_node *node)
{
	if (!node->lru_next)
		return;
	node->lru_next->lru_prev = node->lru_prev;
	node->lru_prev->lru_next = node->lru_next;
	node->lru_next = node->lru_prev = NULL;
	vfs->unused--;
}

static void lru_append(struct vfs *vfs, struct vfs_node *node)
{
	node->lru_next = &vfs->lru;
	node->lru_prev = vfs->lru.lru_prev;
	node->lru_prev->lru_next = node;
	vfs->lru.lru_prev = node;
	vfs->unused++;
}

/* Its descriptors; they are opened again when needed. */
void node_close(struct vfs *vfs, struct vfs_node *node)
{
	if (node->lower_fd >= 0) {
		close(node->lower_fd);
		vfs->fd_count--;
	}
	if (node->upper_fd >= 0) {
		close(node->upper_fd);
		vfs->fd_count--;
	}
	node->lower_fd = node->upper_fd = -1;
}

/* Forgets all that was found at this name. */
void node_clear(struct vfs *vfs, struct vfs_node *node)
{
	watch_drop(vfs, node);
	node_close(vfs, node);
	listing_drop(vfs, node);
	free(node->lower_at);
	free(node->link);
	node->lower_at = node->link = NULL;
	node->type = DT_UNKNOWN;
	node->search = SEARCH_UNKNOWN;
	node->in_upper = node->in_lower = node->whiteout = node->opaque = node->scaffold = node->followed = node->host_proc = false;
	node->gen = node->ino = node->dev = 0;
	node->visits = 0;
}

static void node_destroy(struct vfs *vfs, struct vfs_node *node)
{
	node_unlink(vfs, node);
	node_clear(vfs, node);
	vfs->node_count--;
	if (node->name != node->short_name)
		free(node->name);
	free(node);
}

struct vfs_node *vfs_node_ref(struct vfs_node *node)
{
	node->refs++;
	return node;
}

/* Freeing a node may make its parent the newest unused one. */
static void lru_shrink(struct vfs *vfs)
{
	if (vfs->shrinking)
		return;
	vfs->shrinking = true;
	while (vfs->unused > UNUSED_MOST) {
		struct vfs_node *node = vfs->lru.lru_next, *parent = node->parent;

		lru_remove(vfs, node);
		node_destroy(vfs, node);
		vfs_node_unref(vfs, parent);
	}
	vfs->shrinking = false;
}

/* No recursion: how deep a tree is, guests decide. */
void vfs_node_unref(struct vfs *vfs, struct vfs_node *node)
{
	struct vfs_node *parent;

	for (; node && --node->refs == 0; node = parent) {
		parent = node->parent;
		if (node->hashed || !parent) {
			lru_append(vfs, node);
			lru_shrink(vfs);
			return;
		}
		node_destroy(vfs, node); /* nobody can find it any more */
	}
}

static int name_set(struct vfs_node *node, const char *name, size_t len)
{
	char *text = node->short_name;

	if (len >= sizeof(node->short_name)) {
		text = strndup(name, len);
		if (!text)
			return -ENOMEM;
	} else {
		memcpy(text, name, len);
		text[len] = 0;
	}
	if (node->name != node->short_name && node->name != text)
		free(node->name);
	node->name = text;
	node->name_len = len;
	return 0;
}

/* Referred to once; not in the table. NULL on ENOMEM. */
struct vfs_node *node_new(struct vfs *vfs, struct vfs_node *parent, struct vfs_mount *mount, const char *name, size_t len)
{
	struct vfs_node *node;

	if (vfs->node_count >= vfs->bucket_count && table_grow(vfs) < 0)
		return NULL;
	node = calloc(1, sizeof(*node));
	if (!node || name_set(node, name, len) < 0) {
		free(node);
		return NULL;
	}
	node->parent = parent ? vfs_node_ref(parent) : NULL;
	node->mount = mount;
	node->lower_fd = node->upper_fd = node->wd = -1;
	node->refs = 1;
	vfs->node_count++;
	return node;
}

/* The node of a name, with a reference; a new one knows nothing yet. NULL on ENOMEM. */
struct vfs_node *node_get(struct vfs *vfs, struct vfs_node *parent, const char *name, size_t len)
{
	struct vfs_node *node = node_find(vfs, parent, name, len);

	if (node) {
		if (node->refs == 0)
			lru_remove(vfs, node);
		return vfs_node_ref(node);
	}
	node = node_new(vfs, parent, parent->mount, name, len);
	if (node)
		node_link(vfs, node);
	return node;
}

/* What has NODE as its name now is nobody's any more: who still refers to it keeps it. */
void node_forget(struct vfs *vfs, struct vfs_node *node)
{
	node_unlink(vfs, node);
	if (node->refs == 0) {
		struct vfs_node *parent = node->parent;

		lru_remove(vfs, node);
		node_destroy(vfs, node);
		vfs_node_unref(vfs, parent);
	}
}

/* Other names of a lower file that is copied up: they are looked at again. */
void nodes_doubt(struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < vfs->bucket_count; i++)
		for (struct vfs_node *node = vfs->buckets[i]; node; node = node->chain)
			if (node->ino == ino && node->dev == dev && !node->in_upper)
				node->gen = 0;
}

/* Too many directories are open: all are closed, and opened again as they are needed. Not within an operation. */
void nodes_close(struct vfs *vfs)
{
	for (size_t i = 0; i < vfs->bucket_count; i++)
		for (struct vfs_node *node = vfs->buckets[i]; node; node = node->chain)
			node_close(vfs, node);
}

/* NODE gets another name; its children stay its children. What had that name must have been forgotten. */
int node_move(struct vfs *vfs, struct vfs_node *node, struct vfs_node *parent, const char *name, size_t len)
{
	struct vfs_node *old = node->parent;
	int error;

	node_unlink(vfs, node);
	error = name_set(node, name, len);
	if (error < 0)
		return error;
	node->parent = vfs_node_ref(parent);
	node_link(vfs, node);
	vfs_node_unref(vfs, old);
	return 0;
}

void nodes_init(struct vfs *vfs)
{
	vfs->lru.lru_next = vfs->lru.lru_prev = &vfs->lru;
}

/* All, whoever refers to them. */
void nodes_free(struct vfs *vfs)
{
	struct vfs_node *node, *next;

	for (size_t i = 0; i < vfs->bucket_count; i++) {
		for (node = vfs->buckets[i]; node; node = next) {
			next = node->chain;
			node_clear(vfs, node);
			if (node->name != node->short_name)
				free(node->name);
			free(node);
		}
	}
	free(vfs->buckets);
}

/* --- in the guest's tree -------------------------------------------------------------------------------------------------- */

/* The directory that `..` leads to; NULL at the top. */
struct vfs_node *node_up(struct vfs_node *node)
{
	while (!node->parent && node->mount->point)
		node = node->mount->point;
	return node->parent;
}

bool node_is_below(const struct vfs_node *node, const struct vfs_node *top)
{
	for (; node; node = node_up((struct vfs_node *)node))
		if (node == top)
			return true;
	return false;
}

/* A mount below it would be taken along, or left behind, by a rename. */
bool node_holds_mount(const struct vfs *vfs, const struct vfs_node *node)
{
	for (const struct vfs_mount *mount = vfs->mounts; mount; mount = mount->next)
		if (mount->point && node_is_below(mount->point, node))
			return true;
	return false;
}

/* As d_path() does it: from the end of the buffer. Length with the NUL; -ERANGE; -ENOENT: removed; -EXDEV: not below ROOT. */
ssize_t node_guest_path(const struct vfs_node *node, const struct vfs_node *root, char *buf, size_t size)
{
	size_t at = size;
	const struct vfs_node *up;

	if (size == 0)
		return -ERANGE;
	buf[--at] = 0;
	for (; node != root; node = up) {
		while (!node->parent && node->mount->point) /* a mount's root has its mount point's name */
			node = node->mount->point;
		if (node == root)
			break;
		up = node->parent;
		if (!up)
			return -EXDEV;
		if (node->dead)
			return -ENOENT;
		up = node_top((struct vfs_node *)up);
		if (at < (size_t)node->name_len + 1)
			return -ERANGE;
		at -= node->name_len;
		memcpy(buf + at, node->name, node->name_len);
		buf[--at] = '/';
	}
	if (at == size - 1) {
		if (at == 0)
			return -ERANGE;
		buf[--at] = '/';
	}
	memmove(buf, buf + at, size - at);
	return size - at;
}
