/* ops_dir.c - the working folder, listings, and the snapshot of the whole tree. */
#include "tests/model/model.h"

#include <dirent.h>
#include <sys/xattr.h>

enum { DEPTH_MAX = 12, KNOWN_MAX = 4096, BUFFER_MIN = 280, BUFFER_MAX = 4096 };

struct entry {
	char name[256];
	unsigned char type;
	uint64_t ino;
	int64_t next;
};

struct raw_entry {
	uint64_t ino;
	int64_t next;
	unsigned short len;
	unsigned char type;
	char name[];
};

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Reads on from where FD is; the number of entries, at most ROOM, or -1. ROOM_BYTES is the size of each call's buffer. */
static int read_entries(int fd, struct entry *entries, int room, size_t room_bytes)
{
	char buffer[BUFFER_MAX] __attribute__((aligned(8)));
	int count = 0;

	for (;;) {
		long got = syscall(SYS_getdents64, fd, buffer, room_bytes);

		if (got < 0)
			return -1;
		if (!got)
			return count;
		for (long at = 0; at < got;) {
			struct raw_entry *raw = (struct raw_entry *)(buffer + at);

			if (count < room) {
				snprintf(entries[count].name, sizeof(entries[count].name), "%s", raw->name);
				entries[count].type = raw->type;
				entries[count].ino = raw->ino;
				entries[count++].next = raw->next;
			}
			at += raw->len;
		}
	}
}

static void say_entries(int fd, struct entry *entries, int count)
{
	static const char letters[] = "?pc?d?b?-?l?s?w?";

	qsort(entries, (size_t)count, sizeof(*entries), compare_entries);
	for (int i = 0; i < count; i++) {
		struct stat st;

		say(" ");
		say_text(entries[i].name);
		say("/%c", letters[entries[i].type % 16]);
		if (!fstatat(fd, entries[i].name, &st, AT_SYMLINK_NOFOLLOW) && st.st_ino != entries[i].ino)
			say("!ino");
		if (i && !strcmp(entries[i].name, entries[i - 1].name))
			say("!twice");
	}
}

/* A folder descriptor to read: a slot, which may have been read before, or a fresh one. */
static int open_listing(bool *fresh)
{
	struct where where;
	int fd;

	*fresh = chance(60);
	if (!*fresh) {
		fd = self.slot[pick_slot()];
		say(" %d", fd);
		return fd;
	}
	pick_path_to(&where, 0, "d");
	fd = openat(where.dirfd, where.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	say(" %s", where.shown);
	if (fd < 0)
		say_result(-1);
	return fd;
}

static size_t pick_buffer(void)
{
	return chance(50) ? BUFFER_MAX : BUFFER_MIN + pick(400);
}

static void op_list(void)
{
	static struct entry entries[NAMES_MAX];
	size_t bytes = chance(97) ? pick_buffer() : 8;
	bool fresh;
	int fd = open_listing(&fresh), count;

	if (fd < 0)
		return;
	if (!fresh && chance(70))
		lseek(fd, 0, SEEK_SET);
	count = read_entries(fd, entries, NAMES_MAX, bytes);
	say_result(count);
	if (count >= 0)
		say_entries(fd, entries, count);
	if (fresh)
		close(fd);
}

/* The place told after an entry leads back to there: the same entries follow it. */
static void op_seekdir(void)
{
	static struct entry all[NAMES_MAX], rest[NAMES_MAX];
	bool fresh, same = true;
	int fd = open_listing(&fresh), count, from, again;
	size_t bytes = pick_buffer();

	if (fd < 0)
		return;
	lseek(fd, 0, SEEK_SET);
	count = read_entries(fd, all, NAMES_MAX, bytes);
	say_result(count);
	if (count > 0) {
		from = (int)pick((unsigned)count);
		if (lseek(fd, all[from].next, SEEK_SET) < 0)
			say(" cannot seek");
		again = read_entries(fd, rest, NAMES_MAX, pick_buffer());
		for (int i = 0; i < again && from + 1 + i < count; i++)
			same = same && !strcmp(rest[i].name, all[from + 1 + i].name) && rest[i].ino == all[from + 1 + i].ino;
		if (again != count - from - 1 || !same)
			say(" from another place");
		say_entries(fd, all, count);
	}
	if (fresh)
		close(fd);
}

/* A folder whose entries are removed and added while it is read: those that stay are told once each. */
static void op_remove_while_listing(void)
{
	enum { COUNT = 60 };
	static struct entry entries[NAMES_MAX];
	int seen[COUNT] = { 0 }, strange = 0, lost = 0, twice = 0, fd, count, part;
	char name[32];

	if (mkdirat(AT_FDCWD, "listing", 0755)) {
		say_result(-1);
		return;
	}
	fd = openat(AT_FDCWD, "listing", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "entry%d", i);
		mknodat(fd, name, S_IFREG | 0600, 0);
	}
	part = (int)syscall(SYS_getdents64, fd, entries, BUFFER_MIN);
	count = part > 0 ? 0 : -1;
	for (long at = 0; at < part;) {
		struct raw_entry *raw = (struct raw_entry *)((char *)entries + at);

		if (sscanf(raw->name, "entry%d", &count) == 1)
			seen[count % COUNT]++;
		at += raw->len;
	}
	for (int i = 0; i < COUNT; i += 2) {
		snprintf(name, sizeof(name), "entry%d", i);
		unlinkat(fd, name, 0);
	}
	count = read_entries(fd, entries, NAMES_MAX, BUFFER_MIN);
	for (int i = 0; i < count; i++) {
		int number;

		if (sscanf(entries[i].name, "entry%d", &number) == 1 && number < COUNT)
			seen[number]++;
		else
			strange += strcmp(entries[i].name, ".") && strcmp(entries[i].name, "..");
	}
	for (int i = 0; i < COUNT; i++) {
		lost += i % 2 && !seen[i];
		twice += seen[i] > 1;
		snprintf(name, sizeof(name), "entry%d", i);
		unlinkat(fd, name, 0);
	}
	close(fd);
	say(" lost %d twice %d strange %d", lost, twice, strange);
	say_result(unlinkat(AT_FDCWD, "listing", AT_REMOVEDIR));
}

