/* ops_process.c - what is of the process: forks, umask, locks, sockets at paths. */
#include "tests/model/model.h"

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static pid_t fork_or_say(void)
{
	pid_t pid = fork();

	if (pid < 0)
		say(" fork fails");
	return pid;
}

/* A child with our files works for a while and ends: offsets are shared, folders and masks are not. */
static void op_fork(void)
{
	pid_t pid = fork_or_say();
	int status = -1;

	if (pid == 0) {
		run_some(1 + pick(4), "child of p");
		_exit(7);
	}
	waitpid(pid, &status, 0);
	say(" %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* A child takes our place for good; we only wait for it. */
static void op_replace(void)
{
	pid_t pid = fork_or_say();
	int status = -1;

	if (pid <= 0)
		return;
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
}

static void op_umask(void)
{
	static const mode_t masks[] = { 022, 022, 0, 077, 0777, 027, 07077 };
	mode_t mask = masks[pick(7)];

	say(" %04o", mask);
	say_result((long)umask(mask));
}

static void op_flock(void)
{
	static const int ways[] = { LOCK_SH, LOCK_EX, LOCK_EX, LOCK_UN, LOCK_UN };
	int fd = self.slot[pick_slot()], way = ways[pick(5)] | LOCK_NB;

	say(" %d %d", fd, way);
	say_result(flock(fd, way));
}

static void op_setlk(void)
{
	static const short types[] = { F_RDLCK, F_WRLCK, F_WRLCK, F_UNLCK };
	static const int commands[] = { F_SETLK, F_SETLK, F_OFD_SETLK, F_GETLK, F_OFD_GETLK };
	struct flock lock = { .l_type = types[pick(4)], .l_whence = SEEK_SET, .l_start = (off_t)pick(100),
			      .l_len = (off_t)pick(100) };
	int fd = self.slot[pick_slot()], command = commands[pick(5)];

	say(" %d %d %d %lld+%lld", fd, command, lock.l_type, (long long)lock.l_start, (long long)lock.l_len);
	say_result(fcntl(fd, command, &lock));
	if (command == F_GETLK || command == F_OFD_GETLK)
		say(" %d %lld+%lld", lock.l_type, (long long)lock.l_start, (long long)lock.l_len);
}

/* The address of a path: relative ones that fit, as they are; by way of /proc for one below a slot. */
static bool make_address(struct sockaddr_un *address)
{
	struct where where;
	int len;

	pick_new_path(&where, 0);
	address->sun_family = AF_UNIX;
	if (where.dirfd == AT_FDCWD)
		len = snprintf(address->sun_path, sizeof(address->sun_path), "%.200s", where.path);
	else
		len = snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%.100s", where.dirfd, where.path);
	say(" %s", where.shown);
	if (len < 1 || len >= (int)sizeof(address->sun_path) || strlen(where.path) > 99) {
		say(" no");
		return false;
	}
	return true;
}

static int pick_socket(int *type)
{
	*type = chance(70) ? SOCK_STREAM : SOCK_DGRAM;
	say(" %s", *type == SOCK_STREAM ? "stream" : "dgram");
	return socket(AF_UNIX, *type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void op_bind(void)
{
	struct sockaddr_un address = { 0 }, name = { 0 };
	socklen_t len = sizeof(name);
	int type, fd;

	if (!make_address(&address))
		return;
	fd = pick_socket(&type);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		say_result(-1);
		close(fd);
		return;
	}
	if (type == SOCK_STREAM)
		listen(fd, 5);
	if (!getsockname(fd, (struct sockaddr *)&name, &len)) {
		say(" name ");
		say_text(name.sun_path);
	}
	say_result(fd);
	slot_put(pick_free_slot(), fd);
}

static void op_connect(void)
{
	struct sockaddr_un address = { 0 };
	int type, fd;

	if (!make_address(&address))
		return;
	fd = pick_socket(&type);
	say_result(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	if (type == SOCK_DGRAM)
		say_result(sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)));
	close(fd);
}

const struct op process_ops[] = {
	{ "fork", "fork", 2, op_fork },
	{ "replace", "fork", 1, op_replace },
	{ "umask", "umask", 2, op_umask },
	{ "flock", "locks", 2, op_flock },
	{ "setlk", "locks", 3, op_setlk },
	{ "bind", "sockets", 2, op_bind },
	{ "connect", "sockets", 2, op_connect },
	{ NULL, NULL, 0, NULL },
};
