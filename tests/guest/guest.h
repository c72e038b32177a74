/*
 * guest.h - what the guest programs share: checks that tell where they failed, and waiting for an event of another process.
 *
 * A guest program is a table of tests; `program TEST [ARG...]` runs one. It prints the same under the supervisor as it does
 * natively, and ends with 0, or 1 after a CHECK that failed, or 77 where this host lacks what the test needs.
 */
#ifndef INTERPOSE_TESTS_GUEST_H
#define INTERPOSE_TESTS_GUEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Tests, thread bodies and signal handlers have the signatures that their callers want, and few need every argument. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { GUEST_SKIP = 77 };

struct test {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the test's own name */
};

static int guest_failures;

/* After a fork the child's own failures count for the child: it must end with child_exit() or look at guest_failures. */
#define CHECK(condition)                                                                                                   \
	do {                                                                                                               \
		if (!(condition)) {                                                                                        \
			int check_errno = errno;                                                                           \
			__atomic_add_fetch(&guest_failures, 1, __ATOMIC_RELAXED);                                          \
			dprintf(2, "FAIL %s:%d: %s (errno %s)\n", __FILE_NAME__, __LINE__, #condition,                     \
				strerrorname_np(check_errno) ? strerrorname_np(check_errno) : "0");                        \
		}                                                                                                          \
	} while (0)

/* As CHECK of two integers, telling both. */
#define CHECK_EQ(is, want)                                                                                                 \
	do {                                                                                                               \
		long long check_is = (long long)(is), check_want = (long long)(want);                                      \
		if (check_is != check_want) {                                                                              \
			__atomic_add_fetch(&guest_failures, 1, __ATOMIC_RELAXED);                                          \
			dprintf(2, "FAIL %s:%d: %s is %lld, want %s = %lld\n", __FILE_NAME__, __LINE__, #is, check_is,     \
				#want, check_want);                                                                        \
		}                                                                                                          \
	} while (0)

/* For what must not fail if the test is to mean anything. */
#define MUST(condition)                                                                                                    \
	do {                                                                                                               \
		if (!(condition)) {                                                                                        \
			dprintf(2, "FAIL %s:%d: %s (errno %s), cannot go on\n", __FILE_NAME__, __LINE__, #condition,       \
				strerrorname_np(errno) ? strerrorname_np(errno) : "0");                                    \
			_exit(1);                                                                                          \
		}                                                                                                          \
	} while (0)

static inline pid_t guest_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* A fork whose child must not print what the parent has buffered. */
static inline pid_t guest_fork(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	return pid;
}

static inline void guest_thread(pthread_t *thread, void *(*body)(void *), void *arg)
{
	errno = pthread_create(thread, NULL, body, arg);
	MUST(errno == 0);
}

/* The wait status of PID, which must be a child that has not been waited for. */
static inline int guest_wait(pid_t pid)
{
	int status = -1;
	pid_t got;

	do {
		got = waitpid(pid, &status, 0);
	} while (got < 0 && errno == EINTR);
	CHECK_EQ(got, pid);
	return status;
}

/* WANT is an exit status; the child ended by itself with it. */
#define CHECK_EXIT(status, want)                                                                                           \
	do {                                                                                                               \
		int exit_status = (status);                                                                                \
		CHECK(WIFEXITED(exit_status));                                                                             \
		CHECK_EQ(WIFEXITED(exit_status) ? WEXITSTATUS(exit_status) : -exit_status, want);                          \
	} while (0)

#define CHECK_SIGNALED(status, want)                                                                                       \
	do {                                                                                                               \
		int signal_status = (status);                                                                              \
		CHECK(WIFSIGNALED(signal_status));                                                                         \
		CHECK_EQ(WIFSIGNALED(signal_status) ? WTERMSIG(signal_status) : -signal_status, want);                     \
	} while (0)

/* Memory that forked children share with us, zeroed. */
static inline void *guest_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	return memory;
}

static inline long long guest_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The state letter of a task in /proc, 0 when it is gone. */
static inline char guest_state(pid_t pid, pid_t tid)
{
	char path[64], line[512], *end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (len <= 0)
		return 0;
	line[len] = 0;
	end = strrchr(line, ')');
	return end && end[1] ? end[2] : 0;
}

/* Waits until the task is in one of STATES ("S": blocked in a call; "Z": dead leader). False after 20 seconds. */
static inline bool guest_await_state(pid_t pid, pid_t tid, const char *states)
{
	long long end = guest_now_ms() + 20000;

	for (;;) {
		char state = guest_state(pid, tid);

		if (state && strchr(states, state))
			return true;
		if (guest_now_ms() > end)
			return false;
		sched_yield();
	}
}

/* Waits until *VALUE is at least WANT. False after 20 seconds. */
static inline bool guest_await_value(const volatile int *value, int want)
{
	long long end = guest_now_ms() + 20000;

	while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < want) {
		if (guest_now_ms() > end)
			return false;
		sched_yield();
	}
	return true;
}

static inline void guest_pipe(int ends[2])
{
	MUST(pipe2(ends, O_CLOEXEC) == 0);
}

/* Blocks until one byte comes; true when it came, false at the end of file. */
static inline bool guest_get(int fd)
{
	char byte;
	ssize_t got;

	do {
		got = read(fd, &byte, 1);
	} while (got < 0 && errno == EINTR);
	return got == 1;
}

static inline void guest_put(int fd)
{
	ssize_t put;

	do {
		put = write(fd, "x", 1);
	} while (put < 0 && errno == EINTR);
}

static inline void guest_handle(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&action.sa_mask);
	MUST(sigaction(signo, &action, NULL) == 0);
}

static inline void guest_action(int signo, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigemptyset(&action.sa_mask);
	MUST(sigaction(signo, &action, NULL) == 0);
}

static inline void guest_block(int how, int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	MUST(pthread_sigmask(how, &set, NULL) == 0);
}

/* Ends a forked child: 0 when all its checks held. */
static inline void child_exit(void)
{
	_exit(guest_failures != 0);
}

/* Calls that cannot be run without a stop of some kind under the supervisor; harmless natively. */
static inline void guest_stopped_call(unsigned which)
{
	cpu_set_t set;

	switch (which % 4) {
	case 0:
		sched_getaffinity(0, sizeof(set), &set);
		break;
	case 1:
		syscall(SYS_process_vm_readv, 0, NULL, 0L, NULL, 0L, -1L);
		break;
	case 2:
		syscall(9999);
		break;
	default:
		syscall(SYS_getppid);
	}
}

static inline int guest_main(int argc, char **argv, const struct test *tests)
{
	if (argc >= 2)
		for (const struct test *test = tests; test->name; test++)
			if (!strcmp(test->name, argv[1])) {
				int result = test->run(argc - 1, argv + 1);

				fflush(stdout);
				return result ? result : guest_failures != 0;
			}
	dprintf(2, "FAIL usage: %s TEST\n", argv[0]);
	return 2;
}

#endif
