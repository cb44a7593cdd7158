/* What the machine remembers of each event; the table in step.c says when. */
#include <string.h>

#include "jobs/flow/inside.h"
#include "jobs/flow/rules.h"

void note_creation(struct flow *f, const struct event *ev)
{
	f->seed = ev->seed;
	f->created = f->at;
}

/* A new driver has its own patience with what it cannot see. */
void note_driver(struct flow *f, const struct event *ev)
{
	if (ev->epoch > f->epoch)
		f->epoch = ev->epoch;
	f->leaving = f->key_held = false;
	if (f->state == FLOW_PRECOMPILE || f->state == FLOW_TRAIN)
		f->unseen_since = f->at;
}

static void note_lock(struct flow *f, const struct event *ev)
{
	f->lock_key[0] = '\0';
	if (EVENT_HAS(ev, graph_key) && strlen(ev->graph_key) < sizeof f->lock_key)
		flow_copy(f->lock_key, sizeof f->lock_key, ev->graph_key);
}

void note_cache(struct flow *f, const struct event *ev)
{
	note_lock(f, ev);
	f->cache = ev->verdict;
	f->cache_proved = ev->verdict == CACHE_WARM;
	f->key_waited = false;
}

void note_key(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->key_held = true;
	f->key_waited = false;
}

void note_key_waited(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->key_held = false;
	f->key_waited = true;
}

void note_verdict(struct flow *f, const struct event *ev)
{
	note_lock(f, ev);
	f->cache_proved = ev->complete;
	f->anew = false;
	if (!ev->complete)
		f->incomplete_retried = f->fewer_workers = true;
	else /* whatever went wrong on the way there */
		f->budget[PHASE_PRECOMPILE] = (struct flow_budget){ 0 };
}

void note_intent(struct flow *f, const struct event *ev)
{
	f->attempt = ev->attempt;
	f->attempts[f->phase] = ev->attempt;
	f->checked = false;
	f->claimed = f->started = f->chosen = f->key_held = f->jit_told = false;
	f->jit_graphs = f->forecast.times = 0;
	f->forecast.ends.ms = 0;
	f->submitted_at = f->claimed_at = f->unseen_since = f->until = (struct utc){ 0 };
	f->workers = EVENT_HAS(ev, workers) ? ev->workers : 0;
	/* The engine will know it by the name that the journal holds. */
	if (!flow_copy_whole(f->job, sizeof f->job, ev->job))
		flow_job_name(f, f->phase, f->attempt, f->job);
	if (!flow_copy_whole(f->nonce, sizeof f->nonce, ev->nonce))
		flow_nonce(f, f->phase, f->attempt, f->nonce);
	if (!EVENT_HAS(ev, resumed_from) ||
	    !flow_copy_whole(f->resumed_from, sizeof f->resumed_from, ev->resumed_from))
		f->resumed_from[0] = '\0';
}

void note_submission(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->submitted_at = f->at;
}

/* Of what is sent again because nothing was there it is not seen since the first time. */
void note_unseen(struct flow *f, const struct event *ev)
{
	(void)ev;
	if (f->attempt_state != ATTEMPT_INTENDED || f->unseen_since.ms == 0)
		f->unseen_since = f->at;
}

void note_claim(struct flow *f, const struct event *ev)
{
	(void)ev;
	if (f->claimed) /* it was lost, and is seen again by its claim */
		return;
	f->claimed = true;
	f->claimed_at = f->at;
}

void note_start(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->started = true;
}

/* By the agent's clock, and never longer than it may have taken. */
void note_health(struct flow *f, const struct event *ev)
{
	int64_t took_ms = EVENT_HAS(ev, since) && EVENT_HAS(ev, finished) && ev->since >= 0 &&
					  ev->finished > ev->since
				  ? ev->finished - ev->since
				  : 0;

	f->checked = true;
	f->checkup_ms = took_ms < f->policy.health_ms ? took_ms : f->policy.health_ms;
}

/* What comes after counts anew, as far as it counts in a row. */
static void note_fruit(struct flow *f)
{
	f->budget[f->phase].fruitless = 0;
	f->budget[f->phase].setbacks = 0;
	f->budget[f->phase].signature = 0;
}

void note_success(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->compile_failed = false;
	f->compile_exit = 0;
	note_fruit(f);
}

void note_failure(struct flow *f, const struct event *ev)
{
	struct flow_budget *budget = &f->budget[f->phase];

	f->last_class = ev->class;
	budget->of_class[ev->class]++;
	budget->setbacks++;
	if (retry_counts(ev->class)) {
		budget->failures++;
		budget->fruitless++;
		budget->signature = retry_signature(ev);
	}
	/* Compilers in parallel run out of memory together, and seldom alone. */
	if (f->phase == PHASE_PRECOMPILE && ev->class == CLASS_COMPILE)
		f->fewer_workers = true;
}

/* Why a run that ends with this ends. */
void note_cause(struct flow *f, const struct event *ev)
{
	flow_copy(f->end_evidence, sizeof f->end_evidence,
		  EVENT_HAS(ev, evidence) ? ev->evidence : "");
	flow_copy(f->end_hint, sizeof f->end_hint, EVENT_HAS(ev, hint) ? ev->hint : "");
}

