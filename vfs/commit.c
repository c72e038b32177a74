/*
 * commit.c - the upper's changes into the lower
 *
 * 1. Conflicts are looked for: nothing is changed when there is one. 2. commit_move.c makes all directories stand at their own
 * places. 3. One walk makes and replaces. 4. One walk deletes what guests deleted, and takes empty directories out of the upper.
 * What was committed leaves the upper only after the directory that has it on the host was synced.
 */
#include "vfs/commit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/changes.h"
#include "vfs/commit_impl.h"
#include "vfs/copy.h"
#include "vfs/mark.h"
#include "vfs/upper_impl.h"

struct folder {
	struct folder *up;
	char **done;		/* names that are to leave the upper */
	size_t count, room;
	bool made;		/* the lower's directory is new: its own mode comes last */
	bool unlocked;		/* the lower's directory had not all rights of its owner, and has them until the walk leaves it */
	mode_t mode;		/* which it had */
};

/* --- what was asked for ---------------------------------------------------------------------------------------------------------- */

static bool is_at_or_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return !strcmp(top, "/") || (!strncmp(path, top, len) && (!path[len] || path[len] == '/'));
}

enum commit_part commit_part(const struct commit *commit, const char *path)
{
	enum commit_part part = commit->options->count ? PART_NONE : PART_ALL;

	for (size_t i = 0; i < commit->options->count && part != PART_ALL; i++) {
		if (is_at_or_below(path, commit->options->paths[i]))
			part = PART_ALL;
		else if (is_at_or_below(commit->options->paths[i], path))
			part = PART_ABOVE;
	}
	return part;
}

int commit_fail(struct commit *commit, const char *path, int error, const char *what)
{
	if (!commit->told)
		commit->options->tell(commit->options->arg, COMMIT_FAILED, path, what ? what : strerror(-error));
	commit->told = true;
	return error;
}

/* --- directories of the walk -------------------------------------------------------------------------------------------------------- */

void commit_times_restore(int fd, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	futimens(fd, times);
}

static int folder_push(struct commit *commit, bool made)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	if (!folder)
		return -ENOMEM;
	folder->up = commit->folder;
	folder->made = made;
	commit->folder = folder;
	return 0;
}

static void folder_pop(struct commit *commit)
{
	struct folder *folder = commit->folder;

	commit->folder = folder->up;
	for (size_t i = 0; i < folder->count; i++)
		free(folder->done[i]);
	free(folder->done);
	free(folder);
}

static int folder_done(struct commit *commit, const char *name)
{
	struct folder *folder = commit->folder;

	if (folder->count == folder->room) {
		size_t more = folder->room ? folder->room * 2 : 16;
		char **grown = reallocarray(folder->done, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		folder->done = grown;
		folder->room = more;
	}
	folder->done[folder->count] = strdup(name);
	return folder->done[folder->count] ? (folder->count++, 0) : -ENOMEM;
}

/* The names that are done leave the upper; for guests nothing changes by it, the times neither. */
static int folder_empty(struct commit *commit, const struct walk_entry *entry)
{
	struct folder *folder = commit->folder;
	int error = 0, fd;
	struct stat st;

	if (!folder->count)
		return 0;
	fd = entry->lower_fd < 0 ? -1 : openat(entry->lower_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		error = fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
		close(fd);
	}
	if (!error && fstat(entry->fd, &st) < 0)
		error = -errno;
	for (size_t i = 0; !error && i < folder->count; i++) {
		if (unlinkat(entry->fd, folder->done[i], 0) < 0 && errno != ENOENT)
			error = -errno;
	}
	if (!error)
		commit_times_restore(entry->fd, &st);
	return error;
}

/* --- putting something at its place -------------------------------------------------------------------------------------------------- */

/* Of an O_PATH descriptor too. */
static int chmod_fd(int fd, mode_t mode)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode & 07777) < 0 ? -errno : 0;
}

