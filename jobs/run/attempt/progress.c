/* Records and shows the progress of a watched attempt: graphs and numbers, each at its own pace. */
#include <stdio.h>
#include <string.h>

#include "jobs/run/attempt/watch_internal.h"

#define GROWTH_PLACES 4

/* True if new graphs came after so many different steps that no end is in sight. */
static bool grows_with_steps(const struct attempt_watch *watch)
{
	json_int_t last = -1;
	const char *key;
	json_t *step;
	int places = 0;

	json_object_foreach (watch->late, key, step) {
		if (!json_is_integer(step) || json_integer_value(step) <= last)
			continue;
		last = json_integer_value(step);
		places++;
	}
	return places >= GROWTH_PLACES;
}

/* A graph's compile time is known a while after the graph is known to be late. */
static json_t *late_json(const struct attempt_watch *watch)
{
	json_t *late = json_array(), *step;
	const char *key;

	json_object_foreach (watch->late, key, step) {
		const struct tally_graph *graph = graph_tally_find(watch->tally, key);
		json_t *row = json_object();

		js_put(row, "graph", js_text(key, strlen(key)));
		if (graph && graph->seconds > 0)
			js_put(row, "seconds", json_real(graph->seconds));
		if (!json_is_null(step))
			js_put(row, "after_step", json_incref(step));
		json_array_append_new(late, row);
	}
	return late;
}

/* USD of one node and hour in this phase; 0: not known. */
static double price_of(const struct attempt_watch *watch)
{
	const json_t *plan = watch->driver->plan;
	const json_t *own =
		json_object_get(json_object_get(plan, flow_phase_names[watch->phase]), "price");

	return json_number_value(own ? own : js_path(plan, "limits.price"));
}

/* compile.progress in phase 1, jit.compiled in all that follow. */
static int record_graphs(struct attempt_watch *watch, struct err **err)
{
	double price = price_of(watch);
	struct graph_tally_counts counts;
	json_auto_t *names = NULL;
	json_auto_t *late = NULL;
	struct event ev;

	watch->graphs_changed = false;
	watch->graphs_at = clock_mono_now();
	graph_tally_counts(watch->tally, &counts);
	watch->hits_recorded = counts.hits;
	if (flow_phases[watch->phase].is_trial) {
		attempt_event(watch, EV_COMPILE_PROGRESS, &ev);
		EVENT_SET(&ev, graphs, counts.named);
		EVENT_SET(&ev, hits, counts.hits);
		EVENT_SET(&ev, compiled, counts.made);
		if (counts.compile_failed > 0)
			EVENT_SET(&ev, failed, counts.compile_failed);
		EVENT_SET(&ev, seconds, counts.seconds);
		return driver_record(watch->driver, &ev, err);
	}
	attempt_event(watch, EV_JIT_COMPILED, &ev);
	EVENT_SET(&ev, graphs, counts.misses);
	EVENT_SET(&ev, hits, counts.hits);
	EVENT_SET(&ev, seconds, counts.seconds);
	if (price > 0)
		EVENT_SET(&ev, cost, price * watch->nodes * counts.seconds / 3600);
	names = json_array();
	for (size_t i = 0; json_array_size(names) < 20; i++) {
		const struct tally_graph *graph = graph_tally_at(watch->tally, i);

		if (!graph)
			break;
		if (graph->missed)
			json_array_append_new(names, js_text(graph->key, strlen(graph->key)));
	}
	EVENT_SET(&ev, names, names);
	late = late_json(watch);
	if (json_array_size(late) > 0)
		EVENT_SET(&ev, late, late);
	if (grows_with_steps(watch))
		EVENT_SET_STR(
			&ev, hint,
			"shapes change from step to step; pad them, or sort them into a few sizes");
	return driver_record(watch->driver, &ev, err);
}

/* Phase 1's settings have leaked into the training: every output is zeros. */
static int record_output_invalid(struct attempt_watch *watch, struct err **err)
{
	struct event ev;

	watch->output_invalid_recorded = true;
	attempt_event(watch, EV_TRAIN_SPOILED, &ev);
	EVENT_SET_STR(&ev, reason,
		      "the log shows graphs that are extracted and not executed, as in phase 1");
	return driver_record(watch->driver, &ev, err);
}

