/* An agent without a command, in a place: for tests of what the agent's own files make of one
 * another, without the steps of agent_main.c. */
#ifndef STK_TESTS_UNIT_NODE_AGENT_SCENE_H
#define STK_TESTS_UNIT_NODE_AGENT_SCENE_H

#include "tests/unit/node/agent_run.h"

#include <sys/prctl.h>

#include "jobs/node/agent.h"
#include "jobs/node/agent_release.h"
#include "jobs/node/uploader_news.h"

/* `far`: as if the workspace were no directory. Steals the order. */
static UNUSED void scene_open(struct agent *agent, const struct place *place, json_t *order,
			      const char *rank, bool far)
{
	AUTO(err_freep) struct err *err = NULL;

	*agent = (struct agent){ .lock_fd = -1,
				 .log_fd = -1,
				 .pipe_fd = -1,
				 .uploader.helper = { .news_fd = -1, .orders_fd = -1 } };
	load(&agent->config, place, order, rank);
	agent->config.object_workspace = far;
	must(store_open(agent->config.workspace, &agent->store, &err), &err);
	must(loop_new(&agent->loop, &err), &err);
	uploader_init(&agent->uploader, agent->loop, uploader_news_heed, agent);
	output_relay_init(&agent->relay, open("/dev/null", O_WRONLY | O_CLOEXEC), -1, NULL,
			  agent->loop);
	report_init(&agent->report, &agent->config, &agent->relay);
	claim_init(&agent->claim, &agent->config);
}

/* Gives it a command that does nothing, in a group of its own: what is meant for the command's
 * group must reach nobody else. */
static UNUSED void scene_command(struct agent *agent)
{
	pid_t test = getpid();

	agent->command = fork();
	assert_true(agent->command >= 0);
	if (agent->command == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == test)
			pause();
		_exit(0);
	}
	assert_int_equal(setpgid(agent->command, agent->command), 0);
}

/* Helpers are dead or die with it. */
static UNUSED void scene_close(struct agent *agent)
{
	if (agent->command > 1) {
		kill(agent->command, SIGKILL);
		waitpid(agent->command, NULL, 0);
	}
	close(agent->relay.outlet.fd);
	agent_release(agent);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

#endif
