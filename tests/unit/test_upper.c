/* Uppers in memory and on disk, damaged and used ones; copies of objects with all that belongs to them; origins. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs/copy.h"
#include "vfs/mark.h"
#include "vfs/origin.h"
#include "vfs/upper.h"

static char folder[] = "/tmp/interpose-test-upper.XXXXXX";
static char path[256], why[512];
static int at;
static struct upper upper;

static void setup(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/o", folder);
	at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(at, 0);
	why[0] = '\0';
	setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
}

static void teardown(void)
{
	upper_remove_contents(at);
	close(at);
	rmdir(folder);
}

static void fill(const char *name, const char *text)
{
	int fd = openat(at, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void check_descriptors(void)
{
	const int fds[] = { upper.root_fd, upper.fs_fd, upper.work_fd, upper.index_fd };

	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_gt(fds[i], 2);
		ck_assert_int_eq(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
}

static void check_usable(void)
{
	struct mark mark;
	struct stat st;
	int fd = openat(upper.work_fd, "new", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(renameat(upper.work_fd, "new", upper.fs_fd, "made"), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert(st.st_dev == upper.dev && st.st_uid == geteuid());
	close(fd);
	ck_assert_int_eq(mark_read(upper.fs_fd, &mark), 0);
	ck_assert(mark.scaffold && !mark.opaque && !mark.lower[0]);
	check_descriptors();
}

START_TEST(memory)
{
	char link[64], shown[256];
	struct statfs fs;
	int fd;
	ssize_t n;

	ck_assert_msg(upper_open_memory(&upper, false, why, sizeof(why)) == 0, "%s", why);
	check_usable();
	ck_assert_int_eq(fstatfs(upper.fs_fd, &fs), 0);
	ck_assert_int_eq(fs.f_files, 0);
	if (upper.view_fd >= 0) {
		fd = openat(upper.view_fd, "made", O_RDONLY | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, shown, sizeof(shown) - 1);
		ck_assert_int_gt(n, 0);
		shown[n] = '\0';
		ck_assert_str_eq(shown, "/made");
		close(fd);
	}
	upper_close(&upper);
	ck_assert_int_eq(upper.root_fd, -1);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(memory_in_a_directory)
{
	char *stale;
	struct upper second;

	setenv("XDG_RUNTIME_DIR", folder, 1);
	ck_assert_msg(upper_open_memory(&upper, true, why, sizeof(why)) == 0, "%s", why);
	check_usable();
	ck_assert_ptr_nonnull(upper.path);
	ck_assert_int_eq(mkdirat(upper.fs_fd, "closed", 0), 0);
	ck_assert_int_eq(mkdirat(upper.fs_fd, "d", 0755), 0);
	ck_assert_int_eq(mkdirat(upper.fs_fd, "d/e", 0755), 0);
	ck_assert_int_eq(mkdirat(upper.fs_fd, "d/e/f", 0755), 0);
	ck_assert_int_eq(fchmodat(upper.fs_fd, "d/e", 0, 0), 0);
	ck_assert_int_eq(fchmodat(upper.fs_fd, "d", 0500, 0), 0);
	stale = strdup(upper.path);
	/* While its lock is held a new run leaves it alone. */
	ck_assert_int_eq(upper_open_memory(&second, true, why, sizeof(why)), 0);
	upper_close(&second);
	ck_assert_int_eq(access(stale, F_OK), 0);
	upper_close(&upper);
	ck_assert_int_eq(access(stale, F_OK), -1);
	free(stale);
}
END_TEST

