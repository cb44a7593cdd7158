/* Events in, the state of a run out: see status.h. */
#include "jobs/report/status.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/report/status_inside.h"

struct status *status_new(const char *run)
{
	struct status *status = mem_zero(1, sizeof *status);

	status->root = json_object();
	status->attempts = json_array();
	status->jit = json_array();
	js_put_str(status->root, "run", run);
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
	json_decref((*status)->jit);
	free(*status);
	*status = NULL;
}

static json_t *utc_json(struct utc at)
{
	char text[UTC_TEXT];

	return json_string(utc_format(at, text));
}

/* The named member object, made if need be. */
static json_t *section(struct status *status, const char *key)
{
	json_t *object = json_object_get(status->root, key);

	if (!object) {
		object = json_object();
		json_object_set_new(status->root, key, object);
	}
	return object;
}

/* A new object at the end of the named member array, made if need be. */
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

/* The attempt an event speaks of, NULL if the journal never intended it. */
static json_t *attempt_of(struct status *status, const struct event *ev)
{
	size_t i = json_array_size(status->attempts);

	while (i-- > 0) {
		json_t *attempt = json_array_get(status->attempts, i);

		if (js_int(attempt, "attempt", 0) == ev->attempt &&
		    js_is(attempt, "phase", phase_names[ev->phase]))
			return attempt;
	}
	return NULL;
}

static void put_int(json_t *object, const struct event *ev, enum event_field_id id, const char *key)
{
	const struct event_field_row *row = &event_fields[id];
	const char *at = (const char *)ev + row->offset;

	if (ev->present & FIELD_SET_OF(id))
		js_put(object, key, json_integer(*(const int64_t *)(const void *)at));
}

static void put_text_as(json_t *object, const struct event *ev, enum event_field_id id,
			const char *key)
{
	const char *at = (const char *)ev + event_fields[id].offset;

	if (ev->present & FIELD_SET_OF(id))
		js_put_str(object, key, *(const char *const *)(const void *)at);
}

static void put_text(json_t *object, const struct event *ev, enum event_field_id id)
{
	put_text_as(object, ev, id, event_fields[id].name);
}

static void set_attempt_state(struct status *status, const struct event *ev, const char *state)
{
	json_t *attempt = attempt_of(status, ev);

	if (attempt)
		js_put_str(attempt, "state", state);
}

static void on_created(struct status *status, const struct event *ev)
{
	double price = js_real(json_object_get(ev->plan, "limits"), "price", 0);

	js_put_str(status->root, "name", ev->name);
	js_put_str(status->root, "engine", ev->engine);
	js_put(status->root, "created", utc_json(ev->at));
	js_put_str(status->root, "mode", js_str(json_object_get(ev->plan, "compile"), "mode"));
	status->begun = true;
	status->price_per_hour = price * (double)js_int(ev->plan, "nodes", 1);
}

static void on_intended(struct status *status, const struct event *ev)
{
	json_t *attempt = json_object();

	status->phase = ev->phase;
	status->until.ms = 0;
	js_put_str(attempt, "phase", phase_names[ev->phase]);
	js_put(attempt, "attempt", json_integer(ev->attempt));
	js_put_str(attempt, "job", ev->job);
	js_put_str(attempt, "state", "intended");
	put_int(attempt, ev, EVF_nodes, "nodes");
	put_text(attempt, ev, EVF_resumed_from);
	put_int(attempt, ev, EVF_workers, "workers");
	/* The choice came just before. */
	if (ev->phase == PHASE_TRAIN && json_array_size(status->rejected))
		js_put(attempt, "rejected", json_incref(status->rejected));
	json_array_append_new(status->attempts, attempt);
}

static void on_claimed(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);

	if (!attempt)
		return;
	js_put_str(attempt, "state", "running");
	json_object_del(attempt, "waits");
	if (!json_object_get(attempt, "started"))
		js_put(attempt, "started", utc_json(ev->at));
}

/* How the nodes are, as node 0 gathered it. */
static void on_health(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev), *health;

	if (!attempt)
		return;
	health = EVENT_HAS(ev, health) ? json_copy(ev->health) : json_object();
	js_put(health, "healthy", json_boolean(ev->healthy));
	put_text(health, ev, EVF_reason);
	if (EVENT_HAS(ev, since) && EVENT_HAS(ev, finished))
		js_put(health, "seconds", json_real((double)(ev->finished - ev->since) / 1000));
	js_put(attempt, "health", health);
}

/* It is asked to save and to end; its end comes later. */
static void on_end_wanted(struct status *status)
{
	json_t *last = json_array_get(status->attempts, json_array_size(status->attempts) - 1);
	const char *state = last ? js_str(last, "state") : NULL;

	status->stop_requested = true;
	if (state && strcmp(state, "running") == 0)
		js_put_str(last, "state", "stopping");
}

