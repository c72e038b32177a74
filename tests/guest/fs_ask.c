/* fs_ask.c - the calls that ask about files, by each of their doors: flags and errors, attributes, listings, names of sockets. */
#define _FILE_OFFSET_BITS 64
#include "guest.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define FAILS(call, error)                                                                                                 \
	do {                                                                                                               \
		errno = 0;                                                                                                 \
		CHECK((call) < 0);                                                                                         \
		CHECK_EQ(errno, error);                                                                                    \
	} while (0)

static void want_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	MUST(fd >= 0 && write(fd, "text", 4) == 4);
	close(fd);
}

/* A folder with a file, a link to it, a folder; some may have been there before. */
static void want_tree(void)
{
	mkdir("dir", 0755);
	want_file("dir/file");
	(void)!symlink("file", "dir/link");
	mkdir("dir/sub", 0755);
}

/* --- stat -------------------------------------------------------------------------------------------------------------- */

static long newfstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return syscall(SYS_newfstatat, dirfd, path, st, flags);
}

static int test_stat(int argc, char **argv)
{
	struct stat st, by_fd;
	int dir, link;

	want_tree();
	dir = open("dir", O_RDONLY | O_DIRECTORY);
	link = open("dir/link", O_PATH | O_NOFOLLOW);
	MUST(dir >= 0 && link >= 0);
	CHECK(newfstatat(dir, "file", &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_size == 4);
	CHECK(newfstatat(dir, "link", &st, 0) == 0 && S_ISREG(st.st_mode));
	CHECK(newfstatat(dir, "link", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
	CHECK(newfstatat(link, "", &st, AT_EMPTY_PATH) == 0 && S_ISLNK(st.st_mode) && st.st_size == 4);
	CHECK(newfstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH) == 0 && S_ISDIR(st.st_mode));
	CHECK(newfstatat(dir, "", &by_fd, AT_EMPTY_PATH) == 0 && stat("dir", &st) == 0);
	CHECK_EQ(by_fd.st_ino, st.st_ino);
	FAILS(newfstatat(dir, "", &st, 0), ENOENT);
	FAILS(newfstatat(99, "file", &st, 0), EBADF);
	FAILS(newfstatat(99, "", &st, AT_EMPTY_PATH), EBADF);
	FAILS(newfstatat(dir, "file/", &st, 0), ENOTDIR);
	FAILS(newfstatat(dir, "file/x", &st, 0), ENOTDIR);
	FAILS(newfstatat(dir, "no", &st, 0), ENOENT);
	FAILS(newfstatat(dir, "file", &st, 0x40000), EINVAL);
	FAILS(newfstatat(dir, "file", (struct stat *)8, 0), EFAULT);
	FAILS(newfstatat(dir, (char *)8, &st, 0), EFAULT);
	return 0;
}

static int test_statx(int argc, char **argv)
{
	struct statx st;
	int dir;

	want_tree();
	dir = open("dir", O_RDONLY | O_DIRECTORY);
	MUST(dir >= 0);
	CHECK(statx(dir, "file", 0, STATX_BASIC_STATS, &st) == 0 && st.stx_size == 4 && !(st.stx_mask & STATX_BTIME));
	CHECK(statx(dir, "link", AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &st) == 0 && S_ISLNK(st.stx_mode));
	CHECK(statx(dir, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_ALL, &st) == 0 && S_ISDIR(st.stx_mode));
	FAILS(statx(dir, "file", AT_STATX_SYNC_TYPE, STATX_ALL, &st), EINVAL);
	FAILS(statx(dir, "file", 0x40000, STATX_ALL, &st), EINVAL);
	FAILS(statx(dir, "file", 0, 0x80000000U, &st), EINVAL);
	FAILS(syscall(SYS_statx, dir, "file", 0, STATX_ALL, NULL), EFAULT);
	FAILS(statx(99, "", AT_EMPTY_PATH, STATX_ALL, &st), EBADF);
	return 0;
}

static int test_access(int argc, char **argv)
{
	char buf[64], small[2];
	int dir, link, fd;

	want_tree();
	dir = open("dir", O_RDONLY | O_DIRECTORY);
	link = open("dir/link", O_PATH | O_NOFOLLOW);
	fd = open("dir/file", O_RDONLY);
	MUST(dir >= 0 && link >= 0 && fd >= 0);
	CHECK(access("dir/file", R_OK | W_OK) == 0 && access("dir", X_OK) == 0);
	CHECK(syscall(SYS_faccessat2, fd, "", R_OK, AT_EMPTY_PATH | AT_EACCESS) == 0);
	FAILS(access("dir/file", X_OK), EACCES);
	FAILS(access("dir/file", 8), EINVAL);
	FAILS(syscall(SYS_faccessat2, dir, "file", R_OK, 0x1), EINVAL);
	FAILS(access("dir/no", F_OK), ENOENT);
	CHECK_EQ(readlink("dir/link", buf, sizeof(buf)), 4);
	CHECK_EQ(readlink("dir/link", small, sizeof(small)), 2);
	CHECK_EQ(readlinkat(link, "", buf, sizeof(buf)), 4);
	FAILS(readlink("dir/link", buf, 0), EINVAL);
	FAILS(readlink("dir/file", buf, sizeof(buf)), EINVAL);
	FAILS(readlinkat(fd, "", buf, sizeof(buf)), ENOENT);
	FAILS(readlinkat(dir, "", buf, sizeof(buf)), ENOENT);
	FAILS(syscall(SYS_readlinkat, AT_FDCWD, "dir/link", 8L, 64), EFAULT);
	return 0;
}

static int test_getcwd(int argc, char **argv)
{
	char here[4096], there[4096], long_name[251];
	long n = syscall(SYS_getcwd, here, sizeof(here));

	MUST(n > 0);
	CHECK_EQ(strlen(here) + 1, n);
	FAILS(syscall(SYS_getcwd, there, n - 1), ERANGE);
	CHECK_EQ(syscall(SYS_getcwd, there, n), n);
	want_tree();
	CHECK(mkdir("gone", 0755) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
	FAILS(syscall(SYS_getcwd, there, sizeof(there)), ENOENT);
	CHECK(chdir(here) == 0 && chdir("dir") == 0 && rename("../dir", "../moved") == 0);
	CHECK(syscall(SYS_getcwd, there, sizeof(there)) > 0 && !strcmp(strrchr(there, '/'), "/moved"));
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	for (int i = 0; i < 18; i++)
		MUST(mkdir(long_name, 0755) == 0 && chdir(long_name) == 0);
	FAILS(syscall(SYS_getcwd, there, sizeof(there)), ENAMETOOLONG);
	return 0;
}

/* --- extended attributes --------------------------------------------------------------------------------------------------- */

static int test_xattr(int argc, char **argv)
{
	static char value[65537], back[65536];
	char name[300] = "user.", list[512];
	int fd, path;

	want_tree();
	fd = open("dir/file", O_RDONLY);
	path = open("dir/file", O_PATH);
	MUST(fd >= 0 && path >= 0);
	if (setxattr("dir/file", "user.a", "1", 1, XATTR_CREATE) && errno == EOPNOTSUPP)
		return GUEST_SKIP;
	FAILS(setxattr("dir/file", "user.a", "2", 1, XATTR_CREATE), EEXIST);
	FAILS(setxattr("dir/file", "user.b", "2", 1, XATTR_REPLACE), ENODATA);
	FAILS(setxattr("dir/file", "user.b", "2", 1, 4), EINVAL);
	FAILS(setxattr("dir/file", "user.b", value, sizeof(value), 0), E2BIG);
	FAILS(setxattr("dir/file", "", "2", 1, 0), ERANGE);
	memset(name + 5, 'x', 251);
	FAILS(setxattr("dir/file", name, "2", 1, 0), ERANGE);
	name[255] = 0;
	CHECK(setxattr("dir/file", name, "long", 4, 0) == 0 && getxattr("dir/link", name, back, sizeof(back)) == 4);
	CHECK(fsetxattr(fd, "user.f", "fd", 2, 0) == 0 && getxattr("dir/file", "user.f", back, 2) == 2 && !memcmp(back, "fd", 2));
	FAILS(fsetxattr(path, "user.f", "fd", 2, 0), EBADF);
	FAILS(fsetxattr(99, "user.f", "fd", 2, 0), EBADF);
	FAILS(getxattr("dir/file", "user.f", back, 1), ERANGE);
	CHECK_EQ(getxattr("dir/file", "user.f", NULL, 0), 2);
	FAILS(getxattr("dir/file", "user.none", back, 9), ENODATA);
	FAILS(lsetxattr("dir/link", "user.l", "1", 1, 0), EPERM);
	CHECK_EQ(listxattr("dir/file", NULL, 0), (long)(strlen(name) + 1 + 7 + 7));
	CHECK_EQ(llistxattr("dir/file", list, sizeof(list)), (long)(strlen(name) + 1 + 7 + 7));
	FAILS(listxattr("dir/file", list, 3), ERANGE);
	memset(value, 'v', sizeof(value));
	if (setxattr("dir/file", "user.big", value, 65536, 0) == 0) { /* not on every file system */
		CHECK_EQ(getxattr("dir/file", "user.big", back, sizeof(back)), 65536);
		CHECK(!memcmp(value, back, sizeof(back)));
	}
	CHECK(fremovexattr(fd, "user.f") == 0 && removexattr("dir/file", "user.a") == 0);
	FAILS(fremovexattr(fd, "user.f"), ENODATA);
	FAILS(lremovexattr("dir/file", "user.a"), ENODATA);
	return 0;
}

/* --- listings -------------------------------------------------------------------------------------------------------------- */

struct dent64 {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

enum { FILES = 200 };

static void want_files(void)
{
	char name[16];

	mkdir("many", 0755);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "many/f%03d", i);
		close(open(name, O_WRONLY | O_CREAT, 0644));
	}
}

/* Reads the rest by buffers of SIZE; how many files were seen, each once. */
static int read_all(int fd, size_t size, unsigned char seen[FILES])
{
	unsigned char buf[1024];
	int count = 0, n;
	long got;

	while ((got = syscall(SYS_getdents64, fd, buf, size)) > 0) {
		for (long at = 0; at < got;) {
			const struct dent64 *dent = (const void *)(buf + at);

			if (sscanf(dent->name, "f%d", &n) == 1) {
				CHECK_EQ(seen[n]++, 0);
				count++;
			}
			at += dent->reclen;
		}
	}
	CHECK_EQ(got, 0);
	return count;
}

static int test_list(int argc, char **argv)
{
	unsigned char seen[FILES] = { 0 }, buf[1024];
	const struct dent64 *dent = (const void *)buf;
	int fd, file, pipes[2], dup_fd, first;
	int64_t after;

	want_files();
	fd = open("many", O_RDONLY | O_DIRECTORY);
	file = open("many/f000", O_RDONLY);
	MUST(fd >= 0 && file >= 0 && pipe(pipes) == 0);
	FAILS(syscall(SYS_getdents64, fd, buf, 8), EINVAL);
	FAILS(syscall(SYS_getdents64, file, buf, sizeof(buf)), ENOTDIR);
	FAILS(syscall(SYS_getdents64, pipes[0], buf, sizeof(buf)), ENOTDIR);
	FAILS(syscall(SYS_getdents64, 99, buf, sizeof(buf)), EBADF);
	FAILS(syscall(SYS_getdents64, open("many", O_PATH), buf, sizeof(buf)), EBADF);
	FAILS(syscall(SYS_getdents64, fd, (void *)8, 1024), EFAULT);
	CHECK_EQ(read_all(fd, 32, seen), FILES);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	memset(seen, 0, sizeof(seen));
	dup_fd = dup(fd);
	MUST(syscall(SYS_getdents64, fd, buf, 32) > 0);
	first = dent->name[0] == 'f';
	after = dent->off;
	CHECK_EQ(lseek(dup_fd, 0, SEEK_CUR), after);
	CHECK_EQ(read_all(dup_fd, 300, seen), FILES - first);
	CHECK_EQ(syscall(SYS_getdents64, fd, buf, sizeof(buf)), 0);
	lseek(fd, after, SEEK_SET);
	memset(seen, 0, sizeof(seen));
	CHECK_EQ(read_all(fd, 1000, seen), FILES - first);
	return 0;
}

static int test_list_removed(int argc, char **argv)
{
	unsigned char buf[64];
	int fd;

	CHECK(mkdir("brief", 0755) == 0);
	fd = open("brief", O_RDONLY | O_DIRECTORY);
	CHECK(rmdir("brief") == 0);
	FAILS(syscall(SYS_getdents64, fd, buf, sizeof(buf)), ENOENT);
	return 0;
}

#if defined(__x86_64__)
static long int80(long nr, long a, long b, long c, long d)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d) : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

/* A kernel without the 32-bit ABI kills who tries it. */
static bool has_int80(void)
{
	pid_t pid = guest_fork();

	if (pid == 0)
		_exit(int80(20, 0, 0, 0, 0) == getpid() ? 0 : 1);
	return guest_wait(pid) == 0;
}

/* getdents, readdir, stat64, statfs64, getsockname by socketcall, with 32-bit structures in low memory. */
static int test_compat(int argc, char **argv)
{
	unsigned char *low = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	char *path = (char *)low + 32768;
	uint32_t *words = (uint32_t *)(low + 40960);
	int fd, count = 0, sock;
	struct sockaddr_un *name = (struct sockaddr_un *)(low + 49152);
	struct stat st;
	long got;

	MUST(low != MAP_FAILED);
	if (!has_int80())
		return GUEST_SKIP;
	want_files();
	fd = open("many", O_RDONLY | O_DIRECTORY);
	while ((got = int80(141, fd, (long)low, 40, 0)) > 0)
		for (long at = 0; at < got; at += *(uint16_t *)(low + at + 8))
			count += low[at + 10] == 'f';
	CHECK_EQ(got, 0);
	CHECK_EQ(count, FILES);
	lseek(fd, 0, SEEK_SET);
	for (count = 0; (got = int80(89, fd, (long)low, 1, 0)) > 0;)
		count += low[10] == 'f';
	CHECK_EQ(count, FILES);
	strcpy(path, "many/f007");
	CHECK_EQ(int80(195, (long)path, (long)low, 0, 0), 0);
	CHECK(stat(path, &st) == 0);
	CHECK_EQ(*(uint64_t *)(low + 88), st.st_ino);
	CHECK_EQ(int80(268, (long)path, 84, (long)low, 0), 0);
	CHECK_EQ(*(uint32_t *)(low + 56), 255);
	CHECK_EQ(int80(268, (long)path, 88, (long)low, 0), -EINVAL);
	sock = socket(AF_UNIX, SOCK_STREAM, 0);
	name->sun_family = AF_UNIX;
	strcpy(name->sun_path, "many/sock");
	memcpy(words, (uint32_t[]){ (uint32_t)sock, (uint32_t)(uintptr_t)name, sizeof(*name) }, 12);
	CHECK_EQ(int80(102, 2, (long)words, 0, 0), 0); /* bind */
	memcpy(words, (uint32_t[]){ (uint32_t)sock, (uint32_t)(uintptr_t)low, (uint32_t)(uintptr_t)(words + 8) }, 12);
	words[8] = 110;
	CHECK_EQ(int80(102, 6, (long)words, 0, 0), 0); /* getsockname */
	CHECK(words[8] == 2 + 9 + 1 && !strcmp((char *)low + 2, "many/sock"));
	CHECK(stat("many/sock", &st) == 0 && S_ISSOCK(st.st_mode));
	unlink("many/sock");
	return 0;
}
#endif

/* --- sockets --------------------------------------------------------------------------------------------------------------- */

static socklen_t name_of(struct sockaddr_un *name, const char *path)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	memcpy(name->sun_path, path, strnlen(path, sizeof(name->sun_path)));
	return sizeof(*name);
}

