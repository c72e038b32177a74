/* stop.c - group-stops: SIGSTOP, SIGCONT and the terminal's stop signals as waitpid() and SIGCHLD tell them. */
#include "guest.h"

enum { WORKERS = 4 };

struct shared {
	volatile int counter[WORKERS];
	volatile int started;
	volatile int handled, continued;
	volatile int end;
};
static struct shared *shared;

static int wait_change(pid_t pid, int options)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, options), pid);
	return status;
}

#define CHECK_STOPPED(pid, signo)                                                                                          \
	do {                                                                                                               \
		int stop_status = wait_change(pid, WUNTRACED);                                                             \
		CHECK(WIFSTOPPED(stop_status));                                                                            \
		CHECK_EQ(WIFSTOPPED(stop_status) ? WSTOPSIG(stop_status) : -stop_status, signo);                           \
	} while (0)
#define CHECK_CONTINUED(pid)                                                                                               \
	do {                                                                                                               \
		int continue_status = wait_change(pid, WCONTINUED);                                                        \
		CHECK(WIFCONTINUED(continue_status));                                                                      \
	} while (0)

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK_SIGNALED(guest_wait(pid), SIGKILL);
}

static pid_t start_caller(void)
{
	pid_t pid = guest_fork();

	if (pid == 0)
		for (unsigned i = 0;; i++)
			guest_stopped_call(i);
	return pid;
}

static int test_cont(int argc, char **argv)
{
	pid_t pid = start_caller();

	for (int i = 0; i < 100 && !guest_failures; i++) {
		CHECK(kill(pid, SIGSTOP) == 0);
		CHECK_STOPPED(pid, SIGSTOP);
		CHECK_EQ(waitpid(pid, NULL, WUNTRACED | WCONTINUED | WNOHANG), 0);
		CHECK(kill(pid, SIGCONT) == 0);
		CHECK_CONTINUED(pid);
	}
	end_child(pid);
	return 0;
}

static int test_kinds(int argc, char **argv)
{
	static const int kinds[] = { SIGTSTP, SIGTTIN, SIGTTOU, SIGSTOP };
	pid_t pid = guest_fork();

	if (pid == 0) {
		setpgid(0, 0); /* a group whose parent is in the session and outside it: not orphaned, so that it can stop */
		__atomic_store_n(&shared->started, 1, __ATOMIC_RELEASE);
		for (unsigned i = 0;; i++)
			guest_stopped_call(i);
	}
	MUST(guest_await_value(&shared->started, 1));
	for (unsigned i = 0; i < 40 && !guest_failures; i++) {
		int kind = kinds[i % 4];

		CHECK(kill(pid, kind) == 0);
		CHECK_STOPPED(pid, kind);
		CHECK(kill(pid, SIGCONT) == 0);
		CHECK_CONTINUED(pid);
	}
	end_child(pid);
	return 0;
}

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg;

	__atomic_add_fetch(&shared->started, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0;; i++) {
		shared->counter[me]++;
		if (me % 2)
			guest_stopped_call(i);
	}
	return arg;
}

static int counted(int *was)
{
	int moved = 0;

	for (int i = 0; i < WORKERS; i++) {
		moved += shared->counter[i] != was[i];
		was[i] = shared->counter[i];
	}
	return moved;
}

/* SIGSTOP stops every thread, SIGCONT starts every one again. */
static int test_threads(int argc, char **argv)
{
	int was[WORKERS] = { 0 };
	pid_t pid = guest_fork();

	if (pid == 0) {
		pthread_t thread;

		for (int i = 1; i < WORKERS; i++)
			guest_thread(&thread, work, (void *)(intptr_t)i);
		work(0);
	}
	MUST(guest_await_value(&shared->started, WORKERS));
	for (int i = 0; i < 20 && !guest_failures; i++) {
		int running = 0;
		long long end = guest_now_ms() + 20000;

		CHECK(kill(pid, SIGSTOP) == 0);
		CHECK_STOPPED(pid, SIGSTOP);
		counted(was);
		for (int n = 0; n < 2000; n++)
			sched_yield();
		CHECK_EQ(counted(was), 0);
		CHECK(kill(pid, SIGCONT) == 0);
		CHECK_CONTINUED(pid);
		/* Each of the threads moves again. */
		for (unsigned moved = 0; moved != (1u << WORKERS) - 1 && guest_now_ms() < end; sched_yield())
			for (int n = 0; n < WORKERS; n++)
				if (shared->counter[n] != was[n])
					moved |= 1u << n, running = __builtin_popcount(moved);
		CHECK_EQ(running, WORKERS);
	}
	end_child(pid);
	return 0;
}

