/*
 * socket_path.c - sockets that have a path for their address: bind, connect, sendto, sendmsg, getsockname, getpeername.
 *
 * The address is read once. Where it names a file, the file is found in the view, and the guest's call goes to exactly that
 * socket by a link to our descriptor of it; any other address runs as the copy that was read.
 *
 * The kernel keeps the address that a socket was bound by and tells it to getsockname(2), to peers and to receivers. It is one that
 * vfs_bind() has made, used once; what the guest had said is remembered here beside it. getsockname and getpeername tell that;
 * accept, recvfrom and recvmsg are not stopped for it, but what they told is understood in an answer to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/net.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "syscalls/handlers/ask.h"
#include "syscalls/handlers/paths_ask.h"
#include "syscalls/ids.h"

enum { PATH_AT = offsetof(struct sockaddr_un, sun_path), ADDRESS_MAX = sizeof(struct sockaddr_storage), BOUND_MAX = 16384 };

struct address {
	int len;
	union {
		struct sockaddr_storage any;
		unsigned char bytes[ADDRESS_MAX];
		struct { sa_family_t family; char path[ADDRESS_MAX - sizeof(sa_family_t)]; };
	};
};

/* --- what guests call their sockets -------------------------------------------------------------------------------- */

struct bound {
	char address[VFS_ADDRESS_MAX];                      /* the kernel's; "" for none */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* the guest's, with a NUL */
};

/* Nothing tells when the last socket that knows an address is gone: the oldest is forgotten. */
static struct bound *bound_table;

/* Whether the path is an address of ours: those have a name in them that guests cannot make. */
static bool is_ours(const char *path)
{
	return strstr(path, "/\001interpose:socket.") != NULL;
}

/* Addresses end in a serial number. */
static struct bound *bound_slot(const char *address)
{
	if (!bound_table)
		bound_table = calloc(BOUND_MAX, sizeof(*bound_table));
	return bound_table ? &bound_table[strtoull(strrchr(address, '.') + 1, NULL, 10) % BOUND_MAX] : NULL;
}

static void bound_remember(const char *address, const char *path)
{
	struct bound *bound = bound_slot(address);

	if (!bound)
		return; /* it is told as a socket without a name */
	strcpy(bound->address, address);
	strcpy(bound->path, path);
}

static const char *bound_find(const char *address)
{
	const struct bound *bound = bound_slot(address);

	return bound && !strcmp(bound->address, address) ? bound->path : NULL;
}

/* --- addresses ----------------------------------------------------------------------------------------------------- */

/* Whether the kernel reads an address of this length (net/socket.c: move_addr_to_kernel). */
static bool is_read(uint64_t addr, int len)
{
	return addr && len > 0 && len <= ADDRESS_MAX;
}

static int address_read(struct call *call, uint64_t addr, int len, struct address *address)
{
	memset(address, 0, sizeof(*address));
	address->len = len;
	return guest_read(call, addr, address->bytes, (size_t)len);
}

/* net/unix/af_unix.c: unix_validate_addr(), unix_mkname_bsd(). What is too long is the kernel's to refuse. */
static bool has_path(const struct address *address)
{
	return address->family == AF_UNIX && address->len > PATH_AT && address->len <= (int)sizeof(struct sockaddr_un) &&
	       address->path[0];
}

/* The call with its address at argument AT replaced by one in the window. */
static int put_address(struct call *call, struct verdict *verdict, unsigned at, const void *address, size_t len)
{
	*verdict = (struct verdict){ .kind = VERDICT_REWRITE, .id = call->id };
	memcpy(verdict->args, call->args, sizeof(verdict->args));
	verdict->args[at + 1] = len;
	return guest_window_put(call, address, len, &verdict->args[at]);
}

static struct verdict run_copy(struct call *call, unsigned at, const struct address *address)
{
	struct verdict verdict;
	int error = put_address(call, &verdict, at, address->bytes, (size_t)address->len);

	return error < 0 ? env_error(error) : verdict;
}

static void nothing_more(struct env *env, struct call *call, int64_t result)
{
	(void)env, (void)call, (void)result;
}

/* --- to a socket --------------------------------------------------------------------------------------------------- */

static int hold_socket(struct env *env, struct call *call, const char *path)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_who who;
	int fd = env_who(env, call, &who);

	if (fd == 0)
		fd = env_walk_path(&who, AT_FDCWD, path, VFS_FOLLOW, &place);
	if (fd == 0)
		fd = vfs_hold(&who, &place, VFS_LOOK);
	vfs_place_end(env->vfs, &place);
	return fd;
}

