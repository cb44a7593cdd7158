/*
 * The chain of a run's events: each event has in `sum` a digest of itself and of all before it, so
 * that reading proves that no event was changed, removed, inserted or exchanged.
 *
 *   sum  = SHA-256 in hex of: link, a newline, form; it is the last member of the event
 *   link = the sum of the event before; if that has none (an earlier version): SHA-256 of its
 *          form; before event 1: nothing
 *   form = the bytes of the event, without its `sum`
 *
 * Journals from before sums are read as they are and go on with sums, which then prove the last
 * event without a sum, too. The driver of a run may be of that earlier version while commands of
 * this one write to the same journal, so an event without a sum may follow an event with a sum. If
 * an event has lost its sum by damage, the next one does not fit.
 *
 * The sums do not show that the last events are missing, for no later event depends on them: see
 * end_mark.h.
 */
#ifndef STK_RUN_JOURNAL_CHAIN_H
#define STK_RUN_JOURNAL_CHAIN_H

#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"

/* A position in the chain: after event `seq`. All zero: before the first event. */
struct chain {
	int64_t seq;
	char link[SHA256_HEX];
};

/* Adds the sum to `row`, the next event, which must not have one. Returns the bytes of the event;
 * the caller frees them. The position stays. */
char *chain_seal(const struct chain *chain, json_t *row);

/* Sets the position after this event, which is not checked; `body` is its bytes. */
void chain_begin(struct chain *chain, const json_t *row, const char *body, size_t len);

/* Checks that this is the next event of the run. Returns 0 and moves the position past it, or -1
 * with what is wrong ("its sum does not fit") and the position unchanged. */
int chain_go_on(struct chain *chain, const char *run, const json_t *row, const char *body,
		size_t len, struct err **err);

/* Returns in `ret` the sum that the bytes of an event end in; false if they end in none. */
bool chain_sum_at_end(const char *body, size_t len, char ret[SHA256_HEX]);

/* Proves by its bytes alone that this is the next event, without parsing it. True moves the
 * position past it; false proves nothing: chain_go_on() tells. */
bool chain_prove(struct chain *chain, int64_t seq, const char *body, size_t len);

#endif
