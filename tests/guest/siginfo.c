/* siginfo.c - what a handler is told of a signal: its sender, value, code and address, exactly as the kernel made it. */
#include "guest.h"

#include <sys/signalfd.h>

static volatile siginfo_t seen;
static volatile int count;

static void keep(int signo, siginfo_t *info, void *context)
{
	memcpy((void *)&seen, info, sizeof(seen));
	__atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
}

static void expect_one(int before)
{
	CHECK(guest_await_value(&count, before + 1));
}

static int test_queue(int argc, char **argv)
{
	guest_handle(SIGUSR1, keep, 0);
	guest_handle(SIGRTMIN + 3, keep, 0);
	for (int i = 0; i < 50 && !guest_failures; i++) {
		int signo = i % 2 ? SIGUSR1 : SIGRTMIN + 3, before = count;
		pid_t us = getpid(), pid = guest_fork();

		if (pid == 0)
			_exit(sigqueue(us, signo, (union sigval){ .sival_ptr = (void *)(uintptr_t)(0x1234567800ULL + (unsigned)i) }) != 0);
		expect_one(before);
		CHECK_EQ(seen.si_signo, signo);
		CHECK_EQ(seen.si_code, SI_QUEUE);
		CHECK_EQ(seen.si_pid, pid);
		CHECK_EQ(seen.si_uid, getuid());
		CHECK_EQ((uintptr_t)seen.si_value.sival_ptr, (uintptr_t)(0x1234567800ULL + (unsigned)i));
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

static int test_user(int argc, char **argv)
{
	guest_handle(SIGUSR1, keep, 0);
	for (int i = 0; i < 50 && !guest_failures; i++) {
		pid_t us = getpid(), pid;
		int before = count;

		pid = guest_fork();
		if (pid == 0)
			_exit(i % 2 ? kill(us, SIGUSR1) != 0 : syscall(SYS_tgkill, us, us, SIGUSR1) != 0);
		expect_one(before);
		CHECK_EQ(seen.si_code, i % 2 ? SI_USER : SI_TKILL);
		CHECK_EQ(seen.si_pid, pid);
		CHECK_EQ(seen.si_uid, getuid());
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

/* A code and payload of the sender's own choice (negative codes are allowed to oneself). */
static int test_custom(int argc, char **argv)
{
	siginfo_t info;

	guest_handle(SIGUSR2, keep, 0);
	for (int i = 1; i < 20; i++) {
		int before = count;

		memset(&info, 0, sizeof(info));
		info.si_signo = SIGUSR2;
		info.si_code = -100 - i;
		info.si_errno = 77;
		memset((char *)&info + 16, i, 32); /* as much as the kernel keeps of a code that it does not know */
		MUST(syscall(SYS_rt_tgsigqueueinfo, getpid(), guest_tid(), SIGUSR2, &info) == 0);
		CHECK_EQ(count, before + 1);
		CHECK(!memcmp(&info, (const void *)&seen, 48));
	}
	return 0;
}

static int test_timer(int argc, char **argv)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 4711 };
	struct itimerspec spec = { .it_value.tv_nsec = 1000000 };
	timer_t timer;

	guest_handle(SIGRTMIN, keep, 0);
	MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	for (int i = 0; i < 10 && !guest_failures; i++) {
		int before = count;

		MUST(timer_settime(timer, 0, &spec, NULL) == 0);
		expect_one(before);
		CHECK_EQ(seen.si_code, SI_TIMER);
		CHECK_EQ(seen.si_value.sival_int, 4711);
		CHECK_EQ(seen.si_overrun, 0);
	}
	timer_delete(timer);
	return 0;
}

/* Each fault in a child, whose handler tells what it saw and ends it. */
static volatile char *fault_page;

static void tell_fault(int signo, siginfo_t *info, void *context)
{
	long off = (char *)info->si_addr - (char *)fault_page;

	if ((signo == SIGSEGV && info->si_code != SI_KERNEL) || signo == SIGBUS)
		dprintf(1, "%s code %d at page%+ld\n", sigabbrev_np(signo), info->si_code, off);
	else
		dprintf(1, "%s code %d addr %s\n", sigabbrev_np(signo), info->si_code, info->si_addr ? "set" : "0");
	_exit(0);
}

static void fault(int which)
{
	volatile int zero = 0;

	switch (which) {
	case 0:
		fault_page[5] = 1;
		break;
	case 1:
		munmap((void *)fault_page, 4096);
		zero = fault_page[9];
		break;
	case 2:
		ftruncate(3, 0);
		zero = fault_page[4];
		break;
#if defined(__x86_64__) || defined(__i386__)
	case 3:
		zero = 100 / zero;
		break;
	case 4:
		__asm__ volatile("ud2");
		break;
	case 5:
		__asm__ volatile("int3");
		break;
	case 6:
		__asm__ volatile("hlt"); /* a privileged instruction */
		break;
#endif
	}
}

static int test_faults(int argc, char **argv)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };

	for (int i = 0; i < 7; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);

			MUST(fd >= 0 && dup2(fd, 3) == 3 && ftruncate(3, 4096) == 0);
			fault_page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3, 0);
			MUST(fault_page != MAP_FAILED);
			for (unsigned n = 0; n < 5; n++)
				guest_handle(signals[n], tell_fault, 0);
			fault(i);
			_exit(2);
		}
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

