/* fs_tree.c - folders: listings while they change, deep ones, those that are moved or removed under a process; names of a file. */
#define _FILE_OFFSET_BITS 64
#include "guest.h"

#include <dirent.h>
#include <sys/stat.h>

enum { MANY = 3000 };

static void touch_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	MUST(fd >= 0);
	close(fd);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static bool holds(int fd, const char *text)
{
	char data[64] = "";
	ssize_t got = pread(fd, data, sizeof(data) - 1, 0);

	return got == (ssize_t)strlen(text) && !memcmp(data, text, strlen(text));
}

/* The result of a call as a word. */
static void tell(const char *what, long result)
{
	printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "ok");
}

static void print_cwd(const char *what)
{
	char path[8192];
	long len = syscall(SYS_getcwd, path, sizeof(path));

	printf("%s: %s\n", what, len < 0 ? strerrorname_np(errno) : path);
}

/* --- listings --------------------------------------------------------------------------------------------------------- */

/* `many` with files 0 to MANY-1; the variant has them from its set-up. */
static void want_many(void)
{
	char path[32];

	if (mkdir("many", 0755) && errno == EEXIST)
		return;
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "many/%d", i);
		touch_file(path);
	}
}

static int number_of(const struct dirent *entry)
{
	char *end;
	long number = strtol(entry->d_name, &end, 10);

	return *end || end == entry->d_name || number < 0 || number >= MANY ? -1 : (int)number;
}

static void check_seen(const unsigned char *seen, int step)
{
	int lost = 0, twice = 0;

	for (int i = 0; i < MANY; i++) {
		lost += !seen[i] && i % step == 0;
		twice += seen[i] > 1;
	}
	CHECK_EQ(lost, 0);
	CHECK_EQ(twice, 0);
}

static int test_remove(int argc, char **argv)
{
	static unsigned char seen[MANY];
	struct dirent *entry;
	DIR *dir;

	want_many();
	dir = opendir("many");
	MUST(dir);
	while ((entry = readdir(dir))) {
		int number = number_of(entry);

		if (number < 0)
			continue;
		seen[number]++;
		CHECK(unlinkat(dirfd(dir), entry->d_name, 0) == 0);
	}
	check_seen(seen, 1);
	rewinddir(dir);
	while ((entry = readdir(dir)))
		CHECK(!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."));
	closedir(dir);
	CHECK(rmdir("many") == 0);
	return 0;
}

/* Another process removes two of three and makes new ones, while this one reads. */
static int test_remove_other(int argc, char **argv)
{
	static unsigned char seen[MANY];
	struct dirent *entry;
	pid_t pid;
	DIR *dir;

	want_many();
	dir = opendir("many");
	MUST(dir && (entry = readdir(dir)));
	pid = guest_fork();
	if (pid == 0) {
		char name[32];

		for (int i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), i % 3 ? "many/%d" : "many/new%d", i);
			if (i % 3)
				CHECK(unlink(name) == 0);
			else if (i % 2)
				touch_file(name);
		}
		child_exit();
	}
	do {
		int number = number_of(entry);

		if (number >= 0)
			seen[number]++;
		else
			CHECK(entry->d_name[0] == '.' || entry->d_name[0] == 'n');
	} while ((entry = readdir(dir)));
	CHECK_EXIT(guest_wait(pid), 0);
	check_seen(seen, 3);
	rewinddir(dir);
	while ((entry = readdir(dir)))
		CHECK(number_of(entry) < 0 || number_of(entry) % 3 == 0);
	closedir(dir);
	return 0;
}

/* Any place told before leads back to the entry that followed it. */
static int test_seek(int argc, char **argv)
{
	static char names[MANY + 2][16];
	static long places[MANY + 2];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	want_many();
	dir = opendir("many");
	MUST(dir);
	for (places[0] = telldir(dir); (entry = readdir(dir)) && count < MANY + 1; places[count] = telldir(dir))
		snprintf(names[count++], sizeof(names[0]), "%.15s", entry->d_name);
	for (int i = 0; i < 500; i++) {
		int which = (i * 1031) % count;

		seekdir(dir, places[which]);
		entry = readdir(dir);
		CHECK(entry && !strcmp(entry->d_name, names[which]));
	}
	closedir(dir);
	return 0;
}

/* What a listing says of each entry is what stat says. */
static int test_types(int argc, char **argv)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	mkdir("d", 0755);
	mkdir("d/folder", 0755);
	touch_file("d/file");
	symlink("file", "d/symlink");
	mkfifo("d/fifo", 0644);
	link("d/file", "d/linked");
	mknod("d/socket", S_IFSOCK | 0644, 0);
	dir = opendir("d");
	MUST(dir);
	while ((entry = readdir(dir))) {
		CHECK(fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		CHECK_EQ(entry->d_type, IFTODT(st.st_mode));
		CHECK_EQ(entry->d_ino, st.st_ino);
	}
	closedir(dir);
	return 0;
}

