/*
 * A training that makes no progress: it is stopping, or it has stalled. No speed is shown then; the
 * status says what it waits for instead.
 *
 * Fields in the status of a run that has not ended:
 *   "stopping": {"since", "seconds", "reason", "waits_for": "a checkpoint", "the command to end" or
 *     "the engine to end the job"; "until": the checkpoint is not waited for longer}
 *   "stalled": {"since", "seconds", "reason": what is missing; "until": when it is restarted if
 *     nothing comes; absent if that is not known}
 * At most one is present: a training that is stopping is not called stalled.
 */
#ifndef STK_REPORT_HALT_H
#define STK_REPORT_HALT_H

#include "jobs/base/step_rate.h"
#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

struct halt {
	/* from the plan; ms */
	int64_t drain_ms;
	bool stops_on_mismatch;
	/* state of the newest attempt */
	bool under_way, trains, claimed, lost;
	/* the attempt was asked to end; ms 0: it was not */
	struct utc stopping, save_until;
	bool saved;
	char *reason; /* owned */
	/* the agent reports a stall; ms 0: it does not */
	struct utc silent, restart;
	char *silence; /* owned: what is missing */
	/* newest step seen */
	struct utc step_at; /* ms 0: no step was seen */
	int64_t step;
	struct step_rate rate; /* as reported */
};

void halt_add(struct halt *halt, const struct event *ev);
void halt_release(struct halt *halt); /* { 0 } is fine */

/* Notes a step that is in no event yet. */
void halt_step(struct halt *halt, struct utc at, int64_t step);

/* Adds "stopping" or "stalled", as of now, to the status of a run. */
void halt_put(const struct halt *halt, struct utc now, json_t *status);

#endif
