/*
 * diagnose_report.c - the text of a report; runs in the helper process.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tracer/diagnose_impl.h"

enum {
	FRAMES_SHOWN = 64,
	FRAMES_WALKED = 1 << 14,  /* runs of one frame (recursion) are shown as one line, but walked */
	BEFORE = 5,               /* instructions shown before and after the current one */
	AFTER = 5,
	FUNCTION_MAX = 4096,      /* a function is decoded from its start when that is not farther away */
	BACK_MAX = 64,
	INSN_BYTES = 16,
	STACK_NEAR = 64 << 10
};

/* --- places ---------------------------------------------------------------------------------------------------------- */

static const struct diagnose_region *report_code(const struct diagnose_task *task, uint64_t ip)
{
	const struct diagnose_region *region = diagnose_maps_find(task, ip);

	return region && region->prot & PROT_EXEC ? region : NULL;
}

static void report_address(FILE *out, const struct diagnose_task *task, uint64_t addr)
{
	fprintf(out, "0x%0*" PRIx64, task->regs.native ? 16 : 8, addr);
}

/* A guest's string: text_quote()'s rules without the quotes. */
static void report_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= ' ' && c < 0x7f)
			fputc(c, out);
		else
			fprintf(out, "\\%03o", c);
	}
}

/* Address, symbol and offset, file and offset in it. EXACT: the task stands there; otherwise IP is a return address, whose
   call may be the last instruction of its function, so the byte before it is looked up. */
static void report_place(FILE *out, struct diagnose_task *task, uint64_t ip, bool exact)
{
	const struct diagnose_region *region = diagnose_maps_find(task, ip);
	struct diagnose_symbol symbol;

	report_address(out, task, ip);
	if (diagnose_elf_symbol(task, exact ? ip : ip - 1, &symbol)) {
		fputc(' ', out);
		report_text(out, symbol.name);
		fprintf(out, "+0x%" PRIx64, ip - symbol.start);
	} else {
		fputs(" ??", out);
	}
	if (!region)
		return;
	fputs(" (", out);
	report_text(out, region->path[0] ? region->path : "anonymous memory");
	fprintf(out, "+0x%" PRIx64 ")", ip - region->start + region->offset);
}

/* --- the call stack -------------------------------------------------------------------------------------------------- */

struct walk {
	FILE *out;
	struct diagnose_task *task;
	unsigned limit, shown, walked;
	unsigned repeats;         /* frames equal to the last shown */
	uint64_t ip, sp;          /* of the last frame */
	bool exact;               /* the next frame stands at its ip */
	bool jumped;              /* the last frame was a signal's: the next may be on another stack */
	bool damaged, full;
};

static void walk_flush(struct walk *walk)
{
	if (walk->repeats)
		fprintf(walk->out, "         the same frame %u more time%s\n", walk->repeats, walk->repeats == 1 ? "" : "s");
	walk->repeats = 0;
}

static bool walk_damaged(struct walk *walk, uint64_t ip, const char *what)
{
	walk_flush(walk);
	fprintf(walk->out, "    #%-3u ", walk->walked);
	report_address(walk->out, walk->task, ip);
	fprintf(walk->out, " %s: the stack is damaged here\n", what);
	walk->damaged = true;
	return false;
}

static bool walk_frame(void *context, uint64_t ip, uint64_t sp, bool signal_frame)
{
	struct walk *walk = context;
	bool first = !walk->walked;

	if (!first && !ip)
		return false;
	if (!first && !walk->jumped && (sp < walk->sp || (sp == walk->sp && ip == walk->ip)))
		return walk_damaged(walk, ip, "does not lie above its callee");
	if (!report_code(walk->task, ip))
		return walk_damaged(walk, ip, "is no code");
	if (!first && ip == walk->ip && !signal_frame && !walk->jumped) {
		walk->repeats++;
	} else if (walk->shown == walk->limit) {
		walk->full = true;
		return false;
	} else {
		walk_flush(walk);
		fprintf(walk->out, "    #%-3u ", walk->walked);
		report_place(walk->out, walk->task, ip, walk->exact);
		fprintf(walk->out, "%s\n", signal_frame ? " <signal handler called>" : "");
		walk->shown++;
	}
	walk->ip = ip;
	walk->sp = sp;
	walk->exact = walk->jumped = signal_frame;
	walk->full = ++walk->walked == FRAMES_WALKED;
	return !walk->full;
}

