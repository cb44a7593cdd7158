/*
 * The first cause in a log: Python tracebacks and the lines that rows know. See
 * failure_inside.h.
 */
#include "jobs/flow/failure_inside.h"

#include <stdio.h>
#include <string.h>

#include "jobs/flow/flow.h"

#define QUOTE_FRAMES  6  /* lines of a traceback that are kept: the last three frames */
#define QUOTE_BEFORE  4  /* indented lines before a cause outside a traceback */
#define FOREIGN_LINES 50 /* of other processes, in the middle of a traceback */
#define MESSAGE_LINES 8  /* of an exception, behind its first one */
#define LAST_LINES    20 /* in which an exception without a traceback counts */
#define GUESS_AFTER   2  /* lines of an exception's message that help to guess its class */
/* See struct failure_text. Chosen by cross-validation over the corpus: a lead twice as
 * large would lose two right verdicts for each transient failure that it spares the stop.
 * A log in which nobody complains is mostly one that was cut off. */
#define PRESUMED_MISTAKE  9
#define LEAD_OF_MISTAKE   (-18)
#define LEAD_OF_EXCEPTION 3
#define LEAD_OF_COMPLAINT 4
#define LEAD_OF_ENGINE    8
#define LEAD_OF_SILENT    8
#define WORDS_OF_SILENT   3
#define TRACEBACK_BEGIN   "Traceback (most recent call last)"
/* What goes wrong while an object is taken away is no cause. */
#define IGNORED_BEGIN "Exception ignored in"

/* What follows such words advises and does not witness. */
static const char *const advice[] = {
	"may be", "might be", "please ", "consider ", "warning",   "warn ",
	"warn]",  "warn:",    "hint: ",  "you ",      "make sure", "if this",
};

/* A line with such words says itself that it is not the end. */
static const char *const harmless[] = {
	"retrying",
	"NON-FATAL",
	"ignoring",
	"will retry",
	"retry loop",
	"CUDA initialization: Found no", /* what PyTorch says on any machine without a GPU */
};

/* These say what went wrong at this level, and warn of nothing; Kubernetes has only
 * two levels of events. */
