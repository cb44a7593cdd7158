/*
 * A gzip file written on all cores: what is added is cut into blocks of one size, each
 * of which becomes a gzip member of its own (RFC 1952: members may follow each other,
 * and together they are one file; a tar file that is cut between two of them shows it).
 * The bytes are the same however many threads there
 * are; which they are is a matter of libdeflate's version.
 *
 *     AUTO(press_freep) struct press *press = press_new(fd);
 *
 *     press_add(press, bytes, len, err), as often as need be
 *     press_end(press, err)
 */
#ifndef STK_SOURCE_PRESS_H
#define STK_SOURCE_PRESS_H

#include <stddef.h>

#include "jobs/base/err.h"

struct press;

/* Onto a descriptor that stays the caller's. */
struct press *press_new(int fd);
void press_freep(struct press **press); /* for AUTO(); what was not ended is cut */

/* -1: it could not be written (EXIT_REFUSED); adding more is -1 too then. */
int press_add(struct press *press, const void *bytes, size_t len, struct err **err);
/* All that was added is in the file. At least one byte must have been. */
int press_end(struct press *press, struct err **err);

#endif
