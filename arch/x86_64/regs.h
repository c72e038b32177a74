/* regs.h - x86_64: the same 64-bit layout for 64-bit and 32-bit tasks (PTRACE_GETREGS of a 64-bit tracer). */
#ifndef INTERPOSE_ARCH_X86_64_REGS_H
#define INTERPOSE_ARCH_X86_64_REGS_H

#include <sys/user.h>

struct arch_regs {
	struct user_regs_struct r;
};

enum { ARCH_HOST_WINDOW_FLAGS = 0x40 }; /* MAP_32BIT: int 0x80 of a 64-bit task must reach the window too */

#endif
