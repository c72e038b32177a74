/*
 * stops.c - what each thing that wait(2) tells of a guest means, and how the guest goes on.
 *
 *   exited, signaled        the task is gone
 *   EVENT_SECCOMP           a call that our filter stopped (or a guest's own filter)
 *   SIGTRAP | 0x80          entry or exit of a call
 *   EVENT_CLONE/FORK/VFORK  a task has a child; the child's own first stop may have come before
 *   EVENT_EXEC              a new program; the tid is the leader's now
 *   EVENT_STOP, SIGTRAP     first stop of a child, or continued after a group-stop
 *   EVENT_STOP, other       group-stop: stays stopped until SIGCONT (PTRACE_LISTEN)
 *   anything else           a signal about to be delivered
 *
 * Any ptrace request may say ESRCH: the task was killed meanwhile and its end will be told.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/engine/internal.h"
#include "tracer/engine/procstatus.h"

void task_note(struct engine *e, struct task *task, const char *text)
{
	if (e->options.events->note)
		e->options.events->note(e->options.context, task->tid, text);
}

void task_resume(struct engine *e, struct task *task, int signo)
{
	bool each = (e->options.mechanism == ENGINE_PTRACE && (e->exec_done || task->tid == e->root)) || task->in_call || task->masked;

	if (e->replacing)
		replace_keep(e, task);
	ptrace(each ? PTRACE_SYSCALL : PTRACE_CONT, task->tid, 0, (long)signo);
}

/* Whether the guest has a seccomp filter of its own, which may kill it for a call that it never makes. Before Linux 5.9 it cannot be
   known. */
bool task_has_own_filter(struct engine *e, struct task *task)
{
	struct procstatus_field filters = { "Seccomp_filters:", 10, 0 };

	if (e->own_filters == UINT64_MAX) {
		procstatus_read(e->tid, &filters, 1);
		e->own_filters = filters.value + (e->options.mechanism == ENGINE_TRACE);
		filters.value = 0;
	}
	return procstatus_read(task->tid, &filters, 1) < 0 || filters.value > e->own_filters;
}

/* --- the end ------------------------------------------------------------------------------------------------------------ */

static void kill_one(struct engine *e, struct task *task, void *data)
{
	(void)e, (void)data;
	if (!task->dead)
		syscall(SYS_tkill, task->tid, SIGKILL); /* the process of a new one may not be known yet */
}

void kill_all(struct engine *e)
{
	enum { PATIENCE_S = 10 };

	if (!e->ending) {
		e->kill_until = clock_now() + PATIENCE_S * 1000000000ULL;
		e->ending = true;
		clock_start(e, CLOCK_MS);
	}
	task_each(e, kill_one, NULL);
}

/* --- tasks whose parent's event has not come ------------------------------------------------------------------------------ */

/* PPid and Tgid of a stopped task; 0 where they cannot be read. */
static void read_parents(pid_t tid, pid_t *tgid, pid_t *ppid)
{
	struct procstatus_field fields[] = { { "Tgid:", 10, 0 }, { "PPid:", 10, 0 } };

	procstatus_read(tid, fields, 2);
	*tgid = (pid_t)fields[0].value;
	*ppid = (pid_t)fields[1].value;
}

/* PARENT is NULL where it is not known, with FLAGS 0. */
static void adopt(struct engine *e, struct task *task, struct task *parent, uint64_t flags, struct space *space)
{
	if (parent) {
		task->call.tgid = flags & CLONE_THREAD ? parent->call.tgid : task->tid;
		task->call.foreign = parent->call.foreign;
	}
	space_unref(e, task->space);
	task->space = space;
	task->adopted = true;
	e->limbo--;
	if (e->options.events->clone)
		e->options.events->clone(e->options.context, parent ? &parent->call : NULL, &task->call, flags);
	if (task->started && !e->ending)
		task_resume(e, task, 0);
}

struct lost { pid_t exec_tgid; };

/* A parent that was killed, or whose thread an exec ended, before it told of its child will never tell. The child goes on
   with an address space of which nothing is known, so what needs the window is refused. */
static void adopt_lost(struct engine *e, struct task *task, void *data)
{
	const struct lost *lost = data;
	pid_t tgid, ppid;
	struct space *space;

	if (task->adopted || !task->started || task->dead)
		return;
	read_parents(task->tid, &tgid, &ppid);
	if (tgid != task->tid) /* a thread: what killed its creator kills it too */
		return;
	if (task_find(e, ppid) && ppid != lost->exec_tgid)
		return;
	space = space_new();
	if (!space)
		return;
	hold_inherit(e, NULL, task);
	adopt(e, task, NULL, 0, space);
}

static void adopt_all_lost(struct engine *e, pid_t exec_tgid)
{
	struct lost lost = { exec_tgid };

	if (e->limbo > e->dead)
		task_each(e, adopt_lost, &lost);
}

