/*
 * Columns of a list beyond the state of runs, where they are asked for: how much the runs hold,
 * what their engines say, and the settings in which they differ. Each costs a look at every run in
 * the list, so they come after filters and --limit.
 */
#ifndef STK_CMD_LIST_RUN_LIST_MORE_H
#define STK_CMD_LIST_RUN_LIST_MORE_H

#include "cmd/list/run_list.h"

/* Sets `size`: the bytes in the run's folders of the state directory and of a workspace that is a
 * directory. It stays unknown for a workspace in S3, which would have to be listed. */
void run_list_measure(struct journal *journal, struct listed *rows, size_t count);

/* Asks the engines about attempts that are under way, many at once, and adds to the status of such
 * a run {"live": {"job", "state", "reason"}}, or {"live": {"job", "error"}} if the engine cannot
 * tell. */
void run_list_ask(struct journal *journal, struct listed *rows, size_t count);

/* Returns the settings of the specs that are not the same in all runs, secrets as digests: an
 * object of arrays, {"hyperparameters.lr": [value or null of each row]}. EXIT_USAGE if the rows are
 * of runs with more than one name. */
int run_list_differ(struct journal *journal, const struct listed *rows, size_t count, json_t **ret,
		    struct err **err);

#endif
