/*
 * decode_args.c - numbers, flags, strings, buffers and vectors: the kinds of argument that most calls are made of.
 */
#include "syscalls/decode_impl.h"

enum { PAGE = 4096 }; /* the smallest page of any architecture: reads stop at each border, where mapping may end */

/* --- memory --------------------------------------------------------------------------------------------------------- */

size_t decode_peek_some(const struct decoding *d, uint64_t addr, void *buf, size_t len)
{
	uint64_t last = decode_compat(d) ? UINT32_MAX : UINT64_MAX;
	ssize_t got;

	if (!addr || addr > last || !len)
		return 0;
	if (len - 1 > last - addr)
		len = (size_t)(last - addr) + 1;
	got = guest_peek(d->call, addr, buf, len);
	return got < 0 ? 0 : (size_t)got < len ? (size_t)got : len;
}

bool decode_peek(const struct decoding *d, uint64_t addr, void *buf, size_t len)
{
	return decode_peek_some(d, addr, buf, len) == len;
}

void decode_address(struct text *out, uint64_t addr)
{
	if (addr)
		text_hex(out, addr);
	else
		text_lit(out, "NULL");
}

bool decode_fetch(const struct decoding *d, uint64_t addr, void *buf, size_t len)
{
	if (decode_peek(d, addr, buf, len))
		return true;
	decode_address(d->out, addr);
	return false;
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

void arg_int(struct decoding *d, uint64_t value)
{
	text_dec(d->out, (int32_t)value);
}

void arg_uint(struct decoding *d, uint64_t value)
{
	text_udec(d->out, (uint32_t)value);
}

void arg_long(struct decoding *d, uint64_t value)
{
	text_dec(d->out, decode_compat(d) ? (int32_t)value : (int64_t)value);
}

void arg_ulong(struct decoding *d, uint64_t value)
{
	text_udec(d->out, value);
}

void arg_hex(struct decoding *d, uint64_t value)
{
	text_hex(d->out, d->call->id == CALL_mmap2 ? value << 12 : value); /* mmap2's offset counts 4096 bytes */
}

void arg_octal(struct decoding *d, uint64_t value)
{
	text_octal(d->out, (uint32_t)value, 3);
}

void arg_ptr(struct decoding *d, uint64_t value)
{
	decode_address(d->out, value);
}

void arg_off64(struct decoding *d, uint64_t value)
{
	text_dec(d->out, (int64_t)value);
}

void arg_u64(struct decoding *d, uint64_t value)
{
	if (d->args[d->index].set)
		decode_flags(d->out, flag_set_of(d->args[d->index].set), value);
	else
		text_udec(d->out, value);
}

void arg_dirfd(struct decoding *d, uint64_t value)
{
	enum { CURRENT = -100 };

	if ((int32_t)value == CURRENT)
		text_lit(d->out, "AT_FDCWD");
	else
		text_dec(d->out, (int32_t)value);
}

void decode_uid(struct text *out, uint32_t id)
{
	if (id == UINT32_MAX)
		text_lit(out, "-1");
	else
		text_udec(out, id);
}

void arg_uid(struct decoding *d, uint64_t value)
{
	decode_uid(d->out, (uint32_t)value);
}

static uint32_t widen_id(uint16_t id)
{
	return id == UINT16_MAX ? UINT32_MAX : id;
}

void arg_uid16(struct decoding *d, uint64_t value)
{
	decode_uid(d->out, widen_id((uint16_t)value));
}

/* --- numbers behind pointers ----------------------------------------------------------------------------------------- */

void arg_fd_pair(struct decoding *d, uint64_t value)
{
	uint8_t buf[8];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;
	text_char(d->out, '[');
	text_dec(d->out, (int32_t)load32(buf));
	text_lit(d->out, ", ");
	text_dec(d->out, (int32_t)load32(buf + 4));
	text_char(d->out, ']');
}

void arg_id(struct decoding *d, uint64_t value)
{
	uint8_t buf[4];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;
	text_char(d->out, '[');
	decode_uid(d->out, load32(buf));
	text_char(d->out, ']');
}

void arg_id16(struct decoding *d, uint64_t value)
{
	uint8_t buf[2];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;
	text_char(d->out, '[');
	decode_uid(d->out, widen_id(load16(buf)));
	text_char(d->out, ']');
}

void arg_ids(struct decoding *d, uint64_t value)
{
	uint64_t count = (uint32_t)decode_ref(d);
	uint8_t buf[SHOW_ITEMS * 4];
	size_t got;

	if (!count && value) {
		text_lit(d->out, "[]");
		return;
	}
	got = decode_peek_some(d, value, buf, (count < SHOW_ITEMS ? (size_t)count : SHOW_ITEMS) * 4) / 4;
	if (!got) {
		decode_address(d->out, value);
		return;
	}
	text_char(d->out, '[');
	for (size_t i = 0; i < got; i++) {
		if (i)
			text_lit(d->out, ", ");
		decode_uid(d->out, load32(buf + 4 * i));
	}
	text_add(d->out, got < count ? ", ...]" : "]");
}

void arg_int_at(struct decoding *d, uint64_t value)
{
	uint8_t buf[4];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;
	text_char(d->out, '[');
	text_dec(d->out, (int32_t)load32(buf));
	text_char(d->out, ']');
}

void arg_ulong_at(struct decoding *d, uint64_t value)
{
	uint8_t buf[8];

	if (!decode_fetch(d, value, buf, decode_word(d)))
		return;
	text_char(d->out, '[');
	text_hex(d->out, load_word(buf, decode_word(d)));
	text_char(d->out, ']');
}

uint64_t keep_int(const struct decoding *d, uint64_t addr)
{
	uint8_t buf[4];

	return decode_peek(d, addr, buf, sizeof(buf)) ? load32(buf) : UINT64_MAX;
}

static uint64_t offset_read(const struct decoding *d, uint64_t addr, unsigned word)
{
	uint8_t buf[8];

	return decode_peek(d, addr, buf, word) ? (uint64_t)load_sword(buf, word) : UINT64_MAX;
}

uint64_t keep_offset(const struct decoding *d, uint64_t addr)
{
	return offset_read(d, addr, decode_word(d));
}

uint64_t keep_offset64(const struct decoding *d, uint64_t addr)
{
	return offset_read(d, addr, 8);
}

/* [0] => [10]: before and after. _llseek only writes. */
static void offset_print(struct decoding *d, uint64_t addr, unsigned word)
{
	uint64_t before = decode_kept(d, d->index), after = offset_read(d, addr, word);

	if (after == UINT64_MAX || (d->call->id == CALL__llseek && decode_failed(d))) {
		decode_address(d->out, addr);
		return;
	}
	if (before == UINT64_MAX || d->call->id == CALL__llseek)
		before = after;
	text_char(d->out, '[');
	text_dec(d->out, (int64_t)before);
	if (before != after && !decode_failed(d)) {
		text_lit(d->out, "] => [");
		text_dec(d->out, (int64_t)after);
	}
	text_char(d->out, ']');
}

void arg_offset(struct decoding *d, uint64_t value)
{
	offset_print(d, value, decode_word(d));
}

void arg_offset64(struct decoding *d, uint64_t value)
{
	offset_print(d, value, 8);
}

/* --- flags ---------------------------------------------------------------------------------------------------------- */

const char *flag_name(const struct flag_set *set, uint64_t value)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->values[i].value == value)
			return set->values[i].name;
	return NULL;
}

