/*
 * flags.h - names of the values that arguments take.
 *
 * A set belongs to rows (flag_sets.def lists all, rows.def refers to them); what is in each is the decoder's (flags.c).
 */
#ifndef INTERPOSE_SYSCALLS_FLAGS_H
#define INTERPOSE_SYSCALLS_FLAGS_H

#include <stdint.h>

struct flag_value {
	uint64_t value;
	const char *name;
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

#endif
