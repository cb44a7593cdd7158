/* Which tasks an order has. See node_task.h. */
#include "jobs/node/tasks/node_task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_infer(const struct agent_config *config)
{
	return config->order->tasks.shards > 0;
}

static int64_t roles(const struct agent_config *config)
{
	return config->order->tasks.baseline.url ? 2 : 1;
}

int64_t node_task_count(const struct agent_config *config)
{
	const struct order_tasks *tasks = &config->order->tasks;
	int64_t count = is_infer(config) ? tasks->shards : tasks->repeat;

	if (!tasks->results)
		return 0;
	count = count < 0 ? 0 : count < NODE_TASKS_MAX ? count : NODE_TASKS_MAX;
	return is_infer(config) ? count : count * roles(config);
}

void node_task_at(const struct agent_config *config, int64_t index, struct node_task *ret)
{
	*ret = (struct node_task){ .role = "candidate", .shard = -1 };
	if (is_infer(config)) {
		ret->shard = index;
		snprintf(ret->name, sizeof ret->name, "shard-%" PRId64, index);
		return;
	}
	if (index % roles(config) == 1)
		ret->role = "baseline";
	ret->repeat = index / roles(config) + 1;
	snprintf(ret->name, sizeof ret->name, "%s-%" PRId64, ret->role, ret->repeat);
}

int64_t node_task_find(const struct agent_config *config, const char *name)
{
	size_t len = strcspn(name, "/");
	const char *dash = memchr(name, '-', len);
	struct node_task task;
	int64_t index;

	if (!dash || len >= sizeof task.name)
		return -1;
	index = strtoll(dash + 1, NULL, 10);
	if (!is_infer(config))
		index = (index - 1) * roles(config) + (name[0] == 'b');
	if (index < 0 || index >= node_task_count(config))
		return -1;
	node_task_at(config, index, &task);
	return strlen(task.name) == len && memcmp(task.name, name, len) == 0 ? index : -1;
}

bool node_task_is_shared(const struct agent_config *config)
{
	return !is_infer(config) || config->order->tasks.together;
}
