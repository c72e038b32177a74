/* life.c - guests that are born, exec, hide their memory and die in the middle of rewritten calls. */
#include "tests/guest/guest.h"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "tests/engine/engine_test.h"

static void spin(unsigned times)
{
	for (volatile unsigned i = 0; i < times; i++)
		;
}

static int exit7(void)
{
	return 7;
}

/* --- the end of all ----------------------------------------------------------------------------------------------- */

static void *wait_for_ever(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return NULL;
}

static int test_kill(void)
{
	static struct blocked b[2];
	pthread_t thread;
	int which = 0;

	for (int i = 1; i < 3 && !which; i++) {
		if (guest_fork() == 0)
			which = i;
	}
	shared->pids[which] = getpid();
	blocked_start(b, which * 2, 2);
	MUST(blocked_await(b, 2));
	for (int i = 0; i < 2; i++)
		guest_thread(&thread, wait_for_ever, NULL);
	if (which)
		wait_for_ever(NULL);
	MUST(guest_await_value(&shared->ready, 8));
	syscall(SYS_openat, AT_FDCWD, "/kill", O_RDONLY, 0);
	return 1;
}

/* --- memory that nobody may open ---------------------------------------------------------------------------------- */

static void check_undumpable(void)
{
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	CHECK(open_virtual("missing", O_RDONLY, 0) < 0 && errno == ENOENT);
	CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
}

