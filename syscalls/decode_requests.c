/*
 * decode_requests.c - calls whose argument is what a request says: ioctl, fcntl, prctl, seccomp.
 */
#include "syscalls/decode_impl.h"

/* What a request's argument is, and whether the kernel fills it. */
enum shape {
	SHAPE_NONE,       /* there is none */
	SHAPE_NUMBER,     /* an int in the register */
	SHAPE_HEX,
	SHAPE_INT,        /* pointer to an int */
	SHAPE_LONG,       /* pointer to an unsigned long or 64 bits: by the request's own size */
	SHAPE_TERMIOS,
	SHAPE_WINSIZE,
	SHAPE_STRING,
	SHAPE_POINTER,    /* not taken apart */
	SHAPE_FLUSH,
	SHAPE_FLOW
};

enum { FILLED = 1 };

struct request {
	uint32_t number;
	const char *name;
	uint8_t shape, filled;
};

#define NONE(number, name) { number, #name, SHAPE_NONE, 0 }
#define NUM(number, name) { number, #name, SHAPE_NUMBER, 0 }
#define IN(number, name, shape) { number, #name, SHAPE_##shape, 0 }
#define OUT(number, name, shape) { number, #name, SHAPE_##shape, FILLED }
#define PTR(number, name) { number, #name, SHAPE_POINTER, 0 }

