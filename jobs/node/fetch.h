/*
 * What lies in a store and must be files before the command starts: the checkpoint to
 * resume from, and the compile cache of a compiler that knows folders only.
 *
 *   node-<k>/resume/<name>  the checkpoint, as a whole or not at all
 *   node-<k>/cache/         the entries that the order's lock names; without a lock all
 *                           that the cache holds, the newest first, up to PRELOAD_MAX.
 *                           What the compiler adds is brought back (cache_push.h)
 *
 * Before that a start that is not the first settles which checkpoint that is (resume.h).
 * Both are removed when the attempt is over. Beside that it waits for the names of peers.
 */
#ifndef STK_NODE_FETCH_H
#define STK_NODE_FETCH_H

#include <stdbool.h>

#include "jobs/node/task.h"

#define PRELOAD_MAX ((uint64_t)32 << 30) /* bytes */

/* Names of the other nodes, where the service gives them some, may be known later than they
 * run; how long the toolkit of SageMaker waits for them too. */
#define PEERS_WAIT_MS ((int64_t)15 * 60 * 1000)

/* What the command resumes from, as a path on this node, NULL if from nothing; yours to
 * free. */
char *fetch_resumed(const struct task *task);
/* The folder that stands for the compile cache on this node; NULL: the command uses the
 * cache where it lies, or there is none. Yours to free. */
char *fetch_cache(const struct task *task);

/* Is there anything to be fetched? */
bool fetch_needed(const struct task *task);
/* Fetch all of it: an errand (errand.h). */
int fetch_all(const struct task *task, struct err **err);
/* Forget what was fetched. */
void fetch_discard(const struct task *task);

#endif
