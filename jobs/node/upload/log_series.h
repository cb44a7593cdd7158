/*
 * The series of this node's log (jobs/series): whoever writes the log, or uploads it, reads it as
 * it comes. A phase whose numbers mean nothing, and an order without metrics, have none.
 *
 * The log does not wait for long: what there is no time to read is left out (series_writer.h), and
 * readers of the series find it in the log.
 */
#ifndef STK_NODE_UPLOAD_LOG_SERIES_H
#define STK_NODE_UPLOAD_LOG_SERIES_H

#include "jobs/node/setup/agent_config.h"
#include "jobs/series/series_writer.h"

struct log_series {
	struct series_writer *writer; /* NULL: not open yet, or there is none */
	bool off;                     /* there is none */
};

void log_series_release(struct log_series *series); /* { 0 } is fine */

/* Bytes that have come to the log. */
struct log_growth {
	struct utc at;
	bool late;         /* some of it came earlier */
	const char *bytes; /* the newest of the bytes; NULL: they are read from the log's file */
	size_t len;
};

/* The log ends at `size`. */
void log_series_grow(struct log_series *series, const struct agent_config *config, uint64_t size,
		     const struct log_growth *growth);
/* Writes what is due. */
void log_series_tick(struct log_series *series);
/* The log is over. */
void log_series_end(struct log_series *series, const struct agent_config *config);

#endif
