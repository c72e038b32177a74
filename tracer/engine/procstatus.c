/* procstatus.c - numbers from /proc/TID/status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/engine/procstatus.h"

/* A line that is longer than LINE, as of a task of many groups, comes in parts: only its first one begins with a name. */
enum { LINE = 256 };

int procstatus_read(pid_t tid, struct procstatus_field *fields, unsigned count)
{
	char path[40], line[LINE];
	bool begins = true;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	status = fopen(path, "re");
	if (!status)
		return -errno;
	while (fgets(line, sizeof(line), status)) {
		for (unsigned i = 0; begins && i < count; i++) {
			size_t len = strlen(fields[i].name);

			if (!strncmp(line, fields[i].name, len))
				fields[i].value = strtoull(line + len, NULL, fields[i].base);
		}
		begins = strchr(line, '\n') != NULL;
	}
	fclose(status);
	return 0;
}
