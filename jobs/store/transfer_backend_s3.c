/* Transfer backend of a bucket: a page of the listing is used while the next one arrives, and
 * objects move on all connections of the client at once. See transfer_backend.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "aws/s3/s3.h"
#include "jobs/store/store_s3.h"
#include "jobs/store/transfer_backend.h"

struct transfer_backend_s3;

/* A running transfer. */
struct flight {
	struct transfer_backend_s3 *mover;
	struct transfer *transfer;
	struct s3_operation *op;
	struct flight *previous, *next;
};

struct transfer_backend_s3 {
	struct transfer_backend base; /* must be first: used as a transfer_backend */
	struct aws *aws;              /* owned by the store, with bucket and prefix */
	const char *bucket, *prefix;
	struct s3_listing *listing;
	struct s3_page *page, *ahead;
	size_t at;  /* index into page->objects */
	bool asked; /* a page was asked for and has not arrived yet */
	bool ended; /* the last page has arrived */
	struct err *err;
	struct flight *flights;
};

/* --- listing --- */

static void ask(struct transfer_backend_s3 *mover)
{
	if (mover->asked || mover->ended || mover->err || mover->ahead)
		return;
	mover->asked = true;
	s3_list_next(mover->listing);
}

static void page_came(void *arg, struct s3_page *page, struct err *err)
{
	struct transfer_backend_s3 *mover = arg;

	mover->asked = false;
	if (!page) {
		mover->err = err;
		return;
	}
	mover->ended = page->last;
	if (mover->page)
		mover->ahead = page;
	else
		mover->page = page;
	ask(mover);
}

static int s3_backend_list(struct transfer_backend *base, const char *prefix, struct err **err)
{
	struct transfer_backend_s3 *mover = (struct transfer_backend_s3 *)base;
	AUTO(auto_free) char *whole = mem_format("%s%s", mover->prefix, prefix);
	const struct s3_list what = { .bucket = mover->bucket, .prefix = whole };

	(void)err;
	mover->asked = true;
	mover->listing = s3_list_start(mover->aws, &what, page_came, mover);
	return 0;
}

static enum transfer_backend_next
s3_backend_next(struct transfer_backend *base, struct transfer_backend_row *ret, struct err **err)
{
	struct transfer_backend_s3 *mover = (struct transfer_backend_s3 *)base;

	for (;;) {
		const struct s3_object *object;

		if (mover->page && mover->at == mover->page->object_count) {
			s3_page_freep(&mover->page);
			mover->page = TAKE(mover->ahead);
			mover->at = 0;
			ask(mover);
		}
		if (!mover->page)
			break;
		if (mover->at == mover->page->object_count)
			continue;
		object = &mover->page->objects[mover->at++];
		ret->key = object->key + strlen(mover->prefix);
		/* The prefix itself: a folder marker of a console. */
		if (ret->key[0] == '\0')
			continue;
		ret->size = object->size;
		memcpy(ret->tag, object->etag, sizeof object->etag);
		ret->fresh = false;
		ret->unfit = object->unfit;
		if (!ret->unfit)
			ret->unfit = s3_key_unfit(ret->key, strlen(ret->key));
		return TRANSFER_BACKEND_ROW;
	}
	if (mover->err) {
		*err = TAKE(mover->err);
		return TRANSFER_BACKEND_ERROR;
	}
	return mover->ended ? TRANSFER_BACKEND_END : TRANSFER_BACKEND_WAIT;
}

/* --- objects --- */

static void flight_free(struct flight *flight)
{
	if (flight->next)
		flight->next->previous = flight->previous;
	if (flight->previous)
		flight->previous->next = flight->next;
	else
		flight->mover->flights = flight->next;
	free(flight);
}

static struct flight *flight_new(struct transfer_backend_s3 *mover, struct transfer *transfer)
{
	struct flight *flight = mem_zero(1, sizeof *flight);

	flight->mover = mover;
	flight->transfer = transfer;
	flight->next = mover->flights;
	if (flight->next)
		flight->next->previous = flight;
	mover->flights = flight;
	return flight;
}

