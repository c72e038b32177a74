/*
 * commit_move.c - makes the directories of the upper stand at their own places
 *
 * Guests see the same after each step as before it, so that a commit may be killed between any two. An opaque directory gets a
 * whiteout for each name of the lower that it has not, then it is opaque no more. For a renamed one the lower's directory is
 * renamed, to where the one above stands in the lower; then the marks of all that were below its old name are set right. Where
 * the name is still taken by another directory that is to be renamed, the first is put aside under a temporary name, and goes
 * on when all others have gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/commit_impl.h"
#include "vfs/mark.h"
#include "vfs/upper_impl.h"

/* A name of its own, as it is no rest of a killed commit that could be removed. */
#define ASIDE ".interpose-moved."

struct pending {
	char *path;	/* the guest path of the upper's directory */
	char *from;	/* of its lower */
};

/* --- opaque directories ----------------------------------------------------------------------------------------------------------- */

static int mark_change(int fd, bool opaque, const char *lower)
{
	struct mark mark;
	int error = mark_read(fd, &mark);

	if (error && error != -ENOENT)
		return error;
	if (strlen(lower) >= sizeof(mark.lower))
		return -ENAMETOOLONG;
	mark.opaque = opaque;
	strcpy(mark.lower, lower);
	return mark_write(fd, &mark);
}

