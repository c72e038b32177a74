/* origin.c - lines of the file `origins` */
#include "vfs/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	NUMBERS = 8,
	NUMBERS_MAX = NUMBERS * 17,
	LINE_LONGEST = NUMBERS_MAX + 4 * PATH_MAX + 2
};

uint64_t origin_time(const struct statx_timestamp *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + time->tv_nsec;
}

uint64_t origin_dev(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

struct origin origin_of(const struct statx *upper, const struct statx *lower, const char *path)
{
	return (struct origin){
		.upper_ino = upper->stx_ino,
		.upper_btime = upper->stx_mask & STATX_BTIME ? origin_time(&upper->stx_btime) : 0,
		.lower_dev = origin_dev(lower),
		.lower_ino = lower->stx_ino,
		.size = lower->stx_size,
		.mtime = origin_time(&lower->stx_mtime),
		.ctime = origin_time(&lower->stx_ctime),
		.mode = lower->stx_mode,
		.path = path,
	};
}

/* --- writing ------------------------------------------------------------------------------------------------------------------ */

static size_t path_quote(char *out, const char *path)
{
	size_t n = 0;

	for (; *path; path++) {
		unsigned char c = *path;

		if (c < 0x20 || c == '\\')
			n += sprintf(out + n, "\\%03o", c);
		else
			out[n++] = c;
	}
	return n;
}

int origin_append(int fd, const struct origin *origin)
{
	char line[LINE_LONGEST];
	ssize_t done;
	size_t n;

	if (fd < 0)
		return 0;
	if (strlen(origin->path) >= PATH_MAX)
		return -ENAMETOOLONG;
	n = sprintf(line, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx32 " ",
		    origin->upper_ino, origin->upper_btime, origin->lower_dev, origin->lower_ino, origin->size, origin->mtime,
		    origin->ctime, origin->mode);
	n += path_quote(line + n, origin->path);
	line[n++] = '\n';
	done = write(fd, line, n);
	if (done == (ssize_t)n)
		return 0;
	if (done < 0)
		return -errno;
	origin_repair(fd);
	return -ENOSPC;
}

int origin_repair(int fd)
{
	char tail[LINE_LONGEST];
	struct stat st;
	ssize_t n;
	off_t from;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return 0;
	from = st.st_size > (off_t)sizeof(tail) ? st.st_size - (off_t)sizeof(tail) : 0;
	n = pread(fd, tail, sizeof(tail), from);
	if (n < 0)
		return -errno;
	if (n > 0 && tail[n - 1] == '\n')
		return 0;
	while (n > 0 && tail[n - 1] != '\n')
		n--;
	return ftruncate(fd, from + n) < 0 ? -errno : 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------------------ */

static bool path_unquote(char *path)
{
	char *out = path;

	if (*path != '/')
		return false;
	while (*path) {
		if (*path != '\\') {
			*out++ = *path++;
			continue;
		}
		if (strspn(path + 1, "01234567") < 3 || path[1] > '3')
			return false;
		*out = (path[1] - '0') << 6 | (path[2] - '0') << 3 | (path[3] - '0');
		if (!*out++)
			return false;
		path += 4;
	}
	*out = '\0';
	return true;
}

static bool line_parse(char *line, struct origin *origin)
{
	uint64_t numbers[NUMBERS];

	for (size_t i = 0; i < NUMBERS; i++) {
		char *end;

		if (!strchr("0123456789abcdef", *line) || !*line)
			return false;
		errno = 0;
		numbers[i] = strtoull(line, &end, 16);
		if (errno || *end != ' ')
			return false;
		line = end + 1;
	}
	if (!path_unquote(line))
		return false;
	*origin = (struct origin){ numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7],
				   strdup(line) };
	return origin->path;
}

static int origins_add(struct origins *origins, size_t *room, const struct origin *origin)
{
	if (origins->count == *room) {
		size_t more = *room ? *room * 2 : 64;
		struct origin *grown = reallocarray(origins->all, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		origins->all = grown;
		*room = more;
	}
	origins->all[origins->count++] = *origin;
	return 0;
}

static size_t slot_of(const struct origins *origins, uint64_t ino)
{
	return (ino * 0x9e3779b97f4a7c15u >> 20) & (origins->slots - 1);
}

/* Later lines are put before earlier ones of the same inode. */
static int table_make(struct origins *origins)
{
	origins->slots = 64;
	while (origins->slots < origins->count * 2)
		origins->slots *= 2;
	origins->table = calloc(origins->slots, sizeof(*origins->table));
	if (!origins->table)
		return -ENOMEM;
	for (size_t i = origins->count; i-- > 0;) {
		size_t slot = slot_of(origins, origins->all[i].upper_ino);

		while (origins->table[slot])
			slot = (slot + 1) & (origins->slots - 1);
		origins->table[slot] = i + 1;
	}
	return 0;
}

int origins_load(struct origins *origins, int fd)
{
	int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3), error = 0;
	FILE *file = own < 0 ? NULL : fdopen(own, "r");
	char *line = NULL;
	size_t size = 0, room = 0;
	ssize_t len;

	*origins = (struct origins){ 0 };
	if (fd >= 0 && !file) {
		if (own >= 0)
			close(own);
		return -ENOMEM;
	}
	if (file)
		rewind(file);
	while (file && !error && (len = getline(&line, &size, file)) > 0) {
		struct origin origin;

		/* A byte 0 ends the text early, and with it the line is none. */
		if (line[len - 1] != '\n' || strlen(line) != (size_t)len)
			continue;
		line[len - 1] = '\0';
		if (!line_parse(line, &origin))
			continue;
		error = origins_add(origins, &room, &origin);
		if (error)
			free((char *)origin.path);
	}
	free(line);
	if (file)
		fclose(file);
	if (!error)
		error = table_make(origins);
	if (error)
		origins_free(origins);
	return error;
}

void origins_free(struct origins *origins)
{
	for (size_t i = 0; i < origins->count; i++)
		free((char *)origins->all[i].path);
	free(origins->all);
	free(origins->table);
	*origins = (struct origins){ 0 };
}

const struct origin *origins_find(const struct origins *origins, const struct statx *upper)
{
	uint64_t btime = upper->stx_mask & STATX_BTIME ? origin_time(&upper->stx_btime) : 0;

	if (!origins->count)
		return NULL;
	for (size_t slot = slot_of(origins, upper->stx_ino); origins->table[slot]; slot = (slot + 1) & (origins->slots - 1)) {
		const struct origin *origin = &origins->all[origins->table[slot] - 1];

		if (origin->upper_ino == upper->stx_ino)
			return !btime || !origin->upper_btime || btime == origin->upper_btime ? origin : NULL;
	}
	return NULL;
}
