/* Planning a sweep: see sweep_plan.h. */
#include "cmd/sweep/sweep_plan.h"

#include <math.h>
#include <string.h>

#include "aws/http/patience.h"
#include "cmd/screen/out.h"
#include "cmd/sweep/sweep_cell.h"
#include "cmd/view/cost_view.h"
#include "cmd/view/table.h"
#include "jobs/run/plan/plan_difference.h"

#define KEY_SHOWN        12 /* characters of a graph key */
#define DIFFERENCES_TOLD 4

struct sweep_plan {
	struct journal *journal;
	const json_t *sweep;
	json_t *first; /* plan of the first cell that has one, owned; NULL: none yet */
	json_t *keys;  /* graph key → {"cell", "cache"} of the first cell that has it, owned */
	json_t *cells; /* as they are printed, owned */
	double estimated, at_most, per_ms; /* NAN: not known of every cell; per_ms: the dearest */
	bool is_unpriced;                  /* the price of a cell is not known */
};

static void plan_release(struct sweep_plan *plan)
{
	json_decref(plan->first);
	json_decref(plan->keys);
	json_decref(plan->cells);
}

/* Notes which graphs a cell needs, and whether the cache has them. */
static int put_graphs(struct sweep_plan *all, json_t *plan, size_t number, json_t *cell,
		      enum cache_state *ret, struct err **err)
{
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	const char *key;
	json_t *seen;

	/* The digest of its image is asked for when a cell begins, if no key needs it. */
	if (json_object_get(plan, "compile"))
		image_plan_try(plan);
	key = plan_graph_key(plan);
	seen = key ? json_object_get(all->keys, key) : NULL;
	js_put_str(cell, "graph_key", key);
	if (seen) {
		js_put(cell, "equal_graphs", json_incref(json_object_get(seen, "cell")));
		js_put(cell, "cache", json_incref(json_object_get(seen, "cache")));
		*ret = CACHE_WARM; /* by then */
		return 0;
	}
	if (cache_view_try(plan, &view, err) < 0)
		return -1;
	*ret = view.verdict;
	js_put_str(cell, "cache", cache_view_verdict(&view));
	if (key)
		js_put(all->keys, key,
		       json_pack("{s:I, s:s*}", "cell", (json_int_t)number, "cache",
				 cache_view_verdict(&view)));
	return 0;
}

/* Adds a figure of one run to that of a cell; NAN once it is not known. */
static double of_runs(const json_t *cost, const char *key, double runs)
{
	return json_object_get(cost, key) ? js_real(cost, key, 0) * runs : NAN;
}

static void put_cost(struct sweep_plan *all, const json_t *plan, enum cache_state cache,
		     json_t *cell)
{
	AUTO(err_freep) struct err *unread = NULL, *again = NULL;
	bool warm = cache == CACHE_WARM;
	double repeat = (double)js_int(all->sweep, "repeat", 1), estimated;
	json_auto_t *first = cost_before(all->journal, plan, warm, &unread);
	json_auto_t *later = warm || repeat <= 1 ? json_incref(first)
						 : cost_before(all->journal, plan, true, &again);
	double at_most = of_runs(first, "at_most", repeat);

	estimated = of_runs(first, "estimated", 1);
	if (repeat > 1)
		estimated += of_runs(later, "estimated", repeat - 1);
	if (!isnan(estimated))
		js_put(cell, "estimated", json_real(estimated));
	if (!isnan(at_most))
		js_put(cell, "at_most", json_real(at_most));
	all->estimated += estimated;
	all->at_most += at_most;
	all->per_ms = fmax(all->per_ms, of_runs(first, "per_hour", 1) / 3600000);
	all->is_unpriced |= !json_object_get(first, "per_hour");
}

