/* Shares the tasks out among attempts and nodes. See task_queue.h. */
#include "jobs/node/tasks/task_queue.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/process/cancel.h"
#include "jobs/store/store_json.h"

#define TASK_FILE      "task.json"
#define DONE_MAX       ((size_t)256 << 20) /* the files of a task, and of its model */
#define PAUSE_MS       50
#define PAUSE_FAR_MS   500
#define PAUSE_MOST_MS  1000
#define PAUSE_FAR_MOST 5000

enum task_state { TASK_OPEN, TASK_TAKEN, TASK_DONE };

/* ---- keys ---- */

static char *key_of(const struct task_queue *queue, int64_t index, const char *name)
{
	struct node_task task;

	node_task_at(queue->config, index, &task);
	return mem_format("%s%s/%s", queue->config->order->tasks.results, task.name, name);
}

/* Name of an object of this start. */
static char *of_start(const struct task_queue *queue, const char *what, int node)
{
	long long attempt = queue->config->attempt, restart = queue->config->restart;

	if (node < 0)
		return mem_format("%s-%lld.%lld.json", what, attempt, restart);
	return mem_format("%s-%lld.%lld-%d.json", what, attempt, restart, node);
}

/* ---- tasks that are done ---- */

static void set_state(struct task_queue *queue, int64_t index, enum task_state state)
{
	if (queue->state[index] >= state)
		return;
	queue->done += state == TASK_DONE;
	queue->state[index] = (unsigned char)state;
}

static int note_object(void *arg, const struct store_object *object, struct err **err)
{
	struct task_queue *queue = arg;
	const char *rest = object->key + strlen(queue->config->order->tasks.results);
	int64_t index = node_task_find(queue->config, rest);
	const char *name = strchr(rest, '/');
	AUTO(auto_free) char *taken = of_start(queue, "taken", -1);

	(void)err;
	if (index < 0 || !name)
		return 0;
	if (strcmp(name + 1, TASK_DONE_FILE) == 0)
		set_state(queue, index, TASK_DONE);
	else if (strcmp(name + 1, taken) == 0)
		set_state(queue, index, TASK_TAKEN);
	return 0;
}

static int look(struct task_queue *queue, struct err **err)
{
	return store_list(queue->store, queue->config->order->tasks.results, note_object, queue,
			  err) < 0
		       ? err_wrap(err, "cannot see which tasks are done")
		       : 0;
}

int task_queue_open(struct task_queue *queue, const struct agent_config *config,
		    struct store *store, struct err **err)
{
	*queue = (struct task_queue){ .config = config,
				      .store = store,
				      .count = node_task_count(config) };
	queue->state = mem_zero((size_t)queue->count + 1, 1);
	/* Nodes that share the tasks out begin far from each other. */
	if (!node_task_is_shared(config))
		queue->at = queue->count * config->node / config->nodes;
	return look(queue, err);
}

void task_queue_release(struct task_queue *queue)
{
	free(queue->state);
	*queue = (struct task_queue){ 0 };
}

/* Returns the next task that nobody has, from `at` on and around; -1: none. */
static int64_t next_open(const struct task_queue *queue)
{
	for (int64_t i = 0; i < queue->count; i++) {
		int64_t index = (queue->at + i) % queue->count;

		if (queue->state[index] == TASK_OPEN)
			return index;
	}
	return -1;
}

/* ---- waiting for others ---- */

/* Waits a while, longer each time. Returns -1 if the process is told to stop. */
static int wait_on(const struct task_queue *queue, int64_t *pause, struct err **err)
{
	bool far = queue->config->object_workspace;
	int64_t most = far ? PAUSE_FAR_MOST : PAUSE_MOST_MS;

	if (*pause == 0)
		*pause = far ? PAUSE_FAR_MS : PAUSE_MS;
	if (!cancel_pause(*pause))
		return err_set(err, EXIT_UNREACHABLE, "told to stop while waiting for other nodes");
	*pause = *pause * 2 < most ? *pause * 2 : most;
	return 0;
}

/* ---- tasks that all nodes do ---- */

/* Node 0 tells the others what all do next; -1: nothing is left. */
static int announce(struct task_queue *queue, int64_t index, struct err **err)
{
	AUTO(auto_free) char *key = agent_config_key(queue->config, TASK_FILE);
	json_auto_t *body = json_object();
	struct node_task task;

	js_put(body, "v", json_integer(1));
	js_put(body, "restart", json_integer(queue->config->restart));
	js_put(body, "number", json_integer(queue->number));
	if (index >= 0) {
		node_task_at(queue->config, index, &task);
		js_put_str(body, "task", task.name);
	}
	return store_json_put(queue->store, key, body, err);
}

