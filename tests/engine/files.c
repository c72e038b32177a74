/* files.c - guests that cannot follow links to the supervisor's files, and guests whose open files are replaced. */
#include "tests/guest/guest.h"

#include <dirent.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/engine/engine_test.h"

enum { NOBODY = 65534 };

static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static int count_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int c, count = 0;

	MUST(maps);
	while ((c = getc(maps)) != EOF)
		count += c == '\n';
	fclose(maps);
	return count;
}

static void exec_guest(const char *name)
{
	execl(shared->program, shared->program, "guest", name, NULL);
	_exit(98);
}

/* --- answered with a file, at a bad moment -------------------------------------------------------------------------------------- */

/* All slots are in use. */
static int test_answer_fd_full(void)
{
	static struct blocked b[16];
	int low, files;

	blocked_start(b, 0, 15);
	MUST(blocked_await(b, 15));
	files = count_files();
	low = open_kind("file", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(fcntl(low, F_GETFD), FD_CLOEXEC);
	CHECK(file_holds(low, "hello"));
	CHECK_EQ(open_kind("file", O_RDONLY), low);
	close(low);
	CHECK_EQ(count_files(), files);
	CHECK_EQ(windows_mapped(), 2);
	blocked_start(b + 15, 15, 1); /* the slot that it took is free again */
	MUST(blocked_await(b + 15, 1));
	CHECK_EQ(windows_mapped(), 2);
	CHECK_EQ(blocked_release_all(b, 16), 16);
	return guest_failures != 0;
}

/* The link can be followed: the file's own mode refuses. */
static int test_answer_fd_denied(void)
{
	int files = count_files(), fd = open_kind("secret", O_RDONLY);

	if (geteuid() == 0)
		CHECK(file_holds(fd, "secret"));
	else
		CHECK(fd < 0 && errno == EACCES);
	CHECK_EQ(shared->reopened, 0);
	CHECK_EQ(count_files(), files);
	return guest_failures != 0;
}

/* --- who cannot follow a link ----------------------------------------------------------------------------------------------------- */

/* Becomes another user when it is root; another one cannot look at this supervisor as it is. */
static void become_foreign(void)
{
	if (geteuid() == 0)
		MUST(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
}

#if defined(__x86_64__)

/* The 32-bit call of a 64-bit program. */
static int open_kind32(const char *kind, int flags)
{
	char *path = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long result;

	MUST(path != MAP_FAILED);
	snprintf(path, 4096, "/fd/%s", kind);
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(295L), "b"((long)AT_FDCWD), "c"(path), "d"((long)flags), "S"(0L) : "memory",
	                 "r8", "r9", "r10", "r11");
	munmap(path, 4096);
	errno = result < 0 ? -(int)result : 0;
	return result < 0 ? -1 : (int)result;
}

/* A kernel may be built or started without it. */
static bool has_int80(void)
{
	pid_t child = guest_fork();
	long result = 20; /* getpid */

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
		_exit(result != getpid());
	}
	return guest_wait(child) == 0;
}

#else
#define open_kind32 open_kind
static bool has_int80(void)
{
	return false;
}
#endif

