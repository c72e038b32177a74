/*
 * decode_sockets.c - socket addresses, messages and options.
 */
#include <arpa/inet.h>

#include "syscalls/decode_impl.h"

enum {
	FAMILY_UNSPEC = 0, FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10, FAMILY_NETLINK = 16, FAMILY_PACKET = 17,
	FAMILY_VSOCK = 40,
	ADDRESS_MAX = 128 /* struct sockaddr_storage: the kernel refuses more (net/socket.c, move_addr_to_kernel()) */
};

/* --- addresses ------------------------------------------------------------------------------------------------------- */

static uint16_t net16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t net32(const uint8_t *p)
{
	return (uint32_t)net16(p) << 16 | net16(p + 2);
}

static void sockaddr_inet(struct text *out, const uint8_t *addr)
{
	text_lit(out, ", sin_port=htons(");
	text_udec(out, net16(addr + 2));
	text_lit(out, "), sin_addr=inet_addr(\"");
	for (unsigned i = 0; i < 4; i++) {
		if (i)
			text_char(out, '.');
		text_udec(out, addr[4 + i]);
	}
	text_lit(out, "\")");
}

static void sockaddr_inet6(struct text *out, const uint8_t *addr)
{
	char name[INET6_ADDRSTRLEN];

	text_lit(out, ", sin6_port=htons(");
	text_udec(out, net16(addr + 2));
	text_lit(out, "), sin6_flowinfo=htonl(");
	text_udec(out, net32(addr + 4));
	text_lit(out, "), inet_pton(AF_INET6, \"");
	if (inet_ntop(AF_INET6, addr + 8, name, sizeof(name)))
		text_add(out, name);
	text_lit(out, "\", &sin6_addr), sin6_scope_id=");
	text_udec(out, load32(addr + 24));
}

/* A path ends at its NUL or with the address; an abstract name is all of the rest (unix(7)). */
static void sockaddr_unix(struct text *out, const uint8_t *addr, size_t len)
{
	const uint8_t *path = addr + 2;
	size_t size = len - 2;

	if (size == 0)
		return;
	text_lit(out, ", sun_path=");
	if (path[0] == '\0') {
		text_char(out, '@');
		text_quote(out, path + 1, size - 1, size);
	} else {
		text_quote(out, path, strnlen((const char *)path, size), size);
	}
}

static void sockaddr_netlink(struct text *out, const uint8_t *addr)
{
	text_lit(out, ", nl_pid=");
	text_udec(out, load32(addr + 4));
	text_lit(out, ", nl_groups=");
	text_hex(out, load32(addr + 8));
}

static void sockaddr_packet(struct text *out, const uint8_t *addr)
{
	const char *protocol = flag_name(&ether_protocols, net16(addr + 2));

	text_lit(out, ", sll_protocol=htons(");
	if (protocol)
		text_add(out, protocol);
	else
		text_hex(out, net16(addr + 2));
	text_lit(out, "), sll_ifindex=");
	text_dec(out, (int32_t)load32(addr + 4));
	text_lit(out, ", sll_hatype=");
	text_hex(out, load16(addr + 8));
	text_lit(out, ", sll_pkttype=");
	decode_enum(out, &packet_types, addr[10]);
	text_lit(out, ", sll_halen=");
	text_udec(out, addr[11]);
}

static void sockaddr_vsock(struct text *out, const uint8_t *addr)
{
	text_lit(out, ", svm_cid=");
	text_hex(out, load32(addr + 8));
	text_lit(out, ", svm_port=");
	text_hex(out, load32(addr + 4));
}

static void sockaddr_other(struct text *out, const uint8_t *addr, size_t len)
{
	text_lit(out, ", sa_data=");
	text_quote(out, addr + 2, len - 2, SHOW_STRING);
}

void decode_sockaddr(struct text *out, const uint8_t *addr, size_t len)
{
	unsigned family = load16(addr);

	text_lit(out, "{sa_family=");
	decode_enum(out, &socket_families, family);
	if (family == FAMILY_UNIX)
		sockaddr_unix(out, addr, len);
	else if (family == FAMILY_INET && len >= 8)
		sockaddr_inet(out, addr);
	else if (family == FAMILY_INET6 && len >= 28)
		sockaddr_inet6(out, addr);
	else if (family == FAMILY_NETLINK && len >= 12)
		sockaddr_netlink(out, addr);
	else if (family == FAMILY_PACKET && len >= 12)
		sockaddr_packet(out, addr);
	else if (family == FAMILY_VSOCK && len >= 12)
		sockaddr_vsock(out, addr);
	else if (len > 2)
		sockaddr_other(out, addr, len);
	text_char(out, '}');
}

