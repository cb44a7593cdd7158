/* The chain of events (jobs/run/journal/chain.h) and the mark of a journal's end (end_mark.h). */
#include "jobs/run/journal/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/end_mark.h"

#define EVENTS 3

static json_t *new_row(int64_t seq)
{
	return json_pack("{s:i,s:s,s:I,s:f,s:s}", "v", 1, "run", "r", "seq", (json_int_t)seq,
			 "rate", 0.1, "text", "a \"quoted\" \xc2\x85 word");
}

/* Bodies of a whole chain; with sums from `first` on. */
static void make(char *ret[EVENTS], int64_t first)
{
	struct chain chain = { 0 };

	for (int i = 0; i < EVENTS; i++) {
		json_auto_t *row = new_row(i + 1);

		ret[i] = i + 1 >= first ? chain_seal(&chain, row) : js_line(row);
		chain_begin(&chain, row, ret[i], strlen(ret[i]));
	}
}

static void clear(char *bodies[EVENTS])
{
	for (int i = 0; i < EVENTS; i++)
		free(bodies[i]);
}

/* Returns how many events are the right ones. */
static int count_good(char *const bodies[EVENTS])
{
	struct chain chain = { 0 };

	for (int i = 0; i < EVENTS; i++) {
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *row = NULL;

		if (js_parse(bodies[i], strlen(bodies[i]), "it", &row, &err) < 0 ||
		    chain_go_on(&chain, "r", row, bodies[i], strlen(bodies[i]), &err) < 0)
			return i;
	}
	return EVENTS;
}

static void a_chain_is_right_with_sums_without_and_from_some_event_on(void **state)
{
	(void)state;
	for (int64_t first = 1; first <= EVENTS + 1; first++) {
		char *bodies[EVENTS];

		make(bodies, first);
		assert_int_equal(count_good(bodies), EVENTS);
		clear(bodies);
	}
}

static void every_bit_counts(void **state)
{
	char *bodies[EVENTS];

	(void)state;
	make(bodies, 1);
	for (int i = 0; i < EVENTS; i++) {
		size_t len = strlen(bodies[i]);

		for (size_t bit = 0; bit < 8 * len; bit++) {
			bodies[i][bit / 8] = (char)(bodies[i][bit / 8] ^ 1 << bit % 8);
			assert_int_equal(count_good(bodies), i);
			bodies[i][bit / 8] = (char)(bodies[i][bit / 8] ^ 1 << bit % 8);
		}
	}
	clear(bodies);
}

/* The first event with a sum proves the one before it, which has none. */
static void the_last_event_without_a_sum_is_proved_by_the_next(void **state)
{
	char *bodies[EVENTS], *at;

	(void)state;
	make(bodies, 3);
	at = strstr(bodies[1], "quoted");
	at[0] = 'Q';
	assert_int_equal(count_good(bodies), 2);
	clear(bodies);
}

static void events_that_are_exchanged_or_missing_are_found(void **state)
{
	char *bodies[EVENTS], *kept;

	(void)state;
	make(bodies, 1);
	kept = bodies[1];
	bodies[1] = bodies[2];
	assert_int_equal(count_good(bodies), 1);
	bodies[2] = kept;
	assert_int_equal(count_good(bodies), 1);
	clear(bodies);
}

/* The number alone tells where there are no sums. */
static void an_event_in_place_of_another_is_named(void **state)
{
	static const char text[] = "{\"run\":\"r\",\"seq\":3}";
	AUTO(err_freep) struct err *err = NULL;
	struct chain chain = { .seq = 1 };
	json_auto_t *row = json_loads(text, 0, NULL);

	(void)state;
	assert_int_equal(chain_go_on(&chain, "r", row, text, strlen(text), &err), -1);
	assert_string_equal(err->message, "event 3 stands in place of event 2");
	assert_int_equal(chain.seq, 1);
}

/* Other tools have other spaces and escapes. */
static void an_event_survives_being_written_anew(void **state)
{
	char *bodies[EVENTS];

	(void)state;
	make(bodies, 1);
	for (int i = 0; i < EVENTS; i++) {
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *row = NULL;

		assert_int_equal(js_parse(bodies[i], strlen(bodies[i]), "it", &row, &err), 0);
		free(bodies[i]);
		bodies[i] = json_dumps(row, JSON_ENSURE_ASCII);
	}
	assert_int_equal(count_good(bodies), EVENTS);
	clear(bodies);
}

