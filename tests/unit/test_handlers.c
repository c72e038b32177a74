/* Handlers on a guest that is an array of bytes. */
#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "syscalls/handlers/handlers.h"
#include "syscalls/row.h"
#include "tests/unit/fake_guest.h"

enum { BASE = 0x10000 };
static const uint64_t W = 0x7f0000205000, WLEN = 0x4000; /* the window */

/* The row's handler on a call with these arguments. */
static struct verdict handle(struct guest *guest, enum arch_id arch, int id, const uint64_t args[6])
{
	struct call call = fake_call(guest, arch_all[arch], id, args);
	struct verdict verdict = row_handler(&row_table[id])(NULL, &call);

	if (verdict.kind == VERDICT_FORWARD)
		ck_assert_msg(!call.read_memory, "forwarded after a look at memory");
	return verdict;
}

/* --- window -------------------------------------------------------------------------------------------------------- */

static bool refused(enum arch_id arch, int id, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	struct guest guest = { .window_base = W, .window_len = WLEN };
	struct verdict verdict = handle(&guest, arch, id, (const uint64_t[6]){ a, b, c, d, e });

	if (verdict.kind == VERDICT_FORWARD)
		return false;
	ck_assert_int_eq((int)verdict.kind, VERDICT_ANSWER);
	ck_assert_int_eq(verdict.value, -EPERM);
	ck_assert_ptr_nonnull(verdict.reason);
	return true;
}

START_TEST(window_ranges)
{
	static const int calls[] = { CALL_munmap, CALL_mprotect, CALL_pkey_mprotect, CALL_madvise };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int id = calls[i];

		ck_assert(refused(ARCH_X86_64, id, W, WLEN, 0, 0, 0));
		ck_assert(refused(ARCH_X86_64, id, W, 1, 0, 0, 0));
		ck_assert(refused(ARCH_X86_64, id, W + WLEN - 1, 1, 0, 0, 0));
		ck_assert(refused(ARCH_X86_64, id, W - 0x1000, 0x1001, 0, 0, 0));
		ck_assert(refused(ARCH_X86_64, id, 0, W + 1, 0, 0, 0));
		ck_assert(refused(ARCH_X86_64, id, 0, UINT64_MAX, 0, 0, 0));
		ck_assert(refused(ARCH_X86_64, id, W + 0x1000, UINT64_MAX, 0, 0, 0)); /* the sum wraps */
		ck_assert(refused(ARCH_X86_64, id, W - 0x1000, UINT64_MAX - 0x1000, 0, 0, 0));
		ck_assert(!refused(ARCH_X86_64, id, W - 0x1000, 0x1000, 0, 0, 0));
		ck_assert(!refused(ARCH_X86_64, id, W + WLEN, 0x1000, 0, 0, 0));
		ck_assert(!refused(ARCH_X86_64, id, W + WLEN, UINT64_MAX, 0, 0, 0));
		ck_assert(!refused(ARCH_X86_64, id, 0, W, 0, 0, 0));
		ck_assert(!refused(ARCH_X86_64, id, W, 0, 0, 0, 0));
		/* A tag in the ignored bits of the address: aarch64, x86's LAM57, riscv64 with 16 bits. */
		ck_assert(refused(ARCH_AARCH64, id, W | 0xab00000000000000, 1, 0, 0, 0));
		ck_assert(refused(ARCH_X86_64, id, W | 0x7e00000000000000, 1, 0, 0, 0));
		ck_assert(refused(ARCH_RISCV64, id, W | 0xffff000000000000, 1, 0, 0, 0));
	}
}
END_TEST

/* Where addresses have 52 bits or more, the tag is above them. */
START_TEST(window_high)
{
	struct guest guest = { .window_base = 0x4000000205000, .window_len = WLEN };
	const uint64_t args[6] = { 0x5500000000000000 | 0x4000000205000, 1 };

	ck_assert_int_eq(handle(&guest, ARCH_AARCH64, CALL_munmap, args).value, -EPERM);
}
END_TEST

