/* Time into bins: see ledger.h. */
#include "jobs/flow/ledger.h"

#include <string.h>

#include "jobs/flow/inside.h"
#include "jobs/flow/ledger_held.h"

/* ---- spending ------------------------------------------------------------------ */

/* The only function that moves the mark: what it passes is in one bin. */
static void spend_to(struct ledger *l, struct utc to, enum ledger_bin bin)
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

static void spend(struct ledger *l, int64_t ms, struct utc limit, enum ledger_bin bin)
{
	int64_t left = limit.ms - l->mark.ms;

	spend_to(l, (struct utc){ l->mark.ms + (ms < left ? ms : left) }, bin);
}

/* What was spent as steps of the attempt, and was saving. */
static void find_saving(struct ledger *l)
{
	int64_t ms = l->steps_ms - (int64_t)((double)l->made * l->step_ms);

	if (ms > l->saving_ms)
		ms = l->saving_ms;
	if (ms <= 0)
		return;
	held_move(l, ms, BIN_STEPS, BIN_CHECKPOINT);
	l->steps_ms -= ms;
	l->saving_ms -= ms;
}

/* Compiling that was told after its time had been put elsewhere: up to `ms` of `*part`,
 * the attempt's share of a bin. What is left of `ms`. */
static int64_t take_jit(struct ledger *l, int64_t ms, int64_t *part, enum ledger_bin from)
{
	int64_t taken = ms < *part ? ms : *part;

	held_move(l, taken, from, BIN_JIT);
	*part -= taken;
	return ms - taken;
}

static void find_jit(struct ledger *l, int64_t ms)
{
	ms = take_jit(l, ms, &l->steps_ms, BIN_STEPS);
	ms = take_jit(l, ms, &l->again_ms, BIN_REPLAYED);
	take_jit(l, ms, &l->first_ms, l->resumed ? BIN_RESTORE : BIN_SETUP);
	/* The steps were faster than they looked. */
	if (l->made > 0 && (double)l->steps_ms < (double)l->made * l->step_ms)
		l->step_ms = (double)l->steps_ms / (double)l->made;
}

/* Of a stretch of training that ends at `to`: what compilers took. That may also lie
 * behind it, or before it. */
static void spend_jit(struct ledger *l, struct utc to)
{
	int64_t mark = l->mark.ms, behind;

	spend(l, l->jit_ms, to, BIN_JIT);
	l->jit_ms -= l->mark.ms - mark;
	behind = l->jit_at.ms > to.ms ? l->jit_at.ms - to.ms : 0;
	if (l->jit_ms > behind) {
		find_jit(l, l->jit_ms - behind);
		l->jit_ms = behind;
	}
	l->away_ms = 0;
}

static void spend_training(struct ledger *l, struct utc to, enum ledger_bin rest)
{
	spend_jit(l, to);
	spend_to(l, to, rest);
	find_saving(l);
}

/* How fast steps are where nothing else goes on. */
static void note_pace(struct ledger *l, int64_t ms, int64_t made)
{
	double pace = (double)ms / (double)made;

	if (l->stage == STAGE_STEPS && !l->saving_told && ms > 0 &&
	    (l->step_ms <= 0 || pace < l->step_ms))
		l->step_ms = pace;
	l->saving_told = false;
}

/* Steps up to `step`, of which an attempt before had made some. */
static void spend_steps(struct ledger *l, struct utc to, int64_t step)
{
	int64_t made = step - l->step, again = l->reached - l->step, left;

	spend_jit(l, to);
	left = to.ms - l->mark.ms;
	if (again > made)
		again = made;
	if (again < 0)
		again = 0;
	if (again > 0 && left > 0)
		spend(l, (int64_t)((double)left * ((double)again / (double)made)), to,
		      BIN_REPLAYED);
	spend_to(l, to, BIN_STEPS);
	if (made > again && left > 0) {
		l->made += made - again;
		note_pace(l, left, made);
	}
	find_saving(l);
}

