/* Putting time into bins: see ledger_spend.h. */
#include "jobs/flow/ledger_spend.h"

#include <string.h>

/* ---- machines held ---------------------------------------------------------------- */

/* Adds the part of the `ms` up to `to` in which the job held its machines. */
static void held_add(struct ledger *l, struct utc to, int64_t ms, enum ledger_bin bin)
{
	int64_t late = l->released.ms > 0 && to.ms > l->released.ms ? to.ms - l->released.ms : 0;

	if (!l->held || late >= ms)
		return;
	l->held_ms[bin] += ms - late;
	l->attempt_held_ms += ms - late;
}

/* Moves time from one bin to another, in both counts. */
static void held_move(struct ledger *l, int64_t ms, enum ledger_bin from, enum ledger_bin to)
{
	int64_t held = ms < l->held_ms[from] ? ms : l->held_ms[from];

	l->ms[from] -= ms;
	l->held_ms[from] -= held;
	l->ms[to] += ms;
	l->held_ms[to] += held;
}

void ledger_held_begin(struct ledger *l)
{
	if (!l->held)
		l->held_since = l->mark;
	l->held = true;
}

/* Takes so much out of what a bin has as held, at most. */
static void held_take(struct ledger *l, int64_t *ms, enum ledger_bin bin)
{
	int64_t taken = *ms < l->held_ms[bin] ? *ms : l->held_ms[bin];

	l->held_ms[bin] -= taken;
	*ms -= taken;
}

void ledger_held_cut(struct ledger *l, enum ledger_bin bin)
{
	int64_t late = l->mark.ms - l->released.ms;

	/* A service whose clock says that they were given back before they were there knows
	 * nothing. */
	if (!l->held || l->released.ms <= l->held_since.ms || late <= 0)
		return;
	l->attempt_held_ms -= late;
	held_take(l, &late, bin);
	for (int other = 0; other < BIN_COUNT; other++)
		held_take(l, &late, (enum ledger_bin)other);
}

