/*
 * Reads the blocks of a node's log (series_block.h) from a workspace: the file node-<k>/series in a
 * directory, the objects node-<k>/series/<start>-<offset>, of some blocks each, in a bucket. Of a
 * log that is a service's events the drivers write these objects (series_stream.h); their
 * first number is the driver's. The figures of a node
 * (jobs/base/usage.h) are blocks in the same form, below node-<k>/usage: they tell no bytes of a
 * log, but milliseconds (UTC), and there are no specs.
 */
#ifndef STK_SERIES_SERIES_READ_H
#define STK_SERIES_SERIES_READ_H

#include "jobs/series/series_block.h"
#include "jobs/store/store.h"

/* A block that is whole, of this log and these metrics, and of a part that no earlier block has
 * told. It is borrowed. Returns 0 to go on, 1 to stop, -1 with an error. */
typedef int (*series_block_fn)(void *arg, struct series_block *block, struct err **err);

/* The log whose blocks are read. */
struct series_place {
	struct store *store;
	const char *prefix; /* of the attempt */
	int node;
	const json_t *specs; /* of the metrics */
	const char *file;    /* USAGE_FILE; NULL: SERIES_FILE */
	uint64_t log_size;   /* the log has no more bytes; UINT64_MAX: not known */
	bool is_stream;      /* the log is a service's events: all blocks are told */
};

/* Blocks that are torn, damaged or foreign, or of more than the log has, are passed over; in a file
 * or an object, so are all behind the first of them. Returns -1 if the store cannot be read. */
int series_read(const struct series_place *place, series_block_fn fn, void *arg, struct err **err);

#endif
