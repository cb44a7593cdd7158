/*
 * What should be done now. Wishes follow from the state and the time alone, so
 * a driver that replayed the journal wishes the same as one that lived.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/flow/flow.h"
#include "jobs/flow/inside.h"

static struct wish *add(struct wishes *ret, enum wish_kind kind, const struct flow *flow)
{
	struct wish *wish = &ret->list[ret->count++];

	memset(wish, 0, sizeof *wish);
	wish->kind = kind;
	wish->phase = flow->state == FLOW_VERIFY ? PHASE_VERIFY : flow->phase;
	wish->attempt = flow->attempt;
	wish->job = flow->job;
	return wish;
}

static struct event *add_record(struct wishes *ret, const struct flow *flow, enum event_kind kind,
				struct utc now)
{
	struct wish *wish = add(ret, WISH_RECORD, flow);

	wish->event.kind = kind;
	wish->event.at = now;
	return &wish->event;
}

static int64_t fewer(int64_t workers)
{
	return workers > 3 ? workers / 2 : 1;
}

static void wish_intent(const struct flow *flow, struct utc now, struct wishes *ret)
{
	struct event *ev = add_record(ret, flow, EV_ATTEMPT_INTENDED, now);
	struct wish *wish = &ret->list[ret->count - 1];
	int64_t attempt = flow->attempts[flow->phase] + 1;

	flow_job_name(flow, flow->phase, attempt, wish->text[0]);
	flow_nonce(flow, flow->phase, attempt, wish->text[1]);
	wish->attempt = attempt;
	wish->job = wish->text[0];
	EVENT_SET(ev, phase, flow->phase);
	EVENT_SET(ev, attempt, attempt);
	EVENT_SET_STR(ev, job, wish->text[0]);
	EVENT_SET_STR(ev, nonce, wish->text[1]);
	EVENT_SET(ev, nodes, flow->policy.nodes);
	if (flow->phase == PHASE_PRECOMPILE && flow->fewer_workers)
		EVENT_SET(ev, workers, fewer(flow->policy.compile_workers));
	/* What phase 1 saves are zeros: only the training resumes. */
	if (flow->phase == PHASE_TRAIN && flow->checkpoint_step >= 0) {
		EVENT_SET_STR(ev, resumed_from, flow->checkpoint_url);
		EVENT_SET(ev, step, flow->checkpoint_step);
	}
}

static void wish_retry(const struct flow *flow, struct utc now, struct wishes *ret)
{
	struct event *ev = add_record(ret, flow, EV_RETRY_SCHEDULED, now);
	struct wish *wish = &ret->list[ret->count - 1];
	int64_t delay = retry_wait_ms(flow);
	int len;

	if (retry_counts(flow->last_class))
		len = snprintf(wish->text[0], sizeof wish->text[0], "%s: failure %lld of %lld",
			       class_names[flow->last_class],
			       (long long)flow->budget[flow->phase].failures,
			       (long long)flow->policy.retry_attempts);
	else
		len = snprintf(wish->text[0], sizeof wish->text[0], "%s: does not count",
			       class_names[flow->last_class]);
	if (len < 0)
		wish->text[0][0] = '\0';
	EVENT_SET(ev, phase, flow->phase);
	EVENT_SET(ev, delay, delay);
	EVENT_SET(ev, until, now.ms + delay);
	EVENT_SET(ev, action, retry_action(flow->last_class));
	EVENT_SET_STR(ev, reason, wish->text[0]);
}

static void wish_end(const struct flow *flow, struct utc now, struct wishes *ret)
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

static void wish_limit(const struct flow *flow, enum run_limit limit, struct utc now,
		       struct wishes *ret)
{
	struct event *ev = add_record(ret, flow, EV_LIMIT_REACHED, now);
	struct wish *wish = &ret->list[ret->count - 1];

	limit_text(flow, limit, wish->text[0], sizeof wish->text[0]);
	EVENT_SET(ev, limit, limit);
	EVENT_SET_STR(ev, reason, wish->text[0]);
}

/* For each attempt of phase 1 anew: much time can lie between two. What another run
 * has proved since is as good as one's own, but not where its lock is in doubt, nor
 * after a verdict of one's own that the cache is not complete. */
static void wish_key(const struct flow *flow, struct wishes *ret)
{
	add(ret, WISH_CLAIM_KEY, flow)->recheck =
		!flow->anew && (flow->key_waited || flow->attempts[PHASE_PRECOMPILE] == 0);
}

/* The next attempt: one of phase 1 has the claim on the graph key, one of training
 * goes on from a checkpoint that is proved just before. */
static void wish_next(const struct flow *flow, struct utc now, struct wishes *ret)
{
	if (flow->phase == PHASE_TRAIN && flow->attempts[PHASE_TRAIN] > 0 && !flow->chosen)
		add(ret, WISH_CHOOSE_CHECKPOINT, flow)->below = flow->below;
	else if (flow->phase == PHASE_PRECOMPILE && !flow->key_held)
		wish_key(flow, ret);
	else
		wish_intent(flow, now, ret);
}

static bool is_over_jit_budget(const struct flow *flow)
{
	return flow->state == FLOW_TRAIN && flow->policy.jit_graphs >= 0 &&
	       flow->jit_graphs > flow->policy.jit_graphs && !flow->jit_told &&
	       !flow->stop_requested && !flow->recompile;
}