/* What the cache holds is another compiler's. */
static void on_other_compiler(struct status *status, const struct event *ev)
{
	json_t *cache = section(status, "cache");

	js_put_str(cache, "verdict", cache_state_names[CACHE_COLD]);
	js_put(cache, "changed", json_incref(ev->changed));
	put_text_as(cache, ev, EVF_evidence, "reason");
}

static void on_attempt_ended(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);
	struct utc started;
	const char *text;

	if (!attempt)
		return;
	js_put_str(attempt, "state", "ended");
	js_put(attempt, "ended", utc_json(ev->at));
	put_int(attempt, ev, EVF_exit, "exit");
	put_int(attempt, ev, EVF_node, "node");
	js_put_str(attempt, "class", class_names[ev->class]);
	put_text(attempt, ev, EVF_evidence);
	put_text(attempt, ev, EVF_hint);
	put_text(attempt, ev, EVF_signature);
	put_text(attempt, ev, EVF_stopped);
	put_text(attempt, ev, EVF_mount);
	if (EVENT_HAS(ev, billable))
		js_put(attempt, "billable", json_real((double)ev->billable / 1000));
	if (EVENT_HAS(ev, changed))
		on_other_compiler(status, ev);
	if (EVENT_HAS(ev, hang))
		js_put(attempt, "hang", json_real((double)ev->hang / 1000));
	text = js_str(attempt, "started");
	/* By the agent's clock where it told: nobody may have been there to see it. */
	if (EVENT_HAS(ev, started) && EVENT_HAS(ev, finished) && ev->finished >= ev->started)
		js_put(attempt, "seconds", json_real((double)(ev->finished - ev->started) / 1000));
	else if (text && utc_parse(text, &started))
		js_put(attempt, "seconds", json_real((double)(ev->at.ms - started.ms) / 1000));
}

/* Newer ones that were passed over, and why. */
static void on_chosen(struct status *status, const struct event *ev)
{
	json_decref(status->rejected);
	status->rejected = EVENT_HAS(ev, rejected) ? json_incref(ev->rejected) : NULL;
}

/* Once: by the driver that found it out. Of what could not be given back it may come later. */
static void on_kept(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);

	if (attempt && EVENT_HAS(ev, seconds))
		js_put(attempt, "kept", json_real(ev->seconds));
}

static void on_retry(struct status *status, const struct event *ev)
{
	json_t *attempt = json_array_get(status->attempts, json_array_size(status->attempts) - 1);

	if (attempt)
		js_put_str(attempt, "action", action_names[ev->action]);
	status->until.ms = ev->until;
}

/* After a takeover an attempt is measured anew: what rests on more steps is kept. */
static void put_throughput(json_t *attempt, const json_t *throughput)
{
	int64_t had = js_int(json_object_get(attempt, "throughput"), "n", 0);

	if (had <= js_int(throughput, "n", 0))
		js_put(attempt, "throughput", json_deep_copy(throughput));
}

/* The first step after a resume is what continuity is judged by. */
static void on_progress(struct status *status, const struct event *ev)
{
	json_t *progress = section(status, "progress"), *attempt = NULL;
	struct event train = *ev;

	put_int(progress, ev, EVF_step, "step");
	put_int(progress, ev, EVF_of, "of");
	if (EVENT_HAS(ev, rate))
		js_put(progress, "rate", json_real(ev->rate));
	if (EVENT_HAS(ev, eta))
		js_put(progress, "eta", json_real(ev->eta));
	if (EVENT_HAS(ev, metrics))
		json_object_update(section(status, "metrics"), ev->metrics);
	train.phase = PHASE_TRAIN;
	attempt = attempt_of(status, &train);
	if (attempt && EVENT_HAS(ev, throughput)) {
		put_throughput(attempt, ev->throughput);
		js_put(status->root, "throughput",
		       json_deep_copy(json_object_get(attempt, "throughput")));
	}
	if (attempt && EVENT_HAS(ev, step) && !json_object_get(attempt, "first_step"))
		put_int(attempt, ev, EVF_step, "first_step");
}

static void on_continuity(struct status *status, const struct event *ev)
{
	struct event train = *ev;
	json_t *attempt;

	train.phase = PHASE_TRAIN;
	attempt = attempt_of(status, &train);
	if (!attempt)
		return;
	js_put_str(attempt, "continuity", continuity_names[ev->continuity]);
	put_int(attempt, ev, EVF_first_step, "first_step");
}

