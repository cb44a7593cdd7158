/* How long machines were held and what of it is billed: for the ledger's files alone. */
#ifndef STK_FLOW_LEDGER_HELD_H
#define STK_FLOW_LEDGER_HELD_H

#include "jobs/flow/ledger.h"

/* Adds the part of the `ms` up to `to` in which the job held its machines. */
void ledger_held_add(struct ledger *l, struct utc to, int64_t ms, enum ledger_bin bin);
/* Moves time from one bin to another, in both counts. */
void ledger_held_move(struct ledger *l, int64_t ms, enum ledger_bin from, enum ledger_bin to);
/* Handles attempt.ended, once all of its time is spent, and attempt.kept. */
void ledger_held_end(struct ledger *l, const struct event *ev);
void ledger_held_kept(struct ledger *l, const struct event *ev);
/* Fills the members of a view that are not bins. */
void ledger_held_view(const struct ledger *l, struct ledger_view *ret);

#endif
