/*
 * diagnose_maps.c - the task's memory and its mappings, from files that the tracing thread opened.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tracer/diagnose_impl.h"

enum { PAGE = 4096, MAPS_BYTES = 16 << 20 };

size_t diagnose_mem_peek(struct diagnose_task *task, uint64_t addr, void *buf, size_t len)
{
	size_t done = 0;

	/* Page by page: a read that touches an unmapped page gives nothing of the pages before it. The kernel takes
	   addresses above INT64_MAX as negative offsets, and no user memory is there. */
	while (task->mem >= 0 && done < len && addr <= INT64_MAX - len) {
		size_t part = PAGE - (addr + done) % PAGE;
		ssize_t n;

		if (part > len - done)
			part = len - done;
		n = pread(task->mem, (char *)buf + done, part, (off_t)(addr + done));
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

bool diagnose_mem_read(struct diagnose_task *task, uint64_t addr, void *buf, size_t len)
{
	return diagnose_mem_peek(task, addr, buf, len) == len;
}

/* The whole file, NUL-terminated. Beyond MAPS_BYTES it is cut: what is looked for is then simply not found. */
static int maps_slurp(int fd, char **out)
{
	size_t size = 64 << 10, len = 0;
	char *text = malloc(size + 1);

	while (text) {
		ssize_t n = read(fd, text + len, size - len);

		if (n < 0) {
			int err = -errno;

			free(text);
			return err;
		}
		len += (size_t)n;
		if (!n || size >= MAPS_BYTES)
			break;
		if (len == size) {
			char *grown = realloc(text, 2 * size + 1);

			if (!grown)
				free(text);
			text = grown;
			size *= 2;
		}
	}
	if (!text)
		return -ENOMEM;
	text[len] = '\0';
	*out = text;
	return 0;
}

/* "start-end perms offset major:minor inode   path" (proc_pid_maps(5)). A newline in a path is shown as \012. */
static bool maps_parse(char *line, struct diagnose_region *out)
{
	unsigned major_nr, minor_nr;
	char perms[5];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &out->start, &out->end, perms,
		   &out->offset, &major_nr, &minor_nr, &out->inode, &at) != 7 || !at || strlen(perms) != 4)
		return false;
	out->dev = makedev(major_nr, minor_nr);
	out->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
		    (perms[2] == 'x' ? PROT_EXEC : 0);
	out->path = line + at + strspn(line + at, " ");
	return true;
}

int diagnose_maps_read(struct diagnose_task *task)
{
	size_t size = 0;
	char *rest;
	int err;

	if (task->maps < 0)
		return -EACCES;
	err = maps_slurp(task->maps, &task->text);
	if (err)
		return err;
	rest = task->text;
	while (*rest && task->regions < DIAGNOSE_REGIONS) {
		char *line = strsep(&rest, "\n");

		if (task->regions == size) {
			struct diagnose_region *grown;

			size = size ? 2 * size : 64;
			grown = realloc(task->region, size * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			task->region = grown;
		}
		if (maps_parse(line, &task->region[task->regions]))
			task->regions++;
		if (!rest)
			break;
	}
	return 0;
}

const struct diagnose_region *diagnose_maps_find(const struct diagnose_task *task, uint64_t addr)
{
	size_t low = 0, high = task->regions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (task->region[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < task->regions && task->region[low].start <= addr ? &task->region[low] : NULL;
}
