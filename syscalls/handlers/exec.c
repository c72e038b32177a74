/* exec.c - execve, execveat. Rules: fs/exec.c, fs/binfmt_script.c, fs/binfmt_elf.c. */
#include "syscalls/handlers/exec.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "syscalls/handlers/handlers.h"
#include "syscalls/ids.h"

enum {
	HEAD_SIZE = 256,   /* BINPRM_BUF_SIZE */
	SCRIPTS_MOST = 5,  /* fs/exec.c: exec_binprm() gives up at a depth above 5 */
	HEADS_MOST = 2 * SCRIPTS_MOST + 2,
	ARGS_MOST = 25000,
	INTERP_MOST = PATH_MAX,
	COPY_MOST = 256 << 20 /* bytes of a program that is copied while all others wait */
};

struct exec_plan {
	char path[PATH_MAX];       /* for the kernel */
	char name[PATH_MAX];       /* AT_EXECFN as the guest expects it */
	bool by_object;            /* named by a descriptor alone: */
	char comm[NAME_MAX + 1];   /* then the file's own name; "": the last part of `name` */
	bool plain;                /* path is the guest's own */
	char *heads[HEADS_MOST];   /* arguments in front of the guest's, which lose their first; none: the guest's own vector */
	unsigned head_count;
	int fd;                    /* of the file that is to run, O_PATH; -1 */
	int interp_fd;             /* of its ELF interpreter; -1 */
	bool unread;               /* the host's, of which nothing could be read */
	dev_t dev;                 /* the file that must run */
	ino_t ino;
	unsigned serial;           /* of the link; 0: none */
};

static void plan_free(struct env *env, struct exec_plan *plan)
{
	char dir[32], file[PATH_MAX + 32];

	if (!plan)
		return;
	if (plan->serial) {
		snprintf(dir, sizeof(dir), "x%u", plan->serial);
		snprintf(file, sizeof(file), "%s/%s", dir, strrchr(plan->path, '/') + 1);
		unlinkat(env->work_fd, file, 0);
		unlinkat(env->work_fd, dir, AT_REMOVEDIR);
	}
	for (unsigned i = 0; i < plan->head_count; i++)
		free(plan->heads[i]);
	if (plan->fd >= 0)
		close(plan->fd);
	if (plan->interp_fd >= 0)
		close(plan->interp_fd);
	free(plan);
}

/* --- what kind of file it is --------------------------------------------------------------------------------------------------------- */

