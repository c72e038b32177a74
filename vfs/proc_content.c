/*
 * proc_content.c - files of /proc that are made, since the kernel's would tell of the supervisor or of host paths.
 *
 * The text is that of the moment of the open, in a sealed memfd. Processes decide how much there is to read: it is streamed line
 * by line, and ends at MADE_MOST.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/special_impl.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

enum { MADE_MOST = 64 << 20, CHUNK = 64 << 10, OWN_MOST = 16, NAME_MOST = 240 };

/* --- writing ------------------------------------------------------------------------------------------------------------------- */

struct out {
	int fd;
	int error;
	size_t len, total;
	char buf[CHUNK];
};

static void out_flush(struct out *out)
{
	size_t done = 0;

	while (!out->error && done < out->len) {
		ssize_t n = write(out->fd, out->buf + done, out->len - done);

		if (n > 0)
			done += n;
		else if (n == 0 || errno != EINTR)
			out->error = n == 0 ? -EIO : -errno;
	}
	out->len = 0;
}

/* False when no more is wanted. */
static bool out_put(struct out *out, const char *text, size_t len)
{
	if (out->error || out->total + len > MADE_MOST)
		return false;
	if (out->len + len > sizeof(out->buf))
		out_flush(out);
	if (len > sizeof(out->buf))
		return false;
	memcpy(out->buf + out->len, text, len);
	out->len += len;
	out->total += len;
	return !out->error;
}

__attribute__((format(printf, 2, 3)))
static bool out_print(struct out *out, const char *format, ...)
{
	char text[2 * PATH_LONGEST + 256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return n >= 0 && (size_t)n < sizeof(text) && out_put(out, text, n);
}

/* The memfd has the file's own path as its name: what /proc/PID/fd/N says of it. */
static struct out *out_start(const struct vfs_who *who, const struct vfs_node *node)
{
	struct out *out = malloc(sizeof(*out));
	char name[PATH_LONGEST];

	if (!out)
		return NULL;
	if (node_guest_path(node, who->vfs->root, name, sizeof(name)) < 0 || strlen(name) > NAME_MOST)
		strcpy(name, "proc");
	out->error = 0;
	out->len = out->total = 0;
	out->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL); /* sysctl vm.memfd_noexec may demand it */
	if (out->fd < 0 && errno == EINVAL)
		out->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (out->fd < 0) {
		free(out);
		return NULL;
	}
	return out;
}

/* ERROR: what else went wrong. 1 with *FD. */
static int out_end(struct out *out, int error, int *fd)
{
	out_flush(out);
	if (error == 0)
		error = out->error;
	if (error == 0 && (fchmod(out->fd, 0444) || lseek(out->fd, 0, SEEK_SET) ||
	                   fcntl(out->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)))
		error = -errno;
	if (error < 0)
		close(out->fd);
	else
		*fd = out->fd;
	free(out);
	return error < 0 ? error : 1;
}

int proc_make_text(const struct vfs_who *who, const struct vfs_node *node, const char *text, int *fd)
{
	struct out *out = out_start(who, node);

	if (!out)
		return -ENOMEM;
	out_put(out, text, strlen(text));
	return out_end(out, 0, fd);
}

/* --- reading ------------------------------------------------------------------------------------------------------------------- */

/* Gives each line, with a NUL in the place of its newline, to LINE until that returns false. What is longer than the buffer comes
   in pieces. */
static int each_line(int fd, bool (*line)(void *context, char *text, size_t len), void *context)
{
	char *buf = malloc(CHUNK + 1), *end;
	size_t have = 0;
	bool more = true;
	ssize_t n = 0;

	if (!buf)
		return -ENOMEM;
	while (more) {
		char *at = buf;

		n = read(fd, buf + have, CHUNK - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (n == 0 && have == 0))
			break;
		have += n;
		while (more && have > 0 && ((end = memchr(at, '\n', have)) || n == 0 || (at == buf && have == CHUNK))) {
			size_t len = end ? (size_t)(end - at) : have;

			at[len] = 0;
			more = line(context, at, len);
			len += end != NULL;
			at += len;
			have -= len;
		}
		memmove(buf, at, have);
	}
	free(buf);
	return n < 0 ? -errno : 0;
}

/* --- host paths ---------------------------------------------------------------------------------------------------------------- */

/* On btrfs a mapping's device is not stat's: an upper is known by its path as well. */
static dev_t device_of(const struct upper *upper, dev_t dev, const char *path)
{
	size_t len = upper && upper->path ? strlen(upper->path) : 0;

	return len && !strncmp(path, upper->path, len) && path[len] == '/' ? upper->dev : dev;
}

