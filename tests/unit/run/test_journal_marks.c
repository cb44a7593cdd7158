/* The runs and the mark of a journal that is no database, and what a salvage leaves of its objects:
 * see jobs/run/journal/journal_dir.c. */
#include "objects_fixture.h"

static int join(void *arg, const char *run, const char *head, struct err **err)
{
	(void)head;
	(void)err;
	sb_addf(arg, "%s ", run);
	return 0;
}

static void runs_are_listed_by_their_age(void **state)
{
	static const char *const times[][2] = { { "a", "2026-11-21T11:36:03.000Z" },
						{ "b", "2026-11-21T11:36:01.000Z" },
						{ "c", "2026-11-21T11:36:02.000Z" },
						{ "d", "2026-11-21T11:36:02.000Z" } };
	AUTO(sb_release) struct sb runs = SB_INIT;
	struct err *err = NULL;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(times); i++) {
		AUTO(auto_free)
		char *body = mem_format("{\"run\":\"%s\",\"seq\":1,\"at\":\"%s\"}", times[i][0],
					times[i][1]);

		assert_int_equal(ops->append(near, times[i][0], 1, body, &err), 1);
	}
	put_text(dir, "runs/e/events/000000000001.json", "garbage"); /* of no age */
	put_text(dir, "runs/f/events/000000000001.json/x", "in the way");
	append_to(near, "g", 2, 2);
	put_text(dir, "runs/h/claims/x", "no events");
	put_text(dir, "runs/Not-An-Id/events/000000000001.json", "x");
	assert_int_equal(ops->runs(near, join, &runs, &err), 0);
	assert_no_error(err);
	assert_string_equal(runs.text, "e f g b c d a ");
}

/* ---- marks of a journal ---- */

static void assert_opens(enum journal_mode mode, const char *damage, const char *hint)
{
	AUTO(err_freep) struct err *err = NULL;
	void *journal = NULL;
	int result = ops->open(dir, mode, &journal, &err);

	if (!damage) {
		assert_no_error(err);
		assert_int_equal(result, 0);
		if (journal)
			ops->close(journal);
		return;
	}
	assert_int_equal(result, -1);
	assert_null(journal);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_contains(err->message, damage);
	assert_contains(err->hint, hint);
}

#define MARK "{\"v\":1,\"kind\":\"dir\"}"

static void a_mark_says_that_it_is_a_journal(void **state)
{
	static const char *const bad[] = { "", "{", "[]", "1", "null" };
	static const char *const good[] = { MARK, MARK "\n", "{}", "{\"v\":0}" };

	(void)state;
	{
		AUTO(sb_release) struct sb mark = get_bytes(dir, JOURNAL_DIR_MARK);

		assert_string_equal(mark.text, MARK "\n");
	}
	for (size_t i = 0; i < STK_LENGTH(bad); i++) {
		put_text(dir, JOURNAL_DIR_MARK, bad[i]);
		for (int mode = JOURNAL_READ; mode <= JOURNAL_WRITE; mode++)
			assert_opens((enum journal_mode)mode,
				     "'" JOURNAL_DIR_MARK "' in it is no mark of a journal",
				     "write " MARK " into that file");
		assert_opens(JOURNAL_SALVAGE, NULL, NULL);
		assert_opens(JOURNAL_READ, NULL, NULL);
	}
	for (size_t i = 0; i < STK_LENGTH(good); i++) {
		put_text(dir, JOURNAL_DIR_MARK, good[i]);
		assert_opens(JOURNAL_WRITE, NULL, NULL);
	}
	put_text(dir, JOURNAL_DIR_MARK, "{\"v\":2}");
	for (int mode = JOURNAL_READ; mode <= JOURNAL_SALVAGE; mode++)
		assert_opens((enum journal_mode)mode, "was written by a newer stoker",
			     "use that version");
	drop(dir, JOURNAL_DIR_MARK);
	put_text(dir, JOURNAL_DIR_MARK "/x", "in the way");
	for (int mode = JOURNAL_READ; mode <= JOURNAL_SALVAGE; mode++)
		assert_opens((enum journal_mode)mode, "cannot read the mark of the journal: '",
			     "move '");
}

