/* program.c - finds the executable of a command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/program.h"

static int check(int dirfd, const char *path)
{
	struct stat st;

	if (fstatat(dirfd, path, &st, 0))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(dirfd, path, X_OK, AT_EACCESS) ? -errno : 0;
}

static int search_path(int dirfd, const char *command, const char *search, char *out, size_t size)
{
	int worst = -ENOENT;

	for (;;) {
		size_t len = strcspn(search, ":");
		int n = len ? snprintf(out, size, "%.*s/%s", (int)len, search, command) : snprintf(out, size, "./%s", command);
		int error = n < 0 || (size_t)n >= size ? -ENAMETOOLONG : check(dirfd, out);

		if (error == 0)
			return 0;
		if (error == -EACCES)
			worst = -EACCES; /* found but not executable, unless a later one is */
		if (!search[len])
			return worst;
		search += len + 1;
	}
}

int program_find(const char *command, const char *search, const char *dir, char *out, size_t size)
{
	char standard[256];
	int error, dirfd = AT_FDCWD;

	if (!*command)
		return -ENOENT;
	if (dir) {
		dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dirfd < 0)
			return -errno;
	}
	if (!search && confstr(_CS_PATH, standard, sizeof(standard)))
		search = standard;
	if (!strchr(command, '/'))
		error = search ? search_path(dirfd, command, search, out, size) : -ENOENT;
	else if ((size_t)snprintf(out, size, "%s", command) >= size)
		error = -ENAMETOOLONG;
	else
		error = check(dirfd, out);
	if (dirfd >= 0)
		close(dirfd);
	return error;
}
