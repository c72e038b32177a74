/* session.c - one run. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syscalls/decode.h"
#include "syscalls/filter.h"
#include "syscalls/row.h"
#include "tracer/call_count.h"
#include "tracer/call_log.h"
#include "tracer/diagnose.h"
#include "tracer/engine/clock.h"
#include "tracer/inherited.h"
#include "tracer/message.h"
#include "tracer/refusal.h"
#include "tracer/session.h"
#include "tracer/signals.h"

struct session {
	const struct session_options *options;
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

struct task_view { /* what call->state points to */
	struct call_line line;
	uint64_t started;
	bool logged, counted; /* the call under way */
};

static const char unknown_why[] = "the table of calls does not know this number";

/* --- a call ---------------------------------------------------------------------------------------------------------------- */

static void watch_begin(struct session *s, struct call *call)
{
	bool logged = s->options->trace && (call->id >= 0 ? s->options->trace_set[call->id] : s->options->trace_unknown);
	struct task_view *view = call->state;

	if (!view)
		view = call->state = calloc(1, sizeof(*view));
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

static struct verdict handle(struct session *s, struct call *call, const struct row *row)
{
	struct verdict verdict = row_handler(row)(s, call);

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
	verdict.want_end = call->state && (((struct task_view *)call->state)->logged || s->options->count);
	return verdict;
}

static void on_call_end(void *session, struct call *call, int64_t result)
{
	struct session *s = session;
	struct task_view *view = call->state;

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
	unsigned long long caught = 0;
	char path[40], line[128];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", call->tid);
	status = fopen(path, "re");
	if (!status)
		return false;
	while (fgets(line, sizeof(line), status)) {
		if (sscanf(line, "SigCgt: %llx", &caught) == 1)
			break;
	}
	fclose(status);
	return !(caught >> (signo - 1) & 1);
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
	struct task_view *view = call->state;

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
	call->state = NULL;
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
	if (!s->options->quiet)
		refusals_print(&s->refusals, stderr);
}

int session_run(const struct session_options *options, const struct engine_program *program, int *exit_status)
{
	struct session *s = session_new(options);
	struct engine_program guest = *program;
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
	status = engine_run(s->engine);
	signals_end();
	if (status < 0)
		message("the guest was lost: %s", strerror(errno));
	say_end(s);
	session_free(s);
	return status;
}
