/*
 * env.h - what handlers work with: the view of files, and the guest's own state in it.
 *
 * The context of a handler is a struct env; call->state is a struct task_env, made by env_task() when the task is first seen.
 */
#ifndef INTERPOSE_SYSCALLS_ENV_H
#define INTERPOSE_SYSCALLS_ENV_H

#include <limits.h>

#include "arch/call.h"
#include "vfs/vfs.h"

struct env;

/* The end of a call whose verdict had want_end, with its result; -ESRCH when the task died in it. */
typedef void call_ended(struct env *env, struct call *call, int64_t result);

struct env {
	struct vfs *vfs;
	struct vfs_fs *first; /* of the first guest */
	int work_fd;          /* a directory of ours for what an exec needs, see handlers/exec.c */
	unsigned serial;
	unsigned char scratch[2 * PATH_MAX]; /* for what an answer writes: valid until the next call */
};

struct exec_plan; /* handlers/exec.c */

struct task_env {
	struct vfs_fs *fs;        /* shared by CLONE_FS */
	struct vfs_cred cred;
	bool cred_known;
	call_ended *end;          /* of the call under way */
	struct vfs_place place;   /* kept until then */
	int fd;                   /* kept until then; -1 */
	mode_t mode;              /* kept until then */
	void *data;               /* allocated, kept until then */
	struct exec_plan *exec;   /* execve under way */
	int pidfd;                /* of its process; -1: env_pidfd() */
	void *view;               /* the session's */
};

/* Of a task, made on first use; NULL on ENOMEM. PARENT: NULL for the first one, or for one whose parent is not known. SHARE_FS: CLONE_FS. */
struct task_env *env_task(struct env *env, struct call *call, const struct call *parent, bool share_fs);
void env_task_free(struct env *env, struct call *call);

/* The call has ended: task_env.end is told, and what was kept is let go. */
void env_call_end(struct env *env, struct call *call, int64_t result);

/* Who makes the call. 0 or a negative errno. */
int env_who(struct env *env, struct call *call, struct vfs_who *who);

/* A pidfd of its process, kept; or a negative errno. After env_who(). */
int env_pidfd(struct call *call);

/* Its credentials may have changed: they are read again when next needed. */
void env_cred_changed(struct call *call);

/* --- arguments -------------------------------------------------------------------------------------------------------------- */

/* The path at ADDR. -EFAULT, -ENAMETOOLONG. */
int env_path(struct call *call, uint64_t addr, char path[PATH_MAX]);

/* Reads the path at ADDR and walks from DIRFD (AT_FDCWD: the working directory), as *at calls do. An empty path with VFS_EMPTY is
   the descriptor itself. The place is to be ended whatever is returned. */
int env_walk(const struct vfs_who *who, struct call *call, int dirfd, uint64_t addr, unsigned flags, struct vfs_place *place);

/* The same of a path that was read. */
int env_walk_path(const struct vfs_who *who, int dirfd, const char *path, unsigned flags, struct vfs_place *place);

/* VALUE for the guest; WRITES are added by env_write(). */
struct verdict env_answer(int64_t value);

/* The answer also writes LEN bytes of DATA at ADDR; DATA must stay until the next call (env->scratch, static). */
void env_write(struct verdict *verdict, uint64_t addr, const void *data, size_t len);

/* A big copy-up is under way: the call waits (-EINPROGRESS); otherwise the answer is ERROR. */
struct verdict env_error(int error);

/* The same, and the place is ended. */
struct verdict env_end_place(struct env *env, struct vfs_place *place, int error);

/* Flags of the guest's descriptor as open(2) has them, O_CLOEXEC as it is now; -EBADF. */
int env_fd_flags(const struct call *call, int fd);

/* Whether the guest's descriptor was opened with O_PATH; -EBADF. */
int env_fd_is_path(const struct call *call, int fd);

#endif
