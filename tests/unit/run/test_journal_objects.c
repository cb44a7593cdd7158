/* The objects of a journal that is no database: their names and texts, and how many requests
 * reading them takes. See jobs/run/journal/journal_dir.c. */
#include "objects_fixture.h"

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
	ops->compact(far, "r", 13); /* whatever it knows of what is behind it */
	assert_chunk("r", 1, 13, "{\"events\":13}\n");
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

/* The largest part is one event short of a chunk. */
static void a_part_of_any_size_is_read_at_once(void **state)
{
	static const int64_t sizes[] = { 1, 2, 62, 63, 64 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(sizes); i++) {
		append_to(far, "r", 1, sizes[i]);
		ops->compact(far, "r", sizes[i]);
		open_far();
		/* the chunk, and the look behind it; or, behind a whole one, for the next, too */
		assert_int_equal(cost("r", 1, sizes[i]), sizes[i] == 64 ? 3 : 2);
		drop(dir, "runs/r");
		open_far();
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
	{
		AUTO(auto_free) char *text = mem_format("%s{\"events\":8}\n", chunk.text);

		*strstr(text, "\",\"event\":") = 'x'; /* a line of another form */
		put_text(dir, "runs/r/chunks/000000000001.jsonl", text);
	}
	open_far();
	assert_true(cost("r", 1, 8) > 8);
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

/* The folder may be at the end, where no event was expected. */
static void a_folder_in_the_place_of_an_event_is_damage(void **state)
{
	struct seen seen = { .run = "r" };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	append_to(near, "r", 1, 2);
	put_text(dir, "runs/r/events/000000000003.json/x", "in the way");
	assert_int_equal(ops->rows(near, "r", 1, see, &seen, &err), -1);
	assert_int_equal(seen.last, 2);
	assert_true(err->damage);
	assert_contains(err->message, "event 3 of run r in '");
	assert_contains(err->message, "000000000003.json' is a folder");
}

/* A write of which it is known that it was done is not done again. */
static void what_was_confirmed_is_written_once(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	between->faults[0] = FAULT_REPEATED;
	assert_int_equal(ops->append(far, "r", 1, "{}", &err), 1);
	assert_int_equal(between->writes, 1);
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

/* A run without its first event is one if another is there, and it is not being removed. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(an_event_is_a_line_with_its_writer),
		OF(a_line_of_another_form_is_no_event),
		OF(on_a_disk_a_chunk_is_written_when_it_is_full),
		OF(where_reads_are_requests_it_grows_by_parts),
		OF(few_requests_read_many_events),
		OF(reading_begins_and_stops_where_it_should),
		OF(a_part_of_any_size_is_read_at_once),
		OF(a_damaged_chunk_is_read_by_its_events),
		OF(a_folder_in_the_place_of_an_event_is_damage),
		OF(what_was_confirmed_is_written_once),
		OF(the_next_event_has_the_name_of_one),
		OF(without_event_1_another_one_shows_that_there_is_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