ssize_t proc_guest_text(const struct vfs_who *who, dev_t dev, const char *text, char *out, size_t size)
{
	static const char deleted[] = " (deleted)";
	char host[PATH_LONGEST + 16], path[PATH_LONGEST], top[PATH_LONGEST];
	struct stat st = { .st_dev = device_of(who->vfs->options.upper, dev, text) };
	size_t len = strlen(text), top_len;
	const char *shown = path, *end = "";

	if (text[0] != '/' || len >= sizeof(host) || !strncmp(text, "/memfd:", 7))
		return (size_t)snprintf(out, size, "%s", text) < size ? (ssize_t)len : -ERANGE;
	strcpy(host, text);
	if (len > sizeof(deleted) && !strcmp(host + len - (sizeof(deleted) - 1), deleted)) {
		host[len - (sizeof(deleted) - 1)] = 0;
		end = deleted;
	}
	if (!guest_path_of(who->vfs, &st, host, path, sizeof(path))) /* of no mount: as getcwd(2) says it */
		snprintf(path, sizeof(path), "(unreachable)%.*s", NAME_LONGEST + 1, strrchr(host, '/'));
	if (who->fs->root != who->vfs->root && node_guest_path(who->fs->root, who->vfs->root, top, sizeof(top)) > 1) {
		top_len = strlen(top);
		if (!strncmp(path, top, top_len) && (path[top_len] == '/' || !path[top_len]))
			shown = path[top_len] ? path + top_len : "/";
	}
	len = snprintf(out, size, "%s%s", shown, end);
	return len < size ? (ssize_t)len : -ERANGE;
}

/* --- maps, smaps --------------------------------------------------------------------------------------------------------------- */

struct object { unsigned maj, min; unsigned long ino; };

struct maps {
	const struct vfs_who *who;
	struct out *out;
	bool dropped;                 /* the lines that follow belong to a mapping that is not shown */
	size_t own_count;
	struct object own[OWN_MOST];  /* memory that this process shares with guests: no memfd of theirs */
};

/* A line of maps; PATH is where its path begins in the line, or NULL. False for another line. */
static bool parse_mapping(char *line, struct object *object, char **path)
{
	int at = 0;

	if (!strchr("0123456789abcdef", line[0]) ||
	    sscanf(line, "%*x-%*x %*s %*x %x:%x %lu%n", &object->maj, &object->min, &object->ino, &at) != 3 || !at)
		return false;
	*path = line + at + strspn(line + at, " ");
	if (!**path)
		*path = NULL;
	return true;
}

static bool own_line(void *context, char *line, size_t len)
{
	struct maps *maps = context;
	struct object object;
	char *path;

	(void)len;
	if (parse_mapping(line, &object, &path) && path && !strncmp(path, "/memfd:", 7) && maps->own_count < OWN_MOST)
		maps->own[maps->own_count++] = object;
	return true;
}

/* What this process has mapped of memfds. */
static int find_own(struct maps *maps)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	error = each_line(fd, own_line, maps);
	close(fd);
	return error;
}

static bool is_own(const struct maps *maps, const struct object *object)
{
	for (size_t i = 0; i < maps->own_count; i++)
		if (maps->own[i].ino == object->ino && maps->own[i].maj == object->maj && maps->own[i].min == object->min)
			return true;
	return false;
}

static bool maps_line(void *context, char *line, size_t len)
{
	char text[PATH_LONGEST + 16];
	struct maps *maps = context;
	struct object object;
	char *path;

	if (!parse_mapping(line, &object, &path))
		return maps->dropped || (out_put(maps->out, line, len) && out_put(maps->out, "\n", 1));
	maps->dropped = is_own(maps, &object);
	if (maps->dropped)
		return true;
	if (!path || path[0] != '/')
		return out_put(maps->out, line, len) && out_put(maps->out, "\n", 1);
	if (proc_guest_text(maps->who, makedev(object.maj, object.min), path, text, sizeof(text)) < 0)
		strcpy(text, "(unreachable)");
	return out_put(maps->out, line, path - line) && out_print(maps->out, "%s\n", text);
}

static int make_maps(const struct vfs_who *who, int from, struct out *out)
{
	struct maps maps = { .who = who, .out = out };
	int error = find_own(&maps);

	return error < 0 ? error : each_line(from, maps_line, &maps);
}

