/* life.c - how processes end, who is told, and what is left: orphans, daemons, dead leaders, every way to wait. */
#include "guest.h"

static int test_code(int argc, char **argv)
{
	return atoi(argv[1]);
}

static int test_signal(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(atoi(argv[1]), &action, NULL);
	kill(getpid(), atoi(argv[1]));
	return 99;
}

/* The kernel's status of each of 256 codes and of the signals that kill. */
static int test_statuses(int argc, char **argv)
{
	for (int i = 0; i < 256; i++) {
		pid_t pid = guest_fork();

		if (pid == 0)
			_exit(i);
		CHECK_EXIT(guest_wait(pid), i);
	}
	for (int signo = 1; signo < 65; signo++) {
		pid_t pid;

		if (signo == SIGCHLD || signo == SIGCONT || signo == SIGURG || signo == SIGWINCH || signo == SIGSTOP ||
		    signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU || signo == 32 || signo == 33)
			continue;
		pid = guest_fork();
		if (pid == 0) {
			struct sigaction action = { .sa_handler = SIG_DFL };

			sigaction(signo, &action, NULL);
			kill(getpid(), signo);
			for (;;)
				pause();
		}
		CHECK_SIGNALED(guest_wait(pid), signo);
	}
	return 0;
}

/* Ends at once while a daemon of its own, in a session of its own, and a plain child still live. */
static int test_daemon(int argc, char **argv)
{
	int ends[2];
	pid_t pid;

	guest_pipe(ends);
	pid = guest_fork();
	if (pid == 0) {
		setsid();
		if (fork() == 0) {
			if (chdir("/") == 0)
				guest_put(ends[1]);
			for (;;)
				pause();
		}
		_exit(0);
	}
	CHECK_EXIT(guest_wait(pid), 0);
	CHECK(guest_get(ends[0]));
	if (guest_fork() == 0) {
		guest_put(ends[1]);
		for (unsigned i = 0;; i++)
			guest_stopped_call(i);
	}
	CHECK(guest_get(ends[0]));
	return 4;
}

/* As test_daemon, but the first guest dies of a signal. */
static int test_daemon_signal(int argc, char **argv)
{
	test_daemon(argc, argv);
	kill(getpid(), SIGTERM);
	return 1;
}

/* An orphan goes on, gets another parent, and ends; the first guest learns of it by a pipe. */
static int test_orphan(int argc, char **argv)
{
	for (int i = 0; i < 30 && !guest_failures; i++) {
		int ends[2];
		pid_t pid;

		guest_pipe(ends);
		pid = guest_fork();
		if (pid == 0) {
			pid_t middle = getpid();

			if (fork() == 0) {
				long long end = guest_now_ms() + 20000;

				while (getppid() == middle && guest_now_ms() < end)
					sched_yield();
				if (getppid() != middle)
					guest_put(ends[1]);
				_exit(0);
			}
			_exit(6);
		}
		close(ends[1]);
		CHECK_EXIT(guest_wait(pid), 6);
		CHECK(guest_get(ends[0]));
		CHECK(!guest_get(ends[0]));
		close(ends[0]);
		CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	}
	return 0;
}

/* A guest that makes itself the subreaper gets the orphans, with their status. */
static int test_subreaper(int argc, char **argv)
{
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	for (int i = 0; i < 30 && !guest_failures; i++) {
		pid_t pid = guest_fork();
		int status;

		if (pid == 0) {
			if (fork() == 0) {
				pid_t us = getpid();

				while (getppid() != (pid_t)atoi(argv[1]))
					sched_yield();
				_exit(us > 0 ? 14 : 1);
			}
			_exit(6);
		}
		CHECK_EXIT(guest_wait(pid), 6);
		CHECK(waitpid(-1, &status, 0) > 0);
		CHECK_EXIT(status, 14);
	}
	return 0;
}

static int test_subreaper_start(int argc, char **argv)
{
	char pid[16], *args[] = { "subreaper", pid, NULL };

	snprintf(pid, sizeof(pid), "%d", getpid());
	return test_subreaper(2, args);
}

static void *exit_process(void *arg)
{
	MUST(guest_await_state(getpid(), getpid(), "Z"));
	for (unsigned i = 0; i < 50; i++)
		guest_stopped_call(i);
	_exit((int)(intptr_t)arg);
}

static void *end_thread(void *arg)
{
	MUST(guest_await_state(getpid(), getpid(), "Z"));
	return arg;
}

static void *die_by_signal(void *arg)
{
	MUST(guest_await_state(getpid(), getpid(), "Z"));
	kill(getpid(), (int)(intptr_t)arg);
	for (;;)
		pause();
}

static void dead_leader(void *(*body)(void *), int arg)
{
	pthread_t thread;

	guest_thread(&thread, body, (void *)(intptr_t)arg);
	pthread_exit(NULL);
}

static int test_leader_exit(int argc, char **argv)
{
	dead_leader(exit_process, 9);
	return 1;
}

static int test_leader_end(int argc, char **argv)
{
	dead_leader(end_thread, 0);
	return 1;
}

