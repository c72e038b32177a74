/*
 * commit.h - takes what an upper changes over into the lower.
 *
 * Each file is copied to a temporary name beside its target, synced, renamed over the target, and then removed from the upper.
 * A commit that was killed at any moment is finished by the next: what is already there is not copied again, and the one
 * temporary that may be left is removed. Directories that are empty then leave the upper.
 */
#ifndef INTERPOSE_VFS_COMMIT_H
#define INTERPOSE_VFS_COMMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "vfs/upper.h"

enum commit_event {
	COMMIT_CONFLICT,	/* the lower changed meanwhile: TEXT says how */
	COMMIT_MISSING,		/* nothing of the upper is at a path that was asked for */
	COMMIT_FAILED,		/* TEXT says why; all that follows stays in the upper */
	COMMIT_NOTE		/* done, but TEXT */
};

struct commit_options {
	bool force;			/* in spite of conflicts */
	char *const *paths;		/* only what is at or below these absolute guest paths; none: all */
	size_t count;
	void (*tell)(void *arg, enum commit_event event, const char *path, const char *text);
	void *arg;
};

/*
 * UPPER is opened with its lock; LOWER_ROOT is a directory descriptor of the lower's "/". 0; -EEXIST after conflicts and -ENOENT
 * after missing paths, with nothing changed; another negative errno after COMMIT_FAILED.
 */
int commit_run(const struct upper *upper, int lower_root, const struct commit_options *options);

/* Removes what a killed commit may have left on the host, for one who discards the upper. */
void commit_forget(const struct upper *upper, int lower_root);

#endif
