/*
 * From which checkpoint a start goes on. The first one of a job goes by its order. One that
 * the service has begun anew goes on from the newest complete checkpoint that its earlier
 * starts have marked in the order's root, if there is one. Several nodes must agree on it:
 * node 0 chooses, and tells the others.
 *
 *   resume.json  beneath the attempt's prefix, from node 0 of such a start: {"v":1,
 *                "restart", "resume_from", "resume_step": absent: as the order says}
 *   node-<k>/resume.json (file)  the same, from the errand to its agent
 */
#ifndef STK_NODE_RESUME_H
#define STK_NODE_RESUME_H

#include <stdbool.h>

#include "jobs/node/task.h"

/* Is there anything to choose? True only once the claim has told which start this is. */
bool resume_needed(const struct task *task);
/* Part of the errand that fetches (fetch.h): choose, or wait for node 0's choice, and put it
 * in place of what the order says. */
int resume_settle(const struct task *task, struct err **err);
/* In the agent, after that errand: the same for its own order. */
int resume_adopt(const struct task *task, struct err **err);

#endif
