/* filter.c - a guest's own seccomp filters work, and no stop of theirs is taken for one of ours. */
#include "guest.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

/* Answers call NR with ACTION, all others are allowed. */
static int install(long nr, uint32_t action, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int test_errno(int argc, char **argv)
{
	MUST(install(SYS_getppid, SECCOMP_RET_ERRNO | EDOM, 0) == 0);
	for (int i = 0; i < 50; i++)
		CHECK(syscall(SYS_getppid) == -1 && errno == EDOM);
	CHECK(getpid() > 0);
	MUST(install(SYS_sched_getaffinity, SECCOMP_RET_ERRNO | EXDEV, 0) == 0);
	for (int i = 0; i < 50; i++) {
		cpu_set_t set;

		CHECK(sched_getaffinity(0, sizeof(set), &set) == -1 && errno == EXDEV);
	}
	/* Inherited by fork and by exec. */
	if (guest_fork() == 0)
		_exit(syscall(SYS_getppid) == -1 && errno == EDOM ? 0 : 1);
	CHECK_EXIT(({ int status; wait(&status); status; }), 0);
	/* Answered with 0: the call is skipped and successful. */
	MUST(install(SYS_getuid, SECCOMP_RET_ERRNO, 0) == 0);
	CHECK_EQ(syscall(SYS_getuid), 0);
	return 0;
}

static volatile siginfo_t seen;
static volatile int count;

static void on_sys(int signo, siginfo_t *info, void *context)
{
	memcpy((void *)&seen, info, sizeof(seen));
	count++;
}

static int test_trap(int argc, char **argv)
{
	static const int numbers[] = { SYS_getppid, SYS_sched_getaffinity, SYS_getuid };

	guest_handle(SIGSYS, on_sys, 0);
	for (int n = 0; n < 3; n++) {
		MUST(install(numbers[n], SECCOMP_RET_TRAP | (1234u + (unsigned)n), 0) == 0);
		for (int i = 0; i < 30; i++) {
			int before = count;

			syscall(numbers[n], 0L, 0L, 0L);
			CHECK_EQ(count, before + 1);
			CHECK_EQ(seen.si_code, 1 /* SYS_SECCOMP */);
			CHECK_EQ(seen.si_syscall, numbers[n]);
			CHECK_EQ(seen.si_errno, 1234 + n);
#if defined(__x86_64__)
			CHECK_EQ(seen.si_arch, AUDIT_ARCH_X86_64);
#endif
			CHECK(seen.si_call_addr != NULL);
		}
	}
	return 0;
}

static void *wait_forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *call_getppid(void *arg)
{
	syscall(SYS_getppid);
	return arg;
}

static int test_kill(int argc, char **argv)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			pthread_t thread;

			if (i % 2)
				guest_thread(&thread, wait_forever, NULL);
			MUST(install(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0) == 0);
			syscall(SYS_getppid);
			_exit(1);
		}
		CHECK_SIGNALED(guest_wait(pid), SIGSYS);
	}
	/* KILL_THREAD ends one thread; the process goes on. */
	for (int i = 0; i < 20; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			pthread_t thread;

			MUST(install(SYS_getppid, SECCOMP_RET_KILL_THREAD, 0) == 0);
			guest_thread(&thread, call_getppid, NULL);
			pthread_join(thread, NULL);
			_exit(13);
		}
		CHECK_EXIT(guest_wait(pid), 13);
	}
	return 0;
}

static void check_trace(int number, uint32_t data)
{
	pid_t pid = guest_fork();

	if (pid == 0) {
		guest_failures = 0;
		MUST(install(number, SECCOMP_RET_TRACE | data, 0) == 0);
		for (int i = 0; i < 5; i++) {
			errno = 0;
			CHECK_EQ(syscall(number, "/", 0L, 0L, 0L, 0L, 0L), -1);
			CHECK_EQ(errno, ENOSYS);
		}
		if (guest_failures)
			dprintf(2, "call %d data %#x\n", number, data);
		child_exit();
	}
	CHECK_EXIT(guest_wait(pid), 0);
}

/* RET_TRACE with no tracer is ENOSYS, whatever value it carries, on calls that stop for us too and on those that do not. */
static int test_trace(int argc, char **argv)
{
	static const uint32_t data[] = { 0, 1, 0x1b04, 0x7fff, 0xffff };
	static const int numbers[] = { SYS_getppid, SYS_sched_getaffinity, SYS_getuid, SYS_dup, SYS_fork };

	for (unsigned d = 0; d < 5; d++)
		for (unsigned n = 0; n < 5; n++)
			check_trace(numbers[n], data[d]);
	return 0;
}

/* The supervisor's own value, on a call that its filter lets pass: still the guest's. */
static int test_trace_ours(int argc, char **argv)
{
	check_trace(SYS_getppid, 0x1b05);
	return 0;
}

static volatile int go;

static void *call_later(void *arg)
{
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		sched_yield();
	CHECK(syscall(SYS_getppid) == -1 && errno == EDOM);
	return arg;
}

/* One filter for all threads at once. */
static int test_tsync(int argc, char **argv)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		guest_thread(&threads[i], call_later, NULL);
	MUST(install(SYS_getppid, SECCOMP_RET_ERRNO | EDOM, SECCOMP_FILTER_FLAG_TSYNC) == 0);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Only under the supervisor: there can be one listener, and it is not the guest's. */
static int test_listener(int argc, char **argv)
{
	int fd = install(SYS_getppid, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);

	CHECK(fd == -1 && errno == EBUSY);
	return 0;
}

static int test_bad(int argc, char **argv)
{
	struct sock_fprog empty = { 0 };
	uint32_t action = SECCOMP_RET_ERRNO, nonsense = 0x12340000;

	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &empty) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0x80000000, &empty) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0);
	CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &nonsense) == -1 && errno == EOPNOTSUPP);
	return 0;
}

static const struct test tests[] = {
	{ "errno", test_errno }, { "trap", test_trap }, { "kill", test_kill }, { "trace", test_trace },
	{ "trace_ours", test_trace_ours }, { "tsync", test_tsync }, { "listener", test_listener }, { "bad", test_bad },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
