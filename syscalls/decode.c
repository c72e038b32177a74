/*
 * decode.c - one line for a call: its name, its arguments as the row shapes them, its result.
 *
 * The entry prints up to the first argument that the kernel fills, the exit goes on from there (as strace does), so a
 * blocked call already shows what it waits for. Nothing here knows a struct: a kind of args.def has a printer in one of the
 * decode_*.c.
 */
#include <errno.h>

#include "syscalls/decode_impl.h"

enum { RESULT_COLUMN = 40 }; /* where strace puts the equals sign of a short line */

/* When an argument is printed. */
enum when {
	AT_ENTRY,
	AT_EXIT,        /* filled by the kernel: nothing but an address after a failure */
	AT_EXIT_ALWAYS, /* the printer looks at the result itself */
	AT_REQUEST      /* the request says it */
};

struct kind {
	arg_printer *print;
	enum when when;
	uint64_t (*keep)(const struct decoding *d, uint64_t value); /* at the entry: what the kernel will overwrite */
	bool (*fills)(const struct decoding *d);                    /* AT_REQUEST */
};

static void arg_ipc(struct decoding *d, uint64_t value)
{
	text_hex(d->out, value);
	for (unsigned i = 2; i < ROW_ARGS; i++) {
		text_lit(d->out, ", ");
		text_hex(d->out, d->call->args[i]);
	}
}

#define IN(name, print) [ARG_##name] = { arg_##print, AT_ENTRY, NULL, NULL }
#define OUT(name, print) [ARG_##name] = { arg_##print, AT_EXIT, NULL, NULL }
#define KEPT(name, print, keep) [ARG_##name] = { arg_##print, AT_EXIT, keep, NULL }
#define ALWAYS(name, print, keep) [ARG_##name] = { arg_##print, AT_EXIT_ALWAYS, keep, NULL }
#define REQUEST(name, print, fills) [ARG_##name] = { arg_##print, AT_REQUEST, NULL, fills }

