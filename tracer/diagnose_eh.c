/*
 * diagnose_eh.c - searches .eh_frame from its start (LSB 10.6.1). Sections of hostile files: each read is checked against
 * the end of the section, and each record is longer than nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "tracer/diagnose_impl.h"

enum {
	SECTION_MAX = 32 << 20,
	/* encodings of pointers: how they are stored, and what they are relative to */
	FORM_MASK = 0x0f, FORM_PTR = 0, FORM_UDATA4 = 3, FORM_UDATA8 = 4, FORM_SDATA4 = 0x0b, FORM_SDATA8 = 0x0c,
	BASE_MASK = 0xf0, BASE_NONE = 0, BASE_PCREL = 0x10
};

struct eh {
	const uint8_t *data;
	size_t size;
	uint64_t addr;      /* of data[0] in the task */
};

struct eh_record {
	size_t id;          /* offset of the second field: 0 in a CIE, else the distance back to the CIE */
	size_t end;
	uint32_t id_value;
};

static uint32_t eh_u32(const struct eh *eh, size_t at)
{
	uint32_t value;

	memcpy(&value, eh->data + at, sizeof(value));
	return value;
}

/* The record at offset AT. False at the terminator, a 64-bit record or the end. */
static bool eh_record(const struct eh *eh, size_t at, struct eh_record *out)
{
	uint32_t len;

	if (at > eh->size || eh->size - at < 8)
		return false;
	len = eh_u32(eh, at);
	if (len < 4 || len == UINT32_MAX || len > eh->size - at - 4)
		return false;
	*out = (struct eh_record){ .id = at + 4, .end = at + 4 + len, .id_value = eh_u32(eh, at + 4) };
	return true;
}

static bool eh_byte(const struct eh *eh, size_t *at, size_t end, uint8_t *out)
{
	if (*at >= end)
		return false;
	*out = eh->data[(*at)++];
	return true;
}

static bool eh_skip_leb128(const struct eh *eh, size_t *at, size_t end)
{
	uint8_t byte;

	do {
		if (!eh_byte(eh, at, end, &byte))
			return false;
	} while (byte & 0x80);
	return true;
}

static size_t eh_form_size(uint8_t encoding)
{
	switch (encoding & FORM_MASK) {
	case FORM_UDATA4:
	case FORM_SDATA4:
		return 4;
	case FORM_PTR:
	case FORM_UDATA8:
	case FORM_SDATA8:
		return 8;
	}
	return 0;
}

/* How the FDEs of this CIE write locations: the R of its augmentation. */
static bool eh_cie_encoding(const struct eh *eh, const struct eh_record *cie, uint8_t *out)
{
	size_t at = cie->id + 4, augmentation;
	uint8_t version, byte;

	*out = FORM_PTR;
	if (!eh_byte(eh, &at, cie->end, &version))
		return false;
	augmentation = at;
	do {
		if (!eh_byte(eh, &at, cie->end, &byte))
			return false;
	} while (byte);
	if (eh->data[augmentation] != 'z')
		return !eh->data[augmentation];
	/* code and data alignment, the return address's register, the length of what follows */
	if (!eh_skip_leb128(eh, &at, cie->end) || !eh_skip_leb128(eh, &at, cie->end) ||
	    !(version == 1 ? eh_byte(eh, &at, cie->end, &byte) : eh_skip_leb128(eh, &at, cie->end)) ||
	    !eh_skip_leb128(eh, &at, cie->end))
		return false;
	for (const char *c = (const char *)eh->data + augmentation + 1; *c; c++) {
		if (*c == 'R')
			return eh_byte(eh, &at, cie->end, out);
		if (*c == 'S' || *c == 'B')
			continue;
		if ((*c != 'L' && *c != 'P') || !eh_byte(eh, &at, cie->end, &byte))
			return false;
		if (*c == 'P')
			at += eh_form_size(byte);
	}
	return true;
}

static uint64_t eh_value(const struct eh *eh, size_t at, uint8_t form)
{
	uint64_t wide;

	if (eh_form_size(form) == 4)
		return (form & FORM_MASK) == FORM_SDATA4 ? (uint64_t)(int32_t)eh_u32(eh, at) : eh_u32(eh, at);
	memcpy(&wide, eh->data + at, sizeof(wide));
	return wide;
}

/* Whether the FDE covers IP, and where its code begins. */
static bool eh_fde_covers(const struct eh *eh, const struct eh_record *fde, uint64_t ip, uint64_t *start)
{
	size_t at = fde->id + 4, size;
	struct eh_record cie;
	uint8_t encoding;

	if (fde->id_value > fde->id || !eh_record(eh, fde->id - fde->id_value, &cie) || cie.id_value ||
	    !eh_cie_encoding(eh, &cie, &encoding))
		return false;
	size = eh_form_size(encoding);
	if (!size || fde->end - fde->id < 4 + 2 * size ||
	    ((encoding & BASE_MASK) != BASE_NONE && (encoding & BASE_MASK) != BASE_PCREL))
		return false;
	*start = eh_value(eh, at, encoding) + ((encoding & BASE_MASK) == BASE_PCREL ? eh->addr + at : 0);
	return ip - *start < eh_value(eh, at + size, encoding);
}

static bool eh_search(const struct eh *eh, uint64_t ip, struct diagnose_table *out)
{
	struct eh_record record;
	uint64_t start;

	for (size_t at = 0; eh_record(eh, at, &record); at = record.end) {
		if (!record.id_value || !eh_fde_covers(eh, &record, ip, &start))
			continue;
		out->header = eh->addr;
		out->entries = DIAGNOSE_MADE;
		out->count = 1;
		out->made = (uint32_t)(start - eh->addr) | (uint64_t)at << 32;
		return start - eh->addr == (uint64_t)(int32_t)(start - eh->addr); /* within what an entry can say */
	}
	return false;
}

bool diagnose_eh_find(struct diagnose_task *task, uint64_t addr, uint64_t size, uint64_t ip, struct diagnose_table *out)
{
	uint8_t *data = size && size <= SECTION_MAX ? malloc((size_t)size) : NULL;
	bool found = false;

	if (data && diagnose_mem_read(task, addr, data, (size_t)size))
		found = eh_search(&(struct eh){ data, (size_t)size, addr }, ip, out);
	free(data);
	return found;
}
