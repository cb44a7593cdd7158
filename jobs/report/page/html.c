/* Outside text in HTML: see html.h. */
#include "jobs/report/page/html.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

static void add_escaped(struct sb *out, const char *text, size_t len, bool keep_newlines)
{
	AUTO(sb_release) struct sb safe = SB_INIT_MAX(SB_MAX_DEFAULT);

	text_escape(&safe, text, len, keep_newlines);
	for (size_t i = 0; i < safe.len; i++) {
		switch (safe.text[i]) {
		case '&':
			sb_adds(out, "&amp;");
			break;
		case '<':
			sb_adds(out, "&lt;");
			break;
		case '>':
			sb_adds(out, "&gt;");
			break;
		case '"':
			sb_adds(out, "&quot;");
			break;
		case '\'':
			sb_adds(out, "&#39;");
			break;
		default:
			sb_addc(out, safe.text[i]);
		}
	}
}

void html_text(struct sb *out, const char *text)
{
	if (text)
		add_escaped(out, text, strlen(text), false);
}

void html_lines(struct sb *out, const char *text)
{
	if (text)
		add_escaped(out, text, strlen(text), true);
}

void html_textf(struct sb *out, const char *fmt, ...)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&text, fmt, args);
	va_end(args);
	add_escaped(out, text.text, text.len, false);
}

void html_json(struct sb *out, const json_t *value)
{
	AUTO(auto_free) char *line = js_line(value);

	/* These characters stand in strings alone, where the escape means the same. js_line() has
	 * escaped controls, and separators of lines. */
	for (const char *c = line; *c; c++) {
		if (*c == '<' || *c == '>' || *c == '&')
			sb_addf(out, "\\u%04x", (unsigned)*c);
		else
			sb_addc(out, *c);
	}
}

void html_value(struct sb *out, const json_t *value)
{
	AUTO(auto_free) char *line = json_is_string(value) ? NULL : js_line(value);

	if (line)
		html_text(out, line);
	else
		add_escaped(out, json_string_value(value), json_string_length(value), false);
}
