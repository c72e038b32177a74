/* calls.c - guests that look at what a verdict does to a call. */
#include "tests/guest/guest.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "tests/engine/engine_test.h"

/* --- rewritten ---------------------------------------------------------------------------------------------------- */

static int test_rewrite(void)
{
	char path[300];
	struct stat now, want;
	int fd;

	snprintf(path, sizeof(path), "%s/hello", shared->dir);
	MUST(stat(path, &want) == 0);
	fd = open_virtual("hello", O_RDONLY | O_CLOEXEC, 0);
	CHECK(fd >= 0 && fstat(fd, &now) == 0);
	CHECK(now.st_ino == want.st_ino && now.st_dev == want.st_dev);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK(file_holds(fd, "hello"));
	CHECK(open_virtual("missing", O_RDONLY, 0) < 0 && errno == ENOENT);
	CHECK(open_virtual("hello/x", O_RDONLY, 0) < 0 && errno == ENOTDIR);
	CHECK(file_holds((int)syscall(SYS_open, "/virtual/hello", O_RDONLY), "hello"));
	CHECK(open("/refuse", O_RDONLY) < 0 && errno == EACCES);
	CHECK(open((char *)8, O_RDONLY) < 0 && errno == EFAULT);
	fd = (int)syscall(SYS_creat, "/virtual/created", 0640);
	CHECK(fd >= 0 && write(fd, "new", 3) == 3);
	close(fd);
	CHECK(file_holds(open_virtual("created", O_RDONLY, 0), "new"));
	return guest_failures != 0;
}

/* A path that another thread changes all the time. */
struct flipper {
	char path[20];
	volatile bool over;
};

enum { FLIPS = 100000, OPENS = 3000 };

static void *flip(void *arg)
{
	struct flipper *f = arg;

	for (long i = 0; i < FLIPS || !f->over; i++) {
		__atomic_store_n(&f->path[9], i % 2 ? 'a' : 'b', __ATOMIC_SEQ_CST);
		for (volatile int j = 0; j < (int)(i % 64); j++)
			;
	}
	return NULL;
}

/* What was opened is what was decided, whatever the path says meanwhile. */
static int test_rewrite_race(void)
{
	static struct flipper f = { .path = "/virtual/a" };
	int seen[2] = { 0, 0 };
	pthread_t thread;

	guest_thread(&thread, flip, &f);
	for (unsigned i = 1; i <= OPENS; i++) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, f.path, O_RDONLY, i);
		char is = 0;

		CHECK(fd >= 0 && read(fd, &is, 1) == 1);
		close(fd);
		CHECK_EQ(is, shared->decided[i]);
		if (is == 'a' || is == 'b')
			seen[is - 'a']++;
		if (guest_failures)
			break;
	}
	f.over = true;
	pthread_join(thread, NULL);
	CHECK(seen[0] > 0 && seen[1] > 0);
	CHECK_EQ(windows_mapped(), 1); /* each call gave its slot back */
	return guest_failures != 0;
}

/* --- registers ---------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)

struct regs {
	uint64_t rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15;
};

/* Makes the call that *REGS says, and stores there what the registers are afterwards. */
void raw_call(struct regs *regs);
__asm__(".pushsection .text\n"
        "	.type raw_call, @function\n"
        "raw_call:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi\n"
        "	mov %rdi, %rcx\n"
        "	mov 0(%rcx), %rax; mov 8(%rcx), %rdi; mov 16(%rcx), %rsi; mov 24(%rcx), %rdx\n"
        "	mov 32(%rcx), %r10; mov 40(%rcx), %r8; mov 48(%rcx), %r9\n"
        "	mov 56(%rcx), %rbx; mov 64(%rcx), %rbp; mov 72(%rcx), %r12; mov 80(%rcx), %r13\n"
        "	mov 88(%rcx), %r14; mov 96(%rcx), %r15\n"
        "	syscall\n"
        "	mov (%rsp), %rcx\n"
        "	mov %rax, 0(%rcx); mov %rdi, 8(%rcx); mov %rsi, 16(%rcx); mov %rdx, 24(%rcx)\n"
        "	mov %r10, 32(%rcx); mov %r8, 40(%rcx); mov %r9, 48(%rcx)\n"
        "	mov %rbx, 56(%rcx); mov %rbp, 64(%rcx); mov %r12, 72(%rcx); mov %r13, 80(%rcx)\n"
        "	mov %r14, 88(%rcx); mov %r15, 96(%rcx)\n"
        "	pop %rdi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n"
        ".popsection\n");

