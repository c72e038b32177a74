/* /proc and /dev of the view: what is seen, where links lead, what is made. This process and a child of it are the guests. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vfs/internal.h"

static struct upper upper;
static struct vfs *vfs;
static struct vfs_fs *fs, *child_fs;
static struct vfs_who who;
static pid_t child, stopped_pid;
static char why[512], text[1 << 20];

static bool is_guest(void *context, pid_t pid)
{
	(void)context;
	return pid == getpid() || pid == child;
}

static pid_t tgid_of(void *context, pid_t tid)
{
	return is_guest(context, tid) ? tid : 0;
}

static struct vfs_fs *fs_of(void *context, pid_t tid)
{
	(void)context;
	return tid == child ? child_fs : NULL;
}

static bool affinity(void *context, pid_t tid, char *mask, size_t mask_size, char *list, size_t list_size)
{
	(void)context;
	snprintf(mask, mask_size, "f0");
	snprintf(list, list_size, "4-7");
	return tid == child;
}

static bool stopped(void *context, pid_t tid)
{
	(void)context;
	return tid == stopped_pid;
}

static const struct vfs_guests guests = { is_guest, tgid_of, fs_of, affinity, NULL, stopped };

static void start(void)
{
	static const struct vfs_mount_spec mounts[] = {
		{ VFS_COW, "/", NULL, false }, { VFS_PROC, "/proc", NULL, false }, { VFS_DEV, "/dev", NULL, false },
		{ VFS_TMP, "/dev/shm", NULL, true }, { VFS_BIND, "/mnt", "/usr/lib", false },
	};
	struct vfs_options options = { .mounts = mounts, .mount_count = 5, .guests = &guests };

	ck_assert_msg(upper_open_memory(&upper, false, why, sizeof(why)) == 0, "%s", why);
	options.upper = options.memory = &upper;
	ck_assert_msg(vfs_new(&vfs, &options, why, sizeof(why)) == 0, "%s", why);
	ck_assert_int_eq(vfs_fs_new(vfs, "/usr/bin", 022, &fs), 0);
	ck_assert_int_eq(vfs_fs_new(vfs, "/tmp", 022, &child_fs), 0);
	who = (struct vfs_who){ .vfs = vfs, .fs = fs, .cred = vfs_own_cred(vfs), .tid = getpid(), .tgid = getpid(), .pidfd = -1 };
	child = fork();
	while (child == 0) { /* no checks here: they would be told as ours */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	ck_assert_int_gt(child, 0);
}

static void end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	vfs_fs_unref(vfs, fs);
	vfs_fs_unref(vfs, child_fs);
	vfs_free(vfs);
	upper_close(&upper);
}

/* --- asking the view --------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2)))
static const char *path_of(const char *format, ...)
{
	static char path[4][512];
	static unsigned next;
	char *out = path[next++ % 4];
	va_list args;

	va_start(args, format);
	vsnprintf(out, sizeof(path[0]), format, args);
	va_end(args);
	return out;
}

static int exists(const char *path)
{
	struct vfs_place place;
	int error = vfs_walk(&who, NULL, path, 0, &place);

	if (error == 0)
		error = vfs_exists(&place) ? 0 : -ENOENT;
	vfs_place_end(vfs, &place);
	return error;
}

/* As a guest opens: a descriptor or a negative errno. */
static int view_open(const char *path, int flags)
{
	struct vfs_open how = { .flags = flags, .mode = 0600 };
	struct vfs_place place;
	int error = vfs_walk(&who, NULL, path, flags & O_NOFOLLOW ? 0 : VFS_FOLLOW, &place), fd;

	if (error == 0)
		error = vfs_open(&who, &place, &how);
	vfs_place_end(vfs, &place);
	if (error < 0)
		return error;
	fd = open(fd_path(how.fd).text, how.flags | O_CLOEXEC);
	error = -errno;
	close(how.fd);
	return fd < 0 ? error : fd;
}

/* What a file says; its descriptor stays open. */
static int view_read(const char *path)
{
	int fd = view_open(path, O_RDONLY);
	ssize_t n = 0, len = 0;

	while (fd >= 0 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	text[len] = 0;
	return fd;
}

static const char *view_text(const char *path)
{
	int fd = view_read(path);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(-fd));
	close(fd);
	return text;
}

