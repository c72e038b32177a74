/* overlay.c - the subcommands: words, commit, discard */
#include "tracer/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "syscalls/nearest.h"
#include "tracer/message.h"
#include "tracer/overlay_impl.h"
#include "vfs/commit.h"

enum { OPT_JSON = 256, OPT_TEXT, OPT_FORCE, OPT_HELP };

static const struct option json_option = { "json", no_argument, NULL, OPT_JSON };
static const struct option text_option = { "text", no_argument, NULL, OPT_TEXT };
static const struct option force_option = { "force", no_argument, NULL, OPT_FORCE };
static const struct option help_option = { "help", no_argument, NULL, OPT_HELP };

enum { OPTIONS_MOST = 5 };

struct subcommand {
	const char *word;
	int (*run)(const struct overlay_options *options);
	bool named, paths;	/* takes NAME, and PATH... */
	const struct option *options[OPTIONS_MOST];
	const char *short_options;
	const char *help;
};

static int commit_command(const struct overlay_options *options);
static int discard_command(const struct overlay_options *options);

static const struct subcommand subcommands[] = {
	{ "diff", overlay_diff_command, true, true, { &json_option, &text_option, &help_option }, "+:",
	  "Usage: interpose diff [--json | --text] NAME [PATH...]\n"
	  "Lists what the overlay changes on the host, or only at and below each PATH: A new, M changed, D deleted, R renamed; then type,\n"
	  "mode, size in bytes and path. NAME is an overlay of `interpose -n NAME`, or a directory of --upper when there is a `/` in it.\n"
	  "\n"
	  "  --json   an array of objects; bytes of a path that are no UTF-8 are written as \\u00XX\n"
	  "  --text   with the differences of text files, by diff -u\n" },
	{ "commit", commit_command, true, true, { &force_option, &help_option }, "+:f",
	  "Usage: interpose commit [-f] NAME [PATH...]\n"
	  "Takes what the overlay changes, or only what is at and below each PATH, over to the host. Nothing is committed when a file was\n"
	  "changed on the host as well. A commit that was killed is finished by the next one.\n"
	  "\n"
	  "  -f, --force   also where the host's files were changed since: those changes are lost\n" },
	{ "discard", discard_command, true, false, { &force_option, &help_option }, "+:f",
	  "Usage: interpose discard [-f] NAME\n"
	  "Removes an overlay with all changes in it.\n"
	  "\n"
	  "  -f, --force   also a damaged one; none of that name is no error\n" },
	{ "list", overlay_list_command, false, false, { &json_option, &help_option }, "+:",
	  "Usage: interpose list [--json]\n"
	  "Lists the named overlays: size, number of changes, the process that uses it, when it was used last.\n" },
};

enum { SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };

static const struct subcommand *find(const char *word)
{
	for (size_t i = 0; i < SUBCOMMANDS; i++) {
		if (!strcmp(word, subcommands[i].word))
			return &subcommands[i];
	}
	return NULL;
}

bool overlay_is_command(const char *word)
{
	return find(word) != NULL;
}

int overlay_lower(void)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		message("cannot open '/': %s", strerror(errno));
	return fd;
}

/* --- words ---------------------------------------------------------------------------------------------------------------------- */

