/*
 * S3, typed: what can be done with objects, begun (…_start, any number at once on one
 * client) or waited for. Nothing here holds a whole object in memory: bodies go out of
 * files or the caller's bytes, and come in through a sink or into a file.
 *
 * Keys are bytes: `//`, `..`, blanks, accents and control bytes are sent and come back as
 * they are. Which of them are no names for files, s3_key_unfit() tells; what is listed is
 * told so, and it is for the caller to leave it alone.
 *
 * What is written carries its SHA-256 (S3 refuses what does not match), and what is read
 * whole is compared with the checksum that S3 keeps, where it is one that is known here:
 * SHA256, CRC32, CRC32C and CRC64NVME, and SHA256 of parts that stoker uploaded.
 *
 * Conditions. A write that must not overwrite (S3_IF_ABSENT) or only what it knows
 * (S3_IF_SAME) carries a nonce in the object's metadata: when the reply to an attempt was
 * lost and the next one is refused, the nonce tells whose object it is that stands there.
 * So an outcome is S3_TAKEN only if somebody else was first.
 *
 * Errors name the object ("s3://bucket/key"). Codes as in aws.h; what S3 sends that cannot
 * be (a listing without order, a body that does not match) is EXIT_UNREACHABLE: no usable
 * reply.
 *
 * Sources: API Reference of Amazon S3; its guide's "Conditional writes", "Checking object
 * integrity" and "Multipart upload limits"; service model of botocore 1.43.
 */
#ifndef STK_AWS_S3_H
#define STK_AWS_S3_H

#include <stdbool.h>
#include <stdint.h>

#include "aws/aws.h"
#include "jobs/base/clock.h"
#include "jobs/base/err.h"

#define S3_KEY_MAX    1024 /* bytes, of S3 itself */
#define S3_ETAG       72   /* with quotes and a NUL; a longer one counts as unknown */
#define S3_BUCKET_MAX 63
#define S3_NONCE      33 /* 32 hex digits and a NUL */

/* What is larger goes up, and down, in parts (bytes), so many at once; they are read and
 * written where they lie in the file, and take no memory of their own. */
#define S3_PART_BYTES     ((uint64_t)16 << 20)
#define S3_PARTS_AT_ONCE  6
#define S3_OBJECT_MAX     ((uint64_t)5 << 40)
#define S3_DELETE_AT_ONCE 1000

/* Where an object is. Borrowed by the functions below, which copy it. */
struct s3_place {
	const char *bucket, *key;
};

enum s3_algorithm { S3_NO_CHECKSUM, S3_SHA256, S3_CRC32, S3_CRC32C, S3_CRC64NVME };

struct s3_checksum {
	enum s3_algorithm algorithm;
	char value[64];   /* as S3 writes it, base64; of parts with "-<count>" behind it */
	uint64_t of_part; /* bytes of a part that the value was made of; 0: of the whole */
};

/* An object, as a listing or a request for it tells. */
struct s3_object {
	const char *key; /* borrowed: from the page, or what was asked for */
	uint64_t size;   /* bytes */
	struct utc modified;
	char etag[S3_ETAG]; /* with its quotes; "" if unknown */
	/* In a listing: why no file can have this name; NULL: one can. */
	const char *unfit;
};

/* NULL if the key can be the relative path of a file; else why not, as the end of a
 * sentence ("has a part '..'"): empty, longer than 1,024 bytes, absolute, an empty part,
 * "." or "..", a part longer than 255 bytes, a control byte, no UTF-8. */
const char *s3_key_unfit(const char *key, size_t len);

/* "s3://bucket/prefix" or "s3:bucket/prefix", any number of slashes at the end: the
 * bucket, and the prefix without a slash at its end ("" if none); both yours to free.
 * EXIT_REFUSED if it names no bucket that S3 would have. */
int s3_parse_url(const char *url, char **ret_bucket, char **ret_prefix, struct err **err);

/* --- listing --- */

/* One page: objects and, with a delimiter, prefixes that stand for what is below them, each
 * in byte order. */
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

struct s3_listing; /* one under way */

/* A page, now the callee's, or NULL and an error, which is the callee's too. */
typedef void (*s3_page_fn)(void *arg, struct s3_page *page, struct err *err);

/* Ask for the first page. Each further one is asked for by s3_list_next(), which may be
 * called in the callback, and not after the last. Pages that repeat themselves or do not
 * come in order are errors; so is a listing that goes on without a key. */
struct s3_listing *s3_list_start(struct aws *aws, const struct s3_list *what, s3_page_fn fn,
				 void *arg);
void s3_list_next(struct s3_listing *listing);
void s3_listing_freep(struct s3_listing **listing); /* also while a page is awaited */

/* Every object and prefix in order of pages, waiting. The functions return 0 to go on, 1 to
 * stop, -1 with `err` to fail; either may be NULL. They may use the client. */
typedef int (*s3_object_fn)(void *arg, const struct s3_object *object, struct err **err);
typedef int (*s3_prefix_fn)(void *arg, const char *prefix, struct err **err);
int s3_list(struct aws *aws, const struct s3_list *what, s3_object_fn object_fn,
	    s3_prefix_fn prefix_fn, void *arg, struct err **err);

/* --- one object --- */

enum s3_result {
	S3_DONE,
	S3_ABSENT,   /* no such object (or upload) */
	S3_TAKEN,    /* the condition does not hold: another object stands there */
	S3_CONFLICT, /* somebody was writing at that moment: nothing happened, try again */
	S3_FAILED,   /* with an error */
};

