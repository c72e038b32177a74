/*
 * list.c - getdents, getdents64, and readdir of i386.
 *
 * The position is the guest's own: in the open file that its descriptor and our duplicate of it share, so that dup, fork, lseek and
 * rewinddir need nothing of us. A merged directory's positions are those of vfs_list(); where the host's own listing is
 * right it is read through the duplicate, and positions are the kernel's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/abi.h"
#include "syscalls/handlers/ask.h"
#include "syscalls/handlers/paths_ask.h"
#include "syscalls/ids.h"

enum { BUFFER_SIZE = 64 << 10, ENTRY_MAX = 304 }; /* an entry of getdents64 with a name of 255 bytes takes 280 */

struct listing_out {
	const struct call *call;
	size_t room, used;
	int64_t position; /* after the last entry taken */
	bool any;
	int error;        /* of the first entry that was not taken */
};

static unsigned char answer[BUFFER_SIZE];

static int put_entry(struct listing_out *out, const struct abi_dirent *entry)
{
	unsigned char *at = answer + out->used;

	if (out->call->id == CALL_readdir)
		return out->any ? -EINVAL : abi_put_old_dirent(at, out->room, out->position, entry);
	return abi_put_dirent(at, out->room - out->used, out->call->id == CALL_getdents64, out->call->arch->word, entry);
}

static bool take_entry(void *context, const struct vfs_dirent *found)
{
	const struct abi_dirent entry = { found->ino, found->next, found->type, found->name };
	struct listing_out *out = context;
	int n = put_entry(out, &entry);

	if (n < 0) {
		out->error = n;
		return false;
	}
	out->used += (size_t)n;
	out->position = entry.next;
	out->any = true;
	return true;
}

/* --- the host's own listing ---------------------------------------------------------------------------------------- */

/* Entries as getdents64 gave them. Whether all were taken. */
static bool take_raw(struct listing_out *out, const unsigned char *raw, size_t len)
{
	for (size_t at = 0; at < len;) {
		struct vfs_dirent entry = { .type = raw[at + 18], .name = (const char *)raw + at + 19 };
		uint16_t reclen;

		memcpy(&entry.ino, raw + at, 8);
		memcpy(&entry.next, raw + at + 8, 8);
		memcpy(&reclen, raw + at + 16, 2);
		if (!take_entry(out, &entry))
			return false;
		at += reclen;
	}
	return true;
}

/* 32-bit entries are shorter: what was read and is not taken is left for the next call. */
static int list_raw(struct listing_out *out, int fd)
{
	static unsigned char raw[BUFFER_SIZE];
	size_t size = out->room > ENTRY_MAX ? out->room : ENTRY_MAX;
	long n = syscall(SYS_getdents64, fd, raw, size);

	if (n < 0)
		return -errno;
	if (!take_raw(out, raw, (size_t)n) && lseek(fd, out->position, SEEK_SET) < 0)
		return -errno;
	return 0;
}

/* --- the view's ---------------------------------------------------------------------------------------------------- */

/* FD is the guest's open file, HELD another descriptor of it, which is taken over. */
static int list_fd(const struct vfs_who *who, struct listing_out *out, int fd, int held)
{
	struct vfs_place place;
	int64_t next;
	int error = vfs_place_of(who, held, &place);

	if (error < 0)
		return error;
	if (!place.node || vfs_list_is_plain(who->vfs, &place)) {
		vfs_place_end(who->vfs, &place);
		return list_raw(out, fd);
	}
	next = vfs_list(who, &place, out->position, take_entry, out);
	vfs_place_end(who->vfs, &place);
	if (next < 0)
		return (int)next;
	out->position = next;
	return 0;
}

/* Some file systems begin anew at a seek, even to where they are. */
static int64_t move(int fd, int64_t to)
{
	return lseek(fd, 0, SEEK_CUR) == to ? to : lseek(fd, to, SEEK_SET);
}

/* The guest's position moves, unless its buffer cannot be written: what was listed is told once. */
static int list(struct env *env, struct call *call, struct listing_out *out, int fd)
{
	struct vfs_who who;
	unsigned char probe;
	int64_t before = lseek(fd, 0, SEEK_CUR);
	int held, error = env_who(env, call, &who);

	if (error < 0)
		return error;
	if (before < 0)
		return errno == ESPIPE ? -ENOTDIR : -errno;
	held = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (held < 0)
		return -errno;
	out->position = before;
	error = list_fd(&who, out, fd, held);
	if (error == 0 && !out->any)
		error = out->error;
	if (error == 0 && out->used > 0 && (guest_read(call, call->args[1], &probe, 1) < 0 ||
	                                    guest_read(call, call->args[1] + out->used - 1, &probe, 1) < 0))
		error = -EFAULT;
	return move(fd, error < 0 ? before : out->position) < 0 && error == 0 ? -errno : error;
}

static struct verdict answer_list(struct env *env, struct call *call, size_t room)
{
	struct listing_out out = { .call = call, .room = room < BUFFER_SIZE ? room : BUFFER_SIZE };
	struct vfs_who who;
	struct verdict verdict;
	int fd, error = env_who(env, call, &who);

	fd = error < 0 ? error : ask_dup(call, (int)call->args[0]);
	if (fd < 0)
		return env_error(fd);
	error = fcntl(fd, F_GETFL) & O_PATH ? -EBADF : list(env, call, &out, fd);
	close(fd);
	if (error < 0)
		return env_error(error);
	verdict = env_answer(call->id == CALL_readdir ? out.any : (int64_t)out.used);
	if (out.used > 0)
		env_write(&verdict, call->args[1], answer, out.used);
	return verdict;
}

/* The count is an int to the kernel. */
struct verdict sys_getdents(void *context, struct call *call)
{
	int32_t count = (int32_t)call->args[2];

	return answer_list(context, call, count > 0 ? (size_t)count : 0);
}

/* Its third argument means nothing. */
struct verdict sys_readdir(void *context, struct call *call)
{
	return answer_list(context, call, BUFFER_SIZE);
}
