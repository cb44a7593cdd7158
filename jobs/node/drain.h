/*
 * Draining: the driver asks the command to save and stop, because a deadline, a cost cap or a
 * person says so. The request lies in the workspace (drain.json).
 *
 *   seen → checkpoint.signal to the processes of the command that handle it (if none
 *   does: stop) → wait up to checkpoint.grace_ms for a mark of what was saved since
 *   → stop.
 *
 * A mark counts if its step is not before the last one seen when the signal went out: an earlier
 * save may have settled only now, and stopping then would cut off the save that was asked for.
 */
#ifndef STK_NODE_DRAIN_H
#define STK_NODE_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct agent;

struct drain {
	int64_t at_ms; /* utc, when we saw the request; 0: not seen */
	int64_t step;  /* last step seen then; -1: none */
	bool signalled, marked;
};

/* Called when the request was seen; more than once is fine. */
void drain_begin(struct agent *agent);
/* Returns why a command is stopped that has had its chance to save: STOPPED_DRAIN, or that this
 * agent itself could not go on. */
const char *drain_word(const struct agent *agent);
/* Node 0 has the mark: stops the command. The other nodes must not take our end for a failure. */
void drain_saved(struct agent *agent);
void drain_report(struct agent *agent);

#endif
