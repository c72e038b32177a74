/*
 * handlers.h - what rows.def names with HANDLE() and GUARD().
 *
 * A handler gets the session as its context and the call as the guest made it; it returns the verdict. One that read guest
 * memory never forwards (DESIGN, section 2).
 */
#ifndef INTERPOSE_SYSCALLS_HANDLERS_H
#define INTERPOSE_SYSCALLS_HANDLERS_H

#include "arch/call.h"
#include "syscalls/handlers/paths_ask.h"

/* affinity.c: the guest sees and changes the affinity that it chose itself. */
struct verdict sys_sched_setaffinity(void *context, struct call *call);
struct verdict sys_sched_getaffinity(void *context, struct call *call);

/* clock.c: the state of a clock may be read, nothing may be set. */
struct verdict sys_adjtimex(void *context, struct call *call);
struct verdict sys_clock_adjtime(void *context, struct call *call); /* clock_adjtime64 too */

/* window.c: nothing may unmap, replace or change the supervisor's window. */
struct verdict sys_window_guard(void *context, struct call *call);
struct verdict sys_old_mmap(void *context, struct call *call); /* i386 mmap, whose arguments are in memory */

/* open.c, change.c, exec.c: calls that name a file. */
#define FILE_HANDLERS(HANDLER) \
	HANDLER(sys_open) HANDLER(sys_creat) HANDLER(sys_openat) HANDLER(sys_openat2) HANDLER(sys_mkdir) HANDLER(sys_mknod) \
	HANDLER(sys_rmdir) HANDLER(sys_unlink) HANDLER(sys_unlinkat) HANDLER(sys_chdir) HANDLER(sys_chroot) HANDLER(sys_chmod) \
	HANDLER(sys_chown) HANDLER(sys_fchownat) HANDLER(sys_fchdir) HANDLER(sys_fchmod) HANDLER(sys_fchown) HANDLER(sys_rename) \
	HANDLER(sys_link) HANDLER(sys_symlink) HANDLER(sys_truncate) HANDLER(sys_utime) HANDLER(sys_utimes) HANDLER(sys_utimensat) \
	HANDLER(sys_umask) HANDLER(sys_unshare) HANDLER(sys_set_cred) HANDLER(sys_lock) HANDLER(sys_execve) HANDLER(sys_execveat)

#define DECLARE(function) struct verdict function(void *context, struct call *call);
FILE_HANDLERS(DECLARE)
#undef DECLARE

/* All of them, for rows to name by number. */
#define HANDLERS(HANDLER) \
	HANDLER(sys_sched_setaffinity) HANDLER(sys_sched_getaffinity) HANDLER(sys_adjtimex) HANDLER(sys_clock_adjtime) \
	HANDLER(sys_window_guard) HANDLER(sys_old_mmap) FILE_HANDLERS(HANDLER) ASK_HANDLERS(HANDLER)

#endif
