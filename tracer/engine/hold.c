/*
 * hold.c - keeps a task that stops often on the supervisor's CPU.
 *
 * The wake-up of a resumed tracee is not synchronous: the scheduler sends it to an idle CPU each time, and a stop costs six
 * times as much. So a task with a streak of quick stops is bound to the CPU where the supervisor runs, and let go as soon as
 * it computes for longer, or waits for that CPU. The guest never sees it: calls about its affinity come through
 * guest_affinity_settle(), children start with the guest's own.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

enum {
	QUICK_NS = 150 * 1000,         /* a stop so soon after the last one is part of a streak; a cross-CPU stop takes up to 100,000 */
	STREAK = 6,                    /* so many hold the task */
	TICK_MS = 4,
	COMPUTES_NS = 2 * 1000 * 1000, /* no stop for so long: let go */
	WAITED_SHARE = 3,              /* waited for the CPU for more than 1/3 of a tick while another one is held: let go */
	AGAIN_NS = 50 * 1000 * 1000,   /* and not held again for so long */
	SETTLE_NS = 100 * 1000 * 1000
};

void hold_init(struct engine *e)
{
	e->hold.cpu = -1;
}

static void hold_off_list(struct engine *e, struct task *task)
{
	*task->held_prev = task->held_next;
	if (task->held_next)
		task->held_next->held_prev = task->held_prev;
	task->held = false;
	if (--e->hold.count)
		return;
	sched_setaffinity(0, sizeof(e->hold.own_cpus), &e->hold.own_cpus);
	e->hold.cpu = -1;
	clock_stop(e);
}

void hold_release(struct engine *e, struct task *task)
{
	if (!task->held)
		return;
	sched_setaffinity(task->tid, sizeof(task->own_cpus), &task->own_cpus);
	hold_off_list(e, task);
}

/* Time that a task was runnable but not running, ns: the second field of schedstat. */
static uint64_t run_delay(pid_t tid)
{
	unsigned long long on_cpu, delay = 0;
	char path[48], text[80];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", tid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%llu %llu", &on_cpu, &delay) == 2 ? delay : 0;
}

static bool hold_self(struct engine *e, const cpu_set_t *allowed)
{
	cpu_set_t one;
	int cpu = e->hold.cpu;

	if (cpu >= 0)
		return CPU_ISSET(cpu, allowed);
	cpu = sched_getcpu();
	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, allowed))
		return false;
	if (sched_getaffinity(0, sizeof(e->hold.own_cpus), &e->hold.own_cpus))
		return false;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return false;
	e->hold.cpu = cpu;
	e->hold.last_tick = clock_now();
	e->hold.run_delay = run_delay(getpid());
	clock_start(e, TICK_MS);
	return true;
}

static void hold_take(struct engine *e, struct task *task)
{
	cpu_set_t one;

	/* a host with more CPUs than a cpu_set_t has bits is left alone */
	if (sched_getaffinity(task->tid, sizeof(task->own_cpus), &task->own_cpus) || CPU_COUNT(&task->own_cpus) < 2)
		return;
	if (!hold_self(e, &task->own_cpus))
		return;
	CPU_ZERO(&one);
	CPU_SET(e->hold.cpu, &one);
	if (sched_setaffinity(task->tid, sizeof(one), &one))
		return;
	task->held = task->ever_held = true;
	task->run_delay = run_delay(task->tid);
	task->held_next = e->hold.tasks;
	task->held_prev = &e->hold.tasks;
	if (task->held_next)
		task->held_next->held_prev = &task->held_next;
	e->hold.tasks = task;
	e->hold.count++;
}

void hold_stop(struct engine *e, struct task *task)
{
	uint64_t now = clock_now();

	task->streak = now - task->last_stop < QUICK_NS ? task->streak + 1 : 0;
	task->last_stop = now;
	if (task->streak >= STREAK && !task->held && now >= task->hold_after) {
		task->streak = 0;
		hold_take(e, task);
	}
}

