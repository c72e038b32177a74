/*
 * special.h - mounts that show something else than a tree of the host: /proc (proc.c) and /dev (dev.c).
 *
 * Their lower is the host's own /proc and /dev, and what is there is looked up as anywhere; these functions say what of it is
 * seen, where its links lead, and what is read in its place. Only for nodes whose mount is VFS_PROC or VFS_DEV.
 */
#ifndef INTERPOSE_VFS_SPECIAL_H
#define INTERPOSE_VFS_SPECIAL_H

#include "vfs/internal.h"

/* Whether NAME in DIR exists for this caller: asked at lookups and listings. */
bool special_visible(const struct vfs_who *who, const struct vfs_node *dir, const char *name, size_t len);

enum special_link {
	SPECIAL_PLAIN, /* the host's symbolic link, as it is */
	SPECIAL_TEXT,  /* special_readlink() makes the target; followed as text */
	SPECIAL_JUMP   /* special_readlink() makes the text, special_jump() leads to the object itself */
};
enum special_link special_link(const struct vfs_who *who, const struct vfs_node *node);
ssize_t special_readlink(const struct vfs_who *who, struct vfs_node *node, char *buf, size_t size);
int special_jump(const struct vfs_who *who, struct vfs_node *node, struct vfs_place *place);

/* Before an open. 1: *FD is a made file's (a sealed memfd, to be read), the caller's to close; 0: the host's own file may be opened
   with these FLAGS; or a negative errno. */
int special_open(const struct vfs_who *who, struct vfs_node *node, int flags, int *fd);

/* What access(2) and a change of attributes may do beyond the host's own rules: 0 or a negative errno. MASK: R_OK, W_OK, X_OK of
   access(2); SPECIAL_CHANGE: of attributes. */
enum { SPECIAL_CHANGE = 8 };
int special_access(const struct vfs_who *who, const struct vfs_node *node, int mask);

/* Whether a character device may be opened wherever its node is: one that /dev shows. */
bool dev_allowed(struct vfs *vfs, dev_t device);

/* Before the first mount; -ENOMEM. special_end() may be called whether or not it was started. */
int special_start(struct vfs *vfs);
void special_end(struct vfs *vfs);

#endif
