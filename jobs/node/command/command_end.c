/* Result of the command, once it has ended: see command_end.h. */
#include "jobs/node/command/command_end.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "jobs/base/clock.h"
#include "jobs/node/agent.h"
#include "jobs/node/command/command_stop.h"

#define LOOK_MS 10000 /* longest wait for the last look at the workspace */

/* ---- the process has ended ---- */

static int exit_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* True if neither a drain nor a stop ended the command, other than a log that could not be kept:
 * the end is then this node's own. */
static bool ended_by_itself(const struct agent *agent)
{
	return !agent->drain.at_ms && (!agent->stopped || strcmp(agent->stopped, STOPPED_LOG) == 0);
}

void command_end_tell(struct agent *agent)
{
	if (!agent->ended_due || agent->ended_asked || !ended_by_itself(agent))
		return;
	agent->ended_asked = true;
	uploader_flag(&agent->uploader, ENDED_FILE, json_object());
}

/* Tells the others how the command ended. */
static void tell_peers(struct agent *agent)
{
	if (ended_by_itself(agent)) {
		agent_tell_peers(agent, exit_of(agent->status));
		agent->ended_due =
			agent->status == 0 && agent->config.node == 0 && agent->config.nodes > 1;
	}
	command_end_tell(agent);
}

void command_end_looked(struct agent *agent)
{
	if (!agent->looking)
		return;
	agent->looking = false;
	loop_remove(agent->loop, agent->late_timer);
	agent->late_timer = NULL;
	tell_peers(agent);
	agent->heard(agent);
}

static void on_late(void *arg)
{
	struct agent *agent = arg;

	agent->late_timer = NULL;
	command_end_looked(agent);
}

void command_end_begin(struct agent *agent, int status)
{
	agent->over = true;
	agent->status = status;
	sampler_stop(agent);
	MESSAGE_SET(&agent->report.said, ended, clock_utc_now().ms);
	/* Other nodes may have heard of a drain before us, and left. In a far workspace the look
	 * takes a while, which is worth it only if there are other nodes. */
	if (!agent->config.object_workspace || agent->config.nodes > 1) {
		agent->looking = true;
		agent->late_timer = loop_after(agent->loop, LOOK_MS, on_late, agent);
		uploader_look(&agent->uploader);
	} else {
		tell_peers(agent);
	}
	if (!agent->stopped) {
		command_stop_leftovers(agent);
		return;
	}
	/* The command's group was told already; processes that left the group are told now, and
	 * have what remains of the grace. */
	command_stop_signal(agent, SIGTERM);
}

/* ---- the checkpointer's last work ---- */

/* True if nothing hurries the command: it ends by itself, or was asked to save first. Then what
 * it saved counts. */
static bool at_leisure(const struct agent *agent)
{
	return !agent->stopped || strcmp(agent->stopped, STOPPED_DRAIN) == 0 ||
	       strcmp(agent->stopped, STOPPED_WORKER) == 0;
}

static bool lacks_push(const struct agent *agent)
{
	AUTO(auto_free) char *cache = agent_config_cache(&agent->config);

	return cache && !agent->pushed;
}

static bool lacks_keeping(const struct agent *agent)
{
	return checkpointer_has_checkpoints(&agent->config) && !agent->kept && !agent->lost;
}

bool command_end_lacks_pass(const struct agent *agent)
{
	return (lacks_push(agent) && !agent->stopped) ||
	       (lacks_keeping(agent) && at_leisure(agent));
}

/* True if a signal killed the command. A shell dies of the SIGTERM on which its children leave by
 * themselves; that does not count. */
static bool was_killed(const struct agent *agent)
{
	return WIFSIGNALED(agent->status) &&
	       !(WTERMSIG(agent->status) == SIGTERM && agent->heirs_left);
}

bool command_end_was_cut_off(const struct agent *agent)
{
	if (!agent->stopped)
		return agent->status != 0;
	return agent->kill_rounds > 0 || was_killed(agent);
}

/* ---- the result ---- */

/* Fails a precompile that went well, because its graphs are not where they would be looked for. */
static void not_pushed(struct agent *agent)
{
	const struct order_compile *compile = &agent->config.order->compile;
	const char *why = agent->report.said.cache.why;

	/* The cache's error names the place already, and evidence is cut at a length. */
	if (why)
		err_set(&agent->trouble, EXIT_UNREACHABLE, "%s", why);
	else
		err_set(&agent->trouble, EXIT_UNREACHABLE,
			"cannot upload the compiled graphs to '%s'", compile->cache);
	agent_fail(agent, &agent->trouble, "transient-infra");
}

/* Fails a command that went well, because the next one would not find what it saved. */
static void not_kept(struct agent *agent)
{
	const char *trouble = agent->report.said.checkpoint.trouble;
	AUTO(auto_free) char *class = TAKE(agent->lost_class);

	if (!agent->lost) {
		err_set(&agent->lost, EXIT_UNREACHABLE,
			"the process for the checkpoints in '%s' did not end well%s%s",
			agent->config.checkpoint, trouble ? ": " : "", trouble ? trouble : "");
		class = mem_copy("transient-infra");
	}
	agent_fail(agent, &agent->lost, class);
}

void command_end_conclude(struct agent *agent)
{
	if (agent->drain.at_ms && !agent->stopped)
		agent->stopped = drain_word(agent);
	if (WIFSIGNALED(agent->status))
		MESSAGE_SET(&agent->report.said, signal, WTERMSIG(agent->status));
	if (agent->leftovers > 0)
		MESSAGE_SET(&agent->report.said, leftovers, (int64_t)agent->leftovers);
	outputs_report(agent);
	workers_tell_lost(agent);
	if (agent->stopped && strcmp(agent->stopped, STOPPED_SUPERSEDED) == 0) {
		agent_finish(agent, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE);
		return;
	}
	if (agent->trouble) {
		agent_fail(agent, &agent->trouble, NULL);
		return;
	}
	if (at_leisure(agent) && agent->tasks.why) {
		AUTO(auto_free) char *class = TAKE(agent->tasks.why_class);

		agent_fail(agent, &agent->tasks.why, class);
		return;
	}
	if (agent->config.scratch && !agent->stopped && agent->status == 0 && lacks_push(agent)) {
		not_pushed(agent);
		return;
	}
	if (at_leisure(agent) && agent->status == 0 && (agent->lost || lacks_keeping(agent))) {
		not_kept(agent);
		return;
	}
	if (at_leisure(agent) && agent->status == 0 && agent->outputs.lost) {
		agent_fail(agent, &agent->outputs.lost, agent->outputs.lost_class);
		return;
	}
	agent_finish(agent, REPORT_ENDED, exit_of(agent->status));
}
