/* What a plan says of retraining: see retrain_view.h. */
#include "cmd/view/retrain_view.h"

#include <string.h>

#include "cmd/screen/out.h"
#include "cmd/view/plan_text.h"
#include "jobs/base/sb.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/judge.h"

/* --- caches of stages --- */

static int look_at(const json_t *job_plan, json_t **ret, struct err **err)
{
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	const char *ahead = flow_phase_names[PHASE_PRECOMPILE];
	json_auto_t *shown = NULL;
	json_t *cache, *command;

	if (cache_view_try(job_plan, &view, err) < 0)
		return -1;
	cache = json_object();
	js_put(cache, "cache", plan_cache_json(job_plan, &view));
	if (view.verdict != CACHE_WARM) {
		shown = plan_as_shown(job_plan);
		command = sends_command_as_run(shown, ahead);
		js_put(cache, "precompile",
		       command ? command
			       : json_incref(json_object_get(plan_phase(shown, ahead), "command")));
	}
	*ret = cache;
	return 0;
}

int retrain_view_caches(const json_t *plan, json_t **ret, struct err **err)
{
	json_t *caches = json_object();

	*ret = caches;
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		const json_t *section = json_object_get(plan, flow_phase_names[phase]);
		json_auto_t *job_plan = NULL;
		json_t *cache = NULL;

		if (!js_is(section, "compile", "aot"))
			continue;
		job_plan = plan_of_phase(plan, phase);
		if (look_at(job_plan, &cache, err) < 0)
			return -1;
		js_put(caches, flow_phase_names[phase], cache);
	}
	return 0;
}

/* --- text --- */

static void print_data(const json_t *data)
{
	int64_t least = js_int(data, "min_new", 1);
	AUTO(sb_release) struct sb text = SB_INIT;

	if (!data)
		return;
	sb_addf(&text, "data:    %s: ", js_str(data, "url"));
	if (!js_bool(data, "incremental", true))
		sb_adds(&text, "everything, each time");
	else
		sb_adds(&text, "what the promoted model and its ancestors were not given");
	if (least > 1)
		sb_addf(&text, ", at least %lld objects", (long long)least);
	out_line("%s", text.text);
}

static void print_parent(const json_t *parent)
{
	const char *from = js_str(parent, "from"), *first = js_str(parent, "first");

	if (strcmp(from, "none") == 0)
		out_line("parent:  none; the training starts from scratch");
	else if (strcmp(from, "auto") == 0)
		out_line("parent:  for 'retrain' the promoted model, %s%s; for 'run' "
			 "none",
			 first ? "at first " : "at first none", first ? first : "");
	else if (strcmp(from, "promoted") == 0)
		out_line("parent:  the promoted model, at first %s", first ? first : "none");
	else
		out_line("parent:  %s", from);
}

/* Adds "2 nodes, 1.34 USD/h each, at most 6 h". */
static void add_stage(struct sb *text, const json_t *stage)
{
	int64_t nodes = js_int(stage, "nodes", 1);
	double price = js_real(stage, "price", 0);

	sb_addf(text, "%lld node%s", (long long)nodes, nodes == 1 ? "" : "s");
	if (price > 0)
		sb_addf(text, " at %.2f USD/h", price);
	sb_addf(text, ", an attempt at most %.4g h",
		(double)js_int(stage, "timeout_ms", 0) / 3600000);
	if (js_is(stage, "compile", "aot"))
		sb_adds(text, ", compiled ahead");
}

/* Prints the state of the cache of a stage behind `before`, and the command that would fill it. */
static void print_cache(const char *before, const json_t *cache, size_t changes)
{
	const json_t *view = json_object_get(cache, "cache");
	const char *hint = js_str(view, "hint"), *key = js_str(view, "graph_key");
	const char *verdict = js_str(view, "verdict"); /* NULL: nobody was asked */
	AUTO(auto_free) char *command = plan_text_command(json_object_get(cache, "precompile"));

	if (!view)
		return;
	out_line("%s%s%s%s%s%s%s", before, verdict ? verdict : "", verdict && key ? ", " : "",
		 key ? "key " : "", key ? key : "", verdict || key ? ": " : "",
		 js_str(view, "reason"));
	plan_text_print_changes(json_object_get(view, "changed"), changes);
	if (hint)
		out_line("         %s", hint);
	if (command)
		out_line("         phase 1 of it: %s", command);
}

static void print_planned_cache(const json_t *cache)
{
	print_cache("         cache ", cache, out_is_verbose() ? SIZE_MAX : CHANGES_SHOWN);
}

void retrain_view_print_caches(const json_t *caches)
{
	const char *stage;
	json_t *cache;

	json_object_foreach ((json_t *)(uintptr_t)caches, stage, cache) {
		AUTO(auto_free) char *before = mem_format("%s: ", stage);

		print_cache(before, cache, SIZE_MAX);
	}
}

