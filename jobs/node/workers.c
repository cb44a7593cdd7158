/* The checkpointer and the uploader while the agent lives: see workers.h. */
#include "jobs/node/workers.h"

#include <string.h>
#include <sys/wait.h>

#include "jobs/node/agent.h"
#include "jobs/node/worker_news.h"
#include "jobs/store/store_json.h"

#define HOUR_MS     ((int64_t)3600 * 1000)
#define LAST_STARTS 3

/* ---- the budget ---- */

static const struct {
	const char *name, *process, *does;
} rows[WORKER_KINDS] = {
	[WORKER_CHECKPOINTER] = { "checkpointer", "stoker-ckpt",
				  "uploads checkpoints and compiled graphs" },
	[WORKER_UPLOADER] = { "uploader", "stoker-upload",
			      "uploads the log, and renews the claim" },
};

/* True if only the end is left to be done. */
static bool is_on_its_way_out(const struct agent *agent)
{
	return agent->over || agent->stopped || agent->drain.at_ms || agent->workers.lost;
}

void worker_dies(struct worker *worker, int status, struct mono now)
{
	worker->status = status;
	worker->deaths[worker->next] = now;
	worker->next = (worker->next + 1) % STK_LENGTH(worker->deaths);
}

bool worker_may_start(const struct worker *worker, struct mono now)
{
	struct mono oldest = worker->deaths[worker->next];

	return oldest.ms == 0 || now.ms - oldest.ms >= HOUR_MS;
}

static void note_death(struct agent *agent, enum worker_kind kind, int status)
{
	worker_dies(&agent->workers.kinds[kind], status, clock_mono_now());
}

static bool may_start(struct agent *agent, struct worker *worker)
{
	return is_on_its_way_out(agent) ? worker->last++ < LAST_STARTS
					: worker_may_start(worker, clock_mono_now());
}

static void describe_end(int status, struct sb *ret)
{
	if (status == -1)
		sb_adds(ret, "cannot start a process");
	else if (WIFSIGNALED(status))
		sb_addf(ret, "signal %d", WTERMSIG(status));
	else
		sb_addf(ret, "exit %d", WEXITSTATUS(status));
}

/* Writes the drain that the driver would ask for: all nodes of the attempt look for it. The agent
 * does that itself, as the worker that stays dead may be the uploader. */
void workers_tell_lost(struct agent *agent)
{
	AUTO(auto_free) char *key = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *drain = NULL, *report = NULL;

	if (!agent->workers.drain_due)
		return;
	key = agent_config_key(&agent->config, DRAIN_FILE);
	drain = json_object();
	js_put(drain, "v", json_integer(1));
	report = message_encode(node_report_message, &agent->report.said);
	js_put_str(drain, "reason", agent->report.said.worker.why);
	js_put(drain, "at", json_integer(clock_utc_now().ms));
	js_put(drain, "node", json_integer(agent->config.node));
	json_object_set(drain, "worker", json_object_get(report, "worker"));
	agent->workers.drain_due = store_json_replace(agent->store, key, NULL, drain, &ignored) < 0;
}

static void lose(struct agent *agent, enum worker_kind kind)
{
	AUTO(sb_release) struct sb end = SB_INIT;
	AUTO(err_freep) struct err *ignored = NULL;
	struct node_report_worker *worker = &agent->report.said.worker;

	describe_end(agent->workers.kinds[kind].status, &end);
	err_set(&agent->workers.lost, EXIT_REFUSED,
		"the agent's process that %s (%s) died %d times within an hour, the last "
		"time with %s",
		rows[kind].does, rows[kind].process, WORKER_RESTARTS + 1, end.text);
	err_hint(&agent->workers.lost,
		 "another machine is tried; if the process dies there too, look for the cause: "
		 "lack of memory, a limit of the container");
	MESSAGE_MARK(&agent->report.said, worker);
	MESSAGE_SET_TEXT(worker, name, rows[kind].name);
	MESSAGE_SET_TEXT(worker, why, agent->workers.lost->message);
	MESSAGE_SET_TEXT(worker, hint, agent->workers.lost->hint);
	MESSAGE_SET(worker, at, clock_utc_now().ms);
	agent->workers.drain_due = true;
	drain_begin(agent);
	(void)!agent_report(agent, REPORT_RUNNING, &ignored);
	workers_tell_lost(agent);
}

static bool is_to_start(struct agent *agent, enum worker_kind kind)
{
	if (may_start(agent, &agent->workers.kinds[kind]))
		return true;
	if (!is_on_its_way_out(agent))
		lose(agent, kind);
	return false;
}

bool workers_again(struct agent *agent, enum worker_kind kind)
{
	note_death(agent, kind, 0);
	return may_start(agent, &agent->workers.kinds[kind]);
}

void workers_keep(struct agent *agent)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (!checkpointer_needed(&agent->config) || agent->checkpointer.helper.pid > 0 ||
	    !is_to_start(agent, WORKER_CHECKPOINTER))
		return;
	checkpointer_release(&agent->checkpointer);
	if (checkpointer_start(&agent->checkpointer, &agent->config, &agent->claim, agent->loop,
			       worker_news_of_checkpointer, agent, &ignored) < 0)
		note_death(agent, WORKER_CHECKPOINTER, -1);
	if (agent->drain.at_ms)
		checkpointer_drain(&agent->checkpointer);
}

int workers_start_uploader(struct agent *agent, struct err **err)
{
	return uploader_start(&agent->uploader, &agent->config, &agent->claim, err);
}

void workers_keep_uploader(struct agent *agent)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (agent->uploader.helper.pid > 0 || !is_to_start(agent, WORKER_UPLOADER))
		return;
	if (workers_start_uploader(agent, &ignored) < 0)
		note_death(agent, WORKER_UPLOADER, -1);
}

void workers_died(struct agent *agent, enum worker_kind kind, int status)
{
	note_death(agent, kind, status);
	if (kind == WORKER_CHECKPOINTER)
		checkpointer_gone(&agent->checkpointer);
	else
		uploader_gone(&agent->uploader);
}

void workers_release(struct workers *workers)
{
	err_freep(&workers->lost);
}
