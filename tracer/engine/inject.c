/*
 * inject.c - system calls that a guest makes for the supervisor.
 *
 * Only where nothing else will do: mapping the window, opening the memory of a process that is not dumpable, handing over a
 * descriptor to who cannot follow a link to it, replacing a descriptor or a mapping. The task's signals are blocked meanwhile; a stop of the
 * process is an ordinary one. Two stops for each call; a single step would need one, but its forced SIGTRAP resets the guest's
 * own action for a SIGTRAP that it ignores (force_sig_info_to_task).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/ids.h"
#include "tracer/engine/internal.h"

enum { VDSO_MAX = 16 << 10, PATH_BELOW_SP = 256, TRIES = 100 };

/* --- a system-call instruction of a fresh program: the vDSO has one --------------------------------------------------- */

/* The offset is the same in every program of one boot: it is looked for once, and only checked later. */
static uint64_t vdso_insn(struct task *task, const struct arch *abi)
{
	static size_t known[ARCH_COUNT];
	unsigned char image[VDSO_MAX];
	uint64_t base = 0;
	size_t len;
	const unsigned char *insn = arch_insn(abi, &len);
	const unsigned char *at;
	ssize_t n;

	if (memory_auxv(task, abi, AT_SYSINFO_EHDR, &base) < 0 || !base)
		return 0;
	if (known[abi->id] && memory_read(task, base + known[abi->id], image, len) == (ssize_t)len && !memcmp(image, insn, len))
		return base + known[abi->id];
	n = memory_read(task, base, image, sizeof(image));
	at = n > 0 ? memmem(image, n, insn, len) : NULL;
	if (!at)
		return 0;
	known[abi->id] = at - image;
	return base + known[abi->id];
}

void inject_free(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;

	if (!in)
		return;
	if (in->chunk)
		chunk_unref(&e->window, in->chunk);
	if (in->maps_fd >= 0)
		close(in->maps_fd);
	pass_free(in);
	task->inject = NULL;
	if (in->replacing)
		replace_over(e, in->replacing);
	free(in);
}

/* --- the steps ---------------------------------------------------------------------------------------------------------- */

/* Which call the step is. */
static int step_call(const struct task *task, uint64_t args[6])
{
	const struct injection *in = task->inject;
	int id = CALL_prctl;

	memset(args, 0, 6 * sizeof(args[0]));
	switch (in->step) {
	case CHUNK_OPEN:
		id = CALL_openat;
		args[0] = (uint32_t)AT_FDCWD, args[1] = in->text_addr, args[2] = O_RDONLY | O_CLOEXEC;
		break;
	case CHUNK_MAP:
		id = in->abi->word == 8 ? CALL_mmap : CALL_mmap2;
		args[1] = CHUNK_SIZE, args[2] = PROT_READ, args[3] = MAP_SHARED | ARCH_WINDOW_MMAP_FLAGS, args[4] = in->fd;
		args[5] = (uint64_t)in->chunk->index * CHUNK_SIZE / (in->abi->word == 8 ? 1 : 4096);
		break;
	case CHUNK_SEAL:
		id = CALL_mseal;
		args[0] = in->addr, args[1] = CHUNK_SIZE;
		break;
	case CHUNK_CLOSE:
		id = CALL_close;
		args[0] = in->fd;
		break;
	case MEMORY_SHOW:
		args[0] = PR_SET_DUMPABLE, args[1] = 1;
		break;
	case MEMORY_HIDE:
		args[0] = PR_SET_DUMPABLE;
		break;
	case ANSWER_OPEN:
	case ANSWER_PROBE:
		id = CALL_openat;
		args[0] = (uint32_t)AT_FDCWD, args[1] = in->addr;
		args[2] = in->step == ANSWER_OPEN ? (uint32_t)task->answer_flags : O_PATH | O_CLOEXEC;
		break;
	case REPLACE_MOVE:
	case REPLACE_MAP:
		id = replace_call(in, args);
		break;
	case ANSWER_UNPROBE:
	case REPLACE_DROP:
		id = CALL_close;
		args[0] = in->fd;
		break;
	default:
		id = pass_call(in, args);
	}
	return id;
}

