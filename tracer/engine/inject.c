/*
 * inject.c - system calls that a guest makes for the supervisor.
 *
 * Only where nothing else will do: mapping the window, and opening the memory of a process that is not dumpable. The task's
 * signals are blocked meanwhile; a stop of the process is an ordinary one. Two stops for each call; a single step would need
 * one, but its forced SIGTRAP resets the guest's own action for a SIGTRAP that it ignores (force_sig_info_to_task).
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
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/ids.h"
#include "tracer/engine/internal.h"

enum { VDSO_MAX = 16 << 10, AUXV_MAX = 1024, PATH_BELOW_SP = 256, TRIES = 100 };

/* --- a system-call instruction of a fresh program: the vDSO has one --------------------------------------------------- */

static uint64_t vdso_base(struct task *task, const struct arch *abi)
{
	union { uint64_t w8[AUXV_MAX / 8]; uint32_t w4[AUXV_MAX / 4]; } auxv;
	char path[40];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", task->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, &auxv, sizeof(auxv));
	close(fd);
	for (ssize_t i = 0; i + 2 <= n / abi->word; i += 2) {
		uint64_t type = abi->word == 8 ? auxv.w8[i] : auxv.w4[i];

		if (type == AT_SYSINFO_EHDR)
			return abi->word == 8 ? auxv.w8[i + 1] : auxv.w4[i + 1];
	}
	return 0;
}

/* The offset is the same in every program of one boot: it is looked for once, and only checked later. */
static uint64_t vdso_insn(struct task *task, const struct arch *abi)
{
	static size_t known[ARCH_COUNT];
	unsigned char image[VDSO_MAX];
	uint64_t base = vdso_base(task, abi);
	size_t len;
	const unsigned char *insn = arch_insn(abi, &len);
	const unsigned char *at;
	ssize_t n;

	if (!base)
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
	free(in);
	task->inject = NULL;
}

/* --- the steps ---------------------------------------------------------------------------------------------------------- */

/* Which call the step is. */
static int step_call(const struct task *task, uint64_t args[6])
{
	const struct injection *in = task->inject;
	int id = CALL_prctl;

	memset(args, 0, 6 * sizeof(args[0]));
	switch (in->step) {
	case INJECT_OPEN:
		id = CALL_openat;
		args[0] = (uint32_t)AT_FDCWD, args[1] = in->text_addr, args[2] = O_RDONLY | O_CLOEXEC;
		break;
	case INJECT_MAP:
		id = in->abi->word == 8 ? CALL_mmap : CALL_mmap2;
		args[1] = CHUNK_SIZE, args[2] = PROT_READ, args[3] = MAP_SHARED | ARCH_WINDOW_MMAP_FLAGS, args[4] = in->fd;
		args[5] = (uint64_t)in->chunk->index * CHUNK_SIZE / (in->abi->word == 8 ? 1 : 4096);
		break;
	case INJECT_SEAL:
		id = CALL_mseal;
		args[0] = in->addr, args[1] = CHUNK_SIZE;
		break;
	case INJECT_CLOSE:
		id = CALL_close;
		args[0] = in->fd;
		break;
	case INJECT_DUMPABLE:
		args[0] = PR_SET_DUMPABLE, args[1] = 1;
		break;
	case INJECT_UNDUMPABLE:
		args[0] = PR_SET_DUMPABLE;
		break;
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
	uint64_t addr = in->addr;
	unsigned long long start, end, offset, inode;
	unsigned dev_major, dev_minor;
	char line[512], perms[5];
	struct stat own;
	bool found = false;
	FILE *maps = fstat(e->window.fd, &own) ? NULL : fdopen(in->maps_fd, "r");

	if (maps)
		in->maps_fd = -1; /* closed with it */
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &start, &end, perms, &offset, &dev_major, &dev_minor, &inode) != 7)
			continue;
		found = start <= addr && end >= addr + CHUNK_SIZE && !strcmp(perms, "r--s") && inode == own.st_ino &&
		        makedev(dev_major, dev_minor) == own.st_dev &&
		        offset + (addr - start) == (unsigned long long)in->chunk->index * CHUNK_SIZE;
	}
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
	if (in->repeat) /* others may take all slots before the call comes again */
		slot_reserve(task, &regions[space->region_count - 1]);
}

