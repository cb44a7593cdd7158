/* What the files of the classification share: bounded text, matching, the log scan. */
#ifndef STK_FLOW_FAILURE_INSIDE_H
#define STK_FLOW_FAILURE_INSIDE_H

#include "jobs/flow/failure.h"

/* A text being built in a fixed place; always terminated, cut when it is full. */
struct slip {
	char *text;
	size_t size, len;
};

void slip_start(struct slip *slip, char *text, size_t size);
/* As data: bytes that are not UTF-8 or that control a terminal become '?'. */
void slip_add(struct slip *slip, const char *text, size_t len);
void slip_adds(struct slip *slip, const char *text);
/* A line of evidence, with a newline before it unless it is the first; of a long
 * one only the beginning. */
void slip_add_line(struct slip *slip, struct failure_line line);
/* The same, but so that what begins at `must` is seen: where the beginning of a long line
 * does not reach it, it is what goes. */
void slip_add_line_from(struct slip *slip, struct failure_line line, size_t must);

/* Where the text begins in the line, in capitals or not; the line's length: nowhere. */
size_t failure_find(struct failure_line line, const char *text);

struct failure_table {
	const struct failure_row *rows;
	size_t count;
};
extern const struct failure_table failure_program_table, failure_service_table,
	failure_device_table, failure_engine_table;

/* Does the row's pattern match? `exact`: capitals count.
 * `ret_found` (may be NULL) is what '*' stands for. */
bool failure_matches(const char *pattern, bool exact, struct failure_line line,
		     struct failure_line *ret_found);

/* The first row of that source that matches, or NULL; an exception (FAILURE_RAISED)
 * is a line of the log too. */
const struct failure_row *failure_row_find(enum failure_source source, struct failure_line line,
					   struct failure_line *ret_found);

/* What a terminal would have shown of it: what follows the last carriage return,
 * without a rank's prefix ("[rank0]: "), bounded by FAILURE_LINE_MAX. */
struct failure_line failure_line_trim(struct failure_line line);

/* The first root cause in the log, or the first symptom where there is none.
 * `killed`: only rows count that are good for a killed process. */
struct failure_finding {
	bool found;
	bool symptom;
	const struct failure_row *row; /* NULL: an exception or a complaint that no row knows */
	struct failure_line capture;   /* what '*' stands for */
	const struct failure_log *log; /* whose */
	size_t line;                   /* where it was said; of a traceback, its last line */
	size_t traceback;              /* where the traceback began, else `line` */
};
void failure_scan(const struct failure_log *log, bool killed, struct failure_finding *ret);

/* What is judged by its words. Leads are sixths of a natural logarithm: 6 is 2.7 to 1. */
struct failure_text {
	const struct failure_log *log;
	size_t first, end;  /* its lines */
	const char *engine; /* more words; or NULL */
	bool skip_advice;   /* look at what the lines witness alone */
	int words_min;      /* with fewer that are known it is CLASS_UNKNOWN */
	int is_mistake;     /* what speaks for a mistake in the code before any word */
	/* What a class for which the run stops must be ahead by of those for which it
	 * does not, and the other way round; else it is CLASS_UNKNOWN: a doubt costs one
	 * more attempt, not the run. */
	int lead_of_stop, lead_of_other;
};
enum failure_class failure_guess(const struct failure_text *text);

/* The part of a line that counts as evidence: neither advice nor what goes on. */
struct failure_line failure_witness(struct failure_line line);

/* The same of a finding that no row knows. */
enum failure_class failure_guess_finding(const struct failure_finding *finding);

/* The same of a log in whose last lines nobody complains, and the engine's words. */
enum failure_class failure_guess_end(const struct failure_log *log, const char *engine);

/* Is it an exception, and no mere complaint? */
bool failure_is_exception(const struct failure_finding *finding);

/* The lines of a finding: the last frames of a traceback and its exception, the
 * last one of the chain where there is one. */
void failure_quote(const struct failure_finding *finding, struct slip *slip);

/* ---- the engine's words ------------------------------------------------------------ */

/* SageMaker's AlgorithmError: what follows is what the program, or whoever runs in the job,
 * has written (facts: the text comes from /opt/ml/output/failure). It is judged as a log is,
 * never as the engine's own word. */
bool failure_is_quoted(const char *reason);
/* "ExitCode 1", ", exit code: 1": that; -1: it is not said. */
int failure_quoted_exit(const char *reason);
/* The lines of its ErrorMessage, at most `max`; they point into `reason`. */
size_t failure_quoted_lines(const char *reason, struct failure_line *ret, size_t max);

/* A quota that is large enough for what was asked, and in use now: it becomes free again.
 * The words are SageMaker's ResourceLimitExceeded. */
bool failure_quota_frees(const char *reason);

#endif
