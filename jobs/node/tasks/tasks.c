/* Agent's side of tasks.h: starts the runner in place of the command, and reads its messages. */
#include "jobs/node/tasks/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/node/agent.h"
#include "jobs/node/tasks/node_task.h"
#include "jobs/node/tasks/tasks_work.h"

bool tasks_needed(const struct agent_config *config)
{
	return config->order->tasks.results != NULL;
}

static int be_runner(const void *task, int news_fd, int orders_fd)
{
	(void)orders_fd;
	return tasks_work(task, news_fd);
}

static void put_objects(struct node_report *said, const json_t *line)
{
	json_t *objects = json_object_get(line, "objects");

	if (json_array_size(objects) > 0)
		MESSAGE_SET_JSON(&said->tasks, objects, json_incref(objects));
}

static void report_task(struct agent *agent, const json_t *line)
{
	struct node_report *said = &agent->report.said;

	if (!json_object_get(line, "done"))
		return;
	message_remove(node_report_message, said, "tasks");
	MESSAGE_MARK(said, tasks);
	MESSAGE_SET(&said->tasks, done, js_int(line, "done", 0));
	MESSAGE_SET(&said->tasks, of, js_int(line, "of", 0));
	MESSAGE_SET_TEXT(&said->tasks, task, js_str(line, "task"));
	put_objects(said, line);
}

/* The task that ends the attempt stays in the report, with its objects. */
static void take_failure(struct agent *agent, const json_t *line)
{
	struct tasks *tasks = &agent->tasks;
	struct node_report *said = &agent->report.said;
	const char *message = js_str(line, "message"), *class = js_str(line, "class");

	MESSAGE_SET_TEXT(&said->tasks, task, js_str(line, "task"));
	put_objects(said, line);
	if (!message || tasks->why)
		return;
	err_set(&tasks->why, (enum exit_code)js_int(line, "code", EXIT_REFUSED), "%s%s%s",
		js_str(line, "task") ? js_str(line, "task") : "", js_str(line, "task") ? ": " : "",
		message);
	tasks->why->os_errno = (int)js_int(line, "errno", 0);
	if (js_str(line, "hint"))
		err_hint(&tasks->why, "%s", js_str(line, "hint"));
	tasks->why_class = class ? mem_copy(class) : NULL;
}

static void on_news(void *arg, const char *kind, const json_t *line)
{
	struct agent *agent = arg;
	AUTO(err_freep) struct err *ignored = NULL;

	if (strcmp(kind, "failed") == 0)
		take_failure(agent, line);
	report_task(agent, line);
	/* A report that is not written now is written with the next, or the last. */
	if (agent->state || !agent->shown ||
	    clock_mono_now().ms - agent->tasks.shown.ms < agent->config.heartbeat_ms)
		return;
	agent->tasks.shown = clock_mono_now();
	(void)!agent_report(agent, REPORT_RUNNING, &ignored);
}

int tasks_start(struct agent *agent, int write_fd, pid_t *ret_pid, struct err **err)
{
	struct tasks *tasks = &agent->tasks;
	const struct helper_task task = { agent->config, agent->claim };

	if (helper_start_command(&tasks->helper, "stoker-tasks", be_runner, &task, sizeof task,
				 write_fd, err) < 0)
		return -1;
	news_listen(&tasks->news, &tasks->helper, agent->loop, on_news, agent);
	*ret_pid = tasks->helper.pid;
	return 0;
}

void tasks_gone(struct agent *agent)
{
	if (agent->tasks.helper.pid == 0)
		return;
	agent->tasks.helper.pid = 0;
	news_drain(&agent->tasks.news);
}

void tasks_release(struct tasks *tasks)
{
	if (tasks->news.fn) {
		news_release(&tasks->news);
		helper_close(&tasks->helper);
	}
	err_freep(&tasks->why);
	free(tasks->why_class);
	*tasks = (struct tasks){ 0 };
}
