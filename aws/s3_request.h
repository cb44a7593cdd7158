/*
 * What the files of S3 share among themselves: one request with all that it points to, the
 * start of every operation, and the checksums. For others: s3.h.
 */
#ifndef STK_AWS_S3_REQUEST_H
#define STK_AWS_S3_REQUEST_H

#include "aws/s3.h"
#include "jobs/base/hash.h"

#define S3_NONCE_HEADER "x-amz-meta-stoker-nonce"
#define S3_PART_HEADER  "x-amz-meta-stoker-part"
#define S3_SHA_BASE64   45 /* 44 characters and a NUL */

/* --- a request --- */

struct s3_request {
	struct aws *aws;
	struct aws_call call;
	struct aws_task *task; /* NULL: not under way */
	char *bucket, *key;
	struct sigv4_pair params[8], headers[12];
	char *owned[24]; /* the values of both */
	size_t owned_count;
};

/* A fresh one (what it held is released): key NULL is the bucket. */
void s3_request_begin(struct s3_request *request, struct aws *aws, enum aws_operation operation,
		      const char *bucket, const char *key);
void s3_request_param(struct s3_request *request, const char *name, const char *value);
void s3_request_header(struct s3_request *request, const char *name, const char *value);
/* Its body, its digest in both forms: from memory, or out of a file (-1: cannot be read,
 * or is shorter). Without one, nothing. */
int s3_request_body(struct s3_request *request, const struct s3_body *body, uint64_t from,
		    uint64_t len, char ret_base64[S3_SHA_BASE64], struct err **err);
void s3_request_condition(struct s3_request *request, enum s3_condition condition,
			  const char *etag);
void s3_request_send(struct s3_request *request, aws_done_fn done, void *arg);
/* It is a small one (see S3_SMALL_BYTES): before it is sent, or for its next attempt. */
void s3_request_small(struct s3_request *request);
/* Also takes it back if it is under way. */
void s3_request_release(struct s3_request *request);

/* What the reply means, what it says of the object, and why it failed, told of the
 * object ("cannot read 's3://…'"). */
void s3_judge(const struct s3_request *request, struct aws_reply *reply, struct s3_outcome *ret);
/* A header; "" if there is none or it does not fit. */
void s3_header_text(const struct http_reply *reply, const char *name, char *ret, size_t size);
void s3_nonce_new(char nonce[S3_NONCE]);
/* That of the body, or a fresh one. */
void s3_nonce_of(const struct s3_body *body, char nonce[S3_NONCE]);
/* Whether the object that a HEAD tells of was written with this nonce. */
bool s3_has_nonce(const struct aws_reply *reply, const char *nonce);
int s3_check_place(const struct s3_place *place, struct err **err);

/* --- an operation --- */

struct s3_op {
	struct aws *aws;
	s3_done_fn done;
	void *arg;
	uint64_t moved; /* bytes so far: a wait looks at it for signs of life */
	/* What was sent first, while that goes on or nothing else can; NULL: no small operation. */
	struct s3_request *request;
	bool is_small; /* who waits for it has little patience */
	void (*free)(struct s3_op *op);
};

/* It is over: frees it, tells the outcome, and frees the error that nobody took. */
void s3_finish(struct s3_op *op, struct s3_outcome *outcome);
/* The same, as FAILED with this error. */
void s3_finish_failed(struct s3_op *op, struct err *err);

/* Who waits for it can do nothing else meanwhile: small limits for its request and all that
 * follow. Right after its start; NULL: nothing. */
void s3_op_small(struct s3_op *op);

/* A wait that has seen no sign of life for this long gives up. */
#define S3_WAIT_MS    ((int64_t)10 * 60 * 1000)
#define S3_WAIT_BYTES ((uint64_t)1 << 20)
/* The same for small requests that are waited for, one after the other, while nothing else
 * can go on, as a driver does: by s3_head(), s3_get(), s3_list(), s3_delete(), and s3_put()
 * and s3_upload() of up to S3_SMALL_BYTES. S3 begins to answer these within a second as a
 * rule. What goes to and from files, and whatever is begun by …_start and not waited for,
 * has time: there an outage is to be survived, on a slow link too. */
#define S3_SMALL_BYTES      ((uint64_t)1 << 20)
#define S3_SMALL_SILENT_MS  10000
#define S3_SMALL_AGAIN_MS   15000 /* so that the last attempt ends in time */
#define S3_SMALL_WAIT_MS    ((int64_t)30 * 1000)
#define S3_SMALL_WAIT_BYTES ((uint64_t)64 << 10)
/* A page of a listing that is waited for: 300 KiB as a rule, never more than 4 MiB. */
#define S3_PAGE_WAIT_MS ((int64_t)60 * 1000)

/* --- a page of a listing --- */

struct s3_reading {
	struct s3_page *page;
	size_t *key_bytes; /* of each object's key: a NUL may be in it */
	char *token;       /* how to go on; NULL: not said */
	bool truncated;
	/* While it is read. */
	size_t capacity, prefix_capacity, row_bytes;
	struct s3_object row;
	bool encoded, is_listing;
};

/* Rows as they came, decoded, and which of them are unfit; their order is not looked at.
 * `ret` begins with { 0 } and is to be released in any case. EXIT_UNREACHABLE. */
int s3_page_read(const char *bytes, size_t len, struct s3_reading *ret, struct err **err);
void s3_reading_release(struct s3_reading *reading);

/* --- checksums --- */

/* From the headers of a reply; S3_NO_CHECKSUM if there is none that is known here. */
void s3_checksum_read(const struct http_reply *reply, struct s3_checksum *ret);
/* Whether these bytes have it: 1 (also without one), 0, -1 the file cannot be read. */
int s3_checksum_bytes(const struct s3_checksum *checksum, const void *bytes, size_t len);
int s3_checksum_file(const struct s3_checksum *checksum, int fd, uint64_t size);
/* Base64 of bytes; `ret` has room for 4 characters for each 3 bytes begun, and a NUL. */
void s3_base64(const void *bytes, size_t len, char *ret);
/* The digest in hex as bytes. */
void s3_unhex(const char hex[SHA256_HEX], unsigned char ret[32]);

/* The time in a header ("Sun, 22 Nov 2026 04:05:06 GMT") or a listing
 * ("2026-11-22T04:05:06.000Z"); 0 if it is neither. */
struct utc s3_time(const char *text);

#endif
