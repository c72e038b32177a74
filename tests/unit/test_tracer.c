/* What is shown of a run: messages, refusals, counts and call lines; the command line; the search for a program. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/fake_guest.h"
#include "tracer/call_count.h"
#include "tracer/call_log.h"
#include "tracer/message.h"
#include "tracer/options.h"
#include "tracer/program.h"
#include "tracer/refusal.h"

static struct guest guest;

static struct call call_of(int id, pid_t tid)
{
	static const uint64_t args[6];
	struct call call = fake_call(&guest, arch_all[ARCH_X86_64], id, args);

	call.tid = call.tgid = tid;
	return call;
}

/* --- messages -------------------------------------------------------------------------------------------------------------- */

START_TEST(clean_text)
{
	char out[64], small[8];

	ck_assert_str_eq(message_clean(out, sizeof(out), "plain"), "plain");
	ck_assert_str_eq(message_clean(out, sizeof(out), "a\nb\033[2J\x7f"), "a\\012b\\033[2J\\177");
	ck_assert_str_eq(message_clean(out, sizeof(out), "\x9b" "31m"), "\\23331m"); /* C1: CSI in one byte */
	message_clean(small, sizeof(small), "0123456789");
	ck_assert_uint_lt(strlen(small), sizeof(small));
}
END_TEST

/* --- refusals -------------------------------------------------------------------------------------------------------------- */

static char *printed(const struct refusals *refusals)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	refusals_print(refusals, out);
	fclose(out);
	return text;
}

START_TEST(refusals_are_told_once)
{
	static const char why[] = "a rule", other[] = "another rule";
	struct refusals refusals = { .kinds = 0 };
	struct call mount = call_of(CALL_mount, getpid()), unknown = call_of(CALL_NONE, getpid());
	char *text = printed(&refusals);

	ck_assert_str_eq(text, ""); /* nothing is said of nothing */
	free(text);
	for (int i = 0; i < 3; i++)
		refusals_add(&refusals, &mount, EPERM, why, false);
	refusals_add(&refusals, &mount, EACCES, other, false);
	unknown.nr = 9999;
	refusals_add(&refusals, &unknown, ENOSYS, why, false);
	unknown.nr = 9998;
	refusals_add(&refusals, &unknown, ENOSYS, why, false);
	text = printed(&refusals);
	ck_assert_ptr_nonnull(strstr(text, "interpose: refused 4 operations\n"));
	ck_assert_ptr_nonnull(strstr(text, "  mount (3 times, "));
	ck_assert_ptr_nonnull(strstr(text, "another rule"));
	ck_assert_ptr_nonnull(strstr(text, "EACCES"));
	ck_assert_ptr_nonnull(strstr(text, "call number 9999 (1 time, "));
	ck_assert_ptr_nonnull(strstr(text, "call number 9998 (1 time, "));
	free(text);
	refusals_free(&refusals);
}
END_TEST

START_TEST(refusals_are_bounded)
{
	struct refusals refusals = { .kinds = 0 };
	struct call call = call_of(CALL_NONE, getpid());
	char *text;

	for (unsigned i = 0; i < 3 * REFUSAL_KINDS; i++) {
		call.nr = 10000 + i;
		refusals_add(&refusals, &call, ENOSYS, "unknown", false);
	}
	ck_assert_uint_eq(refusals.kinds, REFUSAL_KINDS);
	ck_assert_uint_eq(refusals.others, 2 * REFUSAL_KINDS);
	text = printed(&refusals);
	ck_assert_ptr_nonnull(strstr(text, "and other calls, 128 times"));
	free(text);
	refusals_free(&refusals);
}
END_TEST

/* --- counts ---------------------------------------------------------------------------------------------------------------- */

START_TEST(counting)
{
	struct call_counts *counts = calloc(1, sizeof(*counts));
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	call_counts_add(counts, CALL_read, 1000, 5);
	call_counts_add(counts, CALL_read, 2000, -EINTR);
	call_counts_add(counts, CALL_mmap, 500000, -5000); /* an address, no error */
	call_counts_add(counts, CALL_NONE, 10, -ENOSYS);
	ck_assert_uint_eq(counts->of[CALL_read].calls, 2);
	ck_assert_uint_eq(counts->of[CALL_read].errors, 1);
	ck_assert_uint_eq(counts->of[CALL_mmap].errors, 0);
	ck_assert_uint_eq(counts->of[CALL_COUNT].calls, 1);
	call_counts_print(counts, out);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "(unknown)"));
	ck_assert(strstr(text, " mmap") < strstr(text, " read")); /* most time first */
	ck_assert_ptr_nonnull(strstr(text, "total"));
	free(text);
	free(counts);
}
END_TEST

