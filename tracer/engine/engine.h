/*
 * engine.h - holds a program and all its descendants by ptrace and asks for a verdict at each stop.
 *
 * Life: engine_new(), engine_launch(), engine_run(), engine_free(), all from one thread (ptrace belongs to the thread that
 * attached). The engine knows nothing of paths, sockets or policy. Its caller must leave SIGCHLD at its default and SIGALRM to
 * the engine (its clock for tasks that are held on a CPU).
 */
#ifndef INTERPOSE_TRACER_ENGINE_H
#define INTERPOSE_TRACER_ENGINE_H

#include <linux/filter.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/call.h"

enum engine_mechanism {
	ENGINE_AUTO,
	ENGINE_TRACE,  /* SECCOMP_RET_TRACE: only calls that the filter names stop */
	ENGINE_PTRACE  /* PTRACE_SYSCALL: every call stops twice; for hosts where no filter can be installed */
};

/* All may be NULL except call. CONTEXT is engine_options.context. */
struct engine_events {
	/* A call is about to run. On ENGINE_PTRACE each call comes here, on ENGINE_TRACE those that the filter stops. */
	struct verdict (*call)(void *context, struct call *call);
	/* The end of a call whose verdict had want_end. RESULT: a value or a negative errno (ERESTART* included). */
	void (*call_end)(void *context, struct call *call, int64_t result);
	/* PARENT has made CHILD (clone, fork, vfork), with the CLONE_* FLAGS of the call; CHILD has not run yet, and its `state` is
	   the receiver's to set. PARENT is NULL, FLAGS 0, where the parent was killed before it told. The first program's first task
	   is nobody's child. */
	void (*clone)(void *context, struct call *parent, struct call *child, uint64_t flags);
	/* A guest that cannot follow links to our files (foreign credentials) is to get what FD refers to: open it anew with FLAGS
	   and the guest's credentials, without blocking. A descriptor, which the engine then owns, or a negative errno. NULL: such
	   a guest gets the error. Not asked where FD is open in that mode already, as O_PATH ones are for O_PATH. */
	int (*reopen)(void *context, struct call *call, int fd, int flags);
	/* All that engine_replace_fd() and engine_remap() queued for process TGID is done, or can no longer be. */
	void (*replaced)(void *context, pid_t tgid);
	/* A signal is about to be delivered; the task is stopped. */
	void (*signal)(void *context, struct call *call, const siginfo_t *info);
	/* The process has exec'ed, and is stopped before the first instruction of the new program. FORMER is the tid that called
	   execve; call->tid and call->tgid are the process's from now on. */
	void (*exec)(void *context, struct call *call, pid_t former);
	/* The task is gone. STATUS as from wait(2); -1 when the kernel told none (a leader replaced by exec). IN_CALL when it
	   ended inside a call whose end was wanted. */
	void (*task_end)(void *context, struct call *call, int status, bool in_call);
	/* The first guest has group-stopped by SIGNO, with all of its process group: the time to stop ourselves. */
	void (*stopped)(void *context, int signo);
	/* engine_attention() was called: look at what the signal handlers left. */
	void (*attention)(void *context);
	/* Something worth a line that is no refusal: a defect found, a guest without a window. */
	void (*note)(void *context, pid_t tid, const char *text);
};

struct engine_options {
	enum engine_mechanism mechanism;  /* not AUTO: engine_launch() says whether one works */
	const struct sock_fprog *filter;  /* ENGINE_TRACE */
	uint16_t filter_data;             /* SECCOMP_RET_DATA of the filter's own stops */
	bool window;                      /* verdicts may be REWRITE or ANSWER_FD: map the window into each new program */
	const struct engine_events *events;
	void *context;
};

struct engine;

/* NULL with errno set. */
struct engine *engine_new(const struct engine_options *options);
void engine_free(struct engine *engine);

enum engine_failure {
	ENGINE_OK,
	ENGINE_NO_MEMORY,   /* fork, pipe or memory: errno in *error */
	ENGINE_NO_PTRACE,   /* the host refuses ptrace */
	ENGINE_OLD_KERNEL,  /* PTRACE_GET_SYSCALL_INFO is missing (before Linux 5.3) */
	ENGINE_NO_FILTER,   /* the host refuses the seccomp filter: ENGINE_PTRACE may still work */
	ENGINE_NO_CWD,      /* chdir failed */
	ENGINE_NO_EXEC      /* execve failed */
};

