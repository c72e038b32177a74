/*
 * decode_structs.c - what the kernel tells of files, and other structs that calls take or fill.
 *
 * Layouts are offsets and not the host's structs: one decoder reads every ABI, on every host. Sources: uapi headers
 * (asm/stat.h, asm/statfs.h, linux/...) and arch/x86/include/asm/compat.h of Linux.
 */
#include "syscalls/decode_impl.h"

/* --- stat ----------------------------------------------------------------------------------------------------------- */

struct stat_layout {
	uint8_t size;
	uint8_t mode, mode_bytes;
	uint8_t rdev, rdev_bytes;
	uint8_t length, length_bytes;
};

static const struct stat_layout stat_x86_64 = { 144, 24, 4, 40, 8, 48, 8 };
static const struct stat_layout stat_generic = { 128, 16, 4, 32, 8, 48, 8 };
static const struct stat_layout stat_i386 = { 64, 8, 2, 16, 4, 20, 4 };
static const struct stat_layout stat_i386_old = { 32, 4, 2, 12, 2, 16, 4 };
static const struct stat_layout stat_i386_64 = { 96, 16, 4, 32, 8, 44, 8 };

static uint64_t load_field(const uint8_t *p, unsigned bytes)
{
	return bytes == 2 ? load16(p) : load_word(p, bytes);
}

/* new_encode_dev() of linux/kdev_t.h, which is also what the 64-bit forms hold; 16-bit ones are old_encode_dev(). */
static void dev_print(struct text *out, uint64_t dev)
{
	decode_dev(out, (dev >> 8 & 0xfff) | (dev >> 32 & 0xfffff000), (dev & 0xff) | (dev >> 12 & 0xffffff00));
}

void decode_dev(struct text *out, uint64_t major, uint64_t minor)
{
	text_lit(out, "makedev(");
	text_hex(out, major);
	text_lit(out, ", ");
	text_hex(out, minor);
	text_char(out, ')');
}

void arg_dev(struct decoding *d, uint64_t value)
{
	dev_print(d->out, (uint32_t)value);
}

void decode_mode_type(struct text *out, uint32_t mode)
{
	uint32_t type = mode & 0170000, rest = mode & ~0170000U;
	const char *name = type ? flag_name(&file_types, type) : NULL;

	if (name) {
		text_add(out, name);
		text_char(out, '|');
	} else if (type) {
		text_octal(out, type, 3);
		text_char(out, '|');
	}
	static const struct { uint32_t bit; const char *name; } special[] = {
		{ 04000, "S_ISUID|" }, { 02000, "S_ISGID|" }, { 01000, "S_ISVTX|" }
	};

	for (unsigned i = 0; i < 3; i++)
		if (rest & special[i].bit) {
			text_add(out, special[i].name);
			rest &= ~special[i].bit;
		}
	text_octal(out, rest, 3);
}

void arg_mode_type(struct decoding *d, uint64_t value)
{
	decode_mode_type(d->out, d->call->id == CALL_mknod || d->call->id == CALL_mknodat ? value & 0xffff : value);
}

static bool mode_is_device(uint32_t mode)
{
	return (mode & 0170000) == 0020000 || (mode & 0170000) == 0060000;
}

static void stat_print(struct decoding *d, uint64_t addr, const struct stat_layout *layout)
{
	uint8_t buf[144];

	if (!decode_fetch(d, addr, buf, layout->size))
		return;

	uint32_t mode = (uint32_t)load_field(buf + layout->mode, layout->mode_bytes);

	text_lit(d->out, "{st_mode=");
	decode_mode_type(d->out, mode);
	if (mode_is_device(mode)) {
		text_lit(d->out, ", st_rdev=");
		dev_print(d->out, load_field(buf + layout->rdev, layout->rdev_bytes));
	} else {
		text_lit(d->out, ", st_size=");
		text_dec(d->out, (int64_t)load_field(buf + layout->length, layout->length_bytes));
	}
	text_lit(d->out, ", ...}");
}

