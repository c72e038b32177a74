/*
 * arch.h - what the rest of the program may ask of an architecture.
 *
 * An architecture here is one system-call ABI: x86_64 and i386 are two, although one kernel serves both. Its description
 * (struct arch) is plain data and is compiled on every host, so that all tables are tested everywhere. Only the host's own
 * folder provides registers (arch/regs.h).
 */
#ifndef INTERPOSE_ARCH_ARCH_H
#define INTERPOSE_ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

enum arch_id {
	ARCH_X86_64,
	ARCH_I386,
	ARCH_AARCH64,
	ARCH_RISCV64,
	ARCH_COUNT
};

struct abi; /* arch/abi.h */

/* The number is not one of this architecture's. */
#define CALL_NONE (-1)

struct arch {
	enum arch_id id;
	const char *name;           /* as uname -m says it; "i386" for all of i386 to i686 */
	uint32_t audit;             /* AUDIT_ARCH_*, what seccomp_data.arch and PTRACE_GET_SYSCALL_INFO hold */
	uint8_t word;               /* bytes of a long and of a pointer: 4 or 8 */
	bool clone_backwards;       /* clone(2): tls comes before ctid (CONFIG_CLONE_BACKWARDS) */
	uint32_t nr_reserved_bits;  /* a number with one of these bits set is of an ABI that we refuse (x32) */
	const struct abi *abi;      /* layouts of what calls write */
	const int16_t *call_of_nr;  /* call id of each number, CALL_NONE where there is none */
	uint32_t nr_count;          /* length of call_of_nr */
};

/* Indexed by enum arch_id; never NULL. */
extern const struct arch *const arch_all[ARCH_COUNT];

/* The architecture whose AUDIT_ARCH_* value this is, or NULL. */
const struct arch *arch_by_audit(uint32_t audit);

/* Call id of a number, CALL_NONE for one that no row knows. */
static inline int arch_call_of(const struct arch *arch, uint64_t nr)
{
	return nr < arch->nr_count ? arch->call_of_nr[nr] : CALL_NONE;
}

/* The number of a call on this architecture, or -1 where it has none. Linear: for set-up, not for stops. */
int arch_nr_of(const struct arch *arch, int call_id);

/* How many architectures this build can supervise, and which: the host's own first. */
extern const enum arch_id arch_host[];
extern const unsigned arch_host_count;

#endif
