/*
 * main.c - tests of the engine alone: its own small policy, no session, no rows' handlers.
 *
 *   test_engine                    all cases on both mechanisms, and again as an ordinary user when started by root
 *   test_engine run NAME...        only these
 *   test_engine guest NAME         what the supervised program is
 *
 * One line for each case, `ok NAME MECHANISM [as user]` or `FAILED ...: why`; last `N passed, N failed`. What a guest found
 * is printed by itself, as `FAIL file:line: check`.
 *
 * How the supervisor decides is told in decide.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syscalls/filter.h"
#include "syscalls/ids.h"
#include "tests/engine/engine_test.h"
#include "tests/engine/supervisor.h"

enum { TIMEOUT_S = 300 };

enum { WANT_KILLED = 1, WANT_NOTE_FORWARD = 2, WANT_NOTE_WINDOW = 4, MAY_NOTE_WINDOW = 8,
       SUPERVISOR_HIDDEN = 16 /* no other user than root can follow a link to its files */ };

static const struct engine_case {
	const char *name;
	unsigned flags;
} cases[] = {
	{ "window", 0 },
	{ "window_file", 0 },
	{ "rewrite", 0 },
	{ "rewrite_race", 0 },
	{ "registers", 0 },
	{ "restart", 0 },
	{ "restart_number", 0 },
	{ "many_blocked", 0 },
	{ "slots_of_forks", 0 },
	{ "answer", 0 },
	{ "answer_protected", 0 },
	{ "answer_fd", 0 },
	{ "answer_fd_mode", 0 },
	{ "answer_fd_leak", 0 },
	{ "forward_after_read", WANT_NOTE_FORWARD },
	{ "kill", WANT_KILLED },
	{ "undumpable", 0 },
	{ "undumpable_answer", 0 },
	{ "undumpable_many", 0 },
	{ "execute_only", 0 },
	{ "vfork", 0 },
	{ "spawn", 0 },
	{ "clone_vm", 0 },
	{ "exec_rewritten", 0 },
	{ "exec_thread", 0 },
	{ "kill_storm", 0 },
	{ "exec_signals", 0 },
	{ "exec_stops", 0 },
	{ "small_as", WANT_NOTE_WINDOW },
	{ "stops_while_mapping", 0 },
	{ "fork_storm", 0 },
	{ "own_filter_trace", 0 },
	{ "own_filter_errno", 0 },
	{ "own_filter_answer", 0 },
	{ "hostile_code", MAY_NOTE_WINDOW },
	{ "clone_event", 0 },
	{ "clone_storm", 0 },
	{ "wait_call", 0 },
	{ "wait_others", 0 },
	{ "wait_signal", 0 },
	{ "wait_stop", 0 },
	{ "wait_killed", 0 },
	{ "wait_exec", 0 },
	{ "wait_end", 0 },
	{ "wait_kill", WANT_KILLED },
	{ "window_large", 0 },
	{ "window_too_large", 0 },
	{ "write_end", 0 },
	{ "exec_auxv", 0 },
	{ "answer_fd_full", 0 },
	{ "answer_fd_denied", 0 },
	{ "foreign", SUPERVISOR_HIDDEN },
	{ "foreign_threads", SUPERVISOR_HIDDEN },
	{ "foreign_filter", SUPERVISOR_HIDDEN },
	{ "replace", 0 },
	{ "replace_share", 0 },
	{ "replace_running", 0 },
	{ "replace_blocked", 0 },
	{ "replace_waiting", 0 },
	{ "replace_signals", 0 },
	{ "replace_stopped", 0 },
	{ "replace_vfork", 0 },
	{ "replace_killed", 0 },
	{ "replace_exec", 0 },
	{ "replace_filter", 0 },
	{ "replace_hidden", SUPERVISOR_HIDDEN },
	{ "remap", 0 },
	{ "remap_many", 0 },
	{ "remap_threads", 0 },
	{ "remap_blocked", 0 },
	{ "remap_vfork", 0 },
	{ "remap_killed", 0 },
	{ "remap_leader", 0 },
	{ "remap_names", 0 },
	{ "remap_filter", 0 },
	{ "remap_hidden", SUPERVISOR_HIDDEN },
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* --- one case ----------------------------------------------------------------------------------------------------- */

struct run {
	char base[100], program[200];
	bool as_user;
	unsigned passed, failed;
};

static int make_filter(struct sock_fprog *program)
{
	static bool stop[CALL_COUNT];
	struct filter_options options = { .arch = arch_host, .arch_count = arch_host_count, .stop = stop, .guard = false };

	stop[CALL_open] = stop[CALL_openat] = stop[CALL_creat] = stop[CALL_execve] = true;
	stop[CALL_uname] = stop[CALL_getsid] = stop[CALL_getpgid] = true;
	return filter_make(program, &options);
}

static void put_file(const char *dir, const char *name, const char *text)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		perror(path);
	close(fd);
}

