/*
 * Foreign bytes on their way into evidence: what of them is shown, where a quotation is cut, and
 * which prefixes of launchers are taken off a line. A user reads the quotation on a terminal and in
 * the report; a prefix that is not known hides the cause behind it, or makes two ranks one.
 */
#include "tests/unit/flow/story.h"

#include "jobs/flow/failure_internal.h"
#include "tests/unit/flow/guarded.h"

#define QUOTED 400 /* bytes of a line that are quoted, as failure_text.c has it */

/* Well-formed byte sequences: table 3-7 of the Unicode Standard, chapter 3. Bytes behind the second
 * lie between 80 and bf. */
static const struct {
	unsigned char first, last; /* of the first byte */
	unsigned char from, to;    /* of the second byte */
	size_t len;
} well_formed[] = {
	{ 0x00, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
	{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
	{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
};

/* Length of the character at `b`, 0 if the bytes are none. */
static size_t character_length(const unsigned char *b, size_t len)
{
	for (size_t i = 0; i < sizeof well_formed / sizeof well_formed[0]; i++) {
		size_t n = well_formed[i].len, good = 1;

		if (b[0] < well_formed[i].first || b[0] > well_formed[i].last || n > len)
			continue;
		if (n > 1 && b[1] >= well_formed[i].from && b[1] <= well_formed[i].to)
			good++;
		while (good > 1 && good < n && b[good] >= 0x80 && b[good] <= 0xbf)
			good++;
		return good == n ? n : 0;
	}
	return 0;
}

/* True for a control character but newline and tab: below U+0020, U+007F to U+009F. */
static bool is_control(const unsigned char *b, size_t len)
{
	if (len == 1)
		return (b[0] < 0x20 && b[0] != '\n' && b[0] != '\t') || b[0] == 0x7f;
	return len == 2 && b[0] == 0xc2 && b[1] < 0xa0;
}

static void shows(const unsigned char *bytes, size_t len)
{
	struct failure_line line = guarded_end((const char *)bytes, len);
	char got[32], expected[32];
	struct fixed_string string;
	size_t to = 0;

	for (size_t at = 0; at < len;) {
		size_t n = character_length(bytes + at, len - at);

		if (n == 0 || is_control(bytes + at, n)) {
			expected[to++] = '?';
			at++;
			continue;
		}
		memcpy(expected + to, bytes + at, n);
		to += n;
		at += n;
	}
	expected[to] = '\0';
	failure_text_start(&string, got, sizeof got);
	failure_text_add(&string, line.text, line.len);
	assert_int_equal(string.len, to);
	assert_memory_equal(got, expected, to + 1);
}

/* A log may not steer the user's terminal, and the JSON made of a quotation must be valid UTF-8. */
static void what_is_no_character_or_steers_a_terminal_is_shown_as_a_question_mark(void **state)
{
	static const unsigned char edges[] = { 0x7f, 0x80, 0xbf, 0xc0 };

	(void)state;
	for (int b = 0; b < 0x10000; b++) {
		unsigned char bytes[4] = { (unsigned char)(b >> 8), (unsigned char)b };

		shows(bytes, 1);
		shows(bytes, 2);
		/* below e0 two bytes are all, or each stands alone */
		for (size_t i = 0; bytes[0] >= 0xe0 && i < sizeof edges * sizeof edges; i++) {
			bytes[2] = edges[i / sizeof edges];
			bytes[3] = edges[i % sizeof edges];
			shows(bytes, 3);
			shows(bytes, 4);
		}
	}
}

/* The fields of a classification have fixed sizes: what does not fit is cut, and never within a
 * character. */
static void a_full_text_ends_with_a_whole_character(void **state)
{
	static const char text[] = "a\xc3\xa9z\xe2\x82\xac\xf0\x9f\x98\x80y";
	static const size_t ends[] = { 0, 1, 3, 4, 7, 11, 12 };

	(void)state;
	for (size_t size = 1; size <= sizeof text + 1; size++) {
		char *room = guarded_room_end(GUARDED_TEXT, size);
		struct fixed_string string;
		size_t whole = 0;

		for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
			if (ends[i] < size)
				whole = ends[i];
		failure_text_start(&string, room, size);
		assert_string_equal(room, "");
		failure_text_adds(&string, text);
		assert_int_equal(string.len, whole);
		assert_memory_equal(room, text, whole);
		assert_int_equal(room[whole], '\0');
		/* A full text stays as it is. */
		failure_text_add(&string, "\xe2\x82\xac", string.len + 1 == size ? 3 : 0);
		assert_int_equal(string.len, whole);
	}
}

/* The beginning of a long line names its program and the error; the end is told apart by the dots.
 */
static void a_long_line_is_cut_between_characters(void **state)
{
	static char long_line[QUOTED + 8], quoted[2 * QUOTED];

	(void)state;
	for (size_t len = QUOTED - 2; len <= QUOTED + 4; len++) {
		/* the euro sign lies before, on and behind the border */
		for (size_t euro = QUOTED - 4; euro + 3 <= len; euro++) {
			size_t kept = len <= QUOTED                        ? len
				      : euro < QUOTED && euro + 3 > QUOTED ? euro
									   : QUOTED;
			struct fixed_string string;

			memset(long_line, 'x', sizeof long_line);
			memcpy(long_line + euro, "\xe2\x82\xac", 3);
			failure_text_start(&string, quoted, sizeof quoted);
			failure_text_add_line(&string, guarded_end(long_line, len));
			assert_memory_equal(quoted, long_line, kept);
			assert_string_equal(quoted + kept, len > QUOTED ? " ..." : "");
		}
	}
}

/* Bytes that are no text at all are cut like text. */
static void a_long_line_of_loose_bytes_is_quoted_as_nothing(void **state)
{
	static char bytes[QUOTED + 1], quoted[2 * QUOTED];
	struct fixed_string string;

	(void)state;
	memset(bytes, '\x80', sizeof bytes);
	failure_text_start(&string, quoted, sizeof quoted);
	failure_text_add_line(&string, guarded_begin(bytes, sizeof bytes));
	assert_string_equal(quoted, " ...");
}

/* Some programs print their whole command in front of the error. The words that decided must be
 * seen: far from the beginning the quotation begins with the word that they are in, or with as much
 * of it as 20 bytes hold. */
static void the_words_that_decided_are_quoted_from_the_beginning_of_their_word(void **state)
{
	static char text[600], quoted[1200];

	(void)state;
	for (size_t word = 1; word < 30; word++) {
		for (size_t must = 150; must < 300; must++) {
			struct failure_line line = guarded_end(text, sizeof text);
			struct fixed_string string;
			size_t from = must - must % word;

			for (size_t i = 0; i < sizeof text; i++)
				text[i] = i % word == word - 1 ? ' ' : (char)('a' + i % 26);
			line = guarded_end(text, sizeof text);
			if (must - from > 20 || word == 1)
				from = must - (word == 1 ? 0 : 20);
			failure_text_start(&string, quoted, sizeof quoted);
			failure_text_add_line_from(&string, line, must);
			if (must < 200) {
				assert_memory_equal(quoted, text, QUOTED);
				assert_string_equal(quoted + QUOTED, " ...");
				continue;
			}
			assert_memory_equal(quoted, "... ", 4);
			if (sizeof text - from > QUOTED) {
				assert_memory_equal(quoted + 4, text + from, QUOTED);
				assert_string_equal(quoted + 4 + QUOTED, " ...");
			} else {
				assert_memory_equal(quoted + 4, text + from, sizeof text - from);
				assert_int_equal(quoted[4 + sizeof text - from], '\0');
			}
		}
	}
}

static void a_quotation_does_not_begin_within_a_character(void **state)
{
	static char text[301], quoted[1200];
	struct fixed_string string;

	(void)state;
	for (size_t i = 0; i + 3 <= sizeof text; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	for (size_t must = 200; must < 300; must++) {
		failure_text_start(&string, quoted, sizeof quoted);
		failure_text_add_line_from(&string, guarded_end(text, 300), must);
		assert_memory_equal(quoted, "... \xe2\x82\xac", 7);
		assert_null(strchr(quoted, '?'));
		/* at most a character less than the 20 bytes in front of the words */
		assert_in_range(300 - (string.len - 4), must - 20, must - 18);
	}
	/* nothing but the ends of characters: nothing is left to begin with */
	memset(text, '\x80', sizeof text);
	failure_text_start(&string, quoted, sizeof quoted);
	failure_text_add_line_from(&string, guarded_end(text, 300), 250);
	assert_string_equal(quoted, "... ");
}

static void lines_of_evidence_are_kept_apart(void **state)
{
	char quoted[32];
	struct fixed_string string;

	(void)state;
	failure_text_start(&string, quoted, sizeof quoted);
	failure_text_add_line(&string, (struct failure_line){ "a", 1 });
	failure_text_add_line(&string, (struct failure_line){ "b", 1 });
	assert_string_equal(quoted, "a\nb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			what_is_no_character_or_steers_a_terminal_is_shown_as_a_question_mark),
		cmocka_unit_test(a_full_text_ends_with_a_whole_character),
		cmocka_unit_test(a_long_line_is_cut_between_characters),
		cmocka_unit_test(a_long_line_of_loose_bytes_is_quoted_as_nothing),
		cmocka_unit_test(
			the_words_that_decided_are_quoted_from_the_beginning_of_their_word),
		cmocka_unit_test(a_quotation_does_not_begin_within_a_character),
		cmocka_unit_test(lines_of_evidence_are_kept_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
