/*
 * Readings of a training log: the numbers that the spec's regular expressions find in its lines.
 * The first group of each pattern says where the number begins; the whole number is read from
 * there, also where the pattern would cut `6.25e-05` to `6.25`, or would find no sign, or no nan or
 * inf (jobs/base/text/number_pattern.h). A pattern gives one reading a line, by its first match.
 *
 * The metric called `step` drives progress, or, where there is none, that called `epoch`, whose
 * whole part is the step then; a second group in its pattern is the number of the last step, as in
 * "Epoch 3/60". Every other reading belongs to a step: to the step on its own line, else to the
 * newest step that the same node's log has told since the command's start.
 *
 * This is the one definition of a reading, for the agent, the driver and whatever reads a log
 * later.
 *
 * series: numbers of a training by step, read from its logs and kept beside them.
 */
#ifndef STK_SERIES_METRIC_READER_H
#define STK_SERIES_METRIC_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* Starts of an attempt that are told apart. */
#define METRIC_STARTS_MAX 4096
#define METRIC_DOUBT_MAX  8

struct metric_reader;

struct metric_reading {
	size_t metric; /* in the order of the plan */
	int64_t step;  /* -1: before the first step */
	double value;  /* may be infinite, or NaN */
};

/* Makes the reader of a plan; `specs` is the plan's [{"name","regex"}…]. */
int metric_reader_new(const json_t *specs, struct metric_reader **ret, struct err **err);
void metric_reader_freep(struct metric_reader **reader); /* for AUTO() */

size_t metric_reader_count(const struct metric_reader *reader);
const char *metric_reader_name(const struct metric_reader *reader, size_t metric);
/* Returns which metric is the step; SIZE_MAX: none. */
size_t metric_reader_step(const struct metric_reader *reader);

/* Reads a line of a node's log. `*current` is the newest step of that log, -1 before the first.
 * `ret` has room for a reading of each metric. Returns the number of readings; the step is
 * the first of them. */
size_t metric_reader_line(struct metric_reader *reader, int64_t *current, const char *line,
			  size_t len, struct metric_reading *ret);

/* Returns the number of the command's start, from 0, that the lines behind this line of the agent
 * are of: its reports tell that of all but the first. `start`, that of the lines before, if it does
 * not tell a later one. A later start has told no step yet. */
uint32_t metric_reader_start(const char *line, size_t len, uint32_t start);

/* Returns the last step, by the second group of the step's pattern; 0: not known. */
int64_t metric_reader_last_step(const struct metric_reader *reader);

/* Returns, once for each, the name of a metric that was given up because its pattern took too long
 * on lines of this log; else NULL. */
const char *metric_reader_given_up(struct metric_reader *reader);

/* Returns, once for each, the name of a metric of which this log has a number that may go on behind
 * a comma, such as "1,234" of which 1 is read; else NULL. `*ret_text` is that text, borrowed, and
 * shorter than METRIC_DOUBT_MAX. */
const char *metric_reader_doubted(struct metric_reader *reader, const char **ret_text);

#endif
