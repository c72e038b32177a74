/* The table of calls: every row is whole, and decides as it says. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <asm/ioctls.h>

#include "arch/arch.h"
#include "syscalls/row.h"
#include "syscalls/support.h"

static const struct row *row_named(const char *name)
{
	int id = row_by_name(name);

	ck_assert_msg(id != CALL_NONE, "no row %s", name);
	return row_of(id);
}

static unsigned row_args(const struct row *row)
{
	unsigned count = 0;

	while (count < ROW_ARGS && row->args[count].kind != ARG_END)
		count++;
	return count;
}

START_TEST(names)
{
	for (int id = 0; id < CALL_COUNT; id++)
		ck_assert_msg(row_by_name(row_table[id].name) == id, "%s is twice", row_table[id].name);
	ck_assert_int_ge(CALL_COUNT, 480);
	ck_assert_int_eq(row_by_name("no_such_call"), CALL_NONE);
	ck_assert_int_eq(row_by_name(""), CALL_NONE);
	ck_assert_ptr_null(row_of(CALL_NONE));
	ck_assert_ptr_null(row_of(CALL_COUNT));
}
END_TEST

static void check_outcome(const struct row *row, enum disposition disposition, int error, const char *why)
{
	ck_assert_msg(disposition >= ROW_PASS && disposition <= ROW_ABSENT, "%s has no disposition", row->name);
	if (disposition == ROW_HANDLE || disposition == ROW_GUARD)
		ck_assert_msg(row_handler(row), "%s has no handler", row->name);
	ck_assert_msg((disposition == ROW_REFUSE) == (why && why[0]), "%s: reasons are for refusals", row->name);
	ck_assert_msg((disposition == ROW_REFUSE) == (error > 0), "%s: errors are for refusals", row->name);
}

START_TEST(outcomes)
{
	for (int id = 0; id < CALL_COUNT; id++) {
		const struct row *row = &row_table[id];
		unsigned rules = 0;

		check_outcome(row, row->disposition, row->error, row_why(row));
		for (const struct arg_rule *rule = row_rules(row); rule && rule->disposition; rule++, rules++) {
			check_outcome(row, rule->disposition, rule->error, rule->why);
			ck_assert_uint_lt(rule->arg, row_args(row));
			/* Values that no register can have, or bits that are none, would be rules that never match. */
			ck_assert(rule->test == RULE_EQUAL || rule->value != 0);
		}
		ck_assert_uint_lt(rules, ROW_RULES);
	}
}
END_TEST

/* --- arguments ----------------------------------------------------------------------------------------------------- */

static bool kind_is_length(uint8_t kind)
{
	return kind == ARG_INT || kind == ARG_UINT || kind == ARG_LONG || kind == ARG_ULONG || kind == ARG_SOCKLEN_INOUT;
}

/* Kinds whose length is another argument. */
static bool kind_needs_length(uint8_t kind)
{
	switch (kind) {
	case ARG_GID_LIST: case ARG_BUF_IN: case ARG_IOVEC_IN: case ARG_IOVEC_OUT: case ARG_SOCKADDR_IN:
	case ARG_SOCKADDR_OUT: case ARG_MMSGHDR_IN: case ARG_SOCKOPT_IN: case ARG_SOCKOPT_OUT: case ARG_SIGSET_IN:
	case ARG_SIGSET_OUT: case ARG_POLLFD: case ARG_CPUSET_IN: case ARG_OPEN_HOW: case ARG_CLONE_ARGS:
	case ARG_FUTEX_WAITV: case ARG_SEMBUF_IN: case ARG_BUF_HEX: case ARG_STRUCT_IN:
		return true;
	default:
		return false;
	}
}

static bool kind_has_result_length(uint8_t kind)
{
	return kind == ARG_BUF_OUT || kind == ARG_STRING_OUT || kind == ARG_GID_LIST_OUT || kind == ARG_EPOLL_EVENT_OUT ||
	       kind == ARG_MMSGHDR_OUT || kind == ARG_CPUSET_OUT;
}

static void check_arg(const struct row *row, unsigned index)
{
	const struct arg *arg = &row->args[index];
	bool named = arg->kind == ARG_FLAGS || arg->kind == ARG_ENUM;
	bool may_name = named || arg->kind == ARG_U64; /* bits too wide for a register of i386 */
	bool sigset = arg->kind == ARG_SIGSET_IN || arg->kind == ARG_SIGSET_OUT;

	ck_assert_msg((!named || arg->set) && (may_name || !arg->set), "%s: argument %u and its set", row->name, index);
	if (kind_has_result_length(arg->kind)) {
		ck_assert_msg(arg->ref == REF_RESULT, "%s: argument %u is as long as the result", row->name, index);
	} else if (sigset && arg->ref == index) {
		return; /* the one size of the ABI */
	} else if (kind_needs_length(arg->kind)) {
		ck_assert_msg(arg->ref < row_args(row), "%s: argument %u refers to none", row->name, index);
		ck_assert_msg(arg->ref != index && kind_is_length(row->args[arg->ref].kind),
			      "%s: argument %u refers to no length", row->name, index);
	} else {
		ck_assert_msg(arg->ref == 0, "%s: argument %u has a ref that it does not need", row->name, index);
	}
}

