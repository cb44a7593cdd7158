/*
 * Versions with which the nodes of an attempt run (jobs/node/setup/versions.h), and what differs
 * between two sets of them.
 */
#ifndef STK_RUN_ATTEMPT_VERSIONS_H
#define STK_RUN_ATTEMPT_VERSIONS_H

#include "jobs/run/attempt/watch_internal.h"

/* Records attempt.versions, if agents tell more than is recorded: once the command runs, and at the
 * end for nodes that came later. */
int versions_record(struct attempt_watch *watch, struct err **err);

/* Returns [{"field","old","new"}], a new array sorted by field; null where one side has none. */
json_t *versions_difference(const json_t *old_versions, const json_t *new_versions);

#endif
