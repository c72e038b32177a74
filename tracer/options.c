/* options.c - the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "syscalls/decode.h"
#include "syscalls/nearest.h"
#include "tracer/message.h"
#include "tracer/options.h"

enum { OPT_ENGINE = 256, OPT_TRACE, OPT_EXPLAIN, OPT_ENV, OPT_CLEAR_ENV, OPT_CWD, OPT_COW, OPT_RW, OPT_RO, OPT_HIDE, OPT_TMP, OPT_BIND,
       OPT_FILE, OPT_UPPER, OPT_DIFF, OPT_VERSION, OPT_HELP };

static const struct option long_options[] = {
	{ "engine", required_argument, NULL, OPT_ENGINE },
	{ "trace", optional_argument, NULL, OPT_TRACE },
	{ "count", no_argument, NULL, 'c' },
	{ "explain", no_argument, NULL, OPT_EXPLAIN },
	{ "env", required_argument, NULL, OPT_ENV },
	{ "clear-env", no_argument, NULL, OPT_CLEAR_ENV },
	{ "cwd", required_argument, NULL, OPT_CWD },
	{ "cow", required_argument, NULL, OPT_COW },
	{ "rw", required_argument, NULL, OPT_RW },
	{ "ro", required_argument, NULL, OPT_RO },
	{ "hide", required_argument, NULL, OPT_HIDE },
	{ "tmp", required_argument, NULL, OPT_TMP },
	{ "bind", required_argument, NULL, OPT_BIND },
	{ "file", required_argument, NULL, OPT_FILE },
	{ "upper", required_argument, NULL, OPT_UPPER },
	{ "name", required_argument, NULL, 'n' },
	{ "diff", no_argument, NULL, OPT_DIFF },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"Usage: interpose [OPTION...] [--] COMMAND [ARG...]\n"
	"       interpose diff|commit|discard|list ...\n"
	"Runs COMMAND and all that it starts under a supervisor that mediates its system calls. It sees the host's files; what\n"
	"it changes is kept apart, and dropped at the end.\n"
	"\n"
	"  --cow PATH                  the host's files, changes kept apart (the default for /)\n"
	"  --rw PATH                   the host's files, changes go to them\n"
	"  --ro PATH                   the host's files, no changes\n"
	"  --hide PATH                 is not there\n"
	"  --tmp PATH                  an empty directory in memory\n"
	"  --bind SRC:DST              the host's SRC is at DST; changes go to it\n"
	"  --file DST=SRC              the host's file SRC is at DST, read-only\n"
	"  --upper memory|DIR          where changes are kept\n"
	"  -n, --name NAME             changes are kept by this name, and seen by the next run with it\n"
	"  --diff                      list what was changed, at the end\n"
	"  --engine auto|trace|ptrace  how calls are stopped (auto: a seccomp filter where one can be installed)\n"
	"  --trace[=SET]               print the calls of SET: names, %file %network %process %desc %memory %signal ...,\n"
	"                              `all` (the default), `!SET` for all others\n"
	"  -o FILE                     write calls and counts there, not to standard error\n"
	"  -c, --count                 calls, errors and time of each call, at the end\n"
	"  --explain                   the call stack and the instructions where the program crashes or is refused\n"
	"  --env KEY[=VALUE]           set a variable, or take it over after --clear-env\n"
	"  --clear-env                 start with an empty environment\n"
	"  --cwd DIR                   run in DIR\n"
	"  -q                          do not tell refusals at the end\n"
	"  -v                          tell which engine is used\n"
	"  --version, --help\n"
	"\n"
	"The exit status is the command's own; 125 interpose failed, 126 found but not executable, 127 not found.\n";

void options_help(void)
{
	fputs(help_text, stdout);
}

/* --- environment ------------------------------------------------------------------------------------------------------------ */

static size_t env_count(char *const *env)
{
	size_t n = 0;

	while (env[n])
		n++;
	return n;
}

static bool same_key(const char *entry, const char *key, size_t len)
{
	return !strncmp(entry, key, len) && entry[len] == '=';
}

/* Keeps OURS, an allocated "KEY=VALUE", in place of another value of the key. */
static int env_put(struct options *options, char *ours)
{
	size_t n = env_count(options->environment), len = strchr(ours, '=') - ours;
	char **grown;

	for (size_t i = 0; i < n; i++) {
		if (!same_key(options->environment[i], ours, len))
			continue;
		free(options->environment[i]);
		options->environment[i] = ours;
		return 0;
	}
	grown = realloc(options->environment, (n + 2) * sizeof(*grown));
	if (!grown) {
		free(ours);
		return -ENOMEM;
	}
	grown[n] = ours;
	grown[n + 1] = NULL;
	options->environment = grown;
	return 0;
}

static int env_add(struct options *options, const char *word)
{
	char *ours = NULL;
	const char *value;

	if (!*word || *word == '=') {
		message("--env '%s': a variable needs a name", word);
		return -EINVAL;
	}
	if (strchr(word, '=')) {
		ours = strdup(word);
	} else {
		value = getenv(word);
		if (!value)
			return 0; /* as in env and docker: a variable that is not set is not passed */
		if (asprintf(&ours, "%s=%s", word, value) < 0)
			ours = NULL;
	}
	return ours ? env_put(options, ours) : -ENOMEM;
}

static void env_clear(struct options *options)
{
	for (size_t i = 0; options->environment && options->environment[i]; i++)
		free(options->environment[i]);
	if (options->environment)
		options->environment[0] = NULL;
}

static int env_copy(struct options *options)
{
	size_t n = env_count(environ);

	options->environment = calloc(n + 1, sizeof(*options->environment));
	for (size_t i = 0; options->environment && i < n; i++) {
		options->environment[i] = strdup(environ[i]);
		if (!options->environment[i])
			return -ENOMEM;
	}
	return options->environment ? 0 : -ENOMEM;
}

