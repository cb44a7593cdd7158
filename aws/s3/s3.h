/*
 * Typed interface to S3: operations on objects, started (…_start, any number at once on one
 * client) or waited for. Nothing here holds a whole object in memory: bodies are read from files
 * or the caller's bytes, and are received by a sink or written to a file.
 *
 * Keys are bytes: `//`, `..`, blanks, accents and control bytes are sent and received unchanged.
 * s3_key_unfit() tells which keys cannot be names of files; a listing marks them, and the caller
 * must skip them.
 *
 * Written objects carry their SHA-256 (S3 refuses a body that does not match), and objects that
 * are read whole are compared with the checksum that S3 keeps, if its algorithm is known here:
 * SHA256, CRC32, CRC32C and CRC64NVME, and SHA256 of parts that stoker uploaded.
 *
 * Conditions. A write that must not overwrite (S3_IF_ABSENT), or only a known object
 * (S3_IF_SAME), carries a nonce in the object's metadata: when the reply to an attempt was lost
 * and the next one is refused, the nonce tells whether the object is our own. So an outcome is
 * S3_TAKEN only if another writer was first.
 *
 * Errors name the object ("s3://bucket/key"). Codes as in aws.h; an impossible reply of S3 (a
 * listing without order, a body that does not match) is EXIT_UNREACHABLE: no usable reply.
 *
 * Sources: API Reference of Amazon S3; its guide's "Conditional writes", "Checking object
 * integrity" and "Multipart upload limits"; service model of botocore 1.43.
 *
 * aws/s3: objects in buckets. Requests and replies of S3, multipart upload and download,
 * checksums, listings. The store box above it decides what is written where.
 */
#ifndef STK_AWS_S3_S3_H
#define STK_AWS_S3_S3_H

#include <stdbool.h>
#include <stdint.h>

#include "aws/aws.h"
#include "jobs/base/clock.h"
#include "jobs/base/err.h"

#define S3_KEY_MAX    1024 /* bytes, S3's own limit */
#define S3_ETAG       72   /* with quotes and a NUL; a longer one counts as unknown */
#define S3_BUCKET_MAX 63
#define S3_NONCE      33 /* 32 hex digits and a NUL */

/* Larger objects are uploaded and downloaded in parts of this size (bytes), S3_PARTS_AT_ONCE at a
 * time; parts are read and written in place in the file, and take no memory of their own. */
#define S3_PART_BYTES    ((uint64_t)16 << 20)
#define S3_PARTS_AT_ONCE 6
#define S3_OBJECT_MAX    ((uint64_t)5 << 40)

/* Location of an object. Borrowed by the functions below, which copy it. */
struct s3_place {
	const char *bucket, *key;
};

enum s3_algorithm { S3_NO_CHECKSUM, S3_SHA256, S3_CRC32, S3_CRC32C, S3_CRC64NVME };

struct s3_checksum {
	enum s3_algorithm algorithm;
	char value[64];   /* base64, as S3 writes it; for parts with "-<count>" appended */
	uint64_t of_part; /* bytes of each part for a checksum of parts; 0: checksum of the whole */
};

/* An object, as described by a listing or a reply. */
struct s3_object {
	const char *key; /* borrowed: from the page, or from the request */
	uint64_t size;   /* bytes */
	struct utc modified;
	char etag[S3_ETAG]; /* with its quotes; "" if unknown */
	/* The reason why a listed key cannot be a file name; NULL: it can. */
	const char *unsafe_name;
};

/* Returns NULL if the key can be the relative path of a file; else why not, as the end of a
 * sentence ("has a part '..'"): empty, longer than 1,024 bytes, absolute, an empty part, "." or
 * "..", a part longer than 255 bytes, a control byte, not UTF-8. */
const char *s3_key_unsafe(const char *key, size_t len);

/* Splits "s3://bucket/prefix" or "s3:bucket/prefix", with any number of slashes at the end, into
 * the bucket and the prefix without a slash at its end ("" if none); the caller frees both.
 * EXIT_REFUSED if the bucket is not a valid name for S3. */
int s3_parse_url(const char *url, char **ret_bucket, char **ret_prefix, struct err **err);

/* --- listing --- */

/* A page of a listing: objects and, with a delimiter, prefixes that stand for the keys below
 * them, each in byte order. */
struct s3_page {
	struct s3_object *objects;
	size_t object_count;
	char **prefixes; /* up to and with the delimiter */
	size_t prefix_count;
	bool last;
};
void s3_page_freep(struct s3_page **page);

