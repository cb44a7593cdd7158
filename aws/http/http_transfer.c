/* A request as libcurl's options, libcurl's callbacks and codes as a reply: see http_transfer.h. */
#include "aws/http/http_transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aws/http/patience.h"

#define REPLY_MAX_DEFAULT  ((size_t)8 << 20)
#define HEADERS_MAX        ((size_t)128 << 10)
#define CONNECT_MS_DEFAULT 10000
#define SILENT_MS_DEFAULT  60000
#define RECEIVE_BUFFER     (256L << 10)
#define SEND_BUFFER        (256L << 10)
/* Up to this size libcurl sends a body from memory together with the headers. */
#define SMALL_BODY ((uint64_t)64 << 10)
/* Servers close connections that have been idle for longer, S3 after some 20 s. */
#define IDLE_SECONDS_MAX 15L

#define SET(easy, option, value) curl_library.easy_setopt((easy), CURLOPT_##option, (value))

struct http_transfer *http_transfer_new(const struct http_request *request, http_done_fn done,
					void *arg)
{
	struct http_transfer *transfer = mem_zero(1, sizeof *transfer);
	size_t reply_max = request->reply_max ? request->reply_max : REPLY_MAX_DEFAULT;

	transfer->request = *request;
	transfer->done = done;
	transfer->arg = arg;
	transfer->reply.body = SB_INIT_MAX(reply_max);
	transfer->reply.body.secret = request->secret;
	transfer->reply.headers = SB_INIT_MAX(HEADERS_MAX);
	return transfer;
}

void http_transfer_free(struct http_transfer *transfer)
{
	for (struct curl_slist *line = transfer->headers; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data)); /* session tokens */
	if (transfer->headers)
		curl_library.slist_free_all(transfer->headers);
	http_reply_release(&transfer->reply);
	free(transfer);
}

static void stop(struct http_transfer *transfer, enum http_failure failure, const char *why)
{
	transfer->stopped = failure;
	snprintf(transfer->reply.why, sizeof transfer->reply.why, "%s", why);
}

/* Runs right before the request goes out on a connection. libcurl calls it a second time by
 * itself if a kept connection ended without a byte of reply: the effect of the first attempt is
 * unknown then, and only reads may be repeated unasked. */
static int on_ready(void *arg, char *peer, char *local, int peer_port, int local_port)
{
	struct http_transfer *transfer = arg;
	const char *method = transfer->request.method;

	(void)peer;
	(void)local;
	(void)peer_port;
	(void)local_port;
	if (transfer->begun && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		stop(transfer, HTTP_BROKEN, "the connection was closed without a reply");
		return CURL_PREREQFUNC_ABORT;
	}
	transfer->begun = true;
	transfer->sent = 0;
	transfer->heard = clock_mono_now();
	return CURL_PREREQFUNC_OK;
}

static uint64_t traffic; /* bytes */

uint64_t http_traffic(void)
{
	return traffic;
}

static size_t on_send(char *bytes, size_t size, size_t count, void *arg)
{
	struct http_transfer *transfer = arg;
	const struct http_request *request = &transfer->request;
	uint64_t left = request->body_len - transfer->sent;
	size_t len = size * count;
	ssize_t got;

	if (len > left)
		len = (size_t)left;
	if (!len)
		return 0;
	if (request->body) {
		memcpy(bytes, (const char *)request->body + transfer->sent, len);
		got = (ssize_t)len;
	} else {
		got = pread(request->body_fd, bytes, len,
			    (off_t)(request->body_offset + transfer->sent));
	}
	if (got <= 0) {
		stop(transfer, HTTP_REFUSED,
		     got < 0 ? "the file that is sent cannot be read"
			     : "the file that is sent has become shorter");
		return CURL_READFUNC_ABORT;
	}
	transfer->sent += (uint64_t)got;
	traffic += (uint64_t)got;
	return (size_t)got;
}

static int on_rewind(void *arg, curl_off_t offset, int origin)
{
	struct http_transfer *transfer = arg;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->request.body_len)
		return CURL_SEEKFUNC_FAIL;
	transfer->sent = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
	struct http_transfer *transfer = arg;
	struct sb *headers = &transfer->reply.headers;
	size_t len = size * count, end = len;

	transfer->heard = clock_mono_now();
	while (end && (line[end - 1] == '\r' || line[end - 1] == '\n'))
		end--;
	if (!end)
		return len;
	if (end >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* a preliminary reply came before */
		sb_clear(headers);
		return len;
	}
	sb_add(headers, line, end);
	sb_addc(headers, '\n');
	if (headers->truncated) {
		stop(transfer, HTTP_TOO_LARGE, "headers are too long");
		return 0;
	}
	return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct http_transfer *transfer = arg;
	struct http_reply *reply = &transfer->reply;
	size_t len = size * count;

	if (!reply->status)
		curl_library.easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &reply->status);
	reply->received += len;
	traffic += len;
	if (transfer->request.sink && reply->status >= 200 && reply->status < 300) {
		if (transfer->request.sink(transfer->request.sink_arg, bytes, len))
			return len;
		stop(transfer, HTTP_REFUSED, "cannot process the received data");
		return 0;
	}
	sb_add(&reply->body, bytes, len);
	if (reply->body.truncated) {
		stop(transfer, HTTP_TOO_LARGE, "longer than allowed");
		return 0;
	}
	return len;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t silence_max(const struct http_transfer *transfer)
{
	int64_t max = transfer->request.silent_ms ? transfer->request.silent_ms : SILENT_MS_DEFAULT;

	return smaller(max, transfer->patience);
}

