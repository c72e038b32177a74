#include "syscalls/support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "syscalls/decode.h"
#include "syscalls/row.h"

static const char head[] =
	"# System calls\n\n"
	"Made by `make docs` from `syscalls/rows.def`; a test fails when it is out of date.\n\n"
	"Every call of Linux up to 6.18 is classified on every architecture. A number that no row knows is answered with\n"
	"ENOSYS, x32 numbers among them; a call by an architecture that is not the host's ends the program.\n"
	"In this version no call is decided by a path or a socket address: those that take one pass.\n\n"
	"| what is done | meaning |\n"
	"|---|---|\n"
	"| pass | the kernel runs it with no stop |\n"
	"| handle | it stops, and the supervisor decides or does it |\n"
	"| guard | pass; on a kernel without `mseal` (before 6.10) it stops, and is refused where it could take away the "
	"memory that the supervisor keeps in the program |\n"
	"| refuse E: why | answered with the error E, and the refusal is told |\n"
	"| absent | answered with ENOSYS, as by a kernel that lacks it; programs fall back on others |\n\n";

static const char *const notes[CALL_COUNT] = {
#define ROW(name, disposition, classes, note, ...) [CALL_##name] = note,
#include "syscalls/rows.def"
#undef ROW
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(row_table[*(const int *)a].name, row_table[*(const int *)b].name);
}

static void write_disposition(FILE *out, enum disposition disposition, int error, const char *why)
{
	static const char *const names[] = {
		[ROW_PASS] = "pass", [ROW_HANDLE] = "handle", [ROW_GUARD] = "guard", [ROW_ABSENT] = "absent"
	};

	if (disposition == ROW_REFUSE)
		fprintf(out, "refuse %s: %s", decode_errno_name(error), why);
	else
		fputs(names[disposition], out);
}

/* One condition in words: `argument 1 has a bit of 0x8`. Arguments are counted from 1, as people do. */
static void write_rule(FILE *out, const struct arg_rule *rule)
{
	fprintf(out, "; argument %d %s %#x: ", rule->arg + 1, rule->test == RULE_EQUAL ? "is" : "has a bit of", rule->value);
	write_disposition(out, rule->disposition, rule->error, rule->why);
}

static void write_row(FILE *out, int id)
{
	const struct row *row = &row_table[id];

	fprintf(out, "| %s |", row->name);
	for (int i = 0; i < ARCH_COUNT; i++) {
		int nr = arch_nr_of(arch_all[i], id);

		if (nr < 0)
			fputs(" |", out);
		else
			fprintf(out, " %d |", nr);
	}
	fputc(' ', out);
	write_disposition(out, row->disposition, row->error, row_why(row));
	for (const struct arg_rule *rule = row_rules(row); rule && rule->disposition; rule++)
		write_rule(out, rule);
	fprintf(out, " |%s%s |\n", notes[id][0] ? " " : "", notes[id]);
}

int support_write(FILE *out)
{
	int order[CALL_COUNT];

	for (int i = 0; i < CALL_COUNT; i++)
		order[i] = i;
	qsort(order, CALL_COUNT, sizeof(order[0]), compare_names);
	fputs(head, out);
	fputs("| call |", out);
	for (int i = 0; i < ARCH_COUNT; i++)
		fprintf(out, " %s |", arch_all[i]->name);
	fputs(" what is done | limitation |\n|---|", out);
	for (int i = 0; i < ARCH_COUNT; i++)
		fputs("---|", out);
	fputs("---|---|\n", out);
	for (int i = 0; i < CALL_COUNT; i++)
		write_row(out, order[i]);
	return ferror(out) ? -EIO : 0;
}
