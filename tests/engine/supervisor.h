/* supervisor.h - the supervisor side of the engine's tests: what main.c starts and decide.c decides for. */
#ifndef INTERPOSE_TESTS_SUPERVISOR_H
#define INTERPOSE_TESTS_SUPERVISOR_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/utsname.h>

#include "tests/engine/engine_test.h"
#include "tracer/engine/engine.h"

enum { WORKED = 64 };

struct supervisor {
	struct shared *shared;
	enum engine_mechanism mechanism;
	struct engine *engine;
	unsigned forward_notes, window_notes;
	char buf[4096];
	uint64_t pointers[64 << 10];
	struct utsname uts;
	int mode_fd; /* a file that gets its mode at the end of the call that opens it */
	pid_t replacer; /* waits for descriptors of others to be replaced */
	int views;   /* task states that were not freed */
	int strangers; /* tasks of which no event told before they made a call */

	pthread_mutex_t lock;
	pid_t worked[WORKED]; /* tasks for which the workers are done, not looked at yet */
	int worked_count, working;
	bool over;
};

/* Before the engine is freed: no worker calls it any more. */
void supervisor_end(struct supervisor *s);

extern const struct engine_events supervisor_events;

#endif
