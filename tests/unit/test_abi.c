/* The layouts of what calls write: against the structures of this machine, and the kernel's rules of what does not fit. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "arch/abi.h"
#include "arch/arch.h"

static uint64_t at(const unsigned char *buf, size_t offset, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, buf + offset, size);
	return value;
}

static struct statx sample(void)
{
	return (struct statx){
		.stx_ino = 0x11223344, .stx_mode = S_IFREG | 0640, .stx_nlink = 3, .stx_uid = 1000, .stx_gid = 1001, .stx_size = 123456,
		.stx_blksize = 4096, .stx_blocks = 248, .stx_dev_major = 8, .stx_dev_minor = 1, .stx_rdev_major = 259, .stx_rdev_minor = 257,
		.stx_atime = { .tv_sec = 101, .tv_nsec = 201 }, .stx_mtime = { .tv_sec = 102, .tv_nsec = 202 },
		.stx_ctime = { .tv_sec = 103, .tv_nsec = 203 },
	};
}

/* No field overlaps another or leaves the structure. */
static void check_fields(const struct abi_field *field, int count, size_t size)
{
	unsigned char used[256] = { 0 };

	for (int i = 0; i < count; i++) {
		ck_assert_uint_le(field[i].at + field[i].size, size);
		for (int j = 0; j < field[i].size; j++)
			ck_assert_int_eq(used[field[i].at + j]++, 0);
	}
}

START_TEST(fields_are_apart)
{
	const struct abi *abi = arch_all[_i]->abi;
	const struct abi_stat *const stats[] = { abi->stat, abi->stat64, abi->oldstat };
	const struct abi_statfs *const statfses[] = { abi->statfs, abi->statfs64 };

	ck_assert_ptr_nonnull(abi->stat);
	ck_assert_ptr_nonnull(abi->statfs);
	for (int i = 0; i < 3; i++) {
		if (!stats[i])
			continue;
		check_fields(stats[i]->field, STAT_FIELDS, stats[i]->size);
		ck_assert_uint_le(stats[i]->size, ABI_STAT_MAX);
	}
	for (int i = 0; i < 2; i++) {
		if (!statfses[i])
			continue;
		check_fields(statfses[i]->field, STATFS_FIELDS, statfses[i]->size);
		ck_assert_uint_le(statfses[i]->size, ABI_STATFS_MAX);
	}
}
END_TEST

#if defined(__x86_64__)
/* What this host's own calls say, put again into its layout. */
START_TEST(host_agrees)
{
	const struct abi *abi = arch_all[ARCH_X86_64]->abi;
	static const char *const paths[] = { "/", "/usr", "/dev/zero", "/proc/self/exe", "/etc/passwd" };
	struct stat own, put;
	struct statx st;

	ck_assert_uint_eq(sizeof(own), abi->stat->size);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		ck_assert_int_eq(stat(paths[i], &own), 0);
		ck_assert_int_eq(statx(AT_FDCWD, paths[i], 0, STATX_BASIC_STATS, &st), 0);
		ck_assert_int_eq(abi_put_stat(abi->stat, &st, &put), sizeof(put));
		ck_assert_mem_eq(&own, &put, sizeof(own));
	}
}
END_TEST

START_TEST(host_statfs_agrees)
{
	const struct abi *abi = arch_all[ARCH_X86_64]->abi;
	struct statfs own, put;

	ck_assert_int_eq(statfs("/proc", &own), 0);
	memset(own.f_spare, 0, sizeof(own.f_spare));
	ck_assert_int_eq(abi_put_statfs(abi->statfs, &own, &put), sizeof(put));
	ck_assert_mem_eq(&own, &put, sizeof(own));
}
END_TEST

#endif

START_TEST(i386_old_stat)
{
	const struct abi *abi = arch_all[ARCH_I386]->abi;
	struct statx st = sample();
	unsigned char buf[ABI_STAT_MAX];

	st.stx_ino = 4711;
	ck_assert_int_eq(abi_put_stat(abi->oldstat, &st, buf), 32);
	ck_assert_uint_eq(at(buf, 0, 2), 0x801);
	ck_assert_uint_eq(at(buf, 2, 2), 4711);
	ck_assert_uint_eq(at(buf, 4, 2), S_IFREG | 0640);
	ck_assert_uint_eq(at(buf, 6, 2), 3);
	ck_assert_uint_eq(at(buf, 8, 2), 1000);
	ck_assert_uint_eq(at(buf, 16, 4), 123456);
	ck_assert_uint_eq(at(buf, 28, 4), 103);
	st.stx_ino = 0x10000;
	ck_assert_int_eq(abi_put_stat(abi->oldstat, &st, buf), -EOVERFLOW);
}
END_TEST