/* Registers of the kind where a long has WORD bytes. */
static unsigned kind_registers(uint8_t kind, unsigned word)
{
	if (kind == ARG_POS)
		return 2;
	return (kind == ARG_OFF64 || kind == ARG_U64) && word == 4 ? 2 : 1;
}

START_TEST(arguments)
{
	for (int id = 0; id < CALL_COUNT; id++) {
		const struct row *row = &row_table[id];

		for (unsigned i = 0; i < row_args(row); i++)
			check_arg(row, i);
		for (unsigned i = row_args(row); i < ROW_ARGS; i++)
			ck_assert_msg(row->args[i].kind == ARG_END, "%s: a hole among the arguments", row->name);
		if (row->classes & CLASS_PURE)
			ck_assert_msg(row_args(row) == 0, "%s: pure calls have no arguments", row->name);
		for (int a = 0; a < ARCH_COUNT; a++) {
			unsigned registers = 0;

			for (unsigned i = 0; i < row_args(row); i++)
				registers += kind_registers(row->args[i].kind, arch_all[a]->word);
			if (arch_nr_of(arch_all[a], id) >= 0)
				ck_assert_msg(registers <= 6, "%s: %u registers on %s", row->name, registers,
					      arch_all[a]->name);
		}
	}
}
END_TEST

/* A path in the arguments and the class that says so go together, in both directions. */
START_TEST(classes)
{
	for (int id = 0; id < CALL_COUNT; id++) {
		const struct row *row = &row_table[id];
		bool path = false, fd = false;

		for (unsigned i = 0; i < row_args(row); i++) {
			path = path || row->args[i].kind == ARG_PATH;
			fd = fd || row->args[i].kind == ARG_FD || row->args[i].kind == ARG_DIRFD;
		}
		if (!strcmp(row->name, "getcwd"))
			path = true; /* as strace has it: the path is what it returns */
		ck_assert_msg(path == !!(row->classes & CLASS_FILE), "%s: class file", row->name);
		ck_assert_msg(!fd || (row->classes & CLASS_DESC), "%s: class desc", row->name);
	}
}
END_TEST

/* --- decisions ----------------------------------------------------------------------------------------------------- */

static void check_decision(const char *name, unsigned arg, uint64_t value, enum disposition disposition, int error)
{
	uint64_t args[6] = { 0 };
	struct row_decision decision;

	args[arg] = value;
	decision = row_decide(row_named(name), args);
	ck_assert_msg(decision.disposition == disposition, "%s(%#llx): %d", name, (unsigned long long)value,
		      decision.disposition);
	ck_assert_msg(decision.error == error, "%s(%#llx): error %d", name, (unsigned long long)value, decision.error);
	ck_assert((decision.why != NULL) == (disposition == ROW_REFUSE));
}

START_TEST(refused)
{
	static const char *const refuse[] = {
		"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise",
		"process_mrelease", "mount", "umount", "umount2", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount",
		"open_tree", "open_tree_attr", "mount_setattr", "pivot_root", "setns", "bpf", "userfaultfd", "perf_event_open", "add_key",
		"request_key", "keyctl", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
		"iopl", "ioperm", "modify_ldt", "reboot", "swapon", "swapoff", "settimeofday", "stime", "clock_settime",
		"clock_settime64", "syslog", "acct", "quotactl", "quotactl_fd", "vhangup", "sethostname", "setdomainname",
		"move_pages", "migrate_pages", "open_by_handle_at", "fanotify_init", "fanotify_mark", "lookup_dcookie",
		"uprobe", "uretprobe",
	};
	static const char *const absent[] = {
		"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "remap_file_pages", "create_module",
		"afs_syscall", "break", "gtty", "vserver", "nfsservctl", "_sysctl", "uselib", "vm86",
	};

	for (size_t i = 0; i < sizeof(refuse) / sizeof(refuse[0]); i++)
		check_decision(refuse[i], 0, 0, ROW_REFUSE, -EPERM);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		check_decision(absent[i], 0, 0, ROW_ABSENT, 0);
}
END_TEST

START_TEST(stopped)
{
	static const char *const handle[] = { "sched_setaffinity", "sched_getaffinity", "adjtimex", "clock_adjtime",
					      "clock_adjtime64" };
	static const char *const guard[] = { "munmap", "mmap", "mmap2", "old_mmap", "mremap", "mprotect", "pkey_mprotect",
					     "madvise", "shmat", "ipc" };

	for (size_t i = 0; i < sizeof(handle) / sizeof(handle[0]); i++)
		check_decision(handle[i], 0, 0, ROW_HANDLE, 0);
	for (size_t i = 0; i < sizeof(guard) / sizeof(guard[0]); i++)
		check_decision(guard[i], 0, 0, ROW_GUARD, 0);
}
END_TEST

