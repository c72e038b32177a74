/*
 * pass.c - hands a descriptor of ours to a guest that may not follow a link to it.
 *
 * /proc/SUPERVISOR/fd/N can be followed by whom the kernel would let look at the supervisor: not by another user, nor by one with
 * fewer capabilities (proc_fd_access_allowed). Such a guest connects a socket to an abstract address that we listen on for this
 * one time, and gets the descriptor as a message. Everybody on the host can read that address in /proc/net/unix: what counts is
 * the process at the other end (SO_PEERCRED). Another of its own threads may come first or change what was received; it gets
 * nothing then that its process would not have got.
 *
 * What the kernel writes (recvmsg) and reads lies in a page that is mapped for it meanwhile. The socket takes the lowest free
 * number, so the received file is moved there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "arch/ids.h"
#include "tracer/engine/internal.h"

enum { NAME_LEN = 32, BACKLOG = 8, PASS_SIZE = 4096 };

/* In the page. */
enum { AT_ADDRESS = 0, AT_MESSAGE = 256, AT_VECTOR = 384, AT_BYTE = 448, AT_CONTROL = 512 };

struct message64 { uint64_t name; uint32_t name_len, pad; uint64_t vector, count, control, control_len; uint32_t flags, pad2; };
struct message32 { uint32_t name, name_len, vector, count, control, control_len, flags; };
struct control64 { uint64_t len; int32_t level, type, fd, pad; };
struct control32 { uint32_t len; int32_t level, type, fd; };

static socklen_t address_len(void)
{
	return offsetof(struct sockaddr_un, sun_path) + 1 + NAME_LEN;
}

static int pass_listen(struct injection *in, struct sockaddr_un *address)
{
	unsigned char random[NAME_LEN / 2];

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(address->sun_path + 1 + 2 * i, 3, "%02x", random[i]);
	in->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (in->listener < 0)
		return -errno;
	if (bind(in->listener, (struct sockaddr *)address, address_len()) || listen(in->listener, BACKLOG))
		return -errno;
	return 0;
}

/* The structs of the guest's own ABI. */
static size_t pass_message(const struct injection *in, unsigned char *page)
{
	const uint64_t base = in->page;

	if (in->abi->word == 8) {
		uint64_t vector[2] = { base + AT_BYTE, 1 };
		struct message64 message = { .vector = base + AT_VECTOR, .count = 1, .control = base + AT_CONTROL,
		                             .control_len = sizeof(struct control64) };

		memcpy(page + AT_VECTOR, vector, sizeof(vector));
		memcpy(page + AT_MESSAGE, &message, sizeof(message));
	} else {
		uint32_t vector[2] = { (uint32_t)base + AT_BYTE, 1 };
		struct message32 message = { .vector = (uint32_t)base + AT_VECTOR, .count = 1,
		                             .control = (uint32_t)base + AT_CONTROL, .control_len = sizeof(struct control32) };

		memcpy(page + AT_VECTOR, vector, sizeof(vector));
		memcpy(page + AT_MESSAGE, &message, sizeof(message));
	}
	return AT_CONTROL;
}

static int pass_prepare(struct task *task)
{
	struct injection *in = task->inject;
	unsigned char page[PASS_SIZE] = { 0 };
	struct sockaddr_un address;
	int error = pass_listen(in, &address);
	size_t len;

	if (error < 0)
		return error;
	memcpy(page + AT_ADDRESS, &address, address_len());
	len = pass_message(in, page);
	return memory_write(task, in->page, page, len) == (ssize_t)len ? 0 : -EFAULT;
}

static void send_fd(int to, int fd)
{
	union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = { .space = { 0 } };
	struct iovec vector = { (char *)"", 1 };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control,
	                          .msg_controllen = sizeof(control) };

	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* To all that came from the process. A guest that finds nothing to receive fails. */
