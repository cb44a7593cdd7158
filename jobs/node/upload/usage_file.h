/*
 * The figures of this node (jobs/base/usage.h), kept in a file beside the series of its log, in the
 * same form (jobs/series/series_block.h): a block tells milliseconds (UTC) instead of bytes of a
 * log. A failure to write ends the file, not the training.
 */
#ifndef STK_NODE_UPLOAD_USAGE_FILE_H
#define STK_NODE_UPLOAD_USAGE_FILE_H

#include "jobs/node/setup/agent_config.h"
#include "jobs/series/series_file.h"

struct usage_file {
	struct series_file file;
	bool is_open, off; /* off: it cannot be opened */
};
void usage_file_release(struct usage_file *usage); /* { 0 } is fine */

/* Adds a sample: [figure, value, …] at this time, after this step (-1: before the first). One that
 * is there already, because the order was carried out before, is passed over. */
void usage_file_add(struct usage_file *usage, const struct agent_config *config, struct utc at,
		    int64_t step, const json_t *values);

#endif
