/*
 * copy.h - copies of one object that is no directory, with all that belongs to it; large ones in a worker thread.
 *
 * Errors are negative errno. Nothing here blocks on what is copied: only regular files are opened.
 */
#ifndef INTERPOSE_VFS_COPY_H
#define INTERPOSE_VFS_COPY_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Copies the first SIZE bytes of a regular file into an empty one: shares them where the file system can, and keeps holes.
 * FROM is open for reading, TO for writing; the offset of FROM moves. A source that has become shorter gives a shorter copy.
 * *CANCEL, which may be NULL, is looked at between pieces: -ECANCELED. After an error TO holds a part.
 */
int copy_data(int from, int to, off_t size, volatile const bool *cancel);

/*
 * Gives TO the owner, mode, xattrs and, where TIMES, the access and modification times of FROM. Both may be O_PATH descriptors
 * of any kind of object; ST is FROM's, with STATX_BASIC_STATS. What the user may not set or the file system has not (another
 * owner, trusted xattrs) is left out; a set-id bit is left out together with the owner that it is for.
 */
int copy_attributes(int from, int to, const struct statx *st, bool times);

/* Whether copy_attributes() takes an xattr of this name over. */
bool copy_has_xattr(const char *name);

/*
 * Makes TO_NAME, which must not exist, a copy of NAME: a file, a symbolic link, a FIFO, a socket or a device node.
 * -EISDIR for a directory, -EPERM for a device node that may not be made. After an error there is no TO_NAME.
 */
int copy_object(int from_dir, const char *name, int to_dir, const char *to_name);

/* The same of an object that is held by a descriptor, which may be an O_PATH one; *CANCEL as for copy_data(). */
int copy_object_at(int from, int to_dir, const char *to_name, volatile const bool *cancel);

/*
 * A copy_data() by the worker: one thread, made at the first copy_start(), which takes one job after the other with all
 * signals blocked. The caller fills in what is above the line and keeps the job and its descriptors until copy_wait().
 * NOTIFY may be NULL; it is called in the worker when the job has ended, maybe after copy_wait() has returned, so that it may
 * use no more than ARG (to write to an eventfd, say).
 */
struct copy_job {
	int from, to;
	off_t size;
	void (*notify)(void *arg);
	void *arg;
	/* ---- the worker's */
	struct copy_job *next;
	volatile bool cancel, done;
	int result;
};

/* -EAGAIN when there can be no thread; the caller then copies by itself. */
int copy_start(struct copy_job *job);

/* Whether the job has ended; never blocks. */
bool copy_done(const struct copy_job *job);

/* Asks a job to end early; copy_wait() then gives -ECANCELED, or the result if it had ended. */
void copy_cancel(struct copy_job *job);

/* Waits for the end of the job. What copy_data() returned. */
int copy_wait(struct copy_job *job);

#endif
