/* HTTP transfers against a server that behaves well, badly, or not at all. */
#include "aws/http/http.h"

#include <fcntl.h>

#include "tests/unit/aws/asking.h"

static void a_request_goes_out_as_it_was_given_and_with_nothing_else(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = "hello", .headers = "X-Some:  a b \r\n" });
	const struct sigv4_pair headers[] = { { "x-one", "1" }, { "x-none", "" } };
	AUTO(sb_release) struct sb value = SB_INIT;
	AUTO(auto_free) char *want = NULL;
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .url = "/a//../%2e/b%20c?x=%2F&y", .headers = headers, .header_count = 2);
	assert_failure(&reply, HTTP_OK);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body.text, "hello");
	assert_int_equal(reply.received, 5);
	assert_true(http_header(&reply, "x-some", &value));
	assert_string_equal(value.text, "a b");
	assert_false(http_header(&reply, "x-som", &value));
	want = mem_format("GET /a//../%%2e/b%%20c?x=%%2F&y HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
			  "User-Agent: stoker/" STOKER_VERSION "\r\nx-one: 1\r\nx-none:\r\n\r\n",
			  peer->port);
	assert_string_equal(peer->requests[0].text, want);
}

static void a_body_goes_out_with_its_length_and_no_expectation(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .status = 204 });
	const struct sigv4_pair headers[] = { { "content-type", "text/x" },
					      { "user-agent", "me" } };
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .method = "PUT", .headers = headers, .header_count = 2, .body = "bytes",
	    .body_len = 5);
	assert_failure(&reply, HTTP_OK);
	assert_int_equal(reply.status, 204);
	assert_contains(peer->requests[0].text, "PUT / HTTP/1.1\r\n");
	assert_contains(peer->requests[0].text, "\r\nContent-Length: 5\r\n");
	assert_contains(peer->requests[0].text, "\r\nuser-agent: me\r\n");
	assert_contains(peer->requests[0].text, "\r\ncontent-type: text/x\r\n");
	assert_contains(peer->requests[0].text, "\r\n\r\nbytes");
	assert_null(strstr(peer->requests[0].text, "Expect"));
	assert_null(strstr(peer->requests[0].text, "urlencoded"));
}

static void a_request_without_a_body_says_so_where_one_could_be(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ 0 });

	(void)state;
	for (int i = 0; i < 3; i++) {
		static const char *const methods[] = { "POST", "PUT", "DELETE" };
		REPLY reply = { 0 };

		ASK(peer, &reply, .method = methods[i]);
		assert_failure(&reply, HTTP_OK);
		assert_true((strstr(peer->requests[i].text, "\r\nContent-Length: 0\r\n") != NULL) ==
			    (i < 2));
		assert_null(strstr(peer->requests[i].text, "Content-Type"));
	}
}

static void a_head_has_headers_and_no_body(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .filler = 1000 });
	AUTO(sb_release) struct sb value = SB_INIT;
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .method = "HEAD");
	assert_failure(&reply, HTTP_OK);
	assert_int_equal(reply.body.len, 0);
	assert_true(http_header(&reply, "content-length", &value));
	assert_string_equal(value.text, "1000");
}

static void a_large_window_of_a_file_is_sent(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ 0 });
	AUTO(auto_free) char *path = fs_join(*state, "big");
	AUTO(auto_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	const size_t offset = 12345, len = 3000000;
	AUTO(auto_free) char *bytes = mem_alloc(offset + len);
	REPLY reply = { 0 };

	for (size_t i = 0; i < offset + len; i++)
		bytes[i] = (char)('a' + i * 7 % 26);
	assert_int_equal(write(fd, bytes, offset + len), offset + len);
	ASK(peer, &reply, .method = "PUT", .body_fd = fd, .body_offset = offset, .body_len = len);
	assert_failure(&reply, HTTP_OK);
	assert_contains(peer->requests[0].text, "\r\nContent-Length: 3000000\r\n");
	assert_null(strstr(peer->requests[0].text, "Expect"));
	assert_memory_equal(strstr(peer->requests[0].text, "\r\n\r\n") + 4, bytes + offset, len);
}

static void a_large_body_from_memory_is_sent(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ 0 });
	AUTO(auto_free) char *bytes = mem_alloc(1000000);
	REPLY reply = { 0 };

	(void)state;
	memset(bytes, 'm', 1000000);
	ASK(peer, &reply, .method = "PUT", .body = bytes, .body_len = 1000000);
	assert_failure(&reply, HTTP_OK);
	assert_memory_equal(strstr(peer->requests[0].text, "\r\n\r\n") + 4, bytes, 1000000);
}

static void a_file_that_becomes_shorter_is_told_of(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ 0 });
	AUTO(auto_free) char *path = fs_join(*state, "short");
	AUTO(auto_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	REPLY reply = { 0 };

	assert_int_equal(write(fd, "123", 3), 3);
	ASK(peer, &reply, .method = "PUT", .body_fd = fd, .body_len = 4);
	assert_failure(&reply, HTTP_REFUSED);
	assert_string_equal(reply.why, "the file that is sent has become shorter");
}

