/*
 * Asking a peer over HTTP in a test: one request that is waited for, or any number of which
 * the ends are counted.
 */
#ifndef STK_TESTS_UNIT_AWS_ASKING_H
#define STK_TESTS_UNIT_AWS_ASKING_H

#include "aws/http/http.h"
#include "jobs/base/clock.h"
#include "tests/unit/aws/peer.h"
#include "tests/unit/aws/world.h"

static inline struct http *client(int connections)
{
	const struct http_settings settings = { .connections = connections };
	AUTO(err_freep) struct err *err = NULL;
	struct http *http = NULL;

	http_new(&settings, &http, &err);
	assert_no_error(err);
	return http;
}

/* Sends one request to the peer and gives what comes of it. */
static inline void ask(const struct peer *peer, struct http_request request, struct http_reply *ret)
{
	AUTO(http_freep) struct http *http = client(0);
	AUTO(auto_free) char *url = mem_format("%s%s", peer->url, request.url ? request.url : "/");

	request.url = url;
	if (!request.method)
		request.method = "GET";
	if (!request.body)
		request.body_fd = request.body_fd ? request.body_fd : -1;
	http_perform(http, &request, NULL, ret);
}

#define ASK(peer, ret, ...) ask((peer), (struct http_request){ __VA_ARGS__ }, (ret))
#define REPLY               AUTO(http_reply_release) struct http_reply

static inline void assert_failure(const struct http_reply *reply, enum http_failure want)
{
	if (reply->failure != want)
		fail_msg("failure %d instead of %d: '%s', status %ld", (int)reply->failure,
			 (int)want, reply->why, reply->status);
	assert_true((reply->failure == HTTP_OK) == (reply->why[0] == '\0'));
}

struct counted {
	struct http *http;
	struct http_request request;
	int more, done, failed;
};

static inline void on_counted(void *arg, struct http_reply *reply)
{
	struct counted *counted = arg;

	counted->done++;
	if (reply->failure != HTTP_OK || reply->status != 200)
		counted->failed++;
	if (counted->more) { /* from within a callback */
		counted->more--;
		http_start(counted->http, &counted->request, on_counted, counted);
	}
}

#endif
