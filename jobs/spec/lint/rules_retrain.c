/*
 * The sections of retraining against each other: what the gate reads and compares with, and places
 * whose results would be data of the next turn.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/resolved.h"

static const enum spec_field retrain_sections[] = {
	SPEC_DATA,  SPEC_PARENT,  SPEC_EVALUATE, SPEC_GATE,
	SPEC_INFER, SPEC_PROMOTE, SPEC_SCHEDULE, SPEC_DRIVER,
};

bool spec_retrains(const struct spec *spec)
{
	for (size_t i = 0; i < STK_LENGTH(retrain_sections); i++)
		if (spec_is_set(spec, retrain_sections[i]))
			return true;
	return false;
}

/* Only the agent proves a parent, runs tasks and uploads what they write. */
static void check_toolkit(struct binder *binder)
{
	const struct spec *spec = binder->spec;

	if (!spec_has_toolkit(spec))
		return;
	for (size_t i = 0; i < STK_LENGTH(retrain_sections); i++)
		if (spec_is_set(spec, retrain_sections[i]))
			problem_hint(spec_error(binder, retrain_sections[i], NULL,
						"'%s' needs stoker's agent, which launcher "
						"'toolkit' leaves out",
						field_table[retrain_sections[i]].path),
				     "use 'sagemaker.launcher: node', or remove '%s'",
				     field_table[retrain_sections[i]].path);
}

/* --- metrics --- */

/* True if a pattern of the spec reads this metric from a log. */
static bool is_read(const struct spec *spec, const char *metric)
{
	json_auto_t *metrics = spec_metrics(spec);
	const json_t *row;
	size_t i;

	json_array_foreach (metrics, i, row)
		if (js_is(row, "name", metric))
			return true;
	return false;
}

/* Reports a metric that an evaluation would have to report, or nobody can: `member` is its place in
 * `field`. */
static void check_measured(struct binder *binder, enum spec_field field, const char *member,
			   const char *metric)
{
	const struct spec *spec = binder->spec;

	if (!spec_is_set(spec, SPEC_EVALUATE))
		problem_hint(spec_error(binder, field, member,
					"nothing measures '%.80s' of a candidate", metric),
			     "add the phase: evaluate: {command: [python3, evaluate.py]}");
	else if (!is_read(spec, metric))
		problem_hint(spec_lint(binder, field, member, "no metric '%.80s'", metric),
			     "let evaluate.command write it to $STOKER_OUTPUT_DIR/metrics.json, or "
			     "add metrics: [{name: %.80s, regex: '%.80s: ([0-9.eE+-]+)'}]",
			     metric, metric);
}

/* --- entries of the gate --- */

struct gate_item { /* an entry as it was written */
	struct binder *binder;
	const struct entry *entry;
	char name[32]; /* "gate[0]" */
};

static const char *item_text(const struct gate_item *item, const char *member)
{
	const struct entry *entry = node_entry(item->entry->value, member);

	return entry && entry->value->kind == NODE_SCALAR ? entry->value->text : NULL;
}

/* Adds a problem at a member of an entry that was written. */
static struct problem *item_problem(const struct gate_item *item, const char *member, bool lint,
				    const char *fmt, ...) STK_PRINTF(4, 5);
static struct problem *item_problem(const struct gate_item *item, const char *member, bool lint,
				    const char *fmt, ...)
{
	AUTO(auto_free) char *field = mem_format("%s.%s", item->name, member);
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = problem_add(&item->binder->reporter,
			      access_mark_of_entry(node_entry(item->entry->value, member)), field,
			      lint, fmt, args);
	va_end(args);
	return problem;
}

/* True if a member was written, and is not its default. */
static bool item_says(const struct gate_item *item, enum spec_field field)
{
	const char *text = item_text(item, field_leaf((field_id)field));

	return text && strcmp(text, field_table[field].fallback) != 0;
}

