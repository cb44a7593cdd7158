/*
 * What the files of flow share among themselves: bounded text and the chance
 * that is none, derived from a run's journalled seed.
 */
#ifndef STK_FLOW_INSIDE_H
#define STK_FLOW_INSIDE_H

#include <stdint.h>

#include "jobs/flow/flow.h"

/* Copy a text into `size` bytes, always terminated; NULL is the empty text. What
 * does not fit is cut between characters, so that UTF-8 stays UTF-8. The two may
 * overlap: an event that a wish asked for is borrowed from the flow itself. */
void flow_copy(char *to, size_t size, const char *text);

/* The same for what is worth nothing in part (a URL, a name): false, and nothing
 * changed, where it does not fit. */
bool flow_copy_whole(char *to, size_t size, const char *text);

/* A number that looks random and depends on nothing but its arguments. */
uint64_t flow_mix(int64_t seed, uint64_t a, uint64_t b);

/* "stk-<run>-<phase>-<attempt>", and a nonce of 26 characters of base 32. */
void flow_job_name(const struct flow *flow, enum phase phase, int64_t attempt,
		   char ret_name[FLOW_ID_MAX]);
void flow_nonce(const struct flow *flow, enum phase phase, int64_t attempt,
		char ret_nonce[FLOW_ID_MAX]);

/* Why a failure of this class would be the last one of the current phase. */
enum retry_end {
	RETRY_GOES_ON,
	RETRY_USELESS,     /* the class is not cured by retrying */
	RETRY_OF_CLASS,    /* its own few retries are used up */
	RETRY_ATTEMPTS,    /* retry.attempts */
	RETRY_NO_PROGRESS, /* retry.without_progress */
	RETRY_SAME_CAUSE   /* the same signature again, without a new checkpoint between */
};
/* `ev` is the attempt.ended. */
enum retry_end retry_end_after(const struct flow *flow, const struct event *ev);

/* What of an attempt.ended is remembered to know its cause again; 0: nothing. */
uint64_t retry_signature(const struct event *ev);

/* The limit that is reached now, LIMIT_NONE: none; why, for people; and when the next
 * one can be by time alone (INT64_MAX: never). */
enum run_limit limit_reached(const struct flow *flow, struct utc now);
void limit_text(const struct flow *flow, enum run_limit limit, char *to, size_t size);
int64_t limit_next_ms(const struct flow *flow);

/* The limit that will be reached before the training ends when that is forecast, of those
 * that nobody was told of yet; why, for people. */
enum run_limit limit_forecast(const struct flow *flow);
void limit_forecast_text(const struct flow *flow, char *to, size_t size);

/* An agent's clock is its own: a moment told by it, held between two of the journal. */
struct utc flow_between(int64_t told_ms, struct utc from, struct utc to);

/* News of another attempt than the current one is of no account to a ledger. */
bool ledger_is_stale(const struct ledger *ledger, const struct event *ev);

/* How long the retry that is due now waits. */
int64_t retry_wait_ms(const struct flow *flow);

#endif
