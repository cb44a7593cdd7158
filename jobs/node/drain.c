/* Saves and stops when the driver asks for it: see drain.h. */
#include "jobs/node/drain.h"

#include <signal.h>
#include <string.h>

#include "jobs/node/agent.h"
#include "jobs/node/command/command_stop.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/subreaper.h"

/* Returns the number of "USR1", "SIGUSR1", "TERM"…; 0 if there is no such signal. */
static int signal_number(const char *name)
{
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}

static bool is_there(struct agent *agent, const char *name)
{
	AUTO(auto_free) char *key = agent_config_key(&agent->config, name);
	AUTO(err_freep) struct err *ignored = NULL;
	struct store_object object;

	return store_stat(agent->store, key, &object, &ignored) > 0;
}

const char *drain_word(const struct agent *agent)
{
	return agent->workers.lost ? STOPPED_WORKER : STOPPED_DRAIN;
}

static void on_too_long(void *arg)
{
	command_stop(arg, drain_word(arg));
}

void drain_begin(struct agent *agent)
{
	const json_t *checkpoint = json_object_get(agent->config.order, "checkpoint");
	const struct output_scan *listen = &agent->watchdog.listen;
	const char *name = js_str(checkpoint, "signal");
	int signo = name ? signal_number(name) : 0;
	int64_t grace = js_int(checkpoint, "grace_ms", ORDER_DRAIN_MS);

	if (agent->drain.at_ms)
		return;
	agent->drain.at_ms = clock_utc_now().ms;
	agent->drain.step = listen->stepped ? listen->last_step : -1;
	/* Nothing that the command saves would count, or it is ending already. */
	if (!js_str(checkpoint, "root") || agent->config.scratch || agent->over)
		grace = 0;
	else if (signo > 0 && agent->command)
		agent->drain.signalled = subreaper_notify(agent->command, signo) > 0;
	/* A command that does not handle the signal will not hurry: waiting costs more than the
	 * steps since its last checkpoint. Without a signal its next checkpoint is awaited. */
	if (signo > 0 && !agent->drain.signalled)
		grace = 0;
	checkpointer_hurry(&agent->checkpointer);
	loop_after(agent->loop, grace, on_too_long, agent);
}

bool drain_look(struct agent *agent)
{
	if (!agent->drain.at_ms) {
		if (!is_there(agent, DRAIN_FILE))
			return false;
		drain_begin(agent);
	} else if (agent->config.node > 0 &&
		   node_flag_is_set(&agent->config, agent->store, DRAINED_FILE,
				    agent->config.restart)) {
		command_stop(agent, drain_word(agent));
	}
	return true;
}

void drain_saved(struct agent *agent)
{
	agent->drain.marked = true;
	if (agent->config.nodes > 1)
		node_flag_set(&agent->config, agent->store, DRAINED_FILE, json_object());
<<<<<<< HEAD
	command_stop(agent, drain_word(agent));
=======
	supervise_stop(agent, drain_word(agent));
}

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

void drain_news(void *arg, enum checkpointer_news kind, const json_t *news)
{
	struct agent *agent = arg;
	struct node_report_checkpoint *checkpoint;
	int64_t step = js_int(news, "step", -1);

	switch (kind) {
	case CHECKPOINTER_SAVING:
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
			saved(agent);
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
	workers_checkpointer_lives(agent);
>>>>>>> e46e807 (messages and hints of jobs/node: subject first, uploads and retries by name)
}

void drain_report(struct agent *agent)
{
	struct node_report_drain *drain = &agent->report.said.drain;

	if (!agent->drain.at_ms)
		return;
	MESSAGE_MARK(&agent->report.said, drain);
	MESSAGE_SET(drain, at, agent->drain.at_ms);
	MESSAGE_SET(drain, signalled, agent->drain.signalled);
	MESSAGE_SET(drain, marked, agent->drain.marked);
}
