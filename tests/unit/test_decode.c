/* Calls as text: each family on the ABIs where it differs, and guests that lie about lengths, counts and pointers. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "syscalls/decode_impl.h"
#include "tests/unit/fake_guest.h"

enum { BASE = 0x10000, MEMORY = 64 << 10 };

static _Alignas(16) unsigned char memory[MEMORY];
static size_t used;
static struct guest guest;
static struct text out;
static const struct arch *arch;

static void setup(void)
{
	memset(memory, 0, sizeof(memory));
	used = 16;
	guest = (struct guest){ .base = BASE, .bytes = memory, .len = sizeof(memory) };
	arch = arch_all[ARCH_X86_64];
}

static void teardown(void)
{
	text_free(&out);
}

/* --- a guest's memory --------------------------------------------------------------------------------------------- */

static uint64_t put(const void *bytes, size_t len)
{
	uint64_t addr = BASE + used;

	ck_assert_uint_le(used + len, sizeof(memory));
	memcpy(memory + used, bytes, len);
	used = (used + len + 15) & ~(size_t)15;
	return addr;
}

static uint64_t put_string(const char *string)
{
	return put(string, strlen(string) + 1);
}

/* Words of the architecture. */
#define put_words(...) put_words_of(sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, (uint64_t[]){ __VA_ARGS__ })

static uint64_t put_words_of(size_t count, const uint64_t *words)
{
	unsigned char bytes[32 * 8];

	for (size_t i = 0; i < count; i++)
		memcpy(bytes + i * arch->word, &words[i], arch->word);
	return put(bytes, count * arch->word);
}

#define put_ints(...) put((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }))

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* strace's alignment of the equals sign has a test of its own: elsewhere one space stands for it. */
static const char *squeeze(char *line)
{
	char *equals = strstr(line, ") ");

	for (; equals; equals = strstr(equals + 1, ") ")) {
		size_t spaces = strspn(equals + 1, " ");

		if (equals[1 + spaces] == '=')
			memmove(equals + 2, equals + 1 + spaces, strlen(equals + 1 + spaces) + 1);
	}
	return line;
}

static const char *line_of(int id, int64_t result, const uint64_t args[6])
{
	struct call call = fake_call(&guest, arch, id, args);
	struct decode_state state;

	text_clear(&out);
	decode_entry(&out, &call, &state);
	decode_exit(&out, &call, &state, result);
	return squeeze(out.data);
}

static const char *entry_of(int id, const uint64_t args[6])
{
	struct call call = fake_call(&guest, arch, id, args);
	struct decode_state state;

	text_clear(&out);
	decode_entry(&out, &call, &state);
	return out.data;
}

#define line(name, result, ...) line_of(CALL_##name, result, (const uint64_t[6]){ __VA_ARGS__ })
#define entry(name, ...) entry_of(CALL_##name, (const uint64_t[6]){ __VA_ARGS__ })
#define is(line, expected) ck_assert_str_eq(line, expected)

