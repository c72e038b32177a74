/* include/uapi/asm-generic/stat.h, include/uapi/asm-generic/statfs.h */
#include "arch/abi.h"

extern const struct abi abi_aarch64;

static const struct abi_stat stat_new = {
	.size = 128,
	.field = {
		[STAT_DEV] = { 0, 8 }, [STAT_INO] = { 8, 8 }, [STAT_MODE] = { 16, 4 }, [STAT_NLINK] = { 20, 4 },
		[STAT_UID] = { 24, 4 }, [STAT_GID] = { 28, 4 }, [STAT_RDEV] = { 32, 8 }, [STAT_SIZE] = { 48, 8 },
		[STAT_BLKSIZE] = { 56, 4 }, [STAT_BLOCKS] = { 64, 8 }, [STAT_ATIME] = { 72, 8 }, [STAT_ATIME_NSEC] = { 80, 8 },
		[STAT_MTIME] = { 88, 8 }, [STAT_MTIME_NSEC] = { 96, 8 }, [STAT_CTIME] = { 104, 8 }, [STAT_CTIME_NSEC] = { 112, 8 },
	},
};

static const struct abi_statfs statfs_own = {
	.size = 120,
	.field = {
		[STATFS_TYPE] = { 0, 8 }, [STATFS_BSIZE] = { 8, 8 }, [STATFS_BLOCKS] = { 16, 8 }, [STATFS_BFREE] = { 24, 8 },
		[STATFS_BAVAIL] = { 32, 8 }, [STATFS_FILES] = { 40, 8 }, [STATFS_FFREE] = { 48, 8 }, [STATFS_FSID] = { 56, 8 },
		[STATFS_NAMELEN] = { 64, 8 }, [STATFS_FRSIZE] = { 72, 8 }, [STATFS_FLAGS] = { 80, 8 },
	},
};

const struct abi abi_aarch64 = { .stat = &stat_new, .statfs = &statfs_own };
