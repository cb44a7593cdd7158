/* The state of a sweep: see sweep_view.h. */
#include "cmd/sweep/sweep_view.h"

#include <string.h>

#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/view/table.h"
#include "jobs/run/sweep/sweep_record.h"

#define NOT_BEGUN "not_begun"
#define DAMAGED   "damaged"

int sweep_view_find(const struct args *args, enum journal_mode mode, struct journal **ret_journal,
		    json_t **ret_record, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	int found;

	if (args->operand_count != 1)
		return 0;
	if (journal_open(args->value[OPT_STATE], mode, ret_journal, &why) < 0)
		return 0;
	found = sweep_record_read(*ret_journal, args->operands[0], ret_record, &why);
	if (found < 0 && why->damage)
		*err = TAKE(why);
	return found > 0 ? 1 : *err ? -1 : 0;
}

/* ---- the runs ---- */

/* Counts of runs, while they are seen. */
struct sweep_seen {
	size_t going, waiting, succeeded;
	double cost;
	struct err *damage; /* the first; owned */
};

/* Reads the status of a run; NULL if its journal is damaged. */
static int read_run(struct journal *journal, const char *run, struct sweep_seen *seen, json_t **ret,
		    struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;

	if (cmd_run_view(journal, run, false, ret, &why) == 0)
		return 0;
	if (!why->damage) {
		*err = TAKE(why);
		return -1;
	}
	if (!seen->damage)
		seen->damage = TAKE(why);
	return 0;
}

/* Makes the row of a run from its status; NULL: it is damaged, or not known. */
static json_t *row_of(const char *run, const json_t *status, bool is_known)
{
	json_t *row = json_object();

	js_put_str(row, "run", run);
	js_put_str(row, "state",
		   js_str(status, "created") ? js_str(status, "state")
		   : is_known && !status     ? DAMAGED
					     : NOT_BEGUN);
	if (js_str(status, "phase"))
		js_put_str(row, "phase", js_str(status, "phase"));
	js_put(row, "exit_code", json_incref(json_object_get(status, "exit_code")));
	js_put(row, "cost",
	       json_incref(json_object_get(json_object_get(status, "cost"), "accrued")));
	return row;
}

/* Returns what is known of a run. A run that had ended at an earlier look is as it was. */
static int see_run(struct journal *journal, const char *run, const json_t *known,
		   const json_t *earlier, struct sweep_seen *seen, json_t **ret, struct err **err)
{
	json_auto_t *status = NULL;
	bool is_known = json_object_get(known, run);

	if (is_known && js_is(earlier, "run", run) && json_object_get(earlier, "exit_code"))
		*ret = json_deep_copy(earlier);
	else if (is_known && read_run(journal, run, seen, &status, err) < 0)
		return -1;
	else
		*ret = row_of(run, status, is_known);
	seen->cost += js_real(*ret, "cost", 0);
	seen->going += js_str(status, "created") && !json_object_get(status, "exit_code");
	seen->succeeded += js_is(*ret, "state", "succeeded");
	return 0;
}

/* True if no other run of the cell begins: it is refused, or one failed and none succeeded. */
static bool is_left_out(const json_t *cell, const json_t *runs)
{
	bool failed = json_object_get(cell, "why");
	const json_t *row;
	size_t i;

	json_array_foreach (runs, i, row) {
		if (js_is(row, "state", "succeeded"))
			return false;
		failed |= json_object_get(row, "exit_code") && !js_is(row, "state", "stopped");
	}
	return failed;
}

static int see_cell(struct journal *journal, const json_t *cell, size_t at, const json_t *known,
		    const json_t *earlier, struct sweep_seen *seen, json_t *cells, struct err **err)
{
	const json_t *before =
		json_object_get(json_array_get(json_object_get(earlier, "cells"), at), "runs");
	json_t *kept = json_object(), *runs = json_array(), *id, *row;
	size_t i;

	json_array_append_new(cells, kept);
	js_put(kept, "cell", json_integer((json_int_t)at + 1));
	js_put_str(kept, "name", js_str(cell, "name"));
	if (js_str(cell, "why"))
		js_put_str(kept, "why", js_str(cell, "why"));
	js_put(kept, "runs", runs);
	json_array_foreach (json_object_get(cell, "runs"), i, id) {
		if (see_run(journal, json_string_value(id), known, json_array_get(before, i), seen,
			    &row, err) < 0)
			return -1;
		json_array_append_new(runs, row);
	}
	json_array_foreach (runs, i, row)
		seen->waiting += js_is(row, "state", NOT_BEGUN) && !is_left_out(cell, runs);
	return 0;
}

static int find_known(struct journal *journal, json_t *ret, struct err **err)
{
	json_auto_t *runs = json_array();
	json_t *run;
	size_t i;

	if (journal_runs(journal, runs, err) < 0)
		return -1;
	json_array_foreach (runs, i, run)
		json_object_set_new(ret, json_string_value(run), json_true());
	return 0;
}

