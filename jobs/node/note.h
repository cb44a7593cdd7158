/*
 * Notes beneath an attempt's prefix by which one node tells all others something
 * (FAILED_FILE, DRAINED_FILE). Each names the start of the job that it is of ("restart",
 * absent: 0), since what an earlier start left says nothing about this one: its nodes are gone.
 */
#ifndef STK_NODE_NOTE_H
#define STK_NODE_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/json.h"
#include "jobs/node/task.h"
#include "jobs/store/store.h"

/* Is there one of this start? What cannot be read now is not there yet. */
bool note_stands(const struct task *task, struct store *store, const char *name, int64_t restart);

/* Leave one of the task's start; the first of a start stands, one of an earlier start is
 * replaced. Takes the body. False: none may be there; best effort, mostly, since who cannot be
 * told finds out otherwise. */
bool note_leave(const struct task *task, struct store *store, const char *name, json_t *body);

/* Remove one of an earlier start; absent is fine. */
int note_clear(const struct task *task, struct store *store, const char *name, struct err **err);

#endif
