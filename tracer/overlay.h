/* overlay.h - the subcommands for overlays that are kept: what changed, take it over, drop it. */
#ifndef INTERPOSE_TRACER_OVERLAY_H
#define INTERPOSE_TRACER_OVERLAY_H

#include <stdbool.h>
#include <stdio.h>

#include "vfs/upper.h"

/* Whether the word is one of them: diff, commit, discard, list. */
bool overlay_is_command(const char *word);

/*
 * `interpose diff|commit|discard|list ...`: argv[1] is the word. The exit status: 0; 1 when it was refused, as something is not
 * as it should be (a conflict, an overlay in use, none of that name); 125 when interpose itself failed or was called wrongly.
 */
int overlay_command(int argc, char **argv);

/* The lines of `diff` for an upper whose lower is the host's "/"; for the end of a run. How many there are, or a negative errno. */
long overlay_diff(const struct upper *upper, FILE *out);

#endif
