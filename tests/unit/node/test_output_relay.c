/* The relay changes nothing but forged lines, however the bytes come in. */
#include "tests/unit/node/place.h"

#include "jobs/base/hash.h"
#include "jobs/node/upload/output_relay.h"

/* Relay `text` in pieces of `piece` bytes to a file and give back what came. */
static char *relayed(const char *text, size_t len, size_t piece, size_t *ret_len)
{
	char path[] = "/tmp/stoker-relay-XXXXXX";
	AUTO(auto_close) int fd = mkstemp(path);
	struct output_relay relay;
	char *out;

	output_relay_init(&relay, fd, -1, NULL, NULL);
	for (size_t at = 0; at < len; at += piece)
		output_relay_pass(&relay, text + at, at + piece > len ? len - at : piece);
	output_relay_flush(&relay);
	assert_int_equal(relay.failed, 0);
	output_relay_release(&relay);
	out = read_file(path, ret_len);
	unlink(path);
	return out;
}

static void expect(const char *text, const char *wanted)
{
	for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
		size_t len;
		AUTO(auto_free) char *out = relayed(text, strlen(text), piece, &len);

		assert_string_equal(out, wanted);
	}
}

static void lines_that_pose_as_ours_get_a_backslash(void **state)
{
	(void)state;
	expect("::stoker:", "\\::stoker:");
	expect("::stoker:abc:: {}\nx\n", "\\::stoker:abc:: {}\nx\n");
	expect("a\n::stoker:b\n::stoker:c\n", "a\n\\::stoker:b\n\\::stoker:c\n");
	expect("10%\r::stoker:b\n", "10%\r\\::stoker:b\n");
	expect("\r\n::stoker:b", "\r\n\\::stoker:b");
}

static void all_other_text_passes_unchanged(void **state)
{
	(void)state;
	expect("", "");
	expect("::", "::");
	expect("::stoker", "::stoker");
	expect("::stoke:\n::s", "::stoke:\n::s");
	expect(" ::stoker:\nx ::stoker:y", " ::stoker:\nx ::stoker:y");
	expect("\n\n\r\r\n", "\n\n\r\r\n");
	expect("::::stoker:x", "::::stoker:x");
	expect("\\::stoker:x", "\\::stoker:x");
}

static void every_byte_passes_even_nul(void **state)
{
	char bytes[70000];

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 7 % 256);
	for (size_t piece = 1; piece < sizeof bytes; piece = piece * 5 + 1) {
		size_t len;
		AUTO(auto_free) char *out = relayed(bytes, sizeof bytes, piece, &len);

		assert_int_equal(len, sizeof bytes);
		assert_memory_equal(out, bytes, len);
	}
}

static void our_own_line_stands_alone_and_the_rest_of_theirs_is_watched(void **state)
{
	char path[] = "/tmp/stoker-relay-XXXXXX";
	AUTO(auto_close) int fd = mkstemp(path);
	AUTO(auto_free) char *out = NULL;
	struct output_relay relay;

	(void)state;
	output_relay_init(&relay, fd, -1, NULL, NULL);
	output_relay_say(&relay, "::stoker:n:: 1");
	output_relay_pass(&relay, "half", 4);
	output_relay_say(&relay, "::stoker:n:: 2");
	output_relay_pass(&relay, "::stoker:n:: forged\n::sto", 25);
	output_relay_say(&relay, "::stoker:n:: 3");
	output_relay_pass(&relay, "ker:n:: forged", 14);
	output_relay_flush(&relay);
	output_relay_release(&relay);
	out = read_file(path, NULL);
	unlink(path);
	assert_string_equal(out, "::stoker:n:: 1\nhalf\n::stoker:n:: 2\n"
				 "\\::stoker:n:: forged\n::sto\n::stoker:n:: 3\nker:n:: forged");
}

static void a_full_disk_is_remembered_and_nothing_hangs(void **state)
{
	AUTO(auto_close) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct output_relay relay;

	(void)state;
	output_relay_init(&relay, fd, -1, NULL, NULL);
	output_relay_pass(&relay, "text\n", 5);
	output_relay_pass(&relay, "more\n", 5);
	assert_int_equal(relay.failed, 28); /* ENOSPC */
	output_relay_release(&relay);
}

/* ---- a reader, and a copy ---- */

static int new_file(char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	return fd;
}

static void assert_file(const char *path, const char *wanted)
{
	AUTO(auto_free) char *text = read_file(path, NULL);

	assert_string_equal(text, wanted);
	unlink(path);
}

static void reader_and_copy_get_the_same(void **state)
{
	char out_path[] = "/tmp/stoker-relay-XXXXXX", log_path[] = "/tmp/stoker-relay-XXXXXX";
	AUTO(auto_close) int out = new_file(out_path);
	AUTO(auto_close) int log = new_file(log_path);
	struct output_relay relay;

	(void)state;
	output_relay_init(&relay, out, log, NULL, NULL);
	output_relay_pass(&relay, "one\ntwo", 7);
	output_relay_say(&relay, "three");
	assert_int_equal(relay.failed, 0);
	output_relay_release(&relay);
	assert_file(out_path, "one\ntwo\nthree\n");
	assert_file(log_path, "one\ntwo\nthree\n");
}

