/* call_log.c - the lines of --trace. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syscalls/row.h"
#include "tracer/call_log.h"
#include "tracer/engine/clock.h"

enum { BUFFER = 32 << 10 };

/* Errors are not told: a reader of our output that has gone must not end the guest. */
static void flush(struct call_log *log)
{
	size_t done = 0;

	while (done < log->text.len) {
		ssize_t n = write(log->fd, log->text.data + done, log->text.len - done);

		if (n <= 0)
			break;
		done += n;
	}
	text_clear(&log->text);
}

static void written(struct call_log *log)
{
	if (!log->buffered || log->text.len > BUFFER)
		flush(log);
}

void call_log_init(struct call_log *log, int fd)
{
	struct stat st;

	*log = (struct call_log){ .fd = fd };
	log->buffered = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

void call_log_end(struct call_log *log)
{
	flush(log);
	text_free(&log->text);
}

/* Ends the line that another task left unfinished, and begins ours. */
static void begin_line(struct call_log *log, struct call_line *line, pid_t tid)
{
	if (log->open && log->open != line) {
		text_add(&log->text, " <unfinished ...>\n");
		log->open->cut = true;
		log->open = NULL;
	}
	if (!line || log->open != line)
		text_format(&log->text, "[pid %5d] ", tid);
}

static const char *name_of(const struct call *call, char buffer[32])
{
	const struct row *row = row_of(call->id);

	if (row)
		return row->name;
	snprintf(buffer, 32, "syscall_%#x", call->nr);
	return buffer;
}

void call_log_begin(struct call_log *log, struct call_line *line, const struct call *call)
{
	line->open = false;
	if (log->open == line) { /* its end was never told */
		text_add(&log->text, ") = ?\n");
		log->open = NULL;
	}
	begin_line(log, line, call->tid);
	decode_entry(&log->text, call, &line->state);
	line->open = true;
	line->cut = false;
	log->open = line;
	if (!log->buffered)
		flush(log);
	line->started = clock_now();
}

static void resume_line(struct call_log *log, struct call_line *line, const struct call *call)
{
	char buffer[32];

	begin_line(log, line, call->tid);
	if (line->cut) {
		size_t start = log->text.len;

		text_format(&log->text, "<... %s resumed>", name_of(call, buffer));
		line->state.column = log->text.len - start;
	}
	if (log->open == line)
		log->open = NULL;
	line->open = line->cut = false;
}

void call_log_finish(struct call_log *log, struct call_line *line, const struct call *call, int64_t result)
{
	uint64_t took = clock_now() - line->started;

	resume_line(log, line, call);
	decode_exit(&log->text, call, &line->state, result);
	text_format(&log->text, " <%u.%06u>\n", (unsigned)(took / 1000000000), (unsigned)(took / 1000 % 1000000));
	written(log);
}

void call_log_abandon(struct call_log *log, struct call_line *line, const struct call *call)
{
	if (!line->open)
		return;
	resume_line(log, line, call);
	text_add(&log->text, ") = ?\n");
	written(log);
}

void call_log_signal(struct call_log *log, const struct call *call, const siginfo_t *info)
{
	begin_line(log, NULL, call->tid);
	text_format(&log->text, "--- %s ", decode_signal_name(info->si_signo));
	decode_siginfo(&log->text, info);
	text_add(&log->text, " ---\n");
	written(log);
}

void call_log_task_end(struct call_log *log, const struct call *call, int status)
{
	begin_line(log, NULL, call->tid);
	if (status == -1)
		text_add(&log->text, "+++ superseded by execve in another thread +++\n");
	else if (WIFSIGNALED(status))
		text_format(&log->text, "+++ killed by %s%s +++\n", decode_signal_name(WTERMSIG(status)),
		            WCOREDUMP(status) ? " (core dumped)" : "");
	else
		text_format(&log->text, "+++ exited with %d +++\n", WEXITSTATUS(status));
	written(log);
}
