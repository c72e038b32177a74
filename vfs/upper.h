/*
 * upper.h - the private directory that holds what guests changed: in memory, or kept on disk. docs/VFS.md has its format.
 *
 *   upper_open_memory()    a tmpfs that has no name on the host; a temporary directory where none can be made
 *   upper_open_dir()       a directory that is kept, made where there is none
 *   upper_open_named()     the same, by the name of an overlay
 *   upper_open_existing()  to look at one, or to commit it
 *   upper_close()
 *
 * Opening returns 0 or a negative errno with one sentence in WHY, without a full stop: what is wrong, and with which path.
 * -EBUSY: another run has the lock. -EUCLEAN: it is damaged, or no upper at all. -ENOENT: there is none.
 */
#ifndef INTERPOSE_VFS_UPPER_H
#define INTERPOSE_VFS_UPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct upper {
	/* All are CLOEXEC and above standard error; -1 for none. */
	int root_fd;		/* the upper's directory; it, fs, work and index can be read */
	int fs_fd, work_fd, index_fd;
	int view_fd;		/* a mount of its own whose root is fs/: the kernel shows the guest paths of what is opened by it */
	int origins_fd;		/* for origin_append(); only of one on disk */
	int lock_fd;
	dev_t dev;		/* of every file in it */
	bool persistent;	/* stays after upper_close() */
	char *path;		/* where it is on the host; NULL for one that has no name there */
};

/* FORCE_DIRECTORY: never by a tmpfs of its own (for tests). The temporary directories of dead runs are removed. */
int upper_open_memory(struct upper *upper, bool force_directory, char *why, size_t size);

/* Makes PATH (mode 0700; its parent must exist) or opens what is there, takes the lock, and empties work/. */
int upper_open_dir(struct upper *upper, const char *path, char *why, size_t size);

/* $XDG_STATE_HOME/interpose/NAME, with the directories above it. */
int upper_open_named(struct upper *upper, const char *name, char *why, size_t size);

/* One that is there. LOCK as upper_open_dir(); without it nothing is changed, and it may be in use. */
int upper_open_existing(struct upper *upper, const char *path, bool lock, char *why, size_t size);

/* Removes a temporary directory. An upper that was never opened, or not with success, may be closed as well. */
void upper_close(struct upper *upper);

/* A name of an overlay: 1 to 128 of A-Z a-z 0-9 . _ - and not first a dot. */
bool upper_name_valid(const char *name);

/* The directory of all named overlays, to be freed; NULL with WHY when neither $XDG_STATE_HOME nor $HOME is an absolute path. */
char *upper_state_dir(char *why, size_t size);

/* The path of a named overlay, or a copy of a NAME with a `/` in it; to be freed. NULL with WHY. */
char *upper_path_of(const char *name, char *why, size_t size);

/* The pid in the lock file when it is locked, -1 when that cannot be read; 0 when the upper is not in use. */
pid_t upper_user(int root_fd);

/* Whether the directory says that it is an upper, of whatever version. */
bool upper_is(int root_fd);

/*
 * Removes all that is in the directory, however deep, without following a link or leaving the directory; `format` last, so that
 * what a killed removal left is still known to be an upper. 0 or the first error.
 */
int upper_remove_contents(int root_fd);

/* Removes the directories `.discarded.*`, own ones, which a killed discard has left in the directory of named overlays. */
void upper_remove_discarded(int state_fd);

#endif
