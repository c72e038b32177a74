#include "arch/arch.h"

#include <linux/audit.h>

#include "syscalls/ids.h"

extern const struct arch arch_riscv64;
extern const struct abi abi_riscv64;

static const int16_t call_of_nr[] = {
#define NR(number, name) [number] = CALL_##name,
#define GAP(first, last) [first ... last] = CALL_NONE,
#include "arch/riscv64/numbers.def"
#undef NR
#undef GAP
};

const struct arch arch_riscv64 = {
	.id = ARCH_RISCV64,
	.name = "riscv64",
	.audit = AUDIT_ARCH_RISCV64,
	.word = 8,
	.clone_backwards = true,
	.nr_reserved_bits = 0,
	.abi = &abi_riscv64,
	.call_of_nr = call_of_nr,
	.nr_count = sizeof(call_of_nr) / sizeof(call_of_nr[0]),
};