/* Its first bytes, zeros behind them. A program that the guest may run and not read is read as the host lets us. */
static int read_head(int fd, unsigned char head[HEAD_SIZE], int *opened)
{
	char path[32];
	struct stat st;
	ssize_t n;

	memset(head, 0, HEAD_SIZE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*opened = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (*opened < 0 && errno == EACCES && fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & S_IRUSR)) {
		if (chmod(path, st.st_mode | S_IRUSR) == 0) { /* our copy of a guest's own: the host's would refuse */
			*opened = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
			chmod(path, st.st_mode);
		}
	}
	if (*opened < 0)
		return -errno;
	n = pread(*opened, head, HEAD_SIZE, 0);
	return n < 0 ? -errno : 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Up to LAST, which is looked at as well; NULL. */
static const char *next_word(const char *at, const char *last)
{
	while (at <= last && is_blank(*at))
		at++;
	return at <= last ? at : NULL;
}

static const char *word_end(const char *at, const char *last)
{
	while (at <= last && !is_blank(*at) && *at)
		at++;
	return at <= last ? at : NULL;
}

/* fs/binfmt_script.c: load_script(). 0 with the interpreter and its argument ("" for none); -ENOEXEC. */
static int parse_script(const unsigned char head[HEAD_SIZE], char interp[HEAD_SIZE], char arg[HEAD_SIZE])
{
	const char *text = (const char *)head, *last = text + HEAD_SIZE - 1, *end = memchr(text, '\n', HEAD_SIZE), *name, *stop, *word = NULL;

	if (!end) {
		name = next_word(text + 2, last);
		if (!name || !word_end(name, last)) /* blank, or cut off */
			return -ENOEXEC;
		end = last;
	}
	while (is_blank(end[-1]))
		end--;
	name = next_word(text + 2, end);
	if (!name || name == end)
		return -ENOEXEC;
	stop = word_end(name, end);
	if (stop && stop < end && *stop)
		word = next_word(stop, end);
	if (!stop || stop > end)
		stop = end;
	snprintf(interp, HEAD_SIZE, "%.*s", (int)(stop - name), name);
	snprintf(arg, HEAD_SIZE, "%.*s", word && word < end ? (int)(end - word) : 0, word ? word : "");
	return *interp ? 0 : -ENOEXEC;
}

/* --- ELF ------------------------------------------------------------------------------------------------------------------------------- */

struct elf_interp {
	char path[INTERP_MOST]; /* "" for none */
	uint64_t header;        /* offset of its program header */
	bool wide;              /* ELFCLASS64 */
};

static bool is_own_machine(const Elf64_Ehdr *ehdr)
{
#if defined(__x86_64__)
	return ehdr->e_machine == EM_X86_64 || ehdr->e_machine == EM_386;
#elif defined(__aarch64__)
	return ehdr->e_machine == EM_AARCH64;
#else
	return ehdr->e_machine == EM_RISCV;
#endif
}

/* fs/binfmt_elf.c: load_elf_phdrs(), load_elf_binary(). What the kernel would refuse is left to it. */
static int find_interp(int fd, const unsigned char head[HEAD_SIZE], struct elf_interp *interp)
{
	const Elf64_Ehdr *wide = (const void *)head;
	const Elf32_Ehdr *narrow = (const void *)head;
	uint64_t phoff, phnum, phentsize, offset, size;
	uint32_t type;

	interp->path[0] = 0;
	interp->wide = head[EI_CLASS] == ELFCLASS64;
	if (!is_own_machine(wide)) /* binfmt_misc would start an emulator by a path of the host */
		return -ENOEXEC;
	phoff = interp->wide ? wide->e_phoff : narrow->e_phoff;
	phnum = interp->wide ? wide->e_phnum : narrow->e_phnum;
	phentsize = interp->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	for (uint64_t i = 0; i < phnum; i++) {
		Elf64_Phdr phdr;
		Elf32_Phdr *phdr32 = (void *)&phdr;

		interp->header = phoff + i * phentsize;
		if (pread(fd, &phdr, phentsize, interp->header) != (ssize_t)phentsize)
			return -ENOEXEC;
		type = phdr.p_type; /* first in both */
		offset = interp->wide ? phdr.p_offset : phdr32->p_offset;
		size = interp->wide ? phdr.p_filesz : phdr32->p_filesz;
		if (type != PT_INTERP)
			continue;
		if (size < 2 || size > PATH_MAX || pread(fd, interp->path, size, offset) != (ssize_t)size || interp->path[size - 1])
			return -ENOEXEC;
		return 0;
	}
	return 0;
}

static int check_file(const struct vfs_who *who, struct vfs_place *place, int *held)
{
	struct stat st;
	int error;

	if (!vfs_exists(place))
		return -ENOENT;
	if (place->slash)
		return -ENOTDIR;
	*held = vfs_hold(who, place, VFS_LOOK);
	if (*held < 0)
		return *held;
	if (fstat(*held, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	error = vfs_access(who, place, X_OK, true);
	return error;
}

/* The interpreter as the guest sees it; *PLAIN when the kernel finds the same by itself. */
static int walk_interp(const struct vfs_who *who, const struct elf_interp *interp, int *held, bool *plain)
{
	struct vfs_place place = VFS_PLACE_NONE;
	int error = vfs_walk(who, NULL, interp->path, VFS_FOLLOW, &place);

	*held = -1;
	if (error == 0)
		error = check_file(who, &place, held);
	*plain = place.plain;
	vfs_place_end(who->vfs, &place);
	if (error < 0 && *held >= 0) {
		close(*held);
		*held = -1;
	}
	return error;
}

/* A copy of the program in memory, whose interpreter is named by our descriptor: the text is put behind the file's end. */
static int copy_with_interp(int from, const struct elf_interp *interp, int interp_fd)
{
	int fd = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING), error = 0;
	char path[48];
	Elf64_Phdr phdr;
	Elf32_Phdr *phdr32 = (void *)&phdr;
	size_t phentsize = interp->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), len;
	struct stat st;
	off_t at = 0;

	if (fd < 0)
		return -errno;
	len = snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), interp_fd) + 1;
	if (fstat(from, &st) || pread(from, &phdr, phentsize, interp->header) != (ssize_t)phentsize)
		error = -ENOEXEC;
	if (error == 0 && st.st_size > COPY_MOST)
		error = -ENOMEM;
	while (error == 0 && at < st.st_size) /* copy_file_range(2) is for one file system */
		if (sendfile(fd, from, &at, st.st_size - at) <= 0)
			error = -ENOEXEC;
	if (interp->wide) {
		phdr.p_offset = st.st_size;
		phdr.p_filesz = len;
	} else {
		phdr32->p_offset = st.st_size;
		phdr32->p_filesz = len;
	}
	if (error == 0 && (pwrite(fd, path, len, st.st_size) != (ssize_t)len || pwrite(fd, &phdr, phentsize, interp->header) != (ssize_t)phentsize))
		error = -ENOMEM;
	if (error == 0)
		error = fchmod(fd, st.st_mode & 0777) || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ? -errno : 0;
	if (error < 0) {
		close(fd);
		return error;
	}
	return fd;
}

