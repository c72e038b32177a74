/*
 * diagnose_elf.c - symbols and unwind tables of what is mapped around an address (elf(5), LSB 10.6.2 for .eh_frame_hdr).
 *
 * Headers come from the task's memory. Symbol tables are not loaded, they come from the file: from the very file that is
 * mapped, and never from another that has its name on the host, nor from anything that is not a regular file.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/diagnose_impl.h"

enum {
	PROGRAM_HEADERS = 128,
	SYMBOLS = 8 << 20,    /* entries looked at in one table */
	SYMBOL_CHUNK = 1024,  /* entries read at once */
	UNSIZED_REACH = 4096  /* a symbol without a size names so many bytes after it */
};

struct elf_object {
	const struct diagnose_region *base; /* the mapping with the ELF header */
	uint64_t bias;        /* address in the task minus address in the file */
	uint64_t eh_header;   /* address of .eh_frame_hdr in the task, or 0 */
	bool wide;            /* ELFCLASS64 */
	int fd;               /* the file, or -1: read from memory */
};

struct elf_section {
	uint32_t name, type, link;
	uint64_t addr, offset, size;
};

/* The object of the last question: frames of one file follow each other. */
struct diagnose_symbols {
	struct elf_object object;
	struct elf_section *section;
	size_t sections;
	size_t names;         /* the section with the names of sections; may be out of range */
};

/* --- headers from memory --------------------------------------------------------------------------------------------- */

/* The nearest mapping at or below REGION that holds the start of the same file. Anonymous memory may lie between. */
static const struct diagnose_region *elf_base(const struct diagnose_task *task, const struct diagnose_region *region)
{
	for (const struct diagnose_region *r = region; r >= task->region; r--) {
		bool same = r->inode == region->inode && r->dev == region->dev;

		if (!same && r->inode)
			return NULL;
		if (same && !r->offset)
			return r;
	}
	return NULL;
}

static void elf_program_header(struct elf_object *object, bool *loaded, uint32_t type, uint64_t offset, uint64_t vaddr)
{
	if (type == PT_LOAD && offset < 4096 && !*loaded) {
		object->bias = object->base->start - (vaddr - offset);
		*loaded = true;
	} else if (type == PT_GNU_EH_FRAME) {
		object->eh_header = vaddr;
	}
}

static bool elf_program_headers(struct diagnose_task *task, struct elf_object *object, uint64_t at, unsigned count)
{
	bool loaded = false;

	for (unsigned i = 0; i < count && i < PROGRAM_HEADERS; i++) {
		union {
			Elf64_Phdr wide;
			Elf32_Phdr narrow;
		} p;

		if (object->wide && diagnose_mem_read(task, at + i * sizeof(p.wide), &p.wide, sizeof(p.wide)))
			elf_program_header(object, &loaded, p.wide.p_type, p.wide.p_offset, p.wide.p_vaddr);
		else if (!object->wide && diagnose_mem_read(task, at + i * sizeof(p.narrow), &p.narrow, sizeof(p.narrow)))
			elf_program_header(object, &loaded, p.narrow.p_type, p.narrow.p_offset, p.narrow.p_vaddr);
		else
			return false;
	}
	if (object->eh_header)
		object->eh_header += object->bias;
	return loaded;
}

/* The object that is mapped around IP, as its own headers in memory tell. */
static bool elf_object_find(struct diagnose_task *task, uint64_t ip, struct elf_object *out)
{
	const struct diagnose_region *region = diagnose_maps_find(task, ip);
	union {
		unsigned char ident[EI_NIDENT];
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} e;

	if (!region || (!region->inode && !(region->prot & PROT_EXEC)))
		return false;
	*out = (struct elf_object){ .base = elf_base(task, region), .fd = -1 };
	if (!out->base || !diagnose_mem_read(task, out->base->start, &e, sizeof(e)) || memcmp(e.ident, ELFMAG, SELFMAG))
		return false;
	out->wide = e.ident[EI_CLASS] == ELFCLASS64;
	if (out->wide)
		return e.wide.e_phentsize == sizeof(Elf64_Phdr) &&
		       elf_program_headers(task, out, out->base->start + e.wide.e_phoff, e.wide.e_phnum);
	return e.narrow.e_phentsize == sizeof(Elf32_Phdr) &&
	       elf_program_headers(task, out, out->base->start + e.narrow.e_phoff, e.narrow.e_phnum);
}

/* --- the file -------------------------------------------------------------------------------------------------------- */

/* Opens PATH when it is the regular file with this inode number. The device is not compared: overlayfs and btrfs show
   another one in maps than in stat. Nothing is opened for reading before it is known to be a regular file. */
static int elf_open_if(const char *path, uint64_t inode)
{
	char self[32];
	struct stat st;
	int fd = -1, held = open(path, O_PATH | O_CLOEXEC);

	if (held < 0)
		return -1;
	if (!fstat(held, &st) && S_ISREG(st.st_mode) && st.st_ino == inode) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", held);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	close(held);
	return fd;
}

