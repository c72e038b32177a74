#include "tests/unit/fake_guest.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The bytes that are mapped at ADDR: *AVAILABLE of them, or NULL. */
static const unsigned char *fake_at(const struct guest *guest, uint64_t addr, size_t *available)
{
	if (addr >= guest->base && addr - guest->base < guest->len) {
		*available = guest->len - (addr - guest->base);
		return guest->bytes + (addr - guest->base);
	}
	if (addr >= guest->window_base && addr - guest->window_base < guest->slot_used) {
		*available = guest->slot_used - (addr - guest->window_base);
		return guest->slot + (addr - guest->window_base);
	}
	return NULL;
}

struct call fake_call(struct guest *guest, const struct arch *arch, int id, const uint64_t args[6])
{
	struct call call = { .arch = arch, .id = id, .tid = 1, .tgid = 1, .guest = guest };

	call.nr = (uint32_t)arch_nr_of(arch, id);
	memcpy(call.args, args, sizeof(call.args));
	return call;
}

int guest_read(struct call *call, uint64_t addr, void *buf, size_t len)
{
	size_t available;
	const unsigned char *from = fake_at(call->guest, addr, &available);

	call->read_memory = true;
	call->guest->reads++;
	if (len == 0)
		return 0;
	if (!from || available < len)
		return -EFAULT;
	memcpy(buf, from, len);
	return 0;
}

ssize_t guest_read_string(struct call *call, uint64_t addr, char *buf, size_t size)
{
	size_t available, len;
	const unsigned char *from = fake_at(call->guest, addr, &available);

	call->read_memory = true;
	call->guest->reads++;
	if (!from)
		return -EFAULT;
	len = strnlen((const char *)from, available < size ? available : size);
	if (len == size)
		return -ENAMETOOLONG;
	if (len == available)
		return -EFAULT;
	memcpy(buf, from, len + 1);
	return (ssize_t)len;
}

ssize_t guest_peek(const struct call *call, uint64_t addr, void *buf, size_t len)
{
	size_t available;
	const unsigned char *from = fake_at(call->guest, addr, &available);

	if (!from)
		return -EFAULT;
	if (len > available)
		len = available;
	memcpy(buf, from, len);
	return (ssize_t)len;
}

int guest_window_put(struct call *call, const void *data, size_t len, uint64_t *addr)
{
	struct guest *guest = call->guest;

	if (guest->window_len == 0)
		return -ENOSYS;
	if (len > sizeof(guest->slot) - guest->slot_used)
		return -E2BIG;
	memcpy(guest->slot + guest->slot_used, data, len);
	*addr = guest->window_base + guest->slot_used;
	guest->slot_used += len;
	return 0;
}

bool guest_window_overlaps(const struct call *call, uint64_t addr, uint64_t len)
{
	const struct guest *guest = call->guest;

	assert(len <= UINT64_MAX - addr); /* an engine may add the two */
	if (len == 0 || guest->window_len == 0)
		return false;
	if (addr < guest->window_base)
		return len > guest->window_base - addr;
	return addr - guest->window_base < guest->window_len;
}

void guest_affinity_settle(struct call *call, pid_t pid)
{
	call->guest->settled++;
	call->guest->settled_pid = pid;
}

/* Nothing that a unit test looks at is written to a guest. */
int guest_write(struct call *call, uint64_t addr, const void *buf, size_t len)
{
	(void)call, (void)addr, (void)buf, (void)len;
	return -EFAULT;
}

int guest_auxv(struct call *call, uint64_t type, uint64_t *value)
{
	(void)call, (void)type, (void)value;
	return -ENOENT;
}
