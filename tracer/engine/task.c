/* task.c - the table of tasks, by tid, and the address spaces that they share. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

enum { BUCKETS_FIRST = 64 };

static struct task **bucket_of(struct engine *e, pid_t tid)
{
	return &e->buckets[(uint32_t)tid * 2654435761U & (e->bucket_count - 1)];
}

struct task *task_find(struct engine *e, pid_t tid)
{
	struct task *task;

	if (!e->bucket_count)
		return NULL;
	for (task = *bucket_of(e, tid); task && task->tid != tid; task = task->chain)
		;
	return task;
}

static void task_link(struct engine *e, struct task *task)
{
	struct task **bucket = bucket_of(e, task->tid);

	task->chain = *bucket;
	*bucket = task;
}

static void task_unlink(struct engine *e, struct task *task)
{
	struct task **at = bucket_of(e, task->tid);

	while (*at != task)
		at = &(*at)->chain;
	*at = task->chain;
}

/* As many buckets as tasks: doubling keeps every look-up short. A table that cannot grow goes on with longer chains. */
static int table_grow(struct engine *e)
{
	size_t old_count = e->bucket_count, count = old_count ? old_count * 2 : BUCKETS_FIRST;
	struct task **old = e->buckets, **buckets = calloc(count, sizeof(*buckets)), *task, *next;

	if (!buckets)
		return old_count ? 0 : -ENOMEM;
	e->buckets = buckets;
	e->bucket_count = count;
	for (size_t i = 0; i < old_count; i++) {
		for (task = old[i]; task; task = next) {
			next = task->chain;
			task_link(e, task);
		}
	}
	free(old);
	return 0;
}

struct task *task_add(struct engine *e, pid_t tid)
{
	struct task *task;

	if (e->task_count >= e->bucket_count && table_grow(e) < 0)
		return NULL;
	task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	task->tid = tid;
	task->engine = e;
	task->guest.task = task;
	task->answer_fd = -1;
	task->call.guest = &task->guest;
	task->call.tid = task->call.tgid = tid;
	task_link(e, task);
	e->task_count++;
	e->limbo++;
	return task;
}

void task_remove(struct engine *e, struct task *task)
{
	hold_release(e, task);
	call_forget(e, task);
	inject_free(e, task);
	space_unref(e, task->space);
	task_unlink(e, task);
	if (!task->adopted)
		e->limbo--;
	e->task_count--;
	free(task);
}

void task_rename(struct engine *e, struct task *task, pid_t tid)
{
	task_unlink(e, task);
	task->tid = task->call.tid = tid;
	task_link(e, task);
}

void task_each(struct engine *e, void (*visit)(struct engine *e, struct task *task, void *data), void *data)
{
	struct task *task, *next;

	for (size_t i = 0; i < e->bucket_count; i++) {
		for (task = e->buckets[i]; task; task = next) {
			next = task->chain;
			visit(e, task, data);
		}
	}
}

struct space *space_new(void)
{
	struct space *space = calloc(1, sizeof(*space));

	if (space) {
		space->refs = 1;
		space->mem_fd = -1;
	}
	return space;
}

struct space *space_ref(struct space *space)
{
	space->refs++;
	return space;
}

/* The copy maps the same chunks at the same addresses. */
struct space *space_fork(struct space *space)
{
	struct space *copy = space_new();

	if (copy)
		copy->late = space->late;
	if (!copy || !space->region_count)
		return copy;
	copy->regions = calloc(space->region_count, sizeof(*copy->regions));
	if (!copy->regions)
		return copy; /* it has no window then, and what needs one is refused */
	for (unsigned i = 0; i < space->region_count; i++) {
		copy->regions[i] = space->regions[i];
		copy->regions[i].chunk->refs++;
	}
	copy->region_count = space->region_count;
	return copy;
}

void space_unref(struct engine *e, struct space *space)
{
	if (!space || --space->refs)
		return;
	if (space->mem_fd >= 0)
		close(space->mem_fd);
	for (unsigned i = 0; i < space->region_count; i++)
		chunk_unref(&e->window, space->regions[i].chunk);
	free(space->regions);
	free(space);
}
