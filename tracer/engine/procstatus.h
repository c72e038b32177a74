/* procstatus.h - numbers from /proc/TID/status, and the state from /proc/TID/stat. */
#ifndef INTERPOSE_TRACER_ENGINE_PROCSTATUS_H
#define INTERPOSE_TRACER_ENGINE_PROCSTATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procstatus_field {
	const char *name; /* with its colon: "SigBlk:" */
	int base;         /* 16 for masks, 10 for numbers */
	uint64_t value;   /* its first number; as it was where there is no such field */
};

/* Reads the COUNT fields of a task. 0, or a negative errno: none was read. */
int procstatus_read(pid_t tid, struct procstatus_field *fields, unsigned count);

/* The letter of proc_pid_stat(5), as it is at this moment; 0 for a task that is gone. */
char procstatus_state(pid_t tid);

/* Whether SIGNO is in a mask of that file. */
static inline bool procstatus_has(uint64_t mask, int signo)
{
	return mask >> (signo - 1) & 1;
}

#endif
