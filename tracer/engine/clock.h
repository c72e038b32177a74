/* clock.h - the one clock of durations. */
#ifndef INTERPOSE_TRACER_ENGINE_CLOCK_H
#define INTERPOSE_TRACER_ENGINE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t clock_now(void);

#endif