/* Between entry and exit the kernel has written to memory. */
static const char *line_with(int id, int64_t result, const uint64_t args[6], uint64_t addr, const void *bytes, size_t len)
{
	struct call call = fake_call(&guest, arch, id, args);
	struct decode_state state;

	text_clear(&out);
	decode_entry(&out, &call, &state);
	memcpy(memory + (addr - BASE), bytes, len);
	decode_exit(&out, &call, &state, result);
	return squeeze(out.data);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

START_TEST(open_calls)
{
	uint64_t path = put_string("/etc/passwd");

	is(line(openat, 3, -100, path, O_RDONLY | O_CLOEXEC), "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3");
	is(line(openat, -ENOENT, 5, path, O_WRONLY | O_CREAT | O_TRUNC, 0644),
	   "openat(5, \"/etc/passwd\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = -1 ENOENT (No such file or directory)");
	is(line(open, 3, path, 0x410002, 0600), "open(\"/etc/passwd\", O_RDWR|O_TMPFILE, 0600) = 3");
	is(line(open, 3, path, 3 | 0x80000000), "open(\"/etc/passwd\", O_ACCMODE|0x80000000) = 3");
	is(line(open, 3, path, 0x101001), "open(\"/etc/passwd\", O_WRONLY|O_SYNC) = 3");
	is(line(creat, 3, path, 0), "creat(\"/etc/passwd\", 000) = 3");
	is(line(mq_open, 3, path, 0x40, 0600, 0), "mq_open(\"/etc/passwd\", O_RDONLY|O_CREAT, 0600, NULL) = 3");
	is(line(mq_open, 3, path, 0, 0600, 0), "mq_open(\"/etc/passwd\", O_RDONLY) = 3");
	is(line(access, 0, path, 0), "access(\"/etc/passwd\", F_OK) = 0");
	is(line(access, 0, path, 6), "access(\"/etc/passwd\", R_OK|W_OK) = 0");
	is(line(unlinkat, 0, -100, path, 0x200), "unlinkat(AT_FDCWD, \"/etc/passwd\", AT_REMOVEDIR) = 0");
	is(line(mknodat, 0, -100, path, 0020644, 0x103), "mknodat(AT_FDCWD, \"/etc/passwd\", S_IFCHR|0644, makedev(0x1, 0x3)) = 0");
	is(line(chmod, 0, path, 0), "chmod(\"/etc/passwd\", 000) = 0");
	is(line(chown, 0, path, 0xffffffff, 1000), "chown(\"/etc/passwd\", -1, 1000) = 0");
	arch = arch_all[ARCH_AARCH64];
	is(line(openat, 3, -100, path, 0x4000 | 0x8000 | 0x20000), /* the same bits, other names */
	   "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_LARGEFILE|O_NOFOLLOW|O_DIRECTORY) = 3");
	is(line(openat, 3, -100, path, 0x10000), "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_DIRECT) = 3");
}
END_TEST

START_TEST(openat2_how)
{
	uint64_t path = put_string("f"), how = put((const uint64_t[]){ O_CREAT | O_RDWR, 0640, 4 | 8 }, 24);

	is(line(openat2, 3, 4, path, how, 24),
	   "openat2(4, \"f\", {flags=O_RDWR|O_CREAT, mode=0640, resolve=RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH}, 24) = 3");
	ck_assert_ptr_nonnull(strstr(line(openat2, -E2BIG, 4, path, how, 4096), "RESOLVE_BENEATH, ...}, 4096) = -1 E2BIG"));
	ck_assert_ptr_nonnull(strstr(line(openat2, -EINVAL, 4, path, how, 8), "\"f\", 0x100"));
}
END_TEST

START_TEST(reads_and_writes)
{
	uint64_t text = put_string("hello\n"), longer = put_string("0123456789012345678901234567890123456789");

	is(line(read, 6, 3, text, 4096), "read(3, \"hello\\n\", 4096) = 6");
	is(line(read, 0, 3, text, 4096), "read(3, \"\", 4096) = 0");
	is(line(read, -EAGAIN, 3, text, 4096), "read(3, 0x10010, 4096) = -1 EAGAIN (Resource temporarily unavailable)");
	is(line(read, 40, 3, longer, 40), "read(3, \"01234567890123456789012345678901\"..., 40) = 40");
	is(entry(read, 3, text, 4096), "read(3");
	is(entry(write, 1, text, 6), "write(1, \"hello\\n\", 6");
	is(line(write, -EFAULT, 1, 0, 6), "write(1, NULL, 6) = -1 EFAULT (Bad address)");
	is(line(write, -EFAULT, 1, 0x999, 6), "write(1, 0x999, 6) = -1 EFAULT (Bad address)");
	is(line(pwrite64, 6, 1, text, 6, (uint64_t)1 << 40), "pwrite64(1, \"hello\\n\", 6, 1099511627776) = 6");
	is(line(lseek, -1 - EINVAL + 1, 3, -5, 1), "lseek(3, -5, SEEK_CUR) = -1 EINVAL (Invalid argument)");
	arch = arch_all[ARCH_I386];
	is(line(pwrite64, 6, 1, text, 6, 5, 1), "pwrite64(1, \"hello\\n\", 6, 4294967301) = 6");
	is(line(lseek, 0, 3, 0xfffffffb, 2), "lseek(3, -5, SEEK_END) = 0");
	is(line(fadvise64, 0, 3, 1, 1, 100, 4), "fadvise64(3, 4294967297, 100, POSIX_FADV_DONTNEED) = 0");
}
END_TEST

START_TEST(vectors)
{
	uint64_t a = put_string("abc"), b = put_string("defgh"), iov = put_words(a, 3, b, 5);

	is(line(writev, 8, 1, iov, 2),
	   "writev(1, [{iov_base=\"abc\", iov_len=3}, {iov_base=\"defgh\", iov_len=5}], 2) = 8");
	is(line(readv, 4, 1, iov, 2), "readv(1, [{iov_base=\"abc\", iov_len=3}, {iov_base=\"d\", iov_len=5}], 2) = 4");
	is(line(writev, -EFAULT, 1, 0, 2), "writev(1, NULL, 2) = -1 EFAULT (Bad address)");
	is(line(preadv, 3, 1, iov, 1, 7, 9), "preadv(1, [{iov_base=\"abc\", iov_len=3}], 1, 7) = 3");
	arch = arch_all[ARCH_I386];
	iov = put_words(a, 3, b, 5);
	is(line(pwritev2, 8, 1, iov, 2, 7, 1, 8),
	   "pwritev2(1, [{iov_base=\"abc\", iov_len=3}, {iov_base=\"defgh\", iov_len=5}], 2, 4294967303, RWF_NOWAIT) = 8");
}
END_TEST

START_TEST(file_struct)
{
	unsigned char bytes[144] = { 0 };
	uint64_t path = put_string("f"), addr;

	*(uint32_t *)(bytes + 24) = 0100644;
	*(uint64_t *)(bytes + 48) = 1234;
	addr = put(bytes, sizeof(bytes));
	is(line(newfstatat, 0, -100, path, addr, 0x100),
	   "newfstatat(AT_FDCWD, \"f\", {st_mode=S_IFREG|0644, st_size=1234, ...}, AT_SYMLINK_NOFOLLOW) = 0");
	is(line(fstat, -EBADF, 9, addr), "fstat(9, 0x10020) = -1 EBADF (Bad file descriptor)");
	*(uint32_t *)(memory + (addr - BASE) + 24) = 0020620;
	*(uint64_t *)(memory + (addr - BASE) + 40) = 0x8803;
	is(line(fstat, 0, 1, addr), "fstat(1, {st_mode=S_IFCHR|0620, st_rdev=makedev(0x88, 0x3), ...}) = 0");
	arch = arch_all[ARCH_RISCV64];
	*(uint32_t *)(memory + (addr - BASE) + 16) = 0041777;
	is(line(fstat, 0, 1, addr), "fstat(1, {st_mode=S_IFDIR|S_ISVTX|0777, st_size=1234, ...}) = 0");
	arch = arch_all[ARCH_I386];
	memset(memory + (addr - BASE), 0, 144);
	*(uint32_t *)(memory + (addr - BASE) + 16) = 0100600;
	memcpy(memory + (addr - BASE) + 44, &(const uint64_t){ 5000000000 }, 8);
	is(line(fstat64, 0, 1, addr), "fstat64(1, {st_mode=S_IFREG|0600, st_size=5000000000, ...}) = 0");
}
END_TEST

START_TEST(statx_struct)
{
	unsigned char bytes[256] = { 0 };
	uint64_t path = put_string(""), addr;

	*(uint32_t *)bytes = 0x17ff;
	*(uint16_t *)(bytes + 28) = 0120777;
	*(uint64_t *)(bytes + 40) = 7;
	addr = put(bytes, sizeof(bytes));
	is(line(statx, 0, 3, path, 0x1000, 0x7ff, addr),
	   "statx(3, \"\", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_BASIC_STATS, {stx_mask=STATX_BASIC_STATS|STATX_MNT_ID, "
	   "stx_attributes=0, stx_mode=S_IFLNK|0777, stx_size=7, ...}) = 0");
}
END_TEST

START_TEST(statfs_struct)
{
	uint64_t path = put_string("/"), addr = put_words(0x01021994, 4096, 1, 2, 3, 4, 5, 0x200000001, 255, 4096, 0x20);

	is(line(statfs, 0, path, addr),
	   "statfs(\"/\", {f_type=TMPFS_MAGIC, f_bsize=4096, f_blocks=1, f_bfree=2, f_bavail=3, f_files=4, f_ffree=5, "
	   "f_fsid={val=[0x1, 0x2]}, f_namelen=255, f_frsize=4096, f_flags=ST_VALID}) = 0");
	arch = arch_all[ARCH_I386];
	addr = put((const uint32_t[]){ 0xef53, 4096, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 1, 2, 255, 4096, 0x20 }, 68);
	is(line(statfs64, 0, path, 84, addr),
	   "statfs64(\"/\", 84, {f_type=EXT2_SUPER_MAGIC, f_bsize=4096, f_blocks=1, f_bfree=2, f_bavail=3, f_files=4, f_ffree=5, "
	   "f_fsid={val=[0x1, 0x2]}, f_namelen=255, f_frsize=4096, f_flags=ST_VALID}) = 0");
}
END_TEST

START_TEST(strings_out)
{
	uint64_t path = put_string("/proc/self/exe"), buf = put("/usr/bin/python3.11junk", 24), cwd = put_string("/tmp");

	is(line(readlink, 19, path, buf, 4096), "readlink(\"/proc/self/exe\", \"/usr/bin/python3.11\", 4096) = 19");
	is(line(getcwd, 5, cwd, 4096), "getcwd(\"/tmp\", 4096) = 5");
	is(line(getcwd, -ERANGE, cwd, 1), "getcwd(0x10040, 1) = -1 ERANGE (Numerical result out of range)");
}
END_TEST

START_TEST(directory_entries)
{
	unsigned char bytes[24 + 32] = { 0 };
	uint64_t addr;
	char expected[80];

	*(uint16_t *)(bytes + 16) = 24;
	*(uint16_t *)(bytes + 24 + 16) = 32;
	addr = put(bytes, sizeof(bytes));
	snprintf(expected, sizeof(expected), "getdents64(3, 0x%llx /* 2 entries */, 32768) = 56", (unsigned long long)addr);
	is(line(getdents64, 56, 3, addr, 32768), expected);
	memory[addr - BASE + 24 + 16] = 0; /* a length that goes nowhere ends the count */
	snprintf(expected, sizeof(expected), "getdents64(3, 0x%llx /* 1 entry, ... */, 32768) = 56", (unsigned long long)addr);
	is(line(getdents64, 56, 3, addr, 32768), expected);
	is(line(getdents64, 0, 3, addr, 32768), "getdents64(3, 0x10010 /* 0 entries */, 32768) = 0");
}
END_TEST

START_TEST(offsets)
{
	uint64_t offset = put((const uint64_t[]){ 10, 0 }, 16), second = put((const uint64_t[]){ 5, 0 }, 16), ten = 20;

	is(line_with(CALL_sendfile, 10, (const uint64_t[6]){ 1, 3, offset, 100 }, offset, &ten, 8),
	   "sendfile(1, 3, [10] => [20], 100) = 10");
	is(line(sendfile, 10, 1, 3, 0, 100), "sendfile(1, 3, NULL, 100) = 10");
	ten = 6;
	is(line_with(CALL_splice, 1, (const uint64_t[6]){ 1, offset, 2, second, 1, 2 }, second, &ten, 8),
	   "splice(1, [20], 2, [5] => [6], 1, SPLICE_F_NONBLOCK) = 1");
	arch = arch_all[ARCH_I386];
	is(line(_llseek, 0, 3, 0, 20, offset, 0), "_llseek(3, 0, 20, [20], SEEK_SET) = 0");
}
END_TEST

START_TEST(fcntl_commands_shown)
{
	unsigned char lock[32] = { 1, 0, 2, 0 };
	uint64_t addr;

	*(uint64_t *)(lock + 8) = 100;
	*(uint64_t *)(lock + 16) = 20;
	*(uint32_t *)(lock + 24) = 42;
	addr = put(lock, sizeof(lock));
	is(line(fcntl, 1, 3, 1, 77), "fcntl(3, F_GETFD) = 0x1 (flags FD_CLOEXEC)");
	is(line(fcntl, 0x8002, 3, 3), "fcntl(3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)");
	is(line(fcntl, 0, 3, 2, 1), "fcntl(3, F_SETFD, FD_CLOEXEC) = 0");
	is(line(fcntl, 0, 3, 4, 0x802), "fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
	is(line(fcntl, 10, 3, 1030, 10), "fcntl(3, F_DUPFD_CLOEXEC, 10) = 10");
	is(line(fcntl, 0, 3, 6, addr), "fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_END, l_start=100, l_len=20}) = 0");
	is(line(fcntl, 0, 3, 5, addr),
	   "fcntl(3, F_GETLK, {l_type=F_WRLCK, l_whence=SEEK_END, l_start=100, l_len=20, l_pid=42}) = 0");
	is(entry(fcntl, 3, 5, addr), "fcntl(3, F_GETLK");
	is(line(fcntl, 0, 3, 10, 12), "fcntl(3, F_SETSIG, SIGUSR2) = 0");
	is(line(fcntl, 0, 3, 1033, 3), "fcntl(3, F_ADD_SEALS, F_SEAL_SEAL|F_SEAL_SHRINK) = 0");
	is(line(fcntl, -EINVAL, 3, 999, 0x11), "fcntl(3, 0x3e7 /* F_??? */, 0x11) = -1 EINVAL (Invalid argument)");
	arch = arch_all[ARCH_I386];
	addr = put((const uint32_t[]){ 0x00010000 | 2, 7, 1, 9, 0, 5 }, 24); /* F_UNLCK, SEEK_CUR */
	is(line(fcntl64, 0, 3, 13, addr),
	   "fcntl64(3, F_SETLK64, {l_type=F_UNLCK, l_whence=SEEK_CUR, l_start=4294967303, l_len=9}) = 0");
	is(line(fcntl64, 0, 3, 6, addr), "fcntl64(3, F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_CUR, l_start=7, l_len=1}) = 0");
}
END_TEST

START_TEST(ioctl_requests)
{
	uint64_t size = put((const uint16_t[]){ 24, 80, 0, 0 }, 8), number = put_ints(7);
	uint64_t termios = put((const uint32_t[]){ 0x500, 5, 0xbf, 0x8a3b, 0, 0, 0, 0, 0 }, 36);

	is(line(ioctl, 0, 1, 0x5413, size), "ioctl(1, TIOCGWINSZ, {ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0}) = 0");
	is(entry(ioctl, 1, 0x5413, size), "ioctl(1, TIOCGWINSZ");
	is(entry(ioctl, 1, 0x5414, size), "ioctl(1, TIOCSWINSZ, {ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0}");
	is(line(ioctl, -ENOTTY, 1, 0x5401, 0x77), "ioctl(1, TCGETS, 0x77) = -1 ENOTTY (Inappropriate ioctl for device)");
	is(line(ioctl, 0, 1, 0x5401, termios),
	   "ioctl(1, TCGETS, {c_iflag=ICRNL|IXON, c_oflag=NL0|CR0|TAB0|BS0|VT0|FF0|OPOST|ONLCR, c_cflag=B38400|CS8|CREAD, "
	   "c_lflag=ISIG|ICANON|ECHO|ECHOE|ECHOK|ECHOCTL|ECHOKE|IEXTEN, ...}) = 0");
	is(line(ioctl, 0, 1, 0x541b, number), "ioctl(1, FIONREAD, [7]) = 0");
	is(line(ioctl, 0, 1, 0x5451, 99), "ioctl(1, FIOCLEX) = 0");
	is(line(ioctl, 0, 1, 0x40049409, 5), "ioctl(1, FICLONE, 5) = 0");
	is(line(ioctl, 0, 1, 0xc0081234, 5), "ioctl(1, _IOC(_IOC_READ|_IOC_WRITE, 0x12, 0x34, 0x8), 0x5) = 0");
}
END_TEST

START_TEST(ioctl_table)
{
	static const uint32_t known[] = { 0x1, 0x125d, 0x5401, 0x5413, 0x541b, 0x5421, 0x5451, 0x8912, 0x8927, 0xae80, 0x40049409,
					  0x80045430, 0xc020660b };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) { /* found by halving: only where it is sorted */
		const char *text = entry(ioctl, 1, known[i], 0);

		ck_assert_msg(!strstr(text, "_IOC("), "%#x: %s", known[i], text);
	}
}
END_TEST

START_TEST(handles)
{
	uint64_t path = put_string("f"), id = put_ints(25), handle = put("\10\0\0\0\1\0\0\0ABCDEFGH", 16), small = put_ints(0, 0);
	uint32_t needed = 8;

	is(line(name_to_handle_at, 0, -100, path, handle, id, 0),
	   "name_to_handle_at(AT_FDCWD, \"f\", {handle_bytes=8, handle_type=0x1, "
	   "f_handle=\"\\x41\\x42\\x43\\x44\\x45\\x46\\x47\\x48\"}, [25], 0) = 0");
	ck_assert_ptr_nonnull(strstr(line_with(CALL_name_to_handle_at, -EOVERFLOW, (const uint64_t[6]){ -100, path, small, id, 0 },
					       small, &needed, 4), "{handle_bytes=0 => 8}, 0x1"));
}
END_TEST

/* --- memory and processes ----------------------------------------------------------------------------------------- */

START_TEST(memory_calls)
{
	is(line(mmap, 0x7f0000001000, 0, 4096, 3, 0x22, -1, 0),
	   "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000001000");
	is(line(mprotect, 0, 0x1000, 4096, 0), "mprotect(0x1000, 4096, PROT_NONE) = 0");
	is(line(mprotect, 0, 0x1000, 4096, 0x8000000000000001), "mprotect(0x1000, 4096, PROT_READ|0x8000000000000000) = 0");
	is(line(brk, 0x5555, 0), "brk(NULL) = 0x5555");
	is(line(mremap, 0x2000, 0x1000, 4096, 8192, 1, 0x77), "mremap(0x1000, 4096, 8192, MREMAP_MAYMOVE) = 0x2000");
	is(line(mremap, 0x77000, 0x1000, 4096, 8192, 3, 0x77000),
	   "mremap(0x1000, 4096, 8192, MREMAP_MAYMOVE|MREMAP_FIXED, 0x77000) = 0x77000");
	is(line(madvise, 0, 0x1000, 4096, 4), "madvise(0x1000, 4096, MADV_DONTNEED) = 0");
	is(line(madvise, 0, 0x1000, 4096, 1234), "madvise(0x1000, 4096, 0x4d2 /* MADV_??? */) = 0");
	arch = arch_all[ARCH_I386];
	is(line(mmap2, 0xf7d00000, 0, 4096, 1, 2, 3, 5), "mmap2(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0x5000) = 0xf7d00000");
	is(line(mmap2, (int32_t)0xf7d00000, 0, 4096, 1, 2, 3, 0), "mmap2(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0xf7d00000");
}
END_TEST

START_TEST(exec_calls)
{
	uint64_t path = put_string("/bin/ls"), zero = put_string("ls"), one = put_string("-l"), argv = put_words(zero, one, 0);
	uint64_t env = put_words(zero, one, zero, 0);

	is(line(execve, 0, path, argv, env), "execve(\"/bin/ls\", [\"ls\", \"-l\"], 0x10060 /* 3 vars */) = 0");
	is(line(execve, 0, path, 0, 0), "execve(\"/bin/ls\", NULL, NULL) = 0");
	arch = arch_all[ARCH_I386];
	argv = put_words(zero, one, 0);
	ck_assert_ptr_nonnull(strstr(line(execve, 0, path, argv, argv), "[\"ls\", \"-l\"], 0x10080 /* 2 vars */) = 0"));
}
END_TEST

START_TEST(clone_calls)
{
	uint64_t tid = put_ints(4711);

	is(line(clone, 5, 0x1200011, 0, 0, 0x7f01, 0), "clone(child_stack=NULL, "
	   "flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f01) = 5");
	is(line(clone, 5, 0x3d0f00, 0x7000, tid, 0x7f01, 0x7f02), "clone(child_stack=0x7000, flags=CLONE_VM|CLONE_FS|CLONE_FILES|"
	   "CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_SETTLS|CLONE_PARENT_SETTID|CLONE_CHILD_CLEARTID, "
	   "parent_tid=[4711], tls=0x7f02, child_tidptr=0x7f01) = 5");
	is(line(clone, -EAGAIN, 0x100011, 0, tid), "clone(child_stack=NULL, flags=CLONE_PARENT_SETTID|SIGCHLD, parent_tid=0x10010) "
	   "= -1 EAGAIN (Resource temporarily unavailable)");
	arch = arch_all[ARCH_AARCH64];
	is(line(clone, 5, 0x280000, 1, 0, 0x7f02, 0x7f01),
	   "clone(child_stack=0x1, flags=CLONE_SETTLS|CLONE_CHILD_CLEARTID, tls=0x7f02, child_tidptr=0x7f01) = 5");
}
END_TEST

START_TEST(clone3_args)
{
	uint64_t args = put((const uint64_t[11]){ 0x100000, 0, 0, 0x77, 17, 0x7000, 0x8000 }, 88);

	is(line(clone3, -ENOSYS, args, 88),
	   "clone3({flags=CLONE_PARENT_SETTID, parent_tid=0x77, exit_signal=SIGCHLD, stack=0x7000, "
	   "stack_size=0x8000, ...}, 88) = -1 ENOSYS (Function not implemented)");
}
END_TEST

START_TEST(wait_calls)
{
	uint64_t status = put_ints(0x100);

	is(line(wait4, 7, -1, status, 3, 0), "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 1}], WNOHANG|WSTOPPED, NULL) = 7");
	is(line(wait4, 0, -1, status, 1, 0), "wait4(-1, 0x10010, WNOHANG, NULL) = 0");
	*(uint32_t *)(memory + 16) = 0x8b;
	is(line(wait4, 7, -1, status, 0, 0),
	   "wait4(-1, [{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}], 0, NULL) = 7");
	*(uint32_t *)(memory + 16) = 0x137f;
	is(line(wait4, 7, -1, status, 0, 0), "wait4(-1, [{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}], 0, NULL) = 7");
	*(uint32_t *)(memory + 16) = 0xffff;
	is(line(wait4, 7, -1, status, 0, 0), "wait4(-1, [{WIFCONTINUED(s)}], 0, NULL) = 7");
}
END_TEST

START_TEST(futex_calls)
{
	uint64_t timeout = put_words(1, 5);

	is(line(futex, 1, 0x1000, 0x81, 1, 0x99, 0x99, 0x99), "futex(0x1000, FUTEX_WAKE_PRIVATE, 1) = 1");
	is(line(futex, -ETIMEDOUT, 0x1000, 0, 2, timeout), "futex(0x1000, FUTEX_WAIT, 2, {tv_sec=1, tv_nsec=5}) = -1 ETIMEDOUT "
	   "(Connection timed out)");
	is(line(futex, 0, 0x1000, 0x189, 0, 0, 0x55, 0xffffffff),
	   "futex(0x1000, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_MATCH_ANY) = 0");
	is(line(futex, 0, 0x1000, 4, 1, 2147483647, 0x2000, 3), "futex(0x1000, FUTEX_CMP_REQUEUE, 1, 2147483647, 0x2000, 3) = 0");
	is(line(futex, -ENOSYS, 0x1000, 0x7f, 1, 0, 0, 0),
	   "futex(0x1000, 0x7f /* FUTEX_??? */, 1, NULL, NULL, 0) = -1 ENOSYS (Function not implemented)");
}
END_TEST

START_TEST(prctl_options_shown)
{
	uint64_t name = put_string("worker"), number = put_ints(1);

	is(line(prctl, 0, 15, name, 7, 8, 9), "prctl(PR_SET_NAME, \"worker\") = 0");
	is(line(prctl, 0, 16, name), "prctl(PR_GET_NAME, \"worker\") = 0");
	is(entry(prctl, 16, name), "prctl(PR_GET_NAME");
	is(line(prctl, 0, 1, 9), "prctl(PR_SET_PDEATHSIG, SIGKILL) = 0");
	is(line(prctl, 0, 38, 1), "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) = 0");
	is(line(prctl, 0, 37, number), "prctl(PR_GET_CHILD_SUBREAPER, [1]) = 0");
	is(line(prctl, 0, 0x53564d41, 0, 0x1000, 4096, name),
	   "prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, 0x1000, 0x1000, \"worker\") = 0");
	is(line(prctl, -EINVAL, 9999, 1, 2, 3, 4), "prctl(0x270f /* PR_??? */, 0x1, 0x2, 0x3, 0x4) = -1 EINVAL (Invalid argument)");
}
END_TEST

START_TEST(seccomp_calls)
{
	uint64_t program = put_words(5, 0x4000), action = put_ints(0x7fc00000);

	is(line(seccomp, 0, 1, 1, program),
	   "seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, {len=5, filter=0x4000}) = 0");
	is(line(seccomp, 0, 2, 0, action), "seccomp(SECCOMP_GET_ACTION_AVAIL, 0, [SECCOMP_RET_USER_NOTIF]) = 0");
	is(line(prctl, 0, 22, 2, program), "prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {len=5, filter=0x4000}) = 0");
}
END_TEST

START_TEST(limits)
{
	uint64_t limit = put((const uint64_t[]){ 8192 * 1024, UINT64_MAX }, 16);

	is(line(prlimit64, 0, 0, 3, 0, limit),
	   "prlimit64(0, RLIMIT_STACK, NULL, {rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}) = 0");
	is(line(setrlimit, 0, 7, limit), "setrlimit(RLIMIT_NOFILE, {rlim_cur=8192*1024, rlim_max=RLIM_INFINITY}) = 0");
	arch = arch_all[ARCH_I386];
	limit = put_words(1000, UINT32_MAX);
	is(line(ugetrlimit, 0, 7, limit), "ugetrlimit(RLIMIT_NOFILE, {rlim_cur=1000, rlim_max=RLIM_INFINITY}) = 0");
}
END_TEST

START_TEST(scheduling)
{
	uint64_t mask = put("\x0b\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16), param = put_ints(5);
	uint64_t attr = put((const uint32_t[12]){ 48, 6, 1, 0, 0, 0, 100, 0, 200, 0, 300, 0 }, 48);

	is(line(sched_getaffinity, 16, 0, 128, mask), "sched_getaffinity(0, 128, [0 1 3 64]) = 16");
	is(line(sched_setaffinity, 0, 0, 1, mask), "sched_setaffinity(0, 1, [0 1 3]) = 0");
	is(line(sched_setscheduler, 0, 0, 0x40000001, param), "sched_setscheduler(0, SCHED_FIFO|SCHED_RESET_ON_FORK, [5]) = 0");
	is(line(sched_setattr, 0, 0, attr, 0), "sched_setattr(0, {size=48, sched_policy=SCHED_DEADLINE, "
	   "sched_flags=SCHED_FLAG_RESET_ON_FORK, sched_nice=0, sched_priority=0, sched_runtime=100, sched_deadline=200, "
	   "sched_period=300, ...}, 0) = 0");
}
END_TEST

START_TEST(users)
{
	uint64_t ids = put_ints(0, 1000, 0xffffffff);

	is(line(getresuid, 0, ids, ids + 4, ids + 8), "getresuid([0], [1000], [-1]) = 0");
	is(line(setgroups, 0, 2, ids), "setgroups(2, [0, 1000]) = 0");
	is(line(getgroups, 2, 65536, ids), "getgroups(65536, [0, 1000]) = 2");
	is(line(getgroups, 2, 0, 0), "getgroups(0, NULL) = 2");
	is(line(setresuid, 0, 0xffffffff, 0, 1000), "setresuid(-1, 0, 1000) = 0");
	is(line(umask, 022, 077), "umask(077) = 022");
	arch = arch_all[ARCH_I386];
	is(line(setuid16, 0, 0xffff), "setuid16(-1) = 0");
}
END_TEST

START_TEST(caps)
{
	uint64_t header = put_ints(0x20080522, 0), data = put_ints(0x80, 3, 0, 0x100, 0, 0);

	is(line(capget, 0, header, data), "capget({version=_LINUX_CAPABILITY_VERSION_3, pid=0}, {effective=1<<CAP_SETUID|1<<"
	   "CAP_CHECKPOINT_RESTORE, permitted=1<<CAP_CHOWN|1<<CAP_DAC_OVERRIDE, inheritable=0}) = 0");
}
END_TEST

/* --- signals ------------------------------------------------------------------------------------------------------ */

START_TEST(signal_calls)
{
	uint64_t mask = put((const uint64_t[]){ 0x4002 }, 8), most = put((const uint64_t[]){ ~UINT64_C(0x40100) }, 8);
	uint64_t action = put_words(0x4000, 0x14000004, 0x5000, 2), ignore = put_words(1, 0, 0, 0);

	is(line(kill, 0, 12, 15), "kill(12, SIGTERM) = 0");
	is(line(kill, 0, 12, 35), "kill(12, SIGRT_3) = 0");
	is(line(rt_sigprocmask, 0, 0, mask, 0, 8), "rt_sigprocmask(SIG_BLOCK, [INT TERM], NULL, 8) = 0");
	is(line(rt_sigprocmask, 0, 2, most, mask, 8), "rt_sigprocmask(SIG_SETMASK, ~[KILL STOP], [INT TERM], 8) = 0");
	is(line(rt_sigaction, 0, 2, action, 0, 8),
	   "rt_sigaction(SIGINT, {sa_handler=0x4000, sa_mask=[INT], sa_flags=SA_RESTORER|SA_RESTART|SA_SIGINFO, "
	   "sa_restorer=0x5000}, "
	   "NULL, 8) = 0");
	is(line(rt_sigaction, 0, 13, 0, ignore, 8),
	   "rt_sigaction(SIGPIPE, NULL, {sa_handler=SIG_IGN, sa_mask=[], sa_flags=0}, 8) = 0");
	arch = arch_all[ARCH_RISCV64];
	action = put_words(0x4000, 0x10000000, 2);
	is(line(rt_sigaction, 0, 2, action, 0, 8),
	   "rt_sigaction(SIGINT, {sa_handler=0x4000, sa_mask=[INT], sa_flags=SA_RESTART}, NULL, 8) = 0");
	arch = arch_all[ARCH_I386];
	action = put_words(0x4000, 0x14000000, 0x5000, 2, 0);
	is(line(rt_sigaction, 0, 2, action, 0, 8),
	   "rt_sigaction(SIGINT, {sa_handler=0x4000, sa_mask=[INT], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x5000}, "
	   "NULL, 8) = 0");
	action = put_words(0x4000, 2, 0x10000000, 0);
	is(line(sigaction, 0, 2, action, 0),
	   "sigaction(SIGINT, {sa_handler=0x4000, sa_mask=[INT], sa_flags=SA_RESTART}, NULL) = 0");
}
END_TEST

START_TEST(siginfos)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGCHLD;
	info.si_code = CLD_EXITED;
	info.si_pid = 12;
	info.si_uid = 1000;
	info.si_status = 3;
	text_clear(&out);
	decode_siginfo(&out, &info);
	is(out.data, "{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=12, si_uid=1000, si_status=3, si_utime=0, si_stime=0}");
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSEGV;
	info.si_code = SEGV_MAPERR;
	info.si_addr = (void *)0x1234;
	text_clear(&out);
	decode_siginfo(&out, &info);
	is(out.data, "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x1234}");
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTERM;
	info.si_code = SI_QUEUE;
	info.si_pid = 5;
	info.si_value.sival_int = 9;
	text_clear(&out);
	decode_siginfo(&out, &info);
	is(out.data, "{si_signo=SIGTERM, si_code=SI_QUEUE, si_pid=5, si_uid=0, si_int=9, si_ptr=0x9}");
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSYS;
	info.si_code = 1;
	info.si_call_addr = (void *)0x77;
	info.si_syscall = 39;
	info.si_arch = 0xc000003e;
	text_clear(&out);
	decode_siginfo(&out, &info);
	is(out.data, "{si_signo=SIGSYS, si_code=SYS_SECCOMP, si_call_addr=0x77, si_syscall=__NR_getpid, "
	   "si_arch=AUDIT_ARCH_X86_64}");
}
END_TEST

START_TEST(siginfo_compat)
{
	uint64_t info = put((const uint32_t[32]){ 17, 0, 2, 12, 1000, 9, 4, 5 }, 128);

	arch = arch_all[ARCH_I386];
	is(line(waitid, 0, 0, 0, info, 4, 0), "waitid(P_ALL, 0, {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=12, si_uid=1000, "
	   "si_status=SIGKILL, si_utime=4, si_stime=5}, WEXITED, NULL) = 0");
}
END_TEST

START_TEST(signal_names)
{
	is(decode_signal_name(2), "SIGINT");
	is(decode_signal_name(31), "SIGSYS");
	is(decode_signal_name(32), "SIGRTMIN");
	is(decode_signal_name(35), "SIGRT_3");
	is(decode_signal_name(64), "SIGRT_32");
	is(decode_signal_name(65), "65");
	is(decode_signal_name(INT32_MIN), "-2147483648");
	for (int i = 1; i < 32; i++) {
		char name[16];

		snprintf(name, sizeof(name), "SIG%s", sigabbrev_np(i) ? sigabbrev_np(i) : "?");
		if (i != SIGPOLL)
			is(decode_signal_name(i), name);
	}
}
END_TEST

START_TEST(errno_names)
{
	ck_assert_ptr_null(decode_errno_name(0));
	ck_assert_ptr_null(decode_errno_name(-5));
	ck_assert_ptr_null(decode_errno_name(4000));
	for (int i = 1; i < 134; i++) {
		const char *expected = strerrorname_np(i), *name = decode_errno_name(i);

		if (expected && i != EOPNOTSUPP)
			is(name, expected);
	}
	is(decode_errno_name(512), "ERESTARTSYS");
}
END_TEST

/* --- time and waiting --------------------------------------------------------------------------------------------- */

START_TEST(times_shown)
{
	uint64_t time = put_words(1, 500000000), rest = put_words(0, 7), path = put_string("f");
	uint64_t pair = put_words(5, 6, 0, 0x3ffffffe), now = put_words(0, 0x3fffffff, 1, 2);

	is(line(nanosleep, 0, time, rest), "nanosleep({tv_sec=1, tv_nsec=500000000}, 0x10020) = 0");
	is(line(nanosleep, -516, time, rest), "nanosleep({tv_sec=1, tv_nsec=500000000}, {tv_sec=0, tv_nsec=7}) = "
	   "? ERESTART_RESTARTBLOCK (Interrupted by signal)");
	is(line(clock_gettime, 0, 1, time), "clock_gettime(CLOCK_MONOTONIC, {tv_sec=1, tv_nsec=500000000}) = 0");
	is(line(utimensat, 0, -100, path, pair, 0), "utimensat(AT_FDCWD, \"f\", [{tv_sec=5, tv_nsec=6}, UTIME_OMIT], 0) = 0");
	is(line(utimensat, 0, -100, path, now, 0), "utimensat(AT_FDCWD, \"f\", [UTIME_NOW, {tv_sec=1, tv_nsec=2}], 0) = 0");
	is(line(setitimer, 0, 0, pair, 0),
	   "setitimer(ITIMER_REAL, {it_interval={tv_sec=5, tv_usec=6}, it_value={tv_sec=0, tv_usec=1073741822}}, NULL) = 0");
	arch = arch_all[ARCH_I386];
	time = put_words(0xffffffff, 5);
	is(line(clock_gettime, 0, 0, time), "clock_gettime(CLOCK_REALTIME, {tv_sec=-1, tv_nsec=5}) = 0");
	time = put((const uint64_t[]){ 5000000000, UINT64_C(0xdead00000005) }, 16); /* padding above tv_nsec */
	is(line(clock_gettime64, 0, 0, time), "clock_gettime64(CLOCK_REALTIME, {tv_sec=5000000000, tv_nsec=5}) = 0");
}
END_TEST

START_TEST(polls)
{
	uint64_t fds = put("\3\0\0\0\1\0\0\0\4\0\0\0\4\0\0\0", 16), set = put_words(0x18, 0), left = put_words(2, 3);
	uint16_t ready = 0x11;

	is(line(poll, 0, fds, 2, 100), "poll([{fd=3, events=POLLIN}, {fd=4, events=POLLOUT}], 2, 100) = 0 (Timeout)");
	is(line_with(CALL_poll, 1, (const uint64_t[6]){ fds, 2, -1 }, fds + 6, &ready, 2),
	   "poll([{fd=3, events=POLLIN}, {fd=4, events=POLLOUT}], 2, -1) = 1 ([{fd=3, revents=POLLIN|POLLHUP}])");
	is(line(select, 2, 5, set, 0, 0, left), "select(5, [3 4], NULL, NULL, {tv_sec=2, tv_usec=3}) = 2 (in [3 4], "
	   "left {tv_sec=2, tv_usec=3})");
	is(line(select, 0, 4, set, 0, 0, 0), "select(4, [3], NULL, NULL, NULL) = 0 (Timeout)");
	is(line(pselect6, 1, 4, 0, set, 0, 0, put_words(set, 8)),
	   "pselect6(4, NULL, [3], NULL, NULL, {sigmask=[ILL TRAP], sigsetsize=8}) = 1 (out [3])");
}
END_TEST

START_TEST(epolls)
{
	uint64_t event = put((const uint32_t[]){ 1, 3, 0 }, 12), aligned = put((const uint32_t[]){ 0x80000001, 0, 4, 0 }, 16);

	is(line(epoll_ctl, 0, 3, 1, 5, event), "epoll_ctl(3, EPOLL_CTL_ADD, 5, {events=EPOLLIN, data={u32=3, u64=3}}) = 0");
	is(line(epoll_wait, 1, 3, event, 10, -1), "epoll_wait(3, [{events=EPOLLIN, data={u32=3, u64=3}}], 10, -1) = 1");
	is(line(epoll_wait, 0, 3, event, 10, 5), "epoll_wait(3, [], 10, 5) = 0");
	arch = arch_all[ARCH_AARCH64];
	is(line(epoll_ctl, 0, 3, 3, 5, aligned),
	   "epoll_ctl(3, EPOLL_CTL_MOD, 5, {events=EPOLLIN|EPOLLET, data={u32=4, u64=4}}) = 0");
}
END_TEST

/* --- network ------------------------------------------------------------------------------------------------------ */

START_TEST(addresses)
{
	uint64_t inet = put("\2\0\0\120\177\0\0\1\0\0\0\0\0\0\0\0", 16), local = put("\1\0/run/x\0", 9),
		abstract = put("\1\0\0abc", 6);
	uint64_t inet6 = put("\12\0\1\273\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\0\0\0", 28),
		netlink = put("\20\0\0\0\5\0\0\0\1\0\0\0", 12);

	is(line(connect, -EINPROGRESS, 3, inet, 16), "connect(3, {sa_family=AF_INET, sin_port=htons(80), "
	   "sin_addr=inet_addr(\"127.0.0.1\")}, 16) = -1 EINPROGRESS (Operation now in progress)");
	is(line(bind, 0, 3, inet6, 28), "bind(3, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), "
	   "inet_pton(AF_INET6, \"::1\", &sin6_addr), sin6_scope_id=2}, 28) = 0");
	is(line(connect, 0, 3, local, 110), "connect(3, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, 110) = 0");
	is(line(connect, 0, 3, abstract, 6), "connect(3, {sa_family=AF_UNIX, sun_path=@\"abc\"}, 6) = 0");
	is(line(bind, 0, 3, local, 2), "bind(3, {sa_family=AF_UNIX}, 2) = 0");
	is(line(bind, 0, 3, netlink, 12), "bind(3, {sa_family=AF_NETLINK, nl_pid=5, nl_groups=0x1}, 12) = 0");
	is(line(connect, -EINVAL, 3, inet, 1), "connect(3, 0x10010, 1) = -1 EINVAL (Invalid argument)");
	is(line(connect, -EINVAL, 3, inet, -1), "connect(3, 0x10010, -1) = -1 EINVAL (Invalid argument)");
	is(line(connect, -EINVAL, 3, inet, 4),
	   "connect(3, {sa_family=AF_INET, sa_data=\"\\0P\"}, 4) = -1 EINVAL (Invalid argument)");
}
END_TEST

START_TEST(accepts)
{
	uint64_t inet = put("\2\0\0\120\177\0\0\1\0\0\0\0\0\0\0\0", 16), len = put_ints(28);
	uint32_t told = 16;

	is(entry(accept4, 3, inet, len, 0x80000), "accept4(3");
	is(line_with(CALL_accept4, 4, (const uint64_t[6]){ 3, inet, len, 0x80000 }, len, &told, 4),
	   "accept4(3, {sa_family=AF_INET, "
	   "sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, [28 => 16], SOCK_CLOEXEC) = 4");
	is(line(accept, 4, 3, 0, 0), "accept(3, NULL, NULL) = 4");
	memcpy(memory + (len - BASE), &(const uint32_t){ 4 }, 4); /* no room for what the kernel tells of */
	is(line_with(CALL_accept, 4, (const uint64_t[6]){ 3, inet, len }, len, &told, 4),
	   "accept(3, {sa_family=AF_INET, sa_data=\"\\0P\"}, [4 => 16]) = 4");
	is(line(accept, -EAGAIN, 3, inet, len), "accept(3, 0x10010, [16]) = -1 EAGAIN (Resource temporarily unavailable)");
}
END_TEST

START_TEST(messages)
{
	uint64_t text = put_string("hi"), iov = put_words(text, 2);
	uint64_t control = put((const uint32_t[]){ 20, 0, 1, 1, 5, 0 }, 24), message = put_words(0, 0, iov, 1, control, 24,
		0x40000000);

	is(line(sendmsg, 2, 3, message, 0x4000),
	   "sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"hi\", iov_len=2}], "
	   "msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[5]}], "
	   "msg_controllen=24, msg_flags=MSG_CMSG_CLOEXEC}, MSG_NOSIGNAL) = 2");
	is(line(recvmsg, 1, 3, message, 0), "recvmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"h\", iov_len=2}], "
	   "msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[5]}], "
	   "msg_controllen=24, msg_flags=MSG_CMSG_CLOEXEC}, 0) = 1");
	message = put_words(0, 0, iov, 1, 0, 0, 0, 1);
	is(line(sendmmsg, 1, 3, message, 1, 0), "sendmmsg(3, [{msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"hi\", "
	   "iov_len=2}], msg_iovlen=1, msg_controllen=0, msg_flags=0}}], 1, 0) = 1");
	is(line(recvmmsg, 1, 3, message, 4, 0, 0), "recvmmsg(3, [{msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"h\", "
	   "iov_len=2}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=1}], 4, 0, NULL) = 1");
	arch = arch_all[ARCH_I386];
	iov = put_words(text, 2);
	control = put_words(16, 1, 1, 5);
	message = put_words(0, 0, iov, 1, control, 16, 0);
	is(line(sendmsg, 2, 3, message, 0), "sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"hi\", iov_len=2}], "
	   "msg_iovlen=1, msg_control=[{cmsg_len=16, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[5]}], "
	   "msg_controllen=16, msg_flags=0}, 0) = 2");
}
END_TEST

START_TEST(sockets)
{
	uint64_t one = put_ints(1), len = put_ints(4), linger = put_ints(1, 5), name = put("lo\0", 4), pair = put_ints(3, 4);

	is(line(socket, 3, 2, 0x80001, 6), "socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 3");
	is(line(socket, 3, 16, 3, 0), "socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) = 3");
	is(line(socket, 3, 1, 2, 0), "socket(AF_UNIX, SOCK_DGRAM, 0) = 3");
	is(line(socket, 3, 17, 3, 0x300), "socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)) = 3");
	is(line(socketpair, 0, 1, 1, 0, pair), "socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4]) = 0");
	is(line(setsockopt, 0, 3, 1, 2, one, 4), "setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0");
	is(line(setsockopt, 0, 3, 1, 13, linger, 8), "setsockopt(3, SOL_SOCKET, SO_LINGER, {l_onoff=1, l_linger=5}, 8) = 0");
	is(line(setsockopt, 0, 3, 1, 25, name, 3), "setsockopt(3, SOL_SOCKET, SO_BINDTODEVICE, \"lo\", 3) = 0");
	is(line(setsockopt, 0, 3, 6, 1, one, 4), "setsockopt(3, SOL_TCP, TCP_NODELAY, [1], 4) = 0");
	is(line(setsockopt, 0, 3, 41, 26, one, 4), "setsockopt(3, SOL_IPV6, IPV6_V6ONLY, [1], 4) = 0");
	is(line(getsockopt, 0, 3, 1, 4, one, len), "getsockopt(3, SOL_SOCKET, SO_ERROR, [1], [4]) = 0");
	is(line(shutdown, 0, 3, 2), "shutdown(3, SHUT_RDWR) = 0");
	is(line(sendto, 2, 3, put_string("ok"), 2, 0x40, 0, 0), "sendto(3, \"ok\", 2, MSG_DONTWAIT, NULL, 0) = 2");
}
END_TEST

START_TEST(wrapped_calls)
{
	uint64_t path, inet = put("\2\0\0\120\177\0\0\1\0\0\0\0\0\0\0\0", 16);

	arch = arch_all[ARCH_I386];
	is(line(socketcall, 3, 1, put_words(2, 1, 0)), "socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3");
	is(line(socketcall, 0, 3, put_words(3, inet, 16)),
	   "connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0");
	is(line(socketcall, 2, 9, put_words(3, put_string("ok"), 2, 0)), "sendto(3, \"ok\", 2, 0, NULL, 0) = 2");
	is(line(socketcall, -EINVAL, 99, 0x10), "socketcall(0x63 /* SYS_??? */, 0x10) = -1 EINVAL (Invalid argument)");
	is(line(socketcall, -EFAULT, 1, 0x10), "socketcall(SYS_SOCKET, 0x10) = -1 EFAULT (Bad address)");
	is(line(old_mmap, 0xf7000000, put_words(0, 4096, 1, 2, 3, 0)),
	   "mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0xf7000000");
	is(line(ipc, 5, 23, 0x77, 4096, 001600, 0, 0), "shmget(0x77, 4096, IPC_CREAT|0600) = 5");
	is(line(ipc, -ENOSYS, 9, 1, 2, 3, 4, 5),
	   "ipc(0x9 /* SYS_??? */, 0x1, 0x2, 0x3, 0x4, 0x5) = -1 ENOSYS (Function not implemented)");
	path = put((const uint16_t[]){ 0, 0xffff, 0x1000 }, 6);
	is(line(ipc, 0, 1, 7, 1, 0, path), "semop(7, [{sem_num=0, sem_op=-1, sem_flg=SEM_UNDO}], 1) = 0");
}
END_TEST

/* --- results ------------------------------------------------------------------------------------------------------ */

START_TEST(results)
{
	struct call unknown = fake_call(&guest, arch, CALL_NONE, (const uint64_t[6]){ 1, 2, 3, 4, 5, 0 });
	struct decode_state state;

	is(line(getpid, 42), "getpid() = 42");
	is(line(getpid, -512), "getpid() = ? ERESTARTSYS (To be restarted if SA_RESTART is set)");
	is(line(getpid, -513), "getpid() = ? ERESTARTNOINTR (To be restarted)");
	is(line(getpid, -514), "getpid() = ? ERESTARTNOHAND (To be restarted if no handler)");
	is(line(getpid, -3000), "getpid() = -1 (errno 3000)");
	is(line(lseek, -5000, 3, 0, 0), "lseek(3, 0, SEEK_SET) = -5000");
	is(entry(exit_group, 1), "exit_group(1");
	text_clear(&out);
	unknown.nr = 0x1ff;
	decode_entry(&out, &unknown, &state);
	decode_exit(&out, &unknown, &state, -ENOSYS);
	is(out.data, "syscall_0x1ff(0x1, 0x2, 0x3, 0x4, 0x5, 0) = -1 ENOSYS (Function not implemented)");
}
END_TEST

START_TEST(alignment)
{
	struct call call = fake_call(&guest, arch, CALL_close, (const uint64_t[6]){ 3 });
	struct decode_state state;

	text_clear(&out);
	decode_entry(&out, &call, &state);
	decode_exit(&out, &call, &state, 0);
	is(out.data, "close(3)                                = 0"); /* as strace pads it */
}
END_TEST

/* --- guests that lie ---------------------------------------------------------------------------------------------- */

START_TEST(string_at_the_end)
{
	uint64_t end = BASE + MEMORY;

	memcpy(memory + MEMORY - 4, "abc", 4);
	is(line(chdir, 0, end - 4), "chdir(\"abc\") = 0");
	memory[MEMORY - 1] = 'd';
	is(line(chdir, -EFAULT, end - 4), "chdir(\"abcd\"...) = -1 EFAULT (Bad address)");
	is(line(chdir, -EFAULT, end), "chdir(0x20000) = -1 EFAULT (Bad address)");
	is(line(chdir, -EFAULT, UINT64_MAX), "chdir(0xffffffffffffffff) = -1 EFAULT (Bad address)");
}
END_TEST

/* A 32-bit guest has nothing above 4 GiB, whatever is mapped there. */
START_TEST(end_of_the_small_space)
{
	guest.base = UINT64_C(0x100000000) - 16;
	memset(memory, 'x', 32);
	arch = arch_all[ARCH_I386];
	is(line(chdir, 0, UINT32_MAX - 1), "chdir(\"xx\"...) = 0");
	is(line(write, 8, 1, UINT32_MAX - 3, 8), "write(1, 0xfffffffc, 8) = 8");
}
END_TEST

START_TEST(string_over_pages)
{
	memset(memory + 0x0ff0, 'x', 0x2000);
	memory[0x2ff0] = '\0';
	line(chdir, 0, BASE + 0x1ff0); /* 4096 bytes and a NUL: too long by one */
	ck_assert_uint_eq(strspn(out.data + strlen("chdir(\""), "x"), 4095);
	ck_assert_ptr_nonnull(strstr(out.data, "x\"...) = 0"));
	line(chdir, 0, BASE + 0x1ff1);
	ck_assert_ptr_nonnull(strstr(out.data, "x\") = 0"));
}
END_TEST

START_TEST(huge_counts)
{
	uint64_t word = put_words(0x41, 0x41, 0x41, 0x41);

	line(writev, -EINVAL, 1, word, UINT64_MAX);
	ck_assert_uint_lt(out.len, 4096);
	line(poll, -EINVAL, word, UINT32_MAX, 0);
	ck_assert_uint_lt(out.len, 4096);
	line(poll, INT32_MAX, word, UINT32_MAX, 0);
	ck_assert_uint_lt(out.len, 4096);
	line(select, INT64_MAX, INT32_MAX, word, word, word, word);
	ck_assert_uint_lt(out.len, 4096);
	line(setgroups, -EINVAL, -1, word);
	ck_assert_uint_lt(out.len, 4096);
	line(semop, -E2BIG, 1, word, -1);
	ck_assert_uint_lt(out.len, 4096);
	line(sendmmsg, -1, 1, word, -1, 0);
	line(epoll_wait, INT64_MAX, 1, word, -1, 0);
	ck_assert_uint_lt(out.len, 4096);
	line(getdents64, INT64_MAX, 1, word, -1);
	line(read, INT64_MAX, 1, word, -1);
	ck_assert_uint_lt(out.len, 256);
	line(readlink, INT64_MAX, word, word, -1);
	ck_assert_uint_lt(out.len, 4 * 4096 + 256);
	line(sched_getaffinity, INT64_MAX, 0, -1, word);
	ck_assert_uint_lt(out.len, 4096);
	line(rt_sigprocmask, 0, 0, word, word, UINT64_MAX);
	ck_assert_uint_lt(out.len, 256);
}
END_TEST

START_TEST(endless_vectors)
{
	uint64_t text = put_string("word");

	for (size_t i = 0; i < 4096; i++) /* no NULL up to the end of memory */
		memcpy(memory + MEMORY - 8 * (i + 1), &text, 8);
	line(execve, 0, text, BASE + MEMORY - 8 * 4096, BASE + MEMORY - 8 * 4096);
	ck_assert_ptr_nonnull(strstr(out.data, "\"word\", ...], 0x18000 /* 4096 vars, unterminated */) = 0"));
	line(execve, 0, text, BASE + MEMORY - 8 * 2, UINT64_MAX - 7);
	ck_assert_ptr_nonnull(strstr(out.data, "[\"word\", \"word\", ...], 0xfffffffffffffff8 /* 0 vars, unterminated */) = 0"));
	line(execve, 0, text, BASE + MEMORY - 4, BASE + MEMORY - 8 * 3 + 1);
	ck_assert_ptr_nonnull(strstr(out.data, "0x1fffc, "));
}
END_TEST

START_TEST(hostile_control)
{
	static const uint32_t lengths[] = { 0, 1, 15, 16, 17, 24, 25, 1000, 0x7fffffff, 0xffffffff };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t control = put((const uint32_t[]){ lengths[i], 0, 1, 1, 5, 6, 0, 0, 1, 1 }, 40);
		uint64_t message = put_words(0, 0, 0, 0, control, 40, 0);

		line(sendmsg, 0, 3, message, 0);
		ck_assert_uint_lt(out.len, 1024);
		memory[control - BASE + 4] = 0x80; /* the high half of the length */
		line(sendmsg, 0, 3, message, 0);
		ck_assert_uint_lt(out.len, 1024);
	}
}
END_TEST

