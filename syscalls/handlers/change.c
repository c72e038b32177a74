/* change.c - the calls that make, remove, rename, link, and change attributes; and those of a process's own view. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "syscalls/env.h"
#include "syscalls/handlers/handlers.h"
#include "syscalls/ids.h"

/* --- one path ------------------------------------------------------------------------------------------------------------------- */

/* What a call does with its place; ARGS are those after the path. */
typedef int place_act(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args);

static struct verdict at_path(struct env *env, struct call *call, int dirfd, unsigned path, unsigned flags, place_act *act)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_who who;
	int error = env_who(env, call, &who);

	if (error == 0)
		error = env_walk(&who, call, dirfd, call->args[path], flags, &place);
	if (error == 0)
		error = act(&who, &place, call->args + path + 1);
	return env_end_place(env, &place, error);
}

static int act_mkdir(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	return vfs_mkdir(who, place, args[0] & 07777);
}

/* linux/kdev_t.h: new_decode_dev(). */
static int act_mknod(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	return vfs_mknod(who, place, args[0] & (S_IFMT | 07777), (uint32_t)args[1]);
}

static int act_unlink(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	(void)args;
	return vfs_unlink(who, place);
}

static int act_rmdir(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	(void)args;
	return vfs_rmdir(who, place);
}

static int act_chmod(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	return vfs_chmod(who, place, args[0] & 07777);
}

static int act_chown(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	return vfs_chown(who, place, (uint32_t)args[0], (uint32_t)args[1]);
}

/* The 16-bit calls: 0xffff is -1. */
static int act_chown16(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	uint16_t uid = (uint16_t)args[0], gid = (uint16_t)args[1];

	return vfs_chown(who, place, uid == UINT16_MAX ? (uid_t)-1 : uid, gid == UINT16_MAX ? (gid_t)-1 : gid);
}

static int act_chdir(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	(void)args;
	return vfs_chdir(who, place);
}

static int act_chroot(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	(void)args;
	return vfs_chroot(who, place);
}

struct verdict sys_mkdir(void *context, struct call *call)
{
	bool at = call->id == CALL_mkdirat;

	return at_path(context, call, at ? (int)call->args[0] : AT_FDCWD, at, VFS_CREATE, act_mkdir);
}

struct verdict sys_mknod(void *context, struct call *call)
{
	bool at = call->id == CALL_mknodat;
	mode_t type = call->args[at + 1] & S_IFMT;

	/* fs/namei.c: may_mknod() */
	if (type && type != S_IFREG && type != S_IFIFO && type != S_IFSOCK && type != S_IFCHR && type != S_IFBLK)
		return verdict_answer(type == S_IFDIR ? -EPERM : -EINVAL);
	return at_path(context, call, at ? (int)call->args[0] : AT_FDCWD, at, VFS_CREATE, act_mknod);
}

struct verdict sys_rmdir(void *context, struct call *call)
{
	return at_path(context, call, AT_FDCWD, 0, VFS_CREATE, act_rmdir);
}

struct verdict sys_unlink(void *context, struct call *call)
{
	return at_path(context, call, AT_FDCWD, 0, VFS_CREATE, act_unlink);
}

struct verdict sys_unlinkat(void *context, struct call *call)
{
	int flags = (int)call->args[2];

	if (flags & ~AT_REMOVEDIR)
		return verdict_answer(-EINVAL);
	return at_path(context, call, (int)call->args[0], 1, VFS_CREATE, flags ? act_rmdir : act_unlink);
}

struct verdict sys_chdir(void *context, struct call *call)
{
	return at_path(context, call, AT_FDCWD, 0, VFS_FOLLOW, act_chdir);
}

struct verdict sys_chroot(void *context, struct call *call)
{
	return at_path(context, call, AT_FDCWD, 0, VFS_FOLLOW, act_chroot);
}

/* AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH as flags of a walk; -EINVAL for others. */
static int at_flags(int flags, unsigned *walk)
{
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	*walk = (flags & AT_SYMLINK_NOFOLLOW ? 0 : VFS_FOLLOW) | (flags & AT_EMPTY_PATH ? VFS_EMPTY : 0);
	return 0;
}

struct verdict sys_chmod(void *context, struct call *call)
{
	bool at = call->id != CALL_chmod;
	unsigned walk = VFS_FOLLOW;

