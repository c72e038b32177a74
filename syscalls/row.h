/*
 * row.h - the one table of system calls.
 *
 * rows.def lists every Linux call once, by the kernel's name. From it come the seccomp program (filter.h), the decoder
 * (decode.h), the counters, the support table in docs/ and the tests. A row says:
 *
 *   ROW(name, disposition, classes, note, arguments...)
 *
 *   disposition  PASS              the kernel runs it with no stop
 *                HANDLE(handler)   it stops and handler() gives the verdict
 *                REWRITE(handler)  as HANDLE, and its verdict may be REWRITE or ANSWER_FD: programs get a window
 *                CASES(handler)    as PASS, but as HANDLE for the arguments that its rules name
 *                GUARD(handler)    as PASS, but as HANDLE on a kernel without mseal(2): could take the window away
 *                REFUSE(E, why)    answered with -E; the refusal is told, with `why`
 *                ABSENT            answered -ENOSYS as by a kernel that lacks it; callers fall back, so it is not told
 *   rules        arguments that change the disposition are rows of rules.c (see struct arg_rule)
 *   classes      CLASS_* of strace's %file, %network, ...
 *   note         a limitation, for the support table; "" where there is none
 *   arguments    one ARG for each, in order of the system call's own prototype (see args.def)
 */
#ifndef INTERPOSE_SYSCALLS_ROW_H
#define INTERPOSE_SYSCALLS_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/call.h"
#include "syscalls/ids.h"

enum disposition {
	ROW_PASS = 1, /* 0 is no row: a missing one is found by the tests */
	ROW_HANDLE,
	ROW_GUARD,
	ROW_REFUSE,
	ROW_ABSENT
};

enum row_class { /* the sets that --trace=%NAME knows, as strace has them */
	CLASS_FILE = 1 << 0,    /* takes a path */
	CLASS_DESC = 1 << 1,    /* takes or returns a file descriptor */
	CLASS_NET = 1 << 2,
	CLASS_PROCESS = 1 << 3, /* life of processes */
	CLASS_SIGNAL = 1 << 4,
	CLASS_IPC = 1 << 5,     /* System V */
	CLASS_MEMORY = 1 << 6,
	CLASS_CREDS = 1 << 7,
	CLASS_STAT = 1 << 8,    /* stat family: strace's %stat, %lstat, %fstat, %statfs together */
	CLASS_CLOCK = 1 << 9,
	CLASS_PURE = 1 << 10    /* always succeeds, no arguments */
};

/* How an argument is shaped. Kinds that need more say with `ref` (an argument's index) and `set` (names of its values). */
enum arg_kind {
#define ARG_KIND(name, doc) ARG_##name,
#include "syscalls/args.def"
#undef ARG_KIND
};

enum { REF_RESULT = 7 }; /* struct arg's ref where the call's result tells the length */

struct arg {
	uint8_t kind;               /* enum arg_kind; ARG_END after the last */
	uint8_t ref;                /* index of a related argument: a length, a count */
	uint8_t set;                /* enum flag_set_id (flags.h), for FLAGS and ENUM */
};

typedef struct verdict call_handler(void *context, struct call *call);

/* A value of an argument register that changes what is done with the call. The first that matches wins over the row's own
   disposition. The kernel must take the argument as 32 bits: only the low half is compared. */
struct arg_rule {
	uint8_t arg;                       /* 0 to 5 */
	enum { RULE_EQUAL, RULE_ANY_BIT, RULE_TYPE } test; /* RULE_TYPE: bits 8 to 15, which _IOC() has for the driver */
	uint32_t value;
	enum disposition disposition;
	int16_t error;                     /* ROW_REFUSE: a positive errno */
	const char *why;
};

enum { ROW_ARGS = 6, ROW_RULES = 24 };

/* No pointer is in it: the table lies in the program's file as it is, and is not relocated at each start. */
struct row {
	char name[32];
	enum disposition disposition;
	int16_t error;                     /* ROW_REFUSE: a positive errno */
	uint16_t classes;                  /* enum row_class, or'ed */
	bool rewrites;                     /* ROW_HANDLE: the verdict may need the window */
	char why[80];                      /* ROW_REFUSE: the rule in one clause */
	uint8_t handler;                   /* enum handler_id, see row_handler(); ROW_HANDLE and ROW_GUARD, or a rule with ROW_HANDLE */
	uint8_t rules;                     /* enum rules_id, see row_rules() */
	struct arg args[ROW_ARGS];
};

extern const struct row row_table[CALL_COUNT];

/* NULL for CALL_NONE. */
static inline const struct row *row_of(int call_id)
{
	return call_id >= 0 && call_id < CALL_COUNT ? &row_table[call_id] : NULL;
}

/* Call id of the name, or CALL_NONE. */
int row_by_name(const char *name);

/* The handler, NULL for none. */
call_handler *row_handler(const struct row *row);

/* The rules on arguments; the last has .disposition = 0. NULL for none. */
const struct arg_rule *row_rules(const struct row *row);

/* Why the row refuses; NULL where it does not. */
static inline const char *row_why(const struct row *row)
{
	return row->why[0] ? row->why : NULL;
}

/* Whether any row REWRITEs: then each new program is given a window, at the cost of some stops for each exec. */
bool row_any_rewrites(void);

/* What the row says of these arguments: the disposition, with error and why where it is ROW_REFUSE. Used by the dispatcher
   on every engine, so that ptrace without a filter decides as the filter does. */
struct row_decision {
	enum disposition disposition;
	int error; /* negative errno */
	const char *why;
};
struct row_decision row_decide(const struct row *row, const uint64_t args[6]);

#endif
