/*
 * test_diagnose.c - programs that crash in known ways, and what the report says of each.
 *
 *   test_diagnose [diagnose.so]     runs all; "ok" and 0, or what is wrong and 1; 77 where ptrace is not permitted
 *   test_diagnose -v [diagnose.so]  shows the reports as well
 *   test_diagnose -- COMMAND ARG... shows the report of the first fatal signal of a program
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tracer/diagnose_impl.h"

#if defined(__clang__)
#define NOINLINE __attribute__((noinline, optnone, no_sanitize("undefined", "address")))
#else
#define NOINLINE __attribute__((noinline, noclone, optimize("O0"), no_sanitize("undefined", "address")))
#endif

/* Asking for its own frame's address makes a compiler keep the frame pointer in that function. */
#define KEEP_FRAME() (frame_kept = __builtin_frame_address(0))

static void *volatile frame_kept;
static volatile int sink;
static int *volatile null_pointer;
static bool verbose;

/* --- the crashes ----------------------------------------------------------------------------------------------------- */

static NOINLINE void crash_inner(void)
{
	KEEP_FRAME();
	*null_pointer = 1;
}

static NOINLINE void crash_middle(void)
{
	KEEP_FRAME();
	crash_inner();
	sink++;
}

static NOINLINE void crash_null(void)
{
	KEEP_FRAME();
	crash_middle();
	sink++;
}

/* The program's own headers no longer tell of a sorted unwind table, as in static programs of some compilers. */
static NOINLINE void crash_no_header(void)
{
	Elf64_Phdr *header = (Elf64_Phdr *)(uintptr_t)getauxval(AT_PHDR);
	uintptr_t page = (uintptr_t)header & ~(uintptr_t)4095;

	KEEP_FRAME();
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
	for (; header->p_type != PT_GNU_EH_FRAME; header++)
		;
	header->p_type = PT_NULL;
	crash_null();
	sink++;
}

static NOINLINE void crash_abort(void)
{
	abort();
}

static NOINLINE void crash_wild(void)
{
	*(volatile int *)0x123456789000 = 1;
}

static NOINLINE void crash_field(void)
{
	null_pointer[4] = 1;
}

static NOINLINE void crash_call_null(void)
{
	void (*volatile nowhere)(void) = NULL;

	KEEP_FRAME();
	nowhere();
	sink++;
}

static NOINLINE void crash_call_data(void)
{
	static char data[64];
	void (*volatile there)(void) = (void (*)(void))(uintptr_t)data;

	KEEP_FRAME();
	there();
	sink++;
}

static NOINLINE int recurse(int depth)
{
	volatile char room[200];

	KEEP_FRAME();
	room[0] = (char)depth;
	return depth == INT_MAX ? 0 : recurse(depth + 1) + room[0];
}

static NOINLINE void crash_overflow(void)
{
	const struct rlimit small = { 256 << 10, 256 << 10 };

	KEEP_FRAME();
	setrlimit(RLIMIT_STACK, &small);
	sink = recurse(0);
}

static NOINLINE void crash_bus(void)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	*(volatile char *)map = 1;
}

static NOINLINE void handler_crash(int signo)
{
	sink = signo;
	crash_inner();
}

static NOINLINE void crash_in_handler(void)
{
	const stack_t other = { .ss_sp = malloc(64 << 10), .ss_size = 64 << 10 };
	struct sigaction action = { .sa_handler = handler_crash, .sa_flags = SA_ONSTACK };

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sink++;
}

/* A whole stack of one byte: every saved frame pointer and return address is wild. */
static NOINLINE void crash_smashed(void)
{
	volatile char *here = __builtin_frame_address(0);

	for (int i = 0; i < 256; i++)
		here[i] = 0x41;
}

/* An executable mapping of a file whose name holds a terminal escape and whose content is an ELF header that lies. */
static NOINLINE void crash_hostile_file(void)
{
	char name[64];
	Elf64_Ehdr head = { .e_phoff = 64, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2, .e_shoff = 1,
			    .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 0xfff0 };
	Elf64_Phdr program[2] = { { .p_type = PT_LOAD }, { .p_type = PT_GNU_EH_FRAME, .p_vaddr = 512 } };
	const uint8_t table[] = { 1, 0x1b, 3, 0x3b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f };
	char *map;
	int fd;

	memcpy(head.e_ident, ELFMAG "\2\1\1", EI_NIDENT > 7 ? 7 : 0);
	snprintf(name, sizeof(name), "/tmp/diagnose-%d\033[31m\r\n", getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 8192) < 0 || pwrite(fd, &head, sizeof(head), 0) < 0 ||
	    pwrite(fd, program, sizeof(program), 64) < 0 || pwrite(fd, table, sizeof(table), 512) < 0)
		_exit(99);
	map = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	unlink(name);
	((void (*)(void))(uintptr_t)(map + 4096))();
	sink++;
}