/* A cell that this machine or version refuses is a row like others. */
static int add_cell(struct sweep_plan *all, const struct spec *spec, size_t at, struct err **err)
{
	const json_t *from = json_array_get(json_object_get(all->sweep, "cells"), at);
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(err_freep) struct err *why = NULL;
	enum cache_state cache = CACHE_NONE;
	json_t *cell = json_object();

	json_array_append_new(all->cells, cell);
	js_put(cell, "cell", json_integer((json_int_t)at + 1));
	js_put_str(cell, "name", js_str(from, "name"));
	if (sweep_cell_plan(spec, json_object_get(from, "sets"), all->journal, &plan, &why) < 0) {
		if (why->code == EXIT_SPEC) {
			*err = TAKE(why);
			return err_wrap(err, "cell %zu (%s)", at + 1, js_str(from, "name"));
		}
		js_put(cell, "differences", json_array());
		js_put_str(cell, "why", why->message);
		return 0;
	}
	if (!all->first)
		all->first = json_incref(plan->json);
	js_put(cell, "differences", plan_difference(all->first, plan->json));
	js_put(cell, "derived", json_incref(json_object_get(plan->json, "derived")));
	if (put_graphs(all, plan->json, at + 1, cell, &cache, err) < 0)
		return -1;
	put_cost(all, plan->json, cache, cell);
	return 0;
}

/* Sets the most that all runs may cost together, and the field that limits it. */
static void put_most(const struct sweep_plan *all, json_t *line)
{
	double runs = all->at_most, cap = js_real(all->sweep, "cost", NAN), late = NAN, most;

	if (json_object_get(all->sweep, "deadline_ms") && !all->is_unpriced)
		late = js_real(all->sweep, "deadline_ms", 0) * all->per_ms *
		       js_real(all->sweep, "parallel", 1);
	most = fmin(runs, fmin(cap, late)); /* fmin() passes over NAN */
	if (isnan(most))
		return;
	js_put(line, "at_most", json_real(most));
	js_put_str(line, "limit",
		   most == cap    ? "sweep.stop_when.cost"
		   : most == late ? "sweep.stop_when.deadline"
				  : "limits");
}

/* ---- output for people ---- */

static char *graphs_text(const json_t *cell)
{
	const char *key = js_str(cell, "graph_key");

	if (json_object_get(cell, "equal_graphs"))
		return mem_format("as cell %lld", (long long)js_int(cell, "equal_graphs", 0));
	return key ? mem_format("%.*s", KEY_SHOWN, key) : NULL;
}

static char *usd_text(const json_t *cell, const char *key)
{
	return json_object_get(cell, key) ? mem_format("%.2f", js_real(cell, key, 0)) : NULL;
}

static void print_cells(const json_t *cells)
{
	AUTO(table_release) struct table table = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT_MAX(SIZE_MAX / 2);
	json_t *cell;
	size_t i;

	table_add_column(&table, "CELL", 0, 0);
	table_add_column(&table, "DIFFERS", 0, 16);
	table_add_column(&table, "GRAPHS", 1, 0);
	table_add_column(&table, "CACHE", 2, 0);
	table_add_column(&table, "ABOUT USD", 3, 0);
	table_add_column(&table, "AT MOST", 4, 0);
	json_array_foreach (cells, i, cell) {
		const char *why = js_str(cell, "why"), *cache = js_str(cell, "cache");
		AUTO(auto_free)
		char *words = plan_difference_words(json_object_get(cell, "differences"),
						    DIFFERENCES_TOLD);

		table_add_row(&table, MARK_NONE);
		table_set(&table, 0, mem_format("%zu", i + 1));
		table_set(&table, 1,
			  why      ? mem_format("%s: not supported: %s", js_str(cell, "name"), why)
			  : i == 0 ? mem_format("baseline: %s", js_str(cell, "name"))
			  : *words ? mem_copy(words)
				   : mem_copy("nothing: noise alone"));
		table_set(&table, 2, graphs_text(cell));
		table_set(&table, 3, cache ? mem_copy(cache) : NULL);
		table_set(&table, 4, usd_text(cell, "estimated"));
		table_set(&table, 5, usd_text(cell, "at_most"));
	}
	table_print(&table, out_width(), json_array_size(cells), out_style(), &text);
	out_finished(text.text);
}

