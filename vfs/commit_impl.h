/* commit_impl.h - what the files of commit share; for no one else */
#ifndef INTERPOSE_VFS_COMMIT_IMPL_H
#define INTERPOSE_VFS_COMMIT_IMPL_H

#include <stdint.h>

#include "vfs/commit.h"
#include "vfs/origin.h"
#include "vfs/upper_walk.h"

#define COMMIT_TEMPORARY ".interpose."
enum { COMMIT_TEMPORARY_SIZE = sizeof(COMMIT_TEMPORARY) + 6 };

struct folder; /* commit.c: a directory that the walk is in */

struct commit {
	const struct upper *upper;
	int lower_root;
	const struct commit_options *options;
	struct origins origins;
	struct origins links;		/* upper files with several links that were committed, and where to */
	int links_fd;
	int journal_fd;
	uint64_t started;		/* this commit, or the killed one that it continues, in nanoseconds */
	uint64_t seen;			/* until when the killed one ran; 0 for none */
	bool *found;			/* of each path that was asked for */
	bool conflicts;
	bool told;			/* a failure was told */
	struct folder *folder;
	bool deleting;			/* the walk that deletes */
	struct pending *pending;	/* commit_move.c */
	size_t pending_count, pending_room;
};

/* What of an entry was asked for. */
enum commit_part { PART_NONE, PART_ABOVE, PART_ALL };
enum commit_part commit_part(const struct commit *commit, const char *path);

/* Tells a failure, once. ERROR. */
int commit_fail(struct commit *commit, const char *path, int error, const char *what);

/* commit_check.c: conflicts and missing paths are told; -EEXIST, -ENOENT or another error. */
int commit_check(struct commit *commit);

/* commit_move.c: opaque directories become merged ones with whiteouts, and renamed directories are renamed in the lower. */
int commit_moves(struct commit *commit);

/* Finishes a move that was under way when a commit was killed. TO has the directory (DEV, INO) if the rename was done. */
int commit_move_resume(struct commit *commit, uint64_t dev, uint64_t ino, const char *from, const char *to);

/* commit_journal.c: the file `commit` tells the next commit what was under way. Each call replaces its one record. */
int journal_open(struct commit *commit);		/* and cleans up after a killed commit */
int journal_temporary(struct commit *commit, const char *dir, const char *name);
int journal_move(struct commit *commit, uint64_t dev, uint64_t ino, const char *from, const char *to);
void journal_end(struct commit *commit, bool whole);	/* WHOLE: all was done, there is nothing to be continued */

/* A name that is not yet in the directory, told to the journal. DIR is the path of DIRFD. */
int commit_temporary(struct commit *commit, int dirfd, const char *dir, char name[COMMIT_TEMPORARY_SIZE]);

/* Removes an object of any kind. The one in a directory of the lower goes out of sight at once. */
int commit_remove(int dirfd, const char *name);
int commit_remove_place(struct commit *commit, int dirfd, const char *dir, const char *name, bool directory);

/* The directory part of a path, to be freed. */
char *commit_above(const char *path);

/* Makes the lower's directory for one of the upper, in place of what is there; `stale` is set. */
int commit_directory(struct commit *commit, struct walk_entry *entry);

/* The times of a directory of the upper, around a change of ours that is not the guest's. */
void commit_times_restore(int fd, const struct stat *st);

#endif
