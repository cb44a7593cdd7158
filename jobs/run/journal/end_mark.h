/*
 * How far a run's journal in SQLite had come, kept beside it: `runs/<run>/journal.end` in the state
 * directory.
 *
 * SQLite takes a damaged log for one that ends there, and a table cannot tell that its last rows
 * are gone. So the number of the newest event is written here once the event is durable; a journal
 * that ends before it has lost events. The mark itself is not synced: it may be behind, and a torn
 * mark says nothing. A driver of an earlier version does not update it.
 */
#ifndef STK_RUN_JOURNAL_END_MARK_H
#define STK_RUN_JOURNAL_END_MARK_H

#include <stdint.h>

#include "jobs/base/err.h"

/* Returns the number of an event that is durable; 0 if not known. `state_dir`: of the journal. */
int64_t end_mark_read(const char *state_dir, const char *run);

/* A failure is ignored. */
void end_mark_write(const char *state_dir, const char *run, int64_t seq);

int end_mark_remove(const char *state_dir, const char *run, struct err **err);

#endif