START_TEST(memory_stale)
{
	char *stale;
	int status;
	pid_t child;

	setenv("XDG_RUNTIME_DIR", "/dev/shm", 1);
	ck_assert_int_eq(upper_open_memory(&upper, true, why, sizeof(why)), 0);
	stale = strdup(upper.path);
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, &status, 0);
	/* As if it had been killed. */
	ck_assert_int_eq(mkdirat(upper.fs_fd, "d", 0755), 0);
	close(upper.lock_fd);
	upper.lock_fd = -1;
	upper.persistent = true;
	upper_close(&upper);
	ck_assert_int_eq(access(stale, F_OK), 0);
	ck_assert_int_eq(upper_open_memory(&upper, true, why, sizeof(why)), 0);
	ck_assert_int_eq(access(stale, F_OK), -1);
	upper_close(&upper);
	free(stale);
}
END_TEST

START_TEST(on_disk)
{
	struct upper second;
	char expected[64];
	struct stat st;

	ck_assert_msg(upper_open_dir(&upper, path, why, sizeof(why)) == 0, "%s", why);
	ck_assert(upper.persistent && !strcmp(upper.path, path));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0700);
	check_usable();
	ck_assert_int_eq(mkdirat(upper.work_fd, "rest", 0700), 0);
	ck_assert_int_eq(upper_open_dir(&second, path, why, sizeof(why)), -EBUSY);
	snprintf(expected, sizeof(expected), "in use by process %d", (int)getpid());
	ck_assert_msg(strstr(why, expected) != NULL, "%s", why);
	ck_assert_int_eq(upper_open_existing(&second, path, true, why, sizeof(why)), -EBUSY);
	ck_assert_int_eq(upper_open_existing(&second, path, false, why, sizeof(why)), 0);
	ck_assert_int_eq(upper_user(second.root_fd), getpid());
	upper_close(&second);
	upper_close(&upper);

	ck_assert_msg(upper_open_dir(&upper, path, why, sizeof(why)) == 0, "%s", why);
	ck_assert_int_eq(faccessat(upper.fs_fd, "made", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(upper.work_fd, "rest", F_OK, 0), -1);
	upper_close(&upper);
	ck_assert_int_eq(upper_open_existing(&second, path, false, why, sizeof(why)), 0);
	ck_assert_int_eq(upper_user(second.root_fd), 0);
	upper_close(&second);
}
END_TEST

/* Opens it and makes sure that it says WORDS. */
static void refused(int error, const char *words)
{
	int got;

	why[0] = '\0';
	got = upper_open_dir(&upper, path, why, sizeof(why));
	ck_assert_msg(got == error && strstr(why, words), "%d '%s' instead of %d '%s'", got, why, error, words);
	ck_assert_int_eq(upper.root_fd, -1);
}

static void fresh(void)
{
	int fd = openat(at, "o", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		upper_remove_contents(fd);
		close(fd);
		unlinkat(at, "o", AT_REMOVEDIR);
	}
	ck_assert_msg(upper_open_dir(&upper, path, why, sizeof(why)) == 0, "%s", why);
	upper_close(&upper);
}

