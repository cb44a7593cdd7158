/* HTTP exchanges by libcurl's multi interface: see http.h. */
#include "aws/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/curl_library.h"
#include "aws/http_exchange.h"
#include "jobs/base/clock.h"
#include "jobs/base/fs.h"

#define CONNECTIONS_DEFAULT 16

struct list {
	struct http_exchange *first, *last;
	size_t count;
};

/* A descriptor that libcurl wants to be told about, and by which watch it is. */
struct wanted {
	int fd, what;
	struct watch *watch; /* NULL while no loop is attached */
	struct http *http;
	struct wanted *next;
};

struct http {
	CURLM *multi;
	struct certificates certificates;
	size_t connections;
	struct list waiting, running;
	CURL **idle; /* handles between exchanges; room for `connections` */
	size_t idle_count;
	struct loop *loop;
	struct watch *timer; /* when libcurl wants to be called; NULL: never */
	struct watch *kick;  /* something was put in the queue */
	struct wanted *wanted;
};

static void list_add(struct list *list, struct http_exchange *exchange)
{
	exchange->next = NULL;
	exchange->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = exchange;
	list->last = exchange;
	list->count++;
}

static void list_take(struct list *list, struct http_exchange *exchange)
{
	*(exchange->prev ? &exchange->prev->next : &list->first) = exchange->next;
	*(exchange->next ? &exchange->next->prev : &list->last) = exchange->prev;
	list->count--;
}

int http_new(const struct http_settings *settings, struct http **ret, struct err **err)
{
	AUTO(http_freep) struct http *http = NULL;

	if (curl_library_load(err) < 0)
		return -1;
	http = mem_zero(1, sizeof *http);
	http->connections = settings && settings->connections > 0 ? (size_t)settings->connections
								  : CONNECTIONS_DEFAULT;
	http->certificates.path = http_certificates(settings ? settings->ca_bundle : NULL);
	http->certificates.is_folder =
		http->certificates.path && fs_is_dir(http->certificates.path);
	http->idle = mem_zero(http->connections, sizeof(CURL *));
	http->multi = libcurl.multi_init();
	if (!http->multi)
		abort(); /* out of memory: see auto.h */
	libcurl.multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)http->connections + 2);
	libcurl.multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	*ret = TAKE(http);
	return 0;
}

static void unwatch(struct http *http)
{
	if (!http->loop)
		return;
	for (struct wanted *wanted = http->wanted; wanted; wanted = wanted->next) {
		loop_remove(http->loop, wanted->watch);
		wanted->watch = NULL;
	}
	loop_remove(http->loop, http->timer);
	loop_remove(http->loop, http->kick);
	http->timer = http->kick = NULL;
	http->loop = NULL;
}

void http_freep(struct http **http)
{
	struct http *h = *http;
	struct wanted *next;

	if (!h)
		return;
	while (h->waiting.first)
		http_cancel(h, h->waiting.first);
	while (h->running.first)
		http_cancel(h, h->running.first);
	while (h->idle_count)
		libcurl.easy_cleanup(h->idle[--h->idle_count]);
	unwatch(h);
	if (h->multi)
		libcurl.multi_cleanup(h->multi); /* may still speak of descriptors */
	for (struct wanted *wanted = h->wanted; wanted; wanted = next) {
		next = wanted->next;
		free(wanted);
	}
	free(h->idle);
	free(h->certificates.path);
	free(h);
	*http = NULL;
}

size_t http_pending(const struct http *http)
{
	return http->waiting.count + http->running.count;
}

/* ---- from the queue to the wire and back ---- */

static void kick(struct http *http);

static CURL *take_handle(struct http *http)
{
	CURL *easy = http->idle_count ? http->idle[--http->idle_count] : libcurl.easy_init();

	if (!easy)
		abort(); /* out of memory: see auto.h */
	return easy;
}

