/* State of the compile cache and of graphs, from events: see status_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/report/status_internal.h"

json_t *status_cache_section(struct status *status, const char *key)
{
	json_t *stage, *section;

	if (status->cache_of == PHASE_TRAIN)
		return status_section(status, key);
	stage = status_section(status, flow_phase_names[status->cache_of]);
	if (!json_object_get(stage, "done")) /* tasks */
		js_put(stage, "done", json_integer(0));
	section = json_object_get(stage, key);
	if (!section)
		json_object_set_new(stage, key, section = json_object());
	return section;
}

void status_name_stage(struct status *status, const struct event *ev)
{
	status->cache_of = EVENT_HAS(ev, stage) ? ev->stage : PHASE_TRAIN;
}

static void on_cache_checked(struct status *status, const struct event *ev)
{
	json_t *cache = status_cache_section(status, "cache");

	status_put(cache, ev, EVF_verdict, EVF_graph_key, EVF_graphs, EVF_reason, EVF_COUNT);
	if (ev->verdict == CACHE_WARM)
		status_put_as(cache, ev, EVF_graphs, "done");
}

/* Another run precompiles the same graphs. */
static void on_cache_waiting(struct status *status, const struct event *ev)
{
	json_t *holder = json_object();
	struct utc since = { EVENT_HAS(ev, since) ? ev->since : ev->at.ms };

	status_put_as(holder, ev, EVF_holder, "run");
	status_put(holder, ev, EVF_host, EVF_COUNT);
	js_put(holder, "since", status_utc(since));
	js_put(status_cache_section(status, "cache"), "waits_for", holder);
	status->waits =
		mem_format("run %s%s%s, which precompiles the same graphs", ev->holder,
			   EVENT_HAS(ev, host) ? " on " : "", EVENT_HAS(ev, host) ? ev->host : "");
}

void status_end_cache_wait(struct status *status)
{
	if (status->waits)
		json_object_del(status_cache_section(status, "cache"), "waits_for");
	free(TAKE(status->waits));
}

/* Counts so far, from the logs; in the end from the listing, which is more reliable. */
static json_t *put_graphs(struct status *status, const struct event *ev)
{
	json_t *graphs = status_cache_section(status, "graphs");

	status_put_as(graphs, ev, EVF_graphs, "named");
	status_put(graphs, ev, EVF_hits, EVF_compiled, EVF_failed, EVF_COUNT);
	return graphs;
}

static void on_verified(struct status *status, const struct event *ev)
{
	json_t *cache = status_cache_section(status, "cache");

	status->phase = PHASE_VERIFY;
	status_put(cache, ev, EVF_complete, EVF_graph_key, EVF_graphs, EVF_done, EVF_failed,
		   EVF_locked, EVF_missing, EVF_reason, EVF_sources, EVF_COUNT);
	put_graphs(status, ev);
}

void status_on_graphs(struct status *status, const struct event *ev)
{
	status_put(put_graphs(status, ev), ev, EVF_seconds, EVF_COUNT);
}

/* True for a row of the same attempt; both are of the training if they name no phase. */
static bool is_same_attempt(const json_t *a, const json_t *b)
{
	const char *phase = js_str(a, "phase"), *other = js_str(b, "phase");

	return js_int(a, "attempt", 0) == js_int(b, "attempt", 0) &&
	       (phase && other ? strcmp(phase, other) == 0 : phase == other);
}

/* Older journals name no phase: then there was but one. */
static bool is_of_training(const struct event *ev)
{
	return !EVENT_HAS(ev, phase) || ev->phase == PHASE_TRAIN;
}

void status_on_jit(struct status *status, const struct event *ev)
{
	size_t count = json_array_size(status->jit);
	json_t *row = json_object();

	if (!is_of_training(ev))
		status_put(row, ev, EVF_phase, EVF_COUNT);
	status_put(row, ev, EVF_attempt, EVF_graphs, EVF_seconds, EVF_cost, EVF_names, EVF_late,
		   EVF_COUNT);
	/* Each event repeats the sum of its attempt. */
	if (count && is_same_attempt(json_array_get(status->jit, count - 1), row))
		json_array_set_new(status->jit, count - 1, row);
	else
		json_array_append_new(status->jit, row);
	if (is_of_training(ev))
		status_put(status_section(status, "jit"), ev, EVF_hint, EVF_COUNT);
}

void status_on_jit_exceeded(struct status *status, const struct event *ev)
{
	json_t *jit = status_section(status, "jit");

	status_put_as(jit, ev, EVF_on_exceed, "exceeded");
	status_put(jit, ev, EVF_reason, EVF_COUNT);
}

void status_on_cache(struct status *status, const struct event *ev)
{
	if (ev->kind != EV_CACHE_VERIFIED)
		status_end_cache_wait(status);
	/* Claims are of the stage that was looked at before. */
	if (ev->kind == EV_CACHE_CHECKED || ev->kind == EV_CACHE_VERIFIED)
		status_name_stage(status, ev);
	if (ev->kind == EV_CACHE_WAITING)
		on_cache_waiting(status, ev);
	else if (ev->kind == EV_CACHE_CHECKED)
		on_cache_checked(status, ev);
	else if (ev->kind == EV_CACHE_VERIFIED)
		on_verified(status, ev);
}
