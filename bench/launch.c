/*
 * launch.c - how long a command takes from its creation to its end, seen from outside.
 *
 *   launch [-c CPU] [-n TIMES] [-t MS] [-q] -o FILE COMMAND [ARG...]
 *
 *   -c CPU    hold this process, and so the command and all that it starts, on one CPU
 *   -n TIMES  run it so many times (1), one after the other
 *   -t MS     begin no further run once so many milliseconds have passed
 *   -q        the command's standard output is /dev/null
 *   -o FILE   write one line `ns status` for each run
 *
 * posix_spawn of a small process costs the same for every command, which a fork of a large interpreter would not. STATUS is
 * the exit status, or 128 + N for signal N. The command's output is the launcher's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/loop.h"

extern char **environ;

static int pin(int cpu)
{
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	int error = 0;

	if (!set)
		return -ENOMEM;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	if (sched_setaffinity(0, size, set) < 0)
		error = -errno;
	CPU_FREE(set);
	return error;
}

/* Nanoseconds; *status is as a shell tells it. Negative errno when the command could not be started. */
static int64_t run(char **argv, const posix_spawn_file_actions_t *actions, int *status)
{
	uint64_t start = loop_now();
	pid_t pid;
	int how, error = posix_spawnp(&pid, argv[0], actions, NULL, argv, environ);

	if (error)
		return -error;
	while (waitpid(pid, &how, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
	return (int64_t)(loop_now() - start);
}

static int run_times(char **argv, const posix_spawn_file_actions_t *actions, FILE *out, unsigned times, unsigned ms)
{
	uint64_t end = ms ? loop_now() + (uint64_t)ms * 1000000u : UINT64_MAX;

	for (unsigned i = 0; i < times && (i == 0 || loop_now() < end); i++) {
		int status = 0;
		int64_t ns = run(argv, actions, &status);

		if (ns < 0) {
			fprintf(stderr, "launch: %s: %s\n", argv[0], strerror((int)-ns));
			return 127;
		}
		fprintf(out, "%lld %d\n", (long long)ns, status);
	}
	return 0;
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	unsigned times = 1, ms = 0;
	FILE *out = NULL;
	int option, error;

	posix_spawn_file_actions_init(&actions);
	while ((option = getopt(argc, argv, "+c:n:t:qo:")) >= 0) {
		if (option == 'c' && (error = pin(atoi(optarg))) < 0) {
			fprintf(stderr, "launch: cannot stay on CPU %s: %s\n", optarg, strerror(-error));
			return 125;
		} else if (option == 'n') {
			times = (unsigned)atoi(optarg);
		} else if (option == 't') {
			ms = (unsigned)atoi(optarg);
		} else if (option == 'q') {
			posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
		} else if (option == 'o') {
			out = fopen(optarg, "we");
			if (!out) {
				fprintf(stderr, "launch: %s: %s\n", optarg, strerror(errno));
				return 125;
			}
		} else if (option == '?') {
			return 2;
		}
	}
	if (!out || optind == argc) {
		fprintf(stderr, "usage: launch [-c CPU] [-n TIMES] [-t MS] [-q] -o FILE COMMAND [ARG...]\n");
		return 2;
	}
	error = run_times(argv + optind, &actions, out, times, ms);
	posix_spawn_file_actions_destroy(&actions);
	if (fclose(out) < 0) {
		perror("launch");
		return 125;
	}
	return error;
}
