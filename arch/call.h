/*
 * call.h - one stopped system call, guest memory, and the verdict: what the engine and the handlers share.
 *
 * The engine fills a struct call at a stop and asks for a verdict; handlers look at nothing else. Guest memory is read
 * through guest_read() and its siblings, each address at most once for each decision: what was read is the only copy that
 * is ever trusted (DESIGN, section 2).
 *
 * Unit tests of handlers and of the decoder link their own guest_*() functions.
 */
#ifndef INTERPOSE_ARCH_CALL_H
#define INTERPOSE_ARCH_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"

struct guest; /* the engine's view of one task's address space */

struct call {
	const struct arch *arch;
	int id;             /* enum call_id, or CALL_NONE */
	uint32_t nr;        /* the number as the guest gave it */
	uint64_t args[6];   /* zero-extended to 64 bits where the ABI's word is 4 bytes */
	uint64_t ip, sp;
	pid_t tid, tgid;
	struct guest *guest;
	void *state;        /* the session's own data for this task, NULL at first; it frees it when the task ends */
	bool read_memory;   /* set by guest_read*(): the decision depends on guest memory, FORWARD is no longer legal */
};

/* --- guest memory -------------------------------------------------------------------------------------------------- */

/* Copies LEN bytes at ADDR into BUF, all or nothing. 0, or -EFAULT. Marks the call as decided by memory. Where the process has
   made itself undumpable, -EFAULT may only mean that the engine must open its memory first: the handler returns as for any
   EFAULT, its verdict is dropped, and the call comes again. So a handler reads before it does anything that lasts. The same
   happens once to an ANSWER with writes. */
int guest_read(struct call *call, uint64_t addr, void *buf, size_t len);

/* Copies the string at ADDR, NUL included, into BUF of SIZE bytes. Never reads past the page that holds the NUL.
   Its length, -EFAULT, or -ENAMETOOLONG when no NUL is among SIZE bytes. Marks the call as decided by memory. */
ssize_t guest_read_string(struct call *call, uint64_t addr, char *buf, size_t size);

/* For showing, not for deciding: copies up to LEN bytes, as far as they are mapped. Bytes copied, or -EFAULT for none. */
ssize_t guest_peek(const struct call *call, uint64_t addr, void *buf, size_t len);

/* Puts LEN bytes into this task's slot of the read-only window and stores their guest address. 0; -E2BIG when the slot is
   full; -ENOSYS when this guest has no window; -EAGAIN when all slots are taken: whatever the handler returns is dropped, a
   chunk more is mapped, and the call comes again. The bytes stay until the rewritten call has ended. */
int guest_window_put(struct call *call, const void *data, size_t len, uint64_t *addr);

/* Whether [addr, addr + len) touches the window. Registers only: does not mark the call. */
bool guest_window_overlaps(const struct call *call, uint64_t addr, uint64_t len);

/* The engine may hold a task on the supervisor's CPU. This gives task PID (0: the caller) back the affinity that the guest
   itself chose, and leaves it alone until CALL has ended: what sched_getaffinity reads is the guest's own. */
void guest_affinity_settle(struct call *call, pid_t pid);

/* --- verdicts ------------------------------------------------------------------------------------------------------ */

enum verdict_kind {
	VERDICT_FORWARD,   /* the kernel runs the call as it is; legal only where registers alone decided */
	VERDICT_ANSWER,    /* value is the result: a number, or a negative errno; writes go to guest memory first */
	VERDICT_ANSWER_FD, /* the guest gets fd (owned by the verdict, closed by the engine) at its lowest free number */
	VERDICT_REWRITE,   /* the kernel runs call `id` with `args`; pointers among them come from guest_window_put() */
	VERDICT_KILL       /* end the whole guest; why is told */
};

enum { VERDICT_WRITES = 4, VERDICT_WRITE_MAX = 4096 };

struct verdict_write {
	uint64_t addr;
	const void *data; /* valid until the handler's next call */
	size_t len;
};

struct verdict {
	enum verdict_kind kind;
	int64_t value;       /* ANSWER */
	int fd;              /* ANSWER_FD */
	int fd_flags;        /* ANSWER_FD: O_CLOEXEC and the access mode */
	int id;              /* REWRITE: enum call_id */
	uint64_t args[6];    /* REWRITE */
	bool want_end;       /* tell the end of this call, with its result */
	const char *reason;  /* what is told of a refusal or KILL; NULL where the answer is no refusal */
	unsigned writes;     /* ANSWER: how many of write[] are used; one that fails turns the answer into -EFAULT */
	struct verdict_write write[VERDICT_WRITES];
};

static inline struct verdict verdict_forward(void)
{
	return (struct verdict){ .kind = VERDICT_FORWARD };
}

static inline struct verdict verdict_answer(int64_t value)
{
	return (struct verdict){ .kind = VERDICT_ANSWER, .value = value };
}

/* ERROR is a negative errno. REASON is a static string: one clause that says what rule refused. */
static inline struct verdict verdict_refuse(int error, const char *reason)
{
	return (struct verdict){ .kind = VERDICT_ANSWER, .value = error, .reason = reason };
}

static inline struct verdict verdict_kill(const char *reason)
{
	return (struct verdict){ .kind = VERDICT_KILL, .reason = reason };
}

#endif
