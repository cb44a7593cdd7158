/* State that the machine keeps of each event; the table in step.c says when. */
#include <string.h>

#include "jobs/flow/internal.h"
#include "jobs/flow/rules.h"

void transition_creation(struct flow *f, const struct event *ev)
{
	f->seed = ev->seed;
	f->created = f->at;
}

/* A new driver's patience with an attempt that it cannot see begins again. */
void transition_driver(struct flow *f, const struct event *ev)
{
	if (ev->epoch > f->epoch)
		f->epoch = ev->epoch;
	f->leaving = f->key_held = false;
	f->pause_after = EVENT_HAS(ev, pause_after) ? (int)ev->pause_after : -1;
	if (flow_has_attempts(f))
		f->unobserved_since = f->at;
	/* A machine that lost power loses the entries that it had not synced, again and again if
	 * it must. The verdict finds them damaged, and that is no failure of the compiler. */
	if (f->state == FLOW_VERIFY && !f->compile_failed)
		f->incomplete_retried = false;
}

static void store_lock_key(struct flow *f, const struct event *ev)
{
	f->lock_key[0] = '\0';
	if (EVENT_HAS(ev, graph_key) && strlen(ev->graph_key) < sizeof f->lock_key)
		flow_copy(f->lock_key, sizeof f->lock_key, ev->graph_key);
}

void transition_cache(struct flow *f, const struct event *ev)
{
	store_lock_key(f, ev);
	f->cache = ev->verdict;
	f->cache_proved = ev->verdict == CACHE_WARM;
	f->key_waited = false;
}

void transition_look(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->looked = true;
}

void transition_key(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->key_held = true;
	f->key_waited = false;
}

void transition_key_waited(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->key_held = false;
	f->key_waited = true;
}

void transition_verification(struct flow *f, const struct event *ev)
{
	store_lock_key(f, ev);
	f->cache_proved = ev->complete;
	f->compile_forced = false;
	if (!ev->complete)
		f->incomplete_retried = f->fewer_workers = true;
	else /* earlier failures no longer count */
		f->budget[PHASE_PRECOMPILE] = (struct flow_budget){ 0 };
}

void transition_intent(struct flow *f, const struct event *ev)
{
	f->attempt = ev->attempt;
	f->attempts[f->phase] = ev->attempt;
	f->precompiled |= flow_phases[f->phase].is_trial;
	f->checked = f->looked = false;
	f->claimed = f->started = f->saved = f->chosen = f->key_held = f->jit_reported = false;
	f->jit_graphs = f->forecast.times = 0;
	f->forecast.ends.ms = 0;
	f->submitted_at = f->claimed_at = f->unobserved_since = f->until = (struct utc){ 0 };
	f->workers = EVENT_HAS(ev, workers) ? ev->workers : 0;
	/* The engine will know the attempt by the name in the journal. */
	if (!flow_copy_whole(f->job, sizeof f->job, ev->job))
		flow_job_name(f, f->phase, f->attempt, f->job);
	if (!flow_copy_whole(f->nonce, sizeof f->nonce, ev->nonce))
		flow_nonce(f, f->phase, f->attempt, f->nonce);
	if (!EVENT_HAS(ev, resumed_from) ||
	    !flow_copy_whole(f->resumed_from, sizeof f->resumed_from, ev->resumed_from))
		f->resumed_from[0] = '\0';
}

void transition_salvage(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->unsettled = true;
}

void transition_settlement(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->unsettled = false;
}

/* The attempt's cache was proved before it was intended, and is looked at again before the next
 * attempt. The attempts between were under way, too. A run that is ending ends this attempt as
 * well. */
void transition_found_again(struct flow *f, const struct event *ev)
{
	f->phase = ev->phase;
	f->machines +=
		ev->attempt - f->attempts[ev->phase] - 1 + (f->attempt_state != ATTEMPT_NONE);
	transition_intent(f, ev);
	f->unobserved_since = f->at;
	if (flow_phases[ev->phase].is_trial)
		f->stage = EVENT_HAS(ev, stage) ? ev->stage : PHASE_TRAIN;
	else
		f->stage = ev->phase;
	f->cache_proved = flow_needs_cache(&f->policy, ev->phase);
	if (!flow_phases[ev->phase].is_trial)
		store_lock_key(f, ev);
	if (f->state == FLOW_ENDING) {
		f->stop_requested = true;
		f->drain_until = f->at;
	}
}

void transition_submission(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->submitted_at = f->at;
}

/* An attempt that is submitted again, because it was not found, is unseen since the first time. */
void transition_unobserved(struct flow *f, const struct event *ev)
{
	(void)ev;
	if (f->attempt_state != ATTEMPT_INTENDED || f->unobserved_since.ms == 0)
		f->unobserved_since = f->at;
}

