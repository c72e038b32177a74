/*
 * mark.h - what an upper writes between the guests' own files: whiteouts, and marks of directories.
 *
 * Both are symbolic links; docs/VFS.md has their format. Every dirfd here may be an O_PATH descriptor. Errors are negative errno.
 */
#ifndef INTERPOSE_VFS_MARK_H
#define INTERPOSE_VFS_MARK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/* A name, or the target of a link, that begins with this is ours: guests can neither name the one nor make the other. */
#define MARK_PREFIX "\001interpose:"
/* The target of a whiteout. */
#define MARK_WHITEOUT MARK_PREFIX "whiteout"
/* The entry of a directory that is its mark. */
#define MARK_DIR MARK_PREFIX "dir"

struct mark {
	bool opaque;		/* nothing of the lower is seen through the directory */
	bool scaffold;		/* it stands for its place only: the attributes are those of the directory in the lower */
	char lower[PATH_MAX];	/* the guest path of its lower, when it is not at its own place; "" for none */
};

/* Whether the name of an entry, or the target of a link, is one of ours. */
bool mark_reserved(const char *name);

/* Whether the entry is a whiteout. ST is its lstat: all that is no link of the right length costs no system call. */
bool mark_is_whiteout(int dirfd, const char *name, const struct stat *st);

/* Reads the mark of the directory. -ENOENT when it has none, -EUCLEAN when it is damaged; the mark is empty then. */
int mark_read(int dirfd, struct mark *mark);

/*
 * Replaces the mark of the directory in one step; an empty one removes it. The times of the directory stay what they were.
 * -ENAMETOOLONG when `lower` does not fit beside the rest, -EINVAL when it is no plain absolute path.
 */
int mark_write(int dirfd, const struct mark *mark);

/* Makes a whiteout, where no entry of that name may be: -EEXIST. The directory's times change, as by the deletion it records. */
int mark_whiteout(int dirfd, const char *name);

#endif
