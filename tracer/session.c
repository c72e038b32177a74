/* session.c - one run. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syscalls/decode.h"
#include "syscalls/filter.h"
#include "syscalls/handlers/exec.h"
#include "syscalls/row.h"
#include "tracer/call_count.h"
#include "tracer/call_log.h"
#include "tracer/diagnose.h"
#include "tracer/engine/clock.h"
#include "tracer/engine/procstatus.h"
#include "tracer/handover.h"
#include "tracer/inherited.h"
#include "tracer/message.h"
#include "tracer/overlay.h"
#include "tracer/program.h"
#include "tracer/refusal.h"
#include "tracer/session.h"
#include "tracer/signals.h"
#include "tracer/view.h"

struct session {
	const struct session_options *options;
	struct view view;
	struct exec_start start;  /* the first program */
	bool started;             /* its execve has succeeded */
	pid_t *waiting;           /* tasks whose call waits for a copy */
	size_t waiting_count, waiting_room;
	enum engine_mechanism mechanism;
	bool stop[CALL_COUNT];    /* beyond what the rows say: traced or counted */
	bool guard;               /* GUARD rows are handled */
	bool watch;               /* something of a call is shown: trace or count */
	int output;               /* of --trace and --count */
	struct engine *engine;
	struct call_log log;
	struct call_counts *counts;
	struct refusals refusals;
	struct inherited inherited;
};

struct task_view { /* what task_env.view points to */
	struct call_line line;
	uint64_t started;
	bool logged, counted; /* the call under way */
};

static const char unknown_why[] = "the table of calls does not know this number";

/* --- a call ---------------------------------------------------------------------------------------------------------------- */

static void watch_begin(struct session *s, struct call *call)
{
	bool logged = s->options->trace && (call->id >= 0 ? s->options->trace_set[call->id] : s->options->trace_unknown);
	struct task_env *task = env_task(&s->view.env, call, NULL, false);
	struct task_view *view = task ? task->view : NULL;

	if (task && !view)
		view = task->view = calloc(1, sizeof(*view));
	if (!view)
		return;
	view->logged = logged;
	view->counted = s->options->count;
	if (logged)
		call_log_begin(&s->log, &view->line, call);
	if (view->counted)
		view->started = clock_now();
}

static struct verdict refuse(struct session *s, struct call *call, int error, const char *why)
{
	refusals_add(&s->refusals, call, -error, why, s->options->explain);
	return verdict_answer(error);
}

/* On ENGINE_TRACE a call that this session's filter lets pass stops only by a guest's own filter, made to look like ours. */
static struct verdict pass(const struct session *s, const struct call *call)
{
	if (s->mechanism == ENGINE_TRACE && !s->stop[call->id])
		return verdict_answer(-ENOSYS);
	return verdict_forward();
}

static struct task_view *view_of(const struct call *call)
{
	const struct task_env *task = call->state;

	return task ? task->view : NULL;
}

/* Asked again when copies are ready: see on_attention(). */
static void wait_add(struct session *s, pid_t tid)
{
	if (s->waiting_count == s->waiting_room) {
		size_t room = s->waiting_room ? s->waiting_room * 2 : 16;
		pid_t *grown = realloc(s->waiting, room * sizeof(*grown));

		if (!grown)
			return;
		s->waiting = grown;
		s->waiting_room = room;
	}
	s->waiting[s->waiting_count++] = tid;
}

/* Those that wait, once no descriptor is left to be replaced: the handler that still must wait says so again. */
static void ask_again(struct session *s)
{
	size_t count = s->waiting_count;

	if (engine_replacing(s->engine))
		return;
	s->waiting_count = 0;
	for (size_t i = 0; i < count; i++)
		engine_again(s->engine, s->waiting[i]);
}

static struct verdict handle(struct session *s, struct call *call, const struct row *row)
{
	struct verdict verdict = row_handler(row)(&s->view.env, call);

	if (verdict.kind == VERDICT_WAIT) {
		wait_add(s, call->tid);
		if (handover_all(s->view.env.vfs, s->engine) || !vfs_copying(s->view.env.vfs))
			ask_again(s);
	}

	if (verdict.reason && verdict.kind == VERDICT_ANSWER)
		refusals_add(&s->refusals, call, -verdict.value, verdict.reason, s->options->explain);
	else if (verdict.kind == VERDICT_KILL)
		message("%s: the run is ended", verdict.reason);
	return verdict;
}

static struct verdict decide(struct session *s, struct call *call)
{
	const struct row *row = row_of(call->id);
	struct row_decision decision;