static void print_graphs(const struct sweep_plan *all)
{
	size_t keys = json_object_size(all->keys), equal = 0, unasked = 0, i;
	json_t *cell;

	json_array_foreach (all->cells, i, cell) {
		equal += json_object_get(cell, "equal_graphs") != NULL;
		unasked += !json_object_get(cell, "cache") && !json_object_get(cell, "why");
	}
	if (keys == 0)
		out_line("graphs:  none are compiled ahead");
	else
		out_line("graphs:  %zu graph key%s; %s", keys, keys == 1 ? "" : "s",
			 equal > 0 || js_int(all->sweep, "repeat", 1) > 1
				 ? "runs with one graph key compile once: the first to begin, and "
				   "the others wait for it"
				 : "each is compiled once");
	if (unasked > 0)
		out_line("cache:   not known of %zu cell%s: " PATIENCE_OFFLINE, unasked,
			 unasked == 1 ? "" : "s");
	if (js_bool(all->sweep, "on_best", false))
		out_line("         a step is made on top of the best cell before it: what is shown "
			 "is on top of the spec as it is");
}

static void print_line(const struct sweep_plan *all, const json_t *line)
{
	long long cells = (long long)json_array_size(all->cells);
	long long repeat = js_int(all->sweep, "repeat", 1);
	long long parallel = js_int(all->sweep, "parallel", 1);

	out_line("%s on %s: %s of %lld cell%s, %lld time%s each: %lld run%s, %lld at once",
		 js_str(line, "name"), js_str(line, "engine"), js_str(line, "kind"), cells,
		 cells == 1 ? "" : "s", repeat, repeat == 1 ? "" : "s", cells * repeat,
		 cells * repeat == 1 ? "" : "s", parallel);
	print_cells(all->cells);
	print_graphs(all);
	if (json_object_get(line, "estimated"))
		out_line("cost:    about %.2f USD for all runs", js_real(line, "estimated", 0));
	if (json_object_get(line, "at_most"))
		out_line("%s at most %.2f USD for all runs, by %s",
			 json_object_get(line, "estimated") ? "        " : "cost:   ",
			 js_real(line, "at_most", 0), js_str(line, "limit"));
	else if (all->per_ms > 0)
		out_line("cost:    no limit: limits.cost limits a run, and sweep.stop_when.cost "
			 "all");
}

int sweep_plan_print(struct journal *journal, const struct spec *spec, const json_t *sweep,
		     const struct plan *base, const struct plan_requests *requests,
		     struct err **err)
{
	AUTO(plan_release)
	struct sweep_plan all = {
		.journal = journal, .sweep = sweep, .keys = json_object(), .cells = json_array()
	};
	static const char *const same[] = { "kind", "repeat", "parallel", "on_best" };
	size_t cells = json_array_size(json_object_get(sweep, "cells"));
	json_auto_t *line = json_object();

	for (size_t i = 0; i < cells; i++)
		if (add_cell(&all, spec, i, err) < 0)
			return -1;
	js_put_str(line, "name", js_str(base->json, "name"));
	js_put_str(line, "engine", js_str(base->json, "engine"));
	for (size_t i = 0; i < STK_LENGTH(same); i++)
		js_put(line, same[i], json_incref(json_object_get(sweep, same[i])));
	js_put(line, "runs", json_integer((json_int_t)cells * js_int(sweep, "repeat", 1)));
	js_put(line, "graph_keys", json_integer((json_int_t)json_object_size(all.keys)));
	js_put(line, "cells", json_incref(all.cells));
	if (!isnan(all.estimated))
		js_put(line, "estimated", json_real(all.estimated));
	put_most(&all, line);
	js_put_str(line, "plan_digest", base->digest);
	if (out_is_json()) {
		if (requests)
			plan_requests_put(requests, line);
		out_json(line);
		return EXIT_DONE;
	}
	print_line(&all, line);
	if (requests)
		plan_requests_print(base->json, requests);
	return EXIT_DONE;
}
