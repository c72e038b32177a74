/*
 * notify.c - inotify_add_watch.
 *
 * The watch is set on the object that the path means, by a link to our descriptor of it. A directory of an overlay is watched where
 * guests' changes to it happen, in the upper. The supervisor adds it to the guest's own inotify; where that cannot be
 * reached, the guest's call is made to do so.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "syscalls/handlers/ask.h"
#include "syscalls/handlers/paths_ask.h"
#include "syscalls/ids.h"

/* An O_PATH descriptor of what is to be watched. Who watches must be able to read it. */
static int hold(struct env *env, struct call *call, uint32_t mask)
{
	struct vfs_place place;
	struct vfs_who who;
	int fd = ask_walk(env, call, AT_FDCWD, call->args[1], mask & IN_DONT_FOLLOW ? 0 : VFS_FOLLOW, &who, &place);

	if (fd == 0)
		fd = vfs_access(&who, &place, R_OK, true);
	if (fd == 0)
		fd = vfs_hold_watch(&who, &place);
	vfs_place_end(env->vfs, &place);
	return fd;
}

static void nothing_more(struct env *env, struct call *call, int64_t result)
{
	(void)env, (void)call, (void)result;
}

/* HELD is taken over. */
static struct verdict watch_by_guest(struct call *call, int held, uint32_t mask)
{
	struct ask_link link = ask_link(held);
	struct verdict verdict = { .kind = VERDICT_REWRITE, .id = CALL_inotify_add_watch, .args = { call->args[0], 0, mask } };
	int error = call->foreign ? -EACCES : guest_window_put(call, link.text, strlen(link.text) + 1, &verdict.args[1]);

	if (error < 0) {
		close(held);
		return env_error(error);
	}
	return ask_keep(call, verdict, held, nothing_more);
}

/* IN_DONT_FOLLOW has been honoured: the link to our descriptor must be followed. */
struct verdict sys_inotify_add_watch(void *context, struct call *call)
{
	uint32_t mask = (uint32_t)call->args[2] & ~(uint32_t)IN_DONT_FOLLOW;
	int held = hold(context, call, (uint32_t)call->args[2]), fd, result;

	if (held < 0)
		return env_error(held);
	fd = ask_dup(call, (int)call->args[0]);
	if (fd == -EPERM)
		return watch_by_guest(call, held, mask);
	result = fd;
	if (fd >= 0) {
		result = inotify_add_watch(fd, ask_link(held).text, mask);
		result = result < 0 ? -errno : result;
		close(fd);
	}
	close(held);
	return env_answer(result);
}
