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
static bool is_found_again(const struct flow *f, const struct event *ev)
{
	return f->unsettled && flow_phases[ev->phase].has_jobs &&
	       ev->attempt > f->attempts[ev->phase];
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
	return flow_needs_cache(&f->policy, f->stage) && ev->verdict != CACHE_WARM;
}

/* True if graphs that were proved are not there any more. */
static bool lost_graphs(const struct flow *f, const struct event *ev)
{
	return f->cache_proved && is_cold(f, ev);
}

static bool is_warm(const struct flow *f, const struct event *ev)
{
	(void)f;
	return ev->verdict == CACHE_WARM;
}

/* True if another run has filled the cache meanwhile. */
static bool is_warm_now(const struct flow *f, const struct event *ev)
{
	return !f->compile_forced && is_warm(f, ev);
}

static bool went_well(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && ev->class == CLASS_NONE;
}

/* True if the attempt ended well and all that was asked of its phase is done. A run that is to end
 * begins no other phase. */
static bool did_stage(const struct flow *f, const struct event *ev)
{
	return went_well(f, ev) && f->stop_cause != STOP_OUTPUT_INVALID &&
	       (!flow_phases[f->phase].has_tasks ||
		f->tasks_done >= f->policy.stages[f->phase].tasks) &&
	       (!f->stop_requested || flow_next_state(f) == FLOW_ENDING);
}

/* A candidate is chosen before the cache of a stage is looked at, never before the training. */
static bool is_choosing(const struct flow *f, const struct event *ev)
{
	(void)ev;
	return f->state > FLOW_TRAIN || f->stage != PHASE_TRAIN;
}

static bool is_candidate(const struct flow *f, const struct event *ev)
{
	return is_choosing(f, ev) && EVENT_HAS(ev, url) && strlen(ev->url) < FLOW_URL_MAX;
}

/* True for a task that counts: each one once. */
static bool is_new_task(const struct flow *f, const struct event *ev)
{
	return ev->phase == f->phase && ev->index >= 0 &&
	       ev->index < f->policy.stages[f->phase].tasks && ev->index < FLOW_TASKS_MAX &&
	       !flow_task_is_done(f, ev->index);
}

static bool is_of_candidate(const struct flow *f, const struct event *ev)
{
	return f->candidate[0] != '\0' && strcmp(ev->candidate, f->candidate) == 0;
}

/* True for what was judged of exactly this candidate, against exactly the version that the run was
 * given: the pointer may move from there alone. */
static bool is_verdict(const struct flow *f, const struct event *ev)
{
	return is_of_candidate(f, ev) && ev->generation == f->policy.generation;
}

/* A gate that only advises lets everything pass. */
static bool lets_pass(const struct flow *f, const struct event *ev)
{
	return is_verdict(f, ev) && (ev->passed || f->policy.gate_advises);
}

/* True for a promotion of what was judged, from the entry that it was compared with. */
static bool is_promotion(const struct flow *f, const struct event *ev)
{
	return strcmp(ev->url, f->candidate) == 0 && ev->generation == f->policy.generation + 1;
}

static bool is_promoting(const struct flow *f, const struct event *ev)
{
	(void)ev;
	return f->promoting;
}

