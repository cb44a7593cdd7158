/*
 * The instance catalogue: what a machine of a type has and what an hour of it costs.
 *
 * The catalogue that travels in the binary is configs/catalogue/instances.yaml, which says
 * what its fields mean and where its figures are from. One's own file changes rows of it and adds
 * others: $STOKER_INSTANCES, else stoker/instances.yaml in $XDG_CONFIG_HOME or
 * ~/.config, which may be missing. A mistake in it is a problem with its place in that file.
 *
 * What comes of it for a spec is spec_instance(), which the plan carries as "instance", so that a
 * driver elsewhere needs no catalogue:
 *
 *   {"type": as the spec names it, "devices", "cores", "physical_cores", "memory_mib"
 *    (of all devices), "vcpus", "ram_mib", "efa" (interfaces; 0: none), "gbps",
 *    "price" (USD an hour), "region", "dated", "source"}
 *
 * All but the type are absent where they are not known; of a type that is in no catalogue there is
 * the type alone. A price is never without region, date and source.
 */
#ifndef STK_SPEC_INSTANCE_H
#define STK_SPEC_INSTANCE_H

#include "jobs/spec/problem.h"

/* Read both files: an object, type → row. What is wrong in one's own is added to the
 * problems, and left out. A new reference. */
json_t *instances_load(spec_getenv_fn *getenv_fn, struct problems *ret_problems);

/* The row of a type, as above. ml.TYPE has what TYPE has, and only a price of its own. A new
 * reference. */
json_t *instance_find(const json_t *catalogue, const char *type);

#endif
