/* Columns of text on a terminal: see columns.h. */
#include "jobs/base/text/columns.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "jobs/base/text/text.h"

#define MARKS_MAX 4 /* most combining marks shown on one character */

/* Width of a character, 0 to 2; -1 if this version does not know it, or if it is not printable. */
static int width_of(uint32_t code)
{
	/* Made once and kept: Unicode's widths do not depend on the user's settings. */
	static locale_t unicode;
	locale_t before;
	int columns;

	if (code < 0x300)
		return code < 0x20 || (code >= 0x7f && code < 0xa0) ? -1 : 1;
	if (!unicode)
		unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	if (!unicode)
		return 1;
	before = uselocale(unicode);
	columns = wcwidth((wchar_t)code);
	uselocale(before);
	return columns;
}

size_t columns_show(const char *text, size_t len, bool utf8, char shown[COLUMNS_SHOWN],
		    int *ret_columns)
{
	uint32_t code = 0;
	size_t size = text_utf8(text, len, &code);
	int columns = size ? width_of(code) : -1;

	if (text[0] == '\t') {
		size = 1;
		columns = snprintf(shown, COLUMNS_SHOWN, " ");
	} else if (size < 2 && columns < 0) {
		size = 1;
		columns =
			snprintf(shown, COLUMNS_SHOWN, "\\x%02x", (unsigned)(unsigned char)text[0]);
	} else if (columns < 0 || text_is_control(code) || (!utf8 && code >= 0x80)) {
		columns = snprintf(shown, COLUMNS_SHOWN, code > 0xffff ? "\\U%08x" : "\\u%04x",
				   (unsigned)code);
	} else {
		memcpy(shown, text, size);
		shown[size] = '\0';
	}
	*ret_columns = columns;
	return size;
}

/* Cut `out` back to `len` bytes. */
static void cut_back(struct sb *out, size_t len)
{
	if (out->len > len) {
		out->len = len;
		out->text[len] = '\0';
	}
}

/* Most text is this, and each of its characters takes one column. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

size_t columns_fit(struct sb *out, const char *text, size_t len, size_t max, bool utf8)
{
	const char *mark = utf8 ? "…" : "...";
	size_t mark_columns = utf8 ? 1 : 3;
	size_t used = 0, marks = 0, kept_len = out->len, kept = 0;

	if (len <= max && is_plain(text, len)) {
		sb_add(out, text, len);
		return len;
	}
	for (size_t i = 0; i < len;) {
		char shown[COLUMNS_SHOWN];
		int columns;

		i += columns_show(text + i, len - i, utf8, shown, &columns);
		marks = columns == 0 ? marks + 1 : 0;
		if (marks > MARKS_MAX)
			continue;
		if (used + (size_t)columns > max) {
			cut_back(out, kept_len);
			if (mark_columns > max)
				return kept;
			sb_adds(out, mark);
			return kept + mark_columns;
		}
		sb_adds(out, shown);
		used += (size_t)columns;
		if (used + mark_columns <= max) {
			kept = used;
			kept_len = out->len;
		}
	}
	return used;
}

/* Number of bytes that go into a row: up to its last blank, or else as many as fit. */
static size_t row_length(const char *text, size_t len, size_t room, bool utf8)
{
	size_t used = 0, blank = 0;

	for (size_t i = 0; i < len;) {
		char shown[COLUMNS_SHOWN];
		int columns;
		size_t size = columns_show(text + i, len - i, utf8, shown, &columns);

		if (text[i] == ' ' && i > 0 && text[i - 1] != ' ')
			blank = i;
		if (used + (size_t)columns > room)
			return blank ? blank : i;
		used += (size_t)columns;
		i += size;
	}
	return len;
}

void columns_wrap(struct sb *out, const char *text, size_t len, size_t room, size_t indent,
		  size_t rows, bool utf8)
{
	while (rows > 1) {
		size_t taken = row_length(text, len, room, utf8);

		if (taken == len || taken == 0)
			break;
		columns_fit(out, text, taken, room, utf8);
		sb_addf(out, "\n%*s", (int)indent, "");
		while (taken < len && text[taken] == ' ')
			taken++;
		text += taken;
		len -= taken;
		rows--;
	}
	columns_fit(out, text, len, room, utf8);
}

size_t columns_width(const char *text, size_t len, bool utf8)
{
	size_t used = 0;

	if (is_plain(text, len))
		return len;
	for (size_t i = 0; i < len;) {
		char shown[COLUMNS_SHOWN];
		int columns;

		i += columns_show(text + i, len - i, utf8, shown, &columns);
		used += (size_t)columns;
	}
	return used;
}