static int unknown_option(const struct subcommand *command, const char *word)
{
	char spelled[OPTIONS_MOST][32], name[64];
	const char *words[OPTIONS_MOST], *near;
	size_t count = 0;

	for (; command->options[count]; count++) {
		snprintf(spelled[count], sizeof(spelled[count]), "--%s", command->options[count]->name);
		words[count] = spelled[count];
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	near = name[1] == '-' ? nearest_word(name, words, count) : NULL;
	if (near)
		message("unknown option '%s' of %s: did you mean '%s'?", name, command->word, near);
	else
		message("unknown option '%s' of %s: see interpose %s --help", name, command->word, command->word);
	return -EINVAL;
}

/* An absolute path without `.`, `..` and empty names; `..` is by the text, as what it names may be only in the overlay. */
static char *path_absolute(const char *path)
{
	char *cwd = *path == '/' ? strdup("") : getcwd(NULL, 0), *out;
	size_t len;

	if (!cwd)
		return NULL;
	len = strlen(cwd);
	out = realloc(cwd, len + strlen(path) + 2);
	if (!out) {
		free(cwd);
		return NULL;
	}
	if (!strcmp(out, "/"))
		len = 0;
	while (*(path += strspn(path, "/"))) {
		size_t name = strcspn(path, "/");

		if (name == 2 && path[0] == '.' && path[1] == '.') {
			while (len && out[--len] != '/')
				;
		} else if (name != 1 || path[0] != '.') {
			out[len++] = '/';
			memcpy(out + len, path, name);
			len += name;
		}
		path += name;
	}
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

static int parse_operands(struct overlay_options *options, const struct subcommand *command, int argc, char **argv)
{
	int given = argc - optind;

	if (command->named && given < 1) {
		message("%s needs the name of an overlay: see interpose list", command->word);
		return -EINVAL;
	}
	if (given > (command->named ? 1 : 0) && !command->paths) {
		message("unexpected word '%s': see interpose %s --help", argv[optind + (command->named ? 1 : 0)], command->word);
		return -EINVAL;
	}
	options->name = command->named ? argv[optind++] : NULL;
	options->paths = calloc(argc - optind + 1, sizeof(*options->paths));
	while (options->paths && optind < argc) {
		options->paths[options->count] = path_absolute(argv[optind++]);
		if (!options->paths[options->count++])
			return -ENOMEM;
	}
	return options->paths ? 0 : -ENOMEM;
}

static int parse(struct overlay_options *options, const struct subcommand *command, int argc, char **argv)
{
	struct option longs[OPTIONS_MOST + 1] = { 0 };
	int option;

	for (size_t i = 0; command->options[i]; i++)
		longs[i] = *command->options[i];
	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, command->short_options, longs, NULL)) != -1) {
		switch (option) {
		case OPT_JSON: options->json = true; break;
		case OPT_TEXT: options->text = true; break;
		case 'f':
		case OPT_FORCE: options->force = true; break;
		case OPT_HELP: options->help = true; return 0;
		default: return unknown_option(command, optopt && optopt < 256 ? (char[]){ '-', optopt, 0 } : argv[optind - 1]);
		}
	}
	if (options->json && options->text) {
		message("--json and --text exclude each other");
		return -EINVAL;
	}
	return parse_operands(options, command, argc, argv);
}

static void options_free(struct overlay_options *options)
{
	for (size_t i = 0; options->paths && i < options->count; i++)
		free(options->paths[i]);
	free(options->paths);
}

int overlay_command(int argc, char **argv)
{
	const struct subcommand *command = argc > 1 ? find(argv[1]) : NULL;
	struct overlay_options options = { 0 };
	int status = EXIT_OWN_FAILURE, error;

	if (!command)
		return status;
	error = parse(&options, command, argc - 1, argv + 1);
	if (!error && options.help)
		status = fputs(command->help, stdout) == EOF ? EXIT_OWN_FAILURE : 0;
	else if (!error)
		status = command->run(&options);
	else if (error == -ENOMEM)
		message("out of memory");
	options_free(&options);
	if (fflush(stdout) && status == 0) {
		message("cannot write: %s", strerror(errno));
		status = EXIT_OWN_FAILURE;
	}
	return status;
}

/* --- commit --------------------------------------------------------------------------------------------------------------------- */

static void commit_tell(void *arg, enum commit_event event, const char *path, const char *text)
{
	const char *name = arg;

	switch (event) {
	case COMMIT_CONFLICT: message("'%s': %s", path, text); break;
	case COMMIT_MISSING: message("the overlay '%s' changes nothing at '%s'", name, path); break;
	case COMMIT_FAILED: message("cannot commit '%s': %s; what is not committed stays in the overlay", path, text); break;
	case COMMIT_NOTE: message("'%s': %s", path, text); break;
	}
}