/* Its connection stays with the client. */
static void give_back_handle(struct http *http, struct http_exchange *exchange)
{
	CURL *easy = TAKE(exchange->easy);

	libcurl.multi_remove_handle(http->multi, easy);
	libcurl.easy_reset(easy);
	http->idle[http->idle_count++] = easy;
}

static void finish(struct http *http, struct http_exchange *exchange, CURLcode code)
{
	http_exchange_end(exchange, code);
	list_take(&http->running, exchange);
	give_back_handle(http, exchange);
	exchange->done(exchange->arg, &exchange->reply);
	http_exchange_free(exchange);
}

/* True if one was finished at once, because it cannot be sent. */
static bool start_waiting(struct http *http)
{
	bool finished = false;

	while (http->waiting.first && http->running.count < http->connections) {
		struct http_exchange *exchange = http->waiting.first;
		bool is_sound;

		list_take(&http->waiting, exchange);
		list_add(&http->running, exchange);
		is_sound = http_exchange_prepare(exchange, take_handle(http), &http->certificates);
		if (is_sound && libcurl.multi_add_handle(http->multi, exchange->easy) == CURLM_OK)
			continue;
		finish(http, exchange, CURLE_FAILED_INIT);
		finished = true;
	}
	return finished;
}

/* Tell the callers of those that have ended; true if there was one. */
static bool finish_ended(struct http *http)
{
	const CURLMsg *message;
	bool finished = false;
	int left;

	while ((message = libcurl.multi_info_read(http->multi, &left)) != NULL) {
		struct http_exchange *exchange = NULL;
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		libcurl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
		finish(http, exchange, code);
		finished = true;
	}
	return finished;
}

struct http_exchange *http_start(struct http *http, const struct http_request *request,
				 http_done_fn done, void *arg)
{
	struct http_exchange *exchange = http_exchange_new(request, done, arg);

	list_add(&http->waiting, exchange);
	kick(http);
	return exchange;
}

void http_cancel(struct http *http, struct http_exchange *exchange)
{
	if (exchange->easy) {
		list_take(&http->running, exchange);
		give_back_handle(http, exchange);
		kick(http); /* there is room for another */
	} else {
		list_take(&http->waiting, exchange);
	}
	http_exchange_free(exchange);
}

/* All that can be done without waiting; true if an exchange was finished. */
static bool go_on(struct http *http)
{
	bool finished = start_waiting(http);
	int running;

	/* With a loop attached libcurl must also say which descriptors it wants watched. */
	if (http->loop)
		libcurl.multi_socket_all(http->multi, &running);
	else
		libcurl.multi_perform(http->multi, &running);
	finished |= finish_ended(http);
	return finished;
}

void http_turn(struct http *http, int64_t wait_ms)
{
	int64_t end = mono_now().ms + (wait_ms > 0 ? wait_ms : 0), left;

	while (!go_on(http) && http_pending(http)) {
		left = end - mono_now().ms;
		if (left <= 0)
			return;
		libcurl.multi_poll(http->multi, NULL, 0, left < 60000 ? (int)left : 60000, NULL);
	}
	start_waiting(http); /* so that the network works while the caller does */
}

/* ---- by an event loop ---- */

static void on_kick(void *arg)
{
	struct http *http = arg;

	http->kick = NULL;
	go_on(http);
}

static void kick(struct http *http)
{
	if (http->loop && !http->kick)
		http->kick = loop_after(http->loop, 0, on_kick, http);
}

static void act(struct http *http, int fd)
{
	int running;

	libcurl.multi_socket_action(http->multi, fd, 0, &running);
	finish_ended(http);
	start_waiting(http);
}

static void on_ready(void *arg)
{
	const struct wanted *wanted = arg; /* may be gone afterwards */

	act(wanted->http, wanted->fd);
}

static void on_timer(void *arg)
{
	struct http *http = arg;

	http->timer = NULL;
	act(http, CURL_SOCKET_TIMEOUT);
}