void arg_stat(struct decoding *d, uint64_t value)
{
	static const struct stat_layout *const layouts[ARCH_COUNT] = {
		[ARCH_X86_64] = &stat_x86_64, [ARCH_I386] = &stat_i386,
		[ARCH_AARCH64] = &stat_generic, [ARCH_RISCV64] = &stat_generic
	};

	stat_print(d, value, layouts[d->call->arch->id]);
}

void arg_stat64(struct decoding *d, uint64_t value)
{
	stat_print(d, value, &stat_i386_64);
}

void arg_oldstat(struct decoding *d, uint64_t value)
{
	stat_print(d, value, &stat_i386_old);
}

void arg_statx(struct decoding *d, uint64_t value)
{
	uint8_t buf[136];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;

	uint32_t mode = load16(buf + 28);

	text_lit(d->out, "{stx_mask=");
	decode_flags(d->out, &statx_mask, load32(buf));
	text_lit(d->out, ", stx_attributes=");
	decode_flags(d->out, &statx_attributes, load64(buf + 8));
	text_lit(d->out, ", stx_mode=");
	decode_mode_type(d->out, mode);
	if (mode_is_device(mode)) {
		text_lit(d->out, ", stx_rdev_major=");
		text_hex(d->out, load32(buf + 128));
		text_lit(d->out, ", stx_rdev_minor=");
		text_hex(d->out, load32(buf + 132));
	}
	text_lit(d->out, ", stx_size=");
	text_udec(d->out, load64(buf + 40));
	text_lit(d->out, ", ...}");
}

/* --- named numbers ---------------------------------------------------------------------------------------------------- */

static void field_udec(struct text *out, const char *name, uint64_t value)
{
	text_add(out, name);
	text_char(out, '=');
	text_udec(out, value);
}

static void field_address(struct text *out, const char *name, uint64_t value)
{
	text_add(out, name);
	text_char(out, '=');
	decode_address(out, value);
}

/* --- statfs --------------------------------------------------------------------------------------------------------- */

/* TYPE and bsize have WORD bytes, the five counts COUNT bytes, then fsid, and namelen, frsize, flags of WORD bytes. */
static void statfs_print(struct decoding *d, uint64_t addr, unsigned word, unsigned count)
{
	static const char *const counts[] = { ", f_blocks", ", f_bfree", ", f_bavail", ", f_files", ", f_ffree" };
	uint8_t buf[88];
	const uint8_t *p = buf + 2 * word;

	if (!decode_fetch(d, addr, buf, 5 * word + 5 * count + 8))
		return;
	text_lit(d->out, "{f_type=");
	decode_enum(d->out, &fs_magics, load_word(buf, word));
	field_udec(d->out, ", f_bsize", load_word(buf + word, word));
	for (unsigned i = 0; i < 5; i++, p += count)
		field_udec(d->out, counts[i], load_word(p, count));
	text_lit(d->out, ", f_fsid={val=[");
	text_hex(d->out, load32(p));
	text_lit(d->out, ", ");
	text_hex(d->out, load32(p + 4));
	text_lit(d->out, "]}");
	field_udec(d->out, ", f_namelen", load_word(p + 8, word));
	field_udec(d->out, ", f_frsize", load_word(p + 8 + word, word));
	text_lit(d->out, ", f_flags=");
	decode_flags(d->out, &statfs_flags, load_word(p + 8 + 2 * word, word));
	text_char(d->out, '}');
}

void arg_statfs(struct decoding *d, uint64_t value)
{
	statfs_print(d, value, decode_word(d), decode_word(d));
}

void arg_statfs64(struct decoding *d, uint64_t value)
{
	statfs_print(d, value, decode_word(d), 8);
}

/* --- the system ------------------------------------------------------------------------------------------------------ */

static void fixed_string(struct text *out, const uint8_t *bytes, size_t size)
{
	text_quote(out, bytes, strnlen((const char *)bytes, size), size);
}

