/*
 * decode_impl.h - what the parts of the decoder share; nobody else includes it.
 *
 * Everything that a printer reads is the guest's: it goes through decode_peek() (all of a struct or nothing), is bounded by
 * the SHOW_* limits before it is looped over, and reaches the output only as a number, a name of ours or through text_quote.
 */
#ifndef INTERPOSE_SYSCALLS_DECODE_IMPL_H
#define INTERPOSE_SYSCALLS_DECODE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "syscalls/decode.h"
#include "syscalls/flags.h"
#include "syscalls/row.h"

/* How much of something is shown; the rest is "...". */
enum {
	SHOW_STRING = 32,    /* bytes of a string or buffer, strace's -s */
	SHOW_PATH = 4096,    /* PATH_MAX */
	SHOW_STRINGS = 32,   /* argv */
	SHOW_VARS = 32 << 10, /* environment strings that are counted */
	SHOW_IOVEC = 16,
	SHOW_MMSG = 8,
	SHOW_ITEMS = 32,     /* elements of any other array */
	SHOW_CMSG = 16,
	SHOW_CONTROL = 1024, /* bytes of ancillary data that are looked at */
	SHOW_DIRENTS = 64 << 10
};

enum { SIGINFO_SIZE = 128 };

/* One call that is being printed. */
struct decoding {
	struct text *out;
	size_t start; /* where in it this part of the line begins */
	const struct call *call;
	const struct row *row;
	struct decode_state *state;
	bool exiting;
	int64_t result;              /* 0 at the entry */
	unsigned index;              /* the argument that is being printed */
	unsigned hidden;             /* bit for each argument that these very ones make meaningless */
	uint8_t first[ROW_ARGS];     /* first register of each argument; 6 and more: there is none left */
	struct arg args[ROW_ARGS];   /* the row's, changed where one argument says what another is */
};

/* --- text: pieces without printf ------------------------------------------------------------------------------------ */

/* Appends LEN bytes as they are: only for our own words. */
void text_bytes(struct text *text, const char *bytes, size_t len);
void text_char(struct text *text, char c);
void text_dec(struct text *text, int64_t value);
void text_udec(struct text *text, uint64_t value);
void text_hex(struct text *text, uint64_t value);              /* 0x1f; 0 for nothing */
void text_octal(struct text *text, uint64_t value, int digits); /* a leading 0 and at least DIGITS digits in all */
/* All bytes as \xNN, at most MAX, then "...". */
void text_quote_hex(struct text *text, const void *bytes, size_t len, size_t max);

/* A constant string: its length is known to the compiler. */
#define text_lit(text, literal) text_bytes(text, "" literal, sizeof(literal) - 1)

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* All LEN bytes at ADDR, or false. LEN is at least 1. */
bool decode_peek(const struct decoding *d, uint64_t addr, void *buf, size_t len);
/* As many of LEN bytes as are mapped; 0 for none. */
size_t decode_peek_some(const struct decoding *d, uint64_t addr, void *buf, size_t len);