/* --- call lines ------------------------------------------------------------------------------------------------------------ */

static char log_text[8192];

/* Runs BODY with a log into a pipe and keeps what it wrote. */
static void logged(void (*body)(struct call_log *log))
{
	struct call_log log;
	int ends[2];
	ssize_t n;

	ck_assert_int_eq(pipe(ends), 0);
	call_log_init(&log, ends[1]);
	body(&log);
	call_log_end(&log);
	close(ends[1]);
	n = read(ends[0], log_text, sizeof(log_text) - 1);
	close(ends[0]);
	log_text[n > 0 ? n : 0] = 0;
}

static void two_tasks(struct call_log *log)
{
	struct call_line a = { .open = false }, b = { .open = false };
	struct call one = call_of(CALL_getppid, 101), two = call_of(CALL_getpid, 102);

	call_log_begin(log, &a, &one);
	call_log_begin(log, &b, &two);
	call_log_finish(log, &b, &two, 102);
	call_log_finish(log, &a, &one, 1);
}

START_TEST(unfinished_and_resumed)
{
	logged(two_tasks);
	ck_assert_ptr_eq(strstr(log_text, "[pid   101] getppid( <unfinished ...>\n[pid   102] getpid()"), log_text);
	ck_assert_ptr_nonnull(strstr(log_text, "\n[pid   101] <... getppid resumed>)"));
	ck_assert_ptr_nonnull(strstr(log_text, "= 102 <0."));
}
END_TEST

static void ends_inside(struct call_log *log)
{
	struct call_line a = { .open = false };
	struct call one = call_of(CALL_getppid, 101);

	call_log_begin(log, &a, &one);
	call_log_abandon(log, &a, &one);
	call_log_abandon(log, &a, &one); /* nothing is open any more */
	call_log_task_end(log, &one, SIGKILL);
	call_log_task_end(log, &one, -1);
	call_log_task_end(log, &one, 3 << 8);
}

START_TEST(task_ends_inside_a_call)
{
	logged(ends_inside);
	ck_assert_str_eq(log_text, "[pid   101] getppid() = ?\n[pid   101] +++ killed by SIGKILL +++\n"
	                           "[pid   101] +++ superseded by execve in another thread +++\n[pid   101] +++ exited with 3 +++\n");
}
END_TEST

static void begun_twice(struct call_log *log)
{
	struct call_line a = { .open = false };
	struct call one = call_of(CALL_getppid, 101);

	call_log_begin(log, &a, &one); /* its end is never told: the vsyscall page has no exit stop */
	call_log_begin(log, &a, &one);
	call_log_finish(log, &a, &one, 1);
}

START_TEST(end_that_is_never_told)
{
	logged(begun_twice);
	ck_assert_ptr_eq(strstr(log_text, "[pid   101] getppid() = ?\n[pid   101] getppid()"), log_text);
}
END_TEST

/* --- the command line ------------------------------------------------------------------------------------------------------ */

static int parse(struct options *options, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return options_parse(options, argc, argv);
}

#define ARGV(...) ((char *[]){ "interpose", __VA_ARGS__, NULL })

START_TEST(options_taken)
{
	char **argv = ARGV("--engine=ptrace", "--trace=openat,%network", "-c", "-o", "f", "-qv", "--cwd", "/", "ls", "-l");
	struct options options;

	ck_assert_int_eq(parse(&options, argv), 0);
	ck_assert_int_eq(options.session.mechanism, ENGINE_PTRACE);
	ck_assert(options.session.trace && options.session.count && options.session.quiet && options.session.verbose);
	ck_assert(options.session.trace_set[CALL_openat] && options.session.trace_set[CALL_connect]);
	ck_assert(!options.session.trace_set[CALL_read] && !options.session.trace_unknown);
	ck_assert_str_eq(options.session.output, "f");
	ck_assert_str_eq(options.cwd, "/");
	ck_assert_str_eq(options.command[0], "ls");
	ck_assert_str_eq(options.command[1], "-l"); /* the command's own options are not ours */
	options_free(&options);
}
END_TEST