static void pass_send(const struct task *task)
{
	const struct injection *in = task->inject;
	int peer;

	while ((peer = accept4(in->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct ucred cred = { .pid = 0 };
		socklen_t len = sizeof(cred);

		if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.pid == task->call.tgid)
			send_fd(peer, in->pass_fd);
		close(peer);
	}
}

/* The number that the guest says it has received. -EMFILE: none, as when no number was free for it. */
static int pass_received(struct task *task)
{
	const struct injection *in = task->inject;
	struct control64 c64;
	struct control32 c32;
	int fd = -1;

	if (in->abi->word == 8) {
		if (memory_read(task, in->page + AT_CONTROL, &c64, sizeof(c64)) == sizeof(c64) && c64.type == SCM_RIGHTS &&
		    c64.level == SOL_SOCKET)
			fd = c64.fd;
	} else if (memory_read(task, in->page + AT_CONTROL, &c32, sizeof(c32)) == sizeof(c32) && c32.type == SCM_RIGHTS &&
		   c32.level == SOL_SOCKET) {
		fd = c32.fd;
	}
	return fd < 0 ? -EMFILE : fd;
}

void pass_begin(struct injection *in, int fd, int flags)
{
	in->pass_fd = fd;
	in->pass_flags = flags & O_CLOEXEC;
	in->passed = -EACCES;
	in->step = PASS_PAGE;
}

void pass_free(struct injection *in)
{
	if (in->listener >= 0)
		close(in->listener);
	in->listener = -1;
}

int pass_call(const struct injection *in, uint64_t args[6])
{
	switch (in->step) {
	case PASS_PAGE:
		args[1] = PASS_SIZE, args[2] = PROT_READ | PROT_WRITE, args[3] = MAP_PRIVATE | MAP_ANONYMOUS;
		args[4] = UINT32_MAX;
		return in->abi->word == 8 ? CALL_mmap : CALL_mmap2;
	case PASS_SOCKET:
		args[0] = AF_UNIX, args[1] = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
		return CALL_socket;
	case PASS_CONNECT:
		args[0] = in->sock, args[1] = in->page + AT_ADDRESS, args[2] = address_len();
		return CALL_connect;
	case PASS_RECEIVE:
		args[0] = in->sock, args[1] = in->page + AT_MESSAGE, args[2] = MSG_CMSG_CLOEXEC | MSG_DONTWAIT;
		return CALL_recvmsg;
	case PASS_MOVE:
		args[0] = in->fd, args[1] = in->sock, args[2] = in->pass_flags;
		return CALL_dup3;
	case PASS_DROP:
		args[0] = in->fd;
		return CALL_close;
	case PASS_ABANDON:
		args[0] = in->sock;
		return CALL_close;
	default:
		args[0] = in->page, args[1] = PASS_SIZE;
		return CALL_munmap;
	}
}

/* Limits are the guest's own affair; all else is as if the link could not be followed. */
static enum inject_step failed(struct injection *in, int64_t error, enum inject_step next)
{
	in->passed = error == -EMFILE || error == -ENFILE || error == -ENOMEM ? error : -EACCES;
	return next;
}

bool pass_step(struct task *task, int64_t result)
{
	struct injection *in = task->inject;
	int64_t received;

	switch (in->step) {
	case PASS_PAGE:
		if (result < 0 && result >= -4095) {
			failed(in, result, in->step);
			return false;
		}
		in->page = in->abi->word == 8 ? (uint64_t)result : (uint32_t)result;
		in->step = pass_prepare(task) < 0 ? PASS_UNPAGE : PASS_SOCKET;
		return true;
	case PASS_SOCKET:
		in->sock = result;
		in->step = result < 0 ? failed(in, result, PASS_UNPAGE) : PASS_CONNECT;
		return true;
	case PASS_CONNECT:
		if (result == 0)
			pass_send(task);
		in->step = result < 0 ? PASS_ABANDON : PASS_RECEIVE;
		return true;
	case PASS_RECEIVE:
		received = result < 0 ? result : pass_received(task);
		in->fd = (uint64_t)received;
		in->step = received < 0 ? failed(in, received, PASS_ABANDON) : PASS_MOVE;
		return true;
	case PASS_MOVE:
		in->passed = result < 0 ? -EACCES : (int64_t)in->sock;
		in->step = PASS_DROP;
		return true;
	case PASS_DROP:
		in->step = in->passed < 0 ? PASS_ABANDON : PASS_UNPAGE;
		return true;
	case PASS_ABANDON:
		in->step = PASS_UNPAGE;
		return true;
	default:
		pass_free(in);
		return false;
	}
}
