/*
 * The kinds of accelerators that stoker gives to jobs, a row each: the figures of a machine that
 * count them, what an engine asks for or maps, what the command is told, which compilers are for
 * them. Code elsewhere asks for a column, never which kind it is; what a node looks at in a
 * check-up is in jobs/node/health/health_kinds.c, by the same names.
 */
#ifndef STK_BASE_ACCELERATOR_H
#define STK_BASE_ACCELERATOR_H

#include <stdbool.h>

#include "jobs/base/text/js.h"
#include "jobs/base/variable.h"

#define ACCELERATOR_NEURON "neuron"
#define ACCELERATOR_NVIDIA "nvidia"

struct accelerator {
	const char
		*name; /* in the catalogue, a plan ("accelerator" of its instance) and an order */
	const char *noun;  /* for one of them; with an s for several */
	const char *count; /* figure of an instance: how many */
	const char *units; /* figure of an instance: how many workers can have one each */
	const char *unit;  /* word for such a one; with an s for several */
	/* AWS Batch gives the devices as a resource of this type, or else by device files, which
	 * have this name and a number. One of the two is NULL. */
	const char *resource, *files;
	const char *compilers; /* values of compile.kind that compile for them */
	/* Variables that name those of a worker, and their number; NULL: there is none. */
	const char *visible, *limit;
	const char
		*word; /* torchrun's, for their number on a node; NULL: PyTorch does not see them */
	bool ranges;   /* the first takes ranges ("0-3,8"), not only names between commas */
	/* Variables that the command of a node gets; VAR_COUNT: no such variable. */
	enum variable interface; /* network interface where the nodes meet */
	enum variable meeting;   /* with EFA: address and port of the collectives */
	enum variable timeout;   /* of an operation */
	bool rdma;               /* with EFA: libfabric is told to use RDMA */
	bool needs_efa;          /* collectives between nodes go over EFA alone */
};

/* Returns the row of that name; NULL for NULL or another word. */
const struct accelerator *accelerator_find(const char *name);
/* Returns each row in turn, the first for NULL; NULL after the last. */
const struct accelerator *accelerator_next(const struct accelerator *row);
/* True if it is a compiler for this kind; false for NULL. */
bool accelerator_compiles(const struct accelerator *row, const char *compiler);
/* Returns the row of the only kind that this compiler is for; NULL if there are several, or none.
 */
const struct accelerator *accelerator_compiled(const char *compiler);

/* Returns the row of a plan's "instance" (NULL: none), and how many it has of them and their units;
 * NULL and 0: none, or not known. A plan of an earlier stoker names no kind: its devices are
 * Neuron's. */
const struct accelerator *accelerator_of(const json_t *instance);
int64_t accelerator_count(const json_t *instance);
int64_t accelerator_units(const json_t *instance);

#endif