static struct verdict run_to_path(struct env *env, struct call *call, unsigned at, const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int held = hold_socket(env, call, path), error;
	struct verdict verdict;
	struct ask_link link;

	if (held < 0)
		return env_error(held);
	link = ask_link(held);
	strcpy(name.sun_path, link.text);
	error = call->foreign ? -EACCES : put_address(call, &verdict, at, &name, PATH_AT + strlen(link.text) + 1);
	if (error < 0) {
		close(held);
		return error == -EACCES ? verdict_refuse(error, "a guest of another user cannot be led to a socket") : env_error(error);
	}
	return ask_keep(call, verdict, held, nothing_more);
}

/* An address in a register is none: the kernel reads nothing. */
static struct verdict to_address(struct env *env, struct call *call, unsigned at)
{
	uint64_t addr = call->args[at];
	int len = (int)call->args[at + 1], error;
	struct address address;
	const char *path;

	if (!is_read(addr, len))
		return verdict_forward();
	error = address_read(call, addr, len, &address);
	if (error < 0)
		return env_error(error);
	if (!has_path(&address))
		return run_copy(call, at, &address);
	path = is_ours(address.path) ? bound_find(address.path) : address.path;
	return path ? run_to_path(env, call, at, path) : verdict_answer(-ENOENT);
}

struct verdict sys_connect(void *context, struct call *call)
{
	return to_address(context, call, 1);
}

struct verdict sys_sendto(void *context, struct call *call)
{
	return to_address(context, call, 4);
}

/* --- sendmsg ------------------------------------------------------------------------------------------------------- */

/* struct msghdr of either word: the header as it was read, and where the name is in it. */
struct header {
	unsigned char bytes[56];
	size_t size, word;
	uint64_t name;
	uint32_t name_len;
};

static int header_read(struct call *call, uint64_t addr, struct header *header)
{
	int error;

	*header = (struct header){ .word = call->arch->word, .size = call->arch->word == 8 ? 56 : 28 };
	error = guest_read(call, addr, header->bytes, header->size);
	memcpy(&header->name, header->bytes, header->word);
	memcpy(&header->name_len, header->bytes + header->word, sizeof(header->name_len));
	return error;
}

/* The call with this header, whose name is at NAME in the window now. */
static int put_header(struct call *call, struct verdict *verdict, struct header *header, uint64_t name, uint32_t name_len)
{
	memcpy(header->bytes, &name, header->word);
	memcpy(header->bytes + header->word, &name_len, sizeof(name_len));
	*verdict = (struct verdict){ .kind = VERDICT_REWRITE, .id = call->id };
	memcpy(verdict->args, call->args, sizeof(verdict->args));
	return guest_window_put(call, header->bytes, header->size, &verdict->args[1]);
}

/* HELD is the socket that is named, and is taken over; -1: ADDRESS is used as it is. */
static struct verdict run_message(struct call *call, struct header *header, const struct address *address, int held)
{
	struct sockaddr_un link = { .sun_family = AF_UNIX };
	struct verdict verdict;
	uint64_t name = 0;
	size_t len = 0;
	int error;

	if (held >= 0) {
		strcpy(link.sun_path, ask_link(held).text);
		len = PATH_AT + strlen(link.sun_path) + 1;
		error = call->foreign ? -EACCES : guest_window_put(call, &link, len, &name);
	} else {
		len = address ? (size_t)address->len : 0;
		error = len ? guest_window_put(call, address->bytes, len, &name) : 0;
	}
	if (error == 0)
		error = put_header(call, &verdict, header, name, (uint32_t)len);
	if (error == 0)
		return held >= 0 ? ask_keep(call, verdict, held, nothing_more) : verdict;
	if (held >= 0)
		close(held);
	return env_error(error);
}

/* Data and ancillary data stay in the guest's memory: nothing is decided by them. */
struct verdict sys_sendmsg(void *context, struct call *call)
{
	struct address address;
	struct header header;
	const char *path;
	int held, error = header_read(call, call->args[1], &header);

