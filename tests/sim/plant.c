/*
 * Bugs put in on purpose, at least one a rule. Each is a mistake that somebody
 * could make; the simulator is worth its time only as long as it notices them.
 */
#include "tests/sim/sim.h"

#include <string.h>

/* ---- the machine is wrong ------------------------------------------------------- */

static void second_attempt(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_LOST && flow->attempt_state == ATTEMPT_LOST)
		flow->attempt_state = ATTEMPT_NONE;
}

static void stop_forgets_job(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_REQUEST_STOP && flow->state == FLOW_TRAIN) {
		flow->state = FLOW_ENDING;
		flow->outcome = OUTCOME_STOPPED;
		flow->exit_code = 6;
		memcpy(flow->end_reason, "stopped", sizeof "stopped");
	}
}

static void stop_ignores_intent(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_REQUEST_STOP && flow->attempt_state == ATTEMPT_UNCERTAIN &&
	    flow->attempt > 0) {
		flow->state = FLOW_ENDING;
		flow->outcome = OUTCOME_STOPPED;
		flow->exit_code = 6;
		memcpy(flow->end_reason, "stopped", sizeof "stopped");
	}
}

static void takeover_submits_again(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_DRIVER_TOOK_OVER && flow->attempt_state == ATTEMPT_SUBMITTED)
		flow->attempt_state = ATTEMPT_INTENDED;
}

static void uncertain_submits_again(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_UNCERTAIN && flow->attempt_state == ATTEMPT_UNCERTAIN)
		flow->attempt_state = ATTEMPT_INTENDED;
}

static void train_unproved(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_CACHE_VERIFIED && !ev->complete && flow->state == FLOW_PRECOMPILE &&
	    flow->attempt_state == ATTEMPT_NONE) {
		flow->state = FLOW_TRAIN;
		flow->phase = PHASE_TRAIN;
		flow->attempt = flow->attempts[PHASE_TRAIN];
	}
}

static void exit_0_is_proof(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_ENDED && flow->state == FLOW_VERIFY) {
		flow->state = FLOW_TRAIN;
		flow->phase = PHASE_TRAIN;
		flow->attempt = 0;
		flow->attempt_state = ATTEMPT_NONE;
	}
}

static void forget_checkpoint(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_CHECKPOINT_CHOSEN)
		flow->checkpoint_step = -1;
}

static void retry_permission(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_ENDED && ev->class == CLASS_QUOTA_PERMISSION &&
	    flow->state == FLOW_ENDING) {
		flow->state = flow->phase == PHASE_TRAIN ? FLOW_TRAIN : FLOW_PRECOMPILE;
		flow->attempt_state = ATTEMPT_FAILED;
		flow->last_class = CLASS_UNKNOWN;
	}
}

static void retry_for_ever(struct flow *flow, const struct event *ev)
{
	(void)ev;
	flow->budget[PHASE_TRAIN].failures = 0;
}

static void capacity_counts(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_ENDED && ev->class == CLASS_CAPACITY &&
	    flow->state != FLOW_ENDED)
		flow->budget[flow->phase].failures++;
}

static void found_ignored(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_FOUND && ev->attempt == flow->attempt &&
	    (flow->attempt_state == ATTEMPT_RUNNING || flow->attempt_state == ATTEMPT_SUBMITTED))
		flow->attempt_state = ATTEMPT_LOST;
}

static void end_without_reason(struct flow *flow, const struct event *ev)
{
	(void)ev;
	flow->end_reason[0] = '\0';
}

static void second_counted_twice(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_TRAIN_PROGRESS && flow->ledger.stage == STAGE_STEPS &&
	    flow->ledger.mark.ms == ev->at.ms)
		flow->ledger.mark.ms -= SECOND;
}

static void backoff_costs(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_RETRY_SCHEDULED && flow->ledger.stage == STAGE_BACKOFF)
		flow->ledger.held = true;
}

static void same_cause_again(struct flow *flow, const struct event *ev)
{
	(void)ev;
	memset(flow->budget[flow->phase].causes, 0, sizeof flow->budget[flow->phase].causes);
}

static void compiler_forgotten(struct flow *flow, const struct event *ev)
{
	(void)ev;
	flow->other_compiler[0] = '\0';
}

static void other_compiler_trains(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_ENDED && EVENT_HAS(ev, changed) &&
	    flow->state == FLOW_PRECOMPILE) {
		flow->state = FLOW_TRAIN;
		flow->phase = PHASE_TRAIN;
		flow->attempt = flow->attempts[PHASE_TRAIN];
		flow->attempt_state = ATTEMPT_NONE;
	}
}

static void limit_of_old(struct flow *flow, const struct event *ev)
{
	/* As if the wait in the queue had begun with the run. */
	if (ev->kind == EV_ATTEMPT_SUBMITTED && flow->attempt_state == ATTEMPT_SUBMITTED)
		flow->submitted_at = flow->created;
}

static void stop_is_forgotten(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_LIMIT_REACHED)
		flow->stop_requested = false;
}

