/*
 * signals.h - signals that are sent to interpose itself.
 *
 * What the terminal sends goes to the guest as well, since it is in the same process group: we neither die nor stop of it.
 * What a process sends to us is meant for the program: it is passed on. SIGTERM moreover ends the run: at once when the
 * program ignores it, after SIGNALS_GRACE_S when it handles it and does not end.
 */
#ifndef INTERPOSE_TRACER_SIGNALS_H
#define INTERPOSE_TRACER_SIGNALS_H

#include "tracer/engine/engine.h"

enum { SIGNALS_GRACE_S = 10 };

/* Blocks what we handle and stores the mask as it was, for the guest. Before anything is started. */
void signals_block(sigset_t *before);

/* Installs the handlers for ENGINE and unblocks. After the launch, so that the guest inherits no disposition of ours. */
void signals_start(struct engine *engine);

/* Back to the defaults. */
void signals_end(void);

/* engine_events.attention */
void signals_attend(struct engine *engine);

/* engine_events.stopped: stops this process as the first guest was, by SIGNO. Returns when it is continued. */
void signals_stop_self(int signo);

/* Ends this process by SIGNO, without a core, as the guest did. Returns only if that cannot be done. */
void signals_die(int signo);

#endif
