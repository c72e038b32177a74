/* call_count.h - the table of --count: calls, errors and time of each. */
#ifndef INTERPOSE_TRACER_CALL_COUNT_H
#define INTERPOSE_TRACER_CALL_COUNT_H

#include <stdint.h>
#include <stdio.h>

#include "syscalls/ids.h"

struct call_count {
	uint64_t calls, errors;
	uint64_t ns; /* between the stop before the call and the one after it */
};

struct call_counts {
	struct call_count of[CALL_COUNT + 1]; /* the last: numbers that no row knows */
};

/* CALL_ID may be CALL_NONE. RESULT: a value or a negative errno. */
void call_counts_add(struct call_counts *counts, int call_id, uint64_t ns, int64_t result);

/* Most time first, in the columns of strace -c. */
void call_counts_print(const struct call_counts *counts, FILE *out);

#endif
