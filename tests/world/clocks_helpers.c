/*
 * C11. Helpers: a dead helper is started again, limited by rate and not by a count per attempt.
 * After five minutes without one an event says what no longer happens.
 *
 * Looked at are the helpers that work as long as the command runs, while its agent does not bring
 * it to an end: the checkpointer and the uploader.
 */
#include <signal.h>
#include <string.h>

#include "jobs/node/workers.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/truth.h"

static const char *const names[] = { "stoker-ckpt", "stoker-upload" };
#define KINDS       (sizeof names / sizeof names[0])
#define AGENTS_MAX  256
#define HOUR_NS     (3600 * WORLD_S)
#define DEATHS_HOUR (WORKER_RESTARTS + 1) /* after so many none is started */

static struct agent_seen {
	const struct process *who;
	bool ends; /* it was told to end, or ends its command */
	struct helper_seen {
		const struct process *alive; /* at the last look, and not dead since; or NULL */
		bool was_alive;
		uint64_t newest_dead;   /* its number */
		struct stretch missing; /* and could have been started */
		struct stretch without; /* none, whatever hindered */
		int64_t deaths[DEATHS_HOUR];
		size_t next; /* of deaths, the oldest */
	} helpers[KINDS];
} agents[AGENTS_MAX];
static size_t agent_count;

static void reset(void)
{
	memset(agents, 0, agent_count * sizeof agents[0]);
	agent_count = 0;
}

static struct agent_seen *seen_of(const struct process *agent)
{
	for (size_t i = 0; i < agent_count; i++)
		if (agents[i].who == agent)
			return &agents[i];
	if (agent_count == AGENTS_MAX)
		return NULL;
	agents[agent_count].who = agent;
	return &agents[agent_count++];
}

static const struct process *agent_of(const struct process *child)
{
	const struct process *parent = process_parent(child);

	return parent && parent->state == PROCESS_ALIVE && strcmp(parent->name, "stoker-node") == 0
		       ? parent
		       : NULL;
}

