/*
 * proc.c - /proc: the guest's own processes, and of the machine what harms nobody.
 *
 * The files are the host's: the guest opens them itself, so the kernel decides by its credentials. Shown is only what a table
 * has; files of a newer kernel are not. What would tell of the supervisor or of host paths is made by proc_content.c. Links that
 * lead to objects are followed in the view.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "vfs/special_impl.h"

enum { PID_MOST = 1 << 22 }; /* linux/threads.h: PID_MAX_LIMIT */

/* What of the machine is seen. Not: memory (kcore, kmsg, kpage*), addresses (kallsyms, modules, iomem, ioports, vmallocinfo,
   slabinfo, timer_list), keys, cmdline (it may hold secrets), what names host processes (locks, sysvipc, sched_debug), what
   configures hardware (acpi, bus, driver, irq, mtrr, scsi), sysrq-trigger. */
static const char machine[][16] = {
	"buddyinfo", "cgroups", "consoles", "cpuinfo", "crypto", "devices", "diskstats", "filesystems", "interrupts", "loadavg",
	"meminfo", "misc", "mounts", "net", "partitions", "pressure", "schedstat", "self", "softirqs", "stat", "swaps", "sys",
	"thread-self", "tty", "uptime", "version", "vmstat", "zoneinfo",
};

enum rule {
	RULE_SHOW,    /* read as natively */
	RULE_OWN,     /* of the caller's own process: as natively; of another one: EACCES */
	RULE_WRITE,   /* read as natively, written for the own process */
	RULE_GUESTS,  /* read and written as natively, for any guest */
	RULE_MADE,    /* made, and only read */
	RULE_CLOSED,  /* EACCES */
	RULE_LINK,    /* leads to an object */
	RULE_LINKS,   /* a directory of such links */
	RULE_NO_LINKS /* the same, but none can be followed */
};

/* Of a process or a task; the kernel's own order of names, as its fs/proc/base.c may have them, does not matter. */
static const struct file {
	char name[20];
	uint8_t rule;
	uint8_t made;
} files[] = {
	{ "arch_status", RULE_SHOW, 0 },
	{ "attr", RULE_WRITE, 0 },
	{ "autogroup", RULE_SHOW, 0 },
	{ "auxv", RULE_SHOW, 0 },
	{ "cgroup", RULE_SHOW, 0 },
	{ "children", RULE_SHOW, 0 },
	{ "clear_refs", RULE_WRITE, 0 },
	{ "cmdline", RULE_SHOW, 0 },
	{ "comm", RULE_WRITE, 0 },
	{ "coredump_filter", RULE_GUESTS, 0 },
	{ "cpuset", RULE_SHOW, 0 },
	{ "cwd", RULE_LINK, 0 },
	{ "environ", RULE_SHOW, 0 },
	{ "exe", RULE_LINK, 0 },
	{ "fd", RULE_LINKS, 0 },
	{ "fdinfo", RULE_SHOW, 0 },
	{ "gid_map", RULE_SHOW, 0 },
	{ "io", RULE_SHOW, 0 },
	{ "ksm_merging_pages", RULE_SHOW, 0 },
	{ "ksm_stat", RULE_SHOW, 0 },
	{ "limits", RULE_SHOW, 0 },
	{ "loginuid", RULE_SHOW, 0 },
	{ "map_files", RULE_CLOSED, 0 },
	{ "maps", RULE_MADE, PROC_MAPS },
	{ "mem", RULE_OWN, 0 },
	{ "mountinfo", RULE_MADE, PROC_MOUNTINFO },
	{ "mounts", RULE_MADE, PROC_MOUNTS },
	{ "mountstats", RULE_MADE, PROC_MOUNTSTATS },
	{ "net", RULE_SHOW, 0 },
	{ "ns", RULE_NO_LINKS, 0 },
	{ "oom_adj", RULE_GUESTS, 0 },
	{ "oom_score", RULE_SHOW, 0 },
	{ "oom_score_adj", RULE_GUESTS, 0 },
	{ "pagemap", RULE_OWN, 0 },
	{ "personality", RULE_SHOW, 0 },
	{ "projid_map", RULE_SHOW, 0 },
	{ "root", RULE_LINK, 0 },
	{ "sched", RULE_SHOW, 0 },
	{ "schedstat", RULE_SHOW, 0 },
	{ "sessionid", RULE_SHOW, 0 },
	{ "setgroups", RULE_SHOW, 0 },
	{ "smaps", RULE_MADE, PROC_SMAPS },
	{ "smaps_rollup", RULE_SHOW, 0 },
	{ "stack", RULE_CLOSED, 0 },
	{ "stat", RULE_MADE, PROC_STAT },
	{ "statm", RULE_SHOW, 0 },
	{ "status", RULE_MADE, PROC_STATUS },
	{ "syscall", RULE_CLOSED, 0 },
	{ "timens_offsets", RULE_SHOW, 0 },
	{ "timers", RULE_SHOW, 0 },
	{ "timerslack_ns", RULE_WRITE, 0 },
	{ "uid_map", RULE_SHOW, 0 },
	{ "wchan", RULE_SHOW, 0 },
};

