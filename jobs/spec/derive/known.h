/* The values of the $names that an expression may use. */
#ifndef STK_SPEC_DERIVE_KNOWN_H
#define STK_SPEC_DERIVE_KNOWN_H

#include "jobs/spec/spec.h"

/* Returns the value of $NAME in a spec, a new reference:
 *
 *   nodes                resources.nodes
 *   processes_per_node   processes that torchrun starts on a node; 1 if the command starts none
 *   world_size           processes on all nodes
 *   global_batch         samples of a step on all nodes: samples_per_step; else the batch size of a
 *                        process (per_device_train_batch_size or batch_size of the hyperparameters)
 *                        x gradient_accumulation_steps, if there is that, x world_size
 *   any other            the hyperparameter of that name
 *
 * NULL with *ret_why: it cannot be known here, and *ret_hint says what to write; NULL without:
 * there is none. The caller frees both texts. */
json_t *known_value(const struct spec *spec, const char *name, char **ret_why, char **ret_hint);

/* Returns "$nodes, $world_size …, $batch_size": the names that there are. The caller frees it. */
char *known_names(const struct spec *spec);

#endif
