/* trap.c - the guest's own SIGTRAP is not the tracer's: it arrives, kills, waits blocked, and exec makes none. */
#include "guest.h"

static volatile siginfo_t seen;
static volatile int count;

static void keep(int signo, siginfo_t *info, void *context)
{
	memcpy((void *)&seen, info, sizeof(seen));
	count++;
}

static int test_handled(int argc, char **argv)
{
	guest_handle(SIGTRAP, keep, 0);
	for (int i = 0; i < 50 && !guest_failures; i++) {
		count = 0;
		raise(SIGTRAP);
		CHECK_EQ(count, 1);
		CHECK_EQ(seen.si_code, SI_TKILL);
		kill(getpid(), SIGTRAP);
		CHECK_EQ(count, 2);
		CHECK_EQ(seen.si_code, SI_USER);
		CHECK_EQ(seen.si_pid, getpid());
#if defined(__x86_64__) || defined(__i386__)
		__asm__ volatile("int3");
		CHECK_EQ(count, 3);
		CHECK_EQ(seen.si_code, SI_KERNEL);
#endif
	}
	return 0;
}

static int test_default(int argc, char **argv)
{
	for (int i = 0; i < 20 && !guest_failures; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			if (i % 2)
				raise(SIGTRAP);
#if defined(__x86_64__) || defined(__i386__)
			else
				__asm__ volatile("int3");
#endif
			_exit(0);
		}
		CHECK_SIGNALED(guest_wait(pid), SIGTRAP);
	}
	return 0;
}

static int test_root(int argc, char **argv)
{
	raise(SIGTRAP);
	return 1;
}

static int test_ignored(int argc, char **argv)
{
	guest_action(SIGTRAP, SIG_IGN);
	raise(SIGTRAP);
	kill(getpid(), SIGTRAP);
	return 0;
}

/* After exec: blocked PENDING tells what sigpending must say. */
static int test_after(int argc, char **argv)
{
	sigset_t mask, pending;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigpending(&pending);
	CHECK_EQ(sigismember(&mask, SIGTRAP), atoi(argv[1]));
	CHECK_EQ(sigismember(&pending, SIGTRAP), atoi(argv[2]));
	if (atoi(argv[2])) {
		guest_handle(SIGTRAP, keep, 0);
		guest_block(SIG_UNBLOCK, SIGTRAP);
		CHECK_EQ(count, 1);
		CHECK_EQ(seen.si_code, SI_USER);
		CHECK_EQ(seen.si_pid, getpid());
	}
	return guest_failures ? 1 : 6;
}

static int test_exec(int argc, char **argv)
{
	for (int i = 0; i < 60 && !guest_failures; i++) {
		bool blocked = i % 3 > 0, pending = i % 3 > 1;
		pid_t pid = guest_fork();

		if (pid == 0) {
			if (blocked)
				guest_block(SIG_BLOCK, SIGTRAP);
			if (pending)
				kill(getpid(), SIGTRAP);
			execl("/proc/self/exe", "trap", "after", blocked ? "1" : "0", pending ? "1" : "0", (char *)NULL);
			_exit(1);
		}
		CHECK_EXIT(guest_wait(pid), 6);
	}
	return 0;
}

#if defined(__x86_64__)
/* The trap flag: the processor traps after each instruction, and the guest's own handler takes it, over a call as well. */
static volatile int steps;

static void count_step(int signo, siginfo_t *info, void *context)
{
	steps++;
	if (info->si_code != TRAP_TRACE)
		steps = -1000;
}

static int test_step(int argc, char **argv)
{
	long got = SYS_getpid;

	guest_handle(SIGTRAP, count_step, 0);
	__asm__ volatile("lea -128(%%rsp), %%rsp\n"
			 "pushfq\n	orq $0x100, (%%rsp)\n	popfq\n"
			 "nop\n	nop\n	nop\n"
			 "syscall\n"
			 "nop\n"
			 "pushfq\n	andq $~0x100, (%%rsp)\n	popfq\n"
			 "lea 128(%%rsp), %%rsp\n"
			 : "+a"(got) : : "rcx", "r11", "memory", "cc");
	CHECK_EQ(got, getpid());
	CHECK(steps >= 7);
	printf("steps %s\n", steps >= 7 ? "taken" : "lost");
	return 0;
}
#else
static int test_step(int argc, char **argv)
{
	return GUEST_SKIP;
}
#endif

static const struct test tests[] = {
	{ "handled", test_handled }, { "default", test_default }, { "root", test_root }, { "ignored", test_ignored },
	{ "after", test_after }, { "exec", test_exec }, { "step", test_step }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