/* Phase 1 runs again once: what compiles late after that is late for another reason. */
static void wish_jit(const struct flow *flow, struct utc now, struct wishes *ret)
{
	struct event *ev = add_record(ret, flow, EV_JIT_EXCEEDED, now);
	struct wish *wish = &ret->list[ret->count - 1];
	bool again = flow->policy.jit_action == JIT_RECOMPILE && flow->recompiles > 0;

	if (snprintf(wish->text[0], sizeof wish->text[0],
		     "graphs compiled in training: %lld, allowed: %lld%s",
		     (long long)flow->jit_graphs, (long long)flow->policy.jit_graphs,
		     again ? "; phase 1 has run again already" : "") < 0)
		wish->text[0][0] = '\0';
	EVENT_SET(ev, attempt, flow->attempt);
	EVENT_SET(ev, graphs, flow->jit_graphs);
	EVENT_SET(ev, on_exceed, again ? JIT_WARN : flow->policy.jit_action);
	EVENT_SET_STR(ev, reason, wish->text[0]);
}

/* The first steps are slow, so one forecast alone is believed by nobody. */
#define FORECASTS_AGREE 2

static bool is_at_risk(const struct flow *flow)
{
	return flow->state == FLOW_TRAIN && flow->forecast.limit != LIMIT_NONE &&
	       flow->forecast.times >= FORECASTS_AGREE && !flow->stop_requested && !flow->recompile;
}

static void wish_risk(const struct flow *flow, struct utc now, struct wishes *ret)
{
	struct event *ev = add_record(ret, flow, EV_RUN_AT_RISK, now);
	struct wish *wish = &ret->list[ret->count - 1];

	limit_forecast_text(flow, wish->text[0], sizeof wish->text[0]);
	EVENT_SET(ev, limit, flow->forecast.limit);
	EVENT_SET(ev, attempt, flow->attempt);
	EVENT_SET_STR(ev, reason, wish->text[0]);
}

/* Looked at first; then a limit or the budget may be judged. */
static void wish_under_way(const struct flow *flow, struct utc now, struct wishes *ret)
{
	bool is_to_end = flow->stop_requested || flow->recompile;

	if (is_to_end && now.ms < flow->drain_until.ms)
		add(ret, WISH_DRAIN, flow)->until = flow->drain_until;
	else if (is_to_end)
		add(ret, WISH_STOP, flow);
	add(ret, WISH_WATCH, flow);
	if (is_over_jit_budget(flow))
		wish_jit(flow, now, ret);
	else if (is_at_risk(flow))
		wish_risk(flow, now, ret);
}

static void wish_wait(const struct flow *flow, struct wishes *ret)
{
	struct wish *wish = add(ret, WISH_WAIT, flow);
	int64_t limit_ms = limit_next_ms(flow);

	wish->until = flow->until;
	if (limit_ms < wish->until.ms)
		wish->until.ms = limit_ms;
}

static void wish_for_attempt(const struct flow *flow, struct utc now, struct wishes *ret)
{
	struct wish *wish;

	switch (flow->attempt_state) {
	case ATTEMPT_NONE:
		wish_next(flow, now, ret);
		break;
	case ATTEMPT_INTENDED:
		wish = add(ret, WISH_SUBMIT, flow);
		wish->resumed_from = flow->resumed_from[0] ? flow->resumed_from : NULL;
		wish->workers = flow->workers;
		wish->tolerated = flow->other_compiler[0] ? flow->other_compiler : NULL;
		break;
	case ATTEMPT_UNCERTAIN:
		add(ret, WISH_FIND, flow);
		break;
	case ATTEMPT_SUBMITTED:
	case ATTEMPT_RUNNING:
	case ATTEMPT_LOST:
		wish_under_way(flow, now, ret);
		break;
	case ATTEMPT_FAILED:
		wish_retry(flow, now, ret);
		break;
	case ATTEMPT_BACKOFF:
		if (now.ms >= flow->until.ms)
			wish_next(flow, now, ret);
		else
			wish_wait(flow, ret);
		break;
	case ATTEMPT_STATE_COUNT:
		break;
	}
}

/* An attempt that may be there, as far as the journal goes: no limit is judged before
 * it was looked at. */
static bool may_be_there(const struct flow *flow)
{
	if (flow->state != FLOW_PRECOMPILE && flow->state != FLOW_TRAIN)
		return false;
	switch (flow->attempt_state) {
	case ATTEMPT_UNCERTAIN:
	case ATTEMPT_SUBMITTED:
	case ATTEMPT_RUNNING:
	case ATTEMPT_LOST:
		return true;
	default:
		return false;
	}
}

static void wish_for_state(const struct flow *flow, struct utc now, struct wishes *ret)
{
	switch (flow->state) {
	case FLOW_PLANNED:
		add(ret, WISH_CHECK_CACHE, flow);
		break;
	case FLOW_PRECOMPILE:
	case FLOW_TRAIN:
		wish_for_attempt(flow, now, ret);
		break;
	case FLOW_VERIFY:
		add(ret, WISH_VERIFY, flow);
		break;
	case FLOW_ENDING:
		wish_end(flow, now, ret);
		break;
	case FLOW_ENDED:
		add(ret, WISH_DONE, flow);
		break;
	case FLOW_NEW:
	case FLOW_STATE_COUNT:
		break;
	}
}

void flow_wishes(const struct flow *flow, struct utc now, struct wishes *ret)
{
	enum run_limit limit = LIMIT_NONE;

	if (now.ms < flow->at.ms)
		now = flow->at;
	ret->count = 0;
	if (flow->state > FLOW_NEW && flow->state < FLOW_ENDING)
		limit = limit_reached(flow, now);
	if (flow->leaving && flow->state < FLOW_ENDING)
		add(ret, WISH_LEAVE, flow);
	else if (limit == LIMIT_NONE || may_be_there(flow))
		wish_for_state(flow, now, ret);
	if (limit != LIMIT_NONE && !flow->leaving)
		wish_limit(flow, limit, now, ret);
}
