/*
 * Reads the blocks of a node's log (series_block.h) from a workspace: the file node-<k>/series in a
 * directory, the objects node-<k>/series/<offset>, a block each, in a bucket.
 */
#ifndef STK_SERIES_SERIES_READ_H
#define STK_SERIES_SERIES_READ_H

#include "jobs/series/series_block.h"
#include "jobs/store/store.h"

/* A block that is whole, of these metrics, and of a part of the log that no earlier block has told.
 * It is borrowed. Returns 0 to go on, 1 to stop, -1 with an error. */
typedef int (*series_block_fn)(void *arg, struct series_block *block, struct err **err);

/* `prefix` is that of the attempt, `metrics` as of series_metrics_sum(). Blocks that are torn,
 * damaged or foreign are passed over; in a file, so are all behind the first of them. Returns -1 if
 * the store cannot be read. */
int series_read(struct store *store, const char *prefix, int node, uint32_t metrics,
		series_block_fn fn, void *arg, struct err **err);

#endif
