/* ops_meta.c - operations on what is known about a file. */
#include "tests/model/model.h"

#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static void say_stat_result(long result, const struct stat *st)
{
	say_result(result);
	if (result == 0)
		say_stat(st);
}

/* The same file asked in several ways must be told the same. */
static void compare_ways(const struct where *where, int flags, const struct stat *st)
{
	struct statx stx;
	struct stat by_fd;
	int fd;

	if (statx(where->dirfd, where->path, flags, STATX_BASIC_STATS, &stx))
		say(" statx differs: %s", strerrorname_np(errno));
	else if (stx.stx_ino != st->st_ino || stx.stx_mode != st->st_mode || stx.stx_nlink != st->st_nlink ||
		 stx.stx_size != (uint64_t)st->st_size || stx.stx_mtime.tv_nsec != st->st_mtim.tv_nsec ||
		 makedev(stx.stx_dev_major, stx.stx_dev_minor) != st->st_dev)
		say(" statx differs");
	fd = openat(where->dirfd, where->path, O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
	if (fd < 0) {
		say(" opath %s", strerrorname_np(errno));
		return;
	}
	if (fstat(fd, &by_fd) || by_fd.st_ino != st->st_ino || by_fd.st_dev != st->st_dev || by_fd.st_nlink != st->st_nlink)
		say(" fstat differs");
	close(fd);
}

static void op_stat(void)
{
	int flags = chance(50) ? AT_SYMLINK_NOFOLLOW : 0;
	struct where where;
	struct stat st;
	long result;

	pick_path(&where, 0);
	say(" %s %d", where.shown, flags);
#ifdef SYS_stat
	if (where.dirfd == AT_FDCWD && chance(50))
		result = syscall(flags ? SYS_lstat : SYS_stat, where.path, &st);
	else
#endif
		result = fstatat(where.dirfd, where.path, &st, flags);
	say_stat_result(result, &st);
	if (result == 0)
		compare_ways(&where, flags, &st);
}

static void op_fstat(void)
{
	int fd = self.slot[pick_slot()];
	struct stat st, again;
	long result = fstat(fd, &st);

	say(" %d", fd);
	say_stat_result(result, &st);
	if (result == 0 && (fstatat(fd, "", &again, AT_EMPTY_PATH) || again.st_ino != st.st_ino || again.st_nlink != st.st_nlink))
		say(" fstatat differs");
}

static void op_statx(void)
{
	static const int choices[] = { 0, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, AT_STATX_FORCE_SYNC, AT_STATX_DONT_SYNC, 0x6000,
				       0x1 };
	int flags = choices[pick(7)];
	struct where where;
	struct statx stx;
	long result;

	pick_path(&where, 0);
	say(" %s %#x", where.shown, (unsigned)flags);
	result = syscall(SYS_statx, where.dirfd, where.path, flags, chance(95) ? STATX_BASIC_STATS | STATX_BTIME : 0x80000000u, &stx);
	say_result(result);
	if (result == 0) {
		struct stat st = { .st_mode = stx.stx_mode, .st_nlink = stx.stx_nlink, .st_uid = stx.stx_uid, .st_gid = stx.stx_gid,
				   .st_size = (off_t)stx.stx_size,
				   .st_mtim = { (time_t)stx.stx_mtime.tv_sec, (long)stx.stx_mtime.tv_nsec } };

		say_stat(&st);
		say(" %#x %#llx", stx.stx_mask & STATX_BASIC_STATS, (unsigned long long)stx.stx_attributes & ~0x200000ull);
	}
}

/* Which file system it is, is not compared; only what holds for all of them. */
static void op_statfs(void)
{
	struct where where;
	struct statfs fs;
	long result;

	pick_path(&where, 0);
	say(" cwd %s", where.shown);
	result = statfs(where.path, &fs);
	say_result(result);
	if (result == 0)
		say(" %ld", (long)fs.f_namelen);
}

static void op_access(void)
{
	static const int choices[] = { 0, AT_EACCESS, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, AT_EACCESS | AT_SYMLINK_NOFOLLOW, 0x800 };
	int mode = chance(97) ? (int)pick(8) : 8, flags = choices[pick(6)];
	struct where where;
	long result;

	pick_path(&where, 0);
	say(" %s %d", where.shown, mode);
	if (chance(30)) {
		say(" %#x", (unsigned)flags);
		result = syscall(SYS_faccessat2, where.dirfd, where.path, mode, flags);
	} else {
		result = syscall(SYS_faccessat, where.dirfd, where.path, mode);
	}
#ifdef SYS_access
	if (where.dirfd == AT_FDCWD && syscall(SYS_access, where.path, mode) != syscall(SYS_faccessat, AT_FDCWD, where.path, mode))
		say(" access differs");
#endif
	say_result(result);
}

static void op_chmod(void)
{
	mode_t mode = pick_mode();
	struct where where;
	long result;

	pick_path(&where, 0);
	say(" %s %04o", where.shown, mode);
#ifdef SYS_chmod
	if (where.dirfd == AT_FDCWD && chance(50))
		result = syscall(SYS_chmod, where.path, mode);
	else
#endif
		result = syscall(SYS_fchmodat, where.dirfd, where.path, mode);
	say_result(result);
}

static void op_fchmod(void)
{
	int fd = self.slot[pick_slot()];
	mode_t mode = pick_mode();

	say(" %d %04o", fd, mode);
	say_result(fchmod(fd, mode));
}

static void op_fchmodat2(void)
{
	static const int choices[] = { 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, AT_EMPTY_PATH, 1 };
	int flags = choices[pick(5)];
	mode_t mode = pick_mode();
	struct where where;

	pick_path(&where, 0);
	say(" %s %04o %#x", where.shown, mode, (unsigned)flags);
	say_result(syscall(SYS_fchmodat2, where.dirfd, where.path, mode, flags));
	if (flags & AT_EMPTY_PATH) {
		int fd = self.slot[pick_slot()];

		say(" %d", fd);
		say_result(syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH));
	}
}

