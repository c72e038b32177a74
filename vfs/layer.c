/*
 * layer.c - changes of the upper: copying up, whiteouts, marks of directories, links.
 *
 * All of it is done with the supervisor's own credentials: what is made here existed before the guest came, or stands for its
 * absence. What a copy-up adds to a directory of the upper was there before in the guest's eyes, so the directory's times are
 * put back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/copy.h"
#include "vfs/internal.h"
#include "vfs/origin.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

enum { BIG_FILE = 4 << 20 }; /* bytes: the copy of a smaller one is shorter than a scheduler's slice */

struct index_entry {
	struct index_entry *next;
	uint64_t dev, ino;
};

/* A copy under way, or failed and not asked for yet. */
struct copy_wait {
	struct copy_wait *next;
	struct copy_job job;
	struct vfs_node *node;
	struct statx st;
	char temp[16];
	bool failed;
	int result;
};

/* --- directories of the upper that are not writable --------------------------------------------------------------------------
   Their mode is the guest's business; what we put there is not. */

int upper_unlock(struct upper_lock *o, int dirfd)
{
	struct stat st;

	*o = (struct upper_lock){ .fd = dirfd };
	if (dirfd < 0 || fstat(dirfd, &st))
		return dirfd < 0 ? dirfd : -errno;
	o->mode = st.st_mode & 07777;
	o->times[0] = st.st_atim;
	o->times[1] = st.st_mtim;
	if ((st.st_mode & 0700) != 0700 && geteuid() != 0)
		o->changed = chmod(fd_path(dirfd).text, o->mode | 0700) == 0;
	return 0;
}

void upper_relock(struct upper_lock *o, bool times)
{
	int saved = errno;

	if (o->changed)
		chmod(fd_path(o->fd).text, o->mode);
	if (times)
		utimensat(AT_FDCWD, fd_path(o->fd).text, o->times, 0);
	errno = saved;
}

static void temp_name(struct vfs *vfs, char name[16])
{
	snprintf(name, 16, "t%x", vfs->serial++);
}

/* --- directories -------------------------------------------------------------------------------------------------------------- */

/* A new directory of the upper gets the lower's attributes, or says that they are the lower's where it cannot have them. */
static int dress(int lower_fd, int upper_fd, bool *scaffold)
{
	struct mark mark = { .scaffold = true };
	struct statx lower, own;
	int error;

	if (statx(lower_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &lower))
		return -errno;
	error = copy_attributes(lower_fd, upper_fd, &lower, true);
	if (error < 0)
		return error;
	if (statx(upper_fd, "", AT_EMPTY_PATH, STATX_UID | STATX_GID | STATX_MODE, &own))
		return -errno;
	*scaffold = own.stx_uid != lower.stx_uid || own.stx_gid != lower.stx_gid;
	if (!*scaffold)
		return 0;
	if (chmod(fd_path(upper_fd).text, 0700))
		return -errno;
	return mark_write(upper_fd, &mark);
}

/* Guests that have the lower directory open get the upper's, so that its number is the same by descriptor and by name. */
static int hand_over_dir(struct vfs *vfs, struct vfs_node *dir, int lower_fd)
{
	struct vfs_who own = { .vfs = vfs, .cred = &vfs->own };
	struct statx lower;
	struct stat st;

	if (statx(lower_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &lower) || !handover_add(&own, dir, &lower))
		return 0;
	if (fstat(dir->upper_fd, &st) == 0)
		dirs_add(vfs, st.st_dev, st.st_ino, dir);
	return -EINPROGRESS;
}

