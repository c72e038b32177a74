/* arch/x86/include/uapi/asm/stat.h as a 64-bit kernel writes it: arch/x86/include/asm/compat.h, asm/sys_ia32.h */
#include "arch/abi.h"

extern const struct abi abi_i386;

static const struct abi_stat stat_new = {
	.size = 64,
	.large_refused = true,
	.field = {
		[STAT_DEV] = { 0, 4 }, [STAT_INO] = { 4, 4 }, [STAT_MODE] = { 8, 2 }, [STAT_NLINK] = { 10, 2 },
		[STAT_UID] = { 12, 2 }, [STAT_GID] = { 14, 2 }, [STAT_RDEV] = { 16, 4 }, [STAT_SIZE] = { 20, 4 },
		[STAT_BLKSIZE] = { 24, 4 }, [STAT_BLOCKS] = { 28, 4 }, [STAT_ATIME] = { 32, 4 }, [STAT_ATIME_NSEC] = { 36, 4 },
		[STAT_MTIME] = { 40, 4 }, [STAT_MTIME_NSEC] = { 44, 4 }, [STAT_CTIME] = { 48, 4 }, [STAT_CTIME_NSEC] = { 52, 4 },
	},
};

/* __st_ino has the low half of the number; the whole one is the last field. */
static const struct abi_stat stat_64 = {
	.size = 96,
	.field = {
		[STAT_DEV] = { 0, 8 }, [STAT_INO_LOW] = { 12, 4 }, [STAT_MODE] = { 16, 4 }, [STAT_NLINK] = { 20, 4 },
		[STAT_UID] = { 24, 4 }, [STAT_GID] = { 28, 4 }, [STAT_RDEV] = { 32, 8 }, [STAT_SIZE] = { 44, 8 },
		[STAT_BLKSIZE] = { 52, 4 }, [STAT_BLOCKS] = { 56, 8 }, [STAT_ATIME] = { 64, 4 }, [STAT_ATIME_NSEC] = { 68, 4 },
		[STAT_MTIME] = { 72, 4 }, [STAT_MTIME_NSEC] = { 76, 4 }, [STAT_CTIME] = { 80, 4 }, [STAT_CTIME_NSEC] = { 84, 4 },
		[STAT_INO] = { 88, 8 },
	},
};

/* struct __old_kernel_stat: a 64-bit kernel cuts the size. */
static const struct abi_stat stat_old = {
	.size = 32,
	.field = {
		[STAT_DEV] = { 0, 2 }, [STAT_INO] = { 2, 2 }, [STAT_MODE] = { 4, 2 }, [STAT_NLINK] = { 6, 2 },
		[STAT_UID] = { 8, 2 }, [STAT_GID] = { 10, 2 }, [STAT_RDEV] = { 12, 2 }, [STAT_SIZE] = { 16, 4 },
		[STAT_ATIME] = { 20, 4 }, [STAT_MTIME] = { 24, 4 }, [STAT_CTIME] = { 28, 4 },
	},
};

static const struct abi_statfs statfs_old = {
	.size = 64,
	.field = {
		[STATFS_TYPE] = { 0, 4 }, [STATFS_BSIZE] = { 4, 4 }, [STATFS_BLOCKS] = { 8, 4 }, [STATFS_BFREE] = { 12, 4 },
		[STATFS_BAVAIL] = { 16, 4 }, [STATFS_FILES] = { 20, 4 }, [STATFS_FFREE] = { 24, 4 }, [STATFS_FSID] = { 28, 8 },
		[STATFS_NAMELEN] = { 36, 4 }, [STATFS_FRSIZE] = { 40, 4 }, [STATFS_FLAGS] = { 44, 4 },
	},
};

static const struct abi_statfs statfs_64 = {
	.size = 84,
	.field = {
		[STATFS_TYPE] = { 0, 4 }, [STATFS_BSIZE] = { 4, 4 }, [STATFS_BLOCKS] = { 8, 8 }, [STATFS_BFREE] = { 16, 8 },
		[STATFS_BAVAIL] = { 24, 8 }, [STATFS_FILES] = { 32, 8 }, [STATFS_FFREE] = { 40, 8 }, [STATFS_FSID] = { 48, 8 },
		[STATFS_NAMELEN] = { 56, 4 }, [STATFS_FRSIZE] = { 60, 4 }, [STATFS_FLAGS] = { 64, 4 },
	},
};

const struct abi abi_i386 = {
	.stat = &stat_new, .stat64 = &stat_64, .oldstat = &stat_old, .statfs = &statfs_old, .statfs64 = &statfs_64
};
