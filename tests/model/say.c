/* say.c - the log of the model test. */
#include "tests/model/model.h"

#include <stdarg.h>

static char line[1 << 18];
static size_t used;

void say(const char *format, ...)
{
	size_t room = sizeof(line) - used;
	va_list list;
	int len;

	va_start(list, format);
	len = vsnprintf(line + used, room, format, list);
	va_end(list);
	used += len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1;
}

void say_begin(unsigned step, const char *who)
{
	used = 0;
	say("%u %s%d ", step, who, self.index);
}

void say_end(void)
{
	size_t done = 0;

	if (used == sizeof(line) - 1)
		used--;
	line[used++] = '\n';
	while (done < used) {
		ssize_t put = write(1, line + done, used - done);

		if (put < 0 && errno != EINTR)
			_exit(3);
		done += put > 0 ? (size_t)put : 0;
	}
	used = 0;
}

void say_result(long result)
{
	const char *name;

	if (result != -1) {
		say(" = %ld", result);
		return;
	}
	name = strerrorname_np(errno);
	say(" = %s", name ? name : "-1");
}

/* Length of a run of one letter, as the long names are. */
static size_t run_of(const char *text)
{
	size_t len = 1;

	while (text[len] && text[len] == text[0])
		len++;
	return len;
}

void show_text(const char *text, char *shown, size_t room)
{
	size_t root = strlen(self.root), out = 0;

	while (*text && out + 24 < room) {
		size_t run = run_of(text);

		if (root && !strncmp(text, self.root, root) && (text[root] == '/' || !text[root] || text[root] == ' ')) {
			shown[out++] = '$';
			text += root;
		} else if (run > 20) {
			out += (size_t)snprintf(shown + out, room - out, "<%c*%zu>", *text, run);
			text += run;
		} else if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f || *text == '\\') {
			out += (size_t)snprintf(shown + out, room - out, "\\x%02x", (unsigned char)*text++);
		} else {
			shown[out++] = *text++;
		}
	}
	shown[out] = 0;
}

void say_text(const char *text)
{
	char shown[4096];

	show_text(text, shown, sizeof(shown));
	say("%s", shown);
}

static char type_letter(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return '-';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFIFO:
		return 'p';
	case S_IFSOCK:
		return 's';
	default:
		return '?';
	}
}

void say_stat(const struct stat *st)
{
	say(" %c%04o %u:%u", type_letter(st->st_mode), (unsigned)(st->st_mode & 07777), st->st_uid, st->st_gid);
	/* Links and size of a folder are the file system's own business. */
	if (!S_ISDIR(st->st_mode) && getenv("MODEL_LINKS"))
		say(" %lld", (long long)st->st_size);
	else if (!S_ISDIR(st->st_mode))
		say(" n%lu %lld", (unsigned long)st->st_nlink, (long long)st->st_size);
	if (S_ISSOCK(st->st_mode))
		return; /* may be one without a name, whose times are nobody's business */
	if (st->st_mtim.tv_sec < TIME_LIMIT)
		say(" %lld.%09ld", (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	else
		say(" now");
}

uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull + 7;
	return hash;
}

void say_content(int fd)
{
	static unsigned char data[1 << 16];
	uint64_t hash = HASH_START;
	off_t at = 0;
	ssize_t got;

	while ((got = pread(fd, data, sizeof(data), at)) > 0) {
		hash = hash_bytes(hash, data, (size_t)got);
		at += got;
	}
	if (got < 0)
		say(" content %s", strerrorname_np(errno));
	else
		say(" #%012llx", (unsigned long long)(hash & 0xffffffffffffull));
}
