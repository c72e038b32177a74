/* exec.c - exec from a thread that is not the leader: the caller's tid becomes the leader's, all other threads vanish. */
#include "guest.h"

#include <sys/stat.h>

static char self[4096];

/* What every exec of these tests runs: `landed PID CODE` checks that it is the only thread, and the leader. */
static int test_landed(int argc, char **argv)
{
	CHECK_EQ(getpid(), atoi(argv[1]));
	CHECK_EQ(guest_tid(), getpid());
	return guest_failures ? 1 : atoi(argv[2]);
}

static void exec_landed(const char *code)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	execl(self, self, "landed", pid, code, (char *)NULL);
	/* Another thread's exec may have won; then this one never comes back. */
	MUST(!"exec");
}

static void *exec_now(void *arg)
{
	exec_landed(arg);
	return NULL;
}

static void *exec_when_leader_blocked(void *arg)
{
	MUST(guest_await_state(getpid(), getpid(), "S"));
	exec_landed(arg);
	return NULL;
}

static void *exec_when_leader_dead(void *arg)
{
	MUST(guest_await_state(getpid(), getpid(), "Z"));
	exec_landed(arg);
	return NULL;
}

static void *call_forever(void *arg)
{
	for (unsigned i = 0;; i++)
		guest_stopped_call(i);
	return arg;
}

static void *end_now(void *arg)
{
	return arg;
}

static void *thread_forever(void *arg)
{
	for (;;) {
		pthread_t thread;

		/* Another thread's exec kills this one in the middle; creation may then fail with EAGAIN, which is fine. */
		if (pthread_create(&thread, NULL, end_now, NULL) == 0)
			pthread_join(thread, NULL);
	}
	return arg;
}

static void leader_busy(void)
{
	pthread_t thread;

	guest_thread(&thread, exec_now, "7");
	call_forever(NULL);
}

static void leader_blocked(void)
{
	pthread_t thread;
	int ends[2];

	guest_pipe(ends);
	guest_thread(&thread, exec_when_leader_blocked, "7");
	guest_get(ends[0]);
}

static void leader_exited(void)
{
	pthread_t thread;

	guest_thread(&thread, exec_when_leader_dead, "7");
	pthread_exit(NULL);
}

static void leader_exiting(void)
{
	pthread_t thread;

	guest_thread(&thread, exec_now, "7");
	pthread_exit(NULL);
}

static void all_race(void)
{
	pthread_t thread;

	/* Creation fails with EAGAIN once one of them is in exec: no more are needed then. */
	for (int i = 0; i < 8 && pthread_create(&thread, NULL, exec_now, "7") == 0; i++)
		;
	exec_landed("7");
}

static void among_callers(void)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		guest_thread(&thread, i ? call_forever : thread_forever, NULL);
	guest_thread(&thread, exec_now, "7");
	call_forever(NULL);
}

static int many(void (*body)(void), int tries)
{
	for (int i = 0; i < tries; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			body();
			_exit(99);
		}
		CHECK_EXIT(guest_wait(pid), 7);
		if (guest_failures)
			return 1;
	}
	printf("%d\n", tries);
	return 0;
}

#define MANY(name, tries)                                                                                                  \
	static int test_##name(int argc, char **argv)                                                                      \
	{                                                                                                                  \
		return many(name, tries);                                                                                  \
	}
MANY(leader_busy, 100)
MANY(leader_blocked, 100)
MANY(leader_exited, 100)
MANY(leader_exiting, 100)
MANY(all_race, 60)
MANY(among_callers, 60)

/* The first guest itself execs from a thread: the supervisor must still know whose status is its own. */
static int test_root(int argc, char **argv)
{
	leader_busy();
	return 1;
}

static int test_root_exited(int argc, char **argv)
{
	leader_exited();
	return 1;
}

/* exec that fails must leave everything as it was, with the kernel's own errno. */
static int test_fails(int argc, char **argv)
{
	static char big[4 << 20];
	char *volatile nowhere = (char *)8;
	char *args[] = { "x", big, NULL }, *small[] = { "x", NULL }, *env[] = { NULL };
	int fd = open("script", O_WRONLY | O_CREAT, 0644);

	MUST(fd >= 0);
	CHECK(execve("script", small, env) == -1 && errno == EACCES);
	MUST(fchmod(fd, 0755) == 0);
	close(fd);
	CHECK(execve("script", small, env) == -1 && errno == ENOEXEC);
	CHECK(execve("missing", small, env) == -1 && errno == ENOENT);
	CHECK(execve("script/x", small, env) == -1 && errno == ENOTDIR);
	CHECK(execve(".", small, env) == -1 && errno == EACCES);
	CHECK(execve("", small, env) == -1 && errno == ENOENT);
	CHECK(execve(nowhere, small, env) == -1 && errno == EFAULT);
	memset(big, 'a', sizeof(big) - 1);
	CHECK(execve("/bin/true", args, env) == -1 && errno == E2BIG);
	fd = open("script", O_WRONLY | O_TRUNC);
	MUST(fd >= 0 && write(fd, "#!/nonexistent/interpreter\n", 27) == 27);
	close(fd);
	CHECK(execve("script", small, env) == -1 && errno == ENOENT);
	CHECK_EQ(guest_tid(), getpid());
	printf("fails as it should\n");
	return 0;
}

/* A script by way of its interpreter, a file by its descriptor. */
static int test_ways(int argc, char **argv)
{
	char *args[] = { "true", NULL }, *env[] = { NULL };
	int fd = open("script", O_WRONLY | O_CREAT, 0755);
	pid_t pid;

	MUST(fd >= 0 && write(fd, "#!/bin/sh\nexit $1\n", 18) == 18);
	close(fd);
	pid = guest_fork();
	if (pid == 0) {
		execl("./script", "script", "31", (char *)NULL);
		_exit(1);
	}
	CHECK_EXIT(guest_wait(pid), 31);
	pid = guest_fork();
	if (pid == 0) {
		fd = open("/bin/true", O_PATH | O_CLOEXEC);
		syscall(SYS_execveat, fd, "", args, env, AT_EMPTY_PATH);
		_exit(1);
	}
	CHECK_EXIT(guest_wait(pid), 0);
	return 0;
}

static const struct test tests[] = {
	{ "landed", test_landed }, { "busy", test_leader_busy }, { "blocked", test_leader_blocked },
	{ "exited", test_leader_exited }, { "exiting", test_leader_exiting }, { "race", test_all_race },
	{ "callers", test_among_callers }, { "root", test_root }, { "root_exited", test_root_exited },
	{ "fails", test_fails }, { "ways", test_ways }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	MUST(len > 0);
	return guest_main(argc, argv, tests);
}
