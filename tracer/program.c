/* program.c - finds the executable of a command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracer/program.h"

static int search_path(const char *command, const char *search, program_check *check, void *context, char *out, size_t size)
{
	int worst = -ENOENT;

	for (;;) {
		size_t len = strcspn(search, ":");
		int n = len ? snprintf(out, size, "%.*s/%s", (int)len, search, command) : snprintf(out, size, "./%s", command);
		int error = n < 0 || (size_t)n >= size ? -ENAMETOOLONG : check(context, out);

		if (error == 0)
			return 0;
		if (error == -EACCES)
			worst = -EACCES; /* found but not executable, unless a later one is */
		if (!search[len])
			return worst;
		search += len + 1;
	}
}

int program_find(const char *command, const char *search, program_check *check, void *context, char *out, size_t size)
{
	char standard[256];

	if (!*command)
		return -ENOENT;
	if (!search && confstr(_CS_PATH, standard, sizeof(standard)))
		search = standard;
	if (!strchr(command, '/'))
		return search ? search_path(command, search, check, context, out, size) : -ENOENT;
	if ((size_t)snprintf(out, size, "%s", command) >= size)
		return -ENAMETOOLONG;
	return check(context, out);
}
