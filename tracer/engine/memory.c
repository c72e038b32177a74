/*
 * memory.c - guest memory.
 *
 * Through /proc/TID/mem, held open for each address space: one system call for each access, cheaper than process_vm_readv,
 * and still open when the guest makes itself undumpable later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

enum { PAGE = 4096 }; /* the smallest of any host: a read that stays inside it stays inside every larger page */

int memory_open(struct task *task)
{
	struct space *space = task->space;
	char path[40];

	if (!space || space->mem_denied)
		return -EACCES;
	if (space->mem_fd >= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", task->tid);
	space->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (space->mem_fd >= 0)
		return 0;
	if (errno != EACCES && errno != EPERM)
		return -errno;
	space->mem_denied = true;
	return -EACCES;
}

/* Where the descriptor table is full there is a slower way, bound by page protection. */
static ssize_t memory_vm(struct task *task, bool write, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)addr, len };
	ssize_t n = write ? process_vm_writev(task->tid, &local, 1, &remote, 1, 0)
	                  : process_vm_readv(task->tid, &local, 1, &remote, 1, 0);

	return n > 0 ? n : -EFAULT;
}

static ssize_t memory_io(struct task *task, bool write, uint64_t addr, void *buf, size_t len)
{
	int error = memory_open(task);
	ssize_t n;

	if (!len)
		return 0;
	if (error == -EMFILE || error == -ENFILE)
		return memory_vm(task, write, addr, buf, len);
	if (error == -EACCES)
		task->want_memory = true;
	if (error < 0 || addr > INT64_MAX - len)
		return -EFAULT;
	do {
		n = write ? pwrite(task->space->mem_fd, buf, len, addr) : pread(task->space->mem_fd, buf, len, addr);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? n : -EFAULT;
}

ssize_t memory_read(struct task *task, uint64_t addr, void *buf, size_t len)
{
	return memory_io(task, false, addr, buf, len);
}

ssize_t memory_write(struct task *task, uint64_t addr, const void *buf, size_t len)
{
	return memory_io(task, true, addr, (void *)buf, len);
}

/* The kernel's own copy to user space minds page protection, /proc/TID/mem does not: it writes to a private page that is
   read-only as well. The memory of a process that is not dumpable can be had in no other way. */
ssize_t memory_answer(struct task *task, uint64_t addr, const void *buf, size_t len)
{
	struct iovec local = { (void *)buf, len }, remote = { (void *)(uintptr_t)addr, len };
	ssize_t n = process_vm_writev(task->tid, &local, 1, &remote, 1, 0);

	if (n >= 0)
		return n;
	return errno == EFAULT ? -EFAULT : memory_write(task, addr, buf, len);
}

int guest_read(struct call *call, uint64_t addr, void *buf, size_t len)
{
	call->read_memory = true;
	return memory_read(call->guest->task, addr, buf, len) == (ssize_t)len ? 0 : -EFAULT;
}

ssize_t guest_read_string(struct call *call, uint64_t addr, char *buf, size_t size)
{
	size_t len = 0;

	call->read_memory = true;
	while (len < size) {
		size_t part = PAGE - ((addr + len) & (PAGE - 1));
		ssize_t n;
		char *end;

		if (part > size - len)
			part = size - len;
		n = memory_read(call->guest->task, addr + len, buf + len, part);
		if (n <= 0)
			return -EFAULT;
		end = memchr(buf + len, 0, n);
		if (end)
			return end - buf;
		if ((size_t)n < part)
			return -EFAULT;
		len += n;
	}
	return -ENAMETOOLONG;
}

ssize_t guest_peek(const struct call *call, uint64_t addr, void *buf, size_t len)
{
	struct task *task = call->guest->task;
	bool wanted = task->want_memory;
	ssize_t n = memory_read(task, addr, buf, len);

	task->want_memory = wanted; /* nothing is done to a guest only to show more of it */
	return n;
}
