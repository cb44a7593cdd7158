/*
 * Effects that are due now. They follow from the state and the time alone, so a driver that
 * replayed the journal computes the same ones as a driver that did not.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/flow/flow.h"
#include "jobs/flow/internal.h"

static struct effect *add(struct effects *ret, enum effect_kind kind, const struct flow *flow)
{
	struct effect *effect = &ret->list[ret->count++];

	memset(effect, 0, sizeof *effect);
	effect->kind = kind;
	effect->phase = flow_phase_now(flow);
	effect->attempt = flow->attempt;
	effect->job = flow->job;
	return effect;
}

static struct event *add_record(struct effects *ret, const struct flow *flow, enum event_kind kind,
				struct utc now)
{
	struct effect *effect = add(ret, EFFECT_RECORD, flow);

	effect->event.kind = kind;
	effect->event.at = now;
	return &effect->event;
}

static int64_t fewer(int64_t workers)
{
	return workers > 3 ? workers / 2 : 1;
}

static int64_t workers_of(const struct flow *flow)
{
	return flow->stage == PHASE_TRAIN ? flow->policy.compile_workers
					  : flow->policy.stages[flow->stage].compile_workers;
}

/* True if cache and phase 1 are those of a stage that follows the training. */
static bool is_before_stage(const struct flow *flow)
{
	return flow->stage != PHASE_TRAIN;
}

static void effect_intent(const struct flow *flow, struct utc now, struct effects *ret)
{
	struct event *ev = add_record(ret, flow, EV_ATTEMPT_INTENDED, now);
	struct effect *effect = &ret->list[ret->count - 1];
	int64_t attempt = flow->attempts[flow->phase] + 1;

	flow_job_name(flow, flow->phase, attempt, effect->text[0]);
	flow_nonce(flow, flow->phase, attempt, effect->text[1]);
	effect->attempt = attempt;
	effect->job = effect->text[0];
	EVENT_SET(ev, phase, flow->phase);
	EVENT_SET(ev, attempt, attempt);
	EVENT_SET_STR(ev, job, effect->text[0]);
	EVENT_SET_STR(ev, nonce, effect->text[1]);
	EVENT_SET(ev, nodes, flow_nodes(&flow->policy, flow_served(flow, flow->phase)));
	if (is_before_stage(flow) && flow_phases[flow->phase].is_trial)
		EVENT_SET(ev, stage, flow->stage);
	if (flow_phases[flow->phase].has_tasks)
		EVENT_SET(ev, tasks, flow->policy.stages[flow->phase].tasks);
	if (flow->phase == PHASE_PRECOMPILE && flow->fewer_workers)
		EVENT_SET(ev, workers, fewer(workers_of(flow)));
	/* Phase 1 saves zeros: only the training resumes. */
	if (flow_phases[flow->phase].resumes && flow->checkpoint_step >= 0) {
		EVENT_SET_STR(ev, resumed_from, flow->checkpoint_url);
		EVENT_SET(ev, step, flow->checkpoint_step);
	}
}

static void effect_retry(const struct flow *flow, struct utc now, struct effects *ret)
{
	struct event *ev = add_record(ret, flow, EV_RETRY_SCHEDULED, now);
	struct effect *effect = &ret->list[ret->count - 1];
	int64_t delay = retry_wait_ms(flow);

	if (retry_rows[flow->last_class].counts)
		snprintf(effect->text[0], sizeof effect->text[0], "%s: failure %lld of %lld",
			 flow_class_names[flow->last_class],
			 (long long)flow->budget[flow->phase].failures,
			 (long long)flow->policy.retry_attempts);
	else
		snprintf(effect->text[0], sizeof effect->text[0], "%s: does not count",
			 flow_class_names[flow->last_class]);
	EVENT_SET(ev, phase, flow->phase);
	EVENT_SET(ev, delay, delay);
	EVENT_SET(ev, until, now.ms + delay);
	EVENT_SET(ev, action, retry_rows[flow->last_class].action);
	EVENT_SET_STR(ev, reason, effect->text[0]);
}

static void effect_end(const struct flow *flow, struct utc now, struct effects *ret)
{
	struct event *ev = add_record(ret, flow, EV_RUN_ENDED, now);

	EVENT_SET(ev, state, flow->outcome);
	EVENT_SET(ev, exit_code, flow->exit_code);
	if (flow->end_has_phase)
		EVENT_SET(ev, phase, flow->end_phase);
	if (flow->end_class != CLASS_NONE)
		EVENT_SET(ev, class, flow->end_class);
	EVENT_SET_STR(ev, reason, flow->end_reason);
	EVENT_SET_STR(ev, evidence, flow->end_evidence[0] ? flow->end_evidence : NULL);
	EVENT_SET_STR(ev, hint, flow->end_hint[0] ? flow->end_hint : NULL);
}

static void effect_limit(const struct flow *flow, enum run_limit limit, struct utc now,
			 struct effects *ret)
{
	struct event *ev = add_record(ret, flow, EV_LIMIT_REACHED, now);
	struct effect *effect = &ret->list[ret->count - 1];

