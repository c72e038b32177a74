/* vfork.c - the parent stands still until its vfork child execs or ends, whatever signals come. */
#include "guest.h"

#include <sys/time.h>

extern char **environ;

struct shared {
	volatile int order; /* counts up: who came when */
	volatile int child_at, parent_at;
	volatile int handled;
	volatile int go;
	volatile pid_t middle;
};
static struct shared *shared;
static char self[4096];

static int test_code(int argc, char **argv)
{
	return atoi(argv[1]);
}

static void exec_code(const char *code)
{
	char *args[] = { self, "code", (char *)code, NULL };

	execve(self, args, environ);
	_exit(98);
}

static int next_order(void)
{
	return __atomic_add_fetch(&shared->order, 1, __ATOMIC_ACQ_REL);
}

/* Ends the vfork child in the way asked for after some calls of its own; CHECKs that we went on only then. */
static void once(bool by_exec)
{
	pid_t pid;

	shared->order = shared->child_at = 0;
	pid = vfork();
	if (pid == 0) {
		for (unsigned i = 0; i < 8; i++)
			guest_stopped_call(i);
		shared->child_at = next_order();
		if (by_exec)
			exec_code("9");
		_exit(9);
	}
	shared->parent_at = next_order();
	CHECK_EQ(shared->child_at, 1);
	CHECK_EQ(shared->parent_at, 2);
	CHECK_EXIT(guest_wait(pid), 9);
}

static int test_exit(int argc, char **argv)
{
	for (int i = 0; i < 200; i++)
		once(false);
	return 0;
}

static int test_exec(int argc, char **argv)
{
	for (int i = 0; i < 200; i++)
		once(true);
	return 0;
}

static void count_signal(int signo)
{
	shared->handled++;
}

/* Signals that come while we are inside vfork are handled after it, each of them, and do not let us out early. */
static int test_signals(int argc, char **argv)
{
	guest_action(SIGUSR1, count_signal);
	for (int i = 0; i < 50; i++) {
		pid_t us = getpid(), sender, pid;

		shared->order = shared->child_at = shared->go = shared->handled = 0;
		sender = guest_fork();
		if (sender == 0) {
			guest_await_value(&shared->go, 1);
			for (int n = 0; n < 20; n++)
				kill(us, SIGUSR1);
			shared->go = 2;
			_exit(0);
		}
		pid = vfork();
		if (pid == 0) {
			shared->go = 1;
			while (shared->go < 2)
				;
			shared->child_at = next_order();
			_exit(9);
		}
		shared->parent_at = next_order();
		CHECK_EQ(shared->child_at, 1);
		CHECK(guest_await_value(&shared->handled, 1));
		CHECK_EXIT(guest_wait(pid), 9);
		CHECK_EXIT(guest_wait(sender), 0);
	}
	return 0;
}

/* MIDDLE vforks and its child waits for go; the outer process does something to MIDDLE meanwhile. */
static pid_t start_middle(void)
{
	pid_t middle;

	shared->go = shared->order = 0;
	middle = guest_fork();
	if (middle == 0) {
		pid_t pid = vfork();

		if (pid == 0) {
			shared->go = 1;
			while (shared->go < 2)
				;
			_exit(5);
		}
		shared->order = 1;
		CHECK_EXIT(guest_wait(pid), 5);
		child_exit();
	}
	MUST(guest_await_value(&shared->go, 1));
	return middle;
}

/* SIGSTOP to a parent inside vfork takes hold once the child lets go, and not before (the wait is not interruptible). */
static int test_stop(int argc, char **argv)
{
	for (int i = 0; i < 30; i++) {
		pid_t middle = start_middle();
		int status = 0;

		CHECK(kill(middle, SIGSTOP) == 0);
		for (int n = 0; n < 100; n++)
			CHECK_EQ(waitpid(middle, &status, WUNTRACED | WNOHANG), 0);
		shared->go = 2;
		CHECK_EQ(waitpid(middle, &status, WUNTRACED), middle);
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
		kill(middle, SIGCONT);
		CHECK_EXIT(guest_wait(middle), 0);
	}
	return 0;
}

/* SIGKILL to a parent inside vfork ends it at once; its child goes on. */
static int test_kill(int argc, char **argv)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < 30; i++) {
		pid_t middle = start_middle();
		int status = 0;

		kill(middle, SIGKILL);
		CHECK_SIGNALED(guest_wait(middle), SIGKILL);
		shared->go = 2;
		CHECK(waitpid(-1, &status, 0) > 0); /* the orphan is ours now */
		CHECK_EXIT(status, 5);
		CHECK_EQ(shared->order, 0);
	}
	return 0;
}

/* SIGKILL to the vfork child lets the parent go on. */
static int test_killed(int argc, char **argv)
{
	for (int i = 0; i < 50; i++) {
		pid_t killer, pid;

		shared->middle = 0;
		killer = guest_fork();
		if (killer == 0) {
			guest_await_value(&shared->middle, 1);
			_exit(kill(shared->middle, SIGKILL) != 0);
		}
		pid = vfork();
		if (pid == 0) {
			shared->middle = (pid_t)syscall(SYS_getpid);
			for (;;)
				guest_stopped_call(0);
		}
		CHECK_SIGNALED(guest_wait(pid), SIGKILL);
		CHECK_EXIT(guest_wait(killer), 0);
	}
	return 0;
}

static const struct test tests[] = {
	{ "code", test_code }, { "exit", test_exit }, { "exec", test_exec }, { "signals", test_signals },
	{ "stop", test_stop }, { "kill", test_kill }, { "killed", test_killed }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	MUST(len > 0);
	shared = guest_shared(sizeof(*shared));
	return guest_main(argc, argv, tests);
}
