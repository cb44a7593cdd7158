/*
 * The first cause in a log: Python tracebacks and the lines that rows know. See
 * failure_inside.h.
 */
#include "jobs/flow/failure_inside.h"

#include <string.h>

#define QUOTE_FRAMES    6  /* lines of a traceback that are kept: the last three frames */
#define QUOTE_BEFORE    4  /* indented lines before a cause outside a traceback */
#define FOREIGN_LINES   50 /* of other processes, in the middle of a traceback */
#define TRACEBACK_BEGIN "Traceback (most recent call last)"

/* What follows such words advises and does not witness. */
static const char *const advice[] = {
	"may be", "might be", "lease ", "onsider ", "arning", "WARN",
	"int: ",  "HINT",     "you ",   "ake sure", "f this",
};

/* A line with such words says itself that it is not the end. */
static const char *const harmless[] = { "etrying", "NON-FATAL", "gnoring", "will retry" };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool contains(struct failure_line line, const char *text)
{
	return failure_matches(text, line, NULL);
}

/* The part of a line that counts as evidence. */
static struct failure_line witness(struct failure_line line)
{
	for (size_t i = 0; i < COUNT(harmless); i++)
		if (contains(line, harmless[i]))
			return (struct failure_line){ line.text, 0 };
	for (size_t at = 0; at < line.len; at++) {
		struct failure_line rest = { line.text + at, line.len - at };

		for (size_t i = 0; i < COUNT(advice); i++) {
			size_t len = strlen(advice[i]);

			if (len <= rest.len && rest.text[0] == advice[i][0] &&
			    strncmp(rest.text, advice[i], len) == 0)
				line.len = at;
		}
	}
	return line;
}

static bool is_indented(struct failure_line line)
{
	return line.len > 0 && (line.text[0] == ' ' || line.text[0] == '\t');
}

/* "pkg.Error: text", "KeyboardInterrupt": how a traceback ends. */
static bool is_exception(struct failure_line line)
{
	size_t at = 0, name = 0;
	bool dotted = false;

	for (; at < line.len; at++) {
		char c = line.text[at];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
			    (at > name && c >= '0' && c <= '9');

		if (c == '.' && at > name) {
			dotted = true;
			name = at + 1;
		} else if (!word) {
			break;
		}
	}
	if (at == name || (at < line.len && line.text[at] != ':'))
		return false;
	return dotted || (line.text[name] >= 'A' && line.text[name] <= 'Z');
}

static bool is_chain(struct failure_line line)
{
	return contains(line, "During handling of the above exception") ||
	       contains(line, "The above exception was the direct cause");
}

struct scan {
	bool killed;
	bool inside;  /* a traceback */
	bool follows; /* it is chained to one that was no root cause */
	bool passed;  /* the last traceback was none */
	size_t begin, foreign;
	const struct failure_log *log;
	struct failure_finding *ret;
};

/* Take a finding; true if the search is over. */
static bool take(struct scan *scan, const struct failure_row *row, struct failure_line capture,
		 size_t line, size_t traceback)
{
	bool symptom = row && row->role == FAILURE_SYMPTOM;

	if (scan->killed && !(row && row->if_killed))
		return false;
	if (symptom && scan->ret->found)
		return false;
	*scan->ret = (struct failure_finding){ .found = true,
					       .symptom = symptom,
					       .row = row,
					       .capture = capture,
					       .log = scan->log,
					       .line = line,
					       .traceback = traceback };
	return !symptom;
}

static bool see_exception(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row = failure_row_find(FAILURE_LOG, line, &capture);
	bool follows = scan->follows;

	scan->inside = false;
	scan->follows = false;
	if (follows || !take(scan, row, capture, i, scan->begin)) {
		scan->passed = true;
		return false;
	}
	return true;
}

static bool see_line(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row;

	if (contains(line, TRACEBACK_BEGIN)) {
		scan->follows = scan->follows && scan->passed;
		scan->inside = true;
		scan->begin = i;
		scan->foreign = 0;
		return false;
	}
	if (scan->inside) {
		if (line.len == 0 || is_indented(line))
			return false;
		if (is_exception(line))
			return see_exception(scan, line, i);
		if (scan->foreign++ > FOREIGN_LINES)
			scan->inside = false;
		return false;
	}
	if (line.len == 0)
		return false;
	/* A chain binds the next traceback to this one; anything else looses it. */
	scan->follows = scan->passed && is_chain(line);
	if (!scan->follows)
		scan->passed = false;
	row = failure_row_find(FAILURE_LOG, witness(line), &capture);
	return row && take(scan, row, capture, i, i);
}

void failure_scan(const struct failure_log *log, bool killed, struct failure_finding *ret)
{
	struct scan scan = { .killed = killed, .log = log, .ret = ret };

	*ret = (struct failure_finding){ 0 };
	for (size_t i = 0; i < log->count; i++)
		if (see_line(&scan, failure_line_trim(log->lines[i]), i))
			return;
}

static struct failure_line line_at(const struct failure_log *log, size_t i)
{
	return failure_line_trim(log->lines[i]);
}

/* The last indented lines before `end`, not before `begin`. */
static void quote_frames(const struct failure_log *log, size_t begin, size_t end, size_t max,
			 struct slip *slip)
{
	size_t first = end, kept = 0;

	while (first > begin && kept < max)
		if (is_indented(line_at(log, --first)))
			kept++;
	for (size_t i = first; i < end; i++)
		if (is_indented(line_at(log, i)))
			slip_add_line(slip, line_at(log, i));
}

/* The end of the chain that begins after line `from`: its last exception. */
static void quote_chain(const struct failure_log *log, size_t from, struct slip *slip)
{
	size_t sentence = 0, exception = 0;
	bool inside = false;

	for (size_t i = from + 1; i < log->count; i++) {
		struct failure_line line = line_at(log, i);

		if (line.len == 0 || (inside && is_indented(line)))
			continue;
		if (is_chain(line)) {
			sentence = i;
		} else if (sentence > exception && contains(line, TRACEBACK_BEGIN)) {
			inside = true;
		} else if (inside && is_exception(line)) {
			exception = i;
			inside = false;
		} else {
			break;
		}
	}
	if (exception == 0)
		return;
	slip_add_line(slip, line_at(log, sentence));
	slip_add_line(slip, line_at(log, exception));
}

void failure_quote(const struct failure_finding *finding, struct slip *slip)
{
	const struct failure_log *log = finding->log;
	size_t begin = finding->traceback;

	if (begin == finding->line) {
		/* A syntax error shows its line without a traceback. */
		while (begin > 0 && finding->line - begin < QUOTE_BEFORE &&
		       is_indented(line_at(log, begin - 1)))
			begin--;
		quote_frames(log, begin, finding->line, QUOTE_BEFORE, slip);
		slip_add_line(slip, line_at(log, finding->line));
		return;
	}
	quote_frames(log, begin, finding->line, QUOTE_FRAMES, slip);
	slip_add_line(slip, line_at(log, finding->line));
	quote_chain(log, finding->line, slip);
}
