/* regs.c - registers of x86_64 and i386 tasks on an x86_64 host. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ptrace.h>

#include "arch/regs.h"
#include "syscalls/ids.h"

int arch_regs_get(pid_t tid, struct arch_regs *regs)
{
	return ptrace(PTRACE_GETREGS, tid, 0, &regs->r) ? -errno : 0;
}

int arch_regs_set(pid_t tid, const struct arch_regs *regs)
{
	return ptrace(PTRACE_SETREGS, tid, 0, &regs->r) ? -errno : 0;
}

enum { INSN_LEN = 2 }; /* syscall, int 0x80 and sysenter's landing pad alike */

/* Two single registers cost less than reading and writing all of them. */
int arch_answer(pid_t tid, int64_t value)
{
	if (ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, orig_rax), -1L))
		return -errno;
	return ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rax), value) ? -errno : 0;
}

static void set_args(struct user_regs_struct *r, const struct arch *abi, const uint64_t args[6])
{
	if (abi->word == 4) {
		r->rbx = args[0], r->rcx = args[1], r->rdx = args[2];
		r->rsi = args[3], r->rdi = args[4], r->rbp = args[5];
	} else {
		r->rdi = args[0], r->rsi = args[1], r->rdx = args[2];
		r->r10 = args[3], r->r8 = args[4], r->r9 = args[5];
	}
}

void arch_set_call(struct arch_regs *regs, const struct arch *abi, uint32_t nr, const uint64_t args[6])
{
	regs->r.orig_rax = nr;
	set_args(&regs->r, abi, args);
}

void arch_restore_call(struct arch_regs *now, const struct arch_regs *before, const struct arch *abi)
{
	struct user_regs_struct *n = &now->r;
	const struct user_regs_struct *b = &before->r;

	n->orig_rax = b->orig_rax;
	if (abi->word == 4) {
		n->rbx = b->rbx, n->rcx = b->rcx, n->rdx = b->rdx, n->rsi = b->rsi, n->rdi = b->rdi, n->rbp = b->rbp;
	} else {
		n->rdi = b->rdi, n->rsi = b->rsi, n->rdx = b->rdx, n->r10 = b->r10, n->r8 = b->r8, n->r9 = b->r9;
	}
}

/* orig_rax = -1 keeps the signal code from taking the registers for those of a call to be restarted. */
void arch_start_call(struct arch_regs *regs, const struct arch *abi, uint64_t insn, uint32_t nr, const uint64_t args[6])
{
	regs->r.orig_rax = -1UL;
	regs->r.rip = insn;
	regs->r.rax = nr;
	set_args(&regs->r, abi, args);
}

void arch_repeat_call(struct arch_regs *regs, const struct arch_regs *before)
{
	*regs = *before;
	regs->r.rax = before->r.orig_rax;
	regs->r.rip = before->r.rip - INSN_LEN;
	regs->r.orig_rax = -1UL;
}

/* arch/x86/kernel/signal.c, arch_do_signal_or_restart(): after ERESTARTSYS (512) to ERESTART_RESTARTBLOCK (516) the number comes back to
   rax, or that of restart_syscall (219; i386: 0). */
uint64_t arch_restarts_at(const struct arch_regs *regs)
{
	const struct user_regs_struct *r = &regs->r;

	if ((int64_t)r->orig_rax < 0)
		return 0;
	if ((int32_t)r->rax <= -512 && (int32_t)r->rax >= -516)
		return r->rip - INSN_LEN;
	return r->rax == r->orig_rax || r->rax == 219 || r->rax == 0 ? r->rip : 0;
}

uint64_t arch_call_insn(const struct arch_regs *regs)
{
	return regs->r.rip - INSN_LEN;
}

int64_t arch_result(const struct arch_regs *regs, const struct arch *abi)
{
	return abi->word == 4 ? (int64_t)(int32_t)regs->r.rax : (int64_t)regs->r.rax;
}

void arch_set_result(struct arch_regs *regs, int64_t value)
{
	regs->r.rax = (uint64_t)value;
}

/* The numbers of the two ABIs do not meet: x86_64's clone 56, fork 57, vfork 58; i386's fork 2, clone 120, vfork 190. */
uint64_t arch_clone_flags(const struct arch_regs *regs)
{
	switch (regs->r.orig_rax) {
	case 56: return regs->r.rdi;
	case 120: return regs->r.rbx;
	case 58:
	case 190: return CLONE_VFORK | CLONE_VM;
	}
	return 0;
}

enum arch_id arch_exec_abi(const struct arch_regs *regs)
{
	enum { USER32_CS = 0x23 };

	return regs->r.cs == USER32_CS ? ARCH_I386 : ARCH_X86_64;
}

uint64_t arch_sp(const struct arch_regs *regs)
{
	return regs->r.rsp;
}

const unsigned char *arch_insn(const struct arch *abi, size_t *len)
{
	static const unsigned char syscall_insn[] = { 0x0f, 0x05 }, int80_insn[] = { 0xcd, 0x80 };

	*len = INSN_LEN;
	return abi->word == 4 ? int80_insn : syscall_insn;
}

bool arch_has_exit_stop(uint64_t ip)
{
	return ip >> 12 != 0xffffffffff600; /* arch/x86/entry/vsyscall: emulate_vsyscall() */
}