	if (!row)
		return refuse(s, call, -ENOSYS, unknown_why);
	if (!s->started && s->engine) /* our own execve of the first program, from memory of ours */
		return verdict_forward();
	decision = row_decide(row, call->args);
	switch (decision.disposition) {
	case ROW_PASS:
		return pass(s, call);
	case ROW_GUARD:
		return s->guard ? handle(s, call, row) : pass(s, call);
	case ROW_HANDLE:
		return handle(s, call, row);
	case ROW_REFUSE:
		return refuse(s, call, decision.error, decision.why);
	case ROW_ABSENT:
		break;
	}
	return verdict_answer(-ENOSYS);
}

struct verdict session_call(void *session, struct call *call)
{
	struct session *s = session;
	struct verdict verdict;

	if (!s->watch)
		return decide(s, call);
	watch_begin(s, call);
	verdict = decide(s, call);
	if (view_of(call) && (view_of(call)->logged || s->options->count))
		verdict.want_end = true;
	return verdict;
}

static void on_call_end(void *session, struct call *call, int64_t result)
{
	struct session *s = session;
	struct task_view *view = view_of(call);

	env_call_end(&s->view.env, call, result);
	if (!view)
		return;
	if (view->counted)
		call_counts_add(s->counts, call->id, clock_now() - view->started, result);
	if (view->logged)
		call_log_finish(&s->log, &view->line, call, result);
	view->logged = view->counted = false;
}

/* --- a task ---------------------------------------------------------------------------------------------------------------- */

static bool is_crash(int signo)
{
	return signo == SIGSEGV || signo == SIGILL || signo == SIGBUS || signo == SIGFPE || signo == SIGABRT;
}

/* Whether the default action will be taken: a handled signal is the program's own business (Java, Go). */
static bool is_fatal(const struct call *call, int signo)
{
	struct procstatus_field caught = { "SigCgt:", 16, 0 };

	return procstatus_read(call->tid, &caught, 1) == 0 && !procstatus_has(caught.value, signo);
}

static void explain_crash(const struct call *call, const siginfo_t *info)
{
	char comm[64], title[128];
	struct diagnose_where where = { .title = title, .info = info, .instructions = true };

	message_comm(call->tid, comm);
	snprintf(title, sizeof(title), "%s[%d] is about to die of %s", comm, call->tgid, decode_signal_name(info->si_signo));
	diagnose(stderr, "interpose: ", call->tid, &where);
	fflush(stderr);
}

static void on_signal(void *session, struct call *call, const siginfo_t *info)
{
	struct session *s = session;

	if (s->options->trace)
		call_log_signal(&s->log, call, info);
	if (s->options->explain && is_crash(info->si_signo) && is_fatal(call, info->si_signo))
		explain_crash(call, info);
}

static void on_task_end(void *session, struct call *call, int status, bool in_call)
{
	struct session *s = session;
	struct task_view *view = view_of(call);

	if (view && in_call && view->counted)
		call_counts_add(s->counts, call->id, clock_now() - view->started, 0);
	if (s->options->trace) {
		if (view && in_call && view->logged)
			call_log_abandon(&s->log, &view->line, call);
		call_log_task_end(&s->log, call, status);
	}
	if (view && s->log.open == &view->line)
		s->log.open = NULL;
	free(view);
	env_task_free(&s->view.env, call);
}

static void on_clone(void *session, struct call *parent, struct call *child, uint64_t flags)
{
	struct session *s = session;

	env_task(&s->view.env, child, parent, flags & CLONE_FS);
}

/* What runs now must be what was decided about. */
static void on_exec(void *session, struct call *call, pid_t former)
{
	struct session *s = session;
	char comm[64];

	(void)former;
	env_task(&s->view.env, call, NULL, false);
	if (exec_check(&s->view.env, call, s->started ? NULL : s->start.plan) < 0) {
		message_comm(call->tid, comm);
		message("%s[%d]: the program that the kernel started is not the one that was permitted: the run is ended", comm, call->tgid);
		engine_kill(s->engine);
	}
	s->started = true;
}

static void on_stopped(void *session, int signo)
{
	(void)session;
	signals_stop_self(signo);
}

static void on_attention(void *session)
{
	struct session *s = session;

	signals_attend(s->engine);
	if (vfs_done(s->view.env.vfs)) {
		handover_all(s->view.env.vfs, s->engine);
		ask_again(s);
	}
}

static void on_replaced(void *session, pid_t tgid)
{
	struct session *s = session;

	(void)tgid;
	ask_again(s);
}

static void on_note(void *session, pid_t tid, const char *text)
{
	struct session *s = session;
	char comm[64];

	if (s->options->quiet)
		return;
	message_comm(tid, comm);
	message("%s[%d]: %s", comm, tid, text);
}

