/* What an upper changes, and its commit: kinds of changes, renames, conflicts, continuing after a kill, deep trees. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vfs/changes.h"
#include "vfs/commit.h"
#include "vfs/copy.h"
#include "vfs/mark.h"
#include "vfs/origin.h"
#include "vfs/upper_walk.h"

static char folder[] = "/tmp/interpose-test-changes.XXXXXX";
static char path[256], why[5000], told[65536];
static int at, lower;
static struct upper upper;

static void open_upper(void)
{
	ck_assert_msg(upper_open_dir(&upper, path, why, sizeof(why)) == 0, "%s", why);
}

static void setup(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/o", folder);
	at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(at, 0);
	ck_assert_int_eq(mkdirat(at, "host", 0755), 0);
	lower = openat(at, "host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	open_upper();
}

static void teardown(void)
{
	upper_close(&upper);
	close(lower);
	upper_remove_contents(at);
	close(at);
	rmdir(folder);
}

static void fill(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, 0644), 0);
	close(fd);
}

static void make(int dir, const char *name)
{
	ck_assert_int_eq(mkdirat(dir, name, 0755), 0);
	ck_assert_int_eq(fchmodat(dir, name, 0755, 0), 0);
}

static void mark(const char *name, bool opaque, bool scaffold, const char *moved)
{
	struct mark text = { .opaque = opaque, .scaffold = scaffold };
	int fd = openat(upper.fs_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	strcpy(text.lower, moved);
	ck_assert_int_eq(mark_write(fd, &text), 0);
	close(fd);
}

/* As a guest's first write does it. */
static void copy_up(const char *name, const char *to)
{
	char guest[64];
	struct statx below, above;
	struct origin origin;

	snprintf(guest, sizeof(guest), "/%s", name);
	ck_assert_int_eq(copy_object(lower, name, upper.fs_fd, to), 0);
	ck_assert_int_eq(statx(lower, name, AT_SYMLINK_NOFOLLOW, WALK_STATX, &below), 0);
	ck_assert_int_eq(statx(upper.fs_fd, to, AT_SYMLINK_NOFOLLOW, WALK_STATX, &above), 0);
	origin = origin_of(&above, &below, guest);
	ck_assert_int_eq(origin_append(upper.origins_fd, &origin), 0);
}

static int tell_change(void *arg, const struct change *change)
{
	size_t len = strlen(told);

	(void)arg;
	snprintf(told + len, sizeof(told) - len, "%c%s%s %s", change->kind, change->from ? " " : "", change->from ? change->from : "",
		 change->path);
	for (int i = 0; i < CHANGE_WORDS; i++) {
		len = strlen(told);
		if (change->what & 1u << i)
			snprintf(told + len, sizeof(told) - len, " %s", change_words[i]);
	}
	strcat(told, "\n");
	return 0;
}

static void changes_are(const char *expected)
{
	char *failed;

	told[0] = '\0';
	ck_assert_int_eq(changes_walk(&upper, lower, tell_change, NULL, &failed), 0);
	ck_assert_str_eq(told, expected);
}

static void tell_commit(void *arg, enum commit_event event, const char *name, const char *text)
{
	size_t len = strlen(told);

	(void)arg;
	snprintf(told + len, sizeof(told) - len, "%d %s: %s\n", event, name, text ? text : "");
}

static int commit(bool force, char *const *paths)
{
	struct commit_options options = { .force = force, .paths = paths, .tell = tell_commit };

	while (paths && paths[options.count])
		options.count++;
	told[0] = '\0';
	return commit_run(&upper, lower, &options);
}

static void committed(void)
{
	int error = commit(false, NULL);

	ck_assert_msg(error == 0, "%d %s", error, told);
	changes_are("");
	ck_assert_int_eq(faccessat(upper.root_fd, "commit", F_OK, 0), -1);
	ck_assert_int_eq(faccessat(upper.root_fd, "committed", F_OK, 0), -1);
}