START_TEST(options_environment)
{
	struct options options;

	setenv("KEPT", "yes", 1);
	ck_assert_int_eq(parse(&options, ARGV("--env", "A=1", "--env", "KEPT", "--clear-env", "--env", "A=2", "--", "true")), 0);
	ck_assert_str_eq(options.environment[0], "A=2");
	ck_assert_str_eq(options.environment[1], "KEPT=yes");
	ck_assert_ptr_null(options.environment[2]);
	options_free(&options);
	unsetenv("KEPT");
	ck_assert_int_eq(parse(&options, ARGV("--env", "KEPT", "true")), 0);
	for (size_t i = 0; options.environment[i]; i++)
		ck_assert_int_ne(strncmp(options.environment[i], "KEPT", 4), 0);
	options_free(&options);
}
END_TEST

START_TEST(options_refused)
{
	char *const *const bad[] = {
		ARGV("--engin", "--", "true"), ARGV("--engine", "nonsense", "true"), ARGV("--nonsense", "true"), ARGV("-x", "true"),
		ARGV("--trace=opnat", "true"), ARGV("--env", "=v", "true"), ARGV("--env", "", "true"), ARGV("-q"), ARGV("-o", "f", "true"),
		ARGV("--engine"), ARGV("--explain=3", "true"),
	};
	struct options options;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(parse(&options, (char **)bad[i]) == -EINVAL, "%s was taken", bad[i][1]);
		options_free(&options);
	}
}
END_TEST

/* --- the program ----------------------------------------------------------------------------------------------------------- */

static int check_on_host(void *dir, const char *path)
{
	int at = open(dir ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), error = 0;
	struct stat st;

	if (fstatat(at, path, &st, 0))
		error = -errno;
	else if (!S_ISREG(st.st_mode))
		error = S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
	else if (!(st.st_mode & S_IXUSR))
		error = -EACCES;
	close(at);
	return error;
}

static int find(const char *command, const char *search, char *dir, char *out, size_t size)
{
	return program_find(command, search, check_on_host, dir, out, size);
}

START_TEST(program_search)
{
	char dir[] = "/tmp/interpose-unit-XXXXXX", file[64], search[160], out[256];
	FILE *script;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/tool", dir);
	script = fopen(file, "w");
	ck_assert_ptr_nonnull(script);
	fclose(script);
	snprintf(search, sizeof(search), "/nonexistent:%s:/usr/bin:/bin", dir);
	ck_assert_int_eq(chmod(file, 0600), 0);
	ck_assert_int_eq(find("tool", search, NULL, out, sizeof(out)), -EACCES);
	ck_assert_int_eq(chmod(file, 0700), 0);
	ck_assert_int_eq(find("tool", search, NULL, out, sizeof(out)), 0);
	ck_assert_str_eq(out, file);
	ck_assert_int_eq(find("./tool", NULL, dir, out, sizeof(out)), 0);
	ck_assert_int_eq(find("./tool", NULL, "/", out, sizeof(out)), -ENOENT);
	ck_assert_int_eq(find("no such tool", search, NULL, out, sizeof(out)), -ENOENT);
	ck_assert_int_eq(find("", search, NULL, out, sizeof(out)), -ENOENT);
	ck_assert_int_eq(find(dir, search, NULL, out, sizeof(out)), -EISDIR);
	ck_assert_int_eq(find("/dev/null", search, NULL, out, sizeof(out)), -EACCES);
	ck_assert_int_eq(find("sh", NULL, NULL, out, sizeof(out)), 0);
	ck_assert_int_eq(find(file, NULL, NULL, out, 4), -ENAMETOOLONG);
	unlink(file);
	rmdir(dir);
}
END_TEST

Suite *suite_tracer(void);

Suite *suite_tracer(void)
{
	Suite *suite = suite_create("tracer");
	TCase *tc = tcase_create("tracer");

	tcase_add_test(tc, clean_text);
	tcase_add_test(tc, refusals_are_told_once);
	tcase_add_test(tc, refusals_are_bounded);
	tcase_add_test(tc, counting);
	tcase_add_test(tc, unfinished_and_resumed);
	tcase_add_test(tc, task_ends_inside_a_call);
	tcase_add_test(tc, end_that_is_never_told);
	tcase_add_test(tc, options_taken);
	tcase_add_test(tc, options_environment);
	tcase_add_test(tc, options_refused);
	tcase_add_test(tc, program_search);
	suite_add_tcase(suite, tc);
	return suite;
}
