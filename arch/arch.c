#include "arch/arch.h"

#include <stddef.h>

extern const struct arch arch_x86_64, arch_i386, arch_aarch64, arch_riscv64;

const struct arch *const arch_all[ARCH_COUNT] = {
	[ARCH_X86_64] = &arch_x86_64,
	[ARCH_I386] = &arch_i386,
	[ARCH_AARCH64] = &arch_aarch64,
	[ARCH_RISCV64] = &arch_riscv64,
};

/* The 64-bit x86 kernel takes i386 calls from any task, by int 0x80 too: both are always supervised. */
#if defined(__x86_64__)
const enum arch_id arch_host[] = { ARCH_X86_64, ARCH_I386 };
#elif defined(__aarch64__)
const enum arch_id arch_host[] = { ARCH_AARCH64 };
#elif defined(__riscv) && __riscv_xlen == 64
const enum arch_id arch_host[] = { ARCH_RISCV64 };
#else
#error "no folder of arch/ describes this machine"
#endif
const unsigned arch_host_count = sizeof(arch_host) / sizeof(arch_host[0]);

const struct arch *arch_by_audit(uint32_t audit)
{
	for (int i = 0; i < ARCH_COUNT; i++)
		if (arch_all[i]->audit == audit)
			return arch_all[i];
	return NULL;
}

int arch_nr_of(const struct arch *arch, int call_id)
{
	if (call_id < 0)
		return -1;
	for (uint32_t nr = 0; nr < arch->nr_count; nr++)
		if (arch->call_of_nr[nr] == call_id)
			return (int)nr;
	return -1;
}
