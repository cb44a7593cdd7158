/*
 * Lines with which a node's log first went wrong, kept while the log streams. The lines about a
 * failure that end a job may be followed by thousands that only tell of it: tracebacks of the other
 * ranks, a launcher's summary.
 *
 * The first line that bears on a failure (failure_bears()) opens a window: the lines before it, the
 * line, and those that follow. Later ones extend it while there is room; the first are never
 * displaced. A window is dropped when the job survived it, that is when
 * - the same log shows three larger steps after it, or the log that steps first shows two and ten
 *   seconds have passed: ranks that lost a peer end their current step, and may print the step
 *   before it late. If the command buffers what it prints, steps that are read at once count as
 *   one, because a process that dies empties its buffer; steps further behind the line than a
 *   buffer is long count singly;
 * - or 1,000 lines or an hour pass on the node and nothing more bears on a failure.
 */
#ifndef STK_RUN_ATTEMPT_FIRST_CAUSE_H
#define STK_RUN_ATTEMPT_FIRST_CAUSE_H

#include "jobs/base/clock.h"
#include "jobs/flow/failure.h"

#define CAUSE_BEFORE 8   /* lines kept in front of the first that bears on a failure */
#define CAUSE_BEHIND 40  /* and behind each such line */
#define CAUSE_LINES  512 /* at most, per node */

struct first_cause;

/* Makes windows for `nodes` logs; `own` (may be NULL) must outlive them. `buffered`: stdout may be
 * written later than stderr. */
struct first_cause *first_cause_new(size_t nodes, bool buffered, const struct failure_own *own);
void first_cause_freep(struct first_cause **cause);

/* Takes a line of a node's log, read at `now`; `number` counts the node's lines from 0. */
void first_cause_line(struct first_cause *cause, size_t node, const char *line, size_t len,
		      size_t number, struct mono now);

/* Notes that the node's log has just shown a larger step than any before. */
void first_cause_step(struct first_cause *cause, size_t node, struct mono now);

/* Copies into `ret` (room for CAUSE_LINES) the lines of the node's window with a number less than
 * `below`, oldest first. Returns their count. The lines are valid until the next line is taken. */
size_t first_cause_get(const struct first_cause *cause, size_t node, size_t below,
		       struct failure_line *ret);

/* Returns how many lines of the node, from its first, the job has survived: they are no cause. */
size_t first_cause_survived(const struct first_cause *cause, size_t node);

#endif