/* Between two attempts: what a wait was for until its time was up, then `rest`. */
static void spend_wait(struct ledger *l, struct utc to, enum ledger_bin rest)
{
	if (l->stage == STAGE_BACKOFF)
		spend_to(l, l->until.ms < to.ms ? l->until : to, BIN_BACKOFF);
	spend_to(l, to, rest);
}

static bool is_under_way(const struct ledger *l)
{
	return l->stage >= STAGE_QUEUE && l->stage <= STAGE_STEPS;
}

/* What an open stretch looks like. */
static enum ledger_bin bin_of(const struct ledger *l)
{
	switch (l->stage) {
	case STAGE_CHECK:
	case STAGE_VERIFY:
	case STAGE_DONE:
		return BIN_VERIFY;
	case STAGE_READY:
	case STAGE_QUEUE:
		return BIN_QUEUE;
	case STAGE_SETUP:
		return BIN_SETUP;
	case STAGE_FIRST:
	case STAGE_STEPS:
		break;
	case STAGE_BACKOFF:
		return BIN_BACKOFF;
	case STAGE_NONE:
	case STAGE_OVER:
		return BIN_UNKNOWN;
	}
	switch (l->phase) {
	case PHASE_PRECOMPILE:
		return BIN_PRECOMPILE;
	case PHASE_EVALUATE:
		return BIN_EVALUATE;
	case PHASE_INFER:
		return BIN_INFER;
	default:
		break;
	}
	if (l->ending)
		return BIN_CHECKPOINT;
	if (l->stage == STAGE_STEPS)
		return BIN_STEPS;
	return l->resumed ? BIN_RESTORE : BIN_SETUP;
}

/* ---- the run and its drivers ---------------------------------------------------- */

static void on_created(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_NONE)
		return;
	l->begun = l->mark = l->at = ev->at;
	l->stage = STAGE_CHECK;
	l->reached = -1;
	/* Nobody drives it before the first driver.took_over. */
	l->away_since = ev->at;
}

static void on_left(struct ledger *l)
{
	if (!is_under_way(l))
		spend_to(l, l->at, bin_of(l));
	l->away_since = l->at;
}

/* `before` is the time of the event before: a driver that died said nothing later. */
static void on_took_over(struct ledger *l, struct utc before)
{
	struct utc since = l->away_since.ms > 0 ? l->away_since : before;

	l->away_since.ms = 0;
	l->back_at = l->at;
	if (!is_under_way(l)) {
		spend_to(l, since, bin_of(l));
		spend_wait(l, l->at, BIN_IDLE);
		return;
	}
	if (since.ms < l->mark.ms)
		since = l->mark;
	l->away_ms += l->at.ms - since.ms;
	if (l->unseen_since.ms == 0)
		l->unseen_since = since;
}

static void on_ended_run(struct ledger *l)
{
	spend_to(l, l->at, bin_of(l));
	l->stage = STAGE_OVER;
	l->held = false;
}

/* ---- an attempt ------------------------------------------------------------------ */

static void on_intended(struct ledger *l, const struct event *ev)
{
	if (is_under_way(l))
		return;
	spend_to(l, l->at, l->stage == STAGE_BACKOFF ? BIN_BACKOFF : BIN_QUEUE);
	l->stage = STAGE_QUEUE;
	l->phase = ev->phase;
	l->attempt = ev->attempt;
	l->resumed = EVENT_HAS(ev, resumed_from);
	l->step = EVENT_HAS(ev, step) ? ev->step : 0;
	l->saved = l->ending = false;
	l->jit_told_ms = l->jit_ms = l->away_ms = 0;
	l->saving_ms = l->steps_ms = l->made = l->again_ms = l->first_ms = 0;
	l->step_ms = 0;
	l->saving_told = false;
	l->unseen_since.ms = 0;
	l->attempt_held_ms = 0;
}

/* Nothing was there while nobody drove. */
static void on_missing(struct ledger *l)
{
	if (l->stage != STAGE_QUEUE)
		return;
	spend(l, l->away_ms, l->at, BIN_IDLE);
	spend_to(l, l->at, BIN_QUEUE);
	l->away_ms = 0;
}