/* Fields of 65 bytes; 9 in the oldest of the calls. */
void arg_utsname(struct decoding *d, uint64_t value)
{
	size_t size = d->call->id == CALL_oldolduname ? 9 : 65;
	uint8_t buf[2 * 65];

	if (!decode_fetch(d, value, buf, 2 * size))
		return;
	text_lit(d->out, "{sysname=");
	fixed_string(d->out, buf, size);
	text_lit(d->out, ", nodename=");
	fixed_string(d->out, buf + size, size);
	text_lit(d->out, ", ...}");
}

void arg_sysinfo(struct decoding *d, uint64_t value)
{
	static const char *const names[] = { ", totalram", ", freeram", ", sharedram", ", bufferram", ", totalswap", ", freeswap" };
	unsigned word = decode_word(d);
	uint8_t buf[82];

	if (!decode_fetch(d, value, buf, 10 * (size_t)word + 2))
		return;
	text_lit(d->out, "{uptime=");
	text_dec(d->out, load_sword(buf, word));
	text_lit(d->out, ", loads=[");
	for (unsigned i = 1; i <= 3; i++) {
		if (i > 1)
			text_lit(d->out, ", ");
		text_udec(d->out, load_word(buf + i * word, word));
	}
	text_char(d->out, ']');
	for (unsigned i = 0; i < 6; i++)
		field_udec(d->out, names[i], load_word(buf + (4 + i) * word, word));
	field_udec(d->out, ", procs", load16(buf + 10 * word));
	text_lit(d->out, ", ...}");
}

/* --- capabilities ---------------------------------------------------------------------------------------------------- */

void arg_cap_header(struct decoding *d, uint64_t value)
{
	uint8_t buf[8];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;
	text_lit(d->out, "{version=");
	decode_enum(d->out, &cap_versions, load32(buf));
	text_lit(d->out, ", pid=");
	text_dec(d->out, (int32_t)load32(buf + 4));
	text_char(d->out, '}');
}

static void cap_mask(struct text *out, uint64_t mask)
{
	if (!mask)
		text_char(out, '0');
	for (bool first = true; mask; mask &= mask - 1, first = false) {
		unsigned bit = (unsigned)__builtin_ctzll(mask);
		const char *name = flag_name(&capabilities, bit);

		if (!first)
			text_char(out, '|');
		text_lit(out, "1<<");
		if (name)
			text_add(out, name);
		else
			text_udec(out, bit);
	}
}

/* One {effective, permitted, inheritable} of 32 bits, two from version 2 on (capget(2)). */
void arg_cap_data(struct decoding *d, uint64_t value)
{
	static const char *const names[] = { "{effective=", ", permitted=", ", inheritable=" };
	enum { VERSION_1 = 0x19980330 };
	uint8_t version[4], buf[24] = { 0 };
	bool one = decode_peek(d, decode_value(d, 0), version, 4) && load32(version) == VERSION_1;

	if (!decode_fetch(d, value, buf, one ? 12 : 24))
		return;
	for (unsigned i = 0; i < 3; i++) {
		text_add(d->out, names[i]);
		cap_mask(d->out, load32(buf + 4 * i) | (uint64_t)load32(buf + 12 + 4 * i) << 32);
	}
	text_char(d->out, '}');
}

/* --- scheduling ------------------------------------------------------------------------------------------------------ */

void arg_sched_attr(struct decoding *d, uint64_t value)
{
	static const char *const names[] = { ", sched_runtime", ", sched_deadline", ", sched_period" };
	uint8_t buf[48];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;
	field_udec(d->out, "{size", load32(buf));
	text_lit(d->out, ", sched_policy=");
	decode_enum(d->out, &sched_policies, load32(buf + 4));
	text_lit(d->out, ", sched_flags=");
	decode_flags(d->out, &sched_flags, load64(buf + 8));
	text_lit(d->out, ", sched_nice=");
	text_dec(d->out, (int32_t)load32(buf + 16));
	field_udec(d->out, ", sched_priority", load32(buf + 20));
	for (unsigned i = 0; i < 3; i++)
		field_udec(d->out, names[i], load64(buf + 24 + 8 * i));
	text_lit(d->out, ", ...}");
}

