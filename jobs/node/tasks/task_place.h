/*
 * Where the outputs of a task lie (tasks.h says which folder), and how they get there: listed,
 * summed, and durable before anything says that the task is done. Links and special files are not
 * outputs; a task that leaves one has failed, as its files would not be complete without it.
 */
#ifndef STK_NODE_TASKS_TASK_PLACE_H
#define STK_NODE_TASKS_TASK_PLACE_H

#include <stdbool.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"
#include "jobs/node/tasks/node_task.h"

struct task_place {
	char *base;   /* owned; path or URL of the outputs of all nodes */
	char *sub;    /* owned; folder of this node beneath it; "": it does the task alone */
	char *folder; /* owned; STOKER_OUTPUT_DIR */
};

void task_place_of(const struct agent_config *config, const struct node_task *task,
		   struct task_place *ret);
void task_place_release(struct task_place *place); /* for AUTO() */

/* Makes the folder, empty. */
int task_place_make(const struct task_place *place, struct err **err);

/* Brings what the command has left to its place. `ret_files`: a new array of {"file": beneath
 * `base`, "size", "sha256"}, sorted. EXIT_RUN_FAILED: what is there is not as outputs can be. */
int task_place_keep(const struct task_place *place, json_t **ret_files, struct err **err);

/* Removes the local folder, unless it is the place itself; { 0 } is fine. */
void task_place_discard(const struct task_place *place);

/* ---- the outputs of a whole phase ---- */

/* Beneath `output` (a path or URL): deletes what is in a folder of a task, but of another attempt,
 * start or node than that which has done it, then writes manifest.json. `done` has the done.json of
 * each task, by index (borrowed from `arg` for the call). */
typedef int (*task_done_fn)(void *arg, int64_t index, json_t **ret, struct err **err);
int task_place_finish(const struct agent_config *config, task_done_fn done, void *arg,
		      struct err **err);

#define TASK_MANIFEST "manifest.json"

#endif