void proc_start(struct vfs *vfs)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), GRND_NONBLOCK) != sizeof(b))
		for (size_t i = 0; i < sizeof(b); i++)
			b[i] = vfs->seed >> i % 8 * 8;
	b[6] = (b[6] & 0x0f) | 0x40; /* RFC 9562: version 4, random */
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(vfs->proc->boot_id, sizeof(vfs->proc->boot_id),
	         "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7],
	         b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* --- names --------------------------------------------------------------------------------------------------------------------- */

/* As fs/proc/util.c: name_to_int(). 0: no number. */
static pid_t pid_of(const char *name)
{
	size_t len = strspn(name, "0123456789");
	long pid;

	if (len == 0 || len > 7 || name[len] || name[0] == '0')
		return 0;
	pid = strtol(name, NULL, 10);
	return pid <= PID_MOST ? pid : 0;
}

static bool is_guest(const struct vfs_who *who, pid_t pid)
{
	const struct vfs_guests *guests = who->vfs->options.guests;

	return guests && guests->is_guest(who->vfs->options.guests_context, pid);
}

static bool is_own(const struct vfs_who *who, pid_t pid)
{
	const struct vfs_guests *guests = who->vfs->options.guests;

	if (pid == who->tgid || pid == who->tid)
		return pid != 0;
	return guests && guests->tgid_of(who->vfs->options.guests_context, pid) == who->tgid && who->tgid != 0;
}

static void locate_process(const struct vfs_who *who, struct proc_at *at)
{
	unsigned first = 1;

	at->own = is_own(who, at->pid);
	at->task = at->pid;
	if (at->depth > 1 && !strcmp(at->part[1], "task")) {
		if (at->depth < 3)
			return;
		at->task = pid_of(at->part[2]);
		first = 3;
	}
	at->file = at->depth > first ? at->part[first] : NULL;
	at->below = at->depth > first + 1 ? at->part[first + 1] : NULL;
}

/* NAME in DIR; DIR NULL: the root. Valid as long as DIR is. */
static void locate(const struct vfs_who *who, const struct vfs_node *dir, const char *name, size_t len, struct proc_at *at)
{
	const struct vfs_node *node;
	unsigned depth = 0;

	memset(at, 0, offsetof(struct proc_at, last));
	if (!dir || len > NAME_LONGEST)
		return;
	memcpy(at->last, name, len);
	at->last[len] = 0;
	for (node = dir; node->parent; node = node->parent)
		depth++;
	at->depth = depth + 1;
	if (depth < PROC_PARTS)
		at->part[depth] = at->last;
	for (node = dir; node->parent; node = node->parent)
		if (--depth < PROC_PARTS)
			at->part[depth] = node->name;
	at->pid = pid_of(at->part[0]);
	if (at->pid)
		locate_process(who, at);
}

static void locate_node(const struct vfs_who *who, const struct vfs_node *node, struct proc_at *at)
{
	locate(who, node->parent, node->name, node->name_len, at);
}

static const struct file *file_find(const char *name)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strcmp(files[i].name, name))
			return &files[i];
	return NULL;
}

static bool machine_visible(const struct proc_at *at)
{
	if (at->depth == 1) {
		for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
			if (!strcmp(machine[i], at->part[0]))
				return true;
		return false;
	}
	if (!strcmp(at->part[0], "tty")) /* `driver` counts what was typed */
		return !strcmp(at->part[1], "drivers") || !strcmp(at->part[1], "ldiscs");
	/* An automounter that does not answer would keep us waiting. */
	return !(at->depth > 2 && !strcmp(at->part[0], "sys") && !strcmp(at->part[1], "fs") && !strcmp(at->part[2], "binfmt_misc"));
}

/* A pid that was a guest's may be another process's when DIR is looked at again: it is asked each time. */
bool proc_visible(const struct vfs_who *who, const struct vfs_node *dir, const char *name, size_t len)
{
	const struct file *file;
	struct proc_at at;

	locate(who, dir, name, len, &at);
	if (!at.depth)
		return false;
	if (!at.pid)
		return machine_visible(&at);
	if (!is_guest(who, at.pid))
		return false;
	if (at.depth == 2 && !at.file)
		return true; /* task */
	if (!at.task || (at.task != at.pid && !is_guest(who, at.task)))
		return false;
	file = at.file ? file_find(at.file) : NULL;
	if (at.file && (!file || (at.below && file->rule == RULE_CLOSED)))
		return false;
	return true;
}

/* --- links --------------------------------------------------------------------------------------------------------------------- */