	if (error == 0 && (int32_t)header.name_len < 0)
		error = -EINVAL;
	if (error < 0)
		return env_error(error);
	if (!header.name || !header.name_len)
		return run_message(call, &header, NULL, -1);
	if (header.name_len > ADDRESS_MAX) /* net/socket.c: copy_msghdr_from_user() */
		header.name_len = ADDRESS_MAX;
	error = address_read(call, header.name, (int)header.name_len, &address);
	if (error < 0)
		return env_error(error);
	if (!has_path(&address))
		return run_message(call, &header, &address, -1);
	path = is_ours(address.path) ? bound_find(address.path) : address.path;
	held = path ? hold_socket(context, call, path) : -ENOENT;
	return held < 0 ? env_error(held) : run_message(call, &header, NULL, held);
}

/* --- bind ---------------------------------------------------------------------------------------------------------- */

/* What a bind that the guest makes itself is to end with. */
struct bind_end {
	char address[VFS_ADDRESS_MAX], path[ADDRESS_MAX];
};
_Static_assert(sizeof(((struct bound *)0)->path) <= ADDRESS_MAX, "a path that bind takes");

static void bind_by_guest_end(struct env *env, struct call *call, int64_t result)
{
	struct task_env *task = call->state;
	const struct bind_end *end = task->data;
	const struct vfs_who who = { .vfs = env->vfs };

	if (vfs_bind_end(&who, &task->place, task->fd, end->address, result < 0 ? (int)result : 0) == 0)
		bound_remember(end->address, end->path);
}

/* Where its descriptor cannot be had. */
static struct verdict bind_by_guest(struct call *call, const struct vfs_who *who, struct vfs_place *place, const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct task_env *task = call->state;
	struct verdict verdict = { 0 };
	struct bind_end *end = calloc(1, sizeof(*end));
	int dirfd = -1, error = end ? 0 : -ENOMEM;

	if (error == 0)
		error = vfs_bind_start(who, place, &dirfd, end->address);
	if (error == 0) {
		strcpy(name.sun_path, end->address);
		error = put_address(call, &verdict, 1, &name, PATH_AT + strlen(end->address) + 1);
		if (error < 0)
			vfs_bind_end(who, place, dirfd, end->address, error);
	}
	if (error < 0) {
		if (dirfd >= 0)
			close(dirfd);
		free(end);
		return env_error(error);
	}
	strcpy(end->path, path);
	task->data = end;
	task->place = *place;
	*place = VFS_PLACE_NONE;
	return ask_keep(call, verdict, dirfd, bind_by_guest_end);
}

static int own_socket(struct call *call, int fd)
{
	int sock = ask_dup(call, fd);
	struct stat st;

	if (sock < 0 || (fstat(sock, &st) == 0 && S_ISSOCK(st.st_mode)))
		return sock;
	close(sock);
	return -ENOTSOCK;
}

static struct verdict bind_path(struct env *env, struct call *call, const char *path)
{
	struct vfs_place place = VFS_PLACE_NONE;
	char address[VFS_ADDRESS_MAX];
	struct verdict verdict;
	struct vfs_who who;
	int sock, error = env_who(env, call, &who);

	sock = error < 0 ? error : own_socket(call, (int)call->args[0]);
	if (sock < 0 && sock != -EPERM)
		return env_error(sock);
	error = env_walk_path(&who, AT_FDCWD, path, VFS_CREATE, &place);
	if (error == 0 && sock < 0) {
		verdict = call->foreign ? env_error(sock) : bind_by_guest(call, &who, &place, path);
		vfs_place_end(env->vfs, &place);
		return verdict;
	}
	if (error == 0)
		error = vfs_bind(&who, &place, sock, address);
	if (sock >= 0)
		close(sock);
	if (error == 0)
		bound_remember(address, path);
	return env_end_place(env, &place, error);
}

struct verdict sys_bind(void *context, struct call *call)
{
	int len = (int)call->args[2], error;
	struct address address;

	if (!is_read(call->args[1], len))
		return verdict_forward();
	error = address_read(call, call->args[1], len, &address);
	if (error < 0)
		return env_error(error);
	return has_path(&address) ? bind_path(context, call, address.path) : run_copy(call, 1, &address);
}

/* --- which name a socket has --------------------------------------------------------------------------------------- */

/* ADDRESS is what the kernel tells; it becomes what the guest is told. */
static void name_for_guest(struct address *address)
{
	const char *path;

	if (!has_path(address) || !is_ours(address->path))
		return;
	path = bound_find(address->path);
	memset(address->path, 0, sizeof(address->path));
	address->len = PATH_AT;
	if (path) {
		strcpy(address->path, path);
		address->len += (int)strlen(path) + 1;
	}
}