START_TEST(escapes)
{
	uint64_t path = put_string("\33]0;owned\a\n\r\x9b" "31m");

	is(line(chdir, 0, path), "chdir(\"\\33]0;owned\\7\\n\\r\\23331m\") = 0");
}
END_TEST

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static uint64_t seed;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * UINT64_C(0x2545f4914f6cdd1d);
}

/* Values that code goes wrong on: small ones, pointers into memory and to its ends, ends of number ranges. */
static uint64_t random_value(void)
{
	switch (random64() % 8) {
	case 0:
		return random64() % 64;
	case 1:
	case 2:
	case 3:
		return BASE + random64() % MEMORY;
	case 4:
		return BASE + MEMORY - random64() % 160;
	case 5:
		return UINT64_MAX - random64() % 128;
	case 6:
		return UINT32_MAX - random64() % 128;
	default:
		return random64() >> random64() % 64;
	}
}

static void random_memory(void)
{
	for (size_t i = 0; i < MEMORY / 8; i++) {
		uint64_t value = random64() % 3 ? 0 : random_value();

		memcpy(memory + 8 * i, &value, 8);
	}
}

static int64_t random_result(void)
{
	switch (random64() % 4) {
	case 0:
		return -(int64_t)(random64() % 700);
	case 1:
		return (int64_t)(random64() % 200);
	case 2:
		return (int64_t)random_value();
	default:
		return 0;
	}
}

