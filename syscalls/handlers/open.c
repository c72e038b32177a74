/* open.c - open, creat, openat, openat2. Flags as fs/open.c: build_open_flags(). */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "syscalls/env.h"
#include "syscalls/handlers/handlers.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

enum {
	TMPFILE_BIT = O_TMPFILE & ~O_DIRECTORY,
	PATH_FLAGS = O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC,
	KNOWN_FLAGS = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_ASYNC | O_DIRECT |
	              O_LARGEFILE | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE,
	LARGEFILE_BIT = 0100000, /* asm-generic; libc's O_LARGEFILE is 0 on 64 bits */
	HOW_SIZE = 24, HOW_MOST = 4096
};

/* --- after the guest's own open ------------------------------------------------------------------------------------------------ */

/* A file that was made unreadable by its own mode has been opened: now it gets the mode. */
static void mode_end(struct env *env, struct call *call, int64_t result)
{
	struct task_env *task = call->state;
	char path[32];

	(void)env, (void)result;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", task->fd);
	chmod(path, task->mode);
}

/* A new pseudo-terminal belongs to the guest: its other end may be opened. */
static void pty_end(struct env *env, struct call *call, int64_t result)
{
	unsigned number;
	int pidfd = env_pidfd(call), fd;

	if (result < 0 || pidfd < 0)
		return;
	fd = syscall(SYS_pidfd_getfd, pidfd, (int)result, 0);
	if (fd < 0)
		return;
	if (ioctl(fd, TIOCGPTN, &number) == 0)
		dev_pty_made(env->vfs, number);
	close(fd);
}

static bool is_ptmx(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2);
}

static void end_with(struct call *call, struct verdict *verdict, call_ended *end)
{
	struct task_env *task = call->state;

	task->end = end;
	verdict->want_end = true;
}

static struct verdict give(struct env *env, struct call *call, const struct vfs_who *who, struct vfs_place *place,
                           const struct vfs_open *open)
{
	struct verdict verdict = { .kind = VERDICT_ANSWER_FD, .fd = open->fd, .fd_flags = open->flags };
	struct task_env *task = call->state;

	verdict.foreign = who->cred->foreign;
	if (open->chmod_after >= 0) {
		task->fd = fcntl(open->fd, F_DUPFD_CLOEXEC, 3);
		task->mode = open->chmod_after;
		end_with(call, &verdict, mode_end);
	} else if (is_ptmx(open->fd)) {
		end_with(call, &verdict, pty_end);
	}
	vfs_opened_dir(env->vfs, place);
	return verdict;
}

/* --- the calls -------------------------------------------------------------------------------------------------------------------- */

static unsigned walk_flags(int flags, uint64_t resolve)
{
	unsigned walk = (flags & O_NOFOLLOW) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ? 0 : VFS_FOLLOW;

	if (flags & O_CREAT)
		walk |= VFS_NO_SLASH;
	if (resolve & RESOLVE_NO_XDEV)
		walk |= VFS_NO_XDEV;
	if (resolve & RESOLVE_NO_MAGICLINKS)
		walk |= VFS_NO_MAGICLINKS;
	if (resolve & RESOLVE_NO_SYMLINKS)
		walk |= VFS_NO_SYMLINKS;
	if (resolve & RESOLVE_BENEATH)
		walk |= VFS_BENEATH;
	if (resolve & RESOLVE_IN_ROOT)
		walk |= VFS_IN_ROOT;
	return walk;
}

/* 0 or a negative errno; FLAGS are what open(2) would make of them. */
static int check_flags(int *flags)
{
	if (*flags & O_PATH)
		*flags &= PATH_FLAGS;
	if (*flags & TMPFILE_BIT) {
		if ((*flags & (O_TMPFILE | O_CREAT)) != O_TMPFILE || (*flags & O_ACCMODE) == O_RDONLY)
			return -EINVAL;
	} else if ((*flags & (O_DIRECTORY | O_CREAT)) == (O_DIRECTORY | O_CREAT)) {
		return -EINVAL;
	}
	return 0;
}

static struct verdict open_path(struct env *env, struct call *call, int dirfd, uint64_t addr, int flags, mode_t mode, uint64_t resolve)
{
	struct vfs_open open = { .flags = flags, .mode = mode & 07777 };
	struct vfs_place place = VFS_PLACE_NONE;
	struct verdict verdict;
	struct vfs_who who;
	int error = env_who(env, call, &who);

	if (error == 0)
		error = check_flags(&open.flags);
	if (error == 0)
		error = env_walk(&who, call, dirfd, addr, walk_flags(open.flags, resolve), &place);
	if (error == 0)
		error = vfs_open(&who, &place, &open);
	if (error < 0)
		return env_end_place(env, &place, error);
	verdict = give(env, call, &who, &place, &open);
	vfs_place_end(env->vfs, &place);
	return verdict;
}

struct verdict sys_open(void *context, struct call *call)
{
	return open_path(context, call, AT_FDCWD, call->args[0], (int)call->args[1] & (KNOWN_FLAGS | LARGEFILE_BIT), call->args[2], 0);
}

struct verdict sys_creat(void *context, struct call *call)
{
	return open_path(context, call, AT_FDCWD, call->args[0], O_CREAT | O_WRONLY | O_TRUNC, call->args[1], 0);
}

struct verdict sys_openat(void *context, struct call *call)
{
	return open_path(context, call, (int)call->args[0], call->args[1], (int)call->args[2] & (KNOWN_FLAGS | LARGEFILE_BIT),
	                 call->args[3], 0);
}

/* fs/open.c: openat2(), lib: copy_struct_from_user(). */
static int read_how(struct call *call, struct open_how *how)
{
	unsigned char raw[HOW_MOST];
	uint64_t size = call->args[3];
	int error;

	if (size < HOW_SIZE)
		return -EINVAL;
	if (size > HOW_MOST)
		return -E2BIG;
	error = guest_read(call, call->args[2], raw, size);
	if (error < 0)
		return error;
	for (uint64_t i = HOW_SIZE; i < size; i++)
		if (raw[i])
			return -E2BIG;
	memcpy(how, raw, HOW_SIZE);
	return 0;
}

static int check_how(const struct open_how *how)
{
	const uint64_t known = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT |
	                       RESOLVE_CACHED;

	if (how->flags & ~(uint64_t)(KNOWN_FLAGS | LARGEFILE_BIT) || how->resolve & ~known)
		return -EINVAL;
	if ((how->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) == (RESOLVE_BENEATH | RESOLVE_IN_ROOT))
		return -EINVAL;
	if (how->flags & (O_CREAT | TMPFILE_BIT) ? how->mode & ~(uint64_t)07777 : how->mode != 0)
		return -EINVAL;
	if (how->flags & O_PATH && how->flags & ~(uint64_t)PATH_FLAGS)
		return -EINVAL;
	/* "with no blocking": nothing is cached so well that we could promise it */
	return how->resolve & RESOLVE_CACHED ? -EAGAIN : 0;
}

struct verdict sys_openat2(void *context, struct call *call)
{
	struct open_how how;
	int error = read_how(call, &how);

	if (error == 0)
		error = check_how(&how);
	if (error < 0)
		return verdict_answer(error);
	return open_path(context, call, (int)call->args[0], call->args[1], (int)how.flags, how.mode, how.resolve);
}
