/*
 * engine_test.h - what the supervisor side (main.c) and the guests of the engine's own tests share.
 *
 * A case is a guest function of the same name. The supervisor decides by path, as the table in main.c says; both sides see
 * one struct shared, in a file that the guest inherits.
 */
#ifndef INTERPOSE_TESTS_ENGINE_TEST_H
#define INTERPOSE_TESTS_ENGINE_TEST_H

#include <stdint.h>
#include <sys/types.h>

enum {
	SHARED_FD = 200,
	RESULT_FD = 201,
	SEQUENCES = 1 << 17,
	PIDS = 64,
	ANSWERED_SID = 7777, /* what getsid(5) is answered */
	ASK_FILES = 1,       /* getsid(1) is answered with the number of the supervisor's open files */
};

#define ANSWERED_MACHINE "virtual"

struct shared {
	char dir[200];              /* /virtual/NAME is this folder's NAME */
	char program[300];          /* the test program */
	int decisions;              /* rewritten opens */
	int answers;
	int notes;
	char note[200];             /* the last one */
	char decided[SEQUENCES];    /* last letter of the path, by the open's fourth argument */

	/* of the guests among themselves */
	int ready, go, done, count, value[128];
	pid_t pids[PIDS];
};

struct test;
extern const struct test tests_window[], tests_calls[], tests_life[];

/* The guest's side of it; ends the program where there is none. */
struct shared *shared_guest(void);

#endif
