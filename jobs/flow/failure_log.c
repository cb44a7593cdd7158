/*
 * The first cause in a log: Python tracebacks and the lines that rows know. See
 * failure_internal.h.
 */
#include "jobs/flow/failure_internal.h"

#include <stdio.h>
#include <string.h>

#include "jobs/flow/flow.h"

#define FOREIGN_LINES  50 /* lines of other processes, in the middle of a traceback */
#define MESSAGE_LINES  8  /* lines of an exception's message, behind the first */
#define LAST_LINES     20 /* last lines in which an exception without a traceback counts */
#define FINAL_LINES    3  /* last lines in which a symptom counts that would stop the run */
#define VOICES_MAX     80 /* ranks that speak in one log */
#define MESSAGE_BEHIND 2  /* lines of an exception's message behind its own */
/* Errors while an object is destroyed are not a cause. */
#define IGNORED_BEGIN "Exception ignored in"
#define OF_RANK       "last): (RANK "

/* Text behind such words is advice, not evidence. */
static const char *const advice[] = {
	"may be", "might be", "please ", "consider ", "warning",   "warn ",
	"warn]",  "warn:",    "hint: ",  "you ",      "make sure", "if this",
};

/* A line with such words says itself that the program goes on. */
static const char *const harmless[] = {
	"retrying",
	"NON-FATAL",
	"ignoring",
	"will retry",
	"retry loop",
	"CUDA initialization: Found no", /* PyTorch on any machine without a GPU */
	"failed call to cuInit",         /* TensorFlow on such a machine */
	"Error while decoding stream",   /* FFmpeg goes on with the next frame */
	"no action required",            /* the kernel, on errors that the hardware corrected */
	"HTTP Request: * \"HTTP/",       /* httpx: an answer, whatever it is */
};

