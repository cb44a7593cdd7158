/* The agent gives back what it holds: see agent_release.h. */
#include "jobs/node/agent_release.h"

#include <stdlib.h>

#include "jobs/node/agent.h"
#include "jobs/node/look.h"

void agent_release(struct agent *agent)
{
	auto_close(&agent->pipe_fd);
	health_stop(agent);
	prefetch_release(&agent->prefetch);
	checkpointer_kill(&agent->checkpointer);
	checkpointer_release(&agent->checkpointer);
	tasks_release(&agent->tasks);
	look_release(&agent->look);
	outputs_release(&agent->outputs);
	workers_release(&agent->workers);
	helper_kill(&agent->uploader.helper);
	uploader_release(&agent->uploader);
	watchdog_release(&agent->watchdog);
	sampler_release(&agent->sampler);
	err_freep(&agent->trouble);
	err_freep(&agent->lost);
	free(agent->lost_class);
	command_env_release(&agent->env);
	claim_release(&agent->claim);
	report_release(&agent->report);
	output_relay_release(&agent->relay);
	loop_freep(&agent->loop);
	store_freep(&agent->store);
	agent_config_release(&agent->config);
	auto_close(&agent->lock_fd);
	auto_close(&agent->log_fd);
}