static long checked_call(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct regs before = { (uint64_t)nr, a, b, c, d, 0x1111222233334444, 0x5555666677778888,
	                       0xdeadbeef00000001, 0xdeadbeef00000002, 0xdeadbeef00000003,
	                       0xdeadbeef00000004, 0xdeadbeef00000005, 0xdeadbeef00000006 };
	struct regs after = before;

	raw_call(&after);
	before.rax = after.rax;
	if (memcmp(&before, &after, sizeof(before))) {
		const uint64_t *x = &before.rax, *y = &after.rax;

		for (size_t i = 0; i < sizeof(before) / 8; i++) {
			if (x[i] != y[i])
				dprintf(2, "FAIL call %ld: register %zu was %llx, is %llx\n", nr, i, (unsigned long long)x[i],
					(unsigned long long)y[i]);
		}
		guest_failures++;
	}
	return (long)after.rax;
}

static uint64_t ptr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int test_registers(void)
{
	const uint64_t cwd = 0xabcdef00ffffff9c; /* AT_FDCWD is 32 bits: the upper half must come back as well */
	struct utsname uts;

	CHECK(checked_call(SYS_openat, cwd, ptr("/virtual/hello"), O_RDONLY, 0x7700000000000001) >= 0);
	CHECK_EQ(checked_call(SYS_openat, cwd, ptr("/virtual/missing"), O_RDONLY, 0), -ENOENT);
	CHECK(checked_call(SYS_open, ptr("/virtual/hello"), O_RDONLY, 0x1234, 0x5678) >= 0);
	CHECK(checked_call(SYS_creat, ptr("/virtual/created"), 0600, 0x1234, 0x5678) >= 0);
	CHECK_EQ(checked_call(SYS_getsid, 5, 6, 7, 8), ANSWERED_SID);
	CHECK_EQ(checked_call(SYS_openat, cwd, ptr("/refuse"), 0, 0), -EACCES);
	CHECK(checked_call(SYS_openat, cwd, ptr("/fd/file"), O_RDONLY, 9) >= 0);
	CHECK_EQ(checked_call(SYS_openat, cwd, ptr("/fd/none"), O_RDONLY, 9), -ENOENT);
	CHECK_EQ(checked_call(SYS_getpgid, 0, 6, 7, 8), getpgrp());
	CHECK(checked_call(SYS_openat, cwd, ptr("/etc/passwd"), O_RDONLY, 9) >= 0);
	CHECK_EQ(checked_call(SYS_uname, ptr(&uts), 2, 3, 4), 0);
	CHECK_EQ(checked_call(SYS_uname, 16, 2, 3, 4), -EFAULT);
	CHECK_EQ(checked_call(SYS_execve, ptr("/virtual/missing"), ptr(NULL), ptr(NULL), 4), -ENOENT);
	return guest_failures != 0;
}

#else

static int test_registers(void)
{
	return GUEST_SKIP;
}

#endif

/* --- interrupted -------------------------------------------------------------------------------------------------- */

static volatile int handled;

static void on_usr1(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	handled++;
}

struct opener {
	pthread_t thread;
	volatile pid_t tid;
	long nr;
	const char *path;
	int flags;
	volatile int result, error;
};

static void *opener_body(void *arg)
{
	struct opener *o = arg;

	o->tid = guest_tid();
	o->result = (int)(o->nr == SYS_openat ? syscall(o->nr, AT_FDCWD, o->path, o->flags, 0)
	                                      : syscall(o->nr, o->path, o->flags, 0));
	o->error = errno;
	return NULL;
}

static void opener_start(struct opener *o)
{
	int decisions = shared->decisions;

	o->tid = 0;
	guest_thread(&o->thread, opener_body, o);
	MUST(guest_await_value(&shared->decisions, decisions + 1));
	MUST(guest_await_state(getpid(), o->tid, "S"));
}

static void opener_signal(struct opener *o)
{
	int before = handled;

	syscall(SYS_tgkill, getpid(), o->tid, SIGUSR1);
	MUST(guest_await_value(&handled, before + 1));
}

/* EINTR without SA_RESTART; with it the call is decided again and then succeeds. */
static void try_restart(struct opener *o, int other_end)
{
	int decisions, fd;
	char path[300];

	guest_handle(SIGUSR1, on_usr1, 0);
	opener_start(o);
	opener_signal(o);
	pthread_join(o->thread, NULL);
	CHECK(o->result < 0);
	CHECK_EQ(o->error, EINTR);

	guest_handle(SIGUSR1, on_usr1, SA_RESTART);
	opener_start(o);
	for (int i = 0; i < 3; i++) {
		decisions = shared->decisions;
		opener_signal(o);
		MUST(guest_await_value(&shared->decisions, decisions + 1));
		MUST(guest_await_state(getpid(), o->tid, "S"));
		CHECK_EQ(shared->decisions, decisions + 1);
	}
	snprintf(path, sizeof(path), "%s/fifo0", shared->dir);
	fd = open(path, other_end | O_CLOEXEC);
	CHECK(fd >= 0);
	pthread_join(o->thread, NULL);
	CHECK(o->result >= 0);
	close(o->result);
	close(fd);
}

