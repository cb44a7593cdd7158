/* The agent heeds the news of its checkpointer: see worker_news.h. */
#include "jobs/node/worker_news.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/node/agent.h"
#include "jobs/node/checkpoints/last_pass.h"
#include "jobs/node/command/command_stop.h"

#define SAVES_MAX 1000

/* Returns the member "checkpoint" of the report, set if absent. */
static struct node_report_checkpoint *checkpoint_of(struct agent *agent)
{
	MESSAGE_MARK(&agent->report.said, checkpoint);
	return &agent->report.said.checkpoint;
}

static void add_partial(struct agent *agent, const json_t *news)
{
	struct node_report_checkpoint *checkpoint = checkpoint_of(agent);
	struct node_report_partial *one = MESSAGE_ADD(&checkpoint->partial);

	MESSAGE_MARK(checkpoint, partial);
	MESSAGE_SET_TEXT(one, name, js_str(news, "name"));
	MESSAGE_SET_TEXT(one, why, js_str(news, "why"));
}

/* Reports a checkpoint that is passed over while the command runs. A failed write is ignored: the
 * next report holds it too, and the attempt rests on that one. */
static void add_passed(struct agent *agent, const json_t *news)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct node_report_checkpoint *checkpoint = checkpoint_of(agent);
	struct node_report_passed *one = MESSAGE_ADD(&checkpoint->passed);

	MESSAGE_MARK(checkpoint, passed);
	MESSAGE_SET_TEXT(one, name, js_str(news, "name"));
	MESSAGE_SET_TEXT(one, path, js_str(news, "path"));
	MESSAGE_SET_TEXT(one, why, js_str(news, "why"));
	MESSAGE_SET_TEXT(one, hint, js_str(news, "hint"));
	if (json_object_get(news, "step"))
		MESSAGE_SET(one, step, js_int(news, "step", 0));
	MESSAGE_SET(one, at, js_int(news, "at", 0));
	if (!agent->state)
		(void)!agent_report(agent, REPORT_RUNNING, &ignored);
}

/* Reports when a benchmark saved. A change that follows on the last one extends it, and so does any
 * that there is no room for: too many steps are left out then, and none with a save is measured. */
static void add_save(struct agent *agent, const json_t *news)
{
	AUTO(err_freep) struct err *ignored = NULL;
	int64_t at = js_int(news, "at", 0), since = js_int(news, "since", at);
	struct node_report_checkpoint *checkpoint;
	json_t *saves, *last;

	if (!agent->config.order->checkpoint.postponed || agent->state)
		return;
	checkpoint = checkpoint_of(agent);
	saves = checkpoint->has_saves ? checkpoint->saves : json_array();
	last = json_array_get(saves, json_array_size(saves) - 1);
	if (last && (since <= json_integer_value(json_array_get(last, 1)) ||
		     json_array_size(saves) >= SAVES_MAX))
		json_array_set_new(last, 1, json_integer(at));
	else
		json_array_append_new(saves,
				      json_pack("[I, I]", (json_int_t)since, (json_int_t)at));
	if (!checkpoint->has_saves)
		MESSAGE_SET_JSON(checkpoint, saves, saves);
	(void)!agent_report(agent, REPORT_RUNNING, &ignored);
}

/* Sets the member "cache" of the report. */
static void put_cache(struct agent *agent, const json_t *news)
{
	struct node_report_cache *cache = &agent->report.said.cache;

	message_renew(node_report_message, &agent->report.said, "cache");
	if (json_object_get(news, "brought"))
		MESSAGE_SET(cache, brought, js_int(news, "brought", 0));
	if (json_object_get(news, "cut"))
		MESSAGE_SET(cache, cut, js_int(news, "cut", 0));
	MESSAGE_SET_TEXT(cache, why, js_str(news, "why"));
}

/* A later pass copied what an earlier one could not. */
static void forget_lost(struct agent *agent)
{
	err_freep(&agent->lost);
	free(TAKE(agent->lost_class));
}

/* Records complete checkpoints that no attempt will find: the command's success is
 * worth little then. */
static void note_lost(struct agent *agent, const json_t *news)
{
	const char *class = js_str(news, "class"), *name = js_str(news, "name");
	const char *why = js_str(news, "why"), *words = strstr(why, "': s3 ");

	forget_lost(agent);
	/* Evidence is cut at a length, so the service's own words must not come behind three
	 * paths. */
	if (words)
		err_set(&agent->lost, EXIT_UNREACHABLE, "'%s' exists in '%s' only: %s", name,
			agent->config.checkpoint, words + 3);
	else
		err_set(&agent->lost, EXIT_UNREACHABLE, "'%s' was saved, but not uploaded: %s",
			name, why);
	err_hint(&agent->lost,
		 "check that checkpoint.url can be written to, then copy the files from '%s' on "
		 "that machine, or resume without them",
		 agent->config.checkpoint);
	agent->lost->os_errno = (int)js_int(news, "errno", 0);
	agent->lost_class = class ? mem_copy(class) : NULL;
}

void worker_news_of_checkpointer(void *arg, enum checkpointer_news kind, const json_t *news)
{
	struct agent *agent = arg;
	struct node_report_checkpoint *checkpoint;
	int64_t step = js_int(news, "step", -1);

	switch (kind) {
	case CHECKPOINTER_SAVING:
		add_save(agent, news);
		stall_bytes(&agent->watchdog.stall, clock_mono_now());
		break;
	case CHECKPOINTER_SAVED:
		stall_saved(&agent->watchdog.stall);
		break;
	case CHECKPOINTER_MARKED:
		/* In the last pass older checkpoints may come later. */
		checkpoint = checkpoint_of(agent);
		if (step >= (checkpoint->has_step ? checkpoint->step : -1)) {
			MESSAGE_SET(checkpoint, step, step);
			MESSAGE_SET_TEXT(checkpoint, url, js_str(news, "url"));
		}
		if (agent->drain.at_ms && step >= agent->drain.step)
			drain_saved(agent);
		break;
	case CHECKPOINTER_PASSED:
		add_passed(agent, news);
		break;
	case CHECKPOINTER_PARTIAL:
		add_partial(agent, news);
		break;
	case CHECKPOINTER_TROUBLE:
		checkpoint = checkpoint_of(agent);
		MESSAGE_SET_TEXT(checkpoint, trouble, js_str(news, "why"));
		break;
	case CHECKPOINTER_PUSHED:
		agent->pushed = true;
		put_cache(agent, news);
		break;
	case CHECKPOINTER_UNPUSHED:
		put_cache(agent, news);
		break;
	case CHECKPOINTER_LOST:
		/* Checkpoints that were in place when no process wrote any more still are. */
		if (!agent->kept)
			note_lost(agent, news);
		break;
	case CHECKPOINTER_KEPT:
		agent->kept = true;
		forget_lost(agent);
		break;
	case CHECKPOINTER_COPYING:
		break;
	}
	last_pass_extend(agent);
}