/* --- mountinfo, mounts, mountstats --------------------------------------------------------------------------------------------- */

struct host_mount { /* what the host has at a place */
	const char *place;
	size_t best;
	char type[64], source[PATH_LONGEST];
};

/* Spaces and the like as fs/proc_namespace.c prints them. */
static void mangle(const char *text, char *out, size_t size)
{
	size_t at = 0;

	for (; *text && at + 5 < size; text++) {
		if (strchr(" \t\n\\#", *text))
			at += snprintf(out + at, size - at, "\\%03o", (unsigned char)*text);
		else
			out[at++] = *text;
	}
	out[at] = 0;
}

/* In place. */
static void unmangle(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] && text[3]) {
			*to++ = (text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0');
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

/* The deepest mount above the place, the last of those at the same point. */
static bool host_mount_line(void *context, char *line, size_t len)
{
	struct host_mount *found = context;
	char point[PATH_LONGEST], type[64], source[PATH_LONGEST], *rest;
	size_t point_len;

	(void)len;
	rest = strstr(line, " - ");
	if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 || sscanf(rest, " - %63s %4095s", type, source) != 2)
		return true;
	unmangle(point);
	point_len = strlen(point);
	if (point_len == 1)
		point_len = 0;
	if (strncmp(point, found->place, point_len) || (found->place[point_len] && found->place[point_len] != '/') ||
	    point_len + 1 < found->best)
		return true;
	found->best = point_len + 1;
	strcpy(found->type, type);
	strcpy(found->source, source);
	return true;
}

static void find_host_mount(const char *place, struct host_mount *found)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

	*found = (struct host_mount){ .place = place };
	if (fd >= 0) {
		each_line(fd, host_mount_line, found);
		close(fd);
	}
	if (!found->best) {
		strcpy(found->type, "tmpfs");
		strcpy(found->source, "none");
	}
}

struct shown { /* a mount of the view */
	unsigned id, parent, maj, min;
	char point[PATH_LONGEST];
	const char *options;
	struct host_mount host;
};

/* Ids are made from the order of mounts. */
static unsigned mount_id(const struct vfs *vfs, const struct vfs_mount *of)
{
	unsigned id = 21;

	for (const struct vfs_mount *mount = vfs->mounts; mount && mount != of; mount = mount->next)
		id++;
	return id;
}

static void show_kind(const struct vfs_mount *mount, struct shown *shown)
{
	static const char *const special[] = { [VFS_TMP] = "tmpfs", [VFS_DEV] = "devtmpfs", [VFS_PROC] = "proc" };
	const char *type = mount->kind == VFS_TMP || mount->kind == VFS_DEV || mount->kind == VFS_PROC ? special[mount->kind] : NULL;

	shown->options = mount->read_only ? "ro,relatime" : mount->kind == VFS_PROC ? "rw,nosuid,nodev,noexec,relatime" : "rw,relatime";
	if (!type) {
		find_host_mount(mount->source, &shown->host);
		return;
	}
	strcpy(shown->host.type, type);
	strcpy(shown->host.source, type);
}

/* False: it is not below ROOT, or shows nothing. */
static bool show_mount(const struct vfs_who *who, const struct vfs_mount *mount, const struct vfs_node *root, struct shown *shown)
{
	struct vfs_place place = { .node = mount->root, .fd = -1 };
	char point[PATH_LONGEST];
	struct vfs_who own = *who;
	struct statx st;

	if (!mount->root || node_guest_path(mount->root, root, point, sizeof(point)) < 0)
		return false;
	own.cred = &who->vfs->own;
	if (vfs_stat(&own, &place, STATX_INO, 0, &st) < 0)
		return false;
	mangle(point, shown->point, sizeof(shown->point));
	shown->id = mount_id(who->vfs, mount);
	shown->parent = mount->point ? mount_id(who->vfs, mount->point->mount) : 1;
	shown->maj = st.stx_dev_major;
	shown->min = st.stx_dev_minor;
	show_kind(mount, shown);
	return true;
}

static void make_mounts(const struct vfs_who *who, pid_t task, enum proc_made made, struct out *out)
{
	struct vfs_fs *fs = proc_fs(who, task);
	const struct vfs_node *root = fs ? fs->root : who->fs->root;
	struct shown s;

	for (const struct vfs_mount *mount = who->vfs->mounts; mount; mount = mount->next) {
		const char *super = mount->read_only ? "ro" : "rw";

		if (!show_mount(who, mount, root, &s))
			continue;
		if (made == PROC_MOUNTINFO)
			out_print(out, "%u %u %u:%u / %s %s - %s %s %s\n", s.id, s.parent, s.maj, s.min, s.point, s.options, s.host.type,
			          s.host.source, super);
		else if (made == PROC_MOUNTS)
			out_print(out, "%s %s %s %s 0 0\n", s.host.source, s.point, s.host.type, s.options);
		else
			out_print(out, "device %s mounted on %s with fstype %s\n", s.host.source, s.point, s.host.type);
	}
}

