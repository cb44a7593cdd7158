/* Ends the command and everything that descends from it: see command_stop.h. */
#include "jobs/node/command/command_stop.h"

#include <signal.h>
#include <string.h>

#include "jobs/base/clock.h"
#include "jobs/node/agent.h"
#include "jobs/node/checkpoints/last_pass.h"
#include "jobs/node/subreaper.h"

/* Time for the command's own children to finish when it ended by itself, and then after a
 * SIGTERM. */
#define LEFTOVERS_MS  1000
#define KILL_EVERY_MS 50
#define KILL_ROUNDS   100 /* at that pace, then slower */

size_t command_stop_signal(const struct agent *agent, int signo)
{
	pid_t helpers[3 + USAGE_TOOLS] = { agent->checkpointer.helper.pid,
					   agent->uploader.helper.pid, agent->outputs.helper.pid };

	sampler_children(agent, helpers + 3);
	return subreaper_signal(signo, helpers, STK_LENGTH(helpers));
}

/* Kills again and again until nothing is left: the children of a killed process come to us. A
 * process that the kernel does not let go of is waited for; it has not ended. */
static void on_kill(void *arg)
{
	struct agent *agent = arg;
	bool often = agent->kill_rounds++ < KILL_ROUNDS;

	if (!agent->over)
		kill(-agent->command, SIGKILL);
	command_stop_signal(agent, SIGKILL);
	agent->kill_timer =
		loop_after(agent->loop, often ? KILL_EVERY_MS : LEFTOVERS_MS, on_kill, agent);
}

static void kill_after(struct agent *agent, int64_t delay_ms, watch_fn fn)
{
	loop_remove(agent->loop, agent->kill_timer);
	agent->kill_timer = loop_after(agent->loop, delay_ms, fn, agent);
}

/* The command ended by itself and left processes behind. */
static void on_leftovers(void *arg)
{
	struct agent *agent = arg;

	agent->kill_timer = NULL;
	agent->leftovers = command_stop_signal(agent, SIGTERM);
	if (agent->leftovers == SUBREAPER_UNKNOWN)
		agent->leftovers = 0;
	command_stop_signal(agent, SIGCONT);
	kill_after(agent, LEFTOVERS_MS, on_kill);
}

/* A signal came while the command was being stopped: it may leave less time than the grace. */
static void shorten_grace(struct agent *agent)
{
	int64_t now = clock_mono_now().ms, left = agent->stop_at.ms + agent->config.grace_ms - now;
	int64_t kill = agent->told_at.ms + agent_config_kill_ms(&agent->config) - now;

	if (agent->told_at.ms && agent->kill_timer && left > 0 && kill < left)
		kill_after(agent, kill > 0 ? kill : 0, on_kill);
}

void command_stop(struct agent *agent, const char *why)
{
	bool first = !agent->stopped;

	if (agent->state)
		return;
	if (first || strcmp(why, STOPPED_SUPERSEDED) == 0)
		agent->stopped = why;
	if (strcmp(why, STOPPED_SUPERSEDED) == 0) {
		checkpointer_kill(&agent->checkpointer);
		outputs_kill(agent);
	}
	if (!first) {
		shorten_grace(agent);
		return;
	}
	agent->stop_at = clock_mono_now();
	if (!agent->command) {
		if (strcmp(why, STOPPED_SUPERSEDED) == 0)
			agent_finish(agent, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE);
		else
			agent_finish(agent, REPORT_ENDED, 128 + SIGTERM);
		return;
	}
	/* SIGCONT: a stopped process could not hear the SIGTERM. */
	if (!agent->over) {
		kill(-agent->command, SIGTERM);
		kill(-agent->command, SIGCONT);
	} else {
		command_stop_signal(agent, SIGTERM);
		command_stop_signal(agent, SIGCONT);
	}
	kill_after(agent,
		   agent->told_at.ms ? agent_config_kill_ms(&agent->config)
				     : agent->config.grace_ms,
		   on_kill);
	last_pass_extend(agent);
}

void command_stop_leftovers(struct agent *agent)
{
	kill_after(agent, LEFTOVERS_MS, on_leftovers);
}
