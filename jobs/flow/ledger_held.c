/* Cost of machines, as time: see ledger_held.h. */
#include "jobs/flow/ledger_held.h"

void ledger_held_add(struct ledger *l, struct utc to, int64_t ms, enum ledger_bin bin)
{
	int64_t late = l->released.ms > 0 && to.ms > l->released.ms ? to.ms - l->released.ms : 0;

	if (!l->held || late >= ms)
		return;
	l->held_ms[bin] += ms - late;
	l->attempt_held_ms += ms - late;
}

void ledger_held_move(struct ledger *l, int64_t ms, enum ledger_bin from, enum ledger_bin to)
{
	int64_t held = ms < l->held_ms[from] ? ms : l->held_ms[from];

	l->ms[from] -= ms;
	l->held_ms[from] -= held;
	l->ms[to] += ms;
	l->held_ms[to] += held;
}

void ledger_held_end(struct ledger *l, const struct event *ev)
{
	bool billed = EVENT_HAS(ev, billable) && ev->billable >= 0;

	l->billed_ms += billed ? ev->billable : l->attempt_held_ms;
	l->has_billed |= billed;
	/* An attempt that never had machines kept none: those of the attempt before may be there
	 * still. */
	if (l->held || EVENT_HAS(ev, held)) {
		l->ended_phase = ev->phase;
		l->ended_attempt = ev->attempt;
		l->kept_reported = false;
	}
	l->held = false;
	l->released.ms = 0;
	l->attempt_held_ms = 0;
}

/* A driver that died may have recorded it already. */
void ledger_held_kept(struct ledger *l, const struct event *ev)
{
	if (l->kept_reported || ev->phase != l->ended_phase || ev->attempt != l->ended_attempt ||
	    !(ev->seconds > 0) || ev->seconds >= 1e9)
		return;
	l->kept_reported = true;
	l->kept_ms += (int64_t)(ev->seconds * 1000 + 0.5);
}

void ledger_held_view(const struct ledger *l, struct ledger_view *ret)
{
	ret->kept_ms = l->kept_ms;
	ret->billed_ms = l->has_billed ? l->billed_ms + l->kept_ms : -1;
	ret->paid_ms = l->billed_ms + l->attempt_held_ms + l->kept_ms;
}
