/* pick.c - random numbers, names and paths of the model test. */
#include "tests/model/model.h"

#include <sys/mman.h>

static uint64_t state;

uint64_t pick_bits(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

void pick_begin(uint64_t seed, uint64_t step)
{
	state = seed;
	state = pick_bits() ^ (step * 0xd1342543de82ef95ull);
	pick_bits();
}

unsigned pick(unsigned below)
{
	return (unsigned)((pick_bits() >> 32) * below >> 32);
}

bool chance(unsigned percent)
{
	return pick(100) < percent;
}

mode_t pick_mode(void)
{
	static const mode_t modes[] = { 0644, 0644, 0600, 0666, 0755, 0755, 0777, 0700, 0444, 0400, 0500, 0200, 0, 01777, 02755,
					04755, 06711, 07777 };

	return modes[pick(sizeof(modes) / sizeof(modes[0]))];
}

int pick_slot(void)
{
	unsigned first = pick(SLOTS);

	if (chance(5))
		return (int)first;
	for (unsigned i = 0; i < SLOTS; i++)
		if (self.slot[(first + i) % SLOTS] >= 0)
			return (int)((first + i) % SLOTS);
	return (int)first;
}

/* A slot with a folder, where there is one, most often. */
static int pick_folder_slot(void)
{
	unsigned first = pick(SLOTS);

	if (chance(85))
		for (unsigned i = 0; i < SLOTS; i++)
			if (self.folder[(first + i) % SLOTS])
				return (int)((first + i) % SLOTS);
	return pick_slot();
}

int pick_free_slot(void)
{
	unsigned first = pick(SLOTS);

	for (unsigned i = 0; i < SLOTS; i++)
		if (self.slot[(first + i) % SLOTS] < 0)
			return (int)((first + i) % SLOTS);
	return (int)first;
}

void pick_data(unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)('A' + pick(26));
}

void pick_name(char *name, size_t room)
{
	static const char *const odd[] = { "a\nb", "\xff\xfe", " ", "a b", "...", "\001x", "d\\e" };
	unsigned kind = pick(200);

	if (kind < 3) { /* as long as a name may be, and one more */
		size_t len = kind < 2 ? 255 : 256;

		snprintf(name, room, "%0*d", (int)len, 0);
		memset(name, 'a' + (int)pick(2), len);
	} else if (kind < 6) {
		snprintf(name, room, "%s", odd[pick(sizeof(odd) / sizeof(odd[0]))]);
	} else {
		snprintf(name, room, "%c", (int)('a' + pick(5)));
	}
}

/* Appends a component, and sometimes what the kernel must see through. */
static void add_component(char *path, size_t room, bool first)
{
	size_t len = strlen(path);
	char name[300];
	unsigned kind = pick(100);

	if (kind < 4)
		strcpy(name, ".");
	else if (kind < 7)
		strcpy(name, "..");
	else
		pick_name(name, sizeof(name));
	snprintf(path + len, room - len, "%s%s%s", first ? "" : "/", chance(3) && len ? "/" : "", name);
}

/* At the end of a page that is followed by one that cannot be read: whoever reads too much, fails. */
static char *at_page_edge(const char *text, int which)
{
	enum { ROOM = 8192 };
	static char *pages[2];
	size_t len = strlen(text) + 1;

	if (!pages[which]) {
		char *map = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED || mprotect(map + ROOM, 4096, PROT_NONE))
			abort();
		pages[which] = map;
	}
	return memcpy(pages[which] + ROOM - len, text, len);
}

/* Lengthens the path to LEN bytes with `./` in front of its last component, keeping its meaning. */
static void pad_path(char *path, size_t room, size_t len)
{
	char tail[600];
	char *last = strrchr(path, '/');
	size_t head = last ? (size_t)(last + 1 - path) : 0, tail_len = strlen(path + head);

	if (len >= room || tail_len >= sizeof(tail) || head + tail_len >= len)
		return;
	memcpy(tail, path + head, tail_len + 1);
	while (head + 2 + tail_len <= len) {
		memcpy(path + head, "./", 2);
		head += 2;
	}
	if (head + tail_len < len && head)
		path[head++] = '/';
	memcpy(path + head, tail, tail_len + 1);
}

