/*
 * loop.h - how long one operation takes, in a bounded time, whatever it costs.
 *
 * An operation is repeated in slices of about two milliseconds until the time is spent; the figure is the median of the
 * slices, so that a moment in which something else ran does not count. The clock is read once for each slice: reading it is
 * free of system calls natively (vDSO), and where a wrapper makes it one, its cost is shared by the slice.
 */
#ifndef INTERPOSE_BENCH_LOOP_H
#define INTERPOSE_BENCH_LOOP_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { LOOP_SLICES = 4096, LOOP_SLICE_NS = 2000000 };

struct loop_result {
	double ns;          /* nanoseconds of one operation: median over the slices */
	uint64_t count;     /* how many operations were made in all */
	long last;          /* what the last one returned */
};

static inline uint64_t loop_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int loop_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts. COUNT is at least 1. */
static inline double loop_median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), loop_compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static inline uint64_t loop_slice(long (*once)(void *), void *context, uint64_t batch, long *last)
{
	uint64_t start = loop_now();

	for (uint64_t i = 0; i < batch; i++)
		*last = once(context);
	return loop_now() - start;
}

/* Repeats ONCE for about MS milliseconds. Slices double until they are long enough, each tried twice so that one
   interruption does not end the search; what that search measured is thrown away, unless it used up all the time. */
static inline struct loop_result loop_run(long (*once)(void *), void *context, unsigned ms)
{
	static double slices[LOOP_SLICES];
	struct loop_result result = { 0 };
	uint64_t end = loop_now() + (uint64_t)ms * 1000000u, batch = 1, took, again;
	unsigned count = 0;

	for (;; batch *= 2) {
		took = loop_slice(once, context, batch, &result.last);
		result.count += batch;
		if (loop_now() >= end)
			break;
		again = loop_slice(once, context, batch, &result.last);
		result.count += batch;
		took = again < took ? again : took;
		if (took >= LOOP_SLICE_NS / 2 || loop_now() >= end)
			break;
	}
	slices[count++] = (double)took / (double)batch;
	while (loop_now() < end && count < LOOP_SLICES) {
		took = loop_slice(once, context, batch, &result.last);
		result.count += batch;
		slices[count++] = (double)took / (double)batch;
	}
	result.ns = loop_median(slices, count);
	return result;
}

#endif
