/* overlay_diff.c - what an overlay changes, as lines, as JSON, or with the differences of text files */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/message.h"
#include "tracer/overlay_impl.h"
#include "vfs/changes.h"
#include "vfs/upper_walk.h"

extern char **environ;

struct output {
	FILE *out;
	const struct overlay_options *options;
	int lower;
	long count;
};

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return "file";
	case S_IFDIR: return "directory";
	case S_IFLNK: return "link";
	case S_IFIFO: return "fifo";
	case S_IFSOCK: return "socket";
	case S_IFCHR: return "character-device";
	case S_IFBLK: return "block-device";
	}
	return "unknown";
}

/* --- JSON ----------------------------------------------------------------------------------------------------------------------- */

/* The length of the UTF-8 letter that the text begins with; 0 for none. By RFC 3629: no surrogates, nothing longer than needed. */
static size_t utf8_length(const unsigned char *text)
{
	unsigned char c = text[0], low = 0x80, high = 0xbf;
	size_t len = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;

	if (c == 0xe0)
		low = 0xa0;
	else if (c == 0xed)
		high = 0x9f;
	else if (c == 0xf0)
		low = 0x90;
	else if (c == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < len; i++) {
		if (text[i] < low || text[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return len;
}

void overlay_json_string(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	putc('"', out);
	while (*at) {
		size_t len = utf8_length(at);

		if (len == 0 || *at < 0x20 || *at == 0x7f)
			fprintf(out, "\\u%04x", *at);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else
			fwrite(at, 1, len, out);
		at += len ? len : 1;
	}
	putc('"', out);
}

static void json_change(struct output *output, const struct change *change)
{
	FILE *out = output->out;
	bool first = true;

	fprintf(out, "%s\n  {\"kind\": \"%c\", \"type\": \"%s\", \"mode\": \"%04o\", \"size\": %llu, \"path\": ", output->count ? "," : "",
		change->kind, type_name(change->mode), (unsigned)change->mode & 07777, (unsigned long long)change->size);
	overlay_json_string(out, change->path);
	if (change->from) {
		fputs(", \"from\": ", out);
		overlay_json_string(out, change->from);
	}
	if (change->what) {
		fputs(", \"changed\": [", out);
		for (int i = 0; i < CHANGE_WORDS; i++) {
			if (change->what & 1u << i)
				fprintf(out, "%s\"%s\"", first ? "" : ", ", change_words[i]);
			first = first && !(change->what & 1u << i);
		}
		putc(']', out);
	}
	putc('}', out);
}

/* --- lines ---------------------------------------------------------------------------------------------------------------------- */

static void put_path(FILE *out, const char *path)
{
	size_t size = strlen(path) * 4 + 8;
	char *clean = malloc(size);

	if (clean)
		fputs(message_clean(clean, size, path), out);
	free(clean);
}

/* That the content is another, and the time with it, is what one expects of a change. */
static void put_what(FILE *out, unsigned what)
{
	const char *before = " (";

	if (!(what & ~(CHANGE_CONTENT | CHANGE_TIMES)) && (what & CHANGE_CONTENT))
		return;
	for (int i = 0; i < CHANGE_WORDS; i++) {
		if (!(what & 1u << i) || (1u << i == CHANGE_TIMES && what != CHANGE_TIMES))
			continue;
		fprintf(out, "%s%s", before, change_words[i]);
		before = ", ";
	}
	putc(')', out);
}

static void line_change(FILE *out, const struct change *change)
{
	fprintf(out, "%c %s %04o %llu ", change->kind, type_name(change->mode), (unsigned)change->mode & 07777,
		(unsigned long long)change->size);
	if (change->from) {
		put_path(out, change->from);
		fputs(" -> ", out);
	}
	put_path(out, change->path);
	if (change->what)
		put_what(out, change->what);
	putc('\n', out);
}

/* --- differences of text files ---------------------------------------------------------------------------------------------------- */

static int open_regular(int dirfd, const char *name)
{
	struct stat st;
	int fd = dirfd < 0 ? -1 : openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A file that was renamed is compared with what it was. */
static int open_old(const struct output *output, const struct change *change)
{
	char path[32];
	int held, fd;

	if (!change->from)
		return change->kind == 'A' ? -1 : open_regular(change->lower_dir, change->name);
	held = walk_open(output->lower, change->from);
	if (held < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	close(held);
	return fd;
}

enum { OLD_FD = 10, NEW_FD = 11 };

static int spawn_diff(int old, int new, const char *old_label, const char *new_label)
{
	char *argv[] = { "diff", "-u", "--label", (char *)old_label, "--label", (char *)new_label,
			 old < 0 ? "/dev/null" : "/proc/self/fd/10", new < 0 ? "/dev/null" : "/proc/self/fd/11", NULL };
	posix_spawn_file_actions_t actions;
	int error, status;
	pid_t child;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	error = old < 0 ? 0 : posix_spawn_file_actions_adddup2(&actions, old, OLD_FD);
	if (!error && new >= 0)
		error = posix_spawn_file_actions_adddup2(&actions, new, NEW_FD);
	if (!error)
		error = posix_spawnp(&child, "diff", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error == ENOENT)
		message("there is no program 'diff': install diffutils, or use diff without --text");
	if (error)
		return -error;
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) < 2 ? 0 : -EIO;
}

/* Above the two that are given to diff, which must not take each other's place. */
static int fd_above(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, NEW_FD + 1);

	if (fd >= 0)
		close(fd);
	return high;
}

static int text_change(const struct output *output, const struct change *change)
{
	char *label, *old_label;
	int old, new, error = 0;

	if ((!S_ISREG(change->mode) || (change->what && !(change->what & CHANGE_CONTENT))) || fflush(output->out))
		return 0;
	old = fd_above(open_old(output, change));
	new = change->kind == 'D' ? -1 : fd_above(open_regular(change->upper_dir, change->name));
	label = malloc(strlen(change->path) * 4 + 8);
	old_label = malloc(strlen(change->from ? change->from : change->path) * 4 + 8);
	if (!label || !old_label)
		error = -ENOMEM;
	else if (old >= 0 || new >= 0)
		error = spawn_diff(old, new,
				   old < 0 ? "/dev/null" : message_clean(old_label, strlen(change->from ? change->from : change->path) * 4 + 8,
									 change->from ? change->from : change->path),
				   new < 0 ? "/dev/null" : message_clean(label, strlen(change->path) * 4 + 8, change->path));
	free(label);
	free(old_label);
	if (old >= 0)
		close(old);
	if (new >= 0)
		close(new);
	return error;
}

/* --- the command ------------------------------------------------------------------------------------------------------------------ */

static bool is_wanted(const struct overlay_options *options, const char *path)
{
	if (!options || !options->count)
		return true;
	for (size_t i = 0; i < options->count; i++) {
		size_t len = strlen(options->paths[i]);

		if (!strcmp(options->paths[i], "/") || (!strncmp(path, options->paths[i], len) && (!path[len] || path[len] == '/')))
			return true;
	}
	return false;
}

static int tell(void *arg, const struct change *change)
{
	struct output *output = arg;
	const struct overlay_options *options = output->options;
	int error = 0;

	if (!is_wanted(options, change->path))
		return 0;
	if (options && options->json)
		json_change(output, change);
	else
		line_change(output->out, change);
	if (options && options->text)
		error = text_change(output, change);
	output->count++;
	return error ? error : ferror(output->out) ? -EIO : 0;
}

static long print(struct output *output, const struct upper *upper)
{
	char *failed;
	int error;

	output->lower = overlay_lower();
	if (output->lower < 0)
		return -EIO;
	error = changes_walk(upper, output->lower, tell, output, &failed);
	if (error)
		message("cannot tell all changes: '%s': %s", failed ? failed : "/", strerror(-error));
	free(failed);
	close(output->lower);
	return error ? error : output->count;
}

long overlay_diff(const struct upper *upper, FILE *out)
{
	struct output output = { .out = out };

	return print(&output, upper);
}

int overlay_diff_command(const struct overlay_options *options)
{
	struct output output = { .out = stdout, .options = options };
	struct upper upper;
	long count;

	if (overlay_open(&upper, options->name, false))
		return OVERLAY_REFUSED;
	if (options->json)
		putchar('[');
	count = print(&output, &upper);
	if (options->json)
		fputs(output.count ? "\n]\n" : "]\n", stdout);
	upper_close(&upper);
	return count < 0 ? EXIT_OWN_FAILURE : 0;
}
