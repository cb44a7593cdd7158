/* The state of a run as text: see status_text.h. */
#include "cmd/view/status_text.h"

#include <string.h>

#include "cmd/screen/out.h"
#include "cmd/view/mode_comparison_view.h"
#include "cmd/view/stage_text.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"

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

/* Returns a time of the status for this reader. */
static const char *time_of(const char *utc, char ret[WHEN_TEXT])
{
	return when_text(utc, out_width() > 0, ret);
}

/* Prints the job of the attempt and its times, with -v. */
static void print_attempt_times(const json_t *attempt)
{
	const char *ended = js_str(attempt, "ended");
	char from[WHEN_TEXT], to[WHEN_TEXT];

	if (!out_is_verbose())
		return;
	out_line("            job %s on %lld node%s", or_dash(js_str(attempt, "job")),
		 (long long)js_int(attempt, "nodes", 1),
		 js_int(attempt, "nodes", 1) == 1 ? "" : "s");
	if (js_str(attempt, "started"))
		out_line("            started %s%s%s", time_of(js_str(attempt, "started"), from),
			 ended ? ", ended " : "", ended ? time_of(ended, to) : "");
}

/* Prints the checkpoint the attempt resumed from, the continuity, and rejected checkpoints. */
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

/* Prints how far the log was read, if the driver was behind. */
static void print_log(const json_t *attempt)
{
	const json_t *log = json_object_get(attempt, "log");
	int64_t read = js_int(log, "read_bytes", 0), size = js_int(log, "size_bytes", 0);
	int64_t skipped = js_int(log, "skipped_bytes", 0);
	AUTO(auto_free) char *of = text_format_bytes((uint64_t)size);
	AUTO(auto_free) char *done = text_format_bytes((uint64_t)read);
	AUTO(auto_free) char *left_out = text_format_bytes((uint64_t)skipped);

	if (read < size && !js_is(attempt, "state", "ended"))
		out_line("            log: %s of %s read", done, of);
	if (skipped > 0)
		out_line("            log: %s skipped, because lines came faster than they could "
			 "be read",
			 left_out);
}

/* Prints the health of the nodes before the attempt. */
static void print_health(const json_t *attempt)
{
	const json_t *health = json_object_get(attempt, "health");

	if (js_str(health, "reason"))
		out_line("            health: %s", js_str(health, "reason"));
}

/* Prints the agent's process that stayed dead, unless the evidence of the attempt's end has it. */
static void print_worker(const json_t *attempt)
{
	const json_t *worker = json_object_get(attempt, "worker");

	if (worker && !js_str(attempt, "evidence"))
		out_line("            node %lld: %s", (long long)js_int(worker, "node", 0),
			 or_dash(js_str(worker, "reason")));
}

/* Aligns "train 1" with "precompile 12". */
#define ATTEMPT_COLUMNS 14

static void print_attempt(const json_t *attempt, const char *label)
{
	const char *class = js_str(attempt, "class"), *state = js_str(attempt, "state");
	const char *stage = js_str(attempt, "stage"); /* that phase 1 compiles for */
	struct sb text = SB_INIT;

	sb_addf(&text, "%s %lld%s%s", js_str(attempt, "phase"),
		(long long)js_int(attempt, "attempt", 0), stage ? " for " : "", stage ? stage : "");
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
	/* The first node to end only matters if the attempt failed. */
	if (class && strcmp(class, "none") != 0 && json_object_get(attempt, "node") &&
	    js_int(attempt, "nodes", 1) > 1)
		sb_addf(&text, ", first on node %lld", (long long)js_int(attempt, "node", 0));
	if (js_str(attempt, "action"))
		sb_addf(&text, " %s %s", text_style_arrow(out_style()), js_str(attempt, "action"));
	out_marked(label, text_style_icon_of_state(state, class), "%s", text.text);
	sb_release(&text);
	print_attempt_times(attempt);
	if (js_str(attempt, "waits"))
		out_line("            %s", js_str(attempt, "waits"));
	print_log(attempt);
	print_health(attempt);
	print_worker(attempt);
	print_resume(attempt);
	print_evidence(js_str(attempt, "evidence"));
	if (js_str(attempt, "hint"))
		out_line("            cure: %s", js_str(attempt, "hint"));
}

static void add_samples(struct sb *text, const json_t *speed)
{
	if (js_real(speed, "samples_per_second", 0) > 0)
		sb_addf(text, ", %.4g samples/s", js_real(speed, "samples_per_second", 0));
}

