/*
 * origin.h - of what the files of an upper were copied: the file `origins`. docs/VFS.md has its format.
 *
 * Errors are negative errno.
 */
#ifndef INTERPOSE_VFS_ORIGIN_H
#define INTERPOSE_VFS_ORIGIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct origin {
	uint64_t upper_ino, upper_btime;	/* times in nanoseconds since 1970; a birth time of 0 is not known */
	uint64_t lower_dev, lower_ino, size;
	uint64_t mtime, ctime;
	uint32_t mode;
	const char *path;			/* the guest path at copy-up */
};

/* All of one file, by inode. */
struct origins {
	struct origin *all;
	size_t count;
	uint32_t *table;	/* indices + 1 into `all`, hashed by inode */
	size_t slots;
};

/* UPPER and LOWER with STATX_BASIC_STATS | STATX_BTIME, of the same object before and after its copy-up. */
struct origin origin_of(const struct statx *upper, const struct statx *lower, const char *path);

/* Appends one line, whole or not at all. FD below 0: nothing is kept, 0. */
int origin_append(int fd, const struct origin *origin);

/* Cuts off a line that a killed run did not finish. */
int origin_repair(int fd);

/* Reads all; lines that cannot be read are passed over. FD below 0 has none. */
int origins_load(struct origins *origins, int fd);
void origins_free(struct origins *origins);

/* The origin of an upper file, or NULL: the last one of its inode, and of its birth time where both are known. */
const struct origin *origins_find(const struct origins *origins, const struct statx *upper);

/* A time of struct statx in nanoseconds, and a device as of struct stat. */
uint64_t origin_time(const struct statx_timestamp *time);
uint64_t origin_dev(const struct statx *st);

#endif
