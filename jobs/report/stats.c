/* Statistics over many runs: see stats.h. */
#include "jobs/report/stats.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/exitcode.h"
#include "jobs/flow/ledger.h"
#include "jobs/report/proportion.h"
#include "jobs/report/run_tally.h"

const char *const stats_by_names[STATS_BY_COUNT] = { "all",      "spec", "engine",
						     "instance", "node", "month" };

enum stats_end {
	END_SUCCEEDED,
	END_FAILED,
	END_REFUSED,
	END_GATE,
	END_LIMIT,
	END_STOPPED,
	END_DEBUG, /* however it ended */
	END_NOT_YET,
	END_COUNT
};
static const char *const end_names[END_COUNT] = { "succeeded", "failed",  "refused", "gate",
						  "limit",     "stopped", "debug",   "going_on" };

struct stats_group {
	char *name; /* owned */
	int64_t runs, ends[END_COUNT];
	int64_t attempts, drained, refused;
	int64_t failures[CLASS_COUNT], acted[CLASS_COUNT][ACTION_COUNT];
	double wall[BIN_COUNT];               /* seconds of runs */
	double held[BIN_COUNT], kept, billed; /* seconds of nodes */
	double job_held;                      /* seconds in which a job held machines */
	double debug_steps, debug_held; /* of debug runs, seconds of nodes: in steps, and all */
	double usd[BIN_COUNT], usd_kept;
	int64_t billed_runs, priced, unpriced; /* runs that held machines, with a price or not */
	double usd_billed;
	int64_t warm, cold;
	int64_t late;
	double late_seconds, late_cost;
	json_t *machines; /* owned; {"host": {"seconds", "exposed", "attempts", "failures", "runs",
			     "failed_runs"}} */
};

struct stats {
	enum stats_by by;
	struct stats_group *groups;
	size_t count;
	json_t *places; /* {"name": place of the group} */
};

struct stats *stats_new(enum stats_by by)
{
	struct stats *stats = mem_zero(1, sizeof *stats);

	stats->by = by;
	stats->places = json_object();
	return stats;
}

void stats_freep(struct stats **stats)
{
	if (!*stats)
		return;
	for (size_t i = 0; i < (*stats)->count; i++) {
		free((*stats)->groups[i].name);
		json_decref((*stats)->groups[i].machines);
	}
	free((*stats)->groups);
	json_decref((*stats)->places);
	free(*stats);
	*stats = NULL;
}

static struct stats_group *group_of(struct stats *stats, const char *name)
{
	const json_t *place = json_object_get(stats->places, name);
	struct stats_group *group;

	if (place)
		return &stats->groups[json_integer_value(place)];
	js_put(stats->places, name, json_integer((json_int_t)stats->count));
	stats->groups = mem_room(stats->groups, stats->count, sizeof *stats->groups);
	group = &stats->groups[stats->count++];
	*group = (struct stats_group){ .name = mem_copy(name), .machines = json_object() };
	return group;
}

/* ---- one run ---- */

static enum stats_end end_of(const json_t *tally)
{
	int64_t code = js_int(tally, "exit_code", -1);

	if (js_bool(tally, "debug", false))
		return END_DEBUG;
	if (code < 0)
		return END_NOT_YET;
	if (js_is(tally, "state", flow_outcome_names[OUTCOME_SUCCEEDED]))
		return END_SUCCEEDED;
	if (js_is(tally, "state", flow_outcome_names[OUTCOME_STOPPED]))
		return END_STOPPED;
	if (code == EXIT_GATE)
		return js_str(tally, "limit") ? END_LIMIT : END_GATE;
	return js_is(tally, "state", flow_outcome_names[OUTCOME_REFUSED]) ? END_REFUSED
									  : END_FAILED;
}

static void add_failures(struct stats_group *group, const json_t *tally)
{
	const json_t *failures = json_object_get(tally, "failures");

	group->attempts += js_int(tally, "attempts", 0);
	group->drained += js_int(tally, "drained", 0);
	group->refused += js_int(tally, "refused", 0);
	for (int class = 0; failures && class < CLASS_COUNT; class ++) {
		const json_t *row = json_object_get(failures, flow_class_names[class]);

		group->failures[class] += js_int(row, "attempts", 0);
		for (int action = 0; row && action < ACTION_COUNT; action++)
			group->acted[class][action] += js_int(row, flow_action_names[action], 0);
	}
}

/* Adds the time of a run, or of its stages alone, on machines of one number and price; `sign` -1
 * takes out what was counted with others. Returns the seconds. */
