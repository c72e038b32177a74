/*
 * handle.c - name_to_handle_at and file_getattr: what the host's kernel tells of the object that the path means in the view.
 *
 * open_by_handle_at is refused, so that a handle serves only to be compared, as the mount id does.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "syscalls/handlers/ask.h"
#include "syscalls/handlers/paths_ask.h"

enum {
	HANDLE_FID = 0x200, HANDLE_MNT_ID_UNIQUE = 1, HANDLE_CONNECTABLE = 2, /* linux/fcntl.h: AT_HANDLE_* */
	NR_FILE_GETATTR = 468, ATTR_LEAST = 24, ATTR_MOST = 4096              /* FILE_ATTR_SIZE_VER0; PAGE_SIZE */
};

/* An O_PATH descriptor of the place, or a negative errno. */
static int hold(struct env *env, struct call *call, unsigned flags)
{
	struct vfs_place place;
	struct vfs_who who;
	int fd = ask_walk(env, call, (int)call->args[0], call->args[1], flags, &who, &place);

	if (fd == 0)
		fd = vfs_hold(&who, &place, VFS_LOOK);
	vfs_place_end(env->vfs, &place);
	return fd;
}

/* fs/fhandle.c: do_sys_name_to_handle(). With -EOVERFLOW the needed length and the mount id are told as well. */
struct verdict sys_name_to_handle_at(void *context, struct call *call)
{
	static struct { struct file_handle head; unsigned char bytes[MAX_HANDLE_SZ]; } handle;
	static uint64_t mount_id;
	const int passed = HANDLE_FID | HANDLE_MNT_ID_UNIQUE | HANDLE_CONNECTABLE;
	int flags = (int)call->args[4], fd, error;
	struct verdict verdict;
	uint32_t room;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH | passed))
		return verdict_answer(-EINVAL);
	error = guest_read(call, call->args[2], &room, sizeof(room));
	if (error < 0 || room > MAX_HANDLE_SZ)
		return verdict_answer(error < 0 ? error : -EINVAL);
	fd = hold(context, call, (flags & AT_SYMLINK_FOLLOW ? VFS_FOLLOW : 0) | (flags & AT_EMPTY_PATH ? VFS_EMPTY : 0));
	if (fd < 0)
		return env_error(fd);
	memset(&handle, 0, sizeof(handle));
	handle.head.handle_bytes = room;
	error = syscall(SYS_name_to_handle_at, fd, "", &handle, &mount_id, AT_EMPTY_PATH | (flags & passed)) ? -errno : 0;
	close(fd);
	verdict = env_answer(error);
	if (error < 0 && error != -EOVERFLOW)
		return verdict;
	env_write(&verdict, call->args[3], &mount_id, flags & HANDLE_MNT_ID_UNIQUE ? sizeof(mount_id) : sizeof(int));
	env_write(&verdict, call->args[2], &handle, sizeof(handle.head) + (error ? 0 : handle.head.handle_bytes));
	return verdict;
}

/* fs/file_attr.c: newer structures are longer; the kernel fills what it knows and clears the rest. */
struct verdict sys_file_getattr(void *context, struct call *call)
{
	static unsigned char attr[ATTR_MOST];
	int flags = (int)call->args[4], fd, error;
	size_t size = (size_t)call->args[3];
	struct verdict verdict;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) || size < ATTR_LEAST)
		return verdict_answer(-EINVAL);
	if (size > sizeof(attr))
		return verdict_answer(-E2BIG);
	fd = hold(context, call, ask_walk_flags(flags));
	if (fd < 0)
		return env_error(fd);
	memset(attr, 0, size);
	error = syscall(NR_FILE_GETATTR, fd, "", attr, size, AT_EMPTY_PATH) ? -errno : 0;
	close(fd);
	verdict = env_answer(error);
	if (error == 0)
		env_write(&verdict, call->args[2], attr, size);
	return verdict;
}
