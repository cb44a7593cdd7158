/*
 * The first cause in a log: Python tracebacks and the lines that rows know. See
 * failure_inside.h.
 */
#include "jobs/flow/failure_inside.h"

#include <string.h>

#include "jobs/flow/flow.h"

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
static const char *const harmless[] = { "etrying", "NON-FATAL", "gnoring", "will retry",
					"retry loop" };

/* NCCL says what went wrong at this level, and warns of nothing. */
static const char *const spoken[] = { "NCCL WARN ", "CCOM WARN " };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool contains(struct failure_line line, const char *text)
{
	return failure_matches(text, line, NULL);
}

static bool says_harmless(struct failure_line line)
{
	for (size_t i = 0; i < COUNT(harmless); i++)
		if (contains(line, harmless[i]))
			return true;
	return false;
}

/* What follows the text in the line; all of it where the text is not there. */
static struct failure_line after(struct failure_line line, const char *text)
{
	size_t len = strlen(text);

	for (size_t at = 0; at + len <= line.len; at++)
		if (strncmp(line.text + at, text, len) == 0)
			return (struct failure_line){ line.text + at + len, line.len - at - len };
	return line;
}

/* The part of a line that counts as evidence. */
static struct failure_line witness(struct failure_line line)
{
	if (says_harmless(line))
		return (struct failure_line){ line.text, 0 };
	for (size_t i = 0; i < COUNT(spoken); i++)
		line = after(line, spoken[i]);
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

/* Also the lines of a box that is drawn around a traceback. */
static bool is_indented(struct failure_line line)
{
	return line.len > 0 &&
	       (line.text[0] == ' ' || line.text[0] == '\t' || line.text[0] == '\xe2');
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

/* The same outside a traceback, where "INFO: text" and "UserWarning: text" have that
 * form too. */
static bool is_named_exception(struct failure_line line)
{
	bool dotted = false, lower = false;

	size_t end = 0;

	if (!is_exception(line))
		return false;
	for (; end < line.len && line.text[end] != ':'; end++) {
		dotted = dotted || line.text[end] == '.';
		lower = lower || (line.text[end] >= 'a' && line.text[end] <= 'z');
	}
	if (end + 1 < line.len && line.text[end + 1] != ' ')
		return false;
	line.len = end;
	return (dotted || lower) && !contains(line, "Warning");
}

static bool is_chain(struct failure_line line)
{
	return contains(line, "During handling of the above exception") ||
	       contains(line, "The above exception was the direct cause");
}

struct scan {
	bool killed;
	bool inside;  /* a traceback */
	bool follows; /* it is chained to the one before */
	bool passed;  /* the last traceback was no root cause */
	bool pending; /* it was one that no row knows: what it is chained to may be known */
	size_t begin, foreign;
	const struct failure_log *log;
	struct failure_finding *ret;
};

/* Of several symptoms the first, but one that calls for another try before one that
 * would stop the run, and any of them before one that says nothing. */
static int weight(const struct failure_row *row)
{
	if (row->class == CLASS_UNKNOWN)
		return 0;
	return retry_action(row->class) == ACTION_STOP ? 1 : 2;
}

/* Take a finding; true if it is a root cause. */
static bool take(struct scan *scan, const struct failure_row *row, struct failure_line capture,
		 size_t line, size_t traceback)
{
	bool symptom = row && row->role == FAILURE_SYMPTOM;
	const struct failure_finding *known = scan->ret;

	if (scan->killed && !(row && row->if_killed))
		return false;
	if (symptom && known->found && (!known->symptom || weight(row) <= weight(known->row)))
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

/* The end of a traceback; true if the search is over. */
static bool see_exception(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row = failure_row_find(FAILURE_RAISED, line, &capture);
	bool follows = scan->follows;

	scan->inside = false;
	scan->follows = false;
	/* What follows from another exception says nothing new, unless it is known. */
	if (follows && !(row && row->role == FAILURE_ROOT))
		return false;
	if (!take(scan, row, capture, i, scan->begin)) {
		scan->passed = true;
		return false;
	}
	scan->pending = !row;
	return row;
}

static bool see_inside(struct scan *scan, struct failure_line line, size_t i)
{
	if (line.len == 0 || is_indented(line))
		return false;
	if (is_exception(line))
		return see_exception(scan, line, i);
	if (scan->foreign++ > FOREIGN_LINES)
		scan->inside = false;
	return false;
}

/* After a traceback that no row knows only its chain is of interest. */
static bool see_pending(struct scan *scan, struct failure_line line)
{
	scan->follows = scan->follows || is_chain(line);
	return scan->foreign++ > FOREIGN_LINES;
}

static bool see_line(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row;
	bool named;

	if (contains(line, TRACEBACK_BEGIN)) {
		if (scan->pending && !scan->follows)
			return true;
		scan->inside = true;
		scan->begin = i;
		scan->foreign = 0;
		return false;
	}
	if (scan->inside)
		return see_inside(scan, line, i);
	if (line.len == 0)
		return false;
	if (scan->pending)
		return see_pending(scan, line);
	/* A chain binds the next traceback to this one; anything else looses it. */
	scan->follows = scan->passed && is_chain(line);
	if (!scan->follows)
		scan->passed = false;
	named = is_named_exception(line) && !says_harmless(line);
	row = named ? failure_row_find(FAILURE_RAISED, line, &capture)
		    : failure_row_find(FAILURE_LOG, witness(line), &capture);
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