static NOINLINE void crash_call(void)
{
	syscall(SYS_getppid);
}

#if defined(__x86_64__)
static NOINLINE void crash_divide(void)
{
	volatile int zero = 0;

	sink = (int)sizeof(sink) * sink / zero;
}

static NOINLINE void crash_illegal(void)
{
	__asm__ volatile("ud2");
}

/* Frame pointers that lead to themselves, in memory that no unwind table describes. */
static NOINLINE void crash_cycle(void)
{
	/* push rbp twice over, so that [rbp] = rbp and [rbp + 8] is code; then ud2 */
	static const uint8_t code[] = { 0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff, /* lea rax, [rip - 7] */
					0x50,                                     /* push rax */
					0x54,                                     /* push rsp (its old value: + 8 below) */
					0x48, 0x89, 0x24, 0x24,                   /* mov [rsp], rsp */
					0x48, 0x89, 0xe5,                         /* mov rbp, rsp */
					0x0f, 0x0b };
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(map, code, sizeof(code));
	((void (*)(void))(uintptr_t)map)();
	sink++;
}

enum { LOW = 0x10000000 }; /* where crash_low() puts 32-bit code and a stack of three frames */

static const uint8_t low_code[] = { 0xe8, 0x01, 0x00, 0x00, 0x00, /* 00 call 6 */
				    0x90,                         /* 05 nop */
				    0x55,                         /* 06 push ebp */
				    0x89, 0xe5,                   /* 07 mov ebp, esp */
				    0xe8, 0x01, 0x00, 0x00, 0x00, /* 09 call 0x0f */
				    0x90,                         /* 0e nop */
				    0x55,                         /* 0f push ebp */
				    0x89, 0xe5,                   /* 10 mov ebp, esp */
				    0x31, 0xc0,                   /* 12 xor eax, eax */
				    0xa3, 0x10, 0, 0, 0 };        /* 14 mov [0x10], eax */

