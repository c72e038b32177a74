/*
 * floor.c - the least that one system-call stop can cost with ptrace and seccomp.
 *
 *   floor MS
 *
 * The smallest tracer that can answer a call: one tracee, one seccomp filter with SECCOMP_RET_TRACE for two calls, and for
 * each stop a wait4, one PTRACE_GET_SYSCALL_INFO (nobody can decide on less), the answer where there is one, and a
 * PTRACE_CONT. No table, no policy, no bookkeeping of tasks, no error handling beyond ending. What a supervisor takes above
 * this is its own. Prints two lines as calls.c does:
 *
 *   answered   the tracer sets the result (-EPERM) and makes the kernel skip the call
 *   forwarded  the tracer lets the call run: sched_getaffinity, as calls.c makes it
 *
 * Affinity is inherited: hold it on one CPU with launch -c for the floor without wake-ups across CPUs.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/loop.h"

#if defined(__aarch64__) || defined(__riscv)
#include <asm/ptrace.h>
#include <elf.h>
#endif

/* What PTRACE_GET_SYSCALL_INFO fills (ptrace(2), Linux 5.3); the C libraries do not agree on a name for it. */
struct floor_info {
	uint8_t op, pad[3];
	uint32_t arch;
	uint64_t ip, sp, nr, args[6];
	uint32_t ret_data;
};

/* At a seccomp stop: the kernel skips a call with number -1 and returns what the result register holds. */
static int answer(pid_t pid, long value)
{
#if defined(__x86_64__)
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L) < 0)
		return -errno;
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), value) < 0 ? -errno : 0;
#elif defined(__i386__)
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_eax), -1L) < 0)
		return -errno;
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, eax), value) < 0 ? -errno : 0;
#elif defined(__aarch64__)
	struct user_pt_regs regs;
	int none = -1;
	struct iovec number = { &none, sizeof(none) }, all = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_SETREGSET, pid, 0x404 /* NT_ARM_SYSTEM_CALL */, &number) < 0 ||
	    ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) < 0)
		return -errno;
	regs.regs[0] = (unsigned long)value;
	return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &all) < 0 ? -errno : 0;
#elif defined(__riscv)
	struct user_regs_struct regs;
	struct iovec all = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) < 0)
		return -errno;
	regs.a7 = (unsigned long)-1;
	regs.a0 = (unsigned long)value;
	return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &all) < 0 ? -errno : 0;
#else
#error "floor.c: how is a call answered on this architecture?"
#endif
}

static long tracee_answered(void *context)
{
	(void)context;
	return syscall(SYS_kcmp, 0, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static long tracee_forwarded(void *context)
{
	unsigned long mask[128];
	long returned = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);

	(void)context;
	return returned < 0 ? -errno : returned;
}

static int install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

static void tell(const char *what, struct loop_result result)
{
	printf("%s %.1f %llu %ld\n", what, result.ns, (unsigned long long)result.count, result.last);
	fflush(stdout);
}

/* GO becomes readable once this process is traced: before that, a stop would be ENOSYS. */
static int tracee(int go, unsigned ms)
{
	char byte;
	int error;

	if (read(go, &byte, 1) != 1)
		return 1;
	error = install_filter();
	if (error < 0) {
		fprintf(stderr, "floor: no seccomp filter: %s\n", strerror(-error));
		return 1;
	}
	tell("answered", loop_run(tracee_answered, NULL, ms));
	tell("forwarded", loop_run(tracee_forwarded, NULL, ms));
	return 0;
}

/* 0 when the tracee was resumed, negative errno when it cannot be held any more. */
static int stop(pid_t pid, int status)
{
	struct floor_info info;

	if (status >> 8 != (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
		return ptrace(PTRACE_CONT, pid, 0, (long)(status >> 16 ? 0 : WSTOPSIG(status))) < 0 ? -errno : 0;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0)
		return -errno;
	if (info.op == PTRACE_SYSCALL_INFO_SECCOMP && info.nr == SYS_kcmp && answer(pid, -EPERM) < 0)
		return -errno;
	return ptrace(PTRACE_CONT, pid, 0, 0L) < 0 ? -errno : 0;
}

static int trace(pid_t pid)
{
	int status, error = 0;

	while (wait4(pid, &status, __WALL, NULL) == pid && WIFSTOPPED(status)) {
		error = stop(pid, status);
		if (error < 0 && error != -ESRCH)
			break;
	}
	if (error < 0 && error != -ESRCH)
		fprintf(stderr, "floor: %s\n", strerror(-error));
	return error < 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	unsigned ms = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	int go[2];
	pid_t pid;

	if (!ms) {
		fprintf(stderr, "usage: floor MS\n");
		return 2;
	}
	if (pipe(go) < 0 || (pid = fork()) < 0) {
		perror("floor");
		return 1;
	}
	if (!pid) {
		close(go[1]); /* or the end of a tracer that could not seize would not be seen */
		_exit(tracee(go[0], ms));
	}
	if (ptrace(PTRACE_SEIZE, pid, 0, (long)(PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL)) < 0) {
		fprintf(stderr, "floor: ptrace is not permitted: %s\n", strerror(errno));
		kill(pid, SIGKILL);
		return 1;
	}
	if (write(go[1], "", 1) != 1) {
		perror("floor");
		return 1;
	}
	return trace(pid);
}