static int test_getdents(int argc, char **argv)
{
	char buffer[64];
	int dir = open(".", O_RDONLY | O_DIRECTORY), path = open(".", O_PATH), file;

	touch_file("file");
	file = open("file", O_RDONLY);
	tell("one byte", syscall(SYS_getdents64, dir, buffer, 1));
	tell("no room for one", syscall(SYS_getdents64, dir, buffer, 20));
	tell("room for one", syscall(SYS_getdents64, dir, buffer, 24));
	tell("nowhere", syscall(SYS_getdents64, dir, (void *)16, 4096));
	tell("a file", syscall(SYS_getdents64, file, buffer, sizeof(buffer)));
	tell("path only", syscall(SYS_getdents64, path, buffer, sizeof(buffer)));
	tell("none", syscall(SYS_getdents64, 99, buffer, sizeof(buffer)));
#ifdef SYS_getdents
	lseek(dir, 0, SEEK_SET);
	tell("old, no room", syscall(SYS_getdents, dir, buffer, 10));
	tell("old", syscall(SYS_getdents, dir, buffer, sizeof(buffer)));
#endif
	return 0;
}

/* --- deep folders ----------------------------------------------------------------------------------------------------- */

/* 300 levels of names of 200 bytes: far more than a path can say. */
static int test_deep(int argc, char **argv)
{
	enum { LEVELS = 300, LEN = 200 };
	char name[LEN + 1], path[8192], *own;
	int top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	struct stat st, again;

	memset(name, 'n', LEN);
	name[LEN] = 0;
	for (int i = 0; i < LEVELS; i++)
		MUST(mkdir(name, 0755) == 0 && chdir(name) == 0);
	print_cwd("deep");
	own = getcwd(NULL, 0);
	CHECK(!own || strlen(own) > LEVELS * LEN);
	free(own);
	tell("link to it", readlink("/proc/self/cwd", path, sizeof(path)));
	touch_file("file");
	CHECK(stat("file", &st) == 0 && stat("/proc/self/cwd/file", &again) == 0 && st.st_ino == again.st_ino);
	CHECK(rename("file", "../file") == 0 && stat("../file", &again) == 0 && st.st_ino == again.st_ino);
	CHECK(unlink("../file") == 0);
	fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < LEVELS; i++) {
		int up = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		MUST(up >= 0);
		close(fd);
		fd = up;
	}
	CHECK(fstat(fd, &st) == 0 && fstat(top, &again) == 0 && st.st_ino == again.st_ino && st.st_dev == again.st_dev);
	for (int i = 0; i < LEVELS; i++)
		MUST(chdir("..") == 0 && rmdir(name) == 0);
	CHECK(stat(".", &st) == 0 && st.st_ino == again.st_ino);
	return 0;
}

/* --- the working folder under one's feet ------------------------------------------------------------------------------ */

static int test_cwd_moved(int argc, char **argv)
{
	int ready[2], go[2], fd;
	pid_t pid;

	if (mkdir("a", 0755) == 0)
		MUST(mkdir("a/b", 0755) == 0 && mkdir("a/b/c", 0755) == 0);
	MUST(mkdir("elsewhere", 0755) == 0);
	write_file("a/b/note", "in b");
	guest_pipe(ready);
	guest_pipe(go);
	pid = guest_fork();
	if (pid == 0) {
		MUST(chdir("a/b/c") == 0);
		for (int i = 0; i < 3; i++) {
			guest_put(ready[1]);
			guest_get(go[0]);
			print_cwd("child");
			fflush(stdout);
			fd = open("../note", O_RDONLY);
			CHECK(fd >= 0 && holds(fd, "in b"));
			close(fd);
			write_file("made", "here");
			CHECK(unlink("made") == 0);
		}
		child_exit();
	}
	guest_get(ready[0]);
	MUST(rename("a", "x") == 0);
	guest_put(go[1]);
	guest_get(ready[0]);
	MUST(rename("x/b", "elsewhere/b") == 0);
	guest_put(go[1]);
	guest_get(ready[0]);
	MUST(rename("elsewhere/b", "x/moved") == 0 && rename("x", "a") == 0);
	guest_put(go[1]);
	CHECK_EXIT(guest_wait(pid), 0);
	return 0;
}

