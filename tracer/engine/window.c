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

static void slot_take_of(struct task *task, const struct region *region, unsigned index)
{
	region->chunk->used |= 1u << index;
	region->chunk->refs++; /* an exec by another task must not hand the slot on while this call still runs */
	task->slot.chunk = region->chunk;
	task->slot.addr = region->addr + (uint64_t)index * SLOT_SIZE;
	task->slot_index = index;
	task->slot_used = 0;
}

void slot_reserve(struct task *task, const struct region *region)
{
	if (!task->slot.chunk)
		slot_take_of(task, region, 0);
}

/* -ENOSYS: this guest has no window; -ENOSPC: every slot that it maps is in use. */
int slot_take(struct task *task)
{
	struct space *space = task->space;

	if (task->slot.chunk)
		return 0;
	if (!space || !space->region_count)
		return -ENOSYS;
	for (unsigned i = 0; i < space->region_count; i++) {
		struct chunk *chunk = space->regions[i].chunk;
		unsigned free_slots = ~chunk->used & ((1u << CHUNK_SLOTS) - 1);

		if (!free_slots)
			continue;
		slot_take_of(task, &space->regions[i], __builtin_ctz(free_slots));
		return 0;
	}
	return -ENOSPC;
}

void slot_release(struct task *task)
{
	struct chunk *chunk = task->slot.chunk;

	if (!chunk)
		return;
	chunk->used &= ~(1u << task->slot_index);
	task->slot.chunk = NULL;
	chunk_unref(&task->engine->window, chunk);
}

int guest_window_put(struct call *call, const void *data, size_t len, uint64_t *addr)
{
	struct task *task = call->guest->task;
	size_t at, aligned = (len + 15) & ~(size_t)15;
	int error = slot_take(task);

	if (error == -ENOSYS && task->space && task->space->late && task->space->refs == 1)
		error = -ENOSPC;
	if (error == -ENOSPC && !(task->repeated & REPEATED_CHUNK)) {
		task->want_chunk = true;
		return -EAGAIN;
	}
	if (error < 0)
		return error;
	if (len > SLOT_SIZE || task->slot_used + aligned > SLOT_SIZE)
		return -E2BIG;
	at = task->slot_used;
	memcpy(window_at(&task->engine->window, task->slot.chunk, task->slot_index * SLOT_SIZE + at), data, len);
	task->slot_used += aligned;
	*addr = task->slot.addr + at;
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
