/* guest.c - what the guests of the engine's tests share. */
#include "tests/guest/guest.h"

#include "tests/engine/engine_test.h"

struct shared *shared;

int open_virtual(const char *name, int flags, unsigned sequence)
{
	char path[200];

	snprintf(path, sizeof(path), "/virtual/%s", name);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, sequence);
}

int open_kind(const char *kind, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/fd/%s", kind);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

bool file_holds(int fd, const char *text)
{
	char buf[64];
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) && !memcmp(buf, text, n);
}

int windows_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	MUST(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:window") != NULL;
	fclose(maps);
	return count;
}

/* --- blocked threads ---------------------------------------------------------------------------------------------- */

static bool blocked_go;

static void *blocked_body(void *arg)
{
	struct blocked *b = arg;
	unsigned char byte;
	char name[20];
	int fd;

	snprintf(name, sizeof(name), "fifo%d", b->fifo);
	while (!__atomic_load_n(&blocked_go, __ATOMIC_ACQUIRE))
		sched_yield();
	b->tid = guest_tid();
	fd = open_virtual(name, O_RDONLY, 0);
	b->error = errno;
	if (fd < 0)
		return NULL;
	if (read(fd, &byte, 1) == 1)
		b->got = byte;
	close(fd);
	return NULL;
}

void blocked_start(struct blocked *b, int first, int count)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	__atomic_store_n(&blocked_go, false, __ATOMIC_RELEASE);
	for (int i = 0; i < count; i++) {
		b[i] = (struct blocked){ .fifo = first + i, .got = -1 };
		errno = pthread_create(&b[i].thread, &attr, blocked_body, &b[i]);
		MUST(errno == 0);
	}
	pthread_attr_destroy(&attr);
	__atomic_store_n(&blocked_go, true, __ATOMIC_RELEASE);
}

/* The kernel's function of a FIFO's open is its wait for a partner: the state alone could be that of another wait. */
static bool in_openat(pid_t tid)
{
	char path[64], line[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0) /* an undumpable process may not look */
		return true;
	line[n] = 0;
	return atol(line) == SYS_openat;
}

bool blocked_await(struct blocked *b, int count)
{
	long long end = guest_now_ms() + 20000;

	for (int i = 0; i < count; i++) {
		while (!b[i].tid || guest_state(getpid(), b[i].tid) != 'S' || !in_openat(b[i].tid)) {
			if (b[i].error || guest_now_ms() > end)
				return false;
			sched_yield();
		}
	}
	return true;
}

bool blocked_release(struct blocked *b)
{
	unsigned char byte = (unsigned char)b->fifo;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/fifo%d", shared->dir, b->fifo);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (write(fd, &byte, 1) != 1)
		return false;
	pthread_join(b->thread, NULL);
	close(fd);
	return b->got == b->fifo;
}

int blocked_release_all(struct blocked *b, int count)
{
	int right = 0;

	for (int i = count - 1; i >= 0; i--) {
		if (b[i].error && b[i].got < 0) /* it was refused: nobody would come to the other end */
			dprintf(2, "FAIL fifo%d: errno %s\n", b[i].fifo, strerrorname_np(b[i].error));
		else
			right += blocked_release(&b[i]);
	}
	return right;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

int run_guest(const char *name)
{
	const struct guest_case *const tables[] = { guests_window, guests_calls, guests_life, guests_wait, guests_files };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	MUST(shared != MAP_FAILED);
	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct guest_case *c = tables[i]; c->name; c++) {
			if (!strcmp(c->name, name))
				return c->run();
		}
	}
	dprintf(2, "FAIL there is no guest %s\n", name);
	return 2;
}
