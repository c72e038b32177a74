/*
 * xattr.c - extended attributes by path, and those that change one by descriptor. fgetxattr and flistxattr pass.
 *
 * Rules: fs/xattr.c. Names and values are read once, and what is set is what was read.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/xattr.h>

#include "syscalls/handlers/ask.h"
#include "syscalls/handlers/paths_ask.h"
#include "syscalls/ids.h"

enum { AT_FLAGS = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH };

/* A value or a list on its way; one call at a time is handled. */
static unsigned char buffer[XATTR_SIZE_MAX];

/* struct xattr_args of linux/xattr.h */
struct xattr_args_ {
	uint64_t value;
	uint32_t size, flags;
};
_Static_assert(sizeof(struct xattr_args_) == 16, "XATTR_ARGS_SIZE_VER0");

/* The name at ADDR. */
static int read_name(struct call *call, uint64_t addr, char name[XATTR_NAME_MAX + 1])
{
	ssize_t n = guest_read_string(call, addr, name, XATTR_NAME_MAX + 1);

	if (n == 0 || n == -ENAMETOOLONG)
		return -ERANGE;
	return n < 0 ? (int)n : 0;
}

/* Where a *xattrat call leads. With an empty path it is a descriptor like that of an f* call. */
static int walk_at(struct env *env, struct call *call, struct vfs_who *who, struct vfs_place *place)
{
	int dirfd = (int)call->args[0], flags = (int)call->args[2], error = env_who(env, call, who);
	char path[PATH_MAX];

	*place = VFS_PLACE_NONE;
	path[0] = 0;
	if (error == 0 && (call->args[1] || !(flags & AT_EMPTY_PATH)))
		error = env_path(call, call->args[1], path);
	if (error < 0)
		return error;
	if (*path || !(flags & AT_EMPTY_PATH) || dirfd < 0)
		return env_walk_path(who, dirfd, path, ask_walk_flags(flags), place);
	return ask_walk_fd(env, call, dirfd, who, place);
}

/* --- asking -------------------------------------------------------------------------------------------------------- */

static struct verdict answer_bytes(struct env *env, struct vfs_place *place, ssize_t n, uint64_t out, size_t size)
{
	struct verdict verdict;

	vfs_place_end(env->vfs, place);
	if (n < 0)
		return env_error((int)n);
	verdict = env_answer(n);
	if (size > 0 && n > 0)
		env_write(&verdict, out, buffer, (size_t)n);
	return verdict;
}

static size_t bounded(uint64_t size)
{
	return size < sizeof(buffer) ? (size_t)size : sizeof(buffer);
}

/* ERROR is that of the walk. */
static struct verdict get_at(struct env *env, const struct vfs_who *who, struct vfs_place *place, int error, const char *name,
                             uint64_t out, uint64_t size)
{
	ssize_t n = error < 0 ? error : vfs_getxattr(who, place, name, buffer, bounded(size));

	if (n == -ERANGE && size >= XATTR_SIZE_MAX)
		n = -E2BIG;
	return answer_bytes(env, place, n, out, (size_t)size);
}

static struct verdict list_at(struct env *env, const struct vfs_who *who, struct vfs_place *place, int error, uint64_t out,
                              uint64_t size)
{
	ssize_t n = error < 0 ? error : vfs_listxattr(who, place, (char *)buffer, bounded(size));

	if (n == -ERANGE && size >= XATTR_LIST_MAX)
		n = -E2BIG;
	return answer_bytes(env, place, n, out, (size_t)size);
}

struct verdict sys_getxattr(void *context, struct call *call)
{
	unsigned flags = call->id == CALL_lgetxattr ? 0 : VFS_FOLLOW;
	struct vfs_place place = VFS_PLACE_NONE;
	char name[XATTR_NAME_MAX + 1];
	struct vfs_who who;
	int error = read_name(call, call->args[1], name);

	if (error == 0)
		error = ask_walk(context, call, AT_FDCWD, call->args[0], flags, &who, &place);
	return get_at(context, &who, &place, error, name, call->args[2], call->args[3]);
}

struct verdict sys_getxattrat(void *context, struct call *call)
{
	struct vfs_place place = VFS_PLACE_NONE;
	char name[XATTR_NAME_MAX + 1];
	struct xattr_args_ args = { 0 };
	struct vfs_who who;
	int error = ask_struct(call, call->args[4], call->args[5], sizeof(args), &args, sizeof(args));

	if (error == 0 && (args.flags || (int)call->args[2] & ~AT_FLAGS))
		error = -EINVAL;
	if (error == 0)
		error = read_name(call, call->args[3], name);
	if (error == 0)
		error = walk_at(context, call, &who, &place);
	return get_at(context, &who, &place, error, name, args.value, args.size);
}

