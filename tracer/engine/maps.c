/*
 * maps.c - what /proc/TID/maps says of an address space, and which ranges of it are of a given file.
 *
 * A guest chooses the names of the files that it maps, of any length and of nearly any bytes: what follows the numbers of a line
 * is never taken for another line.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tracer/engine/internal.h"

/* More of one file are left alone: each costs its process two stops, and each of these a look at all that it has mapped. */
enum { RANGES_MAX = 256 };

FILE *maps_of(pid_t tid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	return fopen(path, "re");
}

static void skip_line(FILE *maps)
{
	int c;

	while ((c = getc(maps)) != EOF && c != '\n')
		;
}

bool maps_next(FILE *maps, struct map_range *range)
{
	unsigned long long start, end, offset, ino;
	unsigned dev_major, dev_minor;
	char line[sizeof(range->name) + 128], *newline;
	int name;

	while (fgets(line, sizeof(line), maps)) {
		newline = strchr(line, '\n');
		if (newline)
			*newline = 0;
		else
			skip_line(maps);
		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, range->perms, &offset, &dev_major, &dev_minor, &ino,
		           &name) != 7)
			continue;
		range->start = start, range->end = end, range->offset = offset;
		range->dev = makedev(dev_major, dev_minor);
		range->ino = ino;
		range->name[0] = 0;
		if (newline && newline - (line + name) < (ptrdiff_t)sizeof(range->name))
			strcpy(range->name, line + name);
		return true;
	}
	return false;
}

/*
 * btrfs and overlayfs tell stat(2) another device than maps. There the kernel's own link to what is mapped is asked, which only
 * some may follow; else the name in the line, which is right as long as the file has it. The number alone proves nothing: two
 * subvolumes have files of the same.
 */
static bool is_of_file(pid_t tid, const struct map_range *range, dev_t dev, ino_t ino)
{
	char path[80];
	struct stat st;

	if (range->ino != ino || range->dev == dev)
		return range->ino == ino;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", tid, (unsigned long long)range->start,
	         (unsigned long long)range->end);
	if (stat(path, &st) && lstat(range->name, &st))
		return false;
	return st.st_dev == dev && st.st_ino == ino;
}

/* Protection of a range that is shared and can be mapped anew as it is; -1 for any other. */
static int protection(const struct map_range *range)
{
	if (!strcmp(range->perms, "r--s"))
		return PROT_READ;
	return strcmp(range->perms, "---s") ? -1 : PROT_NONE;
}

static bool is_reader(pid_t tid, const struct map_range *range, dev_t dev, ino_t ino)
{
	return protection(range) >= 0 && is_of_file(tid, range, dev, ino);
}

int maps_find(pid_t tid, dev_t dev, ino_t ino, struct reader **readers)
{
	struct map_range range;
	struct reader *grown;
	FILE *maps = maps_of(tid);
	int count = 0;

	*readers = NULL;
	while (maps && count < RANGES_MAX && maps_next(maps, &range)) {
		if (!is_reader(tid, &range, dev, ino))
			continue;
		grown = realloc(*readers, (count + 1) * sizeof(**readers));
		if (!grown)
			break;
		*readers = grown;
		grown[count++] = (struct reader){ range.start, range.end - range.start, range.offset, protection(&range) };
	}
	if (maps)
		fclose(maps);
	return count;
}

bool maps_has(pid_t tid, const struct reader *reader, dev_t dev, ino_t ino)
{
	struct map_range range = { .start = 0 };
	FILE *maps = maps_of(tid);
	bool found = false;

	while (maps && !found && range.start <= reader->addr && maps_next(maps, &range))
		found = range.start == reader->addr && range.end - range.start == reader->len && range.offset == reader->offset &&
		        protection(&range) == reader->protection && is_reader(tid, &range, dev, ino);
	if (maps)
		fclose(maps);
	return found;
}
