/* fs_meta.c - what is known about files, and as whom: modes and times by descriptor, umask, real and effective ids, handles. */
#define _FILE_OFFSET_BITS 64
#include "guest.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static void want_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	MUST(fd >= 0 && (fchmod(fd, mode) == 0 || errno == EPERM));
	close(fd);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	MUST(lstat(path, &st) == 0);
	return st.st_mode & 07777;
}

/* --- by a descriptor that was opened to read --------------------------------------------------------------------------- */

static int test_fchmod(int argc, char **argv)
{
	struct stat st;
	int fd, dir;

	if (access("file", F_OK))
		want_file("file", 0644);
	fd = open("file", O_RDONLY);
	CHECK(fd >= 0 && fchmod(fd, 0640) == 0);
	CHECK_EQ(mode_of("file"), 0640);
	CHECK(fstat(fd, &st) == 0);
	CHECK_EQ(st.st_mode & 07777, 0640);
	CHECK(fchown(fd, getuid(), getgid()) == 0);
	mkdir("folder", 0755);
	dir = open("folder", O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0 && fchmod(dir, 0711) == 0);
	CHECK_EQ(mode_of("folder"), 0711);
	CHECK(fchmod(open("file", O_PATH), 0600) < 0 && errno == EBADF);
	return 0;
}

static int test_futimens(int argc, char **argv)
{
	struct timespec times[2] = { { 1000000000, 123456789 }, { 1100000000, 987654321 } };
	struct stat by_fd, by_name;
	int fd;

	if (access("file", F_OK))
		want_file("file", 0444);
	fd = open("file", O_RDONLY);
	CHECK(fd >= 0 && futimens(fd, times) == 0);
	CHECK(fstat(fd, &by_fd) == 0 && stat("file", &by_name) == 0);
	CHECK_EQ(by_fd.st_mtim.tv_sec, 1100000000);
	CHECK_EQ(by_fd.st_mtim.tv_nsec, 987654321);
	CHECK_EQ(by_fd.st_atim.tv_nsec, 123456789);
	CHECK(by_fd.st_ino == by_name.st_ino && by_name.st_mtim.tv_nsec == 987654321);
	return 0;
}

/* A file that may not be written can be written by who made it. */
static int test_create_closed(int argc, char **argv)
{
	int fd = open("made", O_RDWR | O_CREAT | O_EXCL, 0);

	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	CHECK_EQ(mode_of("made"), 0);
	fd = open(".", O_TMPFILE | O_RDWR, 0400);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	return 0;
}

/* --- umask and the like ------------------------------------------------------------------------------------------------ */

static void *thread_umask(void *arg)
{
	umask(077);
	MUST(mkdir("by_thread", 0777) == 0 && chdir("by_thread") == 0);
	return arg;
}

static int child_umask(void *arg)
{
	umask(0);
	MUST(chdir("..") == 0);
	return 0;
}

static void make_and_check(const char *name, mode_t want)
{
	char path[64];

	CHECK(mkdir(name, 0777) == 0);
	CHECK_EQ(mode_of(name), want);
	snprintf(path, sizeof(path), "%s.fifo", name);
	CHECK(mkfifo(path, 0777) == 0);
	CHECK_EQ(mode_of(path), want);
	snprintf(path, sizeof(path), "%s.file", name);
	CHECK(open(path, O_WRONLY | O_CREAT, 0777) >= 0);
	CHECK_EQ(mode_of(path), want);
}

/* A forked child has its own; threads, and a process that was made with CLONE_FS, share it, and the working folder. */
static int test_umask(int argc, char **argv)
{
	static char stack[65536] __attribute__((aligned(16)));
	pthread_t thread;
	pid_t pid;

	umask(027);
	make_and_check("first", 0750);
	pid = guest_fork();
	if (pid == 0) {
		make_and_check("inherited", 0750);
		umask(0);
		make_and_check("own", 0777);
		child_exit();
	}
	CHECK_EXIT(guest_wait(pid), 0);
	make_and_check("kept", 0750);
	guest_thread(&thread, thread_umask, NULL);
	pthread_join(thread, NULL);
	make_and_check("shared", 0700);
	CHECK(access("../by_thread/shared", F_OK) == 0);
	pid = clone(child_umask, stack + sizeof(stack), CLONE_FS | SIGCHLD, NULL);
	MUST(pid > 0);
	CHECK_EXIT(guest_wait(pid), 0);
	make_and_check("cloned", 0777);
	CHECK(access("by_thread", F_OK) == 0);
	return 0;
}

/* --- whose file ------------------------------------------------------------------------------------------------------- */

enum { OTHER = 65534 };

static void *thread_as_other(void *arg)
{
	struct stat st;

	/* The calls themselves, not libc's, which would change every thread. */
	setfsgid(OTHER);
	setfsuid(OTHER);
	CHECK(open("secret", O_RDONLY) < 0 && errno == EACCES);
	CHECK(open("public/by_thread", O_WRONLY | O_CREAT, 0644) >= 0);
	CHECK(stat("public/by_thread", &st) == 0 && st.st_uid == OTHER && st.st_gid == OTHER);
	return arg;
}

