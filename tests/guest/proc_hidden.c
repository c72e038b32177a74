/* proc_hidden.c - what of /proc and /dev no guest sees or changes. Natively these checks fail: that is their proof. */
#include "guest.h"

#include <dirent.h>
#include <sys/stat.h>

#define CHECK_OPEN(path, flags, want)                                                                                      \
	do {                                                                                                               \
		int open_fd;                                                                                               \
		errno = 0;                                                                                                 \
		open_fd = open(path, (flags) | O_CLOEXEC);                                                                 \
		if (open_fd >= 0 || errno != (want))                                                                       \
			dprintf(2, "%s:\n", path);                                                                         \
		CHECK_EQ(open_fd >= 0 ? 0 : errno, want);                                                                  \
		close(open_fd);                                                                                            \
	} while (0)

/* Before anything that would change the host if it were not refused. */
static void only_in_a_view(void)
{
	MUST(access("/proc/1", F_OK) && access("/dev/kmsg", F_OK));
}

static const char *file_of(pid_t pid, const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return path;
}

/* The supervisor is the first guest's parent, as natively whoever started it. */
static int test_processes(int argc, char **argv)
{
	static const char *const names[] = { "", "environ", "mem", "fd/0", "cmdline", "root", "maps", "cwd/x", "task" };
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	MUST(dir);
	while ((entry = readdir(dir)))
		if (atoi(entry->d_name) > 0)
			CHECK_EQ(atoi(entry->d_name), getpid());
	closedir(dir);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CHECK_OPEN(file_of(getppid(), names[i]), O_RDONLY, ENOENT);
		CHECK_OPEN(file_of(1, names[i]), O_RDONLY, ENOENT);
	}
	return 0;
}

static int test_machine(int argc, char **argv)
{
	static const char *const absent[] = { "kcore", "kmsg", "kallsyms", "keys", "sysrq-trigger", "iomem", "timer_list", "slabinfo",
		"modules", "cmdline", "locks", "sys/fs/binfmt_misc" };
	char path[64], id[64] = "", again[64] = "";

	only_in_a_view();
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%s", absent[i]);
		CHECK_OPEN(path, O_RDONLY, ENOENT);
	}
	CHECK_OPEN("/proc/sys/kernel/core_pattern", O_WRONLY, EACCES);
	CHECK_OPEN("/proc/sys/kernel/core_pattern", O_RDWR | O_CREAT, EACCES);
	CHECK_EQ(truncate("/proc/sys/kernel/core_pattern", 0) ? errno : 0, EACCES);
	CHECK(close(open("/proc/sys/kernel/core_pattern", O_RDONLY)) == 0);
	for (int i = 0; i < 2; i++) {
		int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY);

		CHECK_EQ(read(fd, i ? again : id, 37), 37);
		close(fd);
	}
	CHECK(!strcmp(id, again));
	if (argc > 1)
		CHECK(strncmp(id, argv[1], 36));
	return 0;
}

static int test_others(int argc, char **argv)
{
	pid_t pid = guest_fork();

	if (pid == 0)
		for (;;)
			pause();
	CHECK_OPEN(file_of(pid, "mem"), O_RDONLY, EACCES);
	CHECK_OPEN(file_of(pid, "mem"), O_RDWR, EACCES);
	CHECK_OPEN(file_of(pid, "root/../proc/self/../1/environ"), O_RDONLY, ENOENT);
	CHECK_OPEN(file_of(pid, "ns/mnt"), O_RDONLY, EACCES);
	CHECK_OPEN(file_of(getpid(), "ns/user"), O_RDONLY, EACCES);
	CHECK_OPEN(file_of(getpid(), "map_files"), O_RDONLY, EACCES);
	CHECK_OPEN(file_of(getpid(), "syscall"), O_RDONLY, EACCES);
	CHECK_OPEN(file_of(getpid(), "uid_map"), O_WRONLY, EACCES);
	CHECK_OPEN(file_of(getpid(), "numa_maps"), O_RDONLY, ENOENT);
	kill(pid, SIGKILL);
	CHECK_SIGNALED(guest_wait(pid), SIGKILL);
	CHECK_OPEN(file_of(pid, "status"), O_RDONLY, ENOENT);
	return 0;
}

/* A descriptor that may be had is not one for writing. */
static int test_reopen(int argc, char **argv)
{
	char path[64];
	int fd = open("/proc/sys/kernel/core_pattern", O_PATH | O_CLOEXEC);

	only_in_a_view();
	MUST(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_OPEN(path, O_WRONLY, EACCES);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	CHECK_OPEN(path, O_RDWR, EACCES);
	CHECK_EQ(fchmod(fd, 0666) ? errno : 0, EBADF);
	CHECK_EQ(chmod(path, 0666) ? errno : 0, EACCES);
	close(fd);
	return 0;
}

static int test_devices(int argc, char **argv)
{
	static const char *const absent[] = { "mem", "kmsg", "fuse", "kvm", "loop0", "loop-control", "console", "tty0", "net/tun",
		"vda", "sda" };
	static const char *const present[] = { "null", "urandom", "tty", "fd" };
	char path[64];
	struct stat was, is;
	DIR *dir;

	only_in_a_view();
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		snprintf(path, sizeof(path), "/dev/%s", absent[i]);
		CHECK_OPEN(path, O_RDONLY, ENOENT);
	}
	MUST(stat("/dev/null", &was) == 0);
	for (size_t i = 0; i < sizeof(present) / sizeof(present[0]); i++) {
		snprintf(path, sizeof(path), "/dev/%s", present[i]);
		CHECK_EQ(unlink(path) ? errno : 0, EACCES);
		CHECK_EQ(rename(path, "/dev/other") ? errno : 0, EACCES);
	}
	CHECK_EQ(chmod("/dev/null", 0600) ? errno : 0, EACCES);
	CHECK_EQ(chown("/dev/null", 1, 1) ? errno : 0, EACCES);
	CHECK_EQ(link("/dev/null", "/dev/nul") ? errno : 0, EACCES);
	CHECK_EQ(symlink("/dev/null", "/dev/nul") ? errno : 0, EACCES);
	CHECK_EQ(mkdir("/dev/dir", 0700) ? errno : 0, EACCES);
	CHECK_OPEN("/dev/new", O_WRONLY | O_CREAT, EACCES);
	CHECK_EQ(mknod("/tmp/sd", S_IFBLK | 0600, 0x800) ? errno : 0, EPERM);
	MUST(stat("/dev/null", &is) == 0);
	CHECK(is.st_mode == was.st_mode && is.st_uid == was.st_uid && is.st_ctime == was.st_ctime);
	dir = opendir("/dev/pts");
	if (argc > 1 && dir) /* a terminal of somebody else */
		CHECK_OPEN(argv[1], O_RDWR | O_NOCTTY, ENOENT);
	if (dir)
		closedir(dir);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "processes", test_processes }, { "machine", test_machine }, { "others", test_others }, { "reopen", test_reopen },
		{ "devices", test_devices }, { NULL, NULL }
	};

	return guest_main(argc, argv, tests);
}
