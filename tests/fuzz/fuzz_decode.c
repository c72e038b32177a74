/*
 * fuzz_decode.c - the decoder on guests made of the input.
 *
 * Input: architecture (1 byte), call (2), result (8), six argument registers (8 each), then the guest's memory; what the
 * kernel changed of it between entry and exit is told by the last two bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "syscalls/decode.h"
#include "syscalls/row.h"
#include "tests/unit/fake_guest.h"

enum { BASE = 0x1000, HEAD = 1 + 2 + 8 + 48, MEMORY_MAX = 32 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct text *out)
{
	if (out->len > TEXT_MAX || strlen(out->data) != out->len)
		abort();
	for (size_t i = 0; i < out->len; i++)
		if (out->data[i] < 0x20 || out->data[i] >= 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct text out;
	static struct guest guest;
	struct decode_state state;
	uint64_t args[6];
	int64_t result;
	uint8_t *memory;
	size_t len;

	if (size < HEAD || size - HEAD > MEMORY_MAX)
		return 0;
	len = size - HEAD;
	memory = malloc(len + 1); /* its own block: a read beyond it is seen */
	if (!memory)
		return 0;
	memcpy(memory, data + HEAD, len);
	memcpy(&result, data + 3, 8);
	memcpy(args, data + 11, 48);
	guest = (struct guest){ .base = BASE, .bytes = memory, .len = len };

	const struct arch *arch = arch_all[data[0] % ARCH_COUNT];
	int id = (int)((data[1] | data[2] << 8) % (CALL_COUNT + 1)) - 1;

	for (int i = 0; i < 6 && arch->word == 4; i++)
		args[i] = (uint32_t)args[i];
	struct call call = fake_call(&guest, arch, id, args);

	text_clear(&out);
	decode_entry(&out, &call, &state);
	check(&out);
	if (len >= 2)
		memory[(memory[len - 1] << 8 | memory[len - 2]) % len] ^= 0xff;
	decode_exit(&out, &call, &state, result);
	check(&out);
	text_clear(&out);
	if (len >= 128) {
		decode_siginfo(&out, memory);
		check(&out);
	}
	free(memory);
	return 0;
}
