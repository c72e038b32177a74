/*
 * diagnose_impl.h - what the parts of the diagnostics share; nobody else includes it.
 *
 * A report is made in a helper process that the supervisor forks for it and kills when it takes too long. It parses what
 * a hostile guest prepared (its stack, its unwind tables, the ELF files that it mapped) with libraries that were not written
 * for that; when it dies or hangs, one report is short and the guests go on. It is no tracer: the registers and the file
 * of the memory are taken by the tracing thread before the fork, and nothing of ptrace is needed afterwards.
 *
 *   diagnose.c          the tracing thread's side, the loader of the plugin, the helper's life
 *   diagnose_report.c   the report's text
 *   diagnose_maps.c     memory and mappings of the task
 *   diagnose_elf.c      symbols (from the mapped file) and unwind tables (from memory)
 *   diagnose_eh.c       an unwind table for programs that have none that is sorted
 *   diagnose_regs.c     registers of the host's architectures
 *   diagnose_signal.c   si_code by name
 *   diagnose_library.c  the plugin diagnose.so: libunwind and capstone, seen by the rest through struct diagnose_library
 */
#ifndef INTERPOSE_TRACER_DIAGNOSE_IMPL_H
#define INTERPOSE_TRACER_DIAGNOSE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "tracer/diagnose.h"

enum diagnose_machine {
	DIAGNOSE_X86_32,
	DIAGNOSE_X86_64,
	DIAGNOSE_AARCH64,
	DIAGNOSE_ARM,
	DIAGNOSE_RISCV64
};

enum { DIAGNOSE_REGS = 36 };

struct diagnose_regs {
	enum diagnose_machine machine;
	bool native;              /* of the host's own word size: what libunwind of the host can unwind */
	uint64_t ip, sp, fp;
	uint64_t lr;              /* return address in a register; 0 where the architecture has none */
	unsigned dwarf_count;
	uint64_t dwarf[DIAGNOSE_REGS]; /* general registers by their DWARF number, which is libunwind's as well */
	unsigned shown;
	struct {
		const char *name;
		uint64_t value;
	} show[DIAGNOSE_REGS];    /* all of them, in the order of printing */
};

struct diagnose_region {
	uint64_t start, end, offset, inode;
	dev_t dev;
	int prot;                 /* PROT_READ | PROT_WRITE | PROT_EXEC */
	const char *path;         /* as the kernel shows it; "" for anonymous memory */
};

/* A sorted table of {int32 location, int32 entry of .eh_frame}, both relative to HEADER. */
struct diagnose_table {
	uint64_t start, end;      /* the mapping that holds the code */
	uint64_t header;
	uint64_t entries;         /* where the table is in the task, or DIAGNOSE_MADE */
	uint32_t count;
	uint64_t made;            /* the only entry of a made table, as it would be in memory */
};

/* No address of a user's memory. A table there has one entry, which is in struct diagnose_table itself. */
#define DIAGNOSE_MADE UINT64_C(0xffffffff00000000)

struct diagnose_task {
	pid_t tid;
	int mem;                  /* /proc/TID/mem, or -1 */
	int maps;                 /* /proc/TID/maps, or -1 */
	struct diagnose_regs regs;
	struct diagnose_region *region; /* sorted by address */
	size_t regions;
	char *text;               /* holds the paths */
	struct diagnose_symbols *symbols;

	/* For the plugin, which links nothing of ours. */
	bool (*read)(struct diagnose_task *task, uint64_t addr, void *buf, size_t len);
	bool (*table)(struct diagnose_task *task, uint64_t ip, struct diagnose_table *out);
};

/* One frame, innermost first; false: enough. IP is where the frame stands, a return address in all but the first
   and in those that a signal interrupted. */
typedef bool diagnose_frame(void *context, uint64_t ip, uint64_t sp, bool signal_frame);

struct diagnose_insn {
	uint64_t addr;
	unsigned size;
	char text[192];
};

enum { DIAGNOSE_LIBRARY_VERSION = 1 };

/* The one symbol that diagnose.so exports, `diagnose_library`. A member is NULL where the plugin was built without it. */
struct diagnose_library {
	unsigned version;
	/* Unwinds from task->regs. 0 at the outermost frame or when FRAME had enough, -errno when it could not go on. */
	int (*unwind)(struct diagnose_task *task, diagnose_frame *frame, void *context);
	/* Decodes at most MAX instructions of BYTES, which lie at ADDR. How many; stops at the first that is none. */
	unsigned (*disassemble)(enum diagnose_machine machine, const uint8_t *bytes, size_t len, uint64_t addr,
				struct diagnose_insn *out, unsigned max);
};

/* --- diagnose.c ------------------------------------------------------------------------------------------------------ */

/* Loads the plugin from PATH, or from the usual places when NULL; once one is loaded, or NULL found none, that stays.
   NULL when there is none. For tests PATH is the one of the build folder, or one that does not exist. */
const struct diagnose_library *diagnose_load(const char *path);
/* Takes this one instead, or none. For tests. */
void diagnose_use(const struct diagnose_library *library);

/* --- diagnose_regs.c ------------------------------------------------------------------------------------------------- */

/* From the tracing thread. 0, or -errno of ptrace(2). */
int diagnose_regs_get(pid_t tid, struct diagnose_regs *out);
/* Undoes the call that led to REGS, where there is no code (a call through a bad pointer). False when unreadable. */
bool diagnose_regs_pop(struct diagnose_task *task, struct diagnose_regs *regs);

/* --- diagnose_maps.c ------------------------------------------------------------------------------------------------- */

/* 0, or -errno. At most DIAGNOSE_REGIONS mappings are kept, the lowest. */
enum { DIAGNOSE_REGIONS = 1 << 17 };
int diagnose_maps_read(struct diagnose_task *task);
/* The mapping that holds ADDR, or NULL. */
const struct diagnose_region *diagnose_maps_find(const struct diagnose_task *task, uint64_t addr);
/* All or nothing. */
bool diagnose_mem_read(struct diagnose_task *task, uint64_t addr, void *buf, size_t len);
/* How many of the LEN bytes from ADDR on could be read. */
size_t diagnose_mem_peek(struct diagnose_task *task, uint64_t addr, void *buf, size_t len);

/* --- diagnose_elf.c -------------------------------------------------------------------------------------------------- */

enum { DIAGNOSE_NAME = 256 };
struct diagnose_symbol {
	char name[DIAGNOSE_NAME];
	uint64_t start;           /* address in the task */
};
bool diagnose_elf_symbol(struct diagnose_task *task, uint64_t ip, struct diagnose_symbol *out);
bool diagnose_elf_table(struct diagnose_task *task, uint64_t ip, struct diagnose_table *out);
void diagnose_elf_free(struct diagnose_task *task);

/* --- diagnose_eh.c --------------------------------------------------------------------------------------------------- */

/* Finds the entry for IP in the .eh_frame of SIZE bytes at ADDR and makes a table of it in OUT, all but start and end. */
bool diagnose_eh_find(struct diagnose_task *task, uint64_t addr, uint64_t size, uint64_t ip, struct diagnose_table *out);

/* --- diagnose_signal.c ----------------------------------------------------------------------------------------------- */

/* "SEGV_MAPERR: address not mapped, at 0x10" without a newline. */
void diagnose_signal_print(FILE *out, const siginfo_t *info);

/* --- diagnose_report.c ----------------------------------------------------------------------------------------------- */

/* The whole report after its title. LIBRARY may be NULL. */
void diagnose_report(FILE *out, struct diagnose_task *task, const struct diagnose_where *where,
		     const struct diagnose_library *library);

#endif
