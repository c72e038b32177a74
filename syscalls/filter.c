/*
 * filter.c - the seccomp program.
 *
 * One section for each architecture: a binary search over the ranges of numbers that are answered alike, so that a call
 * costs about seven comparisons. Only calls with arg_rules load an argument, at the very end: the kernel finds out once,
 * when the program is installed, which numbers are allowed whatever the arguments are, and does not run the program for
 * them (seccomp_is_const_allow() in kernel/seccomp.c follows loads of arch and nr, jumps and returns of a constant).
 *
 * The program is made twice by the same functions, the first time only to count: classic BPF jumps forward by a distance
 * that must be known when the jump is written.
 */
#include "syscalls/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "syscalls/row.h"

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LOW_HALF = 0 };
#else
enum { LOW_HALF = 4 };
#endif

enum {
	LOAD = BPF_LD | BPF_W | BPF_ABS,
	RETURN = BPF_RET | BPF_K,
	JUMP = BPF_JMP | BPF_JA,
	IF_EQUAL = BPF_JMP | BPF_JEQ | BPF_K,
	IF_GREATER = BPF_JMP | BPF_JGT | BPF_K,
	IF_NOT_LESS = BPF_JMP | BPF_JGE | BPF_K,
	IF_BITS = BPF_JMP | BPF_JSET | BPF_K,
	AND = BPF_ALU | BPF_AND | BPF_K
};

struct program {
	const struct filter_options *options;
	struct sock_filter *code; /* NULL: only count */
	unsigned len;
};

/* What is done with a number. */
struct action {
	uint32_t value;        /* SECCOMP_RET_*; for a call with rules, where none of them matches */
	const struct row *row; /* NULL unless arguments decide */
	int id;                /* of that row */
};

/* The numbers from `first` to the next range's. */
struct range {
	uint32_t first;
	struct action action;
};

static void program_add(struct program *program, uint16_t code, uint8_t yes, uint8_t no, uint32_t k)
{
	if (program->code)
		program->code[program->len] = (struct sock_filter){ code, yes, no, k };
	program->len++;
}

/* --- what to answer ------------------------------------------------------------------------------------------------ */

/* ERROR is positive. */
static uint32_t action_value(const struct filter_options *options, int id, enum disposition disposition, int error)
{
	const uint32_t stop = SECCOMP_RET_TRACE | FILTER_DATA;

	if (options->stop && options->stop[id])
		return stop;
	switch (disposition) {
	case ROW_PASS:
		return SECCOMP_RET_ALLOW;
	case ROW_GUARD:
		return options->guard ? stop : SECCOMP_RET_ALLOW;
	case ROW_REFUSE:
		return options->tell ? stop : SECCOMP_RET_ERRNO | (uint32_t)error;
	case ROW_ABSENT:
		return SECCOMP_RET_ERRNO | ENOSYS;
	case ROW_HANDLE:
		break;
	}
	return stop;
}

static struct action action_of(const struct filter_options *options, int id)
{
	const struct row *row = row_of(id);
	struct action action = { 0 };

	if (!row) {
		bool stops = options->tell || options->stop_unknown;

		action.value = stops ? SECCOMP_RET_TRACE | FILTER_DATA : SECCOMP_RET_ERRNO | ENOSYS;
		return action;
	}
	action.value = action_value(options, id, row->disposition, row->error);
	for (const struct arg_rule *rule = row_rules(row); rule && rule->disposition; rule++) {
		if (action_value(options, id, rule->disposition, rule->error) != action.value) {
			action.row = row;
			action.id = id;
		}
	}
	return action;
}

/* --- the program --------------------------------------------------------------------------------------------------- */

/* The end of the search: a constant, or what the arguments say. */
static void program_action(struct program *program, const struct action *action)
{
	int loaded = -1;

	for (const struct arg_rule *rule = action->row ? row_rules(action->row) : NULL; rule && rule->disposition; rule++) {
		uint32_t value = action_value(program->options, action->id, rule->disposition, rule->error);

		if (loaded != rule->arg)
			program_add(program, LOAD, 0, 0, offsetof(struct seccomp_data, args) + rule->arg * 8u + LOW_HALF);
		loaded = rule->arg;
		if (rule->test == RULE_TYPE) {
			program_add(program, AND, 0, 0, 0xff00);
			program_add(program, IF_EQUAL, 0, 1, rule->value << 8);
			loaded = -1;
		} else {
			program_add(program, rule->test == RULE_EQUAL ? IF_EQUAL : IF_BITS, 0, 1, rule->value);
		}
		program_add(program, RETURN, 0, 0, value);
	}
	program_add(program, RETURN, 0, 0, action->value);
}

