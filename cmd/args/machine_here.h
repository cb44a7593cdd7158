/*
 * This machine, where a spec of engine local says of which instance type it is: by name, or "auto",
 * for which the instance metadata service is asked.
 */
#ifndef STK_CMD_ARGS_MACHINE_HERE_H
#define STK_CMD_ARGS_MACHINE_HERE_H

#include "jobs/spec/spec.h"

/* Puts the type that "auto" stands for into the spec, and what this machine shows beside it. Where
 * no metadata service answers, "auto" is left, with the reason. Problems that come with the type
 * are added to `problems`. Returns 0; EXIT_SPEC with problems; -1 with an error: a limit of costs
 * needs a price. */
int machine_here_find(struct spec **spec, struct problems *problems, struct err **err);

/* Returns {"type", "by", "devices", "gpus", "vcpus", "ram_bytes", "differs"} of a plan, a new
 * reference; NULL if it is of no such spec. */
json_t *machine_here_view(const json_t *plan);
/* Returns why nobody says the type of this machine, borrowed; NULL if that is not so. */
const char *machine_here_unknown(const json_t *plan);
/* Prints it for people. */
void machine_here_print(const json_t *plan);
/* Notes that, or how this machine differs from the type that it is said to be. */
void machine_here_warn(const json_t *plan);

#endif
