#include "arch/abi.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { OVERFLOW_ID = 65534 }; /* linux/highuid.h: what a 16-bit call tells of an id that does not fit */

/* Every host is little-endian: the low bytes come first. */
static void field_put(void *buf, const struct abi_field *field, uint64_t value)
{
	memcpy((unsigned char *)buf + field->at, &value, field->size);
}

static bool field_fits(const struct abi_field *field, uint64_t value)
{
	return field->size == 0 || field->size >= 8 || value >> (8 * field->size) == 0;
}

/* --- stat ---------------------------------------------------------------------------------------------------------- */

/* linux/kdev_t.h: old_encode_dev() for 16 bits, new_encode_dev() else. */
static uint64_t dev_encode(const struct abi_field *field, uint32_t major, uint32_t minor)
{
	if (field->size == 2)
		return major << 8 | minor;
	return (minor & 0xff) | (major << 8) | ((minor & ~0xffu) << 12);
}

static uint64_t id_encode(const struct abi_field *field, uint32_t id)
{
	return field_fits(field, id) ? id : OVERFLOW_ID;
}

int abi_put_stat(const struct abi_stat *layout, const struct statx *st, void *buf)
{
	const struct abi_field *field = layout->field;
	const struct { enum abi_stat_field seconds, nsec; const struct statx_timestamp *time; } times[] = {
		{ STAT_ATIME, STAT_ATIME_NSEC, &st->stx_atime },
		{ STAT_MTIME, STAT_MTIME_NSEC, &st->stx_mtime },
		{ STAT_CTIME, STAT_CTIME_NSEC, &st->stx_ctime },
	};

	if (!field_fits(&field[STAT_INO], st->stx_ino) || !field_fits(&field[STAT_NLINK], st->stx_nlink))
		return -EOVERFLOW;
	if (layout->large_refused && st->stx_size > INT32_MAX)
		return -EOVERFLOW;
	memset(buf, 0, layout->size);
	field_put(buf, &field[STAT_DEV], dev_encode(&field[STAT_DEV], st->stx_dev_major, st->stx_dev_minor));
	field_put(buf, &field[STAT_INO], st->stx_ino);
	field_put(buf, &field[STAT_INO_LOW], st->stx_ino);
	field_put(buf, &field[STAT_MODE], st->stx_mode);
	field_put(buf, &field[STAT_NLINK], st->stx_nlink);
	field_put(buf, &field[STAT_UID], id_encode(&field[STAT_UID], st->stx_uid));
	field_put(buf, &field[STAT_GID], id_encode(&field[STAT_GID], st->stx_gid));
	field_put(buf, &field[STAT_RDEV], dev_encode(&field[STAT_RDEV], st->stx_rdev_major, st->stx_rdev_minor));
	field_put(buf, &field[STAT_SIZE], st->stx_size);
	field_put(buf, &field[STAT_BLKSIZE], st->stx_blksize);
	field_put(buf, &field[STAT_BLOCKS], st->stx_blocks);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		field_put(buf, &field[times[i].seconds], (uint64_t)times[i].time->tv_sec);
		field_put(buf, &field[times[i].nsec], times[i].time->tv_nsec);
	}
	return layout->size;
}

/* --- statfs -------------------------------------------------------------------------------------------------------- */

