/* The page of a report: see page.h. */
#include "jobs/report/page/page.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/report/page/page_internal.h"
#include "jobs/report/page/page_parts.h"

/* ---- head ---- */

/* Programs and styles that are embedded, in their order. */
static const struct page_set {
	const struct embedded_file *files;
	const size_t *count;
} programs[] = { { chart_programs, &chart_program_count }, { page_programs, &page_program_count } },
  styles[] = { { chart_styles, &chart_style_count }, { page_styles, &page_style_count } },
  licences = { chart_licences, &chart_licence_count };

/* Appends the hash by which the page allows a script or a style that it carries, and no other. */
static void add_source(struct sb *out, const char *text, size_t len)
{
	char hex[SHA256_HEX], base64[SHA256_BASE64];

	hash_sha256_hex(text, len, hex);
	hash_sha256_base64(hex, base64);
	sb_addf(out, " 'sha256-%s'", base64);
}

static void add_head(struct sb *out, const json_t *data)
{
	AUTO(sb_release) struct sb style = SB_INIT;

	for (size_t i = 0; i < STK_LENGTH(styles); i++)
		for (size_t k = 0; k < *styles[i].count; k++)
			sb_add(&style, styles[i].files[k].text, styles[i].files[k].len);
	sb_adds(out, PAGE_BEGIN);
	sb_adds(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		     "script-src");
	for (size_t i = 0; i < STK_LENGTH(programs); i++)
		for (size_t k = 0; k < *programs[i].count; k++)
			add_source(out, programs[i].files[k].text, programs[i].files[k].len);
	sb_adds(out, "; style-src");
	add_source(out, style.text, style.len);
	sb_adds(out, "; img-src data:; base-uri 'none'; form-action 'none'\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		     "<meta name=\"color-scheme\" content=\"light dark\">\n"
		     "<meta name=\"referrer\" content=\"no-referrer\">\n"
		     "<link rel=\"icon\" href=\"data:,\">\n<title>");
	html_text(out, js_str(data, "title"));
	sb_adds(out, "</title>\n<style>");
	sb_add(out, style.text, style.len);
	sb_adds(out, "</style>\n</head>\n");
}

/* ---- sections ---- */

#define RUNS_OPEN 3 /* runs whose sections are not folded */

static void add_list(struct sb *out, const char *class, const json_t *texts)
{
	const json_t *text;
	size_t i;

	if (json_array_size(texts) == 0)
		return;
	sb_addf(out, "<ul class=\"%s\">\n", class);
	json_array_foreach (texts, i, text) {
		sb_adds(out, "<li>");
		html_text(out, json_string_value(text));
		sb_adds(out, "</li>\n");
	}
	sb_adds(out, "</ul>\n");
}

#define COMPARISON_TEXTS 3 /* columns before the figures: run, verdict, number of runs */

/* False for a row that has nothing but a verdict: its words get the whole row. */
static bool has_figures(const json_t *row)
{
	for (size_t k = COMPARISON_TEXTS; k < json_array_size(row); k++)
		if (json_is_string(json_array_get(row, k)))
			return true;
	return false;
}

static void add_comparison(struct sb *out, const json_t *data)
{
	const json_t *comparison = json_object_get(data, "comparison"), *row, *cell;
	const json_t *columns = json_object_get(comparison, "columns");
	size_t count = json_array_size(columns), i, k;
	const char **heads;

	sb_adds(out, "<h2 id=\"comparison\">Comparison</h2>\n");
	if (!comparison) {
		sb_adds(out, "<p>One run: it is compared with nothing. Name several, the baseline "
			     "first, to see what a difference is worth.</p>\n");
		return;
	}
	heads = mem_zero(count, sizeof *heads);
	json_array_foreach (columns, i, cell)
		heads[i] = json_string_value(cell);
	page_figures_begin(out, "Rows of runs with the same settings; the first is the baseline",
			   heads, count, 2);
	free(heads);
	json_array_foreach (json_object_get(comparison, "rows"), i, row) {
		sb_addf(out, "<tr%s><th scope=\"row\">",
			js_int(comparison, "best", -1) == (int64_t)i ? " class=\"best\"" : "");
		html_text(out, json_string_value(json_array_get(row, 0)));
		sb_adds(out, "</th>");
		if (!has_figures(row)) {
			sb_addf(out, "<td colspan=\"%zu\">", count - 1);
			html_text(out, json_string_value(json_array_get(row, 1)));
			sb_adds(out, "</td>");
			page_row_end(out);
			continue;
		}
		for (k = 1; k < count; k++) {
			cell = json_array_get(row, k);
			sb_adds(out, k > 1 ? "<td class=\"n\">" : "<td>");
			html_text(out, json_string_value(cell));
			sb_adds(out, "</td>");
		}
		page_row_end(out);
	}
	page_table_end(out);
}

static void add_differences(struct sb *out, const json_t *data)
{
	static const char *const heads[] = { "run", "differs from the baseline in" };
	const json_t *differences = json_object_get(data, "differences"), *row;
	size_t i;

	if (json_array_size(differences) == 0)
		return;
	page_table_begin(out, "What was compared", heads, STK_LENGTH(heads));
	json_array_foreach (differences, i, row) {
		page_row_begin(out, js_str(row, "run"));
		page_cell(out, js_str(row, "words"));
		page_row_end(out);
	}
	page_table_end(out);
}

