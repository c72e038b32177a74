/* copy.c - data, attributes and kinds of one object */
#include "vfs/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	BUFFER = 128 << 10,
	PIECE = 8 << 20,	/* of one copy_file_range(): how late a cancel may be */
	ZERO_BLOCK = 4096,
	PROC_FD = 32
};

static const char *proc_fd(char path[PROC_FD], int fd)
{
	snprintf(path, PROC_FD, "/proc/self/fd/%d", fd);
	return path;
}

/* --- data ------------------------------------------------------------------------------------------------------------------- */

struct data {
	int from, to;
	volatile const bool *cancel;
	bool in_kernel;		/* copy_file_range() has not failed yet */
	bool find_zeros;	/* the file system hides its holes */
	char *buffer;		/* BUFFER bytes, made when first needed */
};

static bool cancelled(const struct data *data)
{
	return data->cancel && __atomic_load_n(data->cancel, __ATOMIC_RELAXED);
}

static bool is_zero(const char *block, size_t len)
{
	return !block[0] && !memcmp(block, block + 1, len - 1);
}

static int write_all(int fd, const char *bytes, size_t len, off_t at)
{
	while (len) {
		ssize_t n = pwrite(fd, bytes, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		at += n;
		len -= n;
	}
	return 0;
}

/* Leaves out blocks of zeros; runs of others are written at once. */
static int write_sparse(int fd, const char *bytes, size_t len, off_t at)
{
	size_t start = 0, pos = 0;
	int error = 0;

	while (pos < len && !error) {
		size_t block = len - pos < ZERO_BLOCK ? len - pos : ZERO_BLOCK;
		bool zero = is_zero(bytes + pos, block);

		if (zero && pos > start)
			error = write_all(fd, bytes + start, pos - start, at + start);
		pos += block;
		if (zero)
			start = pos;
	}
	return error || start == len ? error : write_all(fd, bytes + start, len - start, at + start);
}

/* Bytes that the kernel copied; 0 when it cannot, or at the end of the source: reading tells. */
static ssize_t range_in_kernel(struct data *data, off_t at, off_t len)
{
	off_t in = at, out = at;
	ssize_t n;

	if (!data->in_kernel || data->find_zeros)
		return 0;
	n = copy_file_range(data->from, &in, data->to, &out, len < PIECE ? len : PIECE, 0);
	if (n > 0)
		return n;
	if (n < 0 && errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS && errno != EPERM && errno != EBADF)
		return -errno;
	data->in_kernel = false;
	return 0;
}

/* Bytes that were read and written; 0 at the end of the source. */
static ssize_t range_by_hand(struct data *data, off_t at, off_t len)
{
	ssize_t n;
	int error;

	if (!data->buffer)
		data->buffer = malloc(BUFFER);
	if (!data->buffer)
		return -ENOMEM;
	do {
		n = pread(data->from, data->buffer, len < BUFFER ? len : BUFFER, at);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	error = data->find_zeros ? write_sparse(data->to, data->buffer, n, at) : write_all(data->to, data->buffer, n, at);
	return error ? error : n;
}

/* Copies [at, end). Where the copy ended, which is before END when the source does. */
static off_t copy_range(struct data *data, off_t at, off_t end)
{
	while (at < end) {
		ssize_t n = cancelled(data) ? -ECANCELED : range_in_kernel(data, at, end - at);

		if (n == 0)
			n = range_by_hand(data, at, end - at);
		if (n < 0)
			return n;
		if (n == 0)
			break;
		at += n;
	}
	return at;
}

/* The next data at or after AT into [*start, *end); 0 when there is none before SIZE. */
static int next_data(struct data *data, off_t at, off_t size, off_t *start, off_t *end)
{
	*start = lseek(data->from, at, SEEK_DATA);
	if (*start < 0 && errno == ENXIO)
		return 0;
	*end = *start < 0 ? -1 : lseek(data->from, *start, SEEK_HOLE);
	if (*end < 0) {
		*start = at;
		*end = size;
	}
	if (*end > size)
		*end = size;
	return *start < *end;
}

static off_t source_end(int fd, off_t size)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size < size ? st.st_size : size;
}

static int copy_extents(struct data *data, off_t size)
{
	off_t at = 0, start, end;
	struct stat st;

	if (fstat(data->from, &st) < 0)
		return -errno;
	while (at < size && next_data(data, at, size, &start, &end)) {
		/* One extent, and fewer blocks than bytes: holes that SEEK_HOLE does not know. */
		data->find_zeros = start == 0 && end == size && st.st_blocks * 512 < size;
		at = copy_range(data, start, end);
		if (at < 0)
			return at;
		if (at < end)
			break;
	}
	return ftruncate(data->to, source_end(data->from, size)) < 0 ? -errno : 0;
}

int copy_data(int from, int to, off_t size, volatile const bool *cancel)
{
	struct data data = { .from = from, .to = to, .cancel = cancel, .in_kernel = true };
	int error;

	if (size == 0 || ioctl(to, FICLONE, from) == 0)
		return 0;
	error = copy_extents(&data, size);
	free(data.buffer);
	return error;
}

/* --- attributes -------------------------------------------------------------------------------------------------------------- */

/* What a file system or a user may lack. */
static bool is_unsupported(int error)
{
	return error == -EPERM || error == -EACCES || error == -EOPNOTSUPP || error == -EINVAL || error == -ENODATA;
}

/* Others belong to the host's own security modules, or are no plain values. */
bool copy_has_xattr(const char *name)
{
	return !strncmp(name, "user.", 5) || !strncmp(name, "trusted.", 8) || !strcmp(name, "security.capability") ||
	       !strcmp(name, "system.posix_acl_access") || !strcmp(name, "system.posix_acl_default");
}

/* The names of the object's xattrs, each ended by NUL; *LEN bytes; to be freed. NULL with *LEN an error, or 0 for none. */
static char *xattr_names(const char *path, ssize_t *len)
{
	/* The list may grow between the two calls. */
	for (int tries = 0; tries < 8; tries++) {
		ssize_t size = listxattr(path, NULL, 0);
		char *names;

		*len = size < 0 ? -errno : 0;
		if (size <= 0)
			return NULL;
		names = malloc(size);
		*len = names ? listxattr(path, names, size) : -1;
		if (*len > 0)
			return names;
		*len = names ? *len < 0 ? -errno : 0 : -ENOMEM;
		free(names);
		if (*len != -ERANGE)
			return NULL;
	}
	return NULL;
}

static int xattr_copy(const char *from, const char *to, const char *name)
{
	for (int tries = 0; tries < 8; tries++) {
		ssize_t size = getxattr(from, name, NULL, 0);
		char *value;
		int error = 0;

		if (size < 0)
			return -errno;
		value = malloc(size ? size : 1);
		if (!value)
			return -ENOMEM;
		size = getxattr(from, name, value, size);
		if (size < 0 || setxattr(to, name, value, size, 0) < 0)
			error = -errno;
		free(value);
		if (error != -ERANGE)
			return error;
	}
	return -ERANGE;
}

static bool names_have(const char *names, ssize_t len, const char *name)
{
	for (const char *at = names; at < names + len; at += strlen(at) + 1) {
		if (!strcmp(at, name))
			return true;
	}
	return false;
}

/* What TO got from its folder (an ACL) or had before, and FROM has not. */
static void xattrs_remove_others(const char *to, const char *names, ssize_t len)
{
	ssize_t to_len;
	char *to_names = xattr_names(to, &to_len);

	for (const char *at = to_names; to_names && at < to_names + to_len; at += strlen(at) + 1) {
		if (copy_has_xattr(at) && !names_have(names, len, at))
			removexattr(to, at);
	}
	free(to_names);
}

static int xattrs_copy(const char *from, const char *to)
{
	ssize_t len;
	char *names = xattr_names(from, &len);
	int error = 0;

	if (!names && len < 0)
		return is_unsupported(len) ? 0 : len;
	xattrs_remove_others(to, names, len);
	for (const char *at = names; names && at < names + len && !error; at += strlen(at) + 1) {
		if (copy_has_xattr(at))
			error = xattr_copy(from, to, at);
		if (is_unsupported(error))
			error = 0;
	}
	free(names);
	return error;
}

/* The bits of the mode that may be given after the owner was tried. */
static int owner_copy(int to, const struct statx *st, mode_t *mode)
{
	struct stat now;

	if (fchownat(to, "", st->stx_uid, st->stx_gid, AT_EMPTY_PATH) < 0) {
		if (errno != EPERM && errno != EINVAL)
			return -errno;
		/* The group may be another of the user's own. */
		if (fchownat(to, "", -1, st->stx_gid, AT_EMPTY_PATH) < 0 && errno != EPERM && errno != EINVAL)
			return -errno;
	}
	if (!(*mode & (S_ISUID | S_ISGID)))
		return 0;
	if (fstat(to, &now) < 0)
		return -errno;
	if (now.st_uid != st->stx_uid)
		*mode &= ~S_ISUID;
	if (now.st_gid != st->stx_gid && !S_ISDIR(st->stx_mode))
		*mode &= ~S_ISGID;
	return 0;
}

int copy_attributes(int from, int to, const struct statx *st, bool times)
{
	const struct timespec both[2] = {
		{ st->stx_atime.tv_sec, st->stx_atime.tv_nsec }, { st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec }
	};
	char from_path[PROC_FD], to_path[PROC_FD];
	mode_t mode = st->stx_mode & 07777;
	int error = owner_copy(to, st, &mode);

	if (error)
		return error;
	proc_fd(from_path, from);
	proc_fd(to_path, to);
	/* A change of owner clears the set-id bits and the capabilities: both come after it. The mode may deny its owner the xattrs. */
	error = xattrs_copy(from_path, to_path);
	if (error)
		return error;
	if (!S_ISLNK(st->stx_mode) && chmod(to_path, mode) < 0)
		return -errno;
	return times && utimensat(AT_FDCWD, to_path, both, 0) < 0 && errno != EPERM ? -errno : 0;
}

/* --- objects ----------------------------------------------------------------------------------------------------------------- */

/* FROM was seen to be a regular file: opening it by its descriptor opens nothing else. */
static int reopen_for_reading(int from)
{
	char path[PROC_FD];
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = open(proc_fd(path, from), flags | O_NOATIME);

	if (fd < 0 && errno == EPERM)
		fd = open(path, flags);
	return fd < 0 ? -errno : fd;
}

static int make_file(int from, const struct statx *st, int to_dir, const char *to_name, volatile const bool *cancel)
{
	int to, error, in = reopen_for_reading(from);

	if (in < 0)
		return in;
	to = openat(to_dir, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0) {
		error = -errno;
	} else {
		error = copy_data(in, to, st->stx_size, cancel);
		if (!error)
			error = copy_attributes(from, to, st, true);
		close(to);
		if (error)
			unlinkat(to_dir, to_name, 0);
	}
	close(in);
	return error;
}

static int make_link(int from, int to_dir, const char *to_name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(from, "", target, sizeof(target));

	if (len < 0)
		return -errno;
	if (len == sizeof(target))
		return -ENAMETOOLONG;
	target[len] = '\0';
	return symlinkat(target, to_dir, to_name) < 0 ? -errno : 0;
}

static int make_special(int from, const struct statx *st, int to_dir, const char *to_name)
{
	int error = 0, to;

	if (S_ISLNK(st->stx_mode))
		error = make_link(from, to_dir, to_name);
	else if (mknodat(to_dir, to_name, (st->stx_mode & S_IFMT) | 0600, makedev(st->stx_rdev_major, st->stx_rdev_minor)) < 0)
		error = -errno;
	if (error)
		return error;
	to = openat(to_dir, to_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	error = to < 0 ? -errno : copy_attributes(from, to, st, true);
	if (to >= 0)
		close(to);
	if (error)
		unlinkat(to_dir, to_name, 0);
	return error;
}

int copy_object_at(int from, int to_dir, const char *to_name, volatile const bool *cancel)
{
	struct statx st;

	if (statx(from, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &st) < 0)
		return -errno;
	if (S_ISDIR(st.stx_mode))
		return -EISDIR;
	if (S_ISREG(st.stx_mode))
		return make_file(from, &st, to_dir, to_name, cancel);
	return make_special(from, &st, to_dir, to_name);
}

int copy_object(int from_dir, const char *name, int to_dir, const char *to_name)
{
	int error, from = openat(from_dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (from < 0)
		return -errno;
	error = copy_object_at(from, to_dir, to_name, NULL);
	close(from);
	return error;
}
