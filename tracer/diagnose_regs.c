/*
 * diagnose_regs.c - registers of the architectures that the host can run.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "tracer/diagnose_impl.h"

static void regs_show(struct diagnose_regs *out, const char *name, uint64_t value)
{
	out->show[out->shown].name = name;
	out->show[out->shown++].value = value;
}

#if defined(__x86_64__)

/* __USER32_CS of arch/x86/include/asm/segment.h: the code segment that makes the CPU decode 32-bit instructions. */
enum { USER32_CS = 0x23 };

static void regs_fill_32(const struct user_regs_struct *r, struct diagnose_regs *out)
{
	static const char *const name[] = { "eip", "esp", "ebp", "eax", "ebx", "ecx", "edx", "esi", "edi", "eflags" };
	const uint64_t value[] = { r->rip, r->rsp, r->rbp, r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->eflags };

	out->machine = DIAGNOSE_X86_32;
	out->ip = (uint32_t)r->rip;
	out->sp = (uint32_t)r->rsp;
	out->fp = (uint32_t)r->rbp;
	for (unsigned i = 0; i < sizeof(value) / sizeof(*value); i++)
		regs_show(out, name[i], (uint32_t)value[i]);
}

static void regs_fill(const struct user_regs_struct *r, size_t size, struct diagnose_regs *out)
{
	/* DWARF numbers: System V ABI for AMD64, figure 3.36. */
	const uint64_t dwarf[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
				   r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 };
	static const char *const name[] = { "rip", "rsp", "rbp", "rax", "rbx", "rcx", "rdx", "rsi", "rdi",
					    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "eflags" };
	const uint64_t value[] = { r->rip, r->rsp, r->rbp, r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi,
				   r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->eflags };

	(void)size;
	if (r->cs == USER32_CS) {
		regs_fill_32(r, out);
		return;
	}
	out->machine = DIAGNOSE_X86_64;
	out->native = true;
	out->ip = r->rip;
	out->sp = r->rsp;
	out->fp = r->rbp;
	out->dwarf_count = sizeof(dwarf) / sizeof(*dwarf);
	for (unsigned i = 0; i < out->dwarf_count; i++)
		out->dwarf[i] = dwarf[i];
	for (unsigned i = 0; i < sizeof(value) / sizeof(*value); i++)
		regs_show(out, name[i], value[i]);
}

/* The kernel answers a task that entered by the i386 ABI in struct user_regs_struct32 (17 words, arch/x86/kernel/ptrace.c).
   Which it is depends on the task's mode, and the length tells. */
struct regset_32 {
	uint32_t ebx, ecx, edx, esi, edi, ebp, eax, ds, es, fs, gs, orig_eax, eip, cs, eflags, esp, ss;
};

static bool regs_widen(struct user_regs_struct *set, size_t size)
{
	struct regset_32 r;

	if (size == sizeof(struct user_regs_struct))
		return true;
	if (size != sizeof(r))
		return false;
	memcpy(&r, set, sizeof(r));
	*set = (struct user_regs_struct){ .rip = r.eip, .rsp = r.esp, .rbp = r.ebp, .rax = r.eax, .rbx = r.ebx, .rcx = r.ecx,
				   .rdx = r.edx, .rsi = r.esi, .rdi = r.edi, .eflags = r.eflags, .cs = USER32_CS };
	return true;
}

/* A call pushed the return address; `ret` takes it back. */
bool diagnose_regs_pop(struct diagnose_task *task, struct diagnose_regs *regs)
{
	size_t word = regs->native ? 8 : 4;
	uint64_t ip = 0;

	if (!diagnose_mem_read(task, regs->sp, &ip, word))
		return false;
	regs->ip = ip;
	regs->sp += word;
	if (regs->native)
		regs->dwarf[7] = regs->sp;
	return true;
}

#elif defined(__aarch64__)

enum { ARM_WORDS = 18 }; /* struct compat pt_regs: r0 to r15, cpsr, orig_r0 */

static bool regs_widen(struct user_regs_struct *set, size_t size)
{
	(void)set;
	return size == sizeof(struct user_regs_struct) || size == ARM_WORDS * sizeof(uint32_t);
}

static void regs_fill_arm(const uint32_t *r, struct diagnose_regs *out)
{
	static const char *const name[] = { "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11",
					    "r12", "sp", "lr", "pc", "cpsr" };

	out->machine = DIAGNOSE_ARM;
	out->ip = r[15];
	out->sp = r[13];
	out->fp = r[11];
	out->lr = r[14];
	for (unsigned i = 0; i < 17; i++)
		regs_show(out, name[i], r[i]);
}

static void regs_fill(const struct user_regs_struct *r, size_t size, struct diagnose_regs *out)
{
	static const char *const name[] = { "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
					    "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
					    "x24", "x25", "x26", "x27", "x28", "x29", "x30" };

	if (size == ARM_WORDS * sizeof(uint32_t)) {
		regs_fill_arm((const uint32_t *)r, out);
		return;
	}
	out->machine = DIAGNOSE_AARCH64;
	out->native = true;
	out->ip = r->pc;
	out->sp = r->sp;
	out->fp = r->regs[29];
	out->lr = r->regs[30];
	out->dwarf_count = 32;
	regs_show(out, "pc", r->pc);
	regs_show(out, "sp", r->sp);
	for (unsigned i = 0; i < 31; i++) {
		out->dwarf[i] = r->regs[i];
		regs_show(out, name[i], r->regs[i]);
	}
	out->dwarf[31] = r->sp;
	regs_show(out, "pstate", r->pstate);
}

bool diagnose_regs_pop(struct diagnose_task *task, struct diagnose_regs *regs)
{
	(void)task;
	if (!regs->lr)
		return false;
	regs->ip = regs->lr;
	return true;
}

#elif defined(__riscv) && __riscv_xlen == 64

#include <asm/ptrace.h>
static bool regs_widen(struct user_regs_struct *set, size_t size)
{
	(void)set;
	return size == sizeof(struct user_regs_struct);
}

/* The set is pc and then x1 to x31, in order (arch/riscv/include/uapi/asm/ptrace.h). */
static void regs_fill(const struct user_regs_struct *r, size_t size, struct diagnose_regs *out)
{
	static const char *const name[] = { "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2",
					    "a3", "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9",
					    "s10", "s11", "t3", "t4", "t5", "t6" };
	const unsigned long *x = (const unsigned long *)r;

	(void)size;
	out->machine = DIAGNOSE_RISCV64;
	out->native = true;
	out->ip = x[0];
	out->lr = x[1];
	out->sp = x[2];
	out->fp = x[8];
	out->dwarf_count = 32;
	for (unsigned i = 0; i < 32; i++) {
		out->dwarf[i] = i ? x[i] : 0;
		regs_show(out, name[i], x[i]);
	}
}

bool diagnose_regs_pop(struct diagnose_task *task, struct diagnose_regs *regs)
{
	(void)task;
	if (!regs->lr)
		return false;
	regs->ip = regs->lr;
	return true;
}

#else
#error "diagnose_regs.c knows nothing of this architecture's registers"
#endif

int diagnose_regs_get(pid_t tid, struct diagnose_regs *out)
{
	struct user_regs_struct set = { 0 };
	struct iovec iov = { .iov_base = &set, .iov_len = sizeof(set) };

	*out = (struct diagnose_regs){ 0 };
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov) < 0)
		return -errno;
	if (!regs_widen(&set, iov.iov_len))
		return -EIO;
	regs_fill(&set, iov.iov_len, out);
	return 0;
}