/* The queue ends where the engine says that the machines were there; its image is brought
 * there until the claim. */
static void end_queue(struct ledger *l, const struct event *ev, struct utc claimed)
{
	if (EVENT_HAS(ev, held)) {
		spend_to(l, flow_between(ev->held, l->mark, claimed), BIN_QUEUE);
		l->held = true;
		spend_to(l, claimed, BIN_PULL);
	}
	spend_to(l, claimed, BIN_QUEUE);
}

static void on_claimed(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_QUEUE)
		return;
	end_queue(l, ev, EVENT_HAS(ev, since) ? flow_between(ev->since, l->mark, l->at) : l->at);
	l->stage = STAGE_SETUP;
	l->held = true;
}

/* It comes after what was set up, and before the command. */
static void on_checked(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_SETUP || !EVENT_HAS(ev, since) || !EVENT_HAS(ev, finished))
		return;
	spend_to(l, flow_between(ev->since, l->mark, l->at), BIN_SETUP);
	spend_to(l, flow_between(ev->finished, l->mark, l->at), BIN_HEALTH);
}

static void on_started(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_SETUP)
		return;
	spend_to(l, EVENT_HAS(ev, started) ? flow_between(ev->started, l->mark, l->at) : l->at,
		 BIN_SETUP);
	l->stage = STAGE_FIRST;
}

/* What went on while no driver looked were steps; the rest before the first one seen
 * was what comes before steps. */
static void on_first_progress(struct ledger *l, const struct event *ev, struct utc seen)
{
	struct utc unseen = { seen.ms - l->away_ms };
	enum ledger_bin bin = bin_of(l);

	if (unseen.ms < l->mark.ms)
		unseen = l->mark;
	spend_training(l, unseen, bin);
	if (EVENT_HAS(ev, step))
		spend_steps(l, seen, ev->step);
	else
		spend_training(l, seen, BIN_STEPS);
	l->stage = STAGE_STEPS;
}

static void on_progress(struct ledger *l, const struct event *ev)
{
	/* The event may come long after the step, and a hang may lie between. */
	struct utc seen = EVENT_HAS(ev, since) ? flow_between(ev->since, l->mark, l->at) : l->at;

	if (l->stage < STAGE_SETUP || l->stage > STAGE_STEPS)
		return;
	if (l->stage != STAGE_STEPS)
		on_first_progress(l, ev, seen);
	else if (!EVENT_HAS(ev, step))
		spend_training(l, seen, BIN_STEPS);
	else if (ev->step > l->step)
		spend_steps(l, seen, ev->step);
	else
		return; /* the same again is no progress: perhaps it hangs */
	l->unseen_since.ms = 0;
	if (EVENT_HAS(ev, step))
		l->step = ev->step;
}

static void on_jit(struct ledger *l, const struct event *ev)
{
	int64_t ms = EVENT_HAS(ev, seconds) && ev->seconds > 0 && ev->seconds < 1e9
			     ? (int64_t)(ev->seconds * 1000)
			     : 0;

	int64_t open = l->at.ms - l->mark.ms;

	if (ms <= l->jit_told_ms)
		return;
	l->jit_ms += ms - l->jit_told_ms;
	l->jit_told_ms = ms;
	l->jit_at = l->at;
	/* It was over when it was told. */
	if (l->jit_ms > open) {
		find_jit(l, l->jit_ms - open);
		l->jit_ms = open;
	}
}

static void on_checkpoint(struct ledger *l, const struct event *ev)
{
	l->saved = true;
	l->saving_told = true;
	/* Once it is to end, all that is left counts as saving. */
	if (l->ending || !EVENT_HAS(ev, seconds) || !(ev->seconds > 0) || ev->seconds >= 1e9)
		return;
	l->saving_ms += (int64_t)(ev->seconds * 1000);
	find_saving(l);
}

