/*
 * C12. Agent: a signal reaches the command within 2 s, though nobody reads stdout and the workspace
 * hangs. A superseded claim ends the command within three heartbeats (far: 30 s).
 *
 * Time in a single call counts here; only time in which the agent was suspended does not. A claim
 * is superseded when the claim of its phase, as it lies in the workspace, names another attempt.
 * The uploader looks at it, before all else that it does. A look that is refused, or has not
 * returned, says nothing about the claim.
 *
 * A part of C5 is here, too: a command that was asked to end is killed after limits.grace.
 */
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "jobs/base/text/js.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/truth.h"

#define COMMANDS_MAX 256

/* A command, by its place in the world. */
static struct command_seen {
	const struct truth_command *what;
	const struct process *agent;
	int64_t awake_ns;          /* of the agent, when it got the signal; 0: none */
	struct stretch superseded; /* who NULL: it is not */
	bool told;                 /* the command had a signal since, */
	struct stretch ending;     /* or was asked to end: then who is the agent */
} commands[COMMANDS_MAX];
static size_t command_count;

static void reset(void)
{
	memset(commands, 0, command_count * sizeof commands[0]);
	command_count = 0;
}

static struct command_seen *seen_of(const struct truth_command *what)
{
	for (size_t i = 0; i < command_count; i++)
		if (commands[i].what == what)
			return &commands[i];
	if (command_count == COMMANDS_MAX)
		return NULL;
	commands[command_count] = (struct command_seen){ .what = what, .agent = truth_agent(what) };
	return &commands[command_count++];
}

static bool runs(const struct command_seen *command)
{
	return command->what->process->state == PROCESS_ALIVE && !command->what->ended_ns &&
	       command->agent && command->agent->state == PROCESS_ALIVE &&
	       fault_target_of(command->agent) == TARGET_AGENT;
}

/* The agent is told to end its command; the command itself is told to end. */
static void on_signal(const struct process *to, int signo)
{
	if (signo != SIGTERM && signo != SIGINT && signo != SIGHUP && signo != SIGKILL)
		return;
	for (const struct truth_command *c = truth_commands; c; c = c->next) {
		struct command_seen *seen = seen_of(c);

		if (!seen)
			return;
		if (c->process == to) {
			seen->told = true;
			if (signo != SIGKILL && !seen->ending.who && seen->agent)
				stretch_begin(&seen->ending, seen->agent);
		}
		if (seen->agent == to && signo != SIGKILL && !seen->awake_ns)
			seen->awake_ns = time_awake_ns(to);
	}
}

/* The attempt that holds the claim of a phase; 0: nobody. */
static int64_t holder_of(enum truth_phase phase)
{
	json_auto_t *claim = claim_in_workspace(phase);

	return js_int(claim, "attempt", 0);
}

/* The workspace has not answered the uploader. */
static bool is_blind(const struct process *agent)
{
	for (const struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE && process_parent(p) == agent &&
		    strcmp(p->name, "stoker-upload") == 0)
			return !time_counts(p);
	return false;
}

static void check_claim(struct command_seen *command)
{
	int64_t holder = holder_of(command->what->phase);

	if (holder == 0 || holder == command->what->attempt) {
		command->superseded.who = NULL;
		return;
	}
	if (!command->superseded.who || is_blind(command->agent))
		stretch_begin(&command->superseded, command->agent);
	if (stretch_ns(&command->superseded) >
	    figure_ns(playing->setting.far_workspace ? C12_CLAIM_FAR : C12_CLAIM))
		rule_breaks("C12", "attempt %d has the claim for %.1f s and attempt %d runs on",
			    (int)holder, (double)stretch_ns(&command->superseded) / 1e9,
			    (int)command->what->attempt);
}

/* 1. A claim is superseded by an attempt that was intended, and by nothing else: no driver takes it
 * from one that runs well. */
static void check_holders(const struct story *story)
{
	/* A fault takes claims as well. */
	for (int i = 0; i < fault_count; i++)
		if (faults[i].kind == FAULT_SUPERSEDE && faults[i].struck > 0)
			return;
	for (int phase = 0; phase < TRUTH_PHASES; phase++) {
		int64_t holder = holder_of((enum truth_phase)phase), newest = 0;

		for (int64_t s = story->count; holder > 0 && s > 0 && newest == 0; s--) {
			const struct event *ev = &story->events[s - 1].event;

			if (ev->kind == EV_ATTEMPT_INTENDED &&
			    strcmp(flow_phase_names[ev->phase], truth_phase_names[phase]) == 0)
				newest = ev->attempt;
		}
		if (holder > newest)
			rule_breaks("1", "the claim is attempt %d's, which nobody intended",
				    (int)holder);
	}
}

/* Part of C5: whoever asked the command to end, it is over after limits.grace. */
static void check_ending(const struct command_seen *command)
{
	int64_t took_ns = stretch_ns(&command->ending);

	if (command->ending.who &&
	    took_ns > playing->setting.grace_s * WORLD_S + figure_ns(C5_OVER))
		rule_breaks("C5", "the command of attempt %d was told to end %.1f s ago",
			    (int)command->what->attempt, (double)took_ns / 1e9);
}

static void on_second(const struct story *story)
{
	check_holders(story);
	for (const struct truth_command *c = truth_commands; c; c = c->next) {
		struct command_seen *seen =
			runs(&(struct command_seen){ .what = c, .agent = truth_agent(c) })
				? seen_of(c)
				: NULL;

		if (!seen || strcmp(c->run, playing->run) != 0)
			continue;
		check_ending(seen);
		if (seen->told)
			continue;
		check_claim(seen);
		if (seen->awake_ns &&
		    time_awake_ns(seen->agent) - seen->awake_ns > figure_ns(C12_SIGNAL))
			rule_breaks("C12", "an agent had a signal %.1f s ago, its command none",
				    (double)(time_awake_ns(seen->agent) - seen->awake_ns) / 1e9);
	}
}

/* The uploader looks at the claim, and so does the agent before the command starts. */
static void on_refusal(const struct refusal *refusal)
{
	for (size_t i = 0; i < command_count; i++)
		if (commands[i].ending.who && refusal->who == commands[i].agent)
			stretch_begin(&commands[i].ending, commands[i].agent);
	for (size_t i = 0; i < command_count; i++)
		if (commands[i].superseded.who &&
		    (refusal->who == commands[i].agent ||
		     process_parent(refusal->who) == commands[i].agent))
			stretch_begin(&commands[i].superseded, commands[i].agent);
}

const struct clock_rule clock_command = {
	.reset = reset,
	.on_second = on_second,
	.on_signal = on_signal,
	.on_refusal = on_refusal,
};
