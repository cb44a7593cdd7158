/*
 * The manifest of a phase on this node, and the lines of one shard: JSON Lines as they are, so that
 * nothing of a line is lost. Read and written as a stream.
 */
#ifndef STK_NODE_TASKS_TASK_MANIFEST_H
#define STK_NODE_TASKS_TASK_MANIFEST_H

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* Counts the lines; a last one without its end counts as well. */
int task_manifest_count(const char *path, int64_t *ret, struct err **err);

/* Writes the lines of shard `shard` of `shards` to `to`: a run of them, each line in one shard. */
int task_manifest_cut(const char *path, int64_t lines, int64_t shard, int64_t shards,
		      const char *to, struct err **err);

/* Returns the "url" of the first lines of a manifest, `most` of them: a new array of texts. */
json_t *task_manifest_urls(const char *path, size_t most);

#endif
