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

struct out_options {
	bool json, quiet, verbose;
	const char *color; /* "auto", "always", "never" or NULL */
};

void out_init(const struct out_options *options);
bool out_is_json(void);
bool out_is_verbose(void);

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

/* At the end: was stdout really written? A full disk is an error, not silence;
 * a reader that left is not. */
int out_finish(struct err **err);

#endif