/* Members of a bit mask of LEN bytes that are below LIMIT. */
static void bits_print(struct text *out, const uint8_t *mask, size_t len, unsigned limit)
{
	unsigned shown = 0;

	text_char(out, '[');
	for (size_t i = 0; i < len; i++) {
		for (unsigned byte = mask[i]; byte; byte &= byte - 1) {
			unsigned bit = (unsigned)i * 8 + (unsigned)__builtin_ctz(byte);

			if (bit >= limit)
				break;
			if (shown)
				text_char(out, ' ');
			if (shown++ == SHOW_ITEMS) {
				text_lit(out, "...]");
				return;
			}
			text_udec(out, bit);
		}
	}
	text_char(out, ']');
}

enum { MASK_BYTES = 128 }; /* 1024 processors or descriptors are looked at */

void arg_cpuset(struct decoding *d, uint64_t value)
{
	uint64_t len = d->exiting && d->result > 0 ? (uint64_t)d->result : decode_ref(d);
	uint8_t buf[MASK_BYTES];

	if (len == 0)
		decode_address(d->out, value);
	else if (decode_fetch(d, value, buf, len < MASK_BYTES ? (size_t)len : MASK_BYTES))
		bits_print(d->out, buf, len < MASK_BYTES ? (size_t)len : MASK_BYTES, 8 * MASK_BYTES);
}

/* --- open_how, clone_args, futex_waitv -------------------------------------------------------------------------------- */

void arg_open_how(struct decoding *d, uint64_t value)
{
	enum { SIZE = 24 };
	uint8_t buf[SIZE];

	if (decode_ref(d) < SIZE) {
		decode_address(d->out, value);
		return;
	}
	if (!decode_fetch(d, value, buf, SIZE))
		return;
	text_lit(d->out, "{flags=");
	decode_open_flags(d, &open_flags, load64(buf));
	if (decode_open_creates(load64(buf)) || load64(buf + 8)) {
		text_lit(d->out, ", mode=");
		text_octal(d->out, load64(buf + 8), 3);
	}
	text_lit(d->out, ", resolve=");
	decode_flags(d->out, &resolve_flags, load64(buf + 16));
	text_char(d->out, decode_ref(d) > SIZE ? ',' : '}');
	if (decode_ref(d) > SIZE)
		text_lit(d->out, " ...}");
}

void arg_clone_args(struct decoding *d, uint64_t value)
{
	enum { FIRST_SIZE = 64, PIDFD = 0x1000, PARENT_SETTID = 0x100000, SETTLS = 0x80000, CHILD_TIDS = 0x01200000 };
	uint8_t buf[FIRST_SIZE];

	if (decode_ref(d) < FIRST_SIZE) {
		decode_address(d->out, value);
		return;
	}
	if (!decode_fetch(d, value, buf, FIRST_SIZE))
		return;

	uint64_t flags = load64(buf);

	text_lit(d->out, "{flags=");
	decode_flags(d->out, &clone_flags, flags);
	if (flags & PIDFD)
		field_address(d->out, ", pidfd", load64(buf + 8));
	if (flags & CHILD_TIDS)
		field_address(d->out, ", child_tid", load64(buf + 16));
	if (flags & PARENT_SETTID)
		field_address(d->out, ", parent_tid", load64(buf + 24));
	text_lit(d->out, ", exit_signal=");
	decode_signal(d->out, load64(buf + 32) > 64 ? -1 : (int)load64(buf + 32));
	field_address(d->out, ", stack", load64(buf + 40));
	text_lit(d->out, ", stack_size=");
	text_hex(d->out, load64(buf + 48));
	if (flags & SETTLS)
		field_address(d->out, ", tls", load64(buf + 56));
	if (decode_ref(d) > FIRST_SIZE)
		text_lit(d->out, ", ...");
	text_char(d->out, '}');
}

/* Calls PRINT for the elements of an array of COUNT at ADDR, as many as are readable; the rest is dots. BUF has room for
   SHOW_ITEMS of SIZE bytes. */
