/*
 * linked.c - the numbers of a file right after a link of it was made.
 *
 * The copy-up that a link needs gives a file another number. Who makes a link may ask at once whether it is of the file that he
 * had looked at (git clone does, and gives up if not). So a process that has made one is told the numbers of before, of both
 * names, until it opens a file or lists a directory: its first look at anything else that tells the new ones.
 */
#include <stdlib.h>

#include "vfs/internal.h"

struct linked {
	struct vfs_node *from, *to; /* TO is NULL until the link is made: the call may have to wait for the copy */
	uint32_t dev_major, dev_minor;
	uint64_t ino;
};

void linked_end(struct vfs *vfs, struct vfs_fs *fs)
{
	struct linked *linked = fs->linked;

	fs->linked = NULL;
	if (!linked)
		return;
	vfs_node_unref(vfs, linked->from);
	if (linked->to)
		vfs_node_unref(vfs, linked->to);
	free(linked);
}

/* Before the copy-up of FROM. Without memory the new numbers are told. */
void linked_start(const struct vfs_who *who, struct vfs_place *from)
{
	struct linked *linked;
	struct statx st;

	if (vfs_stat(who, from, STATX_BASIC_STATS, 0, &st) < 0)
		return;
	linked_end(who->vfs, who->fs);
	linked = malloc(sizeof(*linked));
	if (!linked)
		return;
	*linked = (struct linked){ .from = vfs_node_ref(from->node), .dev_major = st.stx_dev_major, .dev_minor = st.stx_dev_minor,
	                           .ino = st.stx_ino };
	who->fs->linked = linked;
}

/* TO is a link of FROM now. */
void linked_made(const struct vfs_who *who, struct vfs_node *from, struct vfs_node *to)
{
	struct linked *linked = who->fs->linked;

	if (linked && linked->from == from && !linked->to)
		linked->to = vfs_node_ref(to);
	else
		linked_end(who->vfs, who->fs);
}

void vfs_stat_linked(const struct vfs_who *who, const struct vfs_place *place, struct statx *st)
{
	const struct linked *linked = who->fs->linked;

	if (!linked || !linked->to || (place->node != linked->from && place->node != linked->to))
		return;
	st->stx_dev_major = linked->dev_major;
	st->stx_dev_minor = linked->dev_minor;
	st->stx_ino = linked->ino;
}