	if (call->id == CALL_fchmodat2 && at_flags((int)call->args[3], &walk) < 0)
		return verdict_answer(-EINVAL);
	return at_path(context, call, at ? (int)call->args[0] : AT_FDCWD, at, walk, act_chmod);
}

struct verdict sys_chown(void *context, struct call *call)
{
	switch (call->id) {
	case CALL_lchown:
	case CALL_lchown32:
		return at_path(context, call, AT_FDCWD, 0, 0, act_chown);
	case CALL_chown16:
		return at_path(context, call, AT_FDCWD, 0, VFS_FOLLOW, act_chown16);
	case CALL_lchown16:
		return at_path(context, call, AT_FDCWD, 0, 0, act_chown16);
	default:
		return at_path(context, call, AT_FDCWD, 0, VFS_FOLLOW, act_chown);
	}
}

struct verdict sys_fchownat(void *context, struct call *call)
{
	unsigned walk;

	if (at_flags((int)call->args[4], &walk) < 0)
		return verdict_answer(-EINVAL);
	return at_path(context, call, (int)call->args[0], 1, walk, act_chown);
}

/* --- a descriptor ---------------------------------------------------------------------------------------------------------------- */

static struct verdict at_fd(struct env *env, struct call *call, place_act *act, bool path_allowed)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_who who;
	int fd = (int)call->args[0], error = env_who(env, call, &who);

	if (error == 0 && !path_allowed) {
		error = env_fd_is_path(call, fd);
		error = error > 0 ? -EBADF : error;
	}
	if (error == 0)
		error = vfs_walk_fd(&who, fd, &place);
	if (error == 0)
		error = act(&who, &place, call->args + 1);
	return env_end_place(env, &place, error);
}

struct verdict sys_fchdir(void *context, struct call *call)
{
	return at_fd(context, call, act_chdir, true);
}

struct verdict sys_fchmod(void *context, struct call *call)
{
	return at_fd(context, call, act_chmod, false);
}

struct verdict sys_fchown(void *context, struct call *call)
{
	return at_fd(context, call, call->id == CALL_fchown16 ? act_chown16 : act_chown, false);
}

/* --- two paths -------------------------------------------------------------------------------------------------------------------- */

struct pair { int dirfd[2]; uint64_t addr[2]; unsigned walk[2]; };

/* Both are read before either is walked: the kernel copies them first, too, and tells of the second when it comes to it. */
static int walk_pair(const struct vfs_who *who, struct call *call, const struct pair *pair, struct vfs_place place[2])
{
	char paths[2][PATH_MAX];
	int error = 0, read[2];

	for (int i = 0; i < 2; i++)
		read[i] = env_path(call, pair->addr[i], paths[i]);
	for (int i = 0; error == 0 && i < 2; i++) {
		if (read[i] < 0)
			return read[i];
		error = env_walk_path(who, pair->dirfd[i], paths[i], pair->walk[i], &place[i]);
		if (error == 0 && !(pair->walk[i] & VFS_CREATE) && !vfs_exists(&place[i]))
			error = -ENOENT;
	}
	return error;
}

static struct verdict at_pair(struct env *env, struct call *call, const struct pair *pair,
                              int (*act)(const struct vfs_who *who, struct vfs_place *place, unsigned flags), unsigned flags)
{
	struct vfs_place place[2] = { VFS_PLACE_NONE, VFS_PLACE_NONE };
	struct vfs_who who;
	int error = env_who(env, call, &who);

	if (error == 0)
		error = walk_pair(&who, call, pair, place);
	if (error == 0)
		error = act(&who, place, flags);
	vfs_place_end(env->vfs, &place[0]);
	return env_end_place(env, &place[1], error);
}

static int act_rename(const struct vfs_who *who, struct vfs_place *place, unsigned flags)
{
	return vfs_rename(who, &place[0], &place[1], flags);
}

static int act_link(const struct vfs_who *who, struct vfs_place *place, unsigned flags)
{
	(void)flags;
	return vfs_link(who, &place[0], &place[1]);
}

struct verdict sys_rename(void *context, struct call *call)
{
	const uint64_t *args = call->args;
	struct pair pair = { { AT_FDCWD, AT_FDCWD }, { args[0], args[1] }, { VFS_CREATE, VFS_CREATE } };

	unsigned flags = call->id == CALL_renameat2 ? (unsigned)args[4] : 0;

