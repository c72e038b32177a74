/* upper_memory.c - uppers that end with their run: a tmpfs without a name, or a temporary directory */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vfs/upper_impl.h"

/* --- a tmpfs ------------------------------------------------------------------------------------------------------------------ */

static int tmpfs_option(int fs, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0);
}

/*
 * FDS: the root of a new tmpfs with the layout in it, and a mount of its fs/. The mounts are in no mount namespace: they vanish
 * with the last descriptor. What guests may store is limited by their own limits, not by half of the memory, tmpfs's default.
 * Only system calls: it is called in a forked child.
 */
static int tmpfs_make(int fds[2])
{
	int error = 0, fs = syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	fds[0] = fds[1] = -1;
	if (fs < 0)
		return -errno;
	if (tmpfs_option(fs, "mode", "0700") < 0 || tmpfs_option(fs, "size", "90%") < 0 || tmpfs_option(fs, "nr_inodes", "0") < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		error = -errno;
	if (!error)
		fds[0] = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (!error && fds[0] < 0)
		error = -errno;
	close(fs);
	if (!error)
		error = upper_layout(fds[0]);
	if (!error)
		fds[1] = syscall(SYS_open_tree, fds[0], "fs", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (!error && fds[1] < 0)
		error = -errno;
	if (!error)
		return 0;
	if (fds[0] >= 0)
		close(fds[0]);
	return error;
}

/* --- by a child in a user namespace ------------------------------------------------------------------------------------------- */

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

static int fds_send(int socket, const int fds[2])
{
	union control control = { 0 };
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(header), fds, 2 * sizeof(int));
	return sendmsg(socket, &msg, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

/* The child's end closes with it, so that this does not wait for ever. */
static int fds_receive(int socket, int fds[2])
{
	union control control = { 0 };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header;
	ssize_t n;

	do {
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	header = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return -EPERM;
	memcpy(fds, CMSG_DATA(header), 2 * sizeof(int));
	return 0;
}

static int text_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = strlen(text), n = fd < 0 ? -1 : write(fd, text, len);

	if (fd >= 0)
		close(fd);
	return n == len ? 0 : -1;
}

/* Ids of the namespace are those outside it: what is made here belongs to the user. */
static int namespace_enter(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	/* The files below belong to root while a process may not be dumped. */
	prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	text_write("/proc/self/setgroups", "deny"); /* not there before Linux 3.19, and not needed there */
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (text_write("/proc/self/uid_map", map) < 0)
		return -EPERM;
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return text_write("/proc/self/gid_map", map) < 0 ? -EPERM : 0;
}

static void child_run(int socket)
{
	int fds[2];

	if (namespace_enter() == 0 && tmpfs_make(fds) == 0)
		fds_send(socket, fds);
	_exit(0);
}

static int tmpfs_by_child(int fds[2])
{
	sigset_t all, old;
	int ends[2], error;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* No handler of the program's runs in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	child = fork();
	if (child == 0)
		child_run(ends[1]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(ends[1]);
	error = child < 0 ? -EAGAIN : fds_receive(ends[0], fds);
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
		;
	return error;
}

/* Root that may not mount keeps the owners of files, which a namespace with one user could not. */
int upper_tmpfs(struct upper *upper)
{
	int fds[2], error = tmpfs_make(fds);

	if (error && geteuid() != 0)
		error = tmpfs_by_child(fds);
	if (error)
		return error;
	upper->root_fd = upper_fd(fds[0]);
	upper->view_fd = upper_fd(fds[1]);
	error = upper->root_fd < 0 ? upper->root_fd : upper->view_fd < 0 ? upper->view_fd : 0;
	if (error)
		upper_close(upper);
	return error;
}

/* --- a temporary directory ----------------------------------------------------------------------------------------------------- */

#define TEMPORARY "interpose."

enum { PLACES = 5 };

static void places_get(const char *places[PLACES])
{
	places[0] = getenv("XDG_RUNTIME_DIR");
	places[1] = "/dev/shm";
	places[2] = "/run/shm";
	places[3] = "/tmp";
	places[4] = "/var/tmp";
}

static bool place_is_usable(const char *place, bool tmpfs)
{
	struct statfs fs;
	struct statvfs vfs;

	if (!place || place[0] != '/' || statfs(place, &fs) < 0 || statvfs(place, &vfs) < 0)
		return false;
	if (vfs.f_flag & (ST_NOEXEC | ST_RDONLY))
		return false;
	return (fs.f_type == TMPFS_MAGIC) == tmpfs && access(place, W_OK | X_OK) == 0;
}

/*
 * Removes a directory whose run is dead: its lock is not held. One that has no format yet is being made just now, and is not
 * looked at.
 */
static void stale_remove(int place_fd, const char *name)
{
	struct stat st;
	int lock, fd = upper_open_below(place_fd, name);

	if (fd < 0)
		return;
	lock = fstat(fd, &st) == 0 && st.st_uid == geteuid() && upper_is(fd) ?
	       openat(fd, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && upper_remove_contents(fd) == 0)
		unlinkat(place_fd, name, AT_REMOVEDIR);
	if (lock >= 0)
		close(lock);
	close(fd);
}

static void stale_remove_all(const char *place)
{
	DIR *dir = opendir(place);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (!strncmp(entry->d_name, TEMPORARY, sizeof(TEMPORARY) - 1) && strlen(entry->d_name) == sizeof(TEMPORARY) - 1 + 6)
			stale_remove(dirfd(dir), entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static int temporary_make(struct upper *upper, const char *place)
{
	int error;

	stale_remove_all(place);
	if (asprintf(&upper->path, "%s/%sXXXXXX", place, TEMPORARY) < 0) {
		upper->path = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(upper->path)) {
		error = -errno;
		free(upper->path);
		upper->path = NULL;
		return error;
	}
	upper->root_fd = upper_open_below(AT_FDCWD, upper->path);
	error = upper->root_fd < 0 ? upper->root_fd : upper_initialise(upper);
	if (error)
		upper_close(upper);
	return error;
}

int upper_temporary(struct upper *upper, char *why, size_t size)
{
	const char *places[PLACES];
	int error = -ENOENT;

	places_get(places);
	for (int tmpfs = 1; tmpfs >= 0; tmpfs--) {
		for (size_t i = 0; i < PLACES; i++) {
			if (!place_is_usable(places[i], tmpfs))
				continue;
			error = temporary_make(upper, places[i]);
			if (!error)
				return 0;
		}
	}
	return upper_why(error, why, size, "there is no place for changes: none of XDG_RUNTIME_DIR, /dev/shm, /tmp and /var/tmp can be "
			 "written and run programs (%s)", strerror(-error));
}