START_TEST(damaged)
{
	fresh();
	unlinkat(at, "o/fs/\001interpose:dir", 0);
	ck_assert_int_eq(unlinkat(at, "o/fs", AT_REMOVEDIR), 0);
	refused(-EUCLEAN, "'fs' is missing");
	fill("o/fs", "");
	refused(-EUCLEAN, "'fs' is no directory");
	fresh();
	ck_assert_int_eq(unlinkat(at, "o/index", AT_REMOVEDIR), 0);
	ck_assert_int_eq(symlinkat("/", at, "o/index"), 0);
	refused(-EUCLEAN, "'index' is no directory");
	fresh();
	ck_assert_int_eq(unlinkat(at, "o/work", AT_REMOVEDIR), 0);
	ck_assert_int_eq(upper_open_dir(&upper, path, why, sizeof(why)), 0);
	upper_close(&upper);
	fill("o/format", "interpose-overlay 2\n");
	refused(-EUCLEAN, "has the format 'interpose-overlay 2'");
	fill("o/format", "what\n");
	refused(-EUCLEAN, "not one of interpose");
	unlinkat(at, "o/format", 0);
	unlinkat(at, "o/origins", 0);
	fill("o/other", "");
	refused(-EUCLEAN, "'other' is in it");
	unlinkat(at, "o/other", 0);
	/* What a run that was killed while it made the upper has left. */
	ck_assert_int_eq(upper_open_dir(&upper, path, why, sizeof(why)), 0);
	upper_close(&upper);
	fresh();
	ck_assert_int_eq(fchmodat(at, "o", 0722, 0), 0);
	refused(-EPERM, "by others");
	fresh();
	unlinkat(at, "o/fs/\001interpose:dir", 0);
	ck_assert_int_eq(symlinkat("nonsense", at, "o/fs/\001interpose:dir"), 0);
	refused(-EUCLEAN, "mark of its root");
	ck_assert_int_eq(upper_open_existing(&upper, "/nonexistent/o", true, why, sizeof(why)), -ENOENT);
	ck_assert_ptr_nonnull(strstr(why, "there is no overlay"));
	/* Nothing is made in a directory that is none. */
	mkdirat(at, "plain", 0700);
	snprintf(path, sizeof(path), "%s/plain", folder);
	ck_assert_int_eq(upper_open_existing(&upper, path, true, why, sizeof(why)), -EUCLEAN);
	ck_assert_int_eq(unlinkat(at, "plain", AT_REMOVEDIR), 0);
}
END_TEST

START_TEST(names)
{
	static const char *const bad[] = { "", ".", "..", ".x", "a/b", "a b", "a\n", "ü", "a*" };
	char longest[130];
	char *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert(!upper_name_valid(bad[i]));
	memset(longest, 'a', 129);
	longest[129] = '\0';
	ck_assert(!upper_name_valid(longest));
	longest[128] = '\0';
	ck_assert(upper_name_valid(longest) && upper_name_valid("A.b_c-9"));
	setenv("XDG_STATE_HOME", folder, 1);
	ck_assert_msg(upper_open_named(&upper, "web", why, sizeof(why)) == 0, "%s", why);
	upper_close(&upper);
	ck_assert_int_eq(faccessat(at, "interpose/web/format", F_OK, 0), 0);
	state = upper_path_of("web", why, sizeof(why));
	ck_assert_ptr_nonnull(state);
	free(state);
	ck_assert_int_eq(upper_open_named(&upper, "../web", why, sizeof(why)), -EINVAL);
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	ck_assert_int_eq(upper_open_named(&upper, "web", why, sizeof(why)), -ENOENT);
}
END_TEST

START_TEST(removal_of_a_deep_tree)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), down;

	for (int i = 0; i < 3000; i++) {
		ck_assert_int_eq(mkdirat(fd, "a-name-that-makes-long-paths", 0700), 0);
		down = openat(fd, "a-name-that-makes-long-paths", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(down, 0);
		ck_assert_int_eq(symlinkat("/etc", down, "link"), 0);
		close(fd);
		fd = down;
	}
	close(fd);
	ck_assert_int_eq(upper_remove_contents(at), 0);
	ck_assert_int_eq(rmdir(folder), 0);
	ck_assert_int_eq(access("/etc/passwd", F_OK), 0);
}
END_TEST

/* --- copies ------------------------------------------------------------------------------------------------------------------ */