/* --- the run --------------------------------------------------------------------------------------------------------------- */

struct session *session_new(const struct session_options *options)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->options = options;
	s->mechanism = options->mechanism;
	s->output = -1;
	s->watch = options->trace || options->count;
	s->guard = row_any_rewrites() && !engine_can_seal();
	if (options->trace)
		memcpy(s->stop, options->trace_set, sizeof(s->stop));
	if (options->count)
		memset(s->stop, true, sizeof(s->stop));
	s->counts = options->count ? calloc(1, sizeof(*s->counts)) : NULL;
	if (options->count && !s->counts) {
		free(s);
		return NULL;
	}
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	engine_free(s->engine);
	call_log_end(&s->log);
	refusals_free(&s->refusals);
	exec_start_end(&s->view.env, &s->start);
	view_end(&s->view);
	free(s->waiting);
	free(s->counts);
	free(s->inherited.fds);
	if (s->output > STDERR_FILENO)
		close(s->output);
	free(s);
}

/* Beyond 2, and not the guest's to inherit. */
static int open_output(struct session *s)
{
	const char *path = s->options->output;

	s->output = STDERR_FILENO;
	if (path) {
		s->output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
		if (s->output < 0) {
			message("cannot write '%s': %s", path, strerror(errno));
			return -EINVAL;
		}
	}
	call_log_init(&s->log, s->output);
	return 0;
}

static enum engine_failure try_mechanism(struct session *s, const struct engine_program *program,
                                         enum engine_mechanism mechanism, int *error)
{
	static const struct engine_events events = {
		.call = session_call,
		.call_end = on_call_end,
		.clone = on_clone,
		.exec = on_exec,
		.replaced = on_replaced,
		.task_end = on_task_end,
		.stopped = on_stopped,
		.attention = on_attention,
		.note = on_note,
	};
	static struct engine_events with_signals;
	struct filter_options filter = {
		.arch = arch_host, .arch_count = arch_host_count, .stop = s->stop,
		.stop_unknown = s->options->count || s->options->trace_unknown,
		.guard = s->guard, .tell = !s->options->quiet || s->options->explain,
	};
	struct engine_options options = { .mechanism = mechanism, .filter_data = FILTER_DATA, .window = row_any_rewrites(),
	                                  .context = s };
	struct sock_fprog fprog = { 0, NULL };
	enum engine_failure failure;

	with_signals = events;
	if (s->options->trace || s->options->explain)
		with_signals.signal = on_signal;
	options.events = &with_signals;
	*error = mechanism == ENGINE_TRACE ? -filter_make(&fprog, &filter) : 0;
	if (*error)
		return ENGINE_NO_FILTER;
	options.filter = &fprog;
	s->mechanism = mechanism;
	s->engine = engine_new(&options);
	if (!s->engine) {
		*error = errno;
		filter_free(&fprog);
		return ENGINE_NO_MEMORY;
	}
	failure = engine_launch(s->engine, program, error);
	filter_free(&fprog);
	if (failure != ENGINE_OK) {
		engine_free(s->engine);
		s->engine = NULL;
	}
	return failure;
}

static enum engine_failure launch(struct session *s, const struct engine_program *program, int *error)
{
	enum engine_mechanism mechanism = s->options->mechanism;
	enum engine_failure failure;

	if (mechanism != ENGINE_AUTO)
		return try_mechanism(s, program, mechanism, error);
	failure = try_mechanism(s, program, ENGINE_TRACE, error);
	if (failure != ENGINE_NO_FILTER)
		return failure;
	if (s->options->verbose)
		message("no seccomp filter can be installed here (%s): every call stops twice", strerror(*error));
	return try_mechanism(s, program, ENGINE_PTRACE, error);
}

/* One line: what, why, remedy. Our exit status. */
static int say_failure(const struct engine_program *program, enum engine_failure failure, int error)
{
	const char *name = program->argv[0], *why = strerror(error);

	switch (failure) {
	case ENGINE_NO_PTRACE:
		message("cannot trace '%s': this host refuses ptrace (%s); allow it (kernel.yama.ptrace_scope 0 or 1, or the "
		        "container's SYS_PTRACE) and do not run this under another tracer", name, why);
		return EXIT_OWN_FAILURE;
	case ENGINE_OLD_KERNEL:
		message("this kernel has no PTRACE_GET_SYSCALL_INFO: Linux 5.3 or newer is needed");
		return EXIT_OWN_FAILURE;
	case ENGINE_NO_FILTER:
		message("cannot install a seccomp filter (%s): use --engine ptrace", why);
		return EXIT_OWN_FAILURE;
	case ENGINE_NO_CWD:
		message("cannot change to '%s': %s", program->cwd, why);
		return EXIT_OWN_FAILURE;
	case ENGINE_NO_EXEC:
		if (error == ENOENT)
			message("cannot run '%s': the interpreter that it names does not exist", program->path);
		else
			message("cannot run '%s': %s", program->path, why);
		return EXIT_NOT_EXECUTABLE;
	case ENGINE_NO_MEMORY:
	case ENGINE_OK:
		break;
	}
	message("cannot start '%s': %s", name, why);
	return EXIT_OWN_FAILURE;
}

