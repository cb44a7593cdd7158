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
 *   {"type": as the spec names it,
 *    "accelerator": that of jobs/base/accelerator.h, or INSTANCE_OTHER (absent: none, or unknown),
 *    Neuron's: "devices", "cores", "physical_cores", "memory_mib" (of all devices),
 *    NVIDIA's: "gpus", "gpu" (name), "gpu_memory_mib" (of one),
 *    the machine's: "vcpus", "ram_mib", "arch" ("x86_64", "arm64"), "nvme_gb" (0: none),
 *    "efa" (interfaces; 0: none), "gbps",
 *    EC2's quotas of the family: "quota" (On-Demand), "spot_quota",
 *    "sagemaker" (bool: SageMaker trains on ml.TYPE),
 *    "price" (USD an hour), "region", "dated", "source": of the price,
 *    "figures", "figures_dated": the source of everything else}
 *
 * All but the type are absent if they are not known; a type that is in no catalogue has the type,
 * the accelerator that its name tells, and "sagemaker" if SageMaker has the name. A price is never
 * without region, date and source.
 *
 * spec/machines: the catalogue of instance types, and its consequences: cores, processes and
 * launcher of a phase.
 */
#ifndef STK_SPEC_MACHINES_INSTANCE_H
#define STK_SPEC_MACHINES_INSTANCE_H

#include "jobs/spec/lint/problem.h"

/* Kinds of accelerators, besides those that stoker gives to jobs (jobs/base/accelerator.h): a row
 * says which ("accelerator"), else the family in the type's name does. */
#define INSTANCE_OTHER "other" /* an accelerator that stoker can give to no job */
#define INSTANCE_NONE  "none"  /* in a catalogue */

/* Reads the user's file into an object, type → row, each over ours of that type. Rows with errors
 * are added to the problems, and left out. It stands for the whole catalogue: our other rows are
 * read when they are asked for. A new reference. */
json_t *instances_load(spec_getenv_fn *getenv_fn, struct problems *ret_problems);

/* Returns the row of a type, as above. ml.TYPE has the figures of TYPE, and only a price of its
 * own. A new reference. */
json_t *instance_find(const json_t *catalogue, const char *type);
/* True if there is a row of the type, or of the TYPE of ml.TYPE. */
bool instance_known(const json_t *catalogue, const char *type);
/* Returns the names of all types that have a row, in the order of the files; NULL: of ours. A new
 * reference. */
json_t *instance_types(const json_t *catalogue);

/* Returns "p7.xlarge: {vcpus: N, ram: NGiB, gpus: N, efa: N}", a row for the user's own catalogue
 * whose figures are to be filled in. The caller frees it. */
char *instance_row(const char *type);
/* Returns the type of the catalogue with the nearest name; NULL if none is near. The caller frees
 * it. */
char *instance_nearest(const json_t *catalogue, const char *type);
/* Returns the path of the user's own file, whether it exists or not; NULL if there is no home
 * directory for it. The caller frees it. */
char *instances_own_path(spec_getenv_fn *getenv_fn);
/* Returns the type of the catalogue that was most likely meant by one that it does not have, as far
 * as the name tells a mistake from another type: the same family, or an unknown one. Written with
 * "ml." as `type` is; NULL if none. The caller frees it. */
char *instance_meant(const json_t *catalogue, const char *type);

#endif
