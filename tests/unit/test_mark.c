/* Whiteouts and marks: their texts, damaged ones, replacement in one step, the directory's times. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/mark.h"
#include "vfs/upper.h"

static char folder[] = "/tmp/interpose-test-mark.XXXXXX";
static int dirfd_;

static void setup(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	dirfd_ = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dirfd_, 0);
}

static void teardown(void)
{
	int fd = openat(dirfd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	upper_remove_contents(fd);
	close(fd);
	close(dirfd_);
	rmdir(folder);
}

static void write_mark(bool opaque, bool scaffold, const char *lower)
{
	struct mark mark = { .opaque = opaque, .scaffold = scaffold };

	strcpy(mark.lower, lower);
	ck_assert_int_eq(mark_write(dirfd_, &mark), 0);
}

static const char *link_text(const char *name)
{
	static char text[PATH_MAX + 1];
	ssize_t n = readlinkat(dirfd_, name, text, PATH_MAX);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	return text;
}

START_TEST(texts)
{
	static const struct {
		bool opaque, scaffold;
		const char *lower, *text;
	} all[] = {
		{ true, false, "", "\001interpose:opaque" },
		{ false, true, "", "\001interpose:scaffold" },
		{ true, true, "", "\001interpose:opaque;scaffold" },
		{ false, false, "/a", "\001interpose:lower=/a" },
		{ true, false, "/a/b;c=d\n", "\001interpose:opaque;lower=/a/b;c=d\n" },
		{ false, true, "/", "\001interpose:scaffold;lower=/" },
		{ true, true, "/x", "\001interpose:opaque;scaffold;lower=/x" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct mark mark;

		write_mark(all[i].opaque, all[i].scaffold, all[i].lower);
		ck_assert_str_eq(link_text("\001interpose:dir"), all[i].text);
		ck_assert_int_eq(mark_read(dirfd_, &mark), 0);
		ck_assert(mark.opaque == all[i].opaque && mark.scaffold == all[i].scaffold);
		ck_assert_str_eq(mark.lower, all[i].lower);
	}
}
END_TEST

START_TEST(empty_removes)
{
	struct mark mark = { .opaque = true, .lower = "/left" };

	ck_assert_int_eq(mark_read(dirfd_, &mark), -ENOENT);
	ck_assert(!mark.opaque && !mark.scaffold && !mark.lower[0]);
	write_mark(false, false, "");
	write_mark(true, false, "");
	write_mark(false, false, "");
	ck_assert_int_eq(mark_read(dirfd_, &mark), -ENOENT);
	ck_assert_int_eq(faccessat(dirfd_, "\001interpose:dir", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}
END_TEST

START_TEST(damaged)
{
	static const char *const bad[] = {
		"x", "\001interpose:", "\001interpose:opaque;", "\001interpose:opaqu", "\001interpose:opaquescaffold",
		"\001interpose:scaffold;opaque", "\001interpose:lower=", "\001interpose:lower=a", "\001interpose:lower=/a/../b",
		"\001interpose:lower=/a//b", "\001interpose:lower=/a/", "\001interpose:lower=/.", "\001interpose:lower=/..",
		"\001interpose:opaque;;scaffold", "\001interpose:whiteout",
	};
	struct mark mark;
	int fd;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(symlinkat(bad[i], dirfd_, MARK_DIR), 0);
		ck_assert_int_eq(mark_read(dirfd_, &mark), -EUCLEAN);
		ck_assert(!mark.opaque && !mark.scaffold && !mark.lower[0]);
		ck_assert_int_eq(unlinkat(dirfd_, MARK_DIR, 0), 0);
	}
	fd = openat(dirfd_, MARK_DIR, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	ck_assert_int_eq(mark_read(dirfd_, &mark), -EUCLEAN);
}
END_TEST

START_TEST(long_lower)
{
	struct mark mark = { .opaque = true, .scaffold = true }, back;

	memset(mark.lower, 'a', PATH_MAX - 1);
	for (size_t i = 0; i < PATH_MAX - 1; i += 200)
		mark.lower[i] = '/';
	ck_assert_int_eq(mark_write(dirfd_, &mark), -ENAMETOOLONG);
	ck_assert_int_eq(mark_read(dirfd_, &back), -ENOENT);
	mark.lower[3900] = '\0';
	ck_assert_int_eq(mark_write(dirfd_, &mark), 0);
	ck_assert_int_eq(mark_read(dirfd_, &back), 0);
	ck_assert_str_eq(mark.lower, back.lower);
	strcpy(mark.lower, "/a/../b");
	ck_assert_int_eq(mark_write(dirfd_, &mark), -EINVAL);
}
END_TEST

START_TEST(times_stay)
{
	const struct timespec old[2] = { { 1000, 7 }, { 2000, 9 } };
	struct stat st;

	ck_assert_int_eq(utimensat(AT_FDCWD, folder, old, 0), 0);
	write_mark(true, false, "");
	write_mark(false, false, "");
	ck_assert_int_eq(fstat(dirfd_, &st), 0);
	ck_assert(st.st_atim.tv_sec == 1000 && st.st_atim.tv_nsec == 7 && st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 9);
}
END_TEST

START_TEST(left_by_a_killed_run)
{
	ck_assert_int_eq(symlinkat("rest", dirfd_, "\001interpose:new"), 0);
	write_mark(true, false, "");
	ck_assert_int_eq(faccessat(dirfd_, "\001interpose:new", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}
END_TEST

START_TEST(whiteouts)
{
	static const char *const others[] = { "\001interpose:whiteouT", "interpose:whiteout", "\001interpose:whiteout2" };
	struct stat st;

	ck_assert_int_eq(mark_whiteout(dirfd_, "gone"), 0);
	ck_assert_int_eq(mark_whiteout(dirfd_, "gone"), -EEXIST);
	ck_assert_int_eq(fstatat(dirfd_, "gone", &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(mark_is_whiteout(dirfd_, "gone", &st));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		ck_assert_int_eq(symlinkat(others[i], dirfd_, "other"), 0);
		ck_assert_int_eq(fstatat(dirfd_, "other", &st, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert(!mark_is_whiteout(dirfd_, "other", &st));
		unlinkat(dirfd_, "other", 0);
	}
	ck_assert(mark_reserved("\001interpose:dir") && mark_reserved("\001interpose:"));
	ck_assert(!mark_reserved("interpose:dir") && !mark_reserved("\001interpose") && !mark_reserved(""));
}
END_TEST

Suite *suite_mark(void);
Suite *suite_mark(void)
{
	Suite *suite = suite_create("mark");
	TCase *tcase = tcase_create("mark");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, texts);
	tcase_add_test(tcase, empty_removes);
	tcase_add_test(tcase, damaged);
	tcase_add_test(tcase, long_lower);
	tcase_add_test(tcase, times_stay);
	tcase_add_test(tcase, left_by_a_killed_run);
	tcase_add_test(tcase, whiteouts);
	suite_add_tcase(suite, tcase);
	return suite;
}