static void the_mark_says_how_far_and_nothing_if_it_is_not_whole(void **state)
{
	char dir[] = "/tmp/stoker-mark-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *folder = NULL, *path = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	folder = mem_format("%s/runs/r", dir);
	path = mem_format("%s/runs/r/journal.end", dir);
	end_mark_write(dir, "r", 1); /* there is no folder: it goes without */
	assert_int_equal(end_mark_read(dir, "r"), 0);
	assert_int_equal(fs_mkdirs(folder, &err), 0);
	end_mark_write(dir, "r", 7);
	end_mark_write(dir, "r", 12);
	assert_int_equal(end_mark_read(dir, "r"), 12);
	for (size_t at = 0; at < 30; at++) {
		AUTO(sb_release) struct sb text = SB_INIT;

		assert_int_equal(fs_read(path, 64, &text, &err), 0);
		text.text[at] ^= 1;
		assert_int_equal(fs_write_atomic(path, text.text, text.len, 0600, &err), 0);
		assert_int_equal(end_mark_read(dir, "r"), 0);
		end_mark_write(dir, "r", 12);
	}
	assert_int_equal(end_mark_remove(dir, "r", &err), 0);
	assert_int_equal(end_mark_read(dir, "r"), 0);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

/* Checks the chain as other programs can, by what chain.h says. */
static void a_sum_is_over_the_link_and_the_form(void **state)
{
	static const char *const links[] = { "", "abc" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(links); i++) {
		json_auto_t *row = json_pack("{s:i,s:s}", "seq", 7, "run", "r");
		AUTO(auto_free) char *form = mem_format("%s\n{\"seq\":7,\"run\":\"r\"}", links[i]);
		AUTO(auto_free) char *want = NULL;
		AUTO(auto_free) char *body = NULL;
		struct chain chain = { .seq = 6 };
		char sum[SHA256_HEX];

		snprintf(chain.link, sizeof chain.link, "%s", links[i]);
		hash_sha256_hex(form, strlen(form), sum);
		want = mem_format("{\"seq\":7,\"run\":\"r\",\"sum\":\"%s\"}", sum);
		body = chain_seal(&chain, row);
		assert_string_equal(body, want);
		assert_string_equal(js_str(row, "sum"), sum);
		assert_int_equal(chain.seq, 6); /* the position stays */
		chain_begin(&chain, row, body, strlen(body));
		assert_int_equal(chain.seq, 7);
		assert_string_equal(chain.link, sum);
	}
	{
		static const char bare[] = "{\"seq\":3}";
		json_auto_t *row = json_pack("{s:i}", "seq", 3);
		struct chain chain = { 0 };
		char sum[SHA256_HEX];

		/* without a sum the form is the link */
		hash_sha256_hex(bare, strlen(bare), sum);
		chain_begin(&chain, row, bare, strlen(bare));
		assert_string_equal(chain.link, sum);
		assert_int_equal(chain.seq, 3);
	}
}

#define SUM_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void what_is_wrong_with_an_event_is_said(void **state)
{
	static const struct {
		const char *body, *words; /* NULL: nothing */
	} rows[] = {
		{ "{\"run\":\"r\",\"seq\":1,\"sux\":\"" SUM_64 "\"}", "the sum has another name" },
		{ "{\"run\":\"r\",\"seq\":1,\"su\":\"x" SUM_64 "\"}", NULL },
		{ "{\"run\":\"r\",\"seq\":1,\"sums\":\"" SUM_64 "\"}", NULL },
		{ "{\"run\":\"r\",\"seq\":1,\"sux\":\"" SUM_64 "0\"}", NULL },
		{ "{\"run\":\"r\",\"seq\":1, \"sux\":\"" SUM_64 "\"}", NULL },
		{ "{\"run\":\"r\",\"seq\":1,\"sux\": \"" SUM_64 "\"}", NULL },
		{ "{\"run\":\"r\",\"seq\":1,\"sux\":\"" SUM_64 "\" }", NULL },
		{ "{\"run\":\"r\",\"seq\":1,\"sux\":"
		  "\"G123456789abcdef0123456789abcdef0123456789abcde"
		  "f0123456789abcdef\"}",
		  NULL },
		{ "{\"run\":\"r\",\"seq\":1,\"sum\":7}", "the sum does not fit" },
		{ "{\"run\":\"r\",\"seq\":1,\"sum\":\"" SUM_64 "\"}", "the sum does not fit" },
		{ "{\"run\":\"r\",\"seq\":1,\"sum\":\"\"}", "the sum does not fit" },
		{ "{\"run\":\"s\",\"seq\":1}", "the event is of another run" },
		{ "{\"seq\":1}", "the event is of another run" },
		{ "{\"run\":\"r\",\"seq\":2}", "event 2 stands in place of event 1" },
		{ "{\"run\":\"r\"}", "event 0 stands in place of event 1" },
		{ "[]", "not an object" },
		{ "{\"run\":\"r\",\"seq\":1}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		struct chain chain = { 0 };
		json_auto_t *row = NULL;
		int result;

		assert_int_equal(js_parse(rows[i].body, strlen(rows[i].body), "it", &row, &err), 0);
		result = chain_go_on(&chain, "r", row, rows[i].body, strlen(rows[i].body), &err);
		if (result != (rows[i].words ? -1 : 0))
			fail_msg("%s", rows[i].body);
		assert_int_equal(chain.seq, rows[i].words ? 0 : 1);
		if (!rows[i].words)
			continue;
		assert_int_equal(err->code, EXIT_REFUSED);
		if (!strstr(err->message, rows[i].words))
			fail_msg("'%s' for %s", err->message, rows[i].body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_is_right_with_sums_without_and_from_some_event_on),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(the_last_event_without_a_sum_is_proved_by_the_next),
		cmocka_unit_test(events_that_are_exchanged_or_missing_are_found),
		cmocka_unit_test(an_event_in_place_of_another_is_named),
		cmocka_unit_test(an_event_survives_being_written_anew),
		cmocka_unit_test(a_sum_is_over_the_link_and_the_form),
		cmocka_unit_test(what_is_wrong_with_an_event_is_said),
		cmocka_unit_test(the_mark_says_how_far_and_nothing_if_it_is_not_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