static void say_start(const struct session *s)
{
	const char *missing;

	if (!s->options->verbose)
		return;
	message("engine %s: %s", engine_mechanism_name(s->mechanism), s->mechanism == ENGINE_TRACE ?
	        "a seccomp filter stops only the calls that need a decision" : "every system call stops twice");
	missing = s->options->explain ? diagnose_missing() : NULL; /* it loads the libraries */
	if (missing)
		message("%s", missing);
}

static void say_end(struct session *s)
{
	call_log_end(&s->log);
	if (s->options->count) {
		FILE *out = fdopen(dup(s->output), "w");

		if (out) {
			call_counts_print(s->counts, out);
			fclose(out);
		}
	}
	if (s->options->view.diff)
		overlay_diff(s->view.shared ? &s->view.memory : &s->view.upper, stderr);
	if (!s->options->quiet)
		refusals_print(&s->refusals, stderr);
}

/* As execve(2) in the view would say of it. */
static int check_program(void *context, const char *path)
{
	struct view *view = context;
	struct vfs_who who = view_first(view);
	struct vfs_place place;
	struct statx st;
	int error = vfs_walk(&who, NULL, path, VFS_FOLLOW, &place);

	if (error == 0)
		error = vfs_stat(&who, &place, STATX_TYPE | STATX_MODE, 0, &st);
	if (error == 0 && !S_ISREG(st.stx_mode))
		error = S_ISDIR(st.stx_mode) ? -EISDIR : -EACCES;
	if (error == 0)
		error = vfs_access(&who, &place, X_OK, true);
	vfs_place_end(view->env.vfs, &place);
	return error;
}

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

/* What the first program is, in the view, and how the kernel is to be told. Our exit status; 0: go on. */
static int find_program(struct session *s, const struct session_program *program, struct engine_program *guest)
{
	struct vfs_who who = view_first(&s->view);
	char path[PATH_MAX];
	int error = program_find(program->argv[0], environment_get(program->envp, "PATH"), check_program, &s->view, path, sizeof(path));

	if (error < 0)
		return say_not_found(program->argv[0], error);
	error = exec_first(&s->view.env, &who, path, program->argv, &s->start);
	if (error == -ENOENT) {
		message("cannot run '%s': the interpreter that it names does not exist", path);
		return EXIT_NOT_EXECUTABLE;
	}
	if (error < 0)
		return say_not_found(path, error);
	/* The guest's own working directory is the view's. In the kernel it has one in which nothing can be made: a core. */
	*guest = (struct engine_program){ .path = s->start.path, .argv = s->start.argv, .envp = program->envp, .cwd = "/proc" };
	return 0;
}

int session_run(const struct session_options *options, const struct session_program *program, int *exit_status)
{
	struct session *s = session_new(options);
	struct engine_program guest;
	enum engine_failure failure;
	int status, error = 0;

	*exit_status = EXIT_OWN_FAILURE;
	if (!s) {
		message("out of memory");
		return -1;
	}
	inherited_list(&s->inherited); /* without /proc they stay open, which harms little */
	if (open_output(s) < 0) {
		session_free(s);
		return -1;
	}
	if (view_make(&s->view, &options->view, program->cwd) < 0) {
		session_free(s);
		return -1;
	}
	*exit_status = find_program(s, program, &guest);
	if (*exit_status) {
		session_free(s);
		return -1;
	}
	*exit_status = EXIT_OWN_FAILURE;
	signals_block(&guest.mask);
	failure = launch(s, &guest, &error);
	if (failure != ENGINE_OK) {
		*exit_status = say_failure(&guest, failure, error);
		session_free(s);
		return -1;
	}
	inherited_close(&s->inherited);
	say_start(s);
	signals_start(s->engine);
	view_start(&s->view, s->engine);
	status = engine_run(s->engine);
	signals_end();
	if (status < 0)
		message("the guest was lost: %s", strerror(errno));
	say_end(s);
	session_free(s);
	return status;
}
