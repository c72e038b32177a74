/*
 * call_log.h - the lines of --trace.
 *
 * As strace has them: a call whose end has not come when another line must be printed is cut with "<unfinished ...>" and goes
 * on later with "<... NAME resumed>".
 */
#ifndef INTERPOSE_TRACER_CALL_LOG_H
#define INTERPOSE_TRACER_CALL_LOG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "arch/call.h"
#include "syscalls/decode.h"

struct call_line { /* of one task */
	struct decode_state state;
	uint64_t started; /* ns */
	bool open;        /* a call was begun and not ended */
	bool cut;         /* and its line was cut */
};

struct call_log {
	int fd;
	bool buffered;           /* a regular file: written in large pieces */
	struct call_line *open;  /* whose line is unfinished on the output */
	struct text text;
};

/* FD stays the caller's. */
void call_log_init(struct call_log *log, int fd);
void call_log_end(struct call_log *log);

void call_log_begin(struct call_log *log, struct call_line *line, const struct call *call);
void call_log_finish(struct call_log *log, struct call_line *line, const struct call *call, int64_t result);
/* The task ended inside the call. */
void call_log_abandon(struct call_log *log, struct call_line *line, const struct call *call);
void call_log_signal(struct call_log *log, const struct call *call, const siginfo_t *info);
/* STATUS as from wait(2), -1 for a leader that an exec of another thread replaced. */
void call_log_task_end(struct call_log *log, const struct call *call, int status);

#endif