/* Returns when the silence began: for limited patience, connecting counts as well. */
static struct mono silent_since(const struct http_transfer *transfer)
{
	return patience_is_limited() && transfer->reply.headers.len == 0 ? transfer->started
									 : transfer->heard;
}

/* Called at least every second. libcurl's own limit is a speed limit, and would mistake the
 * blanks that S3 sends now and then while it completes an upload for silence. */
static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
		       curl_off_t up)
{
	struct http_transfer *transfer = arg;
	uint64_t moved = (uint64_t)down + (uint64_t)up;
	struct mono now;

	(void)down_all;
	(void)up_all;
	if (!transfer->begun)
		return 0; /* connecting has a limit of its own */
	now = clock_mono_now();
	if (moved != transfer->moved) {
		transfer->moved = moved;
		transfer->heard = now;
	}
	if (now.ms - silent_since(transfer).ms < silence_max(transfer))
		return 0;
	stop(transfer, HTTP_TIMEOUT, "");
	snprintf(transfer->reply.why, sizeof transfer->reply.why, "nothing came or went for %.3g s",
		 (double)silence_max(transfer) / 1000);
	return 1;
}

/* The socket is made as libcurl would, but close-on-exec. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)arg;
	(void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool header_is_sound(const struct sigv4_pair *header)
{
	return header->name[0] && !strpbrk(header->name, "\r\n:; \t") &&
	       !strpbrk(header->value, "\r\n");
}

static void add_header(struct http_transfer *transfer, const char *line)
{
	struct curl_slist *more = curl_library.slist_append(transfer->headers, line);

	if (!more)
		abort(); /* out of memory: see auto.h */
	transfer->headers = more;
}

/* Sets the caller's headers and suppresses those that libcurl would add. */
static bool set_headers(struct http_transfer *transfer)
{
	static const char *const made_up[] = { "Accept", "Content-Type", "Expect",
					       "Transfer-Encoding" };
	const struct http_request *request = &transfer->request;
	bool given[STK_LENGTH(made_up)] = { false };
	AUTO(sb_release) struct sb line = SB_INIT_SECRET;

	for (size_t i = 0; i < request->header_count; i++) {
		const struct sigv4_pair *header = &request->headers[i];

		if (!header_is_sound(header)) {
			stop(transfer, HTTP_REFUSED, "a header of the request is malformed");
			return false;
		}
		for (size_t j = 0; j < STK_LENGTH(made_up); j++)
			if (strcasecmp(header->name, made_up[j]) == 0)
				given[j] = true;
		sb_clear(&line);
		if (header->value[strspn(header->value, " \t")])
			sb_addf(&line, "%s: %s", header->name, header->value);
		else
			sb_addf(&line, "%s;", header->name); /* libcurl's form without a value */
		add_header(transfer, line.text);
	}
	for (size_t j = 0; j < STK_LENGTH(made_up); j++) {
		if (given[j])
			continue;
		sb_clear(&line);
		sb_addf(&line, "%s:", made_up[j]);
		add_header(transfer, line.text);
	}
	SET(transfer->easy, HTTPHEADER, transfer->headers);
	return true;
}