static const struct kind kinds[] = {
	IN(INT, int), IN(UINT, uint), IN(LONG, long), IN(ULONG, ulong), IN(HEX, hex), IN(OCTAL, octal), IN(PTR, ptr),
	IN(OFF64, off64), IN(U64, u64), IN(POS, off64), IN(FD, int), IN(DIRFD, dirfd), OUT(FD_PAIR, fd_pair),
	IN(PID, int), IN(UID, uid), OUT(UID_OUT, id), IN(UID16, uid16), OUT(UID16_OUT, id16), IN(GID_LIST, ids),
	OUT(GID_LIST_OUT, ids), IN(MODE, octal), IN(MODE_TYPE, mode_type), IN(DEV, dev), IN(SIGNAL, signal),
	IN(FLAGS, flags), IN(ENUM, enum), IN(PATH, path), IN(STRING, string), OUT(STRING_OUT, string_out),
	IN(STRINGV, stringv), IN(ENVIRON, environ), IN(BUF_IN, buf), OUT(BUF_OUT, buf), IN(IOVEC_IN, iovec),
	OUT(IOVEC_OUT, iovec), IN(SOCKADDR_IN, sockaddr_in), OUT(SOCKADDR_OUT, sockaddr_out),
	ALWAYS(SOCKLEN_INOUT, socklen, keep_int), IN(MSGHDR_IN, msghdr), KEPT(MSGHDR_OUT, msghdr, keep_msghdr),
	IN(MMSGHDR_IN, mmsghdr), OUT(MMSGHDR_OUT, mmsghdr), IN(SOCKOPT_IN, sockopt), OUT(SOCKOPT_OUT, sockopt),
	IN(SOCKOPT_LEVEL, sockopt_level), IN(SOCKOPT_NAME, sockopt_name), IN(SOCKET_TYPE, socket_type),
	IN(SOCKET_PROTO, socket_proto), OUT(STAT_OUT, stat), OUT(STAT64_OUT, stat64), OUT(OLDSTAT_OUT, oldstat),
	OUT(STATX_OUT, statx), OUT(STATFS_OUT, statfs), OUT(STATFS64_OUT, statfs64), IN(TIMESPEC_IN, timespec),
	ALWAYS(TIMESPEC_OUT, timespec_out, NULL), IN(TIMESPEC64_IN, timespec64),
	ALWAYS(TIMESPEC64_OUT, timespec64_out, NULL), IN(TIMESPEC_PAIR_IN, timespec_pair),
	IN(TIMESPEC64_PAIR_IN, timespec64_pair), IN(TIMEVAL_IN, timeval), OUT(TIMEVAL_OUT, timeval),
	IN(TIMEVAL_PAIR_IN, timeval_pair), IN(ITIMERVAL_IN, itimerval), OUT(ITIMERVAL_OUT, itimerval),
	IN(ITIMERSPEC_IN, itimerspec), OUT(ITIMERSPEC_OUT, itimerspec), IN(ITIMERSPEC64_IN, itimerspec64),
	OUT(ITIMERSPEC64_OUT, itimerspec64), IN(UTIMBUF_IN, utimbuf), OUT(TIME_OUT, time), IN(TIMEZONE_PTR, ptr),
	OUT(TIMEX, timex), OUT(TMS_OUT, tms), IN(SIGSET_IN, sigset), OUT(SIGSET_OUT, sigset),
	IN(SIGACTION_IN, sigaction), OUT(SIGACTION_OUT, sigaction), IN(SIGINFO_IN, siginfo), OUT(SIGINFO_OUT, siginfo),
	IN(SIGSTACK_IN, sigstack), OUT(SIGSTACK_OUT, sigstack), IN(PSELECT_SIGMASK, pselect_sigmask),
	OUT(WAIT_STATUS_OUT, wait_status), OUT(RUSAGE_OUT, rusage), IN(RLIMIT_IN, rlimit), OUT(RLIMIT_OUT, rlimit),
	IN(RLIMIT64_IN, rlimit64), OUT(RLIMIT64_OUT, rlimit64), IN(POLLFD, pollfd), IN(FDSET, fdset),
	IN(EPOLL_EVENT_IN, epoll_event), OUT(EPOLL_EVENT_OUT, epoll_events), OUT(DIRENT_OUT, dirents),
	IN(INT_PTR_IN, int_at), OUT(INT_PTR_OUT, int_at), OUT(ULONG_PTR_OUT, ulong_at),
	ALWAYS(OFF_INOUT, offset, keep_offset), ALWAYS(OFF64_INOUT, offset64, keep_offset64), OUT(UTSNAME_OUT, utsname),
	OUT(SYSINFO_OUT, sysinfo), IN(CAP_HEADER, cap_header), IN(CAP_DATA_IN, cap_data), OUT(CAP_DATA_OUT, cap_data),
	IN(SCHED_PARAM_IN, int_at), OUT(SCHED_PARAM_OUT, int_at), IN(SCHED_ATTR_IN, sched_attr),
	OUT(SCHED_ATTR_OUT, sched_attr), IN(CPUSET_IN, cpuset), OUT(CPUSET_OUT, cpuset), IN(OPEN_HOW, open_how),
	IN(CLONE_ARGS, clone_args), IN(CLONE_FLAGS, clone_flags), IN(FUTEX_OP, futex_op), IN(FUTEX_WAITV, futex_waitv),
	IN(IOCTL_REQUEST, ioctl_request), REQUEST(IOCTL_ARG, ioctl, ioctl_fills),
	REQUEST(FCNTL_ARG, fcntl, fcntl_fills), REQUEST(PRCTL_ARG, prctl, prctl_fills), IN(SECCOMP_ARG, seccomp),
	IN(SOCKETCALL_ARGS, ptr), IN(IPC_ARGS, ipc), IN(OLD_MMAP_ARGS, ptr), IN(OLD_SELECT_ARGS, ptr),
	IN(SEMBUF_IN, sembuf), IN(SHM_IPC_FLAGS, shm_flags), IN(MQ_ATTR_IN, mq_attr), OUT(MQ_ATTR_OUT, mq_attr),
	IN(SIGEVENT_IN, sigevent), ALWAYS(FILE_HANDLE, file_handle, keep_int), IN(USER_DESC, user_desc),
	IN(BUF_HEX, buf_hex), IN(STRUCT_IN, ptr), IN(STRUCT_OUT, ptr)
};

/* --- arguments and registers ---------------------------------------------------------------------------------------- */

