/*
 * decode_time.c - times, timers, limits and usage.
 *
 * The structs of the ABI's long are pairs of words; their 64-bit siblings (struct __kernel_timespec) are pairs of 8 bytes on
 * every ABI, where a 32-bit caller's padding above tv_nsec counts for nothing (kernel/time/time.c, get_timespec64()).
 */
#include "syscalls/decode_impl.h"

enum {
	RLIMIT_UNIT = 1024,
	UTIMES_NOW = 0x3fffffff, /* UTIME_NOW and UTIME_OMIT of linux/stat.h */
	UTIMES_OMIT = 0x3ffffffe
};

static void field_dec(struct text *out, const char *name, int64_t value)
{
	text_lit(out, ", ");
	text_add(out, name);
	text_char(out, '=');
	text_dec(out, value);
}

static void time_text(struct text *out, int64_t sec, int64_t fraction, const char *unit)
{
	text_lit(out, "{tv_sec=");
	text_dec(out, sec);
	text_lit(out, ", tv_");
	text_add(out, unit);
	text_char(out, '=');
	text_dec(out, fraction);
	text_char(out, '}');
}

static int64_t fraction_of(const struct decoding *d, const uint8_t *p, unsigned word)
{
	int64_t fraction = load_sword(p + word, word);

	return decode_compat(d) ? (int32_t)fraction : fraction;
}

static void time_at(struct decoding *d, const uint8_t *p, unsigned word, const char *unit)
{
	time_text(d->out, load_sword(p, word), fraction_of(d, p, word), unit);
}

static void time_print(struct decoding *d, uint64_t addr, unsigned word, const char *unit)
{
	uint8_t buf[16];

	if (decode_fetch(d, addr, buf, 2 * (size_t)word))
		time_at(d, buf, word, unit);
}

void arg_timespec(struct decoding *d, uint64_t value)
{
	time_print(d, value, decode_word(d), "nsec");
}

void arg_timespec64(struct decoding *d, uint64_t value)
{
	time_print(d, value, 8, "nsec");
}

void arg_timeval(struct decoding *d, uint64_t value)
{
	time_print(d, value, decode_word(d), "usec");
}

/* What a sleep has left is written only when a signal ended it (nanosleep(2)); a timer's old value only when it was set. */
static bool rest_is_filled(const struct decoding *d)
{
	enum { INTERRUPTED = -4, RESTART_FIRST = -512, RESTART_LAST = -516 };

	return d->result == INTERRUPTED || (d->result <= RESTART_FIRST && d->result >= RESTART_LAST);
}

static bool is_sleep(const struct decoding *d)
{
	return !strncmp(d->row->name, "nanosleep", 9) || !strncmp(d->row->name, "clock_nanosleep", 15);
}

static void timespec_out(struct decoding *d, uint64_t value, unsigned word)
{
	if (is_sleep(d) ? rest_is_filled(d) : !decode_failed(d))
		time_print(d, value, word, "nsec");
	else
		decode_address(d->out, value);
}

void arg_timespec_out(struct decoding *d, uint64_t value)
{
	timespec_out(d, value, decode_word(d));
}

void arg_timespec64_out(struct decoding *d, uint64_t value)
{
	timespec_out(d, value, 8);
}

/* Two times side by side; utimensat's have two special values. */
static void time_pair(struct decoding *d, uint64_t addr, unsigned word, const char *unit)
{
	bool special = unit[0] == 'n';
	uint8_t buf[32];

	if (!decode_fetch(d, addr, buf, 4 * (size_t)word))
		return;
	text_char(d->out, '[');
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *p = buf + 2 * (size_t)word * i;
		int64_t fraction = fraction_of(d, p, word);

		if (i)
			text_lit(d->out, ", ");
		if (special && fraction == UTIMES_NOW)
			text_lit(d->out, "UTIME_NOW");
		else if (special && fraction == UTIMES_OMIT)
			text_lit(d->out, "UTIME_OMIT");
		else
			time_at(d, p, word, unit);
	}
	text_char(d->out, ']');
}

void arg_timespec_pair(struct decoding *d, uint64_t value)
{
	time_pair(d, value, decode_word(d), "nsec");
}

void arg_timespec64_pair(struct decoding *d, uint64_t value)
{
	time_pair(d, value, 8, "nsec");
}

void arg_timeval_pair(struct decoding *d, uint64_t value)
{
	time_pair(d, value, decode_word(d), "usec");
}

static void timer_print(struct decoding *d, uint64_t addr, unsigned word, const char *unit)
{
	uint8_t buf[32];

	if (!decode_fetch(d, addr, buf, 4 * (size_t)word))
		return;
	text_lit(d->out, "{it_interval=");
	time_at(d, buf, word, unit);
	text_lit(d->out, ", it_value=");
	time_at(d, buf + 2 * (size_t)word, word, unit);
	text_char(d->out, '}');
}