struct s3_list {
	const char *bucket;
	const char *prefix;      /* "": all */
	const char *delimiter;   /* NULL: none */
	const char *start_after; /* NULL: from the start */
};

struct s3_listing; /* a listing under way */

/* The callee owns the page, or the error if the page is NULL. */
typedef void (*s3_page_fn)(void *arg, struct s3_page *page, struct err *err);

/* Requests the first page. Each further page is requested by s3_list_next(), which may be called
 * in the callback, and not after the last page. Pages that repeat or are out of order are errors;
 * so is a listing that goes on without a key. */
struct s3_listing *s3_list_start(struct aws *aws, const struct s3_list *what, s3_page_fn fn,
				 void *arg);
void s3_list_next(struct s3_listing *listing);
void s3_listing_freep(struct s3_listing **listing); /* also while a page is awaited */

/* Calls the functions for every object and prefix, page by page, waiting. They return 0 to go on,
 * 1 to stop, -1 with `err` to fail; either may be NULL. They may use the client. */
typedef int (*s3_object_fn)(void *arg, const struct s3_object *object, struct err **err);
typedef int (*s3_prefix_fn)(void *arg, const char *prefix, struct err **err);
int s3_list(struct aws *aws, const struct s3_list *what, s3_object_fn object_fn,
	    s3_prefix_fn prefix_fn, void *arg, struct err **err);

/* --- one object --- */

enum s3_result {
	S3_DONE,
	S3_ABSENT,   /* no such object (or upload) */
	S3_TAKEN,    /* the condition does not hold: another object is there */
	S3_CONFLICT, /* another write was going on at that moment: nothing happened, try again */
	S3_FAILED,   /* with an error */
};

struct s3_outcome {
	enum s3_result result;
	struct s3_object object; /* current properties; `key` is NULL */
	struct s3_checksum checksum;
	uint64_t bytes;  /* number of bytes received (get, download) or sent (put, upload) */
	struct err *err; /* reason of S3_FAILED; taken with TAKE(), or freed */
};

struct s3_operation; /* an operation under way */

/* Called once, from aws_turn(), never from …_start; `op` is freed by then. */
typedef void (*s3_done_fn)(void *arg, struct s3_outcome *outcome);

/* Drops the operation: `done` is not called. A request already sent may still take effect; parts
 * of an upload stay in S3 until s3_abort_leftovers(). */
void s3_cancelp(struct s3_operation **op);

enum s3_condition { S3_ALWAYS, S3_IF_ABSENT, S3_IF_SAME };

/* Content to write: bytes, or `len` bytes of a file from `offset` on (fd >= 0). The caller owns
 * it and leaves it unchanged until the end. */
struct s3_body {
	const void *bytes;
	uint64_t len;
	int fd;
	uint64_t offset;
	enum s3_condition condition;
	const char *etag; /* S3_IF_SAME */
	/* A caller that tries again after S3_CONFLICT passes the same nonce (S3_NONCE bytes with
	 * the NUL) each time, and sets `again`: an earlier attempt may yet take effect. NULL: a new
	 * nonce. */
	const char *nonce;
	bool again;
};
#define S3_BODY_INIT ((struct s3_body){ .fd = -1 })

/* Every …_start returns NULL with `err` if the operation cannot be started: a key that is too
 * long for S3, a file that cannot be read. */

/* Gets size, ETag, time and checksum. */
struct s3_operation *s3_head_start(struct aws *aws, const struct s3_place *place, s3_done_fn done,
				   void *arg, struct err **err);

/* Reads a range of an object, or all of it: `len` 0 means all from `offset` on. `if_match` pins
 * the content (S3_TAKEN if it differs); NULL: any. `sink` returns false to stop; `restart` is
 * called when the data begins again from `offset`. A range beyond the end has no bytes and is
 * S3_DONE. Not checked against a checksum: only a caller with all the bytes can do that. */
struct s3_read {
	uint64_t offset, len;
	const char *if_match;
	bool (*sink)(void *arg, const void *bytes, size_t len);
	void (*restart)(void *arg);
	void *sink_arg;
};
struct s3_operation *s3_get_start(struct aws *aws, const struct s3_place *place,
				  const struct s3_read *read, s3_done_fn done, void *arg,
				  struct err **err);

/* Writes an object in one request: up to 5 GiB. */
struct s3_operation *s3_put_start(struct aws *aws, const struct s3_place *place,
				  const struct s3_body *body, s3_done_fn done, void *arg,
				  struct err **err);