static void inject_end(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	struct arch_regs regs = in->saved;

	if (in->repeat)
		arch_repeat_call(&regs, &in->saved);
	arch_regs_set(task->tid, &regs);
	ptrace(PTRACE_SETSIGMASK, task->tid, sizeof(in->sigmask), &in->sigmask);
	inject_free(e, task);
	task_resume(e, task, 0);
}

/* What was to be done for the chunk is done, or failed. Whether a step is left. */
static bool chunk_end(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;

	if (in->addr)
		region_add(e, task);
	if (in->chunk) {
		task_note(e, task, "the window could not be mapped: calls that need it will be refused");
		chunk_unref(&e->window, in->chunk);
	}
	in->chunk = NULL;
	if (in->placed && memory_write(task, in->text_addr, in->stack, sizeof(in->stack)) < 0)
		task_note(e, task, "a new program's stack could not be put back");
	in->placed = false;
	in->step = INJECT_UNDUMPABLE;
	return in->hidden;
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

/* The result of a step chooses the next; false when there is none. */
static bool step_end(struct engine *e, struct task *task, int64_t result)
{
	struct injection *in = task->inject;

	switch (in->step) {
	case INJECT_OPEN:
		if (result < 0)
			return chunk_end(e, task);
		in->fd = result;
		in->step = INJECT_MAP;
		return true;
	case INJECT_MAP:
		in->addr = result < 0 && result >= -4095 ? 0 : in->abi->word == 8 ? (uint64_t)result : (uint32_t)result;
		in->step = in->addr && e->seal ? INJECT_SEAL : INJECT_CLOSE;
		return true;
	case INJECT_SEAL:
		if (result < 0)
			in->addr = 0;
		in->step = INJECT_CLOSE;
		return true;
	case INJECT_DUMPABLE:
		if (!memory_shown(task) && in->tries++ < TRIES)
			return true; /* another task was in its last step */
		in->step = INJECT_UNDUMPABLE;
		if (in->chunk && in->alone && place_path(e, task) < 0)
			return chunk_end(e, task);
		if (in->chunk)
			in->step = INJECT_OPEN;
		return true;
	case INJECT_CLOSE:
		return chunk_end(e, task);
	case INJECT_UNDUMPABLE:
		return false;
	}
	return false;
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
		if (!is_own_call(task))
			arch_answer(task->tid, -EPERM);
		ptrace(PTRACE_SYSCALL, task->tid, 0, 0);
		return;
	}
	if (arch_regs_get(task->tid, &regs) == 0)
		step_over(e, task, arch_result(&regs, in->abi));
}

/* --- starting ----------------------------------------------------------------------------------------------------------- */

static int inject_start(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	uint64_t all = ~0ULL;
	int error = -ESRCH;

	if (ptrace(PTRACE_GETSIGMASK, task->tid, sizeof(in->sigmask), &in->sigmask) == 0 &&
	    ptrace(PTRACE_SETSIGMASK, task->tid, sizeof(all), &all) == 0)
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
		in->step = INJECT_DUMPABLE;
		return 0;
	}
	return in->alone ? place_path(e, task) : 0;
}

static struct injection *injection_new(struct task *task, enum inject_step step, bool alone)
{
	struct injection *in = calloc(1, sizeof(*in));

	if (in && arch_regs_get(task->tid, &in->saved) < 0) {
		free(in);
		return NULL;
	}
	if (in) {
		in->step = step;
		in->maps_fd = -1;
		in->alone = alone;
		in->first = in->repeat = !alone;
		task->inject = in;
	}
	return in;
}

/* ALONE: at the exit stop of a successful execve. Otherwise at a call's stop; the call then comes again. A program that
   could not be given its window at exec gets it in this second way, while it has one task. */
int inject_window(struct engine *e, struct task *task, bool alone)
{
	struct injection *in = injection_new(task, INJECT_OPEN, alone);
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
	struct injection *in = injection_new(task, INJECT_DUMPABLE, false);

	if (!in)
		return -ESRCH;
	in->abi = task->call.arch;
	in->insn = arch_call_insn(&in->saved);
	return inject_start(e, task);
}
