/*
 * fake_guest.h - the guest_*() functions of arch/call.h over a byte array, for tests of handlers and of the decoder.
 *
 * Memory is [base, base + len); everything else is unmapped. What guest_window_put() is given can be read back at the
 * address it told. A test sets up a struct guest, points call.guest at it, and looks at the counters afterwards.
 */
#ifndef INTERPOSE_TESTS_FAKE_GUEST_H
#define INTERPOSE_TESTS_FAKE_GUEST_H

#include <stddef.h>
#include <stdint.h>

#include "arch/call.h"

struct guest {
	uint64_t base;              /* address of bytes[0] */
	const unsigned char *bytes;
	size_t len;
	uint64_t window_base, window_len; /* 0, 0: no window */
	unsigned char slot[4096];   /* what was put into the window, from window_base on */
	size_t slot_used;
	unsigned reads;             /* guest_read() and guest_read_string() so far */
	unsigned settled;           /* guest_affinity_settle() so far */
	pid_t settled_pid;          /* of the last */
};

/* A call of the architecture with these arguments on GUEST. */
struct call fake_call(struct guest *guest, const struct arch *arch, int id, const uint64_t args[6]);

#endif
