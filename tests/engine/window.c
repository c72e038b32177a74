/* window.c - guests that try to change the window, to run out of it, or to be without it. */
#include "tests/guest/guest.h"

#include <elf.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "tests/engine/engine_test.h"

struct mapping {
	unsigned long start, end;
	char perms[5];
	unsigned long offset;
};

static bool find_window(struct mapping *m)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	MUST(maps);
	while (!found && fgets(line, sizeof(line), maps)) {
		found = strstr(line, "memfd:window") &&
		        sscanf(line, "%lx-%lx %4s %lx", &m->start, &m->end, m->perms, &m->offset) == 4;
	}
	fclose(maps);
	return found;
}

static bool can_seal(void)
{
	return syscall(462, 0, 0, 0) == 0;
}

/* The window is where and what it was, and still works. */
static void check_window(const struct mapping *before, const char *after)
{
	struct mapping now = { 0 };
	bool same = find_window(&now) && now.start == before->start && now.end == before->end &&
	            now.offset == before->offset && !strcmp(now.perms, before->perms);

	if (!same || !file_holds(open_virtual("hello", O_RDONLY, 0), "hello")) {
		dprintf(2, "FAIL the window is not what it was after %s\n", after);
		guest_failures++;
	}
}

static void try_unmapping(const struct mapping *m)
{
	char *addr = (char *)m->start, *fresh;
	size_t len = m->end - m->start;
	int id = shmget(IPC_PRIVATE, len, 0600);

	CHECK(munmap(addr, len) < 0);
	CHECK(munmap(addr, 4096) < 0);
	check_window(m, "munmap");
	CHECK(mmap(addr, len, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	check_window(m, "mmap over it");
	fresh = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(fresh != MAP_FAILED);
	CHECK(mremap(fresh, len, len, MREMAP_FIXED | MREMAP_MAYMOVE, addr) == MAP_FAILED);
	CHECK(mremap(addr, len, len, MREMAP_FIXED | MREMAP_MAYMOVE, fresh) == MAP_FAILED);
	CHECK(mremap(addr, len, len * 2, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(mremap(addr, len, 4096, 0) == MAP_FAILED);
	check_window(m, "mremap");
	CHECK(mprotect(addr, len, PROT_NONE) < 0);
	check_window(m, "mprotect to nothing");
	CHECK(id >= 0 && shmat(id, addr, SHM_REMAP) == (void *)-1);
	shmctl(id, IPC_RMID, NULL);
	check_window(m, "shmat");
}

static void try_mem(const struct mapping *m)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char old, now;

	MUST(fd >= 0);
	CHECK(pread(fd, &old, 1, (off_t)m->start) == 1);
	CHECK(pwrite(fd, "#", 1, (off_t)m->start) < 0);
	CHECK(pread(fd, &now, 1, (off_t)m->start) == 1);
	CHECK(old == now);
	close(fd);
}

static int test_window(void)
{
	struct mapping m = { 0 };
	char *addr, path;
	size_t len;

	MUST(find_window(&m));
	addr = (char *)m.start;
	len = m.end - m.start;
	CHECK(!strcmp(m.perms, "r--s"));
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	path = *addr; /* the slot just used holds its path's first byte */
	CHECK_EQ(path, '/');
	CHECK(mprotect(addr, len, PROT_READ | PROT_WRITE) < 0);
	CHECK(mprotect(addr, 4096, PROT_WRITE) < 0);
	check_window(&m, "mprotect");
	try_mem(&m);
	check_window(&m, "a write to /proc/self/mem");
	for (int advice = 0; advice < 26; advice++) {
		if (advice == MADV_DONTFORK || advice == MADV_WIPEONFORK)
			continue;
		madvise(addr, len, advice);
		CHECK_EQ(*addr, '/');
	}
	check_window(&m, "madvise");
	CHECK(syscall(SYS_remap_file_pages, addr, 4096, 0, 4, 0) < 0);
	check_window(&m, "remap_file_pages");
	CHECK(read(open("/proc/self/exe", O_RDONLY), addr, 16) < 0);
	if (can_seal())
		try_unmapping(&m);
	return guest_failures != 0;
}

/* What the seal keeps, whoever has the file open. */
static void try_file(int fd)
{
	struct stat before, after;
	char *memory;

	CHECK(fstat(fd, &before) == 0);
	CHECK(write(fd, "#", 1) < 0);
	CHECK(pwrite(fd, "#", 1, 100) < 0);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(ftruncate(fd, 0) < 0);
	CHECK(ftruncate(fd, before.st_size - 4096) < 0);
	CHECK(ftruncate(fd, before.st_size + (1 << 20)) < 0);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0);
	CHECK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096) < 0);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
	CHECK(fstat(fd, &after) == 0 && before.st_size == after.st_size);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED && mprotect(memory, 4096, PROT_READ | PROT_WRITE) < 0);
}