void ledger_held_end(struct ledger *l, const struct event *ev)
{
	bool billed = EVENT_HAS(ev, billable) && ev->billable >= 0;

	l->billed_ms += billed ? ev->billable : l->attempt_held_ms;
	l->paid_of[l->payer] += billed ? ev->billable : l->attempt_held_ms;
	l->has_billed |= billed;
	/* An attempt that never had machines kept none: those of the attempt before may be there
	 * still. */
	if (l->held || EVENT_HAS(ev, held)) {
		l->ended_phase = ev->phase;
		l->ended_payer = l->payer;
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
	l->paid_of[l->ended_payer] += (int64_t)(ev->seconds * 1000 + 0.5);
}

void ledger_held_view(const struct ledger *l, struct ledger_view *ret)
{
	ret->kept_ms = l->kept_ms;
	ret->billed_ms = l->has_billed ? l->billed_ms + l->kept_ms : -1;
	ret->paid_ms = l->billed_ms + l->attempt_held_ms + l->kept_ms;
	memcpy(ret->paid_of, l->paid_of, sizeof ret->paid_of);
	ret->paid_of[l->payer] += l->attempt_held_ms;
}

/* ---- spending ------------------------------------------------------------------ */

/* The only function that moves the mark: each millisecond before the mark is in exactly one bin. */
void ledger_spend_to(struct ledger *l, struct utc to, enum ledger_bin bin)
{
	int64_t ms = to.ms - l->mark.ms;

	if (ms <= 0)
		return;
	l->ms[bin] += ms;
	held_add(l, to, ms, bin);
	if (bin == BIN_STEPS)
		l->steps_ms += ms;
	if (bin == BIN_REPLAYED)
		l->again_ms += ms;
	if (l->stage == STAGE_FIRST && (bin == BIN_SETUP || bin == BIN_RESTORE))
		l->first_ms += ms;
	l->mark = to;
}

void ledger_spend(struct ledger *l, int64_t ms, struct utc limit, enum ledger_bin bin)
{
	int64_t left = limit.ms - l->mark.ms;

	ledger_spend_to(l, (struct utc){ l->mark.ms + (ms < left ? ms : left) }, bin);
}

/* ---- unobserved time --------------------------------------------------------------- */

static void remove_hole(struct ledger *l, int at)
{
	l->hole_count--;
	for (int i = at; i < l->hole_count; i++)
		l->holes[i] = l->holes[i + 1];
}

static void forget_holes(struct ledger *l)
{
	while (l->hole_count > 0 && l->holes[0].to.ms <= l->mark.ms)
		remove_hole(l, 0);
}

/* Adds a hole. If there is no room the newest hole grows, and the time between is unobserved
 * too. */
void ledger_hole_add(struct ledger *l, struct utc from, struct utc to)
{
	struct ledger_hole *last = l->hole_count > 0 ? &l->holes[l->hole_count - 1] : NULL;

	if (from.ms < l->mark.ms)
		from = l->mark;
	if (to.ms <= from.ms)
		return;
	if (last && (from.ms <= last->to.ms || l->hole_count == LEDGER_HOLES_MAX)) {
		last->from = earlier(last->from, from);
		if (to.ms > last->to.ms)
			last->to = to;
		return;
	}
	l->holes[l->hole_count++] = (struct ledger_hole){ from, to };
}

/* Removes an observed part from the holes. If there is no room for one hole more, a hole that
 * would be split stays whole. */
void ledger_hole_fill(struct ledger *l, struct utc from, struct utc to)
{
	for (int i = 0; i < l->hole_count; i++) {
		struct ledger_hole *hole = &l->holes[i];
		bool before = hole->from.ms < from.ms, behind = to.ms < hole->to.ms;

		if (to.ms <= hole->from.ms || from.ms >= hole->to.ms)
			continue;
		if (before && behind && l->hole_count < LEDGER_HOLES_MAX) {
			for (int k = l->hole_count++; k > i; k--)
				l->holes[k] = l->holes[k - 1];
			l->holes[i++].to = from;
			l->holes[i].from = to;
		} else if (before && !behind) {
			hole->to = from;
		} else if (!before && behind) {
			hole->from = to;
		} else if (!before) {
			remove_hole(l, i--);
		}
	}
}

/* Returns the milliseconds until `to` that were observed. */
int64_t ledger_hole_seen_ms(const struct ledger *l, struct utc to)
{
	int64_t ms = to.ms - l->mark.ms;

	for (int i = 0; i < l->hole_count; i++) {
		int64_t from = l->holes[i].from.ms > l->mark.ms ? l->holes[i].from.ms : l->mark.ms;
		int64_t end = earlier(l->holes[i].to, to).ms;

		if (end > from)
			ms -= end - from;
	}
	return ms > 0 ? ms : 0;
}

/* Spends `ms` of observed time, and the holes between as unknown. */
static void spend_seen(struct ledger *l, int64_t ms, struct utc limit, enum ledger_bin bin)
{
	for (int i = 0; i < l->hole_count && ms > 0; i++) {
		struct utc from = earlier(l->holes[i].from, limit);
		int64_t before = from.ms - l->mark.ms;

		if (before > ms)
			break;
		ledger_spend_to(l, from, bin);
		ms -= before > 0 ? before : 0;
		ledger_spend_to(l, earlier(l->holes[i].to, limit), BIN_UNKNOWN);
	}
	ledger_spend(l, ms, limit, bin);
	forget_holes(l);
}

static void spend_seen_to(struct ledger *l, struct utc to, enum ledger_bin bin)
{
	spend_seen(l, ledger_hole_seen_ms(l, to), to, bin);
	ledger_spend_to(l, to, BIN_UNKNOWN);
	forget_holes(l);
}

/* Moves saving out of the steps of the attempt, which it was spent as. */
void ledger_spend_saving(struct ledger *l)
{
	int64_t ms = l->steps_ms - (int64_t)step_rate_ms(l->fastest, (double)l->made);

	if (ms > l->saving_ms)
		ms = l->saving_ms;
	if (ms <= 0)
		return;
	held_move(l, ms, BIN_STEPS, BIN_CHECKPOINT);
	l->steps_ms -= ms;
	l->saving_ms -= ms;
}

/* Moves up to `ms` of `*part`, the attempt's share of a bin, to BIN_JIT: compiling that was
 * reported after its time had been put elsewhere. Returns the rest of `ms`. */
static int64_t move_to_jit(struct ledger *l, int64_t ms, int64_t *part, enum ledger_bin from)
{
	int64_t taken = ms < *part ? ms : *part;

	held_move(l, taken, from, BIN_JIT);
	*part -= taken;
	return ms - taken;
}

void ledger_spend_found_jit(struct ledger *l, int64_t ms)
{
	ms = move_to_jit(l, ms, &l->steps_ms, BIN_STEPS);
	ms = move_to_jit(l, ms, &l->again_ms, BIN_REPLAYED);
	move_to_jit(l, ms, &l->first_ms, l->resumed ? BIN_RESTORE : BIN_SETUP);
	/* The steps were faster than they looked. */
	if (l->made > 0 && (double)l->steps_ms < step_rate_ms(l->fastest, (double)l->made))
		l->fastest = step_rate_of((double)l->made, (double)l->steps_ms);
}

/* Spends the compiling in a stretch of training that ends at `to`. Some may also lie behind it,
 * or before it. */
static void spend_jit(struct ledger *l, struct utc to)
{
	int64_t mark = l->mark.ms, behind;

	ledger_spend(l, l->jit_ms, to, BIN_JIT);
	l->jit_ms -= l->mark.ms - mark;
	behind = l->jit_at.ms > to.ms ? l->jit_at.ms - to.ms : 0;
	if (l->jit_ms > behind) {
		ledger_spend_found_jit(l, l->jit_ms - behind);
		l->jit_ms = behind;
	}
}

void ledger_spend_training(struct ledger *l, struct utc to, enum ledger_bin rest)
{
	spend_jit(l, to);
	spend_seen_to(l, to, rest);
	ledger_spend_saving(l);
}

/* Notes the speed of steps beside which nothing else goes on. */
static void keep_fastest_rate(struct ledger *l, struct step_rate rate)
{
	if (l->stage == STAGE_STEPS && !l->saving_reported && step_rate_is_faster(rate, l->fastest))
		l->fastest = rate;
	l->saving_reported = false;
}

/* Spends time on the steps up to `step`; steps that an earlier attempt reached are replayed. */
void ledger_spend_steps(struct ledger *l, struct utc to, int64_t step)
{
	int64_t made = step - l->step, again = l->reached - l->step, left;
	struct step_rate rate;
	bool whole; /* no part of it is unobserved */

	spend_jit(l, to);
	left = ledger_hole_seen_ms(l, to);
	rate = step_rate_of((double)made, (double)left);
	whole = left == to.ms - l->mark.ms;
	if (again > made)
		again = made;
	if (again < 0)
		again = 0;
	spend_seen(l, (int64_t)step_rate_ms(rate, (double)again), to, BIN_REPLAYED);
	spend_seen_to(l, to, BIN_STEPS);
	if (made > again && left > 0) {
		l->made += made - again;
		if (whole)
			keep_fastest_rate(l, rate);
	}
	ledger_spend_saving(l);
}

/* Spends the time between two attempts: as backoff until that is over, then as `rest`. */
void ledger_spend_wait(struct ledger *l, struct utc to, enum ledger_bin rest)
{
	if (l->stage == STAGE_BACKOFF)
		ledger_spend_to(l, l->until.ms < to.ms ? l->until : to, BIN_BACKOFF);
	ledger_spend_to(l, to, rest);
}
