/*
 * inherited.h - descriptors that interpose was started with.
 *
 * They are the guest's. A copy that stays open here would keep a pipe's reader from seeing its end, so after the launch we
 * keep standard error alone.
 */
#ifndef INTERPOSE_TRACER_INHERITED_H
#define INTERPOSE_TRACER_INHERITED_H

#include <stddef.h>

struct inherited {
	int *fds;     /* above 2 */
	size_t count;
};

/* Lists what is open. Before anything is opened. 0 or a negative errno. */
int inherited_list(struct inherited *inherited);

/* After the launch: closes them, and lets standard input and output lead to /dev/null. Frees the list. */
void inherited_close(struct inherited *inherited);

#endif
