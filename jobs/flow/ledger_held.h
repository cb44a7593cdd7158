/* How long machines were held and what of it is billed: for the ledger's files alone. */
#ifndef STK_FLOW_LEDGER_HELD_H
#define STK_FLOW_LEDGER_HELD_H

#include "jobs/flow/ledger.h"

/* Of the `ms` up to `to` that are spent in a bin: what the job held its machines for. */
void held_add(struct ledger *l, struct utc to, int64_t ms, enum ledger_bin bin);
/* What was spent in one bin belongs into another. */
void held_move(struct ledger *l, int64_t ms, enum ledger_bin from, enum ledger_bin to);
/* attempt.ended, once all of its time is spent; attempt.kept. */
void held_end(struct ledger *l, const struct event *ev);
void held_kept(struct ledger *l, const struct event *ev);
/* What of a view is not of its bins. */
void held_view(const struct ledger *l, struct ledger_view *ret);

#endif