/* Uploads a file, or a range of it, in one request or in parts. Fails if the size of the file
 * changes meanwhile (the caller checks its times). An upload that could not be completed is
 * aborted. */
struct s3_operation *s3_upload_start(struct aws *aws, const struct s3_place *place,
				     const struct s3_body *body, s3_done_fn done, void *arg,
				     struct err **err);

/* Downloads a whole object into an empty file, in one request or in parallel ranges, and verifies
 * it. `known`: size and ETag from a listing (other content is S3_TAKEN); NULL: asked for first.
 * Does not sync the file. */
struct s3_operation *s3_download_start(struct aws *aws, const struct s3_place *place,
				       const struct s3_object *known, int fd, s3_done_fn done,
				       void *arg, struct err **err);

/* Copies an object inside S3: no byte of it comes here. One request up to `whole_max` bytes (0:
 * S3_COPY_WHOLE_MAX, S3's own limit), else parts of up to S3_COPY_PART. An object of another ETag
 * is S3_TAKEN, none S3_ABSENT. What is at the target is overwritten. `outcome.checksum` is the
 * SHA-256 of the whole, as S3 computed it; none if the copy was made in parts, or if S3 does not
 * tell. */
#define S3_COPY_WHOLE_MAX ((uint64_t)5 << 30)
#define S3_COPY_PART      ((uint64_t)1 << 30)
struct s3_source {
	struct s3_place place;
	uint64_t size;
	const char *etag;
};
struct s3_operation *s3_copy_start(struct aws *aws, const struct s3_source *from,
				   const struct s3_place *to, uint64_t whole_max, s3_done_fn done,
				   void *arg, struct err **err);

/* Deletes one object; absent is fine. */
struct s3_operation *s3_delete_start(struct aws *aws, const struct s3_place *place, s3_done_fn done,
				     void *arg, struct err **err);

/* --- waiting for one operation --- */

/* Returns 1 if present, 0 if absent, -1 with an error. `ret` as in s3_outcome, or NULL. */
int s3_head(struct aws *aws, const struct s3_place *place, struct s3_outcome *ret,
	    struct err **err);
/* Appends a range (`len` 0: to the end) of the content, at most `max` bytes. A whole object is
 * verified. A failure appends nothing. */
int s3_get(struct aws *aws, const struct s3_place *place, uint64_t offset, uint64_t len, size_t max,
	   struct sb *bytes, struct s3_outcome *ret, struct err **err);
/* Returns 1 if written, 0 if the condition does not hold (never with S3_ALWAYS), -1 if the
 * outcome is unknown. Conflicts are tried again. */
int s3_put(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
	   struct s3_outcome *ret, struct err **err);
int s3_upload(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
	      struct s3_outcome *ret, struct err **err);
/* Returns 1 if copied, 0 if the source is gone or has changed, -1 with an error. */
int s3_copy(struct aws *aws, const struct s3_source *from, const struct s3_place *to,
	    uint64_t whole_max, struct s3_outcome *ret, struct err **err);
/* Returns 1 on success, 0 if absent, -1 with an error. */
int s3_download(struct aws *aws, const struct s3_place *place, int fd, struct s3_outcome *ret,
		struct err **err);
int s3_delete(struct aws *aws, const struct s3_place *place, struct err **err);

/* Aborts multipart uploads of exactly this key that have received nothing for `idle_ms`:
 * leftovers of killed processes. Returns the number aborted, or -1. */
int s3_abort_leftovers(struct aws *aws, const struct s3_place *place, int64_t idle_ms,
		       struct err **err);

/* --- a trial of an upload in parts --- */

/* What is tried: to begin one, to find it among those of the bucket, to list its parts, to abort
 * it. */
enum s3_parts_step { S3_PARTS_BEGIN, S3_PARTS_FIND, S3_PARTS_LIST, S3_PARTS_ABORT, S3_PARTS_STEPS };

struct s3_parts_trial {
	struct err *why[S3_PARTS_STEPS]; /* it failed; NULL: it did not, or was not tried */
	char *kms_key; /* ARN of the key of KMS by which S3 encrypts there; NULL: none is told */
};
void s3_parts_trial_release(struct s3_parts_trial *trial); /* for AUTO() */

/* Makes the trial with this key, which gets no object. `finds`: FIND is tried too. The upload stays
 * if ABORT failed; then, and if BEGIN failed, a caller must take the trial for a failure: the
 * others only leave parts of killed processes where they are. */
void s3_parts_try(struct aws *aws, const struct s3_place *place, bool finds,
		  struct s3_parts_trial *ret);

#endif
