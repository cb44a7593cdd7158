/*
 * C3. compile.timeout: never acted on before it is due. Time in which the agent was suspended does
 * not count, but for a stretch that is too short to be told from a slow machine (STALL_BLIND_MS).
 */
#include <string.h>

#include "jobs/base/stall.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/faults.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/truth.h"

#define COMMANDS_MAX 256
/* Looked at once a second: at its beginning, its end, and each change between. */
#define INEXACT_NS (4 * WORLD_S)

static struct compile {
	const struct truth_command *command;
	int64_t ran_ns;    /* that counts */
	int64_t asleep_ns; /* its agent, up to now */
	uint64_t calls;    /* of its agent, up to now */
} compiles[COMMANDS_MAX];
static size_t compile_count;

static void reset(void)
{
	compile_count = 0;
}

static struct compile *compile_of(const struct truth_command *command)
{
	for (size_t i = 0; i < compile_count; i++)
		if (compiles[i].command == command)
			return &compiles[i];
	if (compile_count == COMMANDS_MAX)
		return NULL;
	compiles[compile_count] = (struct compile){ .command = command };
	return &compiles[compile_count++];
}

static int64_t ran_ns(const struct compile *compile)
{
	bool short_sleep = compile->asleep_ns < STALL_BLIND_MS * WORLD_MS;

	return compile->ran_ns + (short_sleep ? compile->asleep_ns : 0);
}

static void on_second(const struct story *story)
{
	(void)story;
	for (const struct truth_command *c = truth_commands; c; c = c->next) {
		const struct process *agent = process_parent(c->process);
		struct compile *compile;

		if (c->phase != TRUTH_PRECOMPILE || c->process->state != PROCESS_ALIVE || !agent ||
		    strcmp(c->run, playing->run) != 0)
			continue;
		compile = compile_of(c);
		if (!compile)
			return;
		if (agent->calls != compile->calls) { /* it was awake, if only for a moment */
			compile->ran_ns = ran_ns(compile);
			compile->asleep_ns = 0;
		}
		compile->calls = agent->calls;
		if (process_runs(agent))
			compile->ran_ns += WORLD_S;
		else
			compile->asleep_ns += WORLD_S;
	}
}

/* Of several nodes, and of one that the engine has started again, the one that ran longest. */
static void on_event(const struct story *story, int64_t index)
{
	const struct event *ev = &story->events[index].event;
	int64_t timeout_ns = playing->setting.compile_timeout_s * WORLD_S, longest = -1;

	if (ev->kind != EV_ATTEMPT_ENDED || ev->phase != PHASE_PRECOMPILE || !ev->evidence ||
	    strcmp(ev->evidence, "compile.timeout is exceeded") != 0)
		return;
	for (size_t i = 0; i < compile_count; i++)
		if (compiles[i].command->attempt == ev->attempt && ran_ns(&compiles[i]) > longest)
			longest = ran_ns(&compiles[i]);
	if (longest >= 0 && longest + INEXACT_NS < timeout_ns)
		rule_breaks("C3", "compile.timeout of %d s is acted on after %.0f s",
			    (int)playing->setting.compile_timeout_s, (double)longest / 1e9);
}

const struct clock_rule clock_timeout = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
};