static void array_print(struct decoding *d, uint64_t addr, uint64_t count, uint8_t *buf, size_t size,
			void (*print)(struct decoding *d, const uint8_t *item))
{
	size_t wanted = count < SHOW_ITEMS ? (size_t)count : SHOW_ITEMS, got;

	if (!addr || !count) {
		if (addr)
			text_lit(d->out, "[]");
		else
			decode_address(d->out, addr);
		return;
	}
	got = decode_peek_some(d, addr, buf, wanted * size) / size;
	if (!got) {
		decode_address(d->out, addr);
		return;
	}
	text_char(d->out, '[');
	for (size_t i = 0; i < got; i++) {
		if (i)
			text_lit(d->out, ", ");
		print(d, buf + i * size);
	}
	if (got < count)
		text_lit(d->out, ", ...");
	text_char(d->out, ']');
}

static void futex_waiter(struct decoding *d, const uint8_t *item)
{
	text_lit(d->out, "{val=");
	text_hex(d->out, load64(item));
	field_address(d->out, ", uaddr", load64(item + 8));
	text_lit(d->out, ", flags=");
	decode_flags(d->out, &futex2_flags, load32(item + 16));
	text_char(d->out, '}');
}

void arg_futex_waitv(struct decoding *d, uint64_t value)
{
	uint8_t buf[SHOW_ITEMS * 24];

	array_print(d, value, (uint32_t)decode_ref(d), buf, 24, futex_waiter);
}

/* --- System V and POSIX queues ---------------------------------------------------------------------------------------- */

static void sembuf_print(struct decoding *d, const uint8_t *item)
{
	text_lit(d->out, "{sem_num=");
	text_udec(d->out, load16(item));
	text_lit(d->out, ", sem_op=");
	text_dec(d->out, (int16_t)load16(item + 2));
	text_lit(d->out, ", sem_flg=");
	decode_flags(d->out, &sem_flags, load16(item + 4));
	text_char(d->out, '}');
}

void arg_sembuf(struct decoding *d, uint64_t value)
{
	uint8_t buf[SHOW_ITEMS * 6];

	array_print(d, value, (uint32_t)decode_ref(d), buf, 6, sembuf_print);
}

void arg_mq_attr(struct decoding *d, uint64_t value)
{
	unsigned word = decode_word(d);
	uint8_t buf[32];

	if (!decode_fetch(d, value, buf, 4 * (size_t)word))
		return;
	text_lit(d->out, "{mq_flags=");
	decode_open_flags(d, &open_flags, load_word(buf, word));
	field_udec(d->out, ", mq_maxmsg", load_word(buf + word, word));
	field_udec(d->out, ", mq_msgsize", load_word(buf + 2 * word, word));
	field_udec(d->out, ", mq_curmsgs", load_word(buf + 3 * word, word));
	text_char(d->out, '}');
}

/* --- waiting for descriptors ------------------------------------------------------------------------------------------ */

static void pollfd_print(struct decoding *d, const uint8_t *item)
{
	text_lit(d->out, "{fd=");
	text_dec(d->out, (int32_t)load32(item));
	if ((int32_t)load32(item) >= 0) {
		text_lit(d->out, ", events=");
		decode_flags(d->out, &poll_events, load16(item + 4));
	}
	text_char(d->out, '}');
}

void arg_pollfd(struct decoding *d, uint64_t value)
{
	uint8_t buf[SHOW_ITEMS * 8];

	array_print(d, value, (uint32_t)decode_ref(d), buf, 8, pollfd_print);
}

/* The wait's remaining time, where the kernel writes it back: ", left {...}". Argument INDEX is the time. */
static void left_print(struct decoding *d, unsigned index)
{
	uint64_t addr = decode_value(d, index);
	unsigned word = d->args[index].kind == ARG_TIMESPEC64_IN ? 8 : decode_word(d);
	uint8_t buf[16];

	if (!addr || !decode_peek(d, addr, buf, 2 * (size_t)word))
		return;
	text_lit(d->out, ", left ");
	if (d->args[index].kind == ARG_TIMEVAL_IN)
		arg_timeval(d, addr);
	else if (word == 8)
		arg_timespec64(d, addr);
	else
		arg_timespec(d, addr);
}

