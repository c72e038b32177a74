/*
 * replace.c - descriptors and mappings of guests that become other files: engine_replace_fd(), engine_remap().
 *
 * One task of the process does it, by injected calls: one that is stopped at a call, before the call is asked; else one that
 * PTRACE_INTERRUPT brings to a stop. A blocking call that is interrupted so goes on as after a stop signal (signal(7)). Between
 * the last look at the descriptor or the mapping, at the entry stop of the dup3 or mmap, and that call itself another thread can
 * still put something of its own there: only a stop of all threads would prevent that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/ids.h"
#include "tracer/engine/internal.h"
#include "tracer/engine/procstatus.h"

enum { SCANS_MAX = 4 };

struct replacement {
	struct replacement *next;
	struct engine_replacement of;
	bool cloexec;
	bool mappings;           /* all of the old file, and no descriptor */
	struct reader *readers;  /* those that the last scan has found */
	int count, at;
	unsigned scans;
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
	free(first->readers);
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
	if (fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
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

/* Takes NEW over, whose FD is open or a negative errno. 0 or a negative errno. */
static int replacement_queue(struct engine *e, struct replacement *new, int fd, pid_t tgid)
{
	struct replacing *r = new ? replacing_get(e, tgid) : NULL;
	struct replacement **at;

	if (fd >= 0 && r) {
		new->of.fd = fd;
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

int engine_replace_fd(struct engine *e, const struct engine_replacement *replacement)
{
	struct replacement *new = calloc(1, sizeof(*new));
	bool keep = fcntl(replacement->fd, F_GETFL) & O_PATH && replacement->offset == ENGINE_OFFSET_KEEP;
	int fd = open_file(replacement->fd, replacement->flags, replacement->offset);

	if (new) {
		new->of = *replacement;
		new->of.offset = keep ? ENGINE_OFFSET_KEEP : 0;
	}
	return replacement_queue(e, new, fd, replacement->tgid);
}

int engine_remap(struct engine *e, const struct engine_remapping *remapping)
{
	const struct task *task = task_find(e, remapping->tid);
	struct replacement *new;
	struct reader *readers = NULL;
	int count = task && !task->dead ? maps_find(task->tid, remapping->old_dev, remapping->old_ino, &readers) : 0, error;

	free(readers);
	if (!count) {
		close(remapping->fd);
		return 0;
	}
	new = calloc(1, sizeof(*new));
	if (new) {
		new->of.old_dev = remapping->old_dev;
		new->of.old_ino = remapping->old_ino;
		new->mappings = true;
	}
	error = replacement_queue(e, new, open_file(remapping->fd, O_RDONLY | O_NONBLOCK, ENGINE_OFFSET_KEEP), task->call.tgid);
	return error < 0 ? error : count;
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

/* A leader that exits before its threads tells so after they have: another task is better asked. */
static bool is_leader(const struct task *task)
{
	return task->tid == task->call.tgid;
}

static void look_at(struct engine *e, struct task *task, void *data)
{
	struct candidates *c = data;

	(void)e;
	if (task->call.tgid != c->tgid || !task->adopted || task->dead)
		return;
	if (!c->any || !is_leader(task))
		c->any = task;
	if (task->waiting && !task->inject)
		c->waits = task;
	else if (!task->stopped && !task->in_vfork && (!c->runs || !is_leader(task)))
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
	if (c.runs && is_leader(c.runs) && procstatus_state(c.runs->tid) == 'Z')
		c.runs = NULL;
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

/* --- the steps, of mappings ----------------------------------------------------------------------------------------------------- */

static void note_kept(struct engine *e, struct task *task, const struct replacement *p)
{
	task_note(e, task, p->mappings ? "it keeps the old file in a mapping: it cannot be made to map the new one"
	                                    : "it keeps the old file of a descriptor: it cannot be made to take the new one");
}

/* The call through which the task is made to map knows 32-bit addresses only, whatever the process has. */
static bool can_reach(const struct injection *in, const struct reader *reader)
{
	return in->abi->word == 8 || reader->addr + reader->len - 1 <= UINT32_MAX;
}

static void reader_next(const struct injection *in, struct replacement *p)
{
	while (p->at < p->count && !can_reach(in, &p->readers[p->at]))
		p->at++;
}

/* Whether there is one to be mapped. What others unmap, move or add meanwhile is seen by the next scan. */
static bool readers_scan(struct engine *e, struct task *task, struct replacement *p)
{
	free(p->readers);
	p->at = 0;
	p->count = maps_find(task->tid, p->of.old_dev, p->of.old_ino, &p->readers);
	reader_next(task->inject, p);
	if (p->at < p->count && p->scans++ < SCANS_MAX)
		return true;
	if (p->count)
		note_kept(e, task, p);
	return false;
}

enum inject_step replace_mapped(struct engine *e, struct task *task, int64_t result)
{
	struct replacement *p = task->inject->replacing->list;

	(void)result; /* what is not mapped now is found again */
	p->at++;
	reader_next(task->inject, p);
	if (p->at < p->count || readers_scan(e, task, p))
		return REPLACE_MAP;
	replace_done(task->inject);
	return REPLACE_DROP;
}

static int map_call(const struct injection *in, const struct reader *reader, uint64_t args[6])
{
	args[0] = reader->addr, args[1] = reader->len, args[2] = (uint32_t)reader->protection, args[3] = MAP_SHARED | MAP_FIXED;
	args[4] = in->fd;
	args[5] = reader->offset / (in->abi->word == 8 ? 1 : 4096);
	return in->abi->word == 8 ? CALL_mmap : CALL_mmap2;
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
		note_kept(e, task, r->list);
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

/* Whether it has to be handed the new file of a descriptor. */
static bool descriptor_ready(const struct task *task, struct replacement *p)
{
	int64_t offset;

	if (!is_old(task, p) || !read_fdinfo(task, p, &offset))
		return false;
	if (p->of.offset == ENGINE_OFFSET_KEEP)
		lseek(p->of.fd, offset, SEEK_SET);
	return true;
}

bool replace_next(struct engine *e, struct task *task)
{
	struct injection *in = task->inject;
	struct replacing *r = in->replacing;

	for (; r->list; replacement_drop(r)) {
		struct replacement *p = r->list;

		if (p->mappings ? !readers_scan(e, task, p) : !descriptor_ready(task, p))
			continue;
		pass_begin(in, p->of.fd, O_CLOEXEC);
		return true;
	}
	return false;
}

enum inject_step replace_step(const struct injection *in)
{
	return in->replacing->list->mappings ? REPLACE_MAP : REPLACE_MOVE;
}

bool replace_agrees(struct task *task)
{
	const struct replacement *p = task->inject->replacing->list;
	const struct reader *reader;

	if (!p->mappings)
		return is_old(task, p);
	reader = &p->readers[p->at];
	return maps_has(task->tid, reader, p->of.old_dev, p->of.old_ino) && !guest_window_overlaps(&task->call, reader->addr, reader->len);
}

int replace_call(const struct injection *in, uint64_t args[6])
{
	const struct replacement *p = in->replacing->list;

	if (p->mappings)
		return map_call(in, &p->readers[p->at], args);
	args[0] = in->fd, args[1] = (uint32_t)p->of.guest_fd, args[2] = p->cloexec ? O_CLOEXEC : 0;
	return CALL_dup3;
}

void replace_failed(struct engine *e, struct task *task)
{
	note_kept(e, task, task->inject->replacing->list);
	replace_done(task->inject);
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