static NOINLINE void crash_low(void)
{
	char *map = mmap((void *)(uintptr_t)LOW, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	const uint32_t stack[] = { LOW + 4096 + 8, LOW + 0x0e, 0, LOW + 0x05 };

	memcpy(map, low_code, sizeof(low_code));
	memcpy(map + 4096, stack, sizeof(stack));
	*null_pointer = 1;
}
#endif

/* --- running them ---------------------------------------------------------------------------------------------------- */

struct crash {
	const char *name;
	void (*run)(void);
	int signo;                 /* of the stop; 0 is the entry of a system call */
	const char *expect[8];     /* in this order in the text */
	const char *plain[4];      /* the same of a report without the plugin */
};

static const struct crash crashes[] = {
	{ "null", crash_null, SIGSEGV,
	  { "SEGV_MAPERR", "at 0x0 (a null pointer)", "#0 ", "crash_inner+0x", "crash_middle+0x", "crash_null+0x",
	    " main+0x", "=> " },
	  { "crash_inner+0x", "crash_middle+0x", "crash_null+0x", "instructions (diagnose.so was not found" } },
	{ "no header", crash_no_header, SIGSEGV,
	  { "crash_inner+0x", "crash_middle+0x", "crash_null+0x", "crash_no_header+0x", "crash_start+0x", "run_all+0x",
	    " main+0x" },
	  { "crash_null+0x", "crash_no_header+0x" } },
	{ "abort", crash_abort, SIGABRT,
	  { "SI_TKILL", "from process", "#0 ", "abort+0x", "crash_abort+0x", "=> " }, { "registers:" } },
	{ "wild", crash_wild, SIGSEGV,
	  { "SEGV_MAPERR: address not mapped, at 0x123456789000\n", "crash_wild" }, { "crash_wild" } },
	{ "field", crash_field, SIGSEGV, { "at 0x10 (a null pointer plus an offset)" }, { "plus an offset" } },
	{ "call null", crash_call_null, SIGSEGV,
	  { "at 0x0 (a null pointer)", "#0 ", "(a null pointer): called", "#1 ", "crash_call_null+0x", "main+0x", "=> ",
	    "call" },
	  { "called", "crash_call_null+0x" } },
	{ "call data", crash_call_data, SIGSEGV,
	  { "SEGV_ACCERR", "#0 ", "not executable: called", "crash_call_data+0x" },
	  { "not executable: called", "crash_call_data+0x" } },
	{ "overflow", crash_overflow, SIGSEGV,
	  { "SEGV_MAPERR", "the stack overflowed", "recurse+0x", "the same frame", "more times", "crash_overflow+0x" },
	  { "the stack overflowed", "recurse+0x", "the same frame", "crash_overflow" } },
	{ "bus", crash_bus, SIGBUS, { "BUS_ADRERR", "at 0x", "crash_bus+0x", "=> " }, { "crash_bus+0x" } },
	{ "handler", crash_in_handler, SIGSEGV,
	  { "crash_inner", "handler_crash", "<signal handler called>", "crash_in_handler+0x", "main+0x" },
	  { "crash_inner" } },
	{ "smashed", crash_smashed, SIGSEGV, { "#0 ", "4141", "damaged", "registers:" }, { "damaged" } },
	{ "hostile file", crash_hostile_file, 0x100,
	  { "#0 ", "??", "/tmp/diagnose-", "\\033[31m", "registers:" }, { "/tmp/diagnose-", "\\033[31m" } },
	{ "refusal", crash_call, 0, { "#0 ", "crash_call+0x", "main+0x", "=> " }, { "#0 ", "registers:" } },
#if defined(__x86_64__)
	{ "divide", crash_divide, SIGFPE,
	  { "FPE_INTDIV", "crash_divide+0x", "main+0x", "=> ", "idiv" }, { "crash_divide+0x" } },
	{ "illegal", crash_illegal, SIGILL, { "ILL_ILLOPN", "crash_illegal+0x", "main+0x", "=> ", "ud2" }, { " 0f 0b " } },
	{ "cycle", crash_cycle, SIGILL,
	  { "#0 ", "?? (anonymous memory+0x10)", "=> ", "ud2" }, { "damaged" } },
#endif
};

static pid_t __attribute__((noinline)) crash_start(const struct crash *crash, char **argv)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(ready[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(ready[0], &byte, 1) != 1)
			_exit(98);
		for (int signo = 1; signo < NSIG; signo++) /* a sanitizer's handler would report before us */
			signal(signo, SIG_DFL);
		if (argv) {
			execvp(argv[0], argv);
			_exit(127);
		}
		crash->run();
		_exit(0);
	}
	close(ready[0]);
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD)) < 0) {
		int err = -errno;

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[1]);
		return err;
	}
	if (write(ready[1], &byte, 1) != 1)
		perror("write");
	close(ready[1]);
	return pid;
}

/* Runs to the stop that is asked for: a fatal signal, or the entry of getppid when CALL. Its number, 0 for the call, -1
   when the program ended before. */
static int crash_wait(pid_t pid, bool call)
{
	int status, pass = 0;

	if (call)
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	for (;;) {
		if (waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
			return -1;
		pass = 0;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			struct __ptrace_syscall_info info;

			if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
			    info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_getppid)
				return 0;
		} else if (!(status >> 16)) {
			pass = WSTOPSIG(status);
			if (pass == SIGSEGV || pass == SIGBUS || pass == SIGILL || pass == SIGFPE || pass == SIGABRT)
				return pass;
		}
		ptrace(call ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, (void *)(long)pass);
	}
}

static int fail(const char *name, const char *what, const char *text)
{
	printf("test_diagnose: %s: %s\n%s", name, what, text ? text : "");
	return 1;
}

