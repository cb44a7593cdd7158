/*
 * Launchers in a command: programs that start several workers on a node. Each is a row of a table:
 * how it is recognised, which option gives the number of workers, whether that is the number on a
 * node or on all, and which options only place the workers (nodes, rank, rendezvous).
 *
 * torchrun (also `python -m torch.distributed.run`, and torch.distributed.launch, which is the same
 * program with --use-env) starts one worker on a node unless --nproc_per_node or
 * PET_NPROC_PER_NODE says more. Its options, their spellings and how argparse reads them
 * (abbreviations, '=', everything behind the script belongs to the script):
 * torch/distributed/run.py and argparse_util.py of PyTorch 2.1 to 2.9.
 *
 * `accelerate launch` counts the workers of all machines (--num_processes) and takes no variable;
 * what its options and its configuration file leave out it looks for itself: the GPUs that it sees,
 * one machine. It starts one worker whatever the number, unless it sees several GPUs or an option
 * such as --multi_gpu says that there are more; with --cpu always, unless mpirun starts them
 * (--mpirun_hostfile, or its configuration file). Both spellings of an option, no abbreviations:
 * src/accelerate/commands/launch.py of accelerate 0.20 to 1.4.
 */
#ifndef STK_SPEC_MACHINES_LAUNCH_H
#define STK_SPEC_MACHINES_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/text/js.h"

#define LAUNCH_VARIABLE "PET_NPROC_PER_NODE"

/* A row of the table. Names of options are in the spelling with '-', without the dashes before. */
struct launcher {
	const char *name;
	const char *count;    /* the launcher's option for the number of workers */
	const char *least;    /* the shortest text that means this option; NULL: the whole name */
	bool counts_all;      /* the number is that of all nodes together */
	bool has_variable;    /* the launcher reads LAUNCH_VARIABLE */
	const char *nodes;    /* the launcher's option for the number of nodes */
	const char *placing;  /* options that only place workers, the last one among them */
	const char *switches; /* options without a value */
	const char *letters;  /* one-letter options with a value */
	const char *file;     /* option that names a file with the number; NULL: none */
};

struct launch {
	const struct launcher *launcher; /* NULL: the command starts none, as far as can be read */
	bool given;                      /* the number of workers is given */
	bool by_env;                     /* by a word NAME=VALUE in front, not by an option */
	bool by_file;                    /* by a file that the launcher reads */
	bool is_alone;                   /* --cpu of accelerate: one worker on a node */
	bool is_multi;                   /* --multi_gpu of accelerate, which needs two in all */
	bool follows;   /* the option refers to STOKER_WORKERS, so that nothing is given */
	bool in_line;   /* in a line for a shell, which stays as it is written */
	char how[32];   /* the value as written, cut off if longer */
	size_t at;      /* index of the command's word with it; meaningless without `given` */
	char nodes[32]; /* the number of nodes as its option gives it; "": it does not */
};

/* Finds the launcher in a command, a list of texts: by base name or path, as a module or a file of
 * Python, behind programs that start the words after them (env, nice, numactl,
 * neuron_parallel_compile…), or in the line of `sh -c`. A Python program other than these hides
 * what it starts. */
struct launch launch_find(const json_t *command);

/* Returns the command without the options that only place workers and, if `counted`, without the
 * number of workers and nodes, also where a variable gives it: what is left of two commands is
 * equal if they differ in nothing else. A new reference. */
json_t *launch_without_places(const json_t *command, bool counted);

/* Returns the command as it is to run, with an option for `per_node` workers on a node (0: the
 * number stays as it is), whatever the command itself says. `nodes` is the number of nodes that run
 * the command together: accelerate is told of them, torchrun takes them from its variables. Values
 * that only a node knows are references (${STOKER_NODE_RANK}). A line for a shell stays as it is
 * written, as does a command without a launcher. A new reference. */
json_t *launch_with_workers(const json_t *command, int64_t per_node, int64_t nodes);

/* True for a shell: its next words may be lines for it. */
bool launch_is_shell(const char *word);

/* True if the front end of phase 1 is the first program of the command, even behind `env`. */
bool launch_has_front(const json_t *command);

#endif
