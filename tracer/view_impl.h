/* view_impl.h - what view.c and view_options.c share. */
#ifndef INTERPOSE_TRACER_VIEW_IMPL_H
#define INTERPOSE_TRACER_VIEW_IMPL_H

#include <stddef.h>

#include "vfs/vfs.h"

/* An absolute path, allocated; NULL with errno. */
char *view_absolute(const char *path);

/* Appends SPEC, whose texts are taken over. -ENOMEM, also where its path is NULL. */
int view_spec_add(struct vfs_mount_spec **specs, size_t *count, struct vfs_mount_spec spec);
void view_specs_free(struct vfs_mount_spec *specs, size_t count);

#endif