/* --- the plan ------------------------------------------------------------------------------------------------------------------------------ */

static int push_head(struct exec_plan *plan, const char *text)
{
	if (plan->head_count == HEADS_MOST)
		return -ELOOP;
	memmove(plan->heads + 1, plan->heads, plan->head_count * sizeof(*plan->heads));
	plan->heads[0] = strdup(text);
	if (!plan->heads[0])
		return -ENOMEM;
	plan->head_count++;
	return 0;
}

/* The interpreter takes the place of the first argument, which is the program's name. */
static int add_script(struct exec_plan *plan, const char *name, const char *interp, const char *arg)
{
	int error = 0;

	if (plan->head_count) { /* the name that the script was run by is replaced by the text that is given to its interpreter */
		free(plan->heads[0]);
		plan->head_count--;
		memmove(plan->heads, plan->heads + 1, plan->head_count * sizeof(*plan->heads));
	}
	error = push_head(plan, name);
	if (error == 0 && *arg)
		error = push_head(plan, arg);
	return error == 0 ? push_head(plan, interp) : error;
}

/* ELF: 0, and what is to run in PLAN. */
static int plan_elf(const struct vfs_who *who, struct exec_plan *plan, int opened, const unsigned char head[HEAD_SIZE])
{
	struct elf_interp interp;
	int error = find_interp(opened, head, &interp), copy;
	bool plain = true;

	if (error < 0 || !interp.path[0])
		return error;
	error = walk_interp(who, &interp, &plan->interp_fd, &plain);
	if (error < 0)
		return error;
	if (plain)
		return 0;
	copy = copy_with_interp(opened, &interp, plan->interp_fd);
	if (copy < 0)
		return copy;
	close(plan->fd);
	plan->fd = copy;
	plan->plain = false;
	return 0;
}

/* fs/exec.c: a program that is named by a descriptor alone is called as the file that runs is. */
static void name_of_object(int fd, char comm[NAME_MAX + 1])
{
	char link[32], path[PATH_MAX];
	const char *base;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return;
	path[n] = 0;
	if (n > 10 && !strcmp(path + n - 10, " (deleted)"))
		path[n - 10] = 0;
	base = strrchr(path, '/');
	snprintf(comm, NAME_MAX + 1, "%.255s", base ? base + 1 : path);
}

/* What is at PLACE, called NAME. 1: a script, and INTERP is next. */
static int plan_step(const struct vfs_who *who, struct exec_plan *plan, struct vfs_place *place, const char *name, char interp[HEAD_SIZE])
{
	unsigned char head[HEAD_SIZE];
	char arg[HEAD_SIZE];
	int opened = -1, error;

	if (plan->fd >= 0)
		close(plan->fd);
	plan->fd = -1;
	error = check_file(who, place, &plan->fd);
	if (error < 0)
		return error;
	if (plan->by_object)
		name_of_object(plan->fd, plan->comm);
	error = read_head(plan->fd, head, &opened);
	plan->plain = plan->plain && place->plain && plan->head_count == 0;
	plan->unread = error == -EACCES && place->plain;
	if (plan->unread) /* the host's: no script could be read by its interpreter */
		return 0;
	if (error == 0 && head[0] == '#' && head[1] == '!') {
		error = parse_script(head, interp, arg);
		if (error == 0)
			error = add_script(plan, name, interp, arg);
		error = error < 0 ? error : 1;
	} else if (error == 0) {
		error = memcmp(head, ELFMAG, SELFMAG) ? -ENOEXEC : plan_elf(who, plan, opened, head);
	}
	if (opened >= 0)
		close(opened);
	return error;
}