static int test_window_file(void)
{
	char path[64], link[64];
	int tried = 0;

	for (int n = 3; n < 64; n++) {
		ssize_t len;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), n);
		len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = 0;
		if (!strstr(link, "memfd:window"))
			continue;
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			try_file(fd);
		tried++;
	}
	CHECK(tried > 0);
	CHECK(file_holds(open_virtual("hello", O_RDONLY, 0), "hello"));
	/* more than one chunk still can be had */
	MUST(guest_failures == 0);
	return guest_failures != 0;
}

/* --- slots -------------------------------------------------------------------------------------------------------- */

enum { MANY = 100 };

static int test_many_blocked(void)
{
	static struct blocked b[MANY];

	blocked_start(b, 0, MANY);
	MUST(blocked_await(b, MANY));
	CHECK_EQ(blocked_release_all(b, MANY), MANY);
	return guest_failures != 0;
}

enum { GENERATIONS = 3, EACH = 12 };

/* All generations are blocked at the same time; the first one lets go in reverse order, its own last. */
static void generation(int which)
{
	static struct blocked b[EACH];
	pid_t child = 0;
	int status;

	if (which + 1 < GENERATIONS) {
		child = guest_fork();
		if (child == 0) {
			generation(which + 1);
			child_exit();
		}
	}
	blocked_start(b, which * EACH, EACH);
	MUST(blocked_await(b, EACH));
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	MUST(guest_await_value(&shared->ready, GENERATIONS));
	CHECK_EQ(blocked_release_all(b, EACH), EACH);
	if (child) {
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
	}
}

static int test_slots_of_forks(void)
{
	generation(0);
	return guest_failures != 0;
}

/* --- no window ---------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)

/* A program without a library: opens a rewritten path, ends with the positive errno. */
__asm__(".pushsection .rodata\n"
        "tiny_begin:\n"
        "	mov $257, %eax\n" /* openat */
        "	mov $-100, %edi\n"
        "	lea tiny_path(%rip), %rsi\n"
        "	xor %edx, %edx\n"
        "	xor %r10d, %r10d\n"
        "	syscall\n"
        "	neg %eax\n"
        "	mov %eax, %edi\n"
        "	mov $231, %eax\n" /* exit_group */
        "	syscall\n"
        "tiny_path:\n"
        "	.asciz \"/virtual/hello\"\n"
        "tiny_end:\n"
        ".popsection\n");
extern const char tiny_begin[], tiny_end[];

static void write_tiny(const char *path)
{
	const uint64_t base = 0x400000;
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		char code[200];
	} file = { .e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_EXEC,
	                  .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr),
	                  .e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1 },
	           .p = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = base, .p_align = 4096 } };
	size_t len = (size_t)(tiny_end - tiny_begin);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	MUST(fd >= 0 && len <= sizeof(file.code));
	file.e.e_entry = base + offsetof(__typeof__(file), code);
	file.p.p_filesz = file.p.p_memsz = sizeof(file);
	memcpy(file.code, tiny_begin, len);
	MUST(write(fd, &file, sizeof(file)) == sizeof(file));
	close(fd);
}

static int run_tiny(const char *path, rlim_t space)
{
	pid_t child = guest_fork();

	if (child == 0) {
		char *argv[] = { (char *)path, NULL };
		struct rlimit limit = { space, space };

		if (space)
			setrlimit(RLIMIT_AS, &limit);
		execv(path, argv);
		_exit(99);
	}
	return guest_wait(child);
}

static int test_small_as(void)
{
	char path[300];
	int status;

	snprintf(path, sizeof(path), "%s/tiny", shared->dir);
	write_tiny(path);
	status = run_tiny(path, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) > 200); /* a descriptor, negated */
	CHECK_EQ(shared->notes, 0);
	status = run_tiny(path, 350 << 10);
	CHECK_EXIT(status, EPERM);
	return guest_failures != 0;
}

/* A program that may be run and not read is undumpable from its first instruction on. */
static int test_execute_only(void)
{
	char path[300];
	int status;

	snprintf(path, sizeof(path), "%s/unreadable", shared->dir);
	write_tiny(path);
	MUST(chmod(path, 0111) == 0);
	status = run_tiny(path, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) > 200); /* a descriptor, negated */
	return guest_failures != 0;
}

/* --- hostile code at the call's instruction ----------------------------------------------------------------------- */

/*
 * A rewritten call that finds no free slot makes a chunk be mapped first, by calls made through its own system-call
 * instruction. Here another thread turns that instruction into a jump to code that makes another call: one that nobody
 * would have decided about if the engine took it for its own.
 *   rdi: path, rsi: address of the result of the second call
 */
