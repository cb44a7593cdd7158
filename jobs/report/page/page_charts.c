/* Curves of the page: a place for each, drawn by page.js, and tables of the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/report/page/page_internal.h"

#define TABLE_ROWS 24 /* of a curve's points that its table shows */

/* ---- one chart ---- */

static const char *dash(const char *text)
{
	return text ? text : "";
}

static void add_point(struct sb *out, const json_t *line, const json_t *point, bool several)
{
	AUTO(auto_free) char *x = page_figure(json_number_value(json_array_get(point, 0)));
	AUTO(auto_free) char *y = page_figure(json_number_value(json_array_get(point, 1)));

	page_row_begin(out, x);
	if (several)
		page_cell(out, js_str(line, "name"));
	page_number(out, "%s", y);
	page_row_end(out);
}

/* A few points of each curve, evenly over its points. */
static void add_table(struct sb *out, const json_t *chart)
{
	const json_t *lines = json_object_get(chart, "lines"), *line;
	size_t count = json_array_size(lines), each = TABLE_ROWS, i;
	bool several = count > 1;
	const char *heads[] = { dash(js_str(chart, "x")),
				several ? "curve" : js_str(chart, "title"),
				js_str(chart, "title") };

	if (count > 4)
		each = 6;
	sb_adds(out, "<details><summary>Some values of ");
	html_text(out, js_str(chart, "title"));
	sb_adds(out, "</summary>\n");
	page_figures_begin(out, dash(js_str(chart, "title")), heads, several ? 3 : 2,
			   several ? 2 : 1);
	json_array_foreach (lines, i, line) {
		const json_t *points = json_object_get(line, "points");
		size_t size = json_array_size(points), rows = size < each ? size : each;

		for (size_t k = 0; k < rows; k++)
			add_point(
				out, line,
				json_array_get(points, rows < 2 ? 0 : k * (size - 1) / (rows - 1)),
				several);
	}
	page_table_end(out);
	sb_adds(out, "</details>\n");
}

#define COLORS 8 /* of curves; page.css has them */

static bool looks_alike(const json_t *line, const json_t *other)
{
	return js_int(line, "color", 0) == js_int(other, "color", 0) &&
	       js_bool(line, "dashed", false) == js_bool(other, "dashed", false);
}

/* Returns the first of the lines that looks as this one. */
static size_t first_alike(const json_t *lines, size_t at)
{
	size_t i = 0;

	while (i < at && !looks_alike(json_array_get(lines, i), json_array_get(lines, at)))
		i++;
	return i;
}

/* The key of a chart with several curves. Repeats have one colour, and one entry. */
static void add_key(struct sb *out, const json_t *chart)
{
	const json_t *lines = json_object_get(chart, "lines"), *line;
	size_t count = json_array_size(lines), i;

	if (count < 2)
		return;
	sb_adds(out, "<ul class=\"legend\">");
	json_array_foreach (lines, i, line) {
		if (first_alike(lines, i) < i)
			continue;
		sb_addf(out, "<li><span class=\"key c%lld%s\"></span>",
			(long long)js_int(line, "color", 0) % COLORS,
			js_bool(line, "dashed", false) ? " dashed" : "");
		html_text(out, js_str(line, "name"));
		for (size_t k = i + 1; k < count; k++)
			if (looks_alike(line, json_array_get(lines, k))) {
				sb_adds(out, ", ");
				html_text(out, js_str(json_array_get(lines, k), "name"));
			}
		sb_adds(out, "</li>");
	}
	sb_adds(out, "</ul>\n");
}

static void add_chart(struct sb *out, const json_t *chart, size_t number)
{
	const char *title = dash(js_str(chart, "title")), *unit = dash(js_str(chart, "unit"));

	sb_addf(out, "<figure id=\"chart-%zu\">\n<h3>", number);
	html_text(out, title);
	sb_adds(out, " <span class=\"unit\">");
	if (*unit)
		html_textf(out, "(%s) ", unit);
	html_textf(out, "by %s", dash(js_str(chart, "x")));
	sb_adds(out, "</span></h3>\n<div class=\"chart\" tabindex=\"0\" role=\"application\" "
		     "aria-roledescription=\"chart\" aria-label=\"");
	html_textf(out,
		   "%s by %s. The arrow keys read values, plus and minus zoom, 0 shows all; the "
		   "table below has some of them.",
		   title, dash(js_str(chart, "x")));
	sb_adds(out, "\"></div>\n<p class=\"read\" role=\"status\"></p>\n<p class=\"script\">"
		     "<button type=\"button\" class=\"log\" aria-pressed=\"false\">"
		     "logarithmic</button> <button type=\"button\" class=\"all\">show "
		     "all</button></p>\n");
	add_key(out, chart);
	sb_adds(out, "<figcaption>");
	html_text(out, js_str(chart, "caption"));
	sb_adds(out, "</figcaption>\n");
	add_table(out, chart);
	sb_adds(out, "</figure>\n");
}

/* ---- figures of the metrics ---- */

static void add_at(struct sb *out, const json_t *metric, const char *value, const char *at)
{
	AUTO(auto_free) char *number = page_figure(js_real(metric, value, NAN));
	AUTO(auto_free) char *where = page_figure(js_real(metric, at, NAN));

	if (!json_object_get(metric, value))
		page_no_number(out);
	else
		page_number(out, "%s <small>at %s</small>", number, where);
}

static void add_count(struct sb *out, const json_t *metric, const char *key)
{
	page_number(out, "%lld", (long long)js_int(metric, key, 0));
}

#define METRICS_OPEN 12 /* rows of a table that is not folded */

static void add_metrics(struct sb *out, const json_t *metrics)
{
	static const char *const heads[] = { "metric",     "run",       "readings", "first",
					     "least",      "greatest",  "last",     "not finite",
					     "made again", "superseded" };
	const json_t *metric;
	size_t i;

	page_figures_begin(out, "Figures of each metric, over the readings that count", heads,
			   STK_LENGTH(heads), 2);
	json_array_foreach (metrics, i, metric) {
		page_row_begin(out, js_str(metric, "name"));
		page_cell(out, js_str(metric, "run"));
		add_count(out, metric, "readings");
		add_at(out, metric, "first", "first_at");
		add_at(out, metric, "least", "least_at");
		add_at(out, metric, "greatest", "greatest_at");
		add_at(out, metric, "last", "last_at");
		add_count(out, metric, "odd");
		add_count(out, metric, "replayed");
		add_count(out, metric, "superseded");
		page_row_end(out);
	}
	page_table_end(out);
}

void page_charts(struct sb *out, const json_t *data)
{
	const json_t *charts = json_object_get(data, "charts"), *chart;
	const json_t *metrics = json_object_get(data, "metrics");
	size_t i;

	if (json_array_size(charts) == 0) {
		sb_adds(out, "<p>There are no curves: no metric of a spec has read a number at a "
			     "step.</p>\n");
		return;
	}
	sb_adds(out, "<noscript><p>The curves are drawn by JavaScript, which is off here; the "
		     "tables have their figures.</p></noscript>\n");
	json_array_foreach (charts, i, chart)
		add_chart(out, chart, i);
	if (json_array_size(metrics) > METRICS_OPEN) {
		sb_adds(out, "<details><summary>Figures of each metric</summary>\n");
		add_metrics(out, metrics);
		sb_adds(out, "</details>\n");
	} else if (json_array_size(metrics) > 0) {
		add_metrics(out, metrics);
	}
}