static int make_link(struct env *env, struct exec_plan *plan)
{
	const char *base = strrchr(plan->name, '/') ? strrchr(plan->name, '/') + 1 : plan->name;
	size_t want = strlen(plan->name), len;
	char dir[32], target[48], file[PATH_MAX];
	int pad;

	if (plan->comm[0])
		base = plan->comm;
	if (env->work_fd < 0)
		return -EACCES;
	plan->serial = ++env->serial;
	snprintf(dir, sizeof(dir), "x%u", plan->serial);
	snprintf(target, sizeof(target), "/proc/%d/fd/%d", getpid(), plan->fd);
	if (!*base)
		base = "program";
	len = snprintf(file, sizeof(file), "/proc/%d/fd/%d/%s", getpid(), env->work_fd, dir);
	/* as long as the guest's text, which takes its place afterwards */
	pad = want > len + 1 + strlen(base) ? (int)(want - len - 1 - strlen(base)) : 0;
	if (len + pad + strlen(base) + 2 > sizeof(plan->path))
		return -ENAMETOOLONG;
	memcpy(plan->path, file, len);
	memset(plan->path + len, '/', pad + 1);
	strcpy(plan->path + len + pad + 1, base);
	snprintf(file, sizeof(file), "%s/%.255s", dir, base);
	if (mkdirat(env->work_fd, dir, 0755) || symlinkat(target, env->work_fd, file))
		return -errno;
	return 0;
}

/* PLACE is what NAME was walked to: the text that the guest's program finds in AT_EXECFN. */
static int plan_make(struct env *env, const struct vfs_who *who, struct vfs_place *place, const char *name, struct exec_plan *plan)
{
	char interp[HEAD_SIZE], at[PATH_MAX];
	struct vfs_place next = VFS_PLACE_NONE;
	struct stat st;
	int error;

	snprintf(plan->name, sizeof(plan->name), "%s", name);
	snprintf(at, sizeof(at), "%s", name);
	plan->plain = name[0] == '/';
	error = plan_step(who, plan, place, name, interp);
	for (int depth = 0; error == 1; depth++) {
		if (depth == SCRIPTS_MOST)
			return -ELOOP;
		plan->plain = false;
		vfs_place_end(who->vfs, &next);
		error = vfs_walk(who, NULL, interp, VFS_FOLLOW, &next);
		if (error < 0)
			break;
		memcpy(at, interp, sizeof(interp));
		error = plan_step(who, plan, &next, at, interp);
	}
	vfs_place_end(who->vfs, &next);
	if (error < 0)
		return error;
	if (fstat(plan->fd, &st))
		return -errno;
	plan->dev = st.st_dev;
	plan->ino = st.st_ino;
	if (!plan->plain)
		return make_link(env, plan);
	strcpy(plan->path, plan->name);
	return 0;
}

static struct exec_plan *plan_new(void)
{
	struct exec_plan *plan = calloc(1, sizeof(*plan));

	if (plan)
		plan->fd = plan->interp_fd = -1;
	return plan;
}

/* --- the guest's call -------------------------------------------------------------------------------------------------------------------------- */

/* fs/exec.c: count(). How many pointers there are before the NULL. */
static int read_argv(struct call *call, uint64_t addr, uint64_t **vector)
{
	size_t count = 0, room = 64, word = call->arch->word;
	uint64_t *all = calloc(room, sizeof(*all)), value;
	int error = 0;

	*vector = NULL;
	if (!all)
		return -ENOMEM;
	for (; addr && error == 0; addr += word) {
		value = 0;
		error = guest_read(call, addr, &value, word);
		if (error < 0 || !value)
			break;
		if (count == ARGS_MOST) {
			error = -E2BIG;
		} else if (count == room) {
			uint64_t *grown = realloc(all, 2 * room * sizeof(*grown));

			if (!grown)
				error = -ENOMEM;
			else
				all = grown, room *= 2;
		}
		if (error == 0)
			all[count++] = value;
	}
	if (error < 0) {
		free(all);
		return error;
	}
	*vector = all;
	return count;
}

