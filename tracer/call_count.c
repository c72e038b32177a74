/* call_count.c - the table of --count. */
#include <stdlib.h>

#include "syscalls/row.h"
#include "tracer/call_count.h"

void call_counts_add(struct call_counts *counts, int call_id, uint64_t ns, int64_t result)
{
	struct call_count *count = &counts->of[row_of(call_id) ? call_id : CALL_COUNT];

	count->calls++;
	count->errors += result < 0 && result >= -4095;
	count->ns += ns;
}

static int by_time(const void *a, const void *b)
{
	const struct call_count *x = *(const struct call_count *const *)a, *y = *(const struct call_count *const *)b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->calls < y->calls ? 1 : x->calls > y->calls ? -1 : 0;
}

static void print_line(FILE *out, double share, const struct call_count *count, const char *name)
{
	fprintf(out, "%6.2f %11.6f %11.0f %9llu ", share, count->ns / 1e9, count->calls ? count->ns / 1e3 / count->calls : 0,
	        (unsigned long long)count->calls);
	if (count->errors)
		fprintf(out, "%9llu %s\n", (unsigned long long)count->errors, name);
	else
		fprintf(out, "%9s %s\n", "", name);
}

void call_counts_print(const struct call_counts *counts, FILE *out)
{
	static const char rule[] = "------ ----------- ----------- --------- --------- ----------------\n";
	const struct call_count *order[CALL_COUNT + 1];
	struct call_count total = { 0, 0, 0 };
	size_t n = 0;

	for (int i = 0; i <= CALL_COUNT; i++) {
		if (!counts->of[i].calls)
			continue;
		order[n++] = &counts->of[i];
		total.calls += counts->of[i].calls;
		total.errors += counts->of[i].errors;
		total.ns += counts->of[i].ns;
	}
	qsort(order, n, sizeof(order[0]), by_time);
	fprintf(out, "%% time     seconds  usecs/call     calls    errors syscall\n%s", rule);
	for (size_t i = 0; i < n; i++) {
		const struct row *row = row_of(order[i] - counts->of);

		print_line(out, total.ns ? 100.0 * order[i]->ns / total.ns : 0, order[i], row ? row->name : "(unknown)");
	}
	fprintf(out, "%s", rule);
	print_line(out, n ? 100.0 : 0, &total, "total");
}
