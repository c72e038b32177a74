/*
 * handover.h - guests' read-only descriptors of files that were copied up since: they become descriptors of the copy.
 */
#ifndef INTERPOSE_TRACER_HANDOVER_H
#define INTERPOSE_TRACER_HANDOVER_H

#include "tracer/engine/engine.h"
#include "vfs/vfs.h"

/* Queues all replacements that the view asks for. Whether it asked for any. */
bool handover_all(struct vfs *vfs, struct engine *engine);

#endif