static void check_name(int (*ask)(int, struct sockaddr *, socklen_t *), int fd, const char *path)
{
	char buf[130] = { 0 };
	socklen_t len = sizeof(buf);

	CHECK(ask(fd, (struct sockaddr *)buf, &len) == 0);
	CHECK_EQ(len, *path ? 2 + strlen(path) + 1 : 2);
	CHECK(!strcmp(buf + 2, path));
}

static int test_sockets(int argc, char **argv)
{
	char longest[109], data[8];
	const char *const paths[] = { "dir/sock", longest };
	struct sockaddr_un name;
	struct stat st;
	int server, client, conn;
	socklen_t len;

	want_tree();
	umask(027);
	memset(longest, 'l', 108);
	longest[108] = 0;
	for (int i = 0; i < 2; i++) {
		len = name_of(&name, paths[i]);
		server = socket(AF_UNIX, SOCK_STREAM, 0);
		client = socket(AF_UNIX, SOCK_STREAM, 0);
		FAILS(connect(client, (struct sockaddr *)&name, len), ENOENT);
		CHECK(bind(server, (struct sockaddr *)&name, len) == 0);
		FAILS(bind(server, (struct sockaddr *)&name, len), EADDRINUSE);
		FAILS(connect(client, (struct sockaddr *)&name, len), ECONNREFUSED);
		CHECK(listen(server, 1) == 0 && connect(client, (struct sockaddr *)&name, len) == 0);
		conn = accept(server, NULL, NULL);
		CHECK(write(client, "hello", 5) == 5 && read(conn, data, 5) == 5);
		check_name(getsockname, server, paths[i]);
		check_name(getsockname, conn, paths[i]);
		check_name(getpeername, client, paths[i]);
		check_name(getpeername, conn, "");
		CHECK(lstat(paths[i], &st) == 0 && st.st_mode == (S_IFSOCK | 0750) && st.st_nlink == 1);
		len = name_of(&name, "dir/other");
		FAILS(bind(server, (struct sockaddr *)&name, len), EINVAL);
		FAILS(lstat("dir/other", &st), ENOENT);
		CHECK(unlink(paths[i]) == 0);
		close(server), close(client), close(conn);
	}
	server = socket(AF_UNIX, SOCK_STREAM, 0);
	len = name_of(&name, "no/sock");
	FAILS(bind(server, (struct sockaddr *)&name, len), ENOENT);
	len = name_of(&name, "dir/file/sock");
	FAILS(bind(server, (struct sockaddr *)&name, len), ENOTDIR);
	len = name_of(&name, "dir/link");
	FAILS(bind(server, (struct sockaddr *)&name, len), EADDRINUSE);
	FAILS(connect(server, (struct sockaddr *)&name, len), ECONNREFUSED);
	FAILS(bind(server, (struct sockaddr *)&name, 111), EINVAL);
	FAILS(bind(server, (struct sockaddr *)8, len), EFAULT);
	FAILS(bind(open("dir/file", O_RDONLY), (struct sockaddr *)&name, len), ENOTSOCK);
	return 0;
}