static void events_without_a_mark_are_damage(void **state)
{
	void *none = &none;
	struct err *err = NULL;

	(void)state;
	drop(dir, JOURNAL_DIR_MARK);
	put_text(dir, "runs/Not-An-Id/events/000000000001.json", "x");
	put_text(dir, "runs/h/claims/x", "no events");
	put_text(dir, "runs/i/events/000000000002.json", "no event");
	assert_int_equal(ops->open(dir, JOURNAL_READ, &none, &err), 0);
	assert_null(none);
	assert_false(is_there(JOURNAL_DIR_MARK));
	append_to(near, "r", 2, 2);
	for (int mode = JOURNAL_READ; mode <= JOURNAL_WRITE; mode++)
		assert_opens((enum journal_mode)mode,
			     "is missing in it, though events lie there (run r)",
			     "write " MARK " into that file");
	assert_false(is_there(JOURNAL_DIR_MARK));
	assert_opens(JOURNAL_SALVAGE, NULL, NULL);
	{
		AUTO(sb_release) struct sb mark = get_bytes(dir, JOURNAL_DIR_MARK);

		assert_string_equal(mark.text, MARK "\n");
	}
	drop(dir, "runs");
	drop(dir, JOURNAL_DIR_MARK);
	assert_opens(JOURNAL_WRITE, NULL, NULL);
	assert_true(is_there(JOURNAL_DIR_MARK));
}

/* ---- salvage ---- */

static void restart(int64_t good, const char *first)
{
	AUTO(auto_free) char *body = body_of("r", (first ? 1 : good) + 1);
	struct err *err = NULL;
	int64_t count = -7;

	assert_int_equal(ops->put_aside(near, "r", good, &count, &err), 0);
	assert_no_error(err);
	assert_int_equal(count, 140 - good);
	assert_int_equal(ops->restart(near, "r", good, first, body, false, &err), 0);
	assert_no_error(err);
}

static void a_salvage_cuts_the_chunks_where_the_good_events_end(void **state)
{
	static const int64_t goods[] = { 1, 40, 63, 64, 65, 100, 127, 128, 139 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(goods); i++) {
		int64_t good = goods[i], first = good - (good - 1) % 64;
		AUTO(auto_free)
		char *end = good % 64 ? mem_format("{\"events\":%d}\n", (int)(good % 64))
				      : mem_copy("");

		append_to(near, "r", 1, 140);
		put_text(dir, "runs/r/removed", "");
		restart(good, NULL);
		if (good > 64)
			assert_chunk("r", 1, 64, "");
		if (first < 129) /* the third was not full yet */
			assert_chunk("r", first, good, end);
		if (first == 1)
			assert_no_chunk("r", 65);
		assert_no_chunk("r", 129);
		assert_false(is_there("runs/r/removed"));
		assert_int_equal(read_from(near, "r", 1).last, good + 1);
		open_far();
		assert_int_equal(read_from(far, "r", 1).last, good + 1);
		drop(dir, "runs/r");
		open_near();
	}
}

static void with_event_1_all_behind_it_goes(void **state)
{
	AUTO(auto_free) char *first = body_of("r", 1);
	uint64_t files, bytes;
	struct err *err = NULL;

	(void)state;
	append_to(near, "r", 1, 140);
	restart(0, first);
	assert_no_chunk("r", 1);
	assert_no_chunk("r", 65);
	assert_int_equal(read_from(near, "r", 1).last, 2);
	{
		AUTO(auto_free) char *aside = fs_join(dir, "runs/r/damaged");
		AUTO(auto_free) char *events = fs_join(dir, "runs/r/events");

		assert_int_equal(fs_measure(aside, &files, &bytes, &err), 0);
		assert_int_equal(files, 140);
		assert_int_equal(fs_measure(events, &files, &bytes, &err), 0);
		assert_int_equal(files, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(runs_are_listed_by_their_age),
		OF(a_mark_says_that_it_is_a_journal),
		OF(events_without_a_mark_are_damage),
		OF(a_salvage_cuts_the_chunks_where_the_good_events_end),
		OF(with_event_1_all_behind_it_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
