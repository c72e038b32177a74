/* The seccomp program, against the rows it was made from and against the kernel. */
#include <check.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syscalls/filter.h"
#include "syscalls/row.h"

enum { STOP = SECCOMP_RET_TRACE | FILTER_DATA };

static const struct filter_options host = { .arch = arch_host };

static struct sock_fprog make(struct filter_options options)
{
	struct sock_fprog program;

	if (!options.arch_count)
		options.arch_count = arch_host_count;
	ck_assert_int_eq(filter_make(&program, &options), 0);
	return program;
}

/* --- the rows as the oracle ---------------------------------------------------------------------------------------- */

/* filter.h's table of actions, with the decision of row_decide(). */
static uint32_t expected(const struct filter_options *options, const struct arch *arch, uint32_t nr, const uint64_t args[6])
{
	int id = arch_call_of(arch, nr);
	struct row_decision decision;

	if (id == CALL_NONE)
		return options->tell || options->stop_unknown ? STOP : SECCOMP_RET_ERRNO | ENOSYS;
	if (options->stop && options->stop[id])
		return STOP;
	decision = row_decide(row_of(id), args);
	switch (decision.disposition) {
	case ROW_PASS:
		return SECCOMP_RET_ALLOW;
	case ROW_GUARD:
		return options->guard ? STOP : SECCOMP_RET_ALLOW;
	case ROW_REFUSE:
		return options->tell ? STOP : SECCOMP_RET_ERRNO | (uint32_t)-decision.error;
	case ROW_ABSENT:
		return SECCOMP_RET_ERRNO | ENOSYS;
	case ROW_HANDLE:
		break;
	}
	return STOP;
}

static void check_run(const struct sock_fprog *program, const struct filter_options *options, const struct arch *arch,
		      uint32_t nr, const uint64_t args[6])
{
	int64_t got = filter_run(program, arch->audit, nr, args);

	ck_assert_msg(got == expected(options, arch, nr, args), "%s %u(%llx, %llx, %llx): %llx, not %x", arch->name, nr,
		      (unsigned long long)args[0], (unsigned long long)args[1], (unsigned long long)args[2],
		      (unsigned long long)got, expected(options, arch, nr, args));
}

/* Every register alone with every single bit, and with each value that a rule names and its neighbours. */
static void check_ruled(const struct sock_fprog *program, const struct filter_options *options, const struct arch *arch,
			uint32_t nr, const struct row *row)
{
	for (unsigned arg = 0; arg < 6; arg++) {
		for (unsigned bit = 0; bit < 64; bit++) {
			uint64_t args[6] = { 0 };

			args[arg] = 1ULL << bit;
			check_run(program, options, arch, nr, args);
			args[arg] = ~args[arg];
			check_run(program, options, arch, nr, args);
		}
		for (const struct arg_rule *rule = row_rules(row); rule->disposition; rule++) {
			for (int step = -1; step <= 1; step++) {
				uint64_t args[6] = { 0 };

				args[arg] = rule->value + (uint32_t)step;
				check_run(program, options, arch, nr, args);
				args[arg] |= 0xabcd000100000000;
				check_run(program, options, arch, nr, args);
			}
		}
	}
}

static void check_number(const struct sock_fprog *program, const struct filter_options *options, const struct arch *arch,
			 uint32_t nr)
{
	const struct row *row = row_of(arch_call_of(arch, nr));

	check_run(program, options, arch, nr, (const uint64_t[6]){ 0 });
	check_run(program, options, arch, nr, (const uint64_t[6]){ -1, -1, -1, -1, -1, -1 });
	if (row && row_rules(row))
		check_ruled(program, options, arch, nr, row);
}

static void check_numbers(const struct sock_fprog *program, const struct filter_options *options, const struct arch *arch)
{
	static const uint32_t edges[] = { 0x3fffffff, 0x40000000, 0x40000001, 0x40000000 + 101, 0x400001ff, 0x40000200,
					  0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };

	for (uint32_t nr = 0; nr <= 1000; nr++)
		check_number(program, options, arch, nr);
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		check_number(program, options, arch, edges[i]);
}

/* Which calls stop: none, all, and every third. */
static const bool *stop_set(int which)
{
	static bool all[CALL_COUNT], third[CALL_COUNT];

	for (int id = 0; id < CALL_COUNT; id++) {
		all[id] = true;
		third[id] = id % 3 == 0;
	}
	return which == 0 ? NULL : which == 1 ? all : third;
}

