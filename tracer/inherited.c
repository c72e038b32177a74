/* inherited.c - descriptors that interpose was started with. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracer/inherited.h"

static int add(struct inherited *inherited, int fd)
{
	int *fds = reallocarray(inherited->fds, inherited->count + 1, sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	fds[inherited->count++] = fd;
	inherited->fds = fds;
	return 0;
}

int inherited_list(struct inherited *inherited)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int error = 0;

	*inherited = (struct inherited){ NULL, 0 };
	if (!dir)
		return -errno;
	while (!error && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && fd != dirfd(dir))
			error = add(inherited, fd);
	}
	closedir(dir);
	return error;
}

void inherited_close(struct inherited *inherited)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

	for (size_t i = 0; i < inherited->count; i++)
		close(inherited->fds[i]);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		close(null);
	}
	free(inherited->fds);
	*inherited = (struct inherited){ NULL, 0 };
}
