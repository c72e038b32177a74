/*
 * proc_self.c - what a process learns of itself in /proc, and its terminals in /dev: the same as natively, also of files that it
 * made or renamed, which are elsewhere on the host when there is an overlay.
 */
#include "guest.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

static char text[1 << 18];

static const char *link_of(const char *path)
{
	static char target[2][4096];
	static unsigned next;
	char *out = target[next++ % 2];
	ssize_t n = readlink(path, out, sizeof(target[0]) - 1);

	if (n < 0)
		return strerrorname_np(errno);
	out[n] = 0;
	return out;
}

static const char *fd_link(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return link_of(path);
}

static const char *text_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, len = 0;

	MUST(fd >= 0);
	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	close(fd);
	text[len] = 0;
	return text;
}

#define CHECK_TEXT(is, want)                                                                                               \
	do {                                                                                                               \
		const char *text_is = (is), *text_want = (want);                                                           \
		if (strcmp(text_is, text_want)) {                                                                          \
			guest_failures++;                                                                                  \
			dprintf(2, "FAIL %s:%d: %s is \"%s\", want \"%s\"\n", __FILE_NAME__, __LINE__, #is, text_is,       \
				text_want);                                                                                \
		}                                                                                                          \
	} while (0)

/* A folder of our own, which is the working directory afterwards. */
static const char *folder(void)
{
	static char path[] = "/tmp/proc_self.XXXXXX";

	MUST(mkdtemp(path) && chdir(path) == 0);
	return path;
}

static const char *in(const char *dir, const char *name)
{
	static char path[2][4096];
	static unsigned next;
	char *out = path[next++ % 2];

	snprintf(out, sizeof(path[0]), "%s%s", dir, name);
	return out;
}

static int make(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

	MUST(fd >= 0 && write(fd, "abc", 3) == 3);
	return fd;
}

static void done(const char *dir)
{
	MUST(chdir("/") == 0);
	rmdir(dir);
}

static int test_files(int argc, char **argv)
{
	const char *dir = folder();
	int fd = make("one"), again;
	char byte;

	CHECK_TEXT(fd_link(fd), in(dir, "/one"));
	MUST(rename("one", "two") == 0);
	CHECK_TEXT(fd_link(fd), in(dir, "/two"));
	snprintf(text, sizeof(text), "/proc/self/fd/%d", fd);
	again = open(text, O_RDONLY);
	CHECK(again >= 0 && read(again, &byte, 1) == 1 && byte == 'a');
	CHECK_TEXT(fd_link(again), in(dir, "/two"));
	close(again);
	MUST(unlink("two") == 0);
	CHECK_TEXT(fd_link(fd), in(dir, "/two (deleted)"));
	snprintf(text, sizeof(text), "/proc/self/fd/%d", fd);
	again = open(text, O_RDONLY);
	CHECK(again >= 0 && read(again, &byte, 1) == 1 && byte == 'a');
	close(again);
	close(fd);
	done(dir);
	return 0;
}

static int test_directories(int argc, char **argv)
{
	const char *dir = folder();
	int fd;

	CHECK_TEXT(link_of("/proc/self/cwd"), dir);
	MUST(mkdir("a", 0700) == 0 && mkdir("a/b", 0700) == 0);
	fd = open("a/b", O_RDONLY | O_DIRECTORY);
	MUST(fd >= 0 && chdir("a/b") == 0);
	MUST(rename("../../a", "../../c") == 0);
	CHECK_TEXT(link_of("/proc/self/cwd"), in(dir, "/c/b"));
	CHECK_TEXT(link_of("/proc/thread-self/cwd"), in(dir, "/c/b"));
	CHECK_TEXT(fd_link(fd), in(dir, "/c/b"));
	MUST(close(make("x")) == 0);
	CHECK(access("/proc/self/cwd/x", R_OK) == 0);
	CHECK(access("/proc/self/cwd/../b/x", R_OK) == 0);
	CHECK(access(in("/proc/self/root", in(dir, "/c/b/x")), R_OK) == 0);
	MUST(unlink("x") == 0 && rmdir("../b") == 0);
	CHECK_TEXT(link_of("/proc/self/cwd"), in(dir, "/c/b (deleted)"));
	CHECK_TEXT(fd_link(fd), in(dir, "/c/b (deleted)"));
	CHECK_TEXT(link_of("/proc/self/root"), "/");
	close(fd);
	MUST(chdir(dir) == 0 && rmdir("c") == 0);
	done(dir);
	return 0;
}

/* A program that was made in the run: this one, copied. */
static int copy_self(const char *to)
{
	int from = open("/proc/self/exe", O_RDONLY), fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
	ssize_t n;

	MUST(from >= 0 && fd >= 0);
	while ((n = read(from, text, sizeof(text))) > 0)
		MUST(write(fd, text, n) == n);
	close(fd);
	return close(from);
}

