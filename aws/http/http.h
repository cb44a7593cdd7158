/*
 * HTTP transfers, many at once on one thread: the only user of libcurl, which is loaded when the
 * first client is made, because linking it costs every start several ms.
 *
 * A client has its own queue: at most as many easy handles are made as connections are wanted,
 * and each is reused. If a kept connection ends without a byte of reply, only GET and HEAD are
 * repeated, because repeating them does no harm. Transfers make progress in http_turn(), which
 * waits for them. TLS is verified; redirects are not followed; nothing is retried here: aws.h
 * decides that. A request carries exactly the headers given, Host, Content-Length and, unless the
 * caller gives one, User-Agent.
 *
 * A client belongs to one thread.
 *
 * aws/http: one transfer over HTTPS. Transfers by libcurl, the class of a reply (done, retry,
 * refused), backoff and rate limits. Nothing here interprets the bodies of a service.
 */
#ifndef STK_AWS_HTTP_HTTP_H
#define STK_AWS_HTTP_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "aws/auth/sigv4.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"

struct http;
struct http_transfer; /* a transfer under way; belongs to the client */

struct http_settings {
	/* File or folder of certificates to verify servers against; NULL: http_certificates(), with
	 * those that come with the agent. */
	const char *ca_bundle;
	int connections; /* at once; 0: 16 */
};

/* Certificates to verify servers against: $SSL_CERT_FILE, else the system's file, else `own` if
 * that is there, else NULL. The caller frees the path. */
char *http_certificates(const char *own);

int http_new(const struct http_settings *settings, struct http **ret, struct err **err);
void http_freep(struct http **http); /* drops transfers under way without calling back */

/* A request. All pointers must stay valid until the transfer is done. */
struct http_request {
	const char *method;
	const char *url; /* encoded; sent unchanged: dot segments stay */
	const struct sigv4_pair *headers;
	size_t header_count;
	const void *body; /* in memory, or NULL */
	uint64_t body_len;
	int body_fd; /* else `body_len` bytes of this file from `body_offset` on; -1: none */
	uint64_t body_offset;
	/* Receives the bytes of a 2xx reply as they arrive; false stops the transfer, which then
	 * fails. If NULL, and for any other status, they are gathered in the reply. */
	bool (*sink)(void *arg, const void *bytes, size_t len);
	void *sink_arg;
	size_t reply_max;   /* limit of gathered bytes; 0: 8 MiB. More is a failure */
	int64_t connect_ms; /* 0: 10 s */
	int64_t silent_ms;  /* without a byte in either direction; 0: 60 s */
	int64_t total_ms;   /* 0: none */
	bool secret;        /* the reply's body is wiped when it is freed */
	bool direct;        /* never through a proxy (instance metadata) */
};

enum http_failure {
	HTTP_OK,          /* there is a status */
	HTTP_UNREACHABLE, /* no connection: name, route, refusal; nothing was sent */
	HTTP_TIMEOUT,
	HTTP_TLS,    /* the peer's identity was not proved: never retried */
	HTTP_BROKEN, /* the connection ended, or the reply is not HTTP: the effect is unknown */
	HTTP_TOO_LARGE,
	HTTP_REFUSED, /* by the caller's sink, or because the URL is not valid */
};

struct http_reply {
	enum http_failure failure;
	char why[256]; /* reason, one clause without the URL; empty if HTTP_OK */
	long status;
	struct sb body;
	uint64_t received; /* bytes of body, including those that went to the sink */
	/* Headers as received, a line each ("name: value\n"); http_header() looks one up. */
	struct sb headers;
};

/* Appends the trimmed value of a header (any case) to `ret`; returns true if present. */
bool http_header(const struct http_reply *reply, const char *name, struct sb *ret);

typedef void (*http_done_fn)(void *arg, struct http_reply *reply); /* valid until it returns */

/* Queues the request; `done` is called once, from http_turn(). May be called from within `done`. */
struct http_transfer *http_start(struct http *http, const struct http_request *request,
				 http_done_fn done, void *arg);
/* Drops the transfer: `done` will not be called. */
void http_cancel(struct http *http, struct http_transfer *transfer);
/* Returns the number of transfers queued or under way. */
size_t http_pending(const struct http *http);

/* Returns the bytes of bodies that this process has sent and received so far, so that a waiting
 * caller can see whether anything moves at all. */
uint64_t http_traffic(void);

/* Makes progress on all transfers; waits `wait_ms` at most, less if something is done. */
void http_turn(struct http *http, int64_t wait_ms);

/* Performs one transfer and waits for its end, or until `is_cancelled` (NULL: never) returns true:
 * HTTP_TIMEOUT. */
void http_perform(struct http *http, const struct http_request *request, bool (*is_cancelled)(void),
		  struct http_reply *ret);
void http_reply_release(struct http_reply *reply); /* for AUTO() */

#endif