/* Adds all about a run; one of many is folded. */
static void add_run(struct sb *out, const json_t *run, size_t number, bool folded)
{
	static const struct {
		const char *title;
		void (*add)(struct sb *out, const json_t *run);
	} parts[] = {
		{ "Outcome", page_outcome },           { "What was asked", page_asked },
		{ "Time and money", page_ledger },     { "Timeline", page_timeline },
		{ "Graphs compiled late", page_late }, { "Nodes and health", page_nodes },
		{ "What the nodes did", page_usage },  { "How to repeat it", page_repeat },
	};

	const char *state = js_str(json_object_get(run, "status"), "state");

	sb_addf(out, "<section id=\"run-%zu\">\n%s<h2>Run ", number,
		folded ? "<details><summary>" : "");
	html_text(out, js_str(run, "run"));
	if (state) {
		sb_adds(out, " <span class=\"unit\">");
		html_text(out, state);
		sb_adds(out, "</span>");
	}
	sb_addf(out, "</h2>%s\n", folded ? "</summary>" : "");
	for (size_t i = 0; i < STK_LENGTH(parts); i++) {
		sb_addf(out, "<h3>%s</h3>\n", parts[i].title);
		parts[i].add(out, run);
	}
	sb_addf(out, "%s</section>\n", folded ? "</details>" : "");
}

static void add_contents(struct sb *out, const json_t *runs)
{
	const json_t *run;
	size_t i;

	sb_adds(out, "<nav aria-label=\"contents\"><ul>\n"
		     "<li><a href=\"#verdict\">Verdict</a></li>\n"
		     "<li><a href=\"#comparison\">Comparison</a></li>\n"
		     "<li><a href=\"#curves\">Curves</a></li>\n");
	json_array_foreach (runs, i, run) {
		sb_addf(out, "<li><a href=\"#run-%zu\">Run ", i);
		html_text(out, js_str(run, "run"));
		sb_adds(out, "</a></li>\n");
	}
	sb_adds(out, "</ul></nav>\n");
}

static void add_footer(struct sb *out, const json_t *data)
{
	sb_adds(out, "<footer>\n<p>Made by stoker ");
	html_text(out, js_str(data, "version"));
	sb_adds(out, " at ");
	html_text(out, js_str(data, "made"));
	sb_adds(out, ". Times are in UTC.</p>\n<details><summary>Licence of dygraphs, which draws "
		     "the curves</summary>\n<pre tabindex=\"0\" aria-label=\"licence\">");
	for (size_t i = 0; i < *licences.count; i++)
		html_lines(out, licences.files[i].text);
	sb_adds(out, "</pre></details>\n</footer>\n");
}

/* Appends what page.js draws, and the programs. */
static void add_programs(struct sb *out, const json_t *data)
{
	json_auto_t *drawn = json_object();

	json_object_set(drawn, "charts", json_object_get(data, "charts"));
	json_object_set(drawn, "renewed", json_object_get(data, "renewed"));
	sb_adds(out, "<script type=\"application/json\" id=\"data\">");
	html_json(out, drawn);
	sb_adds(out, "</script>\n");
	for (size_t i = 0; i < STK_LENGTH(programs); i++)
		for (size_t k = 0; k < *programs[i].count; k++) {
			sb_adds(out, "<script>");
			sb_add(out, programs[i].files[k].text, programs[i].files[k].len);
			sb_adds(out, "</script>\n");
		}
}

void page_write(const json_t *data, struct sb *ret)
{
	const json_t *runs = json_object_get(data, "runs"), *run;
	size_t i;

	add_head(ret, data);
	sb_adds(ret, "<body>\n<a class=\"skip\" href=\"#verdict\">Skip to the verdict</a>\n"
		     "<header>\n<h1>");
	html_text(ret, js_str(data, "title"));
	sb_adds(ret, "</h1>\n");
	if (js_bool(data, "renewed", false))
		sb_adds(ret, "<p class=\"script\"><label><input type=\"checkbox\" id=\"renew\" "
			     "checked> load this page again every 10 seconds</label></p>\n");
	add_contents(ret, runs);
	sb_adds(ret, "</header>\n<main>\n<h2 id=\"verdict\">Verdict</h2>\n");
	add_list(ret, "verdict", json_object_get(data, "verdict"));
	add_comparison(ret, data);
	add_differences(ret, data);
	add_list(ret, "rules", json_object_get(data, "rules"));
	sb_adds(ret, "<section>\n<h2 id=\"curves\">Curves</h2>\n");
	page_charts(ret, data);
	sb_adds(ret, "</section>\n");
	json_array_foreach (runs, i, run)
		add_run(ret, run, i, json_array_size(runs) > RUNS_OPEN);
	if (js_int(data, "runs_left", 0) > 0)
		sb_addf(ret,
			"<p class=\"note\">%lld more runs are in verdict and comparison alone: a "
			"report about them has their curves and sections.</p>\n",
			(long long)js_int(data, "runs_left", 0));
	sb_adds(ret, "</main>\n");
	add_footer(ret, data);
	add_programs(ret, data);
	sb_adds(ret, "</body>\n</html>\n");
}
