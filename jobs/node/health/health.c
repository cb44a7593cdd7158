/* Agent's side of health.h: has a helper do the check-up and acts on the result. */
#include "jobs/node/health/health.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/node/agent.h"
#include "jobs/node/command/command_stop.h"
#include "jobs/node/subreaper.h"

#define KILL_ROUNDS 100
#define KILL_MS     10

#define SICK_HINT                                                                                  \
	"run on another node and have this one repaired; 'stoker status' shows the findings on "   \
	"each node"
#define FAILING_HINT                                                                               \
	"check what the nodes have in common: the security group, EFA, the image, the network "    \
	"between them"

/* ---- the helper ------------------------------------------------------------------------ */

static void tell_agent(void *arg, const json_t *said)
{
	const int *news_fd = arg;
	json_t *line = news_of("checked");

	json_object_update(line, (json_t *)said);
	news_say(*news_fd, line);
}

static int be_doctor(const void *given, int news_fd, int orders_fd)
{
	const struct helper_task *task = given;

	(void)orders_fd;
	health_work(&task->config, &task->claim, tell_agent, &news_fd);
	return 0;
}

/* ---- the agent -------------------------------------------------------------------------- */

static void drop_watches(struct agent *agent)
{
	struct health *health = &agent->health;

	loop_remove(agent->loop, health->timer);
	health->timer = NULL;
}

/* Kills the processes that the helper started and did not end; the agent has inherited them. */
static void kill_tools(struct agent *agent)
{
	const pid_t ours[] = { agent->uploader.helper.pid, agent->prefetch.helper.pid };
	pid_t pid;

	for (int i = 0; i < KILL_ROUNDS; i++) {
		size_t left = subreaper_signal(SIGKILL, ours, STK_LENGTH(ours));

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			if (pid == agent->uploader.helper.pid)
				uploader_gone(&agent->uploader);
		if (left == 0)
			return;
		cancel_pause_briefly(KILL_MS);
	}
}

void health_stop(struct agent *agent)
{
	struct health *health = &agent->health;

	if (health->helper.pid <= 0)
		return;
	drop_watches(agent);
	helper_kill(&health->helper);
	while (waitpid(health->helper.pid, NULL, 0) < 0 && errno == EINTR)
		;
	health->helper.pid = 0;
	news_release(&health->news);
	json_decref(health->said);
	health->said = NULL;
	helper_close(&health->helper);
	kill_tools(agent);
}

static void fail(struct agent *agent, const char *message, const char *hint, const char *class,
		 int status)
{
	AUTO(err_freep) struct err *why = NULL;

	err_set(&why, EXIT_RUN_FAILED, "%s",
		message ? message : "the check-up gives no more detail");
	err_hint(&why, "%s", hint);
	report_error(&agent->report, why, class);
	agent_finish(agent, REPORT_FAILED, status);
}

static void heed(struct agent *agent, const json_t *said)
{
	const char *outcome = js_str(said, "outcome"), *message = js_str(said, "message");

	if (!outcome)
		fail(agent, "the check-up of this node did not end", SICK_HINT, "transient-infra",
		     AGENT_EXIT_FAILED);
	else if (strcmp(outcome, HEALTH_HEALTHY) == 0)
		loop_after(agent->loop, 0, agent->health.next, agent);
	else if (strcmp(outcome, HEALTH_SICK) == 0)
		fail(agent, message, SICK_HINT, "hardware-node", AGENT_EXIT_SICK);
	else if (strcmp(outcome, HEALTH_FAILING) == 0)
		fail(agent, message, FAILING_HINT, "comm", AGENT_EXIT_FAILED);
	else
		command_stop(agent, STOPPED_PEER);
}

/* Keeps the result in the report, whatever ends the agent from now on. */
static void on_news(void *arg, const char *kind, const json_t *said)
{
	struct agent *agent = arg;
	json_t *report = json_object_get(said, "report");

	(void)kind;
	json_decref(agent->health.said);
	agent->health.said = json_incref((json_t *)said);
	if (report)
		MESSAGE_SET_JSON(&agent->report.said, health, json_incref(report));
}

static void on_end(void *arg)
{
	struct agent *agent = arg;
	json_auto_t *said = TAKE(agent->health.said);

	health_stop(agent);
	if (!agent->state)
		heed(agent, said);
}

static void on_late(void *arg)
{
	struct agent *agent = arg;

	agent->health.timer = NULL;
	health_stop(agent);
	if (!agent->state)
		heed(agent, NULL);
}

void health_start(struct agent *agent, void (*next)(void *agent))
{
	const struct helper_task task = { agent->config, agent->claim };
	struct health *health = &agent->health;
	AUTO(err_freep) struct err *why = NULL;

	health->next = next;
	if (!health_needed(&agent->config)) {
		loop_after(agent->loop, 0, next, agent);
		return;
	}
	if (helper_start(&health->helper, "stoker-doctor", be_doctor, &task, sizeof task, &why) <
	    0) {
		agent_fail(agent, &why, NULL);
		return;
	}
	news_listen(&health->news, &health->helper, agent->loop, on_news, agent);
	health->news.ended = on_end;
	health->timer = loop_after(agent->loop, health_longest_ms(&agent->config), on_late, agent);
}
