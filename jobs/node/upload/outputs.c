/* Agent's side of outputs.h: has a helper upload the outputs. */
#include "jobs/node/upload/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/node/agent.h"
#include "jobs/store/store.h"

#define STARTS    2
#define SILENT_MS ((int64_t)5 * 60 * 1000)
#define LEAST_MS  2000  /* after a signal, even if the grace is over */
#define SHOW_MS   15000 /* between two reports that the upload is under way */
#define AT_WORK   "moving"

/* ---- is there anything? ---- */

/* True also if the folder cannot be read: the helper, which looks again, says so if it cannot
 * either. */
static bool may_have_entries(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	bool any = false;

	if (!folder)
		return errno != ENOENT;
	errno = 0;
	while (!any && (entry = readdir(folder)))
		any = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	any = any || errno != 0;
	closedir(folder);
	return any;
}

static bool is_superseded(const struct agent *agent)
{
	return agent->stopped && strcmp(agent->stopped, STOPPED_SUPERSEDED) == 0;
}

static bool are_there(const struct agent *agent)
{
	return agent->config.outputs && agent->command && !is_superseded(agent) &&
	       may_have_entries(agent->config.output);
}

/* Returns the path or URL of the outputs. The caller frees it. */
static char *url_of(const struct agent *agent)
{
	AUTO(auto_free) char *key = agent_config_outputs_key(&agent->config);

	if (!agent->config.object_workspace)
		return mem_copy(agent->config.output);
	return mem_format("%s/%s", store_url(agent->store), key);
}

/* ---- the helper ---- */

static int be_helper(const void *arg, int news_fd, int orders_fd)
{
	(void)orders_fd;
	return outputs_work(arg, news_fd);
}

static void on_late(void *arg)
{
	struct agent *agent = arg;
	struct outputs *outputs = &agent->outputs;

	outputs->timer = NULL;
	outputs->cut = agent->told_at.ms ? "the time between the signal and the end was too short"
					 : "the workspace accepted no data for 5 minutes";
	helper_kill(&outputs->helper);
}

/* Lets the helper go on as long as bytes move, after a signal until the time is over. */
static void set_timer(struct agent *agent)
{
	struct outputs *outputs = &agent->outputs;
	struct mono now = clock_mono_now();
	int64_t wait = SILENT_MS;

	if (agent->told_at.ms) {
		if (!outputs->end_at.ms) {
			outputs->end_at.ms =
				agent->told_at.ms + agent_config_outputs_ms(&agent->config);
			if (outputs->end_at.ms < now.ms + LEAST_MS)
				outputs->end_at.ms = now.ms + LEAST_MS;
		}
		wait = outputs->end_at.ms > now.ms ? outputs->end_at.ms - now.ms : 0;
	}
	loop_remove(agent->loop, outputs->timer);
	outputs->timer = loop_after(agent->loop, wait, on_late, agent);
}

/* Reports that the upload is under way: node 0 waits for such a node (main_node_exit.h). */
static void show(struct agent *agent)
{
	struct outputs *outputs = &agent->outputs;
	struct node_report *said = &agent->report.said;
	AUTO(err_freep) struct err *ignored = NULL;

	if (agent->config.node == 0 || clock_mono_now().ms - outputs->shown.ms < SHOW_MS)
		return;
	outputs->shown = clock_mono_now();
	MESSAGE_MARK(said, outputs);
	MESSAGE_SET_TEXT(&said->outputs, state, AT_WORK);
	MESSAGE_SET(&said->outputs, bytes, js_int(outputs->said, "bytes", 0));
	(void)!agent_report(agent, REPORT_RUNNING, &ignored);
}

static void on_news(void *arg, const char *kind, const json_t *line)
{
	struct agent *agent = arg;

	json_decref(agent->outputs.said);
	agent->outputs.said = json_incref((json_t *)line);
	if (strcmp(kind, AT_WORK) != 0)
		return;
	show(agent);
	if (agent->outputs.helper.pid > 0)
		set_timer(agent);
}

static int start_helper(struct agent *agent, struct err **err)
{
	struct outputs *outputs = &agent->outputs;

	if (outputs->starts > 1) { /* of the one that died */
		news_release(&outputs->news);
		helper_close(&outputs->helper);
	}
	if (helper_start(&outputs->helper, "stoker-outputs", be_helper, &agent->config,
			 sizeof agent->config, err) < 0)
		return -1;
	news_listen(&outputs->news, &outputs->helper, agent->loop, on_news, agent);
	set_timer(agent);
	show(agent);
	return 0;
}

