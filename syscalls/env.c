#include "syscalls/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int copy_cred(struct vfs_cred *to, const struct vfs_cred *from)
{
	*to = *from;
	to->groups = NULL;
	if (!from->group_count)
		return 0;
	to->groups = malloc(from->group_count * sizeof(*to->groups));
	if (!to->groups)
		return -ENOMEM;
	memcpy(to->groups, from->groups, from->group_count * sizeof(*to->groups));
	return 0;
}

static void inherit(struct env *env, struct task_env *task, const struct task_env *from, bool share_fs)
{
	if (!from) {
		task->fs = vfs_fs_copy(env->vfs, env->first);
		return;
	}
	task->fs = share_fs ? vfs_fs_ref(from->fs) : vfs_fs_copy(env->vfs, from->fs);
	if (from->cred_known)
		task->cred_known = copy_cred(&task->cred, &from->cred) == 0;
}

struct task_env *env_task(struct env *env, struct call *call, const struct call *parent, bool share_fs)
{
	struct task_env *task = call->state;

	if (task)
		return task;
	task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	task->fd = task->pidfd = -1;
	task->place = VFS_PLACE_NONE;
	if (env->vfs) {
		inherit(env, task, parent ? parent->state : NULL, share_fs);
		if (!task->fs) {
			free(task);
			return NULL;
		}
	}
	call->state = task;
	return task;
}

void env_call_end(struct env *env, struct call *call, int64_t result)
{
	struct task_env *task = call->state;
	call_ended *end = task ? task->end : NULL;

	if (!end)
		return;
	task->end = NULL;
	end(env, call, result);
	if (env->vfs)
		vfs_place_end(env->vfs, &task->place);
	if (task->fd >= 0)
		close(task->fd);
	task->fd = -1;
	free(task->data);
	task->data = NULL;
}

void env_task_free(struct env *env, struct call *call)
{
	struct task_env *task = call->state;

	if (!task)
		return;
	env_call_end(env, call, -ESRCH);
	if (env->vfs)
		vfs_fs_unref(env->vfs, task->fs);
	if (task->pidfd >= 0)
		close(task->pidfd);
	cred_free(&task->cred);
	free(task);
	call->state = NULL;
}

/* Only a root's guests can have other credentials than ours. */
static const struct vfs_cred *cred_now(struct env *env, struct call *call, struct task_env *task)
{
	const struct vfs_cred *own = vfs_own_cred(env->vfs);

	if (own->uid != 0)
		return own;
	if (!task->cred_known) {
		cred_free(&task->cred);
		task->cred_known = cred_of(&task->cred, call->tid, own) == 0;
	}
	call->foreign = task->cred_known && task->cred.foreign;
	return !task->cred_known ? NULL : task->cred.foreign ? &task->cred : own;
}

void env_cred_changed(struct call *call)
{
	struct task_env *task = call->state;

	if (task)
		task->cred_known = false;
}

int env_who(struct env *env, struct call *call, struct vfs_who *who)
{
	struct task_env *task = env_task(env, call, NULL, false);

	if (!task)
		return -ENOMEM;
	*who = (struct vfs_who){ .vfs = env->vfs, .fs = task->fs, .tid = call->tid, .tgid = call->tgid, .pidfd = task->pidfd };
	who->cred = cred_now(env, call, task);
	return who->cred ? 0 : -ESRCH;
}

int env_pidfd(struct call *call)
{
	struct task_env *task = call->state;

	if (task->pidfd < 0) {
		task->pidfd = syscall(SYS_pidfd_open, call->tgid, 0);
		if (task->pidfd < 0)
			return -errno;
	}
	return task->pidfd;
}

/* --- arguments ---------------------------------------------------------------------------------------------------------------- */

int env_path(struct call *call, uint64_t addr, char path[PATH_MAX])
{
	ssize_t n = guest_read_string(call, addr, path, PATH_MAX);

	return n < 0 ? n : 0;
}

int env_walk_path(const struct vfs_who *who, int dirfd, const char *path, unsigned flags, struct vfs_place *place)
{
	struct vfs_place start = VFS_PLACE_NONE;
	int error;

	*place = VFS_PLACE_NONE;
	if (path[0] == '/' || dirfd == AT_FDCWD)
		return vfs_walk(who, NULL, path, flags, place);
	if (!*path && !(flags & VFS_EMPTY))
		return -ENOENT;
	error = vfs_walk_fd(who, dirfd, &start);
	if (error < 0)
		return error;
	if (*path)
		error = vfs_walk(who, &start, path, flags, place);
	else {
		*place = start;
		return 0;
	}
	vfs_place_end(who->vfs, &start);
	return error;
}

int env_walk(const struct vfs_who *who, struct call *call, int dirfd, uint64_t addr, unsigned flags, struct vfs_place *place)
{
	char path[PATH_MAX];
	int error = env_path(call, addr, path);

	*place = VFS_PLACE_NONE;
	return error < 0 ? error : env_walk_path(who, dirfd, path, flags, place);
}

struct verdict env_answer(int64_t value)
{
	return verdict_answer(value);
}

void env_write(struct verdict *verdict, uint64_t addr, const void *data, size_t len)
{
	verdict->write[verdict->writes++] = (struct verdict_write){ addr, data, len };
}

struct verdict env_error(int error)
{
	return error == -EINPROGRESS ? verdict_wait() : verdict_answer(error);
}

struct verdict env_end_place(struct env *env, struct vfs_place *place, int error)
{
	vfs_place_end(env->vfs, place);
	return env_error(error);
}

int env_fd_flags(const struct call *call, int fd)
{
	char path[48], line[64];
	unsigned flags = 0;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", call->tid, fd);
	info = fopen(path, "re");
	if (!info)
		return -EBADF;
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	fclose(info);
	return flags & INT_MAX;
}

int env_fd_is_path(const struct call *call, int fd)
{
	int flags = env_fd_flags(call, fd);

	return flags < 0 ? flags : (flags & O_PATH) != 0;
}