/* No assertion for each byte: libcheck notes every one. */
static void check_printable(const struct call *call)
{
	if (out.len > TEXT_MAX || strlen(out.data) != out.len)
		ck_abort_msg("%s: %zu bytes, %zu in fact", row_table[call->id].name, out.len, strlen(out.data));
	for (size_t i = 0; i < out.len; i++)
		if (out.data[i] < 0x20 || out.data[i] >= 0x7f)
			ck_abort_msg("%s: byte %#x", row_table[call->id].name, out.data[i]);
}

START_TEST(every_row_on_every_arch)
{
	enum { ROUNDS = 40 };
	const char *given = getenv("DECODE_SEED");
	uint64_t first = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 2654435761U + (uint64_t)getpid();

	seed = first | 1;
	printf("test_decode: DECODE_SEED=%#llx\n", (unsigned long long)first);
	for (int round = 0; round < ROUNDS; round++) {
		random_memory();
		for (int a = 0; a < ARCH_COUNT; a++) {
			for (int id = 0; id < CALL_COUNT; id++) {
				uint64_t args[6];
				struct call call;
				struct decode_state state;

				for (int i = 0; i < 6; i++)
					args[i] = arch_all[a]->word == 4 ? (uint32_t)random_value() : random_value();
				call = fake_call(&guest, arch_all[a], id, args);
				text_clear(&out);
				decode_entry(&out, &call, &state);
				check_printable(&call);
				memory[random64() % MEMORY] ^= 0xff; /* the kernel, or another thread */
				decode_exit(&out, &call, &state, random_result());
				check_printable(&call);
				if (!strstr(out.data, "= ") && out.len != TEXT_MAX)
					ck_abort_msg("no result: %s", out.data);
			}
		}
	}
}
END_TEST