static void sockaddr_at(struct decoding *d, uint64_t addr, uint64_t len)
{
	uint8_t buf[ADDRESS_MAX];

	if (len < 2) {
		decode_address(d->out, addr);
		return;
	}
	if (len > sizeof(buf))
		len = sizeof(buf);
	if (decode_fetch(d, addr, buf, (size_t)len))
		decode_sockaddr(d->out, buf, (size_t)len);
}

/* The kernel takes a length as int: a negative one is no length. */
static uint64_t length_of(uint64_t value)
{
	return (int32_t)value < 0 ? 0 : (uint32_t)value;
}

void arg_sockaddr_in(struct decoding *d, uint64_t value)
{
	sockaddr_at(d, value, length_of(decode_ref(d)));
}

/* What the kernel wrote is no longer than the room it was given nor than the length it tells. */
void arg_sockaddr_out(struct decoding *d, uint64_t value)
{
	unsigned ref = d->args[d->index].ref;
	uint64_t room = decode_kept(d, ref), len = keep_int(d, decode_value(d, ref));

	if (len == UINT64_MAX || room == UINT64_MAX)
		decode_address(d->out, value);
	else
		sockaddr_at(d, value, length_of(len < room ? len : room));
}

void arg_socklen(struct decoding *d, uint64_t value)
{
	uint64_t before = decode_kept(d, d->index), after = keep_int(d, value);

	if (after == UINT64_MAX) {
		decode_address(d->out, value);
		return;
	}
	text_char(d->out, '[');
	if (before != UINT64_MAX && before != after && !decode_failed(d)) {
		text_dec(d->out, (int32_t)before);
		text_lit(d->out, " => ");
	}
	text_dec(d->out, (int32_t)after);
	text_char(d->out, ']');
}

/* --- messages -------------------------------------------------------------------------------------------------------- */

struct message {
	uint64_t name, name_len, iov, iov_len, control, control_len, flags;
};

static size_t message_size(const struct decoding *d)
{
	return decode_compat(d) ? 28 : 56;
}

static struct message message_load(const struct decoding *d, const uint8_t *buf)
{
	unsigned word = decode_word(d);

	return (struct message){
		.name = load_word(buf, word), .name_len = load32(buf + word), .iov = load_word(buf + 2 * word, word),
		.iov_len = load_word(buf + 3 * word, word), .control = load_word(buf + 4 * word, word),
		.control_len = load_word(buf + 5 * word, word), .flags = load32(buf + 6 * word)
	};
}

/* recvmsg overwrites msg_namelen: the room that the name had. */
uint64_t keep_msghdr(const struct decoding *d, uint64_t addr)
{
	uint8_t buf[56];

	return decode_peek(d, addr, buf, message_size(d)) ? message_load(d, buf).name_len : UINT64_MAX;
}

/* SCM_RIGHTS: [3, 4]; SCM_CREDENTIALS: {pid=1, uid=0, gid=0}; others as bytes. */
static void cmsg_data(struct text *out, uint32_t level, uint32_t type, const uint8_t *data, size_t len, bool whole)
{
	enum { LEVEL_SOCKET = 1, RIGHTS = 1, CREDENTIALS = 2 };
	size_t fds = len / 4;

	if (level == LEVEL_SOCKET && type == RIGHTS) {
		text_char(out, '[');
		for (size_t i = 0; i < fds && i < SHOW_ITEMS; i++) {
			if (i)
				text_lit(out, ", ");
			text_dec(out, (int32_t)load32(data + 4 * i));
		}
		text_add(out, fds > SHOW_ITEMS || !whole ? ", ...]" : "]");
	} else if (level == LEVEL_SOCKET && type == CREDENTIALS && len >= 12) {
		text_lit(out, "{pid=");
		text_dec(out, (int32_t)load32(data));
		text_lit(out, ", uid=");
		decode_uid(out, load32(data + 4));
		text_lit(out, ", gid=");
		decode_uid(out, load32(data + 8));
		text_char(out, '}');
	} else {
		text_quote_hex(out, data, len, SHOW_STRING);
		if (!whole && len <= SHOW_STRING)
			text_lit(out, "...");
	}
}

static void cmsg_print(struct text *out, uint64_t len, uint32_t level, uint32_t type)
{
	enum { LEVEL_SOCKET = 1 };

	text_lit(out, "{cmsg_len=");
	text_udec(out, len);
	text_lit(out, ", cmsg_level=");
	decode_enum(out, &socket_levels, level);
	text_lit(out, ", cmsg_type=");
	if (level == LEVEL_SOCKET)
		decode_enum(out, &scm_types, type);
	else
		text_hex(out, type);
}

