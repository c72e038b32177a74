/*
 * text.c - a line of output that grows, and numbers and quoted bytes in it without printf.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "syscalls/decode_impl.h"

enum { TEXT_FIRST = 512 }; /* most lines fit, so that a warm text never grows */

void text_clear(struct text *text)
{
	text->len = 0;
	if (text->data)
		text->data[0] = '\0';
}

void text_free(struct text *text)
{
	free(text->data);
	*text = (struct text){ 0 };
}

/* Room for WANTED bytes and a NUL. */
static bool text_grow(struct text *text, size_t wanted)
{
	size_t size = text->size ? text->size : TEXT_FIRST;
	char *data;

	while (size < wanted + 1)
		size *= 2;
	data = realloc(text->data, size);
	if (!data)
		return false;
	if (!text->data)
		data[0] = '\0';
	text->data = data;
	text->size = size;
	return true;
}

/* The piece does not fit: as much of it as does, then the dots. A text of TEXT_MAX bytes is one that has them. */
static void text_overflow(struct text *text, const char *bytes, size_t len)
{
	size_t room = TEXT_MAX - 3;

	if (text->len == TEXT_MAX || (text->size <= TEXT_MAX && !text_grow(text, TEXT_MAX)))
		return;
	if (text->len < room) {
		room -= text->len;
		memcpy(text->data + text->len, bytes, len < room ? len : room);
	}
	memcpy(text->data + TEXT_MAX - 3, "...", 4);
	text->len = TEXT_MAX;
}

/* Room for LEN bytes more, or NULL: the caller gives its piece to text_overflow(). */
static char *text_room(struct text *text, size_t len)
{
	if (__builtin_expect(text->size - text->len > len && len <= TEXT_MAX - text->len, 1))
		return text->data + text->len;
	if (len > TEXT_MAX - text->len || text->len == TEXT_MAX)
		return NULL;
	return text_grow(text, text->len + len) ? text->data + text->len : NULL;
}

void text_bytes(struct text *text, const char *bytes, size_t len)
{
	char *to = text_room(text, len);

	if (!to) {
		if (len > TEXT_MAX - text->len)
			text_overflow(text, bytes, len);
		return;
	}
	memcpy(to, bytes, len);
	to[len] = '\0';
	text->len += len;
}

void text_add(struct text *text, const char *string)
{
	text_bytes(text, string, strlen(string));
}

void text_char(struct text *text, char c)
{
	text_bytes(text, &c, 1);
}

void text_format(struct text *text, const char *format, ...)
{
	char small[256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(small, sizeof(small), format, args);
	va_end(args);
	if (len < 0)
		return;
	if ((size_t)len < sizeof(small)) {
		text_bytes(text, small, (size_t)len);
		return;
	}

	size_t size = len > TEXT_MAX ? TEXT_MAX + 2 : (size_t)len + 1;
	char *big = malloc(size);

	if (!big)
		return;
	va_start(args, format);
	vsnprintf(big, size, format, args);
	va_end(args);
	text_bytes(text, big, size - 1);
	free(big);
}

void text_udec(struct text *text, uint64_t value)
{
	char digits[20], *start = digits + sizeof(digits);

	do {
		*--start = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	text_bytes(text, start, (size_t)(digits + sizeof(digits) - start));
}

void text_dec(struct text *text, int64_t value)
{
	uint64_t magnitude = (uint64_t)value;

	if (value < 0) {
		text_char(text, '-');
		magnitude = -magnitude;
	}
	text_udec(text, magnitude);
}

static const char hex_digits[16] = "0123456789abcdef";

void text_hex(struct text *text, uint64_t value)
{
	char digits[18], *start = digits + sizeof(digits);

	if (!value) {
		text_char(text, '0');
		return;
	}
	for (; value; value >>= 4)
		*--start = hex_digits[value & 15];
	*--start = 'x';
	*--start = '0';
	text_bytes(text, start, (size_t)(digits + sizeof(digits) - start));
}

void text_octal(struct text *text, uint64_t value, int digits)
{
	char buf[24], *start = buf + sizeof(buf);

	for (; value; value >>= 3)
		*--start = (char)('0' + (value & 7));
	*--start = '0';
	while (buf + sizeof(buf) - start < digits)
		*--start = '0';
	text_bytes(text, start, (size_t)(buf + sizeof(buf) - start));
}

/* One byte of a quoted string, NEXT the byte after it (-1: none): \1 may be short only where no digit follows. */
static char *quote_byte(char *to, unsigned char byte, int next)
{
	static const char letters[] = "abtnvfr"; /* 7 to 13; 7 and 8 are shown by number, as strace does */

	if (byte == '"' || byte == '\\') {
		*to++ = '\\';
		*to++ = (char)byte;
	} else if (byte >= 0x20 && byte < 0x7f) {
		*to++ = (char)byte;
	} else if (byte >= '\t' && byte <= '\r') {
		*to++ = '\\';
		*to++ = letters[byte - 7];
	} else {
		bool full = next >= '0' && next <= '9';

		*to++ = '\\';
		if (full || byte >= 0100)
			*to++ = (char)('0' + (byte >> 6));
		if (full || byte >= 010)
			*to++ = (char)('0' + (byte >> 3 & 7));
		*to++ = (char)('0' + (byte & 7));
	}
	return to;
}

void text_quote(struct text *text, const void *bytes, size_t len, size_t max)
{
	const unsigned char *from = bytes;
	size_t shown = len < max ? len : max;
	char piece[256], *to = piece;

	*to++ = '"';
	for (size_t i = 0; i < shown; i++) {
		if (to > piece + sizeof(piece) - 8) {
			text_bytes(text, piece, (size_t)(to - piece));
			to = piece;
		}
		to = quote_byte(to, from[i], i + 1 < shown ? from[i + 1] : -1);
	}
	*to++ = '"';
	text_bytes(text, piece, (size_t)(to - piece));
	if (shown < len)
		text_lit(text, "...");
}

void text_quote_hex(struct text *text, const void *bytes, size_t len, size_t max)
{
	const unsigned char *from = bytes;
	size_t shown = len < max ? len : max;

	text_char(text, '"');
	for (size_t i = 0; i < shown; i++) {
		const char digits[4] = { '\\', 'x', hex_digits[from[i] >> 4], hex_digits[from[i] & 15] };

		text_bytes(text, digits, sizeof(digits));
	}
	text_char(text, '"');
	if (shown < len)
		text_lit(text, "...");
}
