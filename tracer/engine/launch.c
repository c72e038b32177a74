/*
 * launch.c - starts the first guest.
 *
 * The child waits on a pipe until it is traced (PTRACE_SEIZE, which needs no stop and leaves no phantom SIGSTOP), installs the
 * filter and calls execve. What fails on the way comes back through a second pipe, which a successful execve closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

struct launch_error {
	enum engine_failure failure;
	int error;
};

struct launch_pipes {
	int go[2], error[2];
};

static void pipes_close(struct launch_pipes *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->go[i] >= 0)
			close(p->go[i]);
		if (p->error[i] >= 0)
			close(p->error[i]);
		p->go[i] = p->error[i] = -1;
	}
}

static int pipes_open(struct launch_pipes *p)
{
	*p = (struct launch_pipes){ { -1, -1 }, { -1, -1 } };
	if (pipe2(p->go, O_CLOEXEC) || pipe2(p->error, O_CLOEXEC)) {
		int error = -errno;

		pipes_close(p);
		return error;
	}
	return 0;
}

/* --- the child: no allocation, no locks ------------------------------------------------------------------------------------ */

static _Noreturn void child_fail(const struct launch_pipes *p, enum engine_failure failure)
{
	struct launch_error message = { failure, errno };
	ssize_t n = write(p->error[1], &message, sizeof(message));

	(void)n;
	_exit(125);
}

static int install_filter(const struct sock_fprog *filter)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) == 0)
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0);
}

static _Noreturn void child_run(const struct engine *e, const struct engine_program *program, const struct launch_pipes *p)
{
	char go;

	close(p->go[1]); /* or the read below would wait for ourselves when the supervisor dies */
	sigaction(SIGALRM, &e->guest_alarm, NULL);
	sigprocmask(SIG_SETMASK, &program->mask, NULL);
	if (read(p->go[0], &go, 1) != 1)
		_exit(125);
	if (program->cwd && chdir(program->cwd))
		child_fail(p, ENGINE_NO_CWD);
	/* needed for the filter without CAP_SYS_ADMIN, and wanted with it: nothing that a guest runs gains privileges */
	if ((prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || (e->options.mechanism == ENGINE_TRACE && install_filter(e->options.filter))) &&
	    e->options.mechanism == ENGINE_TRACE)
		child_fail(p, ENGINE_NO_FILTER);
	execve(program->path, program->argv, program->envp);
	child_fail(p, ENGINE_NO_EXEC);
}

/* --- the supervisor ---------------------------------------------------------------------------------------------------------- */

static int seize(struct engine *e, pid_t child)
{
	long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
	               PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;

	/* without TRACESECCOMP a guest filter's RET_TRACE is ENOSYS by the kernel itself */
	if (e->options.mechanism == ENGINE_TRACE)
		options |= PTRACE_O_TRACESECCOMP;
	if (ptrace(PTRACE_SEIZE, child, 0, options))
		return -errno;
	/* to be told of every call we need one stop */
	if (e->options.mechanism == ENGINE_PTRACE && ptrace(PTRACE_INTERRUPT, child, 0, 0))
		return -errno;
	return 0;
}

/* A descriptor for each address space: as many as the host lets us have. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int add_root(struct engine *e, pid_t child)
{
	struct task *task = task_add(e, child);
	struct space *space = space_new();

	if (!task || !space)
		return -ENOMEM;
	task->space = space;
	task->started = task->adopted = true;
	e->limbo--;
	e->root = child;
	return 0;
}

static enum engine_failure launch_result(struct engine *e, const struct launch_pipes *p, int *error)
{
	struct launch_error message = { ENGINE_NO_EXEC, ECANCELED }; /* killed before it came to its execve */

	if (e->exec_done)
		return ENGINE_OK;
	if (e->old_kernel)
		return ENGINE_OLD_KERNEL;
	if (read(p->error[0], &message, sizeof(message)) < 0)
		message.error = errno;
	*error = message.error;
	return message.failure;
}

enum engine_failure engine_launch(struct engine *e, const struct engine_program *program, int *error)
{
	enum engine_failure failure = ENGINE_NO_MEMORY;
	struct launch_pipes p;
	pid_t child;

	*error = -pipes_open(&p);
	if (*error)
		return failure;
	child = fork();
	if (child == 0)
		child_run(e, program, &p);
	*error = child < 0 ? errno : -add_root(e, child);
	signal(SIGCHLD, SIG_DFL); /* ignored, as the guest may inherit it, it would reap our guests unseen */
	close(p.error[1]);
	p.error[1] = -1;
	if (child > 0 && !*error) {
		raise_files();
		*error = -seize(e, child);
		failure = ENGINE_NO_PTRACE;
	}
	if (*error) {
		if (child > 0) {
			kill(child, SIGKILL);
			waitpid(child, NULL, __WALL);
		}
		pipes_close(&p);
		return failure;
	}
	if (write(p.go[1], "g", 1) != 1)
		kill_all(e);
	while (!e->exec_done && engine_step(e))
		;
	failure = launch_result(e, &p, error);
	pipes_close(&p);
	return failure;
}
