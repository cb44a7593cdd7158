/*
 * Keeps the readings of a log that is a service's events, in a bucket: the objects
 * node-<k>/series/<writer>-<place> (series_block.h), each of some blocks and, as the last of them,
 * a mark of the lines that are read (series_mark.h). An object is written again as it grows, always
 * whole, so what is durable is readings and the mark of exactly these.
 *
 * The process that reads the log on from any place behind which the mark leaves nothing out keeps
 * each reading once: lines that are read are passed over. Every writer has objects of its own, by
 * its number, so that one that was thought dead takes nothing from the next.
 *
 * A failure to write is no failure of the training: it is tried again, and what is missing is read
 * from the service's log. Memory is bounded: too much that could not be written ends the series.
 */
#ifndef STK_SERIES_SERIES_STREAM_H
#define STK_SERIES_SERIES_STREAM_H

#include "jobs/series/metric_reader.h"
#include "jobs/series/series_read.h"

struct series_stream;

/* A line with its identity and time, by the service, and the readings on it. */
struct series_stream_line {
	uint64_t id;
	struct utc at;
	const struct metric_reading *readings;
	size_t count;
};

/* Reads what is kept of this log, to go on. `writer` is greater than those of earlier writers. */
int series_stream_open(const struct series_place *place, int64_t writer, struct series_stream **ret,
		       struct err **err);
void series_stream_freep(struct series_stream **stream); /* for AUTO(); writes nothing */

/* Returns the place up to which the readings are kept. */
uint64_t series_stream_place(const struct series_stream *stream);
/* The log is read from here on by one who knows that nothing is left out. */
void series_stream_go_on(struct series_stream *stream);

/* Takes a line of the log, in the order of reading. */
void series_stream_add(struct series_stream *stream, const struct series_stream_line *line);

/* False if nothing is kept any more. */
bool series_stream_is_on(const struct series_stream *stream);
/* Writes what is not written. */
int series_stream_write(struct series_stream *stream, struct err **err);
/* The log is read to its end, of which the service has lost lines or not; writes that. */
int series_stream_end(struct series_stream *stream, bool lost, struct err **err);

#endif