static const char *view_link(const char *path)
{
	static char target[4096];
	struct vfs_place place;
	int error = vfs_walk(&who, NULL, path, 0, &place);
	ssize_t n = error < 0 ? error : vfs_readlink(&who, &place, target, sizeof(target) - 1);

	vfs_place_end(vfs, &place);
	if (n < 0)
		return strerrorname_np(-n);
	target[n] = 0;
	return target;
}

static int view_access(const char *path, int mode)
{
	struct vfs_place place;
	int error = vfs_walk(&who, NULL, path, VFS_FOLLOW, &place);

	if (error == 0)
		error = vfs_access(&who, &place, mode, true);
	vfs_place_end(vfs, &place);
	return error;
}

static bool add_name(void *context, const struct vfs_dirent *entry)
{
	strcat(context, " ");
	strcat(context, entry->name);
	strcat(context, " ");
	return true;
}

static const char *view_list(const char *path)
{
	struct vfs_place place;

	text[0] = 0;
	ck_assert_int_eq(vfs_walk(&who, NULL, path, VFS_FOLLOW, &place), 0);
	ck_assert_int_ge(vfs_list(&who, &place, 0, add_name, text), 0);
	vfs_place_end(vfs, &place);
	return text;
}

static int view_change(const char *path, int (*change)(const char *path, struct vfs_place *place))
{
	struct vfs_place place;
	int error = vfs_walk(&who, NULL, path, VFS_CREATE, &place);

	if (error == 0)
		error = change(path, &place);
	vfs_place_end(vfs, &place);
	return error;
}

/* --- /proc ------------------------------------------------------------------------------------------------------------------- */

START_TEST(test_processes)
{
	const char *list = view_list("/proc");

	ck_assert_ptr_nonnull(strstr(list, path_of(" %d ", getpid())));
	ck_assert_ptr_nonnull(strstr(list, path_of(" %d ", child)));
	ck_assert_ptr_null(strstr(list, " 1 "));
	ck_assert_ptr_null(strstr(list, path_of(" %d ", getppid())));
	ck_assert_int_eq(exists("/proc/1"), -ENOENT);
	ck_assert_int_eq(exists(path_of("/proc/%d/environ", getppid())), -ENOENT);
	ck_assert_int_eq(exists(path_of("/proc/%d/task/%d", child, child)), 0);
	ck_assert_int_eq(exists(path_of("/proc/%d/task/1", child)), -ENOENT);
	ck_assert_int_eq(exists(path_of("/proc/0%d", child)), -ENOENT);
	ck_assert_int_eq(exists("/proc/99999999999"), -ENOENT);
	ck_assert_str_eq(view_link("/proc/self"), path_of("%d", getpid()));
	ck_assert_str_eq(view_link("/proc/thread-self"), path_of("%d/task/%d", getpid(), getpid()));
	ck_assert_int_eq(exists("/proc/thread-self/comm"), 0);
}
END_TEST

/* A process that is none of the run any more has no files, also in a directory that was entered before. */
START_TEST(test_reused)
{
	struct vfs_place dir, place;
	pid_t was = child;

	ck_assert_int_eq(vfs_walk(&who, NULL, path_of("/proc/%d", child), 0, &dir), 0);
	ck_assert_int_eq(vfs_walk(&who, &dir, "environ", 0, &place), 0);
	child = 0;
	ck_assert_int_eq(vfs_open(&who, &place, &(struct vfs_open){ .flags = O_RDONLY }), -ENOENT);
	vfs_place_end(vfs, &place);
	ck_assert_int_eq(vfs_walk(&who, &dir, "environ", 0, &place), 0);
	ck_assert(!vfs_exists(&place));
	vfs_place_end(vfs, &place);
	vfs_place_end(vfs, &dir);
	child = was;
}
END_TEST

