/* fs_exec.c - programs and scripts found by path and by descriptor, and what they are told about themselves. */
#define _FILE_OFFSET_BITS 64
#include "guest.h"

#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static char self[4096];

static void write_text(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	size_t len = strlen(text);

	MUST(fd >= 0 && write(fd, text, len) == (ssize_t)len && fchmod(fd, mode) == 0);
	close(fd);
}

/* This program as another file: written a moment before it is run. */
static void copy_self(int to)
{
	int from = open(self, O_RDONLY | O_CLOEXEC);
	struct stat st;
	off_t at = 0;

	MUST(from >= 0 && fstat(from, &st) == 0);
	while (at < st.st_size)
		MUST(sendfile(to, from, &at, (size_t)(st.st_size - at)) > 0);
	close(from);
}

static void copy_self_to(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	MUST(fd >= 0);
	copy_self(fd);
	close(fd);
}

static void print_link(const char *what, const char *link)
{
	char text[4096];
	ssize_t len = readlink(link, text, sizeof(text) - 1);

	text[len > 0 ? len : 0] = 0;
	printf("  %s %s\n", what, text);
}

/* What the tests run: tells its arguments and names. */
static int test_show(int argc, char **argv)
{
	char comm[32] = "";

	prctl(PR_GET_NAME, comm);
	for (int i = 0; i < argc; i++)
		printf("  argument '%s'\n", argv[i]);
	printf("  comm %s execfn %s\n", comm, (const char *)getauxval(AT_EXECFN));
	print_link("exe", "/proc/self/exe");
	return 0;
}

/* Runs PATH by whichever way `start` takes; tells the status, or the errno of the exec. */
static void report(const char *what, pid_t pid)
{
	int status = guest_wait(pid);

	if (WIFEXITED(status))
		printf("%s: status %d\n", what, WEXITSTATUS(status));
	else
		printf("%s: signal %d\n", what, WTERMSIG(status));
	fflush(stdout);
}

static void child_failed(void)
{
	printf("  exec: %s\n", strerrorname_np(errno));
	fflush(stdout);
	_exit(99);
}

static void run(const char *what, const char *path)
{
	pid_t pid = guest_fork();

	if (pid == 0) {
		execl(path, "given-name", "one", "two words", (char *)NULL);
		child_failed();
	}
	report(what, pid);
}

/* --- scripts ---------------------------------------------------------------------------------------------------------- */

static void run_script(const char *what, const char *text, mode_t mode)
{
	write_text("script", text, mode);
	run(what, "./script");
	unlink("script");
}

static int test_scripts(int argc, char **argv)
{
	char text[8192];

	copy_self_to("interpreter");
	snprintf(text, sizeof(text), "#!%s show\nrest\n", self);
	run_script("plain", text, 0755);
	run_script("relative", "#!./interpreter show\n", 0755);
	run_script("bare name", "#!interpreter show\n", 0755);
	run_script("spaces", "#! \t./interpreter \t show and more \t\n", 0755);
	run_script("no newline", "#!./interpreter show", 0755);
	run_script("nothing", "#!\n", 0755);
	run_script("only spaces", "#!   \n", 0755);
	run_script("missing", "#!./nowhere\n", 0755);
	run_script("carriage return", "#!./interpreter\r\n", 0755);
	run_script("folder", "#!/\n", 0755);
	run_script("not executable", "#!./interpreter show\n", 0644);
	run_script("no script", "exit 3\n", 0755);
	run_script("empty", "", 0755);
	write_text("plain", "text\n", 0644);
	run_script("interpreter not executable", "#!./plain\n", 0755);
	symlink("interpreter", "link");
	run_script("by a symbolic link", "#!./link show\n", 0755);
	return 0;
}

/* A script as the interpreter of a script, as deep as the kernel allows and deeper. */
static int test_nested(int argc, char **argv)
{
	char text[64], name[16], what[32];

	copy_self_to("interpreter");
	write_text("level0", "#!./interpreter show\n", 0755);
	for (int i = 1; i < 8; i++) {
		snprintf(text, sizeof(text), "#!./level%d of%d\n", i - 1, i);
		snprintf(name, sizeof(name), "./level%d", i);
		write_text(name, text, 0755);
		snprintf(what, sizeof(what), "nested %d", i);
		run(what, name);
	}
	return 0;
}

/* The kernel looks at the first 256 bytes. */
static int test_long(int argc, char **argv)
{
	copy_self_to("interpreter");
	for (int len = 250; len < 262; len++) {
		char text[400], what[32];
		int used = snprintf(text, sizeof(text), "#!");

		while (used < len - 18)
			used += snprintf(text + used, sizeof(text) - (size_t)used, "./");
		snprintf(text + used, sizeof(text) - (size_t)used, "interpreter%*s", len - used - 11, "show");
		snprintf(what, sizeof(what), "line of %zu", strlen(text));
		run_script(what, text, 0755);
		strcat(text, "\n");
		run_script("with newline", text, 0755);
	}
	return 0;
}

