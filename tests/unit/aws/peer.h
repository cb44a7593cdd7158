/*
 * A server on loopback that does what a test tells it, request by request in the order in
 * which they come: answers, is slow, stops in the middle, resets. It remembers all that it
 * was sent.
 */
#ifndef STK_TESTS_UNIT_AWS_PEER_H
#define STK_TESTS_UNIT_AWS_PEER_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jobs/base/sb.h"

/* An answer. The last one of a script is given again and again. */
struct peer_reply {
	int status;          /* 0: 200 */
	const char *headers; /* whole lines, each with its end; NULL: none */
	const char *body;    /* NULL: none */
	const char *raw;     /* instead of all that: these bytes */
	size_t filler;       /* a body of so many 'x' */
	size_t cut;          /* send only so many bytes of all of it, then close */
	int gap_ms;          /* between two bytes, from `at_once` on */
	size_t at_once;
	bool close;        /* afterwards */
	bool reset;        /* afterwards, rudely */
	bool reset_before; /* before the body was read, and without an answer */
	bool hang;         /* say nothing until the end of the test */
};

#define PEER_REQUESTS_MAX 200
#define PEER_THREADS_MAX  400
#define PEER_SILENT_MS                                                                             \
	60000 /* that are waited for it where nothing else is said: aws/http/http.h */

struct peer {
	int fd, port, stop[2];
	pthread_t thread, served[PEER_THREADS_MAX];
	size_t served_count;
	pthread_mutex_t lock;
	const struct peer_reply *script;
	size_t script_count, next, connections;
	struct sb requests[PEER_REQUESTS_MAX]; /* head and body as they came */
	size_t request_count;
	char url[64];
};

struct peer_connection {
	struct peer *peer;
	int fd;
};

/* False: the other side has gone, or the test ends. */
static inline bool peer_read(struct peer *peer, int fd, struct sb *into)
{
	struct pollfd polled[] = { { fd, POLLIN, 0 }, { peer->stop[0], POLLIN, 0 } };
	char bytes[16384];
	ssize_t got;

	if (poll(polled, 2, 30000) <= 0 || polled[1].revents)
		return false;
	got = read(fd, bytes, sizeof bytes);
	if (got <= 0)
		return false;
	sb_add(into, bytes, (size_t)got);
	return true;
}

static inline void peer_wait(struct peer *peer, int ms)
{
	struct pollfd polled = { peer->stop[0], POLLIN, 0 };

	poll(&polled, 1, ms);
}

static inline size_t peer_body_length(const char *head)
{
	const char *line = strcasestr(head, "\r\ncontent-length:");

	return line ? strtoul(line + 17, NULL, 10) : 0;
}

/* False: no further request can come on this connection. */
static inline bool peer_send(struct peer *peer, int fd, const struct peer_reply *reply,
			     bool is_head)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	size_t len, step;

	if (reply->raw) {
		sb_adds(&text, reply->raw);
	} else {
		size_t body_len =
			reply->filler ? reply->filler : strlen(reply->body ? reply->body : "");

		sb_addf(&text, "HTTP/1.1 %d Whatever\r\n%sContent-Length: %zu\r\n\r\n",
			reply->status ? reply->status : 200, reply->headers ? reply->headers : "",
			body_len);
		if (!is_head) {
			sb_adds(&text, reply->body ? reply->body : "");
			for (size_t i = 0; i < reply->filler; i++)
				sb_addc(&text, 'x');
		}
	}
	len = reply->cut && reply->cut < text.len ? reply->cut : text.len;
	for (size_t at = 0; at < len; at += step) {
		size_t piece;

		step = !reply->gap_ms ? len : at < reply->at_once ? reply->at_once : 1;
		piece = step < len - at ? step : len - at;
		if (send(fd, text.text + at, piece, MSG_NOSIGNAL) < 0)
			return false;
		if (reply->gap_ms)
			peer_wait(peer, reply->gap_ms);
	}
	return len == text.len && !reply->close && !reply->reset && !reply->raw;
}