static int step_start(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	struct arch_regs regs = in->saved;
	uint64_t args[6];
	int nr = arch_nr_of(in->abi, step_call(task, args)), error;

	(void)e;
	if (in->first)
		arch_set_call(&regs, in->abi, nr, args);
	else
		arch_start_call(&regs, in->abi, in->insn, nr, args);
	in->at_entry = in->first;
	in->first = false;
	error = arch_regs_set(task->tid, &regs);
	if (error < 0)
		return error;
	return ptrace(PTRACE_SYSCALL, task->tid, 0, 0) ? -errno : 0;
}

/* 0 or a negative errno; -EACCES for a process that is not dumpable. */
static int maps_open(struct task *task)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/maps", task->tid);
	task->inject->maps_fd = open(path, O_RDONLY | O_CLOEXEC);
	return task->inject->maps_fd < 0 ? -errno : 0;
}

/* Other tasks may have put another file in the descriptor's place, another mapping in the place of this one before it was
   sealed, or another path on a new program's stack: what counts is what the kernel says is mapped now. */
static bool chunk_is_mapped(const struct engine *e, struct injection *in)
{
	struct map_range range;
	struct stat own;
	bool found = false;
	FILE *maps = fstat(e->window.fd, &own) ? NULL : fdopen(in->maps_fd, "r");

	if (maps)
		in->maps_fd = -1; /* closed with it */
	while (maps && !found && maps_next(maps, &range))
		found = range.start <= in->addr && range.end >= in->addr + CHUNK_SIZE && !strcmp(range.perms, "r--s") &&
		        range.ino == own.st_ino && range.dev == own.st_dev &&
		        range.offset + (in->addr - range.start) == (uint64_t)in->chunk->index * CHUNK_SIZE;
	if (maps)
		fclose(maps);
	return found;
}

static void region_add(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	struct space *space = task->space;
	struct region *regions;

	if (!chunk_is_mapped(e, in))
		return;
	regions = realloc(space->regions, (space->region_count + 1) * sizeof(*regions));
	if (!regions)
		return;
	regions[space->region_count] = (struct region){ in->addr, in->chunk };
	space->regions = regions;
	space->region_count++;
	space->late = false;
	in->chunk = NULL;
	if (in->end != END_REGISTERS) /* others may take all slots before the call comes again */
		slots_reserve(task, &regions[space->region_count - 1], in->slots);
}

/* A call that runs again gets its signals back at its entry, and not before: one that came meanwhile interrupts it as it would have
   interrupted the first one. */
void inject_unmask(struct task *task)
{
	if (!task->masked)
		return;
	task->masked = false;
	ptrace(PTRACE_SETSIGMASK, task->tid, sizeof(task->sigmask), &task->sigmask);
}

static void inject_end(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	struct arch_regs regs = in->saved;

	if (in->end == END_REPEAT)
		arch_repeat_call(&regs, &in->saved);
	if (in->end == END_RESULT)
		arch_set_result(&regs, in->result);
	arch_regs_set(task->tid, &regs);
	if (in->end == END_REPEAT)
		in->stays_masked = true;
	if (!in->stays_masked)
		inject_unmask(task);
	if (in->end == END_TRAP)
		ptrace(PTRACE_INTERRUPT, task->tid, 0, 0);
	if (in->end == END_RESULT)
		call_over(e, task, in->result);
	inject_free(e, task);
	task_resume(e, task, 0);
}

/* The guest cannot follow the link. Whether a step is left; else `result` is the end. */
static bool answer_pass(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;

	in->result = call_ready(e, task);
	if (in->result == 0)
		pass_begin(in, task->answer_fd, task->answer_flags);
	return in->result == 0;
}

/* After a chunk was mapped, or not. Whether a step is left. */
static bool chunk_used(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;

	if (in->kind != INJECT_ANSWER)
		return false;
	if (task->call.foreign)
		return answer_pass(e, task);
	in->step = ANSWER_OPEN;
	in->result = call_link(task, &in->addr) < 0 ? -EPERM : 0;
	return in->result == 0;
}

/* What was to be done for the chunk is done, or failed. Whether a step is left. */
static bool chunk_end(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;

	if (in->addr)
		region_add(e, task);
	if (in->chunk) {
		if (in->kind != INJECT_ANSWER || !task->call.foreign) /* that needs none */
			task_note(e, task, "the window could not be mapped: calls that need it will be refused");
		chunk_unref(&e->window, in->chunk);
	}
	in->chunk = NULL;
	if (in->placed && memory_write(task, in->text_addr, in->stack, sizeof(in->stack)) < 0)
		task_note(e, task, "a new program's stack could not be put back");
	in->placed = false;
	in->step = MEMORY_HIDE;
	return in->hidden || chunk_used(e, task);
}