static void key_not_claimed(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_CACHE_CHECKED && ev->verdict == CACHE_COLD)
		flow->key_held = true;
}

static void waits_for_nobody(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_CACHE_WAITING)
		flow->key_held = true;
}

static void claim_outlives_driver(struct flow *flow, const struct event *ev)
{
	if (ev->kind == EV_DRIVER_TOOK_OVER && flow->state == FLOW_PRECOMPILE &&
	    flow->attempt_state == ATTEMPT_NONE)
		flow->key_held = true;
}

/* ---- the driver is wrong --------------------------------------------------------- */

static bool submit_before_intent(struct world *w, int who, struct effect *effect)
{
	enum failure_class class;

	(void)who;
	if (effect->kind == EFFECT_RECORD && effect->event.kind == EV_ATTEMPT_INTENDED)
		engine_submit(w, effect, &class);
	return false;
}

static bool no_second_look(struct world *w, int who, struct effect *effect)
{
	(void)w;
	(void)who;
	if (effect->kind == EFFECT_CLAIM_KEY)
		effect->recheck = false;
	return false;
}

static bool unknown_is_failed(struct world *w, int who, struct effect *effect)
{
	struct driver *d = &w->drivers[who];
	struct sight sight;

	if (effect->kind != EFFECT_WATCH)
		return false;
	engine_describe(w, effect->job, &sight);
	if (sight.seen)
		return false;
	d->pending = (struct event){ .kind = EV_ATTEMPT_ENDED };
	EVENT_SET(&d->pending, phase, effect->phase);
	EVENT_SET(&d->pending, attempt, effect->attempt);
	EVENT_SET(&d->pending, class, CLASS_UNKNOWN);
	d->has_pending = true;
	d->pending_is_record = false;
	d->maybe_written = false;
	return true;
}

/* ---- an event is wrong ------------------------------------------------------------- */

/* The newest that is not complete, NULL: none. */
static const struct checkpoint *unmarked(const struct world *w, enum phase phase)
{
	for (int i = w->checkpoint_count - 1; i >= 0; i--)
		if (!w->checkpoints[i].complete && w->checkpoints[i].phase == phase)
			return &w->checkpoints[i];
	return NULL;
}

static void resume_unmarked(struct world *w, int who, struct event *ev)
{
	const struct checkpoint *c = unmarked(w, PHASE_TRAIN);

	(void)who;
	if (ev->kind != EV_CHECKPOINT_CHOSEN || !c)
		return;
	EVENT_SET_STR(ev, url, c->url);
	EVENT_SET(ev, step, c->step);
}

static void resume_from_precompile(struct world *w, int who, struct event *ev)
{
	const struct checkpoint *c = unmarked(w, PHASE_PRECOMPILE);

	(void)who;
	if (ev->kind != EV_ATTEMPT_INTENDED || ev->phase != PHASE_TRAIN || !c)
		return;
	EVENT_SET_STR(ev, resumed_from, c->url);
	EVENT_SET(ev, step, c->step);
}

static void report_unmarked(struct world *w, int who, struct event *ev)
{
	(void)who;
	if (ev->kind != EV_TRAIN_PROGRESS)
		return;
	for (int i = w->checkpoint_count - 1; i >= 0; i--) {
		const struct checkpoint *c = &w->checkpoints[i];

		if (c->complete || c->phase != PHASE_TRAIN || c->attempt != ev->attempt)
			continue;
		*ev = (struct event){ .kind = EV_CHECKPOINT_COMPLETE, .at = ev->at };
		EVENT_SET(ev, attempt, c->attempt);
		EVENT_SET(ev, step, c->step);
		EVENT_SET_STR(ev, url, c->url);
		return;
	}
}

/* Takes the claim away, so that only its own jobs may run. */
static void takeover_fences(struct world *w, int who, struct event *ev)
{
	(void)who;
	if (ev->kind == EV_DRIVER_TOOK_OVER)
		for (int phase = 0; phase < PHASE_COUNT; phase++)
			if (w->claims[phase].taken)
				w->claims[phase].job = -1;
}

static void uncertain_is_submitted(struct world *w, int who, struct event *ev)
{
	(void)w;
	(void)who;
	if (ev->kind == EV_ATTEMPT_UNCERTAIN) {
		ev->kind = EV_ATTEMPT_SUBMITTED;
		ev->present &= event_rows[EV_ATTEMPT_SUBMITTED].allowed;
	}
}