int overlay_open(struct upper *upper, const char *name, bool lock)
{
	char why[OVERLAY_WHY], *path = upper_path_of(name, why, sizeof(why));
	int error = path ? upper_open_existing(upper, path, lock, why, sizeof(why)) : -EINVAL;

	if (error == -ENOENT && !strchr(name, '/'))
		message("there is no overlay '%s': see interpose list", name);
	else if (error)
		message("%s", why);
	free(path);
	return error;
}

static int commit_command(const struct overlay_options *options)
{
	struct commit_options commit = { .force = options->force, .paths = options->paths, .count = options->count,
					 .tell = commit_tell, .arg = (void *)options->name };
	struct upper upper;
	int lower, error = overlay_open(&upper, options->name, true);

	if (error)
		return OVERLAY_REFUSED;
	lower = overlay_lower();
	error = lower < 0 ? -EIO : commit_run(&upper, lower, &commit);
	if (error == -EEXIST)
		message("nothing is committed: see interpose diff %s, and commit --force to replace them", options->name);
	if (lower >= 0)
		close(lower);
	upper_close(&upper);
	return error == -EEXIST || error == -ENOENT ? OVERLAY_REFUSED : error ? EXIT_OWN_FAILURE : 0;
}

/* --- discard -------------------------------------------------------------------------------------------------------------------- */

/* Out of the way first, so that a discard that is killed leaves no half overlay of that name. 0 or -1; PATH is then free. */
static int put_away(const char *path, char *away, size_t size)
{
	const char *slash = strrchr(path, '/');

	snprintf(away, size, "%.*s/.discarded.%d", (int)(slash - path), path, (int)getpid());
	return rename(path, away);
}

static int remove_all(const struct upper *upper, const char *path, bool named)
{
	char away[OVERLAY_WHY];
	bool moved = named && put_away(path, away, sizeof(away)) == 0;
	int error = upper_remove_contents(upper->root_fd);

	if (!error && rmdir(moved ? away : path) < 0)
		error = -errno;
	if (error)
		message("cannot remove '%s': %s", moved ? away : path, strerror(-error));
	return error;
}

/* A named one that is damaged is known by its place; another directory must say itself that it is an overlay. */
static int discard_damaged(struct upper *upper, const char *path, bool named)
{
	struct stat st;

	*upper = (struct upper){ .root_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .fs_fd = -1, .work_fd = -1,
				 .index_fd = -1, .view_fd = -1, .origins_fd = -1, .lock_fd = -1, .persistent = true };
	if (upper->root_fd >= 0 && fstat(upper->root_fd, &st) == 0 && st.st_uid == geteuid() &&
	    (named || upper_is(upper->root_fd)) && upper_user(upper->root_fd) == 0)
		return 0;
	upper_close(upper);
	return -EPERM;
}

static int discard(const struct overlay_options *options, const char *path, bool named)
{
	char why[OVERLAY_WHY];
	struct upper upper;
	int lower, error = upper_open_existing(&upper, path, true, why, sizeof(why));

	if (error == -ENOENT && options->force)
		return 0;
	if (error == -EUCLEAN && options->force)
		error = discard_damaged(&upper, path, named);
	if (error) {
		message("%s%s", why, error == -EUCLEAN && named && !options->force ? " (discard --force removes a damaged one)" : "");
		return OVERLAY_REFUSED;
	}
	lower = overlay_lower();
	if (lower >= 0) {
		commit_forget(&upper, lower);
		close(lower);
	}
	error = remove_all(&upper, path, named);
	upper_close(&upper);
	return error ? EXIT_OWN_FAILURE : 0;
}

/* What a killed discard has left; it is no overlay any more. */
static void leftovers_remove(const char *path)
{
	char *above = strndup(path, strrchr(path, '/') - path);
	int dir = above ? open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir >= 0)
		upper_remove_discarded(dir);
	if (dir >= 0)
		close(dir);
	free(above);
}

static int discard_command(const struct overlay_options *options)
{
	bool named = !strchr(options->name, '/');
	char why[OVERLAY_WHY], *path = upper_path_of(options->name, why, sizeof(why));
	int status;

	if (!path) {
		message("%s", why);
		return OVERLAY_REFUSED;
	}
	if (named)
		leftovers_remove(path);
	status = discard(options, path, named);
	free(path);
	return status;
}
