/* internal.h - what the engine's own files share. */
#ifndef INTERPOSE_TRACER_ENGINE_INTERNAL_H
#define INTERPOSE_TRACER_ENGINE_INTERNAL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

enum inject_step {
	INJECT_OPEN, INJECT_MAP, INJECT_SEAL, INJECT_CLOSE, /* a chunk of the window */
	INJECT_DUMPABLE, INJECT_UNDUMPABLE                  /* to open the memory of a process that is not dumpable */
};

struct injection {
	enum inject_step step;
	bool at_entry;            /* the current injected call has had its entry stop */
	bool repeat;              /* afterwards the interrupted call runs again; else the registers are put back */
	bool alone;               /* no other task of this memory: the stack can be used for a moment */
	bool placed;              /* and is */
	bool first;               /* the step takes the place of the call that has stopped */
	int maps_fd;              /* /proc/TID/maps, as it may be denied later; -1 */
	bool hidden;              /* and was denied: the process is made dumpable meanwhile */
	unsigned tries;           /* of opening a file of /proc that another task made undumpable again */
	uint64_t insn;            /* address of a system-call instruction */
	uint64_t fd, addr;        /* results of the steps */
	uint64_t text_addr;       /* where the path was put */
	struct chunk *chunk;
	const struct arch *abi;
	struct arch_regs saved;
	uint64_t sigmask;
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
	bool want_chunk;          /* the handler found no free slot */
	bool want_memory;         /* the handler found its memory closed */
	uint8_t repeated;         /* for which of these the call was made to run again: REPEATED_* */
	bool answered;            /* ENGINE_PTRACE: `answer` is the result, whatever a guest's own filter says of number -1 */
	int64_t answer;
	struct arch_regs before;  /* restore: registers of the entry */
	const struct arch *before_abi;
	int answer_fd;            /* ANSWER_FD: ours, closed when the guest has it; -1 */
	struct region slot;       /* window slot in use: chunk and guest address; chunk NULL for none */
	unsigned slot_index;
	size_t slot_used;
	struct injection *inject; /* NULL when none is under way */

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
	volatile sig_atomic_t attention;
	struct window window;
	struct hold hold;
	bool old_kernel;          /* without PTRACE_GET_SYSCALL_INFO */
	struct sigaction guest_alarm; /* what SIGALRM does in the guest */
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
void engine_dispatch(struct engine *e, pid_t tid, int status);
void task_resume(struct engine *e, struct task *task, int signo);
void kill_all(struct engine *e);
void task_note(struct engine *e, struct task *task, const char *text);

/* verdict.c */
void call_stop(struct engine *e, struct task *task);      /* an entry or seccomp stop */
void call_exit(struct engine *e, struct task *task);      /* an exit stop */
void call_forget(struct engine *e, struct task *task);    /* what the call held: slot, fd */

/* inject.c */
int inject_window(struct engine *e, struct task *task, bool alone);
int inject_dumpable(struct engine *e, struct task *task);
void inject_stop(struct engine *e, struct task *task, int status);
void inject_free(struct engine *e, struct task *task);

/* window.c */
int window_make(struct window *w);
void window_free(struct window *w);
unsigned char *window_at(struct window *w, const struct chunk *chunk, size_t offset);
struct chunk *chunk_new(struct window *w);
void chunk_unref(struct window *w, struct chunk *chunk);
int slot_take(struct task *task);
void slot_reserve(struct task *task, const struct region *region); /* of a chunk that nobody else knows yet */
void slot_release(struct task *task);

/* memory.c */
int memory_open(struct task *task);
ssize_t memory_read(struct task *task, uint64_t addr, void *buf, size_t len);
ssize_t memory_write(struct task *task, uint64_t addr, const void *buf, size_t len);
ssize_t memory_answer(struct task *task, uint64_t addr, const void *buf, size_t len);

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
