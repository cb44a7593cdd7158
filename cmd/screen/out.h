/*
 * Output of stoker: results on stdout, messages on stderr. Every line passes through text_escape,
 * so no outside text can control a terminal or pass for a line of ours.
 *
 * cmd/screen: everything that reaches stdout, stderr or the terminal. Lines, messages and JSON
 * objects, output to slow readers, the live block, and the line of a spec with a caret. It knows
 * no command, and of a run only what the live block shows; texts are made in cmd/view.
 */
#ifndef STK_CMD_SCREEN_OUT_H
#define STK_CMD_SCREEN_OUT_H

#include <stdbool.h>

#include "jobs/base/err.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/text/js.h"
#include "jobs/report/text_style.h"

struct out_options {
	bool json, quiet, verbose;
	const char *color; /* "auto", "always", "never" or NULL */
};

void out_init(const struct out_options *options);
bool out_is_json(void);
bool out_is_verbose(void);

/* True if a block may be redrawn in place: stderr is a capable terminal, and none of --quiet,
 * --json and --verbose is given. */
bool out_draws(void);
/* Return the styles of stdout and of stderr; borrowed. UTF-8 by the locale's name. */
const struct text_style *out_style(void);
const struct text_style *out_style_err(void);
/* Returns columns and rows of the terminal at stderr; 80 by 24 if unknown. */
void out_size(size_t *ret_columns, size_t *ret_rows);

/* Returns the columns of the terminal at stdout; 0 if that is none. */
size_t out_width(void);
/* True if stderr is a terminal, of any kind. */
bool out_err_is_terminal(void);

/* Sets how stdout is written: line by line, or in bulk, in blocks, for a reader that wants all
 * lines. */
void out_bulk(bool bulk);

/* Prints a line on stdout; nothing with --json. */
void out_line(const char *fmt, ...) STK_PRINTF(1, 2);
/* Prints a line of outside text on stdout, escaped; nothing with --json. */
void out_text(const char *text, size_t len);
/* Prints several lines of our own on stdout; nothing with --json. */
void out_block(const char *text);
/* Prints finished lines on stdout: each with its newline, and already escaped; nothing with --json.
 */
void out_finished(const char *lines);
/* Prints a JSON object on stdout as one line. */
void out_json(const json_t *value);
void out_json_exact(const json_t *value); /* with all digits of its numbers */

/* Print messages on stderr; a note is omitted with --quiet, and with --json too. */
void out_note(const char *fmt, ...) STK_PRINTF(1, 2);
void out_warning(const char *fmt, ...) STK_PRINTF(1, 2);
void out_hint(const char *fmt, ...) STK_PRINTF(1, 2);
void out_error(const struct err *err);
void out_error_line(const char *line); /* a formatted problem */
/* Prints, in a command that goes on after a failure, the error kept so far, if any, and keeps this
 * one, which the command returns at its end. */
void out_error_later(struct err **kept, struct err **why);
/* With --json prints the error that ends the command on stdout, as its last line: {"error":{…}}. */
void out_error_json(const struct err *err);
/* Prints lines that show where a message belongs, each with its newline and already escaped; with
 * `note` omitted in the same cases as a note. */
void out_quote(const char *lines, bool note);
/* Prints a note with the time before it and, if a block is drawn, a sign; then it is cut to a few
 * rows. `at` is in the form of when_instant(). */
void out_event(const char *at, enum status_icon mark, const char *sentence);
/* Prints a line on stdout: its label, a sign and the text; nothing with --json. */
void out_marked(const char *label, enum status_icon mark, const char *fmt, ...) STK_PRINTF(3, 4);

/* Sends each further line for stderr, newline included and escaped, to `take` instead of the
 * terminal, so that it can be placed above a live block. NULL ends that. */
void out_divert(void (*sink)(void *arg, const char *line, size_t len), void *arg);

/* From now on slow readers of stdout or stderr are not waited for: output that they do not accept
 * is kept (events and messages: OUT_ROOM bytes each, beyond which some are dropped), and sent by
 * the loop as they accept it. */
#define OUT_ROOM ((size_t)64 << 20)
void out_keep(void);
void out_keep_with(struct loop *loop); /* NULL: with the next line instead */
/* Waits for readers again, beginning with the output kept, unless none of it is accepted for a
 * minute. Without this call out_finish() sends it, within a short limit. */
void out_keep_no_more(void);
/* From now on readers are waited for, but no longer than until loop_stop_pending(). */
void out_attend(void);
/* Writes bytes to the terminal at stderr; call only when it has accepted those before. */
void out_terminal(const char *bytes, size_t len);
bool out_terminal_is_ready(void);

/* Call at the end: checks that stdout was really written. A full disk is an error, not silence; a
 * reader that left is not. */
int out_finish(struct err **err);

#endif
