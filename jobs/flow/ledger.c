/* Time into bins: see ledger.h. */
#include "jobs/flow/ledger.h"

#include <string.h>

#include "jobs/flow/internal.h"
#include "jobs/flow/ledger_spend.h"
#include "jobs/flow/phase.h"

const char *const ledger_bin_names[BIN_COUNT] = {
	"queue",  "provision", "pull",     "setup", "health",     "precompile",
	"verify", "restore",   "steps",    "jit",   "checkpoint", "replayed",
	"hang",   "backoff",   "evaluate", "infer", "idle",       "unknown",
};

static bool is_under_way(const struct ledger *l)
{
	return l->stage >= STAGE_QUEUE && l->stage <= STAGE_STEPS;
}

/* Returns the bin that an open stretch looks like. */
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
	case STAGE_BACKOFF:
		return BIN_BACKOFF;
	default: /* no time is spent before a run is created or after its end */
		break;
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
	/* No driver is active before the first driver.took_over. */
	l->away_since = ev->at;
}

static void on_left(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (!is_under_way(l))
		ledger_spend_to(l, l->at, bin_of(l));
	l->away_since = l->at;
}

/* A driver that died recorded nothing later than the newest event of a driver. */
static void on_took_over(struct ledger *l)
{
	struct utc since = l->away_since.ms > 0 ? l->away_since : l->driven_at;

	l->away_since.ms = 0;
	l->back_at = l->at;
	if (!is_under_way(l)) {
		ledger_spend_to(l, since, bin_of(l));
		ledger_spend_wait(l, l->at, BIN_IDLE);
		return;
	}
	if (since.ms < l->mark.ms)
		since = l->mark;
	ledger_hole_add(l, since, l->at);
	if (l->unobserved_since.ms == 0)
		l->unobserved_since = since;
}

static void on_ended_run(struct ledger *l, const struct event *ev)
{
	(void)ev;
	ledger_spend_to(l, l->at, bin_of(l));
	l->stage = STAGE_OVER;
}

/* ---- an attempt ------------------------------------------------------------------ */

static void on_intended(struct ledger *l, const struct event *ev)
{
	if (is_under_way(l) && !l->salvaged)
		return;
	if (is_under_way(l)) { /* the attempt's end is lost */
		l->billed_ms += l->attempt_held_ms;
		l->paid_of[l->payer] += l->attempt_held_ms;
		l->held = false;
		l->released.ms = 0;
	}
	ledger_spend_to(l, l->at, l->stage == STAGE_BACKOFF ? BIN_BACKOFF : BIN_QUEUE);
	l->stage = STAGE_QUEUE;
	l->phase = ev->phase;
	l->payer = EVENT_HAS(ev, stage) ? ev->stage : ev->phase;
	l->attempt = ev->attempt;
	l->resumed = EVENT_HAS(ev, resumed_from);
	l->step = EVENT_HAS(ev, step) ? ev->step : 0;
	l->saved = l->ending = false;
	l->jit_reported_ms = l->jit_ms = 0;
	l->hole_count = 0;
	l->lost = false;
	l->saving_ms = l->steps_ms = l->made = l->again_ms = l->first_ms = 0;
	l->fastest = (struct step_rate){ 0 };
	l->saving_reported = false;
	l->unobserved_since.ms = 0;
	l->attempt_held_ms = 0;
}

static void on_lost(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (l->unobserved_since.ms == 0)
		l->unobserved_since = l->at;
	l->lost = true;
}

static void on_found(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (l->lost)
		ledger_hole_add(l, l->unobserved_since, l->at);
	l->unobserved_since.ms = 0;
	l->lost = false;
}

/* No job was there while no driver was active. */
static void on_missing(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (l->stage != STAGE_QUEUE)
		return;
	ledger_spend(l, l->at.ms - l->mark.ms - ledger_hole_seen_ms(l, l->at), l->at, BIN_IDLE);
	ledger_spend_to(l, l->at, BIN_QUEUE);
	l->hole_count = 0;
	if (l->stopping)
		l->stage = STAGE_DONE;
}