/* A fresh program's stack below sp is unused, and that of a program with one task is while it is in a call. */
static int place_path(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	const unsigned char *path = window_at(&e->window, in->chunk, CHUNK_TEXT);

	in->text_addr = (arch_sp(&in->saved) - PATH_BELOW_SP) & ~(uint64_t)63;
	if (memory_read(task, in->text_addr, in->stack, sizeof(in->stack)) != sizeof(in->stack))
		return -EFAULT;
	in->placed = memory_write(task, in->text_addr, path, sizeof(in->stack)) == sizeof(in->stack);
	return in->placed ? 0 : -EFAULT;
}

/* Opens what was denied. */
static bool memory_shown(struct task *task)
{
	struct injection *in = task->inject;

	task->space->mem_denied = false;
	return memory_open(task) != -EACCES && (!in->hidden || in->maps_fd >= 0 || maps_open(task) != -EACCES);
}

/* What openat says of a link that the task may not follow, or that it cannot even see; also of the file itself. */
static bool maybe_foreign(int64_t error)
{
	return error == -EACCES || error == -EPERM || error == -ENOENT;
}

static bool answer_step(struct engine *e, struct task *task, int64_t result)
{
	struct injection *in = task->inject;

	switch (in->step) {
	case ANSWER_OPEN:
		in->result = result;
		in->step = ANSWER_PROBE;
		return maybe_foreign(result);
	case ANSWER_PROBE:
		if (result < 0) {
			task->call.foreign = true;
			return answer_pass(e, task);
		}
		in->fd = result;
		in->step = ANSWER_UNPROBE; /* and the result stays what it was */
		return true;
	default:
		return false;
	}
}

/* A descriptor was handed over, or not. */
static bool pass_end(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;

	switch (in->kind) {
	case INJECT_CHUNK:
		if (in->passed < 0)
			return chunk_end(e, task);
		in->step = CHUNK_MAP;
		break;
	case INJECT_REPLACE:
		if (in->passed < 0) {
			replace_failed(e, task);
			return replace_next(e, task);
		}
		in->step = replace_step(in);
		break;
	default:
		in->result = in->passed;
		return false;
	}
	in->fd = in->passed;
	return true;
}

static bool chunk_step(struct engine *e, struct task *task, int64_t result)
{
	struct injection *in = task->inject;

	switch (in->step) {
	case CHUNK_OPEN:
		task->call.foreign = maybe_foreign(result);
		if (task->call.foreign && in->kind == INJECT_CHUNK && !task_has_own_filter(e, task)) {
			pass_begin(in, e->window.fd, O_CLOEXEC);
			return true;
		}
		if (result < 0)
			return chunk_end(e, task);
		in->fd = result;
		in->step = CHUNK_MAP;
		return true;
	case CHUNK_MAP:
		in->addr = result < 0 && result >= -4095 ? 0 : in->abi->word == 8 ? (uint64_t)result : (uint32_t)result;
		in->step = in->addr && e->seal ? CHUNK_SEAL : CHUNK_CLOSE;
		return true;
	case CHUNK_SEAL:
		if (result < 0)
			in->addr = 0;
		in->step = CHUNK_CLOSE;
		return true;
	default:
		return chunk_end(e, task);
	}
}

static bool memory_step(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;

	if (in->step == MEMORY_HIDE)
		return chunk_used(e, task);
	if (!memory_shown(task) && in->tries++ < TRIES)
		return true; /* another task was in its last step */
	in->step = MEMORY_HIDE;
	if (in->chunk && in->alone && place_path(e, task) < 0)
		return chunk_end(e, task);
	if (in->chunk)
		in->step = CHUNK_OPEN;
	return true;
}

/* The result of a step chooses the next; false when there is none. */
static bool step_end(struct engine *e, struct task *task, int64_t result)
{
	struct injection *in = task->inject;

	switch (in->step) {
	case CHUNK_OPEN:
	case CHUNK_MAP:
	case CHUNK_SEAL:
	case CHUNK_CLOSE:
		return chunk_step(e, task, result);
	case MEMORY_SHOW:
	case MEMORY_HIDE:
		return memory_step(e, task);
	case ANSWER_OPEN:
	case ANSWER_PROBE:
	case ANSWER_UNPROBE:
		return answer_step(e, task, result);
	case REPLACE_MOVE:
		replace_done(in);
		in->step = REPLACE_DROP;
		return true;
	case REPLACE_MAP:
		in->step = replace_mapped(e, task, result);
		return true;
	case REPLACE_DROP:
		return replace_next(e, task);
	default:
		return pass_step(task, result) || pass_end(e, task);
	}
}

