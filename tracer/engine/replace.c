/*
 * replace.c - descriptors of guests that become other files: engine_replace_fd().
 *
 * One task of the process does it, by injected calls: one that is stopped at a call, before the call is asked; else one that
 * PTRACE_INTERRUPT brings to a stop. A blocking call that is interrupted so goes on as after a stop signal (signal(7)). Between
 * the last look at the descriptor, at the entry stop of the dup3, and the dup3 itself another thread can still put a file of its
 * own there: only a stop of all threads would prevent that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

struct replacement {
	struct replacement *next;
	struct engine_replacement of;
	bool cloexec;
};

struct replacing { /* a process */
	struct replacing *next;
	pid_t tgid;
	pid_t asked;      /* the task that is to stop for it, 0 for none */
	bool busy;        /* its task is injecting */
	bool told;        /* nobody has to wait for it */
	struct replacement *list;
};

static struct replacing *replacing_find(const struct engine *e, pid_t tgid)
{
	struct replacing *r = e->replacing;

	while (r && r->tgid != tgid)
		r = r->next;
	return r;
}

static void replacement_drop(struct replacing *r)
{
	struct replacement *first = r->list;

	r->list = first->next;
	close(first->of.fd);
	free(first);
}

static void tell(struct engine *e, struct replacing *r)
{
	if (r->told)
		return;
	r->told = true;
	if (e->options.events->replaced)
		e->options.events->replaced(e->options.context, r->tgid);
}

static void replacing_end(struct engine *e, struct replacing *r)
{
	struct replacing **at = &e->replacing;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	while (r->list)
		replacement_drop(r);
	tell(e, r);
	free(r);
}

void replace_free(struct engine *e)
{
	while (e->replacing) {
		e->replacing->told = true;
		replacing_end(e, e->replacing);
	}
}

/* --- the queue ------------------------------------------------------------------------------------------------------------ */

/* The open file that the guest gets. FD is closed where it is another one. A descriptor or a negative errno. */
static int open_file(int fd, int flags, int64_t offset)
{
	const int never = O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW | O_PATH;
	char path[40];
	struct stat st;
	int file;

	if (!(fcntl(fd, F_GETFL) & O_PATH))
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		file = -EINVAL;
	else
		file = open(path, (flags & ~never) | O_CLOEXEC);
	if (file == -1)
		file = -errno;
	close(fd);
	if (file >= 0 && offset >= 0 && lseek(file, offset, SEEK_SET) < 0) {
		close(file);
		file = -EINVAL;
	}
	return file;
}

static struct replacing *replacing_get(struct engine *e, pid_t tgid)
{
	struct replacing *r = replacing_find(e, tgid);

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->tgid = tgid;
	r->next = e->replacing;
	e->replacing = r;
	return r;
}

int engine_replace_fd(struct engine *e, const struct engine_replacement *replacement)
{
	struct replacement *new = calloc(1, sizeof(*new)), **at;
	struct replacing *r = new ? replacing_get(e, replacement->tgid) : NULL;
	bool keep = fcntl(replacement->fd, F_GETFL) & O_PATH && replacement->offset == ENGINE_OFFSET_KEEP;
	int fd = open_file(replacement->fd, replacement->flags, replacement->offset);

	if (fd >= 0 && r) {
		new->of = *replacement;
		new->of.fd = fd;
		new->of.offset = keep ? ENGINE_OFFSET_KEEP : 0;
		for (at = &r->list; *at; at = &(*at)->next)
			;
		*at = new;
		r->told = false;
		e->replace_asked = true;
		return 0;
	}
	free(new);
	if (r && !r->list && !r->busy) {
		r->told = true;
		replacing_end(e, r);
	}
	if (fd < 0)
		return fd;
	close(fd);
	return -ENOMEM;
}

unsigned engine_replacing(const struct engine *e)
{
	unsigned count = 0;

	for (const struct replacing *r = e->replacing; r; r = r->next)
		count += !r->told;
	return count;
}

/* --- who does it ------------------------------------------------------------------------------------------------------------ */

struct candidates {
	pid_t tgid;
	struct task *waits, *runs, *any; /* at a call's stop; can be brought to one; in vfork or group-stopped */
};

static void interrupt(struct task *task)
{
	task->interrupted = true;
	ptrace(PTRACE_INTERRUPT, task->tid, 0, 0);
}

