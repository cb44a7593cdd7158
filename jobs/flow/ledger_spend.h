/* How time is put into bins, which of it was not observed, and how long machines were held: for the
 * ledger's files alone. */
#ifndef STK_FLOW_LEDGER_SPEND_H
#define STK_FLOW_LEDGER_SPEND_H

#include "jobs/flow/ledger.h"

static inline struct utc earlier(struct utc a, struct utc b)
{
	return a.ms < b.ms ? a : b;
}

/* Puts the time from the mark to `to` into a bin; ledger_spend(): `ms` of it, up to `limit`. */
void ledger_spend_to(struct ledger *l, struct utc to, enum ledger_bin bin);
void ledger_spend(struct ledger *l, int64_t ms, struct utc limit, enum ledger_bin bin);
/* The same for a training: compiling goes to jit, unobserved time to unknown, the rest to
 * `rest`. */
void ledger_spend_training(struct ledger *l, struct utc to, enum ledger_bin rest);
/* Spends time on the steps up to `step`; steps that an earlier attempt reached are replayed. */
void ledger_spend_steps(struct ledger *l, struct utc to, int64_t step);
/* Spends the time between two attempts: as backoff until that is over, then as `rest`. */
void ledger_spend_wait(struct ledger *l, struct utc to, enum ledger_bin rest);
/* Moves reported saving, or `ms` of compiling, out of the bins that the attempt's time was put
 * into. */
void ledger_spend_saving(struct ledger *l);
void ledger_spend_found_jit(struct ledger *l, int64_t ms);

/* Adds an unobserved stretch; closes a part of it by other evidence; returns the observed
 * milliseconds from the mark to `to`. */
void ledger_hole_add(struct ledger *l, struct utc from, struct utc to);
void ledger_hole_fill(struct ledger *l, struct utc from, struct utc to);
int64_t ledger_hole_seen_ms(const struct ledger *l, struct utc to);

/* From the mark on the machines are held, unless they were before. */
void ledger_held_begin(struct ledger *l);
/* Takes back what lies between `released` and the mark: an event in between, a limit or a stop that
 * came before the end was told, had it counted as held. `bin`: where most of it is. */
void ledger_held_cut(struct ledger *l, enum ledger_bin bin);
/* Handles attempt.ended, once all of its time is spent, and attempt.kept. */
void ledger_held_end(struct ledger *l, const struct event *ev);
void ledger_held_kept(struct ledger *l, const struct event *ev);
/* Fills the members of a view that are not bins. */
void ledger_held_view(const struct ledger *l, struct ledger_view *ret);

#endif