	/* fs/namei.c: do_renameat2() */
	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT) ||
	    (flags & RENAME_EXCHANGE && flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
		return verdict_answer(-EINVAL);
	if (call->id != CALL_rename)
		pair = (struct pair){ { (int)args[0], (int)args[2] }, { args[1], args[3] }, { VFS_CREATE, VFS_CREATE } };
	return at_pair(context, call, &pair, act_rename, flags);
}

struct verdict sys_link(void *context, struct call *call)
{
	const uint64_t *args = call->args;
	struct pair pair = { { AT_FDCWD, AT_FDCWD }, { args[0], args[1] }, { 0, VFS_CREATE } };

	if (call->id == CALL_linkat) {
		int flags = (int)args[4];

		if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
			return verdict_answer(-EINVAL);
		pair = (struct pair){ { (int)args[0], (int)args[2] }, { args[1], args[3] },
		                      { (flags & AT_SYMLINK_FOLLOW ? VFS_FOLLOW : 0) | (flags & AT_EMPTY_PATH ? VFS_EMPTY : 0), VFS_CREATE } };
	}
	return at_pair(context, call, &pair, act_link, 0);
}

struct verdict sys_symlink(void *context, struct call *call)
{
	bool at = call->id == CALL_symlinkat;
	struct vfs_place place = VFS_PLACE_NONE;
	struct env *env = context;
	char target[PATH_MAX];
	struct vfs_who who;
	int error = env_who(env, call, &who);

	if (error == 0)
		error = env_path(call, call->args[0], target);
	if (error == 0 && !*target)
		error = -ENOENT;
	if (error == 0)
		error = env_walk(&who, call, at ? (int)call->args[1] : AT_FDCWD, call->args[at ? 2 : 1], VFS_CREATE, &place);
	if (error == 0)
		error = vfs_symlink(&who, &place, target);
	return env_end_place(env, &place, error);
}

/* --- lengths and times --------------------------------------------------------------------------------------------------------------- */

static int act_truncate(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	return vfs_truncate(who, place, (int64_t)args[0]);
}

static int act_truncate32(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	return vfs_truncate(who, place, (int32_t)args[0]);
}

static int act_truncate64(const struct vfs_who *who, struct vfs_place *place, const uint64_t *args)
{
	return vfs_truncate(who, place, (int64_t)((args[1] & UINT32_MAX) << 32 | (args[0] & UINT32_MAX)));
}

/* The 32-bit ABI has the length in one word, truncate64 in two. */
struct verdict sys_truncate(void *context, struct call *call)
{
	place_act *act = call->arch->word == 8 ? act_truncate : call->id == CALL_truncate64 ? act_truncate64 : act_truncate32;
	bool negative = act == act_truncate ? (int64_t)call->args[1] < 0 : (int32_t)call->args[act == act_truncate64 ? 2 : 1] < 0;

	if (negative)
		return verdict_answer(-EINVAL);
	return at_path(context, call, AT_FDCWD, 0, VFS_FOLLOW, act);
}

/* LONG_SIZE: of each of the four numbers. UNIT: nanoseconds in one of the second of a pair; 0: there are two seconds only. */
static int read_times(struct call *call, uint64_t addr, unsigned long_size, long unit, struct timespec times[2])
{
	int64_t raw[4] = { 0 };
	int32_t raw32[4] = { 0 };
	unsigned count = unit ? 4 : 2;
	int error = long_size == 8 ? guest_read(call, addr, raw, count * 8) : guest_read(call, addr, raw32, count * 4);

	if (error < 0)
		return error;
	for (unsigned i = 0; long_size == 4 && i < count; i++)
		raw[i] = raw32[i];
	if (!unit) {
		times[0] = (struct timespec){ raw[0], 0 };
		times[1] = (struct timespec){ raw[1], 0 };
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		if (unit != 1 && (raw[2 * i + 1] < 0 || raw[2 * i + 1] > 999999))
			return -EINVAL;
		times[i] = (struct timespec){ raw[2 * i], raw[2 * i + 1] * unit };
	}
	return 0;
}

static struct verdict set_times(struct env *env, struct call *call, int dirfd, uint64_t path, unsigned walk, const struct timespec *times)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_who who;
	int error = env_who(env, call, &who);

	if (error == 0)
		error = path ? env_walk(&who, call, dirfd, path, walk, &place) : vfs_walk_fd(&who, dirfd, &place);
	if (error == 0)
		error = vfs_utimens(&who, &place, times);
	return env_end_place(env, &place, error);
}

