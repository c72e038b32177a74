#include "syscalls/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <asm/ioctls.h>

/* Not in every libc's headers. */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER (1UL << 3)
#endif

/* CLONE_NEWTIME is among clone's signal bits and means nothing to it: unshare has it apart. */
#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

#define WHY_NAMESPACE "new namespaces would change what names and paths mean"
#define WHY_INODE "flags and labels of inodes are the host's"
#define WHY_TERMINAL "typing into the terminal would command the shell outside"

/* kernel/fork.c: clone takes lower_32_bits() of its flags. CLONE_PTRACE is let through: it attaches the new task to the
   parent's own tracer, which is us in any case. */
const struct arg_rule rules_clone[] = {
	{ 0, RULE_ANY_BIT, CLONE_UNTRACED, ROW_REFUSE, EPERM, "a task that cannot be traced would escape the supervisor" },
	{ 0, RULE_ANY_BIT, NEW_NAMESPACES, ROW_REFUSE, EPERM, WHY_NAMESPACE },
	{ 0 }
};

/* kernel/fork.c: check_unshare_flags() answers -EINVAL when a bit above the low 32 is set. */
const struct arg_rule rules_unshare[] = {
	{ 0, RULE_ANY_BIT, NEW_NAMESPACES | CLONE_NEWTIME, ROW_REFUSE, EPERM, WHY_NAMESPACE },
	{ 0, RULE_ANY_BIT, CLONE_FS, ROW_HANDLE, 0, NULL },
	{ 0 }
};

/* kernel/seccomp.c: op and flags are unsigned int. The other operations answer -EINVAL to any flag. */
const struct arg_rule rules_seccomp[] = {
	{ 1, RULE_ANY_BIT, SECCOMP_FILTER_FLAG_NEW_LISTENER, ROW_REFUSE, EBUSY, "the only listener is the supervisor" },
	{ 0 }
};

/* kernel/sys.c: the option is int. PR_SET_MM moves the ends of heap, stack and arguments over other mappings. */
const struct arg_rule rules_prctl[] = {
	{ 0, RULE_EQUAL, PR_SET_MM, ROW_REFUSE, EPERM, "the guest may not redraw the map of its memory" },
	{ 0 }
};

/* Requests that change a file, or a file system, through a descriptor that was opened for reading: of those that file systems know
   ('f' ext2 and all, 'X' xfs and all, 'v' ext2, 0x94 btrfs and all, 'r' fat, 'o' ocfs2, 0x97 ceph, 0xf5 f2fs, 0xbc bcachefs) only the ones that ask, or that need a writable one. */
#define PASSES(request) { 1, RULE_EQUAL, (uint32_t)(request), ROW_PASS, 0, NULL }
#define TYPE_REFUSED(type) { 1, RULE_TYPE, type, ROW_REFUSE, EOPNOTSUPP, WHY_INODE }

enum { /* as a 32-bit program has them */
	FS_IOC32_GETFLAGS_ = 0x80046601, FS_IOC32_GETVERSION_ = 0x80047601,
};

/* fs/ioctl.c: the request is unsigned int. */
const struct arg_rule rules_ioctl[] = {
	{ 1, RULE_EQUAL, TIOCSTI, ROW_REFUSE, EPERM, WHY_TERMINAL },
	{ 1, RULE_EQUAL, TIOCLINUX, ROW_REFUSE, EPERM, WHY_TERMINAL },
	PASSES(FS_IOC_GETFLAGS), PASSES(FS_IOC32_GETFLAGS_), PASSES(FS_IOC_GETVERSION), PASSES(FS_IOC32_GETVERSION_),
	PASSES(FS_IOC_FIEMAP), PASSES(FS_IOC_FSGETXATTR), PASSES(FICLONE), PASSES(FICLONERANGE), PASSES(FIDEDUPERANGE),
	TYPE_REFUSED('f'), TYPE_REFUSED('X'), TYPE_REFUSED('v'), TYPE_REFUSED(0x94),
	TYPE_REFUSED('r'), TYPE_REFUSED('o'), TYPE_REFUSED(0x97), TYPE_REFUSED(0xf5), TYPE_REFUSED(0xbc),
	{ 0 }
};

/* asm-generic/fcntl.h; libc gives the numbers of one ABI only. */
enum { GUEST_SETLK = 6, GUEST_SETLKW = 7, GUEST_SETLK64 = 13, GUEST_SETLKW64 = 14 };

/* fs/fcntl.c: cmd is unsigned int. */
const struct arg_rule rules_fcntl[] = {
	{ 1, RULE_EQUAL, GUEST_SETLK, ROW_HANDLE, 0, NULL }, { 1, RULE_EQUAL, GUEST_SETLKW, ROW_HANDLE, 0, NULL },
	{ 1, RULE_EQUAL, GUEST_SETLK64, ROW_HANDLE, 0, NULL }, { 1, RULE_EQUAL, GUEST_SETLKW64, ROW_HANDLE, 0, NULL },
	{ 1, RULE_EQUAL, F_OFD_SETLK, ROW_HANDLE, 0, NULL }, { 1, RULE_EQUAL, F_OFD_SETLKW, ROW_HANDLE, 0, NULL },
	{ 1, RULE_EQUAL, F_SETLEASE, ROW_REFUSE, EACCES, "a lease holds up who opens the file on the host" },
	{ 0 }
};

/* mm/madvise.c: the advice is int. mseal(2) stops neither of these, and a child without the window cannot be served. */
const struct arg_rule rules_madvise[] = {
	{ 2, RULE_EQUAL, MADV_DONTFORK, ROW_HANDLE, 0, NULL },
	{ 2, RULE_EQUAL, MADV_WIPEONFORK, ROW_HANDLE, 0, NULL },
	{ 0 }
};

/* kernel/futex/syscalls.c: pid is int, 0 is the caller. */
const struct arg_rule rules_get_robust_list[] = {
	{ 0, RULE_EQUAL, 0, ROW_PASS, 0, NULL },
	{ 0 }
};

/* net/socket.c: the length is int; without one there is no address. send(2) is a sendto with none. */
const struct arg_rule rules_sendto[] = {
	{ 5, RULE_EQUAL, 0, ROW_PASS, 0, NULL },
	{ 0 }
};