/* The copy is what counts; who only reads loses nothing by its failure. */
static void a_copy_that_fails_is_given_up_and_the_reader_goes_on(void **state)
{
	char out_path[] = "/tmp/stoker-relay-XXXXXX";
	AUTO(auto_close) int out = new_file(out_path);
	AUTO(auto_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct output_relay relay;

	(void)state;
	output_relay_init(&relay, out, full, NULL, NULL);
	output_relay_pass(&relay, "one\n", 4);
	output_relay_pass(&relay, "two\n", 4);
	assert_int_equal(relay.failed, 28); /* ENOSPC */
	output_relay_release(&relay);
	assert_file(out_path, "one\ntwo\n");
}

static void a_reader_that_fails_is_no_loss_where_there_is_a_copy(void **state)
{
	char log_path[] = "/tmp/stoker-relay-XXXXXX";
	AUTO(auto_close) int log = new_file(log_path);
	AUTO(auto_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct output_relay relay;

	(void)state;
	output_relay_init(&relay, full, log, NULL, NULL);
	output_relay_pass(&relay, "one\n", 4);
	output_relay_pass(&relay, "two\n", 4);
	assert_int_equal(relay.failed, 0);
	output_relay_release(&relay);
	assert_file(log_path, "one\ntwo\n");
}

/* Checks for one order, with the time at which the bytes came. */
static void assert_log_order(const struct orders *orders)
{
	static const char begin[] = "{\"order\":\"log\",\"bytes\":4,\"at\":", end[] = "}\none\n";
	const char *text = orders->queue.text;

	assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
	assert_string_equal(text + orders->queue.len - strlen(end), end);
	assert_int_equal(orders->queue.len, strlen(begin) + 13 + strlen(end));
}

/* The uploader writes the log if the workspace is a directory. */
static void what_an_uploader_is_to_write_is_ordered_until_the_log_is_lost(void **state)
{
	AUTO(orders_release) struct orders orders;
	struct output_relay relay;

	(void)state;
	orders_init(&orders, NULL);
	output_relay_init(&relay, -1, -1, &orders, NULL);
	output_relay_pass(&relay, "one\n", 4);
	output_relay_flush(&relay); /* nothing is nothing */
	assert_log_order(&orders);
	assert_int_equal(relay.failed, 0);
	relay.failed = 28;
	output_relay_pass(&relay, "two\n", 4);
	assert_log_order(&orders);
	output_relay_release(&relay);
}

static size_t notes_in(const struct orders *notes)
{
	size_t count = 0;

	for (const char *at = notes->queue.text; (at = strstr(at, "\"grown\"")); at++)
		count++;
	return count;
}

/* If the workspace is no directory, the uploader reads the log. */
static void the_reader_of_the_log_is_told_its_length(void **state)
{
	char log_path[] = "/tmp/stoker-relay-XXXXXX";
	AUTO(auto_close) int log = new_file(log_path);
	AUTO(orders_release) struct orders notes;
	struct output_relay relay;

	(void)state;
	orders_init(&notes, NULL);
	output_relay_init(&relay, -1, log, NULL, NULL);
	output_relay_note(&relay, &notes);
	output_relay_pass(&relay, "one\n", 4);
	output_relay_flush(&relay);
	assert_int_equal(notes_in(&notes), 1);
	assert_non_null(strstr(notes.queue.text, "\"size\":4,"));
	/* Nobody takes them: they would only gather. */
	notes.waits_for.ms -= 6000;
	output_relay_pass(&relay, "two\n", 4);
	assert_int_equal(notes_in(&notes), 1);
	assert_null(strstr(notes.queue.text, "late"));
	sb_clear(&notes.queue);
	output_relay_pass(&relay, "three\n", 6);
	assert_non_null(strstr(notes.queue.text, "\"size\":14,"));
	assert_non_null(strstr(notes.queue.text, "\"late\":true"));
	/* Some notes of a flood are enough, and they are on time again. */
	sb_clear(&notes.queue);
	for (int i = 0; i < 1000; i++) {
		relay.noted_at = clock_mono_now();
		output_relay_pass(&relay, "four\n", 5);
	}
	assert_in_range(notes_in(&notes), 100, 250);
	assert_null(strstr(notes.queue.text, "late"));
	output_relay_release(&relay);
	unlink(log_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_pose_as_ours_get_a_backslash),
		cmocka_unit_test(all_other_text_passes_unchanged),
		cmocka_unit_test(every_byte_passes_even_nul),
		cmocka_unit_test(our_own_line_stands_alone_and_the_rest_of_theirs_is_watched),
		cmocka_unit_test(a_full_disk_is_remembered_and_nothing_hangs),
		cmocka_unit_test(reader_and_copy_get_the_same),
		cmocka_unit_test(a_copy_that_fails_is_given_up_and_the_reader_goes_on),
		cmocka_unit_test(a_reader_that_fails_is_no_loss_where_there_is_a_copy),
		cmocka_unit_test(what_an_uploader_is_to_write_is_ordered_until_the_log_is_lost),
		cmocka_unit_test(the_reader_of_the_log_is_told_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
