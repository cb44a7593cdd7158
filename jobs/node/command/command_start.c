/* Starts the command: see command_start.h. */
#include "jobs/node/command/command_start.h"

#include <errno.h>

#include "jobs/base/clock.h"
#include "jobs/base/process/proc.h"
#include "jobs/node/agent.h"
#include "jobs/node/command/command_watch.h"
#include "jobs/node/host_evidence.h"
#include "jobs/node/look.h"
#include "jobs/node/setup/compiler.h"
#include "jobs/node/setup/container_env.h"
#include "jobs/node/setup/prepare.h"
#include "jobs/node/setup/secrets.h"
#include "jobs/node/setup/versions.h"
#include "jobs/node/tasks/node_task.h"

/* The command could not be executed: reports its end as a shell would. */
static void no_command(struct agent *agent, int exit_status, struct err **why)
{
	if (agent_repeats(agent, why))
		return;
	report_error(&agent->report, *why, "user-config");
	err_freep(why);
	MESSAGE_SET(&agent->report.said, ended, clock_utc_now().ms);
	agent_finish(agent, REPORT_ENDED, exit_status);
}

/* Starts the command, or what stands for it. */
static int begin(struct agent *agent, const struct proc_start *start, struct err **err)
{
	if (look_needed(&agent->config))
		return look_start(&agent->look, &agent->config, start->out, &agent->command, err);
	if (tasks_needed(&agent->config))
		return tasks_start(agent, start->out, &agent->command, err);
	return proc_spawn(start, &agent->command, err);
}

static int spawn(struct agent *agent, const char *program, char **argv, struct err **err)
{
	AUTO(auto_close) int write_fd = -1;
	struct proc_start start = {
		.program = program,
		.argv = argv,
		.envp = agent->env.list,
		.cwd = agent->config.src,
		.in = -1,
	};
	struct proc_id id;

	if (command_watch_open(agent, &write_fd, err) < 0)
		return -1;
	start.out = start.err = write_fd;
	if (begin(agent, &start, err) < 0) {
		agent->command = 0;
		command_watch_close(agent);
		return -1;
	}
	agent->step = NULL;
	agent->start_at = clock_mono_now();
	MESSAGE_SET(&agent->report.said, started, clock_utc_now().ms);
	if (proc_identify(agent->command, &id) == 0) {
		MESSAGE_MARK(&agent->report.said, command);
		report_process(&agent->report.said.command, &id);
	}
	return 0;
}

/* Builds the environment and the command line. Those of a task are built when it begins; what is
 * looked at before is that of the first. */
static int build(struct agent *agent, char ***ret_argv, struct err **err)
{
	struct agent_config config = agent->config;
	struct node_task first;

	if (tasks_needed(&config)) {
		node_task_at(&config, 0, &first);
		config.task = &first;
		config.task_output = config.output;
		config.task_manifest = config.order->data_manifest;
	}
	return command_env_build(&config, &agent->claim, &agent->env, err) < 0
		       ? -1
		       : command_env_command(&config, &agent->env, ret_argv, err);
}

static bool is_about_the_program(int os_errno)
{
	return os_errno == ENOENT || os_errno == EACCES || os_errno == ENOEXEC ||
	       os_errno == ENOTDIR || os_errno == ELOOP || os_errno == ETXTBSY;
}

void command_start(struct agent *agent)
{
	AUTO(auto_strv) char **argv = NULL;
	AUTO(auto_free) char *program = NULL;
	AUTO(err_freep) struct err *why = NULL;
	int no = 0;

	watchdog_release(&agent->watchdog);
	command_env_release(&agent->env);
	agent->oom_before = host_evidence_oom_kills();
	if (secrets_fetch(&agent->config, &why) < 0) {
		agent_fail(agent, &why,
			   why->code == EXIT_UNREACHABLE ? "transient-infra" : "quota-permission");
		return;
	}
	if (watchdog_init(agent, &why) < 0 || build(agent, &argv, &why) < 0) {
		agent_fail(agent, &why, "user-config");
		return;
	}
	versions_inspect(&agent->config, &agent->env, &agent->report.said);
	if (!look_needed(&agent->config) &&
	    prepare_program(&agent->config, argv[0], command_env_get(&agent->env, "PATH"), &program,
			    &no, &why) < 0) {
		if (no)
			no_command(agent, no, &why);
		else
			agent_fail(agent, &why, NULL);
		return;
	}
	if (compiler_inspect(&agent->config, &agent->env, &agent->report.said, &why) < 0) {
		agent_fail(agent, &why, "compile");
		return;
	}
	container_env_report(&agent->config, &agent->report.said);
	if (spawn(agent, program, argv, &why) < 0) {
		if (is_about_the_program(why->os_errno))
			no_command(agent,
				   why->os_errno == ENOENT ? AGENT_EXIT_NO_FILE
							   : AGENT_EXIT_NO_EXEC,
				   &why);
		else
			agent_fail(agent, &why, NULL);
		return;
	}
	command_watch_begin(agent);
}
