/*
 * Shared by the files of flow: bounded text, and pseudo-random numbers derived from a run's
 * journalled seed.
 */
#ifndef STK_FLOW_INTERNAL_H
#define STK_FLOW_INTERNAL_H

#include <stdint.h>

#include "jobs/flow/flow.h"

/* Copies a text into `size` bytes, always terminated. A text that does not fit is cut between
 * characters, so that UTF-8 stays UTF-8. The two may overlap: the event that an effect asked for
 * is borrowed from the flow itself. */
void flow_copy(char *to, size_t size, const char *text);

/* The same for a text that is useless in part (a URL, a name): if it does not fit, returns false
 * and changes nothing. */
bool flow_copy_whole(char *to, size_t size, const char *text);

/* Returns a number that looks random and depends only on the arguments. */
uint64_t flow_mix(int64_t seed, uint64_t a, uint64_t b);

/* "stk-<run>-<phase>-<attempt>" */
void flow_job_name(const struct flow *flow, enum phase phase, int64_t attempt,
		   char ret_name[FLOW_ID_MAX]);

/* Reason why a failure of this class would be the last one of the current phase. */
enum retry_end {
	RETRY_GOES_ON,
	RETRY_USELESS,     /* the class is not cured by retrying */
	RETRY_OF_CLASS,    /* the class's own few retries are used up */
	RETRY_ATTEMPTS,    /* retry.attempts */
	RETRY_NO_PROGRESS, /* retry.without_progress */
	RETRY_SAME_CAUSE,  /* the same signature too often without a new checkpoint */
	RETRY_LIMIT        /* limits.attempts */
};
/* `ev` is the attempt.ended. */
enum retry_end retry_end_after(const struct flow *flow, const struct event *ev);

/* Remembers the signature of a failure that counts, to recognise it later. */
void retry_remember(struct flow_budget *budget, const struct event *ev);

/* Returns how often a failure like `ev` is remembered since the last checkpoint. */
int64_t retry_times(const struct flow *flow, const struct event *ev);

/* True if the attempt that ended had machines: it held the claim, or its command or container
 * ran far enough to exit. */
bool retry_had_machines(const struct flow *flow, const struct event *ev);

/* Returns the state that follows when the current one has done its work: the next one that the run
 * asks for, else FLOW_ENDING. */
enum flow_state flow_next_state(const struct flow *flow);

/* Returns the phase that is worked on in a state, PHASE_COUNT: none; and that state of a phase. */
enum phase flow_phase_of_state(enum flow_state state);
enum flow_state flow_state_of_phase(enum phase phase);

/* Returns the phase of the present state; where it has none, that of the newest attempt. */
enum phase flow_phase_now(const struct flow *flow);

/* Says for people why a limit is reached. */
void limit_text(const struct flow *flow, enum run_limit limit, char *to, size_t size);

/* Returns the limit that is forecast to be reached before the training ends, of those not yet
 * reported; limit_forecast_text() says why, for people. */
enum run_limit limit_forecast(const struct flow *flow);
void limit_forecast_text(const struct flow *flow, char *to, size_t size);

/* Clamps a time by an agent's clock, which is not the driver's, to the range between two times
 * of the journal. */
struct utc flow_between(int64_t reported_ms, struct utc from, struct utc to);

/* Returns how long the retry that is due now waits, in milliseconds. */
int64_t retry_wait_ms(const struct flow *flow);

#endif