/* Headers are word-aligned and hold their own length; one that is less than a header or leaves the buffer ends the list. */
static void control_print(struct decoding *d, uint64_t addr, uint64_t len)
{
	unsigned word = decode_word(d), shown = 0;
	size_t header = word + 8, at = 0;
	uint8_t buf[SHOW_CONTROL];
	size_t got = decode_peek_some(d, addr, buf, len < sizeof(buf) ? (size_t)len : sizeof(buf));

	if (got < header) {
		decode_address(d->out, addr);
		return;
	}
	text_char(d->out, '[');
	while (got - at >= header && shown < SHOW_CMSG) {
		uint64_t cmsg_len = load_word(buf + at, word);
		uint32_t level = load32(buf + at + word), type = load32(buf + at + word + 4);
		bool whole = cmsg_len <= got - at;

		if (cmsg_len < header)
			break;
		if (shown++)
			text_lit(d->out, ", ");
		cmsg_print(d->out, cmsg_len, level, type);
		if (cmsg_len > header) {
			text_lit(d->out, ", cmsg_data=");
			cmsg_data(d->out, level, type, buf + at + header, (whole ? (size_t)cmsg_len : got - at) - header, whole);
		}
		text_char(d->out, '}');
		if (!whole || (cmsg_len + word - 1) / word * word > got - at) {
			at = got;
			break;
		}
		at += (size_t)((cmsg_len + word - 1) / word * word);
	}
	if (at < len && (at < got || got < len) && len - at >= header)
		text_add(d->out, shown ? ", ..." : "...");
	text_char(d->out, ']');
}

/* NAME_ROOM: what the entry had for the name where the kernel filled it; BYTES: how many of the vectors' are meant. */
static void message_print(struct decoding *d, const uint8_t *buf, uint64_t name_room, uint64_t bytes)
{
	struct message message = message_load(d, buf);
	uint64_t name_len = message.name_len;

	if (name_room != UINT64_MAX && name_len > name_room)
		name_len = name_room;
	text_lit(d->out, "{msg_name=");
	if (message.name)
		sockaddr_at(d, message.name, length_of(name_len));
	else
		text_lit(d->out, "NULL");
	text_lit(d->out, ", msg_namelen=");
	if (name_room != UINT64_MAX && name_room != message.name_len) {
		text_dec(d->out, (int32_t)name_room);
		text_lit(d->out, " => ");
	}
	text_dec(d->out, (int32_t)message.name_len);
	text_lit(d->out, ", msg_iov=");
	decode_iovec(d, message.iov, message.iov_len, bytes);
	text_lit(d->out, ", msg_iovlen=");
	text_udec(d->out, message.iov_len);
	if (message.control && message.control_len) {
		text_lit(d->out, ", msg_control=");
		control_print(d, message.control, message.control_len);
	}
	text_lit(d->out, ", msg_controllen=");
	text_udec(d->out, message.control_len);
	text_lit(d->out, ", msg_flags=");
	decode_flags(d->out, &msg_flags, message.flags);
	text_char(d->out, '}');
}

void arg_msghdr(struct decoding *d, uint64_t value)
{
	uint8_t buf[56];

	if (decode_fetch(d, value, buf, message_size(d)))
		message_print(d, buf, decode_kept(d, d->index), d->exiting ? (uint64_t)d->result : UINT64_MAX);
}

/* struct mmsghdr is a msghdr and the bytes that went through it, which only the exit knows. */
void arg_mmsghdr(struct decoding *d, uint64_t value)
{
	size_t header = message_size(d), size = header + decode_word(d), got;
	uint64_t count = (uint32_t)decode_ref(d);
	uint8_t buf[SHOW_MMSG * 64];

	got = decode_peek_some(d, value, buf, (count < SHOW_MMSG ? (size_t)count : SHOW_MMSG) * size) / size;
	if (!got) {
		if (value && !count)
			text_lit(d->out, "[]");
		else
			decode_address(d->out, value);
		return;
	}
	text_char(d->out, '[');
	for (size_t i = 0; i < got; i++) {
		uint32_t bytes = load32(buf + i * size + header);

		text_add(d->out, i ? ", {msg_hdr=" : "{msg_hdr=");
		message_print(d, buf + i * size, UINT64_MAX, d->exiting ? bytes : UINT64_MAX);
		if (d->exiting) {
			text_lit(d->out, ", msg_len=");
			text_udec(d->out, bytes);
		}
		text_char(d->out, '}');
	}
	text_add(d->out, got < count ? ", ...]" : "]");
}

/* --- options --------------------------------------------------------------------------------------------------------- */

enum {
	LEVEL_IP = 0, LEVEL_SOCKET = 1, LEVEL_TCP = 6, LEVEL_UDP = 17, LEVEL_IPV6 = 41, LEVEL_PACKET = 263, LEVEL_NETLINK = 270
};

void arg_sockopt_level(struct decoding *d, uint64_t value)
{
	decode_enum(d->out, &socket_levels, value);
}

