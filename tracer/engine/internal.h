/* internal.h - what the engine's own files share. */
#ifndef INTERPOSE_TRACER_ENGINE_INTERNAL_H
#define INTERPOSE_TRACER_ENGINE_INTERNAL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "arch/regs.h"
#include "tracer/engine/clock.h"
#include "tracer/engine/engine.h"

/* --- the window's memory: chunks of slots in one sealed memfd ------------------------------------------------------- */

enum {
	SLOT_SIZE = 16 << 10,
	CHUNK_SLOTS = 15,                            /* and a last one, */
	CHUNK_TEXT = SLOT_SIZE * CHUNK_SLOTS,        /* which holds the memfd's path for who must map another chunk */
	CHUNK_SIZE = SLOT_SIZE * (CHUNK_SLOTS + 1)
};

/* Mapped by one program and by all that it forked: they share its pages, so they share its slots too. */
struct chunk {
	unsigned refs;      /* address spaces that map it */
	unsigned index;     /* CHUNK_SIZE * index is its place in the memfd */
	uint16_t used;      /* a bit for each slot in use */
	struct chunk *next; /* free ones */
};

struct region { /* a chunk, mapped in an address space */
	uint64_t addr;
	struct chunk *chunk;
};

struct slots { /* neighbouring ones of a chunk, taken by one call */
	struct region region;
	unsigned index, count;
	size_t used; /* bytes */
};

struct window {
	int fd;                /* the sealed memfd, read-only mapping by guests through /proc/PID/fd */
	unsigned char *memory; /* our own writable mapping, made before the seal */
	size_t size, mapped;   /* what chunks have taken; of `memory` and the file */
	struct chunk *free;
};

/* --- an address space, shared by the tasks of CLONE_VM --------------------------------------------------------------- */

struct space {
	unsigned refs;
	int mem_fd;          /* /proc/TID/mem, opened when first needed; -1 */
	bool mem_denied;     /* could not be opened: not dumpable */
	bool late;           /* so from its exec on: the window is mapped when first needed, by its only task */
	struct region *regions;
	unsigned region_count;
};

/* --- a task ----------------------------------------------------------------------------------------------------------- */

enum { REPEATED_CHUNK = 1, REPEATED_MEMORY = 2 };

enum { CALL_SLOTS = 4 }; /* pieces of the window that one call may take */

enum inject_kind {
	INJECT_CHUNK,             /* of the window */
	INJECT_MEMORY,            /* open the memory of a process that is not dumpable */
	INJECT_ANSWER,            /* ANSWER_FD where one openat is not enough */
	INJECT_REPLACE            /* engine_replace_fd(), engine_remap() */
};

enum inject_step {
	CHUNK_OPEN, CHUNK_MAP, CHUNK_SEAL, CHUNK_CLOSE,
	MEMORY_SHOW, MEMORY_HIDE,
	ANSWER_OPEN,              /* of the link */
	ANSWER_PROBE, ANSWER_UNPROBE, /* whether it can be followed at all: without an open of what it leads to */
	REPLACE_MOVE, REPLACE_MAP, REPLACE_DROP,
	PASS_PAGE, PASS_SOCKET, PASS_CONNECT, PASS_RECEIVE, PASS_MOVE, PASS_DROP, PASS_ABANDON, PASS_UNPAGE /* pass.c */
};

enum inject_end {
	END_REGISTERS,            /* as they were */
	END_REPEAT,               /* the call that has stopped runs again */
	END_RESULT,               /* it has run, with `result` */
	END_TRAP                  /* as they were, and a stop before the task runs on: the kernel may have a call to restart */
};

struct injection {
	enum inject_kind kind;
	enum inject_step step;
	enum inject_end end;
	bool at_entry;            /* the current injected call has had its entry stop */
	bool alone;               /* no other task of this memory: the stack can be used for a moment */
	bool placed;              /* and is */
	bool first;               /* the step takes the place of the call that has stopped */
	int maps_fd;              /* /proc/TID/maps, as it may be denied later; -1 */
	bool hidden;              /* and was denied: the process is made dumpable meanwhile */
	unsigned tries;           /* of opening a file of /proc that another task made undumpable again */
	uint64_t insn;            /* address of a system-call instruction */
	uint64_t fd, addr;        /* results of the steps */
	int64_t result;           /* END_RESULT */
	int pass_fd, pass_flags;  /* pass.c: ours, that the guest is to get, and O_CLOEXEC or 0 */
	int listener;
	uint64_t page, sock;
	int64_t passed;           /* the guest's number of it, or a negative errno */
	struct replacing *replacing;
	uint64_t text_addr;       /* where the path was put */
	struct chunk *chunk;
	unsigned slots;           /* of it, that the repeated call takes */
	const struct arch *abi;
	struct arch_regs saved;
	bool stays_masked;        /* the task's signals stay blocked after it */
	unsigned char stack[64];  /* what was under the path */
};

