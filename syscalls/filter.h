/*
 * filter.h - the seccomp program, made from the rows.
 *
 * Action for each number of each architecture that the host can run:
 *   PASS                      SECCOMP_RET_ALLOW, so that the kernel's own bitmap of always-allowed calls (5.11) skips the program
 *   GUARD                     as PASS, or as HANDLE when options.guard
 *   HANDLE                    SECCOMP_RET_TRACE | FILTER_DATA
 *   REFUSE                    SECCOMP_RET_TRACE | FILTER_DATA when options.tell (a refusal can only be told by who sees it),
 *                             SECCOMP_RET_ERRNO | error otherwise
 *   ABSENT                    SECCOMP_RET_ERRNO | ENOSYS
 *   a call in options.stop    SECCOMP_RET_TRACE | FILTER_DATA whatever its row says (tracing, counting)
 *   unknown number, x32       as REFUSE with ENOSYS
 *   unknown architecture      SECCOMP_RET_KILL_PROCESS
 */
#ifndef INTERPOSE_SYSCALLS_FILTER_H
#define INTERPOSE_SYSCALLS_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"

enum { FILTER_DATA = 0x1b05 }; /* SECCOMP_RET_DATA of our stops; a guest's own RET_TRACE has another value */

struct filter_options {
	const enum arch_id *arch; /* which architectures to admit */
	unsigned arch_count;
	const bool *stop;         /* CALL_COUNT entries: these stop; NULL for none */
	bool stop_unknown;        /* numbers without a row stop (tracing everything) */
	bool guard;               /* the window cannot be sealed: GUARD rows stop */
	bool tell;                /* refusals stop, so that they can be told */
};

/* Makes the program; filter_free() it. 0, or -ENOMEM, or -E2BIG when it exceeds BPF_MAXINSNS. */
int filter_make(struct sock_fprog *program, const struct filter_options *options);
void filter_free(struct sock_fprog *program);

/* Runs PROGRAM on one call as the kernel would (all of classic BPF that filter_make uses; -EINVAL for another instruction).
   The SECCOMP_RET_* value. For tests and `--dry-run`. */
int64_t filter_run(const struct sock_fprog *program, uint32_t audit, uint32_t nr, const uint64_t args[6]);

#endif
