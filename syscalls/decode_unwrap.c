/*
 * decode_unwrap.c - calls of i386 that stand for others: socketcall(2), ipc(2), and mmap and select with argument blocks.
 *
 * The block is the guest's memory and is read again at the exit. What it says then is only shown; which call it is comes
 * from a register, so entry and exit speak of the same one unless the guest took the block away meanwhile.
 */
#include "syscalls/decode_impl.h"

/* Reads COUNT words at ADDR into args. */
static bool block_read(const struct call *call, uint64_t addr, uint64_t *args, unsigned count)
{
	unsigned word = call->arch->word;
	uint8_t buf[6 * 8];

	if (!addr || guest_peek(call, addr, buf, (size_t)count * word) != (ssize_t)((size_t)count * word))
		return false;
	for (unsigned i = 0; i < count; i++)
		args[i] = load_word(buf + i * word, word);
	return true;
}

static const struct call *become(struct call *inner, const struct call *call, int id, const uint64_t args[6])
{
	*inner = *call;
	inner->id = id;
	memcpy(inner->args, args, sizeof(inner->args));
	return inner;
}

static const struct call *socketcall_unwrap(const struct call *call, struct call *inner)
{
	static const struct {
		int16_t id;
		uint8_t args;
	} calls[] = { /* linux/net.h, SYS_SOCKET on; send and recv are sendto and recvfrom without an address */
		{ 0, 0 }, { CALL_socket, 3 }, { CALL_bind, 3 }, { CALL_connect, 3 }, { CALL_listen, 2 }, { CALL_accept, 3 },
		{ CALL_getsockname, 3 }, { CALL_getpeername, 3 }, { CALL_socketpair, 4 }, { CALL_sendto, 4 }, { CALL_recvfrom, 4 },
		{ CALL_sendto, 6 }, { CALL_recvfrom, 6 }, { CALL_shutdown, 2 }, { CALL_setsockopt, 5 }, { CALL_getsockopt, 5 },
		{ CALL_sendmsg, 3 }, { CALL_recvmsg, 3 }, { CALL_accept4, 4 }, { CALL_recvmmsg, 5 }, { CALL_sendmmsg, 4 }
	};
	uint32_t which = (uint32_t)call->args[0];
	uint64_t args[6] = { 0 };

	if (which == 0 || which >= sizeof(calls) / sizeof(calls[0]) || !block_read(call, call->args[1], args, calls[which].args))
		return call;
	return become(inner, call, calls[which].id, args);
}

/* ipc/syscall.c: ipc(call, first, second, third, ptr, fifth), the version of the interface in the high half of `call`. */
static const struct call *ipc_unwrap(const struct call *call, struct call *inner)
{
	enum { SEMOP = 1, SEMGET, SEMCTL, SEMTIMEDOP, MSGSND = 11, MSGRCV, MSGGET, MSGCTL, SHMAT = 21, SHMDT, SHMGET, SHMCTL };
	uint64_t first = call->args[1], second = call->args[2], third = call->args[3], ptr = call->args[4], pair[2] = { ptr, 0 };
	bool old = call->args[0] >> 16 == 0;

	switch (call->args[0] & 0xffff) {
	case SEMOP:
		return become(inner, call, CALL_semop, (uint64_t[6]){ first, ptr, second });
	case SEMGET:
		return become(inner, call, CALL_semget, (uint64_t[6]){ first, second, third });
	case SEMCTL:
		if (!block_read(call, ptr, pair, 1))
			return call;
		return become(inner, call, CALL_semctl, (uint64_t[6]){ first, second, third, pair[0] });
	case SEMTIMEDOP:
		return become(inner, call, CALL_semtimedop, (uint64_t[6]){ first, ptr, second, call->args[5] });
	case MSGSND:
		return become(inner, call, CALL_msgsnd, (uint64_t[6]){ first, ptr, second, third });
	case MSGRCV:
		if (old && !block_read(call, ptr, pair, 2))
			return call;
		return become(inner, call, CALL_msgrcv,
			      (uint64_t[6]){ first, pair[0], second, old ? pair[1] : call->args[5], third });
	case MSGGET:
		return become(inner, call, CALL_msgget, (uint64_t[6]){ first, second });
	case MSGCTL:
		return become(inner, call, CALL_msgctl, (uint64_t[6]){ first, second, ptr });
	case SHMAT:
		return become(inner, call, CALL_shmat, (uint64_t[6]){ first, ptr, second });
	case SHMDT:
		return become(inner, call, CALL_shmdt, (uint64_t[6]){ ptr });
	case SHMGET:
		return become(inner, call, CALL_shmget, (uint64_t[6]){ first, second, third });
	case SHMCTL:
		return become(inner, call, CALL_shmctl, (uint64_t[6]){ first, second, ptr });
	default:
		return call;
	}
}

const struct call *decode_unwrap(const struct call *call, struct call *inner)
{
	uint64_t args[6] = { 0 };

	switch (call->id) {
	case CALL_socketcall:
		return socketcall_unwrap(call, inner);
	case CALL_ipc:
		return ipc_unwrap(call, inner);
	case CALL_old_mmap:
		return block_read(call, call->args[0], args, 6) ? become(inner, call, CALL_mmap, args) : call;
	case CALL_old_select:
		return block_read(call, call->args[0], args, 5) ? become(inner, call, CALL_select, args) : call;
	default:
		return call;
	}
}