static void try_foreign(void)
{
	int files = count_files(), maps, low = open_kind("file", O_RDONLY), again, reopened;
	struct rlimit old, few;
	struct stat st;
	char buf[8];

	maps = count_maps();
	CHECK_EQ(fcntl(low, F_GETFD), 0);
	CHECK(file_holds(low, "hello"));
	again = open_kind("memfd", O_RDWR | O_CLOEXEC);
	CHECK_EQ(again, low);
	CHECK_EQ(fcntl(again, F_GETFD), FD_CLOEXEC);
	CHECK(write(again, "memory", 6) == 6 && lseek(again, 0, SEEK_SET) == 0);
	CHECK(file_holds(again, "memory"));
	again = open_kind("path", O_PATH);
	CHECK(again == low && fstat(again, &st) == 0 && st.st_size == 5 && read(again, buf, 1) < 0);
	close(again);
	CHECK(file_holds(open_kind("ready", O_RDONLY), "hello"));
	again = open_kind("file", O_RDONLY | O_APPEND);
	CHECK(fcntl(again, F_GETFL) & O_APPEND);
	CHECK(write(again, "x", 1) < 0);
	close(again);
	reopened = shared->reopened;
	CHECK(file_holds(open_kind("opath", O_RDONLY), "hello"));
	CHECK(open_kind("secret", O_RDONLY) < 0 && errno == EACCES);
	CHECK_EQ(shared->reopened, reopened + 2);
	if (has_int80())
		CHECK(file_holds(open_kind32("opath", O_RDONLY), "hello"));
	CHECK_EQ(count_files(), files);
	getrlimit(RLIMIT_NOFILE, &old);
	few = (struct rlimit){ (rlim_t)low, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	CHECK(open_kind("file", O_RDONLY) < 0 && errno == EMFILE);
	few.rlim_cur++; /* a number for the socket and none for the file */
	setrlimit(RLIMIT_NOFILE, &few);
	CHECK(open_kind("file", O_RDONLY) < 0 && errno == EMFILE);
	setrlimit(RLIMIT_NOFILE, &old);
	CHECK_EQ(count_files(), files);
	CHECK_EQ(count_maps(), maps);
}

/* The new program has had its window from the first instruction on. */
static int foreign_program(void)
{
	CHECK_EQ(windows_mapped(), 1);
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	try_foreign();
	return guest_failures != 0;
}

static int test_foreign(void)
{
	int supervisors = 0;

	CHECK(file_holds(open_kind("opath", O_RDONLY), "hello"));
	for (int i = 0; i < 10; i++) {
		pid_t child = guest_fork();
		int status;

		if (child == 0) {
			become_foreign();
			prctl(PR_SET_DUMPABLE, 1); /* so that it may look at its own files */
			if (i % 2)
				exec_guest("foreign_program");
			try_foreign();
			child_exit();
		}
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
		if (i == 2)
			supervisors = getsid(ASK_FILES);
	}
	CHECK_EQ(getsid(ASK_FILES), supervisors);
	return guest_failures != 0;
}

static void *foreign_thread(void *arg)
{
	for (int i = 0; i < 50; i++) {
		CHECK(file_holds(open_kind("file", O_RDONLY), "hello"));
		CHECK(file_holds(open_virtual("a", O_RDONLY, 0), "a"));
	}
	return NULL;
}

static int test_foreign_threads(void)
{
	pthread_t threads[5];
	int files;

	become_foreign();
	prctl(PR_SET_DUMPABLE, 1);
	files = count_files();
	for (int i = 0; i < 5; i++)
		guest_thread(&threads[i], foreign_thread, NULL);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(count_files(), files);
	return guest_failures != 0;
}

/* Its own filter would kill it for a call that it does not make. */
static int test_foreign_filter(void)
{
	become_foreign();
	CHECK(file_holds(open_kind("file", O_RDONLY), "hello"));
	install_filter(SYS_socket, SECCOMP_RET_KILL_PROCESS);
	CHECK(open_kind("file", O_RDONLY) < 0 && errno == EACCES);
	return guest_failures != 0;
}

/* --- replaced files ------------------------------------------------------------------------------------------------------------- */

static int open_old(int flags)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/hello", shared->dir);
	fd = open(path, flags);
	MUST(fd >= 0);
	return fd;
}

static long replace(pid_t pid, int fd)
{
	return syscall(SYS_getsid, ASK_REPLACE, pid, fd, O_RDONLY);
}

static bool is_new(int fd)
{
	char text[8] = "";

	return pread(fd, text, sizeof(text), 0) == 3 && !strcmp(text, "NEW");
}