static void on_cache_checked(struct status *status, const struct event *ev)
{
	json_t *cache = section(status, "cache");

	js_put_str(cache, "verdict", cache_state_names[ev->verdict]);
	put_text(cache, ev, EVF_graph_key);
	put_int(cache, ev, EVF_graphs, "graphs");
	put_text(cache, ev, EVF_reason);
	if (ev->verdict == CACHE_WARM)
		put_int(cache, ev, EVF_graphs, "done");
}

/* Another run precompiles the same graphs. */
static void on_cache_waiting(struct status *status, const struct event *ev)
{
	json_t *holder = json_object();
	struct utc since = { EVENT_HAS(ev, since) ? ev->since : ev->at.ms };

	js_put_str(holder, "run", ev->holder);
	put_text(holder, ev, EVF_host);
	js_put(holder, "since", utc_json(since));
	js_put(section(status, "cache"), "waits_for", holder);
	status->waits =
		mem_format("run %s%s%s, which precompiles the same graphs", ev->holder,
			   EVENT_HAS(ev, host) ? " on " : "", EVENT_HAS(ev, host) ? ev->host : "");
}

static void end_cache_wait(struct status *status)
{
	if (status->waits)
		json_object_del(section(status, "cache"), "waits_for");
	free(TAKE(status->waits));
}

/* As far as it is known: by the logs, and in the end by the listing, which knows better. */
static json_t *put_graphs(struct status *status, const struct event *ev)
{
	json_t *graphs = section(status, "graphs");

	put_int(graphs, ev, EVF_graphs, "named");
	put_int(graphs, ev, EVF_hits, "hits");
	put_int(graphs, ev, EVF_compiled, "compiled");
	put_int(graphs, ev, EVF_failed, "failed");
	return graphs;
}

static void on_verified(struct status *status, const struct event *ev)
{
	json_t *cache = section(status, "cache");

	status->phase = PHASE_VERIFY;
	js_put(cache, "complete", json_boolean(ev->complete));
	put_text(cache, ev, EVF_graph_key);
	put_int(cache, ev, EVF_graphs, "graphs");
	put_int(cache, ev, EVF_done, "done");
	put_int(cache, ev, EVF_failed, "failed");
	put_int(cache, ev, EVF_locked, "locked");
	put_int(cache, ev, EVF_missing, "missing");
	put_text(cache, ev, EVF_reason);
	put_graphs(status, ev);
	if (EVENT_HAS(ev, sources))
		js_put(cache, "sources", json_incref(ev->sources));
}

static void on_compile_progress(struct status *status, const struct event *ev)
{
	json_t *graphs = put_graphs(status, ev);

	if (EVENT_HAS(ev, seconds))
		js_put(graphs, "seconds", json_real(ev->seconds));
}

static void on_jit(struct status *status, const struct event *ev)
{
	size_t count = json_array_size(status->jit);
	json_t *told = json_object();

	js_put(told, "attempt", json_integer(ev->attempt));
	put_int(told, ev, EVF_graphs, "graphs");
	if (EVENT_HAS(ev, seconds))
		js_put(told, "seconds", json_real(ev->seconds));
	if (EVENT_HAS(ev, cost))
		js_put(told, "cost", json_real(ev->cost));
	if (EVENT_HAS(ev, names))
		js_put(told, "names", json_incref(ev->names));
	if (EVENT_HAS(ev, late))
		js_put(told, "late", json_incref(ev->late));
	/* It tells the sum of its attempt each time. */
	if (count && js_int(json_array_get(status->jit, count - 1), "attempt", 0) == ev->attempt)
		json_array_set_new(status->jit, count - 1, told);
	else
		json_array_append_new(status->jit, told);
	put_text(section(status, "jit"), ev, EVF_hint);
}

static void on_jit_exceeded(struct status *status, const struct event *ev)
{
	json_t *jit = section(status, "jit");

	js_put_str(jit, "exceeded", jit_action_names[ev->on_exceed]);
	put_text(jit, ev, EVF_reason);
}

/* Of each limit it is said once. */
static void on_risk(struct status *status, const struct event *ev)
{
	json_t *risk = new_row(status, "at_risk");

	js_put_str(risk, "limit", limit_names[ev->limit]);
	put_text(risk, ev, EVF_reason);
}

/* Nobody could be told, and nobody tries again. */
static void on_untold(struct status *status, const struct event *ev)
{
	json_t *untold = new_row(status, "untold");

	put_int(untold, ev, EVF_rule, "rule");
	put_text(untold, ev, EVF_reason);
	put_text(untold, ev, EVF_hint);
}

