/*
 * diagnose.c - the tracing thread's side: takes the registers, has a helper process make the text, and passes it on.
 *
 * diagnose_impl.h says why it is another process, diagnose_library.c why a plugin.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tracer/diagnose_impl.h"

#ifndef INTERPOSE_LIBDIR
#define INTERPOSE_LIBDIR "/usr/local/lib/interpose"
#endif

enum {
	REPORT_MS = 2000,          /* the other guests wait as long */
	REPORT_BYTES = 256 << 10
};

/* --- the plugin ------------------------------------------------------------------------------------------------------ */

static const struct diagnose_library *load_from(const char *path)
{
	const struct diagnose_library *library;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return NULL;
	library = dlsym(handle, "diagnose_library");
	if (library && library->version == DIAGNOSE_LIBRARY_VERSION)
		return library;
	dlclose(handle);
	return NULL;
}

/* In the folder of the running program: who can write there could replace the program as well. */
static const struct diagnose_library *load_beside(void)
{
	static const char name[] = "diagnose.so";
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path));
	char *slash;

	if (len <= 0 || len == sizeof(path))
		return NULL;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + 1 - path) + sizeof(name) > sizeof(path))
		return NULL;
	memcpy(slash + 1, name, sizeof(name));
	return load_from(path);
}

static struct {
	const struct diagnose_library *library;
	bool settled;
} load_state;

void diagnose_use(const struct diagnose_library *library)
{
	load_state.library = library;
	load_state.settled = true;
}

const struct diagnose_library *diagnose_load(const char *path)
{
	const struct diagnose_library *library;

	if (path) {
		diagnose_use(load_from(path));
	} else if (!load_state.settled) {
		library = load_beside();
		diagnose_use(library ? library : load_from(INTERPOSE_LIBDIR "/diagnose.so"));
	}
	return load_state.library;
}

const char *diagnose_missing(void)
{
	static const char no_unwind[] = "built without libunwind: call stacks by frame pointers only";
	static const char no_capstone[] = "built without capstone: instructions as bytes";
	static const char neither[] = "built without libunwind: call stacks by frame pointers only; "
				      "built without capstone: instructions as bytes";
	static const char nothing[] = "diagnose.so is neither beside the program nor in " INTERPOSE_LIBDIR
				      ": call stacks by frame pointers only, instructions as bytes";
	const struct diagnose_library *library = diagnose_load(NULL);

	if (!library)
		return nothing;
	if (!library->unwind)
		return library->disassemble ? no_unwind : neither;
	return library->disassemble ? NULL : no_capstone;
}

/* --- the helper ------------------------------------------------------------------------------------------------------ */

static int open_of_task(pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* The supervisor's handlers must not run here: all signals stay blocked, and what a fault of ours raises kills
   even so, for the kernel resets the action of a blocked synchronous signal. */
static void __attribute__((noreturn)) helper_run(int fd, struct diagnose_task *task, const struct diagnose_where *where,
						 const struct diagnose_library *library)
{
	const struct rlimit none = { 0, 0 };
	FILE *out = fdopen(fd, "w");

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	if (out) {
		setvbuf(out, NULL, _IOLBF, 4096); /* what was found before a crash is shown */
		diagnose_report(out, task, where, library);
	}
	_exit(!out);
}

static pid_t helper_start(int *fd, struct diagnose_task *task, const struct diagnose_where *where)
{
	const struct diagnose_library *library = diagnose_load(NULL);
	sigset_t all, before;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0)
		helper_run(ends[1], task, where, library);
	if (pid < 0)
		pid = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*fd = ends[0];
	return pid;
}

/* Text of the helper is as little trusted as the guest: lines of printable bytes. */
static void pass_on(FILE *out, const char *prefix, const char *text, size_t len, bool *line_start)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (*line_start)
			fputs(prefix, out);
		*line_start = c == '\n';
		if (c == '\n' || (c >= ' ' && c < 0x7f))
			fputc(c, out);
		else
			fprintf(out, "\\%03o", c);
	}
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 0 at the end of the text, -ETIMEDOUT or -E2BIG when there is no end to it. */
static int helper_read(FILE *out, const char *prefix, int fd)
{
	int64_t deadline = now_ms() + REPORT_MS;
	size_t total = 0;
	bool line_start = true;
	int err = 0;

	while (!err) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - now_ms();
		char buf[4096];
		ssize_t n;

		if (left <= 0 || poll(&wait, 1, (int)left) == 0) {
			err = -ETIMEDOUT;
			break;
		}
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		pass_on(out, prefix, buf, (size_t)n, &line_start);
		total += (size_t)n;
		if (total > REPORT_BYTES)
			err = -E2BIG;
	}
	if (!line_start)
		fputc('\n', out);
	return err;
}

/* Waits for this one child only. ECHILD, when somebody else has waited for it, leaves nothing to tell. */
static void helper_end(FILE *out, const char *prefix, pid_t pid, int err)
{
	int status = 0;

	if (err)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return;
	if (err)
		fprintf(out, "%s  the report ends here: it took %s\n", prefix, err == -E2BIG ? "too much room" : "too long");
	else if (WIFSIGNALED(status))
		fprintf(out, "%s  the report ends here: this guest's memory or files broke the helper (signal %d)\n", prefix,
			WTERMSIG(status));
}

static int diagnose_without(FILE *out, const char *prefix, const struct diagnose_where *where, int err)
{
	if (where->info) {
		fprintf(out, "%s  ", prefix);
		diagnose_signal_print(out, where->info);
		fputc('\n', out);
	}
	fprintf(out, "%s  no call stack: its registers cannot be read (%s)\n", prefix, strerror(-err));
	return err;
}

int diagnose(FILE *out, const char *prefix, pid_t tid, const struct diagnose_where *where)
{
	struct diagnose_task task = { .tid = tid, .mem = -1, .maps = -1, .read = diagnose_mem_read,
				      .table = diagnose_elf_table };
	int err, fd = -1;
	pid_t pid;

	if (where->title)
		fprintf(out, "%s%s\n", prefix, where->title);
	err = diagnose_regs_get(tid, &task.regs);
	if (err)
		return diagnose_without(out, prefix, where, err);
	fflush(out);
	task.mem = open_of_task(tid, "mem");
	task.maps = open_of_task(tid, "maps");
	pid = helper_start(&fd, &task, where);
	if (pid < 0) {
		fprintf(out, "%s  no call stack: no helper process (%s)\n", prefix, strerror(-pid));
	} else {
		err = helper_read(out, prefix, fd);
		close(fd);
		helper_end(out, prefix, pid, err);
	}
	close_if(task.mem);
	close_if(task.maps);
	fflush(out);
	return 0;
}