START_TEST(test_machine)
{
	static const char *const absent[] = { "kcore", "kmsg", "kallsyms", "keys", "key-users", "sysrq-trigger", "kpagecount",
		"timer_list", "iomem", "ioports", "acpi", "vmallocinfo", "slabinfo", "cmdline", "locks", "bus", "sysvipc", "nonsense" };
	static const char *const present[] = { "cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "mounts",
		"net", "net/dev", "sys/kernel/ostype", "sys/vm/overcommit_memory" };
	const char *list = view_list("/proc");

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		ck_assert_int_eq(exists(path_of("/proc/%s", absent[i])), -ENOENT);
		ck_assert_ptr_null(strstr(list, path_of(" %s ", absent[i])));
	}
	for (size_t i = 0; i < sizeof(present) / sizeof(present[0]); i++)
		ck_assert_msg(exists(path_of("/proc/%s", present[i])) == 0, "%s", present[i]);
	ck_assert_int_eq(exists("/proc/sys/fs/binfmt_misc"), -ENOENT);
	ck_assert_str_eq(view_text("/proc/sys/kernel/ostype"), "Linux\n");
	ck_assert_int_eq(view_open("/proc/sys/kernel/core_pattern", O_WRONLY), -EACCES);
	ck_assert_int_eq(view_open("/proc/sys/kernel/core_pattern", O_RDONLY | O_TRUNC), -EACCES);
	ck_assert_int_eq(view_access("/proc/sys/kernel/core_pattern", W_OK), -EACCES);
	ck_assert_int_eq(view_access("/proc/sys/kernel/core_pattern", R_OK), 0);
}
END_TEST

START_TEST(test_boot_id)
{
	char own[64] = "", first[64];
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY);

	ck_assert_int_eq(read(fd, own, 37), 37);
	close(fd);
	snprintf(first, sizeof(first), "%s", view_text("/proc/sys/kernel/random/boot_id"));
	ck_assert_uint_eq(strlen(first), 37);
	ck_assert_int_eq(first[14], '4');
	ck_assert_str_ne(first, own);
	ck_assert_str_eq(view_text("/proc/sys/kernel/random/boot_id"), first);
}
END_TEST

START_TEST(test_write)
{
	static const char *const own[] = { "comm", "oom_score_adj", "coredump_filter", "timerslack_ns", "mem", "attr/current" };
	static const char *const nobody[] = { "uid_map", "loginuid", "sched", "autogroup", "setgroups", "net/dev" };
	int fd;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		fd = view_open(path_of("/proc/self/%s", own[i]), O_WRONLY);
		ck_assert_msg(fd >= 0 || fd == -ENOENT, "%s: %s", own[i], strerror(-fd));
		close(fd);
	}
	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++)
		if (exists(path_of("/proc/self/%s", nobody[i])) == 0)
			ck_assert_msg(view_open(path_of("/proc/self/%s", nobody[i]), O_WRONLY) == -EACCES, "%s", nobody[i]);
	ck_assert_int_eq(view_open(path_of("/proc/%d/mem", child), O_RDONLY), -EACCES);
	ck_assert_int_eq(view_open(path_of("/proc/%d/comm", child), O_WRONLY), -EACCES);
	ck_assert_int_eq(view_open(path_of("/proc/%d/task/%d/mem", child, child), O_RDWR), -EACCES);
	ck_assert_int_eq(view_open("/proc/self/stack", O_RDONLY), -EACCES);
	ck_assert_int_eq(view_open("/proc/self/map_files", O_RDONLY | O_DIRECTORY), -EACCES);
	fd = view_open(path_of("/proc/%d/oom_score_adj", child), O_RDWR);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(view_open("/proc/new", O_WRONLY | O_CREAT), -EACCES);
	ck_assert_int_eq(view_open("/proc/self/new", O_WRONLY | O_CREAT), -EACCES);
}
END_TEST

/* --- links ------------------------------------------------------------------------------------------------------------------- */