/* One step: the parent is there. */
static int make_dir(struct vfs *vfs, struct vfs_node *dir)
{
	struct upper_lock parent;
	int lower = dir_lower(vfs, dir), up = dir_upper(vfs, dir->parent), fd, error;

	if (lower < 0 || up < 0)
		return lower < 0 ? lower : up;
	error = upper_unlock(&parent, up);
	if (error < 0)
		return error;
	error = mkdirat(up, dir->name, 0700) && errno != EEXIST ? -errno : 0;
	fd = error ? -1 : openat(up, dir->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (error == 0 && fd < 0)
		error = -errno;
	if (error == 0)
		error = dress(lower, fd, &dir->scaffold);
	if (error < 0) {
		unlinkat(up, dir->name, AT_REMOVEDIR);
		if (fd >= 0)
			close(fd);
	} else {
		dir->upper_fd = fd;
		dir->in_upper = true;
		dir->search = SEARCH_UNKNOWN;
		listing_stale(dir->parent); /* its number is another one */
		vfs->fd_count++;
		vfs->counts.copied_up++;
	}
	upper_relock(&parent, true);
	return error == 0 && !dir->scaffold ? hand_over_dir(vfs, dir, lower) : error;
}

/* The descriptor of the directory in the upper; it and those above it are made where they are missing. */
int layer_dir(struct vfs *vfs, struct vfs_node *dir)
{
	struct vfs_node *missing;
	int error = 0;

	if (dir->dead && !dir->in_upper)
		return -ENOENT;
	while (error == 0 && !dir->in_upper) {
		for (missing = dir; missing->parent && !missing->parent->in_upper;)
			missing = missing->parent;
		error = missing->parent ? make_dir(vfs, missing) : -EROFS;
	}
	return error < 0 ? error : dir_upper(vfs, dir);
}

/* --- links -------------------------------------------------------------------------------------------------------------------- */

static struct index_entry **index_find(const struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	struct index_entry **at = &vfs->indexed[(ino * 31 + dev) & (vfs->index_size - 1)];

	while (*at && ((*at)->dev != dev || (*at)->ino != ino))
		at = &(*at)->next;
	return at;
}

bool layer_is_indexed(const struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	return vfs->index_count && *index_find(vfs, dev, ino);
}

static int index_grow(struct vfs *vfs)
{
	size_t size = vfs->index_size ? vfs->index_size * 2 : 64;
	struct index_entry **grown = calloc(size, sizeof(*grown)), **old = vfs->indexed, *entry, *next;

	if (!grown)
		return -ENOMEM;
	for (size_t i = 0; i < vfs->index_size; i++) {
		for (entry = old[i]; entry; entry = next) {
			next = entry->next;
			entry->next = grown[(entry->ino * 31 + entry->dev) & (size - 1)];
			grown[(entry->ino * 31 + entry->dev) & (size - 1)] = entry;
		}
	}
	free(old);
	vfs->indexed = grown;
	vfs->index_size = size;
	return 0;
}

static int index_add(struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	struct index_entry *entry, **at;

	if (vfs->index_count >= vfs->index_size && index_grow(vfs) < 0)
		return -ENOMEM;
	at = index_find(vfs, dev, ino);
	if (*at)
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->dev = dev;
	entry->ino = ino;
	*at = entry;
	vfs->index_count++;
	return 0;
}

/* st_dev as stat(2) gives it, which the names in the index hold. */
static uint64_t stat_dev(uint64_t dev)
{
	return makedev(dev >> 32, (uint32_t)dev);
}

static void index_name(char name[40], uint64_t dev, uint64_t ino)
{
	snprintf(name, 40, "%llx.%llx", (unsigned long long)stat_dev(dev), (unsigned long long)ino);
}

static int index_load(struct vfs *vfs, struct upper *upper)
{
	int fd = openat(upper->index_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	unsigned long long dev, ino;
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	while (error == 0 && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "%llx.%llx", &dev, &ino) == 2)
			error = index_add(vfs, (uint64_t)major(dev) << 32 | minor(dev), ino);
	closedir(dir);
	return error;
}

/* A copied-up file keeps as many links as the lower has: those that have no name in the upper yet wait in the index. */
static int index_make(struct vfs *vfs, struct upper *upper, const char *temp, const struct statx *st)
{
	uint64_t dev = (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
	char name[40], number[16];
	int fd, error = 0;

	index_name(name, dev, st->stx_ino);
	if (mkdirat(upper->index_fd, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(upper->index_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (unsigned i = 0; error == 0 && i + 1 < st->stx_nlink; i++) {
		snprintf(number, sizeof(number), "%u", i);
		if (linkat(upper->work_fd, temp, fd, number, 0))
			error = -errno;
	}
	close(fd);
	if (error == 0)
		error = index_add(vfs, dev, st->stx_ino);
	nodes_doubt(vfs, dev, st->stx_ino);
	return error;
}

/* One of the waiting links gets its name. -ENOENT when there is none. */
static int index_take(struct upper *upper, const char *index, int to, const char *name)
{
	int fd = openat(upper->index_fd, index, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = -ENOENT;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -ENOENT;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		error = renameat(dirfd(dir), entry->d_name, to, name) ? -errno : 0;
		break;
	}
	closedir(dir);
	return error;
}

static void now_in_upper(struct vfs_node *node)
{
	node->in_upper = true;
	node->in_lower = false;
	free(node->link);
	node->link = NULL;
	listing_stale(node->parent); /* its number is another one */
}

/* NODE is another link of a lower file that was copied up. */
int layer_alias(struct vfs *vfs, struct vfs_node *node, const struct statx *lower)
{
	struct upper_lock parent;
	char name[40];
	int up = layer_dir(vfs, node->parent), error;

	if (up < 0)
		return up;
	index_name(name, (uint64_t)lower->stx_dev_major << 32 | lower->stx_dev_minor, lower->stx_ino);
	error = upper_unlock(&parent, up);
	if (error < 0)
		return error;
	error = index_take(node->mount->upper, name, up, node->name);
	upper_relock(&parent, true);
	if (error == -ENOENT)
		return 0; /* the host gave it one more link since */
	if (error == 0)
		now_in_upper(node);
	return error;
}

/* --- files -------------------------------------------------------------------------------------------------------------------- */

static void note_origin(struct vfs *vfs, struct vfs_node *node, int fd, const struct statx *st)
{
	struct upper *upper = node->mount->upper;
	char path[PATH_LONGEST];
	struct origin origin;
	struct statx own;

	if (upper->origins_fd < 0 || node_lower_path(vfs, node, path, sizeof(path)) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &own))
		return;
	origin = origin_of(&own, st, path);
	origin_append(upper->origins_fd, &origin); /* without it a commit takes the host's file for a changed one */
}

/* The whole copy gets its name. */
static int publish(struct vfs *vfs, struct vfs_node *node, const char *temp, const struct statx *st)
{
	struct vfs_who own = { .vfs = vfs, .cred = &vfs->own };
	struct upper *upper = node->mount->upper;
	struct upper_lock parent;
	int up = layer_dir(vfs, node->parent), fd, error;

	if (up < 0)
		return up;
	fd = openat(upper->work_fd, temp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = !S_ISDIR(st->stx_mode) && st->stx_nlink > 1 ? index_make(vfs, upper, temp, st) : 0;
	if (error == 0)
		error = upper_unlock(&parent, up);
	if (error == 0) {
		error = renameat(upper->work_fd, temp, up, node->name) ? -errno : 0;
		upper_relock(&parent, true);
	}
	if (error == 0) {
		note_origin(vfs, node, fd, st);
		now_in_upper(node);
		vfs->counts.copied_up++;
		vfs->counts.copied_bytes += st->stx_size;
		if (S_ISREG(st->stx_mode) && handover_add(&own, node, st))
			error = -EINPROGRESS;
	}
	close(fd);
	return error;
}

/* An open of the lower's own file, of which nothing is changed. */
static int open_source(int fd, const char *name)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, from = openat(fd, name, flags | O_NOATIME);

	if (from < 0 && errno == EPERM)
		from = openat(fd, name, flags);
	return from < 0 ? -errno : from;
}

static int copy_small(struct upper *upper, int from, const char *temp, const struct statx *st, bool data)
{
	int to = openat(upper->work_fd, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error = 0;

	if (to < 0)
		return -errno;
	if (data)
		error = copy_data(from, to, st->stx_size, NULL);
	if (error == 0)
		error = copy_attributes(from, to, st, true);
	close(to);
	return error;
}

static void copy_end(struct vfs *vfs, struct copy_wait *wait)
{
	struct copy_wait **at = &vfs->copies;

	while (*at != wait)
		at = &(*at)->next;
	*at = wait->next;
	vfs_node_unref(vfs, wait->node);
	free(wait);
}

static void copy_release(struct copy_wait *wait)
{
	if (wait->job.from >= 0)
		close(wait->job.from);
	if (wait->job.to >= 0)
		close(wait->job.to);
	wait->job.from = wait->job.to = -1;
}

/* Whether the lower is still what was copied. */
static bool is_unchanged(const struct copy_wait *wait)
{
	struct statx st;

	return statx(wait->job.from, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 && st.stx_size == wait->st.stx_size &&
	       st.stx_mtime.tv_sec == wait->st.stx_mtime.tv_sec && st.stx_mtime.tv_nsec == wait->st.stx_mtime.tv_nsec;
}

/* The worker has ended. 0, or -errno for who asks next. */
static int copy_finish(struct vfs *vfs, struct copy_wait *wait)
{
	struct vfs_node *node = wait->node;
	int error = copy_wait(&wait->job);

	if (error == 0 && !is_unchanged(wait))
		error = -EAGAIN;
	if (error == 0)
		error = copy_attributes(wait->job.from, wait->job.to, &wait->st, true);
	copy_release(wait);
	if (error == 0 && node->hashed && !node->in_upper && node->in_lower)
		error = publish(vfs, node, wait->temp, &wait->st);
	unlinkat(node->mount->upper->work_fd, wait->temp, 0); /* where it was not published */
	return error == -EAGAIN || error == -ECANCELED || error == -EINPROGRESS ? 0 : error; /* asked again, from the start */
}

static int copy_big(struct vfs *vfs, struct vfs_node *node, int from, const struct statx *st)
{
	struct upper *upper = node->mount->upper;
	struct copy_wait *wait = calloc(1, sizeof(*wait));
	int error;

	if (!wait)
		return -ENOMEM;
	temp_name(vfs, wait->temp);
	wait->st = *st;
	wait->job = (struct copy_job){ .from = fcntl(from, F_DUPFD_CLOEXEC, 3), .size = st->stx_size, .notify = vfs->options.notify,
	                               .arg = vfs->options.notify_context };
	wait->job.to = openat(upper->work_fd, wait->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	error = wait->job.from < 0 || wait->job.to < 0 ? -errno : copy_start(&wait->job);
	if (error < 0) {
		unlinkat(upper->work_fd, wait->temp, 0);
		copy_release(wait);
		free(wait);
		return error;
	}
	wait->node = vfs_node_ref(node);
	wait->next = vfs->copies;
	vfs->copies = wait;
	return -EINPROGRESS;
}

/* The copy of this node that is under way, or has failed. 1: there is none. */
static int copy_ask(struct vfs *vfs, struct vfs_node *node)
{
	struct copy_wait *wait;
	int error;

	for (wait = vfs->copies; wait && wait->node != node; wait = wait->next)
		;
	if (!wait)
		return 1;
	if (!wait->failed)
		return -EINPROGRESS;
	error = wait->result;
	copy_end(vfs, wait);
	return error;
}

bool vfs_done(struct vfs *vfs)
{
	struct copy_wait *wait, *next;
	bool any = false;

	for (wait = vfs->copies; wait; wait = next) {
		next = wait->next;
		if (wait->failed || !copy_done(&wait->job))
			continue;
		any = true;
		wait->result = copy_finish(vfs, wait);
		wait->failed = wait->result < 0;
		if (!wait->failed)
			copy_end(vfs, wait);
	}
	return any;
}

bool vfs_copying(const struct vfs *vfs)
{
	for (const struct copy_wait *wait = vfs->copies; wait; wait = wait->next)
		if (!wait->failed)
			return true;
	return false;
}

static int copy_regular(struct vfs *vfs, struct vfs_node *node, int lower, const char *temp, bool data)
{
	int from = open_source(lower, node->name), error;
	struct statx st;

	if (from < 0)
		return from;
	error = statx(from, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) ? -errno : 0;
	if (error == 0 && !S_ISREG(st.stx_mode))
		error = -EAGAIN;
	if (error == 0 && data && st.stx_size > BIG_FILE && vfs->options.notify) {
		error = copy_big(vfs, node, from, &st);
		if (error != -EAGAIN) { /* otherwise there is no thread to be had */
			close(from);
			return error;
		}
		error = 0;
	}
	if (error == 0)
		error = copy_small(node->mount->upper, from, temp, &st, data);
	close(from);
	return error < 0 ? error : publish(vfs, node, temp, &st);
}

/* An unreadable file that is to be emptied needs no reading. */
static int copy_empty(struct vfs *vfs, struct vfs_node *node, int lower, const char *temp)
{
	int from = openat(lower, node->name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;
	struct statx st;

	if (from < 0)
		return -errno;
	error = statx(from, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) ? -errno : 0;
	if (error == 0)
		error = copy_small(node->mount->upper, from, temp, &st, false);
	close(from);
	return error < 0 ? error : publish(vfs, node, temp, &st);
}

static int copy_other(struct vfs *vfs, struct vfs_node *node, int lower, const char *temp)
{
	struct statx st;
	int error;

	if (statx(lower, node->name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st))
		return -errno;
	error = copy_object(lower, node->name, node->mount->upper->work_fd, temp);
	return error < 0 ? error : publish(vfs, node, temp, &st);
}

/* What is not a directory is there in the upper afterwards; without DATA an empty file with the attributes. -EINPROGRESS. */
int layer_copy_up(const struct vfs_who *who, struct vfs_node *node, bool data)
{
	struct vfs *vfs = who->vfs;
	char temp[16];
	int lower, error;

	if (node->in_upper)
		return 0;
	error = copy_ask(vfs, node);
	if (error <= 0)
		return node->in_upper ? 0 : error ? error : -EIO;
	error = layer_dir(vfs, node->parent);
	if (error < 0)
		return error;
	lower = dir_lower(vfs, node->parent);
	if (lower < 0)
		return lower;
	temp_name(vfs, temp);
	if (node->type != DT_REG)
		error = copy_other(vfs, node, lower, temp);
	else
		error = data ? copy_regular(vfs, node, lower, temp, true) : copy_empty(vfs, node, lower, temp);
	if (error < 0 && error != -EINPROGRESS)
		unlinkat(node->mount->upper->work_fd, temp, 0);
	return error;
}

/* A file of the lower whose name was removed from the view, and which a guest still has open. Who has it gets the copy. */
int layer_copy_object(const struct vfs_who *who, int fd)
{
	struct vfs *vfs = who->vfs;
	struct upper *upper = vfs->options.upper;
	struct statx st;
	char temp[16];
	int from, copy, error;

	if (!upper || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) || !S_ISREG(st.stx_mode))
		return -EROFS;
	from = open(fd_path(fd).text, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return -errno;
	temp_name(vfs, temp);
	error = copy_small(upper, from, temp, &st, true);
	close(from);
	copy = error < 0 ? error : openat(upper->work_fd, temp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	unlinkat(upper->work_fd, temp, 0);
	if (copy >= 0 && handover_put(vfs, &st, copy))
		return -EINPROGRESS;
	return copy;
}

/* A directory of the lower that was removed, and is a guest's working directory still: what is changed of it, nobody else sees. */
int layer_dead_dir(struct vfs *vfs, struct upper *upper)
{
	char temp[16];
	int fd;

	temp_name(vfs, temp);
	if (mkdirat(upper->work_fd, temp, 0700))
		return -errno;
	fd = openat(upper->work_fd, temp, O_PATH | O_DIRECTORY | O_CLOEXEC);
	unlinkat(upper->work_fd, temp, AT_REMOVEDIR);
	return fd < 0 ? -errno : fd;
}

/* The mark of a directory whose mode may deny it. */
int layer_mark_read(int fd, struct mark *mark)
{
	struct upper_lock lock;
	int error = mark_read(fd, mark);

	if (error != -EACCES || upper_unlock(&lock, fd) < 0)
		return error;
	error = mark_read(fd, mark);
	upper_relock(&lock, false);
	return error;
}

int layer_mark_write(int fd, const struct mark *mark)
{
	struct upper_lock lock;
	int error = upper_unlock(&lock, fd);

	if (error < 0)
		return error;
	error = mark_write(fd, mark);
	upper_relock(&lock, false);
	return error;
}

/* --- absence ------------------------------------------------------------------------------------------------------------------ */

/* NAME was removed from the view. Where the lower has it, that must be said. */
int layer_hide(struct vfs *vfs, struct vfs_node *dir, const char *name)
{
	struct upper_lock opened;
	struct stat st;
	int up, error;

	if (!lower_has(vfs, dir, name, &st))
		return 0;
	up = layer_dir(vfs, dir);
	if (up < 0)
		return up;
	error = upper_unlock(&opened, up);
	if (error < 0)
		return error;
	error = mark_whiteout(up, name);
	upper_relock(&opened, false);
	return error;
}

/* Takes NAME from the upper in one step, a whiteout staying behind where the lower has it. */
int layer_remove(struct vfs *vfs, struct vfs_node *dir, const char *name)
{
	struct upper *upper = dir->mount->upper;
	struct upper_lock opened;
	struct stat st;
	char temp[16];
	int up = layer_dir(vfs, dir), error;

	if (up < 0)
		return up;
	error = upper_unlock(&opened, up);
	if (error < 0)
		return error;
	if (lower_has(vfs, dir, name, &st)) {
		temp_name(vfs, temp);
		error = mark_whiteout(upper->work_fd, temp);
		if (error == 0 && renameat(upper->work_fd, temp, up, name)) {
			error = -errno;
			unlinkat(upper->work_fd, temp, 0);
		}
	} else if (unlinkat(up, name, 0)) {
		error = -errno;
	}
	upper_relock(&opened, false);
	return error;
}

/* Only marks and whiteouts are left in it. */
static int empty_dir(int work, const char *name)
{
	int fd = openat(work, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), error = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	while (error == 0 && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(fd, entry->d_name, 0))
			error = -errno;
	}
	closedir(dir);
	if (error == 0 && unlinkat(work, name, AT_REMOVEDIR))
		error = -errno;
	return error;
}

static int swap_for_whiteout(struct upper *upper, int up, const char *name, const char *temp)
{
	int error = mark_whiteout(upper->work_fd, temp);

	if (error < 0)
		return error;
	if (renameat2(upper->work_fd, temp, up, name, RENAME_EXCHANGE) == 0)
		return 0;
	unlinkat(upper->work_fd, temp, 0);
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (renameat(up, name, upper->work_fd, temp)) /* a file system without the exchange */
		return -errno;
	return mark_whiteout(up, name);
}

/* A directory that is empty in the view goes; the caller says what is at its name then. */
int layer_discard_dir(struct vfs *vfs, struct vfs_node *node)
{
	struct upper *upper = node->mount->upper;
	struct upper_lock parent, own = { .fd = -1 };
	struct stat st;
	char temp[16];
	bool gone = false;
	int up = layer_dir(vfs, node->parent), error;

	if (up < 0)
		return up;
	if (!node->in_upper)
		return layer_hide(vfs, node->parent, node->name);
	error = upper_unlock(&parent, up);
	if (error == 0)
		error = upper_unlock(&own, dir_upper(vfs, node));
	if (error < 0)
		return error;
	temp_name(vfs, temp);
	if (lower_has(vfs, node->parent, node->name, &st))
		error = swap_for_whiteout(upper, up, node->name, temp);
	else if (unlinkat(up, node->name, AT_REMOVEDIR) == 0) /* nothing of ours is in it: told by inotify for what it is */
		gone = true;
	else
		error = renameat(up, node->name, upper->work_fd, temp) ? -errno : 0;
	upper_relock(&parent, false);
	if (error == 0 && !gone)
		error = empty_dir(upper->work_fd, temp);
	upper_relock(&own, error < 0); /* guests may have it open still */
	return error;
}

/* --- life ---------------------------------------------------------------------------------------------------------------------- */

/* The directories of the upper down to a mount's root. */
int layer_mount_root(struct vfs *vfs, struct vfs_mount *mount)
{
	int fd = fcntl(mount->upper->fs_fd, F_DUPFD_CLOEXEC, 3), next, lower;
	const char *at = mount->path;
	struct mark mark;
	char host[PATH_LONGEST], name[NAME_LONGEST + 1];
	bool made = false, scaffold = false;
	int error = 0;

	while (fd >= 0 && error == 0 && *(at += strspn(at, "/"))) {
		size_t len = strcspn(at, "/");

		if (len > NAME_LONGEST)
			return -ENAMETOOLONG;
		memcpy(name, at, len);
		name[len] = 0;
		at += len;
		made = mkdirat(fd, name, 0700) == 0;
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next >= 0 && made) {
			snprintf(host, sizeof(host), "%.*s", (int)(at - mount->path), mount->path);
			lower = open(host, O_PATH | O_DIRECTORY | O_CLOEXEC);
			error = lower < 0 ? 0 : dress(lower, next, &scaffold);
			if (lower >= 0)
				close(lower);
		}
		close(fd);
		fd = next;
	}
	if (fd < 0)
		return -errno;
	if (error == 0 && mount->path[1] == 0 && mount->source) { /* the upper's own root stands for / */
		struct stat own, host_st;

		if (fstat(fd, &own) == 0 && fstat(vfs->host_root, &host_st) == 0 && mark_read(fd, &mark) == -ENOENT &&
		    (own.st_mode != host_st.st_mode || own.st_uid != host_st.st_uid || own.st_gid != host_st.st_gid))
			error = dress(vfs->host_root, fd, &scaffold);
	}
	if (error == 0) {
		error = mark_read(fd, &mark);
		mount->root->scaffold = error == 0 && mark.scaffold && mount->source;
		mount->root->opaque = !mount->source;
		error = error == -ENOENT ? 0 : error;
	}
	mount->root->upper_fd = fd;
	mount->root->in_upper = true;
	return error;
}

int layer_open(struct vfs *vfs)
{
	int error = 0;

	if (vfs->options.upper)
		error = index_load(vfs, vfs->options.upper);
	return error;
}

void layer_end(struct vfs *vfs)
{
	struct index_entry *entry, *next;

	while (vfs->copies) {
		struct copy_wait *wait = vfs->copies;

		if (!wait->failed) {
			copy_cancel(&wait->job);
			copy_wait(&wait->job);
			copy_release(wait);
			unlinkat(wait->node->mount->upper->work_fd, wait->temp, 0);
		}
		copy_end(vfs, wait);
	}
	for (size_t i = 0; i < vfs->index_size; i++) {
		for (entry = vfs->indexed[i]; entry; entry = next) {
			next = entry->next;
			free(entry);
		}
	}
	free(vfs->indexed);
}
