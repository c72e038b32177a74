/* The numbers: against the uapi headers of this machine, and against themselves. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/audit.h>

#include "arch/arch.h"
#include "syscalls/row.h"

static const char *name_of(const struct arch *arch, uint64_t nr)
{
	const struct row *row = row_of(arch_call_of(arch, nr));

	return row ? row->name : "";
}

/* --- the headers of the machine ------------------------------------------------------------------------------------ */

enum { NR_MAX = 1024, NAME_MAX_ = 64, NAMES = 4 };

/* Names that a header gives to each number. */
struct header {
	char name[NR_MAX][NAMES][NAME_MAX_];
	unsigned names[NR_MAX];
	unsigned total;
};

static void header_add(struct header *header, unsigned nr, const char *name)
{
	ck_assert_uint_lt(nr, NR_MAX);
	ck_assert_uint_lt(header->names[nr], NAMES);
	ck_assert_uint_lt(strlen(name), NAME_MAX_);
	strcpy(header->name[nr][header->names[nr]++], name);
	header->total++;
}

/* The value of the shared number __NR3264_NAME, or -1: one that only some architectures have is not defined by all. */
static int number_3264(const char *text, const char *name)
{
	char define[2 * NAME_MAX_];
	const char *at;

	snprintf(define, sizeof(define), "#define __NR3264_%s ", name);
	at = strstr(text, define);
	return at ? atoi(at + strlen(define)) : -1;
}

/*
 * Reads `#define __NR_name number` and `#define __NR_name __NR3264_name` of the header text. What only 32-bit ABIs of
 * asm-generic have, 403 to 423, is left out: it is behind an #if that this reader does not evaluate.
 */
static void header_parse(struct header *header, char *text, bool generic)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		char name[NAME_MAX_], value[NAME_MAX_];
		int nr;

		line += strspn(line, "\n");
		if (sscanf(line, "#define __NR_%63[a-zA-Z0-9_] %63s", name, value) != 2)
			continue;
		if (!strcmp(name, "syscalls") || !strcmp(name, "arch_specific_syscall"))
			continue;
		nr = !strncmp(value, "__NR3264_", 9) ? number_3264(text, value + 9) : atoi(value);
		if (nr < 0 || (generic && nr >= 403 && nr <= 423))
			continue;
		ck_assert_msg(nr > 0 || !strcmp(value, "0"), "%s is %s", name, value);
		header_add(header, (unsigned)nr, name);
	}
}

/* The header in one of the folders that distributions use, or NULL. */
static struct header *header_read(const char *name, bool generic)
{
	static const char *const folders[] = { "/usr/include/", "/usr/include/x86_64-linux-gnu/" };
	static char text[256 << 10];
	struct header *header = calloc(1, sizeof(*header));
	FILE *file = NULL;
	char path[128];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !file; i++) {
		snprintf(path, sizeof(path), "%s%s", folders[i], name);
		file = fopen(path, "r");
	}
	if (!file) {
		free(header);
		return NULL;
	}
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	header_parse(header, text, generic);
	return header;
}

/* Whether OURS is the row of the header's NAME: itself, or the entry point that i386 has under this name. */
static bool same_call(const struct arch *arch, const char *ours, const char *name)
{
	size_t len = strlen(name);

	if (!strcmp(ours, name))
		return true;
	if (arch->id != ARCH_I386)
		return false;
	return (!strncmp(ours, "old_", 4) && !strcmp(ours + 4, name)) ||
	       (!strncmp(ours, name, len) && !strcmp(ours + len, "16"));
}

static void check_header(const struct arch *arch, const struct header *header, unsigned least)
{
	unsigned last = 0;

	ck_assert_uint_ge(header->total, least);
	for (unsigned nr = 0; nr < NR_MAX; nr++) {
		bool found = header->names[nr] == 0;
		const char *ours = name_of(arch, nr);

		if (header->names[nr])
			last = nr;
		for (unsigned i = 0; i < header->names[nr]; i++)
			found = found || same_call(arch, ours, header->name[nr][i]);
		/* riscv64 alone came after renameat2. */
		if (arch->id == ARCH_RISCV64 && nr == 38)
			found = !ours[0];
		ck_assert_msg(found, "%s: %u is %s, in the table %s", arch->name, nr, header->name[nr][0], ours);
	}
	for (unsigned nr = 0; nr <= last; nr++) {
		/* Own blocks: 335 and 336 of x86_64 are newer than many headers, asm-generic does not have 244 to 259. */
		bool own = arch->id == ARCH_X86_64 ? nr >= 335 && nr < 403 : arch->id != ARCH_I386 && nr >= 244 && nr < 260;

		if (!header->names[nr] && !own)
			ck_assert_msg(!name_of(arch, nr)[0], "%s: no header has %u", arch->name, nr);
	}
}

START_TEST(header_x86)
{
	struct header *wide = header_read("asm/unistd_64.h", false), *narrow = header_read("asm/unistd_32.h", false);

#if defined(__x86_64__)
	ck_assert_ptr_nonnull(wide);
	ck_assert_ptr_nonnull(narrow);
#endif
	if (wide && narrow) {
		check_header(arch_all[ARCH_X86_64], wide, 330);
		check_header(arch_all[ARCH_I386], narrow, 420);
	}
	free(wide);
	free(narrow);
}
END_TEST

START_TEST(header_generic)
{
	struct header *header = header_read("asm-generic/unistd.h", true);

	ck_assert_ptr_nonnull(header);
	check_header(arch_all[ARCH_AARCH64], header, 280);
	check_header(arch_all[ARCH_RISCV64], header, 280);
	free(header);
}
END_TEST

/* --- the tables themselves ----------------------------------------------------------------------------------------- */

