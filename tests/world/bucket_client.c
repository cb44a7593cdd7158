/* A client of the bucket with many operations under way at once: see bucket.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "tests/world/bucket_internal.h"
#include "tests/world/kernel.h"

struct s3_operation {
	struct aws *aws;
	enum { OPERATION_UPLOAD, OPERATION_DOWNLOAD } kind;
	struct s3_place place;
	struct s3_body body;
	struct s3_object known;
	bool has_known;
	int fd;
	s3_done_fn done;
	void *arg;
	struct s3_operation *next;
};

struct s3_listing {
	struct aws *aws;
	struct s3_list what;
	char *after;
	bool wanted; /* a page has been asked for and is not here yet */
	s3_page_fn fn;
	void *arg;
	struct s3_listing *next;
};

/* The client of the world: what is under way. */
struct aws {
	struct s3_operation *operations;
	struct s3_listing *listings;
};

int __wrap_aws_open(struct aws **ret, struct err **err)
{
	(void)err;
	*ret = mem_zero(1, sizeof **ret);
	return 0;
}

void __wrap_aws_freep(struct aws **aws)
{
	free(*aws);
	*aws = NULL;
}

/* The client's words for a missing right are not of this world. */
void __wrap_aws_set_place(struct aws *aws, const char *bucket, const char *prefix)
{
	(void)aws;
	(void)bucket;
	(void)prefix;
}

static struct s3_operation *operation_new(struct aws *aws, const struct s3_place *place,
					  s3_done_fn done, void *arg)
{
	struct s3_operation *op = mem_zero(1, sizeof *op), **last = &aws->operations;

	op->aws = aws;
	op->place = (struct s3_place){ mem_copy(place->bucket), mem_copy(place->key) };
	op->done = done;
	op->arg = arg;
	while (*last)
		last = &(*last)->next;
	*last = op;
	return op;
}

static void operation_free(struct s3_operation *op)
{
	struct s3_operation **at = &op->aws->operations;

	while (*at && *at != op)
		at = &(*at)->next;
	if (*at)
		*at = op->next;
	free((char *)(uintptr_t)op->place.bucket);
	free((char *)(uintptr_t)op->place.key);
	free(op);
}

struct s3_operation *__wrap_s3_upload_start(struct aws *aws, const struct s3_place *place,
					    const struct s3_body *body, s3_done_fn done, void *arg,
					    struct err **err)
{
	struct s3_operation *op = operation_new(aws, place, done, arg);

	(void)err;
	op->kind = OPERATION_UPLOAD;
	op->body = *body;
	return op;
}

struct s3_operation *__wrap_s3_download_start(struct aws *aws, const struct s3_place *place,
					      const struct s3_object *known, int fd,
					      s3_done_fn done, void *arg, struct err **err)
{
	struct s3_operation *op = operation_new(aws, place, done, arg);

	(void)err;
	op->kind = OPERATION_DOWNLOAD;
	op->fd = fd;
	op->has_known = known != NULL;
	if (known)
		op->known = *known;
	return op;
}

void __wrap_s3_cancelp(struct s3_operation **op)
{
	if (*op)
		operation_free(*op);
	*op = NULL;
}

struct s3_listing *__wrap_s3_list_start(struct aws *aws, const struct s3_list *what, s3_page_fn fn,
					void *arg)
{
	struct s3_listing *listing = mem_zero(1, sizeof *listing);

	listing->aws = aws;
	listing->what = (struct s3_list){ .bucket = mem_copy(what->bucket),
					  .prefix = mem_copy(what->prefix) };
	listing->wanted = true;
	listing->fn = fn;
	listing->arg = arg;
	listing->next = aws->listings;
	aws->listings = listing;
	return listing;
}

void __wrap_s3_list_next(struct s3_listing *listing)
{
	listing->wanted = true;
}

void __wrap_s3_listing_freep(struct s3_listing **listing)
{
	struct s3_listing *l = *listing, **at;

	if (!l)
		return;
	for (at = &l->aws->listings; *at && *at != l; at = &(*at)->next)
		;
	if (*at)
		*at = l->next;
	free((char *)(uintptr_t)l->what.bucket);
	free((char *)(uintptr_t)l->what.prefix);
	free(l->after);
	free(l);
	*listing = NULL;
}

static void listing_turn(struct s3_listing *listing)
{
	const struct s3_place place = { listing->what.bucket, listing->what.prefix };
	enum call_answer answer = service_request(CALL_s3_list, listing->what.prefix, 0);
	struct s3_page *page = NULL;
	struct err *err = NULL;

	listing->wanted = false;
	if (answer == ANSWER_YES) {
		page = bucket_page(&listing->what, listing->after);
		if (page->object_count > 0) {
			free(listing->after);
			listing->after = mem_copy(page->objects[page->object_count - 1].key);
		}
	} else {
		bucket_no_answer(answer, &place, &err);
	}
	listing->fn(listing->arg, page, err);
}

static void operation_turn(struct s3_operation *op)
{
	struct s3_outcome outcome = { 0 };
	s3_done_fn done = op->done;
	void *arg = op->arg;

	if (op->kind == OPERATION_UPLOAD)
		outcome.result = bucket_put_object(CALL_s3_upload_start, &op->place, &op->body,
						   &outcome, &outcome.err);
	else
		outcome.result = bucket_download(CALL_s3_download_start, &op->place,
						 op->has_known ? &op->known : NULL, op->fd,
						 &outcome, &outcome.err);
	operation_free(op);
	done(arg, &outcome);
	err_freep(&outcome.err);
}

void __wrap_aws_turn(struct aws *aws, int64_t wait_ms)
{
	struct s3_listing *listing = aws->listings;

	while (listing && !listing->wanted)
		listing = listing->next;
	if (listing)
		listing_turn(listing);
	else if (aws->operations)
		operation_turn(aws->operations);
	else
		world_spend(wait_ms * WORLD_MS);
}
