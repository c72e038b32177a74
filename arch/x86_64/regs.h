/* regs.h - x86_64: the same 64-bit layout for 64-bit and 32-bit tasks (PTRACE_GETREGS of a 64-bit tracer). */
#ifndef INTERPOSE_ARCH_X86_64_REGS_H
#define INTERPOSE_ARCH_X86_64_REGS_H

#include <stdint.h>
#include <sys/user.h>

struct arch_regs {
	struct user_regs_struct r;
};

/* A system call that touches no errno: for a child that shares our memory. A value or a negative errno. */
static inline long arch_raw_syscall(long nr, uintptr_t a, uintptr_t b, uintptr_t c)
{
	register uintptr_t r10 __asm__("r10") = 0, r8 __asm__("r8") = 0; /* prctl wants the others to be 0 */
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return result;
}

enum { ARCH_HOST_WINDOW_FLAGS = 0x40 }; /* MAP_32BIT: int 0x80 of a 64-bit task must reach the window too */

#endif
