/*
 * decide.c - the policy of the engine's tests.
 *
 *   open, openat, creat  /virtual/NAME  rewritten to openat of NAME in the case's folder
 *                        /fd/KIND       answered with a file of that kind
 *                        /refuse, refused    EACCES
 *                        /forward       read, and forwarded against the rule
 *                        /kill          ends all
 *                        /wait/MS/NAME  as /virtual/NAME, after a worker has slept for MS; MS "never" waits for ever, "self"
 *                                       is asked again three times at once
 *                        other paths    forwarded (only peeked at: a test's policy, not a sound one)
 *   execve               /virtual/NAME  rewritten, as above; so is an array of arguments of more than 100
 *   uname                answered with another machine name where the case wants it
 *   getsid               answered, see ASK_
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "syscalls/ids.h"
#include "tests/engine/supervisor.h"

/* What call->state points to. */
struct view {
	uint64_t flags;
	int depth;
	pid_t former;
	int waited; /* verdicts that were WAIT, for the call under way */
	bool replaces;
};

static struct view *view_new(struct supervisor *s, struct call *call)
{
	struct view *view = calloc(1, sizeof(*view));

	if (!view || call->state)
		abort();
	call->state = view;
	s->views++;
	return view;
}

/* --- a call ----------------------------------------------------------------------------------------------------------------- */

static struct verdict rewrite_open(struct supervisor *s, struct call *call, const char *name, uint64_t flags, uint64_t mode)
{
	struct verdict verdict = { .kind = VERDICT_REWRITE, .id = CALL_openat, .args = { (uint32_t)AT_FDCWD, 0, flags, mode } };
	char path[4500];
	int error;

	snprintf(path, sizeof(path), "%s/%s", s->shared->dir, name);
	error = guest_window_put(call, path, strlen(path) + 1, &verdict.args[1]);
	if (error < 0)
		return verdict_refuse(-EPERM, "no window");
	if (mode < SEQUENCES)
		__atomic_store_n(&s->shared->decided[mode], name[strlen(name) - 1], __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&s->shared->decisions, 1, __ATOMIC_SEQ_CST);
	return verdict;
}

static int open_in(const struct supervisor *s, const char *name, int flags, mode_t mode)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", s->shared->dir, name);
	return open(path, flags | O_CLOEXEC, mode);
}

static struct verdict answer_fd(struct supervisor *s, const char *kind, uint64_t flags)
{
	const int keep = O_ACCMODE | O_CLOEXEC | O_APPEND | O_PATH;
	struct verdict verdict = { .kind = VERDICT_ANSWER_FD, .fd = -1, .fd_flags = (int)flags & keep };

	errno = ENOENT;
	if (!strcmp(kind, "file"))
		verdict.fd = open_in(s, "hello", (int)flags & O_ACCMODE, 0);
	else if (!strcmp(kind, "opath")) /* the guest opens it, or we do */
		verdict.fd = open_in(s, "hello", O_PATH, 0);
	else if (!strcmp(kind, "secret"))
		verdict.fd = open_in(s, "secret", O_PATH, 0);
	else if (!strcmp(kind, "ready")) {
		verdict.fd = open_in(s, "hello", (int)flags & O_ACCMODE, 0);
		verdict.foreign = true;
	} else if (!strcmp(kind, "dir"))
		verdict.fd = open_in(s, ".", O_RDONLY | O_DIRECTORY, 0);
	else if (!strcmp(kind, "path"))
		verdict.fd = open_in(s, "hello", O_PATH, 0);
	else if (!strcmp(kind, "tmpfile"))
		verdict.fd = open_in(s, ".", O_TMPFILE | O_RDWR, 0600);
	else if (!strcmp(kind, "memfd"))
		verdict.fd = memfd_create("guest", MFD_CLOEXEC);
	else if (!strcmp(kind, "mode")) { /* written by who created it, readable for all others: the mode comes last */
		verdict.fd = open_in(s, "mode", O_RDWR | O_CREAT | O_EXCL, 0600);
		s->mode_fd = fcntl(verdict.fd, F_DUPFD_CLOEXEC, 0);
		verdict.want_end = true;
	}
	return verdict.fd < 0 ? verdict_answer(-errno) : verdict;
}

struct work {
	struct supervisor *s;
	pid_t tid;
	unsigned ms;
};