/* The mapped file: by map_files (needs CAP_CHECKPOINT_RESTORE), as the program itself, by its name. */
static int elf_open(const struct diagnose_task *task, const struct diagnose_region *region)
{
	char path[4096 + 64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, task->tid, region->start, region->end);
	fd = elf_open_if(path, region->inode);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%d/exe", task->tid);
		fd = elf_open_if(path, region->inode);
	}
	if (fd < 0 && region->path[0] == '/' &&
	    (size_t)snprintf(path, sizeof(path), "/proc/%d/root%s", task->tid, region->path) < sizeof(path))
		fd = elf_open_if(path, region->inode);
	return fd;
}

/* Reads from the file; from memory where there is none (the vdso is a whole ELF file there). */
static bool elf_read(struct diagnose_task *task, const struct elf_object *object, uint64_t offset, void *buf, size_t len)
{
	if (object->fd < 0)
		return diagnose_mem_read(task, object->base->start + offset, buf, len);
	return offset <= INT64_MAX && pread(object->fd, buf, len, (off_t)offset) == (ssize_t)len;
}

static bool elf_section_headers(struct diagnose_task *task, struct diagnose_symbols *s, uint64_t at, unsigned count)
{
	size_t entry = s->object.wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	char *raw = count ? malloc(count * entry) : NULL;

	s->section = count ? calloc(count, sizeof(*s->section)) : NULL;
	if (!raw || !s->section || !elf_read(task, &s->object, at, raw, count * entry)) {
		free(raw);
		return false;
	}
	s->sections = count;
	for (unsigned i = 0; i < count; i++) {
		Elf64_Shdr wide;
		Elf32_Shdr narrow;

		if (s->object.wide) {
			memcpy(&wide, raw + i * entry, entry);
			s->section[i] = (struct elf_section){ wide.sh_name, wide.sh_type, wide.sh_link,
							      wide.sh_addr, wide.sh_offset, wide.sh_size };
		} else {
			memcpy(&narrow, raw + i * entry, entry);
			s->section[i] = (struct elf_section){ narrow.sh_name, narrow.sh_type, narrow.sh_link,
							      narrow.sh_addr, narrow.sh_offset, narrow.sh_size };
		}
	}
	free(raw);
	return true;
}

static bool elf_sections(struct diagnose_task *task, struct diagnose_symbols *s)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} e;

	if (!elf_read(task, &s->object, 0, &e, sizeof(e)) || memcmp(e.ident, ELFMAG, SELFMAG) ||
	    (e.ident[EI_CLASS] == ELFCLASS64) != s->object.wide)
		return false;
	s->names = s->object.wide ? e.wide.e_shstrndx : e.narrow.e_shstrndx;
	if (s->object.wide)
		return e.wide.e_shentsize == sizeof(Elf64_Shdr) &&
		       elf_section_headers(task, s, e.wide.e_shoff, e.wide.e_shnum);
	return e.narrow.e_shentsize == sizeof(Elf32_Shdr) &&
	       elf_section_headers(task, s, e.narrow.e_shoff, e.narrow.e_shnum);
}

/* --- symbols --------------------------------------------------------------------------------------------------------- */

void diagnose_elf_free(struct diagnose_task *task)
{
	struct diagnose_symbols *s = task->symbols;

	if (!s)
		return;
	if (s->object.fd >= 0)
		close(s->object.fd);
	free(s->section);
	free(s);
	task->symbols = NULL;
}

/* The object around IP with its sections, kept in task->symbols. An object without sections is kept as well. */
static struct diagnose_symbols *elf_symbols(struct diagnose_task *task, uint64_t ip)
{
	struct elf_object object;

	if (!elf_object_find(task, ip, &object))
		return NULL;
	if (task->symbols && task->symbols->object.base == object.base)
		return task->symbols;
	diagnose_elf_free(task);
	task->symbols = calloc(1, sizeof(*task->symbols));
	if (!task->symbols)
		return NULL;
	if (object.base->inode)
		object.fd = elf_open(task, object.base);
	task->symbols->object = object;
	elf_sections(task, task->symbols);
	return task->symbols;
}

struct elf_best {
	bool found, sized;
	uint64_t value;
	uint64_t name; /* offset in the file */
	uint64_t name_end;
};

/* Whether this symbol says more about ADDR than the best so far: one whose size covers it beats one without a size, then
   the nearest wins, and of two at one place the first. */
static void elf_symbol_consider(struct elf_best *best, const Elf64_Sym *sym, uint64_t addr, const struct elf_section *names)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	bool sized = sym->st_size != 0;

	if (sym->st_shndx == SHN_UNDEF || sym->st_value > addr || sym->st_name >= names->size)
		return;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return;
	if (addr - sym->st_value >= (sized ? sym->st_size : UNSIZED_REACH))
		return;
	if (best->found && (best->sized > sized || (best->sized == sized && best->value >= sym->st_value)))
		return;
	*best = (struct elf_best){ true, sized, sym->st_value, names->offset + sym->st_name, names->offset + names->size };
}