START_TEST(numbers_known)
{
	static const struct {
		enum arch_id arch;
		uint32_t nr;
		const char *name;
	} known[] = {
		{ ARCH_X86_64, 0, "read" }, { ARCH_X86_64, 56, "clone" }, { ARCH_X86_64, 335, "uretprobe" },
		{ ARCH_X86_64, 336, "uprobe" }, { ARCH_X86_64, 462, "mseal" }, { ARCH_X86_64, 469, "file_setattr" },
		{ ARCH_I386, 1, "exit" }, { ARCH_I386, 24, "getuid16" }, { ARCH_I386, 90, "old_mmap" },
		{ ARCH_I386, 192, "mmap2" }, { ARCH_I386, 199, "getuid32" }, { ARCH_I386, 405, "clock_adjtime64" },
		{ ARCH_AARCH64, 56, "openat" }, { ARCH_AARCH64, 38, "renameat" }, { ARCH_AARCH64, 222, "mmap" },
		{ ARCH_AARCH64, 452, "fchmodat2" }, { ARCH_RISCV64, 258, "riscv_hwprobe" },
		{ ARCH_RISCV64, 259, "riscv_flush_icache" }, { ARCH_RISCV64, 221, "execve" },
		{ ARCH_RISCV64, 467, "open_tree_attr" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_str_eq(name_of(arch_all[known[i].arch], known[i].nr), known[i].name);
		ck_assert_int_eq(arch_nr_of(arch_all[known[i].arch], row_by_name(known[i].name)), (int)known[i].nr);
	}
}
END_TEST

START_TEST(numbers_none)
{
	static const uint64_t none[] = { 470, 512, 547, 1000, 0x3fffffff, 0x40000000, 0x40000001, 0x7fffffff, 0x80000000,
					 0xffffffff, 1ULL << 32, (1ULL << 32) + 1, UINT64_MAX };

	for (int a = 0; a < ARCH_COUNT; a++)
		for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
			ck_assert_int_eq(arch_call_of(arch_all[a], none[i]), CALL_NONE);
	ck_assert_int_eq(arch_call_of(arch_all[ARCH_I386], 222), CALL_NONE);
	ck_assert_int_eq(arch_call_of(arch_all[ARCH_RISCV64], 38), CALL_NONE);
	ck_assert_int_eq(arch_nr_of(arch_all[ARCH_AARCH64], row_by_name("open")), -1);
	ck_assert_int_eq(arch_nr_of(arch_all[ARCH_X86_64], CALL_NONE), -1);
}
END_TEST

START_TEST(numbers_unique)
{
	for (int a = 0; a < ARCH_COUNT; a++) {
		unsigned seen[CALL_COUNT] = { 0 };

		for (uint32_t nr = 0; nr < arch_all[a]->nr_count; nr++) {
			int id = arch_all[a]->call_of_nr[nr];

			ck_assert_int_ge(id, CALL_NONE);
			ck_assert_int_lt(id, CALL_COUNT);
			if (id >= 0)
				ck_assert_msg(!seen[id]++, "%s: %s has two numbers", arch_all[a]->name, row_table[id].name);
		}
	}
}
END_TEST

START_TEST(rows_reachable)
{
	for (int id = 0; id < CALL_COUNT; id++) {
		bool found = false;

		for (int a = 0; a < ARCH_COUNT; a++)
			found = found || arch_nr_of(arch_all[a], id) >= 0;
		ck_assert_msg(found, "%s has no number anywhere", row_table[id].name);
	}
}
END_TEST

START_TEST(descriptions)
{
	for (int a = 0; a < ARCH_COUNT; a++) {
		ck_assert_int_eq((int)arch_all[a]->id, a);
		ck_assert_ptr_eq(arch_by_audit(arch_all[a]->audit), arch_all[a]);
		ck_assert_int_eq(arch_all[a]->word, a == ARCH_I386 ? 4 : 8);
		/* kernel/fork.c of each: only x86_64 has ctid before tls. */
		ck_assert_int_eq(arch_all[a]->clone_backwards, a != ARCH_X86_64);
	}
	ck_assert_uint_eq(arch_all[ARCH_X86_64]->audit, 0xc000003e);
	ck_assert_uint_eq(arch_all[ARCH_I386]->audit, 0x40000003);
	ck_assert_uint_eq(arch_all[ARCH_AARCH64]->audit, 0xc00000b7);
	ck_assert_uint_eq(arch_all[ARCH_RISCV64]->audit, 0xc00000f3);
	ck_assert_uint_eq(arch_all[ARCH_X86_64]->nr_reserved_bits, 0x40000000);
	ck_assert_ptr_null(arch_by_audit(0));
	ck_assert_ptr_null(arch_by_audit(AUDIT_ARCH_S390X));
#if defined(__x86_64__)
	ck_assert_uint_eq(arch_host_count, 2);
	ck_assert_int_eq((int)arch_host[0], ARCH_X86_64);
	ck_assert_int_eq((int)arch_host[1], ARCH_I386);
#else
	ck_assert_uint_eq(arch_host_count, 1);
#endif
}
END_TEST

Suite *suite_arch(void);
Suite *suite_arch(void)
{
	Suite *suite = suite_create("arch");
	TCase *tcase = tcase_create("numbers");

	tcase_add_test(tcase, header_x86);
	tcase_add_test(tcase, header_generic);
	tcase_add_test(tcase, numbers_known);
	tcase_add_test(tcase, numbers_none);
	tcase_add_test(tcase, numbers_unique);
	tcase_add_test(tcase, rows_reachable);
	tcase_add_test(tcase, descriptions);
	suite_add_tcase(suite, tcase);
	return suite;
}
