/* The objects of a journal that is no database: their names and texts, how many requests reading
 * them takes, and what a salvage leaves of them. See jobs/run/journal/journal_dir.c. */
#include "jobs/run/journal/journal_dir_internal.h"

#include <sys/stat.h>

#include "tests/unit/checkpoint/trees.h"
#include "tests/unit/run/faulty_store.h"

#define MANY 100000 /* calls that are not made */

static char dir[64];
static struct faulty_store *between; /* of the journal that looks remote */
static void *far, *near;             /* two journals on the same folder; near is on this disk */

static const struct journal_ops *const ops = &journal_objects;

static void open_far(void)
{
	if (far)
		ops->close(far);
	between = faulty_new(dir);
	far = journal_objects_on(&between->base);
}

static void open_near(void)
{
	struct err *err = NULL;

	if (near)
		ops->close(near);
	ops->open(dir, JOURNAL_WRITE, &near, &err);
	assert_no_error(err);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-objects-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	far = near = NULL;
	open_far();
	open_near();
	return 0;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	ops->close(far);
	ops->close(near);
	return fs_remove_tree(dir, &err);
}

static char *body_of(const char *run, int64_t seq)
{
	return mem_format("{\"v\":1,\"run\":\"%s\",\"seq\":%lld}", run, (long long)seq);
}

static void append_to(void *journal, const char *run, int64_t first, int64_t last)
{
	struct err *err = NULL;

	for (int64_t seq = first; seq <= last; seq++) {
		AUTO(auto_free) char *body = body_of(run, seq);

		assert_int_equal(ops->append(journal, run, seq, body, &err), 1);
		assert_no_error(err);
	}
}

struct seen {
	const char *run;
	int64_t first, last;
	int64_t stop_at, fail_at;
};

static enum rows see(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	struct seen *seen = arg;
	AUTO(auto_free) char *want = body_of(seen->run, seq);

	if (!body || len != strlen(want) || memcmp(body, want, len) != 0)
		return ROWS_DAMAGED;
	if (seen->first == 0)
		seen->first = seq;
	else
		assert_int_equal(seq, seen->last + 1);
	seen->last = seq;
	if (seq == seen->fail_at) {
		err_set(err, EXIT_GATE, "enough of it");
		return ROWS_FAIL;
	}
	return seq == seen->stop_at ? ROWS_STOP : ROWS_ON;
}

static struct seen read_from(void *journal, const char *run, int64_t from)
{
	struct seen seen = { .run = run };
	struct err *err = NULL;

	assert_int_equal(ops->rows(journal, run, from, see, &seen, &err), 0);
	assert_no_error(err);
	return seen;
}

/* How many requests reading takes that ends with this event. */
static int cost(const char *run, int64_t from, int64_t last)
{
	int calls;

	faulty_lose(between, MANY, 1);
	assert_int_equal(read_from(far, run, from).last, last);
	calls = MANY - between->calls_left;
	between->calls_to_lose = 0;
	return calls;
}

static char *path_of(const char *run, const char *kind, int64_t seq)
{
	return mem_format("runs/%s/%s/%012lld.%s", run, kind, (long long)seq,
			  kind[0] == 'c' ? "jsonl" : "json");
}

static bool is_there(const char *path)
{
	AUTO(auto_free) char *whole = fs_join(dir, path);

	return fs_exists(whole);
}

/* The events of a chunk as they lie in their own objects, with what follows them. */
static void assert_chunk(const char *run, int64_t first, int64_t last, const char *end)
{
	AUTO(auto_free) char *path = path_of(run, "chunks", first);
	AUTO(sb_release) struct sb want = SB_INIT, got = SB_INIT;

	for (int64_t seq = first; seq <= last; seq++) {
		AUTO(auto_free) char *event = path_of(run, "events", seq);
		AUTO(sb_release) struct sb text = get_bytes(dir, event);

		sb_add(&want, text.text, text.len);
	}
	sb_adds(&want, end);
	got = get_bytes(dir, path);
	assert_string_equal(got.text, want.text);
}

