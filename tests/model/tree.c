/*
 * tree.c - the tree that lies there before a run of the model test, so that it is the lower of an overlay.
 *
 *   model-tree SEED DIR
 *
 * Folders, files of many modes, sparse files, hard links across folders, symbolic links of all kinds, FIFOs, sockets and extended
 * attributes, under the names that the model test uses. Equal seeds make equal trees, times included. When root makes it, parts
 * of it belong to another user.
 */
#include "tests/model/model.h"

#include <sys/xattr.h>

enum { FILES_MAX = 256, LEVELS = 4 };

struct self self;

static char *made[FILES_MAX];
static int made_count;

static void give_times(int dirfd, const char *name)
{
	struct timespec times[2] = { { 1000000000 + (time_t)pick(100000000), (long)pick(1000000000) },
				     { 1000000000 + (time_t)pick(100000000), (long)pick(1000000000) } };

	utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW);
}

static void give_attributes(int fd)
{
	unsigned char value[60];
	size_t len = pick(sizeof(value));

	pick_data(value, len);
	if (chance(20))
		fsetxattr(fd, "user.a", value, len, 0);
	if (chance(10))
		fsetxattr(fd, "user.b", value, len / 2, 0);
}

static void fill(int fd)
{
	unsigned char data[8192];
	size_t len = chance(60) ? pick(300) : pick(sizeof(data));

	pick_data(data, len);
	if (write(fd, data, len) != (ssize_t)len)
		exit(3);
	if (chance(25)) {
		if (pwrite(fd, data, len, 20000 + (off_t)pick(100000)) != (ssize_t)len)
			exit(3);
		if (chance(50) && ftruncate(fd, 150000))
			exit(3);
	}
}

static void make_file(int dirfd, const char *name, const char *path)
{
	mode_t mode = pick_mode();
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return;
	fill(fd);
	give_attributes(fd);
	if (geteuid() == 0 && chance(30) && fchown(fd, 65534, chance(50) ? 65534 : 0))
		exit(3);
	fchmod(fd, mode);
	close(fd);
	give_times(dirfd, name);
	if (made_count < FILES_MAX)
		made[made_count++] = strdup(path);
}

static void make_other(int dirfd, const char *name)
{
	char target[1024];

	switch (pick(8)) {
	case 0:
		mknodat(dirfd, name, S_IFIFO | 0644, 0);
		break;
	case 1:
		mknodat(dirfd, name, S_IFSOCK | 0755, 0);
		break;
	case 2:
	case 3:
		if (made_count && linkat(AT_FDCWD, made[pick((unsigned)made_count)], dirfd, name, 0) == 0)
			return; /* keeps the times of the file */
		break;
	default:
		pick_target(target, sizeof(target));
		if (symlinkat(target, dirfd, name))
			return;
	}
	give_times(dirfd, name);
}

static void fill_folder(const char *path, int level)
{
	static const mode_t modes[] = { 0755, 0755, 0755, 0755, 0777, 0700, 0500, 01777, 02755 };
	mode_t mode = modes[pick(9)];
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		exit(3);
	for (unsigned count = 2 + pick(5); count; count--) {
		char name[300], below[2048];
		unsigned kind = pick(10);

		pick_name(name, sizeof(name));
		snprintf(below, sizeof(below), "%s/%s", path, name);
		if (kind < 4 && level < LEVELS) {
			if (mkdirat(fd, name, 0755) == 0)
				fill_folder(below, level + 1);
		} else if (kind < 7) {
			make_file(fd, name, below);
		} else {
			make_other(fd, name);
		}
	}
	give_attributes(fd);
	if (level) {
		if (geteuid() == 0 && chance(20) && fchown(fd, 65534, 65534))
			exit(3);
		fchmod(fd, mode);
	} else if (geteuid() == 0) {
		fchmod(fd, 0777);
	}
	give_times(AT_FDCWD, path);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 3 || argv[2][0] != '/') {
		fprintf(stderr, "usage: model-tree SEED DIR\n");
		return 2;
	}
	umask(022);
	memset(self.slot, -1, sizeof(self.slot));
	snprintf(self.root, sizeof(self.root), "%s", argv[2]);
	pick_begin(strtoull(argv[1], NULL, 10), 1u << 31);
	for (int i = 0; i < 5; i++) {
		size_t len = strlen(self.root);

		snprintf(self.root + len, sizeof(self.root) - len, "/%d", i);
		if (mkdir(self.root, 0755))
			return 3;
	}
	fill_folder(self.root, 0);
	return 0;
}
