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
	bool foreign;       /* this task could not follow a link to the supervisor's files (other credentials): see ANSWER_FD */
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

/* For the events call_end and exec: copies LEN bytes from BUF to ADDR as the kernel's own copy would, minding page protection.
   All or nothing: 0 or -EFAULT. */
int guest_write(struct call *call, uint64_t addr, const void *buf, size_t len);

/* For the event exec: the new program's auxiliary vector entry TYPE (AT_*). 0; -ENOENT when it has none; -EACCES for a program
   that may be run and not read. */
int guest_auxv(struct call *call, uint64_t type, uint64_t *value);

/* Puts LEN bytes into this task's part of the read-only window and stores their guest address. One piece may have up to
   GUEST_WINDOW_MAX bytes. 0; -E2BIG when it is larger, or the call has put too much; -ENOSYS when this guest has no window;
   -EAGAIN when there is no room: whatever the handler returns is dropped, a chunk more is mapped, and the call comes again. The
   bytes stay until the rewritten call has ended. */
enum { GUEST_WINDOW_MAX = 15 * (16 << 10) };
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
	VERDICT_WAIT,      /* not decided yet: the task stays in its stop until engine_again(), then the call is asked again */
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
	bool foreign;        /* ANSWER_FD: fd is the very open file that the guest gets: opened with the guest's credentials, in
	                        the mode asked for. Else the guest opens anew what it refers to (an O_PATH fd will do) */
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

static inline struct verdict verdict_wait(void)
{
	return (struct verdict){ .kind = VERDICT_WAIT };
}

static inline struct verdict verdict_kill(const char *reason)
{
	return (struct verdict){ .kind = VERDICT_KILL, .reason = reason };
}

#endif