struct vfs_fs *proc_fs(const struct vfs_who *who, pid_t task)
{
	const struct vfs_guests *guests = who->vfs->options.guests;

	if (task == who->tid)
		return who->fs;
	return guests ? guests->fs_of(who->vfs->options.guests_context, task) : NULL;
}

static int rule_of(const struct proc_at *at)
{
	const struct file *file = at->file ? file_find(at->file) : NULL;

	return file ? file->rule : RULE_SHOW;
}

enum special_link proc_link(const struct vfs_who *who, const struct vfs_node *node)
{
	struct proc_at at;
	int rule;

	locate_node(who, node, &at);
	if (at.depth == 1 && !at.pid && (!strcmp(at.part[0], "self") || !strcmp(at.part[0], "thread-self")))
		return SPECIAL_TEXT;
	rule = rule_of(&at);
	if (at.below ? rule == RULE_LINKS || rule == RULE_NO_LINKS : rule == RULE_LINK)
		return SPECIAL_JUMP;
	return SPECIAL_PLAIN;
}

/* `cwd` or `root` of the view, no reference; NULL for other links. */
static struct vfs_node *fs_node(const struct vfs_who *who, const struct proc_at *at, int *error)
{
	bool cwd = !strcmp(at->file, "cwd");
	struct vfs_fs *fs;

	*error = 0;
	if (at->below || (!cwd && strcmp(at->file, "root")))
		return NULL;
	fs = proc_fs(who, at->task);
	if (!fs)
		*error = -ENOENT;
	return !fs ? NULL : cwd ? fs->cwd : fs->root;
}

/* A directory that was removed has the names that it had (fs/d_path.c). */
static ssize_t dead_text(const struct vfs_node *node, const struct vfs_node *root, char *buf, size_t size)
{
	const struct vfs_node *names[PATH_LONGEST / 2];
	static const char deleted[] = " (deleted)";
	size_t count = 0, at;
	ssize_t n;

	for (; node != root && node->dead && node->parent && count < PATH_LONGEST / 2; node = node->parent)
		names[count++] = node;
	n = node_guest_path(node, root, buf, size);
	if (n < 0)
		return n == -ERANGE ? -ENAMETOOLONG : n;
	at = n > 2 ? n - 1 : 0; /* the root's own path ends in a slash */
	while (count > 0) {
		node = names[--count];
		if (at + node->name_len + 1 + sizeof(deleted) > size)
			return -ENAMETOOLONG;
		buf[at++] = '/';
		memcpy(buf + at, node->name, node->name_len);
		at += node->name_len;
	}
	memcpy(buf + at, deleted, sizeof(deleted));
	return at + sizeof(deleted) - 1;
}

/* A node's path, without the NUL: from the caller's root, or from the view's where it is not below that. */
static ssize_t node_text(const struct vfs_who *who, const struct vfs_node *node, char *buf, size_t size)
{
	const struct vfs_node *root = node_is_below(node, who->fs->root) ? who->fs->root : who->vfs->root;
	ssize_t n = node_guest_path(node, root, buf, size);

	if (n == -ENOENT)
		return dead_text(node, root, buf, size);
	return n > 0 ? n - 1 : n == -ERANGE ? -ENAMETOOLONG : n;
}

/* A file that was made in the place of the host's has its name. */
static bool made_text(const char *text, char *out, size_t size)
{
	static const char before[] = "/memfd:/", after[] = " (deleted)";
	size_t len = strlen(text);

	if (strncmp(text, before, sizeof(before) - 1) || len < sizeof(before) + sizeof(after) || len >= size)
		return false;
	len -= sizeof(after) - 1;
	if (strcmp(text + len, after))
		return false;
	memcpy(out, text + sizeof(before) - 2, len - (sizeof(before) - 2));
	out[len - (sizeof(before) - 2)] = 0;
	return true;
}

/* RAW is what the kernel says of the link. */
static ssize_t object_text(const struct vfs_who *who, struct vfs_node *link, const char *raw, char *buf, size_t size)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct stat st = { 0 };
	ssize_t n = -ENOENT;
	int fd;

	if (raw[0] != '/' || made_text(raw, buf, size))
		return raw[0] != '/' ? snprintf(buf, size, "%s", raw) : (ssize_t)strlen(buf);
	fd = special_host_open(who, link, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st)) {
		close(fd);
		return -errno;
	}
	if (vfs_place_of(who, fd, &place) == 0 && place.node)
		n = node_text(who, place.node, buf, size);
	vfs_place_end(who->vfs, &place);
	return n >= 0 ? n : proc_guest_text(who, st.st_dev, raw, buf, size);
}