static void unknown_number(struct text *out, const struct flag_set *set, uint64_t value)
{
	text_hex(out, value);
	if (set->prefix_for_unknown[0]) {
		text_lit(out, " /* ");
		text_add(out, set->prefix_for_unknown);
		text_lit(out, " */");
	}
}

void decode_flags(struct text *out, const struct flag_set *set, uint64_t value)
{
	uint64_t rest = value;
	bool some = false;

	for (unsigned i = 0; i < set->count; i++) {
		const struct flag_value *flag = &set->values[i];
		uint64_t mask = flag->mask ? flag->mask : flag->value;

		if ((flag->mask ? value & mask : rest & mask) != flag->value || !mask || (flag->mask && flag->value & ~rest))
			continue;
		if (some)
			text_char(out, '|');
		text_add(out, flag->name);
		some = true;
		rest &= ~mask;
	}
	if (!some) {
		if (rest)
			unknown_number(out, set, rest);
		else
			text_char(out, '0');
	} else if (rest) {
		text_char(out, '|');
		text_hex(out, rest);
	}
}

static bool set_has_fields(const struct flag_set *set)
{
	return set->count && set->values[0].mask;
}

void decode_enum(struct text *out, const struct flag_set *set, uint64_t value)
{
	const char *name = flag_name(set, (uint32_t)value);

	if (name)
		text_add(out, name);
	else if (set_has_fields(set))
		decode_flags(out, set, (uint32_t)value);
	else
		unknown_number(out, set, (uint32_t)value);
}

/* aarch64 swaps two pairs of bits with the common ABI: O_DIRECTORY, O_NOFOLLOW with O_DIRECT, O_LARGEFILE (asm/fcntl.h). */
void decode_open_flags(const struct decoding *d, const struct flag_set *set, uint64_t flags)
{
	if (d->call->arch->id == ARCH_AARCH64)
		flags = (flags & ~UINT64_C(0x3c000)) | (flags & 0xc000) << 2 | (flags & 0x30000) >> 2;
	decode_flags(d->out, set, flags);
}