static void landed(void *arg, struct s3_outcome *outcome)
{
	struct flight *flight = arg;
	struct transfer *transfer = flight->transfer;
	enum transfer_result result = TRANSFER_FAILED;

	flight_free(flight);
	switch (outcome->result) {
	case S3_DONE:
		result = TRANSFER_DONE;
		transfer->size = outcome->object.size;
		memcpy(transfer->tag, outcome->object.etag, sizeof outcome->object.etag);
		break;
	case S3_ABSENT:
		result = TRANSFER_GONE;
		break;
	case S3_TAKEN:
		result = transfer->exclusive ? TRANSFER_TAKEN : TRANSFER_CHANGED;
		break;
	case S3_CONFLICT:
		result = TRANSFER_CHANGED;
		break;
	case S3_FAILED:
		break;
	}
	transfer->done(transfer, result, result == TRANSFER_FAILED ? TAKE(outcome->err) : NULL);
}

static int s3_backend_fetch(struct transfer_backend *base, struct transfer *transfer,
			    struct err **err)
{
	struct transfer_backend_s3 *mover = (struct transfer_backend_s3 *)base;
	AUTO(auto_free) char *whole = mem_format("%s%s", mover->prefix, transfer->key);
	const struct s3_place place = { mover->bucket, whole };
	struct s3_object known = { .size = transfer->size };
	struct flight *flight = flight_new(mover, transfer);

	memcpy(known.etag, transfer->tag, sizeof known.etag);
	flight->op = s3_download_start(mover->aws, &place, transfer->tag[0] ? &known : NULL,
				       transfer->fd, landed, flight, err);
	if (flight->op)
		return 0;
	flight_free(flight);
	return -1;
}

static int s3_backend_send(struct transfer_backend *base, struct transfer *transfer,
			   struct err **err)
{
	struct transfer_backend_s3 *mover = (struct transfer_backend_s3 *)base;
	AUTO(auto_free) char *whole = mem_format("%s%s", mover->prefix, transfer->key);
	const struct s3_place place = { mover->bucket, whole };
	struct s3_body body = S3_BODY_INIT;
	struct flight *flight = flight_new(mover, transfer);

	body.fd = transfer->fd;
	body.len = transfer->size;
	body.condition = transfer->exclusive ? S3_IF_ABSENT : S3_ALWAYS;
	transfer->tag[0] = '\0';
	flight->op = s3_upload_start(mover->aws, &place, &body, landed, flight, err);
	if (flight->op)
		return 0;
	flight_free(flight);
	return -1;
}

static const char *s3_backend_unfit(const char *key)
{
	return s3_key_unfit(key, strlen(key));
}

static void s3_backend_turn(struct transfer_backend *base, int64_t wait_ms)
{
	aws_turn(((struct transfer_backend_s3 *)base)->aws, wait_ms);
}

static void s3_backend_free(struct transfer_backend *base)
{
	struct transfer_backend_s3 *mover = (struct transfer_backend_s3 *)base;

	for (struct flight *flight = mover->flights, *next; flight; flight = next) {
		next = flight->next;
		s3_cancelp(&flight->op);
		free(flight);
	}
	s3_listing_freep(&mover->listing);
	s3_page_freep(&mover->page);
	s3_page_freep(&mover->ahead);
	err_freep(&mover->err);
	free(mover);
}

static const struct transfer_backend_kind s3_backend = {
	.list = s3_backend_list,
	.next = s3_backend_next,
	.fetch = s3_backend_fetch,
	.send = s3_backend_send,
	.unfit = s3_backend_unfit,
	.turn = s3_backend_turn,
	.free = s3_backend_free,
};

int transfer_backend_s3_open(struct store *base, struct transfer_backend **ret, struct err **err)
{
	struct store_s3 *store = (struct store_s3 *)base;
	struct transfer_backend_s3 *mover;

	if (store_s3_client(store, err) < 0)
		return -1;
	mover = mem_zero(1, sizeof *mover);
	mover->base.kind = &s3_backend;
	mover->aws = store->aws;
	mover->bucket = store->bucket;
	mover->prefix = store->prefix;
	*ret = &mover->base;
	return 0;
}