static int test_replace(void)
{
	int fd = open_old(O_RDONLY), closed_on_exec = open_old(O_RDONLY | O_CLOEXEC), other = open_old(O_RDONLY);
	int another = open_virtual("a", O_RDONLY, 0), files = count_files(), maps = count_maps();
	char byte;

	CHECK(read(fd, &byte, 1) == 1 && byte == 'h');
	CHECK_EQ(replace(getpid(), fd), 0);
	CHECK(is_new(fd));
	CHECK(read(fd, &byte, 1) == 1 && byte == 'E'); /* where it was */
	CHECK(write(fd, "x", 1) < 0);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	CHECK_EQ(syscall(SYS_getsid, ASK_REPLACE, getpid(), closed_on_exec, O_RDWR | O_APPEND), 0);
	CHECK(is_new(closed_on_exec));
	CHECK_EQ(fcntl(closed_on_exec, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(closed_on_exec, F_GETFL) & (O_ACCMODE | O_APPEND), O_RDWR | O_APPEND);
	CHECK(!is_new(other));
	CHECK_EQ(replace(getpid(), fd), 0); /* it is not of the old file any more */
	CHECK(is_new(fd));
	CHECK_EQ(replace(getpid(), another), 0); /* that never was */
	CHECK(file_holds(another, "a"));
	CHECK_EQ(replace(getpid(), 100), 0); /* it is none */
	CHECK_EQ(replace(999999, fd), 0);
	CHECK_EQ(count_files(), files - 1);
	CHECK_EQ(count_maps(), maps);
	for (int i = 0; i < 100; i++) {
		fd = open_old(O_RDONLY);
		CHECK_EQ(replace(getpid(), fd), 0);
		CHECK(is_new(fd));
		close(fd);
	}
	return guest_failures != 0;
}

static int test_replace_share(void)
{
	int a = open_old(O_RDONLY), b = dup(a);
	char byte;

	CHECK_EQ(syscall(SYS_getsid, ASK_SHARE, getpid(), a, b), 0);
	CHECK(read(a, &byte, 1) == 1 && byte == 'N');
	CHECK(read(b, &byte, 1) == 1 && byte == 'E');
	return guest_failures != 0;
}

/* A child that does what BODY says, with a descriptor of the old file. */
static pid_t child_start(void (*body)(int fd), int *fd)
{
	pid_t child;

	*fd = open_old(O_RDONLY);
	shared->ready = shared->go = shared->done = 0;
	child = guest_fork();
	if (child == 0) {
		body(*fd);
		child_exit();
	}
	close(*fd);
	MUST(guest_await_value(&shared->ready, 1));
	return child;
}

static void *spin_body(void *arg)
{
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		;
	return arg;
}

static void running_child(int fd)
{
	pthread_t thread;

	guest_thread(&thread, spin_body, NULL);
	shared->ready = 1;
	spin_body(NULL);
	pthread_join(thread, NULL);
	CHECK(is_new(fd));
}

static int test_replace_running(void)
{
	for (int i = 0; i < 20; i++) {
		int fd, status;
		pid_t child = child_start(running_child, &fd);

		CHECK_EQ(replace(child, fd), 0);
		shared->go = 1;
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
	}
	return guest_failures != 0;
}

static int ends[2];

/* Interrupted by nothing that it could see. */
static void read_child(int fd)
{
	char byte;

	shared->ready = 1;
	CHECK(read(ends[0], &byte, 1) == 1);
	CHECK(is_new(fd));
}

static void poll_child(int fd)
{
	struct pollfd p = { ends[0], POLLIN, 0 };

	shared->ready = 1;
	CHECK_EQ(poll(&p, 1, 10000), 1);
	CHECK(is_new(fd));
}

static void sleep_child(int fd)
{
	long long start = guest_now_ms();

	shared->ready = 1;
	CHECK(usleep(300000) == 0);
	CHECK(guest_now_ms() - start >= 300 && guest_now_ms() - start < 5000);
	CHECK(is_new(fd));
}

static void suspend_child(int fd)
{
	sigset_t none;

	guest_block(SIG_BLOCK, SIGUSR1);
	sigemptyset(&none);
	shared->ready = 1;
	CHECK(sigsuspend(&none) < 0 && errno == EINTR);
	CHECK(is_new(fd));
}

static void fifo_child(int fd)
{
	shared->ready = 1;
	close(open_virtual("fifo0", O_RDONLY, 0));
	CHECK(is_new(fd));
}

static void on_usr1(int signo, siginfo_t *info, void *context)
{
}

static void end_blocked(pid_t child)
{
	char path[300];
	int fifo;

	if (write(ends[1], "x", 1) != 1)
		abort();
	snprintf(path, sizeof(path), "%s/fifo0", shared->dir);
	fifo = open(path, O_RDWR | O_CLOEXEC);
	usleep(20000);
	close(fifo);
}

static int test_replace_blocked(void)
{
	void (*const bodies[])(int) = { read_child, poll_child, sleep_child, suspend_child, fifo_child };

	guest_handle(SIGUSR1, on_usr1, SA_RESTART);
	for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		int fd, status;
		pid_t child;

		MUST(pipe2(ends, O_CLOEXEC) == 0);
		child = child_start(bodies[i], &fd);
		MUST(guest_await_state(child, child, "S"));
		CHECK_EQ(replace(child, fd), 0);
		CHECK(waitpid(child, &status, WNOHANG) == 0);
		if (bodies[i] == suspend_child)
			kill(child, SIGUSR1);
		else if (bodies[i] != sleep_child)
			end_blocked(child);
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
		close(ends[0]);
		close(ends[1]);
	}
	return guest_failures != 0;
}

