/* upper.c - opening, checking and closing uppers */
#include "vfs/upper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vfs/mark.h"
#include "vfs/origin.h"
#include "vfs/upper_impl.h"

enum { NAME_LONGEST = 128, FORMAT_READ = 64 };

int upper_why(int error, char *why, size_t size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, size, format, ap);
	va_end(ap);
	return error;
}

int upper_fd(int fd)
{
	int high, error;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	error = errno;
	close(fd);
	return high < 0 ? -error : high;
}

int upper_open_below(int dirfd, const char *name)
{
	return upper_fd(openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* --- making ------------------------------------------------------------------------------------------------------------------ */

/* Without the umask, which is the whole process's. */
static int directory_make(int root_fd, const char *name, mode_t mode)
{
	int fd, error = 0;

	if (mkdirat(root_fd, name, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, mode) < 0)
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

/* The guest's "/" has the attributes of the lower's until a guest changes them. */
static int root_mark(int root_fd)
{
	const struct mark scaffold = { .scaffold = true };
	struct mark mark;
	int error, fd = openat(root_fd, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	error = mark_read(fd, &mark);
	if (error == -ENOENT)
		error = mark_write(fd, &scaffold);
	close(fd);
	return error;
}

int upper_layout(int root_fd)
{
	int error = directory_make(root_fd, "fs", 0755);

	if (!error)
		error = root_mark(root_fd);
	if (!error)
		error = directory_make(root_fd, "work", 0700);
	return error ? error : directory_make(root_fd, "index", 0700);
}

static int format_write(int root_fd)
{
	int error = 0, fd = openat(root_fd, "format.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (write(fd, UPPER_FORMAT, sizeof(UPPER_FORMAT) - 1) != (ssize_t)sizeof(UPPER_FORMAT) - 1)
		error = errno ? -errno : -EIO;
	close(fd);
	if (!error && renameat(root_fd, "format.new", root_fd, "format") < 0)
		error = -errno;
	if (error)
		unlinkat(root_fd, "format.new", 0);
	return error;
}

int upper_initialise(struct upper *upper)
{
	int error = 0;

	if (upper->lock_fd < 0)
		upper->lock_fd = upper_lock(upper->root_fd);
	if (upper->lock_fd < 0)
		return upper->lock_fd;
	error = upper_layout(upper->root_fd);
	return error ? error : format_write(upper->root_fd);
}

/* --- lock -------------------------------------------------------------------------------------------------------------------- */

/* upper_user() of another process may hold it for a moment. */
static int lock_try(int fd)
{
	const struct timespec moment = { .tv_nsec = 2000000 };

	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tries++) {
		if (errno != EWOULDBLOCK)
			return -errno;
		if (tries == 5)
			return -EBUSY;
		nanosleep(&moment, NULL);
	}
	return 0;
}

int upper_lock(int root_fd)
{
	int error, fd = upper_fd(openat(root_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
	char pid[16];
	int len = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

	if (fd < 0)
		return fd;
	error = lock_try(fd);
	if (!error && (ftruncate(fd, 0) < 0 || pwrite(fd, pid, len, 0) != len))
		error = errno ? -errno : -ENOSPC;
	if (!error)
		return fd;
	close(fd);
	return error;
}

pid_t upper_user(int root_fd)
{
	int fd = openat(root_fd, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[16];
	ssize_t n;
	pid_t pid = 0;

	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0) {
		n = pread(fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		pid = atoi(text) > 0 ? atoi(text) : -1;
	}
	close(fd);
	return pid;
}

static int lock_why(const struct upper *upper, int error, const char *path, char *why, size_t size)
{
	pid_t user = error == -EBUSY ? upper_user(upper->root_fd) : 0;

	if (error != -EBUSY)
		return upper_why(error, why, size, "cannot lock '%s': %s", path, strerror(-error));
	if (user > 0)
		return upper_why(error, why, size, "the overlay '%s' is in use by process %d", path, (int)user);
	return upper_why(error, why, size, "the overlay '%s' is in use", path);
}

/* --- checks ------------------------------------------------------------------------------------------------------------------ */

/* The text of the format file; the length or a negative errno. */
static ssize_t format_read(int root_fd, char text[FORMAT_READ])
{
	int fd = openat(root_fd, "format", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? read(fd, text, FORMAT_READ - 1) : -EUCLEAN;
	if (n < 0 && errno && n == -1)
		n = -errno;
	close(fd);
	if (n >= 0)
		text[n] = '\0';
	return n;
}

bool upper_is(int root_fd)
{
	char text[FORMAT_READ];

	return format_read(root_fd, text) > 0 && !strncmp(text, "interpose-overlay ", 18);
}

static int format_check(int root_fd, const char *path, char *why, size_t size)
{
	char text[FORMAT_READ];
	ssize_t n = format_read(root_fd, text);

	if (n == -ENOENT)
		return upper_why(-EUCLEAN, why, size, "'%s' is no overlay: there is no file 'format' in it", path);
	if (n < 0)
		return upper_why(-EUCLEAN, why, size, "the overlay '%s' is damaged: its file 'format' cannot be read", path);
	if (!strcmp(text, UPPER_FORMAT))
		return 0;
	if (strncmp(text, "interpose-overlay ", 18))
		return upper_why(-EUCLEAN, why, size, "the overlay '%s' is damaged: its file 'format' is not one of interpose", path);
	text[strcspn(text, "\n")] = '\0';
	return upper_why(-EUCLEAN, why, size, "the overlay '%s' has the format '%s', and this interpose reads '%.*s' only", path, text,
			 (int)sizeof(UPPER_FORMAT) - 2, UPPER_FORMAT);
}

static int root_check(const struct upper *upper, const char *path, char *why, size_t size)
{
	struct stat st;

	if (fstat(upper->root_fd, &st) < 0)
		return upper_why(-errno, why, size, "cannot look at '%s': %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return upper_why(-EPERM, why, size, "the overlay '%s' belongs to another user (%u)", path, (unsigned)st.st_uid);
	if (st.st_mode & 022)
		return upper_why(-EPERM, why, size, "the overlay '%s' can be written by others: chmod go-w it", path);
	return 0;
}

static int part_open(struct upper *upper, const char *name, int *fd)
{
	struct stat st;

	*fd = upper_open_below(upper->root_fd, name);
	if (*fd < 0)
		return *fd;
	if (fstat(*fd, &st) < 0)
		return -errno;
	if (st.st_dev != upper->dev)
		return -EXDEV;
	/* fs/ is a guest's "/", whose owner root may have changed. */
	return st.st_uid != geteuid() && geteuid() != 0 ? -EPERM : 0;
}

int upper_open_parts(struct upper *upper)
{
	struct stat st;
	int error;

	if (fstat(upper->root_fd, &st) < 0)
		return -errno;
	upper->dev = st.st_dev;
	error = part_open(upper, "fs", &upper->fs_fd);
	if (!error)
		error = part_open(upper, "work", &upper->work_fd);
	return error ? error : part_open(upper, "index", &upper->index_fd);
}

static int parts_check(struct upper *upper, const char *path, char *why, size_t size)
{
	int error = upper_open_parts(upper);
	const char *part = upper->fs_fd < 0 ? "fs" : upper->work_fd < 0 ? "work" : "index";
	struct mark mark;

	if (error == -EXDEV)
		return upper_why(-EUCLEAN, why, size, "the overlay '%s' is damaged: something is mounted in it", path);
	if (error == -EPERM)
		return upper_why(-EUCLEAN, why, size, "the overlay '%s' is damaged: a part of it belongs to another user", path);
	if (error == -ENOENT)
		return upper_why(-EUCLEAN, why, size, "the overlay '%s' is damaged: its directory '%s' is missing", path, part);
	if (error == -ENOTDIR || error == -ELOOP)
		return upper_why(-EUCLEAN, why, size, "the overlay '%s' is damaged: its '%s' is no directory", path, part);
	if (error)
		return upper_why(error, why, size, "cannot open '%s/%s': %s", path, part, strerror(-error));
	error = mark_read(upper->fs_fd, &mark);
	if (error == -EUCLEAN)
		return upper_why(error, why, size, "the overlay '%s' is damaged: the mark of its root cannot be read", path);
	return 0;
}

static int origins_open(struct upper *upper, bool write, const char *path, char *why, size_t size)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (write ? O_RDWR | O_APPEND | O_CREAT : O_RDONLY);
	int error = 0;

	upper->origins_fd = upper_fd(openat(upper->root_fd, "origins", flags, 0600));
	if (upper->origins_fd < 0)
		error = upper->origins_fd == -ENOENT && !write ? 0 : upper->origins_fd;
	else if (write)
		error = origin_repair(upper->origins_fd);
	if (upper->origins_fd < 0)
		upper->origins_fd = -1;
	return error ? upper_why(error, why, size, "cannot open '%s/origins': %s", path, strerror(-error)) : 0;
}

/* --- opening ------------------------------------------------------------------------------------------------------------------ */

static void upper_clear(struct upper *upper)
{
	*upper = (struct upper){ .root_fd = -1, .fs_fd = -1, .work_fd = -1, .index_fd = -1, .view_fd = -1, .origins_fd = -1,
				 .lock_fd = -1 };
}

/* Root sees the guest paths of an overlay on disk too; others do not need to. */
static void view_open(struct upper *upper)
{
	upper->view_fd = upper_fd(syscall(SYS_open_tree, upper->root_fd, "fs", OPEN_TREE_CLONE | O_CLOEXEC));
	if (upper->view_fd < 0)
		upper->view_fd = -1;
}

static int root_open(struct upper *upper, const char *path, char *why, size_t size)
{
	upper_clear(upper);
	upper->persistent = true;
	upper->root_fd = upper_fd(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (upper->root_fd < 0)
		return upper_why(upper->root_fd, why, size, "cannot open the overlay '%s': %s", path, strerror(-upper->root_fd));
	upper->path = strdup(path);
	if (!upper->path)
		return upper_why(-ENOMEM, why, size, "out of memory");
	return root_check(upper, path, why, size);
}

static int lock_take(struct upper *upper, const char *path, char *why, size_t size)
{
	struct stat before, now;
	int error;

	upper->lock_fd = upper_lock(upper->root_fd);
	if (upper->lock_fd < 0) {
		error = upper->lock_fd;
		upper->lock_fd = -1;
		return lock_why(upper, error, path, why, size);
	}
	/* It may have been discarded while we opened it. */
	if (fstat(upper->root_fd, &before) < 0 || stat(path, &now) < 0 || before.st_dev != now.st_dev || before.st_ino != now.st_ino)
		return upper_why(-ENOENT, why, size, "the overlay '%s' was removed meanwhile", path);
	return 0;
}

static int existing_check(struct upper *upper, const char *path, bool lock, char *why, size_t size)
{
	int error = format_check(upper->root_fd, path, why, size);

	if (!error && lock && mkdirat(upper->root_fd, "work", 0700) < 0 && errno != EEXIST)
		error = upper_why(-errno, why, size, "cannot make '%s/work': %s", path, strerror(errno));
	if (!error)
		error = parts_check(upper, path, why, size);
	if (!error)
		error = origins_open(upper, lock, path, why, size);
	if (error || !lock)
		return error;
	error = upper_empty(upper->work_fd, NULL);
	return error ? upper_why(error, why, size, "cannot empty '%s/work': %s", path, strerror(-error)) : 0;
}

/* Only what upper_initialise() makes before it is complete. */
static int new_check(int root_fd, const char *path, char *why, size_t size)
{
	static const char *const ours[] = { ".", "..", "lock", "fs", "work", "index", "format.new" };
	int fd = upper_open_below(root_fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int error = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return upper_why(-EIO, why, size, "cannot read '%s'", path);
	}
	for (struct dirent *entry; !error && (entry = readdir(dir));) {
		size_t i = 0;

		while (i < sizeof(ours) / sizeof(ours[0]) && strcmp(entry->d_name, ours[i]))
			i++;
		if (i == sizeof(ours) / sizeof(ours[0]))
			error = upper_why(-EUCLEAN, why, size, "'%s' is neither empty nor an overlay: '%s' is in it", path, entry->d_name);
	}
	closedir(dir);
	return error;
}

static int dir_open(struct upper *upper, const char *path, char *why, size_t size)
{
	bool is_new;
	int error;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return upper_why(-errno, why, size, "cannot make the overlay '%s': %s", path, strerror(errno));
	error = root_open(upper, path, why, size);
	if (error)
		return error;
	is_new = faccessat(upper->root_fd, "format", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
	if (is_new)
		error = new_check(upper->root_fd, path, why, size);
	else
		error = format_check(upper->root_fd, path, why, size);
	if (!error)
		error = lock_take(upper, path, why, size);
	if (!error && is_new) {
		error = upper_initialise(upper);
		if (error)
			upper_why(error, why, size, "cannot make the overlay '%s': %s", path, strerror(-error));
	}
	return error ? error : existing_check(upper, path, true, why, size);
}

int upper_open_dir(struct upper *upper, const char *path, char *why, size_t size)
{
	int error;

	upper_clear(upper);
	error = dir_open(upper, path, why, size);
	if (error)
		upper_close(upper);
	else
		view_open(upper);
	return error;
}

int upper_open_existing(struct upper *upper, const char *path, bool lock, char *why, size_t size)
{
	int error;

	upper_clear(upper);
	error = root_open(upper, path, why, size);
	if (error == -ENOENT)
		upper_why(error, why, size, "there is no overlay '%s'", path);
	/* Nothing is written into a directory that is no upper. */
	if (!error)
		error = format_check(upper->root_fd, path, why, size);
	if (!error && lock)
		error = lock_take(upper, path, why, size);
	if (!error)
		error = existing_check(upper, path, lock, why, size);
	if (error)
		upper_close(upper);
	return error;
}

int upper_open_memory(struct upper *upper, bool force_directory, char *why, size_t size)
{
	int error = -ENOSYS;

	upper_clear(upper);
	if (!force_directory)
		error = upper_tmpfs(upper);
	if (error)
		error = upper_temporary(upper, why, size);
	if (error)
		return error;
	error = upper_open_parts(upper);
	if (error) {
		upper_why(error, why, size, "cannot use the overlay in memory: %s", strerror(-error));
		upper_close(upper);
	}
	return error;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void upper_close(struct upper *upper)
{
	if (!upper->persistent && upper->path) {
		upper_remove_contents(upper->root_fd);
		rmdir(upper->path);
	}
	fd_close(&upper->view_fd);
	fd_close(&upper->fs_fd);
	fd_close(&upper->work_fd);
	fd_close(&upper->index_fd);
	fd_close(&upper->origins_fd);
	fd_close(&upper->lock_fd);
	fd_close(&upper->root_fd);
	free(upper->path);
	upper->path = NULL;
}

/* --- names -------------------------------------------------------------------------------------------------------------------- */

bool upper_name_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);

	return len > 0 && len <= NAME_LONGEST && name[0] != '.' && strspn(name, allowed) == len;
}

static char *join(const char *a, const char *b, const char *c)
{
	char *path;

	return asprintf(&path, "%s%s%s", a, b, c) < 0 ? NULL : path;
}

char *upper_state_dir(char *why, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path;

	if (state && state[0] == '/') {
		path = join(state, "/interpose", "");
	} else if (home && home[0] == '/') {
		path = join(home, "/.local/state/interpose", "");
	} else {
		upper_why(-ENOENT, why, size, "there is no place for named overlays: neither HOME nor XDG_STATE_HOME is an absolute path");
		return NULL;
	}
	if (!path)
		upper_why(-ENOMEM, why, size, "out of memory");
	return path;
}

char *upper_path_of(const char *name, char *why, size_t size)
{
	char *path, *state;

	if (strchr(name, '/')) {
		path = strdup(name);
	} else if (!upper_name_valid(name)) {
		upper_why(-EINVAL, why, size, "'%s' is no name of an overlay: those have up to %d letters, digits, '.', '_' and '-', and begin "
			  "with no dot; write './%s' for a directory", name, NAME_LONGEST, name);
		return NULL;
	} else {
		state = upper_state_dir(why, size);
		if (!state)
			return NULL;
		path = join(state, "/", name);
		free(state);
	}
	if (!path)
		upper_why(-ENOMEM, why, size, "out of memory");
	return path;
}

/* Makes the directories above PATH that are missing. */
static int parents_make(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int error;

		*slash = '\0';
		error = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (error == -ENOENT || error == -ENOTDIR || error == -ENOSPC || error == -EACCES || error == -EROFS)
			return error;
	}
	return 0;
}

int upper_open_named(struct upper *upper, const char *name, char *why, size_t size)
{
	char *path;
	int error;

	upper_clear(upper);
	if (!upper_name_valid(name))
		return upper_why(-EINVAL, why, size, "'%s' is no name of an overlay: those have up to %d letters, digits, '.', '_' and '-', "
				 "and begin with no dot", name, NAME_LONGEST);
	path = upper_path_of(name, why, size);
	if (!path)
		return -ENOENT;
	error = parents_make(path);
	if (error)
		upper_why(error, why, size, "cannot make the directories of '%s': %s", path, strerror(-error));
	else
		error = upper_open_dir(upper, path, why, size);
	free(path);
	return error;
}
