/*
 * host.c - makes a poorer host: `host WHAT COMMAND...` runs the command where the kernel refuses WHAT with EPERM.
 *
 * WHAT is `ptrace`, or `seccomp` (seccomp(2) and prctl(PR_SET_SECCOMP), by a filter that is in place before).
 */
#include "guest.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter no_ptrace[] = {
	LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1), REFUSE, ALLOW,
};

static struct sock_filter no_seccomp[] = {
	LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
	LOAD(args[0]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
	REFUSE, ALLOW,
};

int main(int argc, char **argv)
{
	struct sock_fprog program;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "ptrace"))
		program = (struct sock_fprog){ sizeof(no_ptrace) / sizeof(no_ptrace[0]), no_ptrace };
	else
		program = (struct sock_fprog){ sizeof(no_seccomp) / sizeof(no_seccomp[0]), no_seccomp };
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
	execvp(argv[2], argv + 2);
	return 2;
}