static int test_cwd_removed(int argc, char **argv)
{
	char path[4096];
	struct stat st;
	ssize_t len;
	int fd, dir;

	MUST(mkdir("gone", 0755) == 0 || errno == EEXIST);
	MUST(chdir("gone") == 0 && rmdir("../gone") == 0);
	print_cwd("getcwd");
	fd = open(".", O_RDONLY | O_DIRECTORY);
	tell("open .", fd);
	tell("list", fd < 0 ? -1 : syscall(SYS_getdents64, fd, path, sizeof(path)));
	tell("stat .", stat(".", &st));
	printf("links %d\n", (int)st.st_nlink);
	tell("stat ..", stat("..", &st));
	dir = open("..", O_RDONLY | O_DIRECTORY);
	tell("open ..", dir);
	tell("mkdir", mkdir("x", 0755));
	tell("open to create", open("x", O_WRONLY | O_CREAT, 0644));
	tell("symlink", symlink("x", "y"));
	tell("stat", stat("x", &st));
	tell("rename into", rename("../note", "x"));
	tell("chmod .", chmod(".", 0700));
	len = readlink("/proc/self/cwd", path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = 0;
	printf("cwd %s\n", path);
	/* A new folder of that name is another one. */
	MUST(mkdirat(dir, "gone", 0755) == 0);
	print_cwd("getcwd");
	tell("open to create", open("x", O_WRONLY | O_CREAT, 0644));
	return 0;
}

/* --- names and files -------------------------------------------------------------------------------------------------- */

/* Two names, one file: whatever is done by one is seen by the other. */
static int test_links(int argc, char **argv)
{
	struct stat a, b;
	int fd;

	if (access("one", F_OK)) {
		write_file("one", "text");
		MUST(mkdir("far", 0755) == 0 && link("one", "far/two") == 0);
	}
	CHECK(stat("one", &a) == 0 && stat("far/two", &b) == 0);
	CHECK(a.st_ino == b.st_ino && a.st_nlink == 2 && b.st_nlink == 2);
	fd = open("one", O_RDONLY);
	write_file("far/two", "TEXT");
	CHECK(holds(fd, "TEXT"));
	close(fd);
	fd = open("one", O_RDONLY);
	CHECK(holds(fd, "TEXT"));
	CHECK(chmod("one", 0600) == 0 && stat("far/two", &b) == 0 && (b.st_mode & 07777) == 0600);
	CHECK(stat("one", &a) == 0 && a.st_ino == b.st_ino && a.st_nlink == 2 && b.st_nlink == 2);
	CHECK(link("far/two", "three") == 0 && fstat(fd, &a) == 0);
	CHECK_EQ(a.st_nlink, 3);
	CHECK(unlink("one") == 0 && unlink("far/two") == 0 && fstat(fd, &a) == 0);
	CHECK_EQ(a.st_nlink, 1);
	write_file("three", "last");
	CHECK(holds(fd, "last"));
	return 0;
}

/* A file that another was renamed over lives on for who has it open. */
static int test_rename_over(int argc, char **argv)
{
	struct stat st;
	int old;

	if (access("old", F_OK))
		write_file("old", "the old");
	old = open("old", O_RDWR);
	write_file("new", "the new");
	CHECK(rename("new", "old") == 0);
	CHECK(holds(old, "the old"));
	CHECK(fstat(old, &st) == 0 && st.st_nlink == 0);
	CHECK(pwrite(old, "THE", 3, 0) == 3 && holds(old, "THE old"));
	close(old);
	old = open("old", O_RDONLY);
	CHECK(holds(old, "the new"));
	CHECK(access("new", F_OK) < 0 && errno == ENOENT);
	return 0;
}

/* A removed file that is still open: read, written, made longer, and no name leads to it. */
static int test_removed_open(int argc, char **argv)
{
	char path[4096], link[64];
	struct stat st;
	ssize_t len;
	int fd, again;

	if (access("file", F_OK))
		write_file("file", "text");
	fd = open("file", O_RDONLY);
	CHECK(unlink("file") == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_nlink == 0 && holds(fd, "text"));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = 0;
	printf("%s\n", path);
	again = open(link, O_RDWR);
	CHECK(again >= 0 && pwrite(again, "more text", 9, 0) == 9);
	CHECK(holds(fd, "more text"));
	write_file("file", "another");
	CHECK(holds(fd, "more text"));
	CHECK(linkat(AT_FDCWD, link, AT_FDCWD, "back", AT_SYMLINK_FOLLOW) < 0 && errno == ENOENT);
	CHECK(fchmod(fd, 0600) == 0 && fstat(again, &st) == 0 && (st.st_mode & 07777) == 0600);
	return 0;
}

static const struct test tests[] = {
	{ "remove", test_remove }, { "remove_other", test_remove_other }, { "seek", test_seek }, { "types", test_types },
	{ "getdents", test_getdents }, { "deep", test_deep }, { "cwd_moved", test_cwd_moved }, { "cwd_removed", test_cwd_removed },
	{ "links", test_links }, { "rename_over", test_rename_over }, { "removed_open", test_removed_open }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
