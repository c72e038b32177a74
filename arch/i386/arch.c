#include "arch/arch.h"

#include <linux/audit.h>

#include "syscalls/ids.h"

extern const struct arch arch_i386;
extern const struct abi abi_i386;

static const int16_t call_of_nr[] = {
#define NR(number, name) [number] = CALL_##name,
#define GAP(first, last) [first ... last] = CALL_NONE,
#include "arch/i386/numbers.def"
#undef NR
#undef GAP
};

const struct arch arch_i386 = {
	.id = ARCH_I386,
	.name = "i386",
	.audit = AUDIT_ARCH_I386,
	.word = 4,
	.clone_backwards = true,
	.nr_reserved_bits = 0,
	.abi = &abi_i386,
	.call_of_nr = call_of_nr,
	.nr_count = sizeof(call_of_nr) / sizeof(call_of_nr[0]),
};