struct verdict sys_utime(void *context, struct call *call)
{
	struct timespec times[2];
	uint64_t addr = call->args[1];
	int error = addr ? read_times(call, addr, call->arch->word, 0, times) : 0;

	return error < 0 ? verdict_answer(error) : set_times(context, call, AT_FDCWD, call->args[0], VFS_FOLLOW, addr ? times : NULL);
}

/* A NULL path of futimesat and utimensat is the descriptor itself. */
struct verdict sys_utimes(void *context, struct call *call)
{
	bool at = call->id == CALL_futimesat;
	struct timespec times[2];
	uint64_t addr = call->args[1 + at];
	int error = addr ? read_times(call, addr, call->arch->word, 1000, times) : 0;

	if (error < 0)
		return verdict_answer(error);
	if (!at && !call->args[0])
		return verdict_answer(-EFAULT);
	return set_times(context, call, at ? (int)call->args[0] : AT_FDCWD, call->args[at], VFS_FOLLOW, addr ? times : NULL);
}

struct verdict sys_utimensat(void *context, struct call *call)
{
	unsigned size = call->id == CALL_utimensat ? call->arch->word : 8, walk = 0;
	int dirfd = (int)call->args[0];
	struct timespec times[2];
	uint64_t path = call->args[1], addr = call->args[2];
	int error = addr ? read_times(call, addr, size, 1, times) : 0;

	if (error == 0 && addr && times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT)
		return verdict_answer(0);
	if (error == 0)
		error = at_flags((int)call->args[3], &walk);
	if (error == 0 && !path && dirfd != AT_FDCWD && call->args[3])
		error = -EINVAL;
	if (error == 0 && !path && dirfd == AT_FDCWD)
		error = -EFAULT;
	if (error == 0 && !path && (error = env_fd_is_path(call, dirfd)) > 0)
		error = -EBADF;
	return error < 0 ? verdict_answer(error) : set_times(context, call, dirfd, path, walk, addr ? times : NULL);
}

/* --- what processes share --------------------------------------------------------------------------------------------------------------- */

struct verdict sys_umask(void *context, struct call *call)
{
	struct task_env *task = env_task(context, call, NULL, false);

	if (task)
		task->fs->umask = call->args[0] & 0777;
	return verdict_forward();
}

static void unshare_end(struct env *env, struct call *call, int64_t result)
{
	struct task_env *task = call->state;
	struct vfs_fs *copy = result == 0 && task->fs->refs > 1 ? vfs_fs_copy(env->vfs, task->fs) : NULL;

	if (!copy)
		return;
	vfs_fs_unref(env->vfs, task->fs);
	task->fs = copy;
}

struct verdict sys_unshare(void *context, struct call *call)
{
	struct task_env *task = env_task(context, call, NULL, false);
	struct verdict verdict = verdict_forward();

	if (task) { /* the rule has seen CLONE_FS */
		task->end = unshare_end;
		verdict.want_end = true;
	}
	return verdict;
}

static void cred_end(struct env *env, struct call *call, int64_t result)
{
	(void)env, (void)result;
	env_cred_changed(call);
}

/* Every call that changes ids, groups or capabilities of the task. */
struct verdict sys_set_cred(void *context, struct call *call)
{
	struct task_env *task = env_task(context, call, NULL, false);
	struct verdict verdict = verdict_forward();

	if (task) {
		task->end = cred_end;
		verdict.want_end = true;
	}
	return verdict;
}

/* --- locks ----------------------------------------------------------------------------------------------------------------------------- */

/*
 * flock, and fcntl with a command that locks. A lock on the host's own file would be lost when it is copied up, and would hold up
 * programs outside meanwhile: the file is copied up before. Who swaps the descriptor between this and the lock has locked another
 * file, which harms nobody.
 */
struct verdict sys_lock(void *context, struct call *call)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct env *env = context;
	struct vfs_who who;
	int fd, error = env_who(env, call, &who);

	if (error == 0 && vfs_walk_fd(&who, (int)call->args[0], &place) == 0) {
		fd = place.node && !S_ISDIR(vfs_type(&place)) ? vfs_hold(&who, &place, VFS_CHANGE) : -ENOENT;
		if (fd >= 0)
			close(fd);
		vfs_place_end(env->vfs, &place);
		if (fd == -EINPROGRESS)
			return verdict_wait();
	}
	return verdict_forward();
}
