/*
 * decode_signals.c - signals, masks, actions, siginfo and wait status.
 */
#include "syscalls/decode_impl.h"

enum {
	SIGNALS_NAMED = 32,  /* 1 to 31 have names on every architecture of ours, and the same ones */
	REALTIME_FIRST = 32, /* the kernel's SIGRTMIN, not libc's */
	REALTIME_LAST = 64,
	MASK_MOSTLY = 42     /* a mask of as many signals is shown by what it lacks */
};

static const char signal_names[SIGNALS_NAMED][10] = {
	"0", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
	"SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",
	"SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS"
};

/* Room for any int. */
enum { SIGNAL_NAME = 16 };

static const char *signal_name(int signo, char buf[SIGNAL_NAME])
{
	if (signo >= 0 && signo < SIGNALS_NAMED)
		return signal_names[signo];
	if (signo == REALTIME_FIRST)
		return "SIGRTMIN";

	struct text text = { .data = buf, .size = SIGNAL_NAME }; /* never grows: the longest is -2147483648 */

	if (signo > REALTIME_FIRST && signo <= REALTIME_LAST) {
		text_lit(&text, "SIGRT_");
		signo -= REALTIME_FIRST;
	}
	text_dec(&text, signo);
	return buf;
}

const char *decode_signal_name(int signo)
{
	static char buf[SIGNAL_NAME];

	return signal_name(signo, buf);
}

void decode_signal(struct text *out, int signo)
{
	char buf[SIGNAL_NAME];

	text_add(out, signal_name(signo, buf));
}

void arg_signal(struct decoding *d, uint64_t value)
{
	decode_signal(d->out, (int32_t)value);
}

/* [INT TERM], ~[KILL STOP] for a mask of nearly all. */
void decode_sigset(struct text *out, uint64_t mask)
{
	bool inverted = __builtin_popcountll(mask) >= MASK_MOSTLY, first = true;

	if (inverted) {
		text_char(out, '~');
		mask = ~mask;
	}
	text_char(out, '[');
	for (; mask; mask &= mask - 1, first = false) {
		char buf[SIGNAL_NAME];

		if (!first)
			text_char(out, ' ');
		text_add(out, signal_name(__builtin_ctzll(mask) + 1, buf) + 3);
	}
	text_char(out, ']');
}

void decode_sigset_at(struct decoding *d, uint64_t addr, uint64_t size)
{
	uint8_t buf[8] = { 0 };

	if (size == 0 || size > 128)
		decode_address(d->out, addr);
	else if (decode_fetch(d, addr, buf, size < sizeof(buf) ? (size_t)size : sizeof(buf)))
		decode_sigset(d->out, load64(buf));
}

void arg_sigset(struct decoding *d, uint64_t value)
{
	uint64_t size = d->args[d->index].ref == d->index ? 8 : decode_ref(d);

	if (!strcmp(d->row->name, "sigprocmask") || !strcmp(d->row->name, "sigpending"))
		size = decode_word(d); /* the calls of old: one long of signals */
	decode_sigset_at(d, value, size);
}

void arg_pselect_sigmask(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[16];

	if (!decode_fetch(d, value, buf, 2 * (size_t)word))
		return;
	text_lit(d->out, "{sigmask=");
	decode_sigset_at(d, load_word(buf, word), load_word(buf + word, word));
	text_lit(d->out, ", sigsetsize=");
	text_udec(d->out, load_word(buf + word, word));
	text_char(d->out, '}');
}

/* struct kernel_sigaction: handler, flags, restorer (but riscv64), mask; sigaction(2) of i386 has the mask second. */
void arg_sigaction(struct decoding *d, uint64_t value)
{
	enum { WORDS = 4, RESTORER = 0x04000000 };
	unsigned word = decode_word(d);
	bool old = !strcmp(d->row->name, "sigaction"), has_restorer = d->call->arch->id != ARCH_RISCV64;
	size_t len = old ? 16 : (has_restorer ? 3 : 2) * word + 8;
	uint8_t buf[32];

	if (!decode_fetch(d, value, buf, len))
		return;

	uint64_t handler = load_word(buf, word), flags = load_word(buf + (old ? 8 : word), word);
	uint64_t mask = old ? load32(buf + 4) : load64(buf + len - 8);

	text_lit(d->out, "{sa_handler=");
	if (handler == 0)
		text_lit(d->out, "SIG_DFL");
	else if (handler == 1)
		text_lit(d->out, "SIG_IGN");
	else
		text_hex(d->out, handler);
	text_lit(d->out, ", sa_mask=");
	decode_sigset(d->out, mask);
	text_lit(d->out, ", sa_flags=");
	decode_flags(d->out, &sigaction_flags, flags);
	if (has_restorer && flags & RESTORER) {
		text_lit(d->out, ", sa_restorer=");
		decode_address(d->out, old ? load32(buf + 12) : load_word(buf + 2 * word, word));
	}
	text_char(d->out, '}');
}

