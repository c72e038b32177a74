/* upper_walk.c - see upper_walk.h */
#include "vfs/upper_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/mark.h"
#include "vfs/upper_impl.h"

/* Directories whose descriptors are open; those further up are opened again when the walk comes back to them. */
enum { OPEN_LEVELS = 64, CLOSED = -2 };

struct level {
	struct level *up;
	struct walk_entry entry;
	char *lower;		/* the path of what is below it */
	char *moved;
	bool hides;		/* the lower is not seen in it */
	bool unlocked;		/* its mode is to be set back */
	char **names;
	size_t count, next;
	size_t path_len;
	char *place;		/* of the entry that is being looked at */
};

struct run {
	struct walk *walk;
	const struct upper *upper;
	int lower_root;
	struct level *level;
	size_t depth;
	char *path;		/* the guest path of the entry */
	size_t room;
};

int walk_open(int root, const char *path)
{
	char name[NAME_MAX + 1];
	int fd = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && *(path += strspn(path, "/"))) {
		size_t len = strcspn(path, "/");
		int down;

		if (len > NAME_MAX) {
			close(fd);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len;
		down = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (*path ? O_DIRECTORY : 0));
		if (down < 0)
			down = -errno;
		close(fd);
		fd = down;
	}
	return upper_fd(fd);
}

/* --- levels ------------------------------------------------------------------------------------------------------------------- */

static int name_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_add(struct level *level, size_t *room, const char *name)
{
	if (level->count == *room) {
		size_t more = *room ? *room * 2 : 16;
		char **grown = reallocarray(level->names, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		level->names = grown;
		*room = more;
	}
	level->names[level->count] = strdup(name);
	return level->names[level->count] ? (level->count++, 0) : -ENOMEM;
}

static int names_read(struct level *level)
{
	int error = 0, fd = upper_open_below(level->entry.fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t room = 0;

	if (!dir) {
		error = fd < 0 ? fd : -ENOMEM;
		if (fd >= 0)
			close(fd);
		return error;
	}
	errno = 0;
	for (struct dirent *entry; !error && (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !mark_reserved(entry->d_name))
			error = names_add(level, &room, entry->d_name);
		errno = 0;
	}
	if (!error)
		error = -errno;
	closedir(dir);
	if (level->count)
		qsort(level->names, level->count, sizeof(*level->names), name_order);
	return error;
}

static bool mode_set(int fd, mode_t mode)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode & 07777) == 0;
}

static void fd_drop(int *fd, int left)
{
	if (*fd >= 0)
		close(*fd);
	*fd = left;
}