static int test_exe(int argc, char **argv)
{
	const char *dir = folder();
	pid_t pid;

	copy_self("program");
	pid = guest_fork();
	if (pid == 0) {
		execl("./program", "program", "copied", dir, NULL);
		_exit(3);
	}
	CHECK_EXIT(guest_wait(pid), 0);
	unlink("program");
	done(dir);
	return 0;
}

static int test_copied(int argc, char **argv)
{
	struct stat by_name, by_link;
	char line[4096];

	CHECK_TEXT(link_of("/proc/self/exe"), in(argv[1], "/program"));
	CHECK(stat("/proc/self/exe", &by_link) == 0 && stat("program", &by_name) == 0 && by_link.st_ino == by_name.st_ino);
	snprintf(line, sizeof(line), " %s/program\n", argv[1]);
	CHECK(strstr(text_of("/proc/self/maps"), line) != NULL);
	CHECK(strstr(text_of("/proc/self/smaps"), line) != NULL);
	CHECK_TEXT(text_of("/proc/self/comm"), "program\n");
	return 0;
}

static int test_maps(int argc, char **argv)
{
	const char *dir = folder();
	int fd = make("data");
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char line[4096];

	MUST(memory != MAP_FAILED);
	snprintf(line, sizeof(line), " %s/data\n", dir);
	CHECK(strstr(text_of("/proc/self/maps"), line) != NULL);
	CHECK(strstr(text, "[stack]") != NULL && strstr(text, "[vdso]") != NULL);
	CHECK(strstr(text, "memfd:window") == NULL);
	MUST(unlink("data") == 0);
	snprintf(line, sizeof(line), " %s/data (deleted)\n", dir);
	CHECK(strstr(text_of("/proc/thread-self/maps"), line) != NULL);
	close(fd);
	fd = memfd_create("window", MFD_CLOEXEC); /* a name that is not ours alone */
	MUST(fd >= 0 && ftruncate(fd, 4096) == 0 && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	CHECK(strstr(text_of("/proc/self/maps"), "/memfd:window (deleted)\n") != NULL);
	close(fd);
	done(dir);
	return 0;
}

static int test_status(int argc, char **argv)
{
	char state[32], stat[64];
	pid_t pid;

	CHECK(strstr(text_of("/proc/self/status"), "\nTracerPid:\t0\n") != NULL);
	CHECK(strstr(text, "\nState:\tR (running)\n") != NULL);
	pid = guest_fork();
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	MUST(waitpid(pid, NULL, WUNTRACED) == pid);
	snprintf(state, sizeof(state), "/proc/%d/status", pid);
	snprintf(stat, sizeof(stat), "/proc/%d/task/%d/stat", pid, pid);
	CHECK(strstr(text_of(state), "\nState:\tT (stopped)\n") != NULL);
	CHECK(strstr(text, "\nTracerPid:\t0\n") != NULL);
	CHECK(strstr(text_of(stat), ") T ") != NULL);
	CHECK_EQ(guest_state(pid, pid), 'T');
	kill(pid, SIGCONT);
	CHECK_EXIT(guest_wait(pid), 0);
	return 0;
}

static int test_write(int argc, char **argv)
{
	int fd = open("/proc/self/comm", O_WRONLY), value = 1;
	pid_t pid;

	CHECK(fd >= 0 && write(fd, "renamed", 7) == 7);
	close(fd);
	CHECK_TEXT(text_of("/proc/self/task/../comm"), "renamed\n");
	fd = open("/proc/self/mem", O_RDWR);
	CHECK(fd >= 0 && pwrite(fd, &(int){ 7 }, sizeof(int), (off_t)(uintptr_t)&value) == sizeof(int));
	close(fd);
	CHECK_EQ(*(volatile int *)&value, 7);
	pid = guest_fork();
	if (pid == 0)
		for (;;)
			pause();
	snprintf(text, sizeof(text), "/proc/%d/oom_score_adj", pid);
	fd = open(text, O_WRONLY | O_TRUNC | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, "500", 3) == 3);
	close(fd);
	kill(pid, SIGKILL);
	guest_wait(pid);
	return 0;
}

