/*
 * The instance catalogue: the resources of a machine of a type, and the price of an hour.
 *
 * The embedded catalogue is configs/catalogue/instances.yaml, which says what its fields mean
 * and where its figures are from. The user's own file changes rows of it and adds others:
 * $STOKER_INSTANCES, else stoker/instances.yaml in $XDG_CONFIG_HOME or
 * ~/.config, which may be missing. A mistake in it is a problem with its place in that file.
 *
 * The result for a spec is spec_instance(), which the plan carries as "instance", so that a
 * driver elsewhere needs no catalogue:
 *
 *   {"type": as the spec names it, "devices", "cores", "physical_cores", "memory_mib"
 *    (of all devices), "vcpus", "ram_mib", "efa" (interfaces; 0: none), "gbps",
 *    "price" (USD an hour), "region", "dated", "source",
 *    "accelerator": INSTANCE_NEURON, INSTANCE_GPU or INSTANCE_OTHER (absent: none, or not known)}
 *
 * All but the type are absent if they are not known; a type that is in no catalogue has the type,
 * and the accelerator that its name tells. A price is never without region, date and
 * source.
 *
 * spec/machines: the catalogue of instance types, and its consequences: cores, processes and
 * launcher of a phase.
 */
#ifndef STK_SPEC_MACHINES_INSTANCE_H
#define STK_SPEC_MACHINES_INSTANCE_H

#include "jobs/spec/lint/problem.h"

/* Kinds of accelerators: a row says which ("accelerator"), else the family in the type's name
 * does. stoker can give Neuron devices to a job, and no others. */
#define INSTANCE_NEURON "neuron"
#define INSTANCE_GPU    "gpu"
#define INSTANCE_OTHER  "other"
#define INSTANCE_NONE   "none" /* in a catalogue */

/* Reads both files into an object, type → row. Rows of the user's file with errors are added to
 * the problems, and left out. A new reference. */
json_t *instances_load(spec_getenv_fn *getenv_fn, struct problems *ret_problems);

/* Returns the row of a type, as above. ml.TYPE has the figures of TYPE, and only a price of its
 * own. A new reference. */
json_t *instance_find(const json_t *catalogue, const char *type);

/* Returns "m5.xlarge: {vcpus: 4, ram: 16GiB, …}", as it may stand in the user's own catalogue,
 * with the figures that the name of the type makes likely. The caller frees it. */
char *instance_row(const char *type);
/* Returns the type of the catalogue with the nearest name, borrowed from it; NULL if none is
 * near. */
const char *instance_nearest(const json_t *catalogue, const char *type);
/* Returns the path of the user's own file, whether it exists or not; NULL if there is no home
 * directory for it. The caller frees it. */
char *instances_own_path(spec_getenv_fn *getenv_fn);
/* Returns the type of the catalogue that was most likely meant by one that it does not have, as far
 * as the name tells a mistake from another type: the same family, or an unknown one. Written with
 * "ml." as `type` is; NULL if none. The caller frees it. */
char *instance_meant(const json_t *catalogue, const char *type);

#endif
