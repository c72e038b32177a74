/*
 * diagnose.h - where a guest stands: its call stack and the instructions around it.
 *
 * The task must be in a ptrace stop of the calling thread. Everything that is read from it is hostile: bounded in frames,
 * bytes and time, and printed through text_quote rules (no control character of a guest reaches the terminal).
 */
#ifndef INTERPOSE_TRACER_DIAGNOSE_H
#define INTERPOSE_TRACER_DIAGNOSE_H

#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

struct diagnose_where {
	const char *title;       /* "python3[4711] died of SIGSEGV", already free of control characters */
	const siginfo_t *info;   /* the signal, or NULL when this is a refusal */
	unsigned frames;         /* at most so many frames; 0 for the default (64) */
	bool instructions;       /* disassemble around the instruction pointer */
};

/* Prints the report to OUT, each line starting with PREFIX. 0, or a negative errno when not even the registers could be read
   (the rest that could be found is printed all the same, with the reason for what is missing). */
int diagnose(FILE *out, const char *prefix, pid_t tid, const struct diagnose_where *where);

/* What this build lacks, as one sentence each ("built without libunwind: no call stack"), NULL when complete. */
const char *diagnose_missing(void);

#endif
