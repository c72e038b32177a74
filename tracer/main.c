/* main.c - interpose [OPTION...] [--] COMMAND [ARG...] */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/message.h"
#include "tracer/options.h"
#include "tracer/overlay.h"
#include "tracer/signals.h"

#ifndef INTERPOSE_VERSION
#error "INTERPOSE_VERSION is given by the makefile"
#endif

static int run(const struct options *options)
{
	struct session_program program = { .argv = options->command, .envp = options->environment, .cwd = options->cwd };
	int exit_status, status = session_run(&options->session, &program, &exit_status);

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
	if (argc > 1 && overlay_is_command(argv[1]))
		return overlay_command(argc, argv);
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