static int test_datagrams(int argc, char **argv)
{
	int server = socket(AF_UNIX, SOCK_DGRAM, 0), client = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sockaddr_un name, from;
	socklen_t len, from_len = sizeof(from);
	char data[8];
	struct iovec part = { (char *)"text", 4 };
	struct msghdr message = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = &part, .msg_iovlen = 1 };

	want_tree();
	len = name_of(&name, "dir/client");
	CHECK(bind(client, (struct sockaddr *)&name, len) == 0);
	len = name_of(&name, "dir/server");
	CHECK(bind(server, (struct sockaddr *)&name, len) == 0);
	CHECK_EQ(sendto(client, "ask", 3, 0, (struct sockaddr *)&name, len), 3);
	CHECK_EQ(recvfrom(server, data, sizeof(data), 0, (struct sockaddr *)&from, &from_len), 3);
	CHECK_EQ(sendto(server, "answer", 6, 0, (struct sockaddr *)&from, from_len), 6);
	CHECK_EQ(recv(client, data, sizeof(data), 0), 6);
	CHECK_EQ(sendmsg(client, &message, 0), 4);
	CHECK_EQ(recv(server, data, sizeof(data), 0), 4);
	message.msg_namelen = 0;
	FAILS(sendmsg(client, &message, 0), ENOTCONN);
	CHECK(connect(client, (struct sockaddr *)&name, len) == 0 && send(client, "more", 4, 0) == 4);
	CHECK_EQ(recv(server, data, sizeof(data), 0), 4);
	message.msg_namelen = sizeof(name);
	name_of(&name, "dir/none");
	FAILS(sendmsg(client, &message, 0), ENOENT);
	CHECK(unlink("dir/server") == 0 && unlink("dir/client") == 0);
	return 0;
}