static void *work(void *arg)
{
	struct work *w = arg;
	struct supervisor *s = w->s;

	usleep(w->ms * 1000);
	pthread_mutex_lock(&s->lock);
	if (s->worked_count < WORKED)
		s->worked[s->worked_count++] = w->tid;
	if (!s->over)
		engine_attention(s->engine);
	s->working--;
	pthread_mutex_unlock(&s->lock);
	free(w);
	return NULL;
}

static void work_start(struct supervisor *s, pid_t tid, unsigned ms)
{
	struct work *w = malloc(sizeof(*w));
	pthread_t thread;

	if (!w)
		abort();
	*w = (struct work){ s, tid, ms };
	pthread_mutex_lock(&s->lock);
	s->working++;
	pthread_mutex_unlock(&s->lock);
	if (pthread_create(&thread, NULL, work, w))
		abort();
	pthread_detach(thread);
}

void supervisor_end(struct supervisor *s)
{
	bool working = true;

	while (working) {
		pthread_mutex_lock(&s->lock);
		s->over = true;
		working = s->working > 0;
		pthread_mutex_unlock(&s->lock);
		usleep(working ? 1000 : 0);
	}
}

static void on_attention(void *context)
{
	struct supervisor *s = context;

	pthread_mutex_lock(&s->lock);
	while (s->worked_count)
		engine_again(s->engine, s->worked[--s->worked_count]);
	pthread_mutex_unlock(&s->lock);
}

/* TEXT is MS/NAME. */
static struct verdict wait_open(struct supervisor *s, struct call *call, const char *text, uint64_t flags, uint64_t mode)
{
	struct view *view = call->state;
	const char *name = strchr(text, '/');
	bool self = !strncmp(text, "self/", 5);

	if (!name)
		return verdict_answer(-EINVAL);
	__atomic_add_fetch(&s->shared->waits, 1, __ATOMIC_SEQ_CST);
	if (view->waited++ < (self ? 3 : 1)) {
		uint64_t unused;

		guest_window_put(call, text, 1, &unused);
		if (self)
			engine_again(s->engine, call->tid);
		else if (strncmp(text, "never/", 6))
			work_start(s, call->tid, (unsigned)atoi(text));
		return verdict_wait();
	}
	view->waited = 0;
	return rewrite_open(s, call, name + 1, flags, mode);
}

/* By the first 8 bytes. */
static bool is_ours(const char *path)
{
	static const char *const begins[] = { "/virtual", "/fd/", "/refuse", "refused", "/wait/", "/forward", "/kill" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		if (!strncmp(path, begins[i], strlen(begins[i])))
			return true;
	}
	return false;
}

static struct verdict decide_open(struct supervisor *s, struct call *call, unsigned at, uint64_t flags, uint64_t mode)
{
	struct verdict verdict;
	ssize_t len = guest_peek(call, call->args[at], s->buf, 8);

	if (len > 0 && !is_ours(s->buf))
		return verdict_forward();
	len = guest_read_string(call, call->args[at], s->buf, sizeof(s->buf));
	if (len < 0)
		return verdict_answer(len);
	if (!strncmp(s->buf, "/virtual/", 9))
		return rewrite_open(s, call, s->buf + 9, flags, mode);
	if (!strncmp(s->buf, "/wait/", 6))
		return wait_open(s, call, s->buf + 6, flags, mode);
	if (!strncmp(s->buf, "/fd/", 4))
		return answer_fd(s, s->buf + 4, flags);
	if (!strcmp(s->buf, "/refuse") || !strcmp(s->buf, "refused"))
		return verdict_refuse(-EACCES, "a test");
	if (!strcmp(s->buf, "/kill"))
		return verdict_kill("a test");
	if (!strcmp(s->buf, "/forward"))
		return verdict_forward();
	/* flipped meanwhile, or the memory had to be opened first */
	verdict = (struct verdict){ .kind = VERDICT_REWRITE, .id = CALL_openat, .args = { (uint32_t)AT_FDCWD, 0, flags, mode } };
	if (at == 1)
		verdict.args[0] = call->args[0];
	if (guest_window_put(call, s->buf, len + 1, &verdict.args[1]) < 0)
		return verdict_answer(-EPERM);
	return verdict;
}

/* The strings stay where they are: a test's policy. */
static struct verdict put_arguments(struct supervisor *s, struct call *call, struct verdict *verdict)
{
	enum { MANY = 100, MOST = sizeof(s->pointers) / sizeof(s->pointers[0]) };
	uint64_t at = call->args[1];
	int count = 0, error;

