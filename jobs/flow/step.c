/*
 * The rules of the workflow: which event means what in which state. One table,
 * read from the top, first match wins; one door that changes the state. What no
 * row names changes nothing, and a test lists it.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/base/exitcode.h"
#include "jobs/flow/flow.h"
#include "jobs/flow/inside.h"

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

static bool stopping(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && f->stop_requested;
}

static bool was_claimed(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && f->claimed;
}

/* Without a compile phase there is nothing to be cold. */
static bool is_cold(const struct flow *f, const struct event *ev)
{
	return f->policy.compiles && ev->verdict != CACHE_WARM;
}

static bool went_well(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && ev->class == CLASS_NONE;
}

static bool went_well_and_goes_on(const struct flow *f, const struct event *ev)
{
	return went_well(f, ev) && !f->stop_requested;
}

static bool was_stopped(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && (f->stop_requested || ev->class == CLASS_STOPPED);
}

static bool is_last(const struct flow *f, const struct event *ev)
{
	return current(f, ev) && retry_end_after(f, ev->class) != RETRY_GOES_ON;
}

/* The verdict on what the newest precompile attempt left. */
static bool of_precompile(const struct flow *f, const struct event *ev)
{
	return ev->attempt == f->attempts[PHASE_PRECOMPILE];
}

static bool is_complete(const struct flow *f, const struct event *ev)
{
	return of_precompile(f, ev) && ev->complete;
}

static bool may_recompile(const struct flow *f, const struct event *ev)
{
	return of_precompile(f, ev) && !f->incomplete_retried;
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

/* ---- actions: what is remembered -------------------------------------------- */

static void note_creation(struct flow *f, const struct event *ev)
{
	f->seed = ev->seed;
}

static void note_driver(struct flow *f, const struct event *ev)
{
	if (ev->epoch > f->epoch)
		f->epoch = ev->epoch;
}

static void note_cache(struct flow *f, const struct event *ev)
{
	f->cache = ev->verdict;
	f->cache_proved = ev->verdict == CACHE_WARM;
}

static void note_verdict(struct flow *f, const struct event *ev)
{
	f->cache_proved = ev->complete;
	if (!ev->complete)
		f->incomplete_retried = true;
}

static void note_intent(struct flow *f, const struct event *ev)
{
	f->attempt = ev->attempt;
	f->attempts[f->phase] = ev->attempt;
	f->claimed = false;
	f->until = (struct utc){ 0 };
	/* The engine will know it by the name that the journal holds. */
	if (!flow_copy_whole(f->job, sizeof f->job, ev->job))
		flow_job_name(f, f->phase, f->attempt, f->job);
	if (!flow_copy_whole(f->nonce, sizeof f->nonce, ev->nonce))
		flow_nonce(f, f->phase, f->attempt, f->nonce);
	if (!EVENT_HAS(ev, resumed_from) ||
	    !flow_copy_whole(f->resumed_from, sizeof f->resumed_from, ev->resumed_from))
		f->resumed_from[0] = '\0';
}

static void note_claim(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->claimed = true;
}

static void note_failure(struct flow *f, const struct event *ev)
{
	f->last_class = ev->class;
	f->of_class[ev->class]++;
	f->setbacks++;
	if (retry_counts(ev->class)) {
		f->failures[f->phase]++;
		f->fruitless++;
	}
}

/* `until` may come from a clock that was wrong: no wait is longer than the longest. */
static void note_retry(struct flow *f, const struct event *ev)
{
	int64_t latest = f->at.ms + f->policy.backoff_max_ms;

	f->until.ms = ev->until < latest ? ev->until : latest;
	if (ev->action == ACTION_FALL_BACK && f->phase == PHASE_TRAIN) {
		f->checkpoint_step = f->previous_step;
		memcpy(f->checkpoint_url, f->previous_url, sizeof f->checkpoint_url);
		f->previous_step = -1;
		f->previous_url[0] = '\0';
	}
}

static void note_checkpoint(struct flow *f, const struct event *ev)
{
	f->previous_step = f->checkpoint_step;
	memcpy(f->previous_url, f->checkpoint_url, sizeof f->previous_url);
	f->checkpoint_step = ev->step;
	flow_copy(f->checkpoint_url, sizeof f->checkpoint_url, ev->url);
	f->fruitless = 0;
	f->setbacks = 0;
}

static void note_stop(struct flow *f, const struct event *ev)
{
	f->stop_requested = true;
	flow_copy(f->stop_reason, sizeof f->stop_reason, EVENT_HAS(ev, reason) ? ev->reason : "");
}

/* ---- actions: how it ends ---------------------------------------------------- */

static void decide(struct flow *f, enum outcome outcome, enum exit_code code,
		   enum failure_class class, const struct event *ev)
{
	f->outcome = outcome;
	f->exit_code = (int)code;
	f->end_class = class;
	f->end_has_phase = f->state != FLOW_PLANNED;
	f->end_phase = f->state == FLOW_VERIFY ? PHASE_VERIFY : f->phase;
	flow_copy(f->end_evidence, sizeof f->end_evidence,
		  EVENT_HAS(ev, evidence) ? ev->evidence : "");
	flow_copy(f->end_hint, sizeof f->end_hint, EVENT_HAS(ev, hint) ? ev->hint : "");
}

static void reason(struct flow *f, const char *text, const char *more)
{
	size_t len = strlen(text);

	flow_copy(f->end_reason, sizeof f->end_reason, text);
	flow_copy(f->end_reason + len, sizeof f->end_reason - len, more);
}

static void succeed(struct flow *f, const struct event *ev)
{
	decide(f, OUTCOME_SUCCEEDED, EXIT_DONE, CLASS_NONE, ev);
	reason(f, "training succeeded", "");
}

/* After the attempt has ended, or at once where none is under way. */
static void end_stopped(struct flow *f, const struct event *ev)
{
	bool asked = f->stop_requested || ev->kind == EV_REQUEST_STOP;

	if (ev->kind == EV_REQUEST_STOP)
		note_stop(f, ev);
	decide(f, OUTCOME_STOPPED, EXIT_STOPPED, CLASS_STOPPED, ev);
	if (!asked)
		reason(f, "the job was stopped on the engine, by someone else", "");
	else if (f->stop_reason[0] == '\0')
		reason(f, "stopped on request", "");
	else
		reason(f, "stopped on request: ", f->stop_reason);
}

static void end_failed(struct flow *f, const struct event *ev)
{
	enum retry_end why = retry_end_after(f, ev->class);
	const char *phase = phase_names[f->phase], *class = class_names[ev->class];
	long long count;

	note_failure(f, ev);
	if (ev->class == CLASS_QUOTA_PERMISSION)
		decide(f, OUTCOME_REFUSED, EXIT_REFUSED, ev->class, ev);
	else
		decide(f, OUTCOME_FAILED, EXIT_RUN_FAILED, ev->class, ev);
	switch (why) {
	case RETRY_GOES_ON:
	case RETRY_USELESS:
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed in attempt %lld: %s, which a retry does not cure", phase,
			 (long long)f->attempt, class);
		break;
	case RETRY_OF_CLASS:
		count = (long long)f->of_class[ev->class];
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed %lld times: %s, which gets %lld retry", phase, count, class,
			 (long long)retry_limit(ev->class));
		break;
	case RETRY_ATTEMPTS:
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed %lld times (%s last): retry.attempts is used up", phase,
			 (long long)f->failures[f->phase], class);
		break;
	case RETRY_NO_PROGRESS:
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed %lld times in a row (%s last) without a new checkpoint: "
			 "retry.without_progress is used up",
			 phase, (long long)f->fruitless, class);
		break;
	}
}