bool decode_open_creates(uint64_t flags)
{
	enum { CREAT = 0x40, TMPFILE = 0x400000 };

	return flags & (CREAT | TMPFILE);
}

/* The kernel takes these as longs, all others as ints whose high half does not count. */
static bool set_is_wide(const struct flag_set *set)
{
	return set == &mmap_prot || set == &mmap_flags || set == &mremap_flags || set == &clone_flags || set == &unshare_flags ||
	       set == &mount_flags || set == &kexec_flags || set == &kexec_file_flags || set == &perf_flags;
}

void arg_flags(struct decoding *d, uint64_t value)
{
	const struct flag_set *set = flag_set_of(d->args[d->index].set);

	if (!set)
		text_hex(d->out, value);
	else if (set == &open_flags || set == &fd_flags)
		decode_open_flags(d, set, (uint32_t)value);
	else
		decode_flags(d->out, set, set_is_wide(set) ? value : (uint32_t)value);
}

void arg_enum(struct decoding *d, uint64_t value)
{
	const struct flag_set *set = flag_set_of(d->args[d->index].set);

	if (!set) {
		text_dec(d->out, (int32_t)value);
	} else if (set == &quota_commands) {
		text_lit(d->out, "QCMD(");
		decode_enum(d->out, set, (uint32_t)value >> 8);
		text_lit(d->out, ", ");
		decode_enum(d->out, &quota_types, value & 0xff);
		text_char(d->out, ')');
	} else {
		decode_enum(d->out, set, value);
	}
}

/* The low byte is the exit signal. */
void arg_clone_flags(struct decoding *d, uint64_t value)
{
	uint64_t flags = value & ~UINT64_C(0xff);

	if (flags)
		decode_flags(d->out, &clone_flags, flags);
	if (flags && value & 0xff)
		text_char(d->out, '|');
	if (value & 0xff)
		decode_signal(d->out, value & 0xff);
	else if (!flags)
		text_char(d->out, '0');
}

void arg_futex_op(struct decoding *d, uint64_t value)
{
	enum { PRIVATE = 0x80, REALTIME = 0x100 };
	uint32_t command = (uint32_t)value & ~(uint32_t)(PRIVATE | REALTIME);
	const char *name = flag_name(&futex_commands, command);

	if (!name) {
		unknown_number(d->out, &futex_commands, (uint32_t)value);
		return;
	}
	text_add(d->out, name);
	if (value & PRIVATE)
		text_lit(d->out, "_PRIVATE");
	if (value & REALTIME)
		text_lit(d->out, "|FUTEX_CLOCK_REALTIME");
}

void arg_shm_flags(struct decoding *d, uint64_t value)
{
	const struct flag_set *set = d->call->id == CALL_shmget ? &shmget_flags : &ipc_get_flags;
	uint32_t flags = (uint32_t)value & ~0777U;

	if (flags) {
		decode_flags(d->out, set, flags);
		text_char(d->out, '|');
	}
	text_octal(d->out, value & 0777, 3);
}

/* --- strings -------------------------------------------------------------------------------------------------------- */

/* Reads page by page, so that a string that ends before an unmapped page is whole. */
void decode_string(struct decoding *d, uint64_t addr, size_t max)
{
	char buf[SHOW_PATH + 1];
	size_t len = 0;

	while (len <= max) {
		size_t wanted = PAGE - (size_t)((addr + len) % PAGE), got;
		const char *end;

		if (wanted > max + 1 - len)
			wanted = max + 1 - len;
		got = decode_peek_some(d, addr + len, buf + len, wanted);
		end = memchr(buf + len, '\0', got);
		if (end) {
			text_quote(d->out, buf, (size_t)(end - buf), max);
			return;
		}
		len += got;
		if (got < wanted)
			break;
	}
	if (len == 0) {
		decode_address(d->out, addr);
		return;
	}
	text_quote(d->out, buf, len, max);
	if (len <= max)
		text_lit(d->out, "..."); /* no NUL before the memory ends */
}

void arg_path(struct decoding *d, uint64_t value)
{
	decode_string(d, value, SHOW_PATH - 1);
}

void arg_string(struct decoding *d, uint64_t value)
{
	decode_string(d, value, SHOW_STRING);
}

/* readlink's result counts no NUL, getcwd's does. */
void arg_string_out(struct decoding *d, uint64_t value)
{
	size_t len = d->result > SHOW_PATH ? SHOW_PATH : d->result > 0 ? (size_t)d->result : 0;
	char buf[SHOW_PATH];

	if (!len) {
		decode_address(d->out, value);
		return;
	}
	if (!decode_fetch(d, value, buf, len))
		return;
	if (d->call->id == CALL_getcwd && buf[len - 1] == '\0')
		len--;
	text_quote(d->out, buf, len, SHOW_PATH - 1);
}

