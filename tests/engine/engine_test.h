/*
 * engine_test.h - what the supervisor side (main.c) and the guests of the engine's own tests share.
 *
 * A case is a guest function of the same name. The supervisor decides by path, as the table in main.c says; both sides see
 * one struct shared, in a file that the guest inherits.
 */
#ifndef INTERPOSE_TESTS_ENGINE_TEST_H
#define INTERPOSE_TESTS_ENGINE_TEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SHARED_FD = 200,
	RESULT_FD = 201,
	SEQUENCES = 1 << 17,
	PIDS = 64,
	ANSWERED_SID = 7777, /* what getsid(5) is answered */

	/* getsid(ASK_...) is answered with */
	ASK_FILES = 1,       /* the number of the supervisor's open files */
	ASK_FLAGS = 2,       /* the flags by which the caller was made */
	ASK_DEPTH = 3,       /* how many ancestors it has, threads included */
	ASK_FORMER = 4,      /* the tid that called the last execve */
	ASK_REPLACE = 7,     /* 0, when descriptor ARG3 of process ARG2, of "hello", has become one of "new" in mode ARG4 */
	ASK_SHARE = 8,       /* the same for ARG3 and ARG4: one open file for both */
	ASK_REMAP = 9,       /* 0, when the readers' mappings of "hello" of process ARG2 have become ones of "new"; a tid will do */
	ASK_WRITE = 6,       /* 0; at its end ASK_WRITTEN is written to its second argument */
};

/* A sanitized program starts and forks many times slower: fewer of each. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#define ANSWERED_MACHINE "virtual"
#define ASK_WRITTEN "written"
#define PATCHED_EXECFN "/patched"

struct shared {
	char dir[200];              /* /virtual/NAME is this folder's NAME */
	char program[300];          /* the test program */
	int decisions;              /* rewritten opens */
	int notes;
	char note[200];             /* the last one */
	int reopened;               /* files that were opened for a guest that could not */
	int remapped;               /* what the last engine_remap() has found */
	int waits;                  /* calls of /wait/ that were asked */
	int written;                /* what guest_write() said */
	bool patch;                 /* AT_EXECFN of new programs */
	char decided[SEQUENCES];    /* last letter of the path, by the open's fourth argument */

	/* of the guests among themselves */
	int ready, go, done, count, value[128];
	pid_t pids[PIDS];
};


/* --- guests ---------------------------------------------------------------------------------------------------------- */

struct guest_case {
	const char *name;
	int (*run)(void); /* the exit status when no check failed */
};
extern const struct guest_case guests_window[], guests_calls[], guests_life[], guests_wait[], guests_files[];

/* Main program of the guest. */
int run_guest(const char *name);

extern struct shared *shared;

/* openat of "/virtual/NAME"; SEQUENCE is its fourth argument. A descriptor, or -1 with errno. */
int open_virtual(const char *name, int flags, unsigned sequence);

/* openat of "/fd/KIND". */
int open_kind(const char *kind, int flags);

/* ACTION of seccomp for number NR, all others allowed. */
void install_filter(uint32_t nr, uint32_t action);

/* Whether FD, which is closed, holds exactly TEXT. */
bool file_holds(int fd, const char *text);

/* How many chunks of the window this program maps: one, unless more slots than it has were in use at a time. */
int windows_mapped(void);

/* A thread blocked in a rewritten open of a FIFO. */
struct blocked {
	pthread_t thread;
	int fifo;
	int got;   /* the byte that came through it; -1 when the open failed */
	int error; /* and why */
	volatile pid_t tid;
};

/* COUNT threads on the FIFOs from FIRST on; they make their calls all at once. */
void blocked_start(struct blocked *b, int first, int count);

/* Waits until they all are in the kernel's open; false after a long time. */
bool blocked_await(struct blocked *b, int count);

/* Opens the other end and waits for the thread: whether the right byte came. */
bool blocked_release(struct blocked *b);

/* Writes to the end of all of them, from the last to the first; how many were right. */
int blocked_release_all(struct blocked *b, int count);

#endif