const struct plant plants[] = {
	{ .name = "second-attempt",
	  .rule = 1,
	  .what = "a lost attempt is replaced",
	  .machine = second_attempt },
	{ .name = "claims-ignored",
	  .rule = 1,
	  .what = "a job that lost the claim runs on",
	  .claims_ignored = true },
	{ .name = "takeover-fences",
	  .rule = 1,
	  .what = "a new driver fences the attempt that runs well",
	  .event = takeover_fences },
	{ .name = "epochs-ignored",
	  .rule = 1,
	  .what = "a driver goes on although another has taken over",
	  .epochs_ignored = true },
	{ .name = "submit-before-intent",
	  .rule = 2,
	  .what = "a job is submitted before its intent is durable",
	  .driver = submit_before_intent },
	{ .name = "uncertain-submits-again",
	  .rule = 2,
	  .what = "a submission without an answer is repeated",
	  .machine = uncertain_submits_again },
	{ .name = "takeover-submits-again",
	  .rule = 2,
	  .what = "a new driver submits what the last one has submitted",
	  .machine = takeover_submits_again },
	{ .name = "stop-forgets-job",
	  .rule = 2,
	  .what = "a stop ends the run and leaves its job alone",
	  .machine = stop_forgets_job },
	{ .name = "stop-ignores-intent",
	  .rule = 2,
	  .what = "a stop takes what was not answered for what was not submitted",
	  .machine = stop_ignores_intent },
	{ .name = "train-unproved",
	  .rule = 3,
	  .what = "an incomplete cache is trained on",
	  .machine = train_unproved },
	{ .name = "exit-0-is-proof",
	  .rule = 3,
	  .what = "the exit code of phase 1 stands for the cache",
	  .machine = exit_0_is_proof },
	{ .name = "other-compiler-trains",
	  .rule = 3,
	  .what = "a training goes on with another compiler than that of the lock",
	  .machine = other_compiler_trains },
	{ .name = "resume-unmarked",
	  .rule = 4,
	  .what = "a retry starts from a partial checkpoint",
	  .event = resume_unmarked },
	{ .name = "marks-suffice",
	  .rule = 4,
	  .what = "a marked checkpoint is chosen without a look at what is left of it",
	  .marks_suffice = true },
	{ .name = "resume-from-precompile",
	  .rule = 4,
	  .what = "training starts from what phase 1 saved",
	  .event = resume_from_precompile },
	{ .name = "forget-checkpoint",
	  .rule = 4,
	  .what = "a retry starts from scratch although there is a checkpoint",
	  .machine = forget_checkpoint },
	{ .name = "retry-permission",
	  .rule = 5,
	  .what = "a permission error is retried",
	  .machine = retry_permission },
	{ .name = "retry-for-ever",
	  .rule = 5,
	  .what = "failures of training are not counted",
	  .machine = retry_for_ever },
	{ .name = "capacity-counts",
	  .rule = 5,
	  .what = "an attempt that got no machine counts as a failure",
	  .machine = capacity_counts },
	{ .name = "same-cause-again",
	  .rule = 5,
	  .what = "the same cause twice without progress is retried",
	  .machine = same_cause_again },
	{ .name = "compiler-forgotten",
	  .rule = 5,
	  .what = "phase 1 runs again and again for one and the same compiler",
	  .machine = compiler_forgotten },
	{ .name = "limit-forgotten",
	  .rule = 5,
	  .what = "a limit is reached and the run goes on",
	  .machine = stop_is_forgotten },
	{ .name = "found-ignored",
	  .rule = 5,
	  .what = "what was lost stays lost, and the run never ends",
	  .machine = found_ignored },
	{ .name = "end-without-reason",
	  .rule = 5,
	  .what = "a run ends and nobody knows why",
	  .machine = end_without_reason },
	{ .name = "unknown-is-failed",
	  .rule = 6,
	  .what = "a job that cannot be seen is taken for ended",
	  .driver = unknown_is_failed },
	{ .name = "apply-before-append",
	  .rule = 7,
	  .what = "an event is applied before it is durable",
	  .applies_first = true },
	{ .name = "limit-too-early",
	  .rule = 7,
	  .what = "a limit is journalled as reached and is not",
	  .machine = limit_of_old },
	{ .name = "report-unmarked",
	  .rule = 7,
	  .what = "a partial checkpoint is journalled as complete",
	  .event = report_unmarked },
	{ .name = "uncertain-is-submitted",
	  .rule = 7,
	  .what = "a submission without an answer is journalled as done",
	  .event = uncertain_is_submitted },
	{ .name = "second-counted-twice",
	  .rule = 8,
	  .what = "a second of the ledger is counted twice",
	  .machine = second_counted_twice },
	{ .name = "backoff-costs",
	  .rule = 8,
	  .what = "the time between attempts is paid for",
	  .machine = backoff_costs },
	{ .name = "key-not-claimed",
	  .rule = 9,
	  .what = "phase 1 begins and nobody asks who else is at it",
	  .machine = key_not_claimed },
	{ .name = "waits-for-nobody",
	  .rule = 9,
	  .what = "phase 1 begins although another run is at it",
	  .machine = waits_for_nobody },
	{ .name = "claim-outlives-driver",
	  .rule = 9,
	  .what = "a new driver takes the claim of the last one for its own",
	  .machine = claim_outlives_driver },
	{ .name = "no-second-look",
	  .rule = 9,
	  .what = "phase 1 runs although another run has just filled the cache",
	  .driver = no_second_look },
};
const size_t plant_count = sizeof plants / sizeof plants[0];

const struct plant *plant_find(const char *name)
{
	for (size_t i = 0; i < plant_count; i++)
		if (strcmp(plants[i].name, name) == 0)
			return &plants[i];
	return NULL;
}