static void step_over(struct engine *e, struct task *task, int64_t result)
{
	if (!step_end(e, task, result))
		inject_end(e, task);
	else
		step_start(e, task);
}

/* The instruction lies in the guest's memory. Another task may have changed it, and the task then makes a call of its own,
   about which nobody has decided. */
static bool is_own_call(struct task *task)
{
	const struct injection *in = task->inject;
	struct ptrace_syscall_info info;
	uint64_t args[6];
	int nr = arch_nr_of(in->abi, step_call(task, args));

	return ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
	       info.arch == in->abi->audit && info.entry.nr == (uint64_t)nr && !memcmp(info.entry.args, args, sizeof(args));
}

void inject_stop(struct engine *e, struct task *task, int status)
{
	struct injection *in = task->inject;
	int signo = WSTOPSIG(status), event = status >> 16;
	struct arch_regs regs;

	if (signo != (SIGTRAP | 0x80)) {
		if (event == 0 && signo != SIGSTOP) /* forced by what is at the instruction now, or by a guest's own filter */
			step_over(e, task, -EFAULT);
		else /* SIGSTOP cannot be blocked: it stops the process as ever, and SIGCONT lets the injection go on */
			ptrace(PTRACE_SYSCALL, task->tid, 0, event ? 0L : (long)SIGSTOP);
		return;
	}
	if (!in->at_entry) {
		in->at_entry = true;
		if (!is_own_call(task) || ((in->step == REPLACE_MOVE || in->step == REPLACE_MAP) && !replace_agrees(task)))
			arch_answer(task->tid, -EPERM);
		ptrace(PTRACE_SYSCALL, task->tid, 0, 0);
		return;
	}
	if (arch_regs_get(task->tid, &regs) == 0)
		step_over(e, task, arch_result(&regs, in->abi));
}

/* --- starting ----------------------------------------------------------------------------------------------------------- */

/* Whether the task is about to begin a call again that was interrupted. A signal that comes before it has begun would run its handler
   and then let the call block: one that is kept until then ends the call as it should. */
static bool is_restarting(struct task *task, const struct arch_regs *regs)
{
	uint64_t at = arch_restarts_at(regs);
	unsigned char code[8];
	size_t len;
	const unsigned char *insn = arch_insn(arch_all[arch_exec_abi(regs)], &len);

	return at && memory_read(task, at, code, len) == (ssize_t)len && !memcmp(code, insn, len);
}

static int inject_mask(struct task *task)
{
	uint64_t all = ~0ULL;

	if (!task->masked && ptrace(PTRACE_GETSIGMASK, task->tid, sizeof(task->sigmask), &task->sigmask))
		return -errno;
	if (ptrace(PTRACE_SETSIGMASK, task->tid, sizeof(all), &all))
		return -errno;
	task->masked = true;
	return 0;
}

void inject_guard(struct task *task)
{
	struct arch_regs regs;

	if (arch_regs_get(task->tid, &regs) == 0 && is_restarting(task, &regs))
		inject_mask(task);
}

static int inject_start(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	int error;

	in->stays_masked |= task->masked; /* a call that was to run again has not come yet */
	error = inject_mask(task);
	if (error == 0)
		error = step_start(e, task);
	if (error < 0)
		inject_free(e, task);
	return error;
}

static int inject_prepare(struct engine *e, struct task *task, struct injection *in)
{
	int error = maps_open(task);

	in->chunk = chunk_new(&e->window);
	if (!in->chunk)
		return -ENOMEM;
	if (in->alone) {
		in->abi = arch_all[arch_exec_abi(&in->saved)];
		in->insn = vdso_insn(task, in->abi);
		return in->insn ? place_path(e, task) : -ENOSYS;
	}
	in->abi = task->call.arch;
	in->insn = arch_call_insn(&in->saved);
	in->alone = !task->space->region_count;
	if (!in->alone)
		in->text_addr = task->space->regions[0].addr + CHUNK_TEXT;
	in->hidden = error == -EACCES;
	if (in->hidden) {
		in->step = MEMORY_SHOW;
		return 0;
	}
	return in->alone ? place_path(e, task) : 0;
}

