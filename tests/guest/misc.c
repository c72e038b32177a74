/* misc.c - the rest that a tracer can spoil: dumpable, a thread's own fs, personality, futexes, stacks, timers, affinity. */
#include "guest.h"

#include <linux/futex.h>
#include <setjmp.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>

/* --- PR_SET_DUMPABLE 0: memory can no longer be read by ptrace's ordinary means ---------------------------------------- */

static void *thread_opens(void *arg)
{
	int fd = open("/dev/null", O_RDWR);

	CHECK(fd >= 0);
	close(fd);
	return arg;
}

static int test_undumpable(int argc, char **argv)
{
	struct utsname names;
	cpu_set_t set;
	pthread_t thread;
	char cwd[4096];
	pid_t pid;

	MUST(prctl(PR_SET_DUMPABLE, 0) == 0);
	for (int i = 0; i < 20; i++) {
		int fd = open("file", O_RDWR | O_CREAT, 0600);

		CHECK(fd >= 0);
		CHECK(write(fd, "hello", 5) == 5);
		close(fd);
		CHECK(access("file", R_OK) == 0);
		CHECK(access("missing", R_OK) == -1 && errno == ENOENT);
		CHECK(getcwd(cwd, sizeof(cwd)) != NULL);
		CHECK(chdir(".") == 0);
		CHECK(uname(&names) == 0);
		CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
		guest_thread(&thread, thread_opens, NULL);
		pthread_join(thread, NULL);
		pid = guest_fork();
		if (pid == 0) {
			CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
			CHECK(open("file", O_RDONLY) >= 0);
			child_exit();
		}
		CHECK_EXIT(guest_wait(pid), 0);
		pid = vfork();
		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		CHECK_EXIT(guest_wait(pid), 0);
		CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
	}
	return 0;
}

/* --- a thread with its own fs ------------------------------------------------------------------------------------------ */

static void *own_fs(void *arg)
{
	char cwd[4096];

	MUST(unshare(CLONE_FS) == 0);
	CHECK(chdir("/") == 0);
	umask(0077);
	CHECK(getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, "/"));
	CHECK(access("dev/null", F_OK) == 0);
	return arg;
}

static int test_fs(int argc, char **argv)
{
	char before[4096], after[4096];

	umask(0022);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		CHECK(getcwd(before, sizeof(before)) != NULL);
		guest_thread(&thread, own_fs, NULL);
		pthread_join(thread, NULL);
		CHECK(getcwd(after, sizeof(after)) && !strcmp(before, after));
		CHECK_EQ(umask(0022), 0022);
	}
	return 0;
}