static bool copy_file(const char *from, const char *to, mode_t mode)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	char buf[65536];
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof(buf))) > 0) {
		if (write(out, buf, n) != n)
			break;
	}
	if (out >= 0) {
		fchmod(out, mode);
		close(out);
	}
	if (in >= 0)
		close(in);
	return n == 0;
}

static void fill_folder(struct shared *sh)
{
	char path[300];

	mkdir(sh->dir, 0755);
	put_file(sh->dir, "hello", "hello");
	put_file(sh->dir, "new", "NEW");
	put_file(sh->dir, "secret", "secret");
	put_file(sh->dir, "a", "a");
	put_file(sh->dir, "b", "b");
	snprintf(path, sizeof(path), "%s/program", sh->dir);
	if (symlink(sh->program, path))
		perror(path);
	snprintf(path, sizeof(path), "%s/secret", sh->dir);
	if (chmod(path, 0))
		perror(path);
	for (int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "%s/fifo%d", sh->dir, i);
		if (mkfifo(path, 0600))
			perror(path);
	}
}

static void remove_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

/* None of the processes that the guest named is left running. */
static const char *check_gone(const struct shared *sh)
{
	char path[40], line[300];

	for (int i = 0; i < PIDS && sh->pids[i]; i++) {
		const char *state;
		int fd;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/stat", sh->pids[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, line, sizeof(line) - 1);
		close(fd);
		line[n > 0 ? n : 0] = 0;
		state = strrchr(line, ')');
		if (state && state[1] && state[2] != 'Z' && state[2] != 'X')
			return "a guest was left running";
	}
	return NULL;
}

static const char *verify(const struct engine_case *c, const struct supervisor *s, int status)
{
	if (c->flags & WANT_KILLED) {
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			return "the guest was not killed";
		return s->shared->pids[0] ? check_gone(s->shared) : "the guest did not come to it";
	}
	if (s->strangers)
		return "a task made a call before it was told of";
	if (s->views)
		return "the end of a task was not told";
	if (WIFSIGNALED(status))
		return strsignal(WTERMSIG(status));
	if (WEXITSTATUS(status) == 77)
		return "skipped";
	if (WEXITSTATUS(status))
		return s->shared->notes ? s->shared->note : "a check of the guest failed";
	if ((c->flags & WANT_NOTE_FORWARD) && !s->forward_notes)
		return "the refused forward was not told";
	if (!(c->flags & WANT_NOTE_FORWARD) && s->forward_notes)
		return "a forward was refused";
	if ((c->flags & WANT_NOTE_WINDOW) && !s->window_notes)
		return "the missing window was not told";
	if (!(c->flags & (WANT_NOTE_WINDOW | MAY_NOTE_WINDOW)) && s->window_notes)
		return s->shared->note;
	return NULL;
}

static const char *supervise(const struct engine_case *c, struct supervisor *s)
{
	char guest[] = "guest", name[40];
	char *argv[] = { s->shared->program, guest, name, NULL };
	char path_env[] = "PATH=/usr/bin:/bin", asan[] = "ASAN_OPTIONS=detect_leaks=0";
	char *envp[] = { path_env, asan, NULL };
	struct engine_program program = { .path = s->shared->program, .argv = argv, .envp = envp };
	struct engine_options options = { .mechanism = s->mechanism, .filter_data = FILTER_DATA, .window = true,
	                                  .events = &supervisor_events, .context = s };
	struct sock_fprog filter = { 0 };
	static char why[200];
	struct engine *engine;
	int error, status;

	snprintf(name, sizeof(name), "%s", c->name);
	if (s->mechanism == ENGINE_TRACE && make_filter(&filter) < 0)
		return "no filter";
	options.filter = &filter;
	engine = engine_new(&options);
	if (!engine)
		return strerror(errno);
	s->engine = engine;
	sigemptyset(&program.mask);
	if (engine_launch(engine, &program, &error) != ENGINE_OK) {
		snprintf(why, sizeof(why), "not started: %s", strerror(error));
		status = -1;
	} else {
		if (c->flags & SUPERVISOR_HIDDEN)
			prctl(PR_SET_DUMPABLE, 0);
		status = engine_run(engine);
	}
	supervisor_end(s);
	engine_free(engine);
	if (s->mechanism == ENGINE_TRACE)
		filter_free(&filter);
	return status == -1 ? why : verify(c, s, status);
}

