/* refusal.c - what was refused, told once. */
#include <stdlib.h>

#include "syscalls/decode.h"
#include "syscalls/row.h"
#include "tracer/diagnose.h"
#include "tracer/message.h"
#include "tracer/refusal.h"

static struct refusal *find(struct refusals *refusals, const struct call *call, const char *why)
{
	for (unsigned i = 0; i < refusals->kinds; i++) {
		struct refusal *kind = &refusals->kind[i];

		if (kind->call_id == call->id && kind->why == why && (call->id != CALL_NONE || kind->nr == call->nr))
			return kind;
	}
	return NULL;
}

static char *explain_call(const struct call *call)
{
	const struct diagnose_where where = { .title = NULL, .instructions = true };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	diagnose(out, "    ", call->tid, &where);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

void refusals_add(struct refusals *refusals, const struct call *call, int error, const char *why, bool explain)
{
	struct refusal *kind = find(refusals, call, why);

	if (kind) {
		kind->times++;
		return;
	}
	if (refusals->kinds == REFUSAL_KINDS) {
		refusals->others++;
		return;
	}
	kind = &refusals->kind[refusals->kinds++];
	*kind = (struct refusal){ .call_id = call->id, .nr = call->nr, .error = error, .why = why, .times = 1, .tgid = call->tgid };
	message_comm(call->tid, kind->comm);
	if (explain)
		kind->report = explain_call(call);
}

static void print_kind(const struct refusal *kind, FILE *out)
{
	const struct row *row = row_of(kind->call_id);
	const char *error = decode_errno_name(kind->error);

	if (row)
		fprintf(out, "  %s", row->name);
	else
		fprintf(out, "  call number %u", kind->nr);
	fprintf(out, " (%llu time%s, %s[%d])\n", (unsigned long long)kind->times, kind->times == 1 ? "" : "s", kind->comm, kind->tgid);
	fprintf(out, "    rule      %s\n    answer    %s\n", kind->why, error ? error : "an error");
	if (kind->report)
		fprintf(out, "%s", kind->report);
}

void refusals_print(const struct refusals *refusals, FILE *out)
{
	if (!refusals->kinds)
		return;
	fprintf(out, "interpose: refused %u operation%s\n", refusals->kinds, refusals->kinds == 1 ? "" : "s");
	for (unsigned i = 0; i < refusals->kinds; i++)
		print_kind(&refusals->kind[i], out);
	if (refusals->others)
		fprintf(out, "  and other calls, %llu times\n", (unsigned long long)refusals->others);
}

void refusals_free(struct refusals *refusals)
{
	for (unsigned i = 0; i < refusals->kinds; i++)
		free(refusals->kind[i].report);
	refusals->kinds = 0;
}
