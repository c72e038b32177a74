/* kill.c - SIGKILL at any moment: between a stop and its resume, in the middle of fork, exec and the birth of threads. */
#include "guest.h"

static volatile int *ready;

static void *call_forever(void *arg)
{
	for (unsigned i = (unsigned)(intptr_t)arg;; i++)
		guest_stopped_call(i);
	return arg;
}

static void body_calls(void)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		guest_thread(&thread, call_forever, (void *)(intptr_t)i);
	*ready = 1;
	call_forever(NULL);
}

static void body_forks(void)
{
	*ready = 1;
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			guest_stopped_call(0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void body_vforks(void)
{
	*ready = 1;
	for (;;) {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static void *end_now(void *arg)
{
	return arg;
}

static void body_threads(void)
{
	*ready = 1;
	for (;;) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, end_now, NULL) == 0)
			pthread_join(thread, NULL);
	}
}

static int test_execs(int argc, char **argv)
{
	execl("/proc/self/exe", "kill", "execs", (char *)NULL);
	return 1;
}

static void body_execs(void)
{
	*ready = 1;
	test_execs(0, NULL);
}

static void body_exits(void)
{
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		guest_thread(&thread, call_forever, NULL);
	*ready = 1;
	for (int i = 0; i < 50; i++)
		guest_stopped_call((unsigned)i);
	_exit(0);
}

/* Kills TRIES processes, each after another number of calls of our own, with its whole process group; none stays behind. */
static int storm(void (*body)(void), int tries, bool may_exit)
{
	unsigned seed = 12345;

	for (int i = 0; i < tries && !guest_failures; i++) {
		pid_t pid, got;
		int status;

		*ready = 0;
		pid = guest_fork();
		if (pid == 0) {
			setpgid(0, 0);
			body();
			_exit(99);
		}
		MUST(guest_await_value(ready, 1));
		for (int n = rand_r(&seed) % 300; n > 0; n--)
			syscall(SYS_getppid);
		CHECK(kill(-pid, SIGKILL) == 0 || may_exit);
		status = guest_wait(pid);
		if (!may_exit || WIFSIGNALED(status))
			CHECK_SIGNALED(status, SIGKILL);
		/* Orphans come to us, since we are the subreaper: each of them is dead or dying. */
		while ((got = waitpid(-1, &status, 0)) > 0)
			CHECK(WIFEXITED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		CHECK(got == -1 && errno == ECHILD);
		CHECK(kill(-pid, 0) == -1 && errno == ESRCH);
	}
	return 0;
}

#define STORM(name, tries, may_exit)                                                                                       \
	static int test_##name(int argc, char **argv)                                                                      \
	{                                                                                                                  \
		return storm(body_##name, tries, may_exit);                                                                \
	}
STORM(calls, 150, false)
STORM(forks, 150, false)
STORM(vforks, 150, false)
STORM(threads, 150, false)
STORM(exits, 150, true)

static int test_execstorm(int argc, char **argv)
{
	return storm(body_execs, 100, false);
}

/* SIGTERM with its default action races with the calls of several threads. */
static int test_term(int argc, char **argv)
{
	for (int i = 0; i < 100 && !guest_failures; i++) {
		pid_t pid;

		*ready = 0;
		pid = guest_fork();
		if (pid == 0)
			body_calls();
		MUST(guest_await_value(ready, 1));
		kill(pid, i % 2 ? SIGTERM : SIGHUP);
		CHECK_SIGNALED(guest_wait(pid), i % 2 ? SIGTERM : SIGHUP);
	}
	return 0;
}

static const struct test tests[] = {
	{ "calls", test_calls }, { "forks", test_forks }, { "vforks", test_vforks }, { "threads", test_threads },
	{ "exits", test_exits }, { "execs", test_execs }, { "execstorm", test_execstorm }, { "term", test_term },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	ready = guest_shared(sizeof(*ready));
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return guest_main(argc, argv, tests);
}
