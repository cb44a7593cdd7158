/* Sections of the page about one run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/report/measure/usage_rules.h"
#include "jobs/report/page/page_internal.h"

static const char *const pair_heads[] = { "what", "value" };

/* ---- outcome ---- */

static void add_seconds(struct sb *out, const char *name, const json_t *object, const char *key)
{
	AUTO(auto_free) char *time = page_time(js_real(object, key, NAN));

	page_pair(out, name, time);
}

static void add_money(struct sb *out, const char *name, const json_t *cost, const char *key)
{
	AUTO(auto_free) char *text = NULL;

	if (!json_object_get(cost, key))
		return;
	text = mem_format("%.2f USD", js_real(cost, key, 0));
	page_pair(out, name, text);
}

static void add_steps(struct sb *out, const json_t *run)
{
	const json_t *steps = json_object_get(run, "steps");
	const json_t *progress = json_object_get(json_object_get(run, "status"), "progress");
	AUTO(auto_free) char *mean = page_step_time(js_real(steps, "mean", NAN));
	AUTO(auto_free) char *p50 = page_step_time(js_real(steps, "p50", NAN));
	AUTO(auto_free) char *p95 = page_step_time(js_real(steps, "p95", NAN));
	AUTO(auto_free) char *text = NULL;

	page_pair_value(out, "newest step", json_object_get(progress, "step"));
	page_pair_value(out, "steps to make", json_object_get(progress, "of"));
	if (!(js_real(steps, "steps", 0) > 0))
		return;
	text = mem_format("mean %s, median %s, 95 %% within %s; over %.0f steps", mean, p50, p95,
			  js_real(steps, "steps", 0));
	page_pair(out, "time of a step", text);
}

/* Appends lines of a log, or an engine's words. */
static void add_evidence(struct sb *out, const char *evidence)
{
	if (!evidence)
		return;
	sb_adds(out, "<pre tabindex=\"0\" aria-label=\"evidence\">");
	html_lines(out, evidence);
	sb_adds(out, "</pre>\n");
}

void page_outcome(struct sb *out, const json_t *run)
{
	const json_t *status = json_object_get(run, "status"), *note;
	const json_t *cost = json_object_get(status, "cost");
	json_t *metrics = json_object_get(status, "metrics"), *value;
	const char *name;
	size_t i;

	page_table_begin(out, "How the run went", pair_heads, STK_LENGTH(pair_heads));
	page_pair(out, "state", js_str(status, "state"));
	page_pair(out, "waits for", js_str(status, "waiting_for"));
	page_pair(out, "reason", js_str(status, "reason"));
	page_pair(out, "cure", js_str(status, "hint"));
	page_pair_value(out, "exit code", json_object_get(status, "exit_code"));
	page_pair(out, "begun", js_str(status, "created"));
	page_pair(out, "ended", js_str(status, "ended"));
	add_seconds(out, "wall time", json_object_get(status, "ledger"), "total");
	add_money(out, "cost so far", cost, "accrued");
	add_money(out, "cost by billed time", cost, "billable");
	add_money(out, "cost at the end", cost, "estimated");
	add_steps(out, run);
	json_object_foreach (metrics, name, value)
		if (strcmp(name, "step") != 0) {
			AUTO(auto_free) char *text = mem_format("newest %s", name);

			page_pair_value(out, text, value);
		}
	page_pair_value(out, "newest checkpoint",
			json_object_get(json_object_get(status, "checkpoint"), "url"));
	page_pair(out, "outputs", js_str(json_object_get(status, "outputs"), "url"));
	page_table_end(out);
	add_evidence(out, js_str(status, "evidence"));
	json_array_foreach (json_object_get(run, "notes"), i, note) {
		sb_adds(out, "<p class=\"note\">");
		html_text(out, json_string_value(note));
		sb_adds(out, "</p>\n");
	}
}

/* ---- settings of a run ---- */