static struct injection *injection_new(struct task *task, enum inject_kind kind, bool alone)
{
	struct injection *in = calloc(1, sizeof(*in));

	if (in && arch_regs_get(task->tid, &in->saved) < 0) {
		free(in);
		return NULL;
	}
	if (in) {
		in->kind = kind;
		in->step = kind == INJECT_MEMORY ? MEMORY_SHOW : CHUNK_OPEN;
		in->maps_fd = in->listener = -1;
		in->alone = alone;
		in->first = !alone;
		in->end = alone ? END_REGISTERS : END_REPEAT;
		in->slots = task->want_slots ? task->want_slots : 1;
		task->inject = in;
	}
	return in;
}

/* ALONE: at the exit stop of a successful execve. Otherwise at a call's stop; the call then comes again. A program that
   could not be given its window at exec gets it in this second way, while it has one task. */
int inject_window(struct engine *e, struct task *task, bool alone)
{
	struct injection *in = injection_new(task, INJECT_CHUNK, alone);
	int error;

	if (!in)
		return -ESRCH;
	error = inject_prepare(e, task, in);
	if (error == 0)
		return inject_start(e, task);
	if (alone && memory_open(task) == -EACCES)
		task->space->late = true; /* a program that may be run and not read */
	else if (error == -ENOSYS || error == -EFAULT)
		task_note(e, task, "this program has no vDSO to map the window through: calls that need it will be refused");
	inject_free(e, task);
	return error;
}

/* prctl(PR_SET_DUMPABLE) there and back: /proc/TID/mem, once open, stays usable (fs/proc/base.c: mem_open checks, mem_rw
   does not). */
int inject_dumpable(struct engine *e, struct task *task)
{
	struct injection *in = injection_new(task, INJECT_MEMORY, false);

	if (!in)
		return -ESRCH;
	in->abi = task->call.arch;
	in->insn = arch_call_insn(&in->saved);
	return inject_start(e, task);
}

/*
 * ANSWER_FD where the openat of a link has failed with ERROR, at its exit stop, whose registers as the guest shall see them are
 * REGS; or, REGS being NULL, at the call's stop: with ERROR -EAGAIN because there is no slot for the link's path, else because the
 * guest cannot follow one. The call is over then. 0, or a negative errno: nothing was begun.
 */
int inject_answer(struct engine *e, struct task *task, const struct arch_regs *regs, int64_t error)
{
	struct injection *in = injection_new(task, INJECT_ANSWER, false);
	int begun = 0;

	if (!in)
		return -ESRCH;
	if (regs)
		in->saved = *regs;
	in->first = !regs;
	in->end = END_RESULT;
	in->result = error;
	if (!regs && error == -EAGAIN) {
		begun = inject_prepare(e, task, in);
	} else {
		in->abi = task->call.arch;
		in->insn = arch_call_insn(&in->saved);
		in->step = ANSWER_PROBE;
		if (!regs)
			begun = answer_pass(e, task) ? 0 : (int)in->result;
		else
			begun = call_link(task, &in->addr);
	}
	if (begun < 0) {
		inject_free(e, task);
		return begun;
	}
	return inject_start(e, task);
}

/* At a stop that END names: END_REPEAT at a call's, END_TRAP at one that PTRACE_INTERRUPT has brought about. 0; -EPERM: this process
   cannot be made to; or another negative errno, and the process has been told of to replace_over(), as at the end. */
int inject_replace(struct engine *e, struct task *task, struct replacing *replacing, enum inject_end end)
{
	struct injection *in = injection_new(task, INJECT_REPLACE, end == END_TRAP);

	if (!in) {
		replace_over(e, replacing);
		return -ESRCH;
	}
	in->end = end;
	in->alone = false;
	in->abi = end == END_TRAP ? arch_all[arch_exec_abi(&in->saved)] : task->call.arch;
	in->insn = end == END_TRAP ? vdso_insn(task, in->abi) : arch_call_insn(&in->saved);
	if (!in->insn) {
		inject_free(e, task);
		return -EPERM;
	}
	in->stays_masked = end == END_TRAP && is_restarting(task, &in->saved);
	in->replacing = replacing;
	if (replace_next(e, task))
		return inject_start(e, task);
	inject_free(e, task);
	return -ENOENT;
}