/* Records that the outputs are not where they would be looked for. */
static void lose(struct outputs *outputs, const char *why, const char *hint, const char *class)
{
	outputs->over = true;
	err_freep(&outputs->lost);
	free(outputs->lost_class);
	err_set(&outputs->lost, EXIT_UNREACHABLE, "cannot upload the outputs: %s", why);
	err_hint(&outputs->lost, "%s",
		 hint ? hint : "check that the workspace can be written to, then resume the run");
	outputs->lost_class = mem_copy(class);
}

bool outputs_bring(struct agent *agent)
{
	struct outputs *outputs = &agent->outputs;
	AUTO(err_freep) struct err *why = NULL;

	if (outputs->helper.pid > 0)
		return true;
	if (outputs->over || !agent->config.object_workspace || !are_there(agent))
		return false;
	if (outputs->starts++ == STARTS)
		lose(outputs, "the upload process died", NULL, "transient-infra");
	else if (start_helper(agent, &why) < 0)
		lose(outputs, why->message, NULL, "transient-infra");
	return !outputs->over;
}

void outputs_gone(struct agent *agent)
{
	struct outputs *outputs = &agent->outputs;
	const char *why;

	outputs->helper.pid = 0;
	news_drain(&outputs->news);
	loop_remove(agent->loop, outputs->timer);
	outputs->timer = NULL;
	if (js_is(outputs->said, "news", "done")) {
		outputs->over = true;
		why = js_str(outputs->said, "why");
		if (why)
			lose(outputs, why, js_str(outputs->said, "hint"),
			     js_str(outputs->said, "class"));
	} else if (outputs->cut) {
		lose(outputs, outputs->cut, NULL, "transient-infra");
	}
}

void outputs_kill(struct agent *agent)
{
	agent->outputs.over = true;
	helper_kill(&agent->outputs.helper);
}

void outputs_signalled(struct agent *agent)
{
	if (agent->outputs.helper.pid > 0)
		set_timer(agent);
}

/* ---- report and messages ---- */

/* Adds what the helper counted, as far as it did. */
static void add_counts(struct node_report_outputs *outputs, const json_t *said)
{
	const json_t *names = json_object_get(said, "names"), *row;
	size_t i;

	if (json_object_get(said, "files"))
		MESSAGE_SET(outputs, files, js_int(said, "files", 0));
	if (json_object_get(said, "bytes"))
		MESSAGE_SET(outputs, bytes, js_int(said, "bytes", 0));
	if (json_object_get(said, "renamed"))
		MESSAGE_SET(outputs, renamed, js_int(said, "renamed", 0));
	if (json_object_get(said, "left"))
		MESSAGE_SET(outputs, left, js_int(said, "left", 0));
	if (names)
		MESSAGE_MARK(outputs, names);
	json_array_foreach (names, i, row) {
		struct node_report_left *one = MESSAGE_ADD(&outputs->names);

		MESSAGE_SET_TEXT(one, name, js_str(row, "name"));
		MESSAGE_SET_TEXT(one, why, js_str(row, "why"));
	}
}

void outputs_report(struct agent *agent)
{
	const struct outputs *outputs = &agent->outputs;
	struct node_report *said = &agent->report.said;
	AUTO(auto_free) char *url = NULL;

	message_remove(node_report_message, said, "outputs");
	if (!are_there(agent))
		return;
	MESSAGE_MARK(said, outputs);
	url = url_of(agent);
	MESSAGE_SET_TEXT(&said->outputs, url, url);
	add_counts(&said->outputs, outputs->said);
	if (outputs->lost)
		MESSAGE_SET_TEXT(&said->outputs, why, outputs->lost->message);
}

bool outputs_under_way(const struct node_report *report)
{
	return report->outputs.state && strcmp(report->outputs.state, AT_WORK) == 0;
}

void outputs_release(struct outputs *outputs)
{
	if (outputs->starts > 0) {
		helper_kill(&outputs->helper);
		news_release(&outputs->news);
		helper_close(&outputs->helper);
	}
	json_decref(outputs->said);
	err_freep(&outputs->lost);
	free(outputs->lost_class);
	*outputs = (struct outputs){ 0 };
}