static const struct flag_set *options_of(uint32_t level)
{
	switch (level) {
	case LEVEL_IP:
		return &ip_options;
	case LEVEL_SOCKET:
		return &so_options;
	case LEVEL_TCP:
		return &tcp_options;
	case LEVEL_UDP:
		return &udp_options;
	case LEVEL_IPV6:
		return &ipv6_options;
	case LEVEL_PACKET:
		return &packet_options;
	case LEVEL_NETLINK:
		return &netlink_options;
	default:
		return NULL;
	}
}

void arg_sockopt_name(struct decoding *d, uint64_t value)
{
	const struct flag_set *set = d->index ? options_of((uint32_t)decode_value(d, d->index - 1)) : NULL;

	if (set)
		decode_enum(d->out, set, value);
	else
		text_hex(d->out, (uint32_t)value);
}

/* Structs of a few options are known by level, name and length; 4 bytes are an int, others are shown as bytes. */
static void sockopt_value(struct decoding *d, uint32_t level, uint32_t name, const uint8_t *buf, size_t len)
{
	enum { LINGER = 13, PEERCRED = 17, RCVTIMEO = 20, SNDTIMEO = 21, BINDTODEVICE = 25, CONGESTION = 13, ULP = 31 };
	unsigned word = decode_word(d);

	if (level == LEVEL_SOCKET && name == LINGER && len == 8) {
		text_lit(d->out, "{l_onoff=");
		text_dec(d->out, (int32_t)load32(buf));
		text_lit(d->out, ", l_linger=");
		text_dec(d->out, (int32_t)load32(buf + 4));
		text_char(d->out, '}');
	} else if (level == LEVEL_SOCKET && name == PEERCRED && len == 12) {
		text_lit(d->out, "{pid=");
		text_dec(d->out, (int32_t)load32(buf));
		text_lit(d->out, ", uid=");
		decode_uid(d->out, load32(buf + 4));
		text_lit(d->out, ", gid=");
		decode_uid(d->out, load32(buf + 8));
		text_char(d->out, '}');
	} else if (level == LEVEL_SOCKET && (name == RCVTIMEO || name == SNDTIMEO) && len == 2 * word) {
		text_lit(d->out, "{tv_sec=");
		text_dec(d->out, load_sword(buf, word));
		text_lit(d->out, ", tv_usec=");
		text_dec(d->out, load_sword(buf + word, word));
		text_char(d->out, '}');
	} else if ((level == LEVEL_SOCKET && name == BINDTODEVICE) || (level == LEVEL_TCP && (name == CONGESTION || name == ULP))) {
		text_quote(d->out, buf, strnlen((const char *)buf, len), SHOW_STRING);
	} else if (len == 4) {
		text_char(d->out, '[');
		text_dec(d->out, (int32_t)load32(buf));
		text_char(d->out, ']');
	} else {
		text_quote(d->out, buf, len, SHOW_STRING);
	}
}

/* Arguments are (fd, level, name, value, length) in both calls; the length is a pointer in getsockopt. */
void arg_sockopt(struct decoding *d, uint64_t value)
{
	unsigned ref = d->args[d->index].ref;
	uint64_t len = d->exiting ? keep_int(d, decode_value(d, ref)) : length_of(decode_ref(d));
	uint64_t room = d->exiting ? decode_kept(d, ref) : len;
	uint8_t buf[SHOW_STRING + 1];
	size_t wanted;

	if (len == UINT64_MAX || room == UINT64_MAX || !(len = length_of(len < room ? len : room))) {
		decode_address(d->out, value);
		return;
	}
	wanted = len < sizeof(buf) ? (size_t)len : sizeof(buf);
	if (decode_fetch(d, value, buf, wanted))
		sockopt_value(d, (uint32_t)decode_value(d, 1), (uint32_t)decode_value(d, 2), buf, wanted);
}

/* --- socket ---------------------------------------------------------------------------------------------------------- */

void arg_socket_type(struct decoding *d, uint64_t value)
{
	decode_flags(d->out, &socket_types, (uint32_t)value);
}

void arg_socket_proto(struct decoding *d, uint64_t value)
{
	uint32_t family = (uint32_t)decode_value(d, 0);
	const char *name;

	if (family == FAMILY_INET || family == FAMILY_INET6) {
		decode_enum(d->out, &ip_protocols, value);
	} else if (family == FAMILY_NETLINK) {
		decode_enum(d->out, &netlink_protocols, value);
	} else if (family == FAMILY_PACKET) {
		name = flag_name(&ether_protocols, (uint16_t)((value & 0xff) << 8 | (value >> 8 & 0xff)));
		text_lit(d->out, "htons(");
		if (name)
			text_add(d->out, name);
		else
			text_hex(d->out, (value & 0xff) << 8 | (value >> 8 & 0xff));
		text_char(d->out, ')');
	} else {
		text_dec(d->out, (int32_t)value);
	}
}
