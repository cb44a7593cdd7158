/* Folds events into the state of a run: see status.h. */
#include "jobs/report/status.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/flow/flow.h"
#include "jobs/report/status_internal.h"

struct status *status_new(const char *run)
{
	struct status *status = mem_zero(1, sizeof *status);

	status->root = json_object();
	status->attempts = json_array();
	status->jit = json_array();
	js_put_str(status->root, "run", run);
	status->cache_of = PHASE_TRAIN;
	return status;
}

void status_freep(struct status **status)
{
	if (!*status)
		return;
	json_decref((*status)->root);
	json_decref((*status)->attempts);
	json_decref((*status)->rejected);
	free((*status)->waits);
	free((*status)->tries);
	json_decref((*status)->jit);
	halt_release(&(*status)->halt);
	run_tally_release(&(*status)->tally);
	free(*status);
	*status = NULL;
}

/* Appends a new object to the named member array, created if absent. */
static json_t *new_row(struct status *status, const char *key)
{
	json_t *array = json_object_get(status->root, key), *row = json_object();

	if (!array) {
		array = json_array();
		json_object_set_new(status->root, key, array);
	}
	json_array_append_new(array, row);
	return row;
}

static json_t *newest_attempt(const struct status *status)
{
	return json_array_get(status->attempts, json_array_size(status->attempts) - 1);
}

/* Returns NULL if the journal has no such attempt. */
static json_t *find_attempt(struct status *status, enum phase phase, int64_t number)
{
	size_t i = json_array_size(status->attempts);

	while (i-- > 0) {
		json_t *attempt = json_array_get(status->attempts, i);

		if (js_int(attempt, "attempt", 0) == number &&
		    js_is(attempt, "phase", flow_phase_names[phase]))
			return attempt;
	}
	return NULL;
}

/* Returns the attempt that an event refers to. */
static json_t *attempt_of(struct status *status, const struct event *ev)
{
	return find_attempt(status, ev->phase, ev->attempt);
}

static void set_attempt_state(struct status *status, const struct event *ev, const char *state)
{
	json_t *attempt = attempt_of(status, ev);

	if (attempt)
		js_put_str(attempt, "state", state);
}

static void on_created(struct status *status, const struct event *ev)
{
	status_put(status->root, ev, EVF_name, EVF_engine, EVF_COUNT);
	js_put(status->root, "created", status_utc(ev->at));
	js_put_str(status->root, "mode", js_str(json_object_get(ev->plan, "compile"), "mode"));
	if (json_is_true(json_object_get(ev->plan, "benchmark")))
		js_put(status->root, "benchmark", json_true());
	if (json_object_get(ev->plan, "debug"))
		js_put(status->root, "debug", json_true());
	status->begun = true;
	status_cost_begin(status, ev->plan);
}

/* A forecast holds only while its attempt trains: it would count down during the wait for the next
 * attempt, and the cost at the end with it. */
static void forget_forecast(struct status *status)
{
	json_object_del(json_object_get(status->root, "progress"), "eta");
	status->ends.ms = 0;
}

/* The speed of the attempt before says nothing about the next one. */
static void forget_speed(struct status *status)
{
	json_t *progress = json_object_get(status->root, "progress");

	json_object_del(progress, "rate");
	json_object_del(progress, "samples_per_second");
	forget_forecast(status);
}

static void on_intended(struct status *status, const struct event *ev)
{
	json_t *attempt = json_object();

	status->phase = ev->phase;
	status->until.ms = 0;
	if (flow_phases[ev->phase].is_trial)
		status_name_stage(status, ev);
	if (flow_phases[ev->phase].reads_steps)
		forget_speed(status);
	status_put(attempt, ev, EVF_phase, EVF_stage, EVF_attempt, EVF_job, EVF_COUNT);
	js_put_str(attempt, "state", "intended");
	status_put(attempt, ev, EVF_nodes, EVF_resumed_from, EVF_workers, EVF_COUNT);
	/* checkpoint.chosen comes just before this event. */
	if (flow_phases[ev->phase].resumes && json_array_size(status->rejected))
		js_put(attempt, "rejected", json_incref(status->rejected));
	json_array_append_new(status->attempts, attempt);
	status_on_tasks(status, ev);
}

static void on_claimed(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);

	if (!attempt)
		return;
	js_put_str(attempt, "state", "running");
	json_object_del(attempt, "waits");
	if (!json_object_get(attempt, "started"))
		js_put(attempt, "started", status_utc(ev->at));
}