START_TEST(window_none)
{
	struct guest guest = { 0 };
	struct verdict verdict = handle(&guest, ARCH_X86_64, CALL_munmap, (const uint64_t[6]){ 0, UINT64_MAX });

	ck_assert_int_eq((int)verdict.kind, VERDICT_FORWARD);
}
END_TEST

START_TEST(window_mmap)
{
	const uint64_t fixed = 0x10, anonymous = 0x20, noreplace = 0x100000, huge = 0x40000, mib = 1 << 20;
	const uint64_t near = W & ~(2 * mib - 1);

	ck_assert(refused(ARCH_X86_64, CALL_mmap, W, 1, 0, fixed, 0));
	ck_assert(refused(ARCH_X86_64, CALL_mmap, W, 1, 0, fixed | noreplace, 0));
	ck_assert(refused(ARCH_I386, CALL_mmap2, W, 1, 0, fixed | anonymous, 0));
	ck_assert(!refused(ARCH_X86_64, CALL_mmap, W, 1, 0, noreplace, 0));
	ck_assert(!refused(ARCH_X86_64, CALL_mmap, W, 1, 0, anonymous, 0)); /* a hint */
	ck_assert(!refused(ARCH_X86_64, CALL_mmap, W - 0x1000, 0x1000, 0, fixed | anonymous, 0));
	/* Huge pages round the length up, by the flag or because the file is of hugetlbfs. */
	ck_assert(refused(ARCH_X86_64, CALL_mmap, near, 0x1000, 0, fixed | anonymous | huge, 0));
	ck_assert(refused(ARCH_X86_64, CALL_mmap, near, 0x1000, 0, fixed, 3));
	ck_assert(!refused(ARCH_X86_64, CALL_mmap, near, 0x1000, 0, fixed | anonymous, 0));
	ck_assert(!refused(ARCH_X86_64, CALL_mmap, W - 0x1000, 0x1000, 0, fixed, 3)); /* no huge page can begin there */
	ck_assert(!refused(ARCH_X86_64, CALL_mmap, near + 2 * mib, 0x1000, 0, fixed, 3));
	/* Pages of 1 GiB. */
	ck_assert(refused(ARCH_X86_64, CALL_mmap, 0x7f0000000000 - (1ULL << 30), (1ULL << 30) + 1, 0, fixed, 3));
	ck_assert(refused(ARCH_AARCH64, CALL_mmap, 0x7f0000000000, 0x800, 0, fixed, 3));
	ck_assert(!refused(ARCH_AARCH64, CALL_mmap, 0x400000000000, 0x800, 0, fixed, 3)); /* pages have at most 16 GiB */
	ck_assert(refused(ARCH_X86_64, CALL_mmap, 0, UINT64_MAX, 0, fixed, 3));
}
END_TEST

START_TEST(window_mremap)
{
	const uint64_t maymove = 1, fixed = 2, dontunmap = 4;

	ck_assert(refused(ARCH_X86_64, CALL_mremap, W, 0x1000, 0x2000, maymove, 0));
	ck_assert(refused(ARCH_X86_64, CALL_mremap, W, 0, 0x2000, maymove, 0));
	ck_assert(refused(ARCH_X86_64, CALL_mremap, 0x5000, 0x1000, 0x1000, maymove | fixed, W));
	ck_assert(refused(ARCH_X86_64, CALL_mremap, 0x5000, 0x1000, 0x2000, maymove | fixed, W - 0x1000));
	ck_assert(refused(ARCH_X86_64, CALL_mremap, 0x5000, 0x1000, 0x1000, maymove | dontunmap, W));
	ck_assert(refused(ARCH_X86_64, CALL_mremap, 0x5000, 0x1000, UINT64_MAX, maymove | fixed, 0x9000));
	ck_assert(refused(ARCH_X86_64, CALL_mremap, W & ~0x1fffffULL, 0x1000, 0x1000, maymove, 0)); /* a huge page */
	ck_assert(!refused(ARCH_X86_64, CALL_mremap, 0x5000, 0x1000, 0x1000, maymove, W)); /* not fixed: not looked at */
	ck_assert(!refused(ARCH_X86_64, CALL_mremap, 0x5000, 0x1000, 0x1000, maymove | fixed, W - 0x1000));
	ck_assert(!refused(ARCH_X86_64, CALL_mremap, W + WLEN, 0x1000, 0x2000, maymove, 0));
}
END_TEST