void note_compile_failure(struct flow *f, const struct event *ev)
{
	note_cause(f, ev);
	f->compile_last = retry_end_after(f, ev) != RETRY_GOES_ON;
	note_failure(f, ev);
	f->compile_failed = true;
	f->compile_exit = EVENT_HAS(ev, exit) ? ev->exit : -1;
}

/* `until` may come from a clock that was wrong: no wait is longer than the longest. */
void note_retry(struct flow *f, const struct event *ev)
{
	int64_t latest = f->at.ms + f->policy.backoff_max_ms;

	f->until.ms = ev->until < latest ? ev->until : latest;
	if (ev->action == ACTION_FALL_BACK && f->phase == PHASE_TRAIN && f->checkpoint_step >= 0)
		f->below = f->checkpoint_step;
}

void note_choice(struct flow *f, const struct event *ev)
{
	f->chosen = true;
	f->checkpoint_step = EVENT_HAS(ev, step) ? ev->step : -1;
	flow_copy(f->checkpoint_url, sizeof f->checkpoint_url, EVENT_HAS(ev, url) ? ev->url : "");
}

void note_checkpoint(struct flow *f, const struct event *ev)
{
	f->checkpoint_step = ev->step;
	flow_copy(f->checkpoint_url, sizeof f->checkpoint_url, ev->url);
	if (ev->step >= f->below)
		f->below = INT64_MAX;
	f->chosen = false;
	note_fruit(f);
}

static void begin_drain(struct flow *f, bool may_save)
{
	f->drain_until = f->at;
	if (may_save && f->phase == PHASE_TRAIN && f->claimed && f->policy.drain_ms > 0)
		f->drain_until.ms += f->policy.drain_ms + FLOW_DRAIN_MARGIN_MS;
}

/* From now on the attempt is to end; a training may save before. Asked to stop a
 * second time it may not. One that makes room for phase 1 is saving already. */
static void begin_end(struct flow *f, bool may_save)
{
	if (f->stop_requested || !f->recompile)
		begin_drain(f, may_save && !f->stop_requested);
	f->stop_requested = true;
}

void note_stop(struct flow *f, const struct event *ev)
{
	if (!f->stop_requested)
		flow_copy(f->stop_reason, sizeof f->stop_reason,
			  EVENT_HAS(ev, reason) ? ev->reason : "");
	begin_end(f, true);
}

void note_limit(struct flow *f, const struct event *ev)
{
	f->limit = ev->limit;
	flow_copy(f->stop_reason, sizeof f->stop_reason, ev->reason);
	begin_end(f, true);
}

/* What such an attempt saves does not go on from what was there. */
void note_mismatch(struct flow *f, const struct event *ev)
{
	f->mismatch = true;
	flow_copy(f->stop_reason, sizeof f->stop_reason, EVENT_HAS(ev, reason) ? ev->reason : "");
	begin_end(f, false);
}

/* What it would save is worth nothing. */
void note_spoiled(struct flow *f, const struct event *ev)
{
	f->spoiled = true;
	flow_copy(f->stop_reason, sizeof f->stop_reason, ev->reason);
	begin_end(f, false);
}

void note_jit(struct flow *f, const struct event *ev)
{
	if (ev->graphs > f->jit_graphs)
		f->jit_graphs = ev->graphs;
}

void note_jit_told(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->jit_told = true;
}

void note_jit_stop(struct flow *f, const struct event *ev)
{
	f->jit_told = f->jit_stop = true;
	flow_copy(f->stop_reason, sizeof f->stop_reason, EVENT_HAS(ev, reason) ? ev->reason : "");
	begin_end(f, true);
}

void note_recompile(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->jit_told = f->recompile = true;
	f->recompiles++;
	begin_drain(f, true);
}

/* Phase 1 begins again as if the cache had been found cold. */
static void begin_anew(struct flow *f)
{
	f->recompile = f->cache_proved = f->incomplete_retried = f->fewer_workers = false;
	f->compile_failed = f->compile_last = false;
	f->anew = true;
	f->cache = CACHE_COLD;
	f->budget[PHASE_PRECOMPILE] = (struct flow_budget){ 0 };
}

void note_room(struct flow *f, const struct event *ev)
{
	if (ev->class != CLASS_STOPPED)
		note_failure(f, ev);
	begin_anew(f);
}

/* Its command never began: nothing has failed, but the cache is another compiler's. */
void note_other_compiler(struct flow *f, const struct event *ev)
{
	flow_copy(f->other_compiler, sizeof f->other_compiler, ev->signature);
	begin_anew(f);
}

void note_leaving(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->leaving = true;
}

#define FORECAST_MAX_S 1e9 /* a pace so slow is no pace */

void note_forecast(struct flow *f, const struct event *ev)
{
	enum run_limit limit = LIMIT_NONE;

	f->forecast.ends.ms = 0;
	if (EVENT_HAS(ev, eta) && ev->eta >= 0 && ev->eta < FORECAST_MAX_S) {
		f->forecast.ends.ms = f->at.ms + (int64_t)(ev->eta * 1000);
		limit = limit_forecast(f);
	}
	f->forecast.times = limit == f->forecast.limit ? f->forecast.times + 1 : 1;
	f->forecast.limit = limit;
}

void note_risk(struct flow *f, const struct event *ev)
{
	f->forecast.told |= 1U << ev->limit;
	f->forecast.limit = LIMIT_NONE;
	f->forecast.times = 0;
}
