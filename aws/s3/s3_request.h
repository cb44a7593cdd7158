/*
 * Interface between the files of S3: a request with all data it refers to, the start of every
 * operation, and the checksums. Public functions: s3.h.
 */
#ifndef STK_AWS_S3_S3_REQUEST_H
#define STK_AWS_S3_S3_REQUEST_H

#include "aws/s3/s3.h"
#include "jobs/base/hash.h"

#define S3_NONCE_HEADER "x-amz-meta-stoker-nonce"
#define S3_PART_HEADER  "x-amz-meta-stoker-part"

/* --- a request --- */

struct s3_request {
	struct aws *aws;
	struct aws_call call;
	struct aws_request *sent; /* NULL: not under way */
	char *bucket, *key;
	struct sigv4_pair params[8], headers[12];
	char *owned[24]; /* values of params and headers */
	size_t owned_count;
};

/* Begins a new request, after releasing the old one; key NULL means the bucket. */
void s3_request_begin(struct s3_request *request, struct aws *aws, enum aws_operation operation,
		      const char *bucket, const char *key);
void s3_request_param(struct s3_request *request, const char *name, const char *value);
void s3_request_header(struct s3_request *request, const char *name, const char *value);
/* Sets the body and returns its digest in both forms: from memory or a file (-1: cannot be read,
 * or is shorter). Does nothing if the body is empty. */
int s3_request_body(struct s3_request *request, const struct s3_body *body, uint64_t from,
		    uint64_t len, char ret_base64[SHA256_BASE64], struct err **err);
void s3_request_condition(struct s3_request *request, enum s3_condition condition,
			  const char *etag);
/* Adds the object, and with `len` > 0 the range of it, that S3 is to copy; `source` is that of
 * s3_copy_source(). */
void s3_request_copy_source(struct s3_request *request, const char *source, const char *etag,
			    uint64_t from, uint64_t len);
void s3_request_send(struct s3_request *request, aws_done_fn done, void *arg);
/* Sets the limits of small requests (see S3_SMALL_BYTES): before it is sent, or for its next
 * attempt. */
void s3_request_small(struct s3_request *request);
/* Also cancels a request under way. */
void s3_request_release(struct s3_request *request);

/* Determines the result, the properties of the object, and the error, which names the object
 * ("cannot read 's3://…'"). */
void s3_outcome_read(const struct s3_request *request, struct aws_reply *reply,
		     struct s3_outcome *ret);
/* Copies a header; "" if it is absent or does not fit. */
void s3_header_text(const struct http_reply *reply, const char *name, char *ret, size_t size);
/* Copies the body's nonce, or makes a new one. */
void s3_nonce_of(const struct s3_body *body, char nonce[S3_NONCE]);
/* True if the object of a HEAD reply was written with this nonce. */
bool s3_has_nonce(const struct aws_reply *reply, const char *nonce);
int s3_check_place(const struct s3_place *place, struct err **err);

/* The place as x-amz-copy-source: encoded. The caller frees it. */
char *s3_copy_source(const struct s3_place *place);
/* Reads the reply to a copy (of a whole object or a part): its ETag, "" if there is none, and the
 * SHA-256 of the whole in base64, "" if it is not told; `ret_sha` may be NULL. */
void s3_copied_read(const struct aws_reply *reply, char ret_etag[S3_ETAG],
		    char ret_sha[SHA256_BASE64]);
/* Copies in parts of this size (or larger, if there were too many). */
struct s3_operation *s3_copy_parts_start(struct aws *aws, const struct s3_source *from,
					 const struct s3_place *to, uint64_t part_bytes,
					 s3_done_fn done, void *arg, struct err **err);

/* --- an operation --- */

struct s3_operation {
	struct aws *aws;
	s3_done_fn done;
	void *arg;
	uint64_t moved; /* bytes so far: a wait checks that it grows */
	/* The first request, while it is under way or nothing else can be; NULL: no small
	 * operation. */
	struct s3_request *request;
	bool is_small; /* small limits, because the caller waits */
	void (*free)(struct s3_operation *op);
};

/* Ends the operation: frees it, calls back, and frees the error unless the callback took it. */
void s3_finish(struct s3_operation *op, struct s3_outcome *outcome);
/* Like s3_finish(), as FAILED with this error. */
void s3_finish_failed(struct s3_operation *op, struct err *err);

/* Sets small limits for the operation's request and all that follow, because its caller can do
 * nothing else meanwhile. Call right after the start; NULL is ignored. */
void s3_operation_small(struct s3_operation *op);

/* A wait gives up if fewer than S3_WAIT_BYTES moved within S3_WAIT_MS. */
#define S3_WAIT_MS    ((int64_t)10 * 60 * 1000)
#define S3_WAIT_BYTES ((uint64_t)1 << 20)
/* Limits for small requests that a caller, such as a driver, waits for one after the other while
 * nothing else can go on: by s3_head(), s3_get(), s3_list(), s3_delete(), and s3_put() and
 * s3_upload() of up to S3_SMALL_BYTES. S3 usually begins to answer these within a second.
 * Transfers to and from files, and operations begun by …_start and not waited for, have more
 * time: they are to survive an outage, on a slow link too. */
#define S3_SMALL_BYTES      ((uint64_t)1 << 20)
#define S3_SMALL_WAIT_MS    ((int64_t)AWS_CALL_MS)
#define S3_SMALL_WAIT_BYTES ((uint64_t)64 << 10)
/* Limit for one page of a listing that is waited for: usually 300 KiB, never more than 4 MiB. */
#define S3_PAGE_WAIT_MS ((int64_t)60 * 1000)

/* --- a page of a listing --- */

struct s3_reading {
	struct s3_page *page;
	size_t *key_bytes; /* length of each object's key, which may contain a NUL */
	char *token;       /* continuation token; NULL: not given */
	bool truncated;
	/* Used while reading. */
	size_t capacity, prefix_capacity, row_bytes;
	struct s3_object row;
	bool encoded, is_listing;
};

/* Parses the rows in the order received, decodes them, and marks unfit keys; the order is not
 * checked. `ret` begins with { 0 } and must be released in any case. EXIT_UNREACHABLE. */
int s3_page_read(const char *bytes, size_t len, struct s3_reading *ret, struct err **err);
void s3_reading_release(struct s3_reading *reading);

/* --- checksums --- */

/* Reads the checksum in the headers of a reply; S3_NO_CHECKSUM if none is known here. */
void s3_checksum_read(const struct http_reply *reply, struct s3_checksum *ret);
/* Compare the bytes with the checksum: 1 if they match (or there is none), 0 if not, -1 if the
 * file cannot be read. */
int s3_checksum_bytes(const struct s3_checksum *checksum, const void *bytes, size_t len);
int s3_checksum_file(const struct s3_checksum *checksum, int fd, uint64_t size);

/* Parses the time in a header ("Sun, 22 Nov 2026 04:05:06 GMT") or a listing
 * ("2026-11-22T04:05:06.000Z"); 0 if it is neither. */
struct utc s3_time(const char *text);

#endif
