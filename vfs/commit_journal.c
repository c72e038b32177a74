/*
 * commit_journal.c - what is under way: one record in the upper's file `commit`, words that end with NUL each
 *
 *   STARTED                        hexadecimal nanoseconds; nothing else is under way
 *   STARTED temp PATH              a temporary of ours is, or will be, at PATH
 *   STARTED move DEV INO FROM TO   a directory is being renamed
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vfs/commit_impl.h"
#include "vfs/upper_impl.h"

enum { WORDS = 6, RECORD_LONGEST = 1 << 20, LATE = 2 };

struct record {
	char *bytes;
	size_t len;
	const char *words[WORDS];
	size_t count;
};

/* --- writing ------------------------------------------------------------------------------------------------------------------ */

/* The new record is whole before the rest of a longer one is cut off: a reader takes as many words as the kind has. */
static int record_write(struct commit *commit, size_t count, const char *const *words)
{
	char *bytes = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&bytes, &len);
	int error = 0;

	if (!out)
		return -ENOMEM;
	fprintf(out, "%" PRIx64 "%c", commit->started, 0);
	for (size_t i = 0; i < count; i++)
		fwrite(words[i], 1, strlen(words[i]) + 1, out);
	if (fclose(out)) {
		free(bytes);
		return -ENOMEM;
	}
	if (pwrite(commit->journal_fd, bytes, len, 0) != (ssize_t)len)
		error = errno ? -errno : -ENOSPC;
	if (!error && ftruncate(commit->journal_fd, len) < 0)
		error = -errno;
	free(bytes);
	return error;
}

int journal_temporary(struct commit *commit, const char *dir, const char *name)
{
	char *path;
	int error;

	if (asprintf(&path, "%s/%s", strcmp(dir, "/") ? dir : "", name) < 0)
		return -ENOMEM;
	error = record_write(commit, 2, (const char *const[]){ "temp", path });
	free(path);
	return error;
}

int journal_move(struct commit *commit, uint64_t dev, uint64_t ino, const char *from, const char *to)
{
	char numbers[2][20];
	int error;

	if (!from)
		return record_write(commit, 0, NULL);
	snprintf(numbers[0], sizeof(numbers[0]), "%" PRIx64, dev);
	snprintf(numbers[1], sizeof(numbers[1]), "%" PRIx64, ino);
	error = record_write(commit, 5, (const char *const[]){ "move", numbers[0], numbers[1], from, to });
	return error ? error : fsync(commit->journal_fd) < 0 && errno != EINVAL ? -errno : 0;
}

void journal_end(struct commit *commit, bool whole)
{
	if (commit->journal_fd >= 0 && whole)
		unlinkat(commit->upper->root_fd, "commit", 0);
	if (commit->journal_fd >= 0)
		close(commit->journal_fd);
	commit->journal_fd = -1;
}

/* --- names -------------------------------------------------------------------------------------------------------------------- */

int commit_temporary(struct commit *commit, int dirfd, const char *dir, char name[COMMIT_TEMPORARY_SIZE])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	struct stat st;

	do {
		unsigned char bytes[COMMIT_TEMPORARY_SIZE - sizeof(COMMIT_TEMPORARY)];

		if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
			return -EIO;
		strcpy(name, COMMIT_TEMPORARY);
		for (size_t i = 0; i < sizeof(bytes); i++)
			name[sizeof(COMMIT_TEMPORARY) - 1 + i] = letters[bytes[i] % (sizeof(letters) - 1)];
		name[COMMIT_TEMPORARY_SIZE - 1] = '\0';
	} while (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return journal_temporary(commit, dir, name);
}

char *commit_above(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash > path ? strndup(path, slash - path) : strdup("/");
}

/* --- removing ------------------------------------------------------------------------------------------------------------------ */

int commit_remove(int dirfd, const char *name)
{
	int fd, error;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return 0;
	fd = upper_open_below(dirfd, name);
	error = fd < 0 ? fd : upper_empty(fd, NULL);
	if (fd >= 0)
		close(fd);
	return !error && unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? -errno : error;
}

int commit_remove_place(struct commit *commit, int dirfd, const char *dir, const char *name, bool directory)
{
	char temporary[COMMIT_TEMPORARY_SIZE];
	int error;

	if (!directory || unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return directory || unlinkat(dirfd, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	error = commit_temporary(commit, dirfd, dir, temporary);
	if (!error && renameat(dirfd, name, dirfd, temporary) < 0)
		error = -errno;
	return error ? error : commit_remove(dirfd, temporary);
}

/* --- after a killed commit ------------------------------------------------------------------------------------------------------ */

static int record_read(int fd, struct record *record)
{
	struct stat st;
	ssize_t n;

	*record = (struct record){ 0 };
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || st.st_size > RECORD_LONGEST)
		return 0;
	record->bytes = calloc(1, st.st_size + 1);
	n = record->bytes ? pread(fd, record->bytes, st.st_size, 0) : -1;
	if (n <= 0)
		return record->bytes ? -EIO : -ENOMEM;
	record->len = n;
	for (size_t at = 0; at < record->len && record->count < WORDS; at += strlen(record->bytes + at) + 1)
		record->words[record->count++] = record->bytes + at;
	return 0;
}

static void temporary_remove(int lower_root, const char *path)
{
	const char *name = strrchr(path, '/');
	char *above;
	int dir;

	if (!name || strncmp(++name, COMMIT_TEMPORARY, sizeof(COMMIT_TEMPORARY) - 1) || strlen(name) != COMMIT_TEMPORARY_SIZE - 1)
		return;
	above = commit_above(path);
	dir = above ? walk_open(lower_root, above) : -1;
	if (dir >= 0) {
		commit_remove(dir, name);
		close(dir);
	}
	free(above);
}

static bool record_is(const struct record *record, const char *kind, size_t count)
{
	return record->count >= count && !strcmp(record->words[1], kind);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME_COARSE, &ts); /* the clock of the time stamps of files */
	return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

static int resume(struct commit *commit, const struct record *record)
{
	struct stat st;

	if (!record->count)
		return 0;
	commit->started = strtoull(record->words[0], NULL, 16);
	if (fstat(commit->journal_fd, &st) == 0)
		commit->seen = ((uint64_t)st.st_mtim.tv_sec + LATE) * 1000000000u;
	if (record_is(record, "temp", 3))
		temporary_remove(commit->lower_root, record->words[2]);
	if (record_is(record, "move", 6))
		return commit_move_resume(commit, strtoull(record->words[2], NULL, 16), strtoull(record->words[3], NULL, 16),
					  record->words[4], record->words[5]);
	return 0;
}

int journal_open(struct commit *commit)
{
	struct record record;
	int error;

	commit->started = now();
	commit->journal_fd = upper_fd(openat(commit->upper->root_fd, "commit",
					     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
	if (commit->journal_fd < 0)
		return commit->journal_fd;
	error = record_read(commit->journal_fd, &record);
	if (!error)
		error = resume(commit, &record);
	free(record.bytes);
	return error ? error : record_write(commit, 0, NULL);
}

void commit_forget(const struct upper *upper, int lower_root)
{
	int fd = openat(upper->root_fd, "commit", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct record record = { 0 };

	if (fd < 0)
		return;
	if (record_read(fd, &record) == 0 && record_is(&record, "temp", 3))
		temporary_remove(lower_root, record.words[2]);
	free(record.bytes);
	close(fd);
}
