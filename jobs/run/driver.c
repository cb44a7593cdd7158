/*
 * The dispatcher: asks the flow for effects and carries them out, one state after the other, from
 * the first turn of the loop to the last. It stands above all files of the driver, so none of them
 * calls it: they record events and wake it (driver_core.c). See driver.h.
 */
#include "jobs/run/driver.h"

#include <unistd.h>

#include "jobs/base/process/cancel.h"
#include "jobs/flow/rules.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/journal/lease.h"
#include "jobs/run/notify.h"
#include "jobs/run/notify_queue.h"
#include "jobs/run/plan/preflight.h"

/* A decision is good only for the state it was made from: if another event came between, the flow
 * is asked again. */
static int record_effect(struct driver *driver, const struct effect *effect, struct err **err)
{
	struct event ev = effect->event;

	return driver_try_record(driver, &ev, err) < 0 ? -1 : 0;
}

static int apply_watch(struct driver *driver, const struct effect *effect, struct err **err)
{
	if (!watch_is(driver, effect->phase, effect->attempt) &&
	    watch_open(driver, effect->phase, effect->attempt, effect->job, err) < 0)
		return -1;
	driver_wake_in(driver, watch_pause_ms(driver));
	return watch_turn(driver, err);
}

static int apply_stop(struct driver *driver, const struct effect *effect, struct err **err)
{
	return driver_stop_job(driver, effect->phase, effect->attempt, effect->job, err);
}

/* If a job cannot be told to save, this is tried for so long. */
#define UNTOLD_MS 5000

/* A job that cannot be told to save is stopped soon: what it computes until then is paid for, and
 * lost. The drain began when its time was set, whoever was the driver then. */
static int apply_drain(struct driver *driver, const struct effect *effect, struct err **err)
{
	int64_t left_ms = effect->until.ms - driver_now(driver).ms - FLOW_DRAIN_MARGIN_MS;
	bool time_is_over = left_ms <= 0 || driver->flow.policy.drain_ms - left_ms >= UNTOLD_MS;
	AUTO(err_freep) struct err *ignored = NULL;

	/* A repetition that fails does not take back what the job was told. */
	if (driver->drain_told_attempt == effect->attempt)
		return 0;
	if (driver_write_drain(driver, effect->phase, effect->attempt, err) == 0) {
		driver->drain_told_attempt = effect->attempt;
		return 0;
	}
	if (driver->drain_failed_attempt != effect->attempt &&
	    chores_fail(driver, effect->phase, effect->attempt,
			"cannot ask the job to save; the job is stopped unless that works "
			"within seconds",
			*err, &ignored) == 0)
		driver->drain_failed_attempt = effect->attempt;
	err_freep(&ignored);
	if (time_is_over && apply_stop(driver, effect, &ignored) == 0)
		err_freep(err); /* the job is stopped instead */
	return *err ? -1 : 0;
}

static int apply_candidate(struct driver *driver, struct err **err)
{
	bool again;

	if (candidate_choose(driver, &again, err) < 0)
		return -1;
	if (again)
		driver_wake_in(driver, TICK_MS);
	return 0;
}

static int apply_choice(struct driver *driver, int64_t below, struct err **err)
{
	bool again;

	if (checkpoints_choose(driver, below, &again, err) < 0)
		return -1;
	if (again)
		driver_wake_in(driver, TICK_MS);
	return 0;
}

/* True if the next attempt would take over machines among which is a sick node. */
static bool wants_others(const struct event *ev)
{
	return ev->kind == EV_RETRY_SCHEDULED && ev->action == ACTION_EXCLUDE;
}

static int apply_record(struct driver *driver, const struct effect *effect, struct err **err)
{
	bool next = wants_others(&effect->event);
	int64_t wait_ms = 0;

	if ((next || effect->event.kind == EV_RUN_ENDED) &&
	    attempt_cost_release(driver, next, &wait_ms, err) < 0)
		return -1;
	if (wait_ms == 0)
		return record_effect(driver, effect, err);
	driver_wake_in(driver, wait_ms);
	return 0;
}