static const struct process *helper_of(const struct process *agent, const char *name)
{
	for (const struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE && p->parent == agent->pid &&
		    p->machine == agent->machine && strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

static bool may_be_started(const struct helper_seen *helper)
{
	int64_t oldest = helper->deaths[helper->next];

	return oldest == 0 || now_ns - oldest >= HOUR_NS;
}

static void die(struct helper_seen *helper, const struct process *agent)
{
	helper->deaths[helper->next] = now_ns;
	helper->next = (helper->next + 1) % DEATHS_HOUR;
	stretch_begin(&helper->missing, agent);
}

static bool is_child_of(const struct process *agent, const struct process *process)
{
	return process->parent == agent->pid && process->machine == agent->machine &&
	       process->number > agent->number;
}

/* It had a command, and has none any more: only the end is left to be done, and who dies then wears
 * nothing out. */
static bool has_lost_its_command(const struct process *agent)
{
	bool any = false;

	for (const struct truth_command *c = truth_commands; c; c = c->next) {
		if (!is_child_of(agent, c->process))
			continue;
		if (c->process->state == PROCESS_ALIVE)
			return false;
		any = true;
	}
	return any;
}

/* A child of the agent has ended. Each death counts when it happens, as the agent counts it: a
 * helper that lives for less than a second may be seen by no look, for they come once a second. */
static void notice_deaths(struct agent_seen *agent, size_t kind)
{
	struct helper_seen *helper = &agent->helpers[kind];
	uint64_t newest = helper->newest_dead;

	for (const struct process *p = processes; p; p = p->next) {
		if (p->state == PROCESS_ALIVE || p->number <= helper->newest_dead ||
		    !is_child_of(agent->who, p) || strcmp(p->name, names[kind]) != 0)
			continue;
		newest = p->number > newest ? p->number : newest;
		helper->alive = NULL;
		die(helper, agent->who);
		stretch_begin(&helper->without, agent->who);
	}
	helper->newest_dead = newest;
}

static void look_at_helper(const struct story *story, const struct truth_command *command,
			   struct agent_seen *agent, size_t kind)
{
	struct helper_seen *helper = &agent->helpers[kind];
	const struct process *alive = helper_of(agent->who, names[kind]);

	helper->alive = alive;
	helper->was_alive |= alive != NULL;
	if (alive || !helper->was_alive)
		return;
	if (may_be_started(helper) && stretch_ns(&helper->missing) > figure_ns(C11_AGAIN))
		rule_breaks("C11",
			    "the helper %s of %s %d died %.1f s ago and is not started again",
			    names[kind], flow_phase_names[story->shadow.phase],
			    (int)command->attempt, (double)stretch_ns(&helper->missing) / 1e9);
	if (seen_driver() && stretch_ns(&helper->without) > figure_ns(C11_TOLD) &&
	    story_find(story, EV_WORKER_LOST, story->shadow.phase, command->attempt,
		       story->count) == 0)
		rule_breaks("C11", "%s %d has no helper %s for %.1f s, and nothing says so",
			    flow_phase_names[story->shadow.phase], (int)command->attempt,
			    names[kind], (double)stretch_ns(&helper->without) / 1e9);
}

static void on_second(const struct story *story)
{
	for (const struct truth_command *c = truth_commands; c; c = c->next) {
		const struct process *agent;
		struct agent_seen *seen;

		if (c->process->state != PROCESS_ALIVE || c->ended_ns ||
		    story->shadow.stop_requested || story->shadow.recompile)
			continue;
		agent = agent_of(c->process);
		seen = agent ? seen_of(agent) : NULL;
		for (size_t kind = 0; seen && !seen->ends && kind < KINDS; kind++)
			look_at_helper(story, c, seen, kind);
	}
}

/* A signal to an agent, or from it to its command, is the end of the attempt; but not one that its
 * own write to a dead helper brings. */
static void on_signal(const struct process *to, int signo)
{
	const struct process *agent = fault_target_of(to) == TARGET_AGENT     ? to
				      : fault_target_of(to) == TARGET_COMMAND ? agent_of(to)
									      : NULL;
	struct agent_seen *seen = agent && signo != SIGCONT && signo != SIGSTOP && signo != SIGPIPE
					  ? seen_of(agent)
					  : NULL;

	if (!seen)
		return;
	if (signo != SIGCHLD)
		seen->ends = true;
	else if (to == agent && !seen->ends && !has_lost_its_command(agent))
		for (size_t kind = 0; kind < KINDS; kind++)
			notice_deaths(seen, kind);
}

static bool is_worn_out(const struct agent_seen *agent)
{
	for (size_t kind = 0; kind < KINDS; kind++)
		if (!may_be_started(&agent->helpers[kind]))
			return true;
	return false;
}

/* Nobody gives a helper up that did not die so often within an hour. */
static void on_event(const struct story *story, int64_t index)
{
	const struct event *ev = &story->events[index].event;

	if (ev->kind != EV_WORKER_LOST)
		return;
	for (size_t i = 0; i < agent_count; i++)
		if (is_worn_out(&agents[i]))
			return;
	rule_breaks("C11", "a helper is given up that died less than %d times within an hour: %s",
		    (int)DEATHS_HOUR, ev->reason);
}

/* The agent tries again at its next heartbeat. */
static void on_refusal(const struct refusal *refusal)
{
	for (size_t i = 0; i < agent_count; i++)
		for (size_t kind = 0; kind < KINDS && agents[i].who == refusal->who; kind++)
			if (agents[i].helpers[kind].was_alive && !agents[i].helpers[kind].alive)
				die(&agents[i].helpers[kind], refusal->who);
}

const struct clock_rule clock_helpers = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
	.on_signal = on_signal,
	.on_refusal = on_refusal,
};
