/*
 * Listing a bucket, page by page. A page is read whole before the caller sees any of its rows, so
 * a truncated reply can be requested again without reporting a row twice. Rows are compared with
 * the request and with earlier rows, because a server that repeats itself would cause an endless
 * loop. See s3.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aws/s3/s3_request.h"

#define PAGE_BYTES_MAX  ((size_t)16 << 20) /* 1,000 keys of 1,024 bytes, each as %XX: 4 MiB */
#define EMPTY_PAGES_MAX 100
#define RETRIES_MAX     2

struct s3_listing {
	struct s3_request request;
	struct aws *aws;
	char *bucket, *prefix, *delimiter, *start_after, *token;
	char *last; /* last key or prefix so far */
	size_t last_bytes;
	int empty_pages, retries;
	bool is_small;
	s3_page_fn fn;
	void *arg;
};

/* --- does the page fit the request? --- */

#define NOT_S3_HINT                                                                                \
	"something else than S3 answers, or changes what it says: check the endpoint and "         \
	"HTTPS_PROXY, then try again"

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);

	if (order)
		return order;
	return a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

static int not_usable(const struct s3_listing *l, const char *why, struct err **err)
{
	err_set(err, EXIT_UNREACHABLE, "cannot list 's3://%s/%s': %s", l->bucket, l->prefix, why);
	return err_hint(err, NOT_S3_HINT);
}

/* Checks that the names of a page are in order and below the prefix, and the first after all
 * earlier ones; `ret_last` is unchanged if there are none. */
static int check_names(const struct s3_listing *l, const struct s3_reading *r,
		       const char **ret_last, size_t *ret_bytes, struct err **err)
{
	const struct s3_page *page = r->page;
	size_t prefix_bytes = strlen(l->prefix);
	const char *last[2] = { l->last, l->last };
	size_t bytes[2] = { l->last_bytes, l->last_bytes };
	int later;

	for (size_t i = 0; i < page->object_count + page->prefix_count; i++) {
		int kind = i >= page->object_count;
		const char *name =
			kind ? page->prefixes[i - page->object_count] : page->objects[i].key;
		size_t len = kind ? strlen(name) : r->key_bytes[i];

		if (len < prefix_bytes || memcmp(name, l->prefix, prefix_bytes) != 0)
			return not_usable(l, "the reply names objects that were not requested",
					  err);
		if (last[kind] && compare(last[kind], bytes[kind], name, len) >= 0)
			return not_usable(l, "the pages repeat themselves or are in no order", err);
		last[kind] = name;
		bytes[kind] = len;
	}
	later = last[0] && last[1] && compare(last[0], bytes[0], last[1], bytes[1]) < 0;
	*ret_last = last[later];
	*ret_bytes = bytes[later];
	return 0;
}

static int accept_page(struct s3_listing *l, struct s3_reading *r, struct err **err)
{
	const char *last = NULL;
	size_t bytes = 0;

	if (check_names(l, r, &last, &bytes, err) < 0)
		return -1;
	if (r->truncated && (!r->token || !*r->token || (l->token && !strcmp(l->token, r->token))))
		return not_usable(l, "the reply does not say how to go on", err);
	l->empty_pages = r->page->object_count + r->page->prefix_count ? 0 : l->empty_pages + 1;
	if (l->empty_pages > EMPTY_PAGES_MAX)
		return not_usable(l, "pages without a key follow each other", err);
	if (last && last != l->last) {
		free(l->last);
		l->last = memcpy(mem_alloc(bytes + 1), last, bytes);
		l->last_bytes = bytes;
	}
	free(l->token);
	l->token = TAKE(r->token);
	return 0;
}

/* --- requests --- */

static void request_page(struct s3_listing *l);

static void call_back(struct s3_listing *l, struct s3_page *page, struct err *err)
{
	l->fn(l->arg, page, err);
}

static void on_page_reply(void *arg, struct aws_reply *reply)
{
	struct s3_listing *l = arg;
	AUTO(s3_reading_release) struct s3_reading r = { 0 };
	struct err *err = NULL;

	l->request.sent = NULL;
	if (!aws_reply_ok(reply)) {
		struct s3_outcome outcome;

		s3_outcome_read(&l->request, reply, &outcome);
		if (outcome.result != S3_FAILED) /* a listing has neither condition nor absence */
			not_usable(l, reply->code[0] ? reply->code : "refused", &outcome.err);
		call_back(l, NULL, outcome.err);
		return;
	}
	if (s3_page_read(reply->http->body.text, reply->http->body.len, &r, &err) < 0) {
		/* A reply that is not a listing is not reported yet: ask again. */
		if (l->retries++ < RETRIES_MAX) {
			err_freep(&err);
			request_page(l);
			return;
		}
		err_wrap(&err, "cannot list 's3://%s/%s'", l->bucket, l->prefix);
		err_hint(&err, NOT_S3_HINT);
		call_back(l, NULL, err);
		return;
	}
	l->retries = 0;
	if (accept_page(l, &r, &err) < 0)
		call_back(l, NULL, err);
	else
		call_back(l, TAKE(r.page), NULL);
}

