/* compat.c - the other doors into the kernel of a 64-bit program: int 0x80 with 32-bit numbers, and the vsyscall page. */
#include "guest.h"

#include <setjmp.h>
#include <sys/time.h>

#if defined(__x86_64__)

static sigjmp_buf no_door;

static void on_fault(int signo)
{
	siglongjmp(no_door, 1);
}

static long int80(long nr, long a, long b, long c, long d, long e)
{
	long result = nr;

	__asm__ volatile("int $0x80" : "+a"(result) : "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

static bool has_int80(void)
{
	volatile bool has = false;

	guest_action(SIGSEGV, on_fault);
	if (sigsetjmp(no_door, 1) == 0)
		has = int80(20, 0, 0, 0, 0, 0) > 0;
	guest_action(SIGSEGV, SIG_DFL);
	return has;
}

/* 64-bit offsets take two registers there; pointers must lie below 4 GiB. */
static int test_int80(int argc, char **argv)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = open("big", O_RDWR | O_CREAT | O_TRUNC, 0600);
	off_t far = (5LL << 32) + 77;

	if (!has_int80())
		return GUEST_SKIP;
	MUST(low != MAP_FAILED && fd >= 0);
	CHECK_EQ(int80(20, 0, 0, 0, 0, 0), getpid());
	CHECK_EQ(int80(224, 0, 0, 0, 0, 0), guest_tid());
	strcpy(low, "hello");
	CHECK_EQ(int80(181, fd, (long)low, 5, (long)(far & 0xffffffff), (long)(far >> 32)), 5); /* pwrite64 */
	memset(low, 0, 8);
	CHECK_EQ(pread(fd, low, 5, far), 5);
	CHECK(!memcmp(low, "hello", 5));
	memset(low, 0, 8);
	CHECK_EQ(int80(180, fd, (long)low, 5, (long)(far & 0xffffffff), (long)(far >> 32)), 5); /* pread64 */
	CHECK(!memcmp(low, "hello", 5));
	CHECK_EQ(int80(140, fd, (long)(far >> 32), (long)(far & 0xffffffff), (long)low, SEEK_SET), 0); /* _llseek */
	CHECK_EQ(*(off_t *)low, far);
	CHECK_EQ(int80(194, fd, (long)((far + 100) & 0xffffffff), (long)(far >> 32), 0, 0), 0); /* ftruncate64 */
	CHECK_EQ(lseek(fd, 0, SEEK_END), far + 100);
	strcpy(low, "/nonexistent");
	CHECK_EQ(int80(5, (long)low, 0, 0, 0, 0), -ENOENT);
	strcpy(low, "/dev/null");
	CHECK(int80(5, (long)low, 0, 0, 0, 0) >= 0);
	CHECK_EQ(int80(9999, 0, 0, 0, 0, 0), -ENOSYS);
	CHECK_EQ(int80(-1, 0, 0, 0, 0, 0), -ENOSYS);
	CHECK_EQ(int80(183, (long)low, 4096, 0, 0, 0) > 0, 1); /* getcwd */
	return 0;
}

/* What is closed must be closed at this door too. */
static int test_int80_closed(int argc, char **argv)
{
	long pid;

	if (!has_int80())
		return GUEST_SKIP;
	CHECK_EQ(int80(26, 0, 0, 0, 0, 0), -EPERM);                 /* ptrace(TRACEME) */
	CHECK_EQ(int80(435, 0, 0, 0, 0, 0), -ENOSYS);               /* clone3 */
	CHECK_EQ(int80(425, 1, 0, 0, 0, 0), -ENOSYS);               /* io_uring_setup */
	CHECK_EQ(int80(347, getpid(), 0, 0, 0, 0), -EPERM);         /* process_vm_readv */
	pid = int80(120, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);     /* clone */
	if (pid == 0)
		_exit(0);
	CHECK_EQ(pid, -EPERM);
	if (pid > 0)
		guest_wait((pid_t)pid);
	return 0;
}

static int test_vsyscall(int argc, char **argv)
{
	int (*vgettimeofday)(struct timeval *, void *) = (int (*)(struct timeval *, void *))0xffffffffff600000;
	time_t (*vtime)(time_t *) = (time_t (*)(time_t *))0xffffffffff600400;
	int (*vgetcpu)(unsigned *, unsigned *, void *) = (int (*)(unsigned *, unsigned *, void *))0xffffffffff600800;
	struct timeval tv = { 0 };
	time_t now = time(NULL);
	unsigned cpu = 9999, node;

	guest_action(SIGSEGV, on_fault);
	if (sigsetjmp(no_door, 1) != 0)
		return GUEST_SKIP;
	vtime(NULL);
	guest_action(SIGSEGV, SIG_DFL);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(vgettimeofday(&tv, NULL), 0);
		CHECK(tv.tv_sec >= now && tv.tv_sec < now + 100);
		CHECK(vtime(NULL) >= now && vtime(NULL) < now + 100);
		CHECK_EQ(vgetcpu(&cpu, &node, NULL), 0);
		CHECK(cpu < 9999);
	}
	return 0;
}

#else

static int test_int80(int argc, char **argv)
{
	return GUEST_SKIP;
}

#define test_int80_closed test_int80
#define test_vsyscall test_int80

#endif

static const struct test tests[] = {
	{ "int80", test_int80 }, { "int80_closed", test_int80_closed }, { "vsyscall", test_vsyscall }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