/* The kernel says whether the caller may read the link: of its own process always, even an undumpable one. */
static ssize_t read_jump(const struct vfs_who *who, struct vfs_node *node, const struct proc_at *at, char *buf, size_t size)
{
	char raw[PATH_LONGEST + 16];
	struct vfs_node *target;
	ssize_t n;
	int error = cred_enter(who->cred);

	if (error < 0)
		return error;
	n = special_host_link(who, node, raw, sizeof(raw) - 1);
	cred_leave(who->cred);
	target = fs_node(who, at, &error);
	if (n < 0 && !(target && at->own && n == -EACCES))
		return n;
	if (error < 0)
		return error;
	raw[n > 0 ? n : 0] = 0;
	if (target)
		return node_text(who, target, buf, size);
	return rule_of(at) == RULE_NO_LINKS ? snprintf(buf, size, "%s", raw) : object_text(who, node, raw, buf, size);
}

ssize_t proc_readlink(const struct vfs_who *who, struct vfs_node *node, char *buf, size_t size)
{
	char text[PATH_LONGEST + 16];
	struct proc_at at;
	ssize_t n;

	locate_node(who, node, &at);
	switch (proc_link(who, node)) {
	case SPECIAL_TEXT:
		if (!who->tgid)
			return -ENOENT;
		n = at.part[0][0] == 's' ? snprintf(text, sizeof(text), "%d", who->tgid)
		                         : snprintf(text, sizeof(text), "%d/task/%d", who->tgid, who->tid);
		break;
	case SPECIAL_JUMP:
		n = read_jump(who, node, &at, text, sizeof(text));
		break;
	default:
		return special_host_link(who, node, buf, size);
	}
	if (n < 0)
		return n;
	if ((size_t)n >= sizeof(text))
		return -ENAMETOOLONG;
	if ((size_t)n > size)
		n = size;
	memcpy(buf, text, n);
	return n;
}

/* Within a walk: the caller's credentials are taken. */
int proc_jump(const struct vfs_who *who, struct vfs_node *node, struct vfs_place *place)
{
	struct vfs_node *target, *up;
	struct proc_at at;
	char raw[8];
	int dir = dir_lower(who->vfs, node->parent), fd, error;
	ssize_t n;

	locate_node(who, node, &at);
	if (rule_of(&at) == RULE_NO_LINKS)
		return -EACCES;
	if (dir < 0)
		return dir;
	target = fs_node(who, &at, &error);
	if (error < 0)
		return error;
	if (target) {
		n = special_host_link(who, node, raw, sizeof(raw));
		if (n < 0 && !(at.own && n == -EACCES))
			return n;
		up = node_up(target);
		place->node = vfs_node_ref(target);
		place->dir = vfs_node_ref(up ? up : target);
		place->last = VFS_LAST_DOT;
		return 0;
	}
	fd = openat(dir, node->name, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : vfs_place_of(who, fd, place);
}

/* --- opening ------------------------------------------------------------------------------------------------------------------- */

static bool may_write(const struct proc_at *at)
{
	switch (rule_of(at)) {
	case RULE_OWN:
	case RULE_WRITE:
		return at->own && at->file;
	case RULE_GUESTS:
		return true;
	default:
		return false;
	}
}

static bool is_boot_id(const struct proc_at *at)
{
	static const char *const parts[] = { "sys", "kernel", "random", "boot_id" };

	for (unsigned i = 0; i < 4; i++)
		if (at->depth != 4 || strcmp(at->part[i], parts[i]))
			return false;
	return true;
}

static int make(const struct vfs_who *who, struct vfs_node *node, const struct proc_at *at, int *fd)
{
	char text[UUID_TEXT + 1];

	if (!is_boot_id(at))
		return proc_make(who, node, at, file_find(at->file)->made, fd);
	snprintf(text, sizeof(text), "%s\n", who->vfs->proc->boot_id);
	return proc_make_text(who, node, text, fd);
}

int proc_open(const struct vfs_who *who, struct vfs_node *node, int flags, int *fd)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	struct proc_at at;
	int rule;

	locate_node(who, node, &at);
	rule = rule_of(&at);
	if (at.pid && at.depth && !is_guest(who, at.pid))
		return -ENOENT; /* gone since the walk, or since it became the working directory */
	if (rule == RULE_CLOSED || (rule == RULE_OWN && !at.own) || (writes && !may_write(&at)))
		return -EACCES;
	if (!node_is_dir(node) && (rule == RULE_MADE || is_boot_id(&at)))
		return make(who, node, &at, fd);
	return 0;
}

int proc_access(const struct vfs_who *who, const struct vfs_node *node, int mask)
{
	struct proc_at at;
	int rule;

	locate_node(who, node, &at);
	rule = rule_of(&at);
	if (mask & SPECIAL_CHANGE || rule == RULE_CLOSED || (rule == RULE_OWN && !at.own))
		return -EACCES;
	return mask & W_OK && !may_write(&at) ? -EACCES : 0;
}
