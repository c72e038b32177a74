/*
 * files.c - what large files and large folders cost, measured by the program that uses them.
 *
 *   files copyup BIG SMALL   a child writes one byte into BIG while this process times its own stat calls of SMALL. Prints
 *                            `copyup NS` (from the child's open to its end of writing), `median NS` and `longest NS` of a stat
 *   files list DIR           times listings of DIR. Prints `list NS`, and `merged NS`: the same after a file was made in DIR
 *   files make DIR COUNT     prints `ready` and waits for a line, makes COUNT empty files under DIR, prints `made NS` and waits again
 *
 * Whatever fails ends with status 1 and a line on standard error.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/loop.h"

enum { STATS_MAX = 1 << 20, LISTINGS = 5, FILES_IN_FOLDER = 1000 };

static int fail(const char *what)
{
	perror(what);
	return 1;
}

/* What the child of copyup does; its exit status. */
static int write_one_byte(const char *path, int result)
{
	uint64_t begin = loop_now();
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || pwrite(fd, "x", 1, 0) != 1)
		return fail(path);
	begin = loop_now() - begin;
	return write(result, &begin, sizeof(begin)) != sizeof(begin);
}

static int measure_copyup(const char *big, const char *small)
{
	double *took = calloc(STATS_MAX, sizeof(*took)), longest = 0;
	unsigned count = 0;
	uint64_t copied;
	int result[2], status;
	struct stat st;
	pid_t pid;

	if (!took || pipe2(result, O_CLOEXEC) || stat(small, &st))
		return fail(small);
	pid = fork();
	if (pid < 0)
		return fail("fork");
	if (pid == 0)
		_exit(write_one_byte(big, result[1]));
	do { /* at least once, should the child be done already */
		uint64_t begin = loop_now();

		if (stat(small, &st))
			return fail(small);
		if (count < STATS_MAX) {
			took[count] = (double)(loop_now() - begin);
			longest = took[count] > longest ? took[count] : longest;
			count++;
		}
	} while (waitpid(pid, &status, WNOHANG) == 0);
	if (status || read(result[0], &copied, sizeof(copied)) != sizeof(copied))
		return 1;
	printf("copyup %llu\nmedian %.0f\nlongest %.0f\n", (unsigned long long)copied, loop_median(took, count), longest);
	free(took);
	return 0;
}

/* Nanoseconds of one listing, the median of some; negative when there is none. */
static double time_listing(const char *path)
{
	double took[LISTINGS];

	for (int i = 0; i < LISTINGS; i++) {
		uint64_t begin = loop_now();
		DIR *dir = opendir(path);

		if (!dir)
			return -1;
		while (readdir(dir))
			;
		closedir(dir);
		took[i] = (double)(loop_now() - begin);
	}
	return loop_median(took, LISTINGS);
}

static int measure_listing(const char *path)
{
	double plain = time_listing(path), merged;
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/made-by-the-program", path);
	fd = plain < 0 ? -1 : open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return fail(name);
	close(fd);
	merged = time_listing(path);
	if (merged < 0 || unlink(name))
		return fail(name);
	printf("list %.0f\nmerged %.0f\n", plain, merged);
	return 0;
}

static int make_files(const char *path, unsigned count)
{
	char name[4096];

	for (unsigned i = 0; i < count; i++) {
		int fd;

		if (i % FILES_IN_FOLDER == 0) {
			snprintf(name, sizeof(name), "%s/%u", path, i / FILES_IN_FOLDER);
			if (mkdir(name, 0755))
				return fail(name);
		}
		snprintf(name, sizeof(name), "%s/%u/%u", path, i / FILES_IN_FOLDER, i);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0)
			return fail(name);
		close(fd);
	}
	return 0;
}

static int say_and_wait(const char *text)
{
	char byte;

	printf("%s\n", text);
	fflush(stdout);
	return read(0, &byte, 1) == 1 ? 0 : 1;
}

static int measure_making(const char *path, unsigned count)
{
	char text[64];
	uint64_t begin;

	if (say_and_wait("ready"))
		return 1;
	begin = loop_now();
	if (make_files(path, count))
		return 1;
	snprintf(text, sizeof(text), "made %llu", (unsigned long long)(loop_now() - begin));
	return say_and_wait(text);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "copyup"))
		return measure_copyup(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "list"))
		return measure_listing(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "make"))
		return measure_making(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
	fprintf(stderr, "usage: files copyup BIG SMALL | list DIR | make DIR COUNT\n");
	return 2;
}
