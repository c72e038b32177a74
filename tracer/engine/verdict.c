/* verdict.c - a stopped call: what it is, what was decided, and how the kernel is made to do it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <unistd.h>

#include "arch/ids.h"
#include "tracer/engine/internal.h"

static int call_fill(struct task *task, const struct ptrace_syscall_info *info)
{
	struct call *call = &task->call;
	bool seccomp = info->op == PTRACE_SYSCALL_INFO_SECCOMP;

	call->arch = arch_by_audit(info->arch);
	if (!call->arch)
		return -ENOSYS;
	call->nr = seccomp ? info->seccomp.nr : info->entry.nr;
	call->id = arch_call_of(call->arch, call->nr);
	memcpy(call->args, seccomp ? info->seccomp.args : info->entry.args, sizeof(call->args));
	call->ip = info->instruction_pointer;
	call->sp = info->stack_pointer;
	call->read_memory = false;
	task->want_slots = 0;
	task->want_memory = false;
	return 0;
}

static void call_told(struct engine *e, struct task *task, int64_t result)
{
	if (task->want_end && e->options.events->call_end)
		e->options.events->call_end(e->options.context, &task->call, result);
	task->want_end = false;
}

void call_forget(struct engine *e, struct task *task)
{
	(void)e;
	slots_release(task);
	if (task->answer_fd >= 0)
		close(task->answer_fd);
	task->answer_fd = -1;
	task->restore = task->linked = false;
}

void call_over(struct engine *e, struct task *task, int64_t result)
{
	task->in_call = false;
	call_forget(e, task);
	call_told(e, task, result);
}

/* On ENGINE_TRACE an answered call has no further stop: its end is told here. */
static void answer(struct engine *e, struct task *task, int64_t value)
{
	call_forget(e, task);
	if (arch_answer(task->tid, value) < 0)
		return; /* dying: its end will come */
	call_told(e, task, value);
	task->in_call = task->answered = e->options.mechanism == ENGINE_PTRACE;
	task->answer = value;
	task_resume(e, task, 0);
}

static void apply_answer(struct engine *e, struct task *task, const struct verdict *verdict)
{
	int64_t value = verdict->value;

	for (unsigned i = 0; i < verdict->writes && i < VERDICT_WRITES; i++) {
		const struct verdict_write *write = &verdict->write[i];

		if (memory_answer(task, write->addr, write->data, write->len) != (ssize_t)write->len)
			value = -EFAULT;
	}
	answer(e, task, value);
}

static void apply_rewrite(struct engine *e, struct task *task, int id, const uint64_t args[6])
{
	const struct arch *arch = task->call.arch;
	int nr = arch_nr_of(arch, id);
	struct arch_regs regs;

	if (nr < 0) {
		task_note(e, task, "a call was to be rewritten to one that this architecture lacks: refused");
		answer(e, task, -EPERM);
		return;
	}
	if (arch_regs_get(task->tid, &task->before) < 0)
		return;
	regs = task->before;
	arch_set_call(&regs, arch, nr, args);
	if (arch_regs_set(task->tid, &regs) < 0)
		return;
	task->before_abi = arch;
	task->restore = task->in_call = true;
	task_resume(e, task, 0);
}

/* Address of the path of a link to answer_fd, in the window. 0, or as guest_window_put(). */
int call_link(struct task *task, uint64_t *addr)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), task->answer_fd);
	return guest_window_put(&task->call, path, strlen(path) + 1, addr);
}

/* Makes answer_fd the very open file that the guest is to get. 0 or a negative errno. */
int call_ready(struct engine *e, struct task *task)
{
	const struct engine_events *events = e->options.events;
	int mode = fcntl(task->answer_fd, F_GETFL), want = task->answer_flags, fd;

	if (task_has_own_filter(e, task))
		return -EACCES;
	if (task->answer_ready || (mode & want & O_PATH))
		return 0;
	if (!((mode | want) & O_PATH) && ((mode ^ want) & O_ACCMODE) == 0)
		return fcntl(task->answer_fd, F_SETFL, want) ? -errno : 0;
	fd = events->reopen ? events->reopen(e->options.context, &task->call, task->answer_fd, want) : -EACCES;
	if (fd < 0)
		return fd;
	close(task->answer_fd);
	task->answer_fd = fd;
	return 0;
}

/* The magic link names exactly that open file, whatever is renamed meanwhile. */
static void apply_answer_fd(struct engine *e, struct task *task, const struct verdict *verdict)
{
	const int never = O_CREAT | O_EXCL | O_NOFOLLOW;
	uint64_t args[6] = { (uint32_t)AT_FDCWD, 0, (uint32_t)(verdict->fd_flags & ~never) };
	int error = -EACCES;

	task->answer_fd = verdict->fd;
	task->answer_flags = verdict->fd_flags & ~never;
	task->answer_ready = verdict->foreign;
	if (!verdict->foreign && !task->call.foreign)
		error = call_link(task, &args[1]);
	if (error == -EACCES || error == -EAGAIN) {
		error = inject_answer(e, task, NULL, error);
		if (error == 0 || error == -ESRCH)
			return;
	}
	if (error < 0) {
		answer(e, task, error == -EACCES ? error : -EPERM);
		return;
	}
	apply_rewrite(e, task, CALL_openat, args);
	task->linked = true;
}

