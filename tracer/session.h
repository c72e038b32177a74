/*
 * session.h - one run: the engine's questions, answered from the rows, and what is shown of them.
 *
 * Life: fill options, session_run() once.
 */
#ifndef INTERPOSE_TRACER_SESSION_H
#define INTERPOSE_TRACER_SESSION_H

#include <stdbool.h>

#include "arch/call.h"
#include "syscalls/ids.h"
#include "tracer/engine/engine.h"
#include "tracer/view.h"

struct session_options {
	enum engine_mechanism mechanism;
	bool trace;                /* print the calls in trace_set */
	bool trace_set[CALL_COUNT];
	bool trace_unknown;        /* and numbers that no row knows */
	const char *output;        /* -o: a file for calls and counts; NULL: standard error */
	bool count;
	bool explain;
	bool quiet, verbose;
	struct view_options view;
};

struct session_program {
	char *const *argv, *const *envp; /* argv[0] is looked for in the view, by the guest's own PATH */
	const char *cwd;                 /* NULL: here */
};

/* Runs PROGRAM to its end. Its wait status, or -1 when it was not started: then one line was said, and *exit_status is ours. */
int session_run(const struct session_options *options, const struct session_program *program, int *exit_status);

/* The decision on one stopped call: the hot path between a stop and its resume. For the engine, and for bench/dispatch. */
struct session;
struct verdict session_call(void *session, struct call *call);

/* A session without an engine, for bench/dispatch and tests of session_call(). NULL on ENOMEM. */
struct session *session_new(const struct session_options *options);
void session_free(struct session *session);

#endif