static int apply_effect(struct driver *driver, const struct effect *effect, struct err **err)
{
	int64_t wait_ms = 0;

	switch (effect->kind) {
	case EFFECT_RECORD:
		return apply_record(driver, effect, err);
	case EFFECT_CHECK_CACHE:
		if (cache_preload(driver, &wait_ms, err) < 0)
			return -1;
		if (wait_ms == 0)
			return cache_gate_check(driver, err);
		driver_wake_in(driver, wait_ms);
		return 0;
	case EFFECT_SETTLE:
		return settle_run(driver, err);
	case EFFECT_CLAIM_KEY:
		if (precompile_claim_take(driver, effect, &wait_ms, err) < 0)
			return -1;
		if (wait_ms > 0)
			driver_wake_in(driver, wait_ms);
		return 0;
	case EFFECT_FIND:
		return submit_find(driver, effect, err);
	case EFFECT_SUBMIT:
		if (submit_job(driver, effect, &wait_ms, err) < 0)
			return -1;
		if (wait_ms > 0)
			driver_wake_in(driver, wait_ms);
		return 0;
	case EFFECT_WATCH:
		return apply_watch(driver, effect, err);
	case EFFECT_CHOOSE_CHECKPOINT:
		return apply_choice(driver, effect->below, err);
	case EFFECT_CHOOSE_CANDIDATE:
		return apply_candidate(driver, err);
	case EFFECT_JUDGE:
		return verdict_record(driver, err);
	case EFFECT_DRAIN:
		return apply_drain(driver, effect, err);
	case EFFECT_STOP:
		return apply_stop(driver, effect, err);
	case EFFECT_LEAVE:
		driver_leave(driver, "the job was out of sight for limits.unreachable",
			     EXIT_UNREACHABLE);
		return 0;
	case EFFECT_VERIFY:
		if (cache_gate_verify(driver, &wait_ms, err) < 0)
			return -1;
		if (wait_ms > 0)
			driver_wake_in(driver, wait_ms);
		return 0;
	case EFFECT_WAIT:
		driver_wake_in(driver, effect->until.ms - driver_now(driver).ms);
		return 0;
	case EFFECT_DONE:
		driver->exit_code = (enum exit_code)driver->flow.exit_code;
		notify_flush(driver);
		return 0;
	case EFFECT_PROMOTE:
		return promote_candidate(driver, err);
	case EFFECT_KIND_COUNT:
		break;
	}
	return err_set(err, EXIT_DEFECT, "the flow asked for something unknown");
}

/* Renews the lease while the driver has nothing else to do. */
static void on_lease(void *arg)
{
	struct driver *driver = arg;

	if (driver->failure || driver->left)
		return;
	if (again_may_act(driver) || !driver->failure)
		loop_after(driver->loop, lease_due(driver->lease), on_lease, driver);
}

/* True if a failure of the effect must not keep the attempt from being watched: the next effect
 * follows all the same. */
static bool lets_others(const struct effect *effect)
{
	return effect->kind == EFFECT_DRAIN || effect->kind == EFFECT_STOP ||
	       effect->kind == EFFECT_WATCH;
}

/* True if the engine has not spoken of the job for limits.unreachable. The flow counts from what is
 * journalled: an end that was seen and whose log could not be read is not. */
static bool is_out_of_sight(const struct driver *driver)
{
	int64_t seen_ms = driver->job_seen_at.ms;

	return seen_ms == 0 || clock_mono_now().ms - seen_ms >= driver->flow.policy.unreachable_ms;
}

/* True if the effect is still carried out after an earlier one has failed: a watch, a limit of the
 * whole run, and that of a job out of sight, because its stop may be refused until it is seen. An
 * effect that depends on how the attempt was seen just now is not. */
static bool is_due_blindly(const struct driver *driver, const struct effect *effect)
{
	if (effect->kind == EFFECT_WATCH)
		return true;
	if (effect->kind != EFFECT_RECORD || effect->event.kind != EV_LIMIT_REACHED)
		return false;
	return effect->event.limit == LIMIT_DEADLINE || effect->event.limit == LIMIT_COST ||
	       (effect->event.limit == LIMIT_UNREACHABLE && is_out_of_sight(driver));
}

/* Carries out the effects of one state, in their order, until one of them changes it. If it returns
 * -1, driver->failure is the first failure. */
