/* The state of a run for people: see status_text.h. */
#include "cmd/status_text.h"

#include <string.h>

#include "cmd/modes_view.h"
#include "cmd/out.h"
#include "jobs/base/sb.h"
#include "jobs/base/text.h"

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

static void print_evidence(const char *evidence)
{
	const char *line = evidence;

	while (line && *line) {
		size_t len = strcspn(line, "\n");

		out_line("            | %.*s", (int)len, line);
		line += len + (line[len] == '\n');
	}
}

/* Where it went on from, and whether it did. */
static void print_resume(const json_t *attempt)
{
	const char *from = js_str(attempt, "resumed_from");
	const char *continuity = js_str(attempt, "continuity");
	json_t *row;
	size_t i;

	if (from)
		out_line("            from %s%s%s", from, continuity ? ", continuity " : "",
			 continuity ? continuity : "");
	json_array_foreach (json_object_get(attempt, "rejected"), i, row)
		out_line("            not from %s: %s", or_dash(js_str(row, "url")),
			 or_dash(js_str(row, "why")));
}

/* How its nodes were before it began. */
static void print_health(const json_t *attempt)
{
	const json_t *health = json_object_get(attempt, "health");

	if (js_str(health, "reason"))
		out_line("            health: %s", js_str(health, "reason"));
}

/* "train 1" and "precompile 12" take as much room. */
#define ATTEMPT_COLUMNS 14

static void print_attempt(const json_t *attempt, const char *label)
{
	const char *class = js_str(attempt, "class"), *state = js_str(attempt, "state");
	struct sb text = SB_INIT;

	sb_addf(&text, "%s %lld", js_str(attempt, "phase"),
		(long long)js_int(attempt, "attempt", 0));
	sb_addf(&text, "%*s%s", text.len < ATTEMPT_COLUMNS ? (int)(ATTEMPT_COLUMNS - text.len) : 2,
		"", or_dash(state));
	if (json_object_get(attempt, "seconds")) {
		AUTO(auto_free)
		char *time = text_format_duration((int64_t)(js_real(attempt, "seconds", 0) * 1000));

		sb_addf(&text, " after %s", time);
	}
	if (json_object_get(attempt, "exit"))
		sb_addf(&text, ", exit %lld", (long long)js_int(attempt, "exit", 0));
	if (class && strcmp(class, "none") != 0)
		sb_addf(&text, ", %s", class);
	/* Of nodes that all ended well nobody asks which was the first. */
	if (class && strcmp(class, "none") != 0 && json_object_get(attempt, "node") &&
	    js_int(attempt, "nodes", 1) > 1)
		sb_addf(&text, ", first on node %lld", (long long)js_int(attempt, "node", 0));
	if (js_str(attempt, "action"))
		sb_addf(&text, " → %s", js_str(attempt, "action"));
	out_marked(label, look_of_state(state, class), "%s", text.text);
	sb_release(&text);
	if (js_str(attempt, "waits"))
		out_line("            %s", js_str(attempt, "waits"));
	print_health(attempt);
	print_resume(attempt);
	print_evidence(js_str(attempt, "evidence"));
	if (js_str(attempt, "hint"))
		out_line("            cure: %s", js_str(attempt, "hint"));
}

/* What two runs can be compared by: the first steps are left out. */
static void print_throughput(const json_t *throughput)
{
	if (throughput)
		out_line("throughput: %.4g steps/s over %lld steps (half of them at %.4g or more, "
			 "95 %% at %.4g)",
			 js_real(throughput, "mean", 0), (long long)js_int(throughput, "n", 0),
			 js_real(throughput, "p50", 0), js_real(throughput, "p95", 0));
}

/* What is ahead, and who was to be told and could not be. */
static void print_risks(const json_t *status)
{
	json_t *row;
	size_t i;

	json_array_foreach (json_object_get(status, "at_risk"), i, row)
		out_line("at risk:    limits.%s: %s", or_dash(js_str(row, "limit")),
			 or_dash(js_str(row, "reason")));
	json_array_foreach (json_object_get(status, "untold"), i, row)
		out_line("not told:   notify[%lld]: %s", (long long)js_int(row, "rule", 0),
			 or_dash(js_str(row, "reason")));
}