static double add_held(struct stats_group *group, const json_t *part, double nodes, double price,
		       int sign, bool debug)
{
	const json_t *held = json_object_get(part, "held");
	double kept = sign * (double)js_int(part, "kept", 0) / 1000, sum = kept;
	double usd_per_s = price / 3600; /* of all nodes */

	for (int bin = 0; bin < BIN_COUNT; bin++) {
		double seconds = sign * (double)js_int(held, ledger_bin_names[bin], 0) / 1000;

		group->held[bin] += seconds * nodes;
		group->usd[bin] += seconds * usd_per_s;
		if (debug && bin == BIN_STEPS)
			group->debug_steps += seconds * nodes;
		sum += seconds;
	}
	group->kept += kept * nodes;
	group->usd_kept += kept * usd_per_s;
	group->debug_held += debug ? sum * nodes : 0;
	return sum;
}

/* The same for what a service billed. */
static void add_billed(struct stats_group *group, const json_t *part, double nodes, double price,
		       int sign)
{
	double billed = sign * (double)js_int(part, "billed", 0) / 1000;

	group->billed += billed * nodes;
	group->usd_billed += billed * price / 3600;
}

/* A run that held no machine has no cost, with or without a price. The time of its stages is in
 * that of the run, and is moved to their own machines. */
static void add_time(struct stats_group *group, const json_t *tally)
{
	bool debug = end_of(tally) == END_DEBUG, has_billed = json_object_get(tally, "billed");
	double nodes = (double)js_int(tally, "nodes", 1), price = js_real(tally, "price", 0);
	double held = add_held(group, tally, nodes, price, 1, debug);
	const json_t *wall = json_object_get(tally, "ms");
	const char *stage;
	json_t *part;

	for (int bin = 0; bin < BIN_COUNT; bin++)
		group->wall[bin] += (double)js_int(wall, ledger_bin_names[bin], 0) / 1000;
	group->job_held += debug ? 0 : held - (double)js_int(tally, "kept", 0) / 1000;
	group->priced += held > 0 && price > 0;
	group->unpriced += held > 0 && price <= 0;
	group->billed_runs += has_billed;
	if (has_billed)
		add_billed(group, tally, nodes, price, 1);
	json_object_foreach (json_object_get(tally, "stages"), stage, part) {
		double own_nodes = (double)js_int(part, "nodes", 1);
		double own_price = price > 0 ? js_real(part, "price", price) : 0;

		add_held(group, part, nodes, price, -1, debug);
		add_held(group, part, own_nodes, own_price, 1, debug);
		if (!has_billed)
			continue;
		add_billed(group, part, nodes, price, -1);
		add_billed(group, part, own_nodes, own_price, 1);
	}
}

static void grow(json_t *row, const char *key, int64_t by)
{
	js_put(row, key, json_integer(js_int(row, key, 0) + by));
}

static void add_seconds(json_t *row, const char *key, int64_t ms)
{
	js_put(row, key, json_real(js_real(row, key, 0) + (double)ms / 1000));
}

static void add_machines(struct stats_group *group, const json_t *tally)
{
	const char *host;
	json_t *used;

	json_object_foreach (json_object_get(tally, "machines"), host, used) {
		json_t *row = json_object_get(group->machines, host);

		if (!row) {
			row = json_object();
			js_put(group->machines, host, row);
		}
		add_seconds(row, "seconds", js_int(used, "ms", 0));
		add_seconds(row, "exposed", js_int(used, "exposed", 0));
		grow(row, "attempts", js_int(used, "attempts", 0));
		grow(row, "failures", js_int(used, "failed", 0));
		grow(row, "runs", 1);
		grow(row, "failed_runs", js_int(used, "failed", 0) > 0);
	}
}

void stats_add(struct stats *stats, const json_t *tally)
{
	static const char *const members[STATS_BY_COUNT] = { [STATS_BY_SPEC] = "name",
							     [STATS_BY_ENGINE] = "engine",
							     [STATS_BY_INSTANCE] = "instance",
							     [STATS_BY_MONTH] = "created" };
	const char *member = members[stats->by], *name = member ? js_str(tally, member) : "";
	struct stats_group *group;
	char month[8];

	if (stats->by == STATS_BY_MONTH) {
		snprintf(month, sizeof month, "%s", name ? name : "");
		name = month;
	}
	group = group_of(stats, name ? name : "");
	group->runs++;
	group->ends[end_of(tally)]++;
	add_time(group, tally);
	/* Failures that a person provokes say nothing about programs and machines. */
	if (end_of(tally) != END_DEBUG) {
		add_failures(group, tally);
		add_machines(group, tally);
	}
	group->warm += js_is(tally, "cache", flow_cache_state_names[CACHE_WARM]);
	group->cold += js_is(tally, "cache", flow_cache_state_names[CACHE_COLD]);
	group->late += js_int(tally, "late", 0);
	group->late_seconds += js_real(tally, "late_seconds", 0);
	group->late_cost += js_real(tally, "late_cost", 0);
}

