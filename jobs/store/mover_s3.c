/* The far side of a sync, where it is a bucket: a page of the listing is looked at while the
 * next one comes, and objects move on all connections of the client at once. See mover.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "aws/s3.h"
#include "jobs/store/mover.h"
#include "jobs/store/store_s3.h"

struct mover_s3;

/* One transfer under way. */
struct flight {
	struct mover_s3 *mover;
	struct transfer *transfer;
	struct s3_op *op;
	struct flight *previous, *next;
};

struct mover_s3 {
	struct mover base; /* first: a mover is one of these */
	struct aws *aws;   /* the store's, as are these */
	const char *bucket, *prefix;
	struct s3_listing *listing;
	struct s3_page *page, *ahead;
	size_t at;  /* of page->objects */
	bool asked; /* for a page that has not come yet */
	bool ended; /* the last page has come */
	struct err *err;
	struct flight *flights;
};

/* --- listing --- */

static void ask(struct mover_s3 *mover)
{
	if (mover->asked || mover->ended || mover->err || mover->ahead)
		return;
	mover->asked = true;
	s3_list_next(mover->listing);
}

static void page_came(void *arg, struct s3_page *page, struct err *err)
{
	struct mover_s3 *mover = arg;

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

static int s3_mover_list(struct mover *base, const char *prefix, struct err **err)
{
	struct mover_s3 *mover = (struct mover_s3 *)base;
	AUTO(auto_free) char *whole = mem_format("%s%s", mover->prefix, prefix);
	const struct s3_list what = { .bucket = mover->bucket, .prefix = whole };

	(void)err;
	mover->asked = true;
	mover->listing = s3_list_start(mover->aws, &what, page_came, mover);
	return 0;
}

static enum mover_next s3_mover_next(struct mover *base, struct mover_row *ret, struct err **err)
{
	struct mover_s3 *mover = (struct mover_s3 *)base;

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
		/* The prefix itself: as consoles show a folder. */
		if (ret->key[0] == '\0')
			continue;
		ret->size = object->size;
		memcpy(ret->tag, object->etag, sizeof object->etag);
		ret->fresh = false;
		ret->unfit = object->unfit;
		if (!ret->unfit)
			ret->unfit = s3_key_unfit(ret->key, strlen(ret->key));
		return MOVER_ROW;
	}
	if (mover->err) {
		*err = TAKE(mover->err);
		return MOVER_ERROR;
	}
	return mover->ended ? MOVER_END : MOVER_WAIT;
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

static struct flight *flight_new(struct mover_s3 *mover, struct transfer *transfer)
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

static int s3_mover_fetch(struct mover *base, struct transfer *transfer, struct err **err)
{
	struct mover_s3 *mover = (struct mover_s3 *)base;
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

static int s3_mover_send(struct mover *base, struct transfer *transfer, struct err **err)
{
	struct mover_s3 *mover = (struct mover_s3 *)base;
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

static const char *s3_mover_unfit(const char *key)
{
	return s3_key_unfit(key, strlen(key));
}

static void s3_mover_turn(struct mover *base, int64_t wait_ms)
{
	aws_turn(((struct mover_s3 *)base)->aws, wait_ms);
}

static void s3_mover_free(struct mover *base)
{
	struct mover_s3 *mover = (struct mover_s3 *)base;

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

static const struct mover_kind s3_mover = {
	.list = s3_mover_list,
	.next = s3_mover_next,
	.fetch = s3_mover_fetch,
	.send = s3_mover_send,
	.unfit = s3_mover_unfit,
	.turn = s3_mover_turn,
	.free = s3_mover_free,
};

int mover_s3_open(struct store *store, struct mover **ret, struct err **err)
{
	struct mover_s3 *mover = mem_zero(1, sizeof *mover);

	mover->base.kind = &s3_mover;
	if (store_s3_inside(store, &mover->aws, &mover->bucket, &mover->prefix, err) < 0) {
		free(mover);
		return -1;
	}
	*ret = &mover->base;
	return 0;
}