/* "step 120 of 300, 45.1/s" and "loss 0.1234  accuracy 0.98". */
static void print_progress(const json_t *status)
{
	const json_t *progress = json_object_get(status, "progress");
	json_t *metrics = json_object_get(status, "metrics"), *value;
	struct sb text = SB_INIT;
	const char *name;

	if (json_object_get(progress, "step")) {
		sb_addf(&text, "step %lld", (long long)js_int(progress, "step", 0));
		if (json_object_get(progress, "of"))
			sb_addf(&text, " of %lld", (long long)js_int(progress, "of", 0));
		if (json_object_get(progress, "rate"))
			sb_addf(&text, ", %.1f/s", js_real(progress, "rate", 0));
		out_line("progress:   %s", text.text);
		sb_clear(&text);
	}
	json_object_foreach (metrics, name, value) {
		if (strcmp(name, "step") == 0)
			continue;
		if (json_is_string(value))
			sb_addf(&text, "%s%s %s", text.len ? "  " : "", name,
				json_string_value(value));
		else
			sb_addf(&text, "%s%s %.6g", text.len ? "  " : "", name,
				json_number_value(value));
	}
	if (text.len)
		out_line("metrics:    %s", text.text);
	sb_release(&text);
	print_throughput(json_object_get(status, "throughput"));
	print_risks(status);
}

/* There was no phase 1, and none was wanted. */
static bool is_jit(const json_t *status)
{
	return js_is(status, "mode", "jit");
}

/* Which graphs phase 1 did not reach, and where they came. */
#define LATE_SHOWN 5
static void print_jit(const json_t *status)
{
	const json_t *jit = json_object_get(status, "jit"), *late = json_object_get(jit, "late");
	const char *what = is_jit(status) ? "compiled" : "not covered in phase 1";
	int64_t graphs = js_int(jit, "graphs", 0);
	struct sb text = SB_INIT;

	sb_addf(&text, "phase 2:    %lld graph%s compiled", (long long)graphs,
		graphs == 1 ? "" : "s");
	if (graphs > 0 && json_object_get(jit, "seconds")) {
		AUTO(auto_free)
		char *time = text_format_duration((int64_t)(js_real(jit, "seconds", 0) * 1000));

		sb_addf(&text, " in %s", time);
	}
	if (graphs > 0 && json_object_get(jit, "cost"))
		sb_addf(&text, ", %.2f USD", js_real(jit, "cost", 0));
	out_line("%s", text.text);
	sb_release(&text);
	for (size_t i = 0; i < json_array_size(late) && i < LATE_SHOWN; i++) {
		const json_t *row = json_array_get(late, i);
		const char *graph = or_dash(js_str(row, "graph"));

		if (json_object_get(row, "after_step"))
			out_line("      %s: %s, after step %lld", what, graph,
				 (long long)js_int(row, "after_step", 0));
		else
			out_line("      %s: %s, before the first step", what, graph);
	}
	if (json_array_size(late) > LATE_SHOWN)
		out_line("      and %zu more", json_array_size(late) - LATE_SHOWN);
	if (js_str(jit, "exceeded"))
		out_line("      compile.jit_budget is exceeded: %s", js_str(jit, "exceeded"));
	if (js_str(jit, "hint"))
		out_line("            cure: %s", js_str(jit, "hint"));
}

static void print_graphs(const json_t *status)
{
	const json_t *graphs = json_object_get(status, "graphs");
	int64_t compiled = js_int(graphs, "compiled", 0), failed = js_int(graphs, "failed", 0);

	if (graphs && failed > 0)
		out_line("phase 1:    %lld graph%s compiled, %lld found in the cache, %lld failed",
			 (long long)compiled, compiled == 1 ? "" : "s",
			 (long long)js_int(graphs, "hits", 0), (long long)failed);
	else if (graphs)
		out_line("phase 1:    %lld graph%s compiled, %lld found in the cache",
			 (long long)compiled, compiled == 1 ? "" : "s",
			 (long long)js_int(graphs, "hits", 0));
	if (json_object_get(status, "jit"))
		print_jit(status);
}

static void print_cache(const json_t *status)
{
	const json_t *cache = json_object_get(status, "cache");
	const char *reason = js_str(cache, "reason");

	if (!cache)
		return;
	out_line("cache:      %s%s%s", or_dash(js_str(cache, "verdict")), reason ? ": " : "",
		 reason ? reason : "");
}

