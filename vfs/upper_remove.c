/*
 * upper_remove.c - removal of trees of any depth
 *
 * Directories are moved to the top of the tree before they are emptied, so that neither paths, nor descriptors, nor the stack
 * grow with the depth.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/upper_impl.h"

struct removal {
	int top;		/* the directory that is emptied */
	const char *keep;	/* an entry of it that is the last, or NULL */
	unsigned long moved;	/* for new names */
};

/* Guests may have taken the user's own rights from a directory. */
static int open_forced(int dirfd, const char *name)
{
	char path[32];
	int fd = upper_open_below(dirfd, name), held;
	struct stat st;

	if (fd != -EACCES && fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IRWXU) == S_IRWXU)
		return fd;
	if (fd >= 0)
		close(fd);
	held = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (held < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	chmod(path, S_IRWXU);
	close(held);
	return upper_open_below(dirfd, name);
}

static int move_up(struct removal *removal, int dirfd, const char *name)
{
	char to[32];
	int fd;

	do {
		snprintf(to, sizeof(to), "removed.%lu", removal->moved++);
		if (renameat2(dirfd, name, removal->top, to, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno == EINVAL && renameat(dirfd, name, removal->top, to) == 0)
			return 0;
	} while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
	if (errno != EACCES && errno != EPERM)
		return -errno;
	/* Its `..` changes, so that it must be writable itself. */
	fd = open_forced(dirfd, name);
	if (fd < 0)
		return fd;
	close(fd);
	return renameat(dirfd, name, removal->top, to) < 0 ? -errno : 0;
}

/* Removes what is no directory from it, and moves directories up. */
static int directory_clear(struct removal *removal, int fd)
{
	DIR *dir = fdopendir(fd);
	int error = 0;

	if (!dir) {
		error = -errno;
		close(fd);
		return error;
	}
	for (struct dirent *entry; !error && (entry = readdir(dir));) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (unlinkat(dirfd(dir), name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM)
			error = -errno;
		else if (unlinkat(dirfd(dir), name, AT_REMOVEDIR) < 0)
			error = errno == ENOTEMPTY || errno == EEXIST || errno == EACCES ? move_up(removal, dirfd(dir), name) : -errno;
	}
	closedir(dir);
	return error;
}

/* What is mounted below is not emptied: a mount point further down cannot be moved up. FD is closed when it is another. */
static bool same_device(const struct removal *removal, int fd)
{
	struct stat top, st;

	if (fstat(removal->top, &top) == 0 && fstat(fd, &st) == 0 && top.st_dev == st.st_dev)
		return true;
	close(fd);
	return false;
}

/* Entries of a directory that changes meanwhile may be missed: all passes but the last find something to remove. */
static int pass(struct removal *removal, bool *found)
{
	int fd = upper_open_below(removal->top, "."), error = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		error = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	*found = false;
	for (struct dirent *entry; !error && (entry = readdir(dir));) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") || (removal->keep && !strcmp(name, removal->keep)))
			continue;
		*found = true;
		if (unlinkat(removal->top, name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM) {
			error = -errno;
			continue;
		}
		fd = open_forced(removal->top, name);
		error = fd < 0 ? fd : same_device(removal, fd) ? directory_clear(removal, fd) : -EBUSY;
		if (!error && unlinkat(removal->top, name, AT_REMOVEDIR) < 0)
			error = -errno;
	}
	closedir(dir);
	return error;
}

int upper_empty(int dirfd, const char *keep)
{
	struct removal removal = { .top = dirfd, .keep = keep };
	bool found = true;
	int error = 0;

	while (found && !error)
		error = pass(&removal, &found);
	if (!error && keep && unlinkat(dirfd, keep, 0) < 0 && errno != ENOENT)
		error = -errno;
	return error;
}

int upper_remove_contents(int root_fd)
{
	return upper_empty(root_fd, "format");
}

void upper_remove_discarded(int state_fd)
{
	int own = upper_open_below(state_fd, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		int fd = strncmp(entry->d_name, ".discarded.", 11) ? -1 : upper_open_below(own, entry->d_name);
		struct stat st;

		if (fd < 0)
			continue;
		if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && upper_remove_contents(fd) == 0)
			unlinkat(own, entry->d_name, AT_REMOVEDIR);
		close(fd);
	}
	if (dir)
		closedir(dir);
}
