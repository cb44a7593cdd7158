/*
 * What the rows of the table in step.c do: note_… remembers what an event says
 * (notes.c), end_… decides how the run ends (ends.c). Each is given the flow, whose
 * time is already that of the event, and the event that fired the row.
 */
#ifndef STK_FLOW_RULES_H
#define STK_FLOW_RULES_H

#include "jobs/flow/flow.h"

/* How long beyond checkpoint.grace an attempt that drains is given to end by itself. */
#define FLOW_DRAIN_MARGIN_MS 30000

void note_creation(struct flow *f, const struct event *ev);
void note_driver(struct flow *f, const struct event *ev);
void note_cache(struct flow *f, const struct event *ev);
void note_key(struct flow *f, const struct event *ev);
void note_key_waited(struct flow *f, const struct event *ev);
void note_verdict(struct flow *f, const struct event *ev);
void note_intent(struct flow *f, const struct event *ev);
void note_submission(struct flow *f, const struct event *ev);
void note_unseen(struct flow *f, const struct event *ev);
void note_claim(struct flow *f, const struct event *ev);
void note_start(struct flow *f, const struct event *ev);
void note_health(struct flow *f, const struct event *ev);
void note_failure(struct flow *f, const struct event *ev);
void note_success(struct flow *f, const struct event *ev);
void note_cause(struct flow *f, const struct event *ev);
void note_compile_failure(struct flow *f, const struct event *ev);
void note_retry(struct flow *f, const struct event *ev);
void note_choice(struct flow *f, const struct event *ev);
void note_checkpoint(struct flow *f, const struct event *ev);
void note_stop(struct flow *f, const struct event *ev);
void note_limit(struct flow *f, const struct event *ev);
void note_mismatch(struct flow *f, const struct event *ev);
void note_spoiled(struct flow *f, const struct event *ev);
void note_jit(struct flow *f, const struct event *ev);
void note_jit_told(struct flow *f, const struct event *ev);
void note_jit_stop(struct flow *f, const struct event *ev);
void note_recompile(struct flow *f, const struct event *ev);
void note_room(struct flow *f, const struct event *ev);
void note_other_compiler(struct flow *f, const struct event *ev);
void note_leaving(struct flow *f, const struct event *ev);
void note_forecast(struct flow *f, const struct event *ev);
void note_risk(struct flow *f, const struct event *ev);
void note_end(struct flow *f, const struct event *ev);

void end_well(struct flow *f, const struct event *ev);
void end_stopped(struct flow *f, const struct event *ev);
void end_on_request(struct flow *f, const struct event *ev);
void end_limited(struct flow *f, const struct event *ev);
void end_failed(struct flow *f, const struct event *ev);
void end_unproved(struct flow *f, const struct event *ev);

#endif
