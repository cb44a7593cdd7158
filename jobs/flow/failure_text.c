/* Bounded text and pattern matching for outside bytes: see failure_internal.h. */
#include "jobs/flow/failure_internal.h"

#include <string.h>

/* Bytes quoted of one line of evidence. */
#define QUOTE_MAX         400
#define QUOTE_BEHIND      200 /* part of it for the text that must be seen, and what follows */
#define QUOTE_AHEAD       20
#define ACTOR_PREFIX_MAX  120
#define STREAM_PREFIX_MAX 80
/* Launchers within launchers: "7: [rank80]: ". */
#define HOST_PREFIX_MAX 64

#define PREFIXES_MAX 6

void failure_text_start(struct fixed_string *string, char *text, size_t size)
{
	*string = (struct fixed_string){ .text = text, .size = size };
	text[0] = '\0';
}

/* Returns the length of the UTF-8 character at `text`, 0 if it must not be shown. */
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

void failure_text_add(struct fixed_string *string, const char *text, size_t len)
{
	while (len > 0) {
		size_t n = character(text, len);
		size_t used = n > 0 ? n : 1;

		if (string->len + used >= string->size)
			break;
		if (n > 0)
			memcpy(string->text + string->len, text, n);
		else
			string->text[string->len] = '?';
		string->len += used;
		text += used;
		len -= used;
	}
	string->text[string->len] = '\0';
}

void failure_text_adds(struct fixed_string *string, const char *text)
{
	failure_text_add(string, text, strlen(text));
}

static void fixed_string_add_cut(struct fixed_string *string, struct failure_line line)
{
	bool cut = line.len > QUOTE_MAX;

	if (cut) {
		line.len = QUOTE_MAX;
		while (line.len > 0 && ((unsigned char)line.text[line.len] & 0xc0) == 0x80)
			line.len--;
	}
	failure_text_add(string, line.text, line.len);
	if (cut)
		failure_text_adds(string, " ...");
}

void failure_text_add_line_from(struct fixed_string *string, struct failure_line line, size_t must)
{
	size_t from = must < QUOTE_MAX - QUOTE_BEHIND ? 0 : must;

	while (from > 0 && must - from < QUOTE_AHEAD)
		from--;
	for (size_t at = from; from > 0 && at < must; at++)
		if (line.text[at] == ' ')
			from = at + 1;
	while (from > 0 && from < line.len && ((unsigned char)line.text[from] & 0xc0) == 0x80)
		from++;
	if (string->len > 0)
		failure_text_add(string, "\n", 1);
	if (from > 0)
		failure_text_adds(string, "... ");
	line.text += from;
	line.len -= from;
	fixed_string_add_cut(string, line);
}

void failure_text_add_line(struct fixed_string *string, struct failure_line line)
{
	failure_text_add_line_from(string, line, 0);
}

bool failure_is_alike(const char *text, const char *other, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != other[i] && failure_lower(text[i]) != failure_lower(other[i]))
			return false;
	return true;
}

/* Returns where `needle` begins in the line at or after `from`; the line's length if absent. */
static size_t find_exact(struct failure_line line, size_t from, const char *needle, size_t len)
{
	const char *at =
		from < line.len ? memmem(line.text + from, line.len - from, needle, len) : NULL;

	return at ? (size_t)(at - line.text) : line.len;
}

/* The same in any case: programs differ. */
static size_t find_alike(struct failure_line line, size_t from, const char *needle, size_t len)
{
	char first = failure_lower(needle[0]);

	for (size_t at = from; at + len <= line.len; at++)
		if (failure_lower(line.text[at]) == first &&
		    failure_is_alike(line.text + at, needle, len))
			return at;
	return line.len;
}

size_t failure_find(struct failure_line line, const char *text)
{
	return find_alike(line, 0, text, strlen(text));
}

/* Returns where a part of a pattern begins at or after `from`, only there if `fixed`. An empty
 * part follows a closing wildcard: it matches at the end of the line. */
