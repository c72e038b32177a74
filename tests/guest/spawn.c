/* spawn.c - many processes and threads at once: a child's first stop may come before its parent's event, and often does. */
#include "guest.h"

#include <spawn.h>

extern char **environ;

enum { FORK_THREADS = 8, FORKS_EACH = 250 };

static void *fork_many(void *arg)
{
	for (int i = 0; i < FORKS_EACH; i++) {
		int want = (i + (int)(intptr_t)arg) & 0x7f;
		pid_t pid = fork();

		if (pid == 0)
			_exit(want);
		MUST(pid > 0);
		CHECK_EXIT(guest_wait(pid), want);
	}
	return NULL;
}

static void run_threads(int count, void *(*body)(void *))
{
	pthread_t threads[64];

	MUST(count <= 64);
	for (int i = 0; i < count; i++)
		guest_thread(&threads[i], body, (void *)(intptr_t)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static int test_forks(int argc, char **argv)
{
	run_threads(FORK_THREADS, fork_many);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	printf("forks %d\n", FORK_THREADS * FORKS_EACH);
	return 0;
}

static volatile int threads_ran;

static void *count_one(void *arg)
{
	syscall(SYS_getppid);
	__atomic_add_fetch(&threads_ran, 1, __ATOMIC_RELAXED);
	return arg;
}

static void *thread_many(void *arg)
{
	for (int i = 0; i < 250; i++) {
		pthread_t thread;
		void *back;

		guest_thread(&thread, count_one, &thread);
		CHECK(pthread_join(thread, &back) == 0 && back == &thread);
	}
	return arg;
}

static int test_threads(int argc, char **argv)
{
	pid_t pids[3];

	for (int i = 0; i < 3; i++) {
		pids[i] = guest_fork();
		if (pids[i] == 0) {
			run_threads(4, thread_many);
			CHECK_EQ(threads_ran, 1000);
			child_exit();
		}
	}
	for (int i = 0; i < 3; i++)
		CHECK_EXIT(guest_wait(pids[i]), 0);
	printf("threads 3000\n");
	return 0;
}

static void *vfork_many(void *arg)
{
	for (int i = 0; i < 200; i++) {
		int want = (i + (int)(intptr_t)arg) & 0x7f;
		pid_t pid = vfork();

		if (pid == 0)
			_exit(want);
		MUST(pid > 0);
		CHECK_EXIT(guest_wait(pid), want);
	}
	return NULL;
}

static int test_vforks(int argc, char **argv)
{
	run_threads(6, vfork_many);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	printf("vforks 1200\n");
	return 0;
}

static char self[4096];

static pid_t spawn_self(const char *test, const char *arg)
{
	char *args[] = { self, (char *)test, (char *)arg, NULL };
	pid_t pid = -1;

	errno = posix_spawn(&pid, self, NULL, NULL, args, environ);
	MUST(errno == 0);
	return pid;
}

static void *mixed_many(void *arg)
{
	unsigned seed = (unsigned)(intptr_t)arg * 2654435761u + 17;

	for (int i = 0; i < 60; i++) {
		pthread_t thread;
		pid_t pid;

		switch (rand_r(&seed) % 4) {
		case 0:
			pid = fork();
			if (pid == 0) {
				pid_t inner = fork();

				if (inner == 0)
					_exit(3);
				CHECK_EXIT(guest_wait(inner), 3);
				child_exit();
			}
			CHECK_EXIT(guest_wait(pid), 0);
			break;
		case 1:
			pid = vfork();
			if (pid == 0)
				_exit(5);
			CHECK_EXIT(guest_wait(pid), 5);
			break;
		case 2:
			CHECK_EXIT(guest_wait(spawn_self("code", "11")), 11);
			break;
		default:
			guest_thread(&thread, count_one, NULL);
			pthread_join(thread, NULL);
		}
	}
	return NULL;
}

static int test_mixed(int argc, char **argv)
{
	run_threads(6, mixed_many);
	printf("mixed 360\n");
	return 0;
}

static int test_code(int argc, char **argv)
{
	_exit(argc > 1 ? atoi(argv[1]) : 0);
}

static int test_forkloop(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10000;

	for (int i = 0; i < count; i++) {
		pid_t pid = guest_fork();

		if (pid == 0)
			_exit(i & 0xff);
		CHECK_EXIT(guest_wait(pid), i & 0xff);
	}
	printf("forkloop %d\n", count);
	return 0;
}

static pthread_barrier_t all_here;

static void *meet_and_end(void *arg)
{
	pthread_barrier_wait(&all_here);
	guest_stopped_call((unsigned)(intptr_t)arg);
	__atomic_add_fetch(&threads_ran, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *meet_and_block(void *arg)
{
	pthread_barrier_wait(&all_here);
	for (;;)
		pause();
	return arg;
}

static void start_threads(pthread_t *threads, int count, void *(*body)(void *))
{
	pthread_attr_t attr;

	pthread_barrier_init(&all_here, NULL, (unsigned)count + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int i = 0; i < count; i++) {
		errno = pthread_create(&threads[i], &attr, body, (void *)(intptr_t)i);
		MUST(errno == 0);
	}
	pthread_barrier_wait(&all_here);
}

static int test_threads500(int argc, char **argv)
{
	static pthread_t threads[500];

	for (int round = 1; round <= 3; round++) {
		start_threads(threads, 500, meet_and_end);
		for (int i = 0; i < 500; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK_EQ(threads_ran, 500 * round);
	}
	printf("threads 500\n");
	return 0;
}

static void *exit_from_here(void *arg)
{
	pthread_barrier_wait(&all_here);
	syscall(SYS_exit_group, 42);
	return arg;
}

static void *last_one_exits(void *arg)
{
	return (intptr_t)arg == 150 ? exit_from_here(arg) : meet_and_block(arg);
}

/* 300 threads end at once because one of them calls exit_group, or because SIGKILL comes. */
static int mass_exit(bool by_signal)
{
	static pthread_t threads[300];

	for (int round = 0; round < 8; round++) {
		int ready[2];
		pid_t pid;

		guest_pipe(ready);
		pid = guest_fork();
		if (pid == 0) {
			start_threads(threads, 300, by_signal ? meet_and_block : last_one_exits);
			guest_put(ready[1]);
			for (;;)
				pause();
		}
		close(ready[1]);
		if (by_signal) {
			MUST(guest_get(ready[0]));
			kill(pid, SIGKILL);
			CHECK_SIGNALED(guest_wait(pid), SIGKILL);
		} else {
			CHECK_EXIT(guest_wait(pid), 42);
		}
		close(ready[0]);
	}
	printf("mass exit\n");
	return 0;
}

static int test_exitgroup(int argc, char **argv)
{
	return mass_exit(false);
}

static int test_masskill(int argc, char **argv)
{
	return mass_exit(true);
}

static int test_spawn300(int argc, char **argv)
{
	pid_t pids[300];
	char code[8];

	for (int i = 0; i < 300; i++) {
		snprintf(code, sizeof(code), "%d", i & 0x7f);
		pids[i] = spawn_self("code", code);
		if (i >= 20)
			CHECK_EXIT(guest_wait(pids[i - 20]), (i - 20) & 0x7f);
	}
	for (int i = 280; i < 300; i++)
		CHECK_EXIT(guest_wait(pids[i]), i & 0x7f);
	printf("spawned 300\n");
	return 0;
}

/* nest LEFT PID: execs itself until LEFT is 0, always as the same process. */
static int test_nest(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 64;
	char next[16], pid[16];

	if (argc > 2)
		CHECK_EQ(getpid(), atoi(argv[2]));
	if (left == 0) {
		printf("nested\n");
		return 23;
	}
	snprintf(next, sizeof(next), "%d", left - 1);
	snprintf(pid, sizeof(pid), "%d", getpid());
	if (guest_failures)
		return 1;
	execl(self, self, "nest", next, pid, (char *)NULL);
	MUST(!"exec");
	return 1;
}

/* tower LEFT: each storey waits for the one above, the status comes down all of them. */
static int test_tower(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 64, status;
	char next[16];

	if (left == 0)
		return 29;
	snprintf(next, sizeof(next), "%d", left - 1);
	status = guest_wait(spawn_self("tower", next));
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const struct test tests[] = {
	{ "forks", test_forks }, { "threads", test_threads }, { "vforks", test_vforks }, { "mixed", test_mixed },
	{ "code", test_code }, { "forkloop", test_forkloop }, { "threads500", test_threads500 },
	{ "exitgroup", test_exitgroup }, { "masskill", test_masskill }, { "spawn300", test_spawn300 },
	{ "nest", test_nest }, { "tower", test_tower }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	MUST(len > 0);
	return guest_main(argc, argv, tests);
}
