/*
 * Uploads the blocks of this node's series (jobs/series/series_block.h) to a bucket: an object
 * each, the last one again as it grows. As soon as SERIES_JOINED of them stay as they are, they
 * become one object, with the name of the first. So are the figures of the node (usage_file.h).
 */
#ifndef STK_NODE_UPLOAD_SERIES_UPLOAD_H
#define STK_NODE_UPLOAD_SERIES_UPLOAD_H

#include "jobs/node/setup/agent_config.h"
#include "jobs/series/series_block.h"
#include "jobs/store/store.h"

#define SERIES_JOINED ((int)(SERIES_OBJECT_MAX / SERIES_BLOCK_MAX))

struct series_upload {
	const char *file;               /* of the node's folder; NULL: SERIES_FILE */
	uint64_t joined;                /* in the file: up to here the objects are joined */
	uint64_t single[SERIES_JOINED]; /* in the file: blocks behind it that have objects */
	size_t singles;
	uint64_t at; /* in the file: of the block that may still grow */
	uint64_t to; /* place in the log up to which it is uploaded; 0: not at all */
};

/* `base` is the place in the workspace's log where this node's file of it begins. Returns true if
 * all is uploaded that is in the file. */
bool series_upload(struct series_upload *upload, const struct agent_config *config,
		   struct store *store, uint64_t base);

#endif