/* Warns of members that only entries of form max_drop read. */
static void check_unused(const struct gate_item *item, const char *form)
{
	static const enum spec_field members[] = { SPEC_GATE_DIRECTION, SPEC_GATE_CONFIDENCE };

	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if (item_says(item, members[i]))
			problem_hint(item_problem(item, field_leaf((field_id)members[i]), true,
						  "unused with '%s'", form),
				     "remove it");
}

static void check_drop(const struct gate_item *item)
{
	const struct spec *spec = item->binder->spec;
	const char *against = item_text(item, "against");

	if (against && text_starts(against, "run:"))
		problem_hint(item_problem(item, "against", false,
					  "'max_drop' is against the promoted model, not '%.80s'",
					  against),
			     "use max_gap, which compares the series of two runs");
	if (spec_says(spec, SPEC_EVALUATE_BASELINE, "none"))
		problem_hint(item_problem(item, "max_drop", false,
					  "'max_drop' needs a baseline, which 'evaluate.baseline: "
					  "none' leaves out"),
			     "use 'baseline: promoted', or at_least or at_most");
	if (item_says(item, SPEC_GATE_CONFIDENCE) && spec_is_set(spec, SPEC_EVALUATE) &&
	    spec_int(spec, SPEC_EVALUATE_REPEAT) < 2)
		problem_hint(item_problem(item, "confidence", true,
					  "unused without 'evaluate.repeat' of 2 or more"),
			     "evaluate several times: evaluate: {repeat: 5}");
}

static void check_gap(const struct gate_item *item)
{
	const char *against = item_text(item, "against"), *gap = item_text(item, "max_gap");
	const char *metric = item_text(item, "metric");
	double value;
	bool relative;

	if (!against || !text_starts(against, "run:"))
		problem_hint(item_problem(item, "max_gap", false,
					  "'max_gap' is against a run alone: it compares the "
					  "series of two trainings"),
			     "add against: \"run:ID\", or use max_drop");
	if (gap && spec_margin(gap, &value, &relative) && value == 0)
		problem_hint(item_problem(item, "max_gap", false, "no gap is less than 0"),
			     "write how close is close enough, such as 0.1%%");
	if (metric && !is_read(item->binder->spec, metric))
		problem_hint(item_problem(item, "metric", false,
					  "nothing reads '%.80s' from the log of the training",
					  metric),
			     "add metrics: [{name: %.80s, regex: '%.80s: ([0-9.eE+-]+)'}]", metric,
			     metric);
	check_unused(item, "max_gap");
}

static void check_bound(const struct gate_item *item, const char *form)
{
	if (item_text(item, "against"))
		problem_hint(item_problem(item, "against", false,
					  "'%s' compares with its own number alone", form),
			     "remove 'against', or use max_drop or max_gap");
	check_unused(item, form);
}

static void check_form(const struct gate_item *item)
{
	static const char *const forms[] = { "max_drop", "max_gap", "at_least", "at_most" };
	const char *metric = item_text(item, "metric"), *form = NULL;
	AUTO(auto_free) char *member = mem_format("%s.metric", strchr(item->name, '['));
	int count = 0;

	for (size_t i = 0; i < STK_LENGTH(forms); i++) {
		if (!node_entry(item->entry->value, forms[i]))
			continue;
		form = forms[i];
		count++;
	}
	if (count != 1) {
		problem_hint(problem_error(&item->binder->reporter, item->entry->at, item->name,
					   "'%s' must have one of 'max_drop', 'max_gap', "
					   "'at_least' and 'at_most'",
					   item->name),
			     count ? "split the entry: all entries must pass"
				   : "for example {metric: accuracy, max_drop: 0.1%%}");
		return;
	}
	if (strcmp(form, "max_gap") == 0) {
		check_gap(item);
		return;
	}
	if (metric)
		check_measured(item->binder, SPEC_GATE, member, metric);
	if (strcmp(form, "max_drop") == 0)
		check_drop(item);
	else
		check_bound(item, form);
}

