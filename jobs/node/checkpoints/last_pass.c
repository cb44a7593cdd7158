/* Time for the checkpointer's last pass: see last_pass.h. */
#include "jobs/node/checkpoints/last_pass.h"

#include "jobs/node/agent.h"

/* Longest time without news, and least time after a signal even if the grace is over. */
#define CHECKPOINTER_SILENT_MS ((int64_t)5 * 60 * 1000)
#define CHECKPOINTER_LEAST_MS  2000

static void on_checkpointer_stuck(void *arg)
{
	struct agent *agent = arg;

	agent->checkpointer_timer = NULL;
	agent->checkpointer_stuck = true;
	checkpointer_kill(&agent->checkpointer);
}

/* Only the last pass is timed; until then the checkpointer may wait on a slow disk as long as the
 * command does. After a signal no news gives it more time: the grace bounds it all. */
void last_pass_extend(struct agent *agent)
{
	int64_t wait = CHECKPOINTER_SILENT_MS, least = clock_mono_now().ms + CHECKPOINTER_LEAST_MS;

	if (!agent->checkpointer.last_pass || agent->checkpointer.helper.pid == 0)
		return;
	if (agent->told_at.ms) {
		if (agent->checkpointer_end.ms == 0) {
			agent->checkpointer_end.ms =
				agent->told_at.ms + agent_config_keep_ms(&agent->config);
			if (agent->checkpointer_end.ms < least)
				agent->checkpointer_end.ms = least;
		}
		wait = agent->checkpointer_end.ms - clock_mono_now().ms;
		wait = wait > 0 ? wait : 0;
	}
	loop_remove(agent->loop, agent->checkpointer_timer);
	agent->checkpointer_timer = loop_after(agent->loop, wait, on_checkpointer_stuck, agent);
}