static void request_page(struct s3_listing *l)
{
	s3_request_begin(&l->request, l->aws, AWS_LIST_OBJECTS, l->bucket, NULL);
	l->request.call.reply_max = PAGE_BYTES_MAX;
	s3_request_param(&l->request, "encoding-type", "url");
	if (l->prefix[0])
		s3_request_param(&l->request, "prefix", l->prefix);
	if (l->delimiter)
		s3_request_param(&l->request, "delimiter", l->delimiter);
	if (l->token)
		s3_request_param(&l->request, "continuation-token", l->token);
	else if (l->start_after)
		s3_request_param(&l->request, "start-after", l->start_after);
	if (l->is_small)
		s3_request_small(&l->request);
	s3_request_send(&l->request, on_page_reply, l);
}

static char *copy(const char *text)
{
	return text ? mem_copy(text) : NULL;
}

static struct s3_listing *listing_new(struct aws *aws, const struct s3_list *what, s3_page_fn fn,
				      void *arg)
{
	struct s3_listing *l = mem_zero(1, sizeof *l);

	l->aws = aws;
	l->bucket = mem_copy(what->bucket);
	l->prefix = mem_copy(what->prefix ? what->prefix : "");
	l->delimiter = copy(what->delimiter);
	l->start_after = copy(what->start_after);
	if (l->start_after) {
		l->last = mem_copy(l->start_after);
		l->last_bytes = strlen(l->last);
	}
	l->fn = fn;
	l->arg = arg;
	return l;
}

struct s3_listing *s3_list_start(struct aws *aws, const struct s3_list *what, s3_page_fn fn,
				 void *arg)
{
	struct s3_listing *l = listing_new(aws, what, fn, arg);

	request_page(l);
	return l;
}

void s3_list_next(struct s3_listing *listing)
{
	request_page(listing);
}

void s3_listing_freep(struct s3_listing **listing)
{
	struct s3_listing *l = *listing;

	if (!l)
		return;
	s3_request_release(&l->request);
	free(l->bucket);
	free(l->prefix);
	free(l->delimiter);
	free(l->start_after);
	free(l->token);
	free(l->last);
	free(l);
	*listing = NULL;
}

/* --- waiting --- */

struct pages {
	struct s3_page *page; /* received, not yet taken */
	struct err *err;
};

static void pages_release(struct pages *pages)
{
	s3_page_freep(&pages->page);
	err_freep(&pages->err);
}

static void on_page(void *arg, struct s3_page *page, struct err *err)
{
	struct pages *pages = arg;

	pages->page = page;
	pages->err = err;
}

static int wait_for_page(struct aws *aws, const struct s3_list *what, struct pages *pages,
			 struct err **err)
{
	struct mono start = clock_mono_now();

	while (!pages->page && !pages->err) {
		if (aws_wait_turn(aws, err) < 0)
			return -1;
		if (clock_mono_now().ms - start.ms > S3_PAGE_WAIT_MS)
			return err_set(err, EXIT_UNREACHABLE,
				       "cannot list 's3://%s/%s': a page did not end for a minute",
				       what->bucket, what->prefix ? what->prefix : "");
	}
	if (!pages->err)
		return 0;
	*err = TAKE(pages->err);
	return -1;
}

static int pass_rows(const struct s3_page *page, s3_object_fn object_fn, s3_prefix_fn prefix_fn,
		     void *arg, struct err **err)
{
	int done = 0;

	for (size_t i = 0; done == 0 && object_fn && i < page->object_count; i++)
		done = object_fn(arg, &page->objects[i], err);
	for (size_t i = 0; done == 0 && prefix_fn && i < page->prefix_count; i++)
		done = prefix_fn(arg, page->prefixes[i], err);
	return done;
}

int s3_list(struct aws *aws, const struct s3_list *what, s3_object_fn object_fn,
	    s3_prefix_fn prefix_fn, void *arg, struct err **err)
{
	AUTO(pages_release) struct pages pages = { 0 };
	AUTO(s3_listing_freep)
	struct s3_listing *listing = listing_new(aws, what, on_page, &pages);
	bool last = false;
	int done = 0;

	listing->is_small = true;
	request_page(listing);
	while (!last && done == 0) {
		AUTO(s3_page_freep) struct s3_page *page = NULL;

		if (wait_for_page(aws, what, &pages, err) < 0)
			return -1;
		page = TAKE(pages.page);
		last = page->last;
		if (!last)
			s3_list_next(listing); /* arrives while this page is handled */
		done = pass_rows(page, object_fn, prefix_fn, arg, err);
	}
	return done < 0 ? -1 : 0;
}
