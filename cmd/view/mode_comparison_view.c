/* Comparison of the two modes, AOT and JIT: search and output. See mode_comparison_view.h. */
#include "cmd/view/mode_comparison_view.h"

#include <math.h>
#include <string.h>

#include "cmd/screen/out.h"
#include "jobs/base/sb.h"
#include "jobs/report/mode_comparison.h"

struct mode_comparison_view_search {
	const char *name, *graph_key;
	struct mode_run *run; /* the run being examined */
	struct mode_run *found[MODE_COUNT];
};

static int add_first(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct mode_comparison_view_search *search = arg;

	(void)row;
	(void)err;
	if (ev)
		mode_run_add(search->run, ev);
	/* The rest is read only if the run may be comparable. */
	return ev && ev->kind == EV_RUN_CREATED &&
			       !mode_run_may_be(search->run, search->name, search->graph_key)
		       ? 1
		       : 0;
}

static void keep_if_measured(struct mode_comparison_view_search *search)
{
	enum mode mode;
	const struct mode_run *other;

	if (!mode_run_measures(search->run, &mode) || search->found[mode])
		return;
	other = search->found[mode == MODE_JIT ? MODE_AOT : MODE_JIT];
	if (other && !(mode == MODE_JIT ? mode_runs_match(search->run, other)
					: mode_runs_match(other, search->run)))
		return;
	search->found[mode] = TAKE(search->run);
}

static void search_run(struct journal *journal, const char *run,
		       struct mode_comparison_view_search *search)
{
	AUTO(err_freep) struct err *unreadable = NULL;

	search->run = mode_run_new(run);
	if (journal_read(journal, run, 1, add_first, search, &unreadable) == 0)
		keep_if_measured(search);
	mode_run_freep(&search->run);
}

json_t *mode_comparison_find(struct journal *journal, const char *name, const char *graph_key)
{
	struct mode_comparison_view_search search = { .name = name, .graph_key = graph_key };
	AUTO(err_freep) struct err *unreadable = NULL;
	json_auto_t *runs = json_array();
	json_t *comparison = NULL;
	size_t count, searched = 0;

	if (!name || !graph_key || journal_runs(journal, runs, &unreadable) < 0)
		return NULL;
	for (count = json_array_size(runs); count > 0 && searched < MODE_COMPARISON_RUNS_MAX;
	     searched++) {
		if (search.found[MODE_JIT] && search.found[MODE_AOT])
			break;
		search_run(journal, json_string_value(json_array_get(runs, --count)), &search);
	}
	if (search.found[MODE_JIT] || search.found[MODE_AOT])
		comparison = mode_comparison_json(search.found[MODE_JIT], search.found[MODE_AOT]);
	mode_run_freep(&search.found[MODE_JIT]);
	mode_run_freep(&search.found[MODE_AOT]);
	return comparison;
}

/* ---- output for people ------------------------------------------------------------ */

static double node_seconds(const json_t *comparison, const char *path)
{
	return js_real(js_path(comparison, path), "node_seconds", 0);
}

/* Prints "      until the end, step 200: 41.2 against 38.9, ratio 1.06". `point` is a member of
 * both and of the ratio. */
static void print_point(const json_t *comparison, const char *point)
{
	const json_t *ratio = json_object_get(json_object_get(comparison, "ratio"), point);
	const json_t *jit = json_object_get(json_object_get(comparison, "jit"), point);
	const json_t *aot = json_object_get(json_object_get(comparison, "aot"), point);
	bool end = strcmp(point, "end") == 0;
	struct sb text = SB_INIT;

	if (!ratio)
		return;
	sb_adds(&text, end ? "the end" : "");
	if (json_object_get(jit, "step"))
		sb_addf(&text, "%sstep %lld", end ? ", " : "", (long long)js_int(jit, "step", 0));
	sb_adds(&text, end ? "" : ", and for later compiles");
	out_line("      until %s: %.1f against %.1f, ratio %.2f", text.text,
		 js_real(jit, "node_seconds", 0), js_real(aot, "node_seconds", 0),
		 json_number_value(ratio));
	if (json_object_get(jit, "cost") && json_object_get(aot, "cost"))
		out_line("        %.2f USD against %.2f USD", js_real(jit, "cost", 0),
			 js_real(aot, "cost", 0));
	sb_release(&text);
}

/* Prints the result plainly, even if it is unfavourable. */
static void print_judgement(const json_t *comparison)
{
	AUTO(auto_free) char *of_jit = mem_format("jit.%s", js_str(comparison, "judged_by"));
	AUTO(auto_free) char *of_aot = mem_format("aot.%s", js_str(comparison, "judged_by"));
	double jit = node_seconds(comparison, of_jit), aot = node_seconds(comparison, of_aot);
	const json_t *pays = json_object_get(comparison, "pays");

	if (!pays)
		out_line("      precompiling made no difference (less than %.0f %%)",
			 MODE_COMPARISON_TOLERANCE * 100);
	else if (json_is_true(pays))
		out_line("      precompiling saved %.1f node-seconds, %.0f %%", jit - aot,
			 (1 - aot / jit) * 100);
	else
		out_line("      precompiling did not pay: %.1f node-seconds more, %.0f %% (phase 1 "
			 "alone took %.1f)",
			 aot - jit, (aot / jit - 1) * 100,
			 node_seconds(comparison, "aot.precompile"));
}

/* A start called warm that was not would understate the savings of precompiling. */
static void print_late(const json_t *aot)
{
	int64_t late = js_int(aot, "late_graphs", 0);

	if (late > 0)
		out_line("      run %s was not a warm start: the training compiled %lld graph%s "
			 "that phase 1 missed; raise compile.max_steps (or the script's limit in "
			 "compile.overrides) and measure again with an empty compile.cache_url",
			 js_str(aot, "run"), (long long)late, late == 1 ? "" : "s");
}

static const char *aot_name(const json_t *aot)
{
	return js_int(aot, "late_graphs", 0) > 0 ? "precompile and a start with late graphs"
						 : "precompile and warm start";
}

void cmd_print_comparison(const json_t *comparison)
{
	const json_t *ratio = json_object_get(comparison, "ratio");
	const json_t *aot = json_object_get(comparison, "aot");

	if (json_object_size(ratio) == 0)
		return;
	out_line("modes:      cold JIT (run %s) against %s (run %s), one run of each, in "
		 "node-seconds",
		 js_str(json_object_get(comparison, "jit"), "run"), aot_name(aot),
		 js_str(aot, "run"));
	print_point(comparison, "start");
	print_point(comparison, "end");
	print_judgement(comparison);
	print_late(aot);
}

void cmd_print_comparison_or_advice(const json_t *comparison)
{
	const json_t *jit = json_object_get(comparison, "jit"),
		     *aot = json_object_get(comparison, "aot");

	cmd_print_comparison(comparison);
	if (aot && !jit) {
		out_line(
			"modes:      %s took %.1f node-seconds (run %s); to compare, run once with "
			"--set compile.mode=jit and an empty compile.cache_url",
			aot_name(aot), node_seconds(comparison, "aot.end"), js_str(aot, "run"));
		print_late(aot);
	} else if (jit && !aot)
		out_line(
			"modes:      a cold JIT start took %.1f node-seconds (run %s); to compare, "
			"run once with --set compile.mode=aot and an empty compile.cache_url",
			node_seconds(comparison, "jit.end"), js_str(jit, "run"));
}