/* The vector in the window: our words, then the guest's own, whose texts stay in its memory: nothing was decided by them. */
static int put_argv(struct call *call, const struct exec_plan *plan, uint64_t old, uint64_t *new)
{
	size_t word = call->arch->word, total;
	uint64_t *vector = NULL, text;
	unsigned char *block = NULL;
	int count = read_argv(call, old, &vector), error = 0;

	if (count < 0)
		return count;
	total = plan->head_count + (count > 1 ? count - 1 : 0);
	block = calloc(total + 1, word);
	if (!block)
		error = -ENOMEM;
	for (unsigned i = 0; error == 0 && i < plan->head_count; i++) {
		error = guest_window_put(call, plan->heads[i], strlen(plan->heads[i]) + 1, &text);
		memcpy(block + i * word, &text, word);
	}
	for (int i = 1; error == 0 && i < count; i++)
		memcpy(block + (plan->head_count + i - 1) * word, &vector[i], word);
	if (error == 0)
		error = guest_window_put(call, block, (total + 1) * word, new);
	free(block);
	free(vector);
	return error;
}

static void exec_end(struct env *env, struct call *call, int64_t result)
{
	struct task_env *task = call->state;

	(void)result;
	plan_free(env, task->exec);
	task->exec = NULL;
}

static struct verdict exec_run(struct env *env, struct call *call, struct exec_plan *plan, const uint64_t vectors[2])
{
	struct verdict verdict = { .kind = VERDICT_REWRITE, .id = CALL_execve, .want_end = true };
	struct task_env *task = call->state;
	int error = guest_window_put(call, plan->path, strlen(plan->path) + 1, &verdict.args[0]);

	verdict.args[1] = vectors[0];
	verdict.args[2] = vectors[1];
	if (error == 0 && plan->head_count)
		error = put_argv(call, plan, vectors[0], &verdict.args[1]);
	if (error < 0) {
		plan_free(env, plan);
		return verdict_answer(error == -ENOSYS ? -EACCES : error);
	}
	task->exec = plan;
	task->end = exec_end;
	return verdict;
}

static struct verdict exec_at(struct env *env, struct call *call, int dirfd, uint64_t path_addr, const uint64_t vectors[2], int flags)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct exec_plan *plan = plan_new();
	char path[PATH_MAX], name[PATH_MAX + 32];
	struct vfs_who who;
	int error = plan ? env_who(env, call, &who) : -ENOMEM;

	if (error == 0 && flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		error = -EINVAL;
	if (error == 0)
		error = env_path(call, path_addr, path);
	if (error == 0)
		error = env_walk_path(&who, dirfd, path, (flags & AT_SYMLINK_NOFOLLOW ? 0 : VFS_FOLLOW) | (flags & AT_EMPTY_PATH ? VFS_EMPTY : 0),
		                      &place);
	if (error == 0) {
		/* fs/exec.c: alloc_bprm() */
		if (dirfd == AT_FDCWD || path[0] == '/')
			snprintf(name, sizeof(name), "%s", path);
		else
			snprintf(name, sizeof(name), *path ? "/dev/fd/%d/%s" : "/dev/fd/%d%s", dirfd, path);
		plan->by_object = !*path;
		error = strlen(name) < PATH_MAX ? plan_make(env, &who, &place, name, plan) : -ENAMETOOLONG;
		/* fs/binfmt_script.c: BINPRM_FLAGS_PATH_INACCESSIBLE. The interpreter could not open it. */
		if (error == 0 && plan->head_count && !strncmp(name, "/dev/fd/", 8) && dirfd != AT_FDCWD && path[0] != '/' &&
		    env_fd_flags(call, dirfd) & O_CLOEXEC)
			error = -ENOENT;
	}
	vfs_place_end(env->vfs, &place);
	if (error < 0) {
		plan_free(env, plan);
		return verdict_answer(error);
	}
	return exec_run(env, call, plan, vectors);
}

struct verdict sys_execve(void *context, struct call *call)
{
	return exec_at(context, call, AT_FDCWD, call->args[0], call->args + 1, 0);
}

struct verdict sys_execveat(void *context, struct call *call)
{
	return exec_at(context, call, (int)call->args[0], call->args[1], call->args + 2, (int)call->args[4]);
}

/* --- the new program ------------------------------------------------------------------------------------------------------------------------------ */

