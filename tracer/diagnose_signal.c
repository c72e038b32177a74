/*
 * diagnose_signal.c - why a signal was sent (sigaction(2), include/uapi/asm-generic/siginfo.h).
 */
#include <inttypes.h>

#include "tracer/diagnose_impl.h"

struct signal_code {
	int signo; /* 0: of any signal */
	int code;
	const char *name, *text;
};

static const struct signal_code signal_codes[] = {
	{ SIGSEGV, 1, "SEGV_MAPERR", "address not mapped" },
	{ SIGSEGV, 2, "SEGV_ACCERR", "access not permitted by the mapping" },
	{ SIGSEGV, 3, "SEGV_BNDERR", "failed bounds check" },
	{ SIGSEGV, 4, "SEGV_PKUERR", "denied by a protection key" },
	{ SIGSEGV, 8, "SEGV_MTEAERR", "asynchronous memory tag check" },
	{ SIGSEGV, 9, "SEGV_MTESERR", "memory tag check" },
	{ SIGSEGV, 10, "SEGV_CPERR", "control protection (shadow stack or branch target)" },
	{ SIGBUS, 1, "BUS_ADRALN", "misaligned address" },
	{ SIGBUS, 2, "BUS_ADRERR", "no such memory: beyond the end of a mapped file, or no space left for it" },
	{ SIGBUS, 3, "BUS_OBJERR", "hardware error of the object" },
	{ SIGBUS, 4, "BUS_MCEERR_AR", "memory error consumed" },
	{ SIGBUS, 5, "BUS_MCEERR_AO", "memory error found" },
	{ SIGFPE, 1, "FPE_INTDIV", "integer division by zero" },
	{ SIGFPE, 2, "FPE_INTOVF", "integer overflow" },
	{ SIGFPE, 3, "FPE_FLTDIV", "floating-point division by zero" },
	{ SIGFPE, 4, "FPE_FLTOVF", "floating-point overflow" },
	{ SIGFPE, 5, "FPE_FLTUND", "floating-point underflow" },
	{ SIGFPE, 6, "FPE_FLTRES", "floating-point inexact result" },
	{ SIGFPE, 7, "FPE_FLTINV", "invalid floating-point operation" },
	{ SIGFPE, 8, "FPE_FLTSUB", "subscript out of range" },
	{ SIGILL, 1, "ILL_ILLOPC", "illegal opcode" },
	{ SIGILL, 2, "ILL_ILLOPN", "illegal operand" },
	{ SIGILL, 3, "ILL_ILLADR", "illegal addressing mode" },
	{ SIGILL, 4, "ILL_ILLTRP", "illegal trap" },
	{ SIGILL, 5, "ILL_PRVOPC", "privileged opcode" },
	{ SIGILL, 6, "ILL_PRVREG", "privileged register" },
	{ SIGILL, 7, "ILL_COPROC", "coprocessor error" },
	{ SIGILL, 8, "ILL_BADSTK", "internal stack error" },
	{ SIGTRAP, 1, "TRAP_BRKPT", "breakpoint" },
	{ SIGTRAP, 2, "TRAP_TRACE", "single step" },
	{ SIGTRAP, 3, "TRAP_BRANCH", "branch trap" },
	{ SIGTRAP, 4, "TRAP_HWBKPT", "hardware breakpoint or watchpoint" },
	{ SIGSYS, 1, "SYS_SECCOMP", "system call refused by a seccomp filter" },
	{ SIGCHLD, 1, "CLD_EXITED", "a child exited" },
	{ SIGCHLD, 2, "CLD_KILLED", "a child was killed" },
	{ SIGCHLD, 3, "CLD_DUMPED", "a child was killed and dumped core" },
	{ 0, 0x80, "SI_KERNEL", "sent by the kernel" },
	{ 0, 0, "SI_USER", "sent by kill(2)" },
	{ 0, -1, "SI_QUEUE", "sent by sigqueue(3)" },
	{ 0, -2, "SI_TIMER", "a timer expired" },
	{ 0, -3, "SI_MESGQ", "a message arrived on an empty queue" },
	{ 0, -4, "SI_ASYNCIO", "asynchronous I/O completed" },
	{ 0, -5, "SI_SIGIO", "I/O is possible" },
	{ 0, -6, "SI_TKILL", "sent by tgkill(2), as raise(3) and abort(3) do" },
};

static bool signal_is_fault(int signo)
{
	return signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE || signo == SIGTRAP;
}

static void signal_print_place(FILE *out, const siginfo_t *info)
{
	uint64_t addr = (uintptr_t)info->si_addr;

	if (info->si_code == SI_KERNEL) {
		/* A general protection fault has no address (arch/x86/kernel/traps.c). */
		if (info->si_signo == SIGSEGV)
			fprintf(out, ", without an address: a non-canonical address or a privileged instruction");
	} else if (info->si_code > 0 && signal_is_fault(info->si_signo)) {
		fprintf(out, ", at 0x%" PRIx64, addr);
		if (info->si_signo == SIGSEGV && addr < 4096)
			fprintf(out, " (a null pointer%s)", addr ? " plus an offset" : "");
	} else if (info->si_signo == SIGSYS && info->si_code > 0) {
		fprintf(out, ", call %d at 0x%" PRIx64, info->si_syscall, (uint64_t)(uintptr_t)info->si_call_addr);
	} else if (info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE) {
		fprintf(out, ", from process %d (uid %u)", info->si_pid, info->si_uid);
	}
}

void diagnose_signal_print(FILE *out, const siginfo_t *info)
{
	const struct signal_code *found = NULL;

	for (size_t i = 0; i < sizeof(signal_codes) / sizeof(*signal_codes) && !found; i++) {
		const struct signal_code *c = &signal_codes[i];

		if (c->code == info->si_code && (!c->signo || c->signo == info->si_signo))
			found = c;
	}
	if (found)
		fprintf(out, "%s: %s", found->name, found->text);
	else
		fprintf(out, "si_code %d", info->si_code);
	signal_print_place(out, info);
}
