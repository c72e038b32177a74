/* compare.c - what differs between an object of the upper and one of the lower */
#include "vfs/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs/copy.h"

enum { BLOCK = 64 << 10 };

const char *const change_words[CHANGE_WORDS] = { "content", "type", "mode", "owner", "xattr", "times" };

/* --- content ------------------------------------------------------------------------------------------------------------------ */

static int file_open(int dirfd, const char *name)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(dirfd, name, flags | O_NOATIME);

	return fd < 0 && errno == EPERM ? openat(dirfd, name, flags) : fd;
}

/* A whole block, or what is left of the file. */
static ssize_t block_read(int fd, char *block, off_t at)
{
	ssize_t n = 0, got;

	do {
		got = pread(fd, block + n, BLOCK - n, at + n);
		n += got > 0 ? got : 0;
	} while ((got > 0 && n < BLOCK) || (got < 0 && errno == EINTR));
	return got < 0 ? -errno : n;
}

static bool bytes_differ(int a, int b)
{
	char one[BLOCK], two[BLOCK];
	off_t at = 0;

	for (;;) {
		ssize_t n = block_read(a, one, at), m = block_read(b, two, at);

		if (n < 0 || n != m || memcmp(one, two, n))
			return true;
		if (n < BLOCK)
			return false;
		at += n;
	}
}

static bool files_differ(int a_dir, const char *a_name, int b_dir, const char *b_name)
{
	int a = file_open(a_dir, a_name), b = file_open(b_dir, b_name);
	bool differ = a < 0 || b < 0 || bytes_differ(a, b);

	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	return differ;
}

static bool links_differ(int a_dir, const char *a_name, int b_dir, const char *b_name)
{
	char one[PATH_MAX], two[PATH_MAX];
	ssize_t n = readlinkat(a_dir, a_name, one, sizeof(one)), m = readlinkat(b_dir, b_name, two, sizeof(two));

	return n < 0 || n != m || memcmp(one, two, n);
}

/* --- attributes ---------------------------------------------------------------------------------------------------------------- */

/* An ordinary user's upper cannot keep other owners, nor the set-id bits that are for them: neither tells of a change. */
static unsigned owner_and_mode(const struct statx *upper, const struct statx *lower)
{
	bool root = geteuid() == 0, owner, same;
	mode_t modes = upper->stx_mode ^ lower->stx_mode;

	same = upper->stx_uid == lower->stx_uid && upper->stx_gid == lower->stx_gid;
	owner = root ? !same : upper->stx_gid != lower->stx_gid && upper->stx_gid != getegid();
	if (!root && !same)
		modes &= ~(S_ISUID | S_ISGID);
	return (modes & 07777 ? CHANGE_MODE : 0) | (owner ? CHANGE_OWNER : 0);
}

struct names {
	char *list;
	ssize_t len;
};

static void names_get(struct names *names, const char *path)
{
	*names = (struct names){ .len = listxattr(path, NULL, 0) };
	if (names->len <= 0)
		return;
	names->list = malloc(names->len);
	names->len = names->list ? listxattr(path, names->list, names->len) : 0;
}

static bool xattr_differs(const char *a, const char *b, const char *name)
{
	ssize_t n = getxattr(a, name, NULL, 0), m = getxattr(b, name, NULL, 0);
	char *one, *two;
	bool differ = true;

	if (n < 0 || m < 0 || n != m)
		return n >= 0 || m >= 0;
	one = malloc(2 * (size_t)n + 2);
	if (!one)
		return true;
	two = one + n;
	if (getxattr(a, name, one, n) == n && getxattr(b, name, two, n) == n)
		differ = memcmp(one, two, n) != 0;
	free(one);
	return differ;
}

/* Whether the upper lost it, and not because it could never have it. */
static bool xattr_is_gone(const char *upper, const char *name)
{
	if (geteuid() != 0 && strncmp(name, "user.", 5) && strncmp(name, "system.", 7))
		return false;
	return getxattr(upper, name, NULL, 0) < 0 && errno == ENODATA;
}

static bool xattrs_differ(const char *upper, const char *lower)
{
	struct names ups, lows;
	bool differ = false;

	names_get(&ups, upper);
	names_get(&lows, lower);
	for (char *at = ups.list; at && !differ && at < ups.list + ups.len; at += strlen(at) + 1)
		differ = copy_has_xattr(at) && xattr_differs(upper, lower, at);
	for (char *at = lows.list; at && !differ && at < lows.list + lows.len; at += strlen(at) + 1)
		differ = copy_has_xattr(at) && xattr_is_gone(upper, at);
	free(ups.list);
	free(lows.list);
	return differ;
}

static bool objects_xattrs_differ(int a_dir, const char *a_name, int b_dir, const char *b_name)
{
	char one[32], two[32];
	int a = openat(a_dir, a_name, O_PATH | O_NOFOLLOW | O_CLOEXEC), b = openat(b_dir, b_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool differ;

	snprintf(one, sizeof(one), "/proc/self/fd/%d", a);
	snprintf(two, sizeof(two), "/proc/self/fd/%d", b);
	differ = a >= 0 && b >= 0 && xattrs_differ(one, two);
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	return differ;
}

unsigned change_compare(int upper_dir, const char *upper_name, const struct statx *upper, int lower_dir, const char *lower_name,
			const struct statx *lower)
{
	unsigned what = owner_and_mode(upper, lower);

	if ((upper->stx_mode & S_IFMT) != (lower->stx_mode & S_IFMT))
		return what | CHANGE_TYPE | CHANGE_CONTENT;
	if (S_ISLNK(upper->stx_mode)) {
		what &= ~CHANGE_MODE;
		if (links_differ(upper_dir, upper_name, lower_dir, lower_name))
			what |= CHANGE_CONTENT;
	} else if (S_ISREG(upper->stx_mode)) {
		if (upper->stx_size != lower->stx_size || files_differ(upper_dir, upper_name, lower_dir, lower_name))
			what |= CHANGE_CONTENT;
	} else if (upper->stx_rdev_major != lower->stx_rdev_major || upper->stx_rdev_minor != lower->stx_rdev_minor) {
		what |= CHANGE_CONTENT;
	}
	if (objects_xattrs_differ(upper_dir, upper_name, lower_dir, lower_name))
		what |= CHANGE_XATTR;
	if (!S_ISDIR(upper->stx_mode) && (upper->stx_mtime.tv_sec != lower->stx_mtime.tv_sec ||
					  upper->stx_mtime.tv_nsec != lower->stx_mtime.tv_nsec))
		what |= CHANGE_TIMES;
	return what;
}