/* A metric is given up if its pattern would cost more than all the rest. */
static int record_given_up(struct attempt_watch *watch, struct err **err)
{
	const char *name;

	while ((name = metrics_given_up(watch->metrics))) {
		struct event ev;

		attempt_event(watch, EV_METRIC_GIVEN_UP, &ev);
		EVENT_SET_STR(&ev, name, name);
		EVENT_SET_STR(&ev, reason, "the pattern takes too long on lines of this log");
		EVENT_SET_STR(&ev, hint,
			      "write the pattern so that it can begin in few places, and "
			      "without several '*' or '+' in a row");
		if (driver_record(watch->driver, &ev, err) < 0)
			return -1;
	}
	return 0;
}

/* A comma in a number is told, because it may as well separate two. */
static int record_doubted(struct attempt_watch *watch, struct err **err)
{
	const char *name, *text;

	while ((name = metrics_doubted(watch->metrics, &text))) {
		struct event ev;
		char reason[64];

		attempt_event(watch, EV_METRIC_DOUBTED, &ev);
		snprintf(reason, sizeof reason, "'%s' in the log is read as %.*s", text,
			 (int)strcspn(text, ","), text);
		EVENT_SET_STR(&ev, name, name);
		EVENT_SET_STR(&ev, reason, reason);
		EVENT_SET_STR(&ev, hint,
			      "print the number without a comma, unless the comma stands between "
			      "two numbers");
		if (driver_record(watch->driver, &ev, err) < 0)
			return -1;
	}
	return 0;
}

static bool is_due(struct mono last, int64_t every_ms)
{
	return last.ms == 0 || clock_mono_now().ms - last.ms >= every_ms;
}

/* Shows numbers to an observer; a journal of every step would be slow to read. */
static void show_numbers(struct attempt_watch *watch)
{
	if (!watch->driver->options->on_progress_update || !watch->numbers_fresh || !watch->news ||
	    !is_due(watch->shown_at, PROGRESS_UPDATE_MS))
		return;
	watch->shown_at = clock_mono_now();
	numbers_show(watch);
}

/* In mode jit the number of hits decides whether the cache was cold. */
static bool is_more_found(const struct attempt_watch *watch)
{
	return flow_phases[watch->phase].counts_late &&
	       !flow_needs_cache(&watch->driver->flow.policy, watch->phase) &&
	       watch->hits != watch->hits_recorded;
}

/* Records new graphs and numbers, each at its own pace; at the end all of them. */
int progress_record(struct attempt_watch *watch, bool at_end, struct err **err)
{
	bool is_remote = journal_is_remote(watch->driver->journal);
	bool graphs = watch->graphs_changed &&
		      is_due(watch->graphs_at,
			     is_remote ? COMPILE_PROGRESS_REMOTE_MS : COMPILE_PROGRESS_MS);
	bool numbers =
		watch->numbers_changed &&
		is_due(watch->driver->progress_at, is_remote ? PROGRESS_REMOTE_MS : PROGRESS_MS);

	/* Lines that an earlier driver has recorded are read again, but not recorded again. */
	graphs &= watch->news;
	numbers &= watch->news;
	if (at_end) {
		/* "No graph was compiled in training" is a fact worth recording too. */
		graphs =
			watch->driver->kind->caches &&
			(watch->graphs_changed || watch->graphs_at.ms == 0 || is_more_found(watch));
		numbers = watch->numbers_changed;
	}
	/* A step may be in the log before the engine says that the command has begun. */
	if ((graphs || numbers) && health_record(watch, err) < 0)
		return -1;
	show_numbers(watch);
	if (record_given_up(watch, err) < 0 || record_doubted(watch, err) < 0)
		return -1;
	if (watch->output_invalid && !watch->output_invalid_recorded &&
	    record_output_invalid(watch, err) < 0)
		return -1;
	if (graphs && record_graphs(watch, err) < 0)
		return -1;
	if (numbers && numbers_record(watch, at_end, err) < 0)
		return -1;
	return 0;
}
