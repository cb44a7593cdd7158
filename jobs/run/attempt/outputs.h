/*
 * Outputs that an attempt left in STOKER_OUTPUT_DIR, put together from its agents' reports.
 *
 * {"url": folder or prefix, with node-<k> for each node beneath it; "files","size_bytes" that are
 * there (absent if nothing had to be copied), "left": number of files that are not, "why": in
 * words, which and why}. Absent if no node left any.
 */
#ifndef STK_RUN_ATTEMPT_OUTPUTS_H
#define STK_RUN_ATTEMPT_OUTPUTS_H

#include "jobs/run/attempt/watch_internal.h"

/* Puts a new object into `*ret`, which stays as it is if there are no outputs. Returns 0, or -1 if
 * a report cannot be read now. */
int outputs_gather(struct attempt_watch *watch, json_t **ret, struct err **err);

/* Records as an event which outputs of an ended attempt are missing. Best effort: attempt.ended has
 * this too. */
void outputs_record(struct attempt_watch *watch, const json_t *outputs);

#endif
