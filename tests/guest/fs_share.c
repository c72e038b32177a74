/* fs_share.c - several processes at one file: FIFOs, locks, appends, notification, and who sees what others write. */
#define _FILE_OFFSET_BITS 64
#include "guest.h"

#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>

/* A file that may have been there before, as in the variants whose set-up makes it. */
static void want_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	size_t len = strlen(text);

	if (fd < 0) {
		MUST(errno == EEXIST);
		return;
	}
	MUST(write(fd, text, len) == (ssize_t)len);
	close(fd);
}

static void no_handler(int signo)
{
}

/* --- FIFOs ------------------------------------------------------------------------------------------------------------ */

static void want_fifo(void)
{
	MUST(mkfifo("fifo", 0644) == 0 || errno == EEXIST);
}

static int test_fifo(int argc, char **argv)
{
	char text[8] = "";
	pid_t pid;
	int fd;

	want_fifo();
	for (int i = 0; i < 2; i++) {
		pid = guest_fork();
		if (pid == 0) {
			fd = open("fifo", i ? O_RDONLY : O_WRONLY);
			CHECK(fd >= 0);
			if (i)
				CHECK(read(fd, text, 8) == 5 && !memcmp(text, "hello", 5));
			else
				CHECK(write(fd, "hello", 5) == 5);
			child_exit();
		}
		CHECK(guest_await_state(pid, pid, "S"));
		fd = open("fifo", i ? O_WRONLY : O_RDONLY);
		CHECK(fd >= 0);
		if (i)
			CHECK(write(fd, "hello", 5) == 5);
		else
			CHECK(read(fd, text, 8) == 5 && !memcmp(text, "hello", 5));
		CHECK_EXIT(guest_wait(pid), 0);
		close(fd);
	}
	CHECK(open("fifo", O_WRONLY | O_NONBLOCK) < 0 && errno == ENXIO);
	fd = open("fifo", O_RDONLY | O_NONBLOCK);
	CHECK(fd >= 0);
	return 0;
}

/* A signal ends the waiting of an open, or does not where calls are restarted. */
static int test_fifo_signal(int argc, char **argv)
{
	want_fifo();
	for (int restart = 0; restart < 2; restart++) {
		pid_t pid = guest_fork();
		int fd;

		if (pid == 0) {
			struct sigaction action = { .sa_handler = no_handler, .sa_flags = restart ? SA_RESTART : 0 };

			sigaction(SIGUSR1, &action, NULL);
			fd = open("fifo", O_RDONLY);
			if (restart)
				CHECK(fd >= 0);
			else
				CHECK(fd < 0 && errno == EINTR);
			child_exit();
		}
		usleep(100000); /* the handler is set and the open waits; were it later, the signal would kill and be told */
		CHECK(guest_await_state(pid, pid, "S"));
		kill(pid, SIGUSR1);
		if (restart) {
			usleep(20000);
			CHECK(guest_await_state(pid, pid, "S"));
			fd = open("fifo", O_WRONLY);
			CHECK(fd >= 0);
		}
		CHECK_EXIT(guest_wait(pid), 0);
	}
	return 0;
}

/* --- writing --------------------------------------------------------------------------------------------------------- */

/* Every append lands whole, at the end. */
static int test_append(int argc, char **argv)
{
	enum { PROCESSES = 3, COUNT = 1500, LEN = 16 };
	int counts[PROCESSES] = { 0 };
	char line[LEN + 1];
	pid_t pids[PROCESSES];
	FILE *file;

	want_file("log", "");
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = guest_fork();
		if (pids[i] == 0) {
			int fd = open("log", O_WRONLY | O_APPEND);

			for (int j = 0; j < COUNT; j++) {
				snprintf(line, sizeof(line), "%d %13d\n", i, j);
				CHECK(write(fd, line, LEN) == LEN);
			}
			child_exit();
		}
	}
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EXIT(guest_wait(pids[i]), 0);
	file = fopen("log", "r");
	MUST(file);
	while (fread(line, LEN, 1, file) == 1) {
		int who = line[0] - '0';

		MUST(who >= 0 && who < PROCESSES && line[LEN - 1] == '\n');
		CHECK_EQ(atoi(line + 1), counts[who]);
		counts[who]++;
	}
	fclose(file);
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ(counts[i], COUNT);
	return 0;
}

/* Runs a child that writes `text` at the start of a file, which it opens for the first time to write. */
static void write_by_other(const char *path, const char *text)
{
	pid_t pid = guest_fork();

	if (pid == 0) {
		int fd = open(path, O_WRONLY);

		CHECK(fd >= 0 && pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text));
		child_exit();
	}
	CHECK_EXIT(guest_wait(pid), 0);
}

