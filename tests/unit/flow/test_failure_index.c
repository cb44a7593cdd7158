/*
 * The lines of a log that are kept while it streams. A line that is dropped is never judged: the
 * cause is lost, and the run is repeated in vain. The index makes the look fast and must not change
 * what is seen.
 */
#include "tests/unit/flow/story.h"

#include "jobs/flow/failure_internal.h"
#include "tests/unit/flow/guarded.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define LOOKS        256 /* searches in a line, as failure_index.c has it */

/* Lines that rows know, and lines that only look like them. */
/* clang-format off */
static const struct { const char *id, *line; enum failure_class class; const char *hint; } known[] = {
#include "tests/unit/flow/failure_rows_program.def"
#include "tests/unit/flow/failure_rows_service.def"
#include "tests/unit/flow/failure_rows_device.def"
#include "tests/unit/flow/failure_rows_engine.def"
};
static const struct { const char *id, *line; } innocent[] = {
#include "tests/unit/flow/failure_innocent_program.def"
#include "tests/unit/flow/failure_innocent_service.def"
#include "tests/unit/flow/failure_innocent_device.def"
#include "tests/unit/flow/failure_innocent_engine.def"
};
/* clang-format on */

static struct failure_index fast;

static int set_up(void **state)
{
	(void)state;
	/* The caller's memory is not clean. */
	memset(&fast, 0xa5, sizeof fast);
	failure_index_init(&fast);
	return 0;
}

/* The answer of the index, by a look at each row. */
static bool bears_slowly(struct failure_line line)
{
	struct failure_line ignored;

	line = failure_line_trim(line);
	return failure_is_raised(line) || failure_find(line, FAILURE_TRACEBACK) < line.len ||
	       failure_row_find(FAILURE_LOG, failure_witness(line), &ignored);
}

static void agree(const char *text, size_t len)
{
	struct failure_line line = guarded_end(text, len);

	if (failure_bears(&fast, NULL, line) != bears_slowly(line))
		fail_msg("%s without reason: '%.*s'", bears_slowly(line) ? "dropped" : "kept",
			 (int)len, text);
}

/* Whole; and of some lines, for the time that it takes, cut, in other words, and in capitals. */
static void agree_in_many_forms(const char *text, bool all)
{
	size_t len = strlen(text);
	char line[2048];
	int n;

	agree(text, len);
	if (!all)
		return;
	agree(text, len - 1);
	n = snprintf(line, sizeof line, "%.*s and %s", (int)(len / 2), text, text + 1);
	agree(line, (size_t)n);
	n = snprintf(line, sizeof line, "12:00:00 ERROR x: %s (4)", text);
	agree(line, (size_t)n);
	for (size_t i = 0; i < len; i++)
		line[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i]);
	agree(line, len);
}

static void the_index_keeps_what_a_look_at_each_row_would_keep(void **state)
{
	static const char *const others[] = {
		"",
		"x",
		"step 12 loss 2.5",
		"Traceback (most recent call last):",
		"[rank3]: Traceback (most recent call last):",
		"TRACEBACK (MOST RECENT CALL LAST)",
		"  File \"a.py\", line 3, in f",
		"KeyError: 'x'",
		"pkg.OddError: x",
		"[rank3]: MemoryError",
		"please look for AccessDenied",
		"Connection reset by peer, retrying",
		"\xff\xfe\x80",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++)
		agree(others[i], strlen(others[i]));
	for (size_t i = 0; i < COUNT(known); i++)
		agree_in_many_forms(known[i].line, i % 4 == 0);
	for (size_t i = 0; i < COUNT(innocent); i++)
		agree_in_many_forms(innocent[i].line, i % 8 == 0);
}

/* The index has room for more rows, and none is too short to be searched for. */
static void each_row_of_the_log_is_in_the_index(void **state)
{
	const struct failure_row *row;
	size_t count = 1; /* the traceback */

	(void)state;
	for (size_t i = 0; (row = failure_row_at(i)); i++)
		count += row->source == FAILURE_LOG;
	assert_int_equal(fast.count, count);
	assert_true(fast.count < FAILURE_INDEX_MAX);
}

