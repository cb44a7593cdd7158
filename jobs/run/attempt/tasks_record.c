/*
 * Tasks of an attempt that are done, as their agents say in the workspace: each becomes a
 * task.done, and what an evaluation told of its model an evaluate.measured. See jobs/store/order.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/run/attempt/watch_internal.h"
#include "jobs/run/plan/stage.h"
#include "jobs/store/order.h"

#define DONE_MAX ((size_t)64 << 20) /* bytes; a file takes about 120 */
#define HINT_MAX ((size_t)4000)

struct tasks_record {
	struct attempt_watch *watch;
	const char *prefix;
};

static int64_t sum_of_sizes(const json_t *files)
{
	int64_t bytes = 0;
	const json_t *file;
	size_t i;

	json_array_foreach (files, i, file)
		bytes += js_int(file, "size", 0);
	return bytes;
}

/* Numbers as the task told them. What is none, or not finite, stays a text, so that no gate takes
 * it for absent or for 0. */
static json_t *values_of(const json_t *done)
{
	json_t *values = json_object(), *value;
	const char *name;

	json_object_foreach (json_object_get(done, "metrics"), name, value)
		if (json_is_number(value))
			json_object_set(values, name, value);
	json_object_foreach (json_object_get(done, "invalid"), name, value) {
		const char *text = json_string_value(value);
		double number = text ? strtod(text, NULL) : NAN;

		json_object_set_new_nocheck(values, name,
					    json_string(!isinf(number) ? "nan"
							: number > 0   ? "inf"
								       : "-inf"));
	}
	return values;
}

/* Once for each task, but for a driver that died in between: the first one counts. */
static int record_measured(struct attempt_watch *watch, const char *name,
			   const struct stage_task *task, const json_t *done, struct err **err)
{
	json_auto_t *values = values_of(done);
	struct event ev;

	attempt_event(watch, EV_EVALUATE_MEASURED, &ev);
	EVENT_SET_STR(&ev, task, name);
	EVENT_SET_STR(&ev, role, task->role);
	EVENT_SET(&ev, repeat, task->repeat);
	EVENT_SET(&ev, metrics, values);
	EVENT_SET_STR(&ev, metrics_from, js_str(done, "metrics_from"));
	if (json_object_size(values) == 0)
		EVENT_SET_STR(&ev, reason, "no number in metrics.json or in the log");
	return driver_record(watch->driver, &ev, err);
}

static int record_done(struct attempt_watch *watch, const char *name, const struct stage_task *task,
		       const json_t *done, struct err **err)
{
	const json_t *files = json_object_get(done, "files");
	struct event ev;

	attempt_event(watch, EV_TASK_DONE, &ev);
	EVENT_SET(&ev, attempt, js_int(done, "attempt", watch->attempt));
	EVENT_SET_STR(&ev, task, name);
	EVENT_SET(&ev, index, task->index);
	EVENT_SET(&ev, node, js_int(done, "node", 0));
	EVENT_SET(&ev, tasks, watch->driver->flow.policy.stages[watch->phase].tasks);
	EVENT_SET(&ev, files, (int64_t)json_array_size(files));
	EVENT_SET(&ev, size_bytes, sum_of_sizes(files));
	return driver_record(watch->driver, &ev, err);
}

/* An object that is not what an agent writes cannot be told from a task that is not done: it is an
 * error, and no result is made up. */
static int read_done(struct tasks_record *record, const char *name, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%s%s/" TASK_DONE_FILE, record->prefix, name);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(DONE_MAX);
	int there = store_get(record->watch->driver->workspace, key, DONE_MAX, &text, NULL, err);

	if (there <= 0)
		return there;
	return js_parse(text.text, text.len, key, ret, err) < 0 ? -1 : 1;
}

static int on_folder(void *arg, const char *name, struct err **err)
{
	struct tasks_record *record = arg;
	struct attempt_watch *watch = record->watch;
	json_auto_t *done = NULL;
	struct stage_task task;
	int there;

	if (!stage_task_find(watch->phase, &watch->driver->flow.policy, name, &task) ||
	    flow_task_is_done(&watch->driver->flow, task.index))
		return 0;
	there = read_done(record, name, &done, err);
	if (there <= 0)
		return there;
	if (watch->phase == PHASE_EVALUATE && record_measured(watch, name, &task, done, err) < 0)
		return -1;
	return record_done(watch, name, &task, done, err);
}

int tasks_record(struct attempt_watch *watch, bool at_end, struct err **err)
{
	AUTO(auto_free) char *prefix = NULL;
	struct tasks_record record = { .watch = watch };

	if (!flow_phases[watch->phase].has_tasks ||
	    (!at_end && watch->marks_at.ms > 0 &&
	     clock_mono_now().ms - watch->marks_at.ms < checkpoints_interval_ms(watch->driver)))
		return 0;
	watch->marks_at = clock_mono_now();
	record.prefix = prefix = stage_results(watch->driver->run, watch->phase);
	return store_folders(watch->driver->workspace, prefix, on_folder, &record, err) < 0 ? -1
											    : 0;
}

/* The cure begins with the objects of the shard. */
static char *hint_of(const struct event *ev, const json_t *objects)
{
	AUTO(sb_release) struct sb hint = SB_INIT_MAX(HINT_MAX);
	const json_t *object;
	size_t i;

	sb_addf(&hint, "look at the objects of %s: ", ev->task);
	json_array_foreach (objects, i, object)
		sb_addf(&hint, "%s%s", i > 0 ? ", " : "", json_string_value(object));
	if (EVENT_HAS(ev, hint))
		sb_addf(&hint, "; %s", ev->hint);
	return hint.len > 0 ? mem_copy(hint.text) : NULL;
}

int tasks_put_failed(struct attempt_watch *watch, struct tasks_failed *failed, struct event *ev,
		     struct err **err)
{
	const struct flow *flow = &watch->driver->flow;
	const struct node_report_tasks *tasks = &failed->report.tasks;
	struct stage_task task;

	if (!flow_phases[watch->phase].has_tasks || ev->class == CLASS_NONE || watch->tasks_unseen)
		return 0;
	if (attempt_report(watch, failed->node, &failed->report, err) < 0)
		return -1;
	/* The report of an agent that was killed is as old as its last heartbeat: the task it tells
	 * may be done since. */
	if (!tasks->task || !stage_task_find(watch->phase, &flow->policy, tasks->task, &task) ||
	    flow_task_is_done(flow, task.index))
		return 0;
	EVENT_SET_STR(ev, task, tasks->task);
	if (json_array_size(tasks->objects) == 0)
		return 0;
	EVENT_SET(ev, objects, tasks->objects);
	failed->hint = hint_of(ev, tasks->objects);
	EVENT_SET_STR(ev, hint, failed->hint);
	return 0;
}

void tasks_failed_release(struct tasks_failed *failed)
{
	node_report_release(&failed->report);
	free(failed->hint);
}
