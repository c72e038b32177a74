/* ops_name.c - operations that make, remove and move names. */
#include "tests/model/model.h"

#include <linux/fs.h>

static void op_mkdir(void)
{
	mode_t mode = chance(60) ? 0755 : pick_mode();
	struct where where;
	long result;

	pick_new_path(&where, 0);
	say(" %s %04o", where.shown, mode);
#ifdef SYS_mkdir
	if (where.dirfd == AT_FDCWD && chance(50))
		result = syscall(SYS_mkdir, where.path, mode);
	else
#endif
		result = syscall(SYS_mkdirat, where.dirfd, where.path, mode);
	say_result(result);
}

static void op_mknod(void)
{
	static const mode_t types[] = { S_IFIFO, S_IFIFO, S_IFSOCK, S_IFREG, 0, S_IFDIR, S_IFLNK };
	mode_t mode = types[pick(7)] | pick_mode();
	struct where where;
	long result;

	pick_new_path(&where, 0);
	say(" %s %07o", where.shown, mode);
#ifdef SYS_mknod
	if (where.dirfd == AT_FDCWD && chance(50))
		result = syscall(SYS_mknod, where.path, mode, 0);
	else
#endif
		result = syscall(SYS_mknodat, where.dirfd, where.path, mode, 0);
	say_result(result);
}

static void remove_name(int flags)
{
	struct where where;
	long result;

	pick_path_to(&where, 0, flags & AT_REMOVEDIR ? "d" : "-lps");
	say(" %s", where.shown);
#ifdef SYS_unlink
	if (where.dirfd == AT_FDCWD && chance(50) && !(flags & ~AT_REMOVEDIR))
		result = syscall(flags ? SYS_rmdir : SYS_unlink, where.path);
	else
#endif
		result = syscall(SYS_unlinkat, where.dirfd, where.path, flags);
	say_result(result);
}

static void op_unlink(void)
{
	remove_name(chance(1) ? 0x4000 : 0);
}

static void op_rmdir(void)
{
	remove_name(AT_REMOVEDIR);
}

static unsigned pick_rename_flags(void)
{
	unsigned kind = pick(100);

	if (kind < 60)
		return 0;
	if (kind < 75)
		return RENAME_NOREPLACE;
	if (kind < 95)
		return RENAME_EXCHANGE;
	return kind < 98 ? RENAME_NOREPLACE | RENAME_EXCHANGE : 0x80;
}

static void op_rename(void)
{
	unsigned flags = pick_rename_flags();
	struct where from, to;
	long result;

	pick_path(&from, 0);
	if (chance(50))
		pick_path(&to, 1);
	else
		pick_new_path(&to, 1);
	say(" %s %s %u", from.shown, to.shown, flags);
#ifdef SYS_rename
	if (from.dirfd == AT_FDCWD && to.dirfd == AT_FDCWD && !flags && chance(50))
		result = syscall(SYS_rename, from.path, to.path);
	else
#endif
#ifdef SYS_renameat
	if (!flags && chance(30))
		result = syscall(SYS_renameat, from.dirfd, from.path, to.dirfd, to.path);
	else
#endif
		result = syscall(SYS_renameat2, from.dirfd, from.path, to.dirfd, to.path, flags);
	say_result(result);
}

static void op_link(void)
{
	static const int choices[] = { 0, 0, 0, AT_SYMLINK_FOLLOW, AT_SYMLINK_FOLLOW, 0x2 };
	int flags = choices[pick(6)];
	struct where from, to;
	long result;

	pick_path_to(&from, 0, "-lps");
	pick_new_path(&to, 1);
	say(" %s %s %d", from.shown, to.shown, flags);
#ifdef SYS_link
	if (from.dirfd == AT_FDCWD && to.dirfd == AT_FDCWD && !flags && chance(50))
		result = syscall(SYS_link, from.path, to.path);
	else
#endif
		result = syscall(SYS_linkat, from.dirfd, from.path, to.dirfd, to.path, flags);
	say_result(result);
}

