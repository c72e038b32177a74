/* ops_file.c - operations on open files. */
#include "tests/model/model.h"

#include <setjmp.h>
#include <signal.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static int pick_flags(void)
{
	static const struct {
		int flag;
		unsigned percent;
	} bits[] = {
		{ O_CREAT, 40 }, { O_EXCL, 8 }, { O_TRUNC, 12 }, { O_APPEND, 15 }, { O_DIRECTORY, 10 }, { O_NOFOLLOW, 8 },
		{ O_PATH, 7 }, { O_TMPFILE, 3 }, { O_CLOEXEC, 20 }, { O_NOATIME, 2 }, { O_DSYNC, 1 },
	};
	static const int modes[] = { O_RDONLY, O_RDONLY, O_RDONLY, O_RDWR, O_RDWR, O_RDWR, O_WRONLY, O_WRONLY };
	int flags = O_NONBLOCK | (chance(1) ? O_ACCMODE : modes[pick(8)]); /* a FIFO must not block */

	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (chance(bits[i].percent))
			flags |= bits[i].flag;
	return flags;
}

static void say_opened(int fd)
{
	int index = pick_free_slot();
	struct stat st;

	say_result(fd);
	if (fd < 0)
		return;
	say(" flags %o %d", (unsigned)fcntl(fd, F_GETFL) & ~(0100000u | O_NOFOLLOW | O_TMPFILE), fcntl(fd, F_GETFD));
	if (!fstat(fd, &st))
		say_stat(&st);
	slot_put(index, fd);
}

/* Whether a file without a name is asked for in a folder that is removed: some file systems allow that. */
static bool in_removed(const struct where *where, uint64_t flags)
{
	struct stat st;

	if ((flags & O_TMPFILE) != O_TMPFILE || fstatat(where->dirfd, where->path, &st, AT_EMPTY_PATH) || st.st_nlink)
		return false;
	say(" removed");
	return true;
}

static void op_open(void)
{
	int flags = pick_flags();
	mode_t mode = pick_mode();
	struct where where;
	int fd;

	if (flags & O_CREAT)
		pick_new_path(&where, 0);
	else
		pick_path_to(&where, 0, flags & O_DIRECTORY ? "d" : "-d");
	say(" %s %o %04o", where.shown, (unsigned)flags, mode);
	if (in_removed(&where, (uint64_t)flags))
		return;
#ifdef SYS_open
	if (where.dirfd == AT_FDCWD && chance(50)) {
		fd = (int)syscall(SYS_open, where.path, flags, mode);
		say_opened(fd);
		return;
	}
#endif
	fd = (int)syscall(SYS_openat, where.dirfd, where.path, flags, mode);
	say_opened(fd);
}

/* By resolve flags; EAGAIN means that something was renamed meanwhile, anywhere on the host. */
static void open_resolved(uint64_t extra)
{
	static const uint64_t bits[] = { RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS };
	struct open_how how = { .flags = (uint64_t)pick_flags(), .resolve = extra };
	struct where where;
	int fd, tries = 0;

	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (chance(25))
			how.resolve |= bits[i];
	if (chance(2))
		how.resolve |= 0x100;
	if (how.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) || chance(2))
		how.mode = pick_mode();
	pick_path(&where, 0);
	say(" %s %llo %04llo %#llx", where.shown, (unsigned long long)how.flags, (unsigned long long)how.mode,
		(unsigned long long)how.resolve);
	if (in_removed(&where, how.flags))
		return;
	do {
		fd = (int)syscall(SYS_openat2, where.dirfd, where.path, &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN && ++tries < 1000);
	say_opened(fd);
}

static void op_openat2(void)
{
	open_resolved(0);
}

static void op_openat2_xdev(void)
{
	open_resolved(RESOLVE_NO_XDEV);
}

static void op_creat(void)
{
	mode_t mode = pick_mode();
	struct where where;
	struct stat st;

	pick_new_path(&where, 0);
	say(" cwd %s %04o", where.shown, mode);
	/* It would block on a FIFO; what is there is looked at first, and that is an operation too. */
	if (!stat(where.path, &st) && S_ISFIFO(st.st_mode)) {
		say(" FIFO");
		return;
	}
	say_opened(creat(where.path, mode));
}

static void op_close(void)
{
	int index = pick_slot();
	int fd = self.slot[index];

	say(" %d", fd);
	self.slot[index] = -1;
	say_result(close(fd));
	slot_put(index, -1);
}

