/* Bars of the page: where time and money went, and the course of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/clock.h"
#include "jobs/base/text/text.h"
#include "jobs/flow/ledger.h"
#include "jobs/report/page/page_internal.h"

#define BAR_UNITS 1000 /* width of a bar in its own units */

/* The worth of a stretch of time; each has a colour (page.css) and a word. */
static const struct page_worth {
	const char *name, *words;
} worths[] = {
	{ "work", "makes steps" }, { "compile", "compiles" }, { "prepare", "prepares, saves" },
	{ "wait", "waits" },       { "lost", "is lost" },
};

/* Returns the index of a bin in `worths`, or of a stretch of a lane. */
static size_t worth_of(const char *kind)
{
	static const struct {
		const char *kind;
		size_t worth;
	} rows[] = {
		{ "steps", 0 },      { "evaluate", 0 },  { "infer", 0 },   { "train", 0 },
		{ "precompile", 1 }, { "jit", 1 },       { "verify", 2 },  { "pull", 2 },
		{ "setup", 2 },      { "health", 2 },    { "restore", 2 }, { "checkpoint", 2 },
		{ "queue", 3 },      { "provision", 3 }, { "backoff", 3 }, { "idle", 3 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (strcmp(kind, rows[i].kind) == 0)
			return rows[i].worth;
	return STK_LENGTH(worths) - 1; /* replayed, hang, unknown */
}

static void add_rect(struct sb *out, const char *kind, double from, double width, int y, int height)
{
	/* Something that happened is never too short to be seen. */
	sb_addf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>",
		worths[worth_of(kind)].name, from, y, width < 0.5 ? 0.5 : width, height);
}

static void add_legend(struct sb *out)
{
	sb_adds(out, "<ul class=\"legend\" aria-label=\"colours of the bars\">");
	for (size_t i = 0; i < STK_LENGTH(worths); i++)
		sb_addf(out, "<li><span class=\"swatch %s\"></span>%s</li>", worths[i].name,
			worths[i].words);
	sb_adds(out, "</ul>\n");
}

/* ---- the ledger ---- */

/* Appends a bar of the bins; `label` says what it measures. */
static void add_bar(struct sb *out, const char *label, const json_t *bins, double total)
{
	double from = 0;

	if (!(total > 0))
		return;
	sb_adds(out, "<p class=\"label\">");
	html_text(out, label);
	sb_adds(out,
		"</p>\n<svg class=\"bar\" viewBox=\"0 0 1000 24\" preserveAspectRatio=\"none\" "
		"role=\"img\" aria-label=\"");
	html_text(out, label);
	sb_adds(out, ": the table below has the figures\">\n");
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		const char *name = ledger_bin_names[bin];
		double part = js_real(bins, name, 0);

		if (part <= 0)
			continue;
		add_rect(out, name, from, part / total * BAR_UNITS, 0, 24);
		html_textf(out, "%s: %.1f %%", name, part / total * 100);
		sb_adds(out, "</title></rect>\n");
		from += part / total * BAR_UNITS;
	}
	if (js_real(bins, "kept", 0) > 0) {
		add_rect(out, "idle", from, js_real(bins, "kept", 0) / total * BAR_UNITS, 0, 24);
		sb_adds(out, "kept between attempts</title></rect>\n");
	}
	sb_adds(out, "</svg>\n");
}

static void add_bin(struct sb *out, const char *name, double seconds, double total, double usd,
		    double accrued)
{
	AUTO(auto_free) char *time = page_time(seconds);

	page_row_begin(out, name);
	if (strcmp(name, "total") == 0)
		page_no_number(out);
	else
		sb_addf(out, "<td><span class=\"swatch %s\"></span>%s</td>",
			worths[worth_of(name)].name, worths[worth_of(name)].words);
	page_number(out, "%s", time);
	page_number(out, "%.1f %%", total > 0 ? seconds / total * 100 : 0.0);
	if (accrued > 0) {
		page_number(out, "%.2f", usd);
		page_number(out, "%.1f %%", usd / accrued * 100);
	}
	page_row_end(out);
}

