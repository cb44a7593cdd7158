/* Services of the agent for all of its files: see agent.h. */
#include "jobs/node/agent.h"

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"

/* A call that failed costs no attempt as long as it fails no longer than this. */
#define STEP_FAILURES 5
#define STEP_AGAIN_MS 500

void agent_finish(struct agent *agent, const char *state, int exit_status)
{
	agent->state = state;
	agent->exit = exit_status;
	loop_quit(agent->loop);
}

bool agent_repeats(struct agent *agent, struct err **why)
{
	if (!agent->step || !err_passes(*why) || agent->step_failures == STEP_FAILURES)
		return false;
	err_freep(why);
	agent->step_failures++;
	loop_after(agent->loop, STEP_AGAIN_MS, agent->step, agent);
	return true;
}

void agent_fail(struct agent *agent, struct err **why, const char *class)
{
	if (agent_repeats(agent, why))
		return;
	report_error(&agent->report, *why, class);
	err_freep(why);
	agent_finish(agent, REPORT_FAILED, AGENT_EXIT_FAILED);
}

int agent_report(struct agent *agent, const char *state, struct err **err)
{
	const struct report *report = &agent->report;
	AUTO(auto_free) char *text = report_compose(&agent->report, state);

	if (report->path && report_keep(report, text, err) < 0)
		return -1;
	uploader_report(&agent->uploader, state, report->path ? NULL : text);
	report_say(report, text);
	return 0;
}

void agent_tell_peers(struct agent *agent, int exit_status)
{
	json_t *body;

	if (agent->config.nodes == 1 || exit_status == 0)
		return;
	body = json_object();
	js_put(body, "node", json_integer(agent->config.node));
	js_put(body, "exit", json_integer(exit_status));
	js_put(body, "at", json_integer(clock_utc_now().ms));
	uploader_flag(&agent->uploader, FAILED_FILE, body);
}