static void finish_path(struct where *where, char *path, int which)
{
	char shown[800];
	size_t padded = 0;

	if (chance(4))
		strcat(path, "/");
	if (chance(1))
		strcat(path, "/.");
	show_text(path, shown, sizeof(shown));
	if (chance(1)) {
		padded = 4094 + pick(3);
		pad_path(path, PATH_ROOM, padded);
	}
	if (chance(1)) {
		path[0] = 0;
		snprintf(shown, sizeof(shown), "\"\"");
	}
	where->path = at_page_edge(path, which);
	snprintf(where->shown, sizeof(where->shown), "%s%s", shown, padded ? " padded" : "");
}

/* Where a path begins: the working folder, the root, or a descriptor, which need not be a folder. */
static void begin_path(struct where *where, char *path, size_t room)
{
	unsigned kind = pick(4);

	where->dirfd = AT_FDCWD;
	path[0] = 0;
	if (kind == 0)
		snprintf(path, room, "%s/", self.root);
	else if (kind == 1)
		where->dirfd = self.slot[pick_folder_slot()];
}

static void show_base(struct where *where)
{
	char shown[sizeof(where->shown)];

	if (where->dirfd == AT_FDCWD)
		return;
	snprintf(shown, sizeof(shown), "%d:%.900s", where->dirfd, where->shown);
	strcpy(where->shown, shown);
}

static void pick_path_of(struct where *where, int which, unsigned components)
{
	char path[PATH_ROOM];

	begin_path(where, path, sizeof(path));
	for (unsigned i = 0; i < components; i++)
		add_component(path, 2048, i == 0);
	/* Whatever else is wrong with this test: it must not touch what is not its own. */
	if (path[0] == '/' && strncmp(path, self.root, strlen(self.root)))
		abort();
	finish_path(where, path, which);
	show_base(where);
}

/* The letter of what lies there, as say_stat() tells it; 0 for nothing, and where there is no way to it. */
static char type_at(const struct where *where)
{
	static const char letters[] = "?pc?d?b?-?l?s?w?";
	struct stat st;

	if (fstatat(where->dirfd, where->path, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : '!';
	return letters[(st.st_mode & S_IFMT) >> 12];
}

void pick_path_to(struct where *where, int which, const char *types)
{
	static const unsigned counts[] = { 1, 1, 1, 1, 1, 1, 2, 2, 2, 3 };
	unsigned tries = chance(60) ? 6 : 1;

	do {
		pick_path_of(where, which, counts[pick(sizeof(counts) / sizeof(counts[0]))]);
	} while (--tries && (!type_at(where) || !strchr(types, type_at(where))));
}

void pick_path(struct where *where, int which)
{
	pick_path_to(where, which, "-dlps");
}

void pick_new_path(struct where *where, int which)
{
	unsigned tries = chance(60) ? 4 : 1;

	do {
		pick_path_of(where, which, 1 + (pick(3) == 0));
	} while (--tries && type_at(where));
}

void pick_target(char *target, size_t room)
{
	static const char *const bases[] = { "", "", "", "../", "./", "../../" };
	unsigned kind = pick(20);
	char name[300];

	pick_name(name, sizeof(name));
	if (kind < 4)
		snprintf(target, room, "%s/%s", self.root, name);
	else if (kind == 4)
		snprintf(target, room, "%s", chance(50) ? ".." : ".");
	else if (kind == 5)
		snprintf(target, room, "%s/", name);
	else if (kind < 10)
		snprintf(target, room, "%s%s/%c", bases[pick(6)], name, (int)('a' + pick(5)));
	else
		snprintf(target, room, "%s%s", bases[pick(6)], name);
}