static void drop_dead(struct engine *e, struct task *task, void *data)
{
	enum { OLD_NS = 1000000000 };

	if (!task->dead || *(uint64_t *)data - task->last_stop < OLD_NS)
		return;
	e->dead--;
	task_remove(e, task);
}

/* Remembered until the parent tells of it, and not for ever: the parent may have died as well. */
static void remember_dead(struct engine *e, struct task *task)
{
	enum { MANY_DEAD = 64 };
	uint64_t now = clock_now();

	task->dead = true;
	task->last_stop = now;
	if (++e->dead > MANY_DEAD)
		task_each(e, drop_dead, &now);
}

/* --- life ----------------------------------------------------------------------------------------------------------------- */

static void check_root_stopped(struct engine *e);

static void on_end(struct engine *e, struct task *task, int status)
{
	bool root = task->tid == e->root, in_call = task->in_call && task->want_end;
	pid_t tgid;

	if (!task->adopted && !root) {
		remember_dead(e, task);
		return;
	}
	if (e->options.events->task_end && e->exec_done)
		e->options.events->task_end(e->options.context, &task->call, status, in_call);
	tgid = task->call.tgid;
	task_remove(e, task);
	replace_changed(e, tgid);
	if (root) {
		e->root_ended = true;
		e->root_status = status;
		kill_all(e);
	}
	adopt_all_lost(e, 0);
	if (e->stop_wanted)
		check_root_stopped(e);
}

static struct space *child_space(struct task *parent, uint64_t flags)
{
	if (!parent->space)
		return space_new();
	return flags & CLONE_VM ? space_ref(parent->space) : space_fork(parent->space);
}

static void on_clone(struct engine *e, struct task *task, int event)
{
	unsigned long message;
	struct arch_regs regs;
	struct task *child;
	struct space *space;
	uint64_t flags;

	if (ptrace(PTRACE_GETEVENTMSG, task->tid, 0, &message) || arch_regs_get(task->tid, &regs) < 0)
		return; /* killed: the child is adopted when our end is told */
	flags = arch_clone_flags(&regs);
	task->in_vfork = event == PTRACE_EVENT_VFORK;
	if (task->in_vfork)
		replace_changed(e, task->call.tgid);
	child = task_find(e, message);
	if (child && child->dead) {
		e->dead--;
		task_remove(e, child);
	} else if (!child || !child->adopted) {
		if (!child)
			child = task_add(e, message);
		space = child ? child_space(task, flags) : NULL;
		if (!space) {
			task_note(e, task, "out of memory: the run is ended");
			kill_all(e);
			return;
		}
		hold_inherit(e, task, child);
		adopt(e, child, task, flags, space);
	}
	task_resume(e, task, 0);
}

/* The other threads are gone, and the one that called execve has the leader's tid. The leader's own end is told by nobody. */
static struct task *on_exec_rename(struct engine *e, struct task *leader, pid_t tid, pid_t former)
{
	struct task *task = former == tid ? leader : task_find(e, former);

	if (!task || task == leader)
		return leader;
	if (leader) {
		if (e->options.events->task_end)
			e->options.events->task_end(e->options.context, &leader->call, -1, leader->in_call && leader->want_end);
		task_remove(e, leader);
	}
	task_rename(e, task, tid);
	return task;
}

/* The program's own first execve. No instruction of it has run yet. */
static bool root_exec(struct engine *e)
{
	struct ptrace_syscall_info info;

	e->old_kernel = ptrace(PTRACE_GET_SYSCALL_INFO, e->root, sizeof(info), &info) < 0 && errno == EIO;
	e->exec_done = !e->old_kernel;
	if (e->old_kernel)
		kill_all(e);
	return e->exec_done;
}

static void on_exec(struct engine *e, struct task *task, pid_t tid)
{
	unsigned long former = tid;
	struct space *space = space_new();

	ptrace(PTRACE_GETEVENTMSG, tid, 0, &former);
	task = on_exec_rename(e, task, tid, former);
	if (!task)
		task = task_add(e, tid);
	if (!task || !space) {
		kill_all(e);
		return;
	}
	if (!task->adopted)
		adopt(e, task, NULL, 0, NULL);
	task->started = true;
	task->call.tgid = tid;
	task->stopped = task->in_vfork = task->waiting = task->call.foreign = false;
	call_forget(e, task); /* the kernel has its own copy of the path; registers are the new program's */
	space_unref(e, task->space);
	task->space = space;
	if (tid == e->root && !e->exec_done && !root_exec(e))
		return;
	if (e->options.events->exec)
		e->options.events->exec(e->options.context, &task->call, former);
	adopt_all_lost(e, tid);
	if (e->options.window) {
		task->map_window = true;
		task->in_call = true; /* the window is mapped at the exit stop of execve */
	}
	task_resume(e, task, 0);
}

/* --- signals and stops ------------------------------------------------------------------------------------------------------ */