/* Health of the nodes, as gathered by node 0. */
static void on_health(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev), *health;

	if (!attempt)
		return;
	health = EVENT_HAS(ev, health) ? json_copy(ev->health) : json_object();
	status_put(health, ev, EVF_healthy, EVF_reason, EVF_COUNT);
	if (EVENT_HAS(ev, since) && EVENT_HAS(ev, finished))
		js_put(health, "seconds", json_real((double)(ev->finished - ev->since) / 1000));
	js_put(attempt, "health", health);
}

static void on_versions(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);

	if (attempt)
		status_put(attempt, ev, EVF_versions, EVF_image, EVF_elsewhere, EVF_COUNT);
}

/* The attempt is asked to save and to end; its end comes later. */
static void on_end_requested(struct status *status)
{
	json_t *last = newest_attempt(status);

	status->stop_requested = true;
	if (js_is(last, "state", "running"))
		js_put_str(last, "state", "stopping");
}

/* The cache was filled by another compiler. */
static void on_other_compiler(struct status *status, const struct event *ev)
{
	json_t *cache = status_cache_section(status, "cache");

	js_put_str(cache, "verdict", flow_cache_state_names[CACHE_COLD]);
	status_put(cache, ev, EVF_changed, EVF_COUNT);
	status_put_as(cache, ev, EVF_evidence, "reason");
}

/* Keeps the outputs of the newest attempt that left any. */
static void put_outputs(struct status *status, const struct event *ev)
{
	json_t *outputs = json_copy(ev->outputs);

	status_put(outputs, ev, EVF_phase, EVF_attempt, EVF_COUNT);
	js_put(status->root, "outputs", outputs);
}

static void on_attempt_ended(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);
	struct utc started;
	const char *text;

	if (!attempt)
		return;
	js_put_str(attempt, "state", "ended");
	js_put(attempt, "ended", status_utc(ev->at));
	if (flow_phases[ev->phase].reads_steps)
		forget_forecast(status);
	status_put(attempt, ev, EVF_exit, EVF_node, EVF_class, EVF_evidence, EVF_hint,
		   EVF_signature, EVF_stopped, EVF_mount, EVF_billable, EVF_hang, EVF_COUNT);
	if (EVENT_HAS(ev, changed))
		on_other_compiler(status, ev);
	if (EVENT_HAS(ev, outputs))
		put_outputs(status, ev);
	text = js_str(attempt, "started");
	/* The agent's clock if it reported both times: there may have been no driver to see
	 * them. */
	if (EVENT_HAS(ev, started) && EVENT_HAS(ev, finished) && ev->finished >= ev->started)
		js_put(attempt, "seconds", json_real((double)(ev->finished - ev->started) / 1000));
	else if (text && clock_utc_parse(text, &started))
		js_put(attempt, "seconds", json_real((double)(ev->at.ms - started.ms) / 1000));
}

/* Keeps the newer checkpoints that were rejected, and why. */
static void on_chosen(struct status *status, const struct event *ev)
{
	json_decref(status->rejected);
	status->rejected = EVENT_HAS(ev, rejected) ? json_incref(ev->rejected) : NULL;
}

/* Comes once, from the driver that found it out. For nodes that could not be given back it may come
 * later. */
static void on_kept(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);

	if (attempt)
		status_put_as(attempt, ev, EVF_seconds, "kept");
}

static void on_retry(struct status *status, const struct event *ev)
{
	json_t *attempt = newest_attempt(status);

	if (attempt)
		status_put(attempt, ev, EVF_action, EVF_COUNT);
	status->until.ms = ev->until;
}

/* After a takeover the driver measures again, so the figures that rest on more steps are kept. The
 * quantiles of earlier versions were of the driver's polling intervals, and mean nothing. */
static void put_throughput(json_t *attempt, const json_t *throughput)
{
	int64_t had = js_int(json_object_get(attempt, "throughput"), "n", 0);
	json_t *kept;

	if (had > js_int(throughput, "n", 0))
		return;
	kept = json_deep_copy(throughput);
	json_object_del(kept, "p50");
	json_object_del(kept, "p95");
	js_put(attempt, "throughput", kept);
}

/* The first step after a resume decides continuity. */
static void on_progress(struct status *status, const struct event *ev)
{
	json_t *progress = status_section(status, "progress");
	json_t *attempt = find_attempt(status, PHASE_TRAIN, ev->attempt);

	/* The cost is forecast from the same end of the training as the limits are. */
	status_put(progress, ev, EVF_step, EVF_of, EVF_rate, EVF_samples_per_second, EVF_unit,
		   EVF_eta, EVF_COUNT);
	if (EVENT_HAS(ev, eta))
		status->ends = flow_training_ends(ev->at, ev);
	if (EVENT_HAS(ev, metrics))
		js_put(status->root, "metrics", json_copy(ev->metrics));
	if (attempt && EVENT_HAS(ev, throughput)) {
		put_throughput(attempt, ev->throughput);
		js_put(status->root, "throughput",
		       json_deep_copy(json_object_get(attempt, "throughput")));
	}
	if (attempt && !json_object_get(attempt, "first_step"))
		status_put_as(attempt, ev, EVF_step, "first_step");
}