static const char *const spoken[] = {
	"NCCL WARN ",
	"CCOM WARN ",
	"  Warning  ",
	"submitit WARNING ",
	"WARNING:torch.distributed.elastic.rendezvous",
	"UserWarning: CUDA initialization: ",
	"WARNING worker.py:", /* Ray, of a node that it lost */
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool contains(struct failure_line line, const char *text)
{
	return failure_matches(text, false, line, NULL);
}

static bool says_harmless(struct failure_line line)
{
	for (size_t i = 0; i < COUNT(harmless); i++)
		if (contains(line, harmless[i]))
			return true;
	return false;
}

static struct failure_line line_at(const struct failure_log *log, size_t i)
{
	return failure_line_trim(log->lines[i]);
}

/* What follows the text in the line; all of it where the text is not there. */
static struct failure_line after(struct failure_line line, const char *text)
{
	size_t at = failure_find(line, text), len = strlen(text);

	if (at == line.len)
		return line;
	return (struct failure_line){ line.text + at + len, line.len - at - len };
}

struct failure_line failure_witness(struct failure_line line)
{
	if (says_harmless(line))
		return (struct failure_line){ line.text, 0 };
	for (size_t i = 0; i < COUNT(spoken); i++)
		line = after(line, spoken[i]);
	for (size_t i = 0; i < COUNT(advice); i++)
		line.len = failure_find(line, advice[i]);
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

/* The same outside a traceback, where "INFO: text" and "Failures:" have that form too. */
static bool is_named_exception(struct failure_line line)
{
	static const char *const ends[] = { "Error",   "Exception", "Interrupt", "Exit",
					    "Invalid", "Timeout",   "NotFound",  "Failure",
					    "Failed",  "Expired",   "Fault",     "Abort" };
	size_t end = 0;

	if (!is_exception(line))
		return false;
	while (end < line.len && line.text[end] != ':')
		end++;
	if (end + 1 < line.len && line.text[end + 1] != ' ')
		return false;
	for (size_t i = 0; i < COUNT(ends); i++) {
		size_t len = strlen(ends[i]);

		if (end >= len && memcmp(line.text + end - len, ends[i], len) == 0)
			return true;
	}
	line.len = end;
	return failure_find(line, ".") < line.len && !contains(line, "Warning");
}

static bool is_chain(struct failure_line line)
{
	return contains(line, "During handling of the above exception") ||
	       contains(line, "The above exception was the direct cause");
}

struct scan {
	bool killed;
	bool inside;  /* a traceback */
	bool ignored; /* the next traceback is said to be of no account */
	bool follows; /* it is chained to the one before */
	bool passed;  /* the last traceback was no root cause */
	bool pending; /* it was one that no row knows: what it is chained to may be known */
	size_t begin, foreign;
	struct failure_line prefix; /* of the lines of this traceback, as loggers put it */
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

/* Exceptions of Python that are mistakes in the code, whatever they say. */
static bool is_plain_mistake(struct failure_line line)
{
	static const char *const names[] = { "^TypeError",         "^AttributeError",
					     "^NameError",         "^IndexError",
					     "^KeyError",          "^ZeroDivisionError",
					     "^UnboundLocalError", "^NotImplementedError" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (contains(line, names[i]))
			return true;
	return false;
}

/* The mark under a part of a source line: "    ~~~~^^^^". */
static bool is_underline(struct failure_line line)
{
	for (size_t i = 0; i < line.len; i++)
		if (!strchr(" ^~", line.text[i]))
			return false;
	return true;
}

/* What is known of an exception by the source line above it: an assertion often says
 * no more than that. */
static const struct failure_row *row_of_source(const struct failure_log *log, size_t i)
{
	struct failure_line ignored;

	while (i-- > 0) {
		struct failure_line line = failure_line_trim(log->lines[i]);

		if (!is_underline(line))
			return is_indented(line) ? failure_row_find(FAILURE_SOURCE, line, &ignored)
						 : NULL;
	}
	return NULL;
}

/* What is known of an exception that says nothing in its own line, "RuntimeError:", but
 * in those that follow; *line becomes the one that is known. */
static const struct failure_row *row_of_message(const struct failure_log *log, size_t *line,
						struct failure_line *ret_capture)
{
	struct failure_line first = line_at(log, *line);
	const struct failure_row *row;

	while (first.len > 0 && first.text[first.len - 1] == ' ')
		first.len--;
	if (first.len == 0 || first.text[first.len - 1] != ':')
		return NULL;
	for (size_t i = *line + 1; i < log->count && i <= *line + GUESS_AFTER; i++) {
		row = failure_row_find(FAILURE_RAISED, line_at(log, i), ret_capture);
		if (row) {
			*line = i;
			return row;
		}
	}
	return NULL;
}

/* What is known of an exception; NULL: nothing. */
static const struct failure_row *row_of_exception(const struct failure_log *log, size_t *line,
						  struct failure_line text,
						  struct failure_line *ret_capture)
{
	const struct failure_row *row = failure_row_find(FAILURE_RAISED, text, ret_capture);

	if (!row)
		row = row_of_message(log, line, ret_capture);
	return row ? row : row_of_source(log, *line);
}

/* The end of a traceback; true if the search is over. */
static bool see_exception(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row = row_of_exception(scan->log, &i, line, &capture);
	bool follows = scan->follows;

	scan->inside = false;
	scan->follows = false;
	if (scan->ignored) {
		scan->ignored = false;
		return false;
	}
	/* What follows from another exception says nothing new, unless it is known. */
	if (follows && (!row || row->role != FAILURE_ROOT))
		return false;
	if (!take(scan, row, capture, i, scan->begin)) {
		scan->passed = true;
		return false;
	}
	scan->pending = !row;
	return !scan->pending;
}

/* Loggers put the same in front of each line, but for the time. */
static struct failure_line without_prefix(struct failure_line line, struct failure_line prefix)
{
	if (line.len < prefix.len)
		return line;
	for (size_t i = 0; i < prefix.len; i++) {
		char a = line.text[i], b = prefix.text[i];

		if (a != b && !(a >= '0' && a <= '9' && b >= '0' && b <= '9'))
			return line;
	}
	return (struct failure_line){ line.text + prefix.len, line.len - prefix.len };
}

static bool see_inside(struct scan *scan, struct failure_line line, size_t i)
{
	line = without_prefix(line, scan->prefix);
	if (line.len == 0 || is_indented(line))
		return false;
	if (is_exception(line))
		return see_exception(scan, line, i);
	if (scan->foreign++ > FOREIGN_LINES)
		scan->inside = false;
	return false;
}

/* After a traceback that no row knows its chain is of interest, and what else its
 * message says: some have several lines. */
static bool see_pending(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row = NULL;

	scan->follows = scan->follows || is_chain(line);
	if (scan->foreign++ > FOREIGN_LINES)
		return true;
	if (!scan->follows && scan->foreign <= MESSAGE_LINES && !is_exception(line))
		row = failure_row_find(FAILURE_LOG, failure_witness(line), &capture);
	/* A peer's symptoms are no part of it. */
	if (!row || retry_action(row->class) == ACTION_STOP ||
	    (row->role == FAILURE_SYMPTOM && row->class != CLASS_COMPILE))
		return false;
	*scan->ret = (struct failure_finding){ .found = true,
					       .row = row,
					       .capture = capture,
					       .log = scan->log,
					       .line = i,
					       .traceback = scan->begin };
	return true;
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
		scan->prefix = (struct failure_line){
			line.text, (size_t)(after(line, TRACEBACK_BEGIN).text - line.text) -
					   strlen(TRACEBACK_BEGIN)
		};
		return false;
	}
	if (contains(line, IGNORED_BEGIN))
		scan->ignored = true;
	if (scan->inside)
		return see_inside(scan, line, i);
	if (line.len == 0)
		return false;
	if (scan->pending)
		return see_pending(scan, line, i);
	/* A chain binds the next traceback to this one; anything else looses it. */
	scan->follows = scan->passed && is_chain(line);
	if (!scan->follows)
		scan->passed = false;
	named = is_named_exception(line) && !says_harmless(line);
	row = named ? failure_row_find(FAILURE_RAISED, line, &capture)
		    : failure_row_find(FAILURE_LOG, failure_witness(line), &capture);
	if (named && !row)
		row = row_of_message(scan->log, &i, &capture);
	return row && take(scan, row, capture, i, i);
}

/* Does the line speak of something that went wrong? */
static bool is_complaint(struct failure_line line)
{
	static const char *const words[] = {
		"error",     "fail",          "fatal",     "unable",     "cannot",  "could not",
		"denied",    "exceed",        "critical",  "abort",      "can't",   "couldn't",
		"no such",   "not found",     "invalid",   "refused",    "reject",  "corrupt",
		"exhausted", "evicted",       "preempted", "terminated", "missing", "insufficient",
		"killed",    "not available", "shutdown",  "unsupported"
	};

	for (size_t i = 0; i < COUNT(words); i++)
		if (contains(line, words[i]))
			return true;
	return false;
}

static bool see_last_exception(const struct failure_log *log, size_t i, struct failure_finding *ret)
{
	struct failure_line line = line_at(log, i), capture = { 0 };

	if (!is_named_exception(line) || says_harmless(line))
		return false;
	if (failure_row_find(FAILURE_RAISED, line, &capture))
		return false; /* it was looked at, and passed over for a reason */
	*ret = (struct failure_finding){
		.found = true, .row = row_of_source(log, i), .log = log, .line = i, .traceback = i
	};
	return true;
}

static bool see_last_complaint(const struct failure_log *log, size_t i, struct failure_finding *ret)
{
	struct failure_line line = failure_witness(line_at(log, i)), capture = { 0 };

	if (!is_complaint(line) || failure_row_find(FAILURE_LOG, line, &capture))
		return false;
	*ret = (struct failure_finding){ .found = true, .log = log, .line = i, .traceback = i };
	return true;
}

/* The beginning of a traceback may have been cut off, or never written: an exception
 * among the last lines is one; else what the last lines complain of. */
static void see_end(const struct failure_log *log, struct failure_finding *ret)
{
	size_t first = log->count, kept = 0;

	while (first > 0 && kept < LAST_LINES)
		if (line_at(log, --first).len > 0)
			kept++;
	for (size_t i = log->count; i-- > first;)
		if (see_last_exception(log, i, ret))
			return;
	for (size_t i = log->count; i-- > first;)
		if (see_last_complaint(log, i, ret))
			return;
}

enum failure_class failure_guess_finding(const struct failure_finding *finding)
{
	struct failure_line line = line_at(finding->log, finding->line);
	struct failure_text text = { .log = finding->log, .first = finding->traceback };

	text.end = finding->line + 1;
	if (is_exception(line)) {
		text.end += GUESS_AFTER;
		text.is_mistake = is_plain_mistake(line) ? PRESUMED_MISTAKE : 0;
		text.lead_of_stop = is_plain_mistake(line) ? LEAD_OF_MISTAKE : LEAD_OF_EXCEPTION;
	} else {
		text.first = text.first > LAST_LINES ? text.first - LAST_LINES : 0;
		text.end += LAST_LINES;
		text.lead_of_stop = LEAD_OF_COMPLAINT;
	}
	return failure_guess(&text);
}

enum failure_class failure_guess_end(const struct failure_log *log, const char *engine)
{
	static const struct failure_log nothing;
	struct failure_text text = { .log = log ? log : &nothing, .engine = engine };

	text.end = text.log->count;
	text.first = text.end > LAST_LINES ? text.end - LAST_LINES : 0;
	text.skip_advice = true;
	text.words_min = engine ? 0 : WORDS_OF_SILENT;
	text.lead_of_stop = engine ? LEAD_OF_ENGINE : LEAD_OF_SILENT;
	text.lead_of_other = engine ? 0 : LEAD_OF_SILENT;
	return failure_guess(&text);
}

bool failure_is_exception(const struct failure_finding *finding)
{
	return is_exception(line_at(finding->log, finding->line));
}

/* Notebooks name the exception in front of a traceback's first line too: where the log is
 * cut off before its end, that is all there is. */
static void see_cut_off(struct scan *scan)
{
	struct failure_line line = scan->prefix, capture = { 0 };
	const struct failure_row *row;

	while (line.len > 0 && line.text[line.len - 1] == ' ')
		line.len--;
	if (!scan->inside || scan->ret->found || !is_named_exception(line))
		return;
	row = failure_row_find(FAILURE_RAISED, line, &capture);
	if (row)
		take(scan, row, capture, scan->begin, scan->begin);
}

void failure_scan(const struct failure_log *log, bool killed, struct failure_finding *ret)
{
	struct scan scan = { .killed = killed, .log = log, .ret = ret };

	*ret = (struct failure_finding){ 0 };
	for (size_t i = 0; i < log->count; i++)
		if (see_line(&scan, failure_line_trim(log->lines[i]), i))
			return;
	see_cut_off(&scan);
	if (!killed && (!ret->found || (ret->symptom && weight(ret->row) == 0)))
		see_end(log, ret);
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

/* Where in its line the words are that made it a finding: some programs tell their whole
 * command before what went wrong. */
static size_t root_of(const struct failure_finding *finding)
{
	struct failure_line line = line_at(finding->log, finding->line);
	char words[64] = "";
	size_t at;

	if (!finding->row || finding->row->pattern[0] == '^')
		return 0;
	snprintf(words, sizeof words, "%.*s", (int)strcspn(finding->row->pattern, "*"),
		 finding->row->pattern);
	at = failure_find(line, words);
	return at < line.len ? at : 0;
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
		slip_add_line_from(slip, line_at(log, finding->line), root_of(finding));
		return;
	}
	quote_frames(log, begin, finding->line, QUOTE_FRAMES, slip);
	slip_add_line(slip, line_at(log, finding->line));
	quote_chain(log, finding->line, slip);
}
