/*
 * decode.h - calls as people know them from strace.
 *
 * decode_entry() prints `name(args` as far as the entry shows them, decode_exit() the rest: out arguments, `) = result`.
 * An argument that the kernel fills (a buffer of read, a stat) is printed at the exit. The two share a struct decode_state
 * of the task, which keeps where the printing stands.
 */
#ifndef INTERPOSE_SYSCALLS_DECODE_H
#define INTERPOSE_SYSCALLS_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "arch/call.h"

/* Output grows as needed up to TEXT_MAX; then it ends in "..." and takes no more. No allocation once warm. */
struct text {
	char *data;
	size_t len, size;
};
enum { TEXT_MAX = 64 << 10 };

void text_clear(struct text *text);
void text_free(struct text *text);
void text_add(struct text *text, const char *string);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As strace: \" \\ \n \t and \ooo for what is not printable, in quotes, at most MAX bytes then "...". Terminal escapes and
   newlines from a guest never reach the output as they are. */
void text_quote(struct text *text, const void *bytes, size_t len, size_t max);

struct decode_state {
	uint8_t next;        /* index of the first argument that is printed at the exit */
	uint32_t column;     /* bytes of this line that are printed already: results are aligned */
	uint64_t extra[2];   /* what an exit needs of the entry's memory: a length that the kernel overwrites */
};

void decode_entry(struct text *out, const struct call *call, struct decode_state *state);

/* RESULT is the kernel's: a value or -errno (-4095 to -1). */
void decode_exit(struct text *out, const struct call *call, struct decode_state *state, int64_t result);

/* The result as after `= `: a number, an address for mmap and brk, `-1 ENOENT (No such file or directory)`, `? ERESTARTSYS`. */
void decode_result(struct text *out, const struct call *call, int64_t result);

/* `{si_signo=SIGCHLD, si_code=CLD_EXITED, ...}` */
void decode_siginfo(struct text *out, const void *siginfo);

/* "SIGINT" for 2, "SIGRT_3" for a real-time one; never NULL (static buffer for numbers that are no signal). */
const char *decode_signal_name(int signo);
/* "ENOENT" or NULL. */
const char *decode_errno_name(int error);

/* The set of --trace=SET: names, %classes, `all`, `none`, a leading `!` inverts the whole. STOP has CALL_COUNT entries. 0, or
   -EINVAL with the offending word in BAD and the nearest valid one in NEAR ("" for none). */
int decode_parse_set(const char *set, bool *stop, char bad[64], char near[64]);

#endif
