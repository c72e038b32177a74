/*
 * abi.h - structures that the kernel writes to a guest's memory when it asks about files, as each ABI lays them out.
 *
 * Each folder describes its own (abi.c) by offset and width of every field, so that a 64-bit host answers a 32-bit guest and all of
 * them are tested everywhere. The rules of what does not fit are the kernel's: fs/stat.c, fs/statfs.c, fs/readdir.c and, for
 * i386, arch/x86/kernel/sys_ia32.c.
 */
#ifndef INTERPOSE_ARCH_ABI_H
#define INTERPOSE_ARCH_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct statx;
struct statfs;

struct abi_field {
	uint8_t at, size; /* bytes from the start; 0 bytes: the structure has no such field */
};

enum abi_stat_field {
	STAT_DEV, STAT_INO, STAT_INO_LOW, STAT_MODE, STAT_NLINK, STAT_UID, STAT_GID, STAT_RDEV, STAT_SIZE, STAT_BLKSIZE, STAT_BLOCKS,
	STAT_ATIME, STAT_ATIME_NSEC, STAT_MTIME, STAT_MTIME_NSEC, STAT_CTIME, STAT_CTIME_NSEC,
	STAT_FIELDS
};

struct abi_stat {
	uint8_t size;
	bool large_refused; /* a file of 2 GiB or more is EOVERFLOW */
	struct abi_field field[STAT_FIELDS];
};

enum abi_statfs_field {
	STATFS_TYPE, STATFS_BSIZE, STATFS_BLOCKS, STATFS_BFREE, STATFS_BAVAIL, STATFS_FILES, STATFS_FFREE, STATFS_FSID, STATFS_NAMELEN,
	STATFS_FRSIZE, STATFS_FLAGS,
	STATFS_FIELDS
};

struct abi_statfs {
	uint8_t size;
	struct abi_field field[STATFS_FIELDS];
};

/* NULL where the ABI has no call that writes it. */
struct abi {
	const struct abi_stat *stat, *stat64, *oldstat;
	const struct abi_statfs *statfs, *statfs64;
};

enum { ABI_STAT_MAX = 144, ABI_STATFS_MAX = 120 };

/* Writes the structure to BUF. Its size, or -EOVERFLOW where the kernel refuses to cut a number. */
int abi_put_stat(const struct abi_stat *layout, const struct statx *st, void *buf);
int abi_put_statfs(const struct abi_statfs *layout, const struct statfs *st, void *buf);

struct abi_dirent {
	uint64_t ino;
	int64_t next; /* position after it */
	uint8_t type; /* DT_* */
	const char *name;
};

/* One entry of getdents64 (WIDE), or of getdents on an ABI whose long has WORD bytes. The bytes it takes; -EINVAL where it does not
   fit into ROOM, -EOVERFLOW where its inode number does not fit into the field. */
int abi_put_dirent(unsigned char *buf, size_t room, bool wide, unsigned word, const struct abi_dirent *entry);

/* The only entry of readdir(2) of i386; AT is its own position. As above. */
int abi_put_old_dirent(unsigned char *buf, size_t room, int64_t at, const struct abi_dirent *entry);

#endif