START_TEST(i386_stat)
{
	const struct abi *abi = arch_all[ARCH_I386]->abi;
	struct statx st = sample();
	unsigned char buf[ABI_STAT_MAX];

	ck_assert_int_eq(abi_put_stat(abi->stat, &st, buf), 64);
	ck_assert_uint_eq(at(buf, 4, 4), 0x11223344);
	ck_assert_uint_eq(at(buf, 16, 4), 257 % 256 + (259 << 8) + (256 << 12));
	ck_assert_uint_eq(at(buf, 52, 4), 203);
	st.stx_uid = 70000;
	ck_assert_int_eq(abi_put_stat(abi->stat, &st, buf), 64);
	ck_assert_uint_eq(at(buf, 12, 2), 65534);
	st.stx_size = 1ull << 31;
	ck_assert_int_eq(abi_put_stat(abi->stat, &st, buf), -EOVERFLOW);
	ck_assert_int_eq(abi_put_stat(abi->stat64, &st, buf), 96);
	ck_assert_uint_eq(at(buf, 44, 8), 1ull << 31);
	ck_assert_uint_eq(at(buf, 24, 4), 70000);
	st.stx_size = 1;
	st.stx_ino = 1ull << 32 | 5;
	ck_assert_int_eq(abi_put_stat(abi->stat, &st, buf), -EOVERFLOW);
	ck_assert_int_eq(abi_put_stat(abi->stat64, &st, buf), 96);
	ck_assert_uint_eq(at(buf, 12, 4), 5);
	ck_assert_uint_eq(at(buf, 88, 8), 1ull << 32 | 5);
	st.stx_ino = 5;
	st.stx_nlink = 65536;
	ck_assert_int_eq(abi_put_stat(abi->stat, &st, buf), -EOVERFLOW);
}
END_TEST

START_TEST(generic_stat)
{
	const struct abi *abi = arch_all[_i ? ARCH_RISCV64 : ARCH_AARCH64]->abi;
	struct statx st = sample();
	unsigned char buf[ABI_STAT_MAX];

	ck_assert_int_eq(abi_put_stat(abi->stat, &st, buf), 128);
	ck_assert_uint_eq(at(buf, 16, 4), S_IFREG | 0640);
	ck_assert_uint_eq(at(buf, 20, 4), 3);
	ck_assert_uint_eq(at(buf, 48, 8), 123456);
	ck_assert_uint_eq(at(buf, 112, 8), 203);
	ck_assert_uint_eq(at(buf, 120, 8), 0);
}
END_TEST

START_TEST(i386_statfs)
{
	const struct abi *abi = arch_all[ARCH_I386]->abi;
	struct statfs st = { .f_type = 0xef53, .f_bsize = 4096, .f_blocks = 1000, .f_files = UINT64_MAX, .f_namelen = 255 };
	unsigned char buf[ABI_STATFS_MAX];

	ck_assert_int_eq(abi_put_statfs(abi->statfs, &st, buf), 64);
	ck_assert_uint_eq(at(buf, 36, 4), 255);
	ck_assert_uint_eq(at(buf, 20, 4), UINT32_MAX);
	st.f_files = 1ull << 32;
	ck_assert_int_eq(abi_put_statfs(abi->statfs, &st, buf), -EOVERFLOW);
	st.f_blocks = 1ull << 32;
	ck_assert_int_eq(abi_put_statfs(abi->statfs64, &st, buf), 84);
	ck_assert_uint_eq(at(buf, 8, 8), 1ull << 32);
	ck_assert_uint_eq(at(buf, 56, 4), 255);
}
END_TEST

START_TEST(entries)
{
	struct abi_dirent entry = { .ino = 7, .next = 99, .type = DT_DIR, .name = "abcde" };
	unsigned char buf[64];

	ck_assert_int_eq(abi_put_dirent(buf, sizeof(buf), true, 8, &entry), 32);
	ck_assert_uint_eq(at(buf, 16, 2), 32);
	ck_assert_uint_eq(buf[18], DT_DIR);
	ck_assert_str_eq((char *)buf + 19, "abcde");
	ck_assert_int_eq(abi_put_dirent(buf, sizeof(buf), false, 8, &entry), 32);
	ck_assert_str_eq((char *)buf + 18, "abcde");
	ck_assert_uint_eq(buf[31], DT_DIR);
	ck_assert_int_eq(abi_put_dirent(buf, sizeof(buf), false, 4, &entry), 20);
	ck_assert_uint_eq(at(buf, 4, 4), 99);
	ck_assert_str_eq((char *)buf + 10, "abcde");
	ck_assert_uint_eq(buf[19], DT_DIR);
	ck_assert_int_eq(abi_put_dirent(buf, 19, false, 4, &entry), -EINVAL);
	ck_assert_int_eq(abi_put_dirent(buf, 31, true, 8, &entry), -EINVAL);
	ck_assert_int_eq(abi_put_old_dirent(buf, sizeof(buf), 42, &entry), 16);
	ck_assert_uint_eq(at(buf, 4, 4), 42);
	ck_assert_uint_eq(at(buf, 8, 2), 5);
	ck_assert_int_eq(abi_put_old_dirent(buf, 15, 42, &entry), -EINVAL);
	entry.ino = 1ull << 32;
	ck_assert_int_eq(abi_put_dirent(buf, sizeof(buf), false, 4, &entry), -EOVERFLOW);
	ck_assert_int_eq(abi_put_dirent(buf, sizeof(buf), false, 8, &entry), 32);
}
END_TEST

Suite *suite_abi(void);

Suite *suite_abi(void)
{
	Suite *suite = suite_create("abi");
	TCase *tests = tcase_create("layouts");

	tcase_add_loop_test(tests, fields_are_apart, 0, ARCH_COUNT);
#if defined(__x86_64__)
	tcase_add_test(tests, host_agrees);
	tcase_add_test(tests, host_statfs_agrees);
#endif
	tcase_add_test(tests, i386_old_stat);
	tcase_add_test(tests, i386_stat);
	tcase_add_loop_test(tests, generic_stat, 0, 2);
	tcase_add_test(tests, i386_statfs);
	tcase_add_test(tests, entries);
	suite_add_tcase(suite, tests);
	return suite;
}
