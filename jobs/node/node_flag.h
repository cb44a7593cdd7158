/*
 * Flags beneath an attempt's prefix by which one node tells all others something (FAILED_FILE,
 * DRAINED_FILE). Each names its start of the job ("restart", absent: 0): a flag that an earlier
 * start left says nothing about this one, as the nodes of that start are gone.
 */
#ifndef STK_NODE_NODE_FLAG_H
#define STK_NODE_NODE_FLAG_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/text/js.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/store/store.h"

/* True if the flag is set for this start, or a later one. False if it cannot be read now. */
bool node_flag_is_set(const struct agent_config *config, struct store *store, const char *name,
		      int64_t restart);

/* Sets the flag for this start; the first of a start stands, one of an earlier start is
 * replaced. Takes ownership of the body. Returns false if it may not be set; mostly best effort,
 * since nodes that cannot be told find out otherwise. */
bool node_flag_set(const struct agent_config *config, struct store *store, const char *name,
		   json_t *body);

/* Removes a flag of an earlier start; absent is fine. */
int node_flag_clear(const struct agent_config *config, struct store *store, const char *name,
		    struct err **err);

#endif