static int test_leader_signal(int argc, char **argv)
{
	dead_leader(die_by_signal, SIGTERM);
	return 1;
}

/* The same in children, many times, and a waiting parent learns of nothing before the last thread has gone. */
static int test_leaders(int argc, char **argv)
{
	for (int i = 0; i < 60 && !guest_failures; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			if (i % 3 == 0)
				dead_leader(exit_process, 9);
			else if (i % 3 == 1)
				dead_leader(end_thread, 0);
			else
				dead_leader(die_by_signal, SIGHUP);
		}
		if (i % 3 == 2)
			CHECK_SIGNALED(guest_wait(pid), SIGHUP);
		else
			CHECK_EXIT(guest_wait(pid), i % 3 ? 0 : 9);
	}
	return 0;
}

/* waitpid(-1) tells each child exactly once, with its own status. */
static int test_reap(int argc, char **argv)
{
	enum { CHILDREN = 60 };

	for (int round = 0; round < 10 && !guest_failures; round++) {
		pid_t pids[CHILDREN];
		bool told[CHILDREN] = { false };

		for (int i = 0; i < CHILDREN; i++) {
			pids[i] = guest_fork();
			if (pids[i] == 0) {
				if (i % 3 == 0)
					raise(SIGKILL);
				_exit(i);
			}
		}
		for (int n = 0; n < CHILDREN; n++) {
			int status, i = 0;
			pid_t pid = waitpid(-1, &status, 0);

			while (i < CHILDREN && pids[i] != pid)
				i++;
			MUST(i < CHILDREN && !told[i]);
			told[i] = true;
			if (i % 3 == 0)
				CHECK_SIGNALED(status, SIGKILL);
			else
				CHECK_EXIT(status, i);
		}
		CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	}
	return 0;
}

static int test_nowait(int argc, char **argv)
{
	for (int i = 0; i < 30; i++) {
		pid_t pid = guest_fork();
		siginfo_t info;

		if (pid == 0)
			_exit(i);
		for (int n = 0; n < 4; n++) {
			memset(&info, 0, sizeof(info));
			CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | (n < 3 ? WNOWAIT : 0)) == 0);
			CHECK_EQ(info.si_pid, pid);
			CHECK_EQ(info.si_status, i);
			CHECK_EQ(info.si_code, CLD_EXITED);
		}
		CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED) == -1 && errno == ECHILD);
	}
	return 0;
}

static int test_pidfd(int argc, char **argv)
{
	for (int i = 0; i < 30; i++) {
		pid_t pid = guest_fork();
		siginfo_t info = { 0 };
		struct pollfd pollfd;

		if (pid == 0)
			for (;;)
				pause();
		pollfd.fd = (int)syscall(SYS_pidfd_open, pid, 0);
		pollfd.events = POLLIN;
		MUST(pollfd.fd >= 0);
		CHECK_EQ(poll(&pollfd, 1, 0), 0);
		CHECK(syscall(SYS_pidfd_send_signal, pollfd.fd, SIGTERM, NULL, 0) == 0);
		CHECK_EQ(poll(&pollfd, 1, 20000), 1);
		CHECK(waitid(P_PIDFD, (id_t)pollfd.fd, &info, WEXITED) == 0);
		CHECK_EQ(info.si_pid, pid);
		CHECK_EQ(info.si_code, CLD_KILLED);
		CHECK_EQ(info.si_status, SIGTERM);
		CHECK(waitid(P_PIDFD, (id_t)pollfd.fd, &info, WEXITED) == -1 && errno == ECHILD);
		close(pollfd.fd);
	}
	return 0;
}

/* SIGCHLD ignored, or SA_NOCLDWAIT: children vanish by themselves, waitpid waits for all and says ECHILD. */
static int test_autoreap(int argc, char **argv)
{
	for (int way = 0; way < 2; way++) {
		struct sigaction action = { .sa_handler = way ? SIG_DFL : SIG_IGN, .sa_flags = way ? SA_NOCLDWAIT : 0 };
		volatile int *ended = guest_shared(sizeof(*ended));

		MUST(sigaction(SIGCHLD, &action, NULL) == 0);
		for (int round = 1; round <= 10; round++) {
			for (int i = 0; i < 10; i++)
				if (guest_fork() == 0) {
					for (unsigned n = 0; n < 20; n++)
						guest_stopped_call(n);
					__atomic_add_fetch(ended, 1, __ATOMIC_RELEASE);
					_exit(i);
				}
			CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
			CHECK_EQ(*ended, round * 10);
		}
	}
	return 0;
}

static pid_t raw_clone(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags, 0L, 0L, 0L, 0L);
}

/* A child that ends with no signal is told only to __WCLONE and __WALL. */
static int test_wclone(int argc, char **argv)
{
	for (int i = 0; i < 30; i++) {
		pid_t pid = raw_clone(0);
		int status = 0;

		if (pid == 0)
			_exit(8);
		MUST(pid > 0);
		CHECK(waitpid(pid, &status, 0) == -1 && errno == ECHILD);
		CHECK_EQ(waitpid(pid, &status, i % 2 ? __WCLONE : __WALL), pid);
		CHECK_EXIT(status, 8);
	}
	return 0;
}