/* The queue ends when the engine says that the machines were there; the image is pulled until
 * the claim. */
static void end_queue(struct ledger *l, const struct event *ev, struct utc claimed)
{
	if (EVENT_HAS(ev, held)) {
		ledger_spend_to(l, flow_between(ev->held, l->mark, claimed), BIN_QUEUE);
		ledger_held_begin(l);
		ledger_spend_to(l, claimed, BIN_PULL);
	}
	ledger_spend_to(l, claimed, BIN_QUEUE);
}

static void on_claimed(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_QUEUE)
		return;
	end_queue(l, ev, EVENT_HAS(ev, since) ? flow_between(ev->since, l->mark, l->at) : l->at);
	l->stage = STAGE_SETUP;
	ledger_held_begin(l);
}

/* The check-up comes after the setup, and before the command. */
static void on_checked(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_SETUP || !EVENT_HAS(ev, since) || !EVENT_HAS(ev, finished))
		return;
	ledger_spend_to(l, flow_between(ev->since, l->mark, l->at), BIN_SETUP);
	ledger_spend_to(l, flow_between(ev->finished, l->mark, l->at), BIN_HEALTH);
}

static void on_started(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_SETUP)
		return;
	ledger_spend_to(l,
			EVENT_HAS(ev, started) ? flow_between(ev->started, l->mark, l->at) : l->at,
			BIN_SETUP);
	l->stage = STAGE_FIRST;
}

/* Steps went on in this time, as another observer saw (FIELD `since` to `until`). */
static void on_stretch(struct ledger *l, const struct event *ev)
{
	struct utc from = flow_between(ev->since, l->mark, l->at);
	struct utc to = flow_between(ev->until, l->mark, l->at);

	if (l->stage != STAGE_FIRST && l->stage != STAGE_STEPS)
		return;
	/* Time before the first step does not count as steps. */
	if (l->stage == STAGE_FIRST) {
		ledger_spend_training(l, from, bin_of(l));
		l->stage = STAGE_STEPS;
		if (EVENT_HAS(ev, first_step) && ev->first_step > l->step)
			l->step = ev->first_step;
	}
	ledger_hole_fill(l, from, to);
}

static void on_progress(struct ledger *l, const struct event *ev)
{
	/* The event may come long after the step, and a hang may lie between. */
	struct utc seen = EVENT_HAS(ev, since) ? flow_between(ev->since, l->mark, l->at) : l->at;

	if (l->stage < STAGE_SETUP || l->stage > STAGE_STEPS)
		return;
	if (l->stage != STAGE_STEPS) {
		ledger_spend_training(l, seen, bin_of(l));
		l->stage = STAGE_STEPS;
	}
	if (!EVENT_HAS(ev, step))
		ledger_spend_training(l, seen, BIN_STEPS);
	else if (ev->step > l->step)
		ledger_spend_steps(l, seen, ev->step);
	else
		return; /* the same step again is not progress: perhaps it hangs */
	l->unobserved_since.ms = 0;
	if (EVENT_HAS(ev, step))
		l->step = ev->step;
}

/* Returns the duration that an event reports; 0: none that can be. */
static int64_t reported_ms(const struct event *ev)
{
	if (!EVENT_HAS(ev, seconds) || !(ev->seconds > 0 && ev->seconds < 1e9))
		return 0;
	return (int64_t)(ev->seconds * 1000);
}

static void on_jit(struct ledger *l, const struct event *ev)
{
	int64_t ms = reported_ms(ev), open = l->at.ms - l->mark.ms;

	if (ms <= l->jit_reported_ms)
		return;
	l->jit_ms += ms - l->jit_reported_ms;
	l->jit_reported_ms = ms;
	l->jit_at = l->at;
	/* The compiling was over when it was reported. */
	if (l->jit_ms > open) {
		ledger_spend_found_jit(l, l->jit_ms - open);
		l->jit_ms = open;
	}
}