START_TEST(test_links)
{
	char exe[4096], ns[64] = "";
	int ends[2], fd, dir;
	struct stat st;

	ck_assert_int_gt(readlink("/proc/self/ns/net", ns, sizeof(ns) - 1), 0);
	exe[readlink("/proc/self/exe", exe, sizeof(exe) - 1)] = 0;
	ck_assert_str_eq(view_link("/proc/self/cwd"), "/usr/bin");
	ck_assert_str_eq(view_link("/proc/self/root"), "/");
	ck_assert_str_eq(view_link(path_of("/proc/%d/cwd", child)), "/tmp");
	ck_assert_str_eq(view_link(path_of("/proc/self/task/%d/cwd", getpid())), "/usr/bin");
	ck_assert_str_eq(view_link("/proc/self/exe"), exe);
	ck_assert_str_eq(view_link("/proc/self/ns/net"), ns);
	ck_assert_int_eq(view_open("/proc/self/ns/net", O_RDONLY), -EACCES);
	ck_assert_str_eq(view_link("/proc/mounts"), "self/mounts");
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(fstat(ends[0], &st), 0);
	ck_assert_str_eq(view_link(path_of("/proc/self/fd/%d", ends[0])), path_of("pipe:[%lu]", (unsigned long)st.st_ino));
	fd = view_open(path_of("/proc/self/fd/%d", ends[1]), O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	ck_assert_int_eq(read(ends[0], ns, 1), 1);
	dir = open("/usr/lib/..", O_PATH | O_DIRECTORY);
	ck_assert_str_eq(view_link(path_of("/proc/self/fd/%d", dir)), "/usr");
	ck_assert_int_eq(exists(path_of("/proc/self/fd/%d/bin/env", dir)), 0);
	ck_assert_int_eq(exists("/proc/self/root/proc/1"), -ENOENT);
	ck_assert_int_eq(exists("/proc/self/cwd/../../proc/self"), 0);
	close(dir);
	dir = open("/usr/lib/os-release", O_RDONLY);
	ck_assert_str_eq(view_link(path_of("/proc/self/fd/%d", dir)), "/mnt/os-release");
	ck_assert_int_ge(fd = view_open(path_of("/proc/self/fd/%d", dir), O_RDONLY), 0);
	close(fd);
	close(dir);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* A process whose root is elsewhere in the view: paths are told from there, and nothing leads out. */
START_TEST(test_chroot)
{
	struct vfs_place place;

	ck_assert_int_eq(vfs_walk(&who, NULL, "/usr", 0, &place), 0);
	vfs_node_unref(vfs, fs->root);
	fs->root = vfs_node_ref(place.node);
	who.fs = child_fs; /* who looks has the whole view */
	child_fs = fs;
	ck_assert_str_eq(view_link(path_of("/proc/%d/root", child)), "/usr");
	ck_assert_str_eq(view_link(path_of("/proc/%d/cwd", child)), "/usr/bin");
	ck_assert_int_eq(exists(path_of("/proc/%d/root/bin/env", child)), 0);
	child_fs = who.fs;
	who.fs = fs;
	vfs_place_end(vfs, &place);
	ck_assert_int_eq(exists("/proc"), -ENOENT);
	ck_assert_int_eq(exists("/bin/env"), 0);
}
END_TEST

/* --- made files -------------------------------------------------------------------------------------------------------------- */

START_TEST(test_maps)
{
	int window = memfd_create("window", 0), lib = open("/usr/lib/os-release", O_RDONLY), fd;
	void *ours, *mapped;

	ck_assert_int_eq(ftruncate(window, 4096), 0);
	ours = mmap(NULL, 4096, PROT_READ, MAP_SHARED, window, 0);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, lib, 0);
	ck_assert(ours != MAP_FAILED && mapped != MAP_FAILED);
	fd = view_read("/proc/self/maps");
	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_nonnull(strstr(text, "[stack]"));
	ck_assert_ptr_nonnull(strstr(text, " /mnt/os-release\n"));
	ck_assert_ptr_null(strstr(text, "/usr/lib/os-release"));
	ck_assert_ptr_null(strstr(text, "window"));
	ck_assert_str_eq(view_link(path_of("/proc/self/fd/%d", fd)), path_of("/proc/%d/maps", getpid()));
	ck_assert_int_eq(write(fd, "x", 1), -1);
	close(fd);
	view_text("/proc/self/smaps");
	ck_assert_ptr_nonnull(strstr(text, " /mnt/os-release\nSize:"));
	ck_assert_ptr_null(strstr(text, "window"));
	ck_assert_int_eq(view_open("/proc/self/maps", O_RDWR), -EACCES);
	close(window);
	close(lib);
}
END_TEST

START_TEST(test_mounts)
{
	view_text("/proc/self/mountinfo");
	ck_assert_ptr_nonnull(strstr(text, " / / rw,relatime - "));
	ck_assert_ptr_nonnull(strstr(text, " / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw\n"));
	ck_assert_ptr_nonnull(strstr(text, " / /mnt rw,relatime - "));
	ck_assert_ptr_null(strstr(text, "/sys/"));
	view_text("/proc/mounts");
	ck_assert_ptr_nonnull(strstr(text, "proc /proc proc "));
	ck_assert_ptr_nonnull(strstr(text, "tmpfs /dev/shm tmpfs rw,relatime 0 0\n"));
	view_text("/proc/self/mountstats");
	ck_assert_ptr_nonnull(strstr(text, "device proc mounted on /proc with fstype proc\n"));
}
END_TEST

START_TEST(test_status)
{
	view_text("/proc/self/status");
	ck_assert_ptr_nonnull(strstr(text, "\nTracerPid:\t0\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nState:\tR (running)\n"));
	ck_assert_ptr_null(strstr(text, "4-7"));
	view_text(path_of("/proc/%d/status", child));
	ck_assert_ptr_nonnull(strstr(text, "\nCpus_allowed:\tf0\nCpus_allowed_list:\t4-7\n"));
	ck_assert_ptr_nonnull(strstr(text, path_of("\nPPid:\t%d\n", getpid())));
	for (int i = 0; i < 1000 && !strstr(view_text(path_of("/proc/%d/stat", child)), ") S "); i++)
		usleep(1000);
	ck_assert_ptr_nonnull(strstr(text, ") S "));
}
END_TEST

/* One that is traced does not look so. */
START_TEST(test_traced)
{
	int status;

	ck_assert_int_eq(syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, child, 0, 0), 0);
	ck_assert_int_eq(syscall(SYS_ptrace, 0x4207 /* PTRACE_INTERRUPT */, child, 0, 0), 0);
	ck_assert_int_eq(waitpid(child, &status, __WALL), child);
	view_text(path_of("/proc/%d/status", child));
	ck_assert_ptr_nonnull(strstr(text, "\nTracerPid:\t0\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nState:\tR (running)\n"));
	ck_assert_ptr_nonnull(strstr(view_text(path_of("/proc/%d/stat", child)), ") R "));
	stopped_pid = child;
	ck_assert_ptr_nonnull(strstr(view_text(path_of("/proc/%d/status", child)), "\nState:\tT (stopped)\n"));
	ck_assert_ptr_nonnull(strstr(view_text(path_of("/proc/%d/stat", child)), ") T "));
}
END_TEST