/* To oneself, or to the other owner that the tree has: one of both is refused without privilege. */
static void op_chown(void)
{
	static const int choices[] = { 0, 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 1 };
	uid_t uid = chance(30) ? (uid_t)-1 : chance(60) ? geteuid() : 65534;
	gid_t gid = chance(30) ? (gid_t)-1 : chance(60) ? getegid() : 65534;
	int flags = choices[pick(5)];
	struct where where;
	long result;

	if (chance(25)) {
		int fd = self.slot[pick_slot()];

		say(" fd %d %d:%d", fd, (int)uid, (int)gid);
		say_result(fchown(fd, uid, gid));
		return;
	}
	pick_path(&where, 0);
	say(" %s %d:%d %#x", where.shown, (int)uid, (int)gid, (unsigned)flags);
#ifdef SYS_chown
	if (where.dirfd == AT_FDCWD && !(flags & ~AT_SYMLINK_NOFOLLOW) && chance(50))
		result = syscall(flags ? SYS_lchown : SYS_chown, where.path, uid, gid);
	else
#endif
		result = syscall(SYS_fchownat, where.dirfd, where.path, uid, gid, flags);
	say_result(result);
}

static void pick_time(struct timespec *time)
{
	static const long special[] = { UTIME_NOW, UTIME_OMIT, UTIME_OMIT, 1000000000, -1 };

	time->tv_sec = 100000000 + (time_t)pick(1000000000);
	time->tv_nsec = chance(50) ? (long)pick(1000000000) : chance(50) ? 0 : special[pick(5)];
}

static void op_utimens(void)
{
	static const int choices[] = { 0, 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 1 };
	struct timespec times[2], *given = times;
	int flags = choices[pick(5)];
	struct where where;

	pick_time(&times[0]);
	pick_time(&times[1]);
	if (chance(15))
		given = NULL;
	say(" %lld.%ld%s", (long long)times[1].tv_sec, times[1].tv_nsec, given ? "" : " none");
	if (chance(30)) {
		int fd = self.slot[pick_slot()];

		say(" fd %d", fd);
		say_result(syscall(SYS_utimensat, fd, NULL, given, 0));
		return;
	}
	pick_path(&where, 0);
	say(" %s %#x", where.shown, (unsigned)flags);
	say_result(syscall(SYS_utimensat, where.dirfd, where.path, given, flags));
}

/* The calls of older days. */
static void op_utimes(void)
{
	struct timeval times[2] = { { 100000000 + (time_t)pick(1000000000), (suseconds_t)pick(1000000) },
				    { 100000000 + (time_t)pick(1000000000), (suseconds_t)pick(1000100) } };
	struct utimbuf buf = { times[0].tv_sec, times[1].tv_sec };
	unsigned how = pick(3);
	struct where where;
	long result = -1;

	pick_path(&where, 0);
	say(" %u %s %lld.%06ld", how, where.shown, (long long)times[1].tv_sec, (long)times[1].tv_usec);
#ifdef SYS_utimes
	if (how == 0)
		result = syscall(SYS_utimes, where.path, times);
	else if (how == 1)
		result = syscall(SYS_utime, where.path, &buf);
	else
		result = syscall(SYS_futimesat, where.dirfd, where.path, times);
#else
	result = how ? utimes(where.path, times) : utime(where.path, &buf);
#endif
	say_result(result);
}