/* The strings of EXPECT in order; control characters never; a prefix on every line. */
static int crash_check(const struct crash *crash, const char *const *expect, unsigned count, const char *text)
{
	const char *at = text;
	char what[256];

	for (const char *p = text; *p; p++)
		if ((unsigned char)*p != '\n' && ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f))
			return fail(crash->name, "a control character in the report", NULL);
	for (const char *p = text; *p; p = strchr(p, '\n') + 1)
		if (strncmp(p, "test: ", 6))
			return fail(crash->name, "a line without its prefix", text);
	for (unsigned i = 0; i < count && expect[i]; i++) {
		const char *found = strstr(at, expect[i]);

		if (!found) {
			snprintf(what, sizeof(what), "no \"%s\" where it should be", expect[i]);
			return fail(crash->name, what, text);
		}
		at = found + strlen(expect[i]);
	}
	if (!strstr(text, "registers:"))
		return fail(crash->name, "no registers", text);
	if (strstr(text, "the report ends here"))
		return fail(crash->name, "the helper died", text);
	return 0;
}

static char *crash_report(pid_t pid, const char *name, int signo, int *err)
{
	struct diagnose_where where = { .title = name, .instructions = true };
	siginfo_t info;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (signo && !ptrace(PTRACE_GETSIGINFO, pid, NULL, &info))
		where.info = &info;
	*err = diagnose(out, "test: ", pid, &where);
	fclose(out);
	return text;
}

static int crash_run(const struct crash *crash, bool plugin)
{
	pid_t pid = crash_start(crash, NULL);
	int signo, err, failed;
	char *text;

	if (pid < 0)
		return fail(crash->name, strerror(-pid), NULL);
	signo = crash_wait(pid, !crash->signo);
	if (signo < 0 || (signo != crash->signo && crash->signo != 0x100)) {
		kill(pid, SIGKILL);
		return fail(crash->name, signo < 0 ? "no stop" : strsignal(signo), "another end than the one meant\n");
	}
	text = crash_report(pid, crash->name, signo, &err);
	if (verbose)
		fputs(text, stdout);
	failed = err ? fail(crash->name, "diagnose() failed", text)
		     : plugin ? crash_check(crash, crash->expect, 8, text) : crash_check(crash, crash->plain, 4, text);
	free(text);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return failed;
}

#if defined(__x86_64__)
/* The registers of a 32-bit task over 32-bit code, put into a stopped 64-bit one: needs no kernel or CPU that still runs
   such programs. The task is never resumed. */
static int check_32_bit(bool plugin)
{
	static const struct crash crash = { .name = "32 bit", .run = crash_low,
		.expect = { "32-bit task", "#0   0x10000014 ??", "#1   0x1000000e ??", "#2   0x10000005 ??", "=> 0x10000014",
			    "mov dword ptr [0x10], eax", "eip 10000014" },
		.plain = { "32-bit task", "#2   0x10000005 ??", "a3 10 00 00 00", "eip 10000014" } };
	pid_t pid = crash_start(&crash, NULL);
	struct user_regs_struct regs;
	int err, failed;
	char *text;

	if (pid < 0 || crash_wait(pid, false) != SIGSEGV || ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		return fail(crash.name, "no stop", NULL);
	regs.cs = 0x23;
	regs.rip = LOW + 0x14;
	regs.rsp = regs.rbp = LOW + 4096;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &regs))
		return fail(crash.name, "registers", NULL);
	text = crash_report(pid, crash.name, SIGSEGV, &err);
	if (verbose)
		fputs(text, stdout);
	failed = crash_check(&crash, plugin ? crash.expect : crash.plain, plugin ? 8 : 4, text);
	free(text);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return failed;
}
#endif

/* --- a helper that goes wrong ---------------------------------------------------------------------------------------- */

static int unwind_hangs(struct diagnose_task *task, diagnose_frame *frame, void *context)
{
	(void)task, (void)frame, (void)context;
	while (pause())
		;
	return 0;
}

static int unwind_crashes(struct diagnose_task *task, diagnose_frame *frame, void *context)
{
	(void)task, (void)frame, (void)context;
	crash_wild();
	return 0;
}

static int unwind_cycles(struct diagnose_task *task, diagnose_frame *frame, void *context)
{
	while (frame(context, task->regs.ip, task->regs.sp, false))
		;
	return 0;
}

/* Frames without end that look good, all of them signal frames: those may lie anywhere. */
static int unwind_endless(struct diagnose_task *task, diagnose_frame *frame, void *context)
{
	while (frame(context, task->regs.ip, task->regs.sp, true))
		;
	return 0;
}

