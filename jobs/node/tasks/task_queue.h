/*
 * Which task a node does next, and which are done: by what lies beneath the order's tasks.results
 * (tasks.h names the objects). Waits end early when the process is told to stop (cancel.h).
 */
#ifndef STK_NODE_TASKS_TASK_QUEUE_H
#define STK_NODE_TASKS_TASK_QUEUE_H

#include "jobs/node/tasks/node_task.h"
#include "jobs/store/store.h"

struct task_queue {
	const struct agent_config *config; /* borrowed */
	struct store *store;               /* borrowed; the workspace */
	unsigned char *state;              /* owned; of each task */
	int64_t count, done;
	int64_t at;     /* where the next free one is looked for */
	int64_t number; /* of tasks that all nodes do: how many were begun in this start */
};

/* Looks which tasks are done. */
int task_queue_open(struct task_queue *queue, const struct agent_config *config,
		    struct store *store, struct err **err);
void task_queue_release(struct task_queue *queue); /* for AUTO() */

/* Returns 1 with the index of the task that this node does next, 0: none is left for it, -1 with an
 * error (EXIT_UNREACHABLE also when it was told to stop). */
int task_queue_next(struct task_queue *queue, int64_t *ret, struct err **err);

/* Writes done.json of a task, unless it is there. */
int task_queue_finish(struct task_queue *queue, int64_t index, const json_t *body,
		      struct err **err);
/* Reads it: a new reference. One that is not there is an error. */
int task_queue_result(struct task_queue *queue, int64_t index, json_t **ret, struct err **err);

/* Waits until all tasks are done, by whichever node. */
int task_queue_wait(struct task_queue *queue, struct err **err);

/* The part of this node in a task that all nodes do; node 0 waits for that of another. */
int task_queue_put_part(struct task_queue *queue, int64_t index, const json_t *body,
			struct err **err);
int task_queue_get_part(struct task_queue *queue, int64_t index, int node, json_t **ret,
			struct err **err);

#endif