/* Where a frame pointer leads: offsets of the saved frame pointer and return address from it, in words. */
static void walk_layout(enum diagnose_machine machine, int *saved_fp, int *return_ip)
{
	*saved_fp = machine == DIAGNOSE_RISCV64 ? -2 : machine == DIAGNOSE_ARM ? -1 : 0;
	*return_ip = machine == DIAGNOSE_RISCV64 ? -1 : machine == DIAGNOSE_ARM ? 0 : 1;
}

static bool walk_word(struct diagnose_task *task, uint64_t addr, uint64_t *out)
{
	*out = 0;
	return diagnose_mem_read(task, addr, out, task->regs.native ? 8 : 4);
}

/* Follows the frame pointers, upwards only and inside one mapping. FIRST: the frame of task->regs has not been shown yet. */
static void walk_frame_pointers(struct walk *walk, bool first)
{
	struct diagnose_task *task = walk->task;
	const struct diagnose_region *stack = diagnose_maps_find(task, task->regs.fp);
	uint64_t ip, fp = task->regs.fp, sp = task->regs.sp, next, word = task->regs.native ? 8 : 4;
	int saved_fp, return_ip;

	walk_layout(task->regs.machine, &saved_fp, &return_ip);
	if (first && !walk_frame(walk, task->regs.ip, sp, false))
		return;
	while (stack && fp % word == 0 && fp >= sp && fp < stack->end) {
		if (!walk_word(task, fp + (uint64_t)saved_fp * word, &next) ||
		    !walk_word(task, fp + (uint64_t)return_ip * word, &ip))
			break;
		sp = fp + word;
		fp = next;
		if (!walk_frame(walk, ip, sp, false))
			return;
	}
	walk_flush(walk);
	if (fp) {
		fputs("    and frame pointer ", walk->out);
		report_address(walk->out, task, fp);
		fputs(" leads to no frame: the stack is damaged, or this code keeps none\n", walk->out);
	}
}

/* A call through a bad pointer: says so, and steps back to the caller. Whether there is one. */
static bool walk_bad_start(struct walk *walk)
{
	struct diagnose_task *task = walk->task;
	struct diagnose_regs regs = task->regs;
	const struct diagnose_region *region = diagnose_maps_find(task, regs.ip);

	fputs("    #0   ", walk->out);
	report_address(walk->out, task, regs.ip);
	fputs(region ? " is in memory that is not executable" : regs.ip ? " is not mapped" : " (a null pointer)", walk->out);
	fputs(": called or jumped to through a bad pointer, or a damaged return address\n", walk->out);
	walk->walked = walk->shown = 1;
	walk->sp = regs.sp;
	walk->exact = false;
	if (!diagnose_regs_pop(task, &regs) || !report_code(task, regs.ip)) {
		fputs("    and no code has called it: the stack is damaged, or another was switched to\n", walk->out);
		return false;
	}
	task->regs = regs;
	return true;
}