static void holds(const char *name, const char *text)
{
	char bytes[64];
	int fd = openat(lower, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	ck_assert_msg(fd >= 0, "%s", name);
	n = read(fd, bytes, sizeof(bytes) - 1);
	bytes[n > 0 ? n : 0] = '\0';
	ck_assert_str_eq(bytes, text);
	close(fd);
}

static bool exists(const char *name)
{
	struct stat st;

	return fstatat(lower, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

START_TEST(kinds)
{
	make(lower, "d");
	fill(lower, "d/changed", "old");
	fill(lower, "d/same", "same");
	fill(lower, "d/mode", "mode");
	fill(lower, "d/gone", "gone");
	fill(lower, "d/moved", "moved");
	make(lower, "tree");
	fill(lower, "tree/x", "x");
	make(lower, "replaced");
	fill(lower, "replaced/old", "old");
	fill(lower, "replaced/kept", "old");
	fill(lower, "type", "type");

	make(upper.fs_fd, "d");
	mark("d", false, true, "");
	copy_up("d/changed", "d/changed");
	fill(upper.fs_fd, "d/changed", "new text");
	copy_up("d/same", "d/same");
	copy_up("d/mode", "d/mode");
	ck_assert_int_eq(fchmodat(upper.fs_fd, "d/mode", 0600, 0), 0);
	copy_up("d/moved", "d/moved to");
	ck_assert_int_eq(mark_whiteout(upper.fs_fd, "d/moved"), 0);
	ck_assert_int_eq(mark_whiteout(upper.fs_fd, "d/gone"), 0);
	fill(upper.fs_fd, "d/new", "new");
	ck_assert_int_eq(symlinkat("somewhere", upper.fs_fd, "link"), 0);
	ck_assert_int_eq(mark_whiteout(upper.fs_fd, "tree"), 0);
	ck_assert_int_eq(mark_whiteout(upper.fs_fd, "never"), 0);
	make(upper.fs_fd, "replaced");
	mark("replaced", true, false, "");
	fill(upper.fs_fd, "replaced/kept", "new");
	make(upper.fs_fd, "type");
	fill(upper.fs_fd, "type/in", "in");
	changes_are("M /d/changed content times\n"
		    "D /d/gone\n"
		    "M /d/mode mode\n"
		    "R /d/moved /d/moved to\n"
		    "A /d/new\n"
		    "A /link\n"
		    "D /replaced\n"
		    "A /replaced\n"
		    "A /replaced/kept\n"
		    "D /tree\n"
		    "D /type\n"
		    "A /type\n"
		    "A /type/in\n");
	committed();
	holds("d/changed", "new text");
	holds("d/moved to", "moved");
	holds("d/new", "new");
	holds("replaced/kept", "new");
	holds("type/in", "in");
	ck_assert(!exists("d/moved") && !exists("d/gone") && !exists("tree") && !exists("replaced/old") && !exists("never"));
}
END_TEST

START_TEST(renamed_directories)
{
	make(lower, "a");
	fill(lower, "a/f", "a");
	make(lower, "b");
	fill(lower, "b/f", "b");
	make(lower, "c");
	make(lower, "c/in");
	fill(lower, "c/in/f", "c");
	/* mv a t; mv b a; mv t b; mv c/in a/in */
	make(upper.fs_fd, "a");
	mark("a", false, true, "/b");
	make(upper.fs_fd, "b");
	mark("b", false, true, "/a");
	make(upper.fs_fd, "a/in");
	mark("a/in", false, true, "/c/in");
	make(upper.fs_fd, "c");
	mark("c", false, true, "");
	ck_assert_int_eq(mark_whiteout(upper.fs_fd, "c/in"), 0);
	fill(upper.fs_fd, "a/new", "new");
	changes_are("R /b /a\nR /c/in /a/in\nA /a/new\nR /a /b\n");
	committed();
	holds("a/f", "b");
	holds("b/f", "a");
	holds("a/in/f", "c");
	holds("a/new", "new");
	ck_assert(!exists("c/in") && exists("c"));
}
END_TEST

/* mv a x; mkdir a; mv x a/c: the old directory goes into what stands at its place. */
START_TEST(renamed_into_its_own_place)
{
	make(lower, "a");
	fill(lower, "a/f", "f");
	make(upper.fs_fd, "a");
	mark("a", true, false, "");
	make(upper.fs_fd, "a/c");
	mark("a/c", false, true, "/a");
	committed();
	holds("a/c/f", "f");
	ck_assert(!exists("a/f"));
}
END_TEST

START_TEST(conflicts)
{
	fill(lower, "both", "old");
	fill(lower, "gone", "old");
	fill(lower, "same", "old");
	copy_up("both", "both");
	fill(upper.fs_fd, "both", "guest");
	copy_up("same", "same");
	fill(upper.fs_fd, "same", "mine");
	ck_assert_int_eq(mark_whiteout(upper.fs_fd, "gone"), 0);
	fill(upper.fs_fd, "made", "guest");
	usleep(50000);
	fill(lower, "both", "host text");
	fill(lower, "gone", "host text");
	fill(lower, "made", "host text");
	ck_assert_int_eq(commit(false, NULL), -EEXIST);
	ck_assert_str_eq(told, "0 /both: it was changed here, and on the host\n"
			       "0 /gone: it was changed on the host after it was deleted here\n"
			       "0 /made: it was made here, and made or changed on the host\n");
	holds("both", "host text");
	holds("same", "old");
	ck_assert_int_eq(commit(true, NULL), 0);
	holds("both", "guest");
	holds("same", "mine");
	holds("made", "guest");
	ck_assert(!exists("gone"));
}
END_TEST

START_TEST(parts)
{
	char *one[] = { (char *)"/d/one", NULL }, *none[] = { (char *)"/d/none", NULL };

	make(upper.fs_fd, "d");
	fill(upper.fs_fd, "d/one", "1");
	fill(upper.fs_fd, "d/two", "2");
	ck_assert_int_eq(commit(false, none), -ENOENT);
	ck_assert(!exists("d"));
	ck_assert_int_eq(commit(false, one), 0);
	holds("d/one", "1");
	ck_assert(!exists("d/two"));
	changes_are("A /d/two\n");
	committed();
	holds("d/two", "2");
}
END_TEST

START_TEST(hard_links)
{
	struct stat one, two, three;

	fill(lower, "z", "old");
	make(upper.fs_fd, "d");
	fill(upper.fs_fd, "d/a", "text");
	ck_assert_int_eq(linkat(upper.fs_fd, "d/a", upper.fs_fd, "d/b", 0), 0);
	ck_assert_int_eq(linkat(upper.fs_fd, "d/a", upper.fs_fd, "z", 0), 0);
	committed();
	ck_assert_int_eq(fstatat(lower, "d/a", &one, 0), 0);
	ck_assert_int_eq(fstatat(lower, "d/b", &two, 0), 0);
	ck_assert_int_eq(fstatat(lower, "z", &three, 0), 0);
	ck_assert(one.st_ino == two.st_ino && one.st_ino == three.st_ino && one.st_nlink == 3);
}
END_TEST

START_TEST(killed)
{
	for (int i = 0; i < 40; i++) {
		char name[32], text[40];

		if (i % 10 == 0) {
			snprintf(name, sizeof(name), "d%d", i / 10);
			make(upper.fs_fd, name);
			if (i < 20) {
				make(lower, name);
				snprintf(text, sizeof(text), "%s/old", name);
				fill(lower, text, "old");
				mark(name, true, false, "");
			}
		}
		snprintf(name, sizeof(name), "d%d/f%d", i / 10, i);
		snprintf(text, sizeof(text), "text %d", i);
		fill(upper.fs_fd, name, text);
	}
	upper_close(&upper);
	for (int tries = 0; tries < 50; tries++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			struct itimerval soon = { .it_value.tv_usec = 200 + rand() % 4000 };

			signal(SIGALRM, SIG_DFL);
			setitimer(ITIMER_REAL, &soon, NULL);
			if (upper_open_dir(&upper, path, why, sizeof(why)) || commit(false, NULL))
				_exit(1);
			_exit(0);
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	}
	open_upper();
	committed();
	for (int i = 0; i < 40; i++) {
		char name[32], text[32];

		snprintf(name, sizeof(name), "d%d/f%d", i / 10, i);
		snprintf(text, sizeof(text), "text %d", i);
		holds(name, text);
	}
	for (int i = 0; i < 4; i++) {
		char name[32];
		int fd, left = 0;

		snprintf(name, sizeof(name), "d%d", i);
		fd = openat(lower, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (char f[32]; left < 200; left++) {
			snprintf(f, sizeof(f), "f%d", left);
			unlinkat(fd, f, 0);
		}
		close(fd);
		ck_assert_int_eq(unlinkat(lower, name, AT_REMOVEDIR), 0); /* no temporary is left */
	}
}
END_TEST

static int count_change(void *arg, const struct change *change)
{
	(void)change;
	(*(int *)arg)++;
	return 0;
}

START_TEST(deep)
{
	int fd = openat(upper.fs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), down, count = 0;
	char *failed;

	for (int i = 0; i < 400; i++) {
		make(fd, "a-name-that-makes-long-paths");
		down = openat(fd, "a-name-that-makes-long-paths", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(down, 0);
		close(fd);
		fd = down;
	}
	fill(fd, "bottom", "text");
	close(fd);
	ck_assert_int_eq(changes_walk(&upper, lower, count_change, &count, &failed), 0);
	ck_assert_int_eq(count, 401);
	committed();
}
END_TEST

START_TEST(full_target)
{
	/* What is told, and that nothing half is left, when the host has no space: a limit of the file size stands for it. */
	char big[32768];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	fill(lower, "big", "old");
	copy_up("big", "big");
	fill(upper.fs_fd, "big", big);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 16384, RLIM_INFINITY }), 0);
	ck_assert_int_eq(commit(false, NULL), -EFBIG);
	ck_assert_str_eq(told, "2 /big: File too large\n");
	holds("big", "old");
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
	committed();
	ck_assert_int_eq(unlinkat(lower, "big", 0), 0);
	ck_assert_int_eq(unlinkat(at, "host", AT_REMOVEDIR), 0);
}
END_TEST

Suite *suite_changes(void);
Suite *suite_changes(void)
{
	Suite *suite = suite_create("changes");
	TCase *tcase = tcase_create("changes");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, kinds);
	tcase_add_test(tcase, renamed_directories);
	tcase_add_test(tcase, renamed_into_its_own_place);
	tcase_add_test(tcase, conflicts);
	tcase_add_test(tcase, parts);
	tcase_add_test(tcase, hard_links);
	tcase_add_test(tcase, killed);
	tcase_add_test(tcase, deep);
	tcase_add_test(tcase, full_target);
	suite_add_tcase(suite, tcase);
	return suite;
}