/* Sums the skipped bytes: there may be several gaps. */
static void on_log_read(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev), *log;
	int64_t skipped;

	if (!attempt)
		return;
	log = json_object_get(attempt, "log");
	skipped = js_int(log, "skipped_bytes", 0) +
		  (EVENT_HAS(ev, skipped_bytes) ? ev->skipped_bytes : 0);
	log = json_object();
	status_put(log, ev, EVF_read_bytes, EVF_size_bytes, EVF_COUNT);
	if (skipped > 0)
		js_put(log, "skipped_bytes", json_integer(skipped));
	js_put(attempt, "log", log);
}

static void on_continuity(struct status *status, const struct event *ev)
{
	json_t *attempt = find_attempt(status, PHASE_TRAIN, ev->attempt);

	if (attempt)
		status_put(attempt, ev, EVF_continuity, EVF_first_step, EVF_COUNT);
}

/* Comes once for each limit. */
static void on_risk(struct status *status, const struct event *ev)
{
	status_put(new_row(status, "at_risk"), ev, EVF_limit, EVF_reason, EVF_COUNT);
}

/* A notification failed for good; it is not tried again. */
static void on_untold(struct status *status, const struct event *ev)
{
	status_put(new_row(status, "untold"), ev, EVF_rule, EVF_reason, EVF_hint, EVF_COUNT);
}

static void on_run_ended(struct status *status, const struct event *ev)
{
	json_t *last = newest_attempt(status);

	status->ended = true;
	status_end_cache_wait(status);
	status_put(status->root, ev, EVF_state, EVF_exit_code, EVF_COUNT);
	js_put(status->root, "ended", status_utc(ev->at));
	status_put(status->root, ev, EVF_reason, EVF_evidence, EVF_hint, EVF_COUNT);
	if (EVENT_HAS(ev, phase))
		status->phase = ev->phase;
	if (last && ev->state != OUTCOME_SUCCEEDED)
		js_put_str(last, "action", flow_action_names[ACTION_STOP]);
	js_put(status->root, "driver", json_null());
}

static void on_took_over(struct status *status, const struct event *ev)
{
	json_t *driver = json_object();

	status->left = status->paused = false;
	status_put(driver, ev, EVF_host, EVF_pid, EVF_epoch, EVF_COUNT);
	js_put(status->root, "driver", driver);
}

/* Removes the rejection of a checkpoint that was later found complete. */
static void drop_passed(struct status *status, const struct event *ev)
{
	json_t *rows = json_object_get(status->root, "passed_over");
	size_t i = json_array_size(rows);

	while (i-- > 0) {
		const json_t *row = json_array_get(rows, i);

		if (js_int(row, "attempt", 0) == ev->attempt && js_int(row, "step", -1) == ev->step)
			json_array_remove(rows, i);
	}
	if (rows && json_array_size(rows) == 0)
		json_object_del(status->root, "passed_over");
}

static void on_checkpoint(struct status *status, const struct event *ev)
{
	status_put(status_section(status, "checkpoint"), ev, EVF_step, EVF_url, EVF_COUNT);
	drop_passed(status, ev);
}

static void on_passed(struct status *status, const struct event *ev)
{
	json_t *row = new_row(status, "passed_over");

	status_put(row, ev, EVF_attempt, EVF_step, EVF_url, EVF_reason, EVF_hint, EVF_COUNT);
	js_put(row, "at", status_utc(ev->at));
}

/* An external service fails, or works again. */
static void on_trouble(struct status *status, const struct event *ev)
{
	free(TAKE(status->tries));
	if (ev->kind == EV_DRIVER_WAITING)
		status->tries = mem_format("retries of a failing service: %s", ev->reason);
}

static void on_left(struct status *status, const struct event *ev)
{
	free(TAKE(status->tries));
	(void)ev;
	status->left = true;
	js_put(status->root, "driver", json_null());
}

static void on_submitted(struct status *status, const struct event *ev)
{
	set_attempt_state(status, ev, "starting");
}

