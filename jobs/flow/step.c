/*
 * The rules of the workflow: which event means what in which state. One table, read from the
 * top, first match wins; one function changes the state. An event that no row names changes
 * nothing, and a test lists it.
 */
#include <string.h>

#include "jobs/flow/flow.h"
#include "jobs/flow/internal.h"
#include "jobs/flow/rules.h"

/* ---- guards: pure questions ------------------------------------------------ */

static bool current(const struct flow *f, const struct event *ev)
{
	return ev->phase == f->phase && ev->attempt == f->attempt;
}

static bool next(const struct flow *f, const struct event *ev)
{
	return ev->phase == f->phase && ev->attempt == f->attempts[f->phase] + 1;
}

static bool of_phase(const struct flow *f, const struct event *ev)
{
	return ev->phase == f->phase;
}

/* True for an attempt that the journal has lost, and that was found again. */
static bool is_found_again(const struct flow *f, const struct event *ev, enum phase phase)
{
	return f->unsettled && ev->phase == phase && ev->attempt > f->attempts[phase];
}

static bool is_found_training(const struct flow *f, const struct event *ev)
{
	return is_found_again(f, ev, PHASE_TRAIN);
}

static bool is_found_precompile(const struct flow *f, const struct event *ev)
{
	return is_found_again(f, ev, PHASE_PRECOMPILE);
}

static bool knows_end(const struct flow *f, const struct event *ev)
{
	(void)f;
	return EVENT_HAS(ev, state) && EVENT_HAS(ev, exit_code);
}

static bool stopping(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && f->stop_requested;
}

static bool was_claimed(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && f->claimed;
}

/* Without a compile phase the cache cannot be cold. */
static bool is_cold(const struct flow *f, const struct event *ev)
{
	return f->policy.compiles && ev->verdict != CACHE_WARM;
}

/* True if graphs that were proved are not there any more. */
static bool lost_graphs(const struct flow *f, const struct event *ev)
{
	return f->cache_proved && is_cold(f, ev);
}

/* True if another run has filled the cache meanwhile. */
static bool is_warm_now(const struct flow *f, const struct event *ev)
{
	return !f->compile_forced && ev->verdict == CACHE_WARM;
}

static bool went_well(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && ev->class == CLASS_NONE;
}

static bool trained_well(const struct flow *f, const struct event *ev)
{
	return went_well(f, ev) && f->stop_cause != STOP_OUTPUT_INVALID;
}

static bool went_well_and_goes_on(const struct flow *f, const struct event *ev)
{
	return went_well(f, ev) && !f->stop_requested;
}

static bool was_stopped(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && (f->stop_requested || ev->class == CLASS_STOPPED);
}

/* The compiler refused graphs because of the program or its settings: a retry does not cure
 * that, but the verdict says which graphs and why. */
static bool is_rejection(const struct event *ev)
{
	return EVENT_HAS(ev, failed) && ev->failed > 0 &&
	       (ev->class == CLASS_USER_CODE || ev->class == CLASS_USER_CONFIG);
}

static bool failed_to_compile(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && (ev->class == CLASS_COMPILE || is_rejection(ev));
}

static bool is_last(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && retry_end_after(f, ev) != RETRY_GOES_ON;
}

/* True for the verdict on what the newest precompile attempt left. */
static bool of_precompile(const struct flow *f, const struct event *ev)
{
	return ev->attempt == f->attempts[PHASE_PRECOMPILE];
}

static bool is_complete(const struct flow *f, const struct event *ev)
{
	return of_precompile(f, ev) && ev->complete;
}

/* Once, and not if the failures that came with it have used up their budget, or if another try
 * would be in vain. */
static bool may_recompile(const struct flow *f, const struct event *ev)
{
	bool in_vain = EVENT_HAS(ev, action) && ev->action == ACTION_STOP;

	return of_precompile(f, ev) && !f->incomplete_retried && !in_vain &&
	       !(f->compile_failed && f->compile_last);
}

static bool may_train_anyway(const struct flow *f, const struct event *ev)
{
	return of_precompile(f, ev) && f->policy.train_on_incomplete;
}

static bool is_progress(const struct flow *f, const struct event *ev)
{
	return ev->attempt == f->attempt && ev->step > f->checkpoint_step &&
	       strlen(ev->url) < FLOW_URL_MAX;
}

static bool is_mismatch(const struct flow *f, const struct event *ev)
{
	return ev->attempt == f->attempt && ev->continuity == CONTINUITY_FAILED &&
	       f->policy.stop_on_mismatch && !f->stop_requested;
}

