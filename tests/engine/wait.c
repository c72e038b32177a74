/* wait.c - guests whose calls are decided late, that put much into the window, and of whose birth is told. */
#include "tests/guest/guest.h"

#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "tests/engine/engine_test.h"

/* --- births --------------------------------------------------------------------------------------------------------------- */

static long ask(int what)
{
	return syscall(SYS_getsid, what, 0, 0);
}

static void *birth_thread(void *arg)
{
	long flags = ask(ASK_FLAGS);

	CHECK((flags & (CLONE_VM | CLONE_THREAD)) == (CLONE_VM | CLONE_THREAD));
	CHECK_EQ(ask(ASK_DEPTH), 1);
	return arg;
}

/* Started by exec; its status is its number of ancestors. */
static int show_depth(void)
{
	return (int)ask(ASK_DEPTH);
}

static int show_former(void)
{
	return ask(ASK_FORMER) == shared->value[0] ? 7 : 1;
}

static void exec_guest(const char *name)
{
	execl(shared->program, shared->program, "guest", name, NULL);
	_exit(98);
}

static void *former_thread(void *arg)
{
	shared->value[0] = guest_tid();
	exec_guest("former");
	return arg;
}

static int test_clone_event(void)
{
	pthread_t thread;
	volatile long flags = 0;
	pid_t child;
	int status;

	CHECK_EQ(ask(ASK_DEPTH), 0);
	CHECK_EQ(ask(ASK_FLAGS), 0);
	guest_thread(&thread, birth_thread, NULL);
	pthread_join(thread, NULL);
	child = guest_fork();
	if (child == 0) {
		CHECK((ask(ASK_FLAGS) & (CLONE_VM | CLONE_THREAD | CLONE_VFORK)) == 0);
		CHECK_EQ(ask(ASK_DEPTH), 1);
		child = fork();
		if (child == 0)
			exec_guest("depth");
		status = guest_wait(child);
		CHECK_EXIT(status, 2);
		child_exit();
	}
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
	child = vfork();
	if (child == 0) {
		flags = ask(ASK_FLAGS);
		_exit(0);
	}
	guest_wait(child);
	CHECK_EQ(flags, CLONE_VM | CLONE_VFORK);
	child = guest_fork();
	if (child == 0) {
		guest_thread(&thread, former_thread, NULL);
		pthread_join(thread, NULL);
		_exit(1);
	}
	status = guest_wait(child);
	CHECK_EXIT(status, 7);
	return guest_failures != 0;
}

enum { BIRTHS = SANITIZED ? 60 : 300 };

/* Children whose parents are killed while they are born. */
static int test_clone_storm(void)
{
	for (int i = 0; i < BIRTHS; i++) {
		pid_t child = guest_fork();

		if (child == 0) {
			for (;;) {
				if (fork() == 0) {
					ask(ASK_DEPTH);
					_exit(0);
				}
			}
		}
		for (volatile int j = 0; j < i * 1000 % 400000; j++)
			;
		kill(child, SIGKILL);
		guest_wait(child);
	}
	return guest_failures != 0;
}

/* --- calls that wait -------------------------------------------------------------------------------------------------------- */

static int open_wait(const char *how, const char *name)
{
	char path[60];

	snprintf(path, sizeof(path), "/wait/%s/%s", how, name);
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
}

static int test_wait_call(void)
{
	CHECK(file_holds(open_wait("20", "a"), "a"));
	CHECK_EQ(shared->waits, 2);
	CHECK(file_holds(open_wait("0", "b"), "b"));
	CHECK(open_wait("0", "missing") < 0 && errno == ENOENT);
	shared->waits = 0;
	CHECK(file_holds(open_wait("self", "b"), "b"));
	CHECK_EQ(shared->waits, 4);
	for (int i = 0; i < 200 && !guest_failures; i++)
		CHECK(file_holds(open_wait("0", i % 2 ? "a" : "b"), i % 2 ? "a" : "b"));
	CHECK_EQ(windows_mapped(), 1);
	return guest_failures != 0;
}

struct waiter {
	pthread_t thread;
	const char *how;
	volatile pid_t tid;
	volatile int fd, error;
};

static void *waiter_body(void *arg)
{
	struct waiter *w = arg;

	w->tid = guest_tid();
	w->fd = open_wait(w->how, "a");
	w->error = errno;
	return NULL;
}

static void waiter_start(struct waiter *w, const char *how)
{
	int waits = shared->waits;

	*w = (struct waiter){ .how = how, .fd = -2 };
	guest_thread(&w->thread, waiter_body, w);
	MUST(guest_await_value(&shared->waits, waits + 1));
}