static size_t check_entries(struct binder *binder)
{
	const struct node *list = access_node_of_field(binder->spec, SPEC_GATE);

	if (!list || list->kind != NODE_LIST)
		return 0;
	for (size_t i = 0; i < list->count && i < field_table[SPEC_GATE].max_items; i++) {
		struct gate_item item = { binder, &list->entries[i], "" };

		snprintf(item.name, sizeof item.name, "gate[%zu]", i);
		if (item.entry->value->kind == NODE_MAP)
			check_form(&item);
	}
	return list->count;
}

/* The entry that evaluate.metric is short for. Returns true if there is one. */
static bool check_short_form(struct binder *binder)
{
	static const enum spec_field with[] = { SPEC_EVALUATE_DIRECTION, SPEC_EVALUATE_MAX_DROP };
	const struct spec *spec = binder->spec;
	const char *metric = spec_str(spec, SPEC_EVALUATE_METRIC);

	if (metric && strcmp(metric, "none") != 0) {
		check_measured(binder, SPEC_EVALUATE_METRIC, NULL, metric);
		if (spec_says(spec, SPEC_EVALUATE_BASELINE, "none"))
			problem_hint(spec_error(binder, SPEC_EVALUATE_METRIC, NULL,
						"'%.80s' has nothing to drop from: 'baseline: "
						"none' leaves the baseline out",
						metric),
				     "use 'baseline: promoted', or gate: [{metric: %.80s, "
				     "at_least: 0.9}]",
				     metric);
		return true;
	}
	for (size_t i = 0; metric && i < STK_LENGTH(with); i++)
		if (!spec_says(spec, with[i], field_table[with[i]].fallback))
			problem_hint(spec_error(binder, with[i], NULL,
						"'evaluate.metric' is missing beside '%s'",
						field_table[with[i]].path),
				     "name the metric, or remove '%s'",
				     field_leaf((field_id)with[i]));
	return false;
}

static void check_gate(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	bool is_short = check_short_form(binder);
	size_t entries = check_entries(binder);
	enum spec_field at = spec_is_set(spec, SPEC_PROMOTE_WHEN) ? SPEC_PROMOTE_WHEN
			     : spec_is_set(spec, SPEC_PROMOTE)    ? SPEC_PROMOTE
								  : SPEC_SCHEDULE;

	/* A spec that promotes nothing needs no gate; 'retrain' asks again. */
	if (is_short || entries > 0 || !spec_is_set(spec, at) ||
	    spec_says(spec, SPEC_PROMOTE_WHEN, "manual") ||
	    spec_says(spec, SPEC_PROMOTE_WHEN, "always"))
		return;
	problem_hint(spec_error(binder, at, NULL,
				"'promote.when: gate' without a gate: nothing says what may be "
				"promoted"),
		     "add gate: [{metric: accuracy, max_drop: 0.1%%}], or use when: manual or "
		     "always");
}

/* --- stages --- */

/* A stage has its own phase 1 only if there is a compiler, and overrides only with that. */
static void check_stages(struct binder *binder)
{
	static const enum spec_field rows[][2] = {
		{ SPEC_EVALUATE_COMPILE, SPEC_EVALUATE_OVERRIDES },
		{ SPEC_INFER_COMPILE, SPEC_INFER_OVERRIDES },
	};
	const struct spec *spec = binder->spec;

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		bool aot = spec_says(spec, rows[i][0], "aot");

		if (aot && spec_says(spec, SPEC_COMPILE_KIND, "none"))
			problem_hint(spec_error(binder, rows[i][0], NULL,
						"'%s: aot' compiles nothing: 'compile.kind' is "
						"'none'",
						field_table[rows[i][0]].path),
				     "name the compiler, such as compile: {kind: neuron, "
				     "cache_url: …}, or use 'jit'");
		if (!aot && spec_is_set(spec, rows[i][1]))
			problem_hint(spec_lint(binder, rows[i][1], NULL, "unused without '%s: aot'",
					       field_table[rows[i][0]].path),
				     "compile ahead, or remove it");
	}
}

