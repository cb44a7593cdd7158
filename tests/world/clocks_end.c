/*
 * C14. The end: an attempt's end takes at most 30 s, with 2,000 checkpoints marked before. Within
 * two hours of the last fault every run ends, or says what it is waiting for (play.c).
 *
 * Counted is the time from the end of the last command of an attempt on in which its agents and
 * their helpers could act. What one of them was refused meanwhile may be tried again for as long;
 * a checkpoint of which nobody knows yet that it is complete is brought away and marked first.
 *
 * Where an attempt has tasks, each of them is a command, and its end may be followed by the next
 * one's beginning: then the time begins anew. So it is also the longest that no task is at work.
 *
 * A run that journals without end does not end either.
 */
#include <string.h>
#include <sys/wait.h>

#include "jobs/base/mem.h"
#include "jobs/store/order.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/truth.h"

#define ENDS_MAX    256
#define EVENTS_MOST 20000 /* 1,279 are the most that a schedule had */

static struct end {
	const struct truth_command *command;
	const struct process *agent;
	const struct truth_command *newest; /* of the attempt */
	int64_t counted_ns;                 /* since then */
	int64_t most_ns;
} ends[ENDS_MAX];
static size_t end_count;

static void reset(void)
{
	end_count = 0;
}

static bool is_over(const struct truth_command *command)
{
	return command->process->state != PROCESS_ALIVE;
}

static bool leaves_processes(const struct process *leader)
{
	for (const struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE && p->machine == leader->machine &&
		    p->group == leader->pid && p->number > leader->number)
			return true;
	return false;
}

/* The agent that has started the command, if it lives. Pids come again after a boot. */
static const struct process *agent_of(const struct truth_command *command)
{
	const struct process *parent = truth_agent(command);

	return parent && parent->state == PROCESS_ALIVE &&
			       parent->number < command->process->number &&
			       fault_target_of(parent) == TARGET_AGENT
		       ? parent
		       : NULL;
}

static bool is_same_attempt(const struct truth_command *one, const struct truth_command *other)
{
	return one->phase == other->phase && one->attempt == other->attempt &&
	       strcmp(one->run, other->run) == 0;
}

/* The attempt's newest command on that node (-1: on any). */
static const struct truth_command *newest_of(const struct truth_command *command, int node)
{
	const struct truth_command *newest = truth_commands;

	while (newest && (!is_same_attempt(newest, command) || (node >= 0 && newest->node != node)))
		newest = newest->next;
	return newest;
}

/* No node computes any more. */
static bool is_attempt_over(const struct truth_command *command)
{
	for (const struct truth_command *c = truth_commands; c; c = c->next)
		if (!is_over(c) && is_same_attempt(c, command))
			return false;
	return true;
}

/* Checkpoints of the attempt that were not known to be marked when it ended. */
static int64_t count_unmarked(const struct truth_command *command)
{
	const struct story *story = story_of(command->run);
	int64_t unmarked = 0;

	for (const struct truth_save *save = truth_saves; save; save = save->next)
		unmarked += is_same_attempt(save->command, command);
	for (int64_t i = 0; story && i < story->count; i++)
		unmarked -= story->events[i].event.kind == EV_CHECKPOINT_COMPLETE &&
			    story->events[i].event.attempt == command->attempt;
	return unmarked > 0 ? unmarked : 0;
}

/* An agent gives what its command has left behind limits.grace to end, and the main node waits for
 * the other nodes. */
static int64_t longest_ns(const struct truth_command *command)
{
	bool leaves = false;

	for (const struct truth_command *c = truth_commands; c; c = c->next)
		leaves |= is_same_attempt(c, command) && leaves_processes(c->process);
	return figure_ns(C14_END) + count_unmarked(command) * figure_ns(C14_SAVE) +
	       (leaves ? playing->setting.grace_s * WORLD_S : 0);
}

