/*
 * upper_walk.h - all entries of an upper's fs/ beside what the lower has at their places: for diff and commit.
 *
 * Directories come before what is in them, names in the order of their bytes. Trees may be of any depth: neither paths nor
 * descriptors are limited by it.
 */
#ifndef INTERPOSE_VFS_UPPER_WALK_H
#define INTERPOSE_VFS_UPPER_WALK_H

#include <stdbool.h>
#include <sys/stat.h>

#include "vfs/upper.h"

enum { WALK_STATX = STATX_BASIC_STATS | STATX_BTIME };

struct walk_entry {
	const char *path;		/* the guest path */
	const char *name;
	int dirfd;			/* the upper's directory that it is in */
	struct statx st;
	bool whiteout;
	/* Its place in the lower: the same name in the directory that is below its own directory. */
	int place_dir;			/* -1 when its directory has none below */
	const char *place;		/* the path of the place */
	bool placed;			/* something is there */
	struct statx place_st;
	bool hidden;			/* an opaque directory above lets nothing of the lower be seen */
	/* Of directories only. */
	int fd;				/* itself, for reading; -1 for all others */
	bool opaque, scaffold;		/* of its mark */
	const char *moved;		/* the path in the mark, or NULL */
	int lower_fd;			/* the lower's directory that is below it, O_PATH: at its place, or that of `moved`; or -1 */
	bool stale;			/* set by enter(): the mark, the place or lower_fd are others now */
};

struct walk {
	/* Returns 0, WALK_OVER not to go into the directory, or a negative errno, which ends the walk. */
	int (*enter)(void *arg, struct walk_entry *entry);
	/* After all that is in a directory which was gone into; may be NULL. */
	int (*leave)(void *arg, struct walk_entry *entry);
	void *arg;
	char *failed;			/* the path at which it ended with an error, to be freed; or NULL */
};

enum { WALK_OVER = 1 };

/* LOWER_ROOT: the lower's "/". 0 or a negative errno; -EUCLEAN for a damaged mark, -ESTALE when the tree changes meanwhile. */
int walk_run(struct walk *walk, const struct upper *upper, int lower_root);

/* Opens a path of the lower or the upper without following a link, however long it is. O_PATH; negative errno. */
int walk_open(int root, const char *path);

#endif
