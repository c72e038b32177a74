#include "tracer/handover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct process {
	pid_t tgid, tid;
};

struct processes {
	struct process *list; /* one for each task, until processes_all() has sorted them out */
	size_t count, room;
};

static void add_task(void *context, const struct call *call)
{
	struct processes *all = context;

	if (all->count == all->room) {
		size_t room = all->room ? all->room * 2 : 64;
		struct process *grown = realloc(all->list, room * sizeof(*grown));

		if (!grown)
			return;
		all->list = grown;
		all->room = room;
	}
	all->list[all->count++] = (struct process){ call->tgid, call->tid };
}

static int compare_tasks(const void *a, const void *b)
{
	const struct process *one = a, *other = b;

	return one->tgid != other->tgid ? one->tgid - other->tgid : one->tid - other->tid;
}

/* Each process once, by the last of its tasks: /proc shows nothing of a leader that has exited before its threads. */
static void processes_all(struct engine *engine, struct processes *all)
{
	size_t count = 0;

	engine_each(engine, add_task, all);
	if (all->count)
		qsort(all->list, all->count, sizeof(*all->list), compare_tasks);
	for (size_t i = 0; i < all->count; i++)
		if (i + 1 == all->count || all->list[i].tgid != all->list[i + 1].tgid)
			all->list[count++] = all->list[i];
	all->count = count;
}

/* fs/proc/fd.c: "flags" are open(2)'s in octal. Those that a new open can have. */
static int flags_of(pid_t tid, const char *fd)
{
	char path[64], line[64];
	unsigned long flags = 0;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", tid, fd);
	info = fopen(path, "re");
	if (!info)
		return -1;
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "flags: %lo", &flags) == 1)
			break;
	fclose(info);
	return flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void replace_one(struct engine *engine, const struct process *process, const char *fd, const struct vfs_handover *handover)
{
	struct engine_replacement replacement = {
		.tgid = process->tgid, .guest_fd = atoi(fd), .flags = flags_of(process->tid, fd), .offset = ENGINE_OFFSET_KEEP,
		.old_dev = handover->dev, .old_ino = handover->ino,
	};

	if (replacement.flags < 0 || replacement.flags & O_PATH)
		return;
	replacement.fd = fcntl(handover->fd, F_DUPFD_CLOEXEC, 3);
	if (replacement.fd >= 0)
		engine_replace_fd(engine, &replacement);
}

/* A process may have mapped the file and closed the descriptor. */
static void remap(struct engine *engine, const struct process *process, const struct vfs_handover *handover)
{
	struct engine_remapping remapping = { .tid = process->tid, .old_dev = handover->dev, .old_ino = handover->ino };
	struct stat st;

	if (fstat(handover->fd, &st) || !S_ISREG(st.st_mode))
		return;
	remapping.fd = fcntl(handover->fd, F_DUPFD_CLOEXEC, 3);
	if (remapping.fd >= 0)
		engine_remap(engine, &remapping);
}

static void look_through(struct engine *engine, const struct process *process, const struct vfs_handover *handover)
{
	char path[64];
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", process->tid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_dev == handover->dev &&
		    st.st_ino == handover->ino)
			replace_one(engine, process, entry->d_name, handover);
	if (dir)
		closedir(dir);
	remap(engine, process, handover);
}

bool handover_all(struct vfs *vfs, struct engine *engine)
{
	struct processes all = { 0 };
	struct vfs_handover handover;
	bool any = false;

	while (vfs_handover(vfs, &handover)) {
		any = true;
		if (!all.count)
			processes_all(engine, &all);
		for (size_t i = 0; i < all.count; i++)
			look_through(engine, &all.list[i], &handover);
		close(handover.fd);
	}
	free(all.list);
	return any;
}

static bool holds(pid_t tid, dev_t dev, ino_t ino)
{
	char path[64];
	struct dirent *entry;
	bool found = false;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", tid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_dev == dev && st.st_ino == ino;
	if (dir)
		closedir(dir);
	return found;
}

bool handover_is_held(struct engine *engine, dev_t dev, ino_t ino)
{
	struct processes all = { 0 };
	bool found = false;

	processes_all(engine, &all);
	for (size_t i = 0; i < all.count && !found; i++)
		found = holds(all.list[i].tid, dev, ino);
	free(all.list);
	return found;
}