/* Many wait at a time, and who does not wait goes on. */
static int test_wait_others(void)
{
	static struct waiter w[20];

	for (int i = 0; i < 20; i++)
		waiter_start(&w[i], "300");
	for (int i = 0; i < 100; i++)
		CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	for (int i = 0; i < 20; i++) {
		pthread_join(w[i].thread, NULL);
		CHECK(file_holds(w[i].fd, "a"));
	}
	CHECK_EQ(shared->waits, 40);
	CHECK_EQ(windows_mapped(), 1); /* who waits has no slot */
	return guest_failures != 0;
}

static volatile int handled;

static void on_usr1(int signo, siginfo_t *info, void *context)
{
	handled++;
}

/* Signals wait until the call is decided, whatever their action is. */
static int test_wait_signal(void)
{
	struct waiter w;
	pid_t child;
	int status;

	guest_handle(SIGUSR1, on_usr1, 0);
	waiter_start(&w, "100");
	syscall(SYS_tgkill, getpid(), w.tid, SIGUSR1);
	usleep(20000);
	CHECK_EQ(handled, 0);
	pthread_join(w.thread, NULL);
	CHECK_EQ(handled, 1);
	CHECK(file_holds(w.fd, "a"));
	child = guest_fork();
	if (child == 0) {
		open_wait("1000", "a"); /* long enough for a loaded machine to see it wait */
		for (;;)
			pause();
	}
	MUST(guest_await_value(&shared->waits, 3));
	kill(child, SIGINT);
	status = guest_wait(child);
	CHECK_SIGNALED(status, SIGINT);
	CHECK_EQ(shared->waits, 4);
	return guest_failures != 0;
}

static int test_wait_stop(void)
{
	pid_t child = guest_fork();
	int status;

	if (child == 0)
		_exit(file_holds(open_wait("100", "a"), "a") ? 7 : 1);
	MUST(guest_await_value(&shared->waits, 1));
	kill(child, SIGSTOP);
	CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	kill(child, SIGCONT);
	status = guest_wait(child);
	CHECK_EXIT(status, 7);
	return guest_failures != 0;
}

/* Killed before, while and after it is asked again. */
static int test_wait_killed(void)
{
	int before = 0;

	for (int i = 0; i < 200; i++) {
		int waits = shared->waits, status;
		pid_t child = guest_fork();

		if (child == 0) {
			open_wait(i % 4 ? "1" : "never", "a");
			pause();
		}
		MUST(guest_await_value(&shared->waits, waits + 1));
		for (volatile int j = 0; j < i * 6000; j++)
			;
		kill(child, SIGKILL);
		status = guest_wait(child);
		CHECK_SIGNALED(status, SIGKILL);
		if (i == 10)
			before = getsid(ASK_FILES);
	}
	CHECK_EQ(getsid(ASK_FILES), before);
	CHECK_EQ(windows_mapped(), 1);
	return guest_failures != 0;
}

static int test_wait_exec(void)
{
	static struct waiter w[4];

	for (int i = 0; i < 20; i++) {
		pid_t child = guest_fork();
		pthread_t thread;
		int status;

		if (child == 0) {
			for (int j = 0; j < 4; j++)
				waiter_start(&w[j], j % 2 ? "5" : "never");
			if (i % 2)
				exec_guest("exit7");
			guest_thread(&thread, former_thread, NULL);
			open_wait("never", "a"); /* the leader waits as well */
			_exit(1);
		}
		status = guest_wait(child);
		CHECK_EXIT(status, 7);
	}
	return guest_failures != 0;
}

static int test_wait_end(void)
{
	struct waiter w;

	if (guest_fork() == 0) {
		open_wait("20", "a");
		open_wait("never", "a");
	}
	waiter_start(&w, "never");
	MUST(guest_await_value(&shared->waits, 4));
	return guest_failures != 0;
}

static int test_wait_kill(void)
{
	struct waiter w;

	waiter_start(&w, "never");
	shared->pids[0] = getpid();
	syscall(SYS_openat, AT_FDCWD, "/kill", O_RDONLY, 0);
	return 1;
}

/* --- much in the window ------------------------------------------------------------------------------------------------------- */

enum { ARGUMENTS = 20000, TOO_MANY = 31000 };

