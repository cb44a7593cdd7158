/* Shared by the files of the classification: bounded text, matching, the log scan. */
#ifndef STK_FLOW_FAILURE_INTERNAL_H
#define STK_FLOW_FAILURE_INTERNAL_H

#include "jobs/flow/failure.h"

/* failure.c: classifies the command alone, as if nobody had stopped it. */
void failure_classify_command(const struct failure_evidence *evidence,
			      struct failure_classification *ret);

/* Writes ret->signature again, after class, rule, evidence or proof were changed. */
void failure_sign(struct failure_classification *ret);

static inline bool failure_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char failure_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Text that is built in a buffer of fixed size; always terminated, cut when it is full. */
struct fixed_string {
	char *text;
	size_t size, len;
};

void failure_text_start(struct fixed_string *string, char *text, size_t size);
/* Adds text as data: bytes that are not UTF-8 or that control a terminal become '?'. */
void failure_text_add(struct fixed_string *string, const char *text, size_t len);
void failure_text_adds(struct fixed_string *string, const char *text);
/* Adds a line of evidence, after a newline unless it is the first; a long line is cut. */
void failure_text_add_line(struct fixed_string *string, struct failure_line line);
/* The same, but so that the text at `must` is visible: if the first part of a long line does not
 * reach it, the beginning is cut off instead. */
void failure_text_add_line_from(struct fixed_string *string, struct failure_line line, size_t must);

/* Returns where the text begins in the line, ignoring case; the line's length if absent. */
size_t failure_find(struct failure_line line, const char *text);

struct failure_table {
	const struct failure_row *rows;
	size_t count;
};
extern const struct failure_table failure_program_table, failure_service_table,
	failure_device_table, failure_engine_table;

/* True if the two are the same but for the case of their letters. */
bool failure_is_alike(const char *text, const char *other, size_t len);

/* True if the row's pattern matches. `exact`: case counts. `ret_found` (may be NULL) is the text
 * that the first wildcard matched. */
bool failure_matches(const char *pattern, bool exact, struct failure_line line,
		     struct failure_line *ret_found);

/* Returns the first row of that source that matches, or NULL; rows of the log are asked about an
 * exception (FAILURE_RAISED) too. */
const struct failure_row *failure_row_find(enum failure_source source, struct failure_line line,
					   struct failure_line *ret_found);

/* Returns the line as a terminal would show it: the text after the last carriage return, without
 * a rank's prefix ("[rank0]: "), bounded by FAILURE_LINE_MAX. */
struct failure_line failure_line_trim(struct failure_line line);

/* The same; `ret_voice` is that prefix, which tells the lines of one rank from those of others;
 * empty if absent. */
struct failure_line failure_line_split(struct failure_line line, struct failure_line *ret_voice);

/* Lines of a log that one rank wrote, by the prefix that launchers put in front; lines of other
 * ranks read as empty. */
struct failure_view {
	const struct failure_log *log;
	struct failure_line voice; /* text NULL: any rank */
};
struct failure_line failure_view_line(const struct failure_view *view, size_t i);

bool failure_is_same(struct failure_line a, struct failure_line b);

#define FAILURE_TRACEBACK "Traceback (most recent call last)"

/* An exception as it stands outside a traceback: "pkg.OddError: text". */
bool failure_is_raised(struct failure_line line);

/* The same inside a traceback, where a name is enough. */
bool failure_ends_traceback(struct failure_line line);

/* A frame of a traceback, also one with a box drawn around it. */
bool failure_is_indented(struct failure_line line);

/* "During handling of the above exception…" and its like. */
bool failure_is_chain(struct failure_line line);

/* The first root cause in the log, or the first symptom if there is none. `killed`: only rows
 * with `if_killed` count. */
struct failure_finding {
	bool found;
	bool symptom;
	bool guess;                    /* a mere complaint among the last lines of a log */
	const struct failure_row *row; /* NULL: an exception or a complaint that no row knows */
	struct failure_line capture;   /* text that the first wildcard matched */
	const struct failure_log *log; /* log of the finding */
	struct failure_line voice;     /* prefix of the rank; text NULL: any rank */
	size_t line;                   /* index of its line; of a traceback, the last line */
	size_t traceback;              /* index of the traceback's first line, else `line` */
};
void failure_scan(const struct failure_log *log, bool killed, struct failure_finding *ret);

/* Returns the part of a line that counts as evidence: without advice, and empty if the program
 * says that it goes on. */
struct failure_line failure_witness(struct failure_line line);

/* Returns the signal that ended the first rank to fail, as a launcher's summary tells it; 0 if
 * none does. */
int failure_reported_signal(const struct failure_log *log);

/* Finds the first line that one of the user's own rows matches. */
void failure_scan_own(const struct failure_own *own, const struct failure_log *log,
		      struct failure_finding *ret);

/* True if the finding is an exception and not a mere complaint. */
bool failure_is_exception(const struct failure_finding *finding);

/* True if it is an exception that Python raises by itself, such as TypeError. */
bool failure_is_mistake(const struct failure_finding *finding);

/* Adds the lines of a finding: the last frames of a traceback and its exception, and the last
 * exception of the chain, if there is one. */
void failure_quote(const struct failure_finding *finding, struct fixed_string *string);

/* ---- the engine's words ------------------------------------------------------------ */

/* True for SageMaker's AlgorithmError: the text after it was written by the program, or by
 * anything else in the job (facts: the text comes from /opt/ml/output/failure). It is judged as
 * a log is, never as the engine's own word. */
bool failure_is_quoted(const char *reason);
/* Returns the status in "ExitCode 1" or ", exit code: 1"; -1 if absent. */
int failure_quoted_exit(const char *reason);
/* Returns the number of lines of its ErrorMessage, at most `max`; they point into `reason`. */
size_t failure_quoted_lines(const char *reason, struct failure_line *ret, size_t max);

/* True for a quota that is large enough for the request, but in use now: it becomes free again.
 * The words are SageMaker's ResourceLimitExceeded. */
bool failure_quota_frees(const char *reason);

#endif
