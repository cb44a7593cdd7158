/* State of the compile cache and of graphs, from events: see status_internal.h. */
#include <stdlib.h>

#include "jobs/report/status_internal.h"

static void on_cache_checked(struct status *status, const struct event *ev)
{
	json_t *cache = status_section(status, "cache");

	js_put_str(cache, "verdict", flow_cache_state_names[ev->verdict]);
	status_put_text(cache, ev, EVF_graph_key);
	status_put_int(cache, ev, EVF_graphs, "graphs");
	status_put_text(cache, ev, EVF_reason);
	if (ev->verdict == CACHE_WARM)
		status_put_int(cache, ev, EVF_graphs, "done");
}

/* Another run precompiles the same graphs. */
static void on_cache_waiting(struct status *status, const struct event *ev)
{
	json_t *holder = json_object();
	struct utc since = { EVENT_HAS(ev, since) ? ev->since : ev->at.ms };

	js_put_str(holder, "run", ev->holder);
	status_put_text(holder, ev, EVF_host);
	js_put(holder, "since", status_utc(since));
	js_put(status_section(status, "cache"), "waits_for", holder);
	status->waits =
		mem_format("run %s%s%s, which precompiles the same graphs", ev->holder,
			   EVENT_HAS(ev, host) ? " on " : "", EVENT_HAS(ev, host) ? ev->host : "");
}

void status_end_cache_wait(struct status *status)
{
	if (status->waits)
		json_object_del(status_section(status, "cache"), "waits_for");
	free(TAKE(status->waits));
}

/* Counts so far, from the logs; in the end from the listing, which is more reliable. */
static json_t *put_graphs(struct status *status, const struct event *ev)
{
	json_t *graphs = status_section(status, "graphs");

	status_put_int(graphs, ev, EVF_graphs, "named");
	status_put_int(graphs, ev, EVF_hits, "hits");
	status_put_int(graphs, ev, EVF_compiled, "compiled");
	status_put_int(graphs, ev, EVF_failed, "failed");
	return graphs;
}

static void on_verified(struct status *status, const struct event *ev)
{
	json_t *cache = status_section(status, "cache");

	status->phase = PHASE_VERIFY;
	js_put(cache, "complete", json_boolean(ev->complete));
	status_put_text(cache, ev, EVF_graph_key);
	status_put_int(cache, ev, EVF_graphs, "graphs");
	status_put_int(cache, ev, EVF_done, "done");
	status_put_int(cache, ev, EVF_failed, "failed");
	status_put_int(cache, ev, EVF_locked, "locked");
	status_put_int(cache, ev, EVF_missing, "missing");
	status_put_text(cache, ev, EVF_reason);
	put_graphs(status, ev);
	if (EVENT_HAS(ev, sources))
		js_put(cache, "sources", json_incref(ev->sources));
}

void status_on_graphs(struct status *status, const struct event *ev)
{
	json_t *graphs = put_graphs(status, ev);

	if (EVENT_HAS(ev, seconds))
		js_put(graphs, "seconds", json_real(ev->seconds));
}

void status_on_jit(struct status *status, const struct event *ev)
{
	size_t count = json_array_size(status->jit);
	json_t *row = json_object();

	js_put(row, "attempt", json_integer(ev->attempt));
	status_put_int(row, ev, EVF_graphs, "graphs");
	if (EVENT_HAS(ev, seconds))
		js_put(row, "seconds", json_real(ev->seconds));
	if (EVENT_HAS(ev, cost))
		js_put(row, "cost", json_real(ev->cost));
	if (EVENT_HAS(ev, names))
		js_put(row, "names", json_incref(ev->names));
	if (EVENT_HAS(ev, late))
		js_put(row, "late", json_incref(ev->late));
	/* Each event repeats the sum of its attempt. */
	if (count && js_int(json_array_get(status->jit, count - 1), "attempt", 0) == ev->attempt)
		json_array_set_new(status->jit, count - 1, row);
	else
		json_array_append_new(status->jit, row);
	status_put_text(status_section(status, "jit"), ev, EVF_hint);
}

void status_on_jit_exceeded(struct status *status, const struct event *ev)
{
	json_t *jit = status_section(status, "jit");

	js_put_str(jit, "exceeded", flow_jit_action_names[ev->on_exceed]);
	status_put_text(jit, ev, EVF_reason);
}

void status_on_cache(struct status *status, const struct event *ev)
{
	if (ev->kind != EV_CACHE_VERIFIED)
		status_end_cache_wait(status);
	if (ev->kind == EV_CACHE_WAITING)
		on_cache_waiting(status, ev);
	else if (ev->kind == EV_CACHE_CHECKED)
		on_cache_checked(status, ev);
	else if (ev->kind == EV_CACHE_VERIFIED)
		on_verified(status, ev);
}