void arg_stringv(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[(SHOW_STRINGS + 1) * 8];
	size_t got = decode_peek_some(d, value, buf, (SHOW_STRINGS + 1) * (size_t)word) / word, i;

	if (!got) {
		decode_address(d->out, value);
		return;
	}
	text_char(d->out, '[');
	for (i = 0; i < got && i < SHOW_STRINGS && load_word(buf + i * word, word); i++) {
		if (i)
			text_lit(d->out, ", ");
		decode_string(d, load_word(buf + i * word, word), SHOW_STRING);
	}
	if (i == got || load_word(buf + i * word, word))
		text_add(d->out, i ? ", ..." : "...");
	text_char(d->out, ']');
}

/* The vector of an environment is counted in pieces that end at pages. */
void arg_environ(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[PAGE];
	uint64_t count = 0;
	bool ended = false;

	decode_address(d->out, value);
	while (value && !ended && count < SHOW_VARS) {
		uint64_t at = value + count * word;
		size_t wanted = PAGE - (size_t)(at % PAGE), got, i;

		if (wanted < word)
			wanted = word; /* a misaligned vector: one pointer across the border */
		got = decode_peek_some(d, at, buf, wanted - wanted % word) / word;
		for (i = 0; i < got && load_word(buf + i * word, word); i++)
			count++;
		ended = i < got;
		if (!got)
			break;
	}
	if (!value)
		return;
	text_lit(d->out, " /* ");
	text_udec(d->out, count);
	text_add(d->out, count == 1 ? " var" : " vars");
	text_add(d->out, ended ? " */" : ", unterminated */");
}

/* --- buffers -------------------------------------------------------------------------------------------------------- */

void decode_buffer(struct decoding *d, uint64_t addr, uint64_t len, size_t max)
{
	uint8_t buf[SHOW_STRING + 1];
	size_t wanted = len < max ? (size_t)len : max;

	if (wanted > SHOW_STRING)
		wanted = SHOW_STRING;
	if (!wanted && addr) {
		text_lit(d->out, "\"\"");
		if (len)
			text_lit(d->out, "...");
		return;
	}
	if (!decode_fetch(d, addr, buf, wanted ? wanted : 1))
		return;
	text_quote(d->out, buf, wanted, wanted);
	if (wanted < len)
		text_lit(d->out, "...");
}

void arg_buf_hex(struct decoding *d, uint64_t value)
{
	uint64_t len = decode_ref(d);
	size_t wanted = len < SHOW_STRING ? (size_t)len : SHOW_STRING;
	uint8_t buf[SHOW_STRING];

	if (!wanted) {
		decode_address(d->out, value);
	} else if (decode_fetch(d, value, buf, wanted)) {
		text_quote_hex(d->out, buf, wanted, wanted);
		if (wanted < len)
			text_lit(d->out, "...");
	}
}

void arg_buf(struct decoding *d, uint64_t value)
{
	if (d->call->id == CALL_getrandom)
		arg_buf_hex(d, value);
	else
		decode_buffer(d, value, decode_ref(d), SHOW_STRING);
}

void decode_iovec(struct decoding *d, uint64_t addr, uint64_t count, uint64_t bytes)
{
	unsigned word = decode_word(d);
	uint8_t buf[SHOW_IOVEC * 16];
	size_t got;

	if (!count && addr) {
		text_lit(d->out, "[]");
		return;
	}
	got = decode_peek_some(d, addr, buf, (count < SHOW_IOVEC ? (size_t)count : SHOW_IOVEC) * 2 * word) / (2 * word);
	if (!got) {
		decode_address(d->out, addr);
		return;
	}
	text_char(d->out, '[');
	for (size_t i = 0; i < got; i++) {
		uint64_t base = load_word(buf + 2 * i * word, word), len = load_word(buf + (2 * i + 1) * word, word);
		uint64_t filled = len < bytes ? len : bytes;

		text_add(d->out, i ? ", {iov_base=" : "{iov_base=");
		decode_buffer(d, base, filled, SHOW_STRING);
		text_lit(d->out, ", iov_len=");
		text_udec(d->out, len);
		text_char(d->out, '}');
		bytes -= filled;
	}
	text_add(d->out, got < count ? ", ...]" : "]");
}

void arg_iovec(struct decoding *d, uint64_t value)
{
	uint64_t count = decode_ref(d);

	decode_iovec(d, value, count, d->exiting ? (d->result > 0 ? (uint64_t)d->result : 0) : UINT64_MAX);
}