/* The ends of the attempts before the last one are lost, but the engine runs none of them. */
static void on_settled(struct status *status, const struct event *ev)
{
	size_t count = json_array_size(status->attempts);

	(void)ev;
	for (size_t i = 0; i + 1 < count; i++)
		js_put_str(json_array_get(status->attempts, i), "state", "ended");
}

/* Records why the engine does not run the job yet. */
static void on_waiting(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);

	if (attempt)
		status_put_as(attempt, ev, EVF_reason, "waits");
}

static void on_lost(struct status *status, const struct event *ev)
{
	set_attempt_state(status, ev, "lost");
}

/* A process of an agent cannot be restarted: the attempt is about to end. */
static void on_worker_lost(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev), *worker;

	if (!attempt)
		return;
	worker = json_object();
	status_put(worker, ev, EVF_node, EVF_reason, EVF_hint, EVF_COUNT);
	js_put(attempt, "worker", worker);
	set_attempt_state(status, ev, "stopping");
}

static void on_request(struct status *status, const struct event *ev)
{
	(void)ev;
	on_end_requested(status);
}

static void on_limit(struct status *status, const struct event *ev)
{
	if (ev->limit != LIMIT_UNREACHABLE)
		on_end_requested(status);
}

/* Handler of each event; NULL: ignored. */
static void (*const changes[EV_COUNT])(struct status *status, const struct event *ev) = {
	[EV_RUN_CREATED] = on_created,
	[EV_JOURNAL_SETTLED] = on_settled,
	[EV_DRIVER_TOOK_OVER] = on_took_over,
	[EV_DRIVER_LEFT] = on_left,
	[EV_DRIVER_WAITING] = on_trouble,
	[EV_DRIVER_WENT_ON] = on_trouble,
	[EV_CACHE_WAITING] = status_on_cache,
	[EV_CACHE_CLAIMED] = status_on_cache,
	[EV_CACHE_CHECKED] = status_on_cache,
	[EV_CACHE_VERIFIED] = status_on_cache,
	[EV_ATTEMPT_INTENDED] = on_intended,
	[EV_ATTEMPT_SUBMITTED] = on_submitted,
	[EV_ATTEMPT_WAITING] = on_waiting,
	[EV_ATTEMPT_CLAIMED] = on_claimed,
	[EV_ATTEMPT_FOUND] = on_claimed,
	[EV_HEALTH_CHECKED] = on_health,
	[EV_ATTEMPT_VERSIONS] = on_versions,
	[EV_ATTEMPT_LOST] = on_lost,
	[EV_ATTEMPT_ENDED] = on_attempt_ended,
	[EV_ATTEMPT_KEPT] = on_kept,
	[EV_LOG_READ] = on_log_read,
	[EV_WORKER_LOST] = on_worker_lost,
	[EV_COMPILE_PROGRESS] = status_on_graphs,
	[EV_JIT_COMPILED] = status_on_jit,
	[EV_JIT_EXCEEDED] = status_on_jit_exceeded,
	[EV_TRAIN_PROGRESS] = on_progress,
	[EV_TRAIN_CONTINUITY] = on_continuity,
	[EV_CHECKPOINT_COMPLETE] = on_checkpoint,
	[EV_CHECKPOINT_REJECTED] = on_passed,
	[EV_CHECKPOINT_CHOSEN] = on_chosen,
	[EV_TASK_DONE] = status_on_stage,
	[EV_EVALUATE_MEASURED] = status_on_stage,
	[EV_CANDIDATE_CHOSEN] = status_on_stage,
	[EV_GATE_JUDGED] = status_on_stage,
	[EV_PROMOTE_DONE] = status_on_stage,
	[EV_RUN_PAUSED] = status_on_stage,
	[EV_RETRY_SCHEDULED] = on_retry,
	[EV_REQUEST_STOP] = on_request,
	[EV_REQUEST_DRAIN] = on_request,
	[EV_LIMIT_REACHED] = on_limit,
	[EV_RUN_AT_RISK] = on_risk,
	[EV_NOTIFY_FAILED] = on_untold,
	[EV_RUN_ENDED] = on_run_ended,
};

void status_progress_update(struct status *status, struct utc at, int64_t step)
{
	halt_step(&status->halt, at, step);
}

void status_undriven(struct status *status)
{
	if (status->ended)
		return;
	status->left = true;
	ledger_undriven(&status->ledger);
	js_put(status->root, "driver", json_null());
}

void status_add(struct status *status, const struct event *ev)
{
	status_cost_add(status, ev);
	if (changes[ev->kind])
		changes[ev->kind](status, ev);
	halt_add(&status->halt, ev);
	run_tally_add(&status->tally, ev);
}