/* An open file gets a name, as a temporary one does; without privilege only by way of /proc. */
static void op_link_fd(void)
{
	int fd = self.slot[pick_slot()];
	struct where to;
	char link[32];

	pick_new_path(&to, 1);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (chance(60)) {
		say(" proc %d %s", fd, to.shown);
		say_result(linkat(AT_FDCWD, link, to.dirfd, to.path, AT_SYMLINK_FOLLOW));
	} else if (geteuid() != 0) {
		say(" empty no"); /* without CAP_DAC_READ_SEARCH it depends on who opened the descriptor: Linux 6.10 */
	} else {
		say(" empty %d %s", fd, to.shown);
		say_result(linkat(fd, "", to.dirfd, to.path, AT_EMPTY_PATH));
	}
}

static void op_tmpfile(void)
{
	mode_t mode = pick_mode();
	int index = pick_free_slot();
	struct where where;
	struct stat st;
	int fd;

	pick_path(&where, 0);
	say(" %s %04o", where.shown, mode);
	if (!fstatat(where.dirfd, where.path, &st, AT_EMPTY_PATH) && !st.st_nlink) {
		say(" removed"); /* which some file systems allow */
		return;
	}
	fd = openat(where.dirfd, where.path, O_TMPFILE | O_RDWR | (chance(20) ? O_EXCL : 0), mode);
	say_result(fd);
	if (fd >= 0)
		slot_put(index, fd);
}

static void op_symlink(void)
{
	char target[1024];
	struct where where;
	long result;

	pick_target(target, sizeof(target));
	if (chance(1))
		target[0] = 0;
	pick_new_path(&where, 0);
	say(" '");
	say_text(target);
	say("' %s", where.shown);
#ifdef SYS_symlink
	if (where.dirfd == AT_FDCWD && chance(50))
		result = syscall(SYS_symlink, target, where.path);
	else
#endif
		result = syscall(SYS_symlinkat, target, where.dirfd, where.path);
	say_result(result);
}

static void op_readlink(void)
{
	char target[1024];
	size_t room = chance(70) ? sizeof(target) - 1 : chance(90) ? 1 + pick(10) : 0;
	struct where where;
	long result;

	pick_path_to(&where, 0, "l");
	say(" %s %zu", where.shown, room);
#ifdef SYS_readlink
	if (where.dirfd == AT_FDCWD && chance(50))
		result = syscall(SYS_readlink, where.path, target, room);
	else
#endif
		result = syscall(SYS_readlinkat, where.dirfd, where.path, target, room);
	say_result(result);
	if (result > 0 && (size_t)result < room) {
		target[result] = 0;
		say(" ");
		say_text(target);
	}
}

/* Pointers that lead nowhere, and a path that has no end before its page has. */
static void op_fault(void)
{
	char *nowhere = (char *)16;
	struct where where;
	struct stat st;

	switch (pick(6)) {
	case 0:
		say(" open");
		say_result(open(nowhere, O_RDONLY));
		break;
	case 1:
		say(" mkdir");
		say_result(mkdir(nowhere, 0755));
		break;
	case 2:
		say(" rename");
		pick_path(&where, 0);
		say_result(rename(where.path, nowhere));
		break;
	case 3:
		pick_path(&where, 0);
		say(" stat %s", where.shown);
		say_result(syscall(SYS_newfstatat, where.dirfd, where.path, nowhere, 0));
		break;
	case 4:
		pick_path(&where, 0);
		where.path[strlen(where.path)] = 'x';
		say(" endless");
		say_result(stat(where.path, &st));
		break;
	default:
		say(" symlink");
		pick_path(&where, 0);
		say_result(symlinkat(nowhere, where.dirfd, where.path));
	}
}

const struct op name_ops[] = {
	{ "mkdir", "mkdir", 18, op_mkdir },
	{ "mknod", "mknod", 3, op_mknod },
	{ "unlink", "unlink", 8, op_unlink },
	{ "rmdir", "rmdir", 5, op_rmdir },
	{ "rename", "rename", 16, op_rename },
	{ "link", "link", 6, op_link },
	{ "link_fd", "link", 3, op_link_fd },
	{ "tmpfile", "tmpfile", 2, op_tmpfile },
	{ "symlink", "symlink", 7, op_symlink },
	{ "readlink", "readlink", 4, op_readlink },
	{ "fault", "fault", 1, op_fault },
	{ NULL, NULL, 0, NULL },
};
