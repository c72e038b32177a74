/*
 * handover.c - read-only descriptors of lower files that are copied up later.
 *
 * Which files were given to guests is remembered in a Bloom filter: it never forgets one, and its size does not depend on what
 * guests do. What it remembers wrongly costs a look through the guests' descriptors.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/internal.h"

enum { FILTER_BITS = 1 << 20 };

struct handover {
	struct handover *next;
	struct vfs_handover told;
};

static void filter_bits(uint64_t dev, uint64_t ino, uint32_t bits[2])
{
	uint64_t hash = (ino + dev * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;

	bits[0] = (hash >> 20) % FILTER_BITS;
	bits[1] = (hash >> 42) % FILTER_BITS;
}

void readers_add(struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	uint32_t bits[2];

	if (!vfs->readers)
		vfs->readers = calloc(FILTER_BITS / 64, sizeof(*vfs->readers));
	if (!vfs->readers)
		return;
	filter_bits(dev, ino, bits);
	for (int i = 0; i < 2; i++)
		vfs->readers[bits[i] / 64] |= 1ULL << bits[i] % 64;
}

static bool is_reader(const struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	uint32_t bits[2];

	if (!vfs->readers)
		return false;
	filter_bits(dev, ino, bits);
	return vfs->readers[bits[0] / 64] >> bits[0] % 64 & vfs->readers[bits[1] / 64] >> bits[1] % 64 & 1;
}

/* Whether a guest has had the lower file of NODE open. */
bool reader_was(const struct vfs *vfs, const struct vfs_node *node)
{
	return node->type == DT_REG && !node->in_upper && node->mount->overlay && is_reader(vfs, node->dev, node->ino);
}

/* Whether a guest has the lower file of NODE open. Then it is copied up before its name goes: the open file must have no name, too. */
bool reader_holds(struct vfs *vfs, const struct vfs_node *node)
{
	const struct vfs_guests *guests = vfs->options.guests;

	if (node->type != DT_REG || node->in_upper || !node->mount->overlay || !is_reader(vfs, node->dev, node->ino))
		return false;
	return guests && guests->holds && guests->holds(vfs->options.guests_context, makedev(node->dev >> 32, (uint32_t)node->dev), node->ino);
}

/* The lower file was copied to FD, an O_PATH descriptor that is taken over. Whether guests may hold the lower; if not, FD stays the
   caller's. */
bool handover_put(struct vfs *vfs, const struct statx *lower, int fd)
{
	struct handover *handover;

	if (!is_reader(vfs, (uint64_t)lower->stx_dev_major << 32 | lower->stx_dev_minor, lower->stx_ino))
		return false;
	handover = calloc(1, sizeof(*handover));
	if (!handover)
		return false;
	handover->told = (struct vfs_handover){ makedev(lower->stx_dev_major, lower->stx_dev_minor), lower->stx_ino, fd };
	handover->next = vfs->handovers;
	vfs->handovers = handover;
	return true;
}

/* NODE was copied up from LOWER. Whether guests may hold the lower. */
bool handover_add(const struct vfs_who *who, struct vfs_node *node, const struct statx *lower)
{
	int fd = node_view(who, node);

	if (fd < 0)
		return false;
	if (handover_put(who->vfs, lower, fd))
		return true;
	close(fd);
	return false;
}

bool vfs_handover(struct vfs *vfs, struct vfs_handover *told)
{
	struct handover *handover = vfs->handovers;

	if (!handover)
		return false;
	*told = handover->told;
	vfs->handovers = handover->next;
	free(handover);
	return true;
}

void handovers_free(struct vfs *vfs)
{
	struct vfs_handover told;

	while (vfs_handover(vfs, &told))
		close(told.fd);
	free(vfs->readers);
}