START_TEST(random_siginfo)
{
	uint8_t info[128];

	seed = 4711;
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(info); i += 8) {
			uint64_t value = random_value();

			memcpy(info + i, &value, 8);
		}
		info[0] = (uint8_t)(random64() % 70);
		info[1] = info[2] = info[3] = 0;
		text_clear(&out);
		decode_siginfo_of(&out, info, round & 1 ? 4 : 8);
		if (out.len >= 512)
			ck_abort_msg("%zu bytes: %s", out.len, out.data);
	}
}
END_TEST

/* Which arguments are printed at the exit is told twice: by the printers' table and by args.def. */
START_TEST(out_kinds_wait_for_the_exit)
{
	static const char *const docs[] = {
#define ARG_KIND(name, doc) doc,
#include "syscalls/args.def"
#undef ARG_KIND
	};

	for (int id = 0; id < CALL_COUNT; id++) {
		const struct row *row = &row_table[id];
		unsigned first = 0;
		struct call call;
		struct decode_state state;

		if (id == CALL_clone || id == CALL_futex || id == CALL_futex_time64)
			continue; /* printed by name, or shown by operation */
		while (first < ROW_ARGS && row->args[first].kind != ARG_END && strncmp(docs[row->args[first].kind], "OUT", 3))
			first++;
		if (first == ROW_ARGS || row->args[first].kind == ARG_END || row->args[first].kind == ARG_STRUCT_OUT)
			continue;
		call = fake_call(&guest, arch, id, (const uint64_t[6]){ 0 });
		text_clear(&out);
		decode_entry(&out, &call, &state);
		ck_assert_msg(state.next <= first, "%s prints argument %u at the entry: %s", row->name, first, out.data);
	}
}
END_TEST