START_TEST(window_shmat)
{
	const uint64_t remap = 040000, read_only = 010000, shmat = 21, version = 1 << 16;

	ck_assert(refused(ARCH_X86_64, CALL_shmat, 1, W, remap, 0, 0));
	ck_assert(refused(ARCH_X86_64, CALL_shmat, 1, 0x1000, remap | read_only, 0, 0));
	ck_assert(!refused(ARCH_X86_64, CALL_shmat, 1, W, read_only, 0, 0));
	ck_assert(refused(ARCH_I386, CALL_ipc, shmat, 1, remap, 0, W));
	ck_assert(refused(ARCH_I386, CALL_ipc, shmat | version, 1, remap, 0, W));
	ck_assert(!refused(ARCH_I386, CALL_ipc, shmat, 1, 0, 0, W));
	ck_assert(!refused(ARCH_I386, CALL_ipc, 22, 1, remap, 0, W));
}
END_TEST

static struct verdict old_mmap(struct guest *guest, uint32_t addr, uint32_t len, uint32_t flags, uint32_t offset)
{
	const uint32_t block[6] = { addr, len, 3, flags, 7, offset };

	guest->base = BASE;
	guest->bytes = (const unsigned char *)block;
	guest->len = sizeof(block);
	guest->window_base = 0x40000000;
	guest->window_len = 0x4000;
	return handle(guest, ARCH_I386, CALL_old_mmap, (const uint64_t[6]){ BASE });
}

START_TEST(window_old_mmap)
{
	const uint64_t want[6] = { 0x50000000, 0x2000, 3, 0x12, 7, 0x1234 };
	struct guest guest = { 0 };
	struct verdict verdict = old_mmap(&guest, 0x50000000, 0x2000, 0x12, 0x1234000);

	ck_assert_int_eq((int)verdict.kind, VERDICT_REWRITE);
	ck_assert_int_eq(verdict.id, CALL_mmap2);
	ck_assert_mem_eq(verdict.args, want, sizeof(want));
	ck_assert_uint_eq(guest.reads, 1);
	ck_assert_int_eq(old_mmap(&guest, 0x40001000, 0x1000, 0x12, 0).value, -EPERM);
	ck_assert_int_eq((int)old_mmap(&guest, 0x40001000, 0x1000, 0x02, 0).kind, VERDICT_REWRITE);
	ck_assert_int_eq(old_mmap(&guest, 0x50000000, 0x1000, 0x02, 0x10).value, -EINVAL);
	ck_assert_int_eq(handle(&guest, ARCH_I386, CALL_old_mmap, (const uint64_t[6]){ BASE + 4 }).value, -EFAULT);
}
END_TEST

/* --- clocks -------------------------------------------------------------------------------------------------------- */

/* CALL on the struct at BASE. */
static struct verdict adjust(struct guest *guest, enum arch_id arch, int id, uint64_t clock, const void *data, size_t len)
{
	guest->base = BASE;
	guest->bytes = data;
	guest->len = len;
	guest->reads = 0;
	if (id == CALL_adjtimex)
		return handle(guest, arch, id, (const uint64_t[6]){ BASE });
	return handle(guest, arch, id, (const uint64_t[6]){ clock, BASE });
}

