/*
 * Programs of the image that a check-up runs: started with an end, their output kept up to
 * a bound, and nothing of them left when that is over.
 */
#ifndef STK_NODE_HEALTH_TOOL_H
#define STK_NODE_HEALTH_TOOL_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"
#include "jobs/node/envlist.h"

#define TOOL_OUTPUT_MAX ((size_t)1 << 20) /* bytes of stdout and of stderr; the rest is dropped */

struct tool_result {
	struct sb out, err;
	bool hung;  /* it had not ended by then, and was killed */
	int status; /* as a shell gives it */
};

/* Where the program is: along the environment's PATH, then where the Neuron SDK is
 * installed (/opt/aws/neuron/bin). NULL: nowhere. Yours to free. */
char *tool_find(const struct envlist *env, const char *name);

/* Run it in `folder` and wait for its end, until `end` at most. It leads a session of its own,
 * all of which is killed then. -1: it cannot be started. */
int tool_run(const struct envlist *env, const char *folder, char *const *argv, struct mono end,
	     struct tool_result *ret, struct err **err);
void tool_release(struct tool_result *result); /* for AUTO(); { 0 } is fine */

/* The last line that says something, of stderr, else of stdout, made safe for a terminal and
 * not longer than a line of a report may be. Yours to free; empty where there is none. */
char *tool_last_words(const struct tool_result *result);

#endif