/* access() asks for the real ids, everything else for the effective ones, files for those of the thread. */
static int test_ids(int argc, char **argv)
{
	gid_t group = 4321;
	struct stat st;
	pthread_t thread;
	pid_t pid;

	if (getuid())
		return GUEST_SKIP;
	umask(0);
	want_file("secret", 0600);
	want_file("of_group", 0640);
	MUST(chown("of_group", 0, group) == 0 && mkdir("public", 01777) == 0 && chmod(".", 0755) == 0);
	guest_thread(&thread, thread_as_other, NULL);
	pthread_join(thread, NULL);
	CHECK(open("secret", O_RDONLY) >= 0);
	pid = guest_fork();
	if (pid == 0) {
		MUST(setgroups(1, &group) == 0 && setresgid(OTHER, OTHER, OTHER) == 0 && setresuid(OTHER, 0, 0) == 0);
		CHECK(access("secret", R_OK) < 0 && errno == EACCES);
		CHECK(faccessat(AT_FDCWD, "secret", R_OK, AT_EACCESS) == 0);
		CHECK(open("secret", O_RDONLY) >= 0);
		MUST(setresuid(0, OTHER, 0) == 0);
		CHECK(access("secret", R_OK) == 0);
		CHECK(faccessat(AT_FDCWD, "secret", R_OK, AT_EACCESS) < 0 && errno == EACCES);
		CHECK(open("secret", O_RDONLY) < 0 && errno == EACCES);
		CHECK(open("of_group", O_RDONLY) >= 0);
		CHECK(open("of_group", O_WRONLY) < 0 && errno == EACCES);
		CHECK(open("made", O_WRONLY | O_CREAT, 0644) < 0 && errno == EACCES);
		CHECK(mkdir("public/mine", 0700) == 0 && stat("public/mine", &st) == 0 && st.st_uid == OTHER && st.st_gid == OTHER);
		CHECK(chmod("secret", 0644) < 0 && errno == EPERM);
		CHECK(unlink("secret") < 0 && errno == EACCES);
		CHECK(chown("public/mine", 0, 0) < 0 && errno == EPERM);
		CHECK(chown("public/mine", (uid_t)-1, group) == 0);
		MUST(setgroups(0, NULL) < 0 && setresuid(0, 0, 0) == 0 && setgroups(0, NULL) == 0 && setresuid(0, OTHER, 0) == 0);
		CHECK(open("of_group", O_RDONLY) < 0 && errno == EACCES);
		child_exit();
	}
	CHECK_EXIT(guest_wait(pid), 0);
	/* In a folder with the group bit, what is made takes the folder's group. */
	MUST(mkdir("shared", 0755) == 0 && chown("shared", 0, group) == 0 && chmod("shared", 02755) == 0);
	MUST(mkdir("shared/folder", 0755) == 0 && stat("shared/folder", &st) == 0);
	CHECK(st.st_gid == group && (st.st_mode & 07777) == 02755);
	want_file("shared/file", 0644);
	CHECK(stat("shared/file", &st) == 0 && st.st_gid == group);
	return 0;
}

/* --- the rest ---------------------------------------------------------------------------------------------------------- */

/* A handle names the file, whatever its name; or the file system has none. */
static int test_handle(int argc, char **argv)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} one, two;
	int mount, other;

	want_file("file", 0644);
	MUST(link("file", "linked") == 0);
	one.handle.handle_bytes = 0;
	CHECK(name_to_handle_at(AT_FDCWD, "file", &one.handle, &mount, 0) < 0);
	if (errno == EOPNOTSUPP)
		return 0;
	CHECK_EQ(errno, EOVERFLOW);
	one.handle.handle_bytes = two.handle.handle_bytes = MAX_HANDLE_SZ;
	CHECK(name_to_handle_at(AT_FDCWD, "file", &one.handle, &mount, 0) == 0);
	CHECK(name_to_handle_at(AT_FDCWD, "linked", &two.handle, &other, 0) == 0);
	CHECK(mount == other && one.handle.handle_type == two.handle.handle_type);
	CHECK_EQ(one.handle.handle_bytes, two.handle.handle_bytes);
	CHECK(!memcmp(one.handle.f_handle, two.handle.f_handle, one.handle.handle_bytes));
	CHECK(name_to_handle_at(AT_FDCWD, "nowhere", &two.handle, &other, 0) < 0 && errno == ENOENT);
	return 0;
}

static int test_statfs(int argc, char **argv)
{
	struct statfs folder, file, by_fd;
	int fd;

	want_file("file", 0644);
	fd = open("file", O_RDONLY);
	CHECK(statfs(".", &folder) == 0 && statfs("file", &file) == 0 && fstatfs(fd, &by_fd) == 0);
	CHECK(folder.f_namelen == 255 && file.f_bsize > 0 && file.f_blocks >= file.f_bfree);
	CHECK(folder.f_type == file.f_type && file.f_type == by_fd.f_type);
	CHECK(!memcmp(&folder.f_fsid, &file.f_fsid, sizeof(file.f_fsid)));
	CHECK(!memcmp(&by_fd.f_fsid, &file.f_fsid, sizeof(file.f_fsid)));
	CHECK(statfs("nowhere", &file) < 0 && errno == ENOENT);
	return 0;
}

static const struct test tests[] = {
	{ "fchmod", test_fchmod }, { "futimens", test_futimens }, { "create_closed", test_create_closed }, { "umask", test_umask },
	{ "ids", test_ids }, { "handle", test_handle }, { "statfs", test_statfs }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
