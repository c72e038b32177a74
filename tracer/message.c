/* message.c - what interpose says on standard error. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracer/message.h"

enum { LINE_MAX_BYTES = 4096 };

char *message_clean(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 5 < size; text++) {
		unsigned char c = *text;

		if (c < ' ' || c == 0x7f || (c >= 0x80 && c < 0xa0)) /* C1 controls move the cursor of some terminals too */
			n += snprintf(out + n, size - n, "\\%03o", c);
		else
			out[n++] = c;
	}
	out[n] = 0;
	return out;
}

void message(const char *format, ...)
{
	static const char prefix[] = "interpose: ";
	char raw[LINE_MAX_BYTES], line[LINE_MAX_BYTES + sizeof(prefix) + 1];
	va_list ap;
	size_t len;
	ssize_t n;

	va_start(ap, format);
	vsnprintf(raw, sizeof(raw), format, ap);
	va_end(ap);
	memcpy(line, prefix, sizeof(prefix));
	message_clean(line + sizeof(prefix) - 1, LINE_MAX_BYTES, raw);
	len = strlen(line);
	line[len++] = '\n';
	n = write(STDERR_FILENO, line, len);
	(void)n;
}

void message_comm(int tid, char comm[64])
{
	char path[40], raw[24];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, raw, sizeof(raw) - 1);
		close(fd);
	}
	raw[n > 0 ? n : 0] = 0;
	raw[strcspn(raw, "\n")] = 0;
	message_clean(comm, 64, n > 0 ? raw : "?");
}
