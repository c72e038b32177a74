/*
 * list.c - reading directories: upper and lower merged, without what is hidden.
 *
 * The position of an entry is a hash of its name, and entries come in this order: a reader that goes on from a position needs no
 * state, misses nothing that was there all the time, and is given nothing twice, whatever was made and removed meanwhile.
 * Positions have 31 bits, as ext4 gives them to 32-bit programs. A listing is kept for the next call; one that begins at the
 * start gets a new one if something has changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#ifdef HAVE_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

#include "vfs/special.h"

enum { FIRST_POSITION = 3, END_POSITION = 0x7fffffff, POSITION_BITS = 31, DENTS_SIZE = 64 << 10, DT_NONE = 255 };

struct entry {
	uint64_t ino;
	uint32_t position;
	uint32_t name;      /* offset in the text */
	uint8_t type;       /* DT_NONE: a whiteout */
	bool upper;
};

struct listing {
	struct entry *entries;
	size_t count, room;
	char *text;
	size_t text_len, text_room;
	bool stale;
};

static void listing_free(struct listing *listing)
{
	if (!listing)
		return;
	free(listing->entries);
	free(listing->text);
	free(listing);
}

void listing_drop(struct vfs *vfs, struct vfs_node *dir)
{
	if (!dir->listing)
		return;
	for (unsigned i = 0; i < LISTINGS_KEPT; i++)
		if (vfs->listed[i] == dir)
			vfs->listed[i] = NULL;
	listing_free(dir->listing);
	dir->listing = NULL;
}

void listing_stale(struct vfs_node *dir)
{
	if (dir->listing)
		dir->listing->stale = true;
}

static void listing_keep(struct vfs *vfs, struct vfs_node *dir, struct listing *listing)
{
	unsigned slot = vfs->listed_next++ % LISTINGS_KEPT;

	listing_drop(vfs, dir);
	if (vfs->listed[slot])
		listing_drop(vfs, vfs->listed[slot]);
	vfs->listed[slot] = dir;
	dir->listing = listing;
}

/* --- making one -------------------------------------------------------------------------------------------------------------------- */

static uint32_t position_of(const struct vfs *vfs, const char *name, size_t len)
{
	const uint32_t most = (1u << POSITION_BITS) - 1024; /* room for entries that share one */
	uint64_t hash;

#ifdef HAVE_XXHASH
	hash = XXH3_64bits_withSeed(name, len, vfs->seed);
#else
	hash = vfs->seed;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
	hash ^= hash >> 32;
#endif
	return FIRST_POSITION + (uint32_t)(hash % (most - FIRST_POSITION));
}

