/* restart.c - what becomes of a blocked call when a signal comes: restarted, restarted with the time left, or EINTR. */
#include "guest.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct shared {
	volatile int handled;
	volatile int step; /* the blocked one tells where it is */
};
static struct shared *shared;

static void count_signal(int signo, siginfo_t *info, void *context)
{
	shared->handled++;
}

enum { NAP_MS = 300 };

static int nap_nanosleep(void)
{
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };

	return nanosleep(&nap, NULL);
}

static int nap_clock(void)
{
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };

	return -clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

static int nap_absolute(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += NAP_MS * 1000000L;
	at.tv_sec += at.tv_nsec / 1000000000L;
	at.tv_nsec %= 1000000000L;
	return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int nap_poll(void)
{
	return poll(NULL, 0, NAP_MS);
}

static int nap_futex(void)
{
	static int word;
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };

	if (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0) == -1 && errno == ETIMEDOUT)
		return 0;
	return -1;
}

static int nap_select(void)
{
	struct timeval nap = { .tv_usec = NAP_MS * 1000L };

	return select(0, NULL, NULL, NULL, &nap);
}

static int nap_ppoll(void)
{
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };

	return ppoll(NULL, 0, &nap, NULL);
}

static int (*const naps[])(void) = { nap_nanosleep, nap_clock, nap_absolute, nap_poll, nap_futex, nap_select, nap_ppoll };
enum { NAPS = sizeof(naps) / sizeof(naps[0]) };

/* Sends the next of SIGNALS each time that the target is seen blocked, until it has ended its nap (step). After a SIGSTOP it
   is seen as stopped: in state T, or t where it is traced. */
static pid_t start_sender(pid_t target, int count, const int *signals, int kinds)
{
	pid_t pid = guest_fork();

	if (pid == 0) {
		for (int i = 0; i < count; i++) {
			const char *states = i > 0 && signals[(i - 1) % kinds] == SIGSTOP ? "Tt" : "S";

			while (!shared->step && !strchr(states, guest_state(target, target)))
				sched_yield();
			if (shared->step)
				break;
			kill(target, signals[i % kinds]);
		}
		_exit(0);
	}
	return pid;
}

/* The nap lasts its time, not less and not over and over again, and tells no error. */
static void check_nap(int which, int count, const int *signals, int kinds)
{
	long long start, took;
	pid_t sender;

	shared->step = 0;
	sender = start_sender(getpid(), count, signals, kinds);
	start = guest_now_ms();
	errno = 0;
	CHECK_EQ(naps[which](), 0);
	took = guest_now_ms() - start;
	shared->step = 1;
	CHECK(took >= NAP_MS - 1);
	CHECK(took < NAP_MS + 4000);
	if (guest_failures)
		dprintf(2, "nap %d took %lld ms\n", which, took);
	CHECK_EXIT(guest_wait(sender), 0);
}

/* Signals that nobody handles: discarded natively; a tracer sees them, and the call must go on with the time left. */
static int test_ignored(int argc, char **argv)
{
	static const int signals[] = { SIGUSR1, SIGWINCH, SIGCONT, SIGURG, SIGUSR2 };

	guest_action(SIGUSR1, SIG_IGN);
	guest_action(SIGUSR2, SIG_IGN);
	for (int i = 0; i < NAPS && !guest_failures; i++)
		check_nap(i, 100, signals, 5);
	return 0;
}