static void assert_no_chunk(const char *run, int64_t first)
{
	AUTO(auto_free) char *path = path_of(run, "chunks", first);

	assert_false(is_there(path));
}

/* ---- objects ---- */

static void an_event_is_a_line_with_its_writer(void **state)
{
	AUTO(sb_release) struct sb one = SB_INIT, two = SB_INIT;
	AUTO(auto_free) char *file = ops->file(near, "r", 12);
	const char *body = NULL;
	struct stat st;
	size_t len = 0;

	(void)state;
	append_to(near, "r", 1, 2);
	one = get_bytes(dir, "runs/r/events/000000000001.json");
	two = get_bytes(dir, "runs/r/events/000000000002.json");
	assert_memory_equal(one.text, "{\"by\":\"", 7);
	assert_int_equal(strspn(one.text + 7, "0123456789abcdef"), 32);
	assert_string_equal(one.text + 39, "\",\"event\":{\"v\":1,\"run\":\"r\",\"seq\":1}}\n");
	assert_memory_not_equal(one.text + 7, two.text + 7, 32);
	assert_true(journal_dir_unwrap(one.text, one.len - 1, &body, &len));
	assert_int_equal(len, strlen("{\"v\":1,\"run\":\"r\",\"seq\":1}"));
	assert_memory_equal(body, "{\"v\":1,", 7);
	assert_contains(file, dir);
	assert_contains(file, "/runs/r/events/000000000012.json");
	{
		AUTO(auto_free) char *path = fs_join(dir, "runs/r/events/000000000001.json");

		assert_int_equal(stat(path, &st), 0);
	}
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void a_line_of_another_form_is_no_event(void **state)
{
#define CHANCE "0123456789abcdef0123456789abcdef"
	static const struct {
		const char *line;
		bool good;
	} rows[] = {
		{ "{\"by\":\"" CHANCE "\",\"event\":{}}", true },
		{ "{\"by\":\"" CHANCE "\",\"event\":}", true },
		{ "{\"by\":\"" CHANCE "\",\"event\":", false },
		{ "{\"by\":\"" CHANCE "\",\"event\":{}]", false },
		{ "{\"By\":\"" CHANCE "\",\"event\":{}}", false },
		{ "{\"by\":'" CHANCE "\",\"event\":{}}", false },
		{ "{\"by\":\"" CHANCE "\",\"Event\":{}}", false },
		{ "{\"by\":\"" CHANCE "\",\"event\";{}}", false },
		{ "{\"by\":\"" CHANCE "0\",\"event\":{}}", false },
		{ "}", false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const char *body;
		size_t len;

		if (journal_dir_unwrap(rows[i].line, strlen(rows[i].line), &body, &len) !=
		    rows[i].good)
			fail_msg("%s", rows[i].line);
	}
}

/* ---- chunks ---- */

static void on_a_disk_a_chunk_is_written_when_it_is_full(void **state)
{
	(void)state;
	append_to(near, "r", 1, 63);
	assert_no_chunk("r", 1);
	append_to(near, "r", 64, 64);
	assert_chunk("r", 1, 64, "");
	append_to(near, "r", 65, 127);
	assert_no_chunk("r", 65);
	open_near(); /* it has nothing in memory */
	append_to(near, "r", 128, 128);
	assert_chunk("r", 65, 128, "");
	ops->compact(near, "r", 128);
	append_to(near, "r", 129, 130);
	ops->compact(near, "r", 130);
	assert_no_chunk("r", 129);
	/* what another process has appended in between is in it */
	append_to(near, "s", 1, 63);
	append_to(near, "r", 131, 191);
	append_to(near, "s", 64, 64);
	assert_chunk("s", 1, 64, "");
	append_to(near, "r", 192, 192);
	assert_chunk("r", 129, 192, "");
}

static void where_reads_are_requests_it_grows_by_parts(void **state)
{
	(void)state;
	append_to(far, "r", 1, 7);
	assert_no_chunk("r", 1);
	append_to(far, "r", 8, 8);
	assert_chunk("r", 1, 8, "{\"events\":8}\n");
	append_to(far, "r", 9, 15);
	assert_chunk("r", 1, 8, "{\"events\":8}\n");
	ops->compact(far, "r", 15);
	assert_chunk("r", 1, 15, "{\"events\":15}\n");
	append_to(far, "r", 16, 64);
	assert_chunk("r", 1, 64, "");
	append_to(far, "r", 65, 72);
	assert_chunk("r", 65, 72, "{\"events\":8}\n");
	drop(dir, "runs/r/chunks/000000000065.jsonl");
	ops->compact(far, "r", 72); /* it was written with that event */
	assert_no_chunk("r", 65);
	/* nor is one written of which an event cannot be read */
	drop(dir, "runs/r/events/000000000070.json");
	open_far();
	ops->compact(far, "r", 71);
	assert_no_chunk("r", 65);
}

/* ---- requests ---- */

static void few_requests_read_many_events(void **state)
{
	(void)state;
	append_to(far, "r", 1, 150);
	append_to(far, "s", 1, 3);
	open_far();
	/* two chunks, a part of 16, six events, and the look behind them; there one more chunk */
	assert_int_equal(cost("r", 1, 150), 2 + 1 + 6 + 1 + 1);
	/* what was read is not read again */
	assert_int_equal(cost("r", 129, 150), 1);
	assert_int_equal(cost("r", 140, 150), 1);
	assert_int_equal(cost("r", 151, 0), 1);
	assert_int_equal(cost("s", 1, 3), 1 + 3 + 1);
	assert_int_equal(cost("s", 2, 3), 1);
	/* of the other run it has nothing in memory: four events are read before its chunk is, and
	 * behind a part of one the chunk is asked for again */
	assert_int_equal(cost("r", 130, 150), 4 + 1 + 1 + 6 + 1);
	open_far();
	assert_int_equal(cost("r", 145, 150), 4 + 1 + 2 + 1);
	append_to(near, "r", 151, 152);
	assert_int_equal(cost("r", 151, 152), 2 + 1);
	append_to(far, "r", 153, 153);
	assert_int_equal(cost("r", 153, 153), 1 + 1);
	/* on a disk another process may write at any time, and looks cost little */
	assert_int_equal(read_from(near, "r", 1).last, 153);
}

static void reading_begins_and_stops_where_it_should(void **state)
{
	static const int64_t starts[] = { -5, 0, 1, 2, 8, 9, 63, 64, 65, 100, 150 };
	void *const both[] = { far, near };

	(void)state;
	append_to(far, "r", 1, 150);
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < STK_LENGTH(starts); k++) {
			struct seen seen = { .run = "r", .stop_at = 120 }, all;
			AUTO(err_freep) struct err *err = NULL;

			all = read_from(both[i], "r", starts[k]);
			assert_int_equal(all.first, starts[k] < 1 ? 1 : starts[k]);
			assert_int_equal(all.last, 150);
			if (starts[k] > 120)
				continue;
			assert_int_equal(ops->rows(both[i], "r", starts[k], see, &seen, &err), 0);
			assert_int_equal(seen.last, 120);
			seen = (struct seen){ .run = "r", .fail_at = 119 };
			assert_int_equal(ops->rows(both[i], "r", starts[k], see, &seen, &err), -1);
			assert_int_equal(seen.last, 119);
			assert_string_equal(err->message, "enough of it");
			assert_int_equal(err->code, EXIT_GATE);
		}
}

/* Copies are not the events: one that is damaged says nothing of them. */
static void a_damaged_chunk_is_read_by_its_events(void **state)
{
	static const char *const ends[] = { "{\"events\":7}\n",   "{\"events\":9}\n",
					    "{\"events\":8}",     "",
					    "{\"events\":8}\n\n", "x\n" };
	AUTO(sb_release) struct sb chunk = SB_INIT;

	(void)state;
	append_to(far, "r", 1, 8);
	chunk = get_bytes(dir, "runs/r/chunks/000000000001.jsonl");
	chunk.len -= strlen("{\"events\":8}\n");
	chunk.text[chunk.len] = '\0';
	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		AUTO(auto_free) char *text = mem_format("%s%s", chunk.text, ends[i]);

		put_text(dir, "runs/r/chunks/000000000001.jsonl", text);
		open_far();
		if (cost("r", 1, 8) <= 8) /* its own objects were read */
			fail_msg("'%s' is an end", ends[i]);
	}
	/* in a whole one an event is another: it is asked for once */
	*strstr(chunk.text, "\"seq\":5") = 'x';
	{
		AUTO(auto_free) char *text = mem_format("%s{\"events\":8}\n", chunk.text);

		put_text(dir, "runs/r/chunks/000000000001.jsonl", text);
	}
	open_far();
	assert_int_equal(cost("r", 1, 8), 1 + 4 + 1);
	assert_int_equal(read_from(near, "r", 1).last, 8);
}