void transition_claim(struct flow *f, const struct event *ev)
{
	(void)ev;
	if (f->claimed) /* lost before, and seen again by its claim */
		return;
	f->claimed = true;
	f->claimed_at = f->at;
}

void transition_start(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->started = true;
}

/* Duration by the agent's clock, and never longer than it may have taken. */
void transition_health(struct flow *f, const struct event *ev)
{
	int64_t took_ms = EVENT_HAS(ev, since) && EVENT_HAS(ev, finished) && ev->since >= 0 &&
					  ev->finished > ev->since
				  ? ev->finished - ev->since
				  : 0;

	f->checked = true;
	f->checkup_ms = took_ms < f->policy.health_ms ? took_ms : f->policy.health_ms;
}

/* Resets the counts of failures in a row. */
static void reset_failures_in_row(struct flow *f)
{
	f->budget[f->phase].failures_without_checkpoint = 0;
	f->budget[f->phase].backoff_failures = 0;
	memset(f->budget[f->phase].causes, 0, sizeof f->budget[f->phase].causes);
}

void transition_success(struct flow *f, const struct event *ev)
{
	f->machines += retry_had_machines(f, ev);
	f->compile_failed = f->recompile = false;
	f->compile_exit = 0;
	reset_failures_in_row(f);
}

void transition_failure(struct flow *f, const struct event *ev)
{
	struct flow_budget *budget = &f->budget[f->phase];

	f->last_class = ev->class;
	f->machines += retry_had_machines(f, ev);
	budget->of_class[ev->class]++;
	budget->backoff_failures++;
	if (retry_rows[ev->class].counts) {
		budget->failures++;
		budget->failures_without_checkpoint++;
		retry_remember(budget, ev);
	}
	/* Compilers in parallel run out of memory together, and seldom alone. */
	if (f->phase == PHASE_PRECOMPILE && ev->class == CLASS_COMPILE)
		f->fewer_workers = true;
	/* An attempt that was cut short may leave entries half written. The verdict on the next
	 * attempt finds them, and that is not the second failure of the same compilation. */
	if (ev->class != CLASS_COMPILE)
		f->incomplete_retried = false;
}

/* Keeps the evidence and hint of the event that ends the run. */
void transition_cause(struct flow *f, const struct event *ev)
{
	flow_copy(f->end_evidence, sizeof f->end_evidence,
		  EVENT_HAS(ev, evidence) ? ev->evidence : "");
	flow_copy(f->end_hint, sizeof f->end_hint, EVENT_HAS(ev, hint) ? ev->hint : "");
}

void transition_compile_failure(struct flow *f, const struct event *ev)
{
	transition_cause(f, ev);
	f->compile_last = retry_end_after(f, ev) != RETRY_GOES_ON;
	transition_failure(f, ev);
	f->compile_failed = true;
	f->compile_exit = EVENT_HAS(ev, exit) ? ev->exit : -1;
}

/* `until` may come from a clock that was wrong: no wait is longer than the longest backoff. */
void transition_retry(struct flow *f, const struct event *ev)
{
	int64_t latest = f->at.ms + f->policy.backoff_max_ms;

	f->until.ms = ev->until < latest ? ev->until : latest;
	if (ev->action == ACTION_FALL_BACK && flow_phases[f->phase].resumes &&
	    f->checkpoint_step >= 0)
		f->below = f->checkpoint_step;
}

void transition_choice(struct flow *f, const struct event *ev)
{
	f->chosen = true;
	f->checkpoint_step = EVENT_HAS(ev, step) ? ev->step : -1;
	flow_copy(f->checkpoint_url, sizeof f->checkpoint_url, EVENT_HAS(ev, url) ? ev->url : "");
}

void transition_checkpoint(struct flow *f, const struct event *ev)
{
	f->checkpoint_step = ev->step;
	flow_copy(f->checkpoint_url, sizeof f->checkpoint_url, ev->url);
	if (ev->step >= f->below)
		f->below = INT64_MAX;
	f->chosen = false;
	f->saved = true;
	reset_failures_in_row(f);
}

static void begin_drain(struct flow *f, bool may_save)
{
	f->drain_until = f->at;
	if (may_save && flow_phases[f->phase].drains && f->claimed && f->policy.drain_ms > 0)
		f->drain_until.ms += f->policy.drain_ms + FLOW_DRAIN_MARGIN_MS;
}

/* The attempt is to end from now on; a training may save before. The first cause counts: what comes
 * later neither prolongs nor cuts the time for saving. A training that makes room for phase 1 is
 * saving already. */