/* A descriptor that was opened only to read, before anybody wrote, reads what is written. */
static int test_reader(int argc, char **argv)
{
	char text[8] = "";
	struct stat st, by_name;
	int fd, inherited;

	want_file("file", "before");
	fd = open("file", O_RDONLY);
	inherited = dup(fd);
	MUST(fd >= 0 && inherited >= 0);
	CHECK(pread(fd, text, 6, 0) == 6 && !memcmp(text, "before", 6));
	write_by_other("file", "after!");
	CHECK(pread(fd, text, 6, 0) == 6 && !memcmp(text, "after!", 6));
	CHECK(pread(inherited, text, 6, 0) == 6 && !memcmp(text, "after!", 6));
	CHECK(fstat(fd, &st) == 0 && stat("file", &by_name) == 0);
	CHECK(st.st_ino == by_name.st_ino && st.st_dev == by_name.st_dev && st.st_size == by_name.st_size);
	return 0;
}

/* The same through a mapping. */
static int test_mapped(int argc, char **argv)
{
	char *map;
	int fd;

	want_file("file", "before");
	fd = open("file", O_RDONLY);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	MUST(map != MAP_FAILED);
	CHECK(!memcmp(map, "before", 6));
	write_by_other("file", "after!");
	CHECK(!memcmp(map, "after!", 6));
	return 0;
}

/* --- locks ----------------------------------------------------------------------------------------------------------- */

static int lock_by(int kind, int fd, short type, bool wait)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	if (kind == 0)
		return flock(fd, (type == F_UNLCK ? LOCK_UN : type == F_RDLCK ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB));
	return fcntl(fd, kind == 1 ? (wait ? F_SETLKW : F_SETLK) : (wait ? F_OFD_SETLKW : F_OFD_SETLK), &lock);
}

/* One process locks by a descriptor from before the first write, the other by one from after it: it is one file. */
static int test_locks(int argc, char **argv)
{
	want_file("file", "before");
	for (int kind = 0; kind < 3; kind++) {
		int ready[2], go[2], fd = open("file", O_RDONLY);
		char path[32];
		pid_t pid;

		guest_pipe(ready);
		guest_pipe(go);
		snprintf(path, sizeof(path), "file");
		CHECK(lock_by(kind, fd, F_RDLCK, false) == 0);
		pid = guest_fork();
		if (pid == 0) {
			int mine = open(path, O_RDWR);

			CHECK(mine >= 0 && write(mine, "after!", 6) == 6);
			CHECK(lock_by(kind, mine, F_WRLCK, false) < 0 && (errno == EAGAIN || errno == EACCES));
			guest_put(ready[1]);
			guest_get(go[0]);
			CHECK(lock_by(kind, mine, F_WRLCK, true) == 0);
			guest_put(ready[1]);
			guest_get(go[0]);
			child_exit();
		}
		CHECK(guest_get(ready[0]));
		guest_put(go[1]);
		CHECK(guest_await_state(pid, pid, "S"));
		CHECK(lock_by(kind, fd, F_UNLCK, false) == 0);
		CHECK(guest_get(ready[0]));
		CHECK(lock_by(kind, fd, F_RDLCK, false) < 0 && (errno == EAGAIN || errno == EACCES));
		guest_put(go[1]);
		CHECK_EXIT(guest_wait(pid), 0);
		CHECK(lock_by(kind, fd, F_RDLCK, false) == 0);
		close(fd);
	}
	return 0;
}

/* --- inotify --------------------------------------------------------------------------------------------------------- */

static void print_events(int fd, const char *what)
{
	static const char *const names[] = { "ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN", "MOVED_FROM",
					     "MOVED_TO", "CREATE", "DELETE", "DELETE_SELF", "MOVE_SELF" };
	char buffer[8192] __attribute__((aligned(8)));
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	uint32_t cookie = 0;

	printf("%s:", what);
	while (poll(&poller, 1, 50) > 0) {
		ssize_t got = read(fd, buffer, sizeof(buffer));

		MUST(got > 0);
		for (char *at = buffer; at < buffer + got;) {
			struct inotify_event *event = (struct inotify_event *)at;

			printf(" %d", event->wd);
			for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
				if (event->mask & 1u << i)
					printf("|%s", names[i]);
			printf("%s%s %s%s;", event->mask & IN_ISDIR ? "|DIR" : "", event->mask & IN_IGNORED ? "|IGNORED" : "",
				event->len ? event->name : "", event->cookie && event->cookie == cookie ? " same" : "");
			cookie = event->cookie;
			at += sizeof(*event) + event->len;
		}
	}
	printf("\n");
	fflush(stdout);
}

