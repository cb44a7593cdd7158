/*
 * Draining: the driver wants the command to save and stop, because a deadline, a
 * cost cap or a person says so. The wish lies in the workspace (drain.json).
 *
 *   seen → checkpoint.signal to whoever in the command's tree handles it (nobody
 *   does: stop) → wait up to checkpoint.grace_ms for a mark of what was saved
 *   since → stop.
 *
 * A mark counts if its step is not before the last one seen when the signal went
 * out: one saved earlier may have settled only now, and stopping then would cut
 * off the save that was asked for.
 */
#ifndef STK_NODE_DRAIN_H
#define STK_NODE_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/json.h"
#include "jobs/node/keeper.h"

struct agent;

struct drain {
	int64_t at_ms; /* utc, when we saw the wish; 0: we have not */
	int64_t step;  /* the last one seen then; -1: none */
	bool signalled, marked;
};

/* Look for the wish, at each heartbeat; true while draining. */
bool drain_look(struct agent *agent);
/* The wish was seen; more than once is fine. */
void drain_begin(struct agent *agent);
/* What the keeper says, for drains, stalls and the report. */
void drain_news(void *agent, enum keeper_news kind, const json_t *news);
void drain_report(struct agent *agent);

#endif
