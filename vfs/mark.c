/* mark.c - names and texts of whiteouts and marks */
#include "vfs/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A mark is made under this name; one that a killed run left is replaced. */
#define MARK_NEW MARK_PREFIX "new"

enum { PREFIX_LEN = sizeof(MARK_PREFIX) - 1, WHITEOUT_LEN = sizeof(MARK_WHITEOUT) - 1 };

bool mark_reserved(const char *name)
{
	return !strncmp(name, MARK_PREFIX, PREFIX_LEN);
}

bool mark_is_whiteout(int dirfd, const char *name, const struct stat *st)
{
	char target[WHITEOUT_LEN + 1];

	if (!S_ISLNK(st->st_mode) || st->st_size != WHITEOUT_LEN)
		return false;
	return readlinkat(dirfd, name, target, sizeof(target)) == WHITEOUT_LEN && !memcmp(target, MARK_WHITEOUT, WHITEOUT_LEN);
}

/* An absolute path with no empty, "." or ".." component. A damaged or forged upper must not lead out of the lower. */
static bool path_is_plain(const char *path)
{
	if (!strcmp(path, "/"))
		return true;
	while (*path == '/') {
		size_t len = strcspn(++path, "/");

		if (len == 0 || (len == 1 && path[0] == '.') || (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += len;
		if (!*path)
			return true;
	}
	return false;
}

/* Takes one word, and the `;` behind it, off the text. */
static bool word_take(const char **text, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*text, word, len) || ((*text)[len] != '\0' && (*text)[len] != ';'))
		return false;
	*text += len;
	if (**text == ';')
		*text += (*text)[1] ? 1 : 0;
	return true;
}

static int mark_parse(const char *text, struct mark *mark)
{
	if (!mark_reserved(text) || !text[PREFIX_LEN])
		return -EUCLEAN;
	text += PREFIX_LEN;
	mark->opaque = word_take(&text, "opaque");
	mark->scaffold = word_take(&text, "scaffold");
	if (!strncmp(text, "lower=", 6)) {
		text += 6;
		if (!path_is_plain(text))
			return -EUCLEAN;
		strcpy(mark->lower, text);
		return 0;
	}
	return *text ? -EUCLEAN : 0;
}

int mark_read(int dirfd, struct mark *mark)
{
	char text[PATH_MAX];
	ssize_t len = readlinkat(dirfd, MARK_DIR, text, sizeof(text));
	int error;

	mark->opaque = mark->scaffold = false;
	mark->lower[0] = '\0';
	if (len < 0)
		return errno == EINVAL ? -EUCLEAN : -errno;
	if (len == sizeof(text))
		return -EUCLEAN;
	text[len] = '\0';
	error = mark_parse(text, mark);
	if (error < 0) {
		mark->opaque = mark->scaffold = false;
		mark->lower[0] = '\0';
	}
	return error;
}

static int mark_replace(int dirfd, const char *text)
{
	if (symlinkat(text, dirfd, MARK_NEW) < 0) {
		if (errno != EEXIST || unlinkat(dirfd, MARK_NEW, 0) < 0 || symlinkat(text, dirfd, MARK_NEW) < 0)
			return -errno;
	}
	if (renameat(dirfd, MARK_NEW, dirfd, MARK_DIR) < 0) {
		int error = -errno;

		unlinkat(dirfd, MARK_NEW, 0);
		return error;
	}
	return 0;
}

static int mark_remove(int dirfd)
{
	return unlinkat(dirfd, MARK_DIR, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* By the path in /proc, as DIRFD may be an O_PATH descriptor. Who may not set the times has changed them, no more. */
static void times_restore(int dirfd, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	char path[sizeof("/proc/self/fd/") + 11];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dirfd);
	utimensat(AT_FDCWD, path, times, 0);
}

int mark_write(int dirfd, const struct mark *mark)
{
	const char *lower = mark->lower;
	char text[PATH_MAX];
	struct stat st;
	int len, error;

	if (*lower && !path_is_plain(lower))
		return -EINVAL;
	len = snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", MARK_PREFIX, mark->opaque ? "opaque" : "",
		       mark->opaque && (mark->scaffold || *lower) ? ";" : "", mark->scaffold ? "scaffold" : "",
		       mark->scaffold && *lower ? ";" : "", *lower ? "lower=" : "", lower);
	if (len >= (int)sizeof(text))
		return -ENAMETOOLONG;
	if (fstat(dirfd, &st) < 0)
		return -errno;
	error = len > PREFIX_LEN ? mark_replace(dirfd, text) : mark_remove(dirfd);
	times_restore(dirfd, &st);
	return error;
}

int mark_whiteout(int dirfd, const char *name)
{
	return symlinkat(MARK_WHITEOUT, dirfd, name) < 0 ? -errno : 0;
}
