/*
 * What leaves stoker: results on stdout, messages on stderr. Every line passes
 * through text_escape, so no outside text can steer a terminal or pass for a
 * line of ours.
 */
#ifndef STK_CMD_OUT_H
#define STK_CMD_OUT_H

#include <stdbool.h>

#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/report/look.h"

struct out_options {
	bool json, quiet, verbose;
	const char *color; /* "auto", "always", "never" or NULL */
};

void out_init(const struct out_options *options);
bool out_is_json(void);
bool out_is_verbose(void);

/* May a block be redrawn in place? stderr is a terminal that can do that, and neither
 * --quiet, --json nor --verbose asks for something else. */
bool out_draws(void);
/* How states look on stdout, and on stderr; borrowed. UTF-8 by the locale's name. */
const struct look *out_look(void);
const struct look *out_look_err(void);
/* Columns and rows of the terminal that stderr is; 80 by 24 where nothing tells. */
void out_size(size_t *ret_columns, size_t *ret_rows);

/* Lines on stdout leave one by one, unless they are in bulk: then whoever reads
 * them wants all of them, and they leave in blocks. */
void out_bulk(bool bulk);

/* A line on stdout; nothing with --json. */
void out_line(const char *fmt, ...) STK_PRINTF(1, 2);
/* A line of outside text on stdout, made harmless; nothing with --json. */
void out_text(const char *text, size_t len);
/* Several lines of our own on stdout; nothing with --json. */
void out_block(const char *text);
/* A JSON object on stdout as one line. */
void out_json(const json_t *value);

/* Messages on stderr; a note is left out with --quiet, and with --json too. */
void out_note(const char *fmt, ...) STK_PRINTF(1, 2);
void out_warning(const char *fmt, ...) STK_PRINTF(1, 2);
void out_hint(const char *fmt, ...) STK_PRINTF(1, 2);
void out_error(const struct err *err);
void out_error_line(const char *line); /* a formatted problem */
/* Lines that show where a message belongs, each with its newline and made harmless
 * before; with `note` left out as a note is. */
void out_quote(const char *lines, bool note);
/* A note with the time before it, and where a block is drawn a sign; there it is cut to
 * a few rows. `at` is "12:30:59". */
void out_event(const char *at, enum look_mark mark, const char *sentence);
/* A line on stdout: its label, a sign and the text; nothing with --json. */
void out_marked(const char *label, enum look_mark mark, const char *fmt, ...) STK_PRINTF(3, 4);

/* From now on `take` gets each line for stderr, newline included and made harmless,
 * instead of the terminal: whoever draws there puts it above what is drawn. NULL ends
 * that. */
void out_divert(void (*take)(void *arg, const char *line, size_t len), void *arg);

/* At the end: was stdout really written? A full disk is an error, not silence;
 * a reader that left is not. */
int out_finish(struct err **err);

#endif