static void same_stat(const char *a, const char *b)
{
	struct stat one, two;

	ck_assert_int_eq(fstatat(at, a, &one, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert_int_eq(fstatat(at, b, &two, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(one.st_mode == two.st_mode && one.st_uid == two.st_uid && one.st_gid == two.st_gid);
	ck_assert(one.st_size == two.st_size && one.st_rdev == two.st_rdev);
	ck_assert(one.st_mtim.tv_sec == two.st_mtim.tv_sec && one.st_mtim.tv_nsec == two.st_mtim.tv_nsec);
}

START_TEST(copy_kinds)
{
	const struct timespec old[2] = { { 1000, 7 }, { 2000, 9 } };
	bool root = geteuid() == 0;

	fill("file", "text");
	ck_assert_int_eq(fchmodat(at, "file", 04751, 0), 0);
	ck_assert_int_eq(mknodat(at, "fifo", S_IFIFO | 0640, 0), 0);
	ck_assert_int_eq(mknodat(at, "socket", S_IFSOCK | 0600, 0), 0);
	ck_assert_int_eq(symlinkat("somewhere", at, "link"), 0);
	if (root) {
		ck_assert_int_eq(mknodat(at, "null", S_IFCHR | 0666, 0x103), 0);
		ck_assert_int_eq(fchownat(at, "link", 12, 34, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert_int_eq(fchownat(at, "file", 12, 34, 0), 0);
		ck_assert_int_eq(fchmodat(at, "file", 06751, 0), 0);
	}
	for (const char *const *name = (const char *const[]){ "file", "fifo", "socket", "link", "null", NULL }; *name; name++) {
		char to[16];

		if (!strcmp(*name, "null") && !root)
			continue;
		snprintf(to, sizeof(to), "%s2", *name);
		utimensat(at, *name, old, AT_SYMLINK_NOFOLLOW);
		ck_assert_int_eq(copy_object(at, *name, at, to), 0);
		same_stat(*name, to);
		ck_assert_int_eq(copy_object(at, *name, at, to), -EEXIST);
	}
	ck_assert_int_eq(mkdirat(at, "dir", 0700), 0);
	ck_assert_int_eq(copy_object(at, "dir", at, "dir2"), -EISDIR);
	ck_assert_int_eq(copy_object(at, "none", at, "none2"), -ENOENT);
}
END_TEST

START_TEST(copy_sparse)
{
	char block[4096], back[4096];
	struct stat st;
	int fd = openat(at, "sparse", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	off_t size = 1LL << 32;

	memset(block, 'x', sizeof(block));
	ck_assert_int_eq(pwrite(fd, block, sizeof(block), 1 << 20), (ssize_t)sizeof(block));
	ck_assert_int_eq(pwrite(fd, block, 10, (1 << 30) + 5), 10);
	ck_assert_int_eq(ftruncate(fd, size), 0);
	ck_assert_int_eq(copy_object(at, "sparse", at, "copy"), 0);
	ck_assert_int_eq(fstatat(at, "copy", &st, 0), 0);
	ck_assert_int_eq(st.st_size, size);
	ck_assert_int_lt(st.st_blocks * 512, 1 << 20);
	close(fd);
	fd = openat(at, "copy", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(pread(fd, back, sizeof(back), 1 << 20), (ssize_t)sizeof(back));
	ck_assert_mem_eq(block, back, sizeof(back));
	ck_assert_int_eq(pread(fd, back, 12, (1 << 30) + 4), 12);
	ck_assert_mem_eq(back, "\0xxxxxxxxxx\0", 12);
	close(fd);
}
END_TEST

START_TEST(copy_xattrs)
{
	char value[16];

	fill("file", "text");
	snprintf(path, sizeof(path), "%s/file", folder);
	if (setxattr(path, "user.a", "one", 3, 0) < 0)
		return; /* a file system without them */
	ck_assert_int_eq(setxattr(path, "user.empty", "", 0, 0), 0);
	ck_assert_int_eq(copy_object(at, "file", at, "copy"), 0);
	snprintf(path, sizeof(path), "%s/copy", folder);
	ck_assert_int_eq(getxattr(path, "user.a", value, sizeof(value)), 3);
	ck_assert_mem_eq(value, "one", 3);
	ck_assert_int_eq(getxattr(path, "user.empty", value, sizeof(value)), 0);
}
END_TEST

static void notify(void *arg)
{
	const uint64_t one = 1;

	ck_assert_int_eq(write(*(int *)arg, &one, sizeof(one)), (ssize_t)sizeof(one));
}

START_TEST(copy_by_worker)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct copy_job jobs[8];
	struct pollfd wait = { .fd = event, .events = POLLIN };
	int from = openat(at, "from", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	struct stat st;

	for (int i = 0; i < 64; i++) {
		char block[65536];

		memset(block, 'a' + i % 26, sizeof(block));
		ck_assert_int_eq(write(from, block, sizeof(block)), (ssize_t)sizeof(block));
	}
	for (int i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "to%d", i);
		jobs[i] = (struct copy_job){ .from = from, .size = 64 * 65536, .notify = notify, .arg = &event };
		jobs[i].to = openat(at, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		ck_assert_int_eq(copy_start(&jobs[i]), 0);
	}
	copy_cancel(&jobs[7]);
	ck_assert_int_eq(poll(&wait, 1, 10000), 1);
	for (int i = 0; i < 8; i++) {
		int result = copy_wait(&jobs[i]);

		ck_assert(copy_done(&jobs[i]));
		ck_assert(result == 0 || (i == 7 && result == -ECANCELED));
		ck_assert_int_eq(fstat(jobs[i].to, &st), 0);
		ck_assert(i == 7 || st.st_size == 64 * 65536);
		close(jobs[i].to);
	}
	close(from);
}
END_TEST

/* --- origins ------------------------------------------------------------------------------------------------------------------ */

START_TEST(origins)
{
	int fd = openat(at, "origins", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	struct origin one = { 5, 100, 1, 2, 3, 4, 5, 0100644, "/a\n\\\037 b\377" }, two = one;
	struct statx st = { .stx_ino = 5, .stx_mask = STATX_BTIME, .stx_btime = { .tv_nsec = 100 } };
	struct origins all;

	ck_assert_int_eq(origin_append(-1, &one), 0);
	ck_assert_int_eq(origin_append(fd, &one), 0);
	two.upper_ino = 6;
	ck_assert_int_eq(origin_append(fd, &two), 0);
	two.upper_ino = 5;
	two.path = "/later";
	ck_assert_int_eq(origin_append(fd, &two), 0);
	ck_assert_int_eq(write(fd, "zz not a line\n5 64 1 2 3 4 5 81a4 /torn", 39), 39);
	ck_assert_int_eq(origins_load(&all, fd), 0);
	ck_assert_uint_eq(all.count, 3);
	ck_assert_str_eq(origins_find(&all, &st)->path, "/later");
	st.stx_ino = 6;
	ck_assert_str_eq(origins_find(&all, &st)->path, one.path);
	st.stx_btime.tv_nsec = 101;
	ck_assert_ptr_null(origins_find(&all, &st));
	st.stx_ino = 7;
	ck_assert_ptr_null(origins_find(&all, &st));
	origins_free(&all);
	ck_assert_int_eq(origin_repair(fd), 0);
	ck_assert_int_eq(origin_append(fd, &two), 0);
	ck_assert_int_eq(origins_load(&all, fd), 0);
	ck_assert_uint_eq(all.count, 4);
	origins_free(&all);
	ck_assert_int_eq(origins_load(&all, -1), 0);
	ck_assert_ptr_null(origins_find(&all, &st));
	origins_free(&all);
	close(fd);
}
END_TEST

Suite *suite_upper(void);
Suite *suite_upper(void)
{
	Suite *suite = suite_create("upper");
	TCase *tcase = tcase_create("upper");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, memory);
	tcase_add_test(tcase, memory_in_a_directory);
	tcase_add_test(tcase, memory_stale);
	tcase_add_test(tcase, on_disk);
	tcase_add_test(tcase, damaged);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, removal_of_a_deep_tree);
	tcase_add_test(tcase, copy_kinds);
	tcase_add_test(tcase, copy_sparse);
	tcase_add_test(tcase, copy_xattrs);
	tcase_add_test(tcase, copy_by_worker);
	tcase_add_test(tcase, origins);
	suite_add_tcase(suite, tcase);
	return suite;
}