void arg_itimerval(struct decoding *d, uint64_t value)
{
	timer_print(d, value, decode_word(d), "usec");
}

void arg_itimerspec(struct decoding *d, uint64_t value)
{
	timer_print(d, value, decode_word(d), "nsec");
}

void arg_itimerspec64(struct decoding *d, uint64_t value)
{
	timer_print(d, value, 8, "nsec");
}

void arg_utimbuf(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[16];

	if (!decode_fetch(d, value, buf, 2 * (size_t)word))
		return;
	text_lit(d->out, "{actime=");
	text_dec(d->out, load_sword(buf, word));
	field_dec(d->out, "modtime", load_sword(buf + word, word));
	text_char(d->out, '}');
}

void arg_time(struct decoding *d, uint64_t value)
{
	uint8_t buf[8];

	if (!decode_fetch(d, value, buf, decode_word(d)))
		return;
	text_char(d->out, '[');
	text_dec(d->out, load_sword(buf, decode_word(d)));
	text_char(d->out, ']');
}

/* struct timex is longs after `modes` and around `status`; clock_adjtime64 has the 64-bit layout on every ABI. */
void arg_timex(struct decoding *d, uint64_t value)
{
	unsigned word = d->call->id == CALL_clock_adjtime64 ? 8 : decode_word(d);
	uint8_t buf[72];

	if (!decode_fetch(d, value, buf, 9 * (size_t)word))
		return;
	text_lit(d->out, "{modes=");
	decode_flags(d->out, &adjtimex_modes, load32(buf));
	field_dec(d->out, "offset", load_sword(buf + word, word));
	field_dec(d->out, "freq", load_sword(buf + 2 * word, word));
	field_dec(d->out, "maxerror", load_sword(buf + 3 * word, word));
	field_dec(d->out, "esterror", load_sword(buf + 4 * word, word));
	text_lit(d->out, ", status=");
	decode_flags(d->out, &adjtimex_status, load32(buf + 5 * word));
	field_dec(d->out, "constant", load_sword(buf + 6 * word, word));
	field_dec(d->out, "precision", load_sword(buf + 7 * word, word));
	field_dec(d->out, "tolerance", load_sword(buf + 8 * word, word));
	text_lit(d->out, ", ...}");
}

void arg_tms(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[32];

	if (!decode_fetch(d, value, buf, 4 * (size_t)word))
		return;
	text_lit(d->out, "{tms_utime=");
	text_dec(d->out, load_sword(buf, word));
	field_dec(d->out, "tms_stime", load_sword(buf + word, word));
	field_dec(d->out, "tms_cutime", load_sword(buf + 2 * word, word));
	field_dec(d->out, "tms_cstime", load_sword(buf + 3 * word, word));
	text_char(d->out, '}');
}

void arg_rusage(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[32];

	if (!decode_fetch(d, value, buf, 4 * (size_t)word))
		return;
	text_lit(d->out, "{ru_utime=");
	time_at(d, buf, word, "usec");
	text_lit(d->out, ", ru_stime=");
	time_at(d, buf + 2 * word, word, "usec");
	text_lit(d->out, ", ...}");
}

/* 8192*1024 where it divides, as people know stack limits. */
static void limit_print(struct text *out, uint64_t limit, unsigned word, const char *infinity)
{
	if (limit == (word == 4 ? UINT32_MAX : UINT64_MAX)) {
		text_add(out, infinity);
	} else if (limit > RLIMIT_UNIT && limit % RLIMIT_UNIT == 0) {
		text_udec(out, limit / RLIMIT_UNIT);
		text_lit(out, "*1024");
	} else {
		text_udec(out, limit);
	}
}

static void rlimit_print(struct decoding *d, uint64_t addr, unsigned word, const char *infinity)
{
	uint8_t buf[16];

	if (!decode_fetch(d, addr, buf, 2 * (size_t)word))
		return;
	text_lit(d->out, "{rlim_cur=");
	limit_print(d->out, load_word(buf, word), word, infinity);
	text_lit(d->out, ", rlim_max=");
	limit_print(d->out, load_word(buf + word, word), word, infinity);
	text_char(d->out, '}');
}

void arg_rlimit(struct decoding *d, uint64_t value)
{
	rlimit_print(d, value, decode_word(d), "RLIM_INFINITY");
}

void arg_rlimit64(struct decoding *d, uint64_t value)
{
	rlimit_print(d, value, 8, "RLIM64_INFINITY");
}
