/*
 * Compares a local file with a stored object by content, for a sync that has no manifest row
 * for them. No request is sent: for an object in a bucket, the ETag from its listing is all
 * there is. The ETag of an object of one piece is the MD5 of its bytes. The ETag of a
 * multipart object is made from the MD5 of each part; the part size is found by trying the
 * sizes in common use. If the service encrypts with keys of its own, the ETag says nothing
 * about the content.
 */
#ifndef STK_STORE_CONTENT_MATCH_H
#define STK_STORE_CONTENT_MATCH_H

#include "jobs/store/transfer_backend.h"

/* Compares the open file `fd`, of row->size bytes, with `row`, the row that next() of the
 * transfer backend returned last. Other transfers go on between the reads. Returns 1 if they are
 * the same, 0 if they differ or this cannot be told, -1 with an error. */
int content_match_file(struct transfer_backend *backend, const struct transfer_backend_row *row,
		       int fd, struct err **err);

/* Does the same for a file and a tag alone; `key` is used in errors. */
int content_match_tag(int fd, const char *key, uint64_t size, const char *tag, struct err **err);

#endif
