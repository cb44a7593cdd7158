/*
 * Whether a file here is an object over there, by content: for a sync that remembers
 * nothing of them. What costs a request is not done: of an object in a bucket the tag that
 * its listing told is all there is, and that is made of MD5 for an object of one piece, and
 * of the MD5 of each part for one of several, whose sizes are then found by trying those
 * that are in use. Where the service encrypts with keys of its own the tag says nothing.
 */
#ifndef STK_STORE_SAME_H
#define STK_STORE_SAME_H

#include "jobs/store/mover.h"

/* The open file `fd`, of row->size bytes; `row` is the one that the mover told last.
 * Between its reads other transfers go on. 1 the same; 0 another, or nobody knows; -1. */
int same_content(struct mover *mover, const struct mover_row *row, int fd, struct err **err);

/* The same for a file and a tag alone; `key` for errors. */
int same_tag(int fd, const char *key, uint64_t size, const char *tag, struct err **err);

#endif