/* Lines at this level report an error, not a warning; Kubernetes has only two levels of events. */
static const char *const spoken[] = {
	"NCCL WARN ",
	"CCOM WARN ",
	"  Warning  ",
	"submitit WARNING ",
	"WARNING:torch.distributed.elastic.rendezvous",
	"UserWarning: CUDA initialization: ",
	"WARNING worker.py:", /* Ray, on a node that it lost */
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool contains(struct failure_line line, const char *text)
{
	return failure_matches(text, false, line, NULL);
}

static bool contains_any(struct failure_line line, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (contains(line, texts[i]))
			return true;
	return false;
}

static bool says_harmless(struct failure_line line)
{
	return contains_any(line, harmless, COUNT(harmless));
}

/* Returns the text behind `text` in the line; the whole line if it is absent. */
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

/* True also for the lines of a box that is drawn around a traceback. */
bool failure_is_indented(struct failure_line line)
{
	return line.len > 0 &&
	       (line.text[0] == ' ' || line.text[0] == '\t' || line.text[0] == '\xe2');
}

/* "pkg.Error: text", "KeyboardInterrupt": how a traceback ends. */
bool failure_ends_traceback(struct failure_line line)
{
	size_t at = 0, name = 0;
	bool dotted = false;

	for (; at < line.len; at++) {
		char c = line.text[at];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
			    (at > name && failure_is_digit(c));

		if (c == '.' && at > name) {
			dotted = true;
			name = at + 1;
		} else if (!word) {
			break;
		}
	}
	if (at == name || (at < line.len && line.text[at] != ':'))
		return false;
	return dotted || line.text[name] <= 'Z';
}

/* The same outside a traceback, where "INFO: text" and "Failures:" have that form too. */
static bool is_named_exception(struct failure_line line)
{
	static const char *const ends[] = { "Error",   "Exception", "Interrupt", "Exit",
					    "Invalid", "Timeout",   "NotFound",  "Failure",
					    "Failed",  "Expired",   "Fault",     "Abort" };
	size_t end = 0;

	if (!failure_ends_traceback(line))
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

bool failure_is_raised(struct failure_line line)
{
	return is_named_exception(line) && !says_harmless(line);
}

bool failure_is_chain(struct failure_line line)
{
	return contains(line, "During handling of the above exception") ||
	       contains(line, "The above exception was the direct cause");
}

/* Returns the first of the last `count` lines that are not empty and were not survived. */
static size_t end_begins(const struct failure_log *log, size_t count)
{
	struct failure_view view = { .log = log };
	size_t first = log->count, kept = 0;

	while (first > log->survived && kept < count)
		if (failure_view_line(&view, --first).len > 0)
			kept++;
	return first;
}

struct scan {
	size_t end; /* first of the last lines of the log */
	bool killed;
	bool inside;  /* in a traceback */
	bool ignored; /* the next traceback is declared irrelevant */
	bool follows; /* the next traceback is chained to the one before */
	bool passed;  /* the last traceback was not a root cause */
	bool pending; /* no row knows the last one: a row may know its chain */
	size_t begin, foreign;
	struct failure_line prefix; /* prefix of the lines of this traceback, as loggers put it */
	struct failure_view view;
	struct failure_finding *ret;
};

/* Priority of a symptom: the first one wins, but one that calls for another try comes before one
 * that would stop the run, and any of them before one of class UNKNOWN. */
static int weight(const struct failure_row *row)
{
	if (row->class == CLASS_UNKNOWN)
		return 0;
	return retry_rows[row->class].action == ACTION_STOP ? 1 : 2;
}

/* A command that a shell does not find is not a cause if the program went on without it: a
 * symptom that would stop the run counts only among the last lines of a log. A symptom of a
 * class with few retries does not explain a kill. */
static bool is_idle(const struct scan *scan, const struct failure_row *row, size_t line)
{
	if (scan->killed)
		return retry_rows[row->class].limit >= 0;
	return retry_rows[row->class].action == ACTION_STOP && line < scan->end;
}

/* Take a finding; true if it is a root cause. An exception that no row knows, behind a
 * symptom that calls for another try, mostly follows from it. */
static bool accept_finding(struct scan *scan, const struct failure_row *row,
			   struct failure_line capture, size_t line, size_t traceback)
{
	bool symptom = row && row->role == FAILURE_SYMPTOM;
	const struct failure_finding *known = scan->ret;

	if (scan->killed && !(row && row->if_killed))
		return false;
	if (symptom && is_idle(scan, row, line))
		return false;
	if (!row && known->found && weight(known->row) > 1)
		return false;
	/* The row that is known is of a symptom too: behind an exception that no row knows, only a
	 * root counts. */
	if (symptom && known->found && weight(row) <= weight(known->row))
		return false;
	*scan->ret = (struct failure_finding){ .found = true,
					       .symptom = symptom,
					       .row = row,
					       .capture = capture,
					       .log = scan->view.log,
					       .voice = scan->view.voice,
					       .line = line,
					       .traceback = traceback };
	return !symptom;
}

/* True for the mark under a part of a source line: "    ~~~~^^^^". */
static bool is_underline(struct failure_line line)
{
	for (size_t i = 0; i < line.len; i++)
		if (!strchr(" ^~", line.text[i]))
			return false;
	return true;
}

/* Returns the row that knows an exception by the source line above it: an assertion often says
 * no more than that. */
static const struct failure_row *row_of_source(const struct failure_view *view, size_t i)
{
	struct failure_line ignored;

	while (i-- > 0) {
		struct failure_line line = failure_view_line(view, i);

		if (!is_underline(line))
			return failure_is_indented(line)
				       ? failure_row_find(FAILURE_SOURCE, line, &ignored)
				       : NULL;
	}
	return NULL;
}

/* Returns the row that knows an exception by the lines behind it, if its own says nothing, such
 * as "RuntimeError:"; *line becomes the line that the row knows. */
static const struct failure_row *row_of_message(const struct failure_view *view, size_t *line,
						struct failure_line *ret_capture)
{
	struct failure_line first = failure_view_line(view, *line);
	const struct failure_row *row;
	int behind = 0;

	if (first.text[first.len - 1] != ':')
		return NULL;
	for (size_t i = *line + 1; i < view->log->count && behind < MESSAGE_BEHIND; i++) {
		struct failure_line next = failure_view_line(view, i);

		behind += next.len > 0;
		row = next.len > 0 ? failure_row_find(FAILURE_RAISED, next, ret_capture) : NULL;
		if (row) {
			*line = i;
			return row;
		}
	}
	return NULL;
}

/* Returns the row that knows an exception, NULL if none does. */
static const struct failure_row *row_of_exception(const struct failure_view *view, size_t *line,
						  struct failure_line text,
						  struct failure_line *ret_capture)
{
	const struct failure_row *row = failure_row_find(FAILURE_RAISED, text, ret_capture);

	if (!row)
		row = row_of_message(view, line, ret_capture);
	return row ? row : row_of_source(view, *line);
}

/* The end of a traceback; true if the search is over. */
static bool see_exception(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row = row_of_exception(&scan->view, &i, line, &capture);
	bool follows = scan->follows;

	scan->inside = false;
	scan->follows = false;
	if (scan->ignored) {
		scan->ignored = false;
		return false;
	}
	/* An exception that follows from another one says nothing new, unless a row knows it. */
	if (follows && (!row || row->role != FAILURE_ROOT))
		return false;
	if (!accept_finding(scan, row, capture, i, scan->begin)) {
		scan->passed = true;
		return false;
	}
	scan->pending = !row;
	return !scan->pending;
}

/* Loggers put the same prefix in front of each line, but for the time. */
static struct failure_line without_prefix(struct failure_line line, struct failure_line prefix)
{
	if (line.len < prefix.len)
		return line;
	for (size_t i = 0; i < prefix.len; i++) {
		char a = line.text[i], b = prefix.text[i];

		if (a != b && !(failure_is_digit(a) && failure_is_digit(b)))
			return line;
	}
	return (struct failure_line){ line.text + prefix.len, line.len - prefix.len };
}

static bool see_inside(struct scan *scan, struct failure_line line, size_t i)
{
	line = without_prefix(line, scan->prefix);
	if (line.len == 0 || failure_is_indented(line))
		return false;
	if (failure_ends_traceback(line))
		return see_exception(scan, line, i);
	if (scan->foreign++ > FOREIGN_LINES)
		scan->inside = false;
	return false;
}

/* The chain of a traceback that no row knows is of interest, and the rest of its message: some have
 * several lines. */
static bool see_pending(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row = NULL;

	scan->follows = scan->follows || failure_is_chain(line);
	if (scan->foreign++ > FOREIGN_LINES)
		return true;
	if (!scan->follows && scan->foreign <= MESSAGE_LINES && !failure_ends_traceback(line))
		row = failure_row_find(FAILURE_LOG, failure_witness(line), &capture);
	/* Symptoms of a peer are not part of it. */
	if (!row || retry_rows[row->class].action == ACTION_STOP ||
	    (row->role == FAILURE_SYMPTOM && row->class != CLASS_COMPILE))
		return false;
	*scan->ret = (struct failure_finding){ .found = true,
					       .row = row,
					       .capture = capture,
					       .log = scan->view.log,
					       .voice = scan->view.voice,
					       .line = i,
					       .traceback = scan->begin };
	return true;
}

static bool see_line(struct scan *scan, struct failure_line line, size_t i)
{
	struct failure_line capture = { 0 };
	const struct failure_row *row;
	bool named;

	if (contains(line, FAILURE_TRACEBACK)) {
		/* PyTorch's CheckpointException has the traceback of each rank in its message:
		 * the cause. */
		if (scan->pending && contains(line, OF_RANK))
			*scan->ret = (struct failure_finding){ 0 };
		else if (scan->pending && !scan->follows)
			return true;
		scan->pending = scan->pending && scan->ret->found;
		scan->inside = true;
		scan->begin = i;
		scan->foreign = 0;
		scan->prefix = (struct failure_line){
			line.text, (size_t)(after(line, FAILURE_TRACEBACK).text - line.text) -
					   strlen(FAILURE_TRACEBACK)
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
	/* A chain binds the next traceback to this one; anything else releases it. */
	scan->follows = scan->passed && failure_is_chain(line);
	if (!scan->follows)
		scan->passed = false;
	named = failure_is_raised(line);
	row = named ? failure_row_find(FAILURE_RAISED, line, &capture)
		    : failure_row_find(FAILURE_LOG, failure_witness(line), &capture);
	if (named && !row)
		row = row_of_message(&scan->view, &i, &capture);
	return row && accept_finding(scan, row, capture, i, i);
}

/* True if the line reports that something went wrong. */
static bool is_complaint(struct failure_line line)
{
	static const char *const words[] = {
		"error",     "fail",          "fatal",     "unable",     "cannot",  "could not",
		"denied",    "exceed",        "critical",  "abort",      "can't",   "couldn't",
		"no such",   "not found",     "invalid",   "refused",    "reject",  "corrupt",
		"exhausted", "evicted",       "preempted", "terminated", "missing", "insufficient",
		"killed",    "not available", "shutdown",  "unsupported"
	};

	return contains_any(line, words, COUNT(words));
}

static bool see_last_exception(const struct failure_view *view, size_t i,
			       struct failure_finding *ret)
{
	struct failure_line line = failure_view_line(view, i), capture = { 0 };

	if (!failure_is_raised(line))
		return false;
	if (failure_row_find(FAILURE_RAISED, line, &capture))
		return false; /* already seen, and passed over for a reason */
	*ret = (struct failure_finding){ .found = true,
					 .row = row_of_source(view, i),
					 .log = view->log,
					 .line = i,
					 .traceback = i };
	return true;
}

static bool see_last_complaint(const struct failure_view *view, size_t i,
			       struct failure_finding *ret)
{
	struct failure_line line = failure_witness(failure_view_line(view, i)), capture = { 0 };

	if (!is_complaint(line) || failure_row_find(FAILURE_LOG, line, &capture))
		return false;
	*ret = (struct failure_finding){
		.found = true, .guess = true, .log = view->log, .line = i, .traceback = i
	};
	return true;
}

/* The beginning of a traceback may have been cut off, or never written: an exception among the
 * last lines counts as one; else a complaint in the last lines. */
static void see_end(const struct failure_log *log, struct failure_finding *ret)
{
	struct failure_view view = { .log = log };
	size_t first = end_begins(log, LAST_LINES);

	for (size_t i = log->count; i-- > first;)
		if (see_last_exception(&view, i, ret))
			return;
	for (size_t i = log->count; i-- > first;)
		if (see_last_complaint(&view, i, ret))
			return;
}

/* Python exceptions that by their name blame the code or its input, whatever their text.
 * RuntimeError and OSError do not: libraries raise them for the world outside. */
static const char *const mistakes[] = {
	"^TypeError",   "^AttributeError",    "^NameError",         "^IndexError",
	"^KeyError",    "^ZeroDivisionError", "^UnboundLocalError", "^NotImplementedError",
	"^ValueError:", "^AssertionError",    "^RecursionError",
};

bool failure_is_mistake(const struct failure_finding *finding)
{
	struct failure_view view = { finding->log, finding->voice };

	return contains_any(failure_view_line(&view, finding->line), mistakes, COUNT(mistakes));
}

bool failure_is_exception(const struct failure_finding *finding)
{
	struct failure_view view = { finding->log, finding->voice };

	return failure_ends_traceback(failure_view_line(&view, finding->line));
}

/* Notebooks name the exception in front of a traceback's first line too: if the log is cut off
 * before its end, that is all there is. */
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
		accept_finding(scan, row, capture, scan->begin, scan->begin);
}

/* Scans the lines of one rank. */
static void scan_voice(const struct failure_log *log, struct failure_line voice, bool killed,
		       size_t end, struct failure_finding *ret)
{
	struct scan scan = { .killed = killed, .end = end, .view = { log, voice }, .ret = ret };

	*ret = (struct failure_finding){ 0 };
	for (size_t i = log->survived; i < log->count; i++) {
		struct failure_line line_voice;
		struct failure_line line = failure_line_split(log->lines[i], &line_voice);

		if ((!voice.text || failure_is_same(line_voice, voice)) && see_line(&scan, line, i))
			return;
	}
	see_cut_off(&scan);
}

/* True if `a` follows from `b`, another rank's symptom. Most exceptions after it do, but not a
 * mistake in the code of a rank that itself reports no lost peer; if some lines have no prefix,
 * their rank is not known. */
static bool follows_from(const struct failure_finding *a, const struct failure_finding *b)
{
	if (a->row || !b->symptom || weight(b->row) < 2 || b->traceback > a->traceback)
		return false;
	return a->voice.len == 0 || b->voice.len == 0 || !failure_is_mistake(a);
}

/* True if the failure of `a` comes before that of `b`, of two ranks. */
static bool is_before(const struct failure_finding *a, const struct failure_finding *b)
{
	if (follows_from(a, b))
		return false;
	if (follows_from(b, a) || (b->symptom && !a->symptom))
		return true;
	if (a->symptom != b->symptom)
		return false;
	if (a->symptom && weight(a->row) != weight(b->row))
		return weight(a->row) > weight(b->row);
	return a->traceback < b->traceback;
}

/* Lists the ranks that speak in a log, in the order in which they begin; returns their count. */
static size_t voices_of(const struct failure_log *log, struct failure_line ret[VOICES_MAX])
{
	size_t count = 0;

	for (size_t i = log->survived; i < log->count; i++) {
		struct failure_line voice;
		size_t at = 0;

		failure_line_split(log->lines[i], &voice);
		while (at < count && !failure_is_same(ret[at], voice))
			at++;
		if (at == VOICES_MAX)
			return at + 1;
		if (at == count)
			ret[count++] = voice;
	}
	return count;
}

void failure_scan(const struct failure_log *log, bool killed, struct failure_finding *ret)
{
	struct failure_line voices[VOICES_MAX];
	size_t count = voices_of(log, voices), end = end_begins(log, FINAL_LINES);

	/* More prefixes are not ranks: each line begins in another way. */
	if (count < 2 || count > VOICES_MAX) {
		voices[0] = (struct failure_line){ 0 };
		count = 1;
	}
	*ret = (struct failure_finding){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct failure_finding finding;

		scan_voice(log, voices[i], killed, end, &finding);
		if (finding.found && (!ret->found || is_before(&finding, ret)))
			*ret = finding;
	}
	if (!killed && (!ret->found || (ret->symptom && weight(ret->row) == 0)))
		see_end(log, ret);
}