static size_t find_literal(struct failure_line line, size_t from, const char *part, size_t len,
			   bool fixed, bool exact)
{
	if (len == 0)
		return fixed ? from : line.len;
	if (fixed)
		return from + len <= line.len &&
				       (exact ? memcmp(line.text + from, part, len) == 0
					      : failure_is_alike(line.text + from, part, len))
			       ? from
			       : line.len;
	return exact ? find_exact(line, from, part, len) : find_alike(line, from, part, len);
}

/* Returns the number of digits at `at`, if they are a number above zero; else 0. */
static size_t number_length(struct failure_line line, size_t at)
{
	bool above_zero = false;
	size_t end = at;

	while (end < line.len && failure_is_digit(line.text[end]))
		above_zero = line.text[end++] != '0' || above_zero;
	return above_zero ? end - at : 0;
}

bool failure_matches(const char *pattern, bool exact, struct failure_line line,
		     struct failure_line *ret_found)
{
	bool fixed = *pattern == '^', captured = false;
	char wildcard = '\0'; /* wildcard in front of this part */
	size_t at = 0;        /* start of the text that it matches */

	if (fixed)
		pattern++;
	for (;;) {
		size_t len = strcspn(pattern, "*#"), begin = at;

		if (wildcard == '#') {
			begin += number_length(line, at);
			if (begin == at)
				return false;
			fixed = true;
		}
		begin = find_literal(line, begin, pattern, len, fixed, exact);
		if (len > 0 && begin == line.len)
			return false;
		if (wildcard && !captured && ret_found)
			*ret_found = (struct failure_line){ line.text + at, begin - at };
		captured = wildcard;
		at = begin + len;
		wildcard = pattern[len];
		if (!wildcard)
			return true;
		fixed = false;
		pattern += len + 1;
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
	for (end++; end < line.len && failure_is_digit(line.text[end]); end++)
		digits++;
	return digits > 0 && end < line.len && line.text[end] == ']' ? end + 1 : 0;
}

/* "worker-1: " of pdsh, "10.0.0.1: ", "trainer-3  | " of Compose: a host's name with its number. */
static size_t numbered_host_length(struct failure_line line)
{
	static const char signs[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	size_t end = 0, dashes = 0, dots = 0;

	while (end < line.len && end < HOST_PREFIX_MAX && strchr(signs, line.text[end])) {
		dashes += line.text[end] == '-';
		dots += line.text[end++] == '.';
	}
	if (end == line.len || (dashes == 0 && dots != 3) || !failure_is_digit(line.text[end - 1]))
		return 0;
	if (line.text[end] == ':' && end + 1 < line.len && line.text[end + 1] == ' ')
		return end + 2;
	while (line.text[end] == ' ') /* a line does not end with a blank */
		end++;
	return end + 1 < line.len && memcmp(line.text + end, "| ", 2) == 0 ? end + 2 : 0;
}

/* Ray: "(Worker pid=42417, ip=[fdbd::2207]) ", with the line's own indentation after it. */
static size_t actor_prefix_length(struct failure_line line)
{
	size_t end = 0, pid;

	while (end < line.len && line.text[end] == ' ')
		end++;
	if (end == line.len || line.text[end] != '(')
		return 0;
	pid = find_exact(line, end, " pid=", 5);
	end = find_exact(line, end, ")", 1);
	if (pid > end || end + 1 >= line.len || end > ACTOR_PREFIX_MAX)
		return 0;
	/* If the prefix is coloured, the colour is reset before the space. */
	return line.text[end + 1] == ' ' ? end + 2 : line.text[end + 1] == '\x1b' ? end + 1 : 0;
}

/* Open MPI: "[1,3]<stderr>:", on SageMaker "[1,mpirank:3,algo-1]<stderr>:"; Horovod's launcher
 * has the time in front: "Fri Sep 25 16:52:53 2020[0]<stderr>:". */
static size_t stream_prefix_length(struct failure_line line)
{
	static const char *const streams[] = { "]<stdout>:", "]<stderr>:", "]<stddiag>:" };

	for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
		size_t len = strlen(streams[i]), end;
		struct failure_line head = line;

		if (head.len >= STREAM_PREFIX_MAX + len)
			head.len = STREAM_PREFIX_MAX - 1 + len;
		end = find_exact(head, 0, streams[i], len);
		if (end < head.len)
			return end + len;
	}
	return 0;
}

/* "[rank0]: ", "[3]: ", "3: ", " 7: ": launchers put the rank in front of each line. */
static size_t prefix_length(struct failure_line line)
{
	size_t end = stream_prefix_length(line), digits;

	if (end > 0)
		return end;
	while (end < line.len && line.text[end] == ' ')
		end++;
	digits = end;
	while (end < line.len && failure_is_digit(line.text[end]))
		end++;
	if (end > digits)
		return end + 2 <= line.len && strncmp(line.text + end, ": ", 2) == 0
			       ? end + 2
			       : numbered_host_length(line);
	if (line.len == 0 || line.text[0] != '[') {
		end = actor_prefix_length(line);
		return end > 0 ? end : numbered_host_length(line);
	}
	end = find_exact(line, 0, "]:", 2);
	if (end == line.len || end > 32)
		return host_prefix_length(line);
	end += 2;
	/* Torchrun's --tee has nothing between "[default3]:" and the line. */
	if (failure_matches("^[default", true, line, NULL))
		return end;
	return end < line.len && line.text[end] == ' ' ? end + 1 : end;
}

/* Returns the length of a sequence that only colours a line, such as "\x1b[36m"; else 0. */
static size_t colour_length(struct failure_line line)
{
	size_t end = 2;

	if (!failure_matches("^\x1b[", true, line, NULL))
		return 0;
	while (end < line.len && (line.text[end] == ';' || failure_is_digit(line.text[end])))
		end++;
	return end < line.len && line.text[end] == 'm' ? end + 1 : 0;
}

/* "2026-11-25T03:14:07.123Z ": the time that container engines and services put in front of each
 * line (RFC 3339, in UTC). */
static size_t time_length(struct failure_line line)
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t end = 0;