/* argv[0] to argv[2] are "guest many": the others are empty. */
static int many(void)
{
	FILE *file = fopen("/proc/self/cmdline", "re");
	int c, count = 0;

	MUST(file);
	while ((c = getc(file)) != EOF)
		count += c == 0;
	fclose(file);
	CHECK_EQ(count, ARGUMENTS);
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	return guest_failures ? 1 : 7;
}

static void exec_many(int count)
{
	static char *args[TOO_MANY + 1];
	extern char **environ;
	struct rlimit limit = { 8 << 20, 8 << 20 };

	setrlimit(RLIMIT_STACK, &limit); /* a quarter of it is for arguments */
	args[0] = shared->program;
	args[1] = (char *)"guest";
	args[2] = (char *)"many";
	for (int i = 3; i < count; i++)
		args[i] = (char *)"";
	syscall(SYS_execve, "/virtual/program", args, environ);
}

static int run_many(void)
{
	pid_t child = guest_fork();

	if (child == 0) {
		exec_many(ARGUMENTS);
		_exit(errno);
	}
	return guest_wait(child);
}

/* The same where no chunk has so much room: the forked program shares its chunk with the blocked calls. */
static int test_window_large(void)
{
	static struct blocked b[15];
	int status = run_many();

	CHECK_EXIT(status, 7);
	blocked_start(b, 0, 7);
	MUST(blocked_await(b, 7));
	status = run_many();
	CHECK_EXIT(status, 7);
	blocked_start(b + 7, 7, 8);
	MUST(blocked_await(b + 7, 8));
	status = run_many();
	CHECK_EXIT(status, 7);
	CHECK_EQ(blocked_release_all(b, 15), 15);
	CHECK_EQ(windows_mapped(), 1);
	return guest_failures != 0;
}

static int test_window_too_large(void)
{
	exec_many(TOO_MANY);
	CHECK_EQ(errno, E2BIG);
	for (int i = 0; i < 20; i++) {
		int status = run_many(); /* each gives back what it took */

		CHECK_EXIT(status, 7);
	}
	CHECK_EQ(windows_mapped(), 1);
	return guest_failures != 0;
}

/* --- writing ------------------------------------------------------------------------------------------------------------------ */

static void try_write(char *at, int want)
{
	shared->written = 1;
	CHECK_EQ(syscall(SYS_getsid, ASK_WRITE, at), 0);
	CHECK_EQ(shared->written, want);
}

static int test_write_end(void)
{
	char buf[16] = "", *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(pages != MAP_FAILED);
	try_write(buf, 0);
	CHECK(!strcmp(buf, ASK_WRITTEN));
	try_write((char *)16, -EFAULT);
	try_write(pages + 4096 - 3, 0);
	CHECK(!strcmp(pages + 4096 - 3, ASK_WRITTEN));
	memset(pages, 'x', 8192);
	mprotect(pages + 4096, 4096, PROT_READ);
	try_write(pages + 4096, -EFAULT);
	try_write(pages + 4096 - 3, -EFAULT);
	CHECK(pages[4093] == 'x' && pages[4095] == 'x' && pages[4096] == 'x');
	munmap(pages + 4096, 4096);
	try_write(pages + 4096 - 3, -EFAULT);
	CHECK(pages[4093] == 'x' && pages[4095] == 'x');
	return guest_failures != 0;
}

static int show_execfn(void)
{
	const char *name = (const char *)getauxval(AT_EXECFN);

	return name && !strcmp(name, PATCHED_EXECFN) ? 7 : 1;
}

static int test_exec_auxv(void)
{
	pid_t child = guest_fork();
	int status;

	shared->patch = true;
	if (child == 0)
		exec_guest("execfn");
	status = guest_wait(child);
	CHECK_EXIT(status, 7);
	return guest_failures != 0;
}

const struct guest_case guests_wait[] = {
	{ "depth", show_depth },
	{ "former", show_former },
	{ "many", many },
	{ "execfn", show_execfn },
	{ "clone_event", test_clone_event },
	{ "clone_storm", test_clone_storm },
	{ "wait_call", test_wait_call },
	{ "wait_others", test_wait_others },
	{ "wait_signal", test_wait_signal },
	{ "wait_stop", test_wait_stop },
	{ "wait_killed", test_wait_killed },
	{ "wait_exec", test_wait_exec },
	{ "wait_end", test_wait_end },
	{ "wait_kill", test_wait_kill },
	{ "window_large", test_window_large },
	{ "window_too_large", test_window_too_large },
	{ "write_end", test_write_end },
	{ "exec_auxv", test_exec_auxv },
	{ NULL, NULL }
};
