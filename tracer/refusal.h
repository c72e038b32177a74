/*
 * refusal.h - what was refused, collected during the run and told once at its end.
 *
 * Life: zeroed, refusals_add() at each, refusals_print() once, refusals_free().
 */
#ifndef INTERPOSE_TRACER_REFUSAL_H
#define INTERPOSE_TRACER_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "arch/call.h"

enum { REFUSAL_KINDS = 64 }; /* so many are told one by one: a guest cannot make us keep more */

struct refusal {
	int call_id;
	uint32_t nr;         /* where call_id is CALL_NONE */
	int error;           /* positive errno */
	const char *why;
	uint64_t times;
	pid_t tgid;
	char comm[64];
	char *report;        /* --explain: where it happened first */
};

struct refusals {
	struct refusal kind[REFUSAL_KINDS];
	unsigned kinds;
	uint64_t others;     /* refusals of kinds beyond those */
};

/* WHY is a static string. EXPLAIN: CALL's task is in a stop; keep its stack. */
void refusals_add(struct refusals *refusals, const struct call *call, int error, const char *why, bool explain);
void refusals_print(const struct refusals *refusals, FILE *out);
void refusals_free(struct refusals *refusals);

#endif