static void change(int step)
{
	int fd;

	switch (step) {
	case 0:
		fd = open("d/new", O_WRONLY | O_CREAT | O_EXCL, 0644);
		CHECK(fd >= 0 && write(fd, "x", 1) == 1);
		close(fd);
		break;
	case 1:
		fd = open("d/file", O_WRONLY);
		CHECK(fd >= 0 && write(fd, "x", 1) == 1);
		close(fd);
		break;
	case 2:
		CHECK(rename("d/new", "d/newer") == 0);
		break;
	case 3:
		CHECK(rename("d/newer", "outside") == 0);
		break;
	case 4:
		CHECK(chmod("d/file", 0600) == 0);
		break;
	case 5:
		CHECK(mkdir("d/folder", 0755) == 0);
		break;
	case 6:
		CHECK(link("d/file", "d/linked") == 0);
		break;
	case 7:
		CHECK(symlink("file", "d/symlink") == 0 && mkfifo("d/pipe", 0644) == 0);
		break;
	case 8:
		CHECK(truncate("d/file", 100) == 0);
		break;
	case 9:
		CHECK(rename("outside", "d/back") == 0);
		break;
	case 10:
		CHECK(rename("d/back", "d/linked") == 0);
		break;
	case 11:
		CHECK(utimensat(AT_FDCWD, "d/file", NULL, 0) == 0);
		break;
	case 12:
		CHECK(unlink("d/file") == 0);
		break;
	case 13:
		CHECK(rmdir("d/folder") == 0);
		break;
	case 14:
		CHECK(rename("d", "e") == 0);
		break;
	default:
		CHECK(unlink("e/linked") == 0 && unlink("e/symlink") == 0 && unlink("e/pipe") == 0 && rmdir("e") == 0);
	}
}

/* A folder and a file in it are watched; another process changes them, one step at a time. */
static int test_inotify(int argc, char **argv)
{
	uint32_t mask = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;
	int fd = inotify_init1(IN_CLOEXEC);

	MUST(fd >= 0 && (mkdir("d", 0755) == 0 || errno == EEXIST));
	want_file("d/file", "before");
	CHECK_EQ(inotify_add_watch(fd, "d", mask), 1);
	CHECK_EQ(inotify_add_watch(fd, "d/file", mask), 2);
	for (int step = 0; step < 16; step++) {
		char what[16];
		pid_t pid = guest_fork();

		if (pid == 0) {
			change(step);
			child_exit();
		}
		CHECK_EXIT(guest_wait(pid), 0);
		snprintf(what, sizeof(what), "step %d", step);
		print_events(fd, what);
	}
	CHECK(inotify_add_watch(fd, "nowhere", mask) < 0 && errno == ENOENT);
	CHECK(inotify_add_watch(fd, ".", mask | IN_ONLYDIR) == 3);
	CHECK(inotify_add_watch(fd, "/dev/null", mask | IN_ONLYDIR) < 0 && errno == ENOTDIR);
	CHECK(inotify_rm_watch(fd, 3) == 0);
	return 0;
}

/* Opens and reads are told once each: nobody else opens what the guest opens. */
static int test_inotify_reads(int argc, char **argv)
{
	int fd = inotify_init1(IN_CLOEXEC), file;
	struct stat st;
	char byte;

	MUST(fd >= 0 && (mkdir("d", 0755) == 0 || errno == EEXIST));
	want_file("d/file", "before");
	MUST(inotify_add_watch(fd, "d", IN_ALL_EVENTS) == 1);
	CHECK(stat("d/file", &st) == 0 && access("d/file", R_OK) == 0);
	print_events(fd, "looked at");
	file = open("d/file", O_RDONLY);
	CHECK(read(file, &byte, 1) == 1);
	close(file);
	print_events(fd, "read");
	file = open("d/file", O_RDWR);
	CHECK(write(file, "x", 1) == 1);
	close(file);
	print_events(fd, "written");
	return 0;
}

static const struct test tests[] = {
	{ "fifo", test_fifo }, { "fifo_signal", test_fifo_signal }, { "append", test_append }, { "reader", test_reader },
	{ "mapped", test_mapped }, { "locks", test_locks }, { "inotify", test_inotify }, { "inotify_reads", test_inotify_reads },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
