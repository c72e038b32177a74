/* procstatus.c - numbers from /proc/TID/status, and the state from /proc/TID/stat. */
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

char procstatus_state(pid_t tid)
{
	char path[40], text[LINE];
	const char *state;
	FILE *stat;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	stat = fopen(path, "re");
	if (!stat)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, stat);
	fclose(stat);
	text[n] = 0;
	state = strrchr(text, ')');
	return state && state[1] ? state[2] : 0;
}