/* Two for a 64-bit value on a 32-bit ABI; preadv's position is two everywhere. */
static unsigned registers_of(const struct decoding *d, unsigned kind)
{
	return kind == ARG_POS || (decode_compat(d) && (kind == ARG_OFF64 || kind == ARG_U64)) ? 2 : 1;
}

uint64_t decode_value(const struct decoding *d, unsigned index)
{
	unsigned first = index < ROW_ARGS ? d->first[index] : ROW_ARGS;
	uint64_t value;

	if (first >= ROW_ARGS)
		return 0;
	value = d->call->args[first];
	if (!decode_compat(d))
		return value; /* the high half of a position shifts out (fs/read_write.c, pos_from_hilo()) */
	value = (uint32_t)value;
	if (registers_of(d, d->args[index].kind) == 2 && first + 1 < ROW_ARGS)
		value |= d->call->args[first + 1] << 32;
	return value;
}

uint64_t decode_ref(const struct decoding *d)
{
	unsigned ref = d->args[d->index].ref;

	if (ref == REF_RESULT)
		return d->result > 0 ? (uint64_t)d->result : 0;
	return decode_value(d, ref);
}

/* The open calls show a mode only where it is used. */
static unsigned mode_hidden(const struct decoding *d, unsigned i)
{
	if (d->args[i].kind != ARG_MODE || i == 0 || d->args[i - 1].set != SET_open_flags)
		return 0;
	return decode_open_creates(decode_value(d, i - 1)) ? 0 : ~0U << i;
}

/* futex's last three arguments belong to its operation (futex(2)). */
static void futex_adjust(struct decoding *d)
{
	enum { WAKE = 1, FD, REQUEUE, CMP_REQUEUE, WAKE_OP, LOCK_PI, UNLOCK_PI, TRYLOCK_PI, WAIT_BITSET, WAKE_BITSET,
	       WAIT_REQUEUE_PI, CMP_REQUEUE_PI, LOCK_PI2, OPERATION = 0x7f };
	static const uint8_t shown[] = { 0x0f, 0x07, 0x07, 0x1f, 0x3f, 0x3f, 0x0f, 0x03, 0x03, 0x2f, 0x27, 0x3f, 0x3f, 0x0f };
	unsigned operation = decode_value(d, 1) & OPERATION;

	if (operation < sizeof(shown))
		d->hidden |= ~(unsigned)shown[operation];
	if (operation == REQUEUE || operation == CMP_REQUEUE || operation == WAKE_OP || operation == CMP_REQUEUE_PI)
		d->args[3].kind = ARG_UINT;
	if (operation == WAIT_BITSET || operation == WAKE_BITSET)
		d->args[5] = (struct arg){ .kind = ARG_ENUM, .set = SET_futex_bitsets };
	if (operation == WAKE_OP)
		d->args[5].kind = ARG_HEX;
}

/* Where one argument says what another is, or that it is not looked at. */
static void arguments_adjust(struct decoding *d)
{
	enum { FIXED = 2 };

	switch (d->call->id) {
	case CALL_futex:
	case CALL_futex_time64:
		futex_adjust(d);
		break;
	case CALL_fcntl:
	case CALL_fcntl64:
		d->hidden |= ~0U << fcntl_args((uint32_t)decode_value(d, 1));
		break;
	case CALL_ioctl:
		d->hidden |= ~0U << ioctl_args((uint32_t)decode_value(d, 1));
		break;
	case CALL_prctl:
		d->hidden |= ~0U << prctl_args((uint32_t)decode_value(d, 0));
		break;
	case CALL_mremap:
		if (!(decode_value(d, 3) & FIXED))
			d->hidden |= ~0U << 4;
		break;
	default:
		break;
	}
}

static void decoding_begin(struct decoding *d)
{
	unsigned reg = 0;

	memcpy(d->args, d->row->args, sizeof(d->args));
	for (unsigned i = 0; i < ROW_ARGS && d->args[i].kind != ARG_END; i++) {
		d->first[i] = (uint8_t)reg;
		reg += registers_of(d, d->args[i].kind);
		d->hidden |= mode_hidden(d, i);
	}
	arguments_adjust(d);
}