static void on_run_ended(struct status *status, const struct event *ev)
{
	json_t *last = json_array_get(status->attempts, json_array_size(status->attempts) - 1);

	status->ended = true;
	end_cache_wait(status);
	js_put_str(status->root, "state", outcome_names[ev->state]);
	js_put(status->root, "exit_code", json_integer(ev->exit_code));
	js_put(status->root, "ended", utc_json(ev->at));
	put_text(status->root, ev, EVF_reason);
	put_text(status->root, ev, EVF_evidence);
	put_text(status->root, ev, EVF_hint);
	if (EVENT_HAS(ev, phase))
		status->phase = ev->phase;
	if (last && ev->state != OUTCOME_SUCCEEDED)
		js_put_str(last, "action", action_names[ACTION_STOP]);
	js_put(status->root, "driver", json_null());
}

static void on_took_over(struct status *status, const struct event *ev)
{
	json_t *driver = json_object();

	status->left = false;
	js_put_str(driver, "host", ev->host);
	put_int(driver, ev, EVF_pid, "pid");
	put_int(driver, ev, EVF_epoch, "epoch");
	js_put(status->root, "driver", driver);
}

static void on_checkpoint(struct status *status, const struct event *ev)
{
	json_t *checkpoint = section(status, "checkpoint");

	put_int(checkpoint, ev, EVF_step, "step");
	put_text(checkpoint, ev, EVF_url);
}

static void on_cache(struct status *status, const struct event *ev)
{
	if (ev->kind != EV_CACHE_VERIFIED)
		end_cache_wait(status);
	if (ev->kind == EV_CACHE_WAITING)
		on_cache_waiting(status, ev);
	else if (ev->kind == EV_CACHE_CHECKED)
		on_cache_checked(status, ev);
	else if (ev->kind == EV_CACHE_VERIFIED)
		on_verified(status, ev);
}

static void on_left(struct status *status, const struct event *ev)
{
	(void)ev;
	status->left = true;
	js_put(status->root, "driver", json_null());
}

static void on_submitted(struct status *status, const struct event *ev)
{
	set_attempt_state(status, ev, "starting");
}

/* Why the engine does not run it yet. */
static void on_waiting(struct status *status, const struct event *ev)
{
	json_t *attempt = attempt_of(status, ev);

	if (attempt)
		js_put_str(attempt, "waits", ev->reason);
}

static void on_lost(struct status *status, const struct event *ev)
{
	set_attempt_state(status, ev, "lost");
}

static void on_request(struct status *status, const struct event *ev)
{
	(void)ev;
	on_end_wanted(status);
}

static void on_limit(struct status *status, const struct event *ev)
{
	if (ev->limit != LIMIT_UNREACHABLE)
		on_end_wanted(status);
}

/* What each event changes here; NULL: nothing. */
static void (*const changes[EV_COUNT])(struct status *status, const struct event *ev) = {
	[EV_RUN_CREATED] = on_created,
	[EV_DRIVER_TOOK_OVER] = on_took_over,
	[EV_DRIVER_LEFT] = on_left,
	[EV_CACHE_WAITING] = on_cache,
	[EV_CACHE_CLAIMED] = on_cache,
	[EV_CACHE_CHECKED] = on_cache,
	[EV_CACHE_VERIFIED] = on_cache,
	[EV_ATTEMPT_INTENDED] = on_intended,
	[EV_ATTEMPT_SUBMITTED] = on_submitted,
	[EV_ATTEMPT_WAITING] = on_waiting,
	[EV_ATTEMPT_CLAIMED] = on_claimed,
	[EV_ATTEMPT_FOUND] = on_claimed,
	[EV_HEALTH_CHECKED] = on_health,
	[EV_ATTEMPT_LOST] = on_lost,
	[EV_ATTEMPT_ENDED] = on_attempt_ended,
	[EV_ATTEMPT_KEPT] = on_kept,
	[EV_COMPILE_PROGRESS] = on_compile_progress,
	[EV_JIT_COMPILED] = on_jit,
	[EV_JIT_EXCEEDED] = on_jit_exceeded,
	[EV_TRAIN_PROGRESS] = on_progress,
	[EV_TRAIN_CONTINUITY] = on_continuity,
	[EV_CHECKPOINT_COMPLETE] = on_checkpoint,
	[EV_CHECKPOINT_CHOSEN] = on_chosen,
	[EV_RETRY_SCHEDULED] = on_retry,
	[EV_REQUEST_STOP] = on_request,
	[EV_REQUEST_DRAIN] = on_request,
	[EV_LIMIT_REACHED] = on_limit,
	[EV_RUN_AT_RISK] = on_risk,
	[EV_NOTIFY_FAILED] = on_untold,
	[EV_RUN_ENDED] = on_run_ended,
};

void status_add(struct status *status, const struct event *ev)
{
	ledger_add(&status->ledger, ev);
	if (changes[ev->kind])
		changes[ev->kind](status, ev);
}