/* Appends the settings below a path of the spec, one a row. */
static void add_settings(struct sb *out, const char *path, const json_t *value)
{
	json_t *member;
	const char *key;

	if (!json_is_object(value)) {
		if (json_is_array(value) && json_array_size(value) == 0)
			return;
		page_pair_value(out, path, value);
		return;
	}
	json_object_foreach ((json_t *)value, key, member) {
		AUTO(auto_free)
		char *below = *path ? mem_format("%s.%s", path, key) : mem_copy(key);

		add_settings(out, below, member);
	}
}

void page_asked(struct sb *out, const json_t *run)
{
	static const char *const first[] = { "engine", "command",  "hyperparameters",
					     "env",    "image",    "resources",
					     "data",   "evaluate", "compile" };
	const json_t *spec = js_path(json_object_get(run, "plan"), "spec");
	json_auto_t *rest = json_copy((json_t *)spec);

	page_table_begin(out, "Settings of the spec", pair_heads, STK_LENGTH(pair_heads));
	for (size_t i = 0; i < STK_LENGTH(first); i++)
		if (json_object_get(spec, first[i])) {
			add_settings(out, first[i], json_object_get(spec, first[i]));
			json_object_del(rest, first[i]);
		}
	page_table_end(out);
	json_object_del(rest, "version");
	sb_adds(out, "<details><summary>All other settings, with defaults</summary>\n");
	page_table_begin(out, "Other settings of the spec", pair_heads, STK_LENGTH(pair_heads));
	add_settings(out, "", rest);
	page_table_end(out);
	sb_adds(out, "</details>\n");
}

/* ---- attempts ---- */

static void add_attempt(struct sb *out, const json_t *attempt)
{
	AUTO(auto_free)
	char *name = mem_format("%s %lld", js_str(attempt, "phase"),
				(long long)js_int(attempt, "attempt", 0));
	AUTO(auto_free) char *time = page_time(js_real(attempt, "seconds", NAN));
	const char *action = js_str(attempt, "action"), *cure = js_str(attempt, "hint");
	const char *from = js_str(attempt, "resumed_from"), *waits = js_str(attempt, "waits");

	page_row_begin(out, name);
	page_cell(out, js_str(attempt, "state"));
	page_cell(out, js_str(attempt, "started"));
	page_number(out, "%s", time);
	if (json_object_get(attempt, "exit"))
		page_number(out, "%lld", (long long)js_int(attempt, "exit", 0));
	else
		page_no_number(out);
	page_cell(out, js_str(attempt, "class"));
	page_cell(out, action);
	page_cell(out, from ? from : "the start");
	sb_adds(out, "<td>");
	html_text(out, waits);
	add_evidence(out, js_str(attempt, "evidence"));
	if (cure) {
		sb_adds(out, "<p>cure: ");
		html_text(out, cure);
		sb_adds(out, "</p>");
	}
	sb_adds(out, "</td>");
	page_row_end(out);
}

#define ATTEMPTS_FIRST 20 /* attempts shown from the begin, and */
#define ATTEMPTS_LAST  40 /* from the end */

void page_attempts(struct sb *out, const json_t *run)
{
	static const char *const heads[] = { "attempt", "state", "started", "time",    "exit",
					     "class",   "then",  "from",    "evidence" };
	const json_t *attempts = js_path(json_object_get(run, "status"), "attempts"), *attempt;
	size_t count = json_array_size(attempts), i;

	if (count == 0) {
		sb_adds(out, "<p>Nothing has been submitted yet.</p>\n");
		return;
	}
	page_table_begin(out, "Attempts, and what ended them", heads, STK_LENGTH(heads));
	json_array_foreach (attempts, i, attempt)
		if (i < ATTEMPTS_FIRST || i + ATTEMPTS_LAST >= count)
			add_attempt(out, attempt);
	page_table_end(out);
	if (count > ATTEMPTS_FIRST + ATTEMPTS_LAST)
		sb_addf(out, "<p>%zu attempts in the middle are left out.</p>\n",
			count - ATTEMPTS_FIRST - ATTEMPTS_LAST);
}

