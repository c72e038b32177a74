/*
 * diagnose_library.c - the plugin diagnose.so: what the diagnostics take from libunwind and capstone.
 *
 * It is a plugin because of what the two cost at start: on the reference machine a program that only returns from main takes
 * 1,760 microseconds from spawn to wait, and 6,850 when it is linked with both (median of 1,000, dynamic, one CPU), nearly
 * all of it relocation and page faults of libcapstone's tables. A run in which nothing crashes must not pay that.
 *
 * libunwind unwinds through our own accessors rather than libunwind-ptrace's: those ask ptrace for each word and so bind the
 * work to the tracing thread, and they open by name on the host whatever the guest's mappings are called. Here memory
 * comes from /proc/PID/mem, and unwind tables from the guest's memory, where .eh_frame_hdr is loaded anyway.
 */
#include <errno.h>
#include <string.h>

#include "tracer/diagnose_impl.h"

#ifdef HAVE_LIBUNWIND

#include <libunwind.h>

/* Exported by libunwind for remote unwinders, but in none of its public headers (src/dwarf/Gfind_proc_info-lsb.c). */
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *table, unw_proc_info_t *out,
			int need_unwind_info, void *arg);

/* The one entry of a made table: what libunwind reads at DIAGNOSE_MADE while it searches. */
static uint64_t unwind_made;

static int unwind_find_proc(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *out, int need_unwind_info, void *arg)
{
	struct diagnose_task *task = arg;
	struct diagnose_table table;
	unw_dyn_info_t info;

	if (!task->table(task, ip, &table))
		return -UNW_ENOINFO;
	unwind_made = table.made;
	memset(&info, 0, sizeof(info));
	info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	info.start_ip = table.start;
	info.end_ip = table.end;
	info.u.rti.segbase = table.header;
	info.u.rti.table_data = table.entries;
	info.u.rti.table_len = table.count * 8ul / sizeof(unw_word_t);
	return search_unwind_table(space, ip, &info, out, need_unwind_info, arg);
}

static void unwind_put_proc(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
	(void)space, (void)info, (void)arg;
}

static int unwind_dyn_list(unw_addr_space_t space, unw_word_t *list, void *arg)
{
	(void)space, (void)list, (void)arg;
	return -UNW_ENOINFO;
}

static int unwind_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	struct diagnose_task *task = arg;

	(void)space;
	if (addr == DIAGNOSE_MADE && !write) {
		*value = unwind_made;
		return 0;
	}
	if (write || !task->read(task, addr, value, sizeof(*value)))
		return -UNW_EINVAL;
	return 0;
}

static int unwind_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
	const struct diagnose_task *task = arg;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	if (reg == UNW_REG_IP)
		*value = task->regs.ip;
	else if (reg == UNW_REG_SP)
		*value = task->regs.sp;
	else if (reg >= 0 && (unsigned)reg < task->regs.dwarf_count)
		*value = task->regs.dwarf[reg];
	else
		return -UNW_EBADREG;
	return 0;
}

static int unwind_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	(void)space, (void)reg, (void)value, (void)write, (void)arg;
	return -UNW_EBADREG;
}

static int unwind_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
	(void)space, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

static int unwind_name(unw_addr_space_t space, unw_word_t ip, char *name, size_t size, unw_word_t *offset, void *arg)
{
	(void)space, (void)ip, (void)name, (void)size, (void)offset, (void)arg;
	return -UNW_ENOINFO;
}

static unw_accessors_t unwind_accessors = {
	.find_proc_info = unwind_find_proc,
	.put_unwind_info = unwind_put_proc,
	.get_dyn_info_list_addr = unwind_dyn_list,
	.access_mem = unwind_mem,
	.access_reg = unwind_reg,
	.access_fpreg = unwind_fpreg,
	.resume = unwind_resume,
	.get_proc_name = unwind_name,
};

static int unwind_frames(unw_cursor_t *cursor, diagnose_frame *frame, void *context)
{
	for (;;) {
		unw_word_t ip, sp;
		int more;

		if (unw_get_reg(cursor, UNW_REG_IP, &ip) < 0 || unw_get_reg(cursor, UNW_REG_SP, &sp) < 0)
			return -EIO;
		if (!frame(context, ip, sp, unw_is_signal_frame(cursor) > 0))
			return 0;
		more = unw_step(cursor);
		if (more <= 0)
			return more < 0 ? -EIO : 0;
	}
}

static int library_unwind(struct diagnose_task *task, diagnose_frame *frame, void *context)
{
	unw_addr_space_t space = unw_create_addr_space(&unwind_accessors, 0);
	unw_cursor_t cursor;
	int err = -EIO;

	if (!space)
		return -ENOMEM;
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
	if (unw_init_remote(&cursor, space, task) == 0)
		err = unwind_frames(&cursor, frame, context);
	unw_destroy_addr_space(space);
	return err;
}
#else
#define library_unwind NULL
#endif

#ifdef HAVE_CAPSTONE

#if __has_include(<capstone.h>)
#include <capstone.h> /* pkg-config's folder is the library's own */
#else
#include <capstone/capstone.h>
#endif

static int library_open(enum diagnose_machine machine, csh *out)
{
	switch (machine) {
	case DIAGNOSE_X86_32:
		return cs_open(CS_ARCH_X86, CS_MODE_32, out);
	case DIAGNOSE_X86_64:
		return cs_open(CS_ARCH_X86, CS_MODE_64, out);
	case DIAGNOSE_AARCH64:
		return cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, out);
	case DIAGNOSE_ARM:
		return cs_open(CS_ARCH_ARM, CS_MODE_ARM, out);
	case DIAGNOSE_RISCV64:
#if CS_API_MAJOR >= 5
		return cs_open(CS_ARCH_RISCV, CS_MODE_RISCV64 | CS_MODE_RISCVC, out);
#else
		break;
#endif
	}
	return CS_ERR_ARCH;
}

static unsigned library_disassemble(enum diagnose_machine machine, const uint8_t *bytes, size_t len, uint64_t addr,
				    struct diagnose_insn *out, unsigned max)
{
	unsigned count = 0;
	cs_insn *insn;
	csh handle;

	if (library_open(machine, &handle) != CS_ERR_OK)
		return 0;
	insn = cs_malloc(handle);
	while (insn && count < max && cs_disasm_iter(handle, &bytes, &len, &addr, insn)) {
		out[count].addr = insn->address;
		out[count].size = insn->size;
		snprintf(out[count].text, sizeof(out[count].text), "%s%s%s", insn->mnemonic, insn->op_str[0] ? " " : "",
			 insn->op_str);
		count++;
	}
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return count;
}
#else
#define library_disassemble NULL
#endif

extern const struct diagnose_library diagnose_library;

__attribute__((visibility("default"))) const struct diagnose_library diagnose_library = {
	.version = DIAGNOSE_LIBRARY_VERSION,
	.unwind = library_unwind,
	.disassemble = library_disassemble,
};