static void op_read(void)
{
	unsigned char data[4096];
	size_t len = chance(80) ? pick(300) : pick(sizeof(data));
	int index = pick_slot();
	int fd = self.slot[index];
	off_t at = (off_t)pick(chance(70) ? 300 : 20000);
	unsigned how = pick(4);
	struct iovec parts[2] = { { data, len / 2 }, { data + len / 2, len - len / 2 } };
	ssize_t got;

	say(" %d %zu", fd, len);
	if (self.folder[index]) {
		say(" folder"); /* EISDIR, or EINVAL on a tmpfs */
		return;
	}
	if (how == 0) {
		say(" at %lld", (long long)at);
		got = pread(fd, data, len, at);
	} else if (how == 1) {
		got = readv(fd, parts, 2);
	} else {
		got = read(fd, data, len);
	}
	say_result(got);
	if (got > 0)
		say(" #%012llx", (unsigned long long)(hash_bytes(HASH_START, data, (size_t)got) & 0xffffffffffffull));
}

static void op_write(void)
{
	unsigned char data[4096];
	size_t len = chance(80) ? pick(200) : pick(sizeof(data));
	int fd = self.slot[pick_slot()];
	off_t at = (off_t)pick(chance(70) ? 300 : 60000);
	unsigned how = pick(4);
	struct iovec parts[2] = { { data, len / 2 }, { data + len / 2, len - len / 2 } };

	pick_data(data, len);
	say(" %d %zu", fd, len);
	if (how == 0) {
		say(" at %lld", (long long)at);
		say_result(pwrite(fd, data, len, at));
	} else if (how == 1) {
		say_result(writev(fd, parts, 2));
	} else {
		say_result(write(fd, data, len));
	}
}

static void op_lseek(void)
{
	static const int ways[] = { SEEK_SET, SEEK_CUR, SEEK_END, SEEK_SET, SEEK_CUR, SEEK_END, 9 };
	int way = ways[pick(sizeof(ways) / sizeof(ways[0]))];
	int fd = self.slot[pick_slot()];
	off_t by = chance(60) ? (off_t)pick(300) : chance(50) ? -(off_t)pick(300) : (off_t)pick(40000);
	struct stat st;

	/* What a place in a folder means is the file system's own business; only back to its start. */
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		way = SEEK_SET;
		by = 0;
	}
	say(" %d %lld %d", fd, (long long)by, way);
	say_result(lseek(fd, by, way));
}

/* Whether all bytes of a file are zero, from `from` to before `to`. */
static bool all_zero(int fd, off_t from, off_t to)
{
	unsigned char data[4096];

	while (from < to) {
		size_t want = to - from < (off_t)sizeof(data) ? (size_t)(to - from) : sizeof(data);
		ssize_t got = pread(fd, data, want, from);

		if (got <= 0)
			return true;
		for (ssize_t i = 0; i < got; i++)
			if (data[i])
				return false;
		from += got;
	}
	return true;
}

/* Where file systems see holes is their own business; that nothing but zeros is skipped, is not. */
static void op_seek_data(void)
{
	int index = pick_slot(), fd = self.slot[index], way = chance(50) ? SEEK_DATA : SEEK_HOLE;
	off_t from = (off_t)pick(chance(50) ? 300 : 60000), found;
	struct stat st;

	say(" %d %lld %d", fd, (long long)from, way);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		say(" no");
		return;
	}
	found = lseek(fd, from, way);
	if (found < 0 && (way == SEEK_HOLE || errno != ENXIO || from >= st.st_size)) {
		say_result(-1);
		return;
	}
	if (way == SEEK_HOLE)
		say(" %s", found >= from && found <= st.st_size ? "ok" : "wrong");
	else
		say(" %s", all_zero(fd, from, found < 0 ? st.st_size : found) ? "ok" : "skips data");
	lseek(fd, from, SEEK_SET);
}

static off_t pick_size(void)
{
	unsigned kind = pick(20);

	return kind == 0 ? -1 : kind < 4 ? 0 : kind < 14 ? (off_t)pick(400) : (off_t)pick(60000);
}

static void op_ftruncate(void)
{
	int fd = self.slot[pick_slot()];
	off_t size = pick_size();

	say(" %d %lld", fd, (long long)size);
	say_result(ftruncate(fd, size));
}

static void op_truncate(void)
{
	off_t size = pick_size();
	struct where where;
	struct stat st;

	pick_path_to(&where, 0, "-");
	say(" cwd %s %lld", where.shown, (long long)size);
	/* To the size it has: some file systems then set the time, others do not. */
	if (!stat(where.path, &st) && S_ISREG(st.st_mode) && st.st_size == size)
		size++;
	say_result(truncate(where.path, size));
}

/* Only the modes that every file system of interest has. */
static void op_fallocate(void)
{
	enum { KEEP = 1, PUNCH = 2 };
	static const int modes[] = { 0, 0, KEEP, KEEP | PUNCH, KEEP | PUNCH, PUNCH };
	int fd = self.slot[pick_slot()], mode = modes[pick(6)];
	off_t at = (off_t)pick(20000), len = (off_t)pick(20000);

	say(" %d %d %lld %lld", fd, mode, (long long)at, (long long)len);
	say_result(syscall(SYS_fallocate, fd, mode, at, len));
}