struct verdict sys_listxattr(void *context, struct call *call)
{
	unsigned flags = call->id == CALL_llistxattr ? 0 : VFS_FOLLOW;
	struct vfs_place place;
	struct vfs_who who;
	int error = ask_walk(context, call, AT_FDCWD, call->args[0], flags, &who, &place);

	return list_at(context, &who, &place, error, call->args[1], call->args[2]);
}

struct verdict sys_listxattrat(void *context, struct call *call)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_who who;
	int error = (int)call->args[2] & ~AT_FLAGS ? -EINVAL : walk_at(context, call, &who, &place);

	return list_at(context, &who, &place, error, call->args[3], call->args[4]);
}

/* --- changing ------------------------------------------------------------------------------------------------------ */

struct change {
	char name[XATTR_NAME_MAX + 1];
	size_t size; /* of the value, in the buffer */
	int flags;
};

/* fs/xattr.c: setxattr_copy() */
static int read_change(struct call *call, struct change *change, uint64_t name, uint64_t value, uint64_t size, int flags)
{
	int error;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	error = read_name(call, name, change->name);
	if (error < 0)
		return error;
	if (size > sizeof(buffer))
		return -E2BIG;
	change->size = (size_t)size;
	change->flags = flags;
	return size > 0 ? guest_read(call, value, buffer, change->size) : 0;
}

static struct verdict set_at(struct env *env, const struct vfs_who *who, struct vfs_place *place, int error,
                             const struct change *change)
{
	if (error == 0)
		error = vfs_setxattr(who, place, change->name, buffer, change->size, change->flags);
	return env_end_place(env, place, error);
}

struct verdict sys_setxattr(void *context, struct call *call)
{
	unsigned flags = call->id == CALL_lsetxattr ? 0 : VFS_FOLLOW;
	struct vfs_place place = VFS_PLACE_NONE;
	struct change change;
	struct vfs_who who;
	int error = read_change(call, &change, call->args[1], call->args[2], call->args[3], (int)call->args[4]);

	if (error == 0)
		error = ask_walk(context, call, AT_FDCWD, call->args[0], flags, &who, &place);
	return set_at(context, &who, &place, error, &change);
}

struct verdict sys_fsetxattr(void *context, struct call *call)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct change change;
	struct vfs_who who;
	int error = read_change(call, &change, call->args[1], call->args[2], call->args[3], (int)call->args[4]);

	if (error == 0)
		error = ask_walk_fd(context, call, (int)call->args[0], &who, &place);
	return set_at(context, &who, &place, error, &change);
}

struct verdict sys_setxattrat(void *context, struct call *call)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct xattr_args_ args;
	struct change change;
	struct vfs_who who;
	int error = ask_struct(call, call->args[4], call->args[5], sizeof(args), &args, sizeof(args));

	if (error == 0 && (int)call->args[2] & ~AT_FLAGS)
		error = -EINVAL;
	if (error == 0)
		error = read_change(call, &change, call->args[3], args.value, args.size, (int)args.flags);
	if (error == 0)
		error = walk_at(context, call, &who, &place);
	return set_at(context, &who, &place, error, &change);
}

static struct verdict remove_at(struct env *env, const struct vfs_who *who, struct vfs_place *place, int error, const char *name)
{
	if (error == 0)
		error = vfs_removexattr(who, place, name);
	return env_end_place(env, place, error);
}

struct verdict sys_removexattr(void *context, struct call *call)
{
	unsigned flags = call->id == CALL_lremovexattr ? 0 : VFS_FOLLOW;
	struct vfs_place place = VFS_PLACE_NONE;
	char name[XATTR_NAME_MAX + 1];
	struct vfs_who who;
	int error = read_name(call, call->args[1], name);

	if (error == 0)
		error = ask_walk(context, call, AT_FDCWD, call->args[0], flags, &who, &place);
	return remove_at(context, &who, &place, error, name);
}

struct verdict sys_fremovexattr(void *context, struct call *call)
{
	struct vfs_place place = VFS_PLACE_NONE;
	char name[XATTR_NAME_MAX + 1];
	struct vfs_who who;
	int error = read_name(call, call->args[1], name);

	if (error == 0)
		error = ask_walk_fd(context, call, (int)call->args[0], &who, &place);
	return remove_at(context, &who, &place, error, name);
}

struct verdict sys_removexattrat(void *context, struct call *call)
{
	struct vfs_place place = VFS_PLACE_NONE;
	char name[XATTR_NAME_MAX + 1];
	struct vfs_who who;
	int error = (int)call->args[2] & ~AT_FLAGS ? -EINVAL : read_name(call, call->args[3], name);

	if (error == 0)
		error = walk_at(context, call, &who, &place);
	return remove_at(context, &who, &place, error, name);
}
