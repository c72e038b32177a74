/*
 * stat.c - the calls that ask about one path or descriptor: stat and its kin, access, readlink, statfs, getcwd.
 *
 * All are answered. fstat and fstatfs pass: a descriptor is the object. What libc makes of fstat, a call with an empty path, is
 * told from the descriptor as well, so that it costs one call and agrees with fstat.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "arch/abi.h"
#include "syscalls/handlers/ask.h"
#include "syscalls/handlers/paths_ask.h"
#include "syscalls/ids.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif
#ifndef STATX__RESERVED
#define STATX__RESERVED 0x80000000U
#endif

enum { STAT_FLAGS = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE };

/* --- stat ---------------------------------------------------------------------------------------------------------- */

struct question {
	int dirfd;
	uint64_t path; /* address */
	int flags;     /* AT_* */
	unsigned mask; /* STATX_* */
};

enum { ASK_KERNEL = 1 }; /* only the guest itself can look at its descriptor */

static int stat_fd(const struct call *call, const struct question *q, struct statx *st)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", call->tid, q->dirfd);
	if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT | (q->flags & AT_STATX_SYNC_TYPE), q->mask, st) == 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return ASK_KERNEL;
	return errno == ENOENT ? -EBADF : -errno;
}

static int stat_path(struct env *env, struct call *call, const struct question *q, const char *path, struct statx *st)
{
	const unsigned walked = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID; /* what a walk asks for */
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_who who;
	int sync = q->flags & AT_STATX_SYNC_TYPE, error = env_who(env, call, &who);

	if (error == 0)
		error = env_walk_path(&who, q->dirfd, path, ask_walk_flags(q->flags), &place);
	if (error == 0) {
		if (sync == AT_STATX_FORCE_SYNC || q->mask & ~walked)
			place.fresh = false;
		error = vfs_stat(&who, &place, q->mask, sync, st);
		if (error == 0)
			vfs_stat_linked(&who, &place, st);
	}
	vfs_place_end(env->vfs, &place);
	return error;
}

/* A NULL path is an empty one since 6.11. */
static int ask_stat(struct env *env, struct call *call, const struct question *q, struct statx *st)
{
	bool maybe_fd = q->flags & AT_EMPTY_PATH && q->dirfd >= 0;
	char path[PATH_MAX];
	int error = 0;

	path[0] = 0;
	if (!maybe_fd || q->path)
		error = env_path(call, q->path, path);
	if (error < 0)
		return error;
	return maybe_fd && !*path ? stat_fd(call, q, st) : stat_path(env, call, q, path, st);
}

/* Registers alone say what the descriptor is: the guest's own fstat. */
static struct verdict stat_by_kernel(const struct question *q, int id, uint64_t out)
{
	return (struct verdict){ .kind = VERDICT_REWRITE, .id = id, .args = { (uint32_t)q->dirfd, out } };
}

static struct verdict answer_stat(struct env *env, struct call *call, const struct question *q, const struct abi_stat *layout,
                                  int fstat_id, uint64_t out)
{
	struct verdict verdict;
	struct statx st;
	int error;

	if (!layout)
		return verdict_answer(-ENOSYS);
	if (q->flags & ~STAT_FLAGS)
		return verdict_answer(-EINVAL);
	error = ask_stat(env, call, q, &st);
	if (error == ASK_KERNEL)
		return stat_by_kernel(q, fstat_id, out);
	if (error == 0)
		error = abi_put_stat(layout, &st, env->scratch);
	if (error < 0)
		return env_error(error);
	verdict = env_answer(0);
	env_write(&verdict, out, env->scratch, layout->size);
	return verdict;
}

static struct verdict stat_of_path(struct env *env, struct call *call, int flags, const struct abi_stat *layout)
{
	const struct question q = { AT_FDCWD, call->args[0], flags, STATX_BASIC_STATS };

	return answer_stat(env, call, &q, layout, CALL_NONE, call->args[1]);
}

struct verdict sys_stat(void *context, struct call *call)
{
	return stat_of_path(context, call, 0, call->arch->abi->stat);
}

struct verdict sys_lstat(void *context, struct call *call)
{
	return stat_of_path(context, call, AT_SYMLINK_NOFOLLOW, call->arch->abi->stat);
}

