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
			       (long long)flow->failures[flow->phase],
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

static void wish_for_attempt(const struct flow *flow, struct utc now, struct wishes *ret)
{
	struct wish *wish;

	switch (flow->attempt_state) {
	case ATTEMPT_NONE:
		wish_intent(flow, now, ret);
		break;
	case ATTEMPT_INTENDED:
		wish = add(ret, WISH_SUBMIT, flow);
		wish->resumed_from = flow->resumed_from[0] ? flow->resumed_from : NULL;
		break;
	case ATTEMPT_UNCERTAIN:
		add(ret, WISH_FIND, flow);
		break;
	case ATTEMPT_SUBMITTED:
	case ATTEMPT_RUNNING:
	case ATTEMPT_LOST:
		if (flow->stop_requested)
			add(ret, WISH_STOP, flow);
		add(ret, WISH_WATCH, flow);
		break;
	case ATTEMPT_FAILED:
		wish_retry(flow, now, ret);
		break;
	case ATTEMPT_BACKOFF:
		if (now.ms >= flow->until.ms)
			wish_intent(flow, now, ret);
		else
			add(ret, WISH_WAIT, flow)->until = flow->until;
		break;
	case ATTEMPT_STATE_COUNT:
		break;
	}
}

void flow_wishes(const struct flow *flow, struct utc now, struct wishes *ret)
{
	if (now.ms < flow->at.ms)
		now = flow->at;
	ret->count = 0;
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
