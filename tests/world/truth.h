/*
 * What really happened in the world, as those see it who did it: the commands that ran, what they
 * computed and saved. The rules (rules.h) compare the journal with it; nothing of the code under
 * test reads or writes it. Times are of the world, in ns.
 */
#ifndef STK_TESTS_WORLD_TRUTH_H
#define STK_TESTS_WORLD_TRUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process;

#define TRUTH_NAME 128

enum truth_phase { TRUTH_PRECOMPILE, TRUTH_TRAIN, TRUTH_EVALUATE, TRUTH_INFER, TRUTH_PHASES };
extern const char *const truth_phase_names[TRUTH_PHASES];
/* The phase of that name, as STOKER_PHASE has it; TRUTH_TRAIN for any other. */
enum truth_phase truth_phase_of(const char *name);

/* A command that an agent started: one process on one node. */
struct truth_command {
	const struct process *process;
	char run[TRUTH_NAME], token[TRUTH_NAME]; /* of the submission */
	enum truth_phase phase;
	int64_t attempt;
	int node, nodes;
	int64_t began_ns, ended_ns;    /* ended_ns 0: it runs */
	int64_t resumed_step;          /* -1: from scratch */
	int64_t first_step, last_step; /* computed; -1: none */
	char task[TRUTH_NAME];         /* that it does; "": the phase has none */
	char stage[TRUTH_NAME];        /* whose graphs a precompile compiles; "": the training's */
	int64_t model_step;            /* of the model that it was given; -1: none */
	int compiled_late;             /* graphs compiled in a training */
	bool agent_refused;            /* a call of its agent was refused before it began */
	bool other_compiler;        /* as it began, the cache was whole, but not for its compiler */
	struct truth_command *next; /* older */
};
extern struct truth_command *truth_commands; /* newest first */
extern uint64_t truth_changes;               /* so often something was told here */

/* A checkpoint that a command has begun to save. */
struct truth_save {
	const struct truth_command *command;
	int64_t step;
	char path[512]; /* in the command's machine */
	int64_t began_ns;
	bool asked;       /* the command was told to save */
	int64_t bytes;    /* of its state */
	int64_t whole_ns; /* all of it is written; 0: it never was */
	struct truth_save *next;
};
extern struct truth_save *truth_saves; /* newest first */

struct truth_command *truth_command_new(enum truth_phase phase);
struct truth_save *truth_save_new(const struct truth_command *command, int64_t step,
				  const char *path);
/* The agent that it serves, whether it has started the command itself or has a helper for it. NULL:
 * it is gone. */
const struct process *truth_agent(const struct truth_command *command);
void truth_reset(void);

#endif
