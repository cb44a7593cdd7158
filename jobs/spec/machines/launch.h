/*
 * torchrun in a command: its place, and the number of processes on a node that it is given.
 *
 * torchrun starts one process on a node unless --nproc_per_node or PET_NPROC_PER_NODE says
 * more. Its options, their spellings and how argparse reads them (abbreviations, '=', everything
 * behind the script belongs to the script): torch/distributed/run.py and argparse_util.py of
 * PyTorch 2.1 to 2.9. torch.distributed.launch is the same program with --use-env.
 */
#ifndef STK_SPEC_MACHINES_LAUNCH_H
#define STK_SPEC_MACHINES_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#define LAUNCH_VARIABLE "PET_NPROC_PER_NODE"

struct launch {
	bool torchrun; /* the command starts it, as far as can be read */
	bool given;    /* the number of processes is given */
	bool by_env;   /* by a word NAME=VALUE in front of it, not by its option */
	const char
		*how; /* the value, borrowed from the spec; NULL: not to be read (a shell's text) */
	size_t at;    /* index of the word with it; meaningless without `given` */
};

struct spec;

/* Finds torchrun in the spec's command, by base name or path, as a module or a file of Python,
 * behind programs that start the words after them (env, nice, numactl, neuron_parallel_compile…),
 * or in the text of `sh -c`. A Python program other than these hides what it starts. */
struct launch launch_find(const struct spec *spec);

/* True for a shell: its next words may be lines for it. */
bool launch_is_shell(const char *word);

#endif
