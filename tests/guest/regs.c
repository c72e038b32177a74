/*
 * regs.c - every register and the stack around it are after a call what they were before it, whatever became of the call:
 * run by the kernel, refused, answered, failed, unknown. Compilers count on it; only rax, rcx and r11 are the kernel's.
 */
#include "guest.h"

#if defined(__x86_64__)

#include <sys/timex.h>

/* Order known to the assembly below. */
struct regs {
	uint64_t rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, rsp, rcx, r11;
};

void raw_call(struct regs *regs);

/* Loads all registers, makes the call, stores all registers. Not reentrant: it keeps its own in memory. */
__asm__(".pushsection .bss\n"
	".balign 8\n"
	"raw_regs: .skip 8\n"
	"raw_stack: .skip 8\n"
	"raw_rcx: .skip 8\n"
	".popsection\n"
	".globl raw_call\n"
	".type raw_call, @function\n"
	"raw_call:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rdi, raw_regs(%rip)\n"
	"	mov %rsp, raw_stack(%rip)\n"
	"	mov %rdi, %rcx\n"
	"	mov (%rcx), %rax\n	mov 8(%rcx), %rdi\n	mov 16(%rcx), %rsi\n	mov 24(%rcx), %rdx\n"
	"	mov 32(%rcx), %r10\n	mov 40(%rcx), %r8\n	mov 48(%rcx), %r9\n	mov 56(%rcx), %rbx\n"
	"	mov 64(%rcx), %rbp\n	mov 72(%rcx), %r12\n	mov 80(%rcx), %r13\n	mov 88(%rcx), %r14\n"
	"	mov 96(%rcx), %r15\n	mov 104(%rcx), %rsp\n"
	"	syscall\n"
	".globl raw_after\n"
	"raw_after:\n"
	"	mov %rcx, raw_rcx(%rip)\n"
	"	mov raw_regs(%rip), %rcx\n"
	"	mov %rax, (%rcx)\n	mov %rdi, 8(%rcx)\n	mov %rsi, 16(%rcx)\n	mov %rdx, 24(%rcx)\n"
	"	mov %r10, 32(%rcx)\n	mov %r8, 40(%rcx)\n	mov %r9, 48(%rcx)\n	mov %rbx, 56(%rcx)\n"
	"	mov %rbp, 64(%rcx)\n	mov %r12, 72(%rcx)\n	mov %r13, 80(%rcx)\n	mov %r14, 88(%rcx)\n"
	"	mov %r15, 96(%rcx)\n	mov %rsp, 104(%rcx)\n	mov %r11, 120(%rcx)\n"
	"	mov raw_rcx(%rip), %rax\n	mov %rax, 112(%rcx)\n"
	"	mov raw_stack(%rip), %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	".size raw_call, .-raw_call\n");

extern const char raw_after[];

enum { STACK_WORDS = 1024 };

static uint64_t stack_words[STACK_WORDS];
static char page[4096] __attribute__((aligned(4096)));
static struct timex zero_timex;

struct probe {
	const char *name;
	long nr;
	uint64_t args[6];
	unsigned fixed; /* how many of args count; the rest is filled at random */
	bool same;      /* the result is the same natively: print it */
};

static uint64_t scramble(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void check_probe(const struct probe *probe, bool print)
{
	struct regs before, after;
	uint64_t *words = (uint64_t *)&before;

	for (unsigned i = 0; i < sizeof(before) / sizeof(*words); i++)
		words[i] = scramble();
	before.rax = (uint64_t)probe->nr;
	for (unsigned i = 0; i < probe->fixed; i++)
		words[1 + i] = probe->args[i];
	for (unsigned i = 0; i < STACK_WORDS; i++)
		stack_words[i] = 0x5ac5ac5a00000000u + i;
	before.rsp = (uint64_t)&stack_words[STACK_WORDS / 2];
	after = before;
	raw_call(&after);
	if (print && probe->same)
		printf("%s = %lld\n", probe->name, (long long)after.rax);
	CHECK_EQ(after.rcx, (uint64_t)raw_after);
	before.rax = after.rax;
	before.rcx = after.rcx;
	CHECK_EQ(after.r11 & 0x100, 0); /* no trap flag left behind */
	before.r11 = after.r11;
	CHECK(!memcmp(&before, &after, sizeof(before)));
	if (memcmp(&before, &after, sizeof(before)))
		for (unsigned i = 0; i < sizeof(before) / sizeof(*words); i++)
			if (words[i] != ((uint64_t *)&after)[i])
				dprintf(2, "%s: register %u was %#llx, is %#llx\n", probe->name, i,
					(unsigned long long)words[i], (unsigned long long)((uint64_t *)&after)[i]);
	for (unsigned i = 0; i < STACK_WORDS; i++)
		if (stack_words[i] != 0x5ac5ac5a00000000u + i) {
			CHECK(!"stack untouched");
			break;
		}
}

#define ARGS(...) { __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)
#define AT ((uint64_t)AT_FDCWD)
#define STRING(text) ((uint64_t)(text))

static void check_all(int rounds)
{
	const struct probe probes[] = {
		{ "getppid", SYS_getppid, { 0 }, 0, false },
		{ "gettid", SYS_gettid, { 0 }, 0, false },
		{ "getaffinity", SYS_sched_getaffinity, ARGS(0, sizeof(page), (uint64_t)page), true },
		{ "getaffinity fault", SYS_sched_getaffinity, ARGS(0, 128, 8), true },
		{ "getaffinity short", SYS_sched_getaffinity, ARGS(0, 1, (uint64_t)page), true },
		{ "getaffinity nobody", SYS_sched_getaffinity, ARGS(0x7ffffff0, 128, (uint64_t)page), true },
		{ "adjtimex", SYS_adjtimex, ARGS((uint64_t)&zero_timex), false },
		{ "adjtimex fault", SYS_adjtimex, ARGS(8), false },
		{ "close -1", SYS_close, ARGS(-1ull), true },
		{ "read fault", SYS_read, ARGS(0, 8, 8), false },
		{ "mount", SYS_mount, ARGS(8, 8, 8, 0, 0), false },
		{ "ptrace", SYS_ptrace, ARGS(3, -1ull, 0, 0), false },
		{ "process_vm_readv", SYS_process_vm_readv, ARGS(-1ull, 0, 0, 0, 0, 0), false },
		{ "bpf", SYS_bpf, ARGS(-1ull, 8, 8), false },
		{ "keyctl", SYS_keyctl, ARGS(-1ull, 0), false },
		{ "clone3", SYS_clone3, ARGS(0, 0), false },
		{ "io_uring_setup", 425, ARGS(0, 0), false },
		{ "9999", 9999, { 0 }, 0, true },
		{ "-1", -1, { 0 }, 0, true },
		{ "x32 getpid", 0x40000000 | SYS_getpid, { 0 }, 0, true },
		{ "open missing", SYS_open, ARGS(STRING("/nonexistent/a/b"), O_RDONLY), true },
		{ "openat fault", SYS_openat, ARGS(AT, 8, O_RDONLY), true },
		{ "openat empty", SYS_openat, ARGS(AT, STRING(""), O_RDONLY), true },
		{ "stat", SYS_stat, ARGS(STRING("/"), (uint64_t)page), true },
		{ "stat missing", SYS_stat, ARGS(STRING("/nonexistent"), (uint64_t)page), true },
		{ "lstat fault", SYS_lstat, ARGS(STRING("/"), 8), true },
		{ "newfstatat", SYS_newfstatat, ARGS(AT, STRING("/dev/null"), (uint64_t)page, 0), true },
		{ "readlink", SYS_readlink, ARGS(STRING("/dev/null"), (uint64_t)page, 100), true },
		{ "access", SYS_access, ARGS(STRING("/dev/null"), R_OK), true },
		{ "faccessat2", 439, ARGS(AT, STRING("/dev/null"), R_OK, 0), true },
		{ "statx", SYS_statx, ARGS(AT, STRING("/dev/null"), 0, 0x7ff, (uint64_t)page), true },
		{ "chdir", SYS_chdir, ARGS(STRING(".")), true },
		{ "getcwd short", SYS_getcwd, ARGS((uint64_t)page, 1), true },
		{ "mkdir exists", SYS_mkdir, ARGS(STRING("/"), 0), true },
		{ "unlink missing", SYS_unlink, ARGS(STRING("/nonexistent")), true },
		{ "rename missing", SYS_rename, ARGS(STRING("/nonexistent"), STRING("/nonexistent2")), true },
		{ "execve missing", SYS_execve, ARGS(STRING("/nonexistent"), 0, 0), true },
		{ "execve fault", SYS_execve, ARGS(8, 0, 0), true },
		{ "connect bad", SYS_connect, ARGS(-1ull, (uint64_t)page, 16), true },
		{ "bind bad", SYS_bind, ARGS(-1ull, (uint64_t)page, 16), true },
		{ "sendto bad", SYS_sendto, ARGS(-1ull, (uint64_t)page, 1, 0, (uint64_t)page, 16), true },
		{ "sendmsg bad", SYS_sendmsg, ARGS(-1ull, (uint64_t)page, 0), true },
		{ "socket bad", SYS_socket, ARGS(-1ull, -1ull, -1ull), false },
		{ "kill nobody", SYS_kill, ARGS(0x7ffffff0, 0), true },
		{ "prctl bad", SYS_prctl, ARGS(-1ull, 0, 0, 0, 0), true },
		{ "seccomp bad", SYS_seccomp, ARGS(-1ull, 0, 0), false },
		{ "getrandom", SYS_getrandom, ARGS((uint64_t)page, 16, 0), true },
		{ "uname", SYS_uname, ARGS((uint64_t)page), true },
		{ "munmap bad", SYS_munmap, ARGS(1, 1), true },
	};

	for (int round = 0; round < rounds && !guest_failures; round++)
		for (unsigned i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
			check_probe(&probes[i], round == 0);
}

static int test_kept(int argc, char **argv)
{
	check_all(100);
	return 0;
}

static volatile int ticks;

static void count_tick(int signo)
{
	ticks++;
}

/* The same while another process sends signals: the handler returns into the middle of stops. The handler runs on a stack of
   its own, since the one around the call is checked. */
static int test_signals(int argc, char **argv)
{
	static char handler_stack[64 << 10];
	stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };
	struct sigaction action = { .sa_handler = count_tick, .sa_flags = SA_ONSTACK | SA_RESTART };
	pid_t us = getpid(), pid;

	MUST(sigaltstack(&stack, NULL) == 0);
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	pid = guest_fork();
	if (pid == 0) {
		while (kill(us, SIGUSR1) == 0 && getppid() == us)
			for (int i = 0; i < 50; i++)
				syscall(SYS_getppid);
		_exit(0);
	}
	MUST(guest_await_value(&ticks, 1));
	check_all(100);
	kill(pid, SIGKILL);
	CHECK_SIGNALED(guest_wait(pid), SIGKILL);
	CHECK(ticks > 1);
	return 0;
}

/* In several processes at once. */
static int test_many(int argc, char **argv)
{
	pid_t pids[4];

	for (int i = 0; i < 4; i++) {
		pids[i] = guest_fork();
		if (pids[i] == 0) {
			MUST(freopen("/dev/null", "w", stdout));
			check_all(40);
			child_exit();
		}
	}
	for (int i = 0; i < 4; i++)
		CHECK_EXIT(guest_wait(pids[i]), 0);
	return 0;
}

static const struct test tests[] = {
	{ "kept", test_kept }, { "signals", test_signals }, { "many", test_many }, { NULL, NULL }
};

#else

static int test_none(int argc, char **argv)
{
	return GUEST_SKIP;
}

static const struct test tests[] = {
	{ "kept", test_none }, { "signals", test_none }, { "many", test_none }, { NULL, NULL }
};

#endif

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