	for (; form[end]; end++)
		if (end == line.len || !(form[end] == '0' ? failure_is_digit(line.text[end])
							  : form[end] == line.text[end]))
			return 0;
	while (end < line.len && (line.text[end] == '.' || failure_is_digit(line.text[end])))
		end++;
	return end + 1 < line.len && memcmp(line.text + end, "Z ", 2) == 0 ? end + 2 : 0;
}

/* Removes the next prefix from the line; false if there is none. *voice becomes the prefix that
 * names the rank. */
static bool strip_prefix(struct failure_line *line, struct failure_line *voice)
{
	size_t skip = colour_length(*line);
	const char *name;

	if (skip > 0) {
		if (voice->len > 0 && skip < line->len && line->text[skip] == ' ')
			skip++;
	} else if ((skip = time_length(*line)) == 0) {
		skip = prefix_length(*line);
		if (skip == 0)
			return false;
		*voice = (struct failure_line){ line->text, skip };
		/* The time may be in front of the rank. */
		name = line->text[0] == '(' ? NULL : memrchr(line->text, '[', skip);
		if (name)
			*voice = (struct failure_line){ name, (size_t)(line->text + skip - name) };
	}
	line->text += skip;
	line->len -= skip;
	return true;
}

struct failure_line failure_line_split(struct failure_line line, struct failure_line *ret_voice)
{
	const char *shown;

	if (line.len > FAILURE_LINE_MAX)
		line.len = FAILURE_LINE_MAX;
	line = trim_blanks(line);
	shown = line.len > 0 ? memrchr(line.text, '\r', line.len) : NULL;
	if (shown) {
		line.len -= (size_t)(shown + 1 - line.text);
		line.text = shown + 1;
	}
	*ret_voice = (struct failure_line){ line.text, 0 };
	for (int i = 0; i < PREFIXES_MAX && strip_prefix(&line, ret_voice); i++)
		;
	*ret_voice = trim_blanks(*ret_voice);
	return line;
}

struct failure_line failure_line_trim(struct failure_line line)
{
	struct failure_line voice;

	return failure_line_split(line, &voice);
}

bool failure_is_same(struct failure_line a, struct failure_line b)
{
	return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

struct failure_line failure_view_line(const struct failure_view *view, size_t i)
{
	struct failure_line voice;
	struct failure_line line = failure_line_split(view->log->lines[i], &voice);

	if (view->voice.text && !failure_is_same(voice, view->voice))
		line.len = 0;
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