/* _i: the three booleans in the low bits, the set of stops above. */
START_TEST(as_the_rows)
{
	static const enum arch_id all[] = { ARCH_RISCV64, ARCH_I386, ARCH_AARCH64, ARCH_X86_64 };
	struct filter_options options = { .arch = all, .arch_count = ARCH_COUNT, .guard = _i & 1, .tell = _i & 2,
					  .stop_unknown = _i & 4, .stop = stop_set(_i >> 3) };
	struct sock_fprog program = make(options);

	for (int a = 0; a < ARCH_COUNT; a++)
		check_numbers(&program, &options, arch_all[a]);
	ck_assert_int_eq(filter_run(&program, 0, 0, (const uint64_t[6]){ 0 }), SECCOMP_RET_KILL_PROCESS);
	filter_free(&program);
	for (int a = 0; a < ARCH_COUNT; a++) {
		options.arch = &all[a];
		options.arch_count = 1;
		program = make(options);
		check_numbers(&program, &options, arch_all[all[a]]);
		filter_free(&program);
	}
}
END_TEST

START_TEST(other_architectures)
{
	const enum arch_id one = ARCH_AARCH64;
	struct sock_fprog program = make((struct filter_options){ .arch = &one, .arch_count = 1 });
	const uint64_t args[6] = { 0 };

	for (int a = 0; a < ARCH_COUNT; a++)
		for (uint32_t nr = 0; nr < 500; nr++)
			ck_assert((filter_run(&program, arch_all[a]->audit, nr, args) == SECCOMP_RET_KILL_PROCESS) ==
				  (a != ARCH_AARCH64));
	ck_assert_int_eq(filter_run(&program, 0xffffffff, 1, args), SECCOMP_RET_KILL_PROCESS);
	filter_free(&program);
}
END_TEST

/* --- what the kernel makes of it ----------------------------------------------------------------------------------- */

/*
 * As seccomp_is_const_allow() of kernel/seccomp.c: whether the number is allowed by arch and number alone. *STEPS is how
 * many instructions ran.
 */
static bool const_allow(const struct sock_fprog *program, uint32_t audit, uint32_t nr, unsigned *steps)
{
	uint32_t a = 0;

	*steps = 0;
	for (unsigned pc = 0; pc < program->len; pc++) {
		const struct sock_filter *step = &program->filter[pc];
		bool taken;

		++*steps;
		switch (step->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (step->k == offsetof(struct seccomp_data, nr))
				a = nr;
			else if (step->k == offsetof(struct seccomp_data, arch))
				a = audit;
			else
				return false;
			continue;
		case BPF_RET | BPF_K:
			return step->k == SECCOMP_RET_ALLOW;
		case BPF_JMP | BPF_JA:
			pc += step->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = a == step->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = a >= step->k;
			break;
		default:
			ck_abort_msg("instruction %#x", step->code);
		}
		pc += taken ? step->jt : step->jf;
	}
	ck_abort_msg("ran off the end");
}

START_TEST(always_allowed)
{
	struct sock_fprog program = make(host);

	for (unsigned i = 0; i < arch_host_count; i++) {
		const struct arch *arch = arch_all[arch_host[i]];
		unsigned constant = 0, steps;

		for (uint32_t nr = 0; nr < arch->nr_count; nr++) {
			const struct row *row = row_of(arch_call_of(arch, nr));
			bool pass = row && (row->disposition == ROW_PASS || row->disposition == ROW_GUARD) && !row_rules(row);

			ck_assert_msg(const_allow(&program, arch->audit, nr, &steps) == pass, "%s %u", arch->name, nr);
			/* Loads, the architecture, a search among fewer than 256 ranges with a long jump now and then. */
			ck_assert_msg(steps <= 2 + 2 * arch_host_count + 8 + 4, "%s %u: %u steps", arch->name, nr, steps);
			constant += pass;
		}
		ck_assert_uint_ge(constant, 200);
	}
	filter_free(&program);
}
END_TEST

START_TEST(size)
{
	struct sock_fprog program = make(host);
	struct sock_fprog stopping = make((struct filter_options){ .arch = arch_host, .stop = stop_set(2) });

	/* A filter that a guest adds shares 32,768 instructions with ours: leave nearly all to it. */
	ck_assert_uint_lt(program.len, 1000);
	ck_assert_uint_lt(stopping.len, BPF_MAXINSNS);
	filter_free(&program);
	/* Where everything stops there is nothing to search: arch, two jumps, nr and one answer for each. */
	program = make((struct filter_options){ .arch = arch_host, .stop = stop_set(1), .stop_unknown = true });
	ck_assert_uint_eq(program.len, 2 + 4 * arch_host_count);
	filter_free(&program);
	filter_free(&stopping);
	ck_assert_ptr_null(program.filter);
}
END_TEST

START_TEST(too_long)
{
	static const enum arch_id many[16] = { ARCH_X86_64, ARCH_I386 }; /* the others are 0 too: ARCH_X86_64 */
	struct filter_options options = { .arch = many, .arch_count = 16, .stop = stop_set(2) };
	struct sock_fprog program;

	ck_assert_int_eq(filter_make(&program, &options), -E2BIG);
	ck_assert_ptr_null(program.filter);
}
END_TEST

