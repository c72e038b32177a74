/* main.c - interpose [OPTION...] [--] COMMAND [ARG...] */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/message.h"
#include "tracer/options.h"
#include "tracer/program.h"
#include "tracer/signals.h"

#ifndef INTERPOSE_VERSION
#error "INTERPOSE_VERSION is given by the makefile"
#endif

static const char *environment_get(char *const *environment, const char *key)
{
	size_t len = strlen(key);

	for (; *environment; environment++) {
		if (!strncmp(*environment, key, len) && (*environment)[len] == '=')
			return *environment + len + 1;
	}
	return NULL;
}

static int say_not_found(const char *command, int error)
{
	if (error == -ENOENT || error == -ENOTDIR) {
		message("cannot run '%s': command not found", command);
		return EXIT_NOT_FOUND;
	}
	message("cannot run '%s': %s", command, strerror(-error));
	return EXIT_NOT_EXECUTABLE;
}

static int check_cwd(const char *cwd)
{
	struct stat st;

	if (!cwd || (stat(cwd, &st) == 0 && S_ISDIR(st.st_mode) && access(cwd, X_OK) == 0))
		return 0;
	if (stat(cwd, &st) == 0 && !S_ISDIR(st.st_mode))
		errno = ENOTDIR;
	message("cannot change to '%s': %s", cwd, strerror(errno));
	return -EINVAL;
}

static int run(const struct options *options)
{
	char path[PATH_MAX];
	struct engine_program program = { .path = path, .argv = options->command, .envp = options->environment, .cwd = options->cwd };
	int error, status, exit_status;

	if (check_cwd(options->cwd) < 0)
		return EXIT_OWN_FAILURE;
	error = program_find(options->command[0], environment_get(options->environment, "PATH"), options->cwd, path, sizeof(path));
	if (error < 0)
		return say_not_found(options->command[0], error);
	status = session_run(&options->session, &program, &exit_status);
	if (status < 0)
		return exit_status;
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signals_die(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* Descriptors 0 to 2 are open from here on: a file that we open never takes the place of standard error. */
static void fill_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_NOCTTY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	struct options options;
	int status = EXIT_OWN_FAILURE;

	if (fcntl(STDIN_FILENO, F_GETFD) < 0 || fcntl(STDOUT_FILENO, F_GETFD) < 0 || fcntl(STDERR_FILENO, F_GETFD) < 0)
		fill_standard();
	if (options_parse(&options, argc, argv) == 0) {
		if (options.help) {
			options_help();
			status = fflush(stdout) ? EXIT_OWN_FAILURE : 0;
		} else if (options.version) {
			printf("interpose %s\n", INTERPOSE_VERSION);
			status = fflush(stdout) ? EXIT_OWN_FAILURE : 0;
		} else {
			status = run(&options);
		}
	}
	options_free(&options);
	return status;
}
