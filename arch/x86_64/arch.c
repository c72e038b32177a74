#include "arch/arch.h"

#include <linux/audit.h>

#include "syscalls/ids.h"

extern const struct arch arch_x86_64;
extern const struct abi abi_x86_64;

static const int16_t call_of_nr[] = {
#define NR(number, name) [number] = CALL_##name,
#define GAP(first, last) [first ... last] = CALL_NONE,
#include "arch/x86_64/numbers.def"
#undef NR
#undef GAP
};

const struct arch arch_x86_64 = {
	.id = ARCH_X86_64,
	.name = "x86_64",
	.audit = AUDIT_ARCH_X86_64,
	.word = 8,
	.clone_backwards = false,
	.nr_reserved_bits = 0x40000000, /* x32: __X32_SYSCALL_BIT of <asm/unistd.h> */
	.abi = &abi_x86_64,
	.call_of_nr = call_of_nr,
	.nr_count = sizeof(call_of_nr) / sizeof(call_of_nr[0]),
};