static bool is_pause(const struct flow *f, const struct event *ev)
{
	return flow_is_past(f, ev->phase);
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

/* True once for a compiler: the cache would be no better after a second time. */
static bool is_other_compiler(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && EVENT_HAS(ev, changed) && EVENT_HAS(ev, signature) &&
	       flow_needs_cache(&f->policy, f->phase) && !f->stop_requested &&
	       ev->class == CLASS_COMPILE && strlen(ev->signature) < FLOW_ID_MAX &&
	       strcmp(ev->signature, f->other_compiler) != 0;
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

static bool may_end(const struct flow *f, const struct event *ev)
{
	(void)ev;
	return !f->promoting;
}

static bool may_end_at_limit(const struct flow *f, const struct event *ev)
{
	return may_end(f, ev) && ends_at_limit(f, ev);
}

static bool goes_on(const struct flow *f, const struct event *ev)
{
	(void)ev;
	return !f->stop_requested;
}

/* ---- the table --------------------------------------------------------------- */

enum {
	TO_SAME = FLOW_STATE_COUNT, /* the state stays */
	TO_PHASE,                   /* the state of the flow's phase */
	TO_NEXT,                    /* the next state that the run asks for */
	TO_STAGE,                   /* the state of the stage whose cache is proved */
	TO_PAUSED                   /* the state in which the run was paused */
};

struct rule {
	unsigned from;     /* set of flow states */
	unsigned attempts; /* set of attempt states */
	enum event_kind on;
	bool (*when)(const struct flow *f, const struct event *ev);
	void (*act)(struct flow *f, const struct event *ev);
	int to; /* a state, or TO_... */
	enum attempt_state to_attempt;
	const char *name;
};

#define IN(state)      (1U << FLOW_##state)
#define WITH(state)    (1U << ATTEMPT_##state)
#define WORKING        (IN(PRECOMPILE) | IN(TRAIN) | IN(EVALUATE) | IN(INFER))
#define STAGE          (IN(TRAIN) | IN(EVALUATE) | IN(INFER))
#define TASKS          (IN(EVALUATE) | IN(INFER))
#define TRAINED        (IN(PLANNED) | IN(PRECOMPILE) | TASKS | IN(GATE) | IN(PROMOTE))
#define BETWEEN_PHASES (IN(PLANNED) | IN(VERIFY) | IN(GATE) | IN(PROMOTE) | IN(PAUSED))
#define BEFORE_END     (IN(PLANNED) | WORKING | IN(VERIFY) | IN(GATE) | IN(PROMOTE))
#define ANYWHERE       (~0U)
#define BEGUN          (~(IN(NEW) | IN(ENDED)))
#define ANY            (~0U)
#define UNDER_WAY      (WITH(SUBMITTED) | WITH(RUNNING) | WITH(LOST))
#define OPEN           (WITH(INTENDED) | WITH(UNCERTAIN) | UNDER_WAY)
#define BETWEEN        (WITH(NONE) | WITH(FAILED) | WITH(BACKOFF))
#define STAY           TO_SAME, ATTEMPT_STATE_COUNT
#define NOW(state)     TO_SAME, ATTEMPT_##state
#define GO(state)      FLOW_##state, ATTEMPT_NONE

/* clang-format off */
static const struct rule rules[] = {
	{ IN(NEW), ANY, EV_RUN_CREATED, NULL, transition_creation, GO(PLANNED),
	  "a run begins with the question whether its cache is warm" },

	{ BEGUN, ANY, EV_JOURNAL_SALVAGED, knows_end, end_salvaged, GO(ENDING),
	  "a run whose end lies behind the damage of its journal has ended" },
	{ BEGUN, ANY, EV_JOURNAL_SALVAGED, NULL, transition_salvage, STAY,
	  "after damage nothing is submitted before it is known what is under way" },
	{ BEGUN, ANY, EV_ATTEMPT_INTENDED, is_found_again, transition_found_again,
	  TO_PHASE, ATTEMPT_UNCERTAIN,
	  "an attempt that the journal has lost is looked for on the engine" },
	{ BEGUN, ANY, EV_JOURNAL_SETTLED, NULL, transition_settlement, STAY,
	  "after damage the run goes on once it is known what is under way" },

	{ IN(PLANNED), ANY, EV_CACHE_CHECKED, is_cold, transition_cache, GO(PRECOMPILE),
	  "a cold cache is filled first" },
	{ IN(PLANNED), ANY, EV_CACHE_CHECKED, NULL, transition_cache, TO_STAGE, ATTEMPT_NONE,
	  "a warm cache, or none, needs no precompile job" },

	{ IN(PRECOMPILE), WITH(NONE) | WITH(BACKOFF), EV_CACHE_CLAIMED, NULL, transition_key, STAY,
	  "phase 1 is begun by the run that has the claim on its graph key" },
	{ IN(PRECOMPILE), WITH(NONE) | WITH(BACKOFF), EV_CACHE_WAITING, NULL, transition_key_waited, STAY,
	  "a run waits while another one precompiles for its graph key" },
	{ IN(PRECOMPILE), WITH(NONE) | WITH(BACKOFF), EV_CACHE_CHECKED, is_warm_now, transition_cache,
	  TO_STAGE, ATTEMPT_NONE,
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
	{ IN(PAUSED), ANY, EV_DRIVER_TOOK_OVER, NULL, transition_driver, TO_PAUSED, ATTEMPT_NONE,
	  "a paused run goes on with its next driver" },
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
	{ STAGE, WITH(NONE) | WITH(BACKOFF), EV_CACHE_CHECKED, lost_graphs, transition_lost_graphs,
	  GO(PRECOMPILE),
	  "graphs that are lost before another attempt are compiled again" },
	{ TASKS, WITH(NONE) | WITH(BACKOFF), EV_CACHE_CHECKED, is_warm, transition_look, STAY,
	  "the cache of a stage is looked at again before another attempt" },
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
	{ STAGE, OPEN, EV_ATTEMPT_ENDED, did_stage, end_stage, TO_NEXT, ATTEMPT_NONE,
	  "a stage succeeded: the next one begins, or the run ends" },
	{ IN(TRAIN), OPEN, EV_ATTEMPT_ENDED, made_room, transition_room, GO(PRECOMPILE),
	  "the training has made room: phase 1 runs again" },
	{ STAGE, OPEN, EV_ATTEMPT_ENDED, is_other_compiler, transition_other_compiler, GO(PRECOMPILE),
	  "a stage that would meet another compiler than phase 1 has its cache filled again" },
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

	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, is_complete, transition_verification, TO_STAGE, ATTEMPT_NONE,
	  "the cache is proved complete" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, may_recompile, transition_verification, GO(PRECOMPILE),
	  "an incomplete cache gets one more precompile" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, may_train_anyway, transition_verification, TO_STAGE, ATTEMPT_NONE,
	  "the spec says to train on an incomplete cache" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, of_precompile, end_unproved, GO(ENDING),
	  "the cache never became complete" },

	{ TRAINED, WITH(NONE) | WITH(BACKOFF), EV_CANDIDATE_CHOSEN, is_candidate, transition_candidate, STAY,
	  "the candidate is chosen once the training is over" },
	{ TRAINED, WITH(NONE) | WITH(BACKOFF), EV_CANDIDATE_CHOSEN, is_choosing, end_without_candidate, GO(ENDING),
	  "without a candidate there is nothing to evaluate, infer with or promote" },
	{ TASKS, ~(WITH(NONE) | WITH(INTENDED)), EV_TASK_DONE, is_new_task, transition_task, STAY,
	  "a task is done, and counts once" },
	{ IN(GATE), ANY, EV_GATE_JUDGED, lets_pass, end_stage, TO_NEXT, ATTEMPT_NONE,
	  "the gate lets the candidate pass" },
	{ IN(GATE), ANY, EV_GATE_JUDGED, is_verdict, end_gate, GO(ENDING),
	  "the gate says no" },
	{ IN(PROMOTE), ANY, EV_PROMOTE_INTENDED, is_promotion, transition_promoting, STAY,
	  "a promotion is intended before anything is copied" },
	{ IN(PROMOTE), ANY, EV_PROMOTE_DONE, is_promoting, end_promoted, GO(ENDING),
	  "the candidate is the promoted version" },
	{ IN(PROMOTE), ANY, EV_PROMOTE_OVERTAKEN, NULL, end_overtaken, GO(ENDING),
	  "another run's version came first" },
	{ BEFORE_END, WITH(NONE), EV_RUN_PAUSED, is_pause, transition_pause, GO(PAUSED),
	  "a run pauses between two phases" },

	{ BETWEEN_PHASES, ANY, EV_REQUEST_STOP, may_end, end_on_request, GO(ENDING),
	  "a stop between two phases ends the run" },
	{ WORKING, BETWEEN, EV_REQUEST_STOP, NULL, end_on_request, GO(ENDING),
	  "a stop between attempts ends the run" },
	/* The request may come between a submission and its record, so an intent
	 * is looked for before it is given up. */
	{ WORKING, WITH(INTENDED), EV_REQUEST_STOP, NULL, transition_stop, NOW(UNCERTAIN),
	  "a stop looks for what may just have been submitted" },
	{ WORKING, WITH(UNCERTAIN) | UNDER_WAY, EV_REQUEST_STOP, NULL, transition_stop, STAY,
	  "a stop waits for the end of the attempt" },

	{ BETWEEN_PHASES, ANY, EV_REQUEST_DRAIN, may_end, end_on_request, GO(ENDING),
	  "a drain between two phases ends the run" },
	{ WORKING, BETWEEN, EV_REQUEST_DRAIN, NULL, end_on_request, GO(ENDING),
	  "a drain between attempts ends the run" },
	{ WORKING, WITH(INTENDED), EV_REQUEST_DRAIN, goes_on, transition_stop, NOW(UNCERTAIN),
	  "a drain looks for what may just have been submitted" },
	{ WORKING, WITH(UNCERTAIN) | UNDER_WAY, EV_REQUEST_DRAIN, goes_on, transition_stop, STAY,
	  "a drain waits for the end of the attempt" },

	{ WORKING, WITH(UNCERTAIN) | WITH(LOST), EV_LIMIT_REACHED, is_unreachable, transition_leaving, STAY,
	  "a driver leaves what it cannot see for too long, and stops nothing" },
	{ BETWEEN_PHASES, ANY, EV_LIMIT_REACHED, may_end_at_limit, end_limited, GO(ENDING),
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

/* Tasks that are done stay done if phase 1 has to run again between two attempts. */
static void begin_tasks(struct flow *f)
{
	f->tasks_of = f->phase;
	f->tasks_done = 0;
	memset(f->tasks, 0, sizeof f->tasks);
}

/* Returns the state with which the next stage begins: its cache comes first. */
static enum flow_state begin_stage(struct flow *f)
{
	enum flow_state to = flow_next_state(f);
	enum phase phase = flow_phase_of_state(to);

	if (phase == PHASE_COUNT || !flow_phases[phase].has_jobs)
		return to;
	transition_stage(f, phase);
	return flow_needs_cache(&f->policy, phase) ? FLOW_PLANNED : to;
}

/* The only function that changes the state. */
static void enter(struct flow *f, const struct rule *rule)
{
	enum flow_state to = (enum flow_state)rule->to;

	if (rule->to_attempt != ATTEMPT_STATE_COUNT)
		f->attempt_state = rule->to_attempt;
	if (rule->to == TO_SAME)
		return;
	if (rule->to == TO_PHASE)
		to = flow_state_of_phase(f->phase);
	else if (rule->to == TO_PAUSED)
		to = f->paused;
	else if (rule->to == TO_STAGE)
		to = flow_state_of_phase(f->stage);
	else if (rule->to == TO_NEXT)
		to = begin_stage(f);
	if (to == f->state)
		return;
	f->state = to;
	if (!flow_has_attempts(f))
		return;
	/* A phase begins, or precompile goes on after an incomplete cache. */
	f->phase = flow_phase_of_state(to);
	if (flow_phases[f->phase].has_tasks && f->phase != f->tasks_of)
		begin_tasks(f);
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