struct engine_program {
	const char *path;         /* of the executable, as execve takes it */
	char *const *argv, *const *envp;
	const char *cwd;          /* NULL: the caller's */
	sigset_t mask;            /* the guest's signal mask */
};

/* Starts the program and runs until its execve has succeeded or failed. Nothing is left behind on failure. */
enum engine_failure engine_launch(struct engine *engine, const struct engine_program *program, int *error);

/* Runs to the end of the first guest, then ends all others. Its status as from wait(2), or -1 with errno. */
int engine_run(struct engine *engine);

/* Ask for events.attention soon. Safe in a signal handler and from any thread of ours; SIGALRM must be unblocked in the
   engine's thread. */
void engine_attention(struct engine *engine);

/* The call of TID, whose verdict was WAIT, is asked again soon: with registers as they were, from the start. From the engine's
   thread, in an event; nothing happens where TID is gone or does not wait. A call that waits may be asked again without it
   (after engine_replace_fd() or engine_remap()): a handler that still cannot decide says WAIT again. */
void engine_again(struct engine *engine, pid_t tid);

enum { ENGINE_OFFSET_KEEP = -1 };

struct engine_replacement {
	pid_t tgid;
	int guest_fd;       /* the descriptor to be replaced */
	int fd;             /* ours, owned by the engine from now on, on failure too. An O_PATH one is opened with `flags`, in the
	                       state of `offset`; any other is handed over as the very open file that it is (one can be given to
	                       several descriptors that shared one) */
	int flags;          /* of open(2): access mode, O_APPEND, O_NONBLOCK ... */
	int64_t offset;     /* or ENGINE_OFFSET_KEEP: as the old one has it at that time */
	dev_t old_dev;      /* the old file: a descriptor that is of another one by then is left alone */
	ino_t old_ino;
};

/* Queues that a descriptor of a process becomes another file, close-on-exec as it was. Done by one of the process's tasks at its
   next stop, which is brought about; a task that waits (VERDICT_WAIT) or comes with a call has it done before it is asked.
   So a handler that replaces descriptors of the calling process itself returns WAIT and calls engine_again(). A process whose
   tasks cannot stop now (in vfork, group-stopped) has it done before it runs on. 0 or a negative errno. */
int engine_replace_fd(struct engine *engine, const struct engine_replacement *replacement);

struct engine_remapping {
	pid_t tid;          /* of any task of the process */
	int fd;             /* O_PATH of a regular file, ours, owned by the engine from now on, on failure too */
	dev_t old_dev;      /* the old file, as stat(2) tells it */
	ino_t old_ino;
};

/* Queues, in the same way, that the process's shared mappings of the old file that cannot write become mappings of FD at the same
   addresses. Executable ones stay, as do private ones: what they hold may be their own. How many mappings were found: 0, and
   nothing is queued, where there is none or they cannot be seen. Or a negative errno. */
int engine_remap(struct engine *engine, const struct engine_remapping *remapping);

/* How many processes have replacements to come that are worth waiting for: not those that cannot stop now. */
unsigned engine_replacing(const struct engine *engine);

/* Ends every guest by SIGKILL; engine_run() then returns. */
void engine_kill(struct engine *engine);

/* The task TID of the run as its last stop showed it, or NULL. */
const struct call *engine_call_of(const struct engine *engine, pid_t tid);

/* All tasks of the run, in no order. */
void engine_each(struct engine *engine, void (*visit)(void *context, const struct call *call), void *context);

/* Whether a task is stopped by a signal, as it would be without us. */
bool engine_task_stopped(const struct engine *engine, pid_t tid);

/* The affinity that a task chose itself, as Cpus_allowed and Cpus_allowed_list of proc(5) print it; false where the kernel's own
   is right. */
bool engine_affinity(const struct engine *engine, pid_t tid, char *mask, size_t mask_size, char *list, size_t list_size);

/* Process of the first guest, 0 when it is gone. */
pid_t engine_root(const struct engine *engine);

/* Whether the first guest is group-stopped. */
bool engine_root_stopped(const struct engine *engine);

/* Whether this kernel seals the window (mseal, Linux 6.10); if not, GUARD rows must stop. */
bool engine_can_seal(void);

const char *engine_mechanism_name(enum engine_mechanism mechanism);

#endif
