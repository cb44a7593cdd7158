/* Statistics as text: see stats_view.h. */
#include "cmd/view/stats_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/screen/out.h"
#include "cmd/view/csv.h"
#include "cmd/view/table.h"
#include "jobs/base/text/text.h"
#include "jobs/flow/ledger.h"

#define MACHINES_SHOWN 5 /* without --by node, beside those that are suspect */
#define INDENT         "            "

static const json_t *part(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static long long count_of(const json_t *object, const char *key)
{
	return (long long)js_int(object, key, 0);
}

/* "81.2 %" */
static char *percent(double share)
{
	return mem_format("%.1f %%", share * 100);
}

/* "12.3 h"; a duration where that says more. */
static char *hours(double seconds)
{
	if (seconds > 0 && seconds < 3600)
		return text_format_duration((int64_t)(seconds * 1000));
	return mem_format("%.1f h", seconds / 3600);
}

static char *usd(const json_t *cost, const char *key)
{
	const json_t *value = json_object_get(cost, key);

	return value ? mem_format("%.2f", json_number_value(value)) : NULL;
}

static void print_table(const struct table *table)
{
	AUTO(sb_release) struct sb lines = SB_INIT_MAX(SIZE_MAX / 2);
	size_t width = out_width();

	table_print((struct table *)table, out_is_verbose() ? 0 : width, SIZE_MAX, out_style(),
		    &lines);
	out_finished(lines.text);
}

/* ---- all runs ---- */

static void print_outcomes(const json_t *group)
{
	static const char *const ends[][2] = {
		{ "succeeded", "succeeded" },
		{ "failed", "failed" },
		{ "refused", "refused by the environment" },
		{ "gate", "ended by a gate" },
		{ "limit", "ended by a limit of the spec" },
		{ "stopped", "stopped on request" },
		{ "debug", "debug runs" },
		{ "going_on", "not ended" },
	};
	AUTO(sb_release) struct sb text = SB_INIT;

	sb_addf(&text, "runs:       %lld", count_of(group, "runs"));
	for (size_t i = 0, shown = 0; i < STK_LENGTH(ends); i++)
		if (count_of(group, ends[i][0]) > 0)
			sb_addf(&text, "%s%lld %s", shown++ ? ", " : ": ",
				count_of(group, ends[i][0]), ends[i][1]);
	out_line("%s", text.text);
}

static void print_success(const json_t *group)
{
	const json_t *success = part(group, "success");
	long long of = count_of(success, "of");

	if (of == 0) {
		out_line("success:    not known: no run has succeeded, failed or been refused");
		return;
	}
	out_line("success:    %.1f %% of %lld; 95 %% interval (Wilson) %.1f to %.1f %%",
		 js_real(success, "rate", 0) * 100, of, js_real(success, "low", 0) * 100,
		 js_real(success, "high", 0) * 100);
	out_line(INDENT
		 "succeeded / (succeeded + failed + refused by the environment); runs that a "
		 "person");
	out_line(INDENT "stopped, that a gate or a limit ended, debug runs, and those that go on "
			"do not count");
}

static void print_goodput(const json_t *group)
{
	const json_t *goodput = part(group, "goodput");
	double held = js_real(part(group, "held"), "total", 0), kept = js_real(group, "kept", 0);
	AUTO(auto_free) char *steps = hours(js_real(part(group, "held"), "steps", 0));
	AUTO(auto_free) char *all = hours(held + kept);

	if (!goodput) {
		out_line("goodput:    not known: no job has held a machine");
		return;
	}
	out_line("goodput:    %.1f %%: %s in steps of %s for which nodes were held",
		 json_number_value(goodput) * 100, steps, all);
	if (part(group, "billable")) {
		AUTO(auto_free) char *billed = hours(js_real(group, "billable", 0));

		out_line(INDENT "the services bill %s of them", billed);
	}
}

static void print_between_failures(const json_t *group)
{
	const json_t *mtbf = part(group, "mtbf");
	AUTO(auto_free) char *held = hours(js_real(mtbf, "held", 0));
	AUTO(auto_free) char *mean = hours(js_real(mtbf, "seconds", 0));
	long long interrupted = count_of(mtbf, "interrupted");

	if (interrupted == 0)
		out_line("mtbf:       no attempt was interrupted in %s of jobs", held);
	else
		out_line("mtbf:       %s: %s of jobs / %lld interrupted attempt%s (marked below)",
			 mean, held, interrupted, interrupted == 1 ? "" : "s");
}

static void print_cache(const json_t *group)
{
	const json_t *cache = part(group, "cache"), *late = part(group, "late");
	AUTO(auto_free) char *cost = usd(late, "cost");
	AUTO(auto_free)
	char *time = text_format_duration((int64_t)(js_real(late, "seconds", 0) * 1000));

	if (part(cache, "share"))
		out_line("warm:       %.1f %% of %lld starts found every graph in the cache",
			 js_real(cache, "share", 0) * 100,
			 count_of(cache, "warm") + count_of(cache, "cold"));
	if (count_of(late, "graphs") > 0)
		out_line("late:       %lld graph%s compiled in training: %s%s%s%s",
			 count_of(late, "graphs"), count_of(late, "graphs") == 1 ? "" : "s", time,
			 cost ? ", " : "", cost ? cost : "", cost ? " USD" : "");
}

static void print_cost(const json_t *group)
{
	const json_t *cost = part(group, "cost");
	AUTO(auto_free) char *accrued = usd(cost, "accrued");
	AUTO(auto_free) char *billable = usd(cost, "billable");
	long long unpriced = count_of(cost, "without_price");

	if (accrued)
		out_line("cost:       %s USD for the time held%s%s%s", accrued,
			 billable ? "; the services bill " : "", billable ? billable : "",
			 billable ? " USD" : "");
	if (unpriced > 0)
		out_line("%s%lld run%s held machines of no known price",
			 accrued ? INDENT : "cost:       ", unpriced, unpriced == 1 ? "" : "s");
}

static void set_count(struct table *table, size_t column, const json_t *row, const char *key)
{
	if (count_of(row, key) > 0)
		table_set(table, column, mem_format("%lld", count_of(row, key)));
}

static void print_failures(const json_t *group)
{
	static const char *const actions[][2] = { { "RETRIED", "retry" },
						  { "WAITED", "wait" },
						  { "NODE EXCLUDED", "exclude" },
						  { "FELL BACK", "fall_back" },
						  { "ENDED THE RUN", "stop" } };
	AUTO(table_release) struct table table = { 0 };
	const json_t *rows = part(group, "failures"), *row;
	size_t i;

	if (json_array_size(rows) > 0) {
		table_add_column(&table, "FAILURE", 0, 0);
		table_add_column(&table, "ATTEMPTS", 0, 0);
		for (size_t a = 0; a < STK_LENGTH(actions); a++)
			table_add_column(&table, actions[a][0], 1, 0);
		json_array_foreach (rows, i, row) {
			table_add_row(&table, MARK_NONE);
			table_set(&table, 0,
				  mem_format("%s%s", js_str(row, "class"),
					     js_bool(row, "interrupts", false) ? " *" : ""));
			set_count(&table, 1, row, "attempts");
			for (size_t a = 0; a < STK_LENGTH(actions); a++)
				set_count(&table, a + 2, row, actions[a][1]);
		}
		out_line("%s", "");
		print_table(&table);
		out_line("* interrupted by machines, network or service, or by a cause that is not "
			 "known");
	}
	if (count_of(group, "drained") > 0)
		out_line("%lld of %lld attempts were asked to save and end (drained)",
			 count_of(group, "drained"), count_of(group, "attempts"));
	if (count_of(group, "unfit") > 0)
		out_line("%lld check-up%s refused a node before the command began",
			 count_of(group, "unfit"), count_of(group, "unfit") == 1 ? "" : "s");
}

static void add_bin(struct table *table, const json_t *group, const char *bin)
{
	double wall = js_real(part(group, "ledger"), bin, 0);
	double held = js_real(part(group, "held"), bin, 0);
	double total = js_real(part(group, "held"), "total", 0) + js_real(group, "kept", 0);

	if (wall <= 0 && held <= 0)
		return;
	table_add_row(table, MARK_NONE);
	table_set(table, 0, mem_copy(bin));
	table_set(table, 1, wall > 0 ? hours(wall) : NULL);
	table_set(table, 2, held > 0 ? hours(held) : NULL);
	table_set(table, 3, held > 0 ? percent(held / total) : NULL);
	table_set(table, 4, usd(part(part(group, "cost"), "bins"), bin));
}

static void print_ledger(const json_t *group)
{
	AUTO(table_release) struct table table = { 0 };
	double kept = js_real(group, "kept", 0), held = js_real(part(group, "held"), "total", 0);

	if (js_real(part(group, "ledger"), "total", 0) <= 0)
		return;
	table_add_column(&table, "BIN", 0, 0);
	table_add_column(&table, "TIME OF RUNS", 0, 0);
	table_add_column(&table, "NODES HELD", 0, 0);
	table_add_column(&table, "SHARE", 1, 0);
	table_add_column(&table, "USD", 0, 0);
	for (int bin = 0; bin < BIN_COUNT; bin++)
		add_bin(&table, group, ledger_bin_names[bin]);
	if (kept > 0) {
		table_add_row(&table, MARK_NONE);
		table_set(&table, 0, mem_copy("kept"));
		table_set(&table, 2, hours(kept));
		table_set(&table, 3, percent(kept / (held + kept)));
		table_set(&table, 4, usd(part(group, "cost"), "kept"));
	}
	out_line("%s", "");
	print_table(&table);
}

/* ---- machines ---- */

/* "1 in 3,100", without the comma. */
static char *chance_text(double chance)
{
	if (chance >= 0.1)
		return mem_format("%.0f %%", chance * 100);
	if (chance < 1e-9)
		return mem_copy("under 1 in 10^9");
	return mem_format("1 in %.0f", round(1 / chance));
}

static void print_suspect(const json_t *row)
{
	AUTO(auto_free) char *chance = chance_text(js_real(row, "chance", 1));

	out_line("%s fails more than its share: %lld failed runs, %.1f expected by its share of "
		 "%.1f "
		 "%%; chance %s",
		 js_str(row, "host"), count_of(row, "failed_runs"), js_real(row, "expected", 0),
		 js_real(row, "share", 0) * 100, chance);
}

static void print_machines(const json_t *rows, size_t most)
{
	AUTO(table_release) struct table table = { 0 };
	static const char *const titles[] = { "NODE",     "RUNS",     "FAILED RUNS", "EXPECTED",
					      "ATTEMPTS", "FAILURES", "TIME",        "CHANCE" };
	size_t i, suspects = 0, count = json_array_size(rows);
	const json_t *row;

	for (i = 0; i < STK_LENGTH(titles); i++)
		table_add_column(&table, titles[i], i < 4 || i == 7 ? 0 : 1, 0);
	table.columns[0].marked = true;
	json_array_foreach (rows, i, row) {
		bool suspect = js_bool(row, "suspect", false);

		suspects += suspect;
		if (!suspect && i >= most)
			continue;
		table_add_row(&table, suspect ? MARK_WARN : MARK_NONE);
		table_set(&table, 0, mem_copy(js_str(row, "host")));
		table_set(&table, 1, mem_format("%lld", count_of(row, "runs")));
		table_set(&table, 2, mem_format("%lld", count_of(row, "failed_runs")));
		table_set(&table, 3, mem_format("%.1f", js_real(row, "expected", 0)));
		table_set(&table, 4, mem_format("%lld", count_of(row, "attempts")));
		table_set(&table, 5, mem_format("%lld", count_of(row, "failures")));
		table_set(&table, 6, hours(js_real(row, "seconds", 0)));
		table_set(&table, 7, chance_text(js_real(row, "chance", 1)));
	}
	print_table(&table);
	if (table.count < count)
		out_line("and %zu more nodes: '--by node' shows all", count - table.count);
	json_array_foreach (rows, i, row)
		if (js_bool(row, "suspect", false))
			print_suspect(row);
	if (count == 1) {
		out_line("one node alone has no share to compare with");
		return;
	}
	if (suspects == 0)
		out_line("no node of %zu fails more than its share", count);
	out_line(
		"(rule: at least %d failed runs, and a chance of at most 1 in %.0f that any of %zu "
		"nodes has as many)",
		STATS_SUSPECT_RUNS, 1 / STATS_SUSPECT_CHANCE, count);
}

static void print_all(const json_t *group)
{
	const json_t *nodes = part(group, "nodes");

	print_outcomes(group);
	if (count_of(group, "runs") == 0)
		return;
	print_success(group);
	print_goodput(group);
	print_between_failures(group);
	print_cache(group);
	print_cost(group);
	print_ledger(group);
	print_failures(group);
	if (json_array_size(nodes) == 0)
		return;
	out_line("%s", "");
	print_machines(nodes, MACHINES_SHOWN);
}

/* ---- groups ---- */

static const char *name_of(const json_t *group)
{
	const char *name = js_str(group, "group");

	return *name ? name : "(none)";
}

static void add_group(struct table *table, const json_t *group)
{
	const json_t *success = part(group, "success"), *mtbf = part(group, "mtbf");
	const json_t *cost = part(group, "cost"), *cache = part(group, "cache");

	table_add_row(table, MARK_NONE);
	table_set(table, 0, mem_copy(name_of(group)));
	table_set(table, 1, mem_format("%lld", count_of(group, "runs")));
	table_set(table, 2,
		  mem_format("%lld/%lld", count_of(group, "succeeded"), count_of(success, "of")));
	if (part(success, "rate")) {
		table_set(table, 3, percent(js_real(success, "rate", 0)));
		table_set(table, 4,
			  mem_format("%.0f-%.0f %%", js_real(success, "low", 0) * 100,
				     js_real(success, "high", 0) * 100));
	}
	if (part(group, "goodput"))
		table_set(table, 5, percent(js_real(group, "goodput", 0)));
	if (part(mtbf, "seconds"))
		table_set(table, 6, hours(js_real(mtbf, "seconds", 0)));
	table_set(table, 7,
		  hours(js_real(part(group, "held"), "total", 0) + js_real(group, "kept", 0)));
	table_set(table, 8, usd(cost, "accrued"));
	if (part(cache, "share"))
		table_set(table, 9, percent(js_real(cache, "share", 0)));
	set_count(table, 10, part(group, "late"), "graphs");
}

static void print_groups(enum stats_by by, const json_t *groups)
{
	static const struct {
		const char *title;
		int rank;
	} columns[] = {
		{ "", 0 },         { "RUNS", 0 },    { "SUCCEEDED", 3 }, { "SUCCESS", 0 },
		{ "INTERVAL", 2 }, { "GOODPUT", 1 }, { "MTBF", 4 },      { "NODES HELD", 5 },
		{ "USD", 3 },      { "WARM", 6 },    { "LATE", 7 },
	};
	AUTO(auto_free) char *title = mem_copy(stats_by_names[by]);
	AUTO(table_release) struct table table = { 0 };
	const json_t *group;
	size_t i;

	for (char *c = title; *c; c++)
		*c = (char)(*c - 'a' + 'A');
	for (i = 0; i < STK_LENGTH(columns); i++)
		table_add_column(&table, i == 0 ? title : columns[i].title, columns[i].rank,
				 i == 0 ? 12 : 0);
	json_array_foreach (groups, i, group)
		add_group(&table, group);
	print_table(&table);
	out_line("success: succeeded / (succeeded + failed + refused by the environment), with the "
		 "interval of Wilson at 95 %%");
	out_line("goodput: time in steps / time for which nodes were held");
	out_line(
		"mtbf: time of jobs / attempts that machines, network, service or an unknown cause "
		"interrupted");
}

void stats_view_print(enum stats_by by, const json_t *stats)
{
	if (by == STATS_ALL)
		print_all(json_array_get(stats, 0));
	else if (json_array_size(stats) == 0)
		return;
	else if (by == STATS_BY_NODE)
		print_machines(stats, SIZE_MAX);
	else
		print_groups(by, stats);
}

/* ---- comma-separated values ---- */

static void add_field(struct sb *line, const char *text)
{
	csv_add(line, line->len == 0, text);
}

static void add_value(struct sb *line, const json_t *value)
{
	char number[TEXT_NUMBER] = "";

	if (json_is_string(value)) {
		add_field(line, json_string_value(value));
		return;
	}
	if (json_is_boolean(value))
		snprintf(number, sizeof number, "%s", json_is_true(value) ? "true" : "false");
	else if (json_is_integer(value))
		snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
	else if (value)
		text_number(json_number_value(value), number);
	add_field(line, number);
}

struct stats_column {
	const char *title, *path;
};

static const struct stats_column group_columns[] = {
	{ "by", "by" },
	{ "group", "group" },
	{ "runs", "runs" },
	{ "succeeded", "succeeded" },
	{ "failed", "failed" },
	{ "refused", "refused" },
	{ "gate", "gate" },
	{ "limit", "limit" },
	{ "stopped", "stopped" },
	{ "debug", "debug" },
	{ "going_on", "going_on" },
	{ "success_rate", "success.rate" },
	{ "success_low", "success.low" },
	{ "success_high", "success.high" },
	{ "goodput", "goodput" },
	{ "attempts", "attempts" },
	{ "interrupted", "mtbf.interrupted" },
	{ "job_held_s", "mtbf.held" },
	{ "mtbf_s", "mtbf.seconds" },
	{ "drained", "drained" },
	{ "unfit", "unfit" },
	{ "held_s", "held.total" },
	{ "kept_s", "kept" },
	{ "billable_s", "billable" },
	{ "accrued_usd", "cost.accrued" },
	{ "billable_usd", "cost.billable" },
	{ "warm", "cache.warm" },
	{ "cold", "cache.cold" },
	{ "late_graphs", "late.graphs" },
	{ "late_s", "late.seconds" },
	{ "late_usd", "late.cost" },
};

static const struct stats_column machine_columns[] = {
	{ "host", "host" },         { "runs", "runs" },         { "failed_runs", "failed_runs" },
	{ "attempts", "attempts" }, { "failures", "failures" }, { "seconds", "seconds" },
	{ "exposed", "exposed" },   { "share", "share" },       { "expected", "expected" },
	{ "chance", "chance" },     { "suspect", "suspect" },
};

/* The numbers of a bin, which are left out of the JSON where they are 0. */
static void add_bins(struct sb *line, const json_t *group, const char *of)
{
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		AUTO(auto_free) char *title = mem_format("%s_%s_s", of, ledger_bin_names[bin]);
		json_auto_t *none = json_integer(0);
		const json_t *value = part(part(group, of), ledger_bin_names[bin]);

		if (group)
			add_value(line, value ? value : none);
		else
			add_field(line, title);
	}
}

