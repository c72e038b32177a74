/*
 * exec.h - starting programs: what the guest names is found in its view, and the kernel is given exactly that file.
 *
 * The kernel must not look for anything itself: neither the program, nor the interpreter of a script, nor that of an ELF file. What is
 * the same for the host and the guest on every component is started by the guest's own path, in the window. Everything else is
 * started through a link of ours with the name that the program is to have in `comm`:
 *
 *   /proc/SUPERVISOR/fd/WORK/xSERIAL/NAME -> /proc/SUPERVISOR/fd/N
 *
 * A script's interpreter is started with the arguments that the kernel would give it. An ELF interpreter that is not the host's own
 * needs a copy of the program that names it by descriptor. After the exec the file that runs is compared with the one that was
 * meant, and AT_EXECFN gets the guest's own text.
 */
#ifndef INTERPOSE_SYSCALLS_HANDLERS_EXEC_H
#define INTERPOSE_SYSCALLS_HANDLERS_EXEC_H

#include "syscalls/env.h"

/* The first program, which the supervisor starts itself: PATH as the guest would give it. On success *START is what execve(2) is to
   be called with: its path and arguments stay until the exec. ARGV is the command's. Negative errno. */
struct exec_start {
	struct exec_plan *plan;
	const char *path;
	char **argv;
};
int exec_first(struct env *env, const struct vfs_who *who, const char *path, char *const *argv, struct exec_start *start);
void exec_start_end(struct env *env, struct exec_start *start);

/* The event exec: 0, or -EPERM when something else runs than was meant (then the guest must not go on). PLAN: of exec_first(), or
   NULL for the task's own. */
int exec_check(struct env *env, struct call *call, const struct exec_plan *plan);

#endif