	while (count < MOST && guest_read(call, at + 8 * (uint64_t)count, &s->pointers[count], 8) == 0 && s->pointers[count])
		count++;
	if (count < MANY || count == MOST)
		return *verdict;
	error = guest_window_put(call, s->pointers, 8 * ((size_t)count + 1), &verdict->args[1]);
	return error < 0 ? verdict_answer(error) : *verdict;
}

static struct verdict decide_exec(struct supervisor *s, struct call *call)
{
	struct verdict verdict = { .kind = VERDICT_REWRITE, .id = CALL_execve };
	char path[4500];
	ssize_t len = guest_peek(call, call->args[0], s->buf, 9);

	if (len == 9 && memcmp(s->buf, "/virtual/", 9))
		return verdict_forward();
	len = guest_read_string(call, call->args[0], s->buf, sizeof(s->buf));
	if (len < 0)
		return verdict_answer(len);
	if (strncmp(s->buf, "/virtual/", 9))
		return verdict_answer(-EINVAL);
	snprintf(path, sizeof(path), "%s/%s", s->shared->dir, s->buf + 9);
	memcpy(verdict.args, call->args, sizeof(verdict.args));
	if (guest_window_put(call, path, strlen(path) + 1, &verdict.args[0]) < 0)
		return verdict_answer(-EPERM);
	return put_arguments(s, call, &verdict);
}

static struct verdict decide_uname(struct supervisor *s, struct call *call)
{
	struct verdict verdict = verdict_answer(0);

	uname(&s->uts);
	strcpy(s->uts.machine, ANSWERED_MACHINE);
	verdict.writes = 1;
	verdict.write[0] = (struct verdict_write){ call->args[0], &s->uts, sizeof(s->uts) };
	return verdict;
}

static int own_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void replace(struct supervisor *s, pid_t tgid, uint64_t guest_fd, int fd, uint64_t flags)
{
	struct engine_replacement r = { .tgid = tgid, .guest_fd = (int)guest_fd, .fd = fd, .flags = (int)flags,
	                                .offset = ENGINE_OFFSET_KEEP };
	char path[300];
	struct stat old;

	snprintf(path, sizeof(path), "%s/hello", s->shared->dir);
	if (fd < 0 || stat(path, &old))
		abort();
	r.old_dev = old.st_dev;
	r.old_ino = old.st_ino;
	engine_replace_fd(s->engine, &r);
}

static void remap(struct supervisor *s, pid_t tid)
{
	struct engine_remapping r = { .tid = tid, .fd = open_in(s, "new", O_PATH, 0) };
	char path[300];
	struct stat old;

	snprintf(path, sizeof(path), "%s/hello", s->shared->dir);
	if (r.fd < 0 || stat(path, &old))
		abort();
	r.old_dev = old.st_dev;
	r.old_ino = old.st_ino;
	s->shared->remapped = engine_remap(s->engine, &r);
}

/* Over when none is left that is worth waiting for. */
static struct verdict decide_replace(struct supervisor *s, struct call *call, uint64_t what)
{
	struct view *view = call->state;
	pid_t tgid = (pid_t)call->args[1];

	if (!view->replaces && what == ASK_REMAP) {
		remap(s, tgid);
	} else if (!view->replaces && what == ASK_SHARE) {
		int fd = open_in(s, "new", O_RDONLY, 0);

		replace(s, tgid, call->args[2], fcntl(fd, F_DUPFD_CLOEXEC, 0), O_RDONLY);
		replace(s, tgid, call->args[3], fd, O_RDONLY);
	} else if (!view->replaces) {
		replace(s, tgid, call->args[2], open_in(s, "new", O_PATH, 0), call->args[3]);
	}
	view->replaces = true;
	if (engine_replacing(s->engine)) {
		s->replacer = call->tid;
		return verdict_wait();
	}
	view->replaces = false;
	return verdict_answer(0);
}

static void on_replaced(void *context, pid_t tgid)
{
	struct supervisor *s = context;

	(void)tgid;
	if (!engine_replacing(s->engine))
		engine_again(s->engine, s->replacer);
}

