/*
 * handlers.h - what rows.def names with HANDLE() and GUARD().
 *
 * A handler gets the session as its context and the call as the guest made it; it returns the verdict. One that read guest
 * memory never forwards (DESIGN, section 2).
 */
#ifndef INTERPOSE_SYSCALLS_HANDLERS_H
#define INTERPOSE_SYSCALLS_HANDLERS_H

#include "arch/call.h"

/* affinity.c: the guest sees and changes the affinity that it chose itself. */
struct verdict sys_sched_setaffinity(void *context, struct call *call);
struct verdict sys_sched_getaffinity(void *context, struct call *call);

/* clock.c: the state of a clock may be read, nothing may be set. */
struct verdict sys_adjtimex(void *context, struct call *call);
struct verdict sys_clock_adjtime(void *context, struct call *call); /* clock_adjtime64 too */

/* window.c: nothing may unmap, replace or change the supervisor's window. */
struct verdict sys_window_guard(void *context, struct call *call);
struct verdict sys_old_mmap(void *context, struct call *call); /* i386 mmap, whose arguments are in memory */

/* All of them, for rows to name by number. */
#define HANDLERS(HANDLER) \
	HANDLER(sys_sched_setaffinity) HANDLER(sys_sched_getaffinity) HANDLER(sys_adjtimex) HANDLER(sys_clock_adjtime) \
	HANDLER(sys_window_guard) HANDLER(sys_old_mmap)

#endif
