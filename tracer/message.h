/* message.h - what interpose says on standard error: lines that begin with "interpose: ". */
#ifndef INTERPOSE_TRACER_MESSAGE_H
#define INTERPOSE_TRACER_MESSAGE_H

#include <stddef.h>

enum {
	EXIT_OWN_FAILURE = 125, /* interpose itself failed */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127
};

/* One line, written at once. Control characters, which may come from a guest's or a user's words, are shown as \ooo. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Copies TEXT into OUT with control characters as \ooo, cut at SIZE - 1 bytes. OUT. */
char *message_clean(char *out, size_t size, const char *text);

/* "comm" of a task, cleaned; "?" when it cannot be read. */
void message_comm(int tid, char comm[64]);

#endif