START_TEST(run_is_strict)
{
	struct sock_filter odd[] = { { BPF_ALU | BPF_ADD | BPF_K, 0, 0, 1 }, { BPF_RET | BPF_K, 0, 0, 0 } };
	struct sock_filter far[] = { { BPF_JMP | BPF_JA, 0, 0, 0xffffffff }, { BPF_RET | BPF_K, 0, 0, 0 } };
	struct sock_filter beyond[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 64 }, { BPF_RET | BPF_K, 0, 0, 0 } };
	struct sock_filter bits[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 0 }, { BPF_ALU | BPF_AND | BPF_K, 0, 0, 6 },
				      { BPF_JMP | BPF_JGT | BPF_K, 0, 1, 4 }, { BPF_RET | BPF_K, 0, 0, 7 },
				      { BPF_RET | BPF_K, 0, 0, 8 } };
	const uint64_t args[6] = { 0 };

	ck_assert_int_eq(filter_run(&(struct sock_fprog){ 2, odd }, 0, 0, args), -EINVAL);
	ck_assert_int_eq(filter_run(&(struct sock_fprog){ 2, far }, 0, 0, args), -EINVAL);
	ck_assert_int_eq(filter_run(&(struct sock_fprog){ 2, beyond }, 0, 0, args), -EINVAL);
	ck_assert_int_eq(filter_run(&(struct sock_fprog){ 5, bits }, 0, 15, args), 7);
	ck_assert_int_eq(filter_run(&(struct sock_fprog){ 5, bits }, 0, 13, args), 8);
}
END_TEST

/* --- installed for real -------------------------------------------------------------------------------------------- */

#define FAIL_UNLESS(what) do { if (!(what)) _exit(__LINE__ & 0x7f); } while (0)

static bool fails_with(long result, int error)
{
	return result == -1 && errno == error;
}

/* Exits with 0 when the calls were answered as the rows say; no tracer, so a call that stops is ENOSYS. */
static void installed_child(const struct sock_fprog *program)
{
	pid_t parent = getppid();

	FAIL_UNLESS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	FAIL_UNLESS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) == 0);
	FAIL_UNLESS(syscall(SYS_getppid) == parent);
	FAIL_UNLESS(fails_with(syscall(425, 1, NULL), ENOSYS)); /* io_uring_setup */
	FAIL_UNLESS(fails_with(syscall(435, NULL, 0), ENOSYS)); /* clone3 */
	FAIL_UNLESS(fails_with(syscall(SYS_ptrace, 0, 0, 0, 0), EPERM));
	FAIL_UNLESS(fails_with(syscall(SYS_unshare, CLONE_NEWUSER), EPERM));
	FAIL_UNLESS(syscall(SYS_unshare, CLONE_FILES) == 0);
	FAIL_UNLESS(fails_with(syscall(SYS_prctl, PR_SET_MM, PR_SET_MM_START_BRK, 0, 0, 0), EPERM));
	FAIL_UNLESS(prctl(PR_GET_DUMPABLE) >= 0);
	FAIL_UNLESS(fails_with(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1 << 3, program), EBUSY));
	FAIL_UNLESS(fails_with(syscall(SYS_sched_getaffinity, 0, 0, NULL), ENOSYS)); /* stops */
	FAIL_UNLESS(fails_with(syscall(1000), ENOSYS));
	FAIL_UNLESS(fails_with(syscall(-1), ENOSYS));
#if defined(__x86_64__)
	FAIL_UNLESS(fails_with(syscall(0x40000000 + 39), ENOSYS)); /* x32 getpid */
	FAIL_UNLESS(fails_with(syscall(512), ENOSYS)); /* x32's own numbers without the bit */
#endif
	_exit(0);
}

START_TEST(installed)
{
	struct sock_fprog program = make(host);
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0)
		installed_child(&program);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x: line %d modulo 128", status,
		      WEXITSTATUS(status));
	filter_free(&program);
}
END_TEST

#if defined(__x86_64__)
/* The program of an architecture that is not this one ends the process at its first call. */
START_TEST(installed_elsewhere)
{
	const enum arch_id other = ARCH_AARCH64;
	struct sock_fprog program = make((struct filter_options){ .arch = &other, .arch_count = 1 });
	pid_t child = fork();
	int status;

	if (child == 0) {
		FAIL_UNLESS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		FAIL_UNLESS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	filter_free(&program);
}
END_TEST
#endif

Suite *suite_filter(void);
Suite *suite_filter(void)
{
	Suite *suite = suite_create("filter");
	TCase *tcase = tcase_create("program");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, as_the_rows, 0, 24);
	tcase_add_test(tcase, other_architectures);
	tcase_add_test(tcase, always_allowed);
	tcase_add_test(tcase, size);
	tcase_add_test(tcase, too_long);
	tcase_add_test(tcase, run_is_strict);
	tcase_add_test(tcase, installed);
#if defined(__x86_64__)
	tcase_add_test(tcase, installed_elsewhere);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}
