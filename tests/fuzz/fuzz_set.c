/*
 * fuzz_set.c - the words of --trace=SET.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "syscalls/decode.h"
#include "syscalls/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool stop[CALL_COUNT], again[CALL_COUNT];
	char *set = malloc(size + 1), bad[64], near[64];
	int result;

	if (!set)
		return 0;
	memcpy(set, data, size);
	set[size] = '\0';
	memset(bad, 'x', sizeof(bad));
	memset(near, 'x', sizeof(near));
	result = decode_parse_set(set, stop, bad, near);
	if (!memchr(bad, '\0', sizeof(bad)) || !memchr(near, '\0', sizeof(near)))
		abort();
	/* A suggestion is a valid word by itself. */
	if (result != 0 && near[0] && decode_parse_set(near, again, bad, (char[64]){ 0 }) != 0)
		abort();
	free(set);
	return 0;
}