/* Renames a temporary over what is there; a directory is exchanged for what is no directory, which then goes. */
static int place_put(const struct walk_entry *entry, const char *temporary, bool directory)
{
	bool was_directory = entry->placed && S_ISDIR(entry->place_st.stx_mode);

	if (!entry->placed || directory == was_directory)
		return renameat(entry->place_dir, temporary, entry->place_dir, entry->name) < 0 ? -errno : 0;
	if (renameat2(entry->place_dir, temporary, entry->place_dir, entry->name, RENAME_EXCHANGE) == 0)
		return commit_remove(entry->place_dir, temporary);
	if (errno != EINVAL)
		return -errno;
	/* A file system that cannot exchange. */
	if (commit_remove(entry->place_dir, entry->name) < 0)
		return -EIO;
	return renameat(entry->place_dir, temporary, entry->place_dir, entry->name) < 0 ? -errno : 0;
}

static int directory_make(const struct walk_entry *entry, const char *temporary)
{
	int fd, error;

	if (mkdirat(entry->place_dir, temporary, 0700) < 0)
		return -errno;
	fd = openat(entry->place_dir, temporary, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = copy_attributes(entry->fd, fd, &entry->st, false);
	/* Until all is in it. */
	if (!error && (entry->st.stx_mode & S_IRWXU) != S_IRWXU)
		error = chmod_fd(fd, entry->st.stx_mode | S_IRWXU);
	close(fd);
	return error;
}

int commit_directory(struct commit *commit, struct walk_entry *entry)
{
	char temporary[COMMIT_TEMPORARY_SIZE], *above = commit_above(entry->place);
	int error = above ? commit_temporary(commit, entry->place_dir, above, temporary) : -ENOMEM;

	if (!error)
		error = directory_make(entry, temporary);
	if (!error)
		error = place_put(entry, temporary, true);
	if (error && above)
		commit_remove(entry->place_dir, temporary);
	free(above);
	entry->stale = true;
	return error;
}

/* The user may have no right to read an own file. */
static int file_open(const struct walk_entry *entry)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(entry->dirfd, entry->name, flags), held;
	char path[32];

	if (fd >= 0 || errno != EACCES)
		return fd < 0 ? -errno : fd;
	held = openat(entry->dirfd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (held < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	if (chmod(path, (entry->st.stx_mode & 07777) | S_IRUSR) == 0) {
		fd = open(path, flags & ~O_NOFOLLOW);
		chmod(path, entry->st.stx_mode & 07777);
	}
	close(held);
	return fd < 0 ? -EACCES : fd;
}

static int file_copy(const struct walk_entry *entry, const char *temporary)
{
	int from = file_open(entry), to, error;

	if (from < 0)
		return from;
	to = openat(entry->place_dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	error = to < 0 ? -errno : copy_data(from, to, entry->st.stx_size, NULL);
	if (!error)
		error = copy_attributes(from, to, &entry->st, true);
	if (!error && fsync(to) < 0 && errno != EINVAL)
		error = -errno;
	if (to >= 0)
		close(to);
	close(from);
	return error;
}

/* Another name of a file that was committed under its first. -ENOENT when there is none, or no more. */
static int file_link(struct commit *commit, const struct walk_entry *entry, const char *temporary)
{
	const struct origin *link = origins_find(&commit->links, &entry->st);
	char *above = link ? commit_above(link->path) : NULL;
	int dir = above ? walk_open(commit->lower_root, above) : -ENOENT, error = -ENOENT;
	const char *name = link ? strrchr(link->path, '/') + 1 : NULL;
	struct statx st;

	free(above);
	if (dir < 0)
		return -ENOENT;
	/* A file system without birth times may have given the inode to another file since. */
	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, WALK_STATX, &st) == 0 && st.stx_ino == link->lower_ino &&
	    origin_dev(&st) == link->lower_dev && !change_compare(entry->dirfd, entry->name, &entry->st, dir, name, &st) &&
	    linkat(dir, name, entry->place_dir, temporary, 0) == 0)
		error = 0;
	close(dir);
	return error;
}

/* So that the next name of the file becomes a link of this one, in this commit or in one that continues it. */
static int link_note(struct commit *commit, const struct walk_entry *entry)
{
	struct statx st;
	struct origin origin;
	int error;

	if (entry->st.stx_nlink < 2 || origins_find(&commit->links, &entry->st))
		return 0;
	if (statx(entry->place_dir, entry->name, AT_SYMLINK_NOFOLLOW, WALK_STATX, &st) < 0)
		return -errno;
	origin = origin_of(&entry->st, &st, entry->place);
	error = origin_append(commit->links_fd, &origin);
	if (error == -ENAMETOOLONG)
		return 0;
	if (error)
		return error;
	origins_free(&commit->links);
	return origins_load(&commit->links, commit->links_fd);
}

static int object_make(struct commit *commit, const struct walk_entry *entry, const char *temporary)
{
	int error = file_link(commit, entry, temporary);

	if (error != -ENOENT)
		return error;
	if (S_ISREG(entry->st.stx_mode))
		return file_copy(entry, temporary);
	return copy_object(entry->dirfd, entry->name, entry->place_dir, temporary);
}

/* Whether the rename would do nothing, and leave the temporary: both are links of one file. */
static bool same_file(int dirfd, const char *a, const char *b)
{
	struct stat one, two;

	return fstatat(dirfd, a, &one, AT_SYMLINK_NOFOLLOW) == 0 && fstatat(dirfd, b, &two, AT_SYMLINK_NOFOLLOW) == 0 &&
	       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* Names of the file that guests did not touch, and that are links of what was there. */
static void links_tell(struct commit *commit, const struct walk_entry *entry)
{
	if (entry->placed && S_ISREG(entry->place_st.stx_mode) && entry->place_st.stx_nlink > 1)
		commit->options->tell(commit->options->arg, COMMIT_NOTE, entry->path,
				      "other hard links of it on the host keep what it was before");
}

static int object_put(struct commit *commit, const struct walk_entry *entry)
{
	char temporary[COMMIT_TEMPORARY_SIZE], *above = commit_above(entry->place);
	int error = above ? commit_temporary(commit, entry->place_dir, above, temporary) : -ENOMEM;

	free(above);
	if (error)
		return error;
	error = object_make(commit, entry, temporary);
	if (!error && same_file(entry->place_dir, temporary, entry->name)) {
		commit_remove(entry->place_dir, temporary);
		return 0;
	}
	if (!error)
		links_tell(commit, entry);
	if (!error)
		error = place_put(entry, temporary, false);
	if (error)
		commit_remove(entry->place_dir, temporary);
	return error;
}

static bool is_there(const struct walk_entry *entry)
{
	return entry->placed && !S_ISDIR(entry->place_st.stx_mode) &&
	       !change_compare(entry->dirfd, entry->name, &entry->st, entry->place_dir, entry->name, &entry->place_st);
}

/*
 * What is there is the same, and also one file with the other names that it shall share. The count of links does not tell: the
 * names that are done have left the upper.
 */
static bool is_linked(const struct commit *commit, const struct walk_entry *entry)
{
	const struct origin *link = origins_find(&commit->links, &entry->st);

	return !link || (link->lower_ino == entry->place_st.stx_ino && link->lower_dev == origin_dev(&entry->place_st));
}

static int file_enter(struct commit *commit, const struct walk_entry *entry)
{
	int error = 0;

	if (entry->place_dir < 0)
		return -ENOENT;
	if (!is_there(entry) || !is_linked(commit, entry))
		error = object_put(commit, entry);
	if (!error)
		error = link_note(commit, entry);
	return error ? error : folder_done(commit, entry->name);
}

/* --- the walk that makes, and the one that deletes ------------------------------------------------------------------------------------ */

/* The own directories of an ordinary user can be changed whatever their mode is, or will be. */
static void lower_unlock(struct commit *commit, const struct walk_entry *entry)
{
	struct folder *folder = commit->folder;
	struct stat st;

	if (geteuid() == 0 || entry->lower_fd < 0 || fstat(entry->lower_fd, &st) < 0 || st.st_uid != geteuid())
		return;
	folder->mode = st.st_mode & 07777;
	folder->unlocked = (st.st_mode & S_IRWXU) != S_IRWXU && chmod_fd(entry->lower_fd, folder->mode | S_IRWXU) == 0;
}

static int make_enter(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;
	enum commit_part part = commit_part(commit, entry->path);
	bool made = false;
	int error = 0;

	if (part == PART_NONE)
		return WALK_OVER;
	if (entry->fd < 0)
		return part == PART_ABOVE || entry->whiteout ? 0 : file_enter(commit, entry);
	if (strcmp(entry->path, "/") && !(entry->placed && S_ISDIR(entry->place_st.stx_mode))) {
		made = true;
		error = entry->place_dir < 0 ? -ENOENT : commit_directory(commit, entry);
	}
	if (!error)
		error = folder_push(commit, made);
	if (!error && !made)
		lower_unlock(commit, entry);
	return error;
}

static int delete_enter(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;
	enum commit_part part = commit_part(commit, entry->path);
	char *above;
	int error = 0;

	if (part == PART_NONE)
		return WALK_OVER;
	if (entry->fd >= 0) {
		error = folder_push(commit, false);
		if (!error)
			lower_unlock(commit, entry);
		return error;
	}
	if (part == PART_ABOVE || !entry->whiteout)
		return 0;
	if (entry->placed) {
		above = commit_above(entry->place);
		error = !above ? -ENOMEM : commit_remove_place(commit, entry->place_dir, above, entry->name,
							       S_ISDIR(entry->place_st.stx_mode));
		free(above);
	}
	return error ? error : folder_done(commit, entry->name);
}

/* The attributes of a directory come when all is in it, which may change its times. */
static int directory_dress(struct commit *commit, const struct walk_entry *entry)
{
	struct statx lower;
	bool differs;

	if (commit->folder->unlocked)
		chmod_fd(entry->lower_fd, commit->folder->mode);
	if (entry->scaffold || entry->lower_fd < 0 || commit_part(commit, entry->path) != PART_ALL)
		return 0;
	if (statx(entry->lower_fd, "", AT_EMPTY_PATH, WALK_STATX, &lower) < 0)
		return -errno;
	differs = change_compare(entry->fd, ".", &entry->st, entry->lower_fd, ".", &lower) & ~CHANGE_TIMES;
	if (differs || commit->folder->made)
		return copy_attributes(entry->fd, entry->lower_fd, &entry->st, true);
	if (commit->folder->count) {
		const struct timespec times[2] = { { entry->st.stx_atime.tv_sec, entry->st.stx_atime.tv_nsec },
						   { entry->st.stx_mtime.tv_sec, entry->st.stx_mtime.tv_nsec } };
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", entry->lower_fd);
		utimensat(AT_FDCWD, path, times, 0);
	}
	return 0;
}

/* Whether only a mark is in it. */
static bool is_empty(int fd)
{
	int own = upper_open_below(fd, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	bool empty = dir != NULL;

	if (!dir && own >= 0)
		close(own);
	for (struct dirent *entry; empty && (entry = readdir(dir));)
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || mark_reserved(entry->d_name);
	if (dir)
		closedir(dir);
	return empty;
}

/* A directory that tells nothing any more leaves by work/, at once with its mark. */
static int directory_prune(const struct commit *commit, const struct walk_entry *entry)
{
	const struct mark scaffold = { .scaffold = true };
	struct stat above;
	int error;

	if (entry->lower_fd < 0 || !is_empty(entry->fd) || (!entry->scaffold && commit_part(commit, entry->path) != PART_ALL))
		return 0;
	if (!strcmp(entry->path, "/"))
		return entry->scaffold ? 0 : mark_write(entry->fd, &scaffold);
	if (fstat(entry->dirfd, &above) < 0 || renameat(entry->dirfd, entry->name, commit->upper->work_fd, "pruned") < 0)
		return -errno;
	commit_times_restore(entry->dirfd, &above);
	error = commit_remove(commit->upper->work_fd, "pruned");
	return error;
}

static int walk_leave(void *arg, struct walk_entry *entry)
{
	struct commit *commit = arg;
	int error = folder_empty(commit, entry);

	if (!error)
		error = directory_dress(commit, entry);
	folder_pop(commit);
	return !error && commit->deleting ? directory_prune(commit, entry) : error;
}

static int walk_commit(struct commit *commit, int (*enter)(void *, struct walk_entry *))
{
	struct walk walk = { .enter = enter, .leave = walk_leave, .arg = commit };
	int error = walk_run(&walk, commit->upper, commit->lower_root);

	if (error)
		commit_fail(commit, walk.failed ? walk.failed : "/", error, NULL);
	free(walk.failed);
	while (commit->folder)
		folder_pop(commit);
	return error;
}

/* --- what belongs to files that have left ---------------------------------------------------------------------------------------------- */

/* Links of a copied-up file that are kept for names of the lower: without a name in fs/ they are for nobody. */
static void index_clean(const struct commit *commit)
{
	int own = upper_open_below(commit->upper->index_fd, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		int fd = entry->d_name[0] == '.' ? -1 : upper_open_below(own, entry->d_name);
		DIR *links = fd < 0 ? NULL : fdopendir(fd);
		size_t count = 0, nlink = 0;

		for (struct dirent *link; links && (link = readdir(links));) {
			struct stat st;

			if (link->d_name[0] == '.' || fstatat(fd, link->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			count++;
			nlink = st.st_nlink;
		}
		if (links && count == nlink)
			commit_remove(own, entry->d_name);
		if (links)
			closedir(links);
	}
	if (dir)
		closedir(dir);
}

static int links_open(struct commit *commit)
{
	commit->links_fd = upper_fd(openat(commit->upper->root_fd, "committed",
					   O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
	if (commit->links_fd < 0)
		return commit->links_fd;
	origin_repair(commit->links_fd);
	return origins_load(&commit->links, commit->links_fd);
}

static void finish(struct commit *commit, bool whole)
{
	if (whole) {
		index_clean(commit);
		unlinkat(commit->upper->root_fd, "committed", 0);
		/* The inodes may be given to others. */
		if (is_empty(commit->upper->fs_fd) && commit->upper->origins_fd >= 0 && ftruncate(commit->upper->origins_fd, 0) < 0)
			commit->options->tell(commit->options->arg, COMMIT_NOTE, "/", "the file 'origins' could not be emptied");
	}
	if (commit->links_fd >= 0)
		close(commit->links_fd);
	journal_end(commit, whole);
	origins_free(&commit->links);
	origins_free(&commit->origins);
	free(commit->found);
}

static int prepare(struct commit *commit)
{
	int error = origins_load(&commit->origins, commit->upper->origins_fd);

	if (!error)
		error = links_open(commit);
	if (!error)
		error = journal_open(commit);
	commit->found = calloc(commit->options->count + 1, sizeof(*commit->found));
	if (!error && !commit->found)
		error = -ENOMEM;
	return error ? commit_fail(commit, commit->upper->path ? commit->upper->path : "/", error, NULL) : 0;
}

int commit_run(const struct upper *upper, int lower_root, const struct commit_options *options)
{
	struct commit commit = { .upper = upper, .lower_root = lower_root, .options = options, .journal_fd = -1, .links_fd = -1 };
	bool untouched, resumed;
	int error = prepare(&commit);

	resumed = commit.seen != 0;
	if (!error)
		error = commit_check(&commit);
	untouched = error != 0;
	if (!error)
		error = commit_moves(&commit);
	if (!error)
		error = walk_commit(&commit, make_enter);
	commit.deleting = true;
	if (!error)
		error = walk_commit(&commit, delete_enter);
	finish(&commit, !error || (untouched && !resumed));
	return error;
}
