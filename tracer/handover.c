#include "tracer/handover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct processes {
	pid_t *tgids;
	size_t count, room;
};

static void add_process(void *context, const struct call *call)
{
	struct processes *all = context;

	if (all->count == all->room) {
		size_t room = all->room ? all->room * 2 : 64;
		pid_t *grown = realloc(all->tgids, room * sizeof(*grown));

		if (!grown)
			return;
		all->tgids = grown;
		all->room = room;
	}
	all->tgids[all->count++] = call->tgid;
}

static int compare_pids(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

/* fs/proc/fd.c: "flags" are open(2)'s in octal. Those that a new open can have. */
static int flags_of(pid_t tgid, const char *fd)
{
	char path[64], line[64];
	unsigned long flags = 0;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", tgid, fd);
	info = fopen(path, "re");
	if (!info)
		return -1;
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "flags: %lo", &flags) == 1)
			break;
	fclose(info);
	return flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_PATH | O_CLOEXEC);
}

static void replace_one(struct engine *engine, pid_t tgid, const char *fd, const struct vfs_handover *handover)
{
	struct engine_replacement replacement = {
		.tgid = tgid, .guest_fd = atoi(fd), .flags = flags_of(tgid, fd), .offset = ENGINE_OFFSET_KEEP,
		.old_dev = handover->dev, .old_ino = handover->ino,
	};

	if (replacement.flags < 0)
		return;
	replacement.fd = fcntl(handover->fd, F_DUPFD_CLOEXEC, 3);
	if (replacement.fd >= 0)
		engine_replace_fd(engine, &replacement);
}

static void look_through(struct engine *engine, pid_t tgid, const struct vfs_handover *handover)
{
	char path[64];
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", tgid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_dev == handover->dev &&
		    st.st_ino == handover->ino)
			replace_one(engine, tgid, entry->d_name, handover);
	if (dir)
		closedir(dir);
}

bool handover_all(struct vfs *vfs, struct engine *engine)
{
	struct processes all = { 0 };
	struct vfs_handover handover;
	bool any = false;

	while (vfs_handover(vfs, &handover)) {
		any = true;
		if (!all.count) {
			engine_each(engine, add_process, &all);
			qsort(all.tgids, all.count, sizeof(*all.tgids), compare_pids);
		}
		for (size_t i = 0; i < all.count; i++)
			if (i == 0 || all.tgids[i] != all.tgids[i - 1])
				look_through(engine, all.tgids[i], &handover);
		close(handover.fd);
	}
	free(all.tgids);
	return any;
}