/* --- sets --------------------------------------------------------------------------------------------------------- */

START_TEST(sets)
{
	static bool stop[CALL_COUNT];
	char bad[64], near[64];
	int count = 0;

	ck_assert_int_eq(decode_parse_set("open,openat", stop, bad, near), 0);
	ck_assert(stop[CALL_open] && stop[CALL_openat] && !stop[CALL_read]);
	ck_assert_int_eq(decode_parse_set("%network,read", stop, bad, near), 0);
	ck_assert(stop[CALL_connect] && stop[CALL_read] && !stop[CALL_open]);
	ck_assert_int_eq(decode_parse_set("!%file", stop, bad, near), 0);
	ck_assert(!stop[CALL_open] && stop[CALL_read] && stop[CALL_getpid]);
	ck_assert_int_eq(decode_parse_set("all", stop, bad, near), 0);
	for (int i = 0; i < CALL_COUNT; i++)
		count += stop[i];
	ck_assert_int_eq(count, CALL_COUNT);
	ck_assert_int_eq(decode_parse_set("none", stop, bad, near), 0);
	count = 0;
	for (int i = 0; i < CALL_COUNT; i++)
		count += stop[i];
	ck_assert_int_eq(count, 0);
	ck_assert_int_eq(decode_parse_set("!none", stop, bad, near), 0);
	ck_assert(stop[CALL_read]);
}
END_TEST