/* The next agent of the attempt, on whichever node, living or not. */
static const struct process *next_agent(const struct truth_command *command,
					const struct process *after)
{
	AUTO(auto_free)
	char *folder = mem_format("runs/%s/%s-%lld/", command->run,
				  truth_phase_names[command->phase], (long long)command->attempt);

	for (const struct process *p = after ? after->next : processes; p; p = p->next)
		if (p->argv && p->argv[0] && p->argv[1] && fault_target_of(p) == TARGET_AGENT &&
		    strstr(p->argv[1], folder))
			return p;
	return NULL;
}

/* The uploader that was to bring its last words was killed. */
static bool left_without_a_word(const struct process *agent)
{
	const struct process *last = NULL;

	for (const struct process *p = processes; p; p = p->next)
		if (p->parent == agent->pid && p->machine == agent->machine &&
		    p->number > agent->number && strcmp(p->name, "stoker-upload") == 0 &&
		    (!last || p->number > last->number))
			last = p;
	return last && last->state != PROCESS_ALIVE && WIFSIGNALED(last->status);
}

/* An agent of the attempt was killed, or has left without a word. The main node waits for what such
 * a node might still bring, for ten minutes. */
static bool has_lost_agents(const struct truth_command *command)
{
	for (const struct process *p = next_agent(command, NULL); p; p = next_agent(command, p))
		if (p->state != PROCESS_ALIVE &&
		    (!WIFEXITED(p->status) || WEXITSTATUS(p->status) == AGENT_EXIT_NOT_MINE ||
		     left_without_a_word(p)))
			return true;
	return false;
}

static struct end *end_of(const struct truth_command *command)
{
	for (size_t i = 0; i < end_count; i++)
		if (ends[i].command == command)
			return &ends[i];
	if (end_count == ENDS_MAX)
		return NULL;
	ends[end_count] = (struct end){
		.command = command,
		.most_ns = longest_ns(command),
	};
	return &ends[end_count++];
}

/* The agent itself, or one of its children. */
static bool is_of(const struct process *agent, const struct process *process)
{
	return process == agent || process_parent(process) == agent;
}

static bool all_can_act(const struct process *agent)
{
	for (const struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE && is_of(agent, p) && !time_counts(p))
			return false;
	return true;
}

/* The main node waits for the other nodes' agents, so all of them must be able to act; one may not
 * have come to its command. */
static bool attempt_can_act(const struct truth_command *command)
{
	for (const struct process *p = next_agent(command, NULL); p; p = next_agent(command, p))
		if (p->state == PROCESS_ALIVE && !all_can_act(p))
			return false;
	return command->nodes == 1 || !has_lost_agents(command);
}

static void on_second(const struct story *story)
{
	(void)story;
	for (const struct truth_command *c = truth_commands; c; c = c->next) {
		const struct process *agent = is_over(c) ? agent_of(c) : NULL;
		struct end *end;

		if (!agent || strcmp(c->run, playing->run) != 0 || !is_attempt_over(c) ||
		    newest_of(c, c->node) != c)
			continue;
		end = end_of(c);
		if (!end)
			return;
		end->agent = agent;
		if (end->newest != newest_of(c, -1))
			end->counted_ns = 0;
		end->newest = newest_of(c, -1);
		if (attempt_can_act(c))
			end->counted_ns += WORLD_S;
		if (end->counted_ns > end->most_ns)
			rule_breaks("C14", "%s %d is over for %.1f s and its agent is not",
				    truth_phase_names[c->phase], (int)c->attempt,
				    (double)end->counted_ns / 1e9);
	}
}

/* Whoever waits for that node may wait as long. */
static void on_refusal(const struct refusal *refusal)
{
	const struct end *of = NULL;

	for (size_t i = 0; i < end_count && !of; i++)
		if (ends[i].agent && is_of(ends[i].agent, refusal->who))
			of = &ends[i];
	for (size_t i = 0; of && i < end_count; i++)
		if (is_same_attempt(ends[i].command, of->command))
			ends[i].counted_ns = 0;
}

static void on_event(const struct story *story, int64_t index)
{
	if (index == EVENTS_MOST)
		rule_breaks("C14", "run %s has %d events, and no end", story->run, EVENTS_MOST);
}

const struct clock_rule clock_end = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
	.on_refusal = on_refusal,
};
