/* HTTP transfers by libcurl's multi interface: see http.h. */
#include "aws/http/http.h"

#include <stdlib.h>

#include "aws/http/curl_library.h"
#include "aws/http/http_transfer.h"
#include "aws/http/patience.h"
#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"

#define CONNECTIONS_DEFAULT 16
#define CANCEL_POLL_MS      200
/* Between two looks at the clock of a process of limited patience. */
#define PATIENCE_POLL_MS 100

struct http_list {
	struct http_transfer *first, *last;
	size_t count;
};

struct http {
	CURLM *multi;
	struct certificates certificates;
	size_t connections;
	struct http_list waiting, running;
	CURL **idle; /* handles between transfers; room for `connections` */
	size_t idle_count;
};

static void list_add(struct http_list *list, struct http_transfer *transfer)
{
	transfer->next = NULL;
	transfer->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = transfer;
	list->last = transfer;
	list->count++;
}

static void list_take(struct http_list *list, struct http_transfer *transfer)
{
	*(transfer->prev ? &transfer->prev->next : &list->first) = transfer->next;
	*(transfer->next ? &transfer->next->prev : &list->last) = transfer->prev;
	list->count--;
}

char *http_certificates(const char *own)
{
	/* Debian, Red Hat and Amazon Linux, SUSE, Alpine. */
	static const char *const systems[] = { "/etc/ssl/certs/ca-certificates.crt",
					       "/etc/pki/tls/certs/ca-bundle.crt",
					       "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	const char *set = getenv("SSL_CERT_FILE");

	if (set && *set)
		return mem_copy(set);
	for (size_t i = 0; i < STK_LENGTH(systems); i++)
		if (fs_exists(systems[i]))
			return mem_copy(systems[i]);
	return own && fs_exists(own) ? mem_copy(own) : NULL;
}

/* See http_settings. The caller frees it. */
static char *certificates_path(const char *given)
{
	AUTO(auto_free) char *folder = curl_library_folder();
	AUTO(auto_free) char *own = folder ? fs_join(folder, "ca-certificates.crt") : NULL;

	return given ? mem_copy(given) : http_certificates(own);
}

int http_new(const struct http_settings *settings, struct http **ret, struct err **err)
{
	AUTO(http_freep) struct http *http = NULL;

	if (patience_check(err) < 0 || curl_library_load(err) < 0)
		return -1;
	http = mem_zero(1, sizeof *http);
	http->connections = settings && settings->connections > 0 ? (size_t)settings->connections
								  : CONNECTIONS_DEFAULT;
	http->certificates.path = certificates_path(settings ? settings->ca_bundle : NULL);
	http->certificates.is_folder =
		http->certificates.path && fs_is_dir(http->certificates.path);
	http->idle = mem_zero(http->connections, sizeof(CURL *));
	http->multi = curl_library.multi_init();
	if (!http->multi)
		abort(); /* out of memory: see auto.h */
	curl_library.multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)http->connections + 2);
	curl_library.multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	*ret = TAKE(http);
	return 0;
}

void http_freep(struct http **http)
{
	struct http *h = *http;

	if (!h)
		return;
	while (h->waiting.first)
		http_cancel(h, h->waiting.first);
	while (h->running.first)
		http_cancel(h, h->running.first);
	while (h->idle_count)
		curl_library.easy_cleanup(h->idle[--h->idle_count]);
	if (h->multi)
		curl_library.multi_cleanup(h->multi);
	free(h->idle);
	free(h->certificates.path);
	free(h);
	*http = NULL;
}

size_t http_pending(const struct http *http)
{
	return http->waiting.count + http->running.count;
}

/* ---- queue and transfers ---- */

static CURL *take_handle(struct http *http)
{
	CURL *easy = http->idle_count ? http->idle[--http->idle_count] : curl_library.easy_init();

	if (!easy)
		abort(); /* out of memory: see auto.h */
	return easy;
}