/* Prints the speed for comparing runs, without the first steps. */
static void print_throughput(const json_t *throughput, const char *unit)
{
	const json_t *step = json_object_get(throughput, "step_seconds");
	AUTO(auto_free) char *speed = text_format_speed(js_real(throughput, "mean", 0), unit);
	AUTO(sb_release) struct sb samples = SB_INIT_MAX(100);
	AUTO(auto_free) char *parts = NULL;

	if (!throughput)
		return;
	if (step)
		parts = mem_format(" (half of them within %.3g s each, 90 %% within %.3g s)",
				   js_real(step, "p50", 0), js_real(step, "p90", 0));
	add_samples(&samples, throughput);
	out_line("throughput: %s%s over %lld %s%s%s", speed, samples.text ? samples.text : "",
		 (long long)js_int(throughput, "n", 0), unit ? unit : "step",
		 js_int(throughput, "n", 0) == 1 ? "" : "s", parts ? parts : "");
}

/* Prints limits at risk, and notifications that could not be delivered. */
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

/* Prints the location of the newest attempt's outputs. */
static void print_outputs(const json_t *status)
{
	const json_t *outputs = json_object_get(status, "outputs");
	AUTO(auto_free) char *size = NULL;

	if (!outputs)
		return;
	if (json_object_get(outputs, "files")) {
		int64_t files = js_int(outputs, "files", 0);

		size = text_format_bytes((uint64_t)js_int(outputs, "size_bytes", 0));
		out_line("outputs:    %s (%lld file%s, %s)", or_dash(js_str(outputs, "url")),
			 (long long)files, files == 1 ? "" : "s", size);
	} else {
		out_line("outputs:    %s", or_dash(js_str(outputs, "url")));
	}
	if (js_str(outputs, "why"))
		out_line("            missing: %s", js_str(outputs, "why"));
}

#define PASSED_SHOWN 3

/* Prints saved checkpoints that were not used. */
static void print_passed(const json_t *status)
{
	const json_t *passed = json_object_get(status, "passed_over");
	size_t count = json_array_size(passed);

	for (size_t i = count > PASSED_SHOWN ? count - PASSED_SHOWN : 0; i < count; i++) {
		const json_t *row = json_array_get(passed, i);

		out_line("not used:   %s: %s", or_dash(js_str(row, "url")),
			 or_dash(js_str(row, "reason")));
		if (i + 1 == count && js_str(row, "hint"))
			out_line("            cure: %s", js_str(row, "hint"));
	}
	if (count > PASSED_SHOWN)
		out_line("            and %zu before", count - PASSED_SHOWN);
}

/* Prints the run's checkpoint, its outputs and unused checkpoints. */
static void print_made(const json_t *status)
{
	const json_t *checkpoint = json_object_get(status, "checkpoint");

	if (checkpoint)
		out_line("checkpoint: step %lld: %s", (long long)js_int(checkpoint, "step", 0),
			 or_dash(js_str(checkpoint, "url")));
	print_outputs(status);
	print_passed(status);
	stage_text_print(status);
}

/* Prints why the run makes no steps, and until when, instead of an outdated speed. */
static void print_halt(const json_t *status)
{
	const json_t *stopping = json_object_get(status, "stopping");
	const json_t *halt = stopping ? stopping : json_object_get(status, "stalled");
	const char *until = js_str(halt, "until"), *reason = js_str(halt, "reason");
	AUTO(auto_free) char *time = NULL;
	char at[WHEN_TEXT];

	if (!halt)
		return;
	time = text_format_duration((int64_t)js_real(halt, "seconds", 0) * 1000);
	if (stopping)
		out_line("stopping:   for %s, waits for %s%s%s%s%s", time,
			 or_dash(js_str(halt, "waits_for")), until ? " until " : "",
			 until ? time_of(until, at) : "", reason ? ": " : "", reason ? reason : "");
	else
		out_line("stalled:    %s for %s%s%s", or_dash(reason), time,
			 until ? ", restart at " : "", until ? time_of(until, at) : "");
}

/* Returns the state of a run in one word, with stopping and stalled. */
static const char *state_of(const json_t *status)
{
	const char *state = js_str(status, "state");

	if (!state || strcmp(state, "running") != 0)
		return or_dash(state);
	return json_object_get(status, "stopping")  ? "stopping"
	       : json_object_get(status, "stalled") ? "stalled"
						    : state;
}

