/*
 * closed.c - what no guest may do, and with which errno it is told so. Natively these checks fail: that is their proof.
 *
 * Libraries fall back on ENOSYS and give up on EPERM, so the errno matters as much as the refusal.
 */
#include "guest.h"

#include <linux/kcmp.h>
#include <linux/sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define CHECK_REFUSED(want, ...)                                                                                           \
	do {                                                                                                               \
		long refused_result;                                                                                       \
		errno = 0;                                                                                                 \
		refused_result = syscall(__VA_ARGS__);                                                                     \
		CHECK_EQ(refused_result, -1);                                                                              \
		CHECK_EQ(errno, want);                                                                                     \
	} while (0)

static int test_traceme(int argc, char **argv)
{
	CHECK_REFUSED(EPERM, SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
	return 0;
}

static int test_ptrace(int argc, char **argv)
{
	pid_t pid = guest_fork();

	if (pid == 0)
		for (;;)
			pause();
	CHECK_REFUSED(EPERM, SYS_ptrace, PTRACE_ATTACH, pid, 0, 0);
	CHECK_REFUSED(EPERM, SYS_ptrace, PTRACE_SEIZE, pid, 0, 0);
	CHECK_REFUSED(EPERM, SYS_ptrace, PTRACE_SEIZE, getppid(), 0, 0);
	CHECK_REFUSED(EPERM, SYS_ptrace, 99999, pid, 0, 0);
	kill(pid, SIGKILL);
	CHECK_SIGNALED(guest_wait(pid), SIGKILL);
	return 0;
}

static int test_memory(int argc, char **argv)
{
	char from[4] = "abc", to[4] = "";
	struct iovec local = { to, 3 }, remote = { from, 3 };

	CHECK_REFUSED(EPERM, SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL);
	CHECK_REFUSED(EPERM, SYS_process_vm_writev, getpid(), &local, 1UL, &remote, 1UL, 0UL);
	CHECK_EQ(to[0], 0);
	return 0;
}

static int test_others(int argc, char **argv)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	MUST(pidfd >= 0);
	CHECK_REFUSED(EPERM, SYS_kcmp, getpid(), getpid(), KCMP_FILE, 0UL, 1UL);
	CHECK_REFUSED(EPERM, SYS_pidfd_getfd, pidfd, 1, 0);
	return 0;
}

static int test_untraced(int argc, char **argv)
{
	long pid = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0L, 0L, 0L, 0L);

	if (pid == 0)
		_exit(0);
	CHECK(pid == -1 && errno == EPERM);
	if (pid > 0)
		guest_wait((pid_t)pid);
	return 0;
}

static int test_clone3(int argc, char **argv)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	CHECK(pid == -1 && errno == ENOSYS);
	if (pid > 0)
		guest_wait((pid_t)pid);
	CHECK_REFUSED(ENOSYS, SYS_clone3, 0L, 0L);
	return 0;
}

static int test_uring(int argc, char **argv)
{
	static char params[512];

	CHECK_REFUSED(ENOSYS, 425, 4, params);
	CHECK_REFUSED(ENOSYS, 426, -1, 0, 0, 0, 0L, 0L);
	CHECK_REFUSED(ENOSYS, 427, -1, 0, 0L, 0);
	return 0;
}

/* The same natively: the kernel has none of these numbers either. */
static int test_unknown(int argc, char **argv)
{
	CHECK_REFUSED(ENOSYS, 9999L);
	CHECK_REFUSED(ENOSYS, -1L);
	CHECK_REFUSED(ENOSYS, 0x7fffffffL);
	CHECK_REFUSED(ENOSYS, 1000L, -1L, -1L, -1L, -1L, -1L, -1L);
	return 0;
}

static int test_x32(int argc, char **argv)
{
#if defined(__x86_64__)
	CHECK_REFUSED(ENOSYS, 0x40000000L | SYS_getpid);
	CHECK_REFUSED(ENOSYS, 0x40000000L | 512);
	CHECK_REFUSED(ENOSYS, 0x40000000L | 521);
	return 0;
#else
	return GUEST_SKIP;
#endif
}

static const struct test tests[] = {
	{ "traceme", test_traceme }, { "ptrace", test_ptrace }, { "memory", test_memory }, { "others", test_others },
	{ "untraced", test_untraced }, { "clone3", test_clone3 }, { "uring", test_uring }, { "unknown", test_unknown },
	{ "x32", test_x32 }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