static void on_checkpoint(struct ledger *l, const struct event *ev)
{
	l->saved = true;
	l->saving_reported = true;
	/* Once the attempt is to end, all that is left counts as saving. */
	if (l->ending)
		return;
	l->saving_ms += reported_ms(ev);
	ledger_spend_saving(l);
}

/* A training that was told to end saves first. */
static void on_end_requested(struct ledger *l)
{
	if (l->ending || !flow_phases[l->phase].drains ||
	    (l->stage != STAGE_FIRST && l->stage != STAGE_STEPS))
		return;
	if (l->unobserved_since.ms == 0)
		ledger_spend_training(l, l->at, bin_of(l));
	l->ending = true;
}

/* ---- the end of an attempt --------------------------------------------------------- */

/* Time until which the machines of an attempt worked, as far as can be known: a driver that came
 * later learns the end from the agent. */
static struct utc end_of(const struct ledger *l, const struct event *ev)
{
	struct utc finished = l->at;

	if (EVENT_HAS(ev, finished))
		finished = flow_between(ev->finished, l->mark, l->at);
	return finished.ms < l->back_at.ms ? finished : l->at;
}

static void spend_tail(struct ledger *l, const struct event *ev, struct utc end)
{
	int64_t hang = EVENT_HAS(ev, hang) ? ev->hang : 0;
	struct utc seen = end;
	enum ledger_bin bin = bin_of(l);

	if (l->stage == STAGE_QUEUE) {
		end_queue(l, ev, end);
		return;
	}
	if (l->stage == STAGE_FIRST && flow_phases[l->phase].reads_steps && !l->ending)
		bin = ev->class == CLASS_NONE || l->saved ? BIN_STEPS : BIN_UNKNOWN;
	if (hang > 0)
		seen.ms = hang < end.ms - l->mark.ms ? end.ms - hang : l->mark.ms;
	else if (!EVENT_HAS(ev, finished) && l->unobserved_since.ms > 0)
		seen = flow_between(l->unobserved_since.ms, l->mark, end);
	if (flow_phases[l->phase].reads_steps)
		ledger_spend_training(l, seen, bin);
	ledger_spend_to(l, seen, bin);
	ledger_spend_to(l, end, hang > 0 ? BIN_HANG : BIN_UNKNOWN);
}

static void on_ended(struct ledger *l, const struct event *ev)
{
	if (!is_under_way(l))
		return;
	if (EVENT_HAS(ev, released)) {
		l->released.ms = ev->released;
		ledger_held_cut(l, bin_of(l));
	}
	spend_tail(l, ev, end_of(l, ev));
	if (EVENT_HAS(ev, released))
		ledger_spend_to(l, flow_between(ev->released, l->mark, l->at), BIN_IDLE);
	ledger_held_end(l, ev);
	ledger_spend_to(l, l->at, BIN_IDLE);
	if (l->step > l->reached) /* only a training has steps */
		l->reached = l->step;
	l->until = l->at;
	if (l->phase == PHASE_PRECOMPILE && ev->class == CLASS_COMPILE)
		l->stage = STAGE_VERIFY;
	else if (ev->class != CLASS_NONE)
		l->stage = STAGE_BACKOFF;
	else
		l->stage = l->phase == PHASE_PRECOMPILE ? STAGE_VERIFY : STAGE_DONE;
}

/* Waiting for another run's work counts as waiting for machines does: as queue. */
static void on_key(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (l->stage != STAGE_READY && l->stage != STAGE_BACKOFF)
		return;
	ledger_spend_wait(l, l->at, BIN_QUEUE);
	l->stage = STAGE_READY;
}

static void on_chosen(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (!is_under_way(l))
		ledger_spend_wait(l, l->at, BIN_RESTORE);
}

/* The driver's work between two phases counts as verifying, and judging as evaluation. */
static void on_candidate(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (!is_under_way(l))
		ledger_spend_wait(l, l->at, BIN_VERIFY);
}

