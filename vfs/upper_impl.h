/* upper_impl.h - what the files of the upper share; for no one else */
#ifndef INTERPOSE_VFS_UPPER_IMPL_H
#define INTERPOSE_VFS_UPPER_IMPL_H

#include "vfs/upper.h"

#define UPPER_FORMAT "interpose-overlay 1\n"

/* Writes the sentence into WHY. ERROR. */
int upper_why(int error, char *why, size_t size, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* FD, or a copy of it above standard error. Negative errno. */
int upper_fd(int fd);

/* Opens a directory beneath for reading; never through a link. Negative errno. */
int upper_open_below(int dirfd, const char *name);

/* Makes fs/ with its mark, work/ and index/, where they are missing. Only system calls: it is called in a forked child. */
int upper_layout(int root_fd);

/* Makes and locks the lock file, with our pid in it. The descriptor, or -EBUSY. */
int upper_lock(int root_fd);

/* Layout, lock and format of a new directory, the format last. */
int upper_initialise(struct upper *upper);

/* Opens fs, work and index of the upper whose root_fd is open. */
int upper_open_parts(struct upper *upper);

/* Empties the directory; KEEP, which may be NULL, is removed after all others. */
int upper_empty(int dirfd, const char *keep);

/* A tmpfs of its own into root_fd and view_fd. */
int upper_tmpfs(struct upper *upper);

/* A temporary directory into root_fd and path. */
int upper_temporary(struct upper *upper, char *why, size_t size);

#endif