static void check_answer(const struct verdict *verdict, const struct guest *guest, size_t len)
{
	ck_assert_int_eq((int)verdict->kind, VERDICT_ANSWER);
	ck_assert_int_ge(verdict->value, 0);
	ck_assert_int_le(verdict->value, TIME_ERROR);
	ck_assert_ptr_null(verdict->reason);
	ck_assert_uint_eq(verdict->writes, 1);
	ck_assert_uint_eq(verdict->write[0].addr, BASE);
	ck_assert_uint_eq(verdict->write[0].len, len);
	ck_assert_uint_eq(guest->reads, 1);
}

START_TEST(clock_read)
{
	static const struct {
		enum arch_id arch;
		int id;
	} calls[] = { { ARCH_X86_64, CALL_adjtimex }, { ARCH_X86_64, CALL_clock_adjtime }, { ARCH_AARCH64, CALL_adjtimex },
		      { ARCH_I386, CALL_clock_adjtime64 } };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		static const unsigned modes[] = { 0, ADJ_OFFSET_SS_READ };

		for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
			struct timex asked = { .modes = modes[m] }, got;
			struct guest guest = { 0 };
			struct verdict verdict = adjust(&guest, calls[i].arch, calls[i].id, CLOCK_REALTIME, &asked,
							sizeof(asked));

			check_answer(&verdict, &guest, sizeof(got));
			memcpy(&got, verdict.write[0].data, sizeof(got));
			ck_assert_int_ge(got.time.tv_sec, time(NULL) - 60);
			ck_assert_int_ge(got.tick, 9000);
			ck_assert_int_le(got.tick, 11000);
		}
	}
}
END_TEST

START_TEST(clock_read_narrow)
{
	static const int calls[] = { CALL_adjtimex, CALL_clock_adjtime };
	struct timex wide = { 0 };

	ck_assert_int_ge(adjtimex(&wide), 0);
	for (size_t i = 0; i < 2; i++) {
		int32_t asked[32] = { 0 }, got[32];
		struct guest guest = { 0 };
		struct verdict verdict = adjust(&guest, ARCH_I386, calls[i], CLOCK_REALTIME, asked, sizeof(asked));

		check_answer(&verdict, &guest, sizeof(got));
		memcpy(got, verdict.write[0].data, sizeof(got));
		ck_assert_int_eq(got[0], 0);
		ck_assert_int_eq(got[2], (int32_t)wide.freq);
		ck_assert_int_eq(got[5], wide.status);
		ck_assert_int_eq(got[6], (int32_t)wide.constant);
		ck_assert_int_eq(got[7], (int32_t)wide.precision);
		ck_assert_int_eq(got[8], (int32_t)wide.tolerance);
		ck_assert_int_ge(got[9], (int32_t)wide.time.tv_sec);
		ck_assert_int_le(got[9], (int32_t)wide.time.tv_sec + 60);
		ck_assert_int_eq(got[11], (int32_t)wide.tick);
		ck_assert_int_eq(got[20], wide.tai);
		ck_assert_int_eq(got[21], 0);
	}
}
END_TEST

START_TEST(clock_set)
{
	static const unsigned modes[] = { ADJ_OFFSET, ADJ_FREQUENCY, ADJ_SETOFFSET, ADJ_OFFSET_SINGLESHOT, ADJ_TICK,
					  0xffffffff };

	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		struct timex wide = { .modes = modes[m], .tick = 10000 };
		uint32_t narrow[32] = { modes[m] };
		struct guest guest = { 0 };
		struct verdict verdict = adjust(&guest, ARCH_X86_64, CALL_adjtimex, 0, &wide, sizeof(wide));

		ck_assert_int_eq(verdict.value, -EPERM);
		ck_assert_ptr_nonnull(verdict.reason);
		ck_assert_uint_eq(verdict.writes, 0);
		verdict = adjust(&guest, ARCH_I386, CALL_clock_adjtime, CLOCK_REALTIME, narrow, sizeof(narrow));
		ck_assert_int_eq(verdict.value, -EPERM);
		ck_assert_uint_eq(verdict.writes, 0);
	}
}
END_TEST