static bool of_training(const struct flow *f, const struct event *ev)
{
	return ev->attempt == f->attempt;
}

static bool ends_training(const struct flow *f, const struct event *ev)
{
	return of_training(f, ev) && !f->stop_requested;
}

static bool may_act_on_jit(const struct flow *f, const struct event *ev)
{
	return ends_training(f, ev) && !f->recompile;
}

static bool jit_stops(const struct flow *f, const struct event *ev)
{
	return may_act_on_jit(f, ev) && ev->on_exceed == JIT_STOP;
}

static bool jit_recompiles(const struct flow *f, const struct event *ev)
{
	return may_act_on_jit(f, ev) && ev->on_exceed == JIT_RECOMPILE;
}

/* True if the attempt ended so that phase 1 can run: stopped, or by a failure that a retry may
 * cure. */
static bool made_room(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && f->recompile && !f->stop_requested &&
	       (ev->class == CLASS_STOPPED || retry_end_after(f, ev) == RETRY_GOES_ON);
}

/* Not twice for the same compiler: the cache would be no better after that. */
static bool is_other_compiler(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && EVENT_HAS(ev, changed) && EVENT_HAS(ev, signature) &&
	       f->policy.compiles && !f->stop_requested && ev->class == CLASS_COMPILE &&
	       strlen(ev->signature) < FLOW_ID_MAX && strcmp(ev->signature, f->other_compiler) != 0;
}

/* True for a choice for the next attempt; the first attempt has nothing to choose. */
static bool is_choice(const struct flow *f, const struct event *ev)
{
	return EVENT_HAS(ev, url) == EVENT_HAS(ev, step) &&
	       (!EVENT_HAS(ev, url) ||
		(strlen(ev->url) < FLOW_URL_MAX && ev->step >= 0 && ev->step < f->below));
}

static bool is_unreachable(const struct flow *f, const struct event *ev)
{
	(void)f;
	return ev->limit == LIMIT_UNREACHABLE;
}

/* A limit that ends the run, unless the run is ending already. */
static bool ends_at_limit(const struct flow *f, const struct event *ev)
{
	return ev->limit != LIMIT_UNREACHABLE && ev->limit != LIMIT_NONE && !f->stop_requested;
}

static bool goes_on(const struct flow *f, const struct event *ev)
{
	(void)ev;
	return !f->stop_requested;
}

/* ---- the table --------------------------------------------------------------- */

struct rule {
	unsigned from;     /* set of flow states */
	unsigned attempts; /* set of attempt states */
	enum event_kind on;
	bool (*when)(const struct flow *f, const struct event *ev);
	void (*act)(struct flow *f, const struct event *ev);
	enum flow_state to;
	enum attempt_state to_attempt;
	const char *name;
};

#define IN(state)   (1U << FLOW_##state)
#define WITH(state) (1U << ATTEMPT_##state)
#define WORKING     (IN(PRECOMPILE) | IN(TRAIN))
#define ANYWHERE    (~0U)
#define BEGUN       (~(IN(NEW) | IN(ENDED)))
#define ANY         (~0U)
#define UNDER_WAY   (WITH(SUBMITTED) | WITH(RUNNING) | WITH(LOST))
#define OPEN        (WITH(INTENDED) | WITH(UNCERTAIN) | UNDER_WAY)
#define BETWEEN     (WITH(NONE) | WITH(FAILED) | WITH(BACKOFF))
#define STAY        FLOW_STATE_COUNT, ATTEMPT_STATE_COUNT
#define NOW(state)  FLOW_STATE_COUNT, ATTEMPT_##state
#define GO(state)   FLOW_##state, ATTEMPT_NONE