static void begin_end(struct flow *f, const struct event *ev, enum stop_cause cause, bool may_save)
{
	if (f->stop_requested)
		return;
	f->stop_requested = true;
	f->stop_cause = cause;
	flow_copy(f->stop_reason, sizeof f->stop_reason, EVENT_HAS(ev, reason) ? ev->reason : "");
	if (!f->recompile)
		begin_drain(f, may_save);
}

void transition_stop(struct flow *f, const struct event *ev)
{
	begin_end(f, ev, STOP_REQUEST, true);
}

void transition_limit(struct flow *f, const struct event *ev)
{
	f->limit = ev->limit;
	begin_end(f, ev, STOP_LIMIT, true);
}

/* A checkpoint of such an attempt would not continue the training before it. */
void transition_mismatch(struct flow *f, const struct event *ev)
{
	begin_end(f, ev, STOP_MISMATCH, false);
}

/* A checkpoint of such an attempt would be worthless. */
void transition_output_invalid(struct flow *f, const struct event *ev)
{
	begin_end(f, ev, STOP_OUTPUT_INVALID, false);
}

void transition_jit(struct flow *f, const struct event *ev)
{
	if (ev->graphs > f->jit_graphs)
		f->jit_graphs = ev->graphs;
}

void transition_jit_reported(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->jit_reported = true;
}

void transition_jit_stop(struct flow *f, const struct event *ev)
{
	f->jit_reported = true;
	begin_end(f, ev, STOP_OVER_BUDGET, true);
}

void transition_recompile(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->jit_reported = f->recompile = true;
	f->recompiles++;
	begin_drain(f, true);
}

/* Phase 1 begins again as if the cache had been found cold. */
static void begin_recompile(struct flow *f)
{
	f->recompile = f->cache_proved = f->incomplete_retried = f->fewer_workers = false;
	f->compile_failed = f->compile_last = false;
	f->compile_forced = true;
	f->cache = CACHE_COLD;
	f->budget[PHASE_PRECOMPILE] = (struct flow_budget){ 0 };
}

void transition_room(struct flow *f, const struct event *ev)
{
	if (ev->class != CLASS_STOPPED)
		transition_failure(f, ev);
	begin_recompile(f);
}

/* The command never began: nothing has failed, but the cache is another compiler's. */
void transition_other_compiler(struct flow *f, const struct event *ev)
{
	flow_copy(f->other_compiler, sizeof f->other_compiler, ev->signature);
	begin_recompile(f);
}

/* The cache is looked at again once the claim is held: if another run has repaired it meanwhile,
 * phase 1 is not needed, and damaged entries are removed before phase 1. */
void transition_lost_graphs(struct flow *f, const struct event *ev)
{
	(void)ev;
	begin_recompile(f);
	f->compile_forced = false;
	f->key_waited = true;
}

void transition_stage(struct flow *f, enum phase stage)
{
	f->stage = stage;
	f->cache = CACHE_NONE;
	f->cache_proved = f->precompiled = f->incomplete_retried = f->compile_forced = false;
	f->key_held = f->key_waited = f->fewer_workers = false;
	f->compile_failed = f->compile_last = false;
	f->compile_exit = 0;
	f->lock_key[0] = f->other_compiler[0] = '\0';
	f->budget[PHASE_PRECOMPILE] = (struct flow_budget){ 0 };
}

void transition_candidate(struct flow *f, const struct event *ev)
{
	f->candidate_step = EVENT_HAS(ev, step) ? ev->step : -1;
	flow_copy(f->candidate, sizeof f->candidate, ev->url);
}

/* Progress for the budgets. What a task failed of is remembered: others that go well say nothing
 * about it. */
void transition_task(struct flow *f, const struct event *ev)
{
	struct flow_budget *budget = &f->budget[f->phase];

	f->tasks[ev->index / 64] |= (uint64_t)1 << (ev->index % 64);
	f->tasks_done++;
	f->saved = true;
	budget->failures_without_checkpoint = budget->backoff_failures = 0;
}

void transition_promoting(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->promoting = true;
}

void transition_pause(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->paused = f->state;
}

void transition_leaving(struct flow *f, const struct event *ev)
{
	(void)ev;
	f->leaving = true;
}

void transition_forecast(struct flow *f, const struct event *ev)
{
	enum run_limit limit = LIMIT_NONE;

	f->forecast.ends = flow_training_ends(f->at, ev);
	if (f->forecast.ends.ms > 0)
		limit = limit_forecast(f);
	f->forecast.times = limit == f->forecast.limit ? f->forecast.times + 1 : 1;
	f->forecast.limit = limit;
}

void transition_risk(struct flow *f, const struct event *ev)
{
	f->forecast.reported |= 1U << ev->limit;
	f->forecast.limit = LIMIT_NONE;
	f->forecast.times = 0;
}