/* CLONE_PARENT: the child's child is our own. */
static int test_clone_parent(int argc, char **argv)
{
	for (int i = 0; i < 30; i++) {
		pid_t pid = guest_fork(), sibling;
		int status;

		if (pid == 0) {
			sibling = raw_clone(CLONE_PARENT | SIGCHLD);
			_exit(sibling == 0 ? 21 : 22);
		}
		CHECK_EXIT(guest_wait(pid), 22);
		sibling = waitpid(-1, &status, 0);
		CHECK(sibling > 0);
		CHECK_EXIT(status, 21);
	}
	return 0;
}

static void *wait_other(void *arg)
{
	CHECK(waitpid(*(pid_t *)arg, NULL, __WNOTHREAD) == -1 && errno == ECHILD);
	return NULL;
}

static int test_wnothread(int argc, char **argv)
{
	pthread_t thread;
	pid_t pid = guest_fork();

	if (pid == 0)
		_exit(5);
	guest_thread(&thread, wait_other, &pid);
	pthread_join(thread, NULL);
	CHECK_EXIT(guest_wait(pid), 5);
	return 0;
}

/* A child told by another exit signal than SIGCHLD. */
static volatile int told;

static void count_told(int signo)
{
	told++;
}

static int test_exit_signal(int argc, char **argv)
{
	guest_action(SIGUSR2, count_told);
	for (int i = 1; i <= 20; i++) {
		pid_t pid = raw_clone(SIGUSR2);
		int status = 0;

		if (pid == 0)
			_exit(3);
		CHECK(guest_await_value(&told, i));
		CHECK_EQ(waitpid(pid, &status, __WALL), pid);
		CHECK_EXIT(status, 3);
	}
	return 0;
}

static int test_pdeathsig(int argc, char **argv)
{
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	for (int i = 0; i < 30; i++) {
		pid_t pid = guest_fork();
		int ends[2], status;

		if (pid == 0) {
			guest_pipe(ends);
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, SIGUSR1);
				guest_put(ends[1]);
				for (;;)
					pause();
			}
			_exit(guest_get(ends[0]) ? 0 : 1);
		}
		CHECK_EXIT(guest_wait(pid), 0);
		CHECK(waitpid(-1, &status, 0) > 0);
		CHECK_SIGNALED(status, SIGUSR1);
	}
	return 0;
}

/* The first guest ends while its children are being born. */
static int test_leave_forking(int argc, char **argv)
{
	int ends[2];

	guest_pipe(ends);
	for (int i = 0; i < 4; i++)
		if (guest_fork() == 0) {
			guest_put(ends[1]);
			for (;;) {
				pid_t pid = fork();

				if (pid == 0)
					_exit(0);
				waitpid(pid, NULL, 0);
			}
		}
	for (int i = 0; i < 4; i++)
		CHECK(guest_get(ends[0]));
	return 12;
}

/* The descriptors that a program starts with, by number and kind. */
static int test_fds(int argc, char **argv)
{
	for (int fd = 0; fd < 1024; fd++) {
		char path[32], target[256];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = 0;
		if (target[0] == '/')
			printf("%d file flags %#x\n", fd, fcntl(fd, F_GETFD));
		else
			printf("%d %.*s flags %#x\n", fd, (int)strcspn(target, ":"), target, fcntl(fd, F_GETFD));
	}
	return 0;
}

/* Signal mask, actions and the like that a program starts with. */
static int test_start(int argc, char **argv)
{
	struct sigaction action;
	sigset_t set;

	sigprocmask(SIG_SETMASK, NULL, &set);
	for (int signo = 1; signo < 65; signo++) {
		if (sigismember(&set, signo) == 1)
			printf("%d blocked\n", signo);
		if (sigaction(signo, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
			printf("%d ignored\n", signo);
	}
	sigpending(&set);
	CHECK(sigisemptyset(&set));
	printf("children %d\n", waitpid(-1, NULL, WNOHANG));
	printf("dumpable %d nice %d\n", prctl(PR_GET_DUMPABLE), nice(0));
	return 0;
}

static const struct test tests[] = {
	{ "code", test_code }, { "signal", test_signal }, { "statuses", test_statuses }, { "daemon", test_daemon },
	{ "daemon_signal", test_daemon_signal }, { "orphan", test_orphan }, { "subreaper", test_subreaper_start },
	{ "leader_exit", test_leader_exit }, { "leader_end", test_leader_end }, { "leader_signal", test_leader_signal },
	{ "leaders", test_leaders }, { "reap", test_reap }, { "nowait", test_nowait }, { "pidfd", test_pidfd },
	{ "autoreap", test_autoreap }, { "wclone", test_wclone }, { "clone_parent", test_clone_parent },
	{ "wnothread", test_wnothread }, { "exit_signal", test_exit_signal }, { "pdeathsig", test_pdeathsig },
	{ "leave_forking", test_leave_forking }, { "fds", test_fds }, { "start", test_start }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