/* COUNT is at least 1. Conditional jumps reach 255 instructions, JA any number. */
static void program_search(struct program *program, const struct range *ranges, unsigned count)
{
	unsigned half = count / 2;
	struct program lower = { .options = program->options };

	if (count == 1) {
		program_action(program, &ranges->action);
		return;
	}
	program_search(&lower, ranges, half);
	if (lower.len <= UINT8_MAX) {
		program_add(program, IF_NOT_LESS, (uint8_t)lower.len, 0, ranges[half].first);
	} else {
		program_add(program, IF_NOT_LESS, 0, 1, ranges[half].first);
		program_add(program, JUMP, 0, 0, lower.len);
	}
	program_search(program, ranges, half);
	program_search(program, ranges + half, count - half);
}

static bool action_same(const struct action *a, const struct action *b)
{
	return !a->row && !b->row && a->value == b->value;
}

/*
 * Fills RANGES (nr_count + 1 of them fit) with the maximal ranges of equal action, the unknown numbers up to 0xffffffff
 * last. How many. Those of a reserved ABI (nr_reserved_bits) are above all that are known.
 */
static unsigned ranges_make(struct range *ranges, const struct arch *arch, const struct filter_options *options)
{
	unsigned count = 0;

	for (uint32_t nr = 0; nr <= arch->nr_count; nr++) {
		struct action action = action_of(options, arch_call_of(arch, nr));

		if (count > 0 && action_same(&ranges[count - 1].action, &action))
			continue;
		ranges[count++] = (struct range){ nr, action };
	}
	return count;
}

/* 0 or -ENOMEM. */
static int program_section(struct program *program, const struct arch *arch)
{
	struct program section = { .options = program->options };
	struct range *ranges = calloc(arch->nr_count + 1, sizeof(*ranges));
	unsigned count;

	if (!ranges)
		return -ENOMEM;
	count = ranges_make(ranges, arch, program->options);
	program_search(&section, ranges, count);
	program_add(program, IF_EQUAL, 1, 0, arch->audit);
	program_add(program, JUMP, 0, 0, section.len + 1);
	program_add(program, LOAD, 0, 0, offsetof(struct seccomp_data, nr));
	program_search(program, ranges, count);
	free(ranges);
	return 0;
}

/* 0 or -ENOMEM. */
static int program_make(struct program *program)
{
	int error = 0;

	program_add(program, LOAD, 0, 0, offsetof(struct seccomp_data, arch));
	for (unsigned i = 0; i < program->options->arch_count && !error; i++)
		error = program_section(program, arch_all[program->options->arch[i]]);
	program_add(program, RETURN, 0, 0, SECCOMP_RET_KILL_PROCESS);
	return error;
}

int filter_make(struct sock_fprog *fprog, const struct filter_options *options)
{
	struct program program = { .options = options };
	int error = program_make(&program);

	*fprog = (struct sock_fprog){ 0 };
	if (error)
		return error;
	if (program.len > BPF_MAXINSNS)
		return -E2BIG;
	program.code = calloc(program.len, sizeof(*program.code));
	if (!program.code)
		return -ENOMEM;
	program.len = 0;
	error = program_make(&program);
	if (error) {
		free(program.code);
		return error;
	}
	*fprog = (struct sock_fprog){ (unsigned short)program.len, program.code };
	return 0;
}

void filter_free(struct sock_fprog *fprog)
{
	free(fprog->filter);
	*fprog = (struct sock_fprog){ 0 };
}

/* --- running it ---------------------------------------------------------------------------------------------------- */

/* Whether the conditional jump CODE is taken. -EINVAL for one that is not known. */
static int jump_taken(uint16_t code, uint32_t a, uint32_t k)
{
	switch (code) {
	case IF_EQUAL:
		return a == k;
	case IF_GREATER:
		return a > k;
	case IF_NOT_LESS:
		return a >= k;
	case IF_BITS:
		return (a & k) != 0;
	default:
		return -EINVAL;
	}
}

int64_t filter_run(const struct sock_fprog *fprog, uint32_t audit, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = audit };
	uint32_t a = 0;
	int taken;

	memcpy(data.args, args, sizeof(data.args));
	for (uint64_t pc = 0; pc < fprog->len; pc++) {
		const struct sock_filter *step = &fprog->filter[pc];

		switch (step->code) {
		case LOAD:
			if (step->k % 4 || step->k >= sizeof(data))
				return -EINVAL;
			memcpy(&a, (const char *)&data + step->k, sizeof(a));
			break;
		case AND:
			a &= step->k;
			break;
		case JUMP:
			pc += step->k;
			break;
		case RETURN:
			return step->k;
		default:
			taken = jump_taken(step->code, a, step->k);
			if (taken < 0)
				return taken;
			pc += taken ? step->jt : step->jf;
		}
	}
	return -EINVAL; /* ran off the end, which the kernel rejects at installation */
}