struct guest { /* what struct call points to */
	struct task *task;
};

struct task {
	struct task *chain;       /* hash bucket */
	pid_t tid;
	struct guest guest;
	struct call call;         /* of the current or last stop; call.tgid is the process */
	struct engine *engine;
	struct space *space;      /* NULL until the parent's event has told what is shared */

	bool adopted;             /* the parent's event was seen, or cannot come any more */
	bool started;             /* the first stop was seen */
	bool in_call;             /* an exit stop is awaited */
	bool want_end;            /* and its result is told */
	bool restore;             /* at the exit stop the argument registers are put back */
	bool stopped;             /* in group-stop */
	bool in_vfork;            /* cannot stop until its child lets it go */
	bool map_window;          /* has exec'ed: at the exit stop, map the window */
	bool dead;                /* it ended before its parent told of it */
	uint8_t want_slots;       /* the handler found none free: so many are taken of a new chunk */
	bool want_memory;         /* the handler found its memory closed */
	uint8_t repeated;         /* for which of these the call was made to run again: REPEATED_* */
	bool answered;            /* ENGINE_PTRACE: `answer` is the result, whatever a guest's own filter says of number -1 */
	int64_t answer;
	struct arch_regs before;  /* restore: registers of the entry */
	const struct arch *before_abi;
	int answer_fd;            /* ANSWER_FD: ours, closed when the guest has it; -1 */
	int answer_flags;
	bool answer_ready;        /* and the very open file that the guest is to get */
	bool linked;              /* the call is an openat of a link to answer_fd */
	struct slots slots[CALL_SLOTS]; /* of the window, in use by the call under way */
	unsigned slots_count;
	bool waiting;             /* at its call's stop: the handler could not decide yet */
	bool again;               /* and is to be asked again */
	struct injection *inject; /* NULL when none is under way */
	bool masked;              /* its signals are blocked: by an injection, and until its call has come again; `sigmask` is its own */
	uint64_t sigmask;
	bool interrupted;         /* PTRACE_INTERRUPT may be on its way */

	/* hold.c */
	bool held;
	bool ever_held;
	uint32_t streak;          /* stops in quick succession */
	uint64_t last_stop;       /* ns, CLOCK_MONOTONIC */
	uint64_t hold_after;      /* not before this time */
	uint64_t run_delay;       /* at the last tick */
	cpu_set_t own_cpus;       /* what the guest itself chose */
	struct task *held_next, **held_prev;
};

struct hold {
	struct task *tasks;       /* held ones */
	unsigned count;
	int cpu;                  /* where they and we are held; -1 */
	cpu_set_t own_cpus;       /* ours when nobody is held */
	uint64_t last_tick;
	uint64_t run_delay;       /* ours at the last tick */
};

struct event {
	pid_t tid;
	int status;
};

struct engine {
	struct engine_options options;
	struct task **buckets;
	size_t bucket_count, task_count;
	struct event *queue;      /* drained, in order; a ring is not needed: it empties before it is filled again */
	size_t queue_len, queue_next, queue_size;
	unsigned since_drain;
	pid_t root;
	int root_status;
	bool root_ended;
	bool exec_done;           /* the program's own execve has succeeded */
	bool ending;              /* every guest is being killed */
	int stop_wanted;          /* the root group-stopped by this signal; told when its process group has */
	uint64_t kill_until;      /* then give up waiting for what cannot die */
	unsigned limbo;           /* tasks whose parent's event has not come */
	unsigned dead;            /* among them, ended ones */
	bool seal;                /* mseal works */
	bool again;               /* a task may be marked so */
	volatile sig_atomic_t attention;
	struct replacing *replacing; /* processes of which descriptors or mappings are to be replaced */
	bool replace_asked;       /* some of them have not been looked at */
	uint64_t own_filters;     /* seccomp filters of a guest that has none of its own; UINT64_MAX before it is known */
	struct window window;
	struct hold hold;
	bool old_kernel;          /* without PTRACE_GET_SYSCALL_INFO */
	struct sigaction guest_alarm; /* what SIGALRM does in the guest */
	pid_t tid;                /* of the one thread that runs the engine */
	timer_t timer;
	bool timer_made;
};

/* task.c */
struct task *task_find(struct engine *e, pid_t tid);
struct task *task_add(struct engine *e, pid_t tid);
void task_remove(struct engine *e, struct task *task);
void task_rename(struct engine *e, struct task *task, pid_t tid);
void task_each(struct engine *e, void (*visit)(struct engine *e, struct task *task, void *data), void *data);
struct space *space_new(void);
struct space *space_fork(struct space *space);
struct space *space_ref(struct space *space);
void space_unref(struct engine *e, struct space *space);