/* Stopped and continued in the middle. */
static int test_stopped(int argc, char **argv)
{
	static const int signals[] = { SIGSTOP, SIGCONT };

	for (int i = 0; i < NAPS && !guest_failures; i++) {
		pid_t pid = guest_fork();

		if (pid == 0) {
			check_nap(i, 40, signals, 2);
			child_exit();
		}
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

/* A handler with SA_RESTART: these still give EINTR, and nanosleep tells the time left. */
static int test_eintr(int argc, char **argv)
{
	static const int signals[] = { SIGUSR1 };
	struct timespec nap = { .tv_sec = 100 }, left = { 0 };

	guest_handle(SIGUSR1, count_signal, SA_RESTART);
	for (int i = 0; i < 4; i++) {
		pid_t sender;
		int got;

		shared->step = 0;
		sender = start_sender(getpid(), 1, signals, 1);
		if (i == 0)
			got = nanosleep(&nap, &left);
		else if (i == 1)
			got = poll(NULL, 0, 100000);
		else if (i == 2)
			got = pause();
		else
			got = select(0, NULL, NULL, NULL, NULL);
		CHECK(got == -1 && errno == EINTR);
		shared->step = 1;
		CHECK_EXIT(guest_wait(sender), 0);
		CHECK_EQ(shared->handled, i + 1);
	}
	CHECK(left.tv_sec >= 70 && left.tv_sec < 100);
	return 0;
}

/* --- calls that SA_RESTART restarts -------------------------------------------------------------------------------- */

struct block {
	const char *name;
	bool (*call)(void);     /* true when it got what it waited for; false with errno */
	void (*release)(void);  /* run by the helper */
	bool never_restarts;    /* EINTR in spite of SA_RESTART, see signal(7) */
};

static int ends[2], sockets[2], lock_fd, queue;
static pid_t waited;

static bool block_read(void)
{
	char byte;

	return read(ends[0], &byte, 1) == 1;
}

static void release_read(void)
{
	guest_put(ends[1]);
}

static bool block_recv(void)
{
	char byte;

	return recv(sockets[0], &byte, 1, 0) == 1;
}

static void release_recv(void)
{
	guest_put(sockets[1]);
}

static bool block_fifo(void)
{
	int fd = open("fifo", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void release_fifo(void)
{
	/* Two opens of a FIFO meet; the helper then holds it until it ends. */
	MUST(open("fifo", O_WRONLY) >= 0);
}

static bool block_wait(void)
{
	int status;

	return waitpid(waited, &status, 0) == waited;
}

static void release_wait(void)
{
	kill(waited, SIGKILL);
}

static bool block_lock(void)
{
	if (flock(lock_fd, LOCK_EX) != 0)
		return false;
	return flock(lock_fd, LOCK_UN) == 0;
}

static int helper_lock = -1;

static void release_lock(void)
{
	flock(helper_lock, LOCK_UN);
}

static bool block_futex(void)
{
	/* The helper wakes it; a value that has changed before is as good. */
	return syscall(SYS_futex, &shared->step, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 || errno == EAGAIN;
}

static void release_futex(void)
{
	shared->step = 1;
	syscall(SYS_futex, &shared->step, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool block_msg(void)
{
	struct {
		long type;
		char text[8];
	} message;

	return msgrcv(queue, &message, sizeof(message.text), 0, 0) >= 0;
}

static void release_msg(void)
{
	struct {
		long type;
		char text[8];
	} message = { 1, "x" };

	msgsnd(queue, &message, sizeof(message.text), 0);
}

static const struct block blocks[] = {
	{ "read", block_read, release_read, false },
	{ "recv", block_recv, release_recv, false },
	{ "fifo", block_fifo, release_fifo, false },
	{ "wait", block_wait, release_wait, false },
	{ "flock", block_lock, release_lock, false },
	{ "futex", block_futex, release_futex, false },
	{ "msgrcv", block_msg, release_msg, true },
};

enum { BLOCK_SIGNALS = 5 };

static void helper(const struct block *block, pid_t target, bool restarts)
{
	if (block->call == block_lock) {
		helper_lock = open("lock", O_RDWR);
		MUST(helper_lock >= 0 && flock(helper_lock, LOCK_EX) == 0);
	}
	guest_put(ends[1]); /* ready */
	for (int i = 0; i < (restarts ? BLOCK_SIGNALS : 1); i++) {
		MUST(guest_await_state(target, target, "S"));
		kill(target, SIGUSR1);
		MUST(guest_await_value(&shared->handled, i + 1));
	}
	if (restarts) {
		MUST(guest_await_state(target, target, "S"));
		block->release();
	}
	_exit(0);
}

static void check_block(const struct block *block, bool restarting)
{
	bool restarts = restarting && !block->never_restarts, done;
	pid_t us = getpid(), pid;

	guest_handle(SIGUSR1, count_signal, restarting ? SA_RESTART : 0);
	shared->handled = shared->step = 0;
	if (block->call == block_wait) {
		waited = guest_fork();
		if (waited == 0)
			for (;;)
				pause();
	}
	pid = guest_fork();
	if (pid == 0)
		helper(block, us, restarts);
	MUST(guest_get(ends[0]));
	done = block->call();
	if (restarts)
		CHECK(done);
	else
		CHECK(!done && errno == EINTR);
	CHECK_EXIT(guest_wait(pid), 0);
	CHECK_EQ(shared->handled, restarts ? BLOCK_SIGNALS : 1);
	if (block->call == block_wait && !restarts) {
		kill(waited, SIGKILL);
		guest_wait(waited);
	}
	printf("%s %s\n", block->name, done ? "done" : "EINTR");
}

static int test_blocks(int argc, char **argv)
{
	guest_pipe(ends);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	MUST(mkfifo("fifo", 0600) == 0);
	lock_fd = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	MUST(lock_fd >= 0 && queue >= 0);
	for (unsigned i = 0; i < sizeof(blocks) / sizeof(blocks[0]) && !guest_failures; i++)
		for (int round = 0; round < 10 && !guest_failures; round++)
			check_block(&blocks[i], round % 2);
	msgctl(queue, IPC_RMID, NULL);
	return 0;
}

/* sigsuspend and ppoll give the old mask back, and the handler has run inside. */
static int test_masks(int argc, char **argv)
{
	for (int i = 0; i < 40 && !guest_failures; i++) {
		static const int signals[] = { SIGUSR1 };
		sigset_t empty, now;
		pid_t sender;

		shared->step = shared->handled = 0;
		guest_handle(SIGUSR1, count_signal, 0);
		guest_block(SIG_BLOCK, SIGUSR1);
		sender = start_sender(getpid(), 1, signals, 1);
		sigemptyset(&empty);
		if (i % 2)
			CHECK(sigsuspend(&empty) == -1 && errno == EINTR);
		else
			CHECK(ppoll(NULL, 0, NULL, &empty) == -1 && errno == EINTR);
		CHECK_EQ(shared->handled, 1);
		pthread_sigmask(SIG_BLOCK, NULL, &now);
		CHECK(sigismember(&now, SIGUSR1) == 1);
		shared->step = 1;
		CHECK_EXIT(guest_wait(sender), 0);
	}
	return 0;
}

static const struct test tests[] = {
	{ "ignored", test_ignored }, { "stopped", test_stopped }, { "eintr", test_eintr }, { "blocks", test_blocks },
	{ "masks", test_masks }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	shared = guest_shared(sizeof(*shared));
	return guest_main(argc, argv, tests);
}
