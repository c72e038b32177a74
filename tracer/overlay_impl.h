/* overlay_impl.h - what the files of the subcommands share; for no one else */
#ifndef INTERPOSE_TRACER_OVERLAY_IMPL_H
#define INTERPOSE_TRACER_OVERLAY_IMPL_H

#include "tracer/overlay.h"

enum { OVERLAY_REFUSED = 1, OVERLAY_WHY = 5000 };

struct overlay_options {
	bool json, text, force, help;
	const char *name;
	char **paths;	/* absolute, NULL-terminated */
	size_t count;
};

int overlay_diff_command(const struct overlay_options *options);
int overlay_list_command(const struct overlay_options *options);

/* Opens the overlay that a user names; an error has been told. LOCK as for upper_open_existing(). */
int overlay_open(struct upper *upper, const char *name, bool lock);

/* The host's "/", or -1 after a message. */
int overlay_lower(void);

/*
 * A string of JSON, with its quotes. JSON has no bytes: those that are no UTF-8 become \u00XX with the byte's value, and all
 * control characters \u00XX too; letters of U+0080 and above are written as they are, so that the two can be told apart in the text.
 */
void overlay_json_string(FILE *out, const char *text);

#endif
