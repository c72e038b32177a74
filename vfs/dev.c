/*
 * dev.c - /dev: the devices that hold nothing, random numbers, and the guest's terminals.
 *
 * The nodes are the host's, and so are their attributes: none can be made, removed or changed. A terminal's number is free for
 * other programs of the host once it is closed; so each terminal of the guest is held by a descriptor that tells when it is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/special_impl.h"

enum { TERMINALS_MOST = 4096, PTS_MAJOR = 136, PTS_MAJORS = 8 }; /* linux/major.h: UNIX98_PTY_SLAVE_MAJOR */

static const char shown[][8] = {
	"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout", "stderr",
};

/* --- terminals --------------------------------------------------------------------------------------------------------------- */

static bool is_gone(const struct terminal *terminal)
{
	struct stat st;

	return fstat(terminal->fd, &st) || st.st_nlink == 0;
}

static void terminal_drop(struct proc_view *view, size_t i)
{
	close(view->terminals[i].fd);
	view->terminals[i] = view->terminals[--view->terminal_count];
}

static const struct terminal *terminal_find(struct proc_view *view, unsigned number)
{
	for (size_t i = 0; i < view->terminal_count; i++) {
		if (view->terminals[i].number != number)
			continue;
		if (!is_gone(&view->terminals[i]))
			return &view->terminals[i];
		terminal_drop(view, i);
		return NULL;
	}
	return NULL;
}

static bool terminal_room(struct proc_view *view)
{
	size_t room = view->terminal_room ? view->terminal_room * 2 : 8;
	struct terminal *grown;

	for (size_t i = view->terminal_count; i > 0 && view->terminal_count == view->terminal_room; i--)
		if (is_gone(&view->terminals[i - 1]))
			terminal_drop(view, i - 1);
	if (view->terminal_count < view->terminal_room)
		return true;
	grown = room > TERMINALS_MOST ? NULL : realloc(view->terminals, room * sizeof(*grown));
	if (!grown)
		return false;
	view->terminals = grown;
	view->terminal_room = room;
	return true;
}

static void terminal_add(struct proc_view *view, unsigned number, bool made)
{
	char path[32];
	int fd;

	if (terminal_find(view, number) || !terminal_room(view))
		return;
	snprintf(path, sizeof(path), "/dev/pts/%u", number);
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		view->terminals[view->terminal_count++] = (struct terminal){ number, made, fd };
}

void dev_pty_made(struct vfs *vfs, unsigned number)
{
	if (vfs->proc)
		terminal_add(vfs->proc, number, true);
}

static bool is_number(const char *text)
{
	size_t len = strspn(text, "0123456789");

	return len > 0 && len < 10 && !text[len] && (text[0] != '0' || len == 1);
}

/* One of standard input, output and error. Its name may be another device namespace's: then it is not shown. */
static void add_standard(struct proc_view *view, int fd)
{
	char path[128], *name;
	struct stat st;
	ssize_t n;

	if (!isatty(fd) || fstat(fd, &st))
		return;
	view->console_devices[fd] = st.st_rdev;
	n = readlink(fd_path(fd).text, path, sizeof(path) - 1);
	if (n <= 5 || strncmp(path, "/dev/", 5))
		return;
	path[n] = 0;
	name = path + 5;
	if (!strncmp(name, "pts/", 4) && is_number(name + 4))
		terminal_add(view, strtoul(name + 4, NULL, 10), false);
	else if (!strchr(name, '/') && strlen(name) < sizeof(view->consoles[0]))
		strcpy(view->consoles[fd], name);
}

/* The controlling terminal: field 7 of /proc/self/stat, a device number as old kernels packed it (proc(5)). */
static void add_controlling(struct proc_view *view)
{
	char text[512], *end;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), device;
	unsigned maj, min;
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	end = strrchr(text, ')');
	if (!end || sscanf(end, ") %*c %*d %*d %*d %d", &device) != 1)
		return;
	maj = (unsigned)device >> 8 & 0xfff;
	min = ((unsigned)device & 0xff) | ((unsigned)device >> 12 & 0xfff00);
	if (maj >= PTS_MAJOR && maj < PTS_MAJOR + PTS_MAJORS)
		terminal_add(view, (maj - PTS_MAJOR) * 256 + min, false);
}

void dev_start(struct vfs *vfs)
{
	for (int fd = 0; fd < 3; fd++)
		add_standard(vfs->proc, fd);
	add_controlling(vfs->proc);
}

void dev_end(struct vfs *vfs)
{
	while (vfs->proc->terminal_count)
		terminal_drop(vfs->proc, vfs->proc->terminal_count - 1);
	free(vfs->proc->terminals);
}

bool dev_allowed(struct vfs *vfs, dev_t device)
{
	unsigned maj = major(device), min = minor(device);

	for (size_t i = 0; i < sizeof(vfs->proc->console_devices) / sizeof(vfs->proc->console_devices[0]); i++)
		if (vfs->proc->console_devices[i] == device && device)
			return true;
	switch (maj) { /* Documentation/admin-guide/devices.txt */
	case 1: /* null, zero, full, random, urandom */
		return min == 3 || min == 5 || (min >= 7 && min <= 9);
	case 5: /* tty, ptmx */
		return min == 0 || min == 2;
	default:
		return maj >= PTS_MAJOR && maj < PTS_MAJOR + PTS_MAJORS && terminal_find(vfs->proc, (maj - PTS_MAJOR) * 256 + min);
	}
}

/* --- what is there ----------------------------------------------------------------------------------------------------------- */

static bool is_shown(const struct proc_view *view, const char *name)
{
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!strcmp(name, shown[i]))
			return true;
	for (size_t i = 0; i < sizeof(view->consoles) / sizeof(view->consoles[0]); i++)
		if (view->consoles[i][0] && !strcmp(name, view->consoles[i]))
			return true;
	return false;
}

/* The only directories are pts and shm; the latter's content is a mount's, or nobody's. */
bool dev_visible(const struct vfs_who *who, const struct vfs_node *dir, const char *name, size_t len)
{
	char text[NAME_LONGEST + 1];

	if (len > NAME_LONGEST)
		return false;
	memcpy(text, name, len);
	text[len] = 0;
	if (!dir->parent)
		return is_shown(who->vfs->proc, text);
	if (dir->parent->parent || strcmp(dir->name, "pts"))
		return false;
	return !strcmp(text, "ptmx") || (is_number(text) && terminal_find(who->vfs->proc, strtoul(text, NULL, 10)));
}

int dev_open(const struct vfs_who *who, const struct vfs_node *node, int flags)
{
	(void)who, (void)flags;
	return node_is_dir(node) || node->type == DT_CHR ? 0 : -EACCES;
}

/* A terminal that guests made is theirs; screen, sshd and mesg change its mode. */
static bool is_made(const struct vfs_who *who, const struct vfs_node *node)
{
	const struct terminal *terminal = node->type == DT_CHR && is_number(node->name)
		? terminal_find(who->vfs->proc, strtoul(node->name, NULL, 10)) : NULL;

	return terminal && terminal->made;
}

int dev_access(const struct vfs_who *who, const struct vfs_node *node, int mask)
{
	if (mask & SPECIAL_CHANGE)
		return is_made(who, node) ? 0 : -EACCES;
	return mask & W_OK && node_is_dir(node) ? -EACCES : 0;
}
