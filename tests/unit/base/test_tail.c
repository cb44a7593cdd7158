/* The promises of jobs/base/text/tail.h: bytes in any pieces, the same lines out. */
#include "jobs/base/text/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void note_line(void *arg, const char *line, size_t len)
{
	sb_add(arg, line, len);
	sb_addc(arg, '|');
}

static char *lines_of(const char *text, size_t len, size_t piece)
{
	struct sb lines = SB_INIT;
	struct tail tail;

	tail_init(&tail);
	for (size_t at = 0; at < len; at += piece)
		tail_feed(&tail, text + at, len - at < piece ? len - at : piece, note_line, &lines);
	tail_end(&tail, note_line, &lines);
	tail_release(&tail);
	return sb_take(&lines);
}

static void lines_do_not_depend_on_how_the_bytes_arrive(void **state)
{
	static const char text[] = "one\ntwo\r10%\r\r20%\r\n\nlast";

	(void)state;
	for (size_t piece = 1; piece <= sizeof text; piece++) {
		AUTO(auto_free) char *lines = lines_of(text, sizeof text - 1, piece);

		assert_string_equal(lines, "one|two|10%|20%||last|");
	}
}

static void a_line_that_is_too_long_is_cut_and_the_next_one_is_whole(void **state)
{
	struct sb text = SB_INIT;
	size_t first;

	(void)state;
	for (size_t i = 0; i < 3 * TAIL_LINE_MAX; i++)
		sb_addc(&text, 'x');
	sb_adds(&text, "\nnext\n");
	for (size_t piece = 1000; piece <= text.len; piece = piece * 3 + 1) {
		AUTO(auto_free) char *lines = lines_of(text.text, text.len, piece);

		first = strcspn(lines, "|");
		assert_int_equal(first, TAIL_LINE_MAX);
		assert_string_equal(lines + first, "|next|");
	}
	sb_release(&text);
}

struct cut {
	const struct tail *tail;
	uint64_t lost[4];
	size_t count;
};

static void note_lost(void *arg, const char *line, size_t len)
{
	struct cut *cut = arg;

	(void)line;
	(void)len;
	cut->lost[cut->count++] = cut->tail->lost;
}

static void it_is_said_how_much_of_a_line_was_lost(void **state)
{
	struct sb text = SB_INIT;

	(void)state;
	for (size_t i = 0; i < TAIL_LINE_MAX + 5000; i++)
		sb_addc(&text, 'x');
	sb_adds(&text, "\nnext\n");
	for (size_t i = 0; i < TAIL_LINE_MAX + 7; i++)
		sb_addc(&text, 'x');
	for (size_t piece = 1000; piece <= text.len; piece = piece * 3 + 1) {
		struct tail tail;
		struct cut cut = { .tail = &tail };

		tail_init(&tail);
		for (size_t at = 0; at < text.len; at += piece)
			tail_feed(&tail, text.text + at,
				  text.len - at < piece ? text.len - at : piece, note_lost, &cut);
		tail_end(&tail, note_lost, &cut);
		tail_release(&tail);
		assert_int_equal(cut.count, 3);
		assert_int_equal(cut.lost[0], 5000);
		assert_int_equal(cut.lost[1], 0);
		assert_int_equal(cut.lost[2], 7);
	}
	sb_release(&text);
}

/* Each byte is looked at a few times, not once for each return: this would take minutes. */
static void a_flood_of_returns_costs_no_more_than_other_bytes(void **state)
{
	size_t len = (size_t)32 << 20;
	AUTO(auto_free) char *text = mem_alloc(len);
	struct sb lines = SB_INIT;
	struct tail tail;

	(void)state;
	memset(text, '\r', len);
	memcpy(text + len - 6, "last\r\n", 6);
	tail_init(&tail);
	tail_feed(&tail, text, len, note_line, &lines);
	tail_release(&tail);
	assert_string_equal(lines.text, "last|");
	sb_release(&lines);
}

static void what_is_skipped_to_is_no_line_of_its_own(void **state)
{
	struct sb lines = SB_INIT;
	struct tail tail;

	(void)state;
	tail_init(&tail);
	tail_feed(&tail, "half a li", 9, note_line, &lines);
	tail_skip(&tail, 1000);
	tail_feed(&tail, "f of", 4, note_line, &lines);
	tail_feed(&tail, " anot", 5, note_line, &lines);
	tail_feed(&tail, "her\nwhole\n", 10, note_line, &lines);
	tail_end(&tail, note_line, &lines);
	tail_release(&tail);
	assert_string_equal(lines.text, "|whole|");
	sb_release(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_do_not_depend_on_how_the_bytes_arrive),
		cmocka_unit_test(a_line_that_is_too_long_is_cut_and_the_next_one_is_whole),
		cmocka_unit_test(it_is_said_how_much_of_a_line_was_lost),
		cmocka_unit_test(a_flood_of_returns_costs_no_more_than_other_bytes),
		cmocka_unit_test(what_is_skipped_to_is_no_line_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
