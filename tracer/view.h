/*
 * view.h - the files that guests see: the mounts that the command line asks for, the defaults, and where changes go.
 *
 * Life: view_make(), view_start() once the engine runs, view_end().
 */
#ifndef INTERPOSE_TRACER_VIEW_H
#define INTERPOSE_TRACER_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "syscalls/env.h"
#include "tracer/engine/engine.h"
#include "vfs/upper.h"

struct view_options {
	struct vfs_mount_spec *mounts; /* of the command line; paths and sources are allocated */
	size_t mount_count;
	const char *upper;             /* --upper: a directory; NULL: in memory */
	const char *name;              /* -n: a named overlay */
	bool diff;                     /* --diff: list what the run changed */
	bool kept_told;                /* nothing is said of changes that are dropped */
};

struct view {
	struct env env;      /* what handlers work with */
	struct upper upper;  /* of cow mounts */
	struct upper memory; /* of tmp mounts, and of what an exec needs; the same as `upper` where that is in memory */
	bool shared;         /* it is */
	struct vfs_mount_spec *mounts;
	size_t mount_count;
	char *cwd;
	struct engine *engine;
};

/* CWD: where the guest starts; NULL: here. 0, or a negative errno after one line was said. */
int view_make(struct view *view, const struct view_options *options, const char *cwd);

/* Who the first guest will be. */
struct vfs_who view_first(struct view *view);

/* From now on changes by the host are noticed, and copies that are ready are told. */
void view_start(struct view *view, struct engine *engine);
void view_end(struct view *view);

/* A mount of the command line: KIND and WORD as written, SRC:DST or DST=SRC for bind and file. -EINVAL after one line. */
int view_option(struct view_options *options, enum vfs_kind kind, const char *word);
void view_options_free(struct view_options *options);

#endif
