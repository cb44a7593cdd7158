/* The tasks of an order, by their index in the order in which they are done: see tasks.h. */
#ifndef STK_NODE_TASKS_NODE_TASK_H
#define STK_NODE_TASKS_NODE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/node/setup/agent_config.h"

#define NODE_TASKS_MAX 1000000

struct node_task {
	char name[40];    /* "candidate-1", "shard-0" */
	const char *role; /* "candidate" or "baseline" */
	int64_t repeat;   /* from 1; 0: a shard */
	int64_t shard;    /* from 0; -1: none */
};

/* Returns the number of tasks; 0: the order has none. */
int64_t node_task_count(const struct agent_config *config);
void node_task_at(const struct agent_config *config, int64_t index, struct node_task *ret);
/* Returns the index of a task by its name, up to a slash or its end; -1: there is none. */
int64_t node_task_find(const struct agent_config *config, const char *name);
/* True if all nodes of the attempt work on each task. */
bool node_task_is_shared(const struct agent_config *config);

#endif
