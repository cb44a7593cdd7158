/*
 * Writes a gzip file on all cores. The input is cut into blocks of one size, and each becomes a
 * gzip member of its own (RFC 1952: members may follow each other, and together they are one file;
 * a tar file that is cut between two of them shows it). The bytes depend on libdeflate's version,
 * not on the number of threads.
 *
 *     AUTO(gzip_parallel_freep) struct gzip_parallel *press = gzip_parallel_new(fd);
 *
 *     gzip_parallel_add(press, bytes, len, err), as often as need be
 *     gzip_parallel_end(press, err)
 */
#ifndef STK_SOURCE_GZIP_PARALLEL_H
#define STK_SOURCE_GZIP_PARALLEL_H

#include <stddef.h>

#include "jobs/base/err.h"

struct gzip_parallel;

/* Writes to `fd`, which stays the caller's. */
struct gzip_parallel *gzip_parallel_new(int fd);
void gzip_parallel_freep(struct gzip_parallel **gzip); /* for AUTO(); an unended file is cut */

/* Returns -1 if the file could not be written (EXIT_REFUSED): the next batch then fails too. */
int gzip_parallel_add(struct gzip_parallel *gzip, const void *bytes, size_t len, struct err **err);
/* Writes all that was added to the file. At least one byte must have been added. */
int gzip_parallel_end(struct gzip_parallel *gzip, struct err **err);

#endif