static int apply_effects(struct driver *driver, const struct effects *effects)
{
	AUTO(err_freep) struct err *first = NULL;
	bool had_job = flow_may_have_job(&driver->flow);
	int64_t before = driver->seq;

	for (int i = 0; i < effects->count && driver->seq == before && !driver->left; i++) {
		const struct effect *effect = &effects->list[i];

		if (first && !is_due_blindly(driver, effect))
			continue;
		if (driver_keep(driver, &driver->failure) < 0 ||
		    (apply_effect(driver, effect, &driver->failure) < 0 &&
		     (driver->stood_down || !lets_others(effect)))) {
			if (first && !driver->stood_down) {
				err_freep(&driver->failure);
				driver->failure = TAKE(first);
			}
			return -1;
		}
		if (driver->failure && !first)
			first = TAKE(driver->failure);
		err_freep(&driver->failure);
	}
	/* An order that could not be given to a job is of no account once the job has ended. */
	if (had_job && !flow_may_have_job(&driver->flow))
		return 0;
	driver->failure = TAKE(first);
	return driver->failure ? -1 : 0;
}

/* True if the run is to pause, after *ret. */
static bool pause_after(const struct driver *driver, enum phase *ret)
{
	const struct flow *flow = &driver->flow;
	bool as_before = driver->options->pauses_as_before && flow->state != FLOW_PAUSED;

	if (driver->options->pause_after)
		*ret = *driver->options->pause_after;
	else if (as_before && flow->pause_after >= 0)
		*ret = (enum phase)flow->pause_after;
	else
		return false;
	return true;
}

/* True for a run that is paused, and that is not to go on any further. */
static bool stays_paused(const struct driver *driver)
{
	return driver->flow.state == FLOW_PAUSED && driver->options->pause_after &&
	       flow_is_past(&driver->flow, *driver->options->pause_after);
}

static int record_takeover(struct driver *driver, struct err **err)
{
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER };
	char host[256] = "?";
	enum phase phase;

	gethostname(host, sizeof host - 1);
	EVENT_SET_STR(&ev, host, host);
	EVENT_SET(&ev, pid, (int64_t)getpid());
	EVENT_SET(&ev, epoch, driver->flow.epoch + 1);
	if (pause_after(driver, &phase))
		EVENT_SET(&ev, pause_after, phase);
	return driver_record(driver, &ev, err);
}

/* A driver that takes a run over may use another endpoint than the one that began it. If that does
 * not keep the conditions of writes, this driver ends: another one can go on. */
static int find_trust(struct driver *driver, struct err **err)
{
	if (driver->trusts || driver->flow.state == FLOW_ENDED)
		return 0;
	if (preflight_conditions(&driver->probe, driver->plan, err) == 0) {
		driver->trusts = true;
		return 0;
	}
	driver->stood_down = (*err)->code != EXIT_UNREACHABLE && !err_passes(*err);
	return -1;
}

/* A run that goes on keeps its image, wherever the tag leads by now. The event is optional: a
 * failed request or append is ignored. */
static void record_image_moved(struct driver *driver)
{
	const json_t *image = json_object_get(driver->plan, "image");
	AUTO(auto_free) char *now = driver->goes_on ? image_plan_moved(driver->plan) : NULL;
	AUTO(auto_free) char *words = NULL;
	struct event ev = { .kind = EV_IMAGE_MOVED };
	json_auto_t *changed = NULL;
	AUTO(err_freep) struct err *ignored = NULL;

	if (!now)
		return;
	words = mem_format("the tag of '%.200s' has moved: %s → %s; this run stays with the first",
			   js_str(image, "reference"), js_str(image, "digest"), now);
	changed = json_pack("[{s:s, s:O, s:s}]", "field", "image", "old",
			    json_object_get(image, "digest"), "new", now);
	EVENT_SET(&ev, changed, changed);
	EVENT_SET_STR(&ev, reason, words);
	(void)!driver_record(driver, &ev, &ignored);
}

/* A job whose time is over is stopped whatever its workspace answers: nothing is written there. */
static void stop_anyway(struct driver *driver)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct effects effects;

	flow_effects(&driver->flow, driver_now(driver), &effects);
	for (int i = 0; i < effects.count && !driver->stood_down; i++)
		if (effects.list[i].kind == EFFECT_STOP && driver_keep(driver, &ignored) == 0)
			(void)!apply_stop(driver, &effects.list[i], &ignored);
}

/* Prepares the driver before any effect: journals the takeover, tries the conditions of writes,
 * reads what other processes have appended, and does the chores of the attempt that has just ended.
 * Returns 1 to go on, 0 not now, -1. */