struct s3_outcome {
	enum s3_result result;
	struct s3_object object; /* what is known of it now; `key` is NULL */
	struct s3_checksum checksum;
	uint64_t bytes;  /* that came (get, download) or went (put, upload) */
	struct err *err; /* S3_FAILED: why; taken with TAKE(), or freed */
};

struct s3_op; /* an operation under way */

/* Called once, from aws_turn() or the loop, never from …_start; `op` is gone then. */
typedef void (*s3_done_fn)(void *arg, struct s3_outcome *outcome);

/* Forget it: `done` is not called. What was begun on S3 may still take effect; parts of an
 * upload stay there until s3_abort_leftovers(). */
void s3_cancelp(struct s3_op **op);

enum s3_condition { S3_ALWAYS, S3_IF_ABSENT, S3_IF_SAME };

/* What is to be written: bytes, or `len` bytes of a file from `offset` on (fd >= 0). The
 * caller's, unchanged until the end. */
struct s3_body {
	const void *bytes;
	uint64_t len;
	int fd;
	uint64_t offset;
	enum s3_condition condition;
	const char *etag; /* S3_IF_SAME */
	/* Whoever tries again after S3_CONFLICT gives the same nonce (S3_NONCE bytes with the
	 * NUL) each time, and says that it is a repetition: an attempt before may yet take
	 * effect. NULL: a fresh one. */
	const char *nonce;
	bool again;
};
#define S3_BODY_INIT ((struct s3_body){ .fd = -1 })

/* Every …_start returns NULL with `err` for what cannot even begin: a key that S3 has no
 * room for, a file that cannot be read. */

/* Size, ETag, time and checksum. */
struct s3_op *s3_head_start(struct aws *aws, const struct s3_place *place, s3_done_fn done,
			    void *arg, struct err **err);

/* A stretch of an object, or all of it: `len` 0 is all from `offset` on. `if_match` pins
 * the content (S3_TAKEN if it is another one); NULL: any. `sink` returns false to give up;
 * `restart` is told when it begins anew from `offset`. A stretch beyond the end has no
 * bytes and is S3_DONE. Checked against a checksum only by who has all the bytes. */
struct s3_read {
	uint64_t offset, len;
	const char *if_match;
	bool (*sink)(void *arg, const void *bytes, size_t len);
	void (*restart)(void *arg);
	void *sink_arg;
};
struct s3_op *s3_get_start(struct aws *aws, const struct s3_place *place,
			   const struct s3_read *read, s3_done_fn done, void *arg,
			   struct err **err);

/* In one request: up to 5 GiB. */
struct s3_op *s3_put_start(struct aws *aws, const struct s3_place *place,
			   const struct s3_body *body, s3_done_fn done, void *arg,
			   struct err **err);

/* A file, or a stretch of it, in one request or in parts. Fails if the size of the file
 * changes meanwhile (the caller looks at its times). What could not be completed is taken
 * back. */
struct s3_op *s3_upload_start(struct aws *aws, const struct s3_place *place,
			      const struct s3_body *body, s3_done_fn done, void *arg,
			      struct err **err);

/* A whole object into an empty file, in one request or in stretches at once, and verified.
 * `known`: its size and ETag, from a listing (that content is meant, another one is
 * S3_TAKEN); NULL: asked for first. Not made durable. */
struct s3_op *s3_download_start(struct aws *aws, const struct s3_place *place,
				const struct s3_object *known, int fd, s3_done_fn done, void *arg,
				struct err **err);

/* One object, or up to S3_DELETE_AT_ONCE of one bucket in one request; absent is fine. */
struct s3_op *s3_delete_start(struct aws *aws, const struct s3_place *place, s3_done_fn done,
			      void *arg, struct err **err);
struct s3_op *s3_delete_many_start(struct aws *aws, const char *bucket, const char *const *keys,
				   size_t count, s3_done_fn done, void *arg, struct err **err);

/* --- waiting for one --- */

/* Until the operation begun with `s3_waited` as `done` and this as `arg` is over; bounded in
 * time, by its size. Returns the result; of S3_FAILED the error is in `err`. */
struct s3_wait {
	bool over;
	struct s3_outcome outcome;
};
void s3_waited(void *arg, struct s3_outcome *outcome);
enum s3_result s3_wait_for(struct aws *aws, struct s3_op *op, struct s3_wait *wait,
			   struct err **err);

/* 1 done, 0 absent, -1. `ret` as in s3_outcome, or NULL. */
int s3_head(struct aws *aws, const struct s3_place *place, struct s3_outcome *ret,
	    struct err **err);
/* Append a stretch (`len` 0: to the end), at most `max` bytes, of the content. The whole
 * of an object is verified. A failure appends nothing. */
int s3_get(struct aws *aws, const struct s3_place *place, uint64_t offset, uint64_t len, size_t max,
	   struct sb *bytes, struct s3_outcome *ret, struct err **err);
/* 1 written, 0 the condition does not hold (with S3_ALWAYS never), -1: outcome unknown.
 * Conflicts are tried again. */
int s3_put(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
	   struct s3_outcome *ret, struct err **err);
int s3_upload(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
	      struct s3_outcome *ret, struct err **err);
/* 1 done, 0 absent, -1. */
int s3_download(struct aws *aws, const struct s3_place *place, int fd, struct s3_outcome *ret,
		struct err **err);
int s3_delete(struct aws *aws, const struct s3_place *place, struct err **err);

/* Abort uploads in parts of exactly this key into which nothing has come for `idle_ms`:
 * what killed processes left behind. How many, or -1. */
int s3_abort_leftovers(struct aws *aws, const struct s3_place *place, int64_t idle_ms,
		       struct err **err);

#endif
