/* changes.h - what an upper changes in the lower: for `diff`, and to know what `commit` has to do. */
#ifndef INTERPOSE_VFS_CHANGES_H
#define INTERPOSE_VFS_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "vfs/upper.h"

/* What differs. */
enum {
	CHANGE_CONTENT = 1,	/* or the target of a link, or the number of a device */
	CHANGE_TYPE = 2,
	CHANGE_MODE = 4,
	CHANGE_OWNER = 8,
	CHANGE_XATTR = 16,
	CHANGE_TIMES = 32,	/* the modification time, of what is no directory */
	CHANGE_WORDS = 6
};

/* The names of the bits above, from the lowest: "content", "type" ... */
extern const char *const change_words[CHANGE_WORDS];

struct change {
	char kind;		/* 'A' new, 'M' changed, 'D' gone with all that was in it, 'R' renamed from `from` */
	unsigned what;		/* of M and R: CHANGE_* */
	mode_t mode;		/* type and permissions; of D those of the lower */
	uint64_t size;
	const char *path;	/* the guest path */
	const char *from;	/* of R: the guest path before */
	/* To look closer, during the call only. Directory and name; -1 where there is none. */
	int upper_dir, lower_dir;
	const char *name;
};

/*
 * Calls TELL for each change: directories before what is in them, names in the order of their bytes. A directory that was
 * replaced by something else is told as D, then as A. Directories that are there for their place only are no change, and neither
 * is a file that was opened for writing and stayed the same. TELL returns 0, or a negative errno that ends it. *FAILED, to be
 * freed, is the path at which it ended with an error, or NULL. LOWER_ROOT: a directory descriptor of the lower's "/".
 */
int changes_walk(const struct upper *upper, int lower_root, int (*tell)(void *arg, const struct change *change), void *arg,
		 char **failed);

/* What differs between two objects that are no whiteouts: CHANGE_*; 0 for nothing. What cannot be read differs in content. */
unsigned change_compare(int upper_dir, const char *upper_name, const struct statx *upper, int lower_dir, const char *lower_name,
			const struct statx *lower);

#endif