void arg_sigstack(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[24];

	if (!decode_fetch(d, value, buf, 3 * (size_t)word))
		return;
	text_lit(d->out, "{ss_sp=");
	decode_address(d->out, load_word(buf, word));
	text_lit(d->out, ", ss_flags=");
	decode_flags(d->out, &sigaltstack_flags, load32(buf + word));
	text_lit(d->out, ", ss_size=");
	text_udec(d->out, load_word(buf + 2 * word, word));
	text_char(d->out, '}');
}

/* --- siginfo -------------------------------------------------------------------------------------------------------- */

/* si_code: the general ones are 0 and below; positive ones belong to a signal. */
static const struct flag_set *code_set(int signo, int code)
{
	if (code <= 0 || code == 0x80)
		return &si_codes;
	switch (signo) {
	case 4:
		return &ill_codes;
	case 5:
		return &trap_codes;
	case 7:
		return &bus_codes;
	case 8:
		return &fpe_codes;
	case 11:
		return &segv_codes;
	case 17:
		return &chld_codes;
	case 29:
		return &poll_codes;
	case 31:
		return &sys_codes;
	default:
		return &si_codes;
	}
}

static void siginfo_sender(struct text *out, const uint8_t *p)
{
	text_lit(out, ", si_pid=");
	text_dec(out, (int32_t)load32(p));
	text_lit(out, ", si_uid=");
	decode_uid(out, load32(p + 4));
}

static void siginfo_value(struct text *out, const uint8_t *p, unsigned word)
{
	text_lit(out, ", si_int=");
	text_dec(out, (int32_t)load32(p));
	text_lit(out, ", si_ptr=");
	decode_address(out, load_word(p, word));
}

static void siginfo_child(struct text *out, const uint8_t *p, int code, unsigned word)
{
	enum { CHILD_EXITED = 1 };
	size_t times = word == 4 ? 12 : 16;

	siginfo_sender(out, p);
	text_lit(out, ", si_status=");
	if (code == CHILD_EXITED)
		text_dec(out, (int32_t)load32(p + 8));
	else
		decode_signal(out, (int32_t)load32(p + 8));
	text_lit(out, ", si_utime=");
	text_dec(out, load_sword(p + times, word));
	text_lit(out, ", si_stime=");
	text_dec(out, load_sword(p + times + word, word));
}

static void siginfo_syscall(struct text *out, const uint8_t *p, unsigned word)
{
	const struct arch *arch = arch_by_audit(load32(p + word + 4));
	const struct row *row = arch ? row_of(arch_call_of(arch, load32(p + word))) : NULL;

	text_lit(out, ", si_call_addr=");
	decode_address(out, load_word(p, word));
	text_lit(out, ", si_syscall=");
	if (row) {
		text_lit(out, "__NR_");
		text_add(out, row->name);
	} else {
		text_dec(out, (int32_t)load32(p + word));
	}
	text_lit(out, ", si_arch=");
	decode_enum(out, &audit_archs, load32(p + word + 4));
}

/* Which part of the union holds: by the code first (who sent it), then by the signal (kernel/signal.c, siginfo_layout()). */
static void siginfo_union(struct text *out, int signo, int code, const uint8_t *p, unsigned word)
{
	enum { USER = 0, QUEUE = -1, TIMER = -2, MESSAGE = -3, SIGIO_CODE = -5, THREAD_KILL = -6, KERNEL = 0x80 };

	if (code == TIMER) {
		text_lit(out, ", si_timerid=");
		text_dec(out, (int32_t)load32(p));
		text_lit(out, ", si_overrun=");
		text_dec(out, (int32_t)load32(p + 4));
		siginfo_value(out, p + 8, word);
	} else if (code == USER || code == THREAD_KILL) {
		siginfo_sender(out, p);
	} else if (code < 0 && code != SIGIO_CODE) {
		siginfo_sender(out, p);
		siginfo_value(out, p + 8, word);
	} else if (code == KERNEL) {
		return;
	} else if (signo == 17) {
		siginfo_child(out, p, code, word);
	} else if (signo == 4 || signo == 5 || signo == 7 || signo == 8 || signo == 11) {
		text_lit(out, ", si_addr=");
		decode_address(out, load_word(p, word));
	} else if (signo == 31) {
		siginfo_syscall(out, p, word);
	} else if (signo == 29 || code == SIGIO_CODE) {
		text_lit(out, ", si_band=");
		text_dec(out, load_sword(p, word));
		text_lit(out, ", si_fd=");
		text_dec(out, (int32_t)load32(p + word));
	} else {
		siginfo_sender(out, p);
	}
}