static void refuse_cache(struct flow *f, const struct event *ev)
{
	note_verdict(f, ev);
	decide(f, OUTCOME_REFUSED, EXIT_GATE, CLASS_NONE, ev);
	if (EVENT_HAS(ev, reason))
		reason(f, "the cache is not complete: ", ev->reason);
	else
		reason(f, "the cache is not complete", "");
}

/* What the journal says happened, happened. */
static void note_end(struct flow *f, const struct event *ev)
{
	f->outcome = ev->state;
	f->exit_code = (int)ev->exit_code;
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
#define ANY         (~0U)
#define UNDER_WAY   (WITH(SUBMITTED) | WITH(RUNNING) | WITH(LOST))
#define OPEN        (WITH(INTENDED) | WITH(UNCERTAIN) | UNDER_WAY)
#define BETWEEN     (WITH(NONE) | WITH(FAILED) | WITH(BACKOFF))
#define STAY        FLOW_STATE_COUNT, ATTEMPT_STATE_COUNT
#define NOW(state)  FLOW_STATE_COUNT, ATTEMPT_##state
#define GO(state)   FLOW_##state, ATTEMPT_NONE

/* clang-format off */
static const struct rule rules[] = {
	{ IN(NEW), ANY, EV_RUN_CREATED, NULL, note_creation, GO(PLANNED),
	  "a run begins with the question whether its cache is warm" },

	{ IN(PLANNED), ANY, EV_CACHE_CHECKED, is_cold, note_cache, GO(PRECOMPILE),
	  "a cold cache is filled first" },
	{ IN(PLANNED), ANY, EV_CACHE_CHECKED, NULL, note_cache, GO(TRAIN),
	  "a warm cache, or none, needs no precompile job" },

	{ WORKING, WITH(NONE) | WITH(BACKOFF), EV_ATTEMPT_INTENDED,
	  next, note_intent, NOW(INTENDED),
	  "an attempt is intended before it is submitted" },
	{ WORKING, WITH(INTENDED) | WITH(UNCERTAIN), EV_ATTEMPT_SUBMITTED,
	  current, NULL, NOW(SUBMITTED),
	  "the engine has the job" },
	{ WORKING, WITH(INTENDED), EV_ATTEMPT_UNCERTAIN, current, NULL, NOW(UNCERTAIN),
	  "a submission of unknown outcome is looked for" },
	{ WORKING, WITH(INTENDED), EV_DRIVER_TOOK_OVER, NULL, note_driver, NOW(UNCERTAIN),
	  "whether the driver before this one submitted is not known" },
	{ ANYWHERE, ANY, EV_DRIVER_TOOK_OVER, NULL, note_driver, STAY,
	  "a new driver goes on where the last one stood" },
	{ WORKING, WITH(UNCERTAIN), EV_ATTEMPT_MISSING, stopping, end_stopped, GO(ENDING),
	  "a stop finds that nothing was ever submitted" },
	{ WORKING, WITH(UNCERTAIN), EV_ATTEMPT_MISSING, current, NULL, NOW(INTENDED),
	  "what never reached the engine is submitted again, by the same name" },

	{ WORKING, WITH(SUBMITTED) | WITH(LOST), EV_ATTEMPT_CLAIMED,
	  current, note_claim, NOW(RUNNING),
	  "the attempt holds the claim" },
	{ WORKING, WITH(SUBMITTED) | WITH(RUNNING), EV_ATTEMPT_LOST, current, NULL, NOW(LOST),
	  "an attempt that cannot be seen is lost, not failed" },
	{ WORKING, WITH(LOST), EV_ATTEMPT_FOUND, was_claimed, NULL, NOW(RUNNING),
	  "a running attempt is seen again" },
	{ WORKING, WITH(LOST), EV_ATTEMPT_FOUND, current, NULL, NOW(SUBMITTED),
	  "a waiting attempt is seen again" },
	{ IN(TRAIN), ~(WITH(NONE) | WITH(INTENDED)), EV_CHECKPOINT_COMPLETE,
	  is_progress, note_checkpoint, STAY,
	  "a newer checkpoint is complete" },

	{ IN(PRECOMPILE), OPEN, EV_ATTEMPT_ENDED, went_well_and_goes_on, NULL, GO(VERIFY),
	  "phase 1 ended well, so the cache is looked at" },
	{ IN(TRAIN), OPEN, EV_ATTEMPT_ENDED, went_well, succeed, GO(ENDING),
	  "the training succeeded" },
	{ WORKING, OPEN, EV_ATTEMPT_ENDED, was_stopped, end_stopped, GO(ENDING),
	  "the attempt was stopped" },
	{ WORKING, OPEN, EV_ATTEMPT_ENDED, is_last, end_failed, GO(ENDING),
	  "the failure has no cure, or its budget is used up" },
	{ WORKING, OPEN, EV_ATTEMPT_ENDED, current, note_failure, NOW(FAILED),
	  "the failure may be cured by another attempt" },
	{ WORKING, WITH(FAILED), EV_RETRY_SCHEDULED, of_phase, note_retry, NOW(BACKOFF),
	  "the retry waits" },

	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, is_complete, note_verdict, GO(TRAIN),
	  "the cache is proved complete" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, may_recompile, note_verdict, GO(PRECOMPILE),
	  "an incomplete cache gets one more precompile" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, may_train_anyway, note_verdict, GO(TRAIN),
	  "the spec says to train on an incomplete cache" },
	{ IN(VERIFY), ANY, EV_CACHE_VERIFIED, of_precompile, refuse_cache, GO(ENDING),
	  "the cache never became complete" },

	{ IN(PLANNED) | IN(VERIFY), ANY, EV_REQUEST_STOP, NULL, end_stopped, GO(ENDING),
	  "a stop between two phases ends the run" },
	{ WORKING, BETWEEN, EV_REQUEST_STOP, NULL, end_stopped, GO(ENDING),
	  "a stop between attempts ends the run" },
	/* The request may come between a submission and its record, so an intent
	 * is looked for before it is given up. */
	{ WORKING, WITH(INTENDED), EV_REQUEST_STOP, NULL, note_stop, NOW(UNCERTAIN),
	  "a stop looks for what may just have been submitted" },
	{ WORKING, WITH(UNCERTAIN) | UNDER_WAY, EV_REQUEST_STOP, NULL, note_stop, STAY,
	  "a stop waits for the end of the attempt" },

	{ IN(ENDING), ANY, EV_RUN_ENDED, NULL, note_end, GO(ENDED),
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
	    (unsigned)ev->class >= CLASS_COUNT ||
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

/* ---- the door ---------------------------------------------------------------- */

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
	if (f->attempt == 0) {
		f->fruitless = 0;
		f->setbacks = 0;
		memset(f->of_class, 0, sizeof f->of_class);
	}
}

void flow_apply(struct flow *flow, const struct event *ev)
{
	int found = flow_rule_find(flow, ev);

	if (ev->at.ms > flow->at.ms)
		flow->at = ev->at;
	if (found < 0)
		return;
	if (rules[found].act)
		rules[found].act(flow, ev);
	enter(flow, &rules[found]);
}

void flow_step(struct flow *flow, const struct event *ev, struct wishes *ret)
{
	/* `ev` may lie in `ret`: it is not looked at once the wishes are remade. */
	struct utc now = ev->at;

	flow_apply(flow, ev);
	flow_wishes(flow, now, ret);
}