static bool is_time(uint8_t kind)
{
	return kind == ARG_TIMEVAL_IN || kind == ARG_TIMESPEC_IN || kind == ARG_TIMESPEC64_IN;
}

void decode_poll_result(struct decoding *d)
{
	enum { LOOKED_AT = 128 };
	uint64_t count = (uint32_t)decode_value(d, 1);
	uint8_t buf[LOOKED_AT * 8];
	unsigned shown = 0;

	if (d->result == 0)
		text_lit(d->out, " (Timeout)");
	if (d->result <= 0 || !count)
		return;
	size_t got = decode_peek_some(d, decode_value(d, 0), buf, (count < LOOKED_AT ? (size_t)count : LOOKED_AT) * 8) / 8;

	text_lit(d->out, " ([");
	for (size_t i = 0; i < got && shown < SHOW_ITEMS; i++) {
		if (!load16(buf + i * 8 + 6))
			continue;
		if (shown++)
			text_lit(d->out, ", ");
		text_lit(d->out, "{fd=");
		text_dec(d->out, (int32_t)load32(buf + i * 8));
		text_lit(d->out, ", revents=");
		decode_flags(d->out, &poll_events, load16(buf + i * 8 + 6));
		text_char(d->out, '}');
	}
	if (shown < d->result)
		text_add(d->out, shown ? ", ..." : "...");
	text_char(d->out, ']');
	if (is_time(d->args[2].kind))
		left_print(d, 2);
	text_char(d->out, ')');
}

/* The kernel reads whole longs (core_sys_select()); bits from nfds on count for nothing. Bytes, 0 for none. */
static size_t fdset_read(const struct decoding *d, uint64_t addr, uint8_t buf[MASK_BYTES], unsigned *limit)
{
	int32_t fds = (int32_t)decode_value(d, 0);
	unsigned word_bits = 8 * decode_word(d);
	size_t len;

	if (fds <= 0 || !addr)
		return 0;
	*limit = fds < 8 * MASK_BYTES ? (unsigned)fds : 8 * MASK_BYTES;
	len = (*limit + word_bits - 1) / word_bits * decode_word(d);
	return decode_peek(d, addr, buf, len) ? len : 0;
}

void arg_fdset(struct decoding *d, uint64_t value)
{
	uint8_t buf[MASK_BYTES];
	unsigned limit;
	size_t len = fdset_read(d, value, buf, &limit);

	if (len)
		bits_print(d->out, buf, len, limit);
	else
		decode_address(d->out, value);
}

void decode_select_result(struct decoding *d)
{
	static const char *const names[] = { "in ", "out ", "except " };
	uint8_t buf[MASK_BYTES];
	unsigned shown = 0, limit;

	if (d->result == 0)
		text_lit(d->out, " (Timeout)");
	if (d->result <= 0)
		return;
	text_lit(d->out, " (");
	for (unsigned i = 0; i < 3; i++) {
		size_t len = fdset_read(d, decode_value(d, i + 1), buf, &limit);
		uint8_t any = 0;

		for (size_t k = 0; k < len; k++)
			any |= buf[k];
		if (!any)
			continue;
		if (shown++)
			text_lit(d->out, ", ");
		text_add(d->out, names[i]);
		bits_print(d->out, buf, len, limit);
	}
	if (!shown)
		text_lit(d->out, "...");
	if (is_time(d->args[4].kind))
		left_print(d, 4);
	text_char(d->out, ')');
}

/* x86 packs the struct, the others align its 64-bit half (linux/eventpoll.h, EPOLL_PACKED). */
static size_t epoll_data(const struct decoding *d)
{
	return d->call->arch->id == ARCH_X86_64 || d->call->arch->id == ARCH_I386 ? 4 : 8;
}

static void epoll_event(struct decoding *d, const uint8_t *item)
{
	const uint8_t *data = item + epoll_data(d);

	text_lit(d->out, "{events=");
	decode_flags(d->out, &epoll_events, load32(item));
	field_udec(d->out, ", data={u32", load32(data));
	field_udec(d->out, ", u64", load64(data));
	text_lit(d->out, "}}");
}