/* Nothing of our path stays in the program's memory. */
static void put_name(struct call *call, const struct exec_plan *plan)
{
	char text[PATH_MAX] = { 0 };
	size_t len = strlen(plan->path);
	uint64_t addr;

	if (plan->plain || guest_auxv(call, AT_EXECFN, &addr) < 0)
		return;
	snprintf(text, sizeof(text), "%s", plan->name);
	guest_write(call, addr, text, len + 1);
}

/* What a link of /proc leads to, as maps(5) writes it. */
static int link_text(const char *link, char text[PATH_MAX])
{
	char path[PATH_MAX];
	ssize_t n = readlink(link, path, sizeof(path));
	size_t len = 0;

	if (n < 0)
		return -errno;
	for (ssize_t i = 0; i < n; i++) {
		if (len + 5 > PATH_MAX)
			return -ENAMETOOLONG;
		if (path[i] == '\n')
			len += (size_t)snprintf(text + len, 5, "\\012");
		else
			text[len++] = path[i];
	}
	text[len] = 0;
	return 0;
}

/*
 * Nothing but the program and its interpreter is mapped yet. The kernel has read the interpreter's name from the program, and has
 * walked it, after us: both may have been changed in between. What is mapped is what runs, and its name cannot be another file's
 * at the same time.
 */
static int check_mapped(const struct call *call, const struct exec_plan *plan)
{
	char link[48], program[PATH_MAX], interp[PATH_MAX] = "", *line = NULL;
	size_t size = 0;
	FILE *maps;
	int error, at;

	snprintf(link, sizeof(link), "/proc/%d/exe", call->tid);
	error = link_text(link, program);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", plan->interp_fd);
	if (error == 0 && plan->interp_fd >= 0)
		error = link_text(link, interp);
	snprintf(link, sizeof(link), "/proc/%d/maps", call->tid);
	maps = error < 0 ? NULL : fopen(link, "re");
	if (!maps)
		return error < 0 ? error : -errno;
	while (error == 0 && getline(&line, &size, maps) > 0) {
		line[strcspn(line, "\n")] = 0;
		at = 0;
		sscanf(line, "%*s %*s %*s %*s %*s %n", &at); /* range, protection, offset, device, inode */
		if (at && line[at] == '/' && strcmp(line + at, program) && strcmp(line + at, interp))
			error = -EPERM;
	}
	free(line);
	fclose(maps);
	return error;
}

int exec_check(struct env *env, struct call *call, const struct exec_plan *plan)
{
	struct task_env *task = call->state;
	char path[32];
	struct stat st;
	int error;

	(void)env;
	env_cred_changed(call); /* capabilities go or come, the file may be set-user-ID */
	if (!plan)
		plan = task ? task->exec : NULL;
	if (!plan)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%d/exe", call->tid);
	if (stat(path, &st))
		return errno == ENOENT || errno == ESRCH ? 0 : -EPERM; /* killed meanwhile */
	if (st.st_dev != plan->dev || st.st_ino != plan->ino)
		return -EPERM;
	error = plan->unread ? 0 : check_mapped(call, plan);
	if (error < 0)
		return error == -ENOENT || error == -ESRCH ? 0 : -EPERM;
	put_name(call, plan);
	return 0;
}

int exec_first(struct env *env, const struct vfs_who *who, const char *path, char *const *argv, struct exec_start *start)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct exec_plan *plan = plan_new();
	size_t count = 0;
	int error = plan ? vfs_walk(who, NULL, path, VFS_FOLLOW, &place) : -ENOMEM;

	*start = (struct exec_start){ .plan = plan };
	if (error == 0)
		error = plan_make(env, who, &place, path, plan);
	vfs_place_end(env->vfs, &place);
	while (argv[count])
		count++;
	start->argv = error == 0 ? calloc(count + HEADS_MOST + 1, sizeof(*start->argv)) : NULL;
	if (error == 0 && !start->argv)
		error = -ENOMEM;
	if (error < 0) {
		exec_start_end(env, start);
		return error;
	}
	start->path = plan->path;
	memcpy(start->argv, plan->heads, plan->head_count * sizeof(*start->argv));
	memcpy(start->argv + plan->head_count, argv + (plan->head_count ? 1 : 0), (count - (plan->head_count ? 1 : 0)) * sizeof(*start->argv));
	return 0;
}

void exec_start_end(struct env *env, struct exec_start *start)
{
	free(start->argv);
	plan_free(env, start->plan);
	*start = (struct exec_start){ .plan = NULL };
}