static void watch(struct wanted *wanted)
{
	int how = (wanted->what & CURL_POLL_IN ? LOOP_READ : 0) |
		  (wanted->what & CURL_POLL_OUT ? LOOP_WRITE : 0);

	loop_remove(wanted->http->loop, wanted->watch);
	wanted->watch = loop_on_ready(wanted->http->loop, wanted->fd, how, on_ready, wanted);
}

/* libcurl: watch this descriptor, in another way, or no more. */
static int on_wanted(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
	struct http *http = arg;
	struct wanted **at = &http->wanted, *wanted;

	(void)easy;
	(void)unused;
	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	wanted = *at;
	if (what == CURL_POLL_REMOVE) {
		if (wanted) {
			*at = wanted->next;
			if (http->loop)
				loop_remove(http->loop, wanted->watch);
			free(wanted);
		}
		return 0;
	}
	if (!wanted) {
		wanted = mem_zero(1, sizeof *wanted);
		wanted->fd = fd;
		wanted->http = http;
		*at = wanted;
	}
	wanted->what = what;
	if (http->loop)
		watch(wanted);
	return 0;
}

/* libcurl: call me then; -1: there is no need. */
static int on_timeout(CURLM *multi, long timeout_ms, void *arg)
{
	struct http *http = arg;

	(void)multi;
	if (!http->loop)
		return 0;
	loop_remove(http->loop, http->timer);
	http->timer = timeout_ms < 0 ? NULL : loop_after(http->loop, timeout_ms, on_timer, http);
	return 0;
}

int http_attach(struct http *http, struct loop *loop, struct err **err)
{
	(void)err;
	unwatch(http);
	if (!loop)
		return 0;
	/* Once set they stay, so that what libcurl wants is known at any time. */
	libcurl.multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_wanted);
	libcurl.multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	libcurl.multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	libcurl.multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	http->loop = loop;
	for (struct wanted *wanted = http->wanted; wanted; wanted = wanted->next)
		watch(wanted);
	kick(http);
	return 0;
}

/* ---- the rest ---- */

struct waited {
	struct http_reply *ret;
	bool done;
};

static void on_waited(void *arg, struct http_reply *reply)
{
	struct waited *waited = arg;

	*waited->ret = *reply;
	reply->body = reply->headers = SB_INIT;
	waited->done = true;
}

void http_perform(struct http *http, const struct http_request *request, struct http_reply *ret)
{
	struct waited waited = { ret, false };

	http_start(http, request, on_waited, &waited);
	while (!waited.done)
		http_turn(http, 1000);
}

void http_reply_release(struct http_reply *reply)
{
	sb_release(&reply->body);
	sb_release(&reply->headers);
}

bool http_header(const struct http_reply *reply, const char *name, struct sb *ret)
{
	const char *at = reply->headers.text, *end;
	size_t name_len = strlen(name), len;

	for (; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		if (strncasecmp(at, name, name_len) != 0 || at[name_len] != ':')
			continue;
		at += name_len + 1;
		at += strspn(at, " \t");
		len = at < end ? (size_t)(end - at) : 0;
		while (len && (at[len - 1] == ' ' || at[len - 1] == '\t'))
			len--;
		sb_add(ret, at, len);
		return true;
	}
	return false;
}

char *http_certificates(const char *given)
{
	/* Debian, Red Hat and Amazon Linux, SUSE, Alpine. */
	static const char *const systems[] = { "/etc/ssl/certs/ca-certificates.crt",
					       "/etc/pki/tls/certs/ca-bundle.crt",
					       "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	const char *set = getenv("SSL_CERT_FILE");
	AUTO(auto_free) char *folder = curl_library_folder();
	AUTO(auto_free) char *own = NULL;

	if (given)
		return mem_copy(given);
	if (set && *set)
		return mem_copy(set);
	for (size_t i = 0; i < STK_LENGTH(systems); i++)
		if (fs_exists(systems[i]))
			return mem_copy(systems[i]);
	own = folder ? fs_join(folder, "ca-certificates.crt") : NULL;
	return own && fs_exists(own) ? TAKE(own) : NULL;
}