static void set_method(struct http_transfer *transfer)
{
	const struct http_request *request = &transfer->request;
	CURL *easy = transfer->easy;
	bool takes_body =
		strcmp(request->method, "POST") == 0 || strcmp(request->method, "PUT") == 0;

	if (request->body_len > SMALL_BODY || (request->body_len && !request->body)) {
		SET(easy, UPLOAD, 1L);
		SET(easy, READFUNCTION, on_send);
		SET(easy, READDATA, transfer);
		SET(easy, SEEKFUNCTION, on_rewind);
		SET(easy, SEEKDATA, transfer);
		SET(easy, INFILESIZE_LARGE, (curl_off_t)request->body_len);
		SET(easy, UPLOAD_BUFFERSIZE, SEND_BUFFER);
	} else if (request->body_len || takes_body) {
		SET(easy, POST, 1L);
		SET(easy, POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
		SET(easy, POSTFIELDS, request->body_len ? request->body : "");
	} else if (strcmp(request->method, "HEAD") == 0) {
		SET(easy, NOBODY, 1L);
	}
	SET(easy, CUSTOMREQUEST, request->method);
}

static void set_limits(struct http_transfer *transfer)
{
	const struct http_request *request = &transfer->request;
	CURL *easy = transfer->easy;
	int64_t connect = request->connect_ms ? request->connect_ms : CONNECT_MS_DEFAULT;

	SET(easy, CONNECTTIMEOUT_MS, (long)smaller(connect, transfer->patience));
	if (patience_is_limited()) /* else libcurl waits for a resolver that has no answer */
		SET(easy, QUICK_EXIT, 1L);
	/* A limit that is never reached, but makes libcurl check every second. */
	SET(easy, LOW_SPEED_LIMIT, 1L);
	SET(easy, LOW_SPEED_TIME, 1000000L);
	SET(easy, NOPROGRESS, 0L);
	SET(easy, XFERINFOFUNCTION, on_progress);
	SET(easy, XFERINFODATA, transfer);
	SET(easy, TIMEOUT_MS, (long)request->total_ms);
	SET(easy, MAXAGE_CONN, IDLE_SECONDS_MAX);
	SET(easy, BUFFERSIZE, RECEIVE_BUFFER);
}

static void set_connection(struct http_transfer *transfer, const struct certificates *certificates)
{
	CURL *easy = transfer->easy;

	SET(easy, PROTOCOLS_STR, "http,https");
	SET(easy, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(easy, SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(easy, PATH_AS_IS, 1L);
	SET(easy, FOLLOWLOCATION, 0L);
	SET(easy, NOSIGNAL, 1L);
	SET(easy, TCP_KEEPALIVE, 1L);
	SET(easy, SUPPRESS_CONNECT_HEADERS, 1L);
	if (certificates->path)
		curl_library.easy_setopt(easy,
					 certificates->is_folder ? CURLOPT_CAPATH : CURLOPT_CAINFO,
					 certificates->path);
	if (transfer->request.direct) {
		SET(easy, PROXY, "");
		SET(easy, NOPROXY, "*");
	}
	SET(easy, OPENSOCKETFUNCTION, on_socket);
	SET(easy, PREREQFUNCTION, on_ready);
	SET(easy, PREREQDATA, transfer);
}

bool http_transfer_prepare(struct http_transfer *transfer, CURL *easy,
			   const struct certificates *certificates)
{
	transfer->easy = easy;
	transfer->started = clock_mono_now();
	transfer->patience = patience_left();
	if (transfer->patience == 0) {
		stop(transfer, HTTP_UNREACHABLE, "those asked before it did not answer");
		return false;
	}
	SET(easy, PRIVATE, transfer);
	SET(easy, ERRORBUFFER, transfer->curl_message);
	SET(easy, USERAGENT, "stoker/" STOKER_VERSION);
	SET(easy, HEADERFUNCTION, on_header);
	SET(easy, HEADERDATA, transfer);
	SET(easy, WRITEFUNCTION, on_body);
	SET(easy, WRITEDATA, transfer);
	set_connection(transfer, certificates);
	set_limits(transfer);
	set_method(transfer);
	if (SET(easy, URL, transfer->request.url) != CURLE_OK) {
		stop(transfer, HTTP_REFUSED, "invalid URL");
		return false;
	}
	return set_headers(transfer);
}

/* Maps a libcurl code to the kind of failure on which the caller decides. */
static enum http_failure failure_of(CURLcode code, bool begun)
{
	switch (code) {
	case CURLE_OK:
		return HTTP_OK;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CERTPROBLEM:
		return HTTP_TLS;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return begun ? HTTP_BROKEN : HTTP_REFUSED; /* begun: HTTP/0.9 */
	case CURLE_OPERATION_TIMEDOUT:
		return begun ? HTTP_TIMEOUT : HTTP_UNREACHABLE;
	default:
		return begun ? HTTP_BROKEN : HTTP_UNREACHABLE;
	}
}

/* True if libcurl cannot take the proxy's address. Another try would find the same. */
static bool has_bad_proxy(const struct http_transfer *transfer)
{
	static const char words[] = "Unsupported proxy";

	return strncmp(transfer->curl_message, words, strlen(words)) == 0;
}

/* Returns libcurl's own message unless it may show a proxy's address: that can hold a password. */
static const char *words_of(const struct http_transfer *transfer, CURLcode code)
{
	if (has_bad_proxy(transfer))
		return "the address of the proxy is invalid";
	if (!transfer->curl_message[0] || strchr(transfer->curl_message, '@'))
		return curl_library.easy_strerror(code);
	return transfer->curl_message;
}

void http_transfer_end(struct http_transfer *transfer, CURLcode code)
{
	struct http_reply *reply = &transfer->reply;

	curl_library.easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &reply->status);
	reply->failure = transfer->stopped         ? transfer->stopped
			 : has_bad_proxy(transfer) ? HTTP_REFUSED
						   : failure_of(code, transfer->begun);
	if (reply->failure == HTTP_OK && reply->status < 200) {
		reply->failure = HTTP_BROKEN; /* nothing but preliminary replies */
		stop(transfer, HTTP_BROKEN, "no status");
	}
	if (reply->failure == HTTP_UNREACHABLE || reply->failure == HTTP_TIMEOUT)
		patience_spend(clock_mono_now().ms - silent_since(transfer).ms);
	if (reply->failure != HTTP_OK && !transfer->stopped)
		snprintf(reply->why, sizeof reply->why, "%.255s", words_of(transfer, code));
}