/* --- /dev -------------------------------------------------------------------------------------------------------------------- */

static int unlink_it(const char *path, struct vfs_place *place)
{
	(void)path;
	return vfs_unlink(&who, place);
}

static int mkdir_it(const char *path, struct vfs_place *place)
{
	(void)path;
	return vfs_mkdir(&who, place, 0700);
}

static int chmod_it(const char *path, struct vfs_place *place)
{
	(void)path;
	return vfs_chmod(&who, place, 0600);
}

static int touch_it(const char *path, struct vfs_place *place)
{
	(void)path;
	return vfs_utimens(&who, place, NULL);
}

START_TEST(test_dev)
{
	static const char *const absent[] = { "mem", "kmsg", "fuse", "kvm", "vda", "loop0", "tty1", "console", "net", "hugepages" };
	static const char *const present[] = { "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin" };
	const char *list = view_list("/dev");
	int fd;

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		ck_assert_int_eq(exists(path_of("/dev/%s", absent[i])), -ENOENT);
		ck_assert_ptr_null(strstr(list, path_of(" %s ", absent[i])));
	}
	for (size_t i = 0; i < sizeof(present) / sizeof(present[0]); i++)
		ck_assert_msg(strstr(list, path_of(" %s ", present[i])) != NULL, "%s", present[i]);
	fd = view_open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	ck_assert_int_eq(view_access("/dev/null", R_OK | W_OK), 0);
	ck_assert_int_eq(view_access("/dev", W_OK), -EACCES);
	ck_assert_int_eq(view_change("/dev/null", unlink_it), -EACCES);
	ck_assert_int_eq(view_change("/dev/null", chmod_it), -EACCES);
	ck_assert_int_eq(view_change("/dev/null", touch_it), -EACCES);
	ck_assert_int_eq(view_change("/dev/new", mkdir_it), -EACCES);
	ck_assert_int_eq(view_change("/dev/shm/new", mkdir_it), 0);
	ck_assert_str_eq(view_link("/dev/fd"), "/proc/self/fd");
	ck_assert_int_eq(exists("/dev/fd/0"), 0);
	ck_assert_int_eq(access("/dev/null", F_OK), 0);
}
END_TEST