/* LAST: what run_delay() of the task said at the last tick. */
static bool waits_too_long(pid_t tid, uint64_t *last, uint64_t tick)
{
	uint64_t delay = run_delay(tid), waited = delay - *last;

	*last = delay;
	return delay && waited > tick / WAITED_SHARE;
}

static void hold_let_go(struct engine *e, struct task *task, uint64_t now)
{
	task->hold_after = now + AGAIN_NS;
	hold_release(e, task);
}

/* At most one task is let go for waiting in each tick: the others may then have what they need. All are where we wait ourselves:
   somebody else wants this CPU. */
void hold_tick(struct engine *e)
{
	uint64_t now = clock_now(), tick = now - e->hold.last_tick;
	bool we_wait, one_gone = false;
	struct task *task, *next;

	if (!e->hold.count || tick < TICK_MS * 500000ULL)
		return;
	e->hold.last_tick = now;
	we_wait = waits_too_long(getpid(), &e->hold.run_delay, tick);
	for (task = e->hold.tasks; task; task = next) {
		next = task->held_next;
		if (now - task->last_stop > COMPUTES_NS) {
			hold_release(e, task);
		} else if (we_wait || (!one_gone && waits_too_long(task->tid, &task->run_delay, tick))) {
			hold_let_go(e, task, now);
			one_gone = true;
		}
	}
}

/* A child copies its parent's affinity in the kernel, perhaps while the parent was held: it gets the guest's own. */
void hold_inherit(struct engine *e, struct task *parent, struct task *child)
{
	const cpu_set_t *own = parent ? &parent->own_cpus : &e->hold.own_cpus;
	cpu_set_t cpus;

	if (parent ? !parent->ever_held : e->hold.cpu < 0)
		return;
	if (sched_getaffinity(child->tid, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) != 1 || CPU_EQUAL(&cpus, own))
		return;
	sched_setaffinity(child->tid, sizeof(*own), own);
}

/* What a guest sets by sched_setaffinity is from then on its own. */
void guest_affinity_settle(struct call *call, pid_t pid)
{
	struct task *caller = call->guest->task;
	struct task *task = pid ? task_find(caller->engine, pid) : caller;

	if (!task)
		return;
	hold_release(caller->engine, task);
	task->ever_held = false;
	task->hold_after = clock_now() + SETTLE_NS;
}

void hold_end(struct engine *e)
{
	while (e->hold.tasks)
		hold_release(e, e->hold.tasks);
}

/* As lib/vsprintf.c prints masks: words of 32 bits, the highest first. */
static void print_mask(const cpu_set_t *cpus, char *mask, size_t size)
{
	int words = (sysconf(_SC_NPROCESSORS_CONF) + 31) / 32;
	size_t at = 0;

	mask[0] = 0;
	for (int word = words - 1; word >= 0 && at < size; word--) {
		uint32_t bits = 0;

		for (int bit = 0; bit < 32; bit++)
			bits |= (uint32_t)!!CPU_ISSET(word * 32 + bit, cpus) << bit;
		at += snprintf(mask + at, size - at, word == words - 1 ? "%x" : ",%08x", bits);
	}
}

static void print_list(const cpu_set_t *cpus, char *list, size_t size)
{
	size_t at = 0;

	list[0] = 0;
	for (int first = 0; first < CPU_SETSIZE && at < size; first++) {
		int last = first;

		if (!CPU_ISSET(first, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		at += snprintf(list + at, size - at, first == last ? "%s%d" : "%s%d-%d", at ? "," : "", first, last);
		first = last;
	}
}

bool engine_affinity(const struct engine *e, pid_t tid, char *mask, size_t mask_size, char *list, size_t list_size)
{
	const struct task *task = task_find((struct engine *)e, tid);

	if (!task || !task->held)
		return false;
	print_mask(&task->own_cpus, mask, mask_size);
	print_list(&task->own_cpus, list, list_size);
	return true;
}