static void on_tstp(int signo)
{
	shared->handled++;
	raise(SIGSTOP);
}

static void on_cont(int signo)
{
	shared->continued++;
}

/* A handler of SIGTSTP runs first and stops by itself; a handler of SIGCONT runs when it goes on. */
static int test_handlers(int argc, char **argv)
{
	pid_t pid = guest_fork();

	if (pid == 0) {
		guest_action(SIGTSTP, on_tstp);
		guest_action(SIGCONT, on_cont);
		shared->started = 1;
		for (unsigned i = 0;; i++)
			guest_stopped_call(i);
	}
	MUST(guest_await_value(&shared->started, 1));
	for (int i = 1; i <= 30 && !guest_failures; i++) {
		kill(pid, SIGTSTP);
		CHECK_STOPPED(pid, SIGSTOP);
		CHECK_EQ(shared->handled, i);
		CHECK_EQ(shared->continued, i - 1);
		kill(pid, SIGCONT);
		CHECK_CONTINUED(pid);
		CHECK(guest_await_value(&shared->continued, i));
	}
	end_child(pid);
	return 0;
}

static volatile int chld_codes[8], chld_status[8], chld_count;

static void on_chld(int signo, siginfo_t *info, void *context)
{
	if (chld_count < 8) {
		chld_codes[chld_count] = info->si_code;
		chld_status[chld_count] = info->si_status;
	}
	chld_count++;
}

/* SIGCHLD tells stop, continue and end with their codes; with SA_NOCLDSTOP only the end. */
static int test_chld(int argc, char **argv)
{
	for (int quiet = 0; quiet < 2; quiet++) {
		pid_t pid;

		chld_count = 0;
		guest_handle(SIGCHLD, on_chld, SA_RESTART | (quiet ? SA_NOCLDSTOP : 0));
		pid = start_caller();
		kill(pid, SIGSTOP);
		CHECK_STOPPED(pid, SIGSTOP);
		CHECK(quiet ? chld_count == 0 : guest_await_value(&chld_count, 1));
		kill(pid, SIGCONT);
		CHECK_CONTINUED(pid);
		CHECK(quiet ? chld_count == 0 : guest_await_value(&chld_count, 2));
		kill(pid, SIGTERM);
		CHECK_SIGNALED(guest_wait(pid), SIGTERM);
		CHECK(guest_await_value(&chld_count, quiet ? 1 : 3));
		for (int i = 0; i < chld_count && i < 8; i++)
			printf("%d:%d ", chld_codes[i], chld_status[i]);
		printf("\n");
	}
	return 0;
}

/* waitid tells a stop, again with WNOWAIT, and takes it once without. */
static int test_waitid(int argc, char **argv)
{
	pid_t pid = start_caller();
	siginfo_t info;

	kill(pid, SIGSTOP);
	for (int i = 0; i < 3; i++) {
		memset(&info, 0, sizeof(info));
		CHECK(waitid(P_PID, (id_t)pid, &info, WSTOPPED | (i < 2 ? WNOWAIT : 0)) == 0);
		CHECK_EQ(info.si_pid, pid);
		CHECK_EQ(info.si_code, CLD_STOPPED);
		CHECK_EQ(info.si_status, SIGSTOP);
	}
	info.si_pid = 0;
	CHECK(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == 0);
	kill(pid, SIGCONT);
	CHECK(waitid(P_PID, (id_t)pid, &info, WCONTINUED) == 0 && info.si_code == CLD_CONTINUED);
	CHECK_EQ(info.si_status, SIGCONT);
	end_child(pid);
	return 0;
}

/* SIGKILL ends one that is stopped; a signal sent to a stopped one waits for SIGCONT. */
static int test_kill(int argc, char **argv)
{
	for (int i = 0; i < 30 && !guest_failures; i++) {
		pid_t pid = start_caller();

		kill(pid, SIGSTOP);
		CHECK_STOPPED(pid, SIGSTOP);
		if (i % 2) {
			kill(pid, SIGTERM);
			for (int n = 0; n < 100; n++)
				CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
			kill(pid, SIGCONT);
			CHECK_SIGNALED(guest_wait(pid), SIGTERM);
		} else {
			end_child(pid);
		}
	}
	return 0;
}