static void on_signal(struct engine *e, struct task *task, int signo)
{
	siginfo_t info;

	if (e->options.events->signal && ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info) == 0)
		e->options.events->signal(e->options.context, &task->call, &info);
	task_resume(e, task, signo); /* the kernel keeps its siginfo for the same number */
}

struct group { pid_t pgid; bool running; };

static void look_for_running(struct engine *e, struct task *task, void *data)
{
	struct group *group = data;

	(void)e;
	if (!group->running && !task->stopped && !task->in_vfork && !task->dead && getpgid(task->call.tgid) == group->pgid)
		group->running = true;
}

/* Whether a group-stopped task has not been continued meanwhile: it is then on its way to its next stop, or there already
   with an event that we have not seen. In this order: what wakes between the two looks has an event at the second. */
static bool is_still_stopped(pid_t tid)
{
	siginfo_t info = { .si_pid = 0 };
	char state = procstatus_state(tid);

	if (state != 't' && state != 'T')
		return false;
	return waitid(P_PID, tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid == 0;
}

/* We stop ourselves only after the first guest and all of its process group have: one of them that still runs may be about
   to continue it, and would wait for us for ever. */
static void check_root_stopped(struct engine *e)
{
	struct task *root = task_find(e, e->root);
	struct group group = { 0 };
	int signo = e->stop_wanted;

	if (!root || !root->stopped) {
		e->stop_wanted = 0;
		return;
	}
	group.pgid = getpgid(root->tid);
	task_each(e, look_for_running, &group);
	if (group.running || !is_still_stopped(root->tid))
		return;
	e->stop_wanted = 0;
	if (e->options.events->stopped)
		e->options.events->stopped(e->options.context, signo);
}

static bool is_stop_signal(int signo)
{
	return signo == SIGSTOP || signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

static void on_stop(struct engine *e, struct task *task, int signo)
{
	if (!is_stop_signal(signo)) {
		if (replace_here(e, task, END_TRAP))
			return;
		if (task->interrupted)
			inject_guard(task);
		task->interrupted = false;
		task_resume(e, task, 0);
		return;
	}
	task->stopped = true;
	ptrace(PTRACE_LISTEN, task->tid, 0, 0);
	replace_changed(e, task->call.tgid);
	if (task->tid == e->root)
		e->stop_wanted = signo;
	if (e->stop_wanted)
		check_root_stopped(e);
}

static void on_syscall(struct engine *e, struct task *task)
{
	struct ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		call_exit(e, task);
	} else if (e->options.mechanism == ENGINE_PTRACE) {
		call_stop(e, task);
	} else { /* the filter will stop it */
		task->in_call = false;
		task_resume(e, task, 0);
	}
}

/* The first we hear of a task. Its first stop is EVENT_STOP; until the parent has told whose child it is, it waits. */
static void on_unknown(struct engine *e, pid_t tid, int status)
{
	struct task *task;

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		task = task_add(e, tid);
		if (task)
			remember_dead(e, task);
		return;
	}
	task = task_add(e, tid);
	if (!task || e->ending) {
		syscall(SYS_tkill, tid, SIGKILL);
		return;
	}
	task->started = true;
	adopt_lost(e, task, &(struct lost){ 0 }); /* its parent may be gone already */
}

/* Whether it must wait for its parent's event. */
static bool is_born(struct task *task)
{
	bool first = !task->started;

	task->started = true;
	return first && !task->adopted;
}

void engine_dispatch(struct engine *e, pid_t tid, int status)
{
	struct task *task = task_find(e, tid);
	int event = status >> 16, signo = WSTOPSIG(status);

	if (task && task->dead) { /* the number is used again */
		e->dead--;
		task_remove(e, task);
		task = NULL;
	}
	if (!task && event != PTRACE_EVENT_EXEC) {
		on_unknown(e, tid, status);
		return;
	}
	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		on_end(e, task, status);
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	if (event == PTRACE_EVENT_EXEC) {
		on_exec(e, task, tid);
		return;
	}
	if (is_born(task))
		return;
	if (e->ending) { /* SIGKILL is on its way, except to who has just been born */
		kill_one(e, task, NULL);
		return;
	}
	if (event != PTRACE_EVENT_STOP || !is_stop_signal(signo)) {
		task->stopped = false;
		if (task->inject) {
			inject_stop(e, task, status);
			return;
		}
	}
	if (event != PTRACE_EVENT_STOP)
		inject_unmask(task);
	if (signo == (SIGTRAP | 0x80)) {
		task->in_vfork = false;
		on_syscall(e, task);
		return;
	}
	switch (event) {
	case PTRACE_EVENT_SECCOMP:
		task->in_vfork = false;
		call_stop(e, task);
		break;
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		on_clone(e, task, event);
		break;
	case PTRACE_EVENT_STOP:
		on_stop(e, task, signo);
		break;
	case 0:
		task->in_vfork = false;
		on_signal(e, task, signo);
		break;
	default:
		task_resume(e, task, 0);
	}
}
