#include "arch/arch.h"

#include <linux/audit.h>

#include "syscalls/ids.h"

extern const struct arch arch_aarch64;
extern const struct abi abi_aarch64;

static const int16_t call_of_nr[] = {
#define NR(number, name) [number] = CALL_##name,
#define GAP(first, last) [first ... last] = CALL_NONE,
#include "arch/aarch64/numbers.def"
#undef NR
#undef GAP
};

const struct arch arch_aarch64 = {
	.id = ARCH_AARCH64,
	.name = "aarch64",
	.audit = AUDIT_ARCH_AARCH64,
	.word = 8,
	.clone_backwards = true,
	.nr_reserved_bits = 0,
	.abi = &abi_aarch64,
	.call_of_nr = call_of_nr,
	.nr_count = sizeof(call_of_nr) / sizeof(call_of_nr[0]),
};
