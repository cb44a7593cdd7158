/*
 * Reads a log as it is written, and keeps its readings in a file beside it (series_block.h).
 *
 * The last block is written again as it grows, at most once a second; the others stay as they are.
 * A process that is killed leaves the last block whole, old or torn: the next writer, like any
 * reader, goes on from the log where the last whole block ends.
 *
 * A failure to write ends the series, not the training: what is missing is read from the log. So is
 * what is left out, because reading would take longer than half of the time, and a last line
 * without its end, because another start of the command may go on with it.
 */
#ifndef STK_SERIES_SERIES_WRITER_H
#define STK_SERIES_SERIES_WRITER_H

#include "jobs/base/clock.h"
#include "jobs/series/metric_reader.h"

struct series_writer;

/* The log whose readings are kept. */
struct series_log {
	const json_t *specs; /* of the metrics; borrowed while the writer is opened */
	const char *prefix;  /* of the attempt; likewise */
	int node;
	int64_t start; /* number of the command's start that goes on now */
	uint64_t size; /* bytes that the log has */
};

/* Opens the file, or makes it (0600). Of an older file the blocks stay up to the first that is
 * damaged, of other metrics or another log, or of more than the log has; the rest is cut off. */
int series_writer_open(const char *path, const struct series_log *log, struct series_writer **ret,
		       struct err **err);
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
/* Writes what is due. */
void series_writer_tick(struct series_writer *writer);

#endif