static int test_personality(int argc, char **argv)
{
	if (argc > 1) {
		CHECK_EQ(personality(0xffffffff), strtol(argv[1], NULL, 0));
		printf("stack %p\n", (void *)((uintptr_t)&argc >> 28));
		return 0;
	}
	MUST(personality(ADDR_NO_RANDOMIZE) >= 0);
	for (int i = 0; i < 5; i++) {
		pid_t pid = guest_fork();
		char want[16];

		if (pid == 0) {
			snprintf(want, sizeof(want), "%#x", ADDR_NO_RANDOMIZE);
			execl("/proc/self/exe", "misc", "personality", want, (char *)NULL);
			_exit(1);
		}
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

/* --- futexes ----------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t *mutex_new(bool robust, int protocol)
{
	pthread_mutex_t *mutex = guest_shared(sizeof(*mutex));
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (robust)
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setprotocol(&attr, protocol);
	MUST(pthread_mutex_init(mutex, &attr) == 0);
	return mutex;
}

static void *lock_and_leave(void *arg)
{
	MUST(pthread_mutex_lock(arg) == 0);
	return NULL;
}

/* An owner that dies, by exit, by signal, by exec, or as a thread, leaves the lock to be taken with EOWNERDEAD. */
static int test_robust(int argc, char **argv)
{
	for (int i = 0; i < 60 && !guest_failures; i++) {
		pthread_mutex_t *mutex = mutex_new(true, i % 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		int ends[2];
		pid_t pid;

		guest_pipe(ends);
		if (i % 8 >= 6) {
			pthread_t thread;

			guest_thread(&thread, lock_and_leave, mutex);
			pthread_join(thread, NULL);
			pid = 0;
		} else {
			pid = guest_fork();
			if (pid == 0) {
				MUST(pthread_mutex_lock(mutex) == 0);
				guest_put(ends[1]);
				if (i % 8 < 2)
					_exit(0);
				if (i % 8 < 4)
					for (;;)
						pause();
				execl("/bin/true", "true", (char *)NULL);
				_exit(1);
			}
			MUST(guest_get(ends[0]));
			if (i % 8 >= 2 && i % 8 < 4)
				kill(pid, SIGKILL);
		}
		CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
		CHECK_EQ(pthread_mutex_consistent(mutex), 0);
		CHECK_EQ(pthread_mutex_unlock(mutex), 0);
		if (pid)
			guest_wait(pid);
		close(ends[0]);
		close(ends[1]);
		munmap(mutex, sizeof(*mutex));
	}
	return 0;
}

static pthread_mutex_t *pi_mutex;
static int pi_sum;

static void *pi_add(void *arg)
{
	for (unsigned i = 0; i < 300; i++) {
		MUST(pthread_mutex_lock(pi_mutex) == 0);
		if (i % 8 == 0)
			guest_stopped_call(i / 8);
		pi_sum++;
		MUST(pthread_mutex_unlock(pi_mutex) == 0);
	}
	return arg;
}

static int test_pi(int argc, char **argv)
{
	pthread_t threads[6];

	pi_mutex = mutex_new(false, PTHREAD_PRIO_INHERIT);
	for (int i = 0; i < 6; i++)
		guest_thread(&threads[i], pi_add, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(pi_sum, 1800);
	return 0;
}

/* --- stacks and timers ------------------------------------------------------------------------------------------------- */

static sigjmp_buf after_overflow;
static char alt_stack[64 << 10];
static volatile int on_alt;

static void on_overflow(int signo, siginfo_t *info, void *context)
{
	char here;

	on_alt += &here >= alt_stack && &here < alt_stack + sizeof(alt_stack);
	for (unsigned i = 0; i < 8; i++)
		guest_stopped_call(i);
	siglongjmp(after_overflow, 1);
}

static volatile bool bottomless = true;

static __attribute__((noinline)) int dig(volatile char *above)
{
	volatile char here[4096];

	here[0] = *above;
	return bottomless ? dig(here) + here[0] : 0;
}

static int test_altstack(int argc, char **argv)
{
	stack_t stack = { .ss_sp = alt_stack, .ss_size = sizeof(alt_stack) }, now;
	volatile char top = 0;

	MUST(sigaltstack(&stack, NULL) == 0);
	guest_handle(SIGSEGV, on_overflow, SA_ONSTACK);
	for (volatile int i = 0; i < 5; i++)
		if (sigsetjmp(after_overflow, 1) == 0)
			dig(&top);
	CHECK_EQ(on_alt, 5);
	CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == alt_stack && now.ss_flags == 0);
	return 0;
}

static volatile int ticks;

static void on_tick(int signo)
{
	__atomic_add_fetch(&ticks, 1, __ATOMIC_RELEASE);
}

/* Profiling signals at a high rate into calls, threads, forks and execs; all of them go on, and the ticks come. */
static int test_itimer(int argc, char **argv)
{
	static const int kinds[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
	static const int signals[] = { SIGALRM, SIGVTALRM, SIGPROF };

	for (int kind = 0; kind < 3; kind++) {
		struct itimerval spec = { { 0, 1000 }, { 0, 1000 } }, none = { 0 };
		struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
		long long end = guest_now_ms() + 30000;

		ticks = 0;
		MUST(sigaction(signals[kind], &action, NULL) == 0);
		MUST(setitimer(kinds[kind], &spec, NULL) == 0);
		for (unsigned i = 0; ticks < 150 && guest_now_ms() < end; i++) {
			guest_stopped_call(i);
			for (volatile int spin = 0; spin < 20000; spin++)
				;
			if (i % 64 == 0) {
				pid_t pid = guest_fork();

				if (pid == 0)
					_exit(41);
				CHECK_EXIT(guest_wait(pid), 41);
			}
		}
		MUST(setitimer(kinds[kind], &none, NULL) == 0);
		CHECK(ticks >= 150);
	}
	return 0;
}

/* --- affinity ---------------------------------------------------------------------------------------------------------- */

static void show_mask(const char *who)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	printf("%s:", who);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			printf(" %d", cpu);
	printf("\n");
}

static void *thread_shows(void *arg)
{
	show_mask("thread");
	return arg;
}

static pid_t exec_show(void)
{
	pid_t pid = guest_fork();

	if (pid == 0) {
		show_mask("child");
		fflush(stdout);
		execl("/proc/self/exe", "misc", "mask", (char *)NULL);
		_exit(1);
	}
	return pid;
}

static int test_mask(int argc, char **argv)
{
	show_mask("exec");
	return 0;
}

static void stop_much(void)
{
	for (unsigned i = 0; i < 3000; i++)
		guest_stopped_call(i);
}

static void show_all(void)
{
	pthread_t thread;

	show_mask("self");
	guest_thread(&thread, thread_shows, NULL);
	pthread_join(thread, NULL);
	fflush(stdout);
	CHECK_EXIT(guest_wait(exec_show()), 0);
}

/* The guest sees its own affinity, however it is held meanwhile; what it sets sticks and is inherited. */
static int test_affinity(int argc, char **argv)
{
	cpu_set_t before, one, got;
	int last = -1;

	MUST(sched_getaffinity(0, sizeof(before), &before) == 0);
	show_all();
	stop_much();
	show_all();
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &before))
			last = cpu;
	for (int which = 0; which < 2; which++) {
		int cpu = last;

		if (which)
			for (cpu = 0; !CPU_ISSET(cpu, &before); cpu++)
				;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		MUST(sched_setaffinity(0, sizeof(one), &one) == 0);
		for (unsigned i = 0; i < 500; i++) {
			guest_stopped_call(i);
			CHECK_EQ(sched_getcpu(), cpu);
		}
		show_all();
		stop_much();
		show_all();
		CHECK(sched_getaffinity(getpid(), sizeof(got), &got) == 0 && CPU_EQUAL(&got, &one));
	}
	MUST(sched_setaffinity(0, sizeof(before), &before) == 0);
	stop_much();
	show_all();
	return 0;
}

/* Another process's affinity, asked and set from outside while it stops much. */
static int test_affinity_other(int argc, char **argv)
{
	cpu_set_t all, one, got;
	int first = 0;
	pid_t pid;

	MUST(sched_getaffinity(0, sizeof(all), &all) == 0);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	pid = guest_fork();
	if (pid == 0)
		for (unsigned i = 0;; i++)
			guest_stopped_call(i);
	for (int i = 0; i < 100 && !guest_failures; i++) {
		CHECK(sched_getaffinity(pid, sizeof(got), &got) == 0 && CPU_EQUAL(&got, i % 2 ? &one : &all));
		CHECK(sched_setaffinity(pid, sizeof(one), i % 2 ? &all : &one) == 0);
	}
	CHECK(sched_getaffinity(0, sizeof(got), &got) == 0 && CPU_EQUAL(&got, &all));
	kill(pid, SIGKILL);
	CHECK_SIGNALED(guest_wait(pid), SIGKILL);
	return 0;
}

/* --- memory at the edge of a page -------------------------------------------------------------------------------------- */

/* A string that ends at an unmapped page is read; one that runs into it is EFAULT. */
static int test_edge(int argc, char **argv)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *null_at_end = pages + 4096 - 10, *unended = pages + 4096 - 9;
	char *args[] = { "x", NULL };
	pid_t pid;

	MUST(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
	for (int i = 0; i < 20; i++) {
		int fd;

		memcpy(null_at_end, "/dev/null", 10);
		fd = open(null_at_end, O_RDONLY);
		CHECK(fd >= 0);
		close(fd);
		CHECK(access(null_at_end, F_OK) == 0);
		memcpy(unended, "/dev/null", 9);
		CHECK(open(unended, O_RDONLY) == -1 && errno == EFAULT);
		CHECK(access(unended, F_OK) == -1 && errno == EFAULT);
		CHECK(chdir(unended) == -1 && errno == EFAULT);
		CHECK(execv(unended, args) == -1 && errno == EFAULT);
		CHECK(open(pages + 4096, O_RDONLY) == -1 && errno == EFAULT);
		CHECK(open((char *)-1L, O_RDONLY) == -1 && errno == EFAULT);
		memcpy(null_at_end, "/bin/true", 10);
		pid = guest_fork();
		if (pid == 0) {
			execv(null_at_end, args);
			_exit(1);
		}
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

/* --- a storm of handlers ----------------------------------------------------------------------------------------------- */

static volatile int end_storm;

static void *storm_thread(void *arg)
{
	int ends[2];

	guest_pipe(ends);
	for (unsigned i = 0; !__atomic_load_n(&end_storm, __ATOMIC_ACQUIRE); i++) {
		char byte = (char)i, back = 0;
		ssize_t got;

		guest_stopped_call(i);
		do {
			got = write(ends[1], &byte, 1);
		} while (got < 0 && errno == EINTR);
		CHECK_EQ(got, 1);
		do {
			got = read(ends[0], &back, 1);
		} while (got < 0 && errno == EINTR);
		CHECK_EQ(got, 1);
		CHECK_EQ(back, byte);
	}
	return arg;
}

/* Four threads that call, while three processes send them signals with handlers, half of them interrupting. */
static int test_storm(int argc, char **argv)
{
	pthread_t threads[4];
	pid_t us = getpid(), pids[3];

	for (int n = 0; n < 3; n++) {
		struct sigaction action = { .sa_handler = on_tick, .sa_flags = n ? SA_RESTART : 0 };

		MUST(sigaction(n == 0 ? SIGUSR1 : n == 1 ? SIGUSR2 : SIGRTMIN, &action, NULL) == 0);
	}
	for (int i = 0; i < 4; i++)
		guest_thread(&threads[i], storm_thread, NULL);
	for (int n = 0; n < 3; n++) {
		pids[n] = guest_fork();
		if (pids[n] == 0) {
			for (int i = 0; i < 2000; i++)
				kill(us, n == 0 ? SIGUSR1 : n == 1 ? SIGUSR2 : SIGRTMIN);
			_exit(0);
		}
	}
	for (int n = 0; n < 3; n++)
		CHECK_EXIT(guest_wait(pids[n]), 0);
	__atomic_store_n(&end_storm, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(ticks >= 3);
	return 0;
}

static const struct test tests[] = {
	{ "undumpable", test_undumpable }, { "fs", test_fs }, { "personality", test_personality }, { "robust", test_robust },
	{ "pi", test_pi }, { "altstack", test_altstack }, { "itimer", test_itimer }, { "mask", test_mask },
	{ "affinity", test_affinity }, { "affinity_other", test_affinity_other }, { "edge", test_edge },
	{ "storm", test_storm }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
