/*
 * window.c - keeps the supervisor's window in the guest's address space.
 *
 * On a kernel without mseal(2) every call that could unmap, replace or change it stops here (the rows that GUARD); what
 * mseal does not stop (MADV_DONTFORK, MADV_WIPEONFORK) stops on every kernel. Registers alone decide, except for the mmap
 * of i386.
 *
 * The kernel rounds ranges up to whole pages. That brings no page of the window into a range that did not touch it: the
 * window begins and ends at pages. Larger rounding is that of huge pages, see range_huge().
 */
#include "syscalls/handlers/handlers.h"

#include <errno.h>
#include <stdint.h>

#include "syscalls/ids.h"

/* <asm/mman.h>, <linux/shm.h>, <linux/ipc.h>: the same on all architectures here. */
enum {
	GUEST_MAP_FIXED = 0x10,
	GUEST_MAP_ANONYMOUS = 0x20,
	GUEST_MAP_HUGETLB = 0x40000,
	GUEST_MREMAP_FIXED = 2,
	GUEST_MREMAP_DONTUNMAP = 4,
	GUEST_SHM_REMAP = 040000,
	GUEST_IPC_SHMAT = 21,
	I386_PAGE = 4096
};

static const char why_window[] = "the supervisor's window cannot be unmapped or changed";
static const char why_remap[] = "SHM_REMAP could replace the supervisor's window";

static bool range_touches(const struct call *call, uint64_t addr, uint64_t len)
{
	uint64_t room = UINT64_MAX - addr;

	return guest_window_overlaps(call, addr, len < room ? len : room);
}

/*
 * Whether the kernel could take [ADDR, ADDR + LEN) for a range that touches the window. Some architectures ignore the upper
 * bits of an address, as a tag: 8 on aarch64, 6 with x86's LAM, 7 or 16 on riscv64. Such an address is looked at both ways;
 * one that is refused for nothing lies outside every address space that ignores fewer bits.
 */
static bool window_touched(const struct call *call, uint64_t addr, uint64_t len)
{
	return range_touches(call, addr, len) || range_touches(call, addr & (UINT64_MAX >> 8), len) ||
	       range_touches(call, addr & (UINT64_MAX >> 16), len);
}

/* The size of huge pages that could begin at ADDR, 0 for none. On x86 there are two; elsewhere 64 KiB to 16 GiB. */
static uint64_t huge_page_at(const struct call *call, uint64_t addr)
{
	const uint64_t kib = 1 << 10, mib = 1 << 20, gib = 1 << 30;
	uint64_t largest = addr & -addr;

	if (call->arch->id == ARCH_X86_64 || call->arch->id == ARCH_I386)
		return addr % gib == 0 ? gib : addr % (2 * mib) == 0 ? 2 * mib : 0;
	if (addr == 0 || largest > 16 * gib)
		return 16 * gib;
	return largest < 64 * kib ? 0 : largest;
}

/* LEN as it may become where huge pages are mapped at ADDR: mm/mmap.c and mm/mremap.c round it up to one. */
static uint64_t range_huge(const struct call *call, uint64_t addr, uint64_t len)
{
	uint64_t page = huge_page_at(call, addr);

	if (page == 0 || len == 0)
		return len;
	return len > UINT64_MAX - page ? UINT64_MAX : (len + page - 1) / page * page;
}

/* Only MAP_FIXED replaces what is there; MAP_FIXED_NOREPLACE alone fails instead. Huge pages come by flag or by file. */
static bool mmap_touches(const struct call *call, uint64_t addr, uint64_t len, uint64_t flags)
{
	if (!(flags & GUEST_MAP_FIXED))
		return false;
	if ((flags & GUEST_MAP_HUGETLB) || !(flags & GUEST_MAP_ANONYMOUS))
		len = range_huge(call, addr, len);
	return window_touched(call, addr, len);
}

/* An old length of 0 is not nothing: it maps the same pages again, at another place. */
static bool mremap_touches(const struct call *call)
{
	uint64_t old = call->args[0], old_len = call->args[1] ? call->args[1] : 1, new_len = call->args[2];

	if (window_touched(call, old, range_huge(call, old, old_len)))
		return true;
	return (call->args[3] & (GUEST_MREMAP_FIXED | GUEST_MREMAP_DONTUNMAP)) &&
	       window_touched(call, call->args[4], range_huge(call, call->args[4], new_len));
}

static struct verdict window_verdict(bool refused, const char *why)
{
	return refused ? verdict_refuse(-EPERM, why) : verdict_forward();
}

struct verdict sys_window_guard(void *context, struct call *call)
{
	const uint64_t *args = call->args;

	(void)context;
	switch (call->id) {
	case CALL_mmap:
	case CALL_mmap2:
		return window_verdict(mmap_touches(call, args[0], args[1], args[3]), why_window);
	case CALL_mremap:
		return window_verdict(mremap_touches(call), why_window);
	case CALL_shmat:
		/* How far it reaches is the segment's size, in no register. Without the flag nothing is replaced. */
		return window_verdict(args[2] & GUEST_SHM_REMAP, why_remap);
	case CALL_ipc:
		/* ipc/syscall.c: a version is in the upper half of the first argument, shmat's flags are the third. */
		return window_verdict((args[0] & 0xffff) == GUEST_IPC_SHMAT && (args[2] & GUEST_SHM_REMAP), why_remap);
	default: /* munmap, mprotect, pkey_mprotect, madvise: address and length come first */
		return window_verdict(window_touched(call, args[0], args[1]), why_window);
	}
}

/*
 * i386's first mmap takes its arguments from memory, so the guest's own call cannot be resumed. mmap2 has the same in
 * registers, its offset counted in pages: that is what the kernel runs. arch/x86/kernel/sys_ia32.c: an offset within a page
 * is -EINVAL.
 */
struct verdict sys_old_mmap(void *context, struct call *call)
{
	uint32_t block[6]; /* addr, len, prot, flags, fd, offset */
	int error = guest_read(call, call->args[0], block, sizeof(block));
	struct verdict verdict = { .kind = VERDICT_REWRITE, .id = CALL_mmap2 };

	(void)context;
	if (error)
		return verdict_answer(error);
	if (block[5] % I386_PAGE)
		return verdict_answer(-EINVAL);
	if (mmap_touches(call, block[0], block[1], block[3]))
		return verdict_refuse(-EPERM, why_window);
	for (int i = 0; i < 5; i++)
		verdict.args[i] = block[i];
	verdict.args[5] = block[5] / I386_PAGE;
	return verdict;
}