__asm__(".pushsection .rodata\n"
        "hostile_begin:\n"
        "	push %rsi\n"
        "	mov %rdi, %rsi\n"
        "	mov $257, %eax\n"
        "	mov $-100, %edi\n"
        "	xor %edx, %edx\n"
        "	xor %r10d, %r10d\n"
        "hostile_insn:\n"
        "	syscall\n"
        "	pop %rsi\n"
        "	ret\n"
        "hostile_jump:\n" /* the same call, of a path that is refused */
        "	mov $257, %eax\n"
        "	mov $-100, %edi\n"
        "	lea hostile_path(%rip), %rsi\n"
        "	mov $0101, %edx\n" /* O_CREAT | O_WRONLY */
        "	mov $0600, %r10d\n"
        "	xor %r8d, %r8d\n"
        "	xor %r9d, %r9d\n"
        "	syscall\n"
        "	mov (%rsp), %rsi\n"
        "	mov %rax, (%rsi)\n"
        "1:	jmp 1b\n"
        "hostile_path: .asciz \"refused\"\n"
        "hostile_end:\n"
        ".popsection\n");
extern const char hostile_begin[], hostile_insn[], hostile_jump[], hostile_end[];

struct hostile {
	char *code;
	volatile long result;
	volatile bool over;
	long opened;
	volatile int stage;
	pthread_t thread;
};

static void *hostile_call(void *arg)
{
	struct hostile *h = arg;
	long (*call)(const char *, volatile long *) = (__typeof__(call))(uintptr_t)h->code;

	h->opened = call("/virtual/hello", &h->result);
	h->over = true;
	return NULL;
}

static void hostile_flip(struct hostile *h)
{
	uint16_t *insn = (uint16_t *)(h->code + (hostile_insn - hostile_begin));
	uint16_t jump = (uint16_t)(0xeb | (hostile_jump - hostile_insn - 2) << 8), call = 0x050f;
	long long end = guest_now_ms() + 1000;

	while (!h->over && h->result == 1 && guest_now_ms() < end) {
		__atomic_store_n(insn, jump, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 500; i++)
			;
		__atomic_store_n(insn, call, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 500; i++)
			;
	}
}

/* In a child: its parent's blocked threads hold all slots of the chunk that they share. */
static void hostile_child(void)
{
	static struct hostile h = { .result = 1 };
	size_t len = (size_t)(hostile_end - hostile_begin);

	h.code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(h.code != MAP_FAILED);
	memcpy(h.code, hostile_begin, len);
	guest_thread(&h.thread, hostile_call, &h);
	hostile_flip(&h);
	if (h.result != 1)
		__atomic_add_fetch(&shared->count, 1, __ATOMIC_SEQ_CST);
	CHECK(h.result == 1 || h.result == -EACCES);
	CHECK(access("refused", F_OK) < 0); /* nobody refused it */
	child_exit();
}

static int test_hostile_code(void)
{
	static struct blocked b[15];
	int status;

	MUST(chdir(shared->dir) == 0);
	blocked_start(b, 0, 15);
	MUST(blocked_await(b, 15));
	for (int i = 0; i < 60; i++) {
		pid_t child = guest_fork();

		if (child == 0)
			hostile_child();
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
		if (guest_failures)
			break;
	}
	CHECK(shared->count > 0); /* or the jump was never taken, and nothing was tested */
	CHECK_EQ(blocked_release_all(b, 15), 15);
	return guest_failures != 0;
}

#else

static int test_small_as(void)
{
	return GUEST_SKIP;
}

static int test_execute_only(void)
{
	return GUEST_SKIP;
}

static int test_hostile_code(void)
{
	return GUEST_SKIP;
}

#endif

/* --- stopped meanwhile -------------------------------------------------------------------------------------------- */

enum { STOPPED_THREADS = 60, STOPPED_TIMES = 6 };

static void stopped_child(void)
{
	static struct blocked b[STOPPED_THREADS];

	blocked_start(b, 0, STOPPED_THREADS);
	shared->ready = 1;
	MUST(blocked_await(b, STOPPED_THREADS));
	shared->done = 1;
	MUST(guest_await_value(&shared->go, 1));
	CHECK_EQ(blocked_release_all(b, STOPPED_THREADS), STOPPED_THREADS);
	child_exit();
}

/* Stops and continues a process whose threads are mapping chunks. After each SIGCONT it must go on by itself. */
static int test_stops_while_mapping(void)
{
	for (int i = 0; i < STOPPED_TIMES; i++) {
		long long end = guest_now_ms() + 15000;
		int status, stops = 0;
		pid_t child;

		shared->ready = shared->go = shared->done = 0;
		child = guest_fork();
		if (child == 0)
			stopped_child();
		while (!shared->done && stops < 40 && guest_now_ms() < end) {
			kill(child, SIGSTOP);
			kill(child, SIGCONT);
			stops++;
			for (volatile int j = 0; j < 20000; j++)
				;
		}
		MUST(guest_await_value(&shared->done, 1));
		shared->go = 1;
		status = guest_wait(child);
		CHECK_EXIT(status, 0);
	}
	return guest_failures != 0;
}

const struct guest_case guests_window[] = {
	{ "window", test_window },
	{ "window_file", test_window_file },
	{ "many_blocked", test_many_blocked },
	{ "slots_of_forks", test_slots_of_forks },
	{ "small_as", test_small_as },
	{ "execute_only", test_execute_only },
	{ "hostile_code", test_hostile_code },
	{ "stops_while_mapping", test_stops_while_mapping },
	{ NULL, NULL }
};