/* Nodes of devices elsewhere, also by a descriptor whose name has gone. */
START_TEST(test_nodev)
{
	char dir[] = "/tmp/interpose-special.XXXXXX";
	struct vfs_open how = { .flags = O_PATH };
	struct vfs_place place;

	if (!mkdtemp(dir) || mknod(path_of("%s/other", dir), S_IFCHR | 0666, makedev(10, 235)) ||
	    mknod(path_of("%s/null", dir), S_IFCHR | 0666, makedev(1, 3))) {
		rmdir(dir); /* an ordinary user */
		return;
	}
	ck_assert_int_eq(view_open(path_of("%s/other", dir), O_RDONLY), -EACCES);
	ck_assert_int_ge(view_open(path_of("%s/null", dir), O_WRONLY), 0);
	ck_assert_int_eq(vfs_walk(&who, NULL, path_of("%s/other", dir), 0, &place), 0);
	ck_assert_int_eq(vfs_open(&who, &place, &how), 0);
	ck_assert_int_eq(vfs_unlink(&who, &place), 0);
	vfs_place_end(vfs, &place);
	ck_assert_int_eq(exists(path_of("%s/other", dir)), -ENOENT);
	ck_assert_int_eq(view_open(path_of("/proc/self/fd/%d", how.fd), O_RDONLY), -EACCES);
	close(how.fd);
	unlink(path_of("%s/other", dir));
	unlink(path_of("%s/null", dir));
	rmdir(dir);
}
END_TEST

START_TEST(test_terminals)
{
	char path[64];
	int master, other = posix_openpt(O_RDWR | O_NOCTTY), slave, number = -1;

	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(ptsname_r(other, path, sizeof(path)), 0);
	ck_assert_int_eq(exists(path), -ENOENT); /* another's */
	master = view_open("/dev/ptmx", O_RDWR | O_NOCTTY);
	ck_assert_int_ge(master, 0);
	ck_assert_int_eq(ioctl(master, TIOCGPTN, &number), 0);
	dev_pty_made(vfs, number);
	ck_assert_int_eq(unlockpt(master), 0);
	ck_assert_int_eq(ptsname_r(master, path, sizeof(path)), 0);
	slave = view_open(path, O_RDWR | O_NOCTTY);
	ck_assert_int_ge(slave, 0);
	ck_assert_str_eq(view_link(path_of("/proc/self/fd/%d", slave)), path);
	ck_assert_int_eq(view_change(path, chmod_it), 0);
	ck_assert_ptr_nonnull(strstr(view_list("/dev/pts"), path_of(" %d ", number)));
	close(slave);
	close(master);
	close(other);
	for (int i = 0; i < 8; i++) { /* the number is free: somebody takes it */
		other = posix_openpt(O_RDWR | O_NOCTTY);
		ck_assert_int_ge(other, 0);
	}
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(exists(path), -ENOENT);
}
END_TEST

Suite *suite_special(void);
Suite *suite_special(void)
{
	Suite *suite = suite_create("special");
	TCase *tests = tcase_create("special");

	tcase_add_checked_fixture(tests, start, end);
	tcase_add_test(tests, test_processes);
	tcase_add_test(tests, test_reused);
	tcase_add_test(tests, test_machine);
	tcase_add_test(tests, test_boot_id);
	tcase_add_test(tests, test_write);
	tcase_add_test(tests, test_links);
	tcase_add_test(tests, test_chroot);
	tcase_add_test(tests, test_maps);
	tcase_add_test(tests, test_mounts);
	tcase_add_test(tests, test_status);
	tcase_add_test(tests, test_traced);
	tcase_add_test(tests, test_dev);
	tcase_add_test(tests, test_nodev);
	tcase_add_test(tests, test_terminals);
	suite_add_tcase(suite, tests);
	return suite;
}
