/* commit_check.c - did the lower change since the guests saw it? */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/changes.h"
#include "vfs/commit_impl.h"
#include "vfs/upper_impl.h"

/* Whether a change at WHEN may have been the killed commit's own. */
static bool is_own(const struct commit *commit, uint64_t when)
{
	return commit->seen && when >= commit->started && when <= commit->seen;
}

static bool changed_after(const struct commit *commit, const struct statx *lower, uint64_t reference)
{
	uint64_t ctime = origin_time(&lower->stx_ctime);

	return ctime > reference && !is_own(commit, ctime);
}

/* When the entry came to its place, or before. */
static uint64_t made_at(const struct statx *st)
{
	uint64_t btime = st->stx_mask & STATX_BTIME ? origin_time(&st->stx_btime) : 0;

	return btime ? btime : origin_time(&st->stx_ctime);
}

static void conflict(struct commit *commit, const char *path, const char *text)
{
	commit->conflicts = true;
	if (!commit->options->force)
		commit->options->tell(commit->options->arg, COMMIT_CONFLICT, path, text);
}

/* --- trees that are deleted ------------------------------------------------------------------------------------------------------ */

enum { DEEPEST = 64 };

/* Whether something in the directory changed after the reference; -EBUSY for a mount. Beyond DEEPEST levels all is taken as it is. */
static int tree_changed(const struct commit *commit, int dirfd, const char *name, uint64_t reference, unsigned depth, uint64_t dev)
{
	int fd = upper_open_below(dirfd, name), changed = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *entry; !changed && (entry = readdir(dir));) {
		struct statx st;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    statx(fd, entry->d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, WALK_STATX, &st) < 0)
			continue;
		if (origin_dev(&st) != dev)
			changed = -EBUSY;
		else if (changed_after(commit, &st, reference))
			changed = 1;
		else if (S_ISDIR(st.stx_mode) && depth < DEEPEST)
			changed = tree_changed(commit, fd, entry->d_name, reference, depth + 1, dev);
	}
	closedir(dir);
	return changed;
}

/* The place of an entry is deleted, or replaced by something else. */
static void deleted_check(struct commit *commit, const struct walk_entry *entry, uint64_t reference)
{
	int changed = 0;

	if (changed_after(commit, &entry->place_st, reference)) {
		conflict(commit, entry->path, "it was changed on the host after it was deleted here");
		return;
	}
	if (S_ISDIR(entry->place_st.stx_mode))
		changed = tree_changed(commit, entry->place_dir, entry->name, reference, 0, origin_dev(&entry->place_st));
	if (changed > 0)
		conflict(commit, entry->path, "something in it was changed on the host after it was deleted here");
	else if (changed < 0)
		conflict(commit, entry->path, "it is to be deleted, and something is mounted in it");
}

/* --- entries -------------------------------------------------------------------------------------------------------------------- */

static bool origin_differs(const struct commit *commit, const struct origin *origin, const struct statx *lower)
{
	uint64_t ctime = origin_time(&lower->stx_ctime);

	return origin->lower_dev != origin_dev(lower) || origin->lower_ino != lower->stx_ino || origin->size != lower->stx_size ||
	       origin->mtime != origin_time(&lower->stx_mtime) || (origin->ctime != ctime && !is_own(commit, ctime));
}

/* Of the file that is at the place, or was: an origin's path is that of the place, or of one that was renamed since. */
static bool origin_is_here(const struct origin *origin, const struct walk_entry *entry)
{
	if (!origin)
		return false;
	return !strcmp(origin->path, entry->place) || (entry->placed && origin->lower_ino == entry->place_st.stx_ino &&
						       origin->lower_dev == origin_dev(&entry->place_st));
}

static void file_check(struct commit *commit, const struct walk_entry *entry)
{
	const struct origin *origin = origins_find(&commit->origins, &entry->st);
	bool here = origin_is_here(origin, entry);

	if (!entry->placed) {
		if (here && !entry->hidden && !commit->seen)
			conflict(commit, entry->path, "it was changed here, and removed on the host");
		return;
	}
	if (entry->hidden || S_ISDIR(entry->place_st.stx_mode)) {
		deleted_check(commit, entry, made_at(&entry->st));
		return;
	}
	if (here ? !origin_differs(commit, origin, &entry->place_st) : !changed_after(commit, &entry->place_st, made_at(&entry->st)))
		return;
	if (!change_compare(entry->dirfd, entry->name, &entry->st, entry->place_dir, entry->name, &entry->place_st))
		return; /* both made the same change, or it was committed already */
	conflict(commit, entry->path, here ? "it was changed here, and on the host" : "it was made here, and made or changed on the host");
}

static void directory_check(struct commit *commit, const struct walk_entry *entry)
{
	if (entry->moved && entry->lower_fd < 0)
		conflict(commit, entry->path, "it was renamed here, and is no longer on the host where it was");
	if (!entry->placed || entry->place_dir < 0)
		return;
	if (entry->moved || entry->opaque || !S_ISDIR(entry->place_st.stx_mode))
		deleted_check(commit, entry, origin_time(&entry->st.stx_ctime));
}

static int check_enter(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;
	enum commit_part part = commit_part(commit, entry->path);

	for (size_t i = 0; i < commit->options->count; i++) {
		const char *path = commit->options->paths[i];
		size_t len = strlen(path);

		if (!strncmp(entry->path, path, len) && (!entry->path[len] || entry->path[len] == '/' || !strcmp(path, "/")))
			commit->found[i] = true;
	}
	if (part == PART_NONE)
		return WALK_OVER;
	if (part == PART_ABOVE) {
		if (entry->fd >= 0 && entry->moved)
			return commit_fail(commit, entry->path, -EXDEV, "a directory that was renamed is committed as a whole, not in parts");
		return 0;
	}
	if (entry->fd >= 0)
		directory_check(commit, entry);
	else if (!entry->whiteout)
		file_check(commit, entry);
	else if (entry->placed && !entry->hidden)
		deleted_check(commit, entry, made_at(&entry->st));
	return 0;
}

int commit_check(struct commit *commit)
{
	struct walk walk = { .enter = check_enter, .arg = commit };
	int error = walk_run(&walk, commit->upper, commit->lower_root);

	if (error)
		commit_fail(commit, walk.failed ? walk.failed : "/", error, NULL);
	free(walk.failed);
	for (size_t i = 0; !error && i < commit->options->count; i++) {
		if (commit->found[i])
			continue;
		commit->options->tell(commit->options->arg, COMMIT_MISSING, commit->options->paths[i], NULL);
		error = -ENOENT;
	}
	if (error)
		return error;
	return commit->conflicts && !commit->options->force ? -EEXIST : 0;
}