/* --- watching -------------------------------------------------------------------------------------------------------------- */

static int test_watch(int argc, char **argv)
{
	int watch = inotify_init1(IN_NONBLOCK);
	char buf[512] __attribute__((aligned(8)));
	const struct inotify_event *event = (const void *)buf;

	want_tree();
	CHECK(inotify_add_watch(watch, "dir", IN_CREATE) > 0);
	want_file("dir/new");
	CHECK(read(watch, buf, sizeof(buf)) > 0 && event->mask == IN_CREATE && !strcmp(event->name, "new"));
	CHECK(unlink("dir/new") == 0);
	FAILS(inotify_add_watch(watch, "dir/file", IN_MODIFY | IN_ONLYDIR), ENOTDIR);
	FAILS(inotify_add_watch(watch, "dir", 0), EINVAL);
	FAILS(inotify_add_watch(watch, "none", IN_CREATE), ENOENT);
	FAILS(inotify_add_watch(99, "dir", IN_CREATE), EBADF);
	FAILS(inotify_add_watch(0, "dir", IN_CREATE), EINVAL);
	CHECK(inotify_add_watch(watch, "dir/link", IN_ATTRIB | IN_DONT_FOLLOW) > 0);
	return 0;
}

static const struct test tests[] = {
	{ "stat", test_stat }, { "statx", test_statx }, { "access", test_access }, { "getcwd", test_getcwd }, { "xattr", test_xattr },
	{ "list", test_list }, { "list_removed", test_list_removed },
#if defined(__x86_64__)
	{ "compat", test_compat },
#endif
	{ "sockets", test_sockets }, { "datagrams", test_datagrams }, { "watch", test_watch }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