START_TEST(rules)
{
	static const uint32_t namespaces[] = { CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
					       CLONE_NEWPID, CLONE_NEWNET };
	/* What pthread_create and fork of glibc pass. */
	const uint32_t thread = 0x3d0f00, child = 0x01200011;
	const uint64_t high = 0xdeadbeefULL << 32;

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		check_decision("clone", 0, namespaces[i] | child, ROW_REFUSE, -EPERM);
		check_decision("clone", 0, high | namespaces[i], ROW_REFUSE, -EPERM);
		check_decision("unshare", 0, namespaces[i] | CLONE_FILES, ROW_REFUSE, -EPERM);
	}
	check_decision("clone", 0, CLONE_UNTRACED | thread, ROW_REFUSE, -EPERM);
	check_decision("clone", 0, thread, ROW_PASS, 0);
	check_decision("clone", 0, child, ROW_PASS, 0);
	check_decision("clone", 0, high | child, ROW_PASS, 0);
	check_decision("clone", 0, CLONE_PTRACE | child, ROW_PASS, 0);
	check_decision("clone", 1, CLONE_NEWUSER, ROW_PASS, 0);
	check_decision("unshare", 0, 0x80, ROW_REFUSE, -EPERM); /* CLONE_NEWTIME */
	check_decision("unshare", 0, CLONE_FILES | CLONE_SYSVSEM, ROW_PASS, 0);
	check_decision("unshare", 0, CLONE_FS | CLONE_FILES, ROW_HANDLE, 0);
	check_decision("seccomp", 1, 1 << 3, ROW_REFUSE, -EBUSY);
	check_decision("seccomp", 1, 1 << 3 | 1, ROW_REFUSE, -EBUSY);
	check_decision("seccomp", 1, 1, ROW_PASS, 0);
	check_decision("prctl", 0, PR_SET_MM, ROW_REFUSE, -EPERM);
	check_decision("prctl", 0, high | PR_SET_MM, ROW_REFUSE, -EPERM);
	check_decision("prctl", 0, PR_SET_NAME, ROW_PASS, 0);
	check_decision("ioctl", 1, TIOCSTI, ROW_REFUSE, -EPERM);
	check_decision("ioctl", 1, high | TIOCLINUX, ROW_REFUSE, -EPERM);
	check_decision("ioctl", 1, TCGETS, ROW_PASS, 0);
	check_decision("madvise", 2, MADV_DONTFORK, ROW_HANDLE, 0);
	check_decision("madvise", 2, MADV_WIPEONFORK, ROW_HANDLE, 0);
	check_decision("madvise", 2, MADV_DONTNEED, ROW_GUARD, 0);
	check_decision("get_robust_list", 0, 0, ROW_PASS, 0);
	check_decision("get_robust_list", 0, high, ROW_PASS, 0);
	check_decision("get_robust_list", 0, 1, ROW_REFUSE, -EPERM);
}
END_TEST

START_TEST(unknown)
{
	struct row_decision decision = row_decide(NULL, (const uint64_t[6]){ 0 });

	ck_assert_int_eq((int)decision.disposition, ROW_REFUSE);
	ck_assert_int_eq(decision.error, -ENOSYS);
	ck_assert_ptr_nonnull(decision.why);
}
END_TEST

START_TEST(page_up_to_date)
{
	char *made = NULL, *kept;
	size_t len = 0, read;
	FILE *out = open_memstream(&made, &len), *page = fopen("docs/SYSCALLS.md", "r");

	ck_assert_int_eq(support_write(out), 0);
	fclose(out);
	ck_assert_msg(page, "run from the top of the tree: there is no docs/SYSCALLS.md here");
	kept = malloc(len + 2);
	read = fread(kept, 1, len + 1, page);
	fclose(page);
	ck_assert_msg(read == len && !memcmp(made, kept, len), "docs/SYSCALLS.md is not what `make docs` makes");
	free(made);
	free(kept);
}
END_TEST

Suite *suite_row(void);
Suite *suite_row(void)
{
	Suite *suite = suite_create("row");
	TCase *tcase = tcase_create("table");

	tcase_add_test(tcase, names);
	tcase_add_test(tcase, outcomes);
	tcase_add_test(tcase, arguments);
	tcase_add_test(tcase, classes);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, stopped);
	tcase_add_test(tcase, rules);
	tcase_add_test(tcase, unknown);
	tcase_add_test(tcase, page_up_to_date);
	suite_add_tcase(suite, tcase);
	return suite;
}