START_TEST(clock_errors)
{
	struct timex reads = { 0 }, sets = { .modes = ADJ_OFFSET };
	struct guest guest = { 0 };
	const uint64_t device = ~3U << 3 | 3, cpu = ~1U << 3 | 2;

	/* As the kernel has it, whether the clock is read or set. */
	ck_assert_int_eq(adjust(&guest, ARCH_X86_64, CALL_clock_adjtime, 99, &reads, sizeof(reads)).value, -EINVAL);
	ck_assert_int_eq(adjust(&guest, ARCH_X86_64, CALL_clock_adjtime, 99, &sets, sizeof(sets)).value, -EINVAL);
	ck_assert_int_eq(adjust(&guest, ARCH_X86_64, CALL_clock_adjtime, CLOCK_MONOTONIC, &sets, sizeof(sets)).value,
			 -EOPNOTSUPP);
	ck_assert_int_eq(adjust(&guest, ARCH_X86_64, CALL_clock_adjtime, cpu, &reads, sizeof(reads)).value, -EOPNOTSUPP);
	/* Descriptor 3 is another file in the supervisor. */
	ck_assert_int_eq(adjust(&guest, ARCH_X86_64, CALL_clock_adjtime, device, &reads, sizeof(reads)).value, -EPERM);
	ck_assert_int_eq(adjust(&guest, ARCH_X86_64, CALL_adjtimex, 0, &reads, sizeof(reads) - 1).value, -EFAULT);
	ck_assert_int_eq(adjust(&guest, ARCH_I386, CALL_adjtimex, 0, &reads, 127).value, -EFAULT);
	ck_assert_int_eq(adjust(&guest, ARCH_I386, CALL_clock_adjtime64, 0, &reads, sizeof(reads) - 1).value, -EFAULT);
	/* The upper half of the register is nothing to the kernel. */
	ck_assert_int_ge(adjust(&guest, ARCH_X86_64, CALL_clock_adjtime, 5ULL << 32, &reads, sizeof(reads)).value, 0);
}
END_TEST

/* --- affinity ------------------------------------------------------------------------------------------------------ */

START_TEST(affinity)
{
	static const int calls[] = { CALL_sched_setaffinity, CALL_sched_getaffinity };

	for (size_t i = 0; i < 2; i++) {
		struct guest guest = { 0 };
		const uint64_t args[6] = { 0x7700000000 + 42, 8, BASE };
		struct verdict verdict = handle(&guest, ARCH_X86_64, calls[i], args);

		ck_assert_int_eq((int)verdict.kind, VERDICT_FORWARD);
		ck_assert_uint_eq(guest.settled, 1);
		ck_assert_int_eq(guest.settled_pid, 42);
		ck_assert_uint_eq(guest.reads, 0);
	}
}
END_TEST

Suite *suite_handlers(void);
Suite *suite_handlers(void)
{
	Suite *suite = suite_create("handlers");
	TCase *tcase = tcase_create("handlers");

	tcase_add_test(tcase, window_ranges);
	tcase_add_test(tcase, window_high);
	tcase_add_test(tcase, window_none);
	tcase_add_test(tcase, window_mmap);
	tcase_add_test(tcase, window_mremap);
	tcase_add_test(tcase, window_shmat);
	tcase_add_test(tcase, window_old_mmap);
	tcase_add_test(tcase, clock_read);
	tcase_add_test(tcase, clock_read_narrow);
	tcase_add_test(tcase, clock_set);
	tcase_add_test(tcase, clock_errors);
	tcase_add_test(tcase, affinity);
	suite_add_tcase(suite, tcase);
	return suite;
}
