#include "syscalls/handlers/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIDFD_OF_THREAD = O_EXCL, STRUCT_MOST = 4096 }; /* PIDFD_THREAD of linux/pidfd.h, 6.9 */

/* A thread may have a table of descriptors of its own: unshare(CLONE_FILES); and its leader may have ended. */
static int dup_of_thread(pid_t tid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, tid, PIDFD_OF_THREAD), own;

	if (pidfd < 0)
		return -errno;
	own = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (own < 0)
		own = -errno;
	close(pidfd);
	return own;
}

int ask_dup(struct call *call, int fd)
{
	int pidfd, own;

	if (fd < 0)
		return -EBADF;
	if (call->tid != call->tgid) {
		own = dup_of_thread(call->tid, fd);
		if (own != -EINVAL) /* a kernel that has no descriptors of threads */
			return own;
	}
	pidfd = env_pidfd(call);
	if (pidfd < 0)
		return pidfd;
	own = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	return own < 0 ? -errno : own;
}

unsigned ask_walk_flags(int at_flags)
{
	return (at_flags & AT_SYMLINK_NOFOLLOW ? 0 : VFS_FOLLOW) | (at_flags & AT_EMPTY_PATH ? VFS_EMPTY : 0);
}

int ask_walk(struct env *env, struct call *call, int dirfd, uint64_t addr, unsigned flags, struct vfs_who *who,
             struct vfs_place *place)
{
	int error = env_who(env, call, who);

	*place = VFS_PLACE_NONE;
	return error < 0 ? error : env_walk(who, call, dirfd, addr, flags, place);
}

int ask_walk_fd(struct env *env, struct call *call, int fd, struct vfs_who *who, struct vfs_place *place)
{
	int error = env_who(env, call, who);

	*place = VFS_PLACE_NONE;
	if (error == 0)
		error = env_fd_is_path(call, fd);
	if (error != 0)
		return error < 0 ? error : -EBADF;
	return vfs_walk_fd(who, fd, place);
}

int ask_struct(struct call *call, uint64_t addr, uint64_t size, size_t least, void *known, size_t known_size)
{
	unsigned char raw[STRUCT_MOST];
	int error;

	if (size < least)
		return -EINVAL;
	if (size > sizeof(raw))
		return -E2BIG;
	error = guest_read(call, addr, raw, size);
	if (error < 0)
		return error;
	for (size_t i = known_size; i < size; i++)
		if (raw[i])
			return -E2BIG;
	memset(known, 0, known_size);
	memcpy(known, raw, size < known_size ? size : known_size);
	return 0;
}

struct ask_link ask_link(int fd)
{
	struct ask_link link;

	snprintf(link.text, sizeof(link.text), "/proc/%d/fd/%d", getpid(), fd);
	return link;
}

struct verdict ask_keep(struct call *call, struct verdict verdict, int fd, call_ended *end)
{
	struct task_env *task = call->state;

	task->fd = fd;
	task->end = end;
	verdict.want_end = true;
	return verdict;
}