static bool argument_filled(struct decoding *d)
{
	const struct kind *kind = &kinds[d->args[d->index].kind];

	return kind->when == AT_REQUEST ? kind->fills(d) : kind->when != AT_ENTRY;
}

static void argument_print(struct decoding *d)
{
	const struct kind *kind = &kinds[d->args[d->index].kind];
	uint64_t value = decode_value(d, d->index);

	if (d->exiting && decode_failed(d) && kind->when != AT_EXIT_ALWAYS && argument_filled(d))
		decode_address(d->out, value);
	else
		kind->print(d, value);
}

/* Prints from argument d->index on, at the entry only up to the first that the kernel fills. */
static void arguments_print(struct decoding *d)
{
	bool comma = (~d->hidden & ((1U << d->index) - 1)) != 0;

	for (; d->index < ROW_ARGS && d->args[d->index].kind != ARG_END; d->index++) {
		if (d->hidden >> d->index & 1)
			continue;
		if (!d->exiting && argument_filled(d))
			return;
		if (comma)
			text_lit(d->out, ", ");
		comma = true;
		argument_print(d);
	}
}

static void arguments_keep(struct decoding *d)
{
	unsigned slot = 0;

	for (unsigned i = 0; i < ROW_ARGS && d->args[i].kind != ARG_END && slot < 2; i++)
		if (kinds[d->args[i].kind].keep)
			d->state->extra[slot++] = kinds[d->args[i].kind].keep(d, decode_value(d, i));
}

uint64_t decode_kept(const struct decoding *d, unsigned index)
{
	unsigned slot = 0;

	if (!d->exiting || index >= ROW_ARGS || !kinds[d->args[index].kind].keep)
		return UINT64_MAX;
	for (unsigned i = 0; i < index; i++)
		slot += kinds[d->args[i].kind].keep != NULL;
	return slot < 2 ? d->state->extra[slot] : UINT64_MAX;
}

/* --- clone ---------------------------------------------------------------------------------------------------------- */

enum {
	CLONE_HAS_PIDFD = 0x1000,
	CLONE_HAS_TLS = 0x80000,
	CLONE_HAS_PARENT_TID = 0x100000,
	CLONE_HAS_CHILD_TID = 0x1200000 /* CLONE_CHILD_SETTID or CLONE_CHILD_CLEARTID */
};

/* clone(2) is told by names: the order of its arguments is an architecture's own and the flags say which there are. */
static void clone_entry(struct decoding *d)
{
	text_lit(d->out, "child_stack=");
	decode_address(d->out, decode_value(d, 1));
	text_lit(d->out, ", flags=");
	arg_clone_flags(d, decode_value(d, 0));
}

static void clone_exit(struct decoding *d)
{
	uint64_t flags = decode_value(d, 0);
	unsigned tls = d->call->arch->clone_backwards ? 3 : 4, child_tid = 7 - tls;

	if (flags & (CLONE_HAS_PARENT_TID | CLONE_HAS_PIDFD)) {
		text_lit(d->out, ", parent_tid=");
		if (decode_failed(d))
			decode_address(d->out, decode_value(d, 2));
		else
			arg_int_at(d, decode_value(d, 2));
	}
	if (flags & CLONE_HAS_TLS) {
		text_lit(d->out, ", tls=");
		decode_address(d->out, decode_value(d, tls));
	}
	if (flags & CLONE_HAS_CHILD_TID) {
		text_lit(d->out, ", child_tidptr=");
		decode_address(d->out, decode_value(d, child_tid));
	}
}

/* --- results -------------------------------------------------------------------------------------------------------- */

static void result_error(struct text *out, int error)
{
	enum { RESTARTSYS = 512, RESTARTNOINTR, RESTARTNOHAND, RESTART_BLOCK = 516 };
	const char *name = decode_errno_name(error);

	switch (error) {
	case RESTARTSYS:
		text_lit(out, "? ERESTARTSYS (To be restarted if SA_RESTART is set)");
		return;
	case RESTARTNOINTR:
		text_lit(out, "? ERESTARTNOINTR (To be restarted)");
		return;
	case RESTARTNOHAND:
		text_lit(out, "? ERESTARTNOHAND (To be restarted if no handler)");
		return;
	case RESTART_BLOCK:
		text_lit(out, "? ERESTART_RESTARTBLOCK (Interrupted by signal)");
		return;
	}
	text_lit(out, "-1 ");
	if (name) {
		text_add(out, name);
		text_lit(out, " (");
		text_add(out, strerror(error));
	} else {
		text_lit(out, "(errno ");
		text_dec(out, error);
	}
	text_char(out, ')');
}