static void op_chdir(void)
{
	struct where where;
	long result;

	if (chance(10)) {
		say(" $");
		say_result(chdir(self.root));
		return;
	}
	pick_path_to(&where, 0, "d");
	say(" cwd %s", where.shown);
	result = chdir(where.path);
	say_result(result);
}

static void op_fchdir(void)
{
	int fd = self.slot[pick_slot()];

	say(" %d", fd);
	say_result(fchdir(fd));
}

static void op_getcwd(void)
{
	char path[8192];
	size_t room = chance(90) ? sizeof(path) : pick(30);
	long result = syscall(SYS_getcwd, path, room);
	struct stat by_name, by_dot;

	say(" %zu", room);
	if (result < 0) {
		say_result(-1);
		return;
	}
	say(" ");
	say_text(path);
	/* The number of the folder itself, by name and as `.`. */
	if (!stat(path, &by_name) && !stat(".", &by_dot) && (by_name.st_ino != by_dot.st_ino || by_name.st_dev != by_dot.st_dev))
		say(" another folder");
}

/* Where /proc says that an open file is; a file that never had a name is told by its number. */
static void op_fd_path(void)
{
	char path[8192], link[48], *mark;
	int fd = self.slot[pick_slot()];
	ssize_t len;

	snprintf(link, sizeof(link), chance(80) ? "/proc/self/fd/%d" : "/dev/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	say(" %d", fd);
	if (len < 0) {
		say_result(-1);
		return;
	}
	path[len] = 0;
	mark = strstr(path, "/#");
	if (mark)
		strcpy(mark, "/# (deleted)");
	mark = strstr(path, ":[");
	if (mark)
		*mark = 0;
	say(" ");
	say_text(path);
}

/* Through the magic link: the file itself, whatever its name is by now. */
static void op_fd_open(void)
{
	static const int choices[] = { O_RDONLY, O_RDONLY, O_RDWR, O_WRONLY, O_RDWR | O_TRUNC, O_RDONLY | O_NOFOLLOW, O_PATH,
				       O_RDONLY | O_DIRECTORY };
	int from = self.slot[pick_slot()], flags = choices[pick(8)], index = pick_free_slot(), fd;
	char link[48];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", from);
	say(" %d %o", from, (unsigned)flags);
	fd = open(link, flags | O_NONBLOCK);
	say_result(fd);
	if (fd >= 0)
		slot_put(index, fd);
}

/* --- the snapshot --- */

struct known {
	dev_t dev;
	ino_t ino;
};

static struct known known[KNOWN_MAX];
static int known_count;

/* Files by identity: a number that is given at first sight, in this snapshot. */
static int identity(const struct stat *st)
{
	for (int i = 0; i < known_count; i++)
		if (known[i].dev == st->st_dev && known[i].ino == st->st_ino)
			return i;
	if (known_count < KNOWN_MAX)
		known[known_count++] = (struct known){ st->st_dev, st->st_ino };
	return known_count - 1;
}

static void say_attributes(int dirfd, const char *name)
{
	char path[300], list[4096], value[256], *names[64];
	size_t count = 0;
	ssize_t len, got;
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = flistxattr(fd, list, sizeof(list));
	for (char *at = list; at < list + len && count < 64; at += strlen(at) + 1)
		names[count++] = at;
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j && strcmp(names[j - 1], names[j]) > 0; j--) {
			char *swap = names[j];

			names[j] = names[j - 1];
			names[j - 1] = swap;
		}
	for (size_t i = 0; i < count; i++) {
		got = fgetxattr(fd, names[i], value, sizeof(value));
		say(" @");
		say_text(names[i]);
		say("=%08llx", got < 0 ? 0ull : (unsigned long long)(hash_bytes(HASH_START, value, (size_t)got) & 0xffffffffull));
	}
	close(fd);
}