/* Prints "step 120 of 300, 45.1 steps/s" and "loss 0.1234  accuracy 0.98". */
static void print_progress(const json_t *status)
{
	const json_t *progress = json_object_get(status, "progress");
	const char *unit = js_str(progress, "unit");
	json_t *metrics = json_object_get(status, "metrics"), *value;
	struct sb text = SB_INIT;
	const char *name;

	if (json_object_get(progress, "step")) {
		sb_addf(&text, "%s %lld", unit ? unit : "step",
			(long long)js_int(progress, "step", 0));
		if (json_object_get(progress, "of"))
			sb_addf(&text, " of %lld", (long long)js_int(progress, "of", 0));
		if (js_real(progress, "rate", 0) > 0 && !json_object_get(status, "stopping") &&
		    !json_object_get(status, "stalled")) {
			AUTO(auto_free)
			char *speed = text_format_speed(js_real(progress, "rate", 0), unit);

			sb_addf(&text, ", %s", speed);
			add_samples(&text, progress);
		}
		out_line("progress:   %s", text.text);
		sb_clear(&text);
	}
	json_object_foreach (metrics, name, value) {
		if (strcmp(name, unit ? unit : "step") == 0)
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
	print_throughput(json_object_get(status, "throughput"), unit);
	print_risks(status);
}

/* True if the run has no phase 1 by choice. */
static bool is_jit(const json_t *status)
{
	return js_is(status, "mode", "jit");
}

/* Prints the graphs that phase 1 did not cover, and when phase 2 compiled them. */
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

/* Prints "steps 41.2 s (80.1 %), setup 6.1 s (11.9 %)": the largest bins first, none that would
 * show as 0.0 s (0.0 %). */
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
		if (most < 0.05 && most / total < 0.0005)
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

/* Prints since when nothing is known of the run. */
static void print_unobserved(const json_t *status)
{
	const char *since = js_str(status, "unseen_since");
	AUTO(auto_free) char *ago = NULL;
	char when[WHEN_TEXT];
	struct utc at;

	if (!since || !clock_utc_parse(since, &at))
		return;
	ago = text_format_duration(clock_utc_now().ms > at.ms ? clock_utc_now().ms - at.ms : 0);
	out_line("unseen:     no driver since %s (%s ago); the state below is of that time",
		 time_of(since, when), ago);
}

/* Prints when the run began and ended, and who drives it, with -v. */
static void print_times(const json_t *status)
{
	const json_t *driver = json_object_get(status, "driver");
	char at[WHEN_TEXT];

	if (!out_is_verbose())
		return;
	out_line("created:    %s", time_of(js_str(status, "created"), at));
	if (js_str(status, "ended"))
		out_line("ended:      %s", time_of(js_str(status, "ended"), at));
	if (json_is_object(driver))
		out_line("driver:     pid %lld on %s, epoch %lld",
			 (long long)js_int(driver, "pid", 0), or_dash(js_str(driver, "host")),
			 (long long)js_int(driver, "epoch", 0));
}

void status_text_print_status(const json_t *status)
{
	const char *state = js_str(status, "state");
	json_t *attempt;
	size_t i;

	out_line("run:        %s (%s on %s%s)", js_str(status, "run"),
		 or_dash(js_str(status, "name")), or_dash(js_str(status, "engine")),
		 js_bool(status, "debug", false)       ? ", debug run"
		 : js_bool(status, "benchmark", false) ? ", benchmark"
						       : "");
	out_marked("state:      ", text_style_icon_of_state(state, NULL), "%s, phase %s",
		   state_of(status), or_dash(js_str(status, "phase")));
	print_times(status);
	print_halt(status);
	print_unobserved(status);
	print_cache(status);
	print_graphs(status);
	print_progress(status);
	json_array_foreach (json_object_get(status, "attempts"), i, attempt)
		print_attempt(attempt, i == 0 ? "attempts:   " : "            ");
	print_made(status);
	print_ledger(status);
	print_cost(status);
	cmd_print_comparison(json_object_get(status, "modes"));
	print_end(status);
}

/* `needed`: the phase would have had to run, had the run come so far. Phase 1 is that of the
 * training here. */
static void print_phase_time(const json_t *status, const char *phase, bool needed)
{
	AUTO(auto_free) char *time = NULL, *label = NULL;
	json_t *attempt;
	double seconds = 0;
	size_t i, count = 0;

	json_array_foreach (json_object_get(status, "attempts"), i, attempt)
		if (strcmp(js_str(attempt, "phase"), phase) == 0 && !js_str(attempt, "stage")) {
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

void status_text_print_summary(const json_t *status)
{
	const char *state = js_str(status, "state");
	const json_t *cache = json_object_get(status, "cache");
	const char *verdict = js_str(cache, "verdict");

	out_marked("run:        ", text_style_icon_of_state(state, NULL), "%s %s",
		   js_str(status, "run"), or_dash(state));
	print_cache(status);
	print_graphs(status);
	print_progress(status);
	if ((json_object_get(status, "graphs") || cache) && !is_jit(status))
		print_phase_time(status, "precompile", verdict && strcmp(verdict, "cold") == 0);
	print_phase_time(status, "train", true);
	print_made(status);
	cmd_print_comparison(json_object_get(status, "modes"));
	if (state && strcmp(state, "succeeded") != 0) {
		json_t *attempts = json_object_get(status, "attempts");

		if (json_array_size(attempts))
			print_attempt(json_array_get(attempts, json_array_size(attempts) - 1),
				      "attempt:    ");
		print_end(status);
	}
}
