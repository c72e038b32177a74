/* signals.c - signals that are sent to interpose itself. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tracer/engine/procstatus.h"
#include "tracer/message.h"
#include "tracer/signals.h"

static const int handled[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT };
static const int ignored[] = { SIGPIPE, SIGXFSZ }; /* our own writes then fail, and are told */

enum { HANDLED = sizeof(handled) / sizeof(handled[0]), IGNORED = sizeof(ignored) / sizeof(ignored[0]) };

static struct engine *the_engine; /* of the handlers */
static volatile sig_atomic_t sent[NSIG];   /* by a process, to be passed on */
static volatile sig_atomic_t time_over;    /* the grace of a SIGTERM has passed */
static volatile sig_atomic_t continued;    /* looks that are left before SIGCONT is passed on */
static timer_t grace_timer;
static bool grace_running;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == SI_TIMER)
		time_over = 1;
	else if (signo == SIGCONT)
		continued = 2;
	else if (info->si_code <= 0) /* kill, sigqueue: not the terminal (SI_KERNEL) */
		sent[signo] = 1;
	else
		return;
	engine_attention(the_engine);
}

static void handled_set(sigset_t *set)
{
	sigemptyset(set);
	for (int i = 0; i < HANDLED; i++)
		sigaddset(set, handled[i]);
}

void signals_block(sigset_t *before)
{
	sigset_t set;

	handled_set(&set);
	sigprocmask(SIG_BLOCK, &set, before);
}

static void set_actions(void (*handler)(int, siginfo_t *, void *), void (*other)(int))
{
	struct sigaction action = { 0 };

	if (handler) {
		action.sa_sigaction = handler;
		action.sa_flags = SA_SIGINFO;
	}
	for (int i = 0; i < HANDLED; i++)
		sigaction(handled[i], &action, NULL);
	for (int i = 0; i < IGNORED; i++)
		signal(ignored[i], other);
}

void signals_start(struct engine *engine)
{
	sigset_t set;

	the_engine = engine;
	set_actions(on_signal, SIG_IGN);
	handled_set(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void signals_end(void)
{
	sigset_t set;

	handled_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	set_actions(NULL, SIG_DFL);
	if (grace_running)
		timer_delete(grace_timer);
	grace_running = false;
	the_engine = NULL;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Whether the program would take SIGNO by a handler or by its default action. */
static bool would_take(pid_t pid, int signo)
{
	struct procstatus_field masks[] = { { "SigBlk:", 16, 0 }, { "SigIgn:", 16, 0 } };

	procstatus_read(pid, masks, 2);
	return !procstatus_has(masks[0].value | masks[1].value, signo);
}

static void start_grace(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM };
	struct itimerspec when = { { 0, 0 }, { SIGNALS_GRACE_S, 0 } };

	if (grace_running)
		return;
	if (timer_create(CLOCK_MONOTONIC, &event, &grace_timer))
		time_over = 1;
	grace_running = true;
	timer_settime(grace_timer, 0, &when, NULL);
}

static void pass_on(struct engine *engine, pid_t root, int signo)
{
	if (signo == SIGTERM && !would_take(root, SIGTERM)) {
		engine_kill(engine);
		return;
	}
	kill(root, signo);
	if (signo == SIGTERM) {
		kill(root, SIGCONT); /* a stopped program could not take it */
		start_grace();
	}
}

void signals_attend(struct engine *engine)
{
	pid_t root = engine_root(engine);

	for (int i = 0; i < HANDLED; i++) {
		int signo = handled[i];

		if (!sent[signo])
			continue;
		sent[signo] = 0;
		if (root)
			pass_on(engine, root, signo);
	}
	if (time_over)
		engine_kill(engine);
	if (!continued)
		return;
	/* Whoever continued our process group has continued the guest too; that shows within a moment. */
	if (--continued)
		engine_attention(engine);
	else if (root && engine_root_stopped(engine))
		kill(root, SIGCONT);
}

/* By the same signal, which the shell tells apart (128+N). The kernel drops it where no shell would notice (an orphaned process
   group); who waits for us by other means then sees SIGSTOP. */
void signals_stop_self(int signo)
{
	struct sigaction ours, standard = { .sa_handler = SIG_DFL };

	continued = 0;
	if (signo != SIGSTOP && sigaction(signo, &standard, &ours) == 0) {
		raise(signo);
		sigaction(signo, &ours, NULL);
	}
	if (!continued)
		raise(SIGSTOP);
}

void signals_die(int signo)
{
	struct rlimit none = { 0, 0 };
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	signal(signo, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(signo);
}