START_TEST(every_class)
{
	static const char *const names[] = { "%file", "%desc", "%network", "%net", "%process", "%signal", "%ipc", "%memory",
		"%creds",
					     "%stat", "%clock", "%pure" };
	static bool stop[CALL_COUNT];
	char bad[64], near[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int count = 0;

		ck_assert_int_eq(decode_parse_set(names[i], stop, bad, near), 0);
		for (int id = 0; id < CALL_COUNT; id++)
			count += stop[id];
		ck_assert_msg(count > 3 && count < CALL_COUNT / 2, "%s holds %d calls", names[i], count);
	}
}
END_TEST

START_TEST(bad_sets)
{
	static bool stop[CALL_COUNT];
	char bad[64], near[64], wide[200];

	ck_assert_int_eq(decode_parse_set("read,conect", stop, bad, near), -EINVAL);
	is(bad, "conect");
	is(near, "connect");
	ck_assert_int_eq(decode_parse_set("%netwrk", stop, bad, near), -EINVAL);
	is(near, "%network");
	ck_assert_int_eq(decode_parse_set("qqqqqqqqqqqq", stop, bad, near), -EINVAL);
	is(near, "");
	ck_assert_int_eq(decode_parse_set("", stop, bad, near), -EINVAL);
	is(bad, "");
	ck_assert_int_eq(decode_parse_set("read,,write", stop, bad, near), -EINVAL);
	ck_assert_int_eq(decode_parse_set("read,", stop, bad, near), -EINVAL);
	ck_assert_int_eq(decode_parse_set("!", stop, bad, near), -EINVAL);
	memset(wide, 'w', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	ck_assert_int_eq(decode_parse_set(wide, stop, bad, near), -EINVAL);
	ck_assert_uint_eq(strlen(bad), 63);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, open_calls);
	tcase_add_test(tcase, openat2_how);
	tcase_add_test(tcase, reads_and_writes);
	tcase_add_test(tcase, vectors);
	tcase_add_test(tcase, file_struct);
	tcase_add_test(tcase, statx_struct);
	tcase_add_test(tcase, statfs_struct);
	tcase_add_test(tcase, strings_out);
	tcase_add_test(tcase, directory_entries);
	tcase_add_test(tcase, offsets);
	tcase_add_test(tcase, fcntl_commands_shown);
	tcase_add_test(tcase, ioctl_requests);
	tcase_add_test(tcase, ioctl_table);
	tcase_add_test(tcase, handles);
	tcase_add_test(tcase, memory_calls);
	tcase_add_test(tcase, exec_calls);
	tcase_add_test(tcase, clone_calls);
	tcase_add_test(tcase, clone3_args);
	tcase_add_test(tcase, wait_calls);
	tcase_add_test(tcase, futex_calls);
	tcase_add_test(tcase, prctl_options_shown);
	tcase_add_test(tcase, seccomp_calls);
	tcase_add_test(tcase, limits);
	tcase_add_test(tcase, scheduling);
	tcase_add_test(tcase, users);
	tcase_add_test(tcase, caps);
	tcase_add_test(tcase, signal_calls);
	tcase_add_test(tcase, siginfos);
	tcase_add_test(tcase, siginfo_compat);
	tcase_add_test(tcase, signal_names);
	tcase_add_test(tcase, errno_names);
	tcase_add_test(tcase, times_shown);
	tcase_add_test(tcase, polls);
	tcase_add_test(tcase, epolls);
	tcase_add_test(tcase, addresses);
	tcase_add_test(tcase, accepts);
	tcase_add_test(tcase, messages);
	tcase_add_test(tcase, sockets);
	tcase_add_test(tcase, wrapped_calls);
	tcase_add_test(tcase, results);
	tcase_add_test(tcase, alignment);
	tcase_add_test(tcase, out_kinds_wait_for_the_exit);
}

static void add_hostile(TCase *tcase)
{
	tcase_add_test(tcase, string_at_the_end);
	tcase_add_test(tcase, end_of_the_small_space);
	tcase_add_test(tcase, string_over_pages);
	tcase_add_test(tcase, huge_counts);
	tcase_add_test(tcase, endless_vectors);
	tcase_add_test(tcase, hostile_control);
	tcase_add_test(tcase, escapes);
	tcase_add_test(tcase, every_row_on_every_arch);
	tcase_add_test(tcase, random_siginfo);
}

Suite *suite_decode(void);
Suite *suite_decode(void)
{
	Suite *suite = suite_create("decode");
	TCase *calls = tcase_create("calls"), *hostile = tcase_create("hostile"), *names = tcase_create("sets");

	tcase_add_checked_fixture(calls, setup, teardown);
	add_tests(calls);
	suite_add_tcase(suite, calls);
	tcase_add_checked_fixture(hostile, setup, teardown);
	tcase_set_timeout(hostile, 120);
	add_hostile(hostile);
	suite_add_tcase(suite, hostile);
	tcase_add_test(names, sets);
	tcase_add_test(names, every_class);
	tcase_add_test(names, bad_sets);
	suite_add_tcase(suite, names);
	return suite;
}
