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
	struct transfer_backend_s3 *backend;
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
	size_t at;         /* index into page->objects */
	bool is_requested; /* a page was asked for and has not arrived yet */
	bool ended;        /* the last page has arrived */
	struct err *err;
	struct flight *flights;
};

/* --- listing --- */

static void request_page(struct transfer_backend_s3 *backend)
{
	if (backend->is_requested || backend->ended || backend->err || backend->ahead)
		return;
	backend->is_requested = true;
	s3_list_next(backend->listing);
}

static void on_page(void *arg, struct s3_page *page, struct err *err)
{
	struct transfer_backend_s3 *backend = arg;

	backend->is_requested = false;
	if (!page) {
		backend->err = err;
		return;
	}
	backend->ended = page->last;
	if (backend->page)
		backend->ahead = page;
	else
		backend->page = page;
	request_page(backend);
}

static int s3_backend_list(struct transfer_backend *base, const char *prefix, struct err **err)
{
	struct transfer_backend_s3 *backend = (struct transfer_backend_s3 *)base;
	AUTO(auto_free) char *whole = mem_format("%s%s", backend->prefix, prefix);
	const struct s3_list what = { .bucket = backend->bucket, .prefix = whole };

	(void)err;
	backend->is_requested = true;
	backend->listing = s3_list_start(backend->aws, &what, on_page, backend);
	return 0;
}

static enum transfer_backend_next
s3_backend_next(struct transfer_backend *base, struct transfer_backend_row *ret, struct err **err)
{
	struct transfer_backend_s3 *backend = (struct transfer_backend_s3 *)base;

	for (;;) {
		const struct s3_object *object;

		if (backend->page && backend->at == backend->page->object_count) {
			s3_page_freep(&backend->page);
			backend->page = TAKE(backend->ahead);
			backend->at = 0;
			request_page(backend);
		}
		if (!backend->page)
			break;
		if (backend->at == backend->page->object_count)
			continue;
		object = &backend->page->objects[backend->at++];
		ret->key = object->key + strlen(backend->prefix);
		/* The prefix itself: a folder marker of a console. */
		if (ret->key[0] == '\0')
			continue;
		ret->size = object->size;
		memcpy(ret->tag, object->etag, sizeof object->etag);
		ret->fresh = false;
		ret->unsafe_name = object->unsafe_name;
		if (!ret->unsafe_name)
			ret->unsafe_name = s3_key_unsafe(ret->key, strlen(ret->key));
		return TRANSFER_BACKEND_ROW;
	}
	if (backend->err) {
		*err = TAKE(backend->err);
		return TRANSFER_BACKEND_ERROR;
	}
	return backend->ended ? TRANSFER_BACKEND_END : TRANSFER_BACKEND_WAIT;
}

/* --- objects --- */

static void flight_free(struct flight *flight)
{
	if (flight->next)
		flight->next->previous = flight->previous;
	if (flight->previous)
		flight->previous->next = flight->next;
	else
		flight->backend->flights = flight->next;
	free(flight);
}

static struct flight *flight_new(struct transfer_backend_s3 *backend, struct transfer *transfer)
{
	struct flight *flight = mem_zero(1, sizeof *flight);

	flight->backend = backend;
	flight->transfer = transfer;
	flight->next = backend->flights;
	if (flight->next)
		flight->next->previous = flight;
	backend->flights = flight;
	return flight;
}

static void on_outcome(void *arg, struct s3_outcome *outcome)
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
	struct transfer_backend_s3 *backend = (struct transfer_backend_s3 *)base;
	AUTO(auto_free) char *whole = mem_format("%s%s", backend->prefix, transfer->key);
	const struct s3_place place = { backend->bucket, whole };
	struct s3_object known = { .size = transfer->size };
	struct flight *flight = flight_new(backend, transfer);

	memcpy(known.etag, transfer->tag, sizeof known.etag);
	flight->op = s3_download_start(backend->aws, &place, transfer->tag[0] ? &known : NULL,
				       transfer->fd, on_outcome, flight, err);
	if (flight->op)
		return 0;
	flight_free(flight);
	return -1;
}

static int s3_backend_send(struct transfer_backend *base, struct transfer *transfer,
			   struct err **err)
{
	struct transfer_backend_s3 *backend = (struct transfer_backend_s3 *)base;
	AUTO(auto_free) char *whole = mem_format("%s%s", backend->prefix, transfer->key);
	const struct s3_place place = { backend->bucket, whole };
	struct s3_body body = S3_BODY_INIT;
	struct flight *flight = flight_new(backend, transfer);

	body.fd = transfer->fd;
	body.len = transfer->size;
	body.condition = transfer->exclusive ? S3_IF_ABSENT : S3_ALWAYS;
	transfer->tag[0] = '\0';
	flight->op = s3_upload_start(backend->aws, &place, &body, on_outcome, flight, err);
	if (flight->op)
		return 0;
	flight_free(flight);
	return -1;
}

static const char *s3_backend_unsafe_name(const char *key)
{
	return s3_key_unsafe(key, strlen(key));
}

static void s3_backend_turn(struct transfer_backend *base, int64_t wait_ms)
{
	aws_turn(((struct transfer_backend_s3 *)base)->aws, wait_ms);
}

static void s3_backend_free(struct transfer_backend *base)
{
	struct transfer_backend_s3 *backend = (struct transfer_backend_s3 *)base;

	for (struct flight *flight = backend->flights, *next; flight; flight = next) {
		next = flight->next;
		s3_cancelp(&flight->op);
		free(flight);
	}
	s3_listing_freep(&backend->listing);
	s3_page_freep(&backend->page);
	s3_page_freep(&backend->ahead);
	err_freep(&backend->err);
	free(backend);
}

static const struct transfer_backend_kind s3_backend = {
	.list = s3_backend_list,
	.next = s3_backend_next,
	.fetch = s3_backend_fetch,
	.send = s3_backend_send,
	.unsafe_name = s3_backend_unsafe_name,
	.turn = s3_backend_turn,
	.free = s3_backend_free,
};

int transfer_backend_s3_open(struct store *base, struct transfer_backend **ret, struct err **err)
{
	struct store_s3 *store = (struct store_s3 *)base;
	struct transfer_backend_s3 *backend;

	if (store_s3_client(store, err) < 0)
		return -1;
	backend = mem_zero(1, sizeof *backend);
	backend->base.kind = &s3_backend;
	backend->aws = store->aws;
	backend->bucket = store->bucket;
	backend->prefix = store->prefix;
	*ret = &backend->base;
	return 0;
}