/* Its only task waits for a decision. */
static void waiting_child(int fd)
{
	shared->ready = 1;
	CHECK(file_holds((int)syscall(SYS_openat, AT_FDCWD, "/wait/100/a", O_RDONLY, 0), "a"));
	CHECK(is_new(fd));
}

static int test_replace_waiting(void)
{
	int fd, status;
	pid_t child = child_start(waiting_child, &fd);

	MUST(guest_await_value(&shared->waits, 1));
	CHECK_EQ(replace(child, fd), 0);
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
	return guest_failures != 0;
}

/* Each signal interrupts a read, whatever else does. Half of the replacements find the old file. */
static void signals_child(int fd)
{
	int old = dup(fd);
	char byte;

	guest_handle(SIGUSR1, on_usr1, 0);
	shared->ready = 1;
	while (!shared->go) {
		CHECK(read(ends[0], &byte, 1) < 0 && errno == EINTR);
		dup2(old, fd);
		__atomic_add_fetch(&shared->done, 1, __ATOMIC_SEQ_CST);
	}
	close(fd);
}

static void *replace_often(void *arg)
{
	const int *what = arg;

	while (!shared->go)
		replace(what[0], what[1]);
	return NULL;
}

static int test_replace_signals(void)
{
	pthread_t thread;
	int what[2], status;

	MUST(pipe2(ends, O_CLOEXEC) == 0);
	what[0] = child_start(signals_child, &what[1]);
	guest_thread(&thread, replace_often, what);
	for (int i = 1; i <= 300; i++) {
		MUST(guest_await_state(what[0], what[0], "S"));
		if (i == 300)
			shared->go = 1;
		kill(what[0], SIGUSR1);
		MUST(guest_await_value(&shared->done, i));
	}
	pthread_join(thread, NULL);
	status = guest_wait(what[0]);
	CHECK_EXIT(status, 0);
	return guest_failures != 0;
}

static int test_replace_stopped(void)
{
	int fd, status;
	pid_t child = child_start(running_child, &fd);

	kill(child, SIGSTOP);
	CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	CHECK_EQ(replace(child, fd), 0); /* it is not waited for */
	CHECK_EQ(guest_state(child, child), 't');
	shared->go = 1;
	kill(child, SIGCONT);
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
	return guest_failures != 0;
}

static int test_replace_vfork(void)
{
	for (volatile int i = 0; i < 10; i++) {
		volatile int fd = open_old(O_RDONLY);
		pid_t parent = getpid(), child = vfork();

		if (child == 0) {
			replace(parent, fd);
			_exit(is_new(fd) ? 1 : 0); /* its own is a copy */
		}
		guest_wait(child);
		CHECK(is_new(fd));
		close(fd);
	}
	return guest_failures != 0;
}

static void killed_child(int fd)
{
	shared->ready = 1;
	for (;;)
		is_new(fd);
}

static int test_replace_killed(void)
{
	int files = 0;

	for (int i = 0; i < 100; i++) {
		int fd, status;
		pid_t child = child_start(killed_child, &fd), killer = guest_fork();

		if (killer == 0) {
			for (volatile int j = 0; j < i * 3000; j++)
				;
			kill(child, SIGKILL);
			_exit(0);
		}
		CHECK_EQ(replace(child, fd), 0);
		status = guest_wait(child);
		CHECK_SIGNALED(status, SIGKILL);
		guest_wait(killer);
		if (i == 10)
			files = getsid(ASK_FILES);
	}
	CHECK_EQ(getsid(ASK_FILES), files);
	return guest_failures != 0;
}

/* Started by exec: its descriptor is shared->value[1]. */
static int replaced_program(void)
{
	if (__atomic_add_fetch(&shared->count, 1, __ATOMIC_SEQ_CST) < 50)
		exec_guest("replaced_program");
	MUST(guest_await_value(&shared->done, 1));
	CHECK(is_new(shared->value[1]));
	return guest_failures != 0;
}

static void exec_child(int fd)
{
	shared->value[1] = fd;
	shared->ready = 1;
	exec_guest("replaced_program");
}