/* Guests may have taken the user's own rights from a directory: it has them while the walk is in it. */
static int level_open(struct level *level)
{
	struct walk_entry *entry = &level->entry;
	int held;

	if (geteuid() != 0 && (entry->st.stx_mode & S_IRWXU) != S_IRWXU) {
		held = openat(entry->dirfd, entry->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (held < 0)
			return -errno;
		level->unlocked = mode_set(held, entry->st.stx_mode | S_IRWXU);
		close(held);
	}
	entry->fd = upper_open_below(entry->dirfd, entry->name);
	return entry->fd < 0 ? entry->fd : 0;
}

static void level_free(struct level *level)
{
	if (level->unlocked && level->entry.fd >= 0)
		mode_set(level->entry.fd, level->entry.st.stx_mode);
	fd_drop(&level->entry.fd, -1);
	fd_drop(&level->entry.lower_fd, -1);
	for (size_t i = 0; i < level->count; i++)
		free(level->names[i]);
	free(level->names);
	free(level->lower);
	free(level->moved);
	free(level->place);
	free(level);
}

/* Only the deepest levels stay open. */
static void levels_close(struct level *level)
{
	for (size_t i = 0; level && i < OPEN_LEVELS; i++)
		level = level->up;
	if (level && level->entry.fd >= 0) {
		fd_drop(&level->entry.fd, CLOSED);
		if (level->entry.lower_fd >= 0)
			fd_drop(&level->entry.lower_fd, CLOSED);
	}
}

/* Opens what levels_close() closed, by the `..` of the directory below. */
static int level_reopen(struct run *run, struct level *level, int below)
{
	struct statx st;

	if (level->entry.fd == CLOSED) {
		level->entry.fd = upper_open_below(below, "..");
		if (level->entry.fd < 0 || statx(level->entry.fd, "", AT_EMPTY_PATH, STATX_INO, &st) < 0 ||
		    st.stx_ino != level->entry.st.stx_ino)
			return -ESTALE;
	}
	if (level->entry.lower_fd == CLOSED) {
		level->entry.lower_fd = walk_open(run->lower_root, level->lower);
		if (level->entry.lower_fd < 0)
			level->entry.lower_fd = -1;
	}
	return 0;
}

/* --- entries ------------------------------------------------------------------------------------------------------------------ */

/* The place of the entry, and what is there. */
static void place_find(struct walk_entry *entry)
{
	entry->placed = entry->place_dir >= 0 && statx(entry->place_dir, entry->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, WALK_STATX,
						       &entry->place_st) == 0;
}

static int mark_take(struct level *level)
{
	struct mark mark;
	int error = mark_read(level->entry.fd, &mark);

	if (error == -ENOENT)
		error = 0;
	free(level->moved);
	level->moved = NULL;
	level->entry.opaque = mark.opaque;
	level->entry.scaffold = mark.scaffold;
	if (!error && mark.lower[0] && !mark.opaque) {
		level->moved = strdup(mark.lower);
		if (!level->moved)
			error = -ENOMEM;
	}
	level->entry.moved = level->moved;
	level->hides = level->entry.opaque || (level->entry.hidden && !level->moved);
	return error;
}

/* The lower's "/" is no name in a directory. */
static void root_place(struct run *run, struct walk_entry *entry)
{
	entry->lower_fd = upper_fd(openat(run->lower_root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	entry->placed = entry->lower_fd >= 0 && statx(entry->lower_fd, "", AT_EMPTY_PATH, WALK_STATX, &entry->place_st) == 0;
}

/* What is below a directory: its mark may send it elsewhere. */
static int lower_find(struct run *run, struct level *level)
{
	struct walk_entry *entry = &level->entry;
	int error = mark_take(level);

	if (error)
		return error;
	fd_drop(&entry->lower_fd, -1);
	if (run->level)
		place_find(entry);
	else
		root_place(run, entry);
	free(level->lower);
	level->lower = strdup(level->moved ? level->moved : entry->place);
	if (!level->lower)
		return -ENOMEM;
	if (level->moved)
		entry->lower_fd = walk_open(run->lower_root, level->moved);
	else if (entry->placed && run->level)
		entry->lower_fd = upper_fd(openat(entry->place_dir, entry->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (entry->lower_fd < 0)
		entry->lower_fd = -1;
	return 0;
}

/* Goes into a directory. LEVEL is freed when it is not gone into. */
static int level_enter(struct run *run, struct level *level)
{
	int error;

	error = level_open(level);
	if (!error)
		error = lower_find(run, level);
	if (error) {
		level_free(level);
		return error;
	}
	error = run->walk->enter(run->walk->arg, &level->entry);
	if (error) {
		level_free(level);
		return error == WALK_OVER ? 0 : error;
	}
	if (level->entry.stale)
		error = lower_find(run, level);
	level->entry.stale = false;
	if (!error)
		error = names_read(level);
	level->up = run->level;
	run->level = level;
	run->depth++;
	levels_close(level);
	return error;
}

static int path_set(struct run *run, size_t base, const char *name)
{
	size_t len = strlen(name);

	if (base + len + 2 > run->room) {
		char *grown = realloc(run->path, base + len + 2 + run->room);

		if (!grown)
			return -ENOMEM;
		run->path = grown;
		run->room += base + len + 2;
	}
	run->path[base] = '/';
	memcpy(run->path + base + 1, name, len + 1);
	return 0;
}

static char *place_path(const char *above, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", strcmp(above, "/") ? above : "", name) < 0 ? NULL : path;
}

static bool entry_is_whiteout(const struct walk_entry *entry)
{
	const struct stat st = { .st_mode = entry->st.stx_mode, .st_size = entry->st.stx_size };

	return mark_is_whiteout(entry->dirfd, entry->name, &st);
}

/* The next name of the level. */
static int entry_visit(struct run *run, struct level *above, const char *name)
{
	struct walk_entry entry = { .name = name, .dirfd = above->entry.fd, .place_dir = above->entry.lower_fd, .fd = -1,
				    .lower_fd = -1, .hidden = above->hides };
	struct level *level;
	int error = path_set(run, above->path_len, name);

	if (error)
		return error;
	entry.path = run->path;
	if (statx(entry.dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, WALK_STATX, &entry.st) < 0)
		return errno == ENOENT ? 0 : -errno;
	free(above->place);
	above->place = place_path(above->lower, name);
	if (!above->place)
		return -ENOMEM;
	entry.place = above->place;
	if (!S_ISDIR(entry.st.stx_mode)) {
		entry.whiteout = entry_is_whiteout(&entry);
		place_find(&entry);
		error = run->walk->enter(run->walk->arg, &entry);
		return error == WALK_OVER ? 0 : error;
	}
	level = calloc(1, sizeof(*level));
	if (!level)
		return -ENOMEM;
	level->entry = entry;
	level->path_len = above->path_len + 1 + strlen(name);
	return level_enter(run, level);
}

/* Back to the level above. */
static int level_leave(struct run *run, bool told)
{
	struct level *level = run->level, *up = level->up;
	int error = 0;

	run->path[level->path_len ? level->path_len : 1] = '\0';
	if (!told) {
		/* The descriptors above are needed by leave(), and may be closed. */
		if (up) {
			error = level_reopen(run, up, level->entry.fd);
			level->entry.dirfd = up->entry.fd;
			level->entry.place_dir = up->entry.lower_fd;
		}
		level->entry.path = run->path;
		if (!error && run->walk->leave)
			error = run->walk->leave(run->walk->arg, &level->entry);
	}
	run->level = up;
	run->depth--;
	level_free(level);
	return error;
}

static int root_enter(struct run *run)
{
	struct level *level = calloc(1, sizeof(*level));

	if (!level || path_set(run, 0, "") < 0) {
		free(level);
		return -ENOMEM;
	}
	level->entry = (struct walk_entry){ .path = run->path, .name = "fs", .dirfd = run->upper->root_fd, .fd = -1, .lower_fd = -1,
					    .place_dir = -1, .place = "/" };
	if (statx(run->upper->fs_fd, "", AT_EMPTY_PATH, WALK_STATX, &level->entry.st) < 0) {
		free(level);
		return -errno;
	}
	return level_enter(run, level);
}

int walk_run(struct walk *walk, const struct upper *upper, int lower_root)
{
	struct run run = { .walk = walk, .upper = upper, .lower_root = lower_root };
	int error;

	walk->failed = NULL;
	error = root_enter(&run);
	while (!error && run.level) {
		struct level *level = run.level;

		error = level->next < level->count ? entry_visit(&run, level, level->names[level->next++]) : level_leave(&run, false);
	}
	if (error && run.path)
		walk->failed = strdup(run.path);
	while (run.level)
		level_leave(&run, true);
	free(run.path);
	return error;
}
