/*
 * decode.c - one line for a call: its name, its arguments as the row shapes them, its result.
 *
 * The entry prints up to the first argument that the kernel fills, the exit goes on from there (as strace does), so a blocked
 * call already shows what it waits for. Nothing here knows a struct: a kind of args.def has a printer in one of the decode_*.c.
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

static const struct kind kinds[] = {
	[ARG_INT] = { arg_int }, [ARG_UINT] = { arg_uint }, [ARG_LONG] = { arg_long }, [ARG_ULONG] = { arg_ulong },
	[ARG_HEX] = { arg_hex }, [ARG_OCTAL] = { arg_octal }, [ARG_PTR] = { arg_ptr }, [ARG_OFF64] = { arg_off64 },
	[ARG_U64] = { arg_u64 }, [ARG_POS] = { arg_off64 }, [ARG_FD] = { arg_int }, [ARG_DIRFD] = { arg_dirfd },
	[ARG_FD_PAIR] = { arg_fd_pair, AT_EXIT }, [ARG_PID] = { arg_int }, [ARG_UID] = { arg_uid },
	[ARG_UID_OUT] = { arg_id, AT_EXIT }, [ARG_UID16] = { arg_uid16 }, [ARG_UID16_OUT] = { arg_id16, AT_EXIT },
	[ARG_GID_LIST] = { arg_ids }, [ARG_GID_LIST_OUT] = { arg_ids, AT_EXIT }, [ARG_MODE] = { arg_octal },
	[ARG_MODE_TYPE] = { arg_mode_type }, [ARG_DEV] = { arg_dev }, [ARG_SIGNAL] = { arg_signal }, [ARG_FLAGS] = { arg_flags },
	[ARG_ENUM] = { arg_enum }, [ARG_PATH] = { arg_path }, [ARG_STRING] = { arg_string },
	[ARG_STRING_OUT] = { arg_string_out, AT_EXIT }, [ARG_STRINGV] = { arg_stringv }, [ARG_ENVIRON] = { arg_environ },
	[ARG_BUF_IN] = { arg_buf }, [ARG_BUF_OUT] = { arg_buf, AT_EXIT }, [ARG_IOVEC_IN] = { arg_iovec },
	[ARG_IOVEC_OUT] = { arg_iovec, AT_EXIT }, [ARG_SOCKADDR_IN] = { arg_sockaddr_in },
	[ARG_SOCKADDR_OUT] = { arg_sockaddr_out, AT_EXIT }, [ARG_SOCKLEN_INOUT] = { arg_socklen, AT_EXIT_ALWAYS, keep_int },
	[ARG_MSGHDR_IN] = { arg_msghdr }, [ARG_MSGHDR_OUT] = { arg_msghdr, AT_EXIT, keep_msghdr },
	[ARG_MMSGHDR_IN] = { arg_mmsghdr }, [ARG_MMSGHDR_OUT] = { arg_mmsghdr, AT_EXIT }, [ARG_SOCKOPT_IN] = { arg_sockopt },
	[ARG_SOCKOPT_OUT] = { arg_sockopt, AT_EXIT }, [ARG_SOCKOPT_LEVEL] = { arg_sockopt_level },
	[ARG_SOCKOPT_NAME] = { arg_sockopt_name }, [ARG_SOCKET_TYPE] = { arg_socket_type },
	[ARG_SOCKET_PROTO] = { arg_socket_proto }, [ARG_STAT_OUT] = { arg_stat, AT_EXIT },
	[ARG_STAT64_OUT] = { arg_stat64, AT_EXIT }, [ARG_OLDSTAT_OUT] = { arg_oldstat, AT_EXIT },
	[ARG_STATX_OUT] = { arg_statx, AT_EXIT }, [ARG_STATFS_OUT] = { arg_statfs, AT_EXIT },
	[ARG_STATFS64_OUT] = { arg_statfs64, AT_EXIT }, [ARG_TIMESPEC_IN] = { arg_timespec },
	[ARG_TIMESPEC_OUT] = { arg_timespec_out, AT_EXIT_ALWAYS }, [ARG_TIMESPEC64_IN] = { arg_timespec64 },
	[ARG_TIMESPEC64_OUT] = { arg_timespec64_out, AT_EXIT_ALWAYS }, [ARG_TIMESPEC_PAIR_IN] = { arg_timespec_pair },
	[ARG_TIMESPEC64_PAIR_IN] = { arg_timespec64_pair }, [ARG_TIMEVAL_IN] = { arg_timeval },
	[ARG_TIMEVAL_OUT] = { arg_timeval, AT_EXIT }, [ARG_TIMEVAL_PAIR_IN] = { arg_timeval_pair },
	[ARG_ITIMERVAL_IN] = { arg_itimerval }, [ARG_ITIMERVAL_OUT] = { arg_itimerval, AT_EXIT },
	[ARG_ITIMERSPEC_IN] = { arg_itimerspec }, [ARG_ITIMERSPEC_OUT] = { arg_itimerspec, AT_EXIT },
	[ARG_ITIMERSPEC64_IN] = { arg_itimerspec64 }, [ARG_ITIMERSPEC64_OUT] = { arg_itimerspec64, AT_EXIT },
	[ARG_UTIMBUF_IN] = { arg_utimbuf }, [ARG_TIME_OUT] = { arg_time, AT_EXIT }, [ARG_TIMEZONE_PTR] = { arg_ptr },
	[ARG_TIMEX] = { arg_timex, AT_EXIT }, [ARG_TMS_OUT] = { arg_tms, AT_EXIT }, [ARG_SIGSET_IN] = { arg_sigset },
	[ARG_SIGSET_OUT] = { arg_sigset, AT_EXIT }, [ARG_SIGACTION_IN] = { arg_sigaction },
	[ARG_SIGACTION_OUT] = { arg_sigaction, AT_EXIT }, [ARG_SIGINFO_IN] = { arg_siginfo },
	[ARG_SIGINFO_OUT] = { arg_siginfo, AT_EXIT }, [ARG_SIGSTACK_IN] = { arg_sigstack },
	[ARG_SIGSTACK_OUT] = { arg_sigstack, AT_EXIT }, [ARG_PSELECT_SIGMASK] = { arg_pselect_sigmask },
	[ARG_WAIT_STATUS_OUT] = { arg_wait_status, AT_EXIT }, [ARG_RUSAGE_OUT] = { arg_rusage, AT_EXIT },
	[ARG_RLIMIT_IN] = { arg_rlimit }, [ARG_RLIMIT_OUT] = { arg_rlimit, AT_EXIT }, [ARG_RLIMIT64_IN] = { arg_rlimit64 },
	[ARG_RLIMIT64_OUT] = { arg_rlimit64, AT_EXIT }, [ARG_POLLFD] = { arg_pollfd }, [ARG_FDSET] = { arg_fdset },
	[ARG_EPOLL_EVENT_IN] = { arg_epoll_event }, [ARG_EPOLL_EVENT_OUT] = { arg_epoll_events, AT_EXIT },
	[ARG_DIRENT_OUT] = { arg_dirents, AT_EXIT }, [ARG_INT_PTR_IN] = { arg_int_at }, [ARG_INT_PTR_OUT] = { arg_int_at, AT_EXIT },
	[ARG_ULONG_PTR_OUT] = { arg_ulong_at, AT_EXIT }, [ARG_OFF_INOUT] = { arg_offset, AT_EXIT_ALWAYS, keep_offset },
	[ARG_OFF64_INOUT] = { arg_offset64, AT_EXIT_ALWAYS, keep_offset64 }, [ARG_UTSNAME_OUT] = { arg_utsname, AT_EXIT },
	[ARG_SYSINFO_OUT] = { arg_sysinfo, AT_EXIT }, [ARG_CAP_HEADER] = { arg_cap_header }, [ARG_CAP_DATA_IN] = { arg_cap_data },
	[ARG_CAP_DATA_OUT] = { arg_cap_data, AT_EXIT }, [ARG_SCHED_PARAM_IN] = { arg_int_at },
	[ARG_SCHED_PARAM_OUT] = { arg_int_at, AT_EXIT }, [ARG_SCHED_ATTR_IN] = { arg_sched_attr },
	[ARG_SCHED_ATTR_OUT] = { arg_sched_attr, AT_EXIT }, [ARG_CPUSET_IN] = { arg_cpuset }, [ARG_CPUSET_OUT] = { arg_cpuset, AT_EXIT },
	[ARG_OPEN_HOW] = { arg_open_how }, [ARG_CLONE_ARGS] = { arg_clone_args }, [ARG_CLONE_FLAGS] = { arg_clone_flags },
	[ARG_FUTEX_OP] = { arg_futex_op }, [ARG_FUTEX_WAITV] = { arg_futex_waitv }, [ARG_IOCTL_REQUEST] = { arg_ioctl_request },
	[ARG_IOCTL_ARG] = { arg_ioctl, AT_REQUEST, NULL, ioctl_fills }, [ARG_FCNTL_ARG] = { arg_fcntl, AT_REQUEST, NULL, fcntl_fills },
	[ARG_PRCTL_ARG] = { arg_prctl, AT_REQUEST, NULL, prctl_fills }, [ARG_SECCOMP_ARG] = { arg_seccomp },
	[ARG_SOCKETCALL_ARGS] = { arg_ptr }, [ARG_IPC_ARGS] = { arg_ipc }, [ARG_OLD_MMAP_ARGS] = { arg_ptr },
	[ARG_OLD_SELECT_ARGS] = { arg_ptr }, [ARG_SEMBUF_IN] = { arg_sembuf }, [ARG_SHM_IPC_FLAGS] = { arg_shm_flags },
	[ARG_MQ_ATTR_IN] = { arg_mq_attr }, [ARG_MQ_ATTR_OUT] = { arg_mq_attr, AT_EXIT }, [ARG_SIGEVENT_IN] = { arg_sigevent },
	[ARG_FILE_HANDLE] = { arg_file_handle, AT_EXIT_ALWAYS, keep_int }, [ARG_USER_DESC] = { arg_user_desc },
	[ARG_BUF_HEX] = { arg_buf_hex }, [ARG_STRUCT_IN] = { arg_ptr }, [ARG_STRUCT_OUT] = { arg_ptr }
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
	if (d->args[i].kind != ARG_MODE || i == 0 || d->args[i - 1].set != &open_flags)
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
		d->args[5] = (struct arg){ .kind = ARG_ENUM, .set = &futex_bitsets };
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
