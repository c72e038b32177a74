/*
 * clock.c - adjtimex(2) and clock_adjtime(2): reading is answered from the supervisor's own call, setting is refused.
 *
 * What struct timex asks for is in guest memory, so the guest's own call is never resumed: it could have changed by then.
 */
#include "syscalls/handlers/handlers.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "syscalls/ids.h"

/* struct old_timex32 of <linux/time32.h>: what adjtimex and clock_adjtime of a 32-bit ABI take. */
struct timex32 {
	uint32_t modes;
	int32_t offset, freq, maxerror, esterror, status, constant, precision, tolerance;
	int32_t sec, usec, tick, ppsfreq, jitter, shift, stabil, jitcnt, calcnt, errcnt, stbcnt, tai;
	int32_t padding[11];
};
_Static_assert(sizeof(struct timex32) == 128, "as the kernel has it");

/* struct __kernel_timex, of 64-bit ABIs and of clock_adjtime64, is the host's own. */
_Static_assert(sizeof(struct timex) == 208, "a 64-bit host");

/* Every field goes both ways: the kernel copies the whole struct in and out too. */
#define TIMEX_FIELDS(F) \
	F(offset) F(freq) F(maxerror) F(esterror) F(constant) F(precision) F(tolerance) F(tick) F(ppsfreq) F(jitter) \
	F(stabil) F(jitcnt) F(calcnt) F(errcnt) F(stbcnt) F(status) F(shift) F(tai)

static void timex_widen(struct timex *wide, const struct timex32 *narrow)
{
	memset(wide, 0, sizeof(*wide));
	wide->modes = narrow->modes;
#define FIELD(name) wide->name = narrow->name;
	TIMEX_FIELDS(FIELD)
#undef FIELD
	wide->time.tv_sec = narrow->sec;
	wide->time.tv_usec = narrow->usec;
}

/* Cuts to 32 bits as put_old_timex32() does: the seconds wrap in 2038 there as well. */
static void timex_narrow(struct timex32 *narrow, const struct timex *wide)
{
	memset(narrow, 0, sizeof(*narrow));
	narrow->modes = wide->modes;
#define FIELD(name) narrow->name = (int32_t)wide->name;
	TIMEX_FIELDS(FIELD)
#undef FIELD
	narrow->sec = (int32_t)wide->time.tv_sec;
	narrow->usec = (int32_t)wide->time.tv_usec;
}

/* Reads the guest's struct at ADDR into WIDE. 0 or -EFAULT. SIZE is what it takes on this ABI. */
static int timex_read(struct call *call, uint64_t addr, struct timex *wide, size_t size)
{
	struct timex32 narrow;
	int error;

	if (size == sizeof(*wide))
		return guest_read(call, addr, wide, sizeof(*wide));
	error = guest_read(call, addr, &narrow, sizeof(narrow));
	if (!error)
		timex_widen(wide, &narrow);
	return error;
}

/* The answer to a guest that asked CLOCK for the state in WIDE. */
static struct verdict timex_answer(clockid_t clock, const struct timex *asked, uint64_t addr, size_t size)
{
	static _Thread_local struct timex wide; /* the verdict points into these until the next call */
	static _Thread_local struct timex32 narrow;
	struct verdict verdict;
	bool reads = asked->modes == 0 || asked->modes == ADJ_OFFSET_SS_READ; /* the latter by adjtime(3) of a NULL delta */
	int state;

	wide = *asked;
	if (!reads)
		wide.modes = 0; /* the clock may be none: the kernel finds that before it looks for the privilege */
	state = clock_adjtime(clock, &wide);
	if (state < 0)
		return verdict_answer(-errno);
	if (!reads)
		return verdict_refuse(-EPERM, "the guest may not set the machine's clock");
	if (size == sizeof(narrow))
		timex_narrow(&narrow, &wide);
	verdict = verdict_answer(state);
	verdict.writes = 1;
	verdict.write[0] = (struct verdict_write){ addr, size == sizeof(narrow) ? (void *)&narrow : &wide, size };
	return verdict;
}

static size_t timex_size(const struct call *call)
{
	return call->arch->word == 8 || call->id == CALL_clock_adjtime64 ? sizeof(struct timex) : sizeof(struct timex32);
}

struct verdict sys_adjtimex(void *context, struct call *call)
{
	size_t size = timex_size(call);
	struct timex asked;
	int error = timex_read(call, call->args[0], &asked, size);

	(void)context;
	return error ? verdict_answer(error) : timex_answer(CLOCK_REALTIME, &asked, call->args[0], size);
}

/*
 * A negative clock id names a descriptor or a process of the caller (clock_gettime(2), FD_TO_CLOCKID): in the supervisor it
 * would name another one. kernel/time/posix-timers.c: CPU clocks cannot be adjusted.
 */
static struct verdict clock_of_caller(uint32_t clock)
{
	if ((clock & 7) == 3)
		return verdict_refuse(-EPERM, "the guest may not use the clock of a device");
	return verdict_answer(-EOPNOTSUPP);
}

struct verdict sys_clock_adjtime(void *context, struct call *call)
{
	size_t size = timex_size(call);
	clockid_t clock = (clockid_t)(uint32_t)call->args[0]; /* clockid_t is int to the kernel as well */
	struct timex asked;
	int error = timex_read(call, call->args[1], &asked, size);

	(void)context;
	if (error)
		return verdict_answer(error);
	return clock < 0 ? clock_of_caller((uint32_t)clock) : timex_answer(clock, &asked, call->args[1], size);
}
