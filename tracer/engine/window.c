/*
 * window.c - memory that a guest can read and nobody but the supervisor can write.
 *
 * One memfd, sealed with F_SEAL_FUTURE_WRITE after we have mapped it writable: no later mapping of it, and no write through
 * /proc/self/mem, can change it (fcntl(2); mm/shmem.c). Guests map chunks of it; the arguments of a rewritten call lie in a
 * slot that no other call uses meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Address space only, taken before the seal since no writable mapping can be made after it: room for 65,536 programs that run
   at a time, or for what a small RLIMIT_AS leaves. */
static const size_t window_sizes[] = { 16ULL << 30, 1ULL << 30, 64ULL << 20 };

/* The file has its final size from the start, holes that cost nothing: a guest that opened it could make a growing one too
   large for us to use. A file-size limit of ours, whose excess is a signal, is lifted as far as it may be. */
static int window_size(struct window *w, size_t size)
{
	struct rlimit old, limit;
	int error = 0;

	if (getrlimit(RLIMIT_FSIZE, &old))
		return -errno;
	limit = old;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < size)
		return -EFBIG;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (ftruncate(w->fd, size))
		error = -errno;
	setrlimit(RLIMIT_FSIZE, &old);
	return error;
}

int window_make(struct window *w)
{
	int seals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	w->fd = memfd_create("window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(window_sizes) / sizeof(window_sizes[0]) && !w->memory; i++) {
		void *memory = mmap(NULL, window_sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->fd, 0);

		if (memory == MAP_FAILED)
			continue;
		w->memory = memory;
		w->mapped = window_sizes[i];
		if (window_size(w, w->mapped) == 0)
			break;
		munmap(memory, w->mapped);
		w->memory = NULL;
	}
	if (!w->memory || fcntl(w->fd, F_ADD_SEALS, seals)) {
		int error = -errno;

		window_free(w);
		return error;
	}
	return 0;
}

void window_free(struct window *w)
{
	struct chunk *next;

	for (; w->free; w->free = next) {
		next = w->free->next;
		free(w->free);
	}
	if (w->memory)
		munmap(w->memory, w->mapped);
	w->memory = NULL;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

unsigned char *window_at(struct window *w, const struct chunk *chunk, size_t offset)
{
	return w->memory + (size_t)chunk->index * CHUNK_SIZE + offset;
}

struct chunk *chunk_new(struct window *w)
{
	struct chunk *chunk = w->free;

	if (chunk) {
		w->free = chunk->next;
	} else {
		if (w->size + CHUNK_SIZE > w->mapped)
			return NULL;
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->index = w->size / CHUNK_SIZE;
		w->size += CHUNK_SIZE;
		snprintf((char *)window_at(w, chunk, CHUNK_TEXT), SLOT_SIZE, "/proc/%d/fd/%d", getpid(), w->fd);
	}
	chunk->refs = 1;
	chunk->used = 0;
	chunk->next = NULL;
	return chunk;
}

void chunk_unref(struct window *w, struct chunk *chunk)
{
	if (--chunk->refs)
		return;
	chunk->next = w->free;
	w->free = chunk;
}

/* --- slots of a call ------------------------------------------------------------------------------------------------------- */

static struct slots *slots_take_of(struct task *task, const struct region *region, unsigned index, unsigned count)
{
	struct slots *slots = &task->slots[task->slots_count++];

	region->chunk->used |= ((1u << count) - 1) << index;
	region->chunk->refs++; /* an exec by another task must not hand the slots on while this call still runs */
	*slots = (struct slots){ .region = *region, .index = index, .count = count };
	return slots;
}

void slots_reserve(struct task *task, const struct region *region, unsigned count)
{
	if (!task->slots_count)
		slots_take_of(task, region, 0, count);
}

/* Index of the first of COUNT neighbours that are free, or -1. */
static int slots_find(const struct chunk *chunk, unsigned count)
{
	const unsigned mask = (1u << count) - 1;

	for (unsigned i = 0; i + count <= CHUNK_SLOTS; i++) {
		if (!(chunk->used & mask << i))
			return (int)i;
	}
	return -1;
}

/* -ENOSYS: this guest has no window; -ENOSPC: none of its chunks has so many free; -E2BIG: the call has taken enough. */
static int slots_take(struct task *task, unsigned count, struct slots **slots)
{
	struct space *space = task->space;

	if (task->slots_count == CALL_SLOTS)
		return -E2BIG;
	if (!space || !space->region_count)
		return space && space->late && space->refs == 1 ? -ENOSPC : -ENOSYS;
	for (unsigned i = 0; i < space->region_count; i++) {
		int index = slots_find(space->regions[i].chunk, count);

		if (index < 0)
			continue;
		*slots = slots_take_of(task, &space->regions[i], (unsigned)index, count);
		return 0;
	}
	return -ENOSPC;
}

void slots_release(struct task *task)
{
	while (task->slots_count) {
		struct slots *slots = &task->slots[--task->slots_count];

		slots->region.chunk->used &= ~(((1u << slots->count) - 1) << slots->index);
		chunk_unref(&task->engine->window, slots->region.chunk);
	}
}

static struct slots *slots_with_room(struct task *task, size_t len)
{
	for (unsigned i = 0; i < task->slots_count; i++) {
		if (task->slots[i].used + len <= (size_t)task->slots[i].count * SLOT_SIZE)
			return &task->slots[i];
	}
	return NULL;
}

/* A new chunk is all for the call that asked for much: what else it puts must find room too when it comes again. */
int guest_window_put(struct call *call, const void *data, size_t len, uint64_t *addr)
{
	struct task *task = call->guest->task;
	size_t aligned = (len + 15) & ~(size_t)15;
	unsigned count = aligned <= SLOT_SIZE ? 1 : (aligned + SLOT_SIZE - 1) / SLOT_SIZE;
	struct slots *slots;
	int error = 0;

	if (len > GUEST_WINDOW_MAX)
		return -E2BIG;
	slots = slots_with_room(task, aligned);
	if (!slots)
		error = slots_take(task, count, &slots);
	if (error == -ENOSPC && !(task->repeated & REPEATED_CHUNK)) {
		task->want_slots = count == 1 && !task->slots_count ? 1 : CHUNK_SLOTS;
		return -EAGAIN;
	}
	if (error < 0)
		return error;
	memcpy(window_at(&task->engine->window, slots->region.chunk, slots->index * SLOT_SIZE + slots->used), data, len);
	*addr = slots->region.addr + (uint64_t)slots->index * SLOT_SIZE + slots->used;
	slots->used += aligned;
	return 0;
}

bool guest_window_overlaps(const struct call *call, uint64_t addr, uint64_t len)
{
	const struct space *space = call->guest->task->space;

	if (!space)
		return true; /* not known yet: the careful answer */
	for (unsigned i = 0; i < space->region_count; i++) {
		uint64_t start = space->regions[i].addr, last = start + CHUNK_SIZE - 1;

		if (addr <= last && (addr >= start || len > start - addr))
			return true;
	}
	return false;
}

bool engine_can_seal(void)
{
	enum { NR_MSEAL = 462 }; /* the same on every architecture */

	return syscall(NR_MSEAL, 0, 0, 0) == 0;
}
