/*
 * The values of an evaluation that its command writes itself: $STOKER_OUTPUT_DIR/metrics.json, an
 * object of names and numbers, as json.dump() of Python writes it: NaN, Infinity and -Infinity are
 * read. The file is foreign.
 */
#ifndef STK_NODE_TASKS_METRICS_FILE_H
#define STK_NODE_TASKS_METRICS_FILE_H

#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

#define METRICS_FILE       "metrics.json"
#define METRICS_FILE_MAX   ((size_t)1 << 20) /* bytes */
#define METRICS_FILE_NAMES 1000
#define METRICS_FILE_NAME  200 /* bytes of a name */

struct metrics_file {
	json_t *values;  /* owned: {name: number}, finite */
	json_t *invalid; /* owned: {name: text}: what is no finite number, as it was written */
};

void metrics_file_release(struct metrics_file *metrics); /* for AUTO() */

/* Reads the text. What is not flat, not JSON or has too many names is EXIT_RUN_FAILED, with a hint:
 * the error is the command's. */
int metrics_file_parse(const char *text, size_t len, struct metrics_file *ret, struct err **err);

/* Reads the file in a folder. Returns 1, 0 if it is absent, -1 with an error (too large, no regular
 * file, or as above; without os_errno it is the command's). */
int metrics_file_read(const char *folder, struct metrics_file *ret, struct err **err);

#endif
