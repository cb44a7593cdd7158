/* Saves and stops when the driver asks for it: see drain.h. */
#include "jobs/node/drain.h"

#include <signal.h>
#include <string.h>

#include "jobs/node/agent.h"
#include "jobs/node/command/command_stop.h"
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
	const struct order_checkpoint *checkpoint = &agent->config.order->checkpoint;
	const struct output_scan *listen = &agent->watchdog.listen;
	const char *name = checkpoint->signal;
	int signo = name ? signal_number(name) : 0;
	int64_t grace = checkpoint->grace_ms;

	if (agent->drain.at_ms)
		return;
	agent->drain.at_ms = clock_utc_now().ms;
	agent->drain.step = listen->stepped ? listen->last_step : -1;
	/* Nothing that the command saves would count, or it is ending already. */
	if (!checkpoint->root || agent->config.scratch || agent->over)
		grace = 0;
	else if (signo > 0 && agent->command)
		agent->drain.signalled = subreaper_notify(agent->command, signo) > 0;
	/* A command that does not handle the signal will not hurry: waiting costs more than the
	 * steps since its last checkpoint. Without a signal its next checkpoint is awaited. */
	if (signo > 0 && !agent->drain.signalled)
		grace = 0;
	checkpointer_drain(&agent->checkpointer);
	loop_after(agent->loop, grace, on_too_long, agent);
}

void drain_saved(struct agent *agent)
{
	agent->drain.marked = true;
	if (agent->config.nodes > 1)
		uploader_flag(&agent->uploader, DRAINED_FILE, json_object());
	command_stop(agent, drain_word(agent));
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