/* --- status, stat -------------------------------------------------------------------------------------------------------------- */

struct status {
	const struct vfs_who *who;
	struct out *out;
	pid_t task;
	bool affinity;       /* the next two are set */
	char mask[1024], list[1024];
};

/* A task that stands still for the supervisor runs; one that was stopped by a signal is stopped. */
static char shown_state(const struct vfs_who *who, pid_t task, char state)
{
	const struct vfs_guests *guests = who->vfs->options.guests;

	if (task == who->tid)
		return 'R';
	if (state != 't')
		return state;
	return guests && guests->stopped && guests->stopped(who->vfs->options.guests_context, task) ? 'T' : 'R';
}

static bool has_key(const char *line, const char *key)
{
	size_t len = strlen(key);

	return !strncmp(line, key, len) && line[len] == ':';
}

static bool status_line(void *context, char *line, size_t len)
{
	struct status *status = context;
	char state;

	if (has_key(line, "TracerPid"))
		return out_print(status->out, "TracerPid:\t0\n");
	if (status->affinity && has_key(line, "Cpus_allowed"))
		return out_print(status->out, "Cpus_allowed:\t%s\n", status->mask);
	if (status->affinity && has_key(line, "Cpus_allowed_list"))
		return out_print(status->out, "Cpus_allowed_list:\t%s\n", status->list);
	if (sscanf(line, "State:\t%c", &state) == 1) {
		char shown = shown_state(status->who, status->task, state);

		if (shown != state)
			return out_print(status->out, "State:\t%s\n", shown == 'T' ? "T (stopped)" : "R (running)");
	}
	return out_put(status->out, line, len) && out_put(status->out, "\n", 1);
}

static int make_status(const struct vfs_who *who, pid_t task, int from, struct out *out)
{
	const struct vfs_guests *guests = who->vfs->options.guests;
	struct status status = { .who = who, .out = out, .task = task };

	status.affinity = guests && guests->affinity &&
	                  guests->affinity(who->vfs->options.guests_context, task, status.mask, sizeof(status.mask), status.list,
	                                   sizeof(status.list));
	return each_line(from, status_line, &status);
}

/* The host's own is right, and tells what is at the moment of each reading, unless it would say that the task is being traced.
   1: *TEXT, of LEN bytes, is right. */
static int stat_text(const struct vfs_who *who, pid_t task, int from, char *text, size_t size, size_t *len)
{
	ssize_t n = read(from, text, size - 1);
	char *end;

	if (n < 0)
		return -errno;
	text[n] = 0;
	*len = n;
	end = strrchr(text, ')');
	if (!end || strncmp(end, ") t ", 4) || task == who->tid)
		return 0;
	end[2] = shown_state(who, task, 't');
	return 1;
}

static int make_stat(const struct vfs_who *who, struct vfs_node *node, pid_t task, int from, int *fd)
{
	char text[4096];
	size_t len;
	int error = stat_text(who, task, from, text, sizeof(text), &len);

	return error <= 0 ? error : proc_make_text(who, node, text, fd);
}

/* --- all ----------------------------------------------------------------------------------------------------------------------- */

int proc_make(const struct vfs_who *who, struct vfs_node *node, const struct proc_at *at, enum proc_made made, int *fd)
{
	bool mounts = made == PROC_MOUNTINFO || made == PROC_MOUNTS || made == PROC_MOUNTSTATS;
	int from = mounts ? -1 : special_host_open(who, node, O_RDONLY), error = 0;
	struct out *out;

	if (!mounts && from < 0)
		return from;
	if (made == PROC_STAT) {
		error = make_stat(who, node, at->task, from, fd);
		close(from);
		return error;
	}
	out = out_start(who, node);
	if (!out)
		error = -ENOMEM;
	else if (mounts)
		make_mounts(who, at->task, made, out);
	else if (made == PROC_STATUS)
		error = make_status(who, at->task, from, out);
	else
		error = make_maps(who, from, out);
	if (from >= 0)
		close(from);
	return out ? out_end(out, error, fd) : error;
}