/* Serves one request. */
static inline bool peer_serve(struct peer *peer, int fd, struct sb *seen)
{
	struct linger rudely = { 1, 0 };
	const struct peer_reply *reply;
	const char *end;
	size_t body;
	bool goes_on;

	while (!(end = strstr(seen->text, "\r\n\r\n")))
		if (!peer_read(peer, fd, seen))
			return false;
	pthread_mutex_lock(&peer->lock);
	reply = &peer->script[peer->next];
	if (peer->next + 1 < peer->script_count)
		peer->next++;
	pthread_mutex_unlock(&peer->lock);
	body = (size_t)(end + 4 - seen->text) + peer_body_length(seen->text);
	while (!reply->reset_before && seen->len < body)
		if (!peer_read(peer, fd, seen))
			return false;
	pthread_mutex_lock(&peer->lock);
	if (peer->request_count < PEER_REQUESTS_MAX)
		sb_add(&peer->requests[peer->request_count++], seen->text,
		       body < seen->len ? body : seen->len);
	pthread_mutex_unlock(&peer->lock);
	if (reply->hang)
		peer_wait(peer, 60000);
	goes_on = !reply->reset_before && !reply->hang &&
		  peer_send(peer, fd, reply, strncmp(seen->text, "HEAD", 4) == 0);
	if (reply->reset || reply->reset_before)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &rudely, sizeof rudely);
	if (goes_on)
		sb_drop(seen, body);
	return goes_on;
}

static inline void *peer_connection(void *arg)
{
	struct peer_connection *connection = arg;
	AUTO(sb_release) struct sb seen = SB_INIT;

	while (peer_serve(connection->peer, connection->fd, &seen))
		;
	close(connection->fd);
	free(connection);
	return NULL;
}

static inline void *peer_accept(void *arg)
{
	struct peer *peer = arg;
	struct pollfd polled[] = { { peer->fd, POLLIN, 0 }, { peer->stop[0], POLLIN, 0 } };

	while (poll(polled, 2, -1) > 0 && !polled[1].revents) {
		int fd = accept4(peer->fd, NULL, NULL, SOCK_CLOEXEC);
		struct peer_connection *connection;

		if (fd < 0 || peer->served_count == PEER_THREADS_MAX)
			continue;
		connection = mem_alloc(sizeof *connection);
		*connection = (struct peer_connection){ peer, fd };
		peer->connections++;
		pthread_create(&peer->served[peer->served_count++], NULL, peer_connection,
			       connection);
	}
	return NULL;
}

static inline struct peer *peer_new(const struct peer_reply *script, size_t count)
{
	struct peer *peer = mem_zero(1, sizeof *peer);
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof address;

	peer->script = script;
	peer->script_count = count;
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++)
		peer->requests[i] = SB_INIT;
	pthread_mutex_init(&peer->lock, NULL);
	peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pipe2(peer->stop, O_CLOEXEC) < 0 ||
	    bind(peer->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(peer->fd, 128) < 0 ||
	    getsockname(peer->fd, (struct sockaddr *)&address, &len) < 0)
		abort();
	peer->port = ntohs(address.sin_port);
	snprintf(peer->url, sizeof peer->url, "http://127.0.0.1:%d", peer->port);
	pthread_create(&peer->thread, NULL, peer_accept, peer);
	return peer;
}

static inline void peer_freep(struct peer **peer)
{
	struct peer *p = *peer;

	if (!p)
		return;
	if (write(p->stop[1], "", 1) < 0)
		abort();
	pthread_join(p->thread, NULL);
	for (size_t i = 0; i < p->served_count; i++)
		pthread_join(p->served[i], NULL);
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++)
		sb_release(&p->requests[i]);
	close(p->fd);
	close(p->stop[0]);
	close(p->stop[1]);
	free(p);
	*peer = NULL;
}

#define PEER(...)                                                                                  \
	peer_new((const struct peer_reply[]){ __VA_ARGS__ },                                       \
		 sizeof((const struct peer_reply[]){ __VA_ARGS__ }) / sizeof(struct peer_reply))

#endif
