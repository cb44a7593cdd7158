/* The state of a run as JSON: see status.h. */
#include "jobs/report/status.h"

#include <string.h>

#include "jobs/report/status_internal.h"

/* Adds the rows of `late` that no earlier attempt has; returns the number of the others. A graph
 * that was lost because its attempt ended before storing it is compiled and paid for again, but is
 * not a new graph. */
static int64_t add_late(json_t *seen, json_t *all, const json_t *late)
{
	int64_t again = 0;
	json_t *row;
	size_t i;

	json_array_foreach (late, i, row) {
		const char *graph = js_str(row, "graph");

		if (graph && json_object_get(seen, graph)) {
			again++;
			continue;
		}
		if (graph)
			json_object_set_new(seen, graph, json_true());
		json_array_append(all, row);
	}
	return again;
}

/* Sums over all attempts of a phase; "jit" begins it. NULL: no attempt has told of graphs. */
static json_t *jit_json(const struct status *status, enum phase phase, json_t *jit)
{
	json_auto_t *seen = json_object();
	json_t *names = json_array(), *late = json_array(), *row;
	double seconds = 0, cost = 0;
	int64_t graphs = 0;
	bool any = false;
	size_t i;

	json_array_foreach (status->jit, i, row) {
		const char *of = js_str(row, "phase");

		if (strcmp(of ? of : flow_phase_names[PHASE_TRAIN], flow_phase_names[phase]) != 0)
			continue;
		any = true;
		graphs += js_int(row, "graphs", 0);
		graphs -= add_late(seen, late, json_object_get(row, "late"));
		seconds += js_real(row, "seconds", 0);
		cost += js_real(row, "cost", 0);
		json_array_extend(names, json_object_get(row, "names"));
	}
	js_put(jit, "graphs", json_integer(graphs));
	js_put(jit, "seconds", json_real(seconds));
	if (status->price_per_hour > 0)
		js_put(jit, "cost", json_real(cost));
	js_put(jit, "names", names);
	if (json_array_size(late))
		js_put(jit, "late", late);
	else
		json_decref(late);
	if (!any) {
		json_decref(jit);
		return NULL;
	}
	return jit;
}

static json_t *train_jit(const struct status *status)
{
	const json_t *told = json_object_get(status->root, "jit");

	return jit_json(status, PHASE_TRAIN, told ? json_deep_copy(told) : json_object());
}

/* The training's are "jit"; those of evaluation and inference are a part of theirs. */
static void put_jit(const struct status *status, json_t *result)
{
	js_put(result, "jit", train_jit(status));
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		json_t *section = flow_phases[phase].has_tasks
					  ? json_object_get(result, flow_phase_names[phase])
					  : NULL;

		if (section)
			js_put(section, "jit", jit_json(status, phase, json_object()));
	}
}

/* Returns what a run that has not ended waits for; NULL while its command runs. */
static const char *waiting_for(const struct status *status, struct utc now)
{
	const json_t *last =
		json_array_get(status->attempts, json_array_size(status->attempts) - 1);
	const char *state = last ? js_str(last, "state") : NULL;

	if (status->left)
		return "a driver: 'stoker resume' starts one";
	if (status->tries)
		return status->tries;
	if (status->waits)
		return status->waits;
	if (status->until.ms > now.ms)
		return "the next attempt";
	if (state && strcmp(state, "lost") == 0)
		return "the engine to show its job again";
	if (state && strcmp(state, "starting") == 0)
		return "the engine to start its job";
	return NULL;
}

/* Seconds by bin, to the millisecond, and their sum. */
static json_t *ledger_json(const struct ledger_view *view)
{
	json_t *object = json_object();

	for (int bin = 0; bin < BIN_COUNT; bin++)
		js_put(object, ledger_bin_names[bin], json_real((double)view->ms[bin] / 1000));
	js_put(object, "total", json_real((double)view->total_ms / 1000));
	return object;
}

json_t *status_json(const struct status *status, struct utc now, bool with_attempts)
{
	json_t *result = json_deep_copy(status->root);
	struct ledger_view view;
	struct utc unobserved;

	ledger_at(&status->ledger, now, &view);
	if (status->begun)
		js_put_str(result, "phase", flow_phase_names[status->phase]);
	if (status->paused && !status->ended) {
		js_put_str(result, "state", "paused");
	} else if (!status->ended) {
		const char *what = waiting_for(status, now);

		js_put_str(result, "state", what ? "waiting" : "running");
		js_put_str(result, "waiting_for", what);
	}
	unobserved = ledger_unobserved_since(&status->ledger);
	if (unobserved.ms > 0 && !status->paused)
		js_put(result, "unseen_since", status_utc(unobserved));
	/* Without a driver that watches, a halt is not known. */
	if (!status->ended && unobserved.ms == 0)
		halt_put(&status->halt, now, result);
	if (status->begun)
		js_put(result, "ledger", ledger_json(&view));
	put_jit(status, result);
	js_put(result, "cost", status_cost_json(status, now, &view));
	if (with_attempts)
		js_put(result, "attempts", json_deep_copy(status->attempts));
	return result;
}

json_t *status_bins_json(const int64_t ms[BIN_COUNT])
{
	json_t *bins = json_object();

	for (int bin = 0; bin < BIN_COUNT; bin++)
		if (ms[bin] != 0)
			js_put(bins, ledger_bin_names[bin], json_integer(ms[bin]));
	return bins;
}

json_t *status_tally(const struct status *status, struct utc now)
{
	static const char *const members[] = { "name", "engine", "created", "ended", "state" };
	json_auto_t *jit = train_jit(status);
	json_t *tally = json_object();
	struct ledger_view view;

	ledger_at(&status->ledger, now, &view);
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		js_put_str(tally, members[i], js_str(status->root, members[i]));
	js_put(tally, "exit_code", json_incref(json_object_get(status->root, "exit_code")));
	run_tally_put(&status->tally, tally);
	js_put(tally, "ms", status_bins_json(view.ms));
	js_put(tally, "held", status_bins_json(view.held_ms));
	js_put(tally, "kept", json_integer(view.kept_ms));
	if (view.billed_ms >= 0)
		js_put(tally, "billed", json_integer(view.billed_ms));
	if (status->price_per_hour > 0)
		js_put(tally, "price", json_real(status->price_per_hour));
	js_put(tally, "stages", status_stages_tally(status, &view));
	js_put(tally, "late", json_incref(json_object_get(jit, "graphs")));
	js_put(tally, "late_seconds", json_incref(json_object_get(jit, "seconds")));
	js_put(tally, "late_cost", json_incref(json_object_get(jit, "cost")));
	return tally;
}
