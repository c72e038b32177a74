/*
 * calls.c - what system calls cost, measured by the program that makes them.
 *
 *   calls MS FILE KIND...
 *
 * Prints for each KIND one line `kind ns count last`: nanoseconds of one operation (see loop.h), how many were made, and
 * what the last one returned (a value or a negative errno), by which the caller knows that it was the call it meant.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/loop.h"

extern char **environ;

static long result_of(long returned)
{
	return returned < 0 ? -errno : returned;
}

static long call_getppid(void *file)
{
	(void)file;
	return result_of(syscall(SYS_getppid));
}

static long call_madvise(void *file)
{
	static void *page;

	(void)file;
	if (!page)
		page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return result_of(syscall(SYS_madvise, page, 4096, MADV_DONTFORK));
}

static long call_adjtimex(void *file)
{
	struct timex timex = { .modes = 0 };

	(void)file;
	return result_of(syscall(SYS_adjtimex, &timex));
}

static long call_kcmp(void *file)
{
	static pid_t self;

	(void)file;
	if (!self)
		self = getpid();
	return result_of(syscall(SYS_kcmp, self, self, 0 /* KCMP_FILE */, 0, 0));
}

static long call_stat(void *file)
{
	struct stat st;

	return result_of(stat(file, &st));
}

static long call_open(void *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : result_of(close(fd));
}

static long call_spawn(void *file)
{
	char *argv[] = { "true", NULL };
	int status;
	pid_t pid;
	int error = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ);

	(void)file;
	if (error)
		return -error;
	return waitpid(pid, &status, 0) < 0 ? -errno : status;
}

static const struct kind {
	const char *name;
	long (*once)(void *file);
} kinds[] = {
	{ "getppid", call_getppid },   /* no argument, no lock: the bare way into the kernel and back */
	{ "madvise", call_madvise }, /* forwarded after a stop: its advice could take memory away from a child */
	{ "adjtimex", call_adjtimex }, /* answered, with a write to the caller's memory */
	{ "kcmp", call_kcmp },         /* refused, with registers alone */
	{ "stat", call_stat },
	{ "open", call_open },
	{ "spawn", call_spawn },
};

static const struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned ms = argc > 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;

	if (!ms) {
		fprintf(stderr, "usage: calls MS FILE KIND...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		const struct kind *kind = kind_named(argv[i]);
		struct loop_result result;

		if (!kind) {
			fprintf(stderr, "calls: no kind '%s'\n", argv[i]);
			return 2;
		}
		result = loop_run(kind->once, argv[2], ms);
		printf("%s %.1f %llu %ld\n", kind->name, result.ns, (unsigned long long)result.count, result.last);
		fflush(stdout);
	}
	return 0;
}
