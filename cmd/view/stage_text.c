/* What follows a training as text: see stage_text.h. */
#include "cmd/view/stage_text.h"

#include "cmd/screen/out.h"
#include "jobs/base/sb.h"
#include "jobs/flow/event.h"

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

/* Prints "cache cold: no precompile has been verified …; 3 compiled ahead, 0 found" for compile:
 * aot. */
static void print_cache(const json_t *tasks)
{
	const json_t *cache = json_object_get(tasks, "cache");
	const json_t *graphs = json_object_get(tasks, "graphs");
	const char *reason = js_str(cache, "reason");
	AUTO(auto_free) char *counts = NULL;

	if (!cache)
		return;
	if (graphs)
		counts = mem_format("; %lld compiled ahead, %lld found",
				    (long long)js_int(graphs, "compiled", 0),
				    (long long)js_int(graphs, "hits", 0));
	out_line("            cache %s%s%s%s", or_dash(js_str(cache, "verdict")),
		 reason ? ": " : "", reason ? reason : "", counts ? counts : "");
}

static void print_tasks(const json_t *status, enum phase phase)
{
	const char *name = flow_phase_names[phase];
	const json_t *tasks = json_object_get(status, name), *jit = json_object_get(tasks, "jit");
	AUTO(auto_free) char *label = mem_format("%s:", name);
	AUTO(auto_free) char *compiled = NULL;
	int64_t graphs = js_int(jit, "graphs", 0);

	if (!tasks)
		return;
	if (jit)
		compiled = mem_format(", %lld graph%s compiled", (long long)graphs,
				      graphs == 1 ? "" : "s");
	out_line("%-11s %lld of %lld tasks done%s", label, (long long)js_int(tasks, "done", 0),
		 (long long)js_int(tasks, "tasks", 0), compiled ? compiled : "");
	print_cache(tasks);
}

/* Prints "candidate-1: accuracy 0.96, loss 0.12 (metrics.json)". */
static void print_measured(const json_t *row)
{
	AUTO(sb_release) struct sb values = SB_INIT;
	const char *from = js_str(row, "metrics_from"), *name;
	json_t *value;

	json_object_foreach (json_object_get(row, "metrics"), name, value) {
		AUTO(auto_free) char *number = js_line_exact(value);

		sb_addf(&values, "%s%s %s", values.len > 0 ? ", " : "", name,
			json_is_string(value) ? json_string_value(value) : number);
	}
	out_line("            %s: %s%s%s%s", or_dash(js_str(row, "task")),
		 values.len > 0 ? values.text : "no number", from ? " (" : "", from ? from : "",
		 from ? ")" : "");
}

/* The reason of a no tells the entries that say no; what the others found is shown below. */
static void print_gate(const json_t *gate)
{
	bool passed = js_bool(gate, "passed", false);
	const json_t *row;
	size_t i;

	if (gate)
		out_marked("gate:       ", passed ? MARK_GOOD : MARK_BAD, "%s: %s",
			   passed ? "passed" : "no", or_dash(js_str(gate, "reason")));
	json_array_foreach (json_object_get(gate, "entries"), i, row)
		if (!passed && js_bool(row, "passed", false))
			out_marked("            ", MARK_GOOD, "%s", or_dash(js_str(row, "reason")));
}

void stage_text_print(const json_t *status)
{
	const json_t *candidate = json_object_get(status, "candidate"), *row;
	const json_t *promoted = json_object_get(status, "promoted");
	size_t i;

	if (candidate)
		out_line("candidate:  %s%s%s%s", or_dash(js_str(candidate, "url")),
			 js_str(candidate, "reason") ? " (" : "",
			 js_str(candidate, "reason") ? js_str(candidate, "reason") : "",
			 js_str(candidate, "reason") ? ")" : "");
	print_tasks(status, PHASE_EVALUATE);
	json_array_foreach (js_path(status, "evaluate.values"), i, row)
		print_measured(row);
	print_gate(json_object_get(status, "gate"));
	print_tasks(status, PHASE_INFER);
	if (promoted) {
		out_line("promoted:   generation %lld: %s",
			 (long long)js_int(promoted, "generation", 0),
			 or_dash(js_str(promoted, "url")));
		out_line("            digest %s", or_dash(js_str(promoted, "digest")));
	}
}