int abi_put_statfs(const struct abi_statfs *layout, const struct statfs *st, void *buf)
{
	const uint64_t value[STATFS_FIELDS] = {
		[STATFS_TYPE] = (uint64_t)st->f_type, [STATFS_BSIZE] = (uint64_t)st->f_bsize, [STATFS_BLOCKS] = st->f_blocks,
		[STATFS_BFREE] = st->f_bfree, [STATFS_BAVAIL] = st->f_bavail, [STATFS_FILES] = st->f_files, [STATFS_FFREE] = st->f_ffree,
		[STATFS_NAMELEN] = (uint64_t)st->f_namelen, [STATFS_FRSIZE] = (uint64_t)st->f_frsize,
		[STATFS_FLAGS] = (uint64_t)st->f_flags,
	};
	static const enum abi_statfs_field checked[] = { STATFS_BSIZE, STATFS_BLOCKS, STATFS_BFREE, STATFS_BAVAIL, STATFS_FRSIZE };
	static const enum abi_statfs_field maybe_unknown[] = { STATFS_FILES, STATFS_FFREE }; /* -1 says so, and may be cut */

	for (size_t i = 0; i < sizeof(checked) / sizeof(checked[0]); i++)
		if (!field_fits(&layout->field[checked[i]], value[checked[i]]))
			return -EOVERFLOW;
	for (size_t i = 0; i < sizeof(maybe_unknown) / sizeof(maybe_unknown[0]); i++)
		if (value[maybe_unknown[i]] != UINT64_MAX && !field_fits(&layout->field[maybe_unknown[i]], value[maybe_unknown[i]]))
			return -EOVERFLOW;
	memset(buf, 0, layout->size);
	for (int i = 0; i < STATFS_FIELDS; i++)
		field_put(buf, &layout->field[i], value[i]);
	memcpy((unsigned char *)buf + layout->field[STATFS_FSID].at, &st->f_fsid, sizeof(st->f_fsid));
	return layout->size;
}

/* --- directories --------------------------------------------------------------------------------------------------- */

/* struct linux_dirent64: ino and off of 8 bytes, reclen of 2, type, name. */
static int put_wide(unsigned char *buf, size_t room, const struct abi_dirent *entry)
{
	enum { NAME_AT = 19, ALIGN = 8 };
	size_t len = strlen(entry->name) + 1, size = (NAME_AT + len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	uint16_t reclen = (uint16_t)size;

	if (size > room)
		return -EINVAL;
	memset(buf + NAME_AT, 0, size - NAME_AT);
	memcpy(buf, &entry->ino, 8);
	memcpy(buf + 8, &entry->next, 8);
	memcpy(buf + 16, &reclen, 2);
	buf[18] = entry->type;
	memcpy(buf + NAME_AT, entry->name, len);
	return reclen;
}

/* struct linux_dirent: ino and off of a word, reclen of 2, name, and the type in the last byte. */
static int put_narrow(unsigned char *buf, size_t room, unsigned word, const struct abi_dirent *entry)
{
	const struct abi_field ino = { 0, (uint8_t)word };
	size_t name_at = 2 * word + 2, len = strlen(entry->name) + 1, size = (name_at + len + 1 + word - 1) & ~(size_t)(word - 1);
	uint16_t reclen = (uint16_t)size;

	if (size > room)
		return -EINVAL;
	if (!field_fits(&ino, entry->ino))
		return -EOVERFLOW;
	memset(buf + name_at, 0, size - name_at);
	memcpy(buf, &entry->ino, word);
	memcpy(buf + word, &entry->next, word);
	memcpy(buf + 2 * word, &reclen, 2);
	memcpy(buf + name_at, entry->name, len);
	buf[size - 1] = entry->type;
	return reclen;
}

int abi_put_dirent(unsigned char *buf, size_t room, bool wide, unsigned word, const struct abi_dirent *entry)
{
	return wide ? put_wide(buf, room, entry) : put_narrow(buf, room, word, entry);
}

/* struct compat_old_linux_dirent: ino and offset of 4 bytes, namlen of 2, name. */
int abi_put_old_dirent(unsigned char *buf, size_t room, int64_t at, const struct abi_dirent *entry)
{
	enum { NAME_AT = 10 };
	const struct abi_field ino = { 0, 4 };
	size_t len = strlen(entry->name);
	uint16_t namlen = (uint16_t)len;

	if (NAME_AT + len + 1 > room)
		return -EINVAL;
	if (!field_fits(&ino, entry->ino))
		return -EOVERFLOW;
	memcpy(buf, &entry->ino, 4);
	memcpy(buf + 4, &at, 4);
	memcpy(buf + 8, &namlen, 2);
	memcpy(buf + NAME_AT, entry->name, len + 1);
	return (int)(NAME_AT + len + 1);
}