static const char *state_of(const struct sweep_seen *seen, bool stopped, const json_t *record)
{
	if (seen->going > 0)
		return "running";
	if (stopped)
		return "stopped";
	if (seen->waiting > 0)
		return sweep_record_limit(record, seen->cost) ? "refused" : "waiting";
	return seen->succeeded > 0 ? "succeeded" : "failed";
}

static void seen_release(struct sweep_seen *seen)
{
	err_freep(&seen->damage);
}

int sweep_view(struct journal *journal, const json_t *record, const json_t *earlier, json_t **ret,
	       struct err **ret_damage, struct err **err)
{
	static const char *const told[] = { "sweep", "name", "kind", "created" };
	json_auto_t *known = json_object(), *view = json_object();
	json_t *cells = json_array();
	const json_t *cell;
	AUTO(seen_release) struct sweep_seen seen = { 0 };
	size_t i;
	int stopped = sweep_record_is_stopped(journal, js_str(record, "sweep"), NULL, err);

	for (i = 0; i < STK_LENGTH(told); i++)
		js_put_str(view, told[i], js_str(record, told[i]));
	js_put(view, "cells", cells);
	if (stopped < 0 || find_known(journal, known, err) < 0)
		return -1;
	json_array_foreach (json_object_get(record, "cells"), i, cell)
		if (see_cell(journal, cell, i, known, earlier, &seen, cells, err) < 0)
			return -1;
	js_put_str(view, "state", state_of(&seen, stopped > 0, record));
	js_put(view, "stopped", json_boolean(stopped > 0));
	js_put(view, "cost", json_real(seen.cost));
	if (sweep_view_exit_code(view) != EXIT_DETACHED)
		js_put(view, "exit_code", json_integer(sweep_view_exit_code(view)));
	*ret = TAKE(view);
	*ret_damage = TAKE(seen.damage);
	return 0;
}

int sweep_view_exit_code(const json_t *view)
{
	if (js_is(view, "state", "running") || js_is(view, "state", "waiting"))
		return EXIT_DETACHED;
	if (js_is(view, "state", "stopped"))
		return EXIT_STOPPED;
	if (js_is(view, "state", "refused"))
		return EXIT_GATE;
	return js_is(view, "state", "succeeded") ? EXIT_DONE : EXIT_RUN_FAILED;
}

int sweep_view_each(const json_t *view, sweep_view_fn fn, void *arg, struct err **err)
{
	const json_t *cell, *row;
	size_t i, k;

	json_array_foreach (json_object_get(view, "cells"), i, cell)
		json_array_foreach (json_object_get(cell, "runs"), k, row) {
			if (js_is(row, "state", NOT_BEGUN))
				continue;
			if (fn(arg, js_str(row, "run"), js_str(row, "state"), err) < 0)
				return -1;
		}
	return 0;
}

/* ---- printed ---- */

static void add_row(struct table *table, const json_t *cell, const json_t *run, bool first)
{
	const char *state = js_str(run, "state"), *why = js_str(cell, "why");
	const json_t *code = json_object_get(run, "exit_code");
	bool begun = strcmp(state, NOT_BEGUN) != 0;

	table_add_row(table, text_style_icon_of_state(begun ? state : "waiting", NULL));
	if (first) {
		table_set(table, 0, mem_format("%lld", (long long)js_int(cell, "cell", 0)));
		table_set(table, 1, mem_copy(js_str(cell, "name") ? js_str(cell, "name") : ""));
	}
	table_set(table, 2, mem_copy(js_str(run, "run")));
	if (begun)
		table_set(table, 3, mem_copy(state));
	else
		table_set(table, 3,
			  why ? mem_format("not supported: %s", why) : mem_copy("not begun"));
	if (js_str(run, "phase"))
		table_set(table, 4, mem_copy(js_str(run, "phase")));
	if (code)
		table_set(table, 5, mem_format("%lld", (long long)json_integer_value(code)));
}

void sweep_view_print(const json_t *view)
{
	AUTO(table_release) struct table table = { 0 };
	AUTO(sb_release) struct sb lines = SB_INIT_MAX(SIZE_MAX / 2);
	const json_t *cell, *run;
	size_t i, k;

	if (out_is_json()) {
		out_json(view);
		return;
	}
	out_line("sweep %s: %s", js_str(view, "sweep"), js_str(view, "state"));
	table_add_column(&table, "CELL", 1, 0);
	table_add_column(&table, "NAME", 2, 12);
	table_add_column(&table, "RUN", 0, 0);
	table_add_column(&table, "STATE", 0, 12);
	table_add_column(&table, "PHASE", 4, 0);
	table_add_column(&table, "EXIT", 3, 0);
	json_array_foreach (json_object_get(view, "cells"), i, cell)
		json_array_foreach (json_object_get(cell, "runs"), k, run)
			add_row(&table, cell, run, k == 0);
	table_print(&table, out_width(), SIZE_MAX, out_style(), &lines);
	out_finished(lines.text);
}