struct verdict sys_stat64(void *context, struct call *call)
{
	return stat_of_path(context, call, 0, call->arch->abi->stat64);
}

struct verdict sys_lstat64(void *context, struct call *call)
{
	return stat_of_path(context, call, AT_SYMLINK_NOFOLLOW, call->arch->abi->stat64);
}

struct verdict sys_oldstat(void *context, struct call *call)
{
	return stat_of_path(context, call, 0, call->arch->abi->oldstat);
}

struct verdict sys_oldlstat(void *context, struct call *call)
{
	return stat_of_path(context, call, AT_SYMLINK_NOFOLLOW, call->arch->abi->oldstat);
}

struct verdict sys_newfstatat(void *context, struct call *call)
{
	bool wide = call->id == CALL_fstatat64;
	const struct question q = { (int)call->args[0], call->args[1], (int)call->args[3], STATX_BASIC_STATS };
	const struct abi *abi = call->arch->abi;

	return answer_stat(context, call, &q, wide ? abi->stat64 : abi->stat, wide ? CALL_fstat64 : CALL_fstat, call->args[2]);
}

static struct verdict statx_by_kernel(struct call *call, const struct question *q, uint64_t out)
{
	uint64_t empty;
	int error = guest_window_put(call, "", 1, &empty);

	if (error < 0)
		return env_error(error);
	return (struct verdict){ .kind = VERDICT_REWRITE, .id = CALL_statx,
	                         .args = { (uint32_t)q->dirfd, empty, (uint32_t)q->flags, q->mask, out } };
}

/* struct statx is the same on every ABI. A walk may have asked for the time of birth where the guest did not. */
struct verdict sys_statx(void *context, struct call *call)
{
	const struct question q = { (int)call->args[0], call->args[1], (int)call->args[2], (unsigned)call->args[3] };
	struct env *env = context;
	struct verdict verdict;
	struct statx st;
	int error;

	if (q.mask & STATX__RESERVED || (q.flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE || q.flags & ~STAT_FLAGS)
		return verdict_answer(-EINVAL);
	error = ask_stat(env, call, &q, &st);
	if (error == ASK_KERNEL)
		return statx_by_kernel(call, &q, call->args[4]);
	if (error < 0)
		return env_error(error);
	if (!(q.mask & STATX_BTIME)) {
		st.stx_mask &= ~STATX_BTIME;
		memset(&st.stx_btime, 0, sizeof(st.stx_btime));
	}
	memcpy(env->scratch, &st, sizeof(st));
	verdict = env_answer(0);
	env_write(&verdict, call->args[4], env->scratch, sizeof(st));
	return verdict;
}

/* --- access -------------------------------------------------------------------------------------------------------- */

static struct verdict answer_access(struct env *env, struct call *call, int dirfd, uint64_t path, int mode, int flags)
{
	struct vfs_place place;
	struct vfs_who who;
	int error;

	if (mode & ~(R_OK | W_OK | X_OK) || flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return verdict_answer(-EINVAL);
	error = ask_walk(env, call, dirfd, path, ask_walk_flags(flags), &who, &place);
	if (error == 0)
		error = vfs_access(&who, &place, mode, flags & AT_EACCESS);
	return env_end_place(env, &place, error);
}

struct verdict sys_access(void *context, struct call *call)
{
	return answer_access(context, call, AT_FDCWD, call->args[0], (int)call->args[1], 0);
}

struct verdict sys_faccessat(void *context, struct call *call)
{
	int flags = call->id == CALL_faccessat2 ? (int)call->args[3] : 0;

