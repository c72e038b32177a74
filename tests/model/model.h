/*
 * model.h - what the parts of the model test share.
 *
 * The model test makes a random sequence of file operations below one folder, by several processes that take turns, and logs
 * everything a program can learn from them. Every step is a function of (seed, step number) and of what the tree holds: so a
 * run repeats exactly, a prefix of a run is the run with fewer steps, and any step can be left out. Two runs from equal trees
 * must log the same bytes, whatever lies between the program and the kernel.
 *
 *   pick.c   random numbers, names, paths        say.c   the log
 *   ops_*.c  the operations                      main.c  processes, turns
 *   tree.c   a program of its own: the tree that lies there before
 */
#ifndef INTERPOSE_TESTS_MODEL_H
#define INTERPOSE_TESTS_MODEL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum {
	SLOTS = 6,           /* open files of one process */
	PROCESSES_MAX = 8,
	PATH_ROOM = 4352,    /* more than PATH_MAX: too long a path is a case of its own */
	NAMES_MAX = 512,     /* entries of one folder that a listing keeps */
	TIME_LIMIT = 1500000000, /* a time before this was set on purpose and is told; any later one is "now" */
};

/* A path as a call gets it: relative to `dirfd`, and the text for the log. The string ends where its page ends. */
struct where {
	int dirfd;
	char *path;
	char shown[1024];
};

/* This process. */
struct self {
	int index;
	int slot[SLOTS];     /* descriptors; -1 where there is none */
	bool folder[SLOTS];  /* which of them are folders */
	char *map;           /* one shared page of a file, kept over steps; NULL where there is none */
	int map_fd;          /* that file */
	char root[512];      /* the folder that all happens in, absolute */
};

extern struct self self;

/* One operation. `class` is what --without names. */
struct op {
	const char *name, *class;
	int weight;
	void (*run)(void);
};

/* --- pick.c: everything random; the sequence is set by pick_begin() --- */
void pick_begin(uint64_t seed, uint64_t step);
unsigned pick(unsigned below);
bool chance(unsigned percent);
uint64_t pick_bits(void);
mode_t pick_mode(void);
/* One of the open slots; an empty one now and then, or where none is open. */
int pick_slot(void);
/* A slot to put something in: an empty one where there is one. */
int pick_free_slot(void);
/* A name of one component, not NUL, at most 256 bytes. */
void pick_name(char *name, size_t room);
/* A path, often of something that is there; the two buffers of `which` 0 and 1 are apart. Absolute ones are below self.root. */
void pick_path(struct where *where, int which);
/* The same, often of something whose letter in say_stat() is one of `types`. */
void pick_path_to(struct where *where, int which, const char *types);
/* A path of one component or two, often of something that is not there: for what makes something new. */
void pick_new_path(struct where *where, int which);
/* The target of a symbolic link; `shown` as in struct where. */
void pick_target(char *target, size_t room);
/* LEN bytes of data. */
void pick_data(unsigned char *data, size_t len);

/* --- say.c: the log, one line a step, written to standard output as a whole --- */
void say_begin(unsigned step, const char *who);
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
void say_end(void);
/* A value, or the name of errno where it is -1. */
void say_result(long result);
/* Bytes printable: escapes, long runs shortened, the root as `$`. */
void say_text(const char *text);
void show_text(const char *text, char *shown, size_t room);
/* Type, mode, links, owner, size and mtime; what file systems differ in is left out. */
void say_stat(const struct stat *st);
uint64_t hash_bytes(uint64_t hash, const void *data, size_t len);
enum { HASH_START = 1 };
/* Content of a descriptor from its start, by pread. */
void say_content(int fd);

/* --- the operations --- */
extern const struct op file_ops[], name_ops[], meta_ops[], dir_ops[], process_ops[];
void op_snapshot(void);
/* Runs COUNT random operations, each as a line of its own. In main.c. */
void run_some(unsigned count, const char *who);
/* Puts FD into a slot, closing what is there. */
void slot_put(int index, int fd);
/* A folder descriptor that left the root is given up, and so is such a working folder. */
void stay_inside(void);

#endif