/* Threads by their own number, which is not listed. */
static void *of_thread(void *arg)
{
	char path[64], want[64];

	snprintf(path, sizeof(path), "%d/task/%d", getpid(), guest_tid());
	CHECK_TEXT(link_of("/proc/thread-self"), path);
	snprintf(want, sizeof(want), "%d", getpid());
	CHECK_TEXT(link_of("/proc/self"), want);
	snprintf(path, sizeof(path), "/proc/%d/comm", guest_tid());
	CHECK(access(path, R_OK) == 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/mem", guest_tid());
	CHECK(access(path, R_OK | W_OK) == 0);
	return arg;
}

static int test_threads(int argc, char **argv)
{
	pthread_t thread;

	guest_thread(&thread, of_thread, NULL);
	pthread_join(thread, NULL);
	return 0;
}

/* Becomes nobody with capabilities, which go with the exec: nothing then says to the supervisor that they have gone. */
static int test_foreign(int argc, char **argv)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];
	char pid_text[16], *const args[] = { "proc_self", "foreigner", pid_text, NULL };
	int exe = open("/proc/self/exe", O_RDONLY);
	pid_t pid;

	if (geteuid())
		return GUEST_SKIP;
	snprintf(pid_text, sizeof(pid_text), "%d", getpid());
	pid = guest_fork();
	if (pid == 0) {
		MUST(prctl(PR_SET_KEEPCAPS, 1) == 0 && setgroups(0, NULL) == 0);
		MUST(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
		MUST(syscall(SYS_capget, &header, data) == 0);
		data[0].effective = data[0].permitted;
		data[1].effective = data[1].permitted;
		MUST(syscall(SYS_capset, &header, data) == 0);
		CHECK(close(open("/proc/self/mem", O_RDONLY)) == 0); /* the supervisor learns of them */
		fexecve(exe, args, environ);
		_exit(3);
	}
	CHECK_EXIT(guest_wait(pid), 0);
	close(exe);
	return 0;
}

static int test_foreigner(int argc, char **argv)
{
	static const char *const names[] = { "environ", "maps", "fd", "mem", "cwd", "exe" };
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%s/%s", argv[1], names[i]);
		CHECK(open(path, O_RDONLY) < 0 && errno == EACCES);
	}
	CHECK_TEXT(link_of(path), "EACCES");
	snprintf(path, sizeof(path), "/proc/%s/status", argv[1]);
	CHECK(strstr(text_of(path), "\nUid:\t0\t") != NULL);
	CHECK(strstr(text_of("/proc/self/maps"), "[stack]") != NULL);
	return 0;
}

static int test_terminal(int argc, char **argv)
{
	char name[64], byte;
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct stat st;
	pid_t pid;

	MUST(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof(name)) == 0);
	CHECK(stat(name, &st) == 0 && S_ISCHR(st.st_mode));
	slave = open(name, O_RDWR | O_NOCTTY);
	MUST(slave >= 0);
	CHECK(ttyname_r(slave, text, sizeof(text)) == 0);
	CHECK_TEXT(text, name);
	CHECK(write(master, "x\n", 2) == 2 && read(slave, &byte, 1) == 1 && byte == 'x');
	pid = guest_fork();
	if (pid == 0) {
		MUST(setsid() >= 0);
		close(slave);
		slave = open(name, O_RDWR); /* becomes the controlling terminal */
		CHECK(slave >= 0);
		slave = open("/dev/tty", O_RDWR);
		CHECK(slave >= 0 && tcgetpgrp(slave) == getpid());
		child_exit();
	}
	CHECK_EXIT(guest_wait(pid), 0);
	close(slave);
	close(master);
	CHECK(open(name, O_RDWR | O_NOCTTY) < 0);
	return 0;
}

static int test_devices(int argc, char **argv)
{
	char bytes[16];
	int fd = open("/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && read(fd, bytes, 1) == 0);
	close(fd);
	fd = open("/dev/zero", O_RDONLY);
	CHECK(fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	close(fd);
	fd = open("/dev/full", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "x", 1) == -1 && errno == ENOSPC);
	close(fd);
	fd = open("/dev/urandom", O_RDONLY);
	CHECK(fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	close(fd);
	CHECK(access("/dev/null", R_OK | W_OK) == 0);
	fd = open("/dev/shm/proc_self.test", O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && unlink("/dev/shm/proc_self.test") == 0);
	close(fd);
	MUST((fd = open("/dev/zero", O_RDONLY)) >= 0 && dup2(fd, 77) == 77);
	fd = open("/dev/fd/77", O_RDONLY);
	CHECK(fd >= 0 && read(fd, bytes, 1) == 1 && bytes[0] == 0);
	CHECK_TEXT(fd_link(fd), "/dev/zero");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "files", test_files }, { "directories", test_directories }, { "exe", test_exe }, { "copied", test_copied },
		{ "maps", test_maps }, { "status", test_status }, { "write", test_write }, { "threads", test_threads },
		{ "foreign", test_foreign }, { "foreigner", test_foreigner },
		{ "terminal", test_terminal }, { "devices", test_devices }, { NULL, NULL }
	};

	return guest_main(argc, argv, tests);
}