/* ---- graphs that were compiled late ---- */

#define LATE_SHOWN 200

void page_late(struct sb *out, const json_t *run)
{
	static const char *const heads[] = { "graph", "compiled", "time", "USD" };
	const json_t *status = json_object_get(run, "status"), *late;
	const json_t *jit = json_object_get(status, "jit");
	double seconds = js_real(jit, "seconds", 0), usd = js_real(jit, "cost", NAN);
	AUTO(auto_free) char *all = NULL;
	size_t i;

	if (js_int(jit, "graphs", 0) == 0) {
		sb_adds(out, "<p>No graph was compiled while the training ran.</p>\n");
		return;
	}
	page_figures_begin(out, "Graphs that were compiled while the training ran", heads,
			   STK_LENGTH(heads), 2);
	json_array_foreach (json_object_get(jit, "late"), i, late) {
		if (i == LATE_SHOWN)
			break;
		double own = js_real(late, "seconds", NAN);
		AUTO(auto_free) char *time = page_time(own);
		AUTO(auto_free)
		char *after = json_object_get(late, "after_step")
				      ? mem_format("after step %lld",
						   (long long)js_int(late, "after_step", 0))
				      : mem_copy("before the first step");

		page_row_begin(out, js_str(late, "graph"));
		page_cell(out, after);
		page_number(out, "%s", time);
		if (seconds > 0 && isfinite(usd) && isfinite(own))
			page_number(out, "%.2f", usd * own / seconds);
		else
			page_no_number(out);
		page_row_end(out);
	}
	page_table_end(out);
	all = page_time(seconds);
	sb_addf(out, "<p>%lld graphs in all, %s of compilation",
		(long long)js_int(jit, "graphs", 0), all);
	if (isfinite(usd))
		sb_addf(out, ", %.2f USD", usd);
	sb_adds(out, ".</p>\n");
	if (js_str(jit, "reason")) {
		sb_adds(out, "<p>");
		html_text(out, js_str(jit, "reason"));
		sb_adds(out, "</p>\n");
	}
}

/* ---- nodes ---- */

static void add_node(struct sb *out, const char *attempt, const json_t *node)
{
	json_t *figures = json_object_get(node, "figures"), *figure;
	const json_t *check;
	const char *name;
	size_t i;

	page_row_begin(out, attempt);
	page_number(out, "%lld", (long long)js_int(node, "node", 0));
	page_cell(out, js_str(node, "host"));
	sb_adds(out, "<td>");
	json_array_foreach (json_object_get(node, "checks"), i, check) {
		sb_adds(out, i ? "<br>" : "");
		html_textf(out, "%s: %s", js_str(check, "verdict"), js_str(check, "words"));
	}
	sb_adds(out, "</td><td>");
	i = 0;
	json_object_foreach (figures, name, figure) {
		sb_adds(out, i++ ? "<br>" : "");
		html_textf(out, "%s: %.4g GiB/s", name, js_real(figure, "busbw", NAN));
	}
	sb_adds(out, "</td>");
	page_row_end(out);
}

void page_nodes(struct sb *out, const json_t *run)
{
	static const char *const heads[] = { "attempt", "node", "host", "checks",
					     "bus bandwidth of collectives" };
	const json_t *attempts = js_path(json_object_get(run, "status"), "attempts");
	const json_t *attempt, *node;
	bool any = false;
	size_t i, k;

	json_array_foreach (attempts, i, attempt)
		any |= json_object_get(attempt, "health") != NULL;
	if (!any) {
		sb_adds(out, "<p>The nodes had no check-up.</p>\n");
		return;
	}
	page_table_begin(out, "Check-ups of the nodes", heads, STK_LENGTH(heads));
	json_array_foreach (attempts, i, attempt) {
		const json_t *health = json_object_get(attempt, "health");
		AUTO(auto_free)
		char *name = mem_format("%s %lld", js_str(attempt, "phase"),
					(long long)js_int(attempt, "attempt", 0));

		json_array_foreach (json_object_get(health, "nodes"), k, node)
			add_node(out, name, node);
		if (health && json_array_size(json_object_get(health, "nodes")) == 0) {
			page_row_begin(out, name);
			sb_adds(out, "<td></td><td></td><td>");
			html_text(out, js_str(health, "reason"));
			sb_adds(out, "</td><td></td>");
			page_row_end(out);
		}
	}
	page_table_end(out);
}