static int test_replace_exec(void)
{
	for (int i = 0; i < 5; i++) {
		int fd, status;
		pid_t child;

		shared->count = 0;
		child = child_start(exec_child, &fd);
		MUST(guest_await_value(&shared->count, i * 8 + 1));
		CHECK_EQ(replace(child, fd), 0);
		shared->done = 1;
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
	}
	return guest_failures != 0;
}

static void filter_child(int fd)
{
	install_filter(SYS_socket, SECCOMP_RET_KILL_PROCESS);
	shared->ready = 1;
	spin_body(NULL);
	CHECK(!is_new(fd));
}

static int test_replace_filter(void)
{
	int fd, status;
	pid_t child = child_start(filter_child, &fd);

	CHECK_EQ(replace(child, fd), 0);
	shared->go = 1;
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
	CHECK(shared->notes > 0);
	return guest_failures != 0;
}

static int test_replace_hidden(void)
{
	become_foreign();
	prctl(PR_SET_DUMPABLE, 1);
	return test_replace();
}

/* --- mapped files --------------------------------------------------------------------------------------------------------------- */

enum { PAGE = 4096 };

static char *map_old(int protection, int flags)
{
	int fd = open_old(protection & PROT_WRITE && flags == MAP_SHARED ? O_RDWR : O_RDONLY);
	char *map = mmap(NULL, PAGE, protection, flags, fd, 0);

	MUST(map != MAP_FAILED);
	close(fd);
	return map;
}

static long remap(pid_t tid)
{
	return syscall(SYS_getsid, ASK_REMAP, tid);
}

static bool maps_new(const char *map)
{
	return !memcmp(map, "NEW", 4);
}

/* Descriptors and other mappings are as before. */
static int test_remap(void)
{
	char *map, *hidden, *private, *executable, *writable, *none;
	int files = count_files(), maps;

	CHECK_EQ(remap(getpid()), 0);
	CHECK_EQ(shared->remapped, 0);
	none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* it cannot merge with those beside it */
	map = map_old(PROT_READ, MAP_SHARED);
	hidden = map_old(PROT_NONE, MAP_SHARED);
	private = map_old(PROT_READ, MAP_PRIVATE);
	executable = map_old(PROT_READ | PROT_EXEC, MAP_SHARED);
	maps = count_maps();
	CHECK(!memcmp(map, "hello", 6));
	CHECK_EQ(remap(getpid()), 0);
	CHECK_EQ(shared->remapped, 2);
	CHECK(maps_new(map));
	CHECK(!memcmp(private, "hello", 6) && !memcmp(executable, "hello", 6));
	CHECK(mprotect(map, PAGE, PROT_READ | PROT_WRITE) < 0 && errno == EACCES); /* as before */
	CHECK(mprotect(hidden, PAGE, PROT_READ) == 0 && maps_new(hidden));
	CHECK_EQ(count_files(), files);
	munmap(none, PAGE);
	munmap(hidden, PAGE);
	writable = geteuid() ? private : map_old(PROT_READ | PROT_WRITE, MAP_SHARED);
	CHECK_EQ(remap(getpid()), 0);
	CHECK(!memcmp(writable, "hello", 6));
	CHECK_EQ(shared->remapped, 0);
	CHECK(count_maps() <= maps + 1);
	CHECK_EQ(shared->notes, 0);
	CHECK_EQ(windows_mapped(), 1);
	return guest_failures != 0;
}

