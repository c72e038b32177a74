/* program.h - finds the executable of a command, as a shell does. */
#ifndef INTERPOSE_TRACER_PROGRAM_H
#define INTERPOSE_TRACER_PROGRAM_H

#include <stddef.h>

/* Whether a path may be executed: 0, -ENOENT, -EISDIR, -EACCES, ... */
typedef int program_check(void *context, const char *path);

/* The file that COMMAND means: itself where it holds a slash, else the first in SEARCH (a PATH; NULL for the default of
   confstr(_CS_PATH)) that CHECK says may be executed. 0 with the path in OUT; -ENOENT; -EACCES or -EISDIR for what was found but
   cannot be run; -ENAMETOOLONG. */
int program_find(const char *command, const char *search, program_check *check, void *context, char *out, size_t size);

#endif