	limit_text(flow, limit, effect->text[0], sizeof effect->text[0]);
	EVENT_SET(ev, limit, limit);
	EVENT_SET_STR(ev, reason, effect->text[0]);
}

/* The claim is taken again for each attempt of phase 1: much time can lie between two. A cache
 * that another run has proved since is as good as this run's own, but not if its manifest is in
 * doubt, nor after its verdict that the cache is not complete. */
static void effect_key(const struct flow *flow, struct effects *ret)
{
	add(ret, EFFECT_CLAIM_KEY, flow)->recheck =
		!flow->compile_forced && (flow->key_waited || !flow->precompiled);
}

/* A stage's command loads the candidate, in its phase 1 too. */
static bool needs_candidate(const struct flow *flow)
{
	return flow_phases[flow_served(flow, flow->phase)].has_tasks && !flow->candidate[0];
}

/* A cache that was proved may have lost graphs since the attempt before. That of a training is
 * looked at with its checkpoints. */
static bool must_look_again(const struct flow *flow)
{
	return flow_phases[flow->phase].has_tasks && flow->attempts[flow->phase] > 0 &&
	       flow->cache_proved && !flow->looked;
}

/* Begins the next attempt: phase 1 needs the claim on the graph key, a training a checkpoint
 * that is proved just before. */
static void effect_next(const struct flow *flow, struct utc now, struct effects *ret)
{
	if (needs_candidate(flow))
		add(ret, EFFECT_CHOOSE_CANDIDATE, flow);
	else if (flow_phases[flow->phase].resumes && flow->attempts[flow->phase] > 0 &&
		 !flow->chosen)
		add(ret, EFFECT_CHOOSE_CHECKPOINT, flow)->below = flow->below;
	else if (must_look_again(flow))
		add(ret, EFFECT_CHECK_CACHE, flow);
	else if (flow_phases[flow->phase].is_trial && !flow->key_held)
		effect_key(flow, ret);
	else
		effect_intent(flow, now, ret);
}

/* The state's own work; before it, once the training is over, the candidate is chosen. */
static void effect_with_candidate(const struct flow *flow, enum effect_kind kind,
				  struct effects *ret)
{
	add(ret, flow->candidate[0] ? kind : EFFECT_CHOOSE_CANDIDATE, flow);
}

static void effect_pause(const struct flow *flow, struct utc now, struct effects *ret)
{
	struct event *ev = add_record(ret, flow, EV_RUN_PAUSED, now);

	EVENT_SET(ev, phase, (enum phase)flow->pause_after);
}

static bool is_over_jit_budget(const struct flow *flow)
{
	return flow->state == FLOW_TRAIN && flow->policy.jit_graphs >= 0 &&
	       flow->jit_graphs > flow->policy.jit_graphs && !flow->jit_reported &&
	       !flow->stop_requested && !flow->recompile;
}

/* Phase 1 runs again once: a graph that compiles late after that is late for another reason. */
static void effect_jit(const struct flow *flow, struct utc now, struct effects *ret)
{
	struct event *ev = add_record(ret, flow, EV_JIT_EXCEEDED, now);
	struct effect *effect = &ret->list[ret->count - 1];
	bool again = flow->policy.jit_action == JIT_RECOMPILE && flow->recompiles > 0;

	snprintf(effect->text[0], sizeof effect->text[0],
		 "graphs compiled in training: %lld, allowed: %lld%s", (long long)flow->jit_graphs,
		 (long long)flow->policy.jit_graphs,
		 again ? "; phase 1 has run again already" : "");
	EVENT_SET(ev, attempt, flow->attempt);
	EVENT_SET(ev, graphs, flow->jit_graphs);
	EVENT_SET(ev, on_exceed, again ? JIT_WARN : flow->policy.jit_action);
	EVENT_SET_STR(ev, reason, effect->text[0]);
}

/* The first steps are slow, so a single forecast is not believed. */
#define FORECASTS_AGREE 2

static bool is_at_risk(const struct flow *flow)
{
	return flow->state == FLOW_TRAIN && flow->forecast.limit != LIMIT_NONE &&
	       flow->forecast.times >= FORECASTS_AGREE && !flow->stop_requested && !flow->recompile;
}

static void effect_risk(const struct flow *flow, struct utc now, struct effects *ret)
{
	struct event *ev = add_record(ret, flow, EV_RUN_AT_RISK, now);
	struct effect *effect = &ret->list[ret->count - 1];

	limit_forecast_text(flow, effect->text[0], sizeof effect->text[0]);
	EVENT_SET(ev, limit, flow->forecast.limit);
	EVENT_SET(ev, attempt, flow->attempt);
	EVENT_SET_STR(ev, reason, effect->text[0]);
}