/* stops.c */
bool task_has_own_filter(struct engine *e, struct task *task);
void engine_dispatch(struct engine *e, pid_t tid, int status);
void task_resume(struct engine *e, struct task *task, int signo);
void kill_all(struct engine *e);
void task_note(struct engine *e, struct task *task, const char *text);

/* verdict.c */
void call_stop(struct engine *e, struct task *task);      /* an entry or seccomp stop */
void call_wake(struct engine *e);                         /* those that engine_again() named */
void call_exit(struct engine *e, struct task *task);      /* an exit stop */
void call_over(struct engine *e, struct task *task, int64_t result);
void call_forget(struct engine *e, struct task *task);    /* what the call held: slot, fd */
int call_link(struct task *task, uint64_t *addr);
int call_ready(struct engine *e, struct task *task);

/* inject.c */
int inject_window(struct engine *e, struct task *task, bool alone);
int inject_dumpable(struct engine *e, struct task *task);
int inject_answer(struct engine *e, struct task *task, const struct arch_regs *regs, int64_t error);
int inject_replace(struct engine *e, struct task *task, struct replacing *replacing, enum inject_end end);
void inject_stop(struct engine *e, struct task *task, int status);
void inject_free(struct engine *e, struct task *task);
void inject_unmask(struct task *task);
void inject_guard(struct task *task);                     /* at a stop brought about by PTRACE_INTERRUPT */

/* pass.c: steps by which a guest gets a descriptor; `passed` is its number there, or a negative errno */
void pass_begin(struct injection *in, int fd, int flags);
int pass_call(const struct injection *in, uint64_t args[6]);
bool pass_step(struct task *task, int64_t result); /* false after the last one */
void pass_free(struct injection *in);

/* replace.c */
bool replace_here(struct engine *e, struct task *task, enum inject_end end); /* whether it has begun */
void replace_look(struct engine *e);                      /* at those that engine_replace_fd() and engine_remap() have queued */
bool replace_next(struct engine *e, struct task *task);   /* another one of the process, by pass_begin() */
enum inject_step replace_step(const struct injection *in); /* which one comes when it has been passed */
bool replace_agrees(struct task *task);                   /* at the entry of that step: it still is the old file */
int replace_call(const struct injection *in, uint64_t args[6]); /* the call of that step */
void replace_done(struct injection *in);
enum inject_step replace_mapped(struct engine *e, struct task *task, int64_t result); /* the next step after REPLACE_MAP */
void replace_failed(struct engine *e, struct task *task); /* it could not be passed */
void replace_over(struct engine *e, struct replacing *replacing); /* the injection has ended */
void replace_keep(struct engine *e, struct task *task);   /* its stop may have taken the place of the one that was asked for */
void replace_changed(struct engine *e, pid_t tgid);       /* a task has ended, or cannot stop now */
void replace_free(struct engine *e);

/* maps.c */
struct map_range { /* a line of /proc/TID/maps */
	uint64_t start, end, offset;
	dev_t dev;
	ino_t ino;
	char perms[5];
	char name[4096];          /* empty where it is longer */
};
struct reader { /* a shared mapping that cannot write */
	uint64_t addr, len, offset;
	int protection;           /* PROT_READ or PROT_NONE */
};
FILE *maps_of(pid_t tid);
bool maps_next(FILE *maps, struct map_range *range);
int maps_find(pid_t tid, dev_t dev, ino_t ino, struct reader **readers); /* of a file as stat(2) tells it; how many */
bool maps_has(pid_t tid, const struct reader *reader, dev_t dev, ino_t ino);

/* window.c */
int window_make(struct window *w);
void window_free(struct window *w);
unsigned char *window_at(struct window *w, const struct chunk *chunk, size_t offset);
struct chunk *chunk_new(struct window *w);
void chunk_unref(struct window *w, struct chunk *chunk);
void slots_reserve(struct task *task, const struct region *region, unsigned count); /* of a chunk that nobody knows yet */
void slots_release(struct task *task);

/* memory.c */
int memory_open(struct task *task);
ssize_t memory_read(struct task *task, uint64_t addr, void *buf, size_t len);
ssize_t memory_write(struct task *task, uint64_t addr, const void *buf, size_t len);
ssize_t memory_answer(struct task *task, uint64_t addr, const void *buf, size_t len);
int memory_auxv(struct task *task, const struct arch *abi, uint64_t type, uint64_t *value);

/* hold.c */
void hold_init(struct engine *e);
void hold_stop(struct engine *e, struct task *task);
void hold_inherit(struct engine *e, struct task *parent, struct task *child);
void hold_release(struct engine *e, struct task *task);
void hold_tick(struct engine *e);
void hold_end(struct engine *e);

/* engine.c */
enum { CLOCK_MS = 4 };
bool engine_step(struct engine *e);
void clock_start(struct engine *e, unsigned ms);
void clock_stop(struct engine *e);

#endif
