/* Quotation of a finding, and what a log tells beside causes: how launchers report that a rank
 * ended, and matches of the user's own rows. See failure_internal.h. */
#include "jobs/flow/failure_internal.h"

#include <stdio.h>
#include <string.h>

#define QUOTE_FRAMES 6 /* lines of a traceback that are kept: the last three frames */
#define QUOTE_BEFORE 4 /* indented lines before a cause outside a traceback */

/* Reports of launchers on how the first rank to fail ended: torchrun, Open MPI, DeepSpeed, and
 * Python's subprocess. With torchrun and DeepSpeed a status below zero is a signal; ranks that
 * they end themselves are reported after the first. */
static const struct reported_end {
	const char *pattern;
	bool is_status;
} reported_ends[] = {
	{ "failed (exitcode: *)", true },  { "exits with return code = *", true },
	{ "exited on signal # (", false }, { "<Signals.SIGKILL: #>", false },
	{ "<Signals.SIGTERM: #>", false },
};

/* Torchrun's summary, for a log in which its log line was lost: the ranks that it ended itself
 * come before the first to fail. */
#define SUMMARY_ROOT "Root Cause (first observed failure)"
#define SUMMARY_EXIT "exitcode  : *"

/* Returns the number in "9", or in a status "-9 (pid: 7)"; 0 if it is not that of a signal. */
static int signal_number(struct failure_line text, bool is_status)
{
	int number = 0;

	if (is_status && (text.len == 0 || text.text[0] != '-'))
		return 0;
	for (size_t i = is_status; i < text.len && failure_is_digit(text.text[i]); i++)
		if ((number = number * 10 + (text.text[i] - '0')) > 64)
			return 0;
	return number;
}

int failure_reported_signal(const struct failure_log *log)
{
	const struct failure_view view = { .log = log };
	bool root = false;

	for (size_t i = 0; i < log->count; i++) {
		struct failure_line line = failure_view_line(&view, i), number;

		for (size_t n = 0; n < sizeof reported_ends / sizeof reported_ends[0]; n++)
			if (failure_matches(reported_ends[n].pattern, false, line, &number))
				return signal_number(number, reported_ends[n].is_status);
		root = root || failure_find(line, SUMMARY_ROOT) < line.len;
		if (root && failure_matches(SUMMARY_EXIT, false, line, &number))
			return signal_number(
				(struct failure_line){
					number.text, (size_t)(line.text + line.len - number.text) },
				true);
	}
	return 0;
}

static const struct failure_row *own_row_find(const struct failure_own *own,
					      struct failure_line line,
					      struct failure_line *ret_found)
{
	for (size_t i = 0; i < own->count; i++)
		if (own->find(own->arg, i, line, ret_found))
			return &own->rows[i];
	return NULL;
}

void failure_scan_own(const struct failure_own *own, const struct failure_log *log,
		      struct failure_finding *ret)
{
	const struct failure_view view = { .log = log };

	*ret = (struct failure_finding){ 0 };
	for (size_t i = log->survived; i < log->count; i++) {
		struct failure_line line = failure_view_line(&view, i), capture = { 0 };
		const struct failure_row *row = own_row_find(own, line, &capture);

		if (row) {
			*ret = (struct failure_finding){ .found = true,
							 .row = row,
							 .capture = capture,
							 .log = log,
							 .line = i,
							 .traceback = i };
			return;
		}
	}
}

/* Adds the last indented lines before `end`, but none before `begin`. */
static void quote_frames(const struct failure_view *view, size_t begin, size_t end, size_t max,
			 struct fixed_string *string)
{
	size_t first = end, kept = 0;

	while (first > begin && kept < max)
		if (failure_is_indented(failure_view_line(view, --first)))
			kept++;
	for (size_t i = first; i < end; i++)
		if (failure_is_indented(failure_view_line(view, i)))
			failure_text_add_line(string, failure_view_line(view, i));
}

/* Adds the end of the chain that begins after line `from`: its last exception. */
static void quote_chain(const struct failure_view *view, size_t from, struct fixed_string *string)
{
	size_t sentence = 0, exception = 0;
	bool inside = false;

	for (size_t i = from + 1; i < view->log->count; i++) {
		struct failure_line line = failure_view_line(view, i);

		if (line.len == 0 || (inside && failure_is_indented(line)))
			continue;
		if (failure_is_chain(line)) {
			sentence = i;
		} else if (sentence > exception &&
			   failure_find(line, FAILURE_TRACEBACK) < line.len) {
			inside = true;
		} else if (inside && failure_ends_traceback(line)) {
			exception = i;
			inside = false;
		} else {
			break;
		}
	}
	if (exception == 0)
		return;
	failure_text_add_line(string, failure_view_line(view, sentence));
	failure_text_add_line(string, failure_view_line(view, exception));
}

/* Returns where the words of a finding begin in its line: some programs print their whole
 * command before the error. */
static size_t root_of(const struct failure_finding *finding)
{
	const struct failure_view view = { finding->log, finding->voice };
	struct failure_line line = failure_view_line(&view, finding->line);
	char words[64] = "";
	size_t at;

	if (!finding->row)
		return 0;
	snprintf(words, sizeof words, "%.*s", (int)strcspn(finding->row->pattern, "*"),
		 finding->row->pattern);
	at = failure_find(line, words);
	return at < line.len ? at : 0;
}

void failure_quote(const struct failure_finding *finding, struct fixed_string *string)
{
	const struct failure_view of = { finding->log, finding->voice }, *view = &of;
	size_t begin = finding->traceback;

	if (begin == finding->line) {
		/* A syntax error shows its line without a traceback, and a traceback's beginning
		 * may be lost. Indented lines above any other line are unrelated to it. */
		while (failure_is_exception(finding) && begin > 0 &&
		       finding->line - begin < QUOTE_BEFORE &&
		       failure_is_indented(failure_view_line(view, begin - 1)))
			begin--;
		quote_frames(view, begin, finding->line, QUOTE_BEFORE, string);
		failure_text_add_line_from(string, failure_view_line(view, finding->line),
					   root_of(finding));
		return;
	}
	quote_frames(view, begin, finding->line, QUOTE_FRAMES, string);
	failure_text_add_line(string, failure_view_line(view, finding->line));
	quote_chain(view, finding->line, string);
}