/* ---- machines ---- */

struct stats_exposure {
	double seconds, runs;
	int64_t failed;
	size_t machines;
};

static struct stats_exposure exposure_of(const json_t *machines)
{
	struct stats_exposure all = { .machines = json_object_size(machines) };
	const char *host;
	json_t *row;

	json_object_foreach ((json_t *)machines, host, row) {
		all.seconds += js_real(row, "exposed", 0);
		all.runs += (double)js_int(row, "runs", 0);
		all.failed += js_int(row, "failed_runs", 0);
	}
	return all;
}

static json_t *machine_json(const char *host, const json_t *row, const struct stats_exposure *all)
{
	int64_t failed = js_int(row, "failed_runs", 0);
	double of_runs = (double)js_int(row, "runs", 0) / all->runs;
	double of_time = all->seconds > 0 ? js_real(row, "exposed", 0) / all->seconds : 0;
	double share = of_time > of_runs ? of_time : of_runs;
	double chance = proportion_tail(failed, all->failed, share) * (double)all->machines;
	json_t *ret = json_copy((json_t *)row);

	js_put_str(ret, "host", host);
	js_put(ret, "share", json_real(share));
	js_put(ret, "expected", json_real(share * (double)all->failed));
	js_put(ret, "chance", json_real(chance < 1 ? chance : 1));
	js_put(ret, "suspect",
	       json_boolean(failed >= STATS_SUSPECT_RUNS && chance <= STATS_SUSPECT_CHANCE));
	return ret;
}

static int compare_machines(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	double of_x = js_real(x, "chance", 1), of_y = js_real(y, "chance", 1);
	int64_t more = js_int(y, "failed_runs", 0) - js_int(x, "failed_runs", 0);

	if (of_x != of_y)
		return of_x < of_y ? -1 : 1;
	if (more != 0)
		return more < 0 ? -1 : 1;
	return strcmp(js_str(x, "host"), js_str(y, "host"));
}

/* Lists the machines, those that fail most first. */
static json_t *machines_json(const json_t *machines)
{
	struct stats_exposure all = exposure_of(machines);
	AUTO(auto_free) json_t **rows = mem_zero(all.machines + 1, sizeof(json_t *));
	json_t *ret = json_array(), *row;
	const char *host;
	size_t count = 0;

	json_object_foreach ((json_t *)machines, host, row)
		rows[count++] = machine_json(host, row, &all);
	if (count > 1)
		qsort(rows, count, sizeof(json_t *), compare_machines);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(ret, rows[i]);
	return ret;
}

/* ---- a group ---- */

static json_t *success_json(const struct stats_group *group)
{
	int64_t of =
		group->ends[END_SUCCEEDED] + group->ends[END_FAILED] + group->ends[END_REFUSED];
	json_t *success = json_object();
	double low, high;

	js_put(success, "of", json_integer(of));
	if (of == 0)
		return success;
	proportion_wilson(group->ends[END_SUCCEEDED], of, &low, &high);
	js_put(success, "rate", json_real((double)group->ends[END_SUCCEEDED] / (double)of));
	js_put(success, "low", json_real(low));
	js_put(success, "high", json_real(high));
	return success;
}

