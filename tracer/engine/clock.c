/* clock.c - the one clock of durations. */
#include <time.h>

#include "tracer/engine/clock.h"

uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}
