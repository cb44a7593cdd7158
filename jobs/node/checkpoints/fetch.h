/*
 * Fetches what lies in a store and must be files before the command starts: the parent, the
 * checkpoint to resume from, and the compile cache of a compiler that knows folders only.
 *
 *   node-<k>/resume/<name>  the checkpoint, as a whole or not at all
 *   node-<k>/parent/<name>  the model that the run begins from, proved against its pin
 *                           (jobs/checkpoint/pin.h); in a folder of this machine it is proved where
 *                           it lies
 *   node-<k>/candidate/, node-<k>/baseline/  the same for the models of evaluate and infer
 *   node-<k>/cache/         the entries that the order's compile manifest names; without a
 *                           manifest all that the cache holds, the newest first, up to
 *                           PRELOAD_MAX. New entries are uploaded (cache_push.h)
 *   node-<k>/data.jsonl     the list of the data, proved; in a workspace that is a directory it is
 *                           used where it lies
 *   node-<k>/data/          its objects, if the order says so: downloaded, or links to files; of an
 *                           inference those of the shard at work, which its task brings (tasks.h)
 *
 * Before that, a start that is not the first settles which checkpoint it resumes from (resume.h).
 * All these folders are removed when the attempt is over. The fetch also waits for the names of
 * peers.
 */
#ifndef STK_NODE_CHECKPOINTS_FETCH_H
#define STK_NODE_CHECKPOINTS_FETCH_H

#include <stdbool.h>

#include "jobs/node/setup/agent_config.h"

#define PRELOAD_MAX ((uint64_t)32 << 30) /* bytes */

/* Longest wait for the names of the other nodes, where the service gives them names: a name may be
 * known later than its node runs. SageMaker's toolkit waits as long. */
#define PEERS_WAIT_MS ((int64_t)15 * 60 * 1000)

/* True if there is anything to fetch. */
bool fetch_needed(const struct agent_config *config);
/* Fetches all of it; run as a prefetch (prefetch.h). */
int fetch_all(const struct agent_config *config, struct err **err);
/* Removes what was fetched. */
void fetch_discard(const struct agent_config *config);

#endif