static json_t *failures_json(const struct stats_group *group)
{
	json_t *rows = json_array();

	for (int class = CLASS_NONE + 1; class < CLASS_COUNT; class ++) {
		json_t *row;

		if (group->failures[class] == 0)
			continue;
		row = json_object();
		js_put_str(row, "class", flow_class_names[class]);
		js_put(row, "attempts", json_integer(group->failures[class]));
		js_put(row, "interrupts",
		       json_boolean(run_tally_interrupts((enum failure_class) class)));
		for (int action = 0; action < ACTION_COUNT; action++)
			js_put(row, flow_action_names[action],
			       json_integer(group->acted[class][action]));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *between_failures_json(const struct stats_group *group)
{
	json_t *mtbf = json_object();
	int64_t interrupted = 0;

	for (int class = 0; class < CLASS_COUNT; class ++)
		if (run_tally_interrupts((enum failure_class) class))
			interrupted += group->failures[class];
	js_put(mtbf, "interrupted", json_integer(interrupted));
	js_put(mtbf, "held", json_real(group->job_held));
	if (interrupted > 0)
		js_put(mtbf, "seconds", json_real(group->job_held / (double)interrupted));
	return mtbf;
}

/* Returns the bins, zeros left out. */
static json_t *bins_json(const double values[BIN_COUNT], double *ret_total)
{
	json_t *bins = json_object();

	*ret_total = 0;
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		*ret_total += values[bin];
		if (values[bin] > 0)
			js_put(bins, ledger_bin_names[bin], json_real(values[bin]));
	}
	return bins;
}

static json_t *cost_json(const struct stats_group *group)
{
	json_t *cost = json_object();
	double total;

	js_put(cost, "without_price", json_integer(group->unpriced));
	if (group->priced == 0)
		return cost;
	js_put(cost, "bins", bins_json(group->usd, &total));
	js_put(cost, "kept", json_real(group->usd_kept));
	js_put(cost, "accrued", json_real(total + group->usd_kept));
	if (group->billed_runs > 0)
		js_put(cost, "billable", json_real(group->usd_billed));
	return cost;
}

static json_t *late_json(const struct stats_group *group)
{
	json_t *late = json_object();

	js_put(late, "graphs", json_integer(group->late));
	js_put(late, "seconds", json_real(group->late_seconds));
	if (group->priced > 0)
		js_put(late, "cost", json_real(group->late_cost));
	return late;
}

static json_t *group_json(const struct stats *stats, const struct stats_group *group)
{
	json_t *ret = json_object(), *cache = json_object();
	double total, held, used;

	js_put_str(ret, "by", stats_by_names[stats->by]);
	if (stats->by != STATS_ALL)
		js_put_str(ret, "group", group->name);
	js_put(ret, "runs", json_integer(group->runs));
	for (int end = 0; end < END_COUNT; end++)
		js_put(ret, end_names[end], json_integer(group->ends[end]));
	js_put(ret, "success", success_json(group));
	js_put(ret, "attempts", json_integer(group->attempts));
	js_put(ret, "failures", failures_json(group));
	js_put(ret, "drained", json_integer(group->drained));
	js_put(ret, "unfit", json_integer(group->refused));
	js_put(ret, "mtbf", between_failures_json(group));
	js_put(ret, "ledger", bins_json(group->wall, &total));
	js_put(json_object_get(ret, "ledger"), "total", json_real(total));
	js_put(ret, "held", bins_json(group->held, &held));
	js_put(json_object_get(ret, "held"), "total", json_real(held));
	js_put(ret, "kept", json_real(group->kept));
	if (group->billed_runs > 0)
		js_put(ret, "billable", json_real(group->billed));
	used = held + group->kept - group->debug_held;
	if (used > 0)
		js_put(ret, "goodput",
		       json_real((group->held[BIN_STEPS] - group->debug_steps) / used));
	js_put(ret, "cost", cost_json(group));
	js_put(cache, "warm", json_integer(group->warm));
	js_put(cache, "cold", json_integer(group->cold));
	if (group->warm + group->cold > 0)
		js_put(cache, "share",
		       json_real((double)group->warm / (double)(group->warm + group->cold)));
	js_put(ret, "cache", cache);
	js_put(ret, "late", late_json(group));
	js_put(ret, "nodes", machines_json(group->machines));
	return ret;
}

static int compare_groups(const void *a, const void *b)
{
	const struct stats_group *x = *(const struct stats_group *const *)a;
	const struct stats_group *y = *(const struct stats_group *const *)b;

	return strcmp(x->name, y->name);
}

json_t *stats_json(const struct stats *stats)
{
	AUTO(auto_free)
	const struct stats_group **order = mem_zero(stats->count + 1, sizeof *order);
	struct stats_group none = { .name = (char *)"" };
	json_t *ret = json_array();

	if (stats->by == STATS_BY_NODE) {
		json_decref(ret);
		return machines_json(stats->count ? stats->groups[0].machines : NULL);
	}
	if (stats->by == STATS_ALL && stats->count == 0)
		json_array_append_new(ret, group_json(stats, &none));
	for (size_t i = 0; i < stats->count; i++)
		order[i] = &stats->groups[i];
	if (stats->count > 1)
		qsort(order, stats->count, sizeof *order, compare_groups);
	for (size_t i = 0; i < stats->count; i++)
		json_array_append_new(ret, group_json(stats, order[i]));
	return ret;
}
