/*
 * watch.c - keeps what is cached of the host's tree true.
 *
 * Each directory of a lower in which names were looked up more than once is watched by inotify. The kernel queues an event, and
 * sends the SIGIO that the descriptor is armed with, before the system call that made the change returns: whoever learns of the
 * change afterwards, by whatever way, comes to us after the signal has set `changed`. So a walk needs no system call to know
 * that its cache is current, and is never late. Names of directories that cannot be watched (no right to read them, too many
 * watches, no inotify) are looked up again each time.
 *
 * A change that is told by no event cannot happen on a local file system. On those that other machines change (NFS, 9p, FUSE)
 * nothing is watched.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vfs/internal.h"

enum { EVENTS = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR };

/* linux/magic.h, fs/smb/client/cifsglob.h */
static const unsigned long remote_types[] = {
	0x6969,     /* nfs */
	0x65735546, /* fuse */
	0x01021997, /* 9p */
	0xff534d42, /* cifs */
	0xfe534d42, /* smb2 */
	0x517b,     /* smb */
	0x00c36400, /* ceph */
	0x5346414f, /* afs */
	0x73757245, /* coda */
	0x786f4256, /* vboxsf */
	0x9fa0,     /* proc: its names come and go without events */
	0x62656572, /* sysfs */
	0x27e0eb,   /* cgroup */
	0x63677270, /* cgroup2 */
};

void watch_init(struct vfs *vfs)
{
	vfs->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	vfs->next_gen = 1;
}

void watch_end(struct vfs *vfs)
{
	if (vfs->inotify >= 0)
		close(vfs->inotify);
	free(vfs->watched);
}

int vfs_watch_fd(const struct vfs *vfs)
{
	return vfs->inotify;
}

void vfs_host_changed(struct vfs *vfs)
{
	vfs->changed = 1;
}

static bool is_remote(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st))
		return true;
	for (size_t i = 0; i < sizeof(remote_types) / sizeof(remote_types[0]); i++)
		if ((unsigned long)st.f_type == remote_types[i])
			return true;
	return false;
}

static int watched_room(struct vfs *vfs, int wd)
{
	size_t size = vfs->watched_size ? vfs->watched_size : 64;
	struct vfs_node **grown;

	if ((size_t)wd < vfs->watched_size)
		return 0;
	while (size <= (size_t)wd)
		size *= 2;
	grown = realloc(vfs->watched, size * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + vfs->watched_size, 0, (size - vfs->watched_size) * sizeof(*grown));
	vfs->watched = grown;
	vfs->watched_size = size;
	return 0;
}

/* From now on: what was looked up before is looked up again. A directory may be seen at two places (bind): the kernel has one
   watch for both, and only one of them can be told of. */
void watch_add(struct vfs *vfs, struct vfs_node *dir)
{
	int wd;

	if (vfs->inotify < 0 || dir->watch_gen || dir->lower_fd < 0 || is_remote(dir->lower_fd))
		return;
	wd = inotify_add_watch(vfs->inotify, fd_path(dir->lower_fd).text, EVENTS);
	if (wd < 0)
		return;
	if (watched_room(vfs, wd) < 0 || (vfs->watched[wd] && vfs->watched[wd] != dir)) {
		if ((size_t)wd >= vfs->watched_size)
			inotify_rm_watch(vfs->inotify, wd);
		return;
	}
	vfs->watched[wd] = dir;
	dir->wd = wd;
	dir->watch_gen = ++vfs->next_gen;
}

void watch_drop(struct vfs *vfs, struct vfs_node *dir)
{
	if (dir->wd < 0)
		return;
	inotify_rm_watch(vfs->inotify, dir->wd);
	vfs->watched[dir->wd] = NULL;
	dir->wd = -1;
	dir->watch_gen = 0;
}

/* Events were lost: every name is looked up again. */
static void watch_overflow(struct vfs *vfs)
{
	for (size_t i = 0; i < vfs->watched_size; i++) {
		struct vfs_node *dir = vfs->watched[i];

		if (!dir)
			continue;
		dir->watch_gen = ++vfs->next_gen;
		dir->search = SEARCH_UNKNOWN;
		listing_stale(dir);
	}
}

static void watch_event(struct vfs *vfs, const struct inotify_event *event)
{
	struct vfs_node *dir, *child;

	if (event->mask & IN_Q_OVERFLOW) {
		watch_overflow(vfs);
		return;
	}
	if (event->wd < 0 || (size_t)event->wd >= vfs->watched_size || !vfs->watched[event->wd])
		return;
	dir = vfs->watched[event->wd];
	if (event->mask & IN_IGNORED) { /* the kernel has dropped it: the directory is gone, or unmounted */
		vfs->watched[event->wd] = NULL;
		dir->wd = -1;
		dir->watch_gen = 0;
		return;
	}
	if (event->mask & IN_ATTRIB)
		dir->search = SEARCH_UNKNOWN;
	if (!event->len)
		return;
	child = node_find(vfs, dir, event->name, strnlen(event->name, NAME_LONGEST));
	if (child) {
		child->gen = 0;
		if (event->mask & IN_ATTRIB)
			child->search = SEARCH_UNKNOWN;
	}
	if (!(event->mask & IN_ATTRIB))
		listing_stale(dir);
}

void watch_read(struct vfs *vfs)
{
	_Alignas(struct inotify_event) char buf[16 << 10];
	ssize_t n;

	vfs->changed = 0;
	while ((n = read(vfs->inotify, buf, sizeof(buf))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const struct inotify_event *)(buf + at);

			watch_event(vfs, event);
			at += sizeof(*event) + event->len;
		}
	}
}