/* ---- numbers ---- */

static void assert_next(int64_t from, int64_t want)
{
	struct err *err = NULL;
	int64_t next = -7;
	int found = ops->next(near, "r", from, &next, &err);

	assert_no_error(err);
	assert_int_equal(found, want > 0);
	if (want > 0)
		assert_int_equal(next, want);
}

static void the_next_event_has_the_name_of_one(void **state)
{
	(void)state;
	assert_next(1, 0);
	assert_next(2, 0);
	append_to(near, "r", 1, 3);
	append_to(near, "r", 6, 6);
	put_text(dir, "runs/r/events/000000000004.txt", "x");
	put_text(dir, "runs/r/events/000000000005.json.part", "x");
	put_text(dir, "runs/r/events/other.json", "x");
	assert_next(1, 1);
	assert_next(2, 2);
	assert_next(4, 6);
	assert_next(6, 6);
	assert_next(7, 0);
}

/* Without its first event a run is one if another is there, and it is not being removed. */
static void without_event_1_another_one_shows_that_there_is_a_run(void **state)
{
	static const char *const garbage[] = {
		"",
		"{}\n",
		"{\"by\":\"" CHANCE "\",\"event\":{}}\n",
		"{\"by\":\"" CHANCE "\",\"event\":{]}\n",
		"{\"by\":\"" CHANCE "\",\"event\":{\"v\":1,\"run\":\"s\",\"seq\":2}}\n",
		"{\"by\":\"" CHANCE "\",\"event\":{\"v\":1,\"run\":\"r\",\"seq\":3}}\n",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(garbage); i++) {
		put_text(dir, "runs/r/events/000000000002.json", garbage[i]);
		assert_next(1, 0);
		assert_next(2, 2);
	}
	append_to(near, "r", 3, 4);
	assert_next(1, 3);
	put_text(dir, "runs/r/removed", "");
	assert_next(1, 0);
	drop(dir, "runs/r/removed");
	drop(dir, "runs/r/events/000000000003.json");
	assert_next(1, 4);
}

static int join(void *arg, const char *run, struct err **err)
{
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

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(an_event_is_a_line_with_its_writer),
		OF(a_line_of_another_form_is_no_event),
		OF(on_a_disk_a_chunk_is_written_when_it_is_full),
		OF(where_reads_are_requests_it_grows_by_parts),
		OF(few_requests_read_many_events),
		OF(reading_begins_and_stops_where_it_should),
		OF(a_damaged_chunk_is_read_by_its_events),
		OF(the_next_event_has_the_name_of_one),
		OF(without_event_1_another_one_shows_that_there_is_a_run),
		OF(runs_are_listed_by_their_age),
		OF(a_mark_says_that_it_is_a_journal),
		OF(events_without_a_mark_are_damage),
		OF(a_salvage_cuts_the_chunks_where_the_good_events_end),
		OF(with_event_1_all_behind_it_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