static const char *pick_attribute(void)
{
	static char long_name[300];
	static const char *const names[] = { "user.a", "user.a", "user.b", "user.b", "user.c", "user.c", "user.", "bogus.x", "user",
					     "" };
	unsigned kind = pick(40);

	if (kind > 1)
		return names[kind % 20 < 17 ? kind % 6 : kind % 10];
	snprintf(long_name, sizeof(long_name), "user.%0*d", kind ? 250 : 251, 0);
	return long_name;
}

/* A file by path, by path without following, or by descriptor. */
enum by { BY_PATH, BY_LINK, BY_FD };

static enum by pick_by(struct where *where, int *fd)
{
	enum by by = (enum by)pick(3);

	*fd = self.slot[pick_slot()];
	pick_path_to(where, 0, "-d");
	if (by == BY_FD)
		say(" %d", *fd);
	else
		say(" cwd %s%s", where->shown, by == BY_LINK ? " l" : "");
	return by;
}

static void op_setxattr(void)
{
	static const int choices[] = { 0, 0, 0, XATTR_CREATE, XATTR_REPLACE, XATTR_CREATE | XATTR_REPLACE, 8 };
	const char *name = pick_attribute();
	unsigned char value[100];
	size_t len = pick(sizeof(value));
	int flags = choices[pick(7)], fd;
	struct where where;
	enum by by;

	pick_data(value, len);
	by = pick_by(&where, &fd);
	say(" ");
	say_text(name);
	say(" %zu %d", len, flags);
	if (by == BY_FD)
		say_result(fsetxattr(fd, name, value, len, flags));
	else if (by == BY_LINK)
		say_result(lsetxattr(where.path, name, value, len, flags));
	else
		say_result(setxattr(where.path, name, value, len, flags));
}

static void op_getxattr(void)
{
	const char *name = pick_attribute();
	unsigned char value[256];
	size_t room = chance(60) ? sizeof(value) : chance(50) ? 0 : pick(100);
	struct where where;
	enum by by;
	ssize_t got;
	int fd;

	by = pick_by(&where, &fd);
	say(" ");
	say_text(name);
	say(" %zu", room);
	if (by == BY_FD)
		got = fgetxattr(fd, name, value, room);
	else if (by == BY_LINK)
		got = lgetxattr(where.path, name, value, room);
	else
		got = getxattr(where.path, name, value, room);
	say_result(got);
	if (got > 0 && room)
		say(" #%08llx", (unsigned long long)(hash_bytes(HASH_START, value, (size_t)got) & 0xffffffffull));
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void op_listxattr(void)
{
	char list[4096], *names[64];
	size_t room = chance(70) ? sizeof(list) : chance(50) ? 0 : pick(20), count = 0;
	struct where where;
	enum by by;
	ssize_t got;
	int fd;

	by = pick_by(&where, &fd);
	say(" %zu", room);
	if (by == BY_FD)
		got = flistxattr(fd, list, room);
	else if (by == BY_LINK)
		got = llistxattr(where.path, list, room);
	else
		got = listxattr(where.path, list, room);
	say_result(got);
	if (got <= 0 || !room)
		return;
	for (char *at = list; at < list + got && count < 64; at += strlen(at) + 1)
		names[count++] = at;
	qsort(names, count, sizeof(names[0]), compare_text);
	for (size_t i = 0; i < count; i++) {
		say(" ");
		say_text(names[i]);
	}
}

static void op_removexattr(void)
{
	const char *name = pick_attribute();
	struct where where;
	enum by by;
	int fd;

	by = pick_by(&where, &fd);
	say(" ");
	say_text(name);
	if (by == BY_FD)
		say_result(fremovexattr(fd, name));
	else if (by == BY_LINK)
		say_result(lremovexattr(where.path, name));
	else
		say_result(removexattr(where.path, name));
}

const struct op meta_ops[] = {
	{ "stat", "stat", 14, op_stat },
	{ "fstat", "stat", 5, op_fstat },
	{ "statx", "stat", 4, op_statx },
	{ "statfs", "stat", 1, op_statfs },
	{ "access", "access", 5, op_access },
	{ "chmod", "chmod", 5, op_chmod },
	{ "fchmod", "chmod", 3, op_fchmod },
	{ "fchmodat2", "chmod", 3, op_fchmodat2 },
	{ "chown", "chown", 3, op_chown },
	{ "utimens", "utimens", 5, op_utimens },
	{ "utimes", "utimens", 2, op_utimes },
	{ "setxattr", "xattr", 5, op_setxattr },
	{ "getxattr", "xattr", 3, op_getxattr },
	{ "listxattr", "xattr", 3, op_listxattr },
	{ "removexattr", "xattr", 2, op_removexattr },
	{ NULL, NULL, 0, NULL },
};