static void walk_run(struct walk *walk, const struct diagnose_library *library)
{
	struct diagnose_task *task = walk->task;
	unsigned before = walk->walked;
	bool able = library && library->unwind && task->regs.native;
	struct diagnose_table table;
	int err = able ? library->unwind(task, walk_frame, walk) : -ENOSYS;

	if (walk->damaged || walk->full)
		return;
	/* One frame may be all: _start. But libunwind calls it the last as well when it knows no more of it. */
	if (!err && (walk->walked > before + 1 || diagnose_elf_table(task, task->regs.ip, &table)))
		return;
	if (able && walk->walked > before + 1) {
		walk_flush(walk);
		fputs("    and no way to unwind from there\n", walk->out);
		return;
	}
	/* Nothing came out of unwind tables: code without them, made by a compiler at run time perhaps. */
	if (!task->regs.native)
		fputs("    (a 32-bit task, which libunwind of this host cannot unwind: by frame pointers)\n", walk->out);
	else if (!able)
		fputs(library ? "    (built without libunwind: by frame pointers)\n"
			      : "    (diagnose.so was not found: by frame pointers)\n", walk->out);
	else
		fputs("    (no unwind information: by frame pointers)\n", walk->out);
	walk_frame_pointers(walk, walk->walked == before);
}

/* Prints the stack. In *BAD whether ip is no code; task->regs is the caller's then, where there is one. */
static void report_stack(FILE *out, struct diagnose_task *task, const struct diagnose_where *where,
			 const struct diagnose_library *library, bool *bad)
{
	struct walk walk = { .out = out, .task = task, .exact = true };

	walk.limit = where->frames ? where->frames : FRAMES_SHOWN;
	fprintf(out, "  call stack of task %d, innermost first:\n", task->tid);
	*bad = !report_code(task, task->regs.ip);
	if (!*bad || walk_bad_start(&walk))
		walk_run(&walk, library);
	walk_flush(&walk);
	if (walk.full)
		fputs("    and more frames\n", out);
}

/* --- instructions ---------------------------------------------------------------------------------------------------- */

static void report_bytes(FILE *out, struct diagnose_task *task, uint64_t at, const char *note)
{
	uint8_t bytes[INSN_BYTES];
	size_t len = diagnose_mem_peek(task, at, bytes, sizeof(bytes));

	fputs("    => ", out);
	report_address(out, task, at);
	for (size_t i = 0; i < len; i++)
		fprintf(out, " %02x", bytes[i]);
	fprintf(out, "%s\n", len ? note : " cannot be read");
}

/* Decodes from FROM until AT is reached: the last BEFORE instructions, in OUT. 0 when no instruction begins at AT. */
static unsigned insns_reach(struct diagnose_task *task, const struct diagnose_library *library, uint64_t from, uint64_t at,
			    struct diagnose_insn out[BEFORE])
{
	static struct diagnose_insn insn[FUNCTION_MAX];
	uint8_t bytes[FUNCTION_MAX];
	size_t len = (size_t)(at - from);
	unsigned count, kept;

	if (!len || !diagnose_mem_read(task, from, bytes, len))
		return 0;
	count = library->disassemble(task->regs.machine, bytes, len, from, insn, FUNCTION_MAX);
	if (!count || insn[count - 1].addr + insn[count - 1].size != at)
		return 0;
	kept = count < BEFORE ? count : (unsigned)BEFORE;
	memcpy(out, insn + count - kept, kept * sizeof(*out));
	return kept;
}

/* The instructions before AT. Lengths vary, so one cannot walk back: from the function's start where it is known, else from
   the farthest of some bytes back from which the decoding arrives at AT. */
static unsigned insns_before(struct diagnose_task *task, const struct diagnose_library *library, uint64_t at,
			     struct diagnose_insn out[BEFORE])
{
	struct diagnose_symbol symbol;
	unsigned count = 0;

	if (diagnose_elf_symbol(task, at - 1, &symbol) && symbol.start < at && at - symbol.start <= FUNCTION_MAX) {
		/* Nothing before a function belongs to it. */
		count = insns_reach(task, library, symbol.start, at, out);
		if (count)
			return count;
	} else if (diagnose_elf_symbol(task, at, &symbol) && symbol.start == at) {
		return 0;
	}
	for (uint64_t back = BACK_MAX; back && !count; back--)
		if (at > back)
			count = insns_reach(task, library, at - back, at, out);
	return count;
}

static void insn_print(FILE *out, const struct diagnose_task *task, const struct diagnose_insn *insn, bool current)
{
	fputs(current ? "    => " : "       ", out);
	report_address(out, task, insn->addr);
	fputs("  ", out);
	report_text(out, insn->text);
	fputc('\n', out);
}