/* Flags are told as such: in hexadecimal, with their names behind. */
static void fcntl_number(struct text *out, const struct call *call, int64_t result)
{
	enum { GETFD = 1, GETFL = 3, GET_SEALS = 1034 };
	uint32_t command = (uint32_t)call->args[1];

	if (command == GETFD || command == GETFL || command == GET_SEALS)
		text_hex(out, (uint32_t)result);
	else
		text_dec(out, (int32_t)result);
}

void decode_result(struct text *out, const struct call *call, int64_t result)
{
	if (result < 0 && result >= -4095) {
		result_error(out, (int)-result);
		return;
	}
	switch (call->id) {
	case CALL_mmap:
	case CALL_mmap2:
	case CALL_old_mmap:
	case CALL_brk:
	case CALL_mremap:
	case CALL_shmat:
	case CALL_map_shadow_stack:
		text_hex(out, call->arch->word == 4 ? (uint32_t)result : (uint64_t)result);
		break;
	case CALL_umask:
		text_octal(out, (uint64_t)result & 07777, 3);
		break;
	case CALL_fcntl:
	case CALL_fcntl64:
		fcntl_number(out, call, result);
		break;
	case CALL_sgetmask:
	case CALL_ssetmask:
		text_hex(out, (uint32_t)result);
		break;
	default:
		text_dec(out, call->arch->word == 4 ? (int32_t)result : result);
	}
}

/* What strace adds in parentheses after the number. */
static void result_more(struct decoding *d)
{
	switch (d->call->id) {
	case CALL_fcntl:
	case CALL_fcntl64:
		fcntl_result(d);
		break;
	case CALL_poll:
	case CALL_ppoll:
	case CALL_ppoll_time64:
		decode_poll_result(d);
		break;
	case CALL_select:
	case CALL__newselect:
	case CALL_pselect6:
	case CALL_pselect6_time64:
		decode_select_result(d);
		break;
	default:
		break;
	}
}

static void result_print(struct decoding *d)
{
	text_lit(d->out, ") ");
	for (size_t at = d->state->column + (d->out->len - d->start); at < RESULT_COLUMN; at++)
		text_char(d->out, ' ');
	text_lit(d->out, "= ");
	decode_result(d->out, d->call, d->result);
	if (!decode_failed(d))
		result_more(d);
}

/* --- the whole ------------------------------------------------------------------------------------------------------- */

static void unknown_entry(struct text *out, const struct call *call)
{
	text_lit(out, "syscall_");
	text_hex(out, call->nr);
	text_char(out, '(');
	for (unsigned i = 0; i < ROW_ARGS; i++) {
		if (i)
			text_lit(out, ", ");
		text_hex(out, call->args[i]);
	}
}

void decode_entry(struct text *out, const struct call *call, struct decode_state *state)
{
	struct call inner;
	struct decoding d = { .out = out, .start = out->len, .call = decode_unwrap(call, &inner), .state = state };

	*state = (struct decode_state){ 0 };
	d.row = row_of(d.call->id);
	if (!d.row) {
		unknown_entry(out, call);
		state->column = out->len - d.start;
		return;
	}
	text_add(out, d.row->name);
	text_char(out, '(');
	decoding_begin(&d);
	if (d.call->id == CALL_clone) {
		clone_entry(&d);
	} else {
		arguments_print(&d);
		state->next = (uint8_t)d.index;
		arguments_keep(&d);
	}
	state->column = out->len - d.start;
}

void decode_exit(struct text *out, const struct call *call, struct decode_state *state, int64_t result)
{
	struct call inner;
	struct decoding d = { .out = out, .start = out->len, .call = decode_unwrap(call, &inner), .state = state, .exiting = true,
	                      .result = result };

	d.row = row_of(d.call->id);
	if (d.row) {
		decoding_begin(&d);
		d.index = state->next;
		if (d.call->id == CALL_clone)
			clone_exit(&d);
		else
			arguments_print(&d);
	}
	result_print(&d);
}
