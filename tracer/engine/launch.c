/*
 * launch.c - starts the first guest.
 *
 * The child waits on a pipe until it is traced (PTRACE_SEIZE, which needs no stop and leaves no phantom SIGSTOP), installs the
 * filter and calls execve. What fails on the way comes back through a second pipe, which a successful execve closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

enum { EXIT_LAUNCH = 125, CHILD_STACK = 64 << 10 };

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

/* --- the child --------------------------------------------------------------------------------------------------------------
   It shares our memory until its execve (CLONE_VM): a copy of it would cost more than all the rest of a start. So it has a stack
   of its own, allocates nothing, and makes the calls that can fail without errno, which is ours. */

struct child {
	struct engine *engine;
	const struct engine_program *program;
	struct launch_pipes pipes; /* its numbers: ours change as we close them */
};

static _Noreturn void child_exit(void)
{
	for (;;)
		arch_raw_syscall(SYS_exit_group, EXIT_LAUNCH, 0, 0);
}

static _Noreturn void child_fail(const struct child *child, enum engine_failure failure, long error)
{
	struct launch_error message = { failure, (int)-error };

	arch_raw_syscall(SYS_write, child->pipes.error[1], (uintptr_t)&message, sizeof(message));
	child_exit();
}

static long install_filter(const struct sock_fprog *filter)
{
	long error = arch_raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (uintptr_t)filter);

	return error == 0 ? 0 : arch_raw_syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (uintptr_t)filter);
}

/* no_new_privs is needed for the filter without CAP_SYS_ADMIN, and wanted with it: nothing that a guest runs gains privileges. */
static void child_confine(const struct child *child)
{
	const struct engine_options *options = &child->engine->options;
	long error = arch_raw_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);

	if (options->mechanism != ENGINE_TRACE)
		return;
	if (error == 0)
		error = install_filter(options->filter);
	if (error < 0)
		child_fail(child, ENGINE_NO_FILTER, error);
}

static int child_run(void *data)
{
	const struct child *child = data;
	const struct engine_program *program = child->program;
	char go;
	long error;

	/* its write end is ours too, or the read below would never see the supervisor's death */
	arch_raw_syscall(SYS_close, child->pipes.go[1], 0, 0);
	if (child->engine->guest_alarm.sa_handler == SIG_IGN)
		signal(SIGALRM, SIG_IGN); /* our handler becomes the default by the exec alone */
	sigprocmask(SIG_SETMASK, &program->mask, NULL);
	if (arch_raw_syscall(SYS_read, child->pipes.go[0], (uintptr_t)&go, 1) != 1)
		child_exit();
	error = program->cwd ? arch_raw_syscall(SYS_chdir, (uintptr_t)program->cwd, 0, 0) : 0;
	if (error < 0)
		child_fail(child, ENGINE_NO_CWD, error);
	child_confine(child);
	error = arch_raw_syscall(SYS_execve, (uintptr_t)program->path, (uintptr_t)program->argv,
	                         (uintptr_t)program->envp);
	child_fail(child, ENGINE_NO_EXEC, error);
}

static pid_t child_start(struct child *child, char *stack)
{
	return clone(child_run, stack + CHILD_STACK, CLONE_VM | SIGCHLD, child);
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

/* Until the child has left our memory: its execve has succeeded, or it is gone. */
static void wait_for_exec(struct engine *e)
{
	while (!e->exec_done && engine_step(e))
		;
}

enum engine_failure engine_launch(struct engine *e, const struct engine_program *program, int *error)
{
	static _Alignas(16) char stack[CHILD_STACK]; /* one thread starts one program at a time */
	enum engine_failure failure = ENGINE_NO_MEMORY;
	struct child start = { .engine = e, .program = program };
	struct launch_pipes p;
	pid_t child;

	*error = -pipes_open(&p);
	if (*error)
		return failure;
	start.pipes = p;
	child = child_start(&start, stack);
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
	wait_for_exec(e);
	failure = launch_result(e, &p, error);
	pipes_close(&p);
	return failure;
}