void page_ledger(struct sb *out, const json_t *run)
{
	const json_t *status = json_object_get(run, "status");
	const json_t *ledger = json_object_get(status, "ledger");
	json_t *cost = json_object_get(status, "cost");
	json_auto_t *money = json_object();
	double total = js_real(ledger, "total", 0), accrued = js_real(cost, "accrued", 0);
	double kept = js_real(cost, "kept", 0);
	static const char *const heads[] = { "bin",   "the run", "time",
					     "share", "USD",     "share of the cost" };

	if (!(total > 0)) {
		sb_adds(out, "<p>No time has been accounted for yet.</p>\n");
		return;
	}
	json_object_update(money, json_object_get(cost, "bins"));
	if (kept > 0)
		js_put(money, "kept", json_real(kept));
	add_bar(out, "by time", ledger, total);
	add_bar(out, "by money", money, accrued);
	if (!cost)
		sb_adds(out, "<p>Without a price (resources.price) no cost is known.</p>\n");
	add_legend(out);
	page_figures_begin(out, "Every second of the run is in one bin", heads,
			   accrued > 0 ? STK_LENGTH(heads) : 4, 2);
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		const char *name = ledger_bin_names[bin];

		if (js_real(ledger, name, 0) > 0 || js_real(money, name, 0) > 0)
			add_bin(out, name, js_real(ledger, name, 0), total, js_real(money, name, 0),
				accrued);
	}
	if (kept > 0) {
		page_row_begin(out, "kept between attempts");
		sb_adds(out, "<td></td><td></td><td></td>");
		page_number(out, "%.2f", kept);
		page_number(out, "%.1f %%", kept / accrued * 100);
		page_row_end(out);
	}
	add_bin(out, "total", total, total, accrued, accrued);
	page_table_end(out);
}

/* ---- the timeline ---- */

static void add_lane(struct sb *out, const json_t *lane, double from, double length)
{
	const json_t *part;
	size_t i;

	json_array_foreach (json_object_get(lane, "parts"), i, part) {
		double begin = js_real(part, "from", from), end = js_real(part, "to", begin);
		AUTO(auto_free) char *time = page_time((end - begin) / 1000);

		add_rect(out, js_str(part, "kind"), (begin - from) / length * BAR_UNITS,
			 (end - begin) / length * BAR_UNITS, 0, 20);
		html_textf(out, "%s: %s, %s", js_str(lane, "name"), js_str(part, "kind"), time);
		sb_adds(out, "</title></rect>\n");
	}
}

/* Finds the first and the last moment of the lanes; false if there is none. */
static bool find_span(const json_t *lanes, double *ret_from, double *ret_to)
{
	const json_t *lane, *part;
	size_t i, k;

	*ret_from = INFINITY;
	*ret_to = -INFINITY;
	json_array_foreach (lanes, i, lane)
		json_array_foreach (json_object_get(lane, "parts"), k, part) {
			*ret_from = fmin(*ret_from, js_real(part, "from", INFINITY));
			*ret_to = fmax(*ret_to, js_real(part, "to", -INFINITY));
		}
	return *ret_to > *ret_from;
}

#define LANES_SHOWN 60

static void add_lanes(struct sb *out, const json_t *lanes)
{
	double from, to;
	AUTO(auto_free) char *length = NULL;
	char at[UTC_TEXT];
	const json_t *lane;
	size_t i;

	if (!find_span(lanes, &from, &to))
		return;
	length = page_time((to - from) / 1000);
	sb_adds(out, "<div class=\"lanes\" role=\"img\" aria-label=\"timeline of the attempts: the "
		     "tables below have the times\">\n");
	json_array_foreach (lanes, i, lane) {
		if (i >= LANES_SHOWN)
			break;
		sb_adds(out, "<p class=\"label\">");
		html_text(out, js_str(lane, "name"));
		sb_adds(out, "</p>\n<svg class=\"lane\" viewBox=\"0 0 1000 20\" "
			     "preserveAspectRatio=\"none\" aria-hidden=\"true\">\n");
		add_lane(out, lane, from, to - from);
		sb_adds(out, "</svg>\n");
	}
	clock_utc_format((struct utc){ (int64_t)from }, at);
	sb_addf(out, "</div>\n<p class=\"ends\"><span>%s</span><span>%s later</span></p>\n", at,
		length);
	if (json_array_size(lanes) > LANES_SHOWN)
		sb_addf(out, "<p>The first %d attempts of %zu are drawn.</p>\n", LANES_SHOWN,
			json_array_size(lanes));
}

void page_timeline(struct sb *out, const json_t *run)
{
	static const char *const heads[] = { "time (UTC)", "event", "what happened" };
	const json_t *event;
	size_t i;

	add_lanes(out, json_object_get(run, "lanes"));
	add_legend(out);
	page_attempts(out, run);
	sb_adds(out, "<details><summary>Events</summary>\n");
	page_table_begin(out, "Events of the journal, without the progress of steps", heads,
			 STK_LENGTH(heads));
	json_array_foreach (json_object_get(run, "events"), i, event) {
		page_row_begin(out, js_str(event, "at"));
		page_cell(out, js_str(event, "event"));
		page_cell(out, js_str(event, "words"));
		page_row_end(out);
	}
	page_table_end(out);
	if (js_int(run, "events_left", 0) > 0)
		sb_addf(out, "<p>%lld events in the middle are left out.</p>\n",
			(long long)js_int(run, "events_left", 0));
	sb_adds(out, "</details>\n");
}
