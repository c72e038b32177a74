/*
 * flags.h - names of the values that arguments take.
 *
 * A set belongs to rows (flag_sets.def lists all, rows.def refers to them); what is in each is the decoder's (flags.c).
 */
#ifndef INTERPOSE_SYSCALLS_FLAGS_H
#define INTERPOSE_SYSCALLS_FLAGS_H

#include <stdint.h>

enum { FLAG_NAME_SIZE = 56 };

/* The name is in place and not pointed to: a table without pointers is not relocated at each start of the program. */
struct flag_value {
	uint64_t value;
	char name[FLAG_NAME_SIZE];
	uint64_t mask; /* 0 for a plain bit; else the field of which `value` is one alternative */
};

struct flag_set {
	const char *prefix_for_unknown; /* told with a number that has no name: "MADV_???" */
	const struct flag_value *values;
	unsigned count;
};

#define FLAG_SET(name, doc) extern const struct flag_set name;
#include "syscalls/flag_sets.def"
#undef FLAG_SET

/* What rows name a set by. */
enum flag_set_id {
	SET_NONE,
#define FLAG_SET(name, doc) SET_##name,
#include "syscalls/flag_sets.def"
#undef FLAG_SET
	SET_COUNT
};
_Static_assert(SET_COUNT <= 256, "struct arg has 8 bits for it");

/* NULL for SET_NONE. */
const struct flag_set *flag_set_of(enum flag_set_id id);

#endif