/* ---- usage of the nodes ---- */

static void add_rules(struct sb *out)
{
	sb_adds(out, "<details><summary>What was looked for</summary>\n<ul>\n");
	for (size_t i = 0; i < USAGE_RULES; i++) {
		sb_adds(out, "<li>");
		html_textf(out, "%s: %s", usage_rules_table[i].name, usage_rules_table[i].looks);
		sb_adds(out, "</li>\n");
	}
	sb_adds(out, "</ul></details>\n");
}

void page_usage(struct sb *out, const json_t *run)
{
	static const char *const heads[] = {
		"found", "node", "figure", "threshold", "share of the time", "what it means"
	};
	const json_t *usage = json_object_get(run, "usage"), *finding;
	json_t *findings = json_object_get(usage, "findings");
	AUTO(auto_free) char *time = page_time(js_real(usage, "seconds", NAN));
	size_t i;

	if (!findings) {
		sb_addf(out, "<p>%s</p>\n",
			usage ? "The training was too short to be judged."
			      : "What the nodes did is not known: no agent has told it.");
		return;
	}
	if (json_array_size(findings) == 0)
		sb_addf(out,
			"<p>Nothing was found that held the training up, in %s of the nodes "
			"that were judged.</p>\n",
			time);
	else
		page_table_begin(out, "What held the training up", heads, STK_LENGTH(heads));
	json_array_foreach (findings, i, finding) {
		page_row_begin(out, js_str(finding, "rule"));
		page_number(out, "%lld", (long long)js_int(finding, "node", 0));
		page_cell(out, js_str(finding, "figure"));
		page_cell(out, js_str(finding, "threshold"));
		page_number(out, "%.0f %%", js_real(finding, "share", 0));
		page_cell(out, js_str(finding, "means"));
		page_row_end(out);
	}
	if (json_array_size(findings) > 0)
		page_table_end(out);
	add_rules(out);
}

/* ---- repetition of a run ---- */

void page_repeat(struct sb *out, const json_t *run)
{
	static const struct {
		const char *name, *path;
	} rows[] = {
		{ "spec", "spec_file" },
		{ "source", "source.root" },
		{ "source commit", "source.commit" },
		{ "source digest (SHA-256)", "source.digest" },
		{ "image", "spec.image" },
		{ "image digest", "image.digest" },
		{ "instance", "instance.type" },
		{ "nodes", "nodes" },
		{ "compiler", "compile.compiler" },
		{ "graph key", "compile.graph_key" },
		{ "workspace", "workspace" },
	};
	const json_t *plan = json_object_get(run, "plan");
	AUTO(auto_free) char *spec = json_dumps(js_path(plan, "spec"), JSON_INDENT(2));

	page_table_begin(out, "What this run was made of", pair_heads, STK_LENGTH(pair_heads));
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		page_pair_value(out, rows[i].name, js_path(plan, rows[i].path));
	if (json_object_get(js_path(plan, "source"), "dirty"))
		page_pair(out, "changes beside the commit",
			  js_bool(js_path(plan, "source"), "dirty", false) ? "yes" : "none");
	page_pair_value(out, "versions", json_object_get(run, "versions"));
	page_table_end(out);
	sb_adds(out, "<details><summary>The spec with its defaults, as JSON</summary>\n<pre "
		     "tabindex=\"0\" aria-label=\"spec\">");
	html_lines(out, spec);
	sb_adds(out, "</pre>\n<p>A spec in YAML may be written as JSON: saved as a file, it can be "
		     "run as it is, from a folder with the same source.</p></details>\n");
}