static void add_classes(struct sb *line, const json_t *group)
{
	for (int class = CLASS_NONE + 1; class < CLASS_COUNT; class ++) {
		const json_t *rows = part(group, "failures"), *row;
		AUTO(auto_free) char *title = mem_format("failed_%s", flow_class_names[class]);
		json_auto_t *count = NULL;
		int64_t attempts = 0;
		size_t i;

		json_array_foreach (rows, i, row)
			if (js_is(row, "class", flow_class_names[class]))
				attempts = js_int(row, "attempts", 0);
		count = json_integer(attempts);
		if (group)
			add_value(line, count);
		else
			add_field(line, title);
	}
}

/* `row` NULL: the line of names. */
static void print_csv_line(enum stats_by by, const json_t *row)
{
	bool machines = by == STATS_BY_NODE;
	const struct stats_column *columns = machines ? machine_columns : group_columns;
	size_t count = machines ? STK_LENGTH(machine_columns) : STK_LENGTH(group_columns);
	AUTO(sb_release) struct sb line = SB_INIT;

	for (size_t i = 0; i < count; i++)
		if (row)
			add_value(&line, js_path(row, columns[i].path));
		else
			add_field(&line, columns[i].title);
	if (!machines) {
		add_bins(&line, row, "ledger");
		add_bins(&line, row, "held");
		add_classes(&line, row);
	}
	out_line("%s", line.text);
}

void stats_view_print_csv(enum stats_by by, const json_t *stats)
{
	const json_t *row;
	size_t i;

	print_csv_line(by, NULL);
	json_array_foreach (stats, i, row)
		print_csv_line(by, row);
}