/* The attempt is looked at first; then a limit or the budget may be judged. */
static void effect_under_way(const struct flow *flow, struct utc now, struct effects *ret)
{
	bool is_to_end = flow->stop_requested || flow->recompile;

	if (is_to_end && now.ms < flow->drain_until.ms)
		add(ret, EFFECT_DRAIN, flow)->until = flow->drain_until;
	else if (is_to_end)
		add(ret, EFFECT_STOP, flow);
	add(ret, EFFECT_WATCH, flow);
	if (is_over_jit_budget(flow))
		effect_jit(flow, now, ret);
	else if (is_at_risk(flow))
		effect_risk(flow, now, ret);
}

static void effect_wait(const struct flow *flow, struct effects *ret)
{
	struct effect *effect = add(ret, EFFECT_WAIT, flow);
	int64_t limit_ms = limit_next_ms(flow);

	effect->until = flow->until;
	if (limit_ms < effect->until.ms)
		effect->until.ms = limit_ms;
}

static void effect_for_attempt(const struct flow *flow, struct utc now, struct effects *ret)
{
	struct effect *effect;

	switch (flow->attempt_state) {
	case ATTEMPT_NONE:
		effect_next(flow, now, ret);
		break;
	case ATTEMPT_INTENDED:
		effect = add(ret, EFFECT_SUBMIT, flow);
		effect->resumed_from = flow->resumed_from[0] ? flow->resumed_from : NULL;
		effect->workers = flow->workers;
		effect->tolerated = flow->other_compiler[0] ? flow->other_compiler : NULL;
		break;
	case ATTEMPT_UNCERTAIN:
		add(ret, EFFECT_FIND, flow);
		break;
	case ATTEMPT_SUBMITTED:
	case ATTEMPT_RUNNING:
	case ATTEMPT_LOST:
		effect_under_way(flow, now, ret);
		break;
	case ATTEMPT_FAILED:
		effect_retry(flow, now, ret);
		break;
	case ATTEMPT_BACKOFF:
		if (now.ms >= flow->until.ms)
			effect_next(flow, now, ret);
		else
			effect_wait(flow, ret);
		break;
	case ATTEMPT_STATE_COUNT:
		break;
	}
}

bool flow_attempt_is_open(const struct flow *flow)
{
	/* The attempt's state is NONE in a state without attempts: the table in step.c enters them
	 * so. */
	switch (flow->attempt_state) {
	case ATTEMPT_INTENDED:
	case ATTEMPT_UNCERTAIN:
	case ATTEMPT_SUBMITTED:
	case ATTEMPT_RUNNING:
	case ATTEMPT_LOST:
		return true;
	default:
		return false;
	}
}

/* No limit is judged before the attempt was looked at. */
bool flow_may_have_job(const struct flow *flow)
{
	return flow->unsettled ||
	       (flow_attempt_is_open(flow) && flow->attempt_state != ATTEMPT_INTENDED);
}

static void effect_for_state(const struct flow *flow, struct utc now, struct effects *ret)
{
	switch (flow->state) {
	case FLOW_PLANNED:
		if (is_before_stage(flow)) /* without a candidate nothing is compiled */
			effect_with_candidate(flow, EFFECT_CHECK_CACHE, ret);
		else
			add(ret, EFFECT_CHECK_CACHE, flow);
		break;
	case FLOW_PRECOMPILE:
	case FLOW_TRAIN:
	case FLOW_EVALUATE:
	case FLOW_INFER:
		effect_for_attempt(flow, now, ret);
		break;
	case FLOW_GATE:
		effect_with_candidate(flow, EFFECT_JUDGE, ret);
		break;
	case FLOW_PROMOTE:
		effect_with_candidate(flow, EFFECT_PROMOTE, ret);
		break;
	case FLOW_VERIFY:
		add(ret, EFFECT_VERIFY, flow);
		break;
	case FLOW_ENDING:
		effect_end(flow, now, ret);
		break;
	case FLOW_ENDED:
	case FLOW_PAUSED:
		add(ret, EFFECT_DONE, flow);
		break;
	case FLOW_NEW:
	case FLOW_STATE_COUNT:
		break;
	}
}

void flow_effects(const struct flow *flow, struct utc now, struct effects *ret)
{
	enum run_limit limit = LIMIT_NONE;

	if (now.ms < flow->at.ms)
		now = flow->at;
	ret->count = 0;
	if (flow->unsettled && flow->state != FLOW_ENDED) {
		add(ret, EFFECT_SETTLE, flow);
		return;
	}
	if (flow->state < FLOW_ENDING && !flow->promoting)
		limit = limit_reached(flow, now);
	if (flow->leaving && flow->state < FLOW_ENDING)
		add(ret, EFFECT_LEAVE, flow);
	else if (flow->state != FLOW_PAUSED && flow->pause_after >= 0 &&
		 flow_is_past(flow, (enum phase)flow->pause_after))
		effect_pause(flow, now, ret);
	else if (limit == LIMIT_NONE || flow_may_have_job(flow))
		effect_for_state(flow, now, ret);
	if (limit != LIMIT_NONE && !flow->leaving)
		effect_limit(flow, limit, now, ret);
}