/* In a process of its own: the engine waits for all children of who runs it. */
static void run_supervisor(const struct run *run, const struct engine_case *c, enum engine_mechanism mechanism, int result)
{
	static struct supervisor s = { .mode_fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };
	int fd = memfd_create("shared", 0);
	const char *why;

	if (fd < 0 || ftruncate(fd, sizeof(struct shared)) || dup2(fd, SHARED_FD) < 0)
		exit(1);
	close(fd);
	s.mechanism = mechanism;
	s.shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (s.shared == MAP_FAILED)
		exit(1);
	snprintf(s.shared->dir, sizeof(s.shared->dir), "%s/case", run->base);
	snprintf(s.shared->program, sizeof(s.shared->program), "%s", run->program);
	fill_folder(s.shared);
	why = supervise(c, &s);
	if (why && write(result, why, strlen(why)) < 0)
		exit(1);
	exit(0); /* with the leak check of a sanitized build */
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void run_case(struct run *run, const struct engine_case *c, enum engine_mechanism mechanism)
{
	char why[300] = "", folder[120];
	int ends[2], status = 0;
	double start = now_s();
	struct pollfd wait;
	ssize_t n;
	pid_t pid;

	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC))
		return;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		run_supervisor(run, c, mechanism, ends[1]);
	}
	close(ends[1]);
	wait = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	if (poll(&wait, 1, TIMEOUT_S * 1000) == 0) {
		snprintf(why, sizeof(why), "hangs");
		kill(pid, SIGKILL);
	} else {
		n = read(ends[0], why, sizeof(why) - 1);
		why[n > 0 ? n : 0] = 0;
	}
	waitpid(pid, &status, 0);
	close(ends[0]);
	if (status && !why[0])
		snprintf(why, sizeof(why), "the supervisor ended with status %#x", status);
	snprintf(folder, sizeof(folder), "%s/case", run->base);
	remove_folder(folder);
	if (!strcmp(why, "skipped")) {
		printf("skipped %s %s%s\n", c->name, engine_mechanism_name(mechanism), run->as_user ? " as user" : "");
		return;
	}
	printf("%s %s %s%s%s%s (%.1f s)\n", why[0] ? "FAILED" : "ok", c->name, engine_mechanism_name(mechanism),
	       run->as_user ? " as user" : "", why[0] ? ": " : "", why, now_s() - start);
	why[0] ? run->failed++ : run->passed++;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static bool is_wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++) {
		if (!strcmp(*names, name))
			return true;
	}
	return false;
}

static void run_all(struct run *run, char **names)
{
	static const enum engine_mechanism mechanisms[] = { ENGINE_TRACE, ENGINE_PTRACE };

	for (unsigned i = 0; i < CASES; i++) {
		for (unsigned j = 0; is_wanted(cases[i].name, names) && j < 2; j++)
			run_case(run, &cases[i], mechanisms[j]);
	}
}

/* The program must be one that every user may read, or the kernel would take its processes for undumpable. */
static bool run_make(struct run *run)
{
	char self[200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	snprintf(run->base, sizeof(run->base), "/tmp/test_engine.XXXXXX");
	if (n <= 0 || !mkdtemp(run->base))
		return false;
	self[n] = 0;
	chmod(run->base, 0755);
	snprintf(run->program, sizeof(run->program), "%s/test_engine", run->base);
	return copy_file(self, run->program, 0755);
}

static void run_free(struct run *run)
{
	remove_folder(run->base);
}

/* As user nobody, by the copy: after a change of ids this process itself would be undumpable. */
static void run_as_user(struct run *root, char **names)
{
	enum { NOBODY = 65534 };
	unsigned counts[2] = { 0, 1 };
	int ends[2];
	pid_t pid;

	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC))
		return;
	pid = fork();
	if (pid == 0) {
		char *argv[80] = { root->program, (char *)"as-user" };

		for (int i = 0; names[i] && i < 70; i++)
			argv[i + 2] = names[i];
		if (dup2(ends[1], RESULT_FD) < 0 || setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(1);
		execv(root->program, argv);
		_exit(1);
	}
	close(ends[1]);
	if (read(ends[0], counts, sizeof(counts)) != sizeof(counts))
		counts[0] = 0, counts[1] = 1;
	close(ends[0]);
	waitpid(pid, NULL, 0);
	root->passed += counts[0];
	root->failed += counts[1];
}

int main(int argc, char **argv)
{
	struct run run = { .as_user = argc > 1 && !strcmp(argv[1], "as-user") };
	char **names = argv + (argc > 2 ? 2 : argc);

	if (argc > 2 && !strcmp(argv[1], "guest"))
		return run_guest(argv[2]);
	if (argc > 1 && !run.as_user && strcmp(argv[1], "run")) {
		fprintf(stderr, "usage: test_engine [run NAME...]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (run.as_user)
		fcntl(RESULT_FD, F_SETFD, FD_CLOEXEC);
	if (!run_make(&run)) {
		perror("test_engine: the program could not be copied");
		return 1;
	}
	run_all(&run, names);
	if (geteuid() == 0)
		run_as_user(&run, names);
	run_free(&run);
	if (run.as_user) {
		unsigned counts[2] = { run.passed, run.failed };

		return write(RESULT_FD, counts, sizeof(counts)) != sizeof(counts);
	}
	printf("%u passed, %u failed\n", run.passed, run.failed);
	return run.failed != 0 || run.passed == 0;
}