/* Memory that was never open before: a fork's. */
static int test_undumpable(void)
{
	for (int i = 0; i < 20; i++) {
		pid_t child;
		int status;

		if (i == 10) { /* the parent's own, opened by its start */
			MUST(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
			check_undumpable();
		}
		child = guest_fork();
		if (child == 0) {
			if (i < 10)
				MUST(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
			check_undumpable();
			child_exit();
		}
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
	}
	return guest_failures != 0;
}

/* An answer that is written although nothing was read. */
static int test_undumpable_answer(void)
{
	int status;

	MUST(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	if (guest_fork() == 0) {
		struct utsname uts;

		memset(&uts, 0, sizeof(uts));
		CHECK(uname(&uts) == 0);
		CHECK(!strcmp(uts.machine, ANSWERED_MACHINE));
		CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
		CHECK_EQ(syscall(SYS_uname, 16), -1);
		CHECK_EQ(errno, EFAULT);
		child_exit();
	}
	wait(&status);
	CHECK_EXIT(status, 0);
	return guest_failures != 0;
}

enum { UNDUMPABLE_THREADS = 40 };

static int test_undumpable_many(void)
{
	static struct blocked b[UNDUMPABLE_THREADS];
	pid_t child;
	int status;

	MUST(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	child = guest_fork();
	if (child == 0) {
		int decisions = shared->decisions;

		/* it may not look at its own threads' files in /proc as another user than root */
		blocked_start(b, 0, UNDUMPABLE_THREADS);
		MUST(guest_await_value(&shared->decisions, decisions + UNDUMPABLE_THREADS));
		CHECK_EQ(blocked_release_all(b, UNDUMPABLE_THREADS), UNDUMPABLE_THREADS);
		CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
		child_exit();
	}
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
	return guest_failures != 0;
}

/* --- children ----------------------------------------------------------------------------------------------------- */

static int test_vfork(void)
{
	static volatile int got[50];
	int status;

	for (volatile int i = 0; i < 50; i++) {
		pid_t child = vfork();

		if (child == 0) {
			got[i] = (int)syscall(SYS_openat, AT_FDCWD, "/virtual/hello", O_RDONLY, 0);
			if (i % 2)
				execl(shared->program, shared->program, "guest", "exit7", NULL);
			_exit(7);
		}
		MUST(child > 0);
		CHECK(got[i] >= 0);
		status = guest_wait(child);
		CHECK_EXIT(status, 7);
		CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	}
	return guest_failures != 0;
}

static int read9(void)
{
	CHECK(file_holds(9, "hello"));
	CHECK(file_holds(open_virtual("a", O_RDONLY, 0), "a"));
	return guest_failures != 0;
}

static int test_spawn(void)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	char *args[] = { shared->program, (char *)"guest", (char *)"read9", NULL };
	int status;
	pid_t child;

	for (int i = 0; i < 20; i++) {
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addopen(&actions, 9, "/virtual/hello", O_RDONLY, 0);
		MUST(posix_spawn(&child, "/virtual/program", &actions, NULL, args, environ) == 0);
		posix_spawn_file_actions_destroy(&actions);
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
		CHECK_EQ(posix_spawn(&child, "/virtual/missing", NULL, NULL, args, environ), ENOENT);
	}
	return guest_failures != 0;
}

enum { VM_OPENS = 500 };

static int vm_body(void *arg)
{
	(void)arg;
	for (int i = 0; i < VM_OPENS; i++) {
		char is = 0;
		int fd = (int)syscall(SYS_openat, AT_FDCWD, "/virtual/b", O_RDONLY, 0);

		if (fd < 0 || syscall(SYS_read, fd, &is, 1) != 1 || is != 'b')
			return 1;
		syscall(SYS_close, fd);
	}
	return 0;
}

/* Processes of one address space: their slots must not meet. */
static int test_clone_vm(void)
{
	enum { STACK = 64 << 10, COUNT = 3 };
	pid_t child[COUNT];

	for (int i = 0; i < COUNT; i++) {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		MUST(stack != MAP_FAILED);
		child[i] = clone(vm_body, stack + STACK, CLONE_VM | SIGCHLD, NULL);
		MUST(child[i] > 0);
	}
	for (int i = 0; i < VM_OPENS; i++)
		CHECK(file_holds(open_virtual("a", O_RDONLY, 0), "a"));
	for (int i = 0; i < COUNT; i++) {
		int status = guest_wait(child[i]);

		CHECK_EXIT(status, 0);
	}
	return guest_failures != 0;
}

/* --- exec --------------------------------------------------------------------------------------------------------- */

static void exec_exit7(const char *path)
{
	char *args[] = { shared->program, (char *)"guest", (char *)"exit7", NULL };
	extern char **environ;

	syscall(SYS_execve, path, args, environ);
}

static int test_exec_rewritten(void)
{
	pid_t child = guest_fork();
	int status;

	if (child == 0) {
		exec_exit7("/virtual/missing");
		MUST(errno == ENOENT);
		exec_exit7("/virtual/hello");
		MUST(errno == EACCES);
		MUST(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
		exec_exit7("/virtual/program");
		_exit(1);
	}
	status = guest_wait(child);
	CHECK_EXIT(status, 7);
	return guest_failures != 0;
}

static void *exec_body(void *arg)
{
	(void)arg;
	exec_exit7("/virtual/program");
	_exit(1);
}

enum { EXEC_THREADS = 20 };

static int test_exec_thread(void)
{
	static struct blocked b[EXEC_THREADS];
	int before = getsid(ASK_FILES);

	for (int i = 0; i < 20; i++) {
		pid_t child = guest_fork();
		int status;

		if (child == 0) {
			pthread_t thread;

			blocked_start(b, 0, EXEC_THREADS);
			MUST(blocked_await(b, EXEC_THREADS));
			guest_thread(&thread, exec_body, NULL);
			pthread_join(thread, NULL);
			_exit(1);
		}
		status = guest_wait(child);
		CHECK_EXIT(status, 7);
		if (i == 0)
			before = getsid(ASK_FILES);
	}
	CHECK_EQ(getsid(ASK_FILES), before);
	return guest_failures != 0;
}

/* --- killed at any moment ----------------------------------------------------------------------------------------- */

enum { KILLS = SANITIZED ? 150 : 600, AFTER = 100 };

static void storm_child(void)
{
	static struct blocked b[3];

	blocked_start(b, 0, 2);
	for (;;)
		close(open_virtual("hello", O_RDONLY, 0));
}

static int test_kill_storm(void)
{
	static struct blocked b[AFTER];
	int status, before = 0;
	unsigned seed = 1;

	for (int i = 0; i < KILLS; i++) {
		int decisions = shared->decisions;
		pid_t child = guest_fork();

		if (child == 0)
			storm_child();
		seed = seed * 1103515245 + 12345;
		if (i % 2) /* when it makes rewritten calls; else at its birth */
			MUST(guest_await_value(&shared->decisions, decisions + 3));
		spin((seed >> 8) % (i % 2 ? 100000 : 400000));
		kill(child, SIGKILL);
		status = guest_wait(child);
		CHECK_SIGNALED(status, SIGKILL);
		if (i == 10)
			before = getsid(ASK_FILES);
	}
	CHECK_EQ(getsid(ASK_FILES), before);
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	CHECK_EQ(windows_mapped(), 1); /* who was killed gave its slot back */
	blocked_start(b, 0, AFTER);
	MUST(blocked_await(b, AFTER));
	CHECK_EQ(blocked_release_all(b, AFTER), AFTER);
	return guest_failures != 0;
}

/* --- signals while a new program gets its window ------------------------------------------------------------------ */

enum { EXECS = SANITIZED ? 40 : 150, ENDED_EXECS = SANITIZED ? 20 : 40 };

static void exec_again(const char *name)
{
	execl(shared->program, shared->program, "guest", name, NULL);
	_exit(98);
}

/* USR1 is blocked and pending since before the first exec; USR2 is ignored. */
static int exec_chain(void)
{
	sigset_t pending;

	if (!file_holds(open_virtual("hello", O_RDONLY, 0), "hello"))
		return 1;
	if (__atomic_add_fetch(&shared->count, 1, __ATOMIC_SEQ_CST) < EXECS)
		exec_again("exec_chain");
	sigpending(&pending);
	return sigismember(&pending, SIGUSR1) ? 7 : 2;
}

static int test_exec_signals(void)
{
	pid_t child = guest_fork();
	int status;

	if (child == 0) {
		signal(SIGUSR2, SIG_IGN);
		guest_block(SIG_BLOCK, SIGUSR1);
		shared->ready = 1;
		exec_again("exec_chain");
	}
	MUST(guest_await_value(&shared->ready, 1));
	kill(child, SIGUSR1);
	while (waitpid(child, &status, WNOHANG) == 0) {
		int count = shared->count;

		for (int i = 0; i < 8; i++) {
			kill(child, SIGUSR2);
			spin(20000);
		}
		if (count + 1 < EXECS && !guest_await_value(&shared->count, count + 1)) {
			CHECK(!"the program goes on");
			kill(child, SIGKILL);
		}
	}
	CHECK_EXIT(status, 7);
	CHECK_EQ(shared->count, EXECS);
	/* and one that ends it arrives, at any moment */
	for (int i = 0; i < ENDED_EXECS && !guest_failures; i++) {
		shared->count = -1000000;
		child = guest_fork();
		if (child == 0) {
			shared->ready = 2;
			exec_again("exec_chain");
		}
		MUST(guest_await_value(&shared->ready, 2));
		spin((unsigned)i * 12000);
		kill(child, SIGUSR1);
		status = guest_wait(child);
		CHECK_SIGNALED(status, SIGUSR1);
		shared->ready = 0;
	}
	return guest_failures != 0;
}

/* Each SIGSTOP stops it unless SIGCONT comes first, and after SIGCONT it goes on by itself. */
static int test_exec_stops(void)
{
	pid_t child = guest_fork();
	unsigned seed = 7, turn = 0;
	int status = -1;

	if (child == 0) {
		guest_block(SIG_BLOCK, SIGUSR1);
		raise(SIGUSR1);
		exec_again("exec_chain");
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		int count = shared->count;

		kill(child, SIGSTOP);
		seed = seed * 1103515245 + 12345;
		spin((seed >> 8) % 60000);
		if (turn++ % 2 && waitpid(child, &status, WUNTRACED) == child && !WIFSTOPPED(status)) {
			CHECK(count + 3 >= EXECS); /* or it ran on as if there had been no signal */
			break;
		}
		kill(child, SIGCONT);
		if (count + 2 < EXECS && !guest_await_value(&shared->count, count + 2)) {
			CHECK(!"the program went on after SIGCONT");
			kill(child, SIGKILL);
		}
	}
	CHECK_EXIT(status, 7);
	return guest_failures != 0;
}

/* --- many children ------------------------------------------------------------------------------------------------ */

enum { FORK_THREADS = 4, FORKS = SANITIZED ? 100 : 400 };

static void *fork_body(void *arg)
{
	(void)arg;
	for (int i = 0; i < FORKS && !guest_failures; i++) {
		pid_t child = fork();
		int status;

		MUST(child >= 0);
		if (child == 0)
			_exit(!file_holds(open_virtual(i % 2 ? "a" : "b", O_RDONLY, 0), i % 2 ? "a" : "b"));
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
	}
	return NULL;
}

static int test_fork_storm(void)
{
	pthread_t threads[FORK_THREADS];

	for (int i = 0; i < FORK_THREADS; i++)
		guest_thread(&threads[i], fork_body, NULL);
	for (int i = 0; i < FORK_THREADS; i++)
		pthread_join(threads[i], NULL);
	return guest_failures != 0;
}

const struct guest_case guests_life[] = {
	{ "exit7", exit7 },
	{ "read9", read9 },
	{ "exec_chain", exec_chain },
	{ "kill", test_kill },
	{ "undumpable", test_undumpable },
	{ "undumpable_answer", test_undumpable_answer },
	{ "undumpable_many", test_undumpable_many },
	{ "vfork", test_vfork },
	{ "spawn", test_spawn },
	{ "clone_vm", test_clone_vm },
	{ "exec_rewritten", test_exec_rewritten },
	{ "exec_thread", test_exec_thread },
	{ "kill_storm", test_kill_storm },
	{ "exec_signals", test_exec_signals },
	{ "exec_stops", test_exec_stops },
	{ "fork_storm", test_fork_storm },
	{ NULL, NULL }
};
