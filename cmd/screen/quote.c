/* A line and a caret: see quote.h. */
#include "cmd/screen/quote.h"

#include <stdint.h>
#include <string.h>

#include "jobs/base/text/columns.h"
#include "jobs/spec/fields/names.h"

#define TAB_COLUMNS 8
#define LINE_LEAST  24 /* fewest columns of a line that are shown */

/* A line as shown, with the column and width of the character at the place. */
struct shown {
	struct sb text;
	size_t columns, caret, caret_columns;
};

static void show(struct shown *shown, const char *text, size_t len, int column, bool utf8)
{
	int at = 1;

	shown->caret_columns = 1;
	for (size_t i = 0; i < len; at++) {
		char shown_text[COLUMNS_SHOWN];
		size_t first = shown->columns;
		int columns;
		bool tab = text[i] == '\t';

		i += columns_show(text + i, len - i, utf8, shown_text, &columns);
		do {
			sb_adds(&shown->text, shown_text);
			shown->columns += (size_t)columns;
		} while (tab && shown->columns % TAB_COLUMNS != 0);
		if (at == column) {
			shown->caret = first;
			if (shown->columns > first)
				shown->caret_columns = shown->columns - first;
		}
	}
	if (column >= at)
		shown->caret = shown->columns;
}

/* Appends the text between two columns; a wide character across a border is left out and replaced
 * by blanks. */
static void add_columns(struct sb *out, const struct sb *text, size_t from, size_t to)
{
	size_t at = 0, done = from;

	for (size_t i = 0; i < text->len && at < to;) {
		char shown_text[COLUMNS_SHOWN];
		int columns;
		size_t size =
			columns_show(text->text + i, text->len - i, true, shown_text, &columns);

		if (at >= from && at + (size_t)columns <= to) {
			for (; done < at; done++)
				sb_addc(out, ' ');
			sb_add(out, text->text + i, size);
			done = at + (size_t)columns;
		}
		at += (size_t)columns;
		i += size;
	}
}

/* Returns the length of a line break as YAML defines them; 0 if there is none. */
static size_t break_length(const char *text, size_t len)
{
	static const char *const breaks[] = { "\r\n",     "\n",           "\r",
					      "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9" };

	for (size_t i = 0; i < STK_LENGTH(breaks); i++) {
		size_t size = strlen(breaks[i]);

		if (size <= len && memcmp(text, breaks[i], size) == 0)
			return size;
	}
	return 0;
}

static const char *find_line(const char *text, size_t len, int line, size_t *ret_len)
{
	size_t from = 0, at = 0;

	for (; at < len; at++) {
		size_t size = break_length(text + at, len - at);

		if (size == 0)
			continue;
		if (line == 1)
			break;
		line--;
		from = at + size;
		at = from - 1;
	}
	if (line != 1 || from >= len)
		return NULL;
	*ret_len = at - from;
	return text + from;
}

static bool is_secret(const char *text)
{
	return names_secret(text) || strcasestr(text, "webhook");
}

bool quote_is_harmless(const char *text, size_t len, int line, const char *field)
{
	size_t line_len = 0, least = SIZE_MAX;
	const char *at = find_line(text, len, line, &line_len);

	if (!at || (field && is_secret(field)))
		return false;
	for (;;) {
		AUTO(auto_free) char *copy = mem_copy_n(at, line_len);
		size_t indent = strspn(copy, " \t-");

		/* The line itself, and each line above that may contain it. */
		if (indent < least && copy[indent]) {
			if (is_secret(copy))
				return false;
			least = indent;
		}
		if (at == text || least == 0)
			return true;
		line_len = 0;
		for (at--; at > text && at[-1] != '\n'; at--)
			line_len++;
	}
}

/* The visible part of a long line; dots mark a cut at either end. */
struct quote_window {
	size_t from, to;
	bool before, after;
};

static struct quote_window choose_window(const struct shown *shown, size_t width, size_t dots)
{
	struct quote_window window = { .to = shown->columns };

	if (shown->columns <= width)
		return window;
	if (shown->caret > width * 2 / 3)
		window.from = shown->caret - width * 2 / 3;
	if (window.from + width > shown->columns)
		window.from = shown->columns - width;
	window.before = window.from > 0;
	window.after = window.from + width < shown->columns;
	window.to = window.from + width - (window.after ? dots : 0);
	window.from += window.before ? dots : 0;
	return window;
}

bool quote_line(struct sb *out, const char *text, size_t len, int line, int column, size_t width,
		bool utf8)
{
	AUTO(auto_free) char *gutter = mem_format("%5d | ", line);
	const char *dots = utf8 ? "…" : "...";
	size_t dot_columns = utf8 ? 1 : 3, margin = strlen(gutter), line_len = 0, caret;
	struct shown shown = { .text = SB_INIT };
	const char *found = find_line(text, len, line, &line_len);
	struct quote_window window;

	if (!found)
		return false;
	show(&shown, found, line_len, column, utf8);
	width = width > margin + LINE_LEAST ? width - margin : LINE_LEAST;
	window = choose_window(&shown, width, dot_columns);
	sb_addf(out, "%s%s", gutter, window.before ? dots : "");
	add_columns(out, &shown.text, window.from, window.to);
	sb_addf(out, "%s\n", window.after ? dots : "");
	if (column > 0) {
		caret = shown.caret - window.from + (window.before ? dot_columns : 0);
		sb_addf(out, "%*s| %*s^", (int)margin - 2, "", (int)caret, "");
		for (size_t i = 1; i < shown.caret_columns && i < TAB_COLUMNS; i++)
			sb_addc(out, '~');
		sb_addc(out, '\n');
	}
	sb_release(&shown.text);
	return true;
}