/* The rule of section 2 of the design, kept here for all handlers. */
static void apply_forward(struct engine *e, struct task *task)
{
	if (task->call.read_memory) {
		task_note(e, task, "a call that was decided by guest memory was to run with that memory: refused");
		answer(e, task, -EPERM);
		return;
	}
	call_forget(e, task);
	task->in_call = e->options.mechanism == ENGINE_PTRACE || task->want_end;
	if (!arch_has_exit_stop(task->call.ip)) {
		call_told(e, task, 0);
		task->in_call = false;
	}
	task_resume(e, task, 0);
}

/* Nobody has decided: the task stays where it is. Its signals stay pending; SIGKILL and another thread's exec end it as ever. */
static void apply_wait(struct engine *e, struct task *task)
{
	call_forget(e, task);
	task->want_end = false;
	task->waiting = true;
}

/* The handler lacked something that only the guest itself can get: drop the verdict, get it, and let the call come again. */
static bool call_again(struct engine *e, struct task *task, const struct verdict *verdict)
{
	bool writes = verdict->kind == VERDICT_ANSWER && verdict->writes;
	uint8_t want = task->want_slots ? REPEATED_CHUNK : 0;
	int error;

	if (writes && memory_open(task) == -EACCES)
		task->want_memory = true;
	if (task->want_memory && (task->call.read_memory || writes))
		want = REPEATED_MEMORY;
	if (!want || (task->repeated & want))
		return false;
	if (verdict->kind == VERDICT_ANSWER_FD && task->answer_fd < 0)
		close(verdict->fd);
	task->repeated |= want;
	call_forget(e, task);
	error = want == REPEATED_CHUNK ? inject_window(e, task, false) : inject_dumpable(e, task);
	if (error < 0 && error != -ESRCH)
		answer(e, task, -EPERM);
	return true;
}

static void apply(struct engine *e, struct task *task, const struct verdict *verdict)
{
	if (call_again(e, task, verdict))
		return;
	task->repeated = 0;
	task->want_end = verdict->want_end;
	switch (verdict->kind) {
	case VERDICT_FORWARD:
		apply_forward(e, task);
		return;
	case VERDICT_ANSWER:
		apply_answer(e, task, verdict);
		return;
	case VERDICT_ANSWER_FD:
		apply_answer_fd(e, task, verdict);
		return;
	case VERDICT_REWRITE:
		apply_rewrite(e, task, verdict->id, verdict->args);
		return;
	case VERDICT_WAIT:
		apply_wait(e, task);
		return;
	case VERDICT_KILL:
		break;
	}
	kill_all(e);
}

/* A guest's filter that returns RET_TRACE wins over ours by being newer (seccomp_run_filters); without a tracer the kernel
   answers ENOSYS, and so do we. */
static bool of_other_filter(const struct engine *e, const struct ptrace_syscall_info *info)
{
	return info->op == PTRACE_SYSCALL_INFO_SECCOMP && (uint16_t)info->seccomp.ret_data != e->options.filter_data;
}

void call_stop(struct engine *e, struct task *task)
{
	struct ptrace_syscall_info info;
	struct verdict verdict;

	task->waiting = task->again = false;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) <= 0)
		return;
	if (task->in_call) { /* its exit stop never came */
		call_forget(e, task);
		call_told(e, task, 0);
		task->in_call = task->answered = false;
	}
	if (call_fill(task, &info) < 0 || of_other_filter(e, &info)) {
		answer(e, task, -ENOSYS);
		return;
	}
	hold_stop(e, task);
	if (replace_here(e, task, END_REPEAT))
		return;
	if (!e->exec_done && task->call.id != CALL_execve) { /* our own code in the child */
		verdict = verdict_forward();
		apply(e, task, &verdict);
		return;
	}
	verdict = e->options.events->call(e->options.context, &task->call);
	apply(e, task, &verdict);
}

void engine_again(struct engine *e, pid_t tid)
{
	struct task *task = task_find(e, tid);

	if (task)
		task->again = e->again = true;
}

static void wake_one(struct engine *e, struct task *task, void *data)
{
	bool again = task->again && task->waiting && !task->dead && !e->ending;

	(void)data;
	task->again = false;
	if (again)
		call_stop(e, task);
}

void call_wake(struct engine *e)
{
	e->again = false;
	task_each(e, wake_one, NULL);
}

static bool link_refused(int64_t result)
{
	return result == -EACCES || result == -EPERM || result == -ENOENT;
}

void call_exit(struct engine *e, struct task *task)
{
	struct ptrace_syscall_info info = { 0 };
	int64_t result = 0;

	if (task->answered) {
		task->answered = false;
		if (arch_answer(task->tid, task->answer) < 0)
			return;
	} else if (task->restore) {
		struct arch_regs regs;

		if (arch_regs_get(task->tid, &regs) < 0)
			return;
		result = arch_result(&regs, task->before_abi);
		arch_restore_call(&regs, &task->before, task->before_abi);
		if (task->linked && link_refused(result)) {
			task->restore = false;
			if (inject_answer(e, task, &regs, result) == 0)
				return;
		}
		if (arch_regs_set(task->tid, &regs) < 0)
			return;
	} else if (task->want_end) {
		if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) <= 0)
			return;
		result = info.exit.rval;
	}
	call_over(e, task, result);
	if (task->map_window) {
		task->map_window = false;
		if (inject_window(e, task, true) == 0)
			return;
	}
	task_resume(e, task, 0);
}