static int prepare(struct driver *driver, struct err **err)
{
	int64_t wait_ms = 0;

	if (driver->flow.state != FLOW_ENDED && !driver->took_over) {
		if (record_takeover(driver, err) < 0)
			return -1;
		record_image_moved(driver);
	}
	driver->took_over = true;
	if (find_trust(driver, err) < 0) {
		stop_anyway(driver);
		return -1;
	}
	if (driver->unsure && driver_absorb(driver, err) < 0)
		return -1;
	driver->unsure = false;
	if (chores_do(driver, &wait_ms, err) < 0)
		return -1;
	if (wait_ms > 0)
		driver_wake_in(driver, wait_ms);
	return wait_ms == 0;
}

/* Carries out effects until they need time or news from outside: each recorded event can change
 * what the flow asks for. */
static int pump_once(struct driver *driver)
{
	int64_t before;

	do {
		struct effects effects;
		int ready = prepare(driver, &driver->failure);

		if (ready <= 0)
			return ready;
		before = driver->seq;
		precompile_claim_drop_unneeded(driver);
		flow_effects(&driver->flow, driver_now(driver), &effects);
		if (apply_effects(driver, &effects) < 0)
			return -1;
	} while (driver->seq != before && !driver->left);
	return 0;
}

static void pump(struct driver *driver)
{
	if (driver->stop_pending && !interrupt_request_stop(driver))
		return;
	if (pump_once(driver) < 0) {
		if (!again_try(driver))
			loop_quit(driver->loop);
		return;
	}
	if (driver->left)
		return;
	again_works(driver);
	notify_pump(driver);
}

static void on_turn(struct driver *driver)
{
	if (!driver->failure && !driver->left)
		pump(driver);
}

static int64_t poll_ms(const struct driver *driver)
{
	return journal_is_remote(driver->journal) ? POLL_REMOTE_MS : POLL_MS;
}

static void on_poll(void *arg)
{
	struct driver *driver = arg;
	int64_t before = driver->seq;

	driver->poll = loop_after(driver->loop, poll_ms(driver), on_poll, driver);
	if (driver->failure || driver->left)
		return;
	if (beside_stop_file_read(driver))
		driver_wake(driver);
	if (driver_absorb(driver, &driver->failure) < 0) {
		/* A driver that waits already tries again at the end of its pause, which must not
		 * begin anew at each look. */
		if (driver->away_since.ms > 0 && driver->timer) {
			driver->unsure = true;
			err_freep(&driver->failure);
		} else if (!again_try(driver)) {
			loop_quit(driver->loop);
		}
	} else if (driver->seq != before)
		driver_wake(driver);
}

static int run_loop(struct driver *driver, struct err **err)
{
	if (loop_new(&driver->loop, err) < 0)
		return -1;
	driver->turn = on_turn;
	interrupt_watch_signals(driver);
	if (driver->options->on_loop && driver->flow.state != FLOW_ENDED)
		driver->options->on_loop(driver->options->arg, driver->loop);
	interrupt_handle_signals(driver);
	driver->poll = loop_after(driver->loop, poll_ms(driver), on_poll, driver);
	if (lease_due(driver->lease) >= 0)
		loop_after(driver->loop, lease_due(driver->lease), on_lease, driver);
	precompile_claim_keep(driver);
	driver_wake_in(driver, 0);
	if (loop_run(driver->loop, err) < 0)
		return -1;
	if (driver->failure) {
		*err = TAKE(driver->failure);
		cancel_after(LEAVE_MS);
		if (!driver->stood_down && driver->took_over)
			driver_record_left(driver, (*err)->message);
		return err_hint(err, "%s%srun %s is safe; 'stoker resume %s' continues it",
				(*err)->hint ? (*err)->hint : "", (*err)->hint ? "; " : "",
				driver->run, driver->run);
	}
	return 0;
}

int driver_begin(struct journal *journal, const struct driver_options *options, struct err **err)
{
	AUTO(ready_release)
	struct driver driver = { .journal = journal, .options = options, .run = options->run };

	return ready_make(&driver, err);
}

int driver_run(struct journal *journal, const struct driver_options *options,
	       enum exit_code *ret_exit, struct err **err)
{
	AUTO(ready_release)
	struct driver driver = { .journal = journal, .options = options, .run = options->run };

	if (ready_make(&driver, err) < 0)
		return -1;
	*ret_exit = driver.exit_code = (enum exit_code)driver.flow.exit_code;
	if (stays_paused(&driver))
		return 0;
	if (driver.flow.state == FLOW_ENDED)
		return notify_queue_pending(&driver) ? run_loop(&driver, err) : 0;
	if (run_loop(&driver, err) < 0)
		return -1;
	*ret_exit = driver.exit_code;
	return 0;
}
