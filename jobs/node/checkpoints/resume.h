/*
 * Choice of the checkpoint that a start goes on from. The first start of a job follows its order.
 * If the service has started the job again, it goes on from the newest complete checkpoint that its
 * earlier starts have marked in the order's root, if there is one. Several nodes must agree: node 0
 * chooses, and tells the others.
 *
 *   resume.json  beneath the attempt's prefix, from node 0 of such a start: {"v":1,
 *                "restart", "resume_from", "resume_step": absent: as the order says}
 *   node-<k>/resume.json (file)  the same, from the prefetch to its agent
 */
#ifndef STK_NODE_CHECKPOINTS_RESUME_H
#define STK_NODE_CHECKPOINTS_RESUME_H

#include <stdbool.h>

#include "jobs/node/setup/agent_config.h"

/* True if there is a choice to make; valid only once the claim shows which start this is. */
bool resume_needed(const struct agent_config *config);
/* Part of the prefetch (fetch.h): chooses, or waits for node 0's choice, and puts it in place of
 * what the order says. */
int resume_agree(const struct agent_config *config, struct err **err);
/* Applies the choice to the agent's own order, after that prefetch. */
int resume_adopt(const struct agent_config *config, struct err **err);

#endif
