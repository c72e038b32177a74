/*
 * regs.h - a stopped task's registers, by the host's architecture.
 *
 * Each host folder provides struct arch_regs and these functions. ABI is that of the call in question (a 64-bit task may use
 * the 32-bit one). Functions that return int give 0 or a negative errno; -ESRCH says that the task is dying, which is normal.
 */
#ifndef INTERPOSE_ARCH_REGS_H
#define INTERPOSE_ARCH_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"

#if defined(__x86_64__)
#include "arch/x86_64/regs.h"
#else
#error "this architecture cannot supervise yet: arch/README.md says what it takes"
#endif

/* Also, inline, of each host: long arch_raw_syscall(long nr, uintptr_t a, uintptr_t b, uintptr_t c), which leaves errno
   alone; the fourth and fifth argument are 0. */

int arch_regs_get(pid_t tid, struct arch_regs *regs);
int arch_regs_set(pid_t tid, const struct arch_regs *regs);

/* At an entry or seccomp stop: skip the call and let it return VALUE. As few ptrace requests as the host allows. */
int arch_answer(pid_t tid, int64_t value);

/* At an entry or seccomp stop: make REGS run call NR with ARGS instead. */
void arch_set_call(struct arch_regs *regs, const struct arch *abi, uint32_t nr, const uint64_t args[6]);

/* At an exit stop: give NOW the number and argument registers of BEFORE; the result stays. */
void arch_restore_call(struct arch_regs *now, const struct arch_regs *before, const struct arch *abi);

/* At any stop that is not an entry: make REGS run call NR with ARGS from the system-call instruction at INSN, kept within
   the kernel's restart rules. */
void arch_start_call(struct arch_regs *regs, const struct arch *abi, uint64_t insn, uint32_t nr, const uint64_t args[6]);

/* At an exit stop: BEFORE are the registers of the same call's entry stop. Make it run again from the start. */
void arch_repeat_call(struct arch_regs *regs, const struct arch_regs *before);

/* At a stop that is neither entry nor exit: address of the instruction of a call that was interrupted and that the kernel is
   about to run again, or 0. It may be wrong: whether a system-call instruction is there is for the caller to see. */
uint64_t arch_restarts_at(const struct arch_regs *regs);

/* Address of the instruction that made the call whose entry or exit stop this is. */
uint64_t arch_call_insn(const struct arch_regs *regs);

/* Result of the call at its exit stop, sign-extended: a negative errno for -4095 to -1. */
int64_t arch_result(const struct arch_regs *regs, const struct arch *abi);

/* At an exit stop: make VALUE the result. */
void arch_set_result(struct arch_regs *regs, int64_t value);

/* Flags of the clone, fork or vfork call that these registers are in (CLONE_*), at its PTRACE_EVENT stop. */
uint64_t arch_clone_flags(const struct arch_regs *regs);

/* The ABI of a task that has just exec'ed, at the event's stop. */
enum arch_id arch_exec_abi(const struct arch_regs *regs);

uint64_t arch_sp(const struct arch_regs *regs);

/* Bytes of the system-call instruction of an ABI, to be looked for in its vDSO. */
const unsigned char *arch_insn(const struct arch *abi, size_t *len);

/* Whether an exit stop will follow the call at IP: the emulated vsyscall page of x86_64 has none. */
bool arch_has_exit_stop(uint64_t ip);

/* mmap(2) flags that put the window where every ABI of the address space can point to it. */
enum { ARCH_WINDOW_MMAP_FLAGS = ARCH_HOST_WINDOW_FLAGS };

#endif