/* --- by descriptor ---------------------------------------------------------------------------------------------------- */

static void run_at(const char *what, int fd, const char *path, int flags)
{
	char *args[] = { "given-name", "show", NULL }, *env[] = { NULL };
	pid_t pid = guest_fork();

	if (pid == 0) {
		syscall(SYS_execveat, fd, path, args, env, flags);
		child_failed();
	}
	report(what, pid);
}

static int test_at(int argc, char **argv)
{
	int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, memory;

	copy_self_to("program");
	symlink("program", "link");
	write_text("script", "#!./program show\n", 0755);
	run_at("in a folder", folder, "program", 0);
	run_at("link", folder, "link", 0);
	run_at("link not followed", folder, "link", AT_SYMLINK_NOFOLLOW);
	run_at("missing", folder, "nowhere", 0);
	run_at("bad flag", folder, "program", 0x40000);
	run_at("folder itself", folder, "", AT_EMPTY_PATH);
	run_at("empty path", folder, "", 0);
	fd = open("program", O_RDONLY | O_CLOEXEC);
	run_at("file", fd, "", AT_EMPTY_PATH);
	close(fd);
	fd = open("program", O_PATH | O_CLOEXEC);
	run_at("path only", fd, "", AT_EMPTY_PATH);
	unlink("program");
	run_at("path only, removed", fd, "", AT_EMPTY_PATH);
	close(fd);
	memory = memfd_create("in-memory", MFD_CLOEXEC);
	copy_self(memory);
	run_at("memory", memory, "", AT_EMPTY_PATH);
	close(memory);
	copy_self_to("program");
	fd = open("script", O_RDONLY | O_CLOEXEC);
	run_at("script that is closed on exec", fd, "", AT_EMPTY_PATH);
	fcntl(fd, F_SETFD, 0);
	run_at("script", fd, "", AT_EMPTY_PATH);
	return 0;
}

/* --- names ------------------------------------------------------------------------------------------------------------ */

/* A program that renames and removes its own file, and looks at /proc/self/exe. */
static int test_own_file(int argc, char **argv)
{
	print_link("exe", "/proc/self/exe");
	MUST(rename("a-program-with-a-long-name", "renamed") == 0);
	print_link("renamed", "/proc/self/exe");
	MUST(unlink("renamed") == 0);
	print_link("removed", "/proc/self/exe");
	MUST(open("/proc/self/exe", O_RDONLY | O_CLOEXEC) >= 0);
	return 0;
}

static int test_names(int argc, char **argv)
{
	pid_t pid;

	copy_self_to("a-program-with-a-long-name");
	symlink("a-program-with-a-long-name", "link");
	for (int i = 0; i < 3; i++) {
		static const char *const ways[] = { "./link", "././/link", "/proc/self/cwd/link" };

		pid = guest_fork();
		if (pid == 0) {
			execl(ways[i], "", "show", (char *)NULL);
			child_failed();
		}
		report(ways[i], pid);
	}
	pid = guest_fork();
	if (pid == 0) {
		execl("./a-program-with-a-long-name", "x", "own_file", (char *)NULL);
		child_failed();
	}
	report("own file", pid);
	return 0;
}

/* What was written a moment ago is what runs, every time. */
static int test_written(int argc, char **argv)
{
	for (int i = 0; i < 20; i++) {
		char text[64];
		pid_t pid;

		snprintf(text, sizeof(text), "#!/bin/sh\nexit %d\n", i + 1);
		write_text("script", text, 0755);
		copy_self_to("program");
		pid = guest_fork();
		if (pid == 0) {
			execl(i % 2 ? "./script" : "./program", "x", "code", text, (char *)NULL);
			child_failed();
		}
		CHECK_EXIT(guest_wait(pid), i % 2 ? i + 1 : 5);
	}
	return 0;
}

static int test_code(int argc, char **argv)
{
	return 5;
}

static const struct test tests[] = {
	{ "show", test_show }, { "scripts", test_scripts }, { "nested", test_nested }, { "long", test_long }, { "at", test_at },
	{ "names", test_names }, { "own_file", test_own_file }, { "written", test_written }, { "code", test_code }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	MUST(len > 0);
	/* As the interpreter of a script it gets what the script's first line says, which need not be a test. */
	if (argc > 0 && strstr(argv[0], "interpreter"))
		return test_show(argc, argv);
	return guest_main(argc, argv, tests);
}