/* Sorted by number: found by halving. Numbers that are the same on all architectures of ours. */
static const struct request requests[] = {
	PTR(0x1, FIBMAP), OUT(0x2, FIGETBSZ, INT), PTR(0x301, HDIO_GETGEO), NUM(0x125d, BLKROSET),
	OUT(0x125e, BLKROGET, INT), NONE(0x125f, BLKRRPART), OUT(0x1260, BLKGETSIZE, LONG), NONE(0x1261, BLKFLSBUF),
	NUM(0x1262, BLKRASET), OUT(0x1263, BLKRAGET, LONG), NUM(0x1264, BLKFRASET), OUT(0x1265, BLKFRAGET, LONG),
	PTR(0x1267, BLKSECTGET), OUT(0x1268, BLKSSZGET, INT), PTR(0x1277, BLKDISCARD), OUT(0x1278, BLKIOMIN, INT),
	OUT(0x1279, BLKIOOPT, INT), OUT(0x127a, BLKALIGNOFF, INT), OUT(0x127b, BLKPBSZGET, INT),
	OUT(0x127c, BLKDISCARDZEROES, INT), PTR(0x127d, BLKSECDISCARD), PTR(0x127e, BLKROTATIONAL),
	PTR(0x127f, BLKZEROOUT), PTR(0x2201, SG_SET_TIMEOUT), NONE(0x2202, SG_GET_TIMEOUT),
	PTR(0x2282, SG_GET_VERSION_NUM), PTR(0x2285, SG_IO), OUT(0x4b31, KDGETLED, POINTER), NUM(0x4b32, KDSETLED),
	OUT(0x4b33, KDGKBTYPE, POINTER), NUM(0x4b3a, KDSETMODE), OUT(0x4b3b, KDGETMODE, INT),
	OUT(0x4b44, KDGKBMODE, INT), NUM(0x4b45, KDSKBMODE), NUM(0x4c00, LOOP_SET_FD), NONE(0x4c01, LOOP_CLR_FD),
	PTR(0x4c02, LOOP_SET_STATUS), PTR(0x4c03, LOOP_GET_STATUS), PTR(0x4c04, LOOP_SET_STATUS64),
	PTR(0x4c05, LOOP_GET_STATUS64), NUM(0x4c06, LOOP_CHANGE_FD), NONE(0x4c07, LOOP_SET_CAPACITY),
	NUM(0x4c08, LOOP_SET_DIRECT_IO), NUM(0x4c09, LOOP_SET_BLOCK_SIZE), PTR(0x4c0a, LOOP_CONFIGURE),
	NUM(0x4c80, LOOP_CTL_ADD), NUM(0x4c81, LOOP_CTL_REMOVE), NONE(0x4c82, LOOP_CTL_GET_FREE),
	NONE(0x5204, RNDZAPENTCNT), NONE(0x5206, RNDCLEARPOOL), NONE(0x5207, RNDRESEEDCRNG),
	OUT(0x5401, TCGETS, TERMIOS), IN(0x5402, TCSETS, TERMIOS), IN(0x5403, TCSETSW, TERMIOS),
	IN(0x5404, TCSETSF, TERMIOS), PTR(0x5405, TCGETA), PTR(0x5406, TCSETA), PTR(0x5407, TCSETAW),
	PTR(0x5408, TCSETAF), NUM(0x5409, TCSBRK), IN(0x540a, TCXONC, FLOW), IN(0x540b, TCFLSH, FLUSH),
	NONE(0x540c, TIOCEXCL), NONE(0x540d, TIOCNXCL), NUM(0x540e, TIOCSCTTY), OUT(0x540f, TIOCGPGRP, INT),
	IN(0x5410, TIOCSPGRP, INT), OUT(0x5411, TIOCOUTQ, INT), PTR(0x5412, TIOCSTI),
	OUT(0x5413, TIOCGWINSZ, WINSIZE), IN(0x5414, TIOCSWINSZ, WINSIZE), OUT(0x5415, TIOCMGET, INT),
	IN(0x5416, TIOCMBIS, INT), IN(0x5417, TIOCMBIC, INT), IN(0x5418, TIOCMSET, INT), OUT(0x5419, TIOCGSOFTCAR, INT),
	IN(0x541a, TIOCSSOFTCAR, INT), OUT(0x541b, FIONREAD, INT), PTR(0x541c, TIOCLINUX), NONE(0x541d, TIOCCONS),
	PTR(0x541e, TIOCGSERIAL), PTR(0x541f, TIOCSSERIAL), IN(0x5420, TIOCPKT, INT), IN(0x5421, FIONBIO, INT),
	NONE(0x5422, TIOCNOTTY), IN(0x5423, TIOCSETD, INT), OUT(0x5424, TIOCGETD, INT), NUM(0x5425, TCSBRKP),
	NONE(0x5427, TIOCSBRK), NONE(0x5428, TIOCCBRK), OUT(0x5429, TIOCGSID, INT), PTR(0x542e, TIOCGRS485),
	PTR(0x542f, TIOCSRS485), PTR(0x5432, TCGETX), PTR(0x5433, TCSETX), NONE(0x5437, TIOCVHANGUP),
	NUM(0x5441, TIOCGPTPEER), NONE(0x5450, FIONCLEX), NONE(0x5451, FIOCLEX), IN(0x5452, FIOASYNC, INT),
	PTR(0x545d, TIOCGICOUNT), OUT(0x5460, FIOQSIZE, POINTER), OUT(0x5600, VT_OPENQRY, INT), PTR(0x5601, VT_GETMODE),
	PTR(0x5602, VT_SETMODE), PTR(0x5603, VT_GETSTATE), NUM(0x5605, VT_RELDISP), NUM(0x5606, VT_ACTIVATE),
	NUM(0x5607, VT_WAITACTIVE), NUM(0x5608, VT_DISALLOCATE), NONE(0x7001, RTC_AIE_ON), NONE(0x7002, RTC_AIE_OFF),
	NONE(0x7003, RTC_UIE_ON), NONE(0x7004, RTC_UIE_OFF), IN(0x8901, FIOSETOWN, INT), IN(0x8902, SIOCSPGRP, INT),
	OUT(0x8903, FIOGETOWN, INT), OUT(0x8904, SIOCGPGRP, INT), OUT(0x8905, SIOCATMARK, INT),
	PTR(0x8906, SIOCGSTAMP_OLD), PTR(0x8907, SIOCGSTAMPNS_OLD), PTR(0x890b, SIOCADDRT), PTR(0x890c, SIOCDELRT),
	PTR(0x8910, SIOCGIFNAME), PTR(0x8911, SIOCSIFLINK), PTR(0x8912, SIOCGIFCONF), PTR(0x8913, SIOCGIFFLAGS),
	PTR(0x8914, SIOCSIFFLAGS), PTR(0x8915, SIOCGIFADDR), PTR(0x8916, SIOCSIFADDR), PTR(0x8917, SIOCGIFDSTADDR),
	PTR(0x8918, SIOCSIFDSTADDR), PTR(0x8919, SIOCGIFBRDADDR), PTR(0x891a, SIOCSIFBRDADDR),
	PTR(0x891b, SIOCGIFNETMASK), PTR(0x891c, SIOCSIFNETMASK), PTR(0x891d, SIOCGIFMETRIC),
	PTR(0x891e, SIOCSIFMETRIC), PTR(0x8921, SIOCGIFMTU), PTR(0x8922, SIOCSIFMTU), PTR(0x8923, SIOCSIFNAME),
	PTR(0x8924, SIOCSIFHWADDR), PTR(0x8927, SIOCGIFHWADDR), PTR(0x8929, SIOCGIFSLAVE), PTR(0x8930, SIOCSIFSLAVE),
	PTR(0x8931, SIOCADDMULTI), PTR(0x8932, SIOCDELMULTI), PTR(0x8933, SIOCGIFINDEX), PTR(0x8934, SIOCSIFPFLAGS),
	PTR(0x8935, SIOCGIFPFLAGS), PTR(0x8936, SIOCDIFADDR), PTR(0x8938, SIOCGIFCOUNT), PTR(0x8940, SIOCGIFBR),
	PTR(0x8941, SIOCSIFBR), PTR(0x8942, SIOCGIFTXQLEN), PTR(0x8943, SIOCSIFTXQLEN), PTR(0x8946, SIOCETHTOOL),
	PTR(0x8947, SIOCGMIIPHY), PTR(0x8948, SIOCGMIIREG), PTR(0x8949, SIOCSMIIREG), NONE(0x894c, SIOCGSKNS),
	PTR(0x8953, SIOCDARP), PTR(0x8954, SIOCGARP), PTR(0x8955, SIOCSARP), PTR(0x8970, SIOCGIFMAP),
	PTR(0x8971, SIOCSIFMAP), PTR(0x8990, SIOCBONDENSLAVE), PTR(0x89a0, SIOCBRADDBR), PTR(0x89a1, SIOCBRDELBR),
	PTR(0x89a2, SIOCBRADDIF), PTR(0x89a3, SIOCBRDELIF), PTR(0x89b0, SIOCSHWTSTAMP), PTR(0x89b1, SIOCGHWTSTAMP),
	PTR(0x8b01, SIOCGIWNAME), NONE(0xae00, KVM_GET_API_VERSION), NUM(0xae01, KVM_CREATE_VM),
	NUM(0xae03, KVM_CHECK_EXTENSION), NONE(0xae04, KVM_GET_VCPU_MMAP_SIZE), NUM(0xae41, KVM_CREATE_VCPU),
	NONE(0xae80, KVM_RUN), NONE(0xb701, NS_GET_USERNS), NONE(0xb702, NS_GET_PARENT), NONE(0xb703, NS_GET_NSTYPE),
	OUT(0xb704, NS_GET_OWNER_UID, INT), IN(0x40045201, RNDADDTOENTCNT, INT), IN(0x40045431, TIOCSPTLCK, INT),
	NUM(0x40045436, TIOCSIG), PTR(0x400454ca, TUNSETIFF), NUM(0x400454cb, TUNSETPERSIST),
	NUM(0x400454cc, TUNSETOWNER), NUM(0x400454ce, TUNSETGROUP), NUM(0x400454d0, TUNSETOFFLOAD),
	IN(0x400454d8, TUNSETVNETHDRSZ, INT), IN(0x40046602, FS_IOC32_SETFLAGS, INT),
	IN(0x40047602, FS_IOC32_SETVERSION, INT), IN(0x40049409, FICLONE, NUMBER), IN(0x40081271, BLKBSZSET, INT),
	IN(0x40086602, FS_IOC_SETFLAGS, INT), IN(0x40087602, FS_IOC_SETVERSION, INT),
	PTR(0x401c5820, FS_IOC_FSSETXATTR), PTR(0x4020940d, FICLONERANGE), PTR(0x402c542b, TCSETS2),
	PTR(0x402c542c, TCSETSW2), PTR(0x402c542d, TCSETSF2), IN(0x41009432, FS_IOC_SETFSLABEL, STRING),
	OUT(0x80045200, RNDGETENTCNT, INT), OUT(0x80045430, TIOCGPTN, INT), OUT(0x80045432, TIOCGDEV, INT),
	OUT(0x80045438, TIOCGPKT, INT), OUT(0x80045439, TIOCGPTLCK, INT), OUT(0x80045440, TIOCGEXCL, INT),
	OUT(0x800454cf, TUNGETFEATURES, INT), PTR(0x800454d2, TUNGETIFF), OUT(0x80046601, FS_IOC32_GETFLAGS, INT),
	OUT(0x80047601, FS_IOC32_GETVERSION, INT), OUT(0x80081270, BLKBSZGET, INT), OUT(0x80081272, BLKGETSIZE64, LONG),
	OUT(0x80081280, BLKGETDISKSEQ, LONG), OUT(0x80086601, FS_IOC_GETFLAGS, INT),
	OUT(0x80087601, FS_IOC_GETVERSION, INT), PTR(0x801c581f, FS_IOC_FSGETXATTR), PTR(0x80247009, RTC_RD_TIME),
	PTR(0x802c542a, TCGETS2), OUT(0x81009431, FS_IOC_GETFSLABEL, STRING), PTR(0xc0189436, FIDEDUPERANGE),
	PTR(0xc020660b, FS_IOC_FIEMAP)
};

