/* Bounded text and pattern matching for outside bytes: see failure_inside.h. */
#include "jobs/flow/failure_inside.h"

#include <string.h>

/* Of one line that goes into evidence. */
#define QUOTE_MAX        400
#define QUOTE_BEHIND     200 /* of that for what follows the text that must be seen */
#define QUOTE_AHEAD      20
#define ACTOR_PREFIX_MAX 120
/* Launchers within launchers: "7: [rank80]: ". */
#define PREFIXES_MAX 3

void slip_start(struct slip *slip, char *text, size_t size)
{
	*slip = (struct slip){ .text = text, .size = size };
	text[0] = '\0';
}

/* Length of the UTF-8 character at `text`, 0 if there is none that may be shown. */
static size_t character(const char *text, size_t len)
{
	const unsigned char *b = (const unsigned char *)text;
	size_t n = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;

	if (n == 1)
		return (b[0] >= 0x20 && b[0] != 0x7f) || b[0] == '\t' || b[0] == '\n';
	if (n == 0 || n > len || b[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	/* C1 controls, overlong forms, surrogates, beyond the last character */
	if ((b[0] == 0xc2 && b[1] < 0xa0) || (b[0] == 0xe0 && b[1] < 0xa0) ||
	    (b[0] == 0xed && b[1] >= 0xa0) || (b[0] == 0xf0 && b[1] < 0x90) ||
	    (b[0] == 0xf4 && b[1] >= 0x90))
		return 0;
	return n;
}

void slip_add(struct slip *slip, const char *text, size_t len)
{
	while (len > 0) {
		size_t n = character(text, len);
		size_t used = n > 0 ? n : 1;

		if (slip->len + used >= slip->size)
			break;
		if (n > 0)
			memcpy(slip->text + slip->len, text, n);
		else
			slip->text[slip->len] = '?';
		slip->len += used;
		text += used;
		len -= used;
	}
	slip->text[slip->len] = '\0';
}

void slip_adds(struct slip *slip, const char *text)
{
	slip_add(slip, text, strlen(text));
}

static void slip_add_cut(struct slip *slip, struct failure_line line)
{
	bool cut = line.len > QUOTE_MAX;

	if (cut) {
		line.len = QUOTE_MAX;
		while (line.len > 0 && ((unsigned char)line.text[line.len] & 0xc0) == 0x80)
			line.len--;
	}
	slip_add(slip, line.text, line.len);
	if (cut)
		slip_adds(slip, " ...");
}

void slip_add_line_from(struct slip *slip, struct failure_line line, size_t must)
{
	size_t from = must < QUOTE_MAX - QUOTE_BEHIND ? 0 : must;

	while (from > 0 && must - from < QUOTE_AHEAD)
		from--;
	for (size_t at = from; from > 0 && at < must; at++)
		if (line.text[at] == ' ')
			from = at + 1;
	while (from > 0 && from < line.len && ((unsigned char)line.text[from] & 0xc0) == 0x80)
		from++;
	if (slip->len > 0)
		slip_add(slip, "\n", 1);
	if (from > 0)
		slip_adds(slip, "... ");
	line.text += from;
	line.len -= from;
	slip_add_cut(slip, line);
}

void slip_add_line(struct slip *slip, struct failure_line line)
{
	slip_add_line_from(slip, line, 0);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Programs do not agree on capitals. */
static bool is_alike(const char *text, const char *other, size_t len, bool exact)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != other[i] && (exact || lower(text[i]) != lower(other[i])))
			return false;
	return true;
}

/* Where `needle` begins in the line at or after `from`; the line's length if nowhere. */
static size_t find(struct failure_line line, size_t from, const char *needle, size_t len,
		   bool exact)
{
	char first = lower(needle[0]);

	for (size_t at = from; at + len <= line.len; at++)
		if (lower(line.text[at]) == first && is_alike(line.text + at, needle, len, exact))
			return at;
	return line.len;
}

size_t failure_find(struct failure_line line, const char *text)
{
	return find(line, 0, text, strlen(text), false);
}

/* The same for a part of a pattern. An empty part is what follows a closing '*':
 * it matches at the end of the line. */
static size_t find_part(struct failure_line line, size_t from, const char *part, size_t len,
			bool anchored, bool exact)
{
	if (len == 0)
		return line.len;
	if (anchored)
		return len <= line.len && is_alike(line.text, part, len, exact) ? 0 : line.len;
	return find(line, from, part, len, exact);
}

bool failure_matches(const char *pattern, bool exact, struct failure_line line,
		     struct failure_line *ret_found)
{
	bool anchored = *pattern == '^', captured = false;
	size_t at = 0;
	size_t open = 0; /* where the text for '*' begins */

	if (anchored)
		pattern++;
	for (bool first = true;; first = false) {
		const char *star = strchr(pattern, '*');
		size_t len = star ? (size_t)(star - pattern) : strlen(pattern);
		size_t begin = find_part(line, at, pattern, len, first && anchored, exact);

		if (len > 0 && begin == line.len)
			return false;
		if (!first && !captured) {
			captured = true;
			if (ret_found)
				*ret_found =
					(struct failure_line){ line.text + open, begin - open };
		}
		at = begin + len;
		if (!star)
			return true;
		open = at;
		pattern = star + 1;
	}
}

static struct failure_line trim_blanks(struct failure_line line)
{
	while (line.len > 0 && (line.text[line.len - 1] == '\r' ||
				line.text[line.len - 1] == '\n' || line.text[line.len - 1] == ' '))
		line.len--;
	return line;
}

/* "[host1:0]", but not "[train.py:12]" */
static size_t host_prefix_length(struct failure_line line)
{
	size_t end = 1, digits = 0;

	while (end < line.len && line.text[end] != ':' && line.text[end] != '.' &&
	       line.text[end] != ' ')
		end++;
	if (end == 1 || end == line.len || line.text[end] != ':')
		return 0;
	for (end++; end < line.len && line.text[end] >= '0' && line.text[end] <= '9'; end++)
		digits++;
	return digits > 0 && end < line.len && line.text[end] == ']' ? end + 1 : 0;
}

/* Ray: "(Worker pid=42417, ip=[fdbd::2207]) ", with the line's own indentation after it. */
static size_t actor_prefix_length(struct failure_line line)
{
	size_t end = 0, pid;

	while (end < line.len && line.text[end] == ' ')
		end++;
	if (end == line.len || line.text[end] != '(')
		return 0;
	pid = find(line, end, " pid=", 5, true);
	end = find(line, end, ") ", 2, true);
	return pid < end && end < line.len && end < ACTOR_PREFIX_MAX ? end + 2 : 0;
}

/* "[rank0]: ", "[3]: ", "3: ", " 7: ": launchers put the rank in front of each line. */
static size_t prefix_length(struct failure_line line)
{
	size_t end = 0, digits;

	while (end < line.len && line.text[end] == ' ')
		end++;
	digits = end;
	while (end < line.len && line.text[end] >= '0' && line.text[end] <= '9')
		end++;
	if (end > digits)
		return end + 2 <= line.len && strncmp(line.text + end, ": ", 2) == 0 ? end + 2 : 0;
	if (line.len == 0 || line.text[0] != '[')
		return actor_prefix_length(line);
	end = find(line, 0, "]:", 2, true);
	if (end == line.len || end > 32)
		return host_prefix_length(line);
	end += 2;
	return end < line.len && line.text[end] == ' ' ? end + 1 : end;
}

struct failure_line failure_line_trim(struct failure_line line)
{
	size_t skip = 0;

	if (line.len > FAILURE_LINE_MAX)
		line.len = FAILURE_LINE_MAX;
	line = trim_blanks(line);
	for (size_t at = 0; at < line.len; at++)
		if (line.text[at] == '\r')
			skip = at + 1;
	line.text += skip;
	line.len -= skip;
	for (int i = 0; i < PREFIXES_MAX; i++) {
		skip = prefix_length(line);
		line.text += skip;
		line.len -= skip;
	}
	return line;
}

static const struct failure_table *const tables[] = {
	&failure_program_table,
	&failure_service_table,
	&failure_device_table,
	&failure_engine_table,
};

const struct failure_row *failure_row_at(size_t n)
{
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		if (n < tables[i]->count)
			return &tables[i]->rows[n];
		n -= tables[i]->count;
	}
	return NULL;
}

const struct failure_row *failure_row_find(enum failure_source source, struct failure_line line,
					   struct failure_line *ret_found)
{
	const struct failure_row *row;

	for (size_t i = 0; (row = failure_row_at(i)); i++) {
		bool meant = row->source == source ||
			     (source == FAILURE_RAISED && row->source == FAILURE_LOG);

		if (meant &&
		    failure_matches(row->pattern, source == FAILURE_ENGINE, line, ret_found))
			return row;
	}
	return NULL;
}
