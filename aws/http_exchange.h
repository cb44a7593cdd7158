/*
 * One HTTP exchange on its way through libcurl: how a request becomes options of an easy
 * handle, and what libcurl's callbacks and codes become in a reply. For http.c alone.
 */
#ifndef STK_AWS_HTTP_EXCHANGE_H
#define STK_AWS_HTTP_EXCHANGE_H

#include "aws/curl_library.h"
#include "aws/http.h"
#include "jobs/base/clock.h"

struct http_exchange {
	struct http_request request;
	struct http_reply reply;
	http_done_fn done;
	void *arg;
	CURL *easy; /* NULL while it waits in the queue */
	struct curl_slist *headers;
	char said[CURL_ERROR_SIZE]; /* by libcurl */
	uint64_t sent;              /* of the body, handed to libcurl */
	uint64_t moved;             /* bytes of bodies in either direction, when last looked at */
	struct mono heard;          /* when that was, or a header came */
	bool begun;                 /* the request may have gone out */
	enum http_failure stopped;  /* by a callback of ours, with `why`; HTTP_OK: it was not */
	struct http_exchange *prev, *next;
};

/* Against what peers are checked. */
struct certificates {
	char *path; /* NULL: libcurl's own */
	bool is_folder;
};

struct http_exchange *http_exchange_new(const struct http_request *request, http_done_fn done,
					void *arg);
void http_exchange_free(struct http_exchange *exchange); /* without the easy handle */

/* Put all of it into a fresh or reset handle. False: the request is none that can be
 * sent, and the reply says why. */
bool http_exchange_prepare(struct http_exchange *exchange, CURL *easy,
			   const struct certificates *certificates);

/* It has ended with this code: fill in the reply. */
void http_exchange_end(struct http_exchange *exchange, CURLcode code);

#endif
