/* engine.c - the loop: wait for an event, act on it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/ptrace.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* --- the clock -------------------------------------------------------------------------------------------------------------
   A periodic SIGALRM that interrupts wait4. It runs only while somebody is held, something must be noticed or the end is near;
   being periodic it needs no care for a signal that comes just before wait4 blocks. */

static void on_alarm(int signo)
{
	(void)signo;
}

static int clock_make(struct engine *e)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	struct sigaction action = { .sa_handler = on_alarm };
	sigset_t alarm;

	event.sigev_notify_thread_id = e->tid = (pid_t)syscall(SYS_gettid);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	if (sigaction(SIGALRM, &action, &e->guest_alarm) || sigprocmask(SIG_UNBLOCK, &alarm, NULL))
		return -errno;
	if (timer_create(CLOCK_MONOTONIC, &event, &e->timer))
		return -errno;
	e->timer_made = true;
	return 0;
}

void clock_start(struct engine *e, unsigned ms)
{
	struct itimerspec period = { { 0, ms * 1000000L }, { 0, ms * 1000000L } };

	if (e->timer_made)
		timer_settime(e->timer, 0, &period, NULL);
}

void clock_stop(struct engine *e)
{
	struct itimerspec off = { { 0, 0 }, { 0, 0 } };

	if (!e->timer_made || e->attention || e->ending || e->hold.count)
		return;
	timer_settime(e->timer, 0, &off, NULL);
	if (e->attention) /* from another thread, which may have started the clock before we stopped it */
		clock_start(e, CLOCK_MS);
}

void engine_attention(struct engine *e)
{
	int saved = errno;

	__atomic_store_n(&e->attention, 1, __ATOMIC_SEQ_CST);
	clock_start(e, CLOCK_MS);
	if (syscall(SYS_gettid) != e->tid) /* a handler in the engine's own thread has interrupted it already */
		syscall(SYS_tgkill, getpid(), e->tid, SIGALRM);
	errno = saved;
}

/* --- life ----------------------------------------------------------------------------------------------------------------- */

const char *engine_mechanism_name(enum engine_mechanism mechanism)
{
	static const char *const names[] = { [ENGINE_AUTO] = "auto", [ENGINE_TRACE] = "trace", [ENGINE_PTRACE] = "ptrace" };

	return names[mechanism];
}

struct engine *engine_new(const struct engine_options *options)
{
	struct engine *e = calloc(1, sizeof(*e));
	int error = 0;

	if (!e)
		return NULL;
	e->options = *options;
	e->window.fd = -1;
	e->own_filters = UINT64_MAX;
	hold_init(e);
	if (options->window) {
		e->seal = engine_can_seal();
		error = window_make(&e->window);
	}
	if (error == 0)
		error = clock_make(e);
	if (error < 0) {
		engine_free(e);
		errno = -error;
		return NULL;
	}
	return e;
}

static void free_one(struct engine *e, struct task *task, void *data)
{
	(void)data;
	task_remove(e, task);
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	task_each(e, free_one, NULL);
	replace_free(e);
	if (e->timer_made)
		timer_delete(e->timer);
	window_free(&e->window);
	free(e->buckets);
	free(e->queue);
	free(e);
}

pid_t engine_root(const struct engine *e)
{
	return e->root_ended ? 0 : e->root;
}

const struct call *engine_call_of(const struct engine *e, pid_t tid)
{
	const struct task *task = task_find((struct engine *)e, tid);

	return task && !task->dead ? &task->call : NULL;
}

/* STATUS, without its low byte of 0x7f, is a group-stop's: SIGTRAP is the other stop of that event. */
static bool is_group_stop(int status)
{
	return status >> 8 == PTRACE_EVENT_STOP && (status & 0xff) != SIGTRAP;
}

/* A parent may have been told of the stop before we have looked at it. */
bool engine_task_stopped(const struct engine *e, pid_t tid)
{
	const struct task *task = task_find((struct engine *)e, tid);
	siginfo_t info = { 0 };

	if (!task || task->stopped)
		return task != NULL;
	for (size_t i = e->queue_next; i < e->queue_len; i++)
		if (e->queue[i].tid == tid)
			return WIFSTOPPED(e->queue[i].status) && is_group_stop(e->queue[i].status >> 8);
	return waitid(P_PID, tid, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid == tid && is_group_stop(info.si_status);
}

struct each {
	void (*visit)(void *context, const struct call *call);
	void *context;
};

static void each_one(struct engine *e, struct task *task, void *data)
{
	const struct each *each = data;

	(void)e;
	if (!task->dead)
		each->visit(each->context, &task->call);
}

void engine_each(struct engine *e, void (*visit)(void *context, const struct call *call), void *context)
{
	struct each each = { visit, context };

	task_each(e, each_one, &each);
}

bool engine_root_stopped(const struct engine *e)
{
	const struct task *root = task_find((struct engine *)e, e->root);

	return root && root->stopped;
}

void engine_kill(struct engine *e)
{
	kill_all(e);
}

/* --- events --------------------------------------------------------------------------------------------------------------- */

static void queue_add(struct engine *e, pid_t tid, int status)
{
	if (e->queue_len == e->queue_size) {
		size_t size = e->queue_size ? e->queue_size * 2 : 64;
		struct event *queue = realloc(e->queue, size * sizeof(*queue));

		if (!queue) { /* no order to keep then */
			engine_dispatch(e, tid, status);
			return;
		}
		e->queue = queue;
		e->queue_size = size;
	}
	e->queue[e->queue_len++] = (struct event){ tid, status };
}

/* wait4 tells of the first task in its list that has something to tell: one that stops all the time would starve those behind
   it. So now and then all events are taken before any is acted on. */
static void drain(struct engine *e)
{
	int status;
	pid_t tid;

	while ((tid = wait4(-1, &status, __WALL | WNOHANG, NULL)) > 0)
		queue_add(e, tid, status);
}

static void run_queue(struct engine *e)
{
	while (e->queue_next < e->queue_len) {
		struct event event = e->queue[e->queue_next++];

		engine_dispatch(e, event.tid, event.status);
	}
	e->queue_len = e->queue_next = 0;
}

/* Whether there may be more events. */
bool engine_step(struct engine *e)
{
	enum { FAIR = 8 };
	int status, now = e->again || e->attention || e->replace_asked ? WNOHANG : 0;
	pid_t tid = wait4(-1, &status, __WALL | now, NULL);

	if (tid < 0 && errno != EINTR)
		return false; /* ECHILD: nobody is left */
	if (tid > 0)
		engine_dispatch(e, tid, status);
	if (e->task_count > 1 && ++e->since_drain >= FAIR) {
		e->since_drain = 0;
		drain(e);
		run_queue(e);
	}
	if (e->attention) {
		__atomic_store_n(&e->attention, 0, __ATOMIC_SEQ_CST);
		if (e->options.events->attention)
			e->options.events->attention(e->options.context);
		clock_stop(e);
	}
	if (e->replace_asked)
		replace_look(e);
	if (e->again)
		call_wake(e);
	if (e->hold.count)
		hold_tick(e);
	/* children that this process had before it became the supervisor are not waited for */
	return !e->ending || (e->task_count > e->dead && clock_now() < e->kill_until);
}

int engine_run(struct engine *e)
{
	while (engine_step(e))
		;
	hold_end(e);
	if (!e->root_ended) {
		errno = ECHILD;
		return -1;
	}
	return e->root_status;
}