static void on_judged(struct ledger *l, const struct event *ev)
{
	(void)ev;
	if (!is_under_way(l))
		ledger_spend_wait(l, l->at, BIN_EVALUATE);
}

static void on_retry(struct ledger *l, const struct event *ev)
{
	l->until.ms = ev->until;
}

/* The cache of a later stage is looked at after the attempt of the stage before. */
static void on_cache(struct ledger *l, const struct event *ev)
{
	if (l->stage != STAGE_CHECK && l->stage != STAGE_VERIFY &&
	    (l->stage != STAGE_DONE || ev->kind != EV_CACHE_CHECKED))
		return;
	ledger_spend_to(l, l->at, BIN_VERIFY);
	l->stage = STAGE_READY;
}

/* ---- taking in events -------------------------------------------------------------- */

/* Nobody can say any more what the time since the last good event was spent on. */
static void on_salvaged(struct ledger *l, const struct event *ev)
{
	(void)ev;
	ledger_spend_to(l, l->at, BIN_UNKNOWN);
	l->hole_count = 0;
	l->salvaged = true;
}

static void on_settled(struct ledger *l, const struct event *ev)
{
	(void)ev;
	l->salvaged = false;
}

static void on_end_event(struct ledger *l, const struct event *ev)
{
	if (ev->kind == EV_JIT_EXCEEDED
		    ? ev->on_exceed == JIT_WARN
		    : ev->kind == EV_LIMIT_REACHED && ev->limit == LIMIT_UNREACHABLE)
		return;
	on_end_requested(l);
	l->stopping |= ev->kind == EV_REQUEST_STOP || ev->kind == EV_LIMIT_REACHED;
}

static void on_compiling(struct ledger *l, const struct event *ev)
{
	if (l->phase == PHASE_PRECOMPILE && ev->attempt == l->attempt)
		l->unobserved_since.ms = 0;
}

/* Handler of each event; NULL: it spends no time. */
static void (*const handlers[EV_COUNT])(struct ledger *l, const struct event *ev) = {
	[EV_DRIVER_LEFT] = on_left,
	[EV_CACHE_CHECKED] = on_cache,
	[EV_CACHE_VERIFIED] = on_cache,
	[EV_CACHE_CLAIMED] = on_key,
	[EV_CACHE_WAITING] = on_key,
	[EV_CHECKPOINT_CHOSEN] = on_chosen,
	[EV_ATTEMPT_INTENDED] = on_intended,
	[EV_ATTEMPT_MISSING] = on_missing,
	[EV_ATTEMPT_CLAIMED] = on_claimed,
	[EV_HEALTH_CHECKED] = on_checked,
	[EV_ATTEMPT_STARTED] = on_started,
	[EV_ATTEMPT_LOST] = on_lost,
	[EV_ATTEMPT_FOUND] = on_found,
	[EV_ATTEMPT_ENDED] = on_ended,
	[EV_ATTEMPT_KEPT] = ledger_held_kept,
	[EV_TRAIN_STRETCH] = on_stretch,
	[EV_TRAIN_PROGRESS] = on_progress,
	[EV_COMPILE_PROGRESS] = on_compiling,
	[EV_JIT_COMPILED] = on_jit,
	[EV_CHECKPOINT_COMPLETE] = on_checkpoint,
	[EV_RETRY_SCHEDULED] = on_retry,
	[EV_REQUEST_STOP] = on_end_event,
	[EV_REQUEST_DRAIN] = on_end_event,
	[EV_LIMIT_REACHED] = on_end_event,
	[EV_JIT_EXCEEDED] = on_end_event,
	[EV_RUN_ENDED] = on_ended_run,
	[EV_RUN_PAUSED] = on_left,
	[EV_CANDIDATE_CHOSEN] = on_candidate,
	[EV_GATE_JUDGED] = on_judged,
	[EV_JOURNAL_SALVAGED] = on_salvaged,
	[EV_JOURNAL_SETTLED] = on_settled,
};