static int on_reopen(void *context, struct call *call, int fd, int flags)
{
	struct supervisor *s = context;
	char path[40];
	struct stat st;

	(void)call;
	__atomic_add_fetch(&s->shared->reopened, 1, __ATOMIC_SEQ_CST);
	if (fstat(fd, &st) || !(st.st_mode & 0777))
		return -EACCES;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static struct verdict decide_getsid(struct supervisor *s, struct call *call)
{
	const struct view *view = call->state;
	struct verdict verdict = verdict_answer(ANSWERED_SID);

	switch (call->args[0]) {
	case ASK_FILES: return verdict_answer(own_files());
	case ASK_FLAGS: return verdict_answer((int64_t)view->flags);
	case ASK_DEPTH: return verdict_answer(view->depth);
	case ASK_FORMER: return verdict_answer(view->former);
	case ASK_REPLACE:
	case ASK_REMAP:
	case ASK_SHARE: return decide_replace(s, call, call->args[0]);
	case ASK_WRITE:
		s->shared->written = 1;
		verdict = verdict_answer(0);
		verdict.want_end = true;
	}
	return verdict;
}

static struct verdict on_call(void *context, struct call *call)
{
	struct supervisor *s = context;

	if (!call->state && call->id != CALL_execve) { /* the program's own is before all events */
		s->strangers++;
		view_new(s, call);
	}
	switch (call->id) {
	case CALL_open:
		return decide_open(s, call, 0, call->args[1], call->args[2]);
	case CALL_creat:
		return decide_open(s, call, 0, O_CREAT | O_WRONLY | O_TRUNC, call->args[1]);
	case CALL_openat:
		return decide_open(s, call, 1, call->args[2], call->args[3]);
	case CALL_execve:
		return decide_exec(s, call);
	case CALL_uname:
		return decide_uname(s, call);
	case CALL_getsid:
		return decide_getsid(s, call);
	case CALL_clone3: /* its flags are in memory */
		return verdict_answer(-ENOSYS);
	}
	return verdict_forward();
}

/* --- other events ----------------------------------------------------------------------------------------------------------- */

static void on_call_end(void *context, struct call *call, int64_t result)
{
	struct supervisor *s = context;

	(void)result;
	if (call->id == CALL_getsid)
		s->shared->written = guest_write(call, call->args[1], ASK_WRITTEN, sizeof(ASK_WRITTEN));
	if (s->mode_fd >= 0) {
		fchmod(s->mode_fd, 0400);
		close(s->mode_fd);
		s->mode_fd = -1;
	}
}

static void on_clone(void *context, struct call *parent, struct call *child, uint64_t flags)
{
	const struct view *of = parent ? parent->state : NULL;
	struct view *view = view_new(context, child);

	view->flags = flags;
	view->depth = of ? of->depth + 1 : 0;
}

/* As the kernel does it, on the new program's stack. */
static void patch_execfn(struct call *call)
{
	uint64_t at;

	if (guest_auxv(call, AT_EXECFN, &at) == 0 && guest_auxv(call, 9999, &at) == -ENOENT)
		guest_write(call, at, PATCHED_EXECFN, sizeof(PATCHED_EXECFN));
}

static void on_exec(void *context, struct call *call, pid_t former)
{
	struct supervisor *s = context;
	struct view *view = call->state ? call->state : view_new(s, call);

	view->former = call->tid == call->tgid ? former : -1;
	view->waited = 0;
	view->replaces = false;
	if (s->shared->patch)
		patch_execfn(call);
}

static void on_task_end(void *context, struct call *call, int status, bool in_call)
{
	struct supervisor *s = context;

	(void)status, (void)in_call;
	if (!call->state)
		return;
	free(call->state);
	call->state = NULL;
	s->views--;
}

static void on_note(void *context, pid_t tid, const char *text)
{
	struct supervisor *s = context;

	(void)tid;
	snprintf(s->shared->note, sizeof(s->shared->note), "%s", text);
	__atomic_add_fetch(&s->shared->notes, 1, __ATOMIC_SEQ_CST);
	if (strstr(text, "decided by guest memory"))
		s->forward_notes++;
	if (strstr(text, "window"))
		s->window_notes++;
}

const struct engine_events supervisor_events = {
	.call = on_call, .call_end = on_call_end, .clone = on_clone, .exec = on_exec, .task_end = on_task_end,
	.attention = on_attention, .replaced = on_replaced, .reopen = on_reopen, .note = on_note,
};
