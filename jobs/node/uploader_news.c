/* The agent heeds the news of its uploader: see uploader_news.h. */
#include "jobs/node/uploader_news.h"

#include <errno.h>

#include "jobs/node/agent.h"
#include "jobs/node/command/command_end.h"
#include "jobs/node/command/command_stop.h"

/* Without a report nobody could see how the command fares: as with a log that cannot be kept. A
 * later one that fails is made good by the next. */
static void heed_refusal(struct agent *agent, const json_t *line)
{
	AUTO(err_freep) struct err *why = NULL;

	err_set(&why, EXIT_REFUSED, "%s", js_str(line, "why"));
	why->os_errno = (int)js_int(line, "errno", 0);
	if (agent->state) {
		err_freep(&agent->trouble);
		agent->trouble = TAKE(why);
	} else if (!agent->command) {
		report_error(&agent->report, why, NULL);
		agent_finish(agent, REPORT_FAILED, AGENT_EXIT_FAILED);
	} else if (!agent->shown && !agent->trouble) {
		agent->trouble = TAKE(why);
		command_stop(agent, STOPPED_LOG);
	}
}

static void note_flag(struct agent *agent, const json_t *line)
{
	if (!js_is(line, "name", ENDED_FILE))
		return;
	agent->ended_asked = false;
	agent->ended_due = !js_bool(line, "set", false);
}

void uploader_news_heed(void *arg, enum uploader_news news, const json_t *line)
{
	struct agent *agent = arg;

	switch (news) {
	case UPLOADER_SUPERSEDED:
		command_stop(agent, STOPPED_SUPERSEDED);
		break;
	case UPLOADER_DRAIN:
		drain_begin(agent);
		break;
	case UPLOADER_DRAINED:
		if (agent->config.node > 0 && agent->drain.at_ms)
			command_stop(agent, drain_word(agent));
		break;
	case UPLOADER_PEER_FAILED:
		if (!agent->drain.at_ms)
			command_stop(agent, STOPPED_PEER);
		break;
	case UPLOADER_HEAD_ENDED:
		agent->head_ended = true;
		watchdog_alone(agent);
		break;
	case UPLOADER_LOOKED:
		command_end_looked(agent);
		break;
	case UPLOADER_REPORTED:
		agent->shown |= js_is(line, "state", REPORT_RUNNING);
		break;
	case UPLOADER_REFUSED:
		heed_refusal(agent, line);
		break;
	case UPLOADER_LOG_LOST:
		agent->relay.failed = (int)js_int(line, "errno", EIO);
		break;
	case UPLOADER_FLAGGED:
		note_flag(agent, line);
		break;
	case UPLOADER_PEER:
		watchdog_hear(agent, (int)js_int(line, "node", 0), js_str(line, "text"));
		break;
	case UPLOADER_SUM:
		watchdog_sum(agent, js_int(line, "for", 0), js_int(line, "sum", 0));
		break;
	case UPLOADER_DONE:
		break;
	}
	if (agent->heard)
		agent->heard(agent);
}