/* Each at its own offset; more than one look finds. */
static int test_remap_many(void)
{
	enum { MANY = 300 };
	char *area = mmap(NULL, (size_t)MANY * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_old(O_RDONLY), files = count_files(), maps;

	MUST(area != MAP_FAILED);
	for (int i = 0; i < MANY; i++)
		MUST(mmap(area + (size_t)i * 2 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, i % 2 * PAGE) != MAP_FAILED);
	maps = count_maps();
	CHECK_EQ(remap(getpid()), 0);
	for (int i = 0; i < MANY; i += 2)
		CHECK(maps_new(area + (size_t)i * 2 * PAGE));
	CHECK_EQ(count_maps(), maps);
	CHECK_EQ(remap(getpid()), 0);
	CHECK_EQ(shared->remapped, 0); /* those past its end are of the new one, too */
	CHECK_EQ(count_files(), files);
	CHECK_EQ(shared->notes, 0);
	return guest_failures != 0;
}

static void *map_spin_body(void *arg)
{
	const char *map = arg;

	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		CHECK(*map == 'h' || *map == 'N');
	return NULL;
}

/* Threads that read it all the time never find it gone. */
static void map_threads_child(int fd)
{
	char *map = map_old(PROT_READ, MAP_SHARED);
	pthread_t threads[2];

	close(fd);
	for (int i = 0; i < 2; i++)
		guest_thread(&threads[i], map_spin_body, map);
	shared->ready = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(maps_new(map));
}

static void remap_child(void (*body)(int fd))
{
	int fd, status;
	pid_t child = child_start(body, &fd);

	CHECK_EQ(remap(child), 0);
	shared->go = 1;
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
}

static int test_remap_threads(void)
{
	for (int i = 0; i < 10; i++)
		remap_child(map_threads_child);
	return guest_failures != 0;
}

static void map_blocked_child(int fd)
{
	const char *map = map_old(PROT_READ, MAP_SHARED);
	char byte;

	shared->ready = 1;
	CHECK(read(ends[0], &byte, 1) == 1);
	CHECK(maps_new(map) && !is_new(fd));
}

static int test_remap_blocked(void)
{
	int fd, status;
	pid_t child;

	MUST(pipe2(ends, O_CLOEXEC) == 0);
	child = child_start(map_blocked_child, &fd);
	MUST(guest_await_state(child, child, "S"));
	CHECK_EQ(remap(child), 0);
	CHECK_EQ(shared->remapped, 1);
	CHECK(write(ends[1], "x", 1) == 1);
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
	return guest_failures != 0;
}

/* The parent cannot stop: it is done before it runs on, though its child had the same memory. */
static int test_remap_vfork(void)
{
	for (volatile int i = 0; i < 10; i++) {
		char *map = map_old(PROT_READ, MAP_SHARED);
		pid_t parent = getpid(), child = vfork();

		if (child == 0) {
			remap(parent);
			_exit(0);
		}
		guest_wait(child);
		CHECK(maps_new(map));
		munmap(map, PAGE);
	}
	return guest_failures != 0;
}

static void map_killed_child(int fd)
{
	const volatile char *map = map_old(PROT_READ, MAP_SHARED);

	shared->ready = 1;
	for (;;)
		is_new(*map ? fd : 0);
}

static int test_remap_killed(void)
{
	int files = 0;

	for (int i = 0; i < 60; i++) {
		int fd, status;
		pid_t child = child_start(map_killed_child, &fd), killer = guest_fork();

		if (killer == 0) {
			for (volatile int j = 0; j < i * 5000; j++)
				;
			kill(child, SIGKILL);
			_exit(0);
		}
		CHECK_EQ(remap(child), 0);
		status = guest_wait(child);
		CHECK_SIGNALED(status, SIGKILL);
		guest_wait(killer);
		if (i == 10)
			files = getsid(ASK_FILES);
	}
	CHECK_EQ(getsid(ASK_FILES), files);
	return guest_failures != 0;
}

/* /proc shows no memory of a leader that has exited. */
static void *leaderless_body(void *map)
{
	shared->value[0] = guest_tid();
	MUST(guest_await_state(getpid(), getpid(), "Z"));
	shared->count = 1;
	spin_body(NULL);
	_exit(maps_new(map) ? 0 : 1);
}

static void leaderless_child(int fd)
{
	pthread_t thread;

	(void)fd;
	guest_thread(&thread, leaderless_body, map_old(PROT_READ, MAP_SHARED));
	shared->ready = 1;
	syscall(SYS_exit, 0);
}

static int test_remap_leader(void)
{
	int fd, status;
	pid_t child;

	shared->count = 0;
	child = child_start(leaderless_child, &fd);
	MUST(guest_await_value(&shared->count, 1));
	CHECK_EQ(remap(shared->value[0]), 0);
	CHECK_EQ(shared->remapped, 1);
	shared->go = 1;
	status = guest_wait(child);
	CHECK_EXIT(status, 0);
	return guest_failures != 0;
}

enum { DEPTH = 110 };

#define PADDING "----------------------------------------------------------------------------------------------------"

/* DEPTH folders called NAME, below "top". The innermost one. */
static int folders_make(const char *name)
{
	char path[300];
	int deep;

	snprintf(path, sizeof(path), "%s/top", shared->dir);
	MUST(mkdir(path, 0700) == 0);
	deep = open(path, O_PATH | O_DIRECTORY);
	for (int i = 0; i < DEPTH; i++) {
		int next;

		MUST(mkdirat(deep, name, 0700) == 0);
		next = openat(deep, name, O_PATH | O_DIRECTORY);
		MUST(next >= 0);
		close(deep);
		deep = next;
	}
	return deep;
}

/* Closes DEEP. */
static void folders_remove(int deep, const char *name)
{
	for (int i = 0; i < DEPTH; i++) {
		int up = openat(deep, "..", O_PATH | O_DIRECTORY);

		CHECK(unlinkat(up, name, AT_REMOVEDIR) == 0);
		close(deep);
		deep = up;
	}
	close(deep);
}

/* A mapped file has a long name, which looks like lines about something else wherever it is cut. */
static int test_remap_names(void)
{
	char path[400], other[400], fake[200];
	char *victim = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct stat st;
	int deep, fd;

	snprintf(path, sizeof(path), "%s/hello", shared->dir);
	MUST(stat(path, &st) == 0 && victim != MAP_FAILED);
	strcpy(victim, "mine");
	snprintf(fake, sizeof(fake), "%lx-%lx r--s 00000000 %02x:%02x %lu", (unsigned long)victim, (unsigned long)victim + PAGE,
	         major(st.st_dev), minor(st.st_dev), (unsigned long)st.st_ino);
	deep = folders_make(fake);
	fd = openat(deep, "f", O_RDWR | O_CREAT, 0600);
	MUST(fd >= 0 && mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	snprintf(path, sizeof(path), "%s/top", shared->dir);
	for (int i = 0; i < (int)strlen(fake) + 2; i++) {
		snprintf(other, sizeof(other), "%s/%.*s", shared->dir, i + 1, PADDING);
		CHECK(rename(path, other) == 0);
		CHECK_EQ(remap(getpid()), 0);
		CHECK_EQ(shared->remapped, 0);
		snprintf(path, sizeof(path), "%s", other);
	}
	CHECK(!strcmp(victim, "mine"));
	unlinkat(deep, "f", 0);
	folders_remove(deep, fake);
	CHECK(rmdir(path) == 0);
	return guest_failures != 0;
}

static void map_filter_child(int fd)
{
	const char *map = map_old(PROT_READ, MAP_SHARED);

	(void)fd;
	install_filter(SYS_mmap, SECCOMP_RET_KILL_PROCESS);
	shared->ready = 1;
	spin_body(NULL);
	CHECK(!maps_new(map));
}

static int test_remap_filter(void)
{
	remap_child(map_filter_child);
	CHECK_EQ(shared->notes, 1);
	CHECK(strstr(shared->note, "mapping") != NULL);
	return guest_failures != 0;
}

static int test_remap_hidden(void)
{
	become_foreign();
	prctl(PR_SET_DUMPABLE, 1);
	return test_remap();
}

const struct guest_case guests_files[] = {
	{ "foreign_program", foreign_program },
	{ "replaced_program", replaced_program },
	{ "answer_fd_full", test_answer_fd_full },
	{ "answer_fd_denied", test_answer_fd_denied },
	{ "foreign", test_foreign },
	{ "foreign_threads", test_foreign_threads },
	{ "foreign_filter", test_foreign_filter },
	{ "replace", test_replace },
	{ "replace_share", test_replace_share },
	{ "replace_running", test_replace_running },
	{ "replace_blocked", test_replace_blocked },
	{ "replace_waiting", test_replace_waiting },
	{ "replace_signals", test_replace_signals },
	{ "replace_stopped", test_replace_stopped },
	{ "replace_vfork", test_replace_vfork },
	{ "replace_killed", test_replace_killed },
	{ "replace_exec", test_replace_exec },
	{ "replace_filter", test_replace_filter },
	{ "replace_hidden", test_replace_hidden },
	{ "remap", test_remap },
	{ "remap_many", test_remap_many },
	{ "remap_threads", test_remap_threads },
	{ "remap_blocked", test_remap_blocked },
	{ "remap_vfork", test_remap_vfork },
	{ "remap_killed", test_remap_killed },
	{ "remap_leader", test_remap_leader },
	{ "remap_names", test_remap_names },
	{ "remap_filter", test_remap_filter },
	{ "remap_hidden", test_remap_hidden },
	{ NULL, NULL }
};
