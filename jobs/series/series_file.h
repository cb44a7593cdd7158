/*
 * A file of blocks (series_block.h) as its one writer sees it: the last block is written again as
 * it grows, the others stay as they are. A writer that is killed leaves the last block whole, old
 * or torn, and the next one goes on from the last that is whole.
 */
#ifndef STK_SERIES_SERIES_FILE_H
#define STK_SERIES_SERIES_FILE_H

#include "jobs/base/err.h"
#include "jobs/series/series_block.h"

struct series_file {
	int fd;                    /* -1: it cannot be written any more */
	struct series_block block; /* the last one */
	uint64_t block_at;         /* in the file */
};

/* Opens the file, or makes it (0600). */
int series_file_open(const char *path, struct series_file *ret, struct err **err);
/* Takes the last of the whole blocks up that are of these metrics and of no more than `size`, and
 * cuts off what is behind it. Returns false if there is none; the block is then begun at 0. */
bool series_file_restore(struct series_file *file, uint32_t metrics, uint64_t size);
/* Writes the last block. A failure ends the file. */
void series_file_write(struct series_file *file);
/* Begins the next block, behind the last one as it is written. */
void series_file_next(struct series_file *file, uint64_t from, int64_t step);
void series_file_release(struct series_file *file);

#endif