void arg_epoll_event(struct decoding *d, uint64_t value)
{
	uint8_t buf[16];

	if (decode_fetch(d, value, buf, epoll_data(d) + 8))
		epoll_event(d, buf);
}

void arg_epoll_events(struct decoding *d, uint64_t value)
{
	uint8_t buf[SHOW_ITEMS * 16];

	array_print(d, value, (uint64_t)d->result, buf, epoll_data(d) + 8, epoll_event);
}

/* --- the rest --------------------------------------------------------------------------------------------------------- */

/* Records of getdents64 and getdents are counted by their lengths; what makes no sense ends the count. */
void arg_dirents(struct decoding *d, uint64_t value)
{
	enum { CHUNK = 4096 };
	size_t reclen_at = !strcmp(d->row->name, "getdents64") ? 16 : 2 * decode_word(d);
	uint64_t len = d->result > 0 ? (uint64_t)d->result : 0, from = 0, at = 0, entries = 0;
	size_t got = 0;
	uint8_t buf[CHUNK];

	if (len > SHOW_DIRENTS)
		len = SHOW_DIRENTS;
	while (at < len && len - at >= reclen_at + 2) {
		if (at - from + reclen_at + 2 > got) {
			from = at;
			got = decode_peek_some(d, value + at, buf, len - at < CHUNK ? (size_t)(len - at) : CHUNK);
			if (got < reclen_at + 2)
				break;
		}

		uint16_t reclen = load16(buf + (at - from) + reclen_at);

		if (reclen < reclen_at + 2)
			break;
		at += reclen;
		entries++;
	}
	decode_address(d->out, value);
	text_lit(d->out, " /* ");
	text_udec(d->out, entries);
	text_add(d->out, entries == 1 ? " entry" : " entries");
	text_add(d->out, at < len ? ", ... */" : " */");
}

/* The kernel overwrites handle_bytes with what it needed, on EOVERFLOW too (name_to_handle_at(2)). */
void arg_file_handle(struct decoding *d, uint64_t value)
{
	enum { HANDLE_MAX = 128 };
	uint8_t buf[8 + HANDLE_MAX];
	size_t got = decode_peek_some(d, value, buf, sizeof(buf));
	uint64_t before = decode_kept(d, d->index);
	uint32_t bytes;

	if (got < 8) {
		decode_address(d->out, value);
		return;
	}
	bytes = load32(buf);
	text_lit(d->out, "{handle_bytes=");
	if (before != UINT64_MAX && before != bytes) {
		text_udec(d->out, before);
		text_lit(d->out, " => ");
	}
	text_udec(d->out, bytes);
	if (!decode_failed(d)) {
		text_lit(d->out, ", handle_type=");
		text_hex(d->out, load32(buf + 4));
		text_lit(d->out, ", f_handle=");
		if (bytes <= got - 8)
			text_quote_hex(d->out, buf + 8, bytes, HANDLE_MAX);
		else
			text_lit(d->out, "...");
	}
	text_char(d->out, '}');
}

void arg_user_desc(struct decoding *d, uint64_t value)
{
	static const char *const bits[] = { ", seg_32bit", NULL, NULL, ", read_exec_only", ", limit_in_pages", ", seg_not_present",
					    ", useable" };
	uint8_t buf[16];

	if (!decode_fetch(d, value, buf, sizeof(buf)))
		return;
	text_lit(d->out, "{entry_number=");
	text_dec(d->out, (int32_t)load32(buf));
	text_lit(d->out, ", base_addr=");
	text_hex(d->out, load32(buf + 4));
	text_lit(d->out, ", limit=");
	text_hex(d->out, load32(buf + 8));
	for (unsigned i = 0; i < 7; i++) {
		if (bits[i])
			field_udec(d->out, bits[i], load32(buf + 12) >> i & 1);
		else if (i == 1)
			field_udec(d->out, ", contents", load32(buf + 12) >> 1 & 3);
	}
	text_char(d->out, '}');
}