/* Returns the handle to the idle ones; its connection stays with the client. */
static void give_back_handle(struct http *http, struct http_transfer *transfer)
{
	CURL *easy = TAKE(transfer->easy);

	curl_library.multi_remove_handle(http->multi, easy);
	curl_library.easy_reset(easy);
	http->idle[http->idle_count++] = easy;
}

static void finish(struct http *http, struct http_transfer *transfer, CURLcode code)
{
	http_transfer_end(transfer, code);
	list_take(&http->running, transfer);
	give_back_handle(http, transfer);
	transfer->done(transfer->arg, &transfer->reply);
	http_transfer_free(transfer);
}

/* Returns true if a transfer ended at once, because it cannot be sent. */
static bool start_waiting(struct http *http)
{
	bool finished = false;

	while (http->waiting.first && http->running.count < http->connections) {
		struct http_transfer *transfer = http->waiting.first;
		bool is_sound;

		list_take(&http->waiting, transfer);
		list_add(&http->running, transfer);
		is_sound = http_transfer_prepare(transfer, take_handle(http), &http->certificates);
		if (is_sound &&
		    curl_library.multi_add_handle(http->multi, transfer->easy) == CURLM_OK)
			continue;
		finish(http, transfer, CURLE_FAILED_INIT);
		finished = true;
	}
	return finished;
}

/* Calls back for the transfers that have ended; returns true if there was one. */
static bool finish_ended(struct http *http)
{
	const CURLMsg *message;
	bool finished = false;
	int left;

	while ((message = curl_library.multi_info_read(http->multi, &left)) != NULL) {
		struct http_transfer *transfer = NULL;
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_library.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
		finish(http, transfer, code);
		finished = true;
	}
	return finished;
}

struct http_transfer *http_start(struct http *http, const struct http_request *request,
				 http_done_fn done, void *arg)
{
	struct http_transfer *transfer = http_transfer_new(request, done, arg);

	list_add(&http->waiting, transfer);
	return transfer;
}

void http_cancel(struct http *http, struct http_transfer *transfer)
{
	if (transfer->easy) {
		list_take(&http->running, transfer);
		give_back_handle(http, transfer);
	} else {
		list_take(&http->waiting, transfer);
	}
	http_transfer_free(transfer);
}

/* Does all that can be done without waiting; returns true if a transfer ended. */
static bool go_on(struct http *http)
{
	bool finished = start_waiting(http);
	int running;

	curl_library.multi_perform(http->multi, &running);
	finished |= finish_ended(http);
	return finished;
}

void http_turn(struct http *http, int64_t wait_ms)
{
	int64_t end = clock_mono_now().ms + (wait_ms > 0 ? wait_ms : 0), left;
	int64_t wait_max = patience_is_limited() ? PATIENCE_POLL_MS : 60000;

	while (!go_on(http) && http_pending(http)) {
		left = end - clock_mono_now().ms;
		if (left <= 0)
			return;
		if (left > wait_max)
			left = wait_max;
		curl_library.multi_poll(http->multi, NULL, 0, (int)left, NULL);
	}
	start_waiting(http); /* so that data flows while the caller works */
}

/* ---- a transfer that its caller waits for ---- */

struct http_waited {
	struct http_reply *ret;
	bool done;
};

static void on_waited(void *arg, struct http_reply *reply)
{
	struct http_waited *waited = arg;

	*waited->ret = *reply;
	reply->body = reply->headers = SB_INIT;
	waited->done = true;
}

void http_perform(struct http *http, const struct http_request *request, bool (*is_cancelled)(void),
		  struct http_reply *ret)
{
	struct http_waited waited = { ret, false };
	struct http_transfer *transfer = http_start(http, request, on_waited, &waited);

	while (!waited.done && !(is_cancelled && is_cancelled()))
		http_turn(http, is_cancelled ? CANCEL_POLL_MS : 1000);
	if (waited.done)
		return;
	http_cancel(http, transfer);
	*ret = (struct http_reply){
		.failure = HTTP_TIMEOUT, .why = "called away", .body = SB_INIT, .headers = SB_INIT
	};
}