	return answer_access(context, call, (int)call->args[0], call->args[1], (int)call->args[2], flags);
}

/* --- readlink ------------------------------------------------------------------------------------------------------ */

/* A link without a name in the view. Those of /proc lead to what the view may not show. */
static ssize_t object_readlink(const struct vfs_place *place, char *buf, size_t size)
{
	struct statfs fs;
	ssize_t n;

	if (fstatfs(place->fd, &fs))
		return -errno;
	if (fs.f_type == PROC_SUPER_MAGIC)
		return -EACCES;
	n = readlinkat(place->fd, "", buf, size);
	return n < 0 ? -errno : n;
}

/* fs/stat.c: do_readlinkat(). An empty path means a link that is held open, and ENOENT where it is none. */
static ssize_t read_link(struct env *env, struct call *call, int dirfd, uint64_t addr, size_t size)
{
	struct vfs_place place = VFS_PLACE_NONE;
	char path[PATH_MAX];
	struct vfs_who who;
	ssize_t n = env_who(env, call, &who);

	path[0] = 0;
	if (n == 0)
		n = env_path(call, addr, path);
	if (n == 0)
		n = env_walk_path(&who, dirfd, path, VFS_EMPTY, &place);
	if (n == 0 && place.fd >= 0)
		n = object_readlink(&place, (char *)env->scratch, size);
	else if (n == 0)
		n = vfs_readlink(&who, &place, (char *)env->scratch, size);
	vfs_place_end(env->vfs, &place);
	return n == -EINVAL && !*path ? -ENOENT : n;
}

struct verdict sys_readlink(void *context, struct call *call)
{
	bool at = call->id == CALL_readlinkat;
	const uint64_t *args = call->args + at;
	struct env *env = context;
	struct verdict verdict;
	size_t size = args[2];
	ssize_t n;

	if ((int)args[2] <= 0)
		return verdict_answer(-EINVAL);
	size = (uint32_t)size < sizeof(env->scratch) ? (uint32_t)size : sizeof(env->scratch);
	n = read_link(env, call, at ? (int)call->args[0] : AT_FDCWD, args[0], size);
	if (n < 0)
		return env_error((int)n);
	verdict = env_answer(n);
	env_write(&verdict, args[1], env->scratch, (size_t)n);
	return verdict;
}

/* --- statfs -------------------------------------------------------------------------------------------------------- */

static int ask_statfs(struct env *env, struct call *call, struct statfs *st)
{
	struct vfs_place place;
	struct vfs_who who;
	int fd, error = ask_walk(env, call, AT_FDCWD, call->args[0], VFS_FOLLOW, &who, &place);

	if (error == 0) {
		fd = vfs_hold(&who, &place, VFS_LOOK);
		error = fd < 0 ? fd : fstatfs(fd, st) ? -errno : 0;
		if (fd >= 0)
			close(fd);
	}
	vfs_place_end(env->vfs, &place);
	return error;
}

static struct verdict answer_statfs(struct env *env, struct call *call, const struct abi_statfs *layout, uint64_t out)
{
	struct verdict verdict;
	struct statfs st;
	int error = ask_statfs(env, call, &st);

	if (error == 0)
		error = abi_put_statfs(layout, &st, env->scratch);
	if (error < 0)
		return env_error(error);
	verdict = env_answer(0);
	env_write(&verdict, out, env->scratch, layout->size);
	return verdict;
}

struct verdict sys_statfs(void *context, struct call *call)
{
	return answer_statfs(context, call, call->arch->abi->statfs, call->args[1]);
}

struct verdict sys_statfs64(void *context, struct call *call)
{
	const struct abi_statfs *layout = call->arch->abi->statfs64;

	if (!layout)
		return verdict_answer(-ENOSYS);
	if (call->args[1] != layout->size)
		return verdict_answer(-EINVAL);
	return answer_statfs(context, call, layout, call->args[2]);
}

/* --- getcwd -------------------------------------------------------------------------------------------------------- */

/* fs/d_path.c: a path is told only where it fits into PATH_MAX. */
struct verdict sys_getcwd(void *context, struct call *call)
{
	struct env *env = context;
	struct verdict verdict;
	struct vfs_who who;
	ssize_t n = env_who(env, call, &who);

	if (n == 0)
		n = vfs_path(&who, who.fs->cwd, (char *)env->scratch, PATH_MAX);
	if (n < 0)
		return env_error(n == -ERANGE ? -ENAMETOOLONG : (int)n);
	if ((uint64_t)n > call->args[1])
		return verdict_answer(-ERANGE);
	verdict = env_answer(n);
	env_write(&verdict, call->args[0], env->scratch, (size_t)n);
	return verdict;
}
