/*
 * Digests of many objects in a bucket. A single object is read range after range, each hashed when
 * all of it is there, so that a range can be requested again; several objects are under way at
 * once. See store_digest.h.
 */
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/s3/s3.h"
#include "jobs/base/sb.h"
#include "jobs/store/store_digest.h"
#include "jobs/store/store_s3.h"

#define AT_ONCE     8
#define RANGE_BYTES ((size_t)8 << 20)

struct s3_digests;

/* An object that is being read. */
struct s3_digest_reading {
	struct s3_digests *all;
	struct store_digest *digest; /* NULL: none */
	char *key;                   /* owned; with the store's prefix */
	struct s3_operation *op; /* the range under way; NULL: the next one is to be requested */
	char tag[STORE_TAG];     /* of the first range */
	struct sb bytes;         /* of the range */
	struct sha256 *sha;
};

struct s3_digests {
	struct store_s3 *store;
	struct s3_digest_reading readings[AT_ONCE];
	size_t under_way;
	bool failed; /* nothing more is begun */
};

static void reading_end(struct s3_digest_reading *r)
{
	s3_cancelp(&r->op);
	free(r->key);
	hash_sha256_freep(&r->sha);
	sb_release(&r->bytes);
	r->all->under_way--;
	*r = (struct s3_digest_reading){ .bytes = SB_INIT };
}

static void reading_fail(struct s3_digest_reading *r, struct err *err)
{
	r->digest->there = -1;
	r->digest->err = err;
	r->all->failed = true;
	reading_end(r);
}

static void fail_changed(struct s3_digest_reading *r)
{
	struct err *err = NULL;

	err_set(&err, EXIT_UNREACHABLE, "'%s/%s' changed while it was read",
		r->all->store->base.url, r->digest->key);
	reading_fail(r, err);
}

/* --- ranges --- */

static bool take_bytes(void *arg, const void *bytes, size_t len)
{
	struct s3_digest_reading *r = arg;

	if (r->bytes.len + len > RANGE_BYTES)
		return false;
	sb_add(&r->bytes, bytes, len);
	return true;
}

static void begin_again(void *arg)
{
	sb_clear(&((struct s3_digest_reading *)arg)->bytes);
}

static void on_range(void *arg, struct s3_outcome *outcome)
{
	struct s3_digest_reading *r = arg;
	struct store_digest *digest = r->digest;
	size_t got = r->bytes.len;

	r->op = NULL;
	if (outcome->result == S3_FAILED) {
		reading_fail(r, TAKE(outcome->err));
		return;
	}
	if (outcome->result == S3_ABSENT && digest->size == 0) {
		digest->there = 0;
		reading_end(r);
		return;
	}
	if (outcome->result != S3_DONE) {
		fail_changed(r);
		return;
	}
	if (digest->size == 0)
		memcpy(r->tag, outcome->object.etag, sizeof outcome->object.etag);
	hash_sha256_add(r->sha, r->bytes.text, got);
	digest->size += got;
	sb_clear(&r->bytes);
	if (got == RANGE_BYTES)
		return; /* the next turn requests the next one */
	hash_sha256_end(TAKE(r->sha), digest->sha256);
	digest->there = 1;
	reading_end(r);
}

static void request_range(struct s3_digest_reading *r)
{
	const struct s3_place place = { r->all->store->bucket, r->key };
	const struct s3_read read = { .offset = r->digest->size,
				      .len = RANGE_BYTES,
				      .if_match = r->tag[0] ? r->tag : NULL,
				      .sink = take_bytes,
				      .restart = begin_again,
				      .sink_arg = r };
	struct err *err = NULL;

	r->op = s3_get_start(r->all->store->aws, &place, &read, on_range, r, &err);
	if (!r->op)
		reading_fail(r, err);
}

/* --- all readings --- */

static void begin(struct s3_digests *all, struct store_digest *digest)
{
	struct s3_digest_reading *r = all->readings;

	while (r->digest)
		r++;
	*r = (struct s3_digest_reading){ .all = all,
					 .digest = digest,
					 .key = mem_format("%s%s", all->store->prefix, digest->key),
					 .bytes = SB_INIT,
					 .sha = hash_sha256_new() };
	digest->looked = true;
	digest->size = 0;
	all->under_way++;
}

/* Fails what is under way: this process is to stop waiting. */
static void stop_all(struct s3_digests *all, const struct err *why)
{
	for (size_t i = 0; i < AT_ONCE; i++) {
		struct err *copy = NULL;

		if (!all->readings[i].digest)
			continue;
		err_again(&copy, why);
		reading_fail(&all->readings[i], copy);
	}
}

void store_s3_digests(struct store *base, struct store_digest *digests, size_t count)
{
	struct s3_digests all = { .store = (struct store_s3 *)base };
	AUTO(err_freep) struct err *err = NULL;
	size_t at = 0;

	if (count > 0 && store_s3_client(all.store, &err) < 0) {
		digests[0].looked = true;
		digests[0].there = -1;
		digests[0].err = TAKE(err);
		return;
	}
	while (at < count || all.under_way > 0) {
		while (!all.failed && at < count && all.under_way < AT_ONCE)
			begin(&all, &digests[at++]);
		if (all.under_way == 0)
			return; /* after a failure */
		for (size_t i = 0; i < AT_ONCE; i++)
			if (all.readings[i].digest && !all.readings[i].op)
				request_range(&all.readings[i]);
		if (all.under_way > 0 && aws_wait_turn(all.store->aws, &err) < 0)
			stop_all(&all, err);
	}
}
