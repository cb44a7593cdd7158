/*
 * Reads a log as it is written, and keeps its readings in a file beside it (series_block.h).
 *
 * The last block is written again as it grows, at most once a second; the others stay as they are.
 * A process that is killed leaves the last block whole, old or torn: the next writer, like any
 * reader, goes on from the log where the last whole block ends.
 *
 * A failure to write ends the series, not the training: what is missing is read from the log.
 */
#ifndef STK_SERIES_SERIES_WRITER_H
#define STK_SERIES_SERIES_WRITER_H

#include "jobs/base/clock.h"
#include "jobs/series/metric_reader.h"

struct series_writer;

/* Opens the file, or makes it (0600); `start` is the number of the command's start. A file of other
 * metrics, or of a log that was longer than `log_size`, is begun anew. */
int series_writer_open(const char *path, const json_t *specs, int64_t start, uint64_t log_size,
		       struct series_writer **ret, struct err **err);
/* Writes what is not written yet. */
void series_writer_freep(struct series_writer **writer); /* for AUTO() */

/* Returns the offset in the log of the next byte to feed. */
uint64_t series_writer_offset(const struct series_writer *writer);
/* Reads the bytes at that offset, which came at this time. `late`: they came before it. */
void series_writer_feed(struct series_writer *writer, const char *bytes, size_t len, struct utc at,
			bool late);
/* Leaves out what is before this offset: there was no time to read it. Readings go on with the next
 * step. */
void series_writer_skip(struct series_writer *writer, uint64_t offset);
/* The log is over: its last line may lack a newline. */
void series_writer_end(struct series_writer *writer, struct utc at);
/* Writes what is due. */
void series_writer_tick(struct series_writer *writer);
/* Writes all. */
void series_writer_flush(struct series_writer *writer);

#endif