static int entry_add(struct vfs *vfs, struct listing *l, const char *name, uint64_t ino, uint8_t type, bool upper)
{
	size_t len = strlen(name);

	if (l->count == l->room) {
		size_t room = l->room ? l->room * 2 : 64;
		struct entry *grown = realloc(l->entries, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->entries = grown;
		l->room = room;
	}
	if (l->text_len + len + 1 > l->text_room) {
		size_t room = (l->text_room ? l->text_room * 2 : 1024) + len;
		char *grown = realloc(l->text, room);

		if (!grown)
			return -ENOMEM;
		l->text = grown;
		l->text_room = room;
	}
	memcpy(l->text + l->text_len, name, len + 1);
	l->entries[l->count++] = (struct entry){ ino, position_of(vfs, name, len), l->text_len, type, upper };
	l->text_len += len + 1;
	return 0;
}

struct dent { /* struct linux_dirent64 */
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct reading {
	const struct vfs_who *who;
	struct vfs_node *dir;
	struct listing *listing;
	bool upper;
	int fd;
};

/* What is hidden at its own name is settle()'s. */
static bool is_hidden_entry(const struct reading *r, const struct dent *dent)
{
	struct stat st;

	if (!hidden_may_be(r->who->vfs, dent->name, dent->ino) || fstatat(r->fd, dent->name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	return hidden_in(r->who->vfs, r->dir, dent->name, (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev), st.st_ino);
}

static int take_entry(struct reading *r, const struct dent *dent)
{
	struct vfs *vfs = r->who->vfs;
	enum vfs_kind kind = r->dir->mount->kind;
	uint8_t type = dent->type;
	struct stat st;

	if (!strcmp(dent->name, ".") || !strcmp(dent->name, ".."))
		return 0;
	if (r->upper && mark_reserved(dent->name))
		return 0;
	if ((kind == VFS_PROC || kind == VFS_DEV) && !special_visible(r->who, r->dir, dent->name, strlen(dent->name)))
		return 0;
	if (!r->upper && vfs->hidden && is_hidden_entry(r, dent))
		return 0;
	if (type == DT_UNKNOWN || (r->upper && type == DT_LNK)) {
		if (fstatat(r->fd, dent->name, &st, AT_SYMLINK_NOFOLLOW))
			return 0;
		type = IFTODT(st.st_mode);
		if (r->upper && type == DT_LNK && mark_is_whiteout(r->fd, dent->name, &st))
			type = DT_NONE;
	}
	return entry_add(vfs, r->listing, dent->name, dent->ino, type, r->upper);
}

/* Reading needs no right to search, as an open of "." would. */
static int read_layer(struct reading *r, int dir_fd)
{
	char *buf;
	long n = 0;
	int error = 0;

	r->fd = open(fd_path(dir_fd).text, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
	if (r->fd < 0 && errno == EPERM)
		r->fd = open(fd_path(dir_fd).text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->fd < 0)
		error = -errno;
	buf = error < 0 ? NULL : malloc(DENTS_SIZE);
	if (error == 0 && !buf)
		error = -ENOMEM;
	while (error == 0 && (n = syscall(SYS_getdents64, r->fd, buf, DENTS_SIZE)) > 0) {
		for (long at = 0; error == 0 && at < n;) {
			const struct dent *dent = (const struct dent *)(buf + at);

			error = take_entry(r, dent);
			at += dent->reclen;
		}
	}
	if (error == 0 && n < 0)
		error = -errno;
	free(buf);
	if (r->fd >= 0)
		close(r->fd);
	return error;
}

static int compare_entries(const void *a, const void *b, void *text)
{
	const struct entry *x = a, *y = b;
	int order;

	if (x->position != y->position)
		return x->position < y->position ? -1 : 1;
	order = strcmp((char *)text + x->name, (char *)text + y->name);
	return order ? order : (int)y->upper - (int)x->upper;
}

/* A directory that stands in the upper for its place alone has its lower's number, as stat says. */
static bool is_scaffold(const struct vfs_who *who, struct vfs_node *dir, const char *name)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_node *node;
	bool scaffold;

	if (lookup(who, dir, name, strlen(name), &place, &node) < 0)
		return false;
	scaffold = node->scaffold;
	vfs_node_unref(who->vfs, node);
	return scaffold;
}

static bool is_hidden_name(const struct vfs *vfs, const struct vfs_node *dir, const char *name)
{
	for (const struct vfs_mount *mount = vfs->mounts; mount; mount = mount->next)
		if (mount->kind == VFS_HIDE && mount->point && mount->point->parent == dir && !strcmp(mount->point->name, name))
			return true;
	return false;
}

/* Another name of a lower file that was copied up has the copy's number, as stat says. */
static uint64_t number_of(const struct vfs_who *who, struct vfs_node *dir, const char *name, const struct entry *entry)
{
	struct vfs_place place = VFS_PLACE_NONE;
	uint64_t ino = entry->ino;
	struct statx st;

	if (entry->upper || entry->type == DT_DIR || !layer_is_indexed(who->vfs, dir->dev, entry->ino))
		return ino;
	if (lookup(who, dir, name, strlen(name), &place, &place.node) == 0) {
		if (vfs_stat(who, &place, STATX_INO, 0, &st) == 0)
			ino = st.stx_ino;
		vfs_node_unref(who->vfs, place.node);
	}
	return ino;
}

/* One entry a name, no whiteout, nothing hidden; positions that collide move on. */
static void settle(const struct vfs_who *who, struct vfs_node *dir, struct listing *l)
{
	size_t kept = 0;

	if (l->count)
		qsort_r(l->entries, l->count, sizeof(*l->entries), compare_entries, l->text);
	for (size_t i = 0; i < l->count; i++) {
		struct entry *entry = &l->entries[i];
		const char *name = l->text + entry->name;
		size_t twin = i + 1;

		if (twin < l->count && !strcmp(name, l->text + l->entries[twin].name)) {
			if (entry->type == DT_DIR && l->entries[twin].type == DT_DIR && is_scaffold(who, dir, name))
				entry->ino = l->entries[twin].ino;
			i = twin;
		}
		if (entry->type == DT_NONE || is_hidden_name(who->vfs, dir, name))
			continue;
		entry->ino = number_of(who, dir, name, entry);
		l->entries[kept] = *entry;
		if (kept && l->entries[kept].position <= l->entries[kept - 1].position)
			l->entries[kept].position = l->entries[kept - 1].position + 1;
		kept++;
	}
	l->count = kept;
}

/* What is mounted at a name that neither layer has. */
static int add_mounts(const struct vfs_who *who, struct vfs_node *dir, struct listing *l)
{
	int error = 0;

	for (const struct vfs_mount *mount = who->vfs->mounts; error == 0 && mount; mount = mount->next)
		if (mount->root && mount->point && mount->point->parent == dir && !node_exists(mount->point))
			error = entry_add(who->vfs, l, mount->point->name, mount->root->ino, mount->root->type, false);
	return error;
}

static int listing_make(const struct vfs_who *who, struct vfs_node *dir, struct listing **made)
{
	struct listing *l = calloc(1, sizeof(*l));
	struct reading r = { .who = who, .dir = dir, .listing = l };
	struct upper_lock lock = { .fd = -1 };
	int error = l ? 0 : -ENOMEM, fd;

	/* Who reads it has opened it: what it is made of is read as ourselves. */
	if (error == 0 && dir->in_upper) {
		r.upper = true;
		fd = dir_upper(who->vfs, dir);
		error = upper_unlock(&lock, fd);
		if (error == 0)
			error = read_layer(&r, fd);
		if (lock.fd >= 0)
			upper_relock(&lock, false);
	}
	if (error == 0 && dir->in_lower && !dir->opaque) {
		r.upper = false;
		fd = dir_lower(who->vfs, dir);
		error = fd < 0 ? fd : read_layer(&r, fd);
	}
	if (error == 0)
		error = add_mounts(who, dir, l);
	if (error < 0) {
		listing_free(l);
		return error;
	}
	settle(who, dir, l);
	*made = l;
	return 0;
}

/* --- reading one ---------------------------------------------------------------------------------------------------------------------- */

static struct listing *listing_get(const struct vfs_who *who, struct vfs_node *dir, bool start, int *error)
{
	struct listing *l = dir->listing;
	bool kept = l && (!start || (!l->stale && (!dir->in_lower || dir->opaque || dir->watch_gen)));

	if (kept)
		return l;
	*error = listing_make(who, dir, &l);
	if (*error < 0)
		return NULL;
	listing_keep(who->vfs, dir, l);
	return l;
}

/* `.` and `..` come first. */
static bool add_dots(const struct vfs_who *who, struct vfs_node *dir, int64_t *position,
                     bool (*add)(void *context, const struct vfs_dirent *entry), void *context)
{
	struct vfs_node *up = dir == who->fs->root ? dir : node_up(dir);
	struct vfs_node *const nodes[] = { dir, up ? node_top(up) : dir };
	static const char *const names[] = { ".", ".." };

	for (int64_t i = *position; i < 2; i++) {
		struct vfs_place place = { .node = nodes[i], .fd = -1 };
		struct statx st = { 0 };
		struct vfs_dirent entry = { .next = i + 1, .type = DT_DIR, .name = names[i] };

		vfs_stat(who, &place, STATX_INO, 0, &st);
		entry.ino = st.stx_ino;
		if (!add(context, &entry))
			return false;
		*position = i + 1;
	}
	return true;
}

/* The first entry behind a position. */
static size_t entry_after(const struct listing *l, int64_t position)
{
	size_t low = 0, high = l->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if ((int64_t)l->entries[middle].position <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int64_t vfs_list(const struct vfs_who *who, struct vfs_place *place, int64_t position,
                 bool (*add)(void *context, const struct vfs_dirent *entry), void *context)
{
	struct vfs_node *dir = place->node;
	struct listing *l;
	int error = 0;

	if (position < 0)
		return -EINVAL;
	if (!dir || !node_is_dir(dir))
		return -ENOTDIR;
	if (dir->dead)
		return -ENOENT;
	linked_end(who->vfs, who->fs);
	if (who->vfs->changed)
		watch_read(who->vfs);
	l = listing_get(who, dir, position == 0, &error);
	if (!l)
		return error;
	if (!add_dots(who, dir, &position, add, context))
		return position;
	for (size_t i = entry_after(l, position); i < l->count; i++) {
		const struct entry *entry = &l->entries[i];
		struct vfs_dirent shown = { entry->ino, entry->position, entry->type, l->text + entry->name };

		if (!add(context, &shown))
			return position;
		position = entry->position;
	}
	return END_POSITION; /* who has read all is told of nothing that comes later */
}

bool vfs_list_is_plain(const struct vfs *vfs, const struct vfs_place *place)
{
	const struct vfs_node *dir = place->node;

	if (!dir || dir->mount->kind != VFS_RW)
		return false;
	for (const struct vfs_mount *mount = vfs->mounts; mount; mount = mount->next)
		if (mount->kind == VFS_HIDE && mount->point && mount->point->parent == dir)
			return false;
	return true;
}

bool dir_is_empty(const struct vfs_who *who, struct vfs_node *dir, int *error)
{
	struct listing *l;
	bool empty;

	*error = listing_make(who, dir, &l);
	if (*error < 0)
		return false;
	empty = l->count == 0;
	listing_free(l);
	return empty;
}
