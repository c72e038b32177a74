/* ask.h - what the handlers that ask about files share: stat.c, xattr.c, list.c, handle.c, notify.c, socket_path.c. */
#ifndef INTERPOSE_SYSCALLS_HANDLERS_ASK_H
#define INTERPOSE_SYSCALLS_HANDLERS_ASK_H

#include "syscalls/env.h"

/* A descriptor of ours for the same open file as the guest's FD: they share position and flags. The caller's to close; -EBADF;
   -EPERM where the process may not be looked into. After env_who(). */
int ask_dup(struct call *call, int fd);

/* AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH as flags of a walk. */
unsigned ask_walk_flags(int at_flags);

/* Who makes the call, and where DIRFD with the path at ADDR leads. The place is to be ended whatever is returned. */
int ask_walk(struct env *env, struct call *call, int dirfd, uint64_t addr, unsigned flags, struct vfs_who *who,
             struct vfs_place *place);

/* The same of the guest's descriptor FD, which is not one of O_PATH. */
int ask_walk_fd(struct env *env, struct call *call, int fd, struct vfs_who *who, struct vfs_place *place);

/* Copies a structure that newer kernels may know to be longer (copy_struct_from_user): SIZE bytes at ADDR, of which KNOWN are kept.
   -EINVAL below LEAST bytes, -E2BIG where what is not known is not zero. */
int ask_struct(struct call *call, uint64_t addr, uint64_t size, size_t least, void *known, size_t known_size);

/* The path by which a guest reaches our descriptor FD: it names exactly that object. */
struct ask_link { char text[48]; };
struct ask_link ask_link(int fd);

/* VERDICT is a rewritten call that goes by a link to FD, which is kept until it has ended. */
struct verdict ask_keep(struct call *call, struct verdict verdict, int fd, call_ended *end);

#endif
