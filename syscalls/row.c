#include "syscalls/row.h"

#include <errno.h>
#include <string.h>

#include "syscalls/flags.h"
#include "syscalls/handlers/handlers.h"
#include "syscalls/rules.h"

enum handler_id {
	NO_HANDLER,
#define HANDLER(function) ID_##function,
	HANDLERS(HANDLER)
#undef HANDLER
};

enum rules_id {
	NO_RULES,
#define LIST(list) ID_##list,
	RULE_LISTS(LIST)
#undef LIST
};

/* The words of rows.def. */
#define PASS .disposition = ROW_PASS
#define ABSENT .disposition = ROW_ABSENT
#define HANDLE(function) .disposition = ROW_HANDLE, .handler = ID_##function
#define REWRITE(function) .disposition = ROW_HANDLE, .handler = ID_##function, .rewrites = true
#define CASES(function) .disposition = ROW_PASS, .handler = ID_##function
#define GUARD(function) .disposition = ROW_GUARD, .handler = ID_##function
#define REFUSE(e, text) .disposition = ROW_REFUSE, .error = e, .why = text
#define RULED(what, list) what, .rules = ID_##list

#define F CLASS_FILE
#define D CLASS_DESC
#define N CLASS_NET
#define P CLASS_PROCESS
#define S CLASS_SIGNAL
#define I CLASS_IPC
#define M CLASS_MEMORY
#define C CLASS_CREDS
#define T CLASS_STAT
#define K CLASS_CLOCK
#define PURE CLASS_PURE

#define A(k) { .kind = ARG_##k }
#define AR(k, related) { .kind = ARG_##k, .ref = related }
#define AS(k, names) { .kind = ARG_##k, .set = SET_##names }

const struct row row_table[CALL_COUNT] = {
#define ROW(id, what, bits, text, ...) \
	[CALL_##id] = { .name = #id, what, .classes = bits, .args = { __VA_ARGS__ } },
#include "syscalls/rows.def"
#undef ROW
};

call_handler *row_handler(const struct row *row)
{
	static call_handler *const handlers[] = {
#define HANDLER(function) [ID_##function] = function,
		HANDLERS(HANDLER)
#undef HANDLER
	};

	return handlers[row->handler];
}

const struct arg_rule *row_rules(const struct row *row)
{
	static const struct arg_rule *const lists[] = {
#define LIST(list) [ID_##list] = list,
		RULE_LISTS(LIST)
#undef LIST
	};

	return lists[row->rules];
}

int row_by_name(const char *name)
{
	for (int id = 0; id < CALL_COUNT; id++)
		if (!strcmp(row_table[id].name, name))
			return id;
	return CALL_NONE;
}

bool row_any_rewrites(void)
{
	for (int id = 0; id < CALL_COUNT; id++)
		if (row_table[id].rewrites)
			return true;
	return false;
}

static bool rule_matches(const struct arg_rule *rule, const uint64_t args[6])
{
	uint32_t low = (uint32_t)args[rule->arg];

	if (rule->test == RULE_TYPE)
		return (low >> 8 & 0xff) == rule->value;
	return rule->test == RULE_EQUAL ? low == rule->value : (low & rule->value) != 0;
}

struct row_decision row_decide(const struct row *row, const uint64_t args[6])
{
	if (!row)
		return (struct row_decision){ ROW_REFUSE, -ENOSYS, "no such system call is known" };
	for (const struct arg_rule *rule = row_rules(row); rule && rule->disposition; rule++)
		if (rule_matches(rule, args))
			return (struct row_decision){ rule->disposition, -rule->error, rule->why };
	return (struct row_decision){ row->disposition, -row->error, row_why(row) };
}