/* A training that was told to end saves first. */
static void on_end_wanted(struct ledger *l)
{
	if (l->ending || l->phase != PHASE_TRAIN ||
	    (l->stage != STAGE_FIRST && l->stage != STAGE_STEPS))
		return;
	if (l->unseen_since.ms == 0)
		spend_training(l, l->at, bin_of(l));
	l->ending = true;
}

/* ---- the end of an attempt --------------------------------------------------------- */

/* Up to when the machines of an attempt worked, as far as can be known: a driver that
 * came later finds the end by the agent's word. */
static struct utc end_of(const struct ledger *l, const struct event *ev)
{
	struct utc finished = l->at;

	if (EVENT_HAS(ev, finished))
		finished = flow_between(ev->finished, l->mark, l->at);
	return finished.ms < l->back_at.ms ? finished : l->at;
}

static void spend_tail(struct ledger *l, const struct event *ev, struct utc end)
{
	struct utc seen = end;
	enum ledger_bin bin = bin_of(l);

	if (l->stage == STAGE_QUEUE) {
		end_queue(l, ev, end);
		return;
	}
	if (l->stage == STAGE_FIRST && l->phase == PHASE_TRAIN && !l->ending)
		bin = ev->class == CLASS_NONE || l->saved ? BIN_STEPS : BIN_UNKNOWN;
	if (EVENT_HAS(ev, hang) && ev->hang > 0)
		seen.ms = ev->hang < end.ms - l->mark.ms ? end.ms - ev->hang : l->mark.ms;
	else if (!EVENT_HAS(ev, finished) && l->unseen_since.ms > 0)
		seen = flow_between(l->unseen_since.ms, l->mark, end);
	if (l->phase == PHASE_TRAIN)
		spend_training(l, seen, bin);
	spend_to(l, seen, bin);
	spend_to(l, end, EVENT_HAS(ev, hang) && ev->hang > 0 ? BIN_HANG : BIN_UNKNOWN);
}

static void on_ended(struct ledger *l, const struct event *ev)
{
	if (!is_under_way(l))
		return;
	if (EVENT_HAS(ev, released))
		l->released.ms = ev->released;
	spend_tail(l, ev, end_of(l, ev));
	if (EVENT_HAS(ev, released))
		spend_to(l, flow_between(ev->released, l->mark, l->at), BIN_IDLE);
	held_end(l, ev);
	spend_to(l, l->at, BIN_IDLE);
	if (l->phase == PHASE_TRAIN && l->step > l->reached)
		l->reached = l->step;
	l->until = l->at;
	if (l->phase == PHASE_PRECOMPILE && ev->class == CLASS_COMPILE)
		l->stage = STAGE_VERIFY;
	else if (ev->class != CLASS_NONE)
		l->stage = STAGE_BACKOFF;
	else
		l->stage = l->phase == PHASE_PRECOMPILE ? STAGE_VERIFY : STAGE_DONE;
}

/* Another run's work is waited for, as machines are: in the queue. */
static void on_key(struct ledger *l)
{
	if (l->stage != STAGE_READY && l->stage != STAGE_BACKOFF)
		return;
	spend_wait(l, l->at, BIN_QUEUE);
	l->stage = STAGE_READY;
}

static void on_retry(struct ledger *l, const struct event *ev)
{
	if (l->stage == STAGE_BACKOFF)
		l->until.ms = ev->until;
}

static void on_cache(struct ledger *l)
{
	if (l->stage != STAGE_CHECK && l->stage != STAGE_VERIFY)
		return;
	spend_to(l, l->at, BIN_VERIFY);
	l->stage = STAGE_READY;
}

/* ---- the door ---------------------------------------------------------------------- */

static bool wants_end(const struct event *ev)
{
	if (ev->kind == EV_JIT_EXCEEDED)
		return ev->on_exceed != JIT_WARN;
	return ev->kind != EV_LIMIT_REACHED || ev->limit != LIMIT_UNREACHABLE;
}