/* clang-format off */
static const struct rule rules[] = {
	{ IN(NEW), ANY, EV_RUN_CREATED, NULL, transition_creation, GO(PLANNED),
	  "a run begins with the question whether its cache is warm" },

	{ BEGUN, ANY, EV_JOURNAL_SALVAGED, knows_end, end_salvaged, GO(ENDING),
	  "a run whose end lies behind the damage of its journal has ended" },
	{ BEGUN, ANY, EV_JOURNAL_SALVAGED, NULL, transition_salvage, STAY,
	  "after damage nothing is submitted before it is known what is under way" },
	{ BEGUN, ANY, EV_ATTEMPT_INTENDED, is_found_training, transition_found_again,
	  FLOW_TRAIN, ATTEMPT_UNCERTAIN,
	  "a training that the journal has lost is looked for on the engine" },
	{ BEGUN, ANY, EV_ATTEMPT_INTENDED, is_found_precompile, transition_found_again,
	  FLOW_PRECOMPILE, ATTEMPT_UNCERTAIN,
	  "a precompile that the journal has lost is looked for on the engine" },
	{ BEGUN, ANY, EV_JOURNAL_SETTLED, NULL, transition_settlement, STAY,
	  "after damage the run goes on once it is known what is under way" },

	{ IN(PLANNED), ANY, EV_CACHE_CHECKED, is_cold, transition_cache, GO(PRECOMPILE),
	  "a cold cache is filled first" },
	{ IN(PLANNED), ANY, EV_CACHE_CHECKED, NULL, transition_cache, GO(TRAIN),
	  "a warm cache, or none, needs no precompile job" },

	{ IN(PRECOMPILE), WITH(NONE) | WITH(BACKOFF), EV_CACHE_CLAIMED, NULL, transition_key, STAY,
	  "phase 1 is begun by the run that has the claim on its graph key" },
	{ IN(PRECOMPILE), WITH(NONE) | WITH(BACKOFF), EV_CACHE_WAITING, NULL, transition_key_waited, STAY,
	  "a run waits while another one precompiles for its graph key" },
	{ IN(PRECOMPILE), WITH(NONE) | WITH(BACKOFF), EV_CACHE_CHECKED, is_warm_now, transition_cache,
	  GO(TRAIN),
	  "a cache that another run has filled needs no phase 1" },

	{ WORKING, WITH(NONE) | WITH(BACKOFF), EV_ATTEMPT_INTENDED,
	  next, transition_intent, NOW(INTENDED),
	  "an attempt is intended before it is submitted" },
	{ WORKING, WITH(INTENDED) | WITH(UNCERTAIN), EV_ATTEMPT_SUBMITTED,
	  current, transition_submission, NOW(SUBMITTED),
	  "the engine has the job" },
	{ WORKING, WITH(INTENDED), EV_ATTEMPT_UNCERTAIN, current, transition_unobserved, NOW(UNCERTAIN),
	  "a submission of unknown outcome is looked for" },
	{ WORKING, WITH(INTENDED), EV_DRIVER_TOOK_OVER, NULL, transition_driver, NOW(UNCERTAIN),
	  "a submission by the last driver is not certain" },
	{ ANYWHERE, ANY, EV_DRIVER_TOOK_OVER, NULL, transition_driver, STAY,
	  "a new driver goes on where the last one stood" },
	{ WORKING, WITH(UNCERTAIN), EV_ATTEMPT_MISSING, stopping, end_stopped, GO(ENDING),
	  "a stop finds that nothing was ever submitted" },
	{ WORKING, WITH(UNCERTAIN), EV_ATTEMPT_MISSING, current, NULL, NOW(INTENDED),
	  "a job that never reached the engine is submitted again, by the same name" },

	{ WORKING, WITH(SUBMITTED) | WITH(LOST), EV_ATTEMPT_CLAIMED,
	  current, transition_claim, NOW(RUNNING),
	  "the attempt holds the claim" },
	{ WORKING, WITH(RUNNING) | WITH(LOST), EV_ATTEMPT_STARTED, was_claimed, transition_start, STAY,
	  "the command of the attempt has begun" },
	{ WORKING, WITH(RUNNING) | WITH(LOST), EV_HEALTH_CHECKED, was_claimed, transition_health, STAY,
	  "the health of the attempt's nodes is known" },
	{ WORKING, WITH(SUBMITTED) | WITH(RUNNING), EV_ATTEMPT_LOST, current, transition_unobserved, NOW(LOST),
	  "an attempt that cannot be seen is lost, not failed" },
	{ WORKING, WITH(LOST), EV_ATTEMPT_FOUND, was_claimed, NULL, NOW(RUNNING),
	  "a running attempt is seen again" },
	{ WORKING, WITH(LOST), EV_ATTEMPT_FOUND, current, NULL, NOW(SUBMITTED),
	  "a waiting attempt is seen again" },
	{ IN(TRAIN), ~(WITH(NONE) | WITH(INTENDED)), EV_CHECKPOINT_COMPLETE,
	  is_progress, transition_checkpoint, STAY,
	  "a newer checkpoint is complete" },
	{ IN(TRAIN), WITH(NONE) | WITH(BACKOFF), EV_CHECKPOINT_CHOSEN, is_choice, transition_choice, STAY,
	  "a checkpoint is chosen before the attempt that goes on from it" },
	{ IN(TRAIN), WITH(NONE) | WITH(BACKOFF), EV_CACHE_CHECKED, lost_graphs, transition_lost_graphs,
	  GO(PRECOMPILE),
	  "graphs that are lost before another attempt are compiled again" },
	{ IN(TRAIN), UNDER_WAY, EV_TRAIN_CONTINUITY, is_mismatch, transition_mismatch, STAY,
	  "a training that ignored its checkpoint is stopped" },

	{ IN(TRAIN), UNDER_WAY, EV_TRAIN_PROGRESS, of_training, transition_forecast, STAY,
	  "each step forecasts the end of the training" },
	{ IN(TRAIN), UNDER_WAY, EV_RUN_AT_RISK, NULL, transition_risk, STAY,
	  "a limit that will be reached before the end is reported once" },
	{ IN(TRAIN), UNDER_WAY, EV_TRAIN_SPOILED, ends_training, transition_output_invalid, STAY,
	  "a training that computes nothing is stopped" },
	{ IN(TRAIN), UNDER_WAY, EV_JIT_COMPILED, of_training, transition_jit, STAY,
	  "graphs that a training had to compile are counted" },
	{ IN(TRAIN), UNDER_WAY, EV_JIT_EXCEEDED, jit_stops, transition_jit_stop, STAY,
	  "a training that compiles too much may save, and ends the run" },
	{ IN(TRAIN), UNDER_WAY, EV_JIT_EXCEEDED, jit_recompiles, transition_recompile, STAY,
	  "a training that compiles too much may save, and makes room for phase 1" },
	{ IN(TRAIN), UNDER_WAY, EV_JIT_EXCEEDED, of_training, transition_jit_reported, STAY,
	  "a training that compiles too much is reported once" },

	{ IN(PRECOMPILE), OPEN, EV_ATTEMPT_ENDED, went_well_and_goes_on, transition_success, GO(VERIFY),
	  "phase 1 ended well, so the cache is looked at" },
	{ IN(TRAIN), OPEN, EV_ATTEMPT_ENDED, trained_well, end_well, GO(ENDING),
	  "the training succeeded" },
	{ IN(TRAIN), OPEN, EV_ATTEMPT_ENDED, made_room, transition_room, GO(PRECOMPILE),
	  "the training has made room: phase 1 runs again" },
	{ IN(TRAIN), OPEN, EV_ATTEMPT_ENDED, is_other_compiler, transition_other_compiler, GO(PRECOMPILE),
	  "a training that would meet another compiler than phase 1 has its cache filled again" },
	{ WORKING, OPEN, EV_ATTEMPT_ENDED, was_stopped, end_stopped, GO(ENDING),
	  "the attempt was stopped" },
	{ IN(PRECOMPILE), OPEN, EV_ATTEMPT_ENDED, failed_to_compile, transition_compile_failure, GO(VERIFY),
	  "phase 1 reports that the compiler failed: the cache decides" },
	{ WORKING, OPEN, EV_ATTEMPT_ENDED, is_last, end_failed, GO(ENDING),
	  "the failure has no cure, or its budget is used up" },
	{ WORKING, OPEN, EV_ATTEMPT_ENDED, current, transition_failure, NOW(FAILED),
	  "the failure may be cured by another attempt" },
	{ WORKING, WITH(FAILED), EV_RETRY_SCHEDULED, of_phase, transition_retry, NOW(BACKOFF),
	  "the retry waits" },

	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, is_complete, transition_verification, GO(TRAIN),
	  "the cache is proved complete" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, may_recompile, transition_verification, GO(PRECOMPILE),
	  "an incomplete cache gets one more precompile" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, may_train_anyway, transition_verification, GO(TRAIN),
	  "the spec says to train on an incomplete cache" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, of_precompile, end_unproved, GO(ENDING),
	  "the cache never became complete" },

	{ IN(PLANNED) | IN(VERIFY), ANY, EV_REQUEST_STOP, NULL, end_on_request, GO(ENDING),
	  "a stop between two phases ends the run" },
	{ WORKING, BETWEEN, EV_REQUEST_STOP, NULL, end_on_request, GO(ENDING),
	  "a stop between attempts ends the run" },
	/* The request may come between a submission and its record, so an intent
	 * is looked for before it is given up. */
	{ WORKING, WITH(INTENDED), EV_REQUEST_STOP, NULL, transition_stop, NOW(UNCERTAIN),
	  "a stop looks for what may just have been submitted" },
	{ WORKING, WITH(UNCERTAIN) | UNDER_WAY, EV_REQUEST_STOP, NULL, transition_stop, STAY,
	  "a stop waits for the end of the attempt" },

	{ IN(PLANNED) | IN(VERIFY), ANY, EV_REQUEST_DRAIN, NULL, end_on_request, GO(ENDING),
	  "a drain between two phases ends the run" },
	{ WORKING, BETWEEN, EV_REQUEST_DRAIN, NULL, end_on_request, GO(ENDING),
	  "a drain between attempts ends the run" },
	{ WORKING, WITH(INTENDED), EV_REQUEST_DRAIN, goes_on, transition_stop, NOW(UNCERTAIN),
	  "a drain looks for what may just have been submitted" },
	{ WORKING, WITH(UNCERTAIN) | UNDER_WAY, EV_REQUEST_DRAIN, goes_on, transition_stop, STAY,
	  "a drain waits for the end of the attempt" },

	{ WORKING, WITH(UNCERTAIN) | WITH(LOST), EV_LIMIT_REACHED, is_unreachable, transition_leaving, STAY,
	  "a driver leaves what it cannot see for too long, and stops nothing" },
	{ IN(PLANNED) | IN(VERIFY), ANY, EV_LIMIT_REACHED, ends_at_limit, end_limited, GO(ENDING),
	  "a limit reached between two phases ends the run" },
	{ WORKING, BETWEEN, EV_LIMIT_REACHED, ends_at_limit, end_limited, GO(ENDING),
	  "a limit reached between attempts ends the run" },
	{ WORKING, WITH(INTENDED), EV_LIMIT_REACHED, ends_at_limit, transition_limit, NOW(UNCERTAIN),
	  "a limit looks for what may just have been submitted" },
	{ WORKING, WITH(UNCERTAIN) | UNDER_WAY, EV_LIMIT_REACHED, ends_at_limit, transition_limit, STAY,
	  "a limit lets the attempt save and end" },

	{ IN(ENDING), ANY, EV_RUN_ENDED, NULL, ends_record, GO(ENDED),
	  "the end is recorded" },
};
/* clang-format on */