static void say_file(int dirfd, const char *name, const struct stat *st)
{
	char target[4096];
	ssize_t len;
	int fd;

	if (S_ISLNK(st->st_mode)) {
		len = readlinkat(dirfd, name, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = 0;
		say(" -> ");
		say_text(target);
	} else if (S_ISREG(st->st_mode)) {
		fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0) {
			say(" %s", strerrorname_np(errno));
			return;
		}
		say_content(fd);
		close(fd);
	}
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
		say_attributes(dirfd, name);
}

static void say_tree(int dirfd, const char *name, int depth)
{
	struct entry *entries = calloc(NAMES_MAX, sizeof(*entries));
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int count = fd < 0 ? -1 : read_entries(fd, entries, NAMES_MAX, BUFFER_MAX);

	if (count < 0)
		say(" cannot list: %s", strerrorname_np(errno));
	else
		qsort(entries, (size_t)count, sizeof(*entries), compare_entries);
	for (int i = 0; i < count; i++) {
		struct stat st;

		if (!strcmp(entries[i].name, ".") || !strcmp(entries[i].name, ".."))
			continue;
		say("\n  %*s", 2 * depth, "");
		say_text(entries[i].name);
		if (fstatat(fd, entries[i].name, &st, AT_SYMLINK_NOFOLLOW)) {
			say(" %s", strerrorname_np(errno));
			continue;
		}
		say(" i%d", identity(&st));
		if (st.st_ino != entries[i].ino)
			say(" !ino");
		say_stat(&st);
		say_file(fd, entries[i].name, &st);
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			say_tree(fd, entries[i].name, depth + 1);
	}
	if (fd >= 0)
		close(fd);
	free(entries);
}

void op_snapshot(void)
{
	struct stat st;

	known_count = 0;
	if (!stat(self.root, &st))
		say(" i%d", identity(&st));
	if (!stat(".", &st))
		say(" cwd i%d", identity(&st));
	say_tree(AT_FDCWD, self.root, 0);
	for (int i = 0; i < SLOTS; i++) {
		if (self.slot[i] < 0)
			continue;
		say("\n  fd %d", self.slot[i]);
		if (fstat(self.slot[i], &st)) {
			say(" %s", strerrorname_np(errno));
			continue;
		}
		if (S_ISSOCK(st.st_mode)) {
			say(" socket");
			continue;
		}
		say(" i%d", identity(&st));
		say_stat(&st);
		say(" flags %o", (unsigned)fcntl(self.slot[i], F_GETFL) & ~(0100000u | O_NOFOLLOW | O_TMPFILE));
		if (S_ISREG(st.st_mode)) {
			say(" at %lld", (long long)lseek(self.slot[i], 0, SEEK_CUR));
			say_content(self.slot[i]);
		}
	}
}

const struct op dir_ops[] = {
	{ "list", "list", 8, op_list },
	{ "seekdir", "seekdir", 3, op_seekdir },
	{ "remove_while_listing", "list", 1, op_remove_while_listing },
	{ "chdir", "chdir", 6, op_chdir },
	{ "fchdir", "chdir", 3, op_fchdir },
	{ "getcwd", "getcwd", 3, op_getcwd },
	{ "fd_path", "fdpath", 3, op_fd_path },
	{ "fd_open", "fdopen", 3, op_fd_open },
	{ NULL, NULL, 0, NULL },
};