/* `before`: the time of the event before. */
static void take_in(struct ledger *l, const struct event *ev, struct utc before)
{
	switch (ev->kind) {
	case EV_DRIVER_TOOK_OVER:
		on_took_over(l, before);
		break;
	case EV_DRIVER_LEFT:
		on_left(l);
		break;
	case EV_CACHE_CHECKED:
	case EV_CACHE_VERIFIED:
		on_cache(l);
		break;
	case EV_CACHE_CLAIMED:
	case EV_CACHE_WAITING:
		on_key(l);
		break;
	case EV_CHECKPOINT_CHOSEN:
		if (!is_under_way(l))
			spend_wait(l, l->at, BIN_RESTORE);
		break;
	case EV_ATTEMPT_INTENDED:
		on_intended(l, ev);
		break;
	case EV_ATTEMPT_MISSING:
		on_missing(l);
		break;
	case EV_ATTEMPT_CLAIMED:
		on_claimed(l, ev);
		break;
	case EV_HEALTH_CHECKED:
		on_checked(l, ev);
		break;
	case EV_ATTEMPT_STARTED:
		on_started(l, ev);
		break;
	case EV_ATTEMPT_LOST:
		if (l->unseen_since.ms == 0)
			l->unseen_since = l->at;
		break;
	case EV_ATTEMPT_FOUND:
		l->unseen_since.ms = 0;
		break;
	case EV_ATTEMPT_ENDED:
		on_ended(l, ev);
		break;
	case EV_ATTEMPT_KEPT:
		held_kept(l, ev);
		break;
	case EV_TRAIN_PROGRESS:
		on_progress(l, ev);
		break;
	case EV_COMPILE_PROGRESS:
		if (l->phase == PHASE_PRECOMPILE && ev->attempt == l->attempt)
			l->unseen_since.ms = 0;
		break;
	case EV_JIT_COMPILED:
		on_jit(l, ev);
		break;
	case EV_CHECKPOINT_COMPLETE:
		on_checkpoint(l, ev);
		break;
	case EV_RETRY_SCHEDULED:
		on_retry(l, ev);
		break;
	case EV_REQUEST_STOP:
	case EV_REQUEST_DRAIN:
	case EV_LIMIT_REACHED:
	case EV_JIT_EXCEEDED:
		if (wants_end(ev))
			on_end_wanted(l);
		break;
	case EV_RUN_ENDED:
		on_ended_run(l);
		break;
	default:
		break;
	}
}

void ledger_add(struct ledger *l, const struct event *ev)
{
	struct utc before = l->at;

	if ((unsigned)ev->kind >= EV_COUNT ||
	    (ev->present & event_rows[ev->kind].required) != event_rows[ev->kind].required)
		return;
	if (ev->kind == EV_RUN_CREATED)
		on_created(l, ev);
	if (l->stage == STAGE_NONE || l->stage == STAGE_OVER)
		return;
	if (ev->at.ms > l->at.ms)
		l->at = ev->at;
	if (ledger_is_stale(l, ev))
		return;
	take_in(l, ev, before);
}

void ledger_at(const struct ledger *ledger, struct utc now, struct ledger_view *ret)
{
	struct ledger open = *ledger;

	if (open.stage != STAGE_NONE && open.stage != STAGE_OVER) {
		if (now.ms > open.at.ms)
			open.at = now;
		if (open.away_since.ms > 0 && !is_under_way(&open))
			spend_wait(&open, open.at, BIN_IDLE);
		else if (is_under_way(&open) && open.phase == PHASE_TRAIN &&
			 open.stage != STAGE_QUEUE)
			spend_training(&open, open.at, bin_of(&open));
		else
			spend_to(&open, open.at, bin_of(&open));
	}
	memset(ret, 0, sizeof *ret);
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		ret->ms[bin] = open.ms[bin];
		ret->held_ms[bin] = open.held_ms[bin];
		ret->total_ms += open.ms[bin];
		ret->held_total_ms += open.held_ms[bin];
	}
	held_view(&open, ret);
}
