/* What really happened: see truth.h. */
#include "tests/world/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"

struct truth_command *truth_commands;
struct truth_save *truth_saves;
uint64_t truth_changes;

const char *const truth_phase_names[TRUTH_PHASES] = {
	[TRUTH_PRECOMPILE] = "precompile",
	[TRUTH_TRAIN] = "train",
	[TRUTH_EVALUATE] = "evaluate",
	[TRUTH_INFER] = "infer",
};

enum truth_phase truth_phase_of(const char *name)
{
	for (int phase = 0; name && phase < TRUTH_PHASES; phase++)
		if (strcmp(truth_phase_names[phase], name) == 0)
			return (enum truth_phase)phase;
	return TRUTH_TRAIN;
}

/* A variable of the running process, or "". */
static void copy_variable(char ret[TRUTH_NAME], const char *name)
{
	const char *value = getenv(name);

	snprintf(ret, TRUTH_NAME, "%s", value ? value : "");
}

static int64_t number_variable(const char *name, int64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoll(value, NULL, 10) : otherwise;
}

struct truth_command *truth_command_new(enum truth_phase phase)
{
	struct truth_command *command = mem_zero(1, sizeof *command);

	command->process = self;
	copy_variable(command->run, "STOKER_RUN");
	copy_variable(command->token, "STOKER_TOKEN");
	command->phase = phase;
	copy_variable(command->stage, "STOKER_STAGE");
	command->attempt = number_variable("STOKER_ATTEMPT", 0);
	command->node = (int)number_variable("STOKER_NODE_RANK", 0);
	command->nodes = (int)number_variable("STOKER_NODES", 1);
	command->began_ns = now_ns;
	command->resumed_step = command->first_step = command->last_step = -1;
	command->model_step = -1;
	if (schedule_is_neighbour(command->run))
		return command;
	command->next = truth_commands;
	truth_commands = command;
	truth_changes++;
	return command;
}

struct truth_save *truth_save_new(const struct truth_command *command, int64_t step,
				  const char *path)
{
	struct truth_save *save = mem_zero(1, sizeof *save);

	save->command = command;
	save->step = step;
	snprintf(save->path, sizeof save->path, "%s", path);
	save->began_ns = now_ns;
	if (schedule_is_neighbour(command->run))
		return save;
	save->next = truth_saves;
	truth_saves = save;
	truth_changes++;
	return save;
}

const struct process *truth_agent(const struct truth_command *command)
{
	const struct process *parent = process_parent(command->process);

	return parent && (command->task[0] || command->stage[0]) ? process_parent(parent) : parent;
}

void truth_reset(void)
{
	/* A schedule plays in a process of its own: what is left of another one is dropped. */
	truth_commands = NULL;
	truth_saves = NULL;
}