static inline uint16_t load16(const void *p)
{
	uint16_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint32_t load32(const void *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint64_t load64(const void *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* A long of WORD bytes, zero- or sign-extended. */
static inline uint64_t load_word(const void *p, unsigned word)
{
	return word == 4 ? load32(p) : load64(p);
}

static inline int64_t load_sword(const void *p, unsigned word)
{
	return word == 4 ? (int32_t)load32(p) : (int64_t)load64(p);
}

static inline unsigned decode_word(const struct decoding *d)
{
	return d->call->arch->word;
}

static inline bool decode_compat(const struct decoding *d)
{
	return d->call->arch->word == 4;
}

/* The value of argument INDEX, 0 where the row has none. A pair of registers is joined. */
uint64_t decode_value(const struct decoding *d, unsigned index);
/* The value that `ref` of the argument being printed names; the result for REF_RESULT (a negative one as 0). */
uint64_t decode_ref(const struct decoding *d);
/* Whether the call failed: its OUT arguments hold nothing. */
static inline bool decode_failed(const struct decoding *d)
{
	return d->result < 0 && d->result >= -4095;
}

/* What the entry kept of the memory that argument INDEX points at; UINT64_MAX for nothing. */
uint64_t decode_kept(const struct decoding *d, unsigned index);

/* --- printing ------------------------------------------------------------------------------------------------------- */

void decode_address(struct text *out, uint64_t addr);
/* Reads LEN bytes at ADDR into BUF; where it cannot, prints the address and says false. */
bool decode_fetch(const struct decoding *d, uint64_t addr, void *buf, size_t len);
void decode_string(struct decoding *d, uint64_t addr, size_t max);       /* NUL-terminated */
void decode_buffer(struct decoding *d, uint64_t addr, uint64_t len, size_t max);
/* struct iovec[COUNT]; the bytes at most BYTES in all. */
void decode_iovec(struct decoding *d, uint64_t addr, uint64_t count, uint64_t bytes);
/* The name of exactly this value, or NULL. */
const char *flag_name(const struct flag_set *set, uint64_t value);
/* Fields and bits of SET, and the rest in hexadecimal. */
void decode_flags(struct text *out, const struct flag_set *set, uint64_t value);
/* The name of a 32-bit value, or the number with the set's prefix. */
void decode_enum(struct text *out, const struct flag_set *set, uint64_t value);
/* open's flags, whose values are an architecture's own, and whether they give a new file its mode. */
void decode_open_flags(const struct decoding *d, const struct flag_set *set, uint64_t flags);
bool decode_open_creates(uint64_t flags);
void decode_uid(struct text *out, uint32_t id);
void decode_mode_type(struct text *out, uint32_t mode);
void decode_dev(struct text *out, uint64_t major, uint64_t minor);
void decode_signal(struct text *out, int signo);
void decode_sigset(struct text *out, uint64_t mask);
/* The mask at ADDR of SIZE bytes (at most 8 count). */
void decode_sigset_at(struct decoding *d, uint64_t addr, uint64_t size);
void decode_siginfo_of(struct text *out, const uint8_t info[SIGINFO_SIZE], unsigned word);
void decode_wait_status(struct text *out, uint32_t status);
void decode_sockaddr(struct text *out, const uint8_t *addr, size_t len);

/* --- kinds of args.def ---------------------------------------------------------------------------------------------- */

typedef void arg_printer(struct decoding *d, uint64_t value);

/* decode_args.c */
arg_printer arg_int, arg_uint, arg_long, arg_ulong, arg_hex, arg_octal, arg_ptr, arg_off64, arg_u64, arg_dirfd, arg_uid;
arg_printer arg_uid16, arg_fd_pair, arg_id, arg_id16, arg_ids, arg_flags, arg_enum, arg_path, arg_string, arg_string_out;
arg_printer arg_stringv, arg_environ, arg_buf, arg_buf_hex, arg_iovec, arg_int_at, arg_ulong_at, arg_offset, arg_offset64;
arg_printer arg_clone_flags, arg_futex_op, arg_shm_flags;
/* decode_structs.c */
arg_printer arg_dev, arg_mode_type, arg_stat, arg_stat64, arg_oldstat, arg_statx, arg_statfs, arg_statfs64, arg_utsname;
arg_printer arg_sysinfo, arg_cap_header, arg_cap_data, arg_sched_attr, arg_cpuset, arg_open_how, arg_clone_args;
arg_printer arg_futex_waitv, arg_sembuf, arg_mq_attr, arg_pollfd, arg_fdset, arg_epoll_event, arg_epoll_events, arg_dirents;
arg_printer arg_file_handle, arg_user_desc;
/* decode_time.c */
arg_printer arg_timespec, arg_timespec64, arg_timespec_out, arg_timespec64_out, arg_timespec_pair, arg_timespec64_pair;
arg_printer arg_timeval, arg_timeval_pair, arg_itimerval, arg_itimerspec, arg_itimerspec64, arg_utimbuf, arg_time, arg_timex;
arg_printer arg_tms, arg_rusage, arg_rlimit, arg_rlimit64;
/* decode_signals.c */
arg_printer arg_signal, arg_sigset, arg_pselect_sigmask, arg_sigaction, arg_sigstack, arg_siginfo, arg_sigevent;
arg_printer arg_wait_status;
/* decode_sockets.c */
arg_printer arg_sockaddr_in, arg_sockaddr_out, arg_socklen, arg_msghdr, arg_mmsghdr, arg_sockopt, arg_sockopt_level;
arg_printer arg_sockopt_name, arg_socket_type, arg_socket_proto;
/* decode_requests.c */
arg_printer arg_ioctl_request, arg_ioctl, arg_fcntl, arg_prctl, arg_seccomp;

/* What the entry keeps for arguments that the kernel overwrites: a number, UINT64_MAX where it cannot be read. */
uint64_t keep_int(const struct decoding *d, uint64_t addr);
uint64_t keep_offset(const struct decoding *d, uint64_t addr);
uint64_t keep_offset64(const struct decoding *d, uint64_t addr);
uint64_t keep_msghdr(const struct decoding *d, uint64_t addr);

/* Whether the request that comes with such an argument makes the kernel fill it. */
bool ioctl_fills(const struct decoding *d);
bool fcntl_fills(const struct decoding *d);
bool prctl_fills(const struct decoding *d);
/* How many arguments the command or option uses. */
unsigned fcntl_args(uint32_t command);
unsigned prctl_args(uint32_t option);
unsigned ioctl_args(uint32_t request);
/* Names of what fcntl's result holds: ` (flags O_RDWR)`. */
void fcntl_result(const struct decoding *d);

/* The calls whose argument is a block of another call's (i386 socketcall, ipc, mmap, select): INNER becomes that call and is
   returned; CALL itself where it is no such call or its block cannot be read. */
const struct call *decode_unwrap(const struct call *call, struct call *inner);

/* What follows the result of poll and select: ` ([{fd=3, revents=POLLIN}])`. */
void decode_poll_result(struct decoding *d);
void decode_select_result(struct decoding *d);

#endif