static bool insn_is_syscall(const struct diagnose_insn *insn)
{
	static const char *const name[] = { "syscall", "sysenter", "int 0x80", "svc", "ecall" };

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (!strncmp(insn->text, name[i], strlen(name[i])))
			return true;
	return false;
}

/* DONE: the instruction of interest is the one that ended at the ip, a call. SENT: the same, if it is a system call. */
static void report_instructions(FILE *out, struct diagnose_task *task, const struct diagnose_library *library, bool done,
				bool sent)
{
	struct diagnose_insn insn[BEFORE + 1 + AFTER];
	uint8_t bytes[(1 + AFTER) * INSN_BYTES];
	uint64_t at = task->regs.ip;
	unsigned before, after;
	size_t len;

	if (!report_code(task, at))
		return;
	if (!library || !library->disassemble) {
		fprintf(out, "  instructions (%s, so as bytes):\n",
			library ? "built without capstone" : "diagnose.so was not found");
		report_bytes(out, task, at, "");
		return;
	}
	before = insns_before(task, library, at, insn);
	done = before && (done || (sent && insn_is_syscall(&insn[before - 1])));
	len = diagnose_mem_peek(task, at, bytes, sizeof(bytes));
	after = library->disassemble(task->regs.machine, bytes, len, at, insn + before, AFTER + !done);
	fputs("  instructions:\n", out);
	for (unsigned i = 0; i < before + after; i++)
		insn_print(out, task, &insn[i], done ? i + 1 == before : i == before);
	if (!after)
		report_bytes(out, task, at, " (no instruction that capstone knows)");
}

/* --- the rest -------------------------------------------------------------------------------------------------------- */

static bool report_overflow(const struct diagnose_task *task, const siginfo_t *info)
{
	uint64_t addr = (uintptr_t)info->si_addr, sp = task->regs.sp;
	const struct diagnose_region *at = diagnose_maps_find(task, addr);
	const struct diagnose_region *above = diagnose_maps_find(task, addr + STACK_NEAR);

	for (uint64_t up = 4096; !above && up < STACK_NEAR; up += 4096)
		above = diagnose_maps_find(task, addr + up);
	return info->si_signo == SIGSEGV && info->si_code > 0 && info->si_code != SI_KERNEL && (!at || !at->prot) &&
	       (addr > sp ? addr - sp : sp - addr) <= STACK_NEAR && above && above->prot & PROT_WRITE;
}

static void report_registers(FILE *out, const struct diagnose_regs *regs)
{
	enum { PER_LINE = 6 };

	fputs("  registers:", out);
	for (unsigned i = 0; i < regs->shown; i++)
		fprintf(out, "%s%-3s %0*" PRIx64, i % PER_LINE ? "  " : "\n    ", regs->show[i].name, regs->native ? 16 : 8,
			regs->show[i].value);
	fputc('\n', out);
}

void diagnose_report(FILE *out, struct diagnose_task *task, const struct diagnose_where *where,
		     const struct diagnose_library *library)
{
	const struct diagnose_regs regs = task->regs;
	bool bad = false;
	int err = diagnose_maps_read(task);

	if (where->info) {
		fputs("  ", out);
		diagnose_signal_print(out, where->info);
		if (!err && report_overflow(task, where->info))
			fputs(", next to the stack pointer: the stack overflowed", out);
		fputc('\n', out);
	}
	if (err || task->mem < 0) {
		fprintf(out, "  no call stack: its memory cannot be read (%s)\n", strerror(err ? -err : EACCES));
	} else {
		report_stack(out, task, where, library, &bad);
		/* A refusal stands after its system call instruction, as does who sent a signal to itself; a bad pointer's
		   caller after its call. */
		if (where->instructions)
			report_instructions(out, task, library, bad || !where->info,
					    where->info && where->info->si_code <= 0);
	}
	report_registers(out, &regs);
	fflush(out);
}
