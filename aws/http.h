/*
 * HTTP exchanges, many at once on one thread: the one home of libcurl here. It is loaded
 * when the first client is made, because linking it costs every start several ms.
 *
 * A client has its own queue: no more easy handles are made than connections are wanted,
 * and each is reused. A kept connection that ends without a byte of reply is only forgiven to GET
 * and HEAD, whose repetition does no harm. Exchanges make progress in http_turn(), which waits by
 * itself, or on an event loop (http_attach()). TLS is verified, redirects are not followed, nothing
 * is retried here: that is for aws.h to decide. A request carries exactly the headers
 * given, Host, Content-Length and, without one of the caller's, User-Agent.
 *
 * A client belongs to one thread.
 */
#ifndef STK_AWS_HTTP_H
#define STK_AWS_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "aws/sigv4.h"
#include "jobs/base/err.h"
#include "jobs/base/loop.h"
#include "jobs/base/sb.h"

struct http;
struct http_exchange; /* one under way; belongs to the client */

struct http_settings {
	const char *ca_bundle; /* a file or a folder; NULL: see http_certificates() */
	int connections;       /* at once; 0: 16 */
};

/* Against what servers are checked: `given`, else $SSL_CERT_FILE, else the system's file,
 * else the one that comes with the agent. NULL: none was found. Yours to free. */
char *http_certificates(const char *given);

int http_new(const struct http_settings *settings, struct http **ret, struct err **err);
void http_freep(struct http **http); /* what is under way is dropped without a word */

/* What goes out. All of it must live until the exchange is done. */
struct http_request {
	const char *method;
	const char *url; /* encoded; sent as it is: no dot segment is squashed */
	const struct sigv4_pair *headers;
	size_t header_count;
	const void *body; /* in memory, or NULL */
	uint64_t body_len;
	int body_fd; /* else `body_len` bytes of this file from `body_offset` on; -1: none */
	uint64_t body_offset;
	/* Where bytes of a 2xx reply go as they come; false: stop, the exchange has failed.
	 * NULL, and for any other status: they are gathered in the reply. */
	bool (*sink)(void *arg, const void *bytes, size_t len);
	void *sink_arg;
	size_t reply_max;   /* of gathered bytes; 0: 8 MiB. More is a failure */
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
	HTTP_TLS,    /* the peer could not prove who it is: never retried */
	HTTP_BROKEN, /* the connection ended, or what came is no HTTP: the effect is unknown */
	HTTP_TOO_LARGE,
	HTTP_REFUSED, /* by the caller's sink, or a URL that is none */
};

struct http_reply {
	enum http_failure failure;
	char why[256]; /* one clause, without the URL; empty if HTTP_OK */
	long status;
	struct sb body;
	uint64_t received; /* bytes of body, also those that went to the sink */
	/* Headers as they came, a line each ("name: value\n"); http_header() looks one up. */
	struct sb headers;
};

/* The value of a header (any case), trimmed, appended to `ret`: true if there is one. */
bool http_header(const struct http_reply *reply, const char *name, struct sb *ret);

typedef void (*http_done_fn)(void *arg, struct http_reply *reply); /* reply: until it returns */

/* Put in the queue; `done` is called from http_turn() or the loop, once. May be called
 * from within `done`. */
struct http_exchange *http_start(struct http *http, const struct http_request *request,
				 http_done_fn done, void *arg);
/* Forget it: `done` will not be called. */
void http_cancel(struct http *http, struct http_exchange *exchange);
/* How many are queued or under way. */
size_t http_pending(const struct http *http);

/* Bytes of bodies that this process has sent and got so far: who waits sees whether anything
 * moves at all. */
uint64_t http_traffic(void);

/* Go on with all of them, for `wait_ms` at most, sooner if something is done. */
void http_turn(struct http *http, int64_t wait_ms);

/* From now on go on by this loop's turns; NULL: no more. */
int http_attach(struct http *http, struct loop *loop, struct err **err);

/* The whole of one exchange, waiting. */
void http_perform(struct http *http, const struct http_request *request, struct http_reply *ret);
void http_reply_release(struct http_reply *reply); /* for AUTO() */

#endif