static int check_helper(const char *name, int (*unwind)(struct diagnose_task *, diagnose_frame *, void *),
			const char *expect)
{
	const struct diagnose_library library = { .version = DIAGNOSE_LIBRARY_VERSION, .unwind = unwind };
	const struct crash crash = { .name = name, .run = crash_null };
	pid_t pid = crash_start(&crash, NULL);
	struct timespec before, after;
	int err, failed = 0;
	char *text;

	if (pid < 0 || crash_wait(pid, false) != SIGSEGV)
		return fail(name, "no stop", NULL);
	diagnose_use(&library);
	clock_gettime(CLOCK_MONOTONIC, &before);
	text = crash_report(pid, name, SIGSEGV, &err);
	clock_gettime(CLOCK_MONOTONIC, &after);
	if (verbose)
		fputs(text, stdout);
	if (err || !strstr(text, "SEGV_MAPERR") || !strstr(text, expect))
		failed = fail(name, expect, text);
	if (after.tv_sec - before.tv_sec > 6)
		failed = fail(name, "a guest held the supervisor for long", NULL);
	if (waitpid(-1, NULL, WNOHANG) != 0)
		failed = fail(name, "something is left to wait for", NULL);
	free(text);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return failed;
}

static int check_helpers(void)
{
	return check_helper("hang", unwind_hangs, "the report ends here: it took too long") +
	       check_helper("crash", unwind_crashes, "the report ends here: this guest's memory or files broke the helper") +
	       check_helper("cycle", unwind_cycles, "does not lie above its callee: the stack is damaged here") +
	       check_helper("endless", unwind_endless, "and more frames");
}

/* A task that is no longer there is an error, told. */
static int check_gone(void)
{
	const struct crash crash = { .name = "gone" };
	pid_t pid = fork();
	int err, failed = 0;
	char *text;

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	text = crash_report(pid, crash.name, 0, &err);
	if (err != -ESRCH || !strstr(text, "registers cannot be read"))
		failed = fail(crash.name, "no error for a task that is gone", text);
	free(text);
	return failed;
}

static int show_program(char **argv)
{
	const struct crash crash = { .name = argv[0] };
	pid_t pid = crash_start(&crash, argv);
	int signo = pid < 0 ? -1 : crash_wait(pid, false), err;
	char *text;

	if (signo < 0)
		return fail(crash.name, "ended without a fatal signal", NULL);
	text = crash_report(pid, argv[0], signo, &err);
	fputs(text, stdout);
	free(text);
	kill(pid, SIGKILL);
	return 0;
}

/* Beside this program or up to three folders above. */
static const struct diagnose_library *find_plugin(const char *given)
{
	const struct diagnose_library *library = NULL;
	char path[PATH_MAX + 32];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);

	if (given)
		return diagnose_load(given);
	for (int up = 0; up < 4 && len > 0 && !library; up++) {
		path[len] = '\0';
		len = strrchr(path, '/') - path;
		strcpy(path + len, "/diagnose.so");
		library = diagnose_load(path);
	}
	return library;
}

static int run_all(bool plugin)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		failed += crash_run(&crashes[i], plugin);
#if defined(__x86_64__)
	failed += check_32_bit(plugin);
#endif
	return failed;
}

int main(int argc, char **argv)
{
	const struct diagnose_library *library;
	struct crash probe = { .name = "probe" };
	int failed = 0;
	pid_t pid;

	verbose = argc > 1 && !strcmp(argv[1], "-v");
	if (argc > 2 && !strcmp(argv[1], "--")) {
		find_plugin(NULL);
		return show_program(argv + 2);
	}
	probe.run = crash_null;
	pid = crash_start(&probe, NULL);
	if (pid == -EPERM) {
		puts("skipped: ptrace is not permitted");
		return 77;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	library = find_plugin(argv[1 + verbose]);
	if (!library) {
		return fail("plugin", "diagnose.so was not found", NULL);
	} else if (library->unwind && library->disassemble) {
		failed += diagnose_missing() ? fail("missing", diagnose_missing(), "\n") : 0;
		failed += run_all(true);
	} else {
		printf("test_diagnose: less is tested: %s\n", diagnose_missing());
	}
	failed += check_gone() + check_helpers();
	diagnose_load("/nonexistent/diagnose.so");
	if (!diagnose_missing())
		failed += fail("missing", "a program without the plugin says that nothing is missing", NULL);
	failed += run_all(false);
	if (!failed)
		puts("ok");
	return failed != 0;
}