static void look_at(struct engine *e, struct task *task, void *data)
{
	struct candidates *c = data;

	(void)e;
	if (task->call.tgid != c->tgid || !task->adopted || task->dead)
		return;
	c->any = task;
	if (task->waiting && !task->inject)
		c->waits = task;
	else if (!task->stopped && !task->in_vfork)
		c->runs = task;
}

static void choose(struct engine *e, struct replacing *r)
{
	struct candidates c = { .tgid = r->tgid };

	task_each(e, look_at, &c);
	if (!c.any) {
		replacing_end(e, r);
		return;
	}
	if (c.waits) {
		replace_here(e, c.waits, END_REPEAT);
		return;
	}
	if (!c.runs)
		tell(e, r);
	else
		c.any = c.runs;
	r->asked = c.any->tid;
	if (!c.any->stopped) /* that one stops by itself when it is continued; a parent in vfork after that */
		interrupt(c.any);
}

void replace_look(struct engine *e)
{
	struct replacing *next;

	e->replace_asked = false;
	for (struct replacing *r = e->replacing; r && !e->ending; r = next) {
		next = r->next;
		if (!r->busy && !r->asked)
			choose(e, r);
	}
}

void replace_changed(struct engine *e, pid_t tgid)
{
	struct replacing *r = e->replacing ? replacing_find(e, tgid) : NULL;

	if (!r || r->busy)
		return;
	r->asked = 0;
	e->replace_asked = true;
}

/* Any stop takes the place of the one that PTRACE_INTERRUPT asked for. */
void replace_keep(struct engine *e, struct task *task)
{
	const struct replacing *r = replacing_find(e, task->call.tgid);

	if (r && !r->busy && r->asked == task->tid)
		interrupt(task);
}

/* --- the steps ---------------------------------------------------------------------------------------------------------------- */

bool replace_here(struct engine *e, struct task *task, enum inject_end end)
{
	struct replacing *r = e->replacing && e->exec_done && !e->ending ? replacing_find(e, task->call.tgid) : NULL;
	int error;

	if (!r || r->busy || (end == END_REPEAT && !arch_has_exit_stop(task->call.ip)))
		return false;
	r->busy = true;
	r->asked = task->tid;
	error = task_has_own_filter(e, task) ? -EPERM : inject_replace(e, task, r, end);
	if (error == 0)
		task->waiting = false;
	if (error == -EPERM) {
		task_note(e, task, "it keeps the old file of a descriptor: it cannot be made to take the new one");
		replacing_end(e, r);
	}
	return error == 0;
}

/* What /proc says of the descriptor: offset and close-on-exec. */
static bool read_fdinfo(const struct task *task, struct replacement *p, int64_t *offset)
{
	char path[64];
	long long pos;
	unsigned flags;
	FILE *info;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", task->tid, p->of.guest_fd);
	info = fopen(path, "re");
	if (!info)
		return false;
	ok = fscanf(info, "pos: %lld flags: %o", &pos, &flags) == 2;
	fclose(info);
	if (!ok)
		return false;
	*offset = pos;
	p->cloexec = flags & O_CLOEXEC;
	return true;
}

static bool is_old(const struct task *task, const struct replacement *p)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", task->tid, p->of.guest_fd);
	return stat(path, &st) == 0 && st.st_dev == p->of.old_dev && st.st_ino == p->of.old_ino;
}

bool replace_next(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	struct replacing *r = in->replacing;
	int64_t offset;

	(void)e;
	for (; r->list; replacement_drop(r)) {
		struct replacement *p = r->list;

		if (!is_old(task, p) || !read_fdinfo(task, p, &offset))
			continue;
		if (p->of.offset == ENGINE_OFFSET_KEEP)
			lseek(p->of.fd, offset, SEEK_SET);
		pass_begin(in, p->of.fd, O_CLOEXEC);
		return true;
	}
	return false;
}

bool replace_agrees(struct task *task)
{
	return is_old(task, task->inject->replacing->list);
}

void replace_move(const struct injection *in, uint64_t args[6])
{
	const struct replacement *p = in->replacing->list;

	args[0] = in->fd, args[1] = (uint32_t)p->of.guest_fd, args[2] = p->cloexec ? O_CLOEXEC : 0;
}

void replace_done(struct injection *in)
{
	replacement_drop(in->replacing);
}

void replace_over(struct engine *e, struct replacing *r)
{
	r->busy = false;
	r->asked = 0;
	if (!r->list)
		replacing_end(e, r);
	else
		e->replace_asked = true;
}
