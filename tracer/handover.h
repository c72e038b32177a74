/*
 * handover.h - guests' read-only descriptors and mappings of files that were copied up since: they become the copy's.
 */
#ifndef INTERPOSE_TRACER_HANDOVER_H
#define INTERPOSE_TRACER_HANDOVER_H

#include "tracer/engine/engine.h"
#include "vfs/vfs.h"

/* Queues all replacements that the view asks for. Whether it asked for any. */
bool handover_all(struct vfs *vfs, struct engine *engine);

/* Whether a guest has the file open. */
bool handover_is_held(struct engine *engine, dev_t dev, ino_t ino);

#endif