static const struct request *request_find(uint32_t number)
{
	size_t low = 0, high = sizeof(requests) / sizeof(requests[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (requests[middle].number == number)
			return &requests[middle];
		if (requests[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* --- ioctl ----------------------------------------------------------------------------------------------------------- */

/* _IOC(_IOC_READ, 0x12, 0x34, 0x8): asm-generic/ioctl.h. */
void arg_ioctl_request(struct decoding *d, uint64_t value)
{
	static const char *const directions[] = { "_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE" };
	uint32_t number = (uint32_t)value;
	const struct request *request = request_find(number);

	if (request) {
		text_add(d->out, request->name);
		return;
	}
	text_lit(d->out, "_IOC(");
	text_add(d->out, directions[number >> 30]);
	text_lit(d->out, ", ");
	text_hex(d->out, number >> 8 & 0xff);
	text_lit(d->out, ", ");
	text_hex(d->out, number & 0xff);
	text_lit(d->out, ", ");
	text_hex(d->out, number >> 16 & 0x3fff);
	text_char(d->out, ')');
}

unsigned ioctl_args(uint32_t request)
{
	const struct request *found = request_find(request);

	return found && found->shape == SHAPE_NONE ? 2 : 3;
}

bool ioctl_fills(const struct decoding *d)
{
	const struct request *request = request_find((uint32_t)decode_value(d, 1));

	return request && request->filled;
}

/* struct termios of the kernel: four flag words, the line discipline, 19 control characters. */
static void termios_print(struct decoding *d, uint64_t addr)
{
	uint8_t buf[36];

	if (!decode_fetch(d, addr, buf, sizeof(buf)))
		return;
	text_lit(d->out, "{c_iflag=");
	decode_flags(d->out, &tty_input, load32(buf));
	text_lit(d->out, ", c_oflag=");
	decode_flags(d->out, &tty_output, load32(buf + 4));
	text_lit(d->out, ", c_cflag=");
	decode_flags(d->out, &tty_control, load32(buf + 8));
	text_lit(d->out, ", c_lflag=");
	decode_flags(d->out, &tty_local, load32(buf + 12));
	text_lit(d->out, ", ...}");
}

static void winsize_print(struct decoding *d, uint64_t addr)
{
	static const char *const names[] = { "{ws_row=", ", ws_col=", ", ws_xpixel=", ", ws_ypixel=" };
	uint8_t buf[8];

	if (!decode_fetch(d, addr, buf, sizeof(buf)))
		return;
	for (unsigned i = 0; i < 4; i++) {
		text_add(d->out, names[i]);
		text_udec(d->out, load16(buf + 2 * i));
	}
	text_char(d->out, '}');
}

static void long_print(struct decoding *d, uint64_t addr, uint32_t number)
{
	unsigned size = (number >> 16 & 0x3fff) == 8 ? 8 : decode_word(d);
	uint8_t buf[8];

	if (!decode_fetch(d, addr, buf, size))
		return;
	text_char(d->out, '[');
	text_udec(d->out, load_word(buf, size));
	text_char(d->out, ']');
}

void arg_ioctl(struct decoding *d, uint64_t value)
{
	uint32_t number = (uint32_t)decode_value(d, 1);
	const struct request *request = request_find(number);

	switch (request ? (enum shape)request->shape : SHAPE_HEX) {
	case SHAPE_NUMBER:
		text_dec(d->out, (int32_t)value);
		break;
	case SHAPE_INT:
		arg_int_at(d, value);
		break;
	case SHAPE_LONG:
		long_print(d, value, number);
		break;
	case SHAPE_TERMIOS:
		termios_print(d, value);
		break;
	case SHAPE_WINSIZE:
		winsize_print(d, value);
		break;
	case SHAPE_STRING:
		decode_string(d, value, SHOW_STRING);
		break;
	case SHAPE_FLUSH:
		decode_enum(d->out, &tty_flushes, value);
		break;
	case SHAPE_FLOW:
		decode_enum(d->out, &tty_flows, value);
		break;
	case SHAPE_POINTER:
		decode_address(d->out, value);
		break;
	default:
		text_hex(d->out, value);
	}
}

/* --- fcntl ----------------------------------------------------------------------------------------------------------- */

enum fcntl_command {
	DUPFD = 0, GETFD = 1, SETFD = 2, GETFL = 3, SETFL = 4, GETLK = 5, SETLK = 6, SETLKW = 7, SETOWN = 8, GETOWN = 9,
	SETSIG = 10, GETSIG = 11, GETLK64 = 12, SETLK64 = 13, SETLKW64 = 14, SETOWN_EX = 15, GETOWN_EX = 16,
	OFD_GETLK = 36, OFD_SETLK = 37, OFD_SETLKW = 38, SETLEASE = 1024, GETLEASE = 1025, NOTIFY = 1026, CREATED_QUERY = 1028,
	DUPFD_CLOEXEC = 1030, SETPIPE_SZ = 1031, GETPIPE_SZ = 1032, ADD_SEALS = 1033, GET_SEALS = 1034, GET_RW_HINT = 1035, SET_RW_HINT = 1036,
	GET_FILE_RW_HINT = 1037, SET_FILE_RW_HINT = 1038
};

unsigned fcntl_args(uint32_t command)
{
	switch (command) {
	case GETFD:
	case GETFL:
	case GETOWN:
	case GETSIG:
	case GETLEASE:
	case GETPIPE_SZ:
	case GET_SEALS:
	case CREATED_QUERY:
		return 2;
	default:
		return 3;
	}
}

bool fcntl_fills(const struct decoding *d)
{
	switch ((uint32_t)decode_value(d, 1)) {
	case GETLK:
	case GETLK64:
	case OFD_GETLK:
	case GETOWN_EX:
	case GET_RW_HINT:
	case GET_FILE_RW_HINT:
		return true;
	default:
		return false;
	}
}

/* struct flock of the ABI; on i386 the 64 ones of fcntl64 and all of open file descriptions are packed flock64. */
static void flock_print(struct decoding *d, uint64_t addr, bool wide, bool pid)
{
	unsigned start = decode_compat(d) ? 4 : 8, word = !decode_compat(d) || wide ? 8 : 4;
	uint8_t buf[32];

	if (!decode_fetch(d, addr, buf, start + 2 * (size_t)word + 4))
		return;
	text_lit(d->out, "{l_type=");
	decode_enum(d->out, &lock_types, load16(buf));
	text_lit(d->out, ", l_whence=");
	decode_enum(d->out, &seek_whence, load16(buf + 2));
	text_lit(d->out, ", l_start=");
	text_dec(d->out, load_sword(buf + start, word));
	text_lit(d->out, ", l_len=");
	text_dec(d->out, load_sword(buf + start + word, word));
	if (pid) {
		text_lit(d->out, ", l_pid=");
		text_dec(d->out, (int32_t)load32(buf + start + 2 * word));
	}
	text_char(d->out, '}');
}

static void owner_print(struct decoding *d, uint64_t addr)
{
	uint8_t buf[8];

	if (!decode_fetch(d, addr, buf, sizeof(buf)))
		return;
	text_lit(d->out, "{type=");
	decode_enum(d->out, &owner_types, load32(buf));
	text_lit(d->out, ", pid=");
	text_dec(d->out, (int32_t)load32(buf + 4));
	text_char(d->out, '}');
}

void arg_fcntl(struct decoding *d, uint64_t value)
{
	uint32_t command = (uint32_t)decode_value(d, 1);

	switch (command) {
	case DUPFD:
	case DUPFD_CLOEXEC:
	case SETOWN:
	case SETPIPE_SZ:
		text_dec(d->out, (int32_t)value);
		break;
	case SETFD:
		decode_flags(d->out, &close_on_exec, (uint32_t)value);
		break;
	case SETFL:
		decode_open_flags(d, &open_flags, (uint32_t)value);
		break;
	case GETLK:
	case SETLK:
	case SETLKW:
		flock_print(d, value, false, command == GETLK);
		break;
	case GETLK64:
	case SETLK64:
	case SETLKW64:
	case OFD_GETLK:
	case OFD_SETLK:
	case OFD_SETLKW:
		flock_print(d, value, true, command == GETLK64 || command == OFD_GETLK);
		break;
	case SETSIG:
		decode_signal(d->out, (int32_t)value);
		break;
	case SETOWN_EX:
	case GETOWN_EX:
		owner_print(d, value);
		break;
	case SETLEASE:
		decode_enum(d->out, &lock_types, value);
		break;
	case NOTIFY:
		decode_flags(d->out, &notify_events, (uint32_t)value);
		break;
	case ADD_SEALS:
		decode_flags(d->out, &seals, (uint32_t)value);
		break;
	case GET_RW_HINT:
	case SET_RW_HINT:
	case GET_FILE_RW_HINT:
	case SET_FILE_RW_HINT:
		long_print(d, value, 8 << 16);
		break;
	default:
		text_hex(d->out, value);
	}
}

void fcntl_result(const struct decoding *d)
{
	switch ((uint32_t)decode_value(d, 1)) {
	case GETFD:
		if (!d->result)
			return;
		text_lit(d->out, " (flags ");
		decode_flags(d->out, &close_on_exec, (uint64_t)d->result);
		break;
	case GETFL:
		text_lit(d->out, " (flags ");
		decode_open_flags(d, &open_flags, (uint64_t)d->result);
		break;
	case GETSIG:
		text_lit(d->out, " (");
		decode_signal(d->out, d->result > 64 ? -1 : (int)d->result);
		break;
	case GETLEASE:
		text_lit(d->out, " (");
		decode_enum(d->out, &lock_types, (uint64_t)d->result);
		break;
	case GET_SEALS:
		text_lit(d->out, " (seals ");
		decode_flags(d->out, &seals, (uint64_t)d->result);
		break;
	default:
		return;
	}
	text_char(d->out, ')');
}

/* --- prctl ----------------------------------------------------------------------------------------------------------- */

/* What the first argument after the option is. */
enum prctl_shape {
	PRCTL_HEX, PRCTL_INT, PRCTL_SIGNAL, PRCTL_NAME, PRCTL_NAME_OUT, PRCTL_INT_OUT, PRCTL_LONG_OUT, PRCTL_CAPABILITY,
	PRCTL_DUMPABLE, PRCTL_SECCOMP, PRCTL_AMBIENT, PRCTL_VMA
};

static const struct prctl_option {
	uint32_t number;
	uint8_t args; /* that it uses, the option with them */
	uint8_t shape;
} prctl_options_shapes[] = {
	{ 1, 2, PRCTL_SIGNAL },   /* PR_SET_PDEATHSIG */
	{ 2, 2, PRCTL_INT_OUT },  /* PR_GET_PDEATHSIG */
	{ 3, 1, PRCTL_HEX },      /* PR_GET_DUMPABLE */
	{ 4, 2, PRCTL_DUMPABLE }, /* PR_SET_DUMPABLE */
	{ 7, 1, PRCTL_HEX },      /* PR_GET_KEEPCAPS */
	{ 8, 2, PRCTL_INT },      /* PR_SET_KEEPCAPS */
	{ 13, 1, PRCTL_HEX },     /* PR_GET_TIMING */
	{ 14, 2, PRCTL_INT },     /* PR_SET_TIMING */
	{ 15, 2, PRCTL_NAME },    /* PR_SET_NAME */
	{ 16, 2, PRCTL_NAME_OUT }, /* PR_GET_NAME */
	{ 21, 1, PRCTL_HEX },     /* PR_GET_SECCOMP */
	{ 22, 3, PRCTL_SECCOMP }, /* PR_SET_SECCOMP */
	{ 23, 2, PRCTL_CAPABILITY }, /* PR_CAPBSET_READ */
	{ 24, 2, PRCTL_CAPABILITY }, /* PR_CAPBSET_DROP */
	{ 25, 2, PRCTL_INT_OUT }, /* PR_GET_TSC */
	{ 26, 2, PRCTL_INT },     /* PR_SET_TSC */
	{ 27, 1, PRCTL_HEX },     /* PR_GET_SECUREBITS */
	{ 28, 2, PRCTL_HEX },     /* PR_SET_SECUREBITS */
	{ 29, 2, PRCTL_INT },     /* PR_SET_TIMERSLACK */
	{ 30, 1, PRCTL_HEX },     /* PR_GET_TIMERSLACK */
	{ 36, 2, PRCTL_INT },     /* PR_SET_CHILD_SUBREAPER */
	{ 37, 2, PRCTL_INT_OUT }, /* PR_GET_CHILD_SUBREAPER */
	{ 38, 5, PRCTL_INT },     /* PR_SET_NO_NEW_PRIVS */
	{ 39, 5, PRCTL_INT },     /* PR_GET_NO_NEW_PRIVS */
	{ 40, 2, PRCTL_LONG_OUT }, /* PR_GET_TID_ADDRESS */
	{ 41, 5, PRCTL_INT },     /* PR_SET_THP_DISABLE */
	{ 42, 5, PRCTL_INT },     /* PR_GET_THP_DISABLE */
	{ 47, 5, PRCTL_AMBIENT }, /* PR_CAP_AMBIENT */
	{ 0x53564d41, 5, PRCTL_VMA } /* PR_SET_VMA */
};

static const struct prctl_option *prctl_find(uint32_t number)
{
	static const struct prctl_option other = { 0, 5, PRCTL_HEX };

	for (size_t i = 0; i < sizeof(prctl_options_shapes) / sizeof(prctl_options_shapes[0]); i++)
		if (prctl_options_shapes[i].number == number)
			return &prctl_options_shapes[i];
	return &other;
}

unsigned prctl_args(uint32_t option)
{
	return prctl_find(option)->args;
}

bool prctl_fills(const struct decoding *d)
{
	unsigned shape = prctl_find((uint32_t)decode_value(d, 0))->shape;

	return d->index == 1 && (shape == PRCTL_NAME_OUT || shape == PRCTL_INT_OUT || shape == PRCTL_LONG_OUT);
}

static void prctl_rest(struct decoding *d, unsigned shape, uint64_t value)
{
	enum { NAME_ARGUMENT = 4, CAPABILITY_ARGUMENT = 2 };

	if (shape == PRCTL_VMA && d->index == NAME_ARGUMENT)
		decode_string(d, value, SHOW_STRING);
	else if (shape == PRCTL_AMBIENT && d->index == CAPABILITY_ARGUMENT)
		decode_enum(d->out, &capabilities, value);
	else if (shape == PRCTL_SECCOMP)
		arg_seccomp(d, value);
	else
		text_hex(d->out, value);
}

void arg_prctl(struct decoding *d, uint64_t value)
{
	enum { TASK_NAME = 15 };
	unsigned shape = prctl_find((uint32_t)decode_value(d, 0))->shape;

	if (d->index > 1) {
		prctl_rest(d, shape, value);
		return;
	}
	switch (shape) {
	case PRCTL_INT:
		arg_long(d, value);
		break;
	case PRCTL_SIGNAL:
		decode_signal(d->out, (int32_t)value);
		break;
	case PRCTL_NAME:
	case PRCTL_NAME_OUT:
		decode_string(d, value, TASK_NAME);
		break;
	case PRCTL_INT_OUT:
		arg_int_at(d, value);
		break;
	case PRCTL_LONG_OUT:
		arg_ulong_at(d, value);
		break;
	case PRCTL_CAPABILITY:
		decode_enum(d->out, &capabilities, value);
		break;
	case PRCTL_DUMPABLE:
		decode_enum(d->out, &dumpable_modes, value);
		break;
	case PRCTL_SECCOMP:
		decode_enum(d->out, &seccomp_modes, value);
		break;
	case PRCTL_AMBIENT:
		decode_enum(d->out, &cap_ambient_operations, value);
		break;
	case PRCTL_VMA:
		decode_enum(d->out, &vma_options, value);
		break;
	default:
		text_hex(d->out, value);
	}
}

/* --- seccomp --------------------------------------------------------------------------------------------------------- */

/* struct sock_fprog, or the action that is asked about. prctl comes here with mode 2, which means what operation 1 does. */
void arg_seccomp(struct decoding *d, uint64_t value)
{
	enum { SET_FILTER = 1, ACTION_AVAILABLE = 2, MODE_FILTER = 2 };
	unsigned word = decode_word(d);
	bool prctl = d->call->id == CALL_prctl;
	uint32_t operation = (uint32_t)decode_value(d, prctl ? 1 : 0);
	uint8_t buf[16];

	if (operation == (prctl ? MODE_FILTER : SET_FILTER)) {
		if (!decode_fetch(d, value, buf, 2 * (size_t)word))
			return;
		text_lit(d->out, "{len=");
		text_udec(d->out, load16(buf));
		text_lit(d->out, ", filter=");
		decode_address(d->out, load_word(buf + word, word));
		text_char(d->out, '}');
	} else if (!prctl && operation == ACTION_AVAILABLE) {
		if (!decode_fetch(d, value, buf, 4))
			return;
		text_char(d->out, '[');
		decode_enum(d->out, &seccomp_actions, load32(buf));
		text_char(d->out, ']');
	} else {
		decode_address(d->out, value);
	}
}