/* True for an event of another attempt than the current one, which is ignored. */
static bool is_stale(const struct ledger *l, const struct event *ev)
{
	switch (ev->kind) {
	case EV_ATTEMPT_MISSING:
	case EV_ATTEMPT_CLAIMED:
	case EV_HEALTH_CHECKED:
	case EV_ATTEMPT_STARTED:
	case EV_ATTEMPT_LOST:
	case EV_ATTEMPT_FOUND:
	case EV_ATTEMPT_ENDED:
		return ev->phase != l->phase || ev->attempt != l->attempt;
	case EV_TRAIN_STRETCH:
	case EV_TRAIN_PROGRESS:
	case EV_JIT_COMPILED:
	case EV_JIT_EXCEEDED:
	case EV_CHECKPOINT_COMPLETE:
		return !flow_phases[l->phase].reads_steps || ev->attempt != l->attempt;
	case EV_RETRY_SCHEDULED:
		return ev->phase != l->phase;
	default:
		return false;
	}
}

/* Somebody else than the driver may have written it, also where no driver was there. */
static bool is_request(enum event_kind kind)
{
	return kind == EV_REQUEST_STOP || kind == EV_REQUEST_DRAIN;
}

void ledger_add(struct ledger *l, const struct event *ev)
{
	if ((unsigned)ev->kind >= EV_COUNT ||
	    (ev->present & event_rows[ev->kind].required) != event_rows[ev->kind].required)
		return;
	if (ev->kind == EV_RUN_CREATED)
		on_created(l, ev);
	if (l->stage == STAGE_NONE || l->stage == STAGE_OVER)
		return;
	if (ev->at.ms > l->at.ms)
		l->at = ev->at;
	if (ev->kind == EV_DRIVER_TOOK_OVER)
		on_took_over(l);
	else if (handlers[ev->kind] && !is_stale(l, ev))
		handlers[ev->kind](l, ev);
	if (!is_request(ev->kind))
		l->driven_at = l->at;
}

/* Closes the open stretch as what it looks like, and as unknown from when it was not observed. */
static void close_open(struct ledger *l)
{
	struct utc seen = l->at;

	if (l->away_since.ms > 0 && !is_under_way(l)) {
		ledger_spend_wait(l, l->at, BIN_IDLE);
		return;
	}
	if (l->away_since.ms > 0)
		seen = earlier(seen, l->away_since);
	if (l->lost)
		seen = earlier(seen, l->unobserved_since);
	if (is_under_way(l) && flow_phases[l->phase].reads_steps && l->stage != STAGE_QUEUE)
		ledger_spend_training(l, seen, bin_of(l));
	ledger_spend_to(l, seen, bin_of(l));
	ledger_spend_to(l, l->at, BIN_UNKNOWN);
}

void ledger_undriven(struct ledger *ledger)
{
	if (ledger->away_since.ms == 0 && ledger->stage != STAGE_NONE &&
	    ledger->stage != STAGE_OVER)
		ledger->away_since = ledger->driven_at;
}

struct utc ledger_unobserved_since(const struct ledger *ledger)
{
	struct utc none = { 0 };

	if (ledger->stage == STAGE_NONE || ledger->stage == STAGE_OVER)
		return none;
	if (ledger->away_since.ms > 0)
		return ledger->away_since;
	return ledger->lost ? ledger->unobserved_since : none;
}

void ledger_at(const struct ledger *ledger, struct utc now, struct ledger_view *ret)
{
	struct ledger open = *ledger;

	if (open.stage != STAGE_NONE && open.stage != STAGE_OVER) {
		if (now.ms > open.at.ms)
			open.at = now;
		close_open(&open);
	}
	memset(ret, 0, sizeof *ret);
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		ret->ms[bin] = open.ms[bin];
		ret->held_ms[bin] = open.held_ms[bin];
		ret->total_ms += open.ms[bin];
		ret->held_total_ms += open.held_ms[bin];
	}
	ledger_held_view(&open, ret);
}