static void a_redirect_is_a_reply_and_is_not_followed(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .status = 301, .headers = "Location: /elsewhere\r\n" },
				 { .body = "followed" });
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .url = "/");
	assert_failure(&reply, HTTP_OK);
	assert_int_equal(reply.status, 301);
	assert_int_equal(peer->request_count, 1);
}

struct sunk {
	struct sb bytes;
	size_t stop_after; /* 0: never */
};

static bool sink(void *arg, const void *bytes, size_t len)
{
	struct sunk *sunk = arg;

	sb_add(&sunk->bytes, bytes, len);
	return !sunk->stop_after || sunk->bytes.len < sunk->stop_after;
}

static void a_sink_gets_the_bytes_of_a_success_and_of_nothing_else(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .filler = 500000 }, { .status = 404, .body = "none" });
	struct sunk sunk = { .bytes = SB_INIT };
	REPLY good = { 0 };
	REPLY bad = { 0 };

	(void)state;
	ASK(peer, &good, .sink = sink, .sink_arg = &sunk);
	assert_failure(&good, HTTP_OK);
	assert_int_equal(sunk.bytes.len, 500000);
	assert_int_equal(good.body.len, 0);
	assert_int_equal(good.received, 500000);
	ASK(peer, &bad, .sink = sink, .sink_arg = &sunk);
	assert_int_equal(bad.status, 404);
	assert_string_equal(bad.body.text, "none");
	assert_int_equal(sunk.bytes.len, 500000);
	sb_release(&sunk.bytes);
}

static void a_sink_that_has_enough_ends_the_exchange(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .filler = 5000000 });
	struct sunk sunk = { .bytes = SB_INIT, .stop_after = 10 };
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .sink = sink, .sink_arg = &sunk);
	assert_failure(&reply, HTTP_REFUSED);
	assert_true(sunk.bytes.len < 5000000);
	sb_release(&sunk.bytes);
}

static void replies_that_are_too_long_are_not_gathered(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .filler = 2000 });
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .reply_max = 1999);
	assert_failure(&reply, HTTP_TOO_LARGE);
	assert_true(reply.body.len <= 1999);
}

static void huge_headers_are_refused(void **state)
{
	AUTO(sb_release) struct sb headers = SB_INIT;
	REPLY reply = { 0 };

	(void)state;
	for (int i = 0; i < 20000; i++)
		sb_addf(&headers, "X-Number-%d: something\r\n", i);
	AUTO(peer_freep) struct peer *peer = PEER({ .headers = headers.text });

	ASK(peer, &reply, .url = "/");
	assert_true(reply.failure == HTTP_TOO_LARGE || reply.failure == HTTP_BROKEN);
	assert_true(reply.headers.len <= 128 << 10);
}

static void what_is_no_whole_reply_is_broken(void **state)
{
	static const struct peer_reply rows[] = {
		{ .body = "half of it", .cut = 50 },
		{ .raw = "SSH-2.0-OpenSSH_9.2p1 Debian\r\n" },
		{ .raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" },
		{ .raw = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", .reset = true },
		{ .raw = "HTTP/1.1 100 Continue\r\n\r\n" },
		{ .raw = "", .close = true },
		{ .reset_before = true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(peer_freep) struct peer *peer = peer_new(&rows[i], 1);
		REPLY reply = { 0 };

		ASK(peer, &reply, .method = "POST", .body = "x", .body_len = 1);
		assert_failure(&reply, HTTP_BROKEN);
	}
}

static void a_silent_server_is_a_timeout_and_a_slow_one_is_not(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .filler = 50, .at_once = 45, .gap_ms = 80 }, { .hang = true });
	struct mono begun = clock_mono_now(), answered;
	REPLY slow = { 0 };
	REPLY silent = { 0 };

	(void)state;
	ASK(peer, &slow, .silent_ms = 3000);
	answered = clock_mono_now();
	assert_failure(&slow, HTTP_OK);
	assert_int_equal(slow.body.len, 50);
	assert_true(answered.ms - begun.ms > 3000);
	ASK(peer, &silent, .silent_ms = 500);
	assert_failure(&silent, HTTP_TIMEOUT);
	assert_true(clock_mono_now().ms - answered.ms < PEER_SILENT_MS);
}

static void the_total_is_limited_too(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .filler = 1000, .gap_ms = 20 });
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .total_ms = 300);
	assert_failure(&reply, HTTP_TIMEOUT);
}

static void nobody_listening_is_unreachable(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ 0 });
	struct peer gone = { 0 };
	REPLY reply = { 0 };
	REPLY nameless = { 0 };

	(void)state;
	snprintf(gone.url, sizeof gone.url, "%s", peer->url);
	peer_freep(&peer);
	ASK(&gone, &reply, .url = "/");
	assert_failure(&reply, HTTP_UNREACHABLE);
	snprintf(gone.url, sizeof gone.url, "http://no-such-host.invalid");
	ASK(&gone, &nameless, .url = "/");
	assert_failure(&nameless, HTTP_UNREACHABLE);
	assert_contains(nameless.why, "no-such-host.invalid");
}

