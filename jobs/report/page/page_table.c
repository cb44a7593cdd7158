/* Tables of the page. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "jobs/base/text/text.h"
#include "jobs/report/page/page_internal.h"

void page_table_begin(struct sb *out, const char *caption, const char *const *heads, size_t count)
{
	page_figures_begin(out, caption, heads, count, count);
}

void page_figures_begin(struct sb *out, const char *caption, const char *const *heads, size_t count,
			size_t texts)
{
	sb_adds(out, "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"");
	html_text(out, caption);
	sb_adds(out, "\"><table><caption>");
	html_text(out, caption);
	sb_adds(out, "</caption>\n<thead><tr>");
	for (size_t i = 0; i < count; i++) {
		sb_adds(out, i < texts ? "<th scope=\"col\">" : "<th scope=\"col\" class=\"n\">");
		html_text(out, heads[i]);
		sb_adds(out, "</th>");
	}
	sb_adds(out, "</tr></thead>\n<tbody>\n");
}

void page_table_end(struct sb *out)
{
	sb_adds(out, "</tbody></table></div>\n");
}

void page_row_begin(struct sb *out, const char *head)
{
	sb_adds(out, "<tr><th scope=\"row\">");
	html_text(out, head);
	sb_adds(out, "</th>");
}

void page_cell(struct sb *out, const char *text)
{
	sb_adds(out, "<td>");
	html_text(out, text);
	sb_adds(out, "</td>");
}

void page_number(struct sb *out, const char *fmt, ...)
{
	va_list args;

	sb_adds(out, "<td class=\"n\">");
	va_start(args, fmt);
	sb_addv(out, fmt, args);
	va_end(args);
	sb_adds(out, "</td>");
}

void page_no_number(struct sb *out)
{
	sb_adds(out, "<td></td>");
}

void page_row_end(struct sb *out)
{
	sb_adds(out, "</tr>\n");
}

void page_pair(struct sb *out, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	page_row_begin(out, name);
	page_cell(out, text);
	page_row_end(out);
}

void page_pair_value(struct sb *out, const char *name, const json_t *value)
{
	if (!value || json_is_null(value) || (json_is_string(value) && !*json_string_value(value)))
		return;
	page_row_begin(out, name);
	sb_adds(out, "<td>");
	html_value(out, value);
	sb_adds(out, "</td>");
	page_row_end(out);
}

char *page_time(double seconds)
{
	return isfinite(seconds) ? text_format_duration((int64_t)(seconds * 1000)) : mem_copy("");
}

char *page_step_time(double seconds)
{
	if (isnan(seconds))
		return mem_copy("not known");
	return seconds < 1 ? mem_format("%.4g ms", seconds * 1000) : mem_format("%.4g s", seconds);
}

char *page_figure(double value)
{
	return isnan(value) ? mem_copy("not known") : mem_format("%.6g", value);
}