static int lead(struct task_queue *queue, int64_t *ret, struct err **err)
{
	int64_t index = next_open(queue);

	queue->number++;
	if (queue->config->nodes > 1 && announce(queue, index, err) < 0) {
		queue->number--;
		return -1;
	}
	*ret = index;
	return index >= 0;
}

static int follow(struct task_queue *queue, int64_t *ret, struct err **err)
{
	AUTO(auto_free) char *key = agent_config_key(queue->config, TASK_FILE);
	int64_t pause = 0;

	for (;;) {
		json_auto_t *body = NULL;
		const char *name;

		if (store_json_get(queue->store, key, REPORT_MAX, &body, NULL, err) < 0)
			return -1;
		if (js_int(body, "restart", -1) == queue->config->restart &&
		    js_int(body, "number", 0) > queue->number) {
			queue->number = js_int(body, "number", 0);
			name = js_str(body, "task");
			*ret = name ? node_task_find(queue->config, name) : -1;
			return *ret >= 0;
		}
		if (wait_on(queue, &pause, err) < 0)
			return -1;
	}
}

int task_queue_put_part(struct task_queue *queue, int64_t index, const json_t *body,
			struct err **err)
{
	AUTO(auto_free) char *name = of_start(queue, "part", queue->config->node);
	AUTO(auto_free) char *key = key_of(queue, index, name);

	set_state(queue, index, TASK_DONE);
	return store_json_put(queue->store, key, body, err);
}

int task_queue_get_part(struct task_queue *queue, int64_t index, int node, json_t **ret,
			struct err **err)
{
	AUTO(auto_free) char *name = of_start(queue, "part", node);
	AUTO(auto_free) char *key = key_of(queue, index, name);
	int64_t pause = 0;

	*ret = NULL;
	for (;;) {
		if (store_json_get(queue->store, key, DONE_MAX, ret, NULL, err) < 0)
			return -1;
		if (*ret)
			return 0;
		if (wait_on(queue, &pause, err) < 0)
			return -1;
	}
}

/* ---- tasks that each node takes ---- */

/* Returns 1 if this node has the task now, 0 if another has it, -1. */
static int take(struct task_queue *queue, int64_t index, struct err **err)
{
	AUTO(auto_free) char *name = of_start(queue, "taken", -1);
	AUTO(auto_free) char *key = key_of(queue, index, name);
	json_auto_t *body = json_object(), *there = NULL;
	int taken;

	js_put(body, "v", json_integer(1));
	js_put(body, "node", json_integer(queue->config->node));
	taken = store_json_replace(queue->store, key, NULL, body, err);
	if (taken != 0)
		return taken;
	/* A write without a reply may have been ours. */
	if (store_json_get(queue->store, key, REPORT_MAX, &there, NULL, err) < 0)
		return -1;
	return js_int(there, "node", -1) == queue->config->node;
}

static int take_next(struct task_queue *queue, int64_t *ret, struct err **err)
{
	int64_t index;

	while ((index = next_open(queue)) >= 0) {
		int taken = queue->config->nodes > 1 ? take(queue, index, err) : 1;

		if (taken < 0)
			return -1;
		queue->at = index;
		set_state(queue, index, TASK_TAKEN);
		if (taken > 0) {
			*ret = index;
			return 1;
		}
		/* Others have come here: what they have taken meanwhile is not asked for one by
		 * one. */
		if (look(queue, err) < 0)
			return -1;
	}
	return 0;
}

int task_queue_next(struct task_queue *queue, int64_t *ret, struct err **err)
{
	if (!node_task_is_shared(queue->config))
		return take_next(queue, ret, err);
	return queue->config->node == 0 ? lead(queue, ret, err) : follow(queue, ret, err);
}

/* ---- results ---- */

int task_queue_finish(struct task_queue *queue, int64_t index, const json_t *body, struct err **err)
{
	AUTO(auto_free) char *key = key_of(queue, index, TASK_DONE_FILE);

	if (store_json_replace(queue->store, key, NULL, body, err) < 0)
		return err_wrap(err, "cannot record that a task is done");
	set_state(queue, index, TASK_DONE);
	return 0;
}

int task_queue_result(struct task_queue *queue, int64_t index, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = key_of(queue, index, TASK_DONE_FILE);
	int there = store_json_get(queue->store, key, DONE_MAX, ret, NULL, err);

	if (there < 0)
		return -1;
	if (there == 0 || !json_is_object(*ret))
		return err_set(err, EXIT_REFUSED, "'%s/%s' is %s", store_url(queue->store), key,
			       there ? "damaged" : "not found");
	return 0;
}

int task_queue_wait(struct task_queue *queue, struct err **err)
{
	int64_t pause = 0;

	while (queue->done < queue->count)
		if (wait_on(queue, &pause, err) < 0 || look(queue, err) < 0)
			return -1;
	return 0;
}
