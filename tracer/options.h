/* options.h - the command line. */
#ifndef INTERPOSE_TRACER_OPTIONS_H
#define INTERPOSE_TRACER_OPTIONS_H

#include "tracer/session.h"

struct options {
	struct session_options session;
	char *const *command;       /* NULL-terminated; NULL with help or version */
	char **environment;         /* the guest's, NULL-terminated */
	const char *cwd;
	bool help, version;
};

/* 0, or -EINVAL after one line that names the word and the nearest valid one. options_free() in both cases. */
int options_parse(struct options *options, int argc, char **argv);
void options_free(struct options *options);

void options_help(void);

#endif