/* "steps 41.2 s (80.1 %), setup 6.1 s (11.9 %)": the largest bins first. */
static void print_ledger(const json_t *status)
{
	json_auto_t *rest = json_copy(json_object_get(status, "ledger"));
	double total = js_real(rest, "total", 0);
	struct sb text = SB_INIT;

	json_object_del(rest, "total");
	while (json_object_size(rest) > 0) {
		const char *name, *largest = NULL;
		double most = -1;
		json_t *value;

		json_object_foreach (rest, name, value)
			if (json_number_value(value) > most) {
				largest = name;
				most = json_number_value(value);
			}
		if (most <= 0)
			break;
		sb_addf(&text, "%s%s %.1f s (%.1f %%)", text.len ? ", " : "", largest, most,
			most / total * 100);
		json_object_del(rest, largest);
	}
	if (text.len)
		out_line("time:       %.1f s: %s", total, text.text);
	sb_release(&text);
}

static void print_cost(const json_t *status)
{
	const json_t *cost = json_object_get(status, "cost");
	struct sb text = SB_INIT;

	if (!cost)
		return;
	sb_addf(&text, "%.2f USD", js_real(cost, "accrued", 0));
	if (!json_object_get(status, "exit_code") && json_object_get(cost, "estimated"))
		sb_addf(&text, " so far, %.2f at the end", js_real(cost, "estimated", 0));
	if (json_object_get(cost, "kept"))
		sb_addf(&text, "; %.2f of it for machines that were kept for the next attempt",
			js_real(cost, "kept", 0));
	if (json_object_get(cost, "billable"))
		sb_addf(&text, "; billed: %.2f USD", js_real(cost, "billable", 0));
	out_line("cost:       %s", text.text);
	sb_release(&text);
}

static void print_end(const json_t *status)
{
	const char *reason = js_str(status, "reason"), *hint = js_str(status, "hint");

	if (js_str(status, "waiting_for"))
		out_line("waits for:  %s", js_str(status, "waiting_for"));
	if (reason)
		out_line("reason:     %s", reason);
	if (hint)
		out_line("cure:       %s", hint);
	if (json_object_get(status, "exit_code"))
		out_line("exit code:  %lld", (long long)js_int(status, "exit_code", 0));
}

void print_status(const json_t *status)
{
	const char *state = js_str(status, "state");
	json_t *attempt;
	size_t i;

	out_line("run:        %s (%s on %s)", js_str(status, "run"),
		 or_dash(js_str(status, "name")), or_dash(js_str(status, "engine")));
	out_marked("state:      ", look_of_state(state, NULL), "%s, phase %s", or_dash(state),
		   or_dash(js_str(status, "phase")));
	print_cache(status);
	print_graphs(status);
	print_progress(status);
	json_array_foreach (json_object_get(status, "attempts"), i, attempt)
		print_attempt(attempt, i == 0 ? "attempts:   " : "            ");
	print_ledger(status);
	print_cost(status);
	print_modes(json_object_get(status, "modes"));
	print_end(status);
}

/* `needed`: it would have had to run, had the run come so far. */
static void print_phase_time(const json_t *status, const char *phase, bool needed)
{
	AUTO(auto_free) char *time = NULL, *label = NULL;
	json_t *attempt;
	double seconds = 0;
	size_t i, count = 0;

	json_array_foreach (json_object_get(status, "attempts"), i, attempt)
		if (strcmp(js_str(attempt, "phase"), phase) == 0) {
			seconds += js_real(attempt, "seconds", 0);
			count++;
		}
	label = mem_format("%s:", phase);
	time = text_format_duration((int64_t)(seconds * 1000));
	if (count == 1)
		out_line("%-11s %s", label, time);
	else if (count > 1)
		out_line("%-11s %s in %zu attempts", label, time, count);
	else
		out_line("%-11s %s", label, needed ? "not reached" : "not needed");
}

void print_summary(const json_t *status)
{
	const char *state = js_str(status, "state");
	const json_t *cache = json_object_get(status, "cache");
	const char *verdict = js_str(cache, "verdict");

	out_marked("run:        ", look_of_state(state, NULL), "%s %s", js_str(status, "run"),
		   or_dash(state));
	print_cache(status);
	print_graphs(status);
	print_progress(status);
	if ((json_object_get(status, "graphs") || cache) && !is_jit(status))
		print_phase_time(status, "precompile", verdict && strcmp(verdict, "cold") == 0);
	print_phase_time(status, "train", true);
	print_modes(json_object_get(status, "modes"));
	if (state && strcmp(state, "succeeded") != 0) {
		json_t *attempts = json_object_get(status, "attempts");

		if (json_array_size(attempts))
			print_attempt(json_array_get(attempts, json_array_size(attempts) - 1),
				      "attempt:    ");
		print_end(status);
	}
}
