/*
 * memory.c - guest memory.
 *
 * Through /proc/TID/mem, held open for each address space: one system call for each access, cheaper than process_vm_readv,
 * and still open when the guest makes itself undumpable later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

enum { AUXV_MAX = 1024 };
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

/* -EACCES where the process may not be looked at; -ENOENT where there is no such entry. */
int memory_auxv(struct task *task, const struct arch *abi, uint64_t type, uint64_t *value)
{
	union { uint64_t w8[AUXV_MAX / 8]; uint32_t w4[AUXV_MAX / 4]; } auxv;
	char path[40];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", task->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, &auxv, sizeof(auxv));
	close(fd);
	for (ssize_t i = 0; i + 2 <= n / abi->word; i += 2) {
		uint64_t is = abi->word == 8 ? auxv.w8[i] : auxv.w4[i];

		if (is != type)
			continue;
		*value = abi->word == 8 ? auxv.w8[i + 1] : auxv.w4[i + 1];
		return 0;
	}
	return -ENOENT;
}

int guest_auxv(struct call *call, uint64_t type, uint64_t *value)
{
	struct task *task = call->guest->task;
	struct arch_regs regs;
	int error = arch_regs_get(task->tid, &regs);

	return error < 0 ? error : memory_auxv(task, arch_all[arch_exec_abi(&regs)], type, value);
}

/* What was there is put back where only a part could be written. */
int guest_write(struct call *call, uint64_t addr, const void *buf, size_t len)
{
	struct task *task = call->guest->task;
	unsigned char small[256], *old = len <= sizeof(small) ? small : malloc(len);
	int error = -EFAULT;
	ssize_t n;

	if (old && memory_read(task, addr, old, len) == (ssize_t)len) {
		n = memory_answer(task, addr, buf, len);
		if (n == (ssize_t)len)
			error = 0;
		else if (n > 0)
			memory_answer(task, addr, old, n);
	}
	if (old != small)
		free(old);
	return error;
}

int guest_read(struct call *call, uint64_t addr, void *buf, size_t len)
{
	call->read_memory = true;
	return memory_read(call->guest->task, addr, buf, len) == (ssize_t)len ? 0 : -EFAULT;
}

/* A string that goes on in the next page goes on only where the guest may read it: /proc/TID/mem would not mind. */
static ssize_t read_next_page(struct task *task, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)addr, len };
	ssize_t n = process_vm_readv(task->tid, &local, 1, &remote, 1, 0);

	return n > 0 || (n < 0 && errno == EFAULT) ? n : memory_read(task, addr, buf, len);
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
		n = len ? read_next_page(call->guest->task, addr + len, buf + len, part)
		        : memory_read(call->guest->task, addr, buf, part);
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