/* --- places --- */

/* Returns a place in one form, so that two can be compared: an absolute path, or a URL; each
 * without a slash at its end. NULL for a word. The caller frees it. */
static char *place_text(const struct spec *spec, const char *place)
{
	AUTO(auto_free) char *folder = NULL, *joined = NULL;
	size_t len = strlen(place);

	if (text_starts(place, "s3://")) {
		while (len > strlen("s3://") && place[len - 1] == '/')
			len--;
		return mem_copy_n(place, len);
	}
	if (text_starts(place, "dir:"))
		place += strlen("dir:");
	folder = fs_dirname(spec->file);
	joined = fs_join(folder, place);
	return fs_absolute(joined);
}

/* Returns the place that a field names; NULL if it names none. The caller frees it. */
static char *place_of_field(const struct spec *spec, enum spec_field field)
{
	const char *text = spec_str(spec, field);

	if (!text || field_word_in(field_table[field].words, text))
		return NULL;
	return place_text(spec, text);
}

/* The promoted models are below the workspace if nothing else is said. */
static char *place_of_models(const struct spec *spec)
{
	const char *workspace = spec_str(spec, SPEC_WORKSPACE), *name = spec_str(spec, SPEC_NAME);
	AUTO(auto_free) char *root = NULL;

	if (spec_str(spec, SPEC_PROMOTE_URL))
		return place_of_field(spec, SPEC_PROMOTE_URL);
	if (!workspace || !name)
		return NULL;
	root = place_text(spec, workspace);
	return mem_format("%s/models/%s", root, name);
}

/* True if `inner` is `outer`, or below it. */
static bool is_inside(const char *inner, const char *outer)
{
	size_t len = strlen(outer);

	return strncmp(inner, outer, len) == 0 &&
	       (inner[len] == '\0' || inner[len] == '/' || (len > 0 && outer[len - 1] == '/'));
}

/* Reports results in, or around, what is read: next time they would be read as data. */
static void check_loop(struct binder *binder, enum spec_field read, enum spec_field written,
		       const char *place)
{
	AUTO(auto_free) char *from = place_of_field(binder->spec, read);
	bool inside = from && place && is_inside(place, from);

	if (!inside && !(from && place && is_inside(from, place)))
		return;
	problem_hint(spec_error(binder, spec_is_set(binder->spec, written) ? written : read, NULL,
				"'%s' lies inside '%s': a loop, in which results become data",
				field_table[inside ? written : read].path,
				field_table[inside ? read : written].path),
		     "keep them beside each other, such as %s",
		     text_starts(from, "s3://") ? "s3://bucket/data and s3://bucket/results"
						: "./data and ./results");
}

static void check_places(struct binder *binder)
{
	static const enum spec_field reads[] = { SPEC_DATA_URL, SPEC_INFER_INPUT };
	AUTO(auto_free) char *results = place_of_field(binder->spec, SPEC_INFER_OUTPUT);
	AUTO(auto_free) char *models = place_of_models(binder->spec);

	for (size_t i = 0; i < STK_LENGTH(reads); i++) {
		check_loop(binder, reads[i], SPEC_INFER_OUTPUT, results);
		check_loop(binder, reads[i], SPEC_PROMOTE_URL, models);
	}
	if (!spec_is_set(binder->spec, SPEC_DATA) && spec_is_set(binder->spec, SPEC_INFER) &&
	    spec_says(binder->spec, SPEC_INFER_INPUT, "data.url"))
		problem_hint(spec_error(binder, SPEC_INFER, NULL,
					"'infer' has no input: there is no 'data'"),
			     "add data: {url: …}, or name the items: infer: {input: …}");
}

void rules_retrain(struct binder *binder)
{
	if (!spec_retrains(binder->spec))
		return;
	check_toolkit(binder);
	check_gate(binder);
	check_stages(binder);
	check_places(binder);
}