/* The same faults with no handler: the status tells the signal. A blocked one kills all the same. */
static int test_deaths(int argc, char **argv)
{
	for (int i = 0; i < 14; i++) {
		pid_t pid = guest_fork();
		int status;

		if (pid == 0) {
			int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
			sigset_t all;

			MUST(fd >= 0 && dup2(fd, 3) == 3 && ftruncate(3, 4096) == 0);
			fault_page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3, 0);
			sigfillset(&all);
			if (i >= 7)
				sigprocmask(SIG_BLOCK, &all, NULL);
			fault(i % 7);
			_exit(2);
		}
		status = guest_wait(pid);
		printf("%d: %d\n", i, WIFSIGNALED(status) ? WTERMSIG(status) : -1);
	}
	return 0;
}

static int test_chld(int argc, char **argv)
{
	guest_handle(SIGCHLD, keep, SA_RESTART);
	for (int i = 0; i < 20 && !guest_failures; i++) {
		int before = count;
		pid_t pid = guest_fork();

		if (pid == 0) {
			if (i % 2)
				raise(SIGTERM);
			_exit(i);
		}
		expect_one(before);
		CHECK_EQ(seen.si_pid, pid);
		CHECK_EQ(seen.si_uid, getuid());
		CHECK_EQ(seen.si_code, i % 2 ? CLD_KILLED : CLD_EXITED);
		CHECK_EQ(seen.si_status, i % 2 ? SIGTERM : i);
		guest_wait(pid);
	}
	return 0;
}

static int test_io(int argc, char **argv)
{
	int ends[2], before = count;

	guest_pipe(ends);
	guest_handle(SIGRTMIN + 1, keep, 0);
	MUST(fcntl(ends[0], F_SETOWN, getpid()) == 0);
	MUST(fcntl(ends[0], F_SETSIG, SIGRTMIN + 1) == 0);
	MUST(fcntl(ends[0], F_SETFL, O_ASYNC) == 0);
	guest_put(ends[1]);
	expect_one(before);
	CHECK_EQ(seen.si_code, POLL_IN);
	CHECK_EQ(seen.si_fd, ends[0]);
	CHECK(seen.si_band & POLLIN);
	return 0;
}

static volatile int order[400], orders;

static void keep_order(int signo, siginfo_t *info, void *context)
{
	if (orders < 400)
		order[orders++] = info->si_value.sival_int;
}