static int test_restart(void)
{
	struct opener o = { .nr = SYS_openat, .path = "/virtual/fifo0", .flags = O_RDONLY };

	try_restart(&o, O_WRONLY);
	return guest_failures != 0;
}

static int test_restart_number(void)
{
	struct opener o = { .nr = SYS_open, .path = "/virtual/fifo0", .flags = O_RDONLY };
	struct opener c = { .nr = SYS_creat, .path = "/virtual/fifo0" };

	try_restart(&o, O_WRONLY);
	try_restart(&c, O_RDONLY);
	return guest_failures != 0;
}

/* --- answered ----------------------------------------------------------------------------------------------------- */

static int test_answer(void)
{
	struct utsname uts;

	CHECK_EQ(getsid(5), ANSWERED_SID);
	CHECK(uname(&uts) == 0);
	CHECK(!strcmp(uts.machine, ANSWERED_MACHINE));
	CHECK(!strcmp(uts.sysname, "Linux"));
	CHECK_EQ(syscall(SYS_uname, 16), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(syscall(SYS_uname, -64L), -1);
	CHECK_EQ(errno, EFAULT);
	return guest_failures != 0;
}

/* As the kernel's own copy: what the guest itself may not write, an answer is not written to. */
static int test_answer_protected(void)
{
	const int refused[] = { PROT_READ, PROT_NONE, PROT_READ | PROT_EXEC };
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(pages != MAP_FAILED);
	for (size_t i = 0; i < 3; i++) {
		memset(pages, 'x', 4096);
		mprotect(pages, 4096, refused[i]);
		CHECK_EQ(syscall(SYS_uname, pages), -1);
		CHECK_EQ(errno, EFAULT);
		mprotect(pages, 4096, PROT_READ | PROT_WRITE);
		CHECK(pages[0] == 'x' && pages[100] == 'x');
	}
	munmap(pages + 2 * 4096, 4096);
	CHECK_EQ(syscall(SYS_uname, pages + 2 * 4096 - 100), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(syscall(SYS_uname, pages + 4096 - 100), 0); /* over the bound of two pages */
	return guest_failures != 0;
}

/* --- answered with a file ----------------------------------------------------------------------------------------- */

static void try_lowest(void)
{
	int low = open_kind("file", O_RDONLY), high = open_kind("file", O_RDONLY), again;

	CHECK(low >= 3 && high == low + 1);
	close(low);
	again = open_kind("file", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(again, low);
	CHECK_EQ(fcntl(again, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(high, F_GETFD), 0);
	close(again);
	close(high);
}

static void try_dir(void)
{
	int fd = open_kind("dir", O_RDONLY);
	DIR *dir = fdopendir(dup(fd));
	bool found = false;
	struct dirent *entry;

	CHECK(file_holds(openat(fd, "hello", O_RDONLY), "hello"));
	while (dir && (entry = readdir(dir)))
		found = found || !strcmp(entry->d_name, "hello");
	CHECK(found);
	closedir(dir);
	CHECK(fchdir(fd) == 0);
	CHECK(file_holds(open("hello", O_RDONLY), "hello"));
	close(fd);
}

static void try_path(void)
{
	int fd = open_kind("path", O_PATH);
	struct stat st;
	char byte;

	CHECK(fd >= 0 && (fcntl(fd, F_GETFL) & O_PATH));
	CHECK(read(fd, &byte, 1) < 0 && errno == EBADF);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 5);
	close(fd);
}

static void try_tmpfile(void)
{
	int fd = open_kind("tmpfile", O_TMPFILE | O_RDWR);
	char name[64], path[300];

	CHECK(fd >= 0 && write(fd, "tmp", 3) == 3);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	snprintf(path, sizeof(path), "%s/linked", shared->dir);
	CHECK(linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0);
	CHECK(file_holds(open(path, O_RDONLY), "tmp"));
	close(fd);
}

static int test_answer_fd(void)
{
	int fd = open_kind("file", O_RDWR);
	char buf[8];

	CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	CHECK(pwrite(fd, "HELLO", 5, 0) == 5 && pwrite(fd, "hello", 5, 0) == 5);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
	CHECK(file_holds(fd, "hello"));
	fd = open_kind("file", O_RDONLY);
	CHECK(write(fd, "x", 1) < 0 && errno == EBADF);
	close(fd);
	fd = open_kind("file", O_WRONLY | O_APPEND);
	CHECK(fcntl(fd, F_GETFL) & O_APPEND);
	CHECK(read(fd, buf, 1) < 0 && errno == EBADF);
	close(fd);
	CHECK_EQ(open_kind("none", O_RDONLY), -1);
	try_lowest();
	try_dir();
	try_path();
	try_tmpfile();
	fd = open_kind("memfd", O_RDWR);
	CHECK(fd >= 0 && write(fd, "memory", 6) == 6 && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(file_holds(fd, "memory"));
	return guest_failures != 0;
}

/* A new file of mode 0400 is writable through the descriptor that created it. */
static int test_answer_fd_mode(void)
{
	int fd = open_kind("mode", O_RDWR);
	struct stat st;

	CHECK(fd >= 0 && write(fd, "mode", 4) == 4 && fstat(fd, &st) == 0);
	CHECK_EQ(st.st_mode & 07777, 0400);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && file_holds(fd, "mode"));
	return guest_failures != 0;
}

static int test_answer_fd_leak(void)
{
	int before, fd;

	close(open_kind("file", O_RDONLY));
	before = getsid(ASK_FILES);
	for (int i = 0; i < 1000; i++) {
		fd = open_kind(i % 10 ? "file" : "memfd", O_RDWR);
		CHECK(fd >= 0);
		close(fd);
		if (i % 50 == 0) { /* one that the kernel refuses: no number is free */
			struct rlimit old, none = { 0, 0 };

			getrlimit(RLIMIT_NOFILE, &old);
			none.rlim_max = old.rlim_max;
			setrlimit(RLIMIT_NOFILE, &none);
			CHECK(open_kind("file", O_RDWR) < 0 && errno == EMFILE);
			setrlimit(RLIMIT_NOFILE, &old);
		}
	}
	CHECK_EQ(getsid(ASK_FILES), before);
	return guest_failures != 0;
}

/* --- against the rule --------------------------------------------------------------------------------------------- */

static int test_forward_after_read(void)
{
	CHECK(open("/forward", O_RDONLY) < 0);
	CHECK_EQ(errno, EPERM);
	CHECK(shared->notes > 0);
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	return guest_failures != 0;
}

/* --- a guest's own seccomp filter --------------------------------------------------------------------------------- */

static void install(const struct sock_filter *code, unsigned short len)
{
	struct sock_fprog program = { len, (struct sock_filter *)code };

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

void install_filter(uint32_t nr, uint32_t action)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(code, 4);
}

static int test_own_filter_trace(void)
{
	install_filter(SYS_openat, SECCOMP_RET_TRACE | 0x77);
	CHECK(syscall(SYS_openat, AT_FDCWD, "/virtual/hello", O_RDONLY, 0) < 0);
	CHECK_EQ(errno, ENOSYS);
	CHECK(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY, 0) < 0);
	CHECK_EQ(errno, ENOSYS);
	install_filter(SYS_getppid, SECCOMP_RET_TRACE | 0x77); /* one that nobody else stops */
	CHECK(syscall(SYS_getppid) < 0);
	CHECK_EQ(errno, ENOSYS);
	CHECK_EQ(getsid(5), ANSWERED_SID);
	return guest_failures != 0;
}

static int test_own_filter_errno(void)
{
	install_filter(SYS_getpgid, SECCOMP_RET_ERRNO | EXDEV);
	CHECK(getpgid(0) < 0);
	CHECK_EQ(errno, EXDEV);
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	install_filter(SYS_openat, SECCOMP_RET_ERRNO | EDOM);
	CHECK(open_virtual("hello", O_RDONLY, 0) < 0);
	CHECK_EQ(errno, EDOM);
	CHECK_EQ(getsid(5), ANSWERED_SID);
	return guest_failures != 0;
}

/* A filter that names what it allows refuses the number -1 by which an answered call is skipped. */
static int test_own_filter_answer(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 1000, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct utsname uts;

	install(code, 4);
	CHECK_EQ(getsid(5), ANSWERED_SID);
	CHECK(uname(&uts) == 0 && !strcmp(uts.machine, ANSWERED_MACHINE));
	CHECK(open("/refuse", O_RDONLY) < 0 && errno == EACCES);
	CHECK(file_holds(open_kind("file", O_RDONLY), "hello"));
	return guest_failures != 0;
}

const struct guest_case guests_calls[] = {
	{ "rewrite", test_rewrite },
	{ "rewrite_race", test_rewrite_race },
	{ "registers", test_registers },
	{ "restart", test_restart },
	{ "restart_number", test_restart_number },
	{ "answer", test_answer },
	{ "answer_protected", test_answer_protected },
	{ "answer_fd", test_answer_fd },
	{ "answer_fd_mode", test_answer_fd_mode },
	{ "answer_fd_leak", test_answer_fd_leak },
	{ "forward_after_read", test_forward_after_read },
	{ "own_filter_trace", test_own_filter_trace },
	{ "own_filter_errno", test_own_filter_errno },
	{ "own_filter_answer", test_own_filter_answer },
	{ NULL, NULL }
};