void decode_siginfo_of(struct text *out, const uint8_t info[SIGINFO_SIZE], unsigned word)
{
	int signo = (int32_t)load32(info), error = (int32_t)load32(info + 4), code = (int32_t)load32(info + 8);

	text_lit(out, "{si_signo=");
	decode_signal(out, signo);
	text_lit(out, ", si_code=");
	decode_enum(out, code_set(signo, code), (uint32_t)code);
	if (error) {
		const char *name = decode_errno_name(error);

		text_lit(out, ", si_errno=");
		if (name)
			text_add(out, name);
		else
			text_dec(out, error);
	}
	if (signo)
		siginfo_union(out, signo, code, info + (word == 4 ? 12 : 16), word);
	text_char(out, '}');
}

void decode_siginfo(struct text *out, const void *siginfo)
{
	decode_siginfo_of(out, siginfo, sizeof(long));
}

void arg_siginfo(struct decoding *d, uint64_t value)
{
	uint8_t info[SIGINFO_SIZE];

	if (decode_fetch(d, value, info, sizeof(info)))
		decode_siginfo_of(d->out, info, decode_word(d));
}

void arg_sigevent(struct decoding *d, uint64_t value)
{
	enum { BY_SIGNAL = 0, BY_THREAD = 2, BY_THREAD_ID = 4 };
	unsigned word = decode_word(d);
	uint8_t buf[32];

	if (!decode_fetch(d, value, buf, 2 * (size_t)word + 16))
		return;

	uint32_t notify = load32(buf + word + 4);
	const uint8_t *more = buf + word + 8;

	text_lit(d->out, "{sigev_value={sival_int=");
	text_dec(d->out, (int32_t)load32(buf));
	text_lit(d->out, ", sival_ptr=");
	decode_address(d->out, load_word(buf, word));
	text_lit(d->out, "}, sigev_signo=");
	decode_signal(d->out, (int32_t)load32(buf + word));
	text_lit(d->out, ", sigev_notify=");
	decode_enum(d->out, &sigev_notify, notify);
	if (notify == BY_THREAD_ID) {
		text_lit(d->out, ", sigev_notify_thread_id=");
		text_dec(d->out, (int32_t)load32(more));
	} else if (notify == BY_THREAD) {
		text_lit(d->out, ", sigev_notify_function=");
		decode_address(d->out, load_word(more, word));
		text_lit(d->out, ", sigev_notify_attributes=");
		decode_address(d->out, load_word(more + word, word));
	}
	text_char(d->out, '}');
}

/* --- wait ----------------------------------------------------------------------------------------------------------- */

/* WIFSTOPPED and the others of wait(2), taken apart by hand: a guest's status is any number. */
void decode_wait_status(struct text *out, uint32_t status)
{
	enum { CONTINUED = 0xffff, STOPPED = 0x7f, CORE = 0x80 };
	unsigned low = status & 0x7f, high = status >> 8 & 0xff;

	text_char(out, '{');
	if (status == CONTINUED) {
		text_lit(out, "WIFCONTINUED(s)");
	} else if ((status & 0xff) == STOPPED) {
		text_lit(out, "WIFSTOPPED(s) && WSTOPSIG(s) == ");
		decode_signal(out, (int)(high & 0x7f));
		if (high & 0x80)
			text_lit(out, " | 0x80");
	} else if (low == 0) {
		text_lit(out, "WIFEXITED(s) && WEXITSTATUS(s) == ");
		text_udec(out, high);
	} else {
		text_lit(out, "WIFSIGNALED(s) && WTERMSIG(s) == ");
		decode_signal(out, (int)low);
		if (status & CORE)
			text_lit(out, " && WCOREDUMP(s)");
	}
	text_char(out, '}');
}

/* With WNOHANG and no child ready, wait4 returns 0 and leaves the status alone. */
void arg_wait_status(struct decoding *d, uint64_t value)
{
	uint8_t buf[4];

	if (d->result == 0) {
		decode_address(d->out, value);
	} else if (decode_fetch(d, value, buf, sizeof(buf))) {
		text_char(d->out, '[');
		decode_wait_status(d->out, load32(buf));
		text_char(d->out, ']');
	}
}