static bool is_searched_for(uint32_t gram)
{
	for (size_t i = 0; i < fast.count; i++)
		if (fast.rows[i].gram == gram)
			return true;
	return false;
}

/* A log of 100 MB/s is read as it comes: of ordinary text, less than one place in 50 may begin a
 * search of the line. */
static void ordinary_text_is_hardly_searched(void **state)
{
	static const char *const texts[] = { "docs/architecture.md", "docs/glossary.md",
					     "README.md", "CONTRIBUTING.md" };
	size_t places = 0, searched = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		char path[512];
		uint32_t gram = 0;
		FILE *file;
		int c;

		snprintf(path, sizeof path, "%s/%s", SOURCE_ROOT, texts[i]);
		file = fopen(path, "re");
		assert_non_null(file);
		while ((c = getc(file)) != EOF) {
			gram = gram << 8 | (unsigned char)failure_lower((char)c);
			places++;
			searched += is_searched_for(gram);
		}
		fclose(file);
	}
	print_message("%zu of %zu places of ordinary text begin a search\n", searched, places);
	assert_true(searched * 50 < places);
}

/* Returns the shortest literal that a row is searched for by, and that is no failure without the
 * rest of the row. */
static const char *shortest_part(void)
{
	static char part[64];

	memset(part, 0, sizeof part);
	for (size_t i = 0; i < fast.count; i++) {
		const struct failure_index_row *row = &fast.rows[i];
		struct failure_line literal = { row->literal, row->len };

		if ((!part[0] || row->len < strlen(part)) && row->len < sizeof part &&
		    !failure_bears(&fast, NULL, literal))
			snprintf(part, sizeof part, "%.*s", (int)row->len, row->literal);
	}
	assert_true(part[0]);
	return part;
}

/* A line may be made to be slow. */
static void a_line_is_searched_so_often_and_then_given_up(void **state)
{
	static const char cause[] = "RESOURCE_EXHAUSTED";
	static char line[16000];
	const char *part = shortest_part(); /* of another row, and nothing by itself */
	size_t len = 0;

	(void)state;
	for (size_t looks = 0; looks < LOOKS - 1; looks++)
		len += (size_t)snprintf(line + len, sizeof line - len, "%s\n", part);
	snprintf(line + len, sizeof line - len, "%s", cause);
	assert_true(failure_bears(&fast, NULL, (struct failure_line){ line, len + strlen(cause) }));
	len += (size_t)snprintf(line + len, sizeof line - len, "%s\n%s", part, cause);
	assert_false(failure_bears(&fast, NULL, (struct failure_line){ line, len }));
}

static const char *const own_words[] = { "lost the lustre", "quota of tuesday" };

static bool own_find(const void *arg, size_t row, struct failure_line line,
		     struct failure_line *ret_found)
{
	assert_ptr_equal(arg, own_words);
	assert_true(row < COUNT(own_words));
	*ret_found = (struct failure_line){ line.text, 0 };
	return failure_find(line, own_words[row]) < line.len;
}

static void lines_that_the_users_rows_know_are_kept(void **state)
{
	static const struct failure_own own = { .count = 2, .find = own_find, .arg = own_words },
					none = { .find = own_find, .arg = own_words };

	(void)state;
	assert_true(failure_bears(&fast, &own, guarded_end("we lost the lustre", 18)));
	assert_true(failure_bears(&fast, &own, guarded_end("quota of tuesday", 16)));
	assert_false(failure_bears(&fast, &own, guarded_end("step 1", 6)));
	assert_true(failure_bears(&fast, &own, guarded_end("MemoryError", 11)));
	assert_false(failure_bears(&fast, &none, guarded_end("quota of tuesday", 16)));
	assert_false(failure_bears(&fast, NULL, guarded_end("quota of tuesday", 16)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_index_keeps_what_a_look_at_each_row_would_keep),
		cmocka_unit_test(each_row_of_the_log_is_in_the_index),
		cmocka_unit_test(ordinary_text_is_hardly_searched),
		cmocka_unit_test(a_line_is_searched_so_often_and_then_given_up),
		cmocka_unit_test(lines_that_the_users_rows_know_are_kept),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