#define RULE_COUNT ((int)(sizeof rules / sizeof rules[0]))

static bool matches(const struct rule *rule, const struct flow *f, const struct event *ev)
{
	return rule->on == ev->kind && (rule->from >> f->state & 1) != 0 &&
	       (rule->attempts >> f->attempt_state & 1) != 0 && (!rule->when || rule->when(f, ev));
}

int flow_rule_find(const struct flow *flow, const struct event *ev)
{
	if ((unsigned)ev->kind >= EV_COUNT || (unsigned)ev->phase >= PHASE_COUNT ||
	    (unsigned)ev->class >= CLASS_COUNT || (unsigned)ev->limit >= LIMIT_COUNT ||
	    (ev->present & event_rows[ev->kind].required) != event_rows[ev->kind].required)
		return -1;
	for (int i = 0; i < RULE_COUNT; i++)
		if (matches(&rules[i], flow, ev))
			return i;
	return -1;
}

int flow_rule_count(void)
{
	return RULE_COUNT;
}

const char *flow_rule_name(int rule)
{
	return rules[rule].name;
}

/* ---- applying an event ------------------------------------------------------- */

/* The only function that changes the state. */
static void enter(struct flow *f, const struct rule *rule)
{
	if (rule->to_attempt != ATTEMPT_STATE_COUNT)
		f->attempt_state = rule->to_attempt;
	if (rule->to == FLOW_STATE_COUNT || rule->to == f->state)
		return;
	f->state = rule->to;
	if (rule->to != FLOW_TRAIN && rule->to != FLOW_PRECOMPILE)
		return;
	/* A phase begins, or precompile goes on after an incomplete cache. */
	f->phase = rule->to == FLOW_TRAIN ? PHASE_TRAIN : PHASE_PRECOMPILE;
	f->attempt = f->attempts[f->phase];
}

void flow_apply(struct flow *flow, const struct event *ev)
{
	int found = flow_rule_find(flow, ev);

	if (ev->at.ms > flow->at.ms)
		flow->at = ev->at;
	/* Time is spent also on an event that changes nothing else. */
	if (found >= 0 || ev->kind != EV_RUN_CREATED)
		ledger_add(&flow->ledger, ev);
	if (found < 0)
		return;
	if (rules[found].act)
		rules[found].act(flow, ev);
	enter(flow, &rules[found]);
}