/* getsockname and getpeername; net/socket.c: move_addr_to_user(). */
struct verdict sys_getsockname(void *context, struct call *call)
{
	static struct address address;
	static int told;
	socklen_t len = ADDRESS_MAX;
	struct verdict verdict;
	struct vfs_who who;
	int room, sock, error = env_who(context, call, &who);

	sock = error < 0 ? error : ask_dup(call, (int)call->args[0]);
	if (sock == -EPERM)
		return verdict_forward();
	if (sock < 0)
		return env_error(sock);
	memset(&address, 0, sizeof(address));
	error = call->id == CALL_getpeername ? getpeername(sock, (struct sockaddr *)&address.any, &len)
	                                     : getsockname(sock, (struct sockaddr *)&address.any, &len);
	error = error < 0 ? -errno : 0;
	close(sock);
	if (error == 0)
		error = guest_read(call, call->args[2], &room, sizeof(room));
	if (error < 0 || room < 0)
		return env_error(error < 0 ? error : -EINVAL);
	address.len = (int)len;
	name_for_guest(&address);
	told = address.len;
	verdict = env_answer(0);
	if (room > 0 && told > 0)
		env_write(&verdict, call->args[1], address.bytes, (size_t)(room < told ? room : told));
	env_write(&verdict, call->args[2], &told, sizeof(told));
	return verdict;
}

/* --- i386: all of them by one call --------------------------------------------------------------------------------- */

static const struct { int id; unsigned args; } socketcalls[] = {
	[SYS_SOCKET] = { CALL_socket, 3 }, [SYS_BIND] = { CALL_bind, 3 }, [SYS_CONNECT] = { CALL_connect, 3 },
	[SYS_LISTEN] = { CALL_listen, 2 }, [SYS_ACCEPT] = { CALL_accept4, 3 }, [SYS_GETSOCKNAME] = { CALL_getsockname, 3 },
	[SYS_GETPEERNAME] = { CALL_getpeername, 3 }, [SYS_SOCKETPAIR] = { CALL_socketpair, 4 }, [SYS_SEND] = { CALL_sendto, 4 },
	[SYS_RECV] = { CALL_recvfrom, 4 }, [SYS_SENDTO] = { CALL_sendto, 6 }, [SYS_RECVFROM] = { CALL_recvfrom, 6 },
	[SYS_SHUTDOWN] = { CALL_shutdown, 2 }, [SYS_SETSOCKOPT] = { CALL_setsockopt, 5 }, [SYS_GETSOCKOPT] = { CALL_getsockopt, 5 },
	[SYS_SENDMSG] = { CALL_sendmsg, 3 }, [SYS_RECVMSG] = { CALL_recvmsg, 3 }, [SYS_ACCEPT4] = { CALL_accept4, 4 },
	[SYS_RECVMMSG] = { CALL_recvmmsg, 5 }, [SYS_SENDMMSG] = { CALL_sendmmsg, 4 },
};

static struct verdict decide(struct env *env, struct call *call)
{
	switch (call->id) {
	case CALL_bind:
		return sys_bind(env, call);
	case CALL_connect:
		return sys_connect(env, call);
	case CALL_sendto:
		return sys_sendto(env, call);
	case CALL_sendmsg:
		return sys_sendmsg(env, call);
	case CALL_getsockname:
	case CALL_getpeername:
		return sys_getsockname(env, call);
	default:
		return verdict_forward();
	}
}

/* The arguments are in memory: they are read once, and the call of its own that does the same runs with them. */
struct verdict sys_socketcall(void *context, struct call *call)
{
	uint32_t number = (uint32_t)call->args[0], words[6] = { 0 };
	struct call direct = *call;
	struct verdict verdict;
	int error;

	if (number == 0 || number >= sizeof(socketcalls) / sizeof(socketcalls[0]))
		return verdict_answer(-EINVAL);
	error = guest_read(call, call->args[1], words, socketcalls[number].args * sizeof(words[0]));
	if (error < 0)
		return env_error(error);
	direct.id = socketcalls[number].id;
	for (unsigned i = 0; i < 6; i++)
		direct.args[i] = words[i];
	verdict = decide(context, &direct);
	call->state = direct.state;
	call->foreign = direct.foreign;
	if (verdict.kind != VERDICT_FORWARD)
		return verdict;
	verdict = (struct verdict){ .kind = VERDICT_REWRITE, .id = direct.id };
	memcpy(verdict.args, direct.args, sizeof(verdict.args));
	return verdict;
}