static void print_evaluate(const json_t *evaluate)
{
	const char *data = js_str(evaluate, "data");
	int64_t repeat = js_int(evaluate, "repeat", 1);
	AUTO(sb_release) struct sb text = SB_INIT;

	if (!evaluate)
		return;
	sb_adds(&text, js_is(evaluate, "baseline", "none") ? "the candidate"
							   : "the candidate and the baseline");
	if (repeat > 1)
		sb_addf(&text, ", %lld times", (long long)repeat);
	if (data)
		sb_addf(&text, ", on %s", data);
	sb_adds(&text, "; ");
	add_stage(&text, evaluate);
	out_line("evaluate: %s", text.text);
}

static void print_gate(const json_t *plan, const json_t *baseline)
{
	json_auto_t *lines = judge_outlook(plan, baseline);
	const json_t *line;
	size_t i;

	json_array_foreach (lines, i, line)
		out_line("%-8s %s", i == 0 ? "gate:" : "", json_string_value(line));
	if (baseline)
		out_line("         by what was measured of the promoted model in its own turn; it "
			 "is "
			 "measured again");
}

static void print_infer(const json_t *infer)
{
	int64_t shards = js_int(infer, "shards", 0);
	AUTO(sb_release) struct sb text = SB_INIT;

	if (!infer)
		return;
	sb_addf(&text, "infer:   %s %s %s", js_str(infer, "input"), text_style_arrow(out_style()),
		js_str(infer, "output"));
	if (shards > 0)
		sb_addf(&text, ", %lld shard%s", (long long)shards, shards == 1 ? "" : "s");
	sb_adds(&text, "; ");
	add_stage(&text, infer);
	out_line("%s", text.text);
}

static void print_promote(const json_t *promote)
{
	const char *when = js_str(promote, "when");

	if (strcmp(when, "gate") == 0)
		when = "by 'retrain', if the gate passes";
	else if (strcmp(when, "manual") == 0)
		when = "by 'promote' alone";
	else
		when = "by 'retrain', whatever the gate says";
	out_line("promote: to %s, %s", js_str(promote, "url"), when);
}

void retrain_view_print(const json_t *plan, const json_t *baseline, const json_t *caches)
{
	const json_t *promote = json_object_get(plan, "promote");

	if (!promote)
		return;
	print_data(json_object_get(plan, "data"));
	print_parent(json_object_get(plan, "parent"));
	print_evaluate(json_object_get(plan, "evaluate"));
	print_planned_cache(json_object_get(caches, "evaluate"));
	print_gate(plan, baseline);
	print_infer(json_object_get(plan, "infer"));
	print_planned_cache(json_object_get(caches, "infer"));
	print_promote(promote);
}

/* --- JSON --- */

/* Returns a section in the units of printed JSON: what ends in _ms becomes seconds. */
static json_t *section_json(const json_t *section)
{
	json_t *ret = section ? json_object() : NULL, *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)section, name, value) {
		size_t len = strlen(name);
		AUTO(auto_free) char *plain = mem_copy_n(name, len > 3 ? len - 3 : len);

		if (strcmp(name, "job") == 0)
			continue;
		if (len > 3 && strcmp(name + len - 3, "_ms") == 0)
			js_put(ret, plain, json_real((double)json_integer_value(value) / 1000));
		else
			js_put(ret, name, json_incref(value));
	}
	return ret;
}

/* Returns the entries of the gate, each with what it allows in words. */
static json_t *gate_json(const json_t *plan, const json_t *baseline)
{
	const json_t *gate = json_object_get(plan, "gate"), *row;
	json_auto_t *lines = judge_outlook(plan, baseline);
	json_t *ret = json_array();
	size_t i;

	json_array_foreach (gate, i, row) {
		json_t *entry = json_copy((json_t *)(uintptr_t)row);

		js_put(entry, "allows", json_incref(json_array_get(lines, i)));
		json_array_append_new(ret, entry);
	}
	return ret;
}

void retrain_view_put(const json_t *plan, const json_t *baseline, const json_t *caches,
		      json_t *result)
{
	static const char *const sections[] = { "data", "parent", "evaluate", "infer", "promote" };

	if (!json_object_get(plan, "promote"))
		return;
	for (size_t i = 0; i < STK_LENGTH(sections); i++) {
		json_t *section = section_json(json_object_get(plan, sections[i]));

		if (section && json_object_get(caches, sections[i]))
			json_object_update(section, json_object_get(caches, sections[i]));
		js_put(result, sections[i], section);
	}
	js_put(result, "gate", gate_json(plan, baseline));
}