/* STOP and CONT from two senders at once, while the threads call and end. At the end it runs and ends by itself. */
static int test_storm(int argc, char **argv)
{
	for (int i = 0; i < 10 && !guest_failures; i++) {
		pid_t pid, senders[2];

		memset(shared, 0, sizeof(*shared));
		pid = guest_fork();
		if (pid == 0) {
			pthread_t thread;

			for (int n = 1; n < WORKERS; n++)
				guest_thread(&thread, work, (void *)(intptr_t)n);
			shared->started++;
			while (!shared->end)
				guest_stopped_call(3);
			_exit(17);
		}
		MUST(guest_await_value(&shared->started, WORKERS));
		for (int n = 0; n < 2; n++) {
			senders[n] = guest_fork();
			if (senders[n] == 0) {
				for (int k = 0; k < 200; k++)
					kill(pid, n ? SIGSTOP : SIGCONT);
				_exit(0);
			}
		}
		for (int n = 0; n < 2; n++)
			CHECK_EXIT(guest_wait(senders[n]), 0);
		shared->end = 1;
		kill(pid, SIGCONT);
		CHECK_EXIT(guest_wait(pid), 17);
	}
	return 0;
}

/* A program that stops itself and, in a loop, execs itself: each stop is told once. */
static int test_self(int argc, char **argv)
{
	pid_t pid;

	if (argc > 1) {
		int left = atoi(argv[1]);
		char next[16];

		raise(SIGSTOP);
		if (left == 0)
			return 3;
		snprintf(next, sizeof(next), "%d", left - 1);
		execl("/proc/self/exe", "stop", "self", next, (char *)NULL);
		return 1;
	}
	pid = guest_fork();
	if (pid == 0) {
		execl("/proc/self/exe", "stop", "self", "20", (char *)NULL);
		_exit(1);
	}
	for (int i = 0; i <= 20 && !guest_failures; i++) {
		CHECK_STOPPED(pid, SIGSTOP);
		kill(pid, SIGCONT);
	}
	CHECK_EXIT(guest_wait(pid), 3);
	return 0;
}

/* A stop that comes while a new child is being born must stop the whole group of processes, and nothing stays behind. */
static int test_group(int argc, char **argv)
{
	for (int i = 0; i < 20 && !guest_failures; i++) {
		pid_t pid;

		shared->started = 0;
		pid = guest_fork();
		if (pid == 0) {
			setpgid(0, 0);
			shared->started = 1;
			for (;;) {
				pid_t inner = fork();

				if (inner == 0)
					_exit(0);
				if (inner > 0 && waitpid(inner, NULL, 0) != inner)
					_exit(9);
			}
		}
		MUST(guest_await_value(&shared->started, 1));
		for (int n = 0; n < 10 && !guest_failures; n++) {
			kill(-pid, SIGSTOP);
			CHECK_STOPPED(pid, SIGSTOP);
			kill(-pid, SIGCONT);
			CHECK_CONTINUED(pid);
		}
		kill(-pid, SIGKILL);
		CHECK_SIGNALED(guest_wait(pid), SIGKILL);
	}
	return 0;
}

/* The first program is stopped and continued by a child that ends at once: a tool that stops itself then, because nobody of the
   process group seems to run any more, is continued by nobody. */
static int test_continued(int argc, char **argv)
{
	pid_t self = getpid();

	for (int i = 0; i < 300 && !guest_failures; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			kill(self, SIGSTOP);
			for (volatile int spin = 0; spin < i % 40 * 3000; spin++)
				;
			kill(self, SIGCONT);
			_exit(0);
		}
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

static const struct test tests[] = {
	{ "cont", test_cont }, { "kinds", test_kinds }, { "threads", test_threads }, { "handlers", test_handlers },
	{ "chld", test_chld }, { "waitid", test_waitid }, { "kill", test_kill }, { "storm", test_storm },
	{ "self", test_self }, { "group", test_group }, { "continued", test_continued }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	shared = guest_shared(sizeof(*shared));
	return guest_main(argc, argv, tests);
}
