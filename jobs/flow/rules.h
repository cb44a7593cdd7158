/*
 * Actions of the rows of the table in step.c: transition_… remembers what an event says
 * (transitions.c), end_… decides how the run ends (ends.c). Each is given the flow, with its
 * time already set to that of the event, and the event that fired the row.
 */
#ifndef STK_FLOW_RULES_H
#define STK_FLOW_RULES_H

#include "jobs/flow/flow.h"

/* Time beyond checkpoint.grace that a draining attempt gets to end by itself. */
#define FLOW_DRAIN_MARGIN_MS 30000

void transition_creation(struct flow *f, const struct event *ev);
void transition_driver(struct flow *f, const struct event *ev);
void transition_cache(struct flow *f, const struct event *ev);
void transition_look(struct flow *f, const struct event *ev);
void transition_lost_graphs(struct flow *f, const struct event *ev);
void transition_key(struct flow *f, const struct event *ev);
void transition_key_waited(struct flow *f, const struct event *ev);
void transition_verification(struct flow *f, const struct event *ev);
void transition_intent(struct flow *f, const struct event *ev);
void transition_salvage(struct flow *f, const struct event *ev);
void transition_settlement(struct flow *f, const struct event *ev);
void transition_found_again(struct flow *f, const struct event *ev);
void transition_submission(struct flow *f, const struct event *ev);
void transition_unobserved(struct flow *f, const struct event *ev);
void transition_claim(struct flow *f, const struct event *ev);
void transition_start(struct flow *f, const struct event *ev);
void transition_health(struct flow *f, const struct event *ev);
void transition_failure(struct flow *f, const struct event *ev);
void transition_success(struct flow *f, const struct event *ev);
void transition_cause(struct flow *f, const struct event *ev);
void transition_compile_failure(struct flow *f, const struct event *ev);
void transition_retry(struct flow *f, const struct event *ev);
void transition_choice(struct flow *f, const struct event *ev);
void transition_checkpoint(struct flow *f, const struct event *ev);
void transition_stop(struct flow *f, const struct event *ev);
void transition_limit(struct flow *f, const struct event *ev);
void transition_mismatch(struct flow *f, const struct event *ev);
void transition_output_invalid(struct flow *f, const struct event *ev);
void transition_jit(struct flow *f, const struct event *ev);
void transition_jit_reported(struct flow *f, const struct event *ev);
void transition_jit_stop(struct flow *f, const struct event *ev);
void transition_recompile(struct flow *f, const struct event *ev);
void transition_room(struct flow *f, const struct event *ev);
void transition_other_compiler(struct flow *f, const struct event *ev);
/* Cache, phase 1 and verdict are those of another stage from now on. */
void transition_stage(struct flow *f, enum phase stage);
void transition_candidate(struct flow *f, const struct event *ev);
void transition_task(struct flow *f, const struct event *ev);
void transition_promoting(struct flow *f, const struct event *ev);
void transition_pause(struct flow *f, const struct event *ev);
void transition_leaving(struct flow *f, const struct event *ev);
void transition_forecast(struct flow *f, const struct event *ev);
void transition_risk(struct flow *f, const struct event *ev);
void ends_record(struct flow *f, const struct event *ev);

void end_stage(struct flow *f, const struct event *ev);
void end_without_candidate(struct flow *f, const struct event *ev);
void end_gate(struct flow *f, const struct event *ev);
void end_promoted(struct flow *f, const struct event *ev);
void end_overtaken(struct flow *f, const struct event *ev);
void end_stopped(struct flow *f, const struct event *ev);
void end_on_request(struct flow *f, const struct event *ev);
void end_salvaged(struct flow *f, const struct event *ev);
void end_limited(struct flow *f, const struct event *ev);
void end_failed(struct flow *f, const struct event *ev);
void end_unproved(struct flow *f, const struct event *ev);

#endif