static void elf_table_search(struct diagnose_task *task, const struct diagnose_symbols *s, const struct elf_section *table,
			     uint64_t addr, struct elf_best *best)
{
	static union {
		Elf64_Sym wide[SYMBOL_CHUNK];
		Elf32_Sym narrow[SYMBOL_CHUNK];
	} chunk;
	size_t entry = s->object.wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	uint64_t count = table->size / entry;

	if (table->link >= s->sections)
		return;
	for (uint64_t at = 0; at < count && at < SYMBOLS; at += SYMBOL_CHUNK) {
		size_t part = count - at < SYMBOL_CHUNK ? (size_t)(count - at) : (size_t)SYMBOL_CHUNK;

		if (!elf_read(task, &s->object, table->offset + at * entry, &chunk, part * entry))
			return;
		for (size_t i = 0; i < part; i++) {
			Elf64_Sym sym = chunk.wide[s->object.wide ? i : 0];

			if (!s->object.wide) {
				const Elf32_Sym *n = &chunk.narrow[i];

				sym = (Elf64_Sym){ n->st_name, n->st_info, n->st_other, n->st_shndx, n->st_value,
						   n->st_size };
			}
			elf_symbol_consider(best, &sym, addr, &s->section[table->link]);
		}
	}
}

static bool elf_name(struct diagnose_task *task, const struct diagnose_symbols *s, const struct elf_best *best,
		     char name[DIAGNOSE_NAME])
{
	uint64_t len = best->name_end - best->name;

	if (len > DIAGNOSE_NAME - 1)
		len = DIAGNOSE_NAME - 1;
	memset(name, 0, DIAGNOSE_NAME);
	return elf_read(task, &s->object, best->name, name, (size_t)len) && name[0];
}

bool diagnose_elf_symbol(struct diagnose_task *task, uint64_t ip, struct diagnose_symbol *out)
{
	struct diagnose_symbols *s = elf_symbols(task, ip);
	struct elf_best best = { 0 };

	if (!s)
		return false;
	for (size_t i = 0; i < s->sections; i++)
		if (s->section[i].type == SHT_SYMTAB || s->section[i].type == SHT_DYNSYM)
			elf_table_search(task, s, &s->section[i], ip - s->object.bias, &best);
	if (!best.found || !elf_name(task, s, &best, out->name))
		return false;
	out->start = best.value + s->object.bias;
	return true;
}

/* --- unwind tables --------------------------------------------------------------------------------------------------- */

/* The sorted table of an object that was linked with --eh-frame-hdr, as nearly all are. */
static bool elf_table_header(struct diagnose_task *task, uint64_t address, struct diagnose_table *out)
{
	/* The one form that linkers write: 4-byte count, entries of two signed words relative to the header. */
	enum { VERSION = 1, PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };
	struct {
		uint8_t version, frame_encoding, count_encoding, table_encoding;
		int32_t frame;
		uint32_t count;
	} header;

	if (!address || !diagnose_mem_read(task, address, &header, sizeof(header)))
		return false;
	if (header.version != VERSION || header.frame_encoding != PCREL_SDATA4 || header.count_encoding != UDATA4 ||
	    header.table_encoding != DATAREL_SDATA4 || header.count > INT32_MAX / 8)
		return false;
	out->header = address;
	out->entries = address + sizeof(header);
	out->count = header.count;
	return true;
}

/* Static programs of some compilers have .eh_frame without that table: one entry is made from the section. */
static bool elf_table_section(struct diagnose_task *task, uint64_t ip, struct diagnose_table *out)
{
	static const char wanted[] = ".eh_frame";
	struct diagnose_symbols *s = elf_symbols(task, ip);
	char name[sizeof(wanted)];

	for (size_t i = 0; s && s->names < s->sections && i < s->sections; i++) {
		const struct elf_section *section = &s->section[i];
		uint64_t at = s->section[s->names].offset + section->name;

		if (!section->addr || !elf_read(task, &s->object, at, name, sizeof(name)) ||
		    memcmp(name, wanted, sizeof(wanted)))
			continue;
		return diagnose_eh_find(task, section->addr + s->object.bias, section->size, ip, out);
	}
	return false;
}

bool diagnose_elf_table(struct diagnose_task *task, uint64_t ip, struct diagnose_table *out)
{
	const struct diagnose_region *region = diagnose_maps_find(task, ip);
	struct elf_object object;

	if (!region || !elf_object_find(task, ip, &object))
		return false;
	*out = (struct diagnose_table){ .start = region->start, .end = region->end };
	return elf_table_header(task, object.eh_header, out) || elf_table_section(task, ip, out);
}