static void a_proxy_is_used_unless_the_request_is_for_a_neighbour(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = "by itself" });
	AUTO(peer_freep) struct peer *proxy = PEER({ .body = "by the proxy" });
	REPLY near = { 0 };
	REPLY far = { 0 };

	(void)state;
	setenv("http_proxy", proxy->url, 1);
	ASK(peer, &near, .direct = true);
	ASK(peer, &far, .direct = false);
	unsetenv("http_proxy");
	assert_string_equal(near.body.text, "by itself");
	assert_string_equal(far.body.text, "by the proxy");
	assert_contains(proxy->requests[0].text, "GET http://127.0.0.1:");
}

static void no_error_shows_the_password_of_a_proxy(void **state)
{
	static const char *const proxies[] = {
		"http://user:canary@[bad",
		"socks9://user:canary@host:1",
		"user:canary@host:99999999",
		"http://user:canary@127.0.0.1:1",
	};
	AUTO(peer_freep) struct peer *peer = PEER({ .body = "by itself" });

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(proxies); i++) {
		REPLY reply = { 0 };

		setenv("http_proxy", proxies[i], 1);
		ASK(peer, &reply, .url = "/");
		unsetenv("http_proxy");
		/* What is no address stays none; a proxy that does not answer may do so later. */
		assert_failure(&reply,
			       i + 1 < STK_LENGTH(proxies) ? HTTP_REFUSED : HTTP_UNREACHABLE);
		assert_true(strlen(reply.why) > 0);
		assert_null(strstr(reply.why, "canary"));
		assert_null(strstr(reply.why, "user"));
	}
}

static void what_cannot_be_sent_is_refused_at_once(void **state)
{
	static const struct sigv4_pair split = { "x-a", "b\r\nx-evil: 1" };
	static const struct sigv4_pair name = { "x-a: b\r\nx-evil", "1" };
	AUTO(peer_freep) struct peer *peer = PEER({ 0 });
	struct peer file = { .url = "file:///etc" };
	REPLY one = { 0 };
	REPLY two = { 0 };
	REPLY three = { 0 };

	(void)state;
	ASK(peer, &one, .headers = &split, .header_count = 1);
	assert_failure(&one, HTTP_REFUSED);
	ASK(peer, &two, .headers = &name, .header_count = 1);
	assert_failure(&two, HTTP_REFUSED);
	assert_int_equal(peer->request_count, 0);
	ASK(&file, &three, .url = "/passwd");
	assert_failure(&three, HTTP_REFUSED);
}

/* A connection that was kept and ended without a word: whether the server has done what it
 * was asked is unknown, so only a GET goes out again by itself. */
static void only_reading_is_repeated_on_a_connection_that_was_kept(void **state)
{
	static const char *const methods[] = { "GET", "POST", "PUT", "DELETE" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(methods); i++) {
		AUTO(peer_freep)
		struct peer *peer = PEER({ .body = "first" }, { .reset = true, .raw = "" },
					 { .body = "again" });
		AUTO(http_freep) struct http *http = client(1);
		AUTO(auto_free) char *url = mem_format("%s/", peer->url);
		struct http_request request = { .method = methods[i], .url = url, .body_fd = -1 };
		REPLY first = { 0 };
		REPLY second = { 0 };

		http_perform(http, &request, NULL, &first);
		assert_failure(&first, HTTP_OK);
		http_perform(http, &request, NULL, &second);
		assert_failure(&second, i == 0 ? HTTP_OK : HTTP_BROKEN);
		assert_int_equal(peer->request_count, i == 0 ? 3 : 2);
	}
}

int main(void)
{
#define T(name) test_in_world(name)
	const struct CMUnitTest tests[] = {
		T(a_request_goes_out_as_it_was_given_and_with_nothing_else),
		T(a_body_goes_out_with_its_length_and_no_expectation),
		T(a_request_without_a_body_says_so_where_one_could_be),
		T(a_head_has_headers_and_no_body),
		T(a_large_window_of_a_file_is_sent),
		T(a_large_body_from_memory_is_sent),
		T(a_file_that_becomes_shorter_is_told_of),
		T(a_redirect_is_a_reply_and_is_not_followed),
		T(a_sink_gets_the_bytes_of_a_success_and_of_nothing_else),
		T(a_sink_that_has_enough_ends_the_exchange),
		T(replies_that_are_too_long_are_not_gathered),
		T(huge_headers_are_refused),
		T(what_is_no_whole_reply_is_broken),
		T(a_silent_server_is_a_timeout_and_a_slow_one_is_not),
		T(the_total_is_limited_too),
		T(nobody_listening_is_unreachable),
		T(a_proxy_is_used_unless_the_request_is_for_a_neighbour),
		T(no_error_shows_the_password_of_a_proxy),
		T(what_cannot_be_sent_is_refused_at_once),
		T(only_reading_is_repeated_on_a_connection_that_was_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
