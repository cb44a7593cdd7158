/*
 * An HTTP transfer in libcurl: a request becomes options of an easy handle, and libcurl's
 * callbacks and codes become a reply. Used by http.c alone.
 */
#ifndef STK_AWS_HTTP_HTTP_TRANSFER_H
#define STK_AWS_HTTP_HTTP_TRANSFER_H

#include "aws/http/curl_library.h"
#include "aws/http/http.h"
#include "jobs/base/clock.h"

struct http_transfer {
	struct http_request request;
	struct http_reply reply;
	http_done_fn done;
	void *arg;
	CURL *easy; /* NULL while it waits in the queue */
	struct curl_slist *headers;
	char curl_message[CURL_ERROR_SIZE]; /* by libcurl */
	uint64_t sent;                      /* bytes of the body handed to libcurl */
	uint64_t moved;            /* bytes of bodies in either direction, when last looked at */
	struct mono started;       /* when it was taken from the queue */
	struct mono heard;         /* when `moved` last changed, or a header came */
	int64_t patience;          /* ms without a reply (patience.h) */
	bool begun;                /* the request may have gone out */
	enum http_failure stopped; /* by one of our callbacks, with `why`; HTTP_OK: not stopped */
	struct http_transfer *prev, *next;
};

/* Certificates that peers are verified against. */
struct certificates {
	char *path; /* NULL: libcurl's own */
	bool is_folder;
};

struct http_transfer *http_transfer_new(const struct http_request *request, http_done_fn done,
					void *arg);
void http_transfer_free(struct http_transfer *transfer); /* without the easy handle */

/* Sets all options of a fresh or reset handle. Returns false if the request cannot be sent; the
 * reply then has the reason. */
bool http_transfer_prepare(struct http_transfer *transfer, CURL *easy,
			   const struct certificates *certificates);

/* Fills in the reply of a transfer that ended with this code. */
void http_transfer_end(struct http_transfer *transfer, CURLcode code);

#endif