/* Real-time signals that were blocked come each once, lowest number first, and in their order. */
static int test_order(int argc, char **argv)
{
	sigset_t set, old;
	int at = 0;

	sigemptyset(&set);
	for (int n = 0; n < 4; n++) {
		guest_handle(SIGRTMIN + n, keep_order, SA_NODEFER);
		sigaddset(&set, SIGRTMIN + n);
	}
	MUST(sigprocmask(SIG_BLOCK, &set, &old) == 0);
	for (int i = 0; i < 400; i++)
		MUST(sigqueue(getpid(), SIGRTMIN + i % 4, (union sigval){ .sival_int = i }) == 0);
	/* One at a time: with nested handlers the last would run first. */
	for (int n = 0; n < 4; n++)
		for (int i = 0; i < 100; i++) {
			siginfo_t info;

			sigemptyset(&set);
			sigaddset(&set, SIGRTMIN + n);
			if (n < 2) {
				MUST(sigwaitinfo(&set, &info) == SIGRTMIN + n);
				CHECK_EQ(info.si_value.sival_int, i * 4 + n);
			} else if (i == 0) {
				struct sigaction action = { .sa_sigaction = keep_order, .sa_flags = SA_SIGINFO };

				sigfillset(&action.sa_mask);
				at = orders;
				MUST(sigaction(SIGRTMIN + n, &action, NULL) == 0);
				MUST(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
				CHECK_EQ(orders, at + 100);
			}
			if (n >= 2)
				CHECK_EQ(order[at + i], i * 4 + n);
		}
	return 0;
}

static int test_signalfd(int argc, char **argv)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	MUST(fd >= 0);
	for (int i = 0; i < 20 && !guest_failures; i++) {
		pid_t us = getpid(), pid = guest_fork();

		if (pid == 0) {
			sigqueue(us, SIGUSR1, (union sigval){ .sival_int = i });
			_exit(i);
		}
		MUST(read(fd, &info, sizeof(info)) == sizeof(info));
		CHECK_EQ(info.ssi_signo, SIGUSR1);
		CHECK_EQ(info.ssi_pid, pid);
		CHECK_EQ(info.ssi_int, i);
		MUST(read(fd, &info, sizeof(info)) == sizeof(info));
		CHECK_EQ(info.ssi_signo, SIGCHLD);
		CHECK_EQ(info.ssi_pid, pid);
		CHECK_EQ(info.ssi_status, i);
		CHECK_EXIT(guest_wait(pid), i);
	}
	return 0;
}

static int total;

static void add_value(int signo, siginfo_t *info, void *context)
{
	total += info->si_value.sival_int;
}

static void *thread_calls(void *arg)
{
	volatile int *end = arg;

	for (unsigned i = 0; !*end; i++)
		guest_stopped_call(i);
	return NULL;
}

/* 4,000 queued signals with values into four threads that call: none is lost, none comes twice. */
static int test_storm(int argc, char **argv)
{
	pthread_t threads[4];
	pid_t us = getpid(), pids[2];
	int end = 0, want = 0;

	{
		struct sigaction action = { .sa_sigaction = add_value, .sa_flags = SA_SIGINFO | SA_RESTART };

		sigfillset(&action.sa_mask);
		MUST(sigaction(SIGRTMIN, &action, NULL) == 0);
	}
	for (int i = 0; i < 2; i++) {
		pids[i] = guest_fork();
		if (pids[i] == 0) {
			for (int n = 1; n <= 2000; n++)
				while (sigqueue(us, SIGRTMIN, (union sigval){ .sival_int = n }) != 0)
					MUST(errno == EAGAIN);
			_exit(0);
		}
	}
	for (int n = 1; n <= 2000; n++)
		want += 2 * n;
	/* Only this thread takes them, so that the sum needs no lock; the others stop and go around it. */
	guest_block(SIG_BLOCK, SIGRTMIN);
	for (int i = 0; i < 4; i++)
		guest_thread(&threads[i], thread_calls, &end);
	guest_block(SIG_UNBLOCK, SIGRTMIN);
	for (int i = 0; i < 2; i++)
		CHECK_EXIT(guest_wait(pids[i]), 0);
	for (unsigned i = 0; i < 100; i++)
		guest_stopped_call(i);
	__atomic_store_n(&end, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(total, want);
	return 0;
}

static const struct test tests[] = {
	{ "queue", test_queue }, { "user", test_user }, { "custom", test_custom }, { "timer", test_timer },
	{ "faults", test_faults }, { "deaths", test_deaths }, { "chld", test_chld }, { "io", test_io },
	{ "order", test_order }, { "signalfd", test_signalfd }, { "storm", test_storm }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