/* Only to and from regular files: what a pipe or a folder gives depends on the kernel's way to copy. */
static void op_copy(void)
{
	int from = self.slot[pick_slot()], to = self.slot[pick_slot()];
	size_t len = pick(chance(70) ? 300 : 20000);
	loff_t at = (loff_t)pick(500), there = (loff_t)pick(500);
	struct stat a, b;

	say(" %d %d %zu", from, to, len);
	if (fstat(from, &a) || fstat(to, &b) || !S_ISREG(a.st_mode) || !S_ISREG(b.st_mode) ||
	    (a.st_dev == b.st_dev && a.st_ino == b.st_ino)) {
		say(" no");
		return;
	}
	if (chance(50))
		say_result(copy_file_range(from, &at, to, &there, len, 0));
	else
		say_result(sendfile(to, from, &at, len));
}

static void op_sync(void)
{
	int fd = self.slot[pick_slot()];

	say(" %d", fd);
	say_result(chance(50) ? fdatasync(fd) : fsync(fd));
}

static sigjmp_buf bus_return;

static void on_bus(int signo)
{
	siglongjmp(bus_return, signo);
}

/* One byte of a mapping read, or written where `value` is not negative; SIGBUS is an answer as well. */
static void touch(volatile char *at, int value)
{
	struct sigaction action = { .sa_handler = on_bus }, before;

	sigaction(SIGBUS, &action, &before);
	if (sigsetjmp(bus_return, 1))
		say(" SIGBUS");
	else if (value >= 0)
		*at = (char)value;
	else
		say(" byte %d", *at);
	sigaction(SIGBUS, &before, NULL);
}

/* A place of the first page inside the file: what is behind its end, file systems differ in. */
static size_t pick_place(int fd)
{
	struct stat st;
	size_t place = pick(4096);

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return place;
	return st.st_size < 4096 ? place % (size_t)st.st_size : place;
}

static void op_mmap(void)
{
	int fd = self.slot[pick_slot()];
	size_t at = pick_place(fd);
	bool write = chance(70), shared = chance(80);
	char *map = mmap(NULL, 4096, write ? PROT_READ | PROT_WRITE : PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);

	say(" %d %s %zu", fd, write ? "rw" : "r", at);
	if (map == MAP_FAILED) {
		say_result(-1);
		return;
	}
	touch(map + at, -1);
	if (write) {
		touch(map + at, (int)pick(100));
		touch(map + at, -1);
	}
	munmap(map, 4096);
	/* A store sets the time on some file systems, on others it does not. */
	if (write && shared)
		say_result(futimens(fd, NULL));
}

/* A mapping that stays while others write to the file. */
static void op_map_keep(void)
{
	int fd = self.slot[pick_slot()];
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	say(" %d", fd);
	if (map == MAP_FAILED) {
		say_result(-1);
		return;
	}
	if (self.map) {
		munmap(self.map, 4096);
		close(self.map_fd);
	}
	self.map = map;
	self.map_fd = fcntl(fd, F_DUPFD_CLOEXEC, 60);
	touch(self.map + pick_place(fd), -1);
}

static void op_map_look(void)
{
	if (!self.map) {
		say(" none");
		return;
	}
	for (int i = 0; i < 3; i++)
		touch(self.map + pick_place(self.map_fd), -1);
}

static void op_dup(void)
{
	int index = pick_free_slot(), fd = self.slot[pick_slot()];
	int copy = chance(50) ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 10);

	say(" %d", fd);
	say_result(copy);
	if (copy >= 0)
		slot_put(index, copy);
}

const struct op file_ops[] = {
	{ "open", "open", 24, op_open },
	{ "openat2", "openat2", 6, op_openat2 },
	{ "openat2_xdev", "xdev", 1, op_openat2_xdev },
	{ "creat", "open", 2, op_creat },
	{ "close", "close", 7, op_close },
	{ "read", "read", 8, op_read },
	{ "write", "write", 10, op_write },
	{ "lseek", "lseek", 4, op_lseek },
	{ "seek_data", "lseek", 2, op_seek_data },
	{ "ftruncate", "truncate", 3, op_ftruncate },
	{ "truncate", "truncate", 3, op_truncate },
	{ "fallocate", "fallocate", 2, op_fallocate },
	{ "copy", "copy", 2, op_copy },
	{ "sync", "sync", 1, op_sync },
	{ "mmap", "mmap", 3, op_mmap },
	{ "map_keep", "maps", 1, op_map_keep },
	{ "map_look", "maps", 3, op_map_look },
	{ "dup", "dup", 2, op_dup },
	{ NULL, NULL, 0, NULL },
};