/* --- words -------------------------------------------------------------------------------------------------------------------- */

static int unknown_word(const char *what, const char *word, const char *const *words, size_t count)
{
	const char *near = nearest_word(word, words, count);

	if (near && *near)
		message("unknown %s '%s': did you mean '%s'?", what, word, near);
	else
		message("unknown %s '%s': see interpose --help", what, word);
	return -EINVAL;
}

static int unknown_option(const char *word)
{
	enum { LONG = sizeof(long_options) / sizeof(long_options[0]) - 1 };
	char spelled[LONG][32];
	const char *words[LONG];
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	for (int i = 0; i < LONG; i++) {
		snprintf(spelled[i], sizeof(spelled[i]), "--%s", long_options[i].name);
		words[i] = spelled[i];
	}
	return unknown_word("option", name, words, name[1] == '-' ? LONG : 0);
}

static int parse_engine(struct options *options, const char *word)
{
	static const char *const names[] = { "auto", "trace", "ptrace" };
	static const enum engine_mechanism values[] = { ENGINE_AUTO, ENGINE_TRACE, ENGINE_PTRACE };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(word, names[i])) {
			options->session.mechanism = values[i];
			return 0;
		}
	}
	return unknown_word("engine", word, names, sizeof(names) / sizeof(names[0]));
}

static int parse_trace(struct options *options, const char *set)
{
	char bad[64], near[64];

	options->session.trace = true;
	if (!set)
		set = "all";
	options->session.trace_unknown = !strcmp(set, "all");
	if (decode_parse_set(set, options->session.trace_set, bad, near) == 0)
		return 0;
	if (*near)
		message("unknown call '%s' in --trace: did you mean '%s'?", bad, near);
	else
		message("unknown call '%s' in --trace", bad);
	return -EINVAL;
}

static int parse_one(struct options *options, int option, int argc, char **argv)
{
	switch (option) {
	case OPT_ENGINE: return parse_engine(options, optarg);
	case OPT_TRACE: return parse_trace(options, optarg);
	case OPT_ENV: return env_add(options, optarg);
	case 'o': options->session.output = optarg; return 0;
	case 'c': options->session.count = true; return 0;
	case OPT_EXPLAIN: options->session.explain = true; return 0;
	case OPT_CWD: options->cwd = optarg; return 0;
	case OPT_COW: return view_option(&options->session.view, VFS_COW, optarg);
	case OPT_RW: return view_option(&options->session.view, VFS_RW, optarg);
	case OPT_RO: return view_option(&options->session.view, VFS_RO, optarg);
	case OPT_HIDE: return view_option(&options->session.view, VFS_HIDE, optarg);
	case OPT_TMP: return view_option(&options->session.view, VFS_TMP, optarg);
	case OPT_BIND: return view_option(&options->session.view, VFS_BIND, optarg);
	case OPT_FILE: return view_option(&options->session.view, VFS_FILE, optarg);
	case OPT_UPPER: options->session.view.upper = strcmp(optarg, "memory") ? optarg : NULL; return 0;
	case 'n': options->session.view.name = optarg; return 0;
	case OPT_DIFF: options->session.view.diff = true; return 0;
	case OPT_VERSION: options->version = true; return 0;
	case OPT_HELP: options->help = true; return 0;
	case 'q': options->session.quiet = true; return 0;
	case 'v': options->session.verbose = true; return 0;
	case OPT_CLEAR_ENV: return 0; /* has been applied before */
	case ':':
		message("option '%s' needs a value: see interpose --help", argv[optind - 1]);
		return -EINVAL;
	}
	if (optopt && optopt < 256) { /* a short one */
		message("unknown option '-%c': see interpose --help", optopt);
		return -EINVAL;
	}
	if (optopt) {
		message("option '%s' takes no value", argv[optind - 1]);
		return -EINVAL;
	}
	(void)argc;
	return unknown_option(argv[optind - 1]);
}

static int next_option(int argc, char **argv)
{
	return getopt_long(argc, argv, "+:o:n:cqv", long_options, NULL);
}

/* --clear-env counts wherever it stands among the options: `--env A --clear-env` keeps A. */
static int prepare_environment(struct options *options, int argc, char **argv)
{
	int option, error = env_copy(options);

	opterr = 0;
	optind = 1;
	while (!error && (option = next_option(argc, argv)) != -1) {
		if (option == OPT_CLEAR_ENV)
			env_clear(options);
	}
	return error;
}

int options_parse(struct options *options, int argc, char **argv)
{
	int option, error;

	*options = (struct options){ .session.mechanism = ENGINE_AUTO };
	error = prepare_environment(options, argc, argv);
	optind = 1;
	while (!error && (option = next_option(argc, argv)) != -1)
		error = parse_one(options, option, argc, argv);
	if (error == -ENOMEM)
		message("out of memory");
	if (error || options->help || options->version)
		return error;
	if (optind == argc) {
		message("no command given: interpose [OPTION...] [--] COMMAND [ARG...]");
		return -EINVAL;
	}
	if (options->session.output && !options->session.trace && !options->session.count) {
		message("-o needs --trace or --count: there is nothing to write");
		return -EINVAL;
	}
	if (options->session.view.name && options->session.view.upper) {
		message("--name and --upper both say where changes are kept: give one of them");
		return -EINVAL;
	}
	options->command = argv + optind;
	return 0;
}

void options_free(struct options *options)
{
	env_clear(options);
	view_options_free(&options->session.view);
	free(options->environment);
	options->environment = NULL;
}