static int whiteout_missing(int upper_fd, const char *name)
{
	struct stat st;

	if (fstatat(upper_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return errno == ENOENT ? mark_whiteout(upper_fd, name) : -errno;
}

static int whiteouts_make(const struct walk_entry *entry)
{
	struct stat st;
	int error = 0, fd = upper_open_below(entry->lower_fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir || fstat(entry->fd, &st) < 0) {
		error = fd < 0 ? fd : -errno;
		if (dir)
			closedir(dir);
		else if (fd >= 0)
			close(fd);
		return error;
	}
	for (struct dirent *found; !error && (found = readdir(dir));) {
		if (strcmp(found->d_name, ".") && strcmp(found->d_name, ".."))
			error = whiteout_missing(entry->fd, found->d_name);
	}
	commit_times_restore(entry->fd, &st);
	closedir(dir);
	return error;
}

static int opaque_enter(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;

	if (commit_part(commit, entry->path) == PART_NONE)
		return WALK_OVER;
	if (entry->fd < 0 || (!entry->opaque && !(entry->hidden && !entry->moved)) || entry->lower_fd < 0)
		return 0;
	return whiteouts_make(entry);
}

static int opaque_leave(void *arg, struct walk_entry *entry)
{
	(void)arg;
	return entry->opaque ? mark_change(entry->fd, false, "") : 0;
}

/* --- renamed directories ---------------------------------------------------------------------------------------------------------- */

static bool is_at_or_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

static int pending_add(struct commit *commit, const char *path, const char *from)
{
	struct pending pending = { strdup(path), strdup(from) };

	if (commit->pending_count == commit->pending_room) {
		size_t more = commit->pending_room ? commit->pending_room * 2 : 16;
		struct pending *grown = reallocarray(commit->pending, more, sizeof(*grown));

		if (grown) {
			commit->pending = grown;
			commit->pending_room = more;
		}
	}
	if (!pending.path || !pending.from || commit->pending_count == commit->pending_room) {
		free(pending.path);
		free(pending.from);
		return -ENOMEM;
	}
	commit->pending[commit->pending_count++] = pending;
	return 0;
}

static void pending_clear(struct commit *commit)
{
	for (size_t i = 0; i < commit->pending_count; i++) {
		free(commit->pending[i].path);
		free(commit->pending[i].from);
	}
	free(commit->pending);
	commit->pending = NULL;
	commit->pending_count = commit->pending_room = 0;
}

static int pending_enter(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;

	if (commit_part(commit, entry->path) == PART_NONE)
		return WALK_OVER;
	return entry->fd >= 0 && entry->moved ? pending_add(commit, entry->path, entry->moved) : 0;
}

/* All marks, also of what is not committed now, that tell of FROM or of what is in it. */
struct rewrite {
	const char *from, *to;
};

static int rewrite_enter(void *arg, struct walk_entry *entry)
{
	const struct rewrite *rewrite = arg;
	char *lower;
	int error;

	if (entry->fd < 0 || !entry->moved || !is_at_or_below(entry->moved, rewrite->from))
		return 0;
	if (asprintf(&lower, "%s%s", rewrite->to, entry->moved + strlen(rewrite->from)) < 0)
		return -ENOMEM;
	error = mark_change(entry->fd, false, strcmp(lower, entry->place) ? lower : "");
	free(lower);
	entry->stale = true;
	return error;
}

static int marks_rewrite(struct commit *commit, const char *from, const char *to)
{
	struct rewrite rewrite = { from, to };
	struct walk walk = { .enter = rewrite_enter, .arg = &rewrite };
	int error = walk_run(&walk, commit->upper, commit->lower_root);

	free(walk.failed);
	return error;
}

int commit_move_resume(struct commit *commit, uint64_t dev, uint64_t ino, const char *from, const char *to)
{
	int fd = walk_open(commit->lower_root, to);
	struct stat st;
	bool done = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;

	if (fd >= 0)
		close(fd);
	return done ? marks_rewrite(commit, from, to) : 0;
}

/* Renames in the lower, and then the marks. */
static int lower_rename(struct commit *commit, const char *from, int to_dir, const char *to, const char *to_name)
{
	char *above = commit_above(from);
	int from_dir = above ? walk_open(commit->lower_root, above) : -ENOMEM, error = 0;
	const char *name = strrchr(from, '/') + 1;
	struct stat st;

	free(above);
	if (from_dir < 0)
		return from_dir;
	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		error = -errno;
	if (!error)
		error = journal_move(commit, st.st_dev, st.st_ino, from, to);
	if (!error && renameat2(from_dir, name, to_dir, to_name, RENAME_NOREPLACE) < 0)
		error = errno == EINVAL && renameat(from_dir, name, to_dir, to_name) == 0 ? 0 : -errno;
	if (!error)
		error = marks_rewrite(commit, from, to);
	if (!error)
		error = journal_move(commit, 0, 0, NULL, NULL);
	close(from_dir);
	return error;
}

/* Beside its new place; beside its old one when the new place is in it. */
static int put_aside(struct commit *commit, const char *from, const struct walk_entry *entry)
{
	char name[sizeof(ASIDE) + 16], *to = NULL, *above = commit_above(is_at_or_below(entry->place, from) ? from : entry->place);
	int error, dir = above ? walk_open(commit->lower_root, above) : -ENOMEM;
	unsigned number = 0;
	struct stat st;

	if (dir < 0) {
		free(above);
		return dir;
	}
	do {
		snprintf(name, sizeof(name), ASIDE "%u", number++);
	} while (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	if (asprintf(&to, "%s/%s", strcmp(above, "/") ? above : "", name) < 0) {
		to = NULL;
		error = -ENOMEM;
	} else {
		error = lower_rename(commit, from, dir, to, name);
	}
	free(to);
	free(above);
	close(dir);
	return error;
}

static bool is_aside(const char *from, const char *place)
{
	char *above = commit_above(place);
	size_t len = above && strcmp(above, "/") ? strlen(above) : 0;
	bool is = above && !strncmp(from, above, len) && !strncmp(from + len, "/" ASIDE, sizeof("/" ASIDE) - 1);

	free(above);
	return is;
}

/* Whether the place is, or has in it, a directory that is to be renamed. */
static bool place_is_wanted(const struct commit *commit, const char *place, const char *except)
{
	for (size_t i = 0; i < commit->pending_count; i++) {
		if (strcmp(commit->pending[i].from, except) && is_at_or_below(commit->pending[i].from, place))
			return true;
	}
	return false;
}

/* The marks, and with them what is below directories that the walk is in, are others now: it begins again. */
enum { MOVED = 2 };

static int mark_drop(const struct walk_entry *entry)
{
	int error = mark_change(entry->fd, false, "");

	return error ? error : MOVED;
}

/* One renamed directory. 0 when others have to go first. */
static int move_one(struct commit *commit, struct walk_entry *entry)
{
	bool in_itself = is_at_or_below(entry->place, entry->moved);
	char *above;
	int error = 0;

	/* With --force: what was renamed is no longer on the host. */
	if (!strcmp(entry->moved, entry->place) || entry->lower_fd < 0)
		return mark_drop(entry);
	if (in_itself || (entry->placed && (place_is_wanted(commit, entry->place, entry->moved) ||
					    is_at_or_below(entry->moved, entry->place)))) {
		if (!in_itself && is_aside(entry->moved, entry->place))
			return 0;
		error = put_aside(commit, entry->moved, entry);
		return error ? error : MOVED;
	}
	above = commit_above(entry->place);
	if (!above)
		return -ENOMEM;
	if (entry->placed)
		error = commit_remove_place(commit, entry->place_dir, above, entry->name, S_ISDIR(entry->place_st.stx_mode));
	if (!error)
		error = lower_rename(commit, entry->moved, entry->place_dir, entry->place, entry->name);
	free(above);
	return error ? error : MOVED;
}

static int move_enter(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;
	int error;

	if (commit_part(commit, entry->path) == PART_NONE)
		return WALK_OVER;
	if (entry->fd < 0 || !entry->moved)
		return 0;
	/* The directories above it exist in the lower before it is renamed into them. */
	if (entry->place_dir < 0)
		return -ENOENT;
	error = move_one(commit, entry);
	if (error == MOVED)
		return -ERANGE;
	if (error == -EXDEV)
		return commit_fail(commit, entry->path, error, "the directory was renamed from one file system of the host to another");
	return error;
}

/* New directories that have a renamed one somewhere in them are made first. */
static int parents_enter(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;
	bool wanted = false;

	if (commit_part(commit, entry->path) == PART_NONE)
		return WALK_OVER;
	if (entry->fd < 0 || entry->moved || !strcmp(entry->path, "/"))
		return 0;
	for (size_t i = 0; i < commit->pending_count && !wanted; i++)
		wanted = is_at_or_below(commit->pending[i].path, entry->path);
	if (!wanted || (entry->placed && S_ISDIR(entry->place_st.stx_mode)))
		return 0;
	if (entry->place_dir < 0)
		return 0;
	return commit_directory(commit, entry);
}

static int run(struct commit *commit, int (*enter)(void *, struct walk_entry *), int (*leave)(void *, struct walk_entry *))
{
	struct walk walk = { .enter = enter, .leave = leave, .arg = commit };
	int error = walk_run(&walk, commit->upper, commit->lower_root);

	if (error && error != -ERANGE)
		commit_fail(commit, walk.failed ? walk.failed : "/", error, NULL);
	free(walk.failed);
	return error;
}

int commit_moves(struct commit *commit)
{
	int error = run(commit, opaque_enter, opaque_leave);

	while (!error) {
		pending_clear(commit);
		error = run(commit, pending_enter, NULL);
		if (error || !commit->pending_count)
			break;
		error = run(commit, parents_enter, NULL);
		if (!error)
			error = run(commit, move_enter, NULL);
		if (!error)
			error = commit_fail(commit, commit->pending[0].path, -ELOOP, NULL);
		else if (error == -ERANGE)
			error = 0;
	}
	pending_clear(commit);
	return error;
}
