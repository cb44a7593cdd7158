/* How far the logs of an attempt are read, and what is known from them, kept beside the journal:
 * what is written, and when. See jobs/run/journal/bookmark.c. */
#include "bookmark_fixture.h"

#include "jobs/base/maker.h"

/* ---- time of a bookmark ---- */

static void it_is_kept_where_much_was_read_and_time_has_passed(void **state)
{
	enum { FIRST, NEXT, BEHIND, LEAVING };
	static const struct {
		int when;
		bool remote;
		uint64_t news;
		int64_t age, took;
		bool kept;
	} rows[] = {
		/* at the first time the amount decides, and when the driver leaves */
		{ FIRST, false, LEAST - 1, 0, 0, false },
		{ FIRST, false, LEAST, 0, 0, true },
		{ FIRST, true, LEAST, 0, 0, true },
		{ LEAVING, false, LEAST - 1, 0, 0, false },
		{ LEAVING, false, LEAST, 0, 0, true },
		/* then both */
		{ NEXT, false, LEAST, 9999, 0, false },
		{ NEXT, false, LEAST, 10000, 0, true },
		{ NEXT, false, LEAST - 1, 10000, 0, false },
		{ BEHIND, false, LEAST, 5000, 0, false }, /* since the boot */
		{ NEXT, false, 64 * MIB, 999, 0, false },
		{ NEXT, false, 64 * MIB, 1000, 0, true },
		{ NEXT, false, 64 * MIB - 1, 1000, 0, false },
		{ NEXT, false, 64 * MIB - 1, 9999, 0, false },
		{ NEXT, true, LEAST, 59999, 0, false },
		{ NEXT, true, LEAST, 60000, 0, true },
		{ NEXT, true, LEAST - 1, 60000, 0, false },
		{ NEXT, true, 4 * MIB, 9999, 0, false },
		{ NEXT, true, 4 * MIB, 10000, 0, true },
		{ NEXT, true, 4 * MIB - 1, 10000, 0, false },
		/* it takes a hundredth of the time at most */
		{ NEXT, false, LEAST, 19999, 200, false },
		{ NEXT, false, LEAST, 20000, 200, true },
		{ LEAVING, false, LEAST, 19999, 200, true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

		stop_clock(rows[i].when == BEHIND || rows[i].when == FIRST ? 5000 : 5000000);
		driver.journal->is_remote = rows[i].remote;
		watch->logs[0].tail.offset = 1000;
		watch->logs[1].tail.offset = 500 + rows[i].news;
		watch->marked_bytes = 1500;
		watch->marking_ms = rows[i].took;
		if (rows[i].when == BEHIND)
			watch->behind_since.ms = 1;
		else if (rows[i].when != FIRST)
			watch->marked_at.ms = clock_ms - rows[i].age;
		bookmark_put(watch, rows[i].when == LEAVING);
		if (is_kept() != rows[i].kept)
			fail_msg("row %zu", i);
		assert_int_equal(watch->marked_bytes, rows[i].kept ? 1500 + rows[i].news : 1500);
		if (rows[i].kept)
			assert_int_equal(watch->marked_at.ms, clock_ms);
		driver.journal->is_remote = false;
		stop_clock(0);
		end();
	}
}

static void how_long_it_took_is_measured(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	(void)state;
	stop_clock(5000000);
	clock_adds = 3;
	watch->logs[0].tail.offset = LEAST;
	bookmark_put(watch, true);
	assert_true(is_kept());
	assert_true(watch->marking_ms > 0);
	assert_int_equal(watch->marked_at.ms, 5000000 + watch->marking_ms);
	assert_int_equal(clock_ms, watch->marked_at.ms + 3);
	stop_clock(0);
	end();
}

/* A look at a run leaves nothing behind. */
static void who_does_not_drive_keeps_nothing_and_uses_nothing(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	(void)state;
	driver.live = false;
	watch->logs[0].tail.offset = LEAST;
	bookmark_put(watch, true);
	assert_false(is_kept());
	assert_int_equal(watch->marked_bytes, 0);
	driver.live = true;
	said.sizes[0] = LEAST;
	bookmark_put(watch, true);
	assert_true(is_kept());
	driver.live = false;
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	driver.live = true;
	assert_int_equal(another_driver()->logs[0].tail.offset, LEAST);
	end();
}

static void a_driver_that_leaves_keeps_it_unless_all_is_read(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	(void)state;
	said.sizes[0] = LEAST;
	watch->logs[0].tail.offset = LEAST;
	watch_close(&driver);
	assert_false(is_kept()); /* it does not leave: it has watched to the end */
	watch = another_driver();
	watch->logs[0].tail.offset = LEAST;
	watch->whole = true;
	driver.left = true;
	watch_close(&driver);
	assert_false(is_kept());
	watch = another_driver();
	watch->logs[0].tail.offset = LEAST;
	driver.left = true;
	watch_close(&driver);
	assert_true(is_kept());
	driver.left = false;
	end();
}

/* ---- content of a bookmark ---- */

static void what_is_known_is_kept(void **state)
{
	struct attempt_watch *watch = read_much();
	json_auto_t *value = NULL;
	const json_t *log, *last;
	char maker[2 * MAKER_MAX + 1];
	unsigned char bytes[MAKER_MAX];

	(void)state;
	watch->step_node = 1;
	bookmark_put(watch, true);
	value = kept();
	assert_true(maker_find(bytes));
	for (size_t i = 0; i < MAKER_MAX; i++)
		snprintf(maker + 2 * i, 3, "%02x", bytes[i]);
	assert_int_equal(js_int(value, "form", -1), 2);
	assert_string_equal(js_str(value, "maker"), maker);
	assert_string_equal(js_str(value, "run"), "r1");
	assert_string_equal(js_str(value, "phase"), "train");
	assert_int_equal(js_int(value, "attempt", -1), 1);
	assert_string_equal(js_str(value, "job"), "stk-r1-1");
	assert_string_equal(js_str(value, "kind"), "neuron");
	assert_int_equal(js_int(value, "first_step", -9), 3);
	assert_int_equal(js_int(value, "last_step", -9), 7);
	assert_int_equal(js_int(value, "stepped_at", -9), watch->stepped_at.ms);
	assert_int_equal(js_int(value, "step_node", -9), 1);
	assert_int_equal(js_int(value, "hits_told", -9), 5);
	assert_true(js_bool(value, "graphs_told", false));
	assert_int_equal(js_int(json_object_get(value, "late"), MODULE, -9), 3);
	assert_int_equal(js_int(json_object_get(value, "metrics"), "row_step", -9), 7);
	assert_non_null(json_object_get(value, "book"));
	assert_int_equal(json_array_size(json_object_get(value, "logs")), 2);
	log = json_array_get(json_object_get(value, "logs"), 0);
	/* the unfinished line is read again */
	assert_int_equal(js_int(log, "offset", -9), said.logs[0].len - strlen("half of"));
	assert_false(js_bool(log, "dropping", true));
	assert_false(js_bool(log, "returned", true));
	assert_int_equal(js_int(log, "step", -9), 7);
	assert_null(json_object_get(log, "place"));
	last = json_object_get(log, "last");
	assert_int_equal(json_array_size(last), LAST_LINES);
	assert_int_equal(json_string_length(json_array_get(last, 0)), KIB - 1);
	/* of the cause what is not among them */
	assert_true(json_array_size(json_object_get(log, "cause")) > 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(log, "cause"), 0)),
			    "step 3 loss 1.5");
	log = json_array_get(json_object_get(value, "logs"), 1);
	assert_int_equal(js_int(log, "offset", -9), said.logs[1].len);
	assert_true(js_bool(log, "returned", false));
	assert_int_equal(js_int(log, "step", -9), -1);
	last = json_object_get(log, "last");
	assert_int_equal(json_array_size(last), 3);
	assert_string_equal(json_string_value(json_array_get(last, 0)), "one");
	assert_string_equal(json_string_value(json_array_get(last, 2)), "three");
	watch->graphs_at.ms = 0;
	watch->marked_bytes = 0;
	bookmark_put(watch, true);
	{
		json_auto_t *again = kept();

		assert_false(js_bool(again, "graphs_told", true));
	}
	end();
}

/* The lines are as many as there are, in their order. */
static void the_newest_lines_are_kept(void **state)
{
	static const int counts[] = { 59, 60, 61, 75 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(counts); i++) {
		struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
		int kept_lines = counts[i] < LAST_LINES ? counts[i] : LAST_LINES;
		json_auto_t *value = NULL;
		const json_t *last;

		for (int n = 0; n < counts[i]; n++) {
			AUTO(auto_free) char *line = mem_format("%d %5000s\n", n, "x");

			say(0, line);
		}
		read_all(watch);
		bookmark_put(watch, true);
		value = kept();
		last = json_object_get(json_array_get(json_object_get(value, "logs"), 0), "last");
		assert_int_equal(json_array_size(last), kept_lines);
		for (int n = 0; n < kept_lines; n++)
			assert_int_equal(strtol(json_string_value(json_array_get(last, (size_t)n)),
						NULL, 10),
					 counts[i] - kept_lines + n);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_kept_where_much_was_read_and_time_has_passed),
		cmocka_unit_test(how_long_it_took_is_measured),
		cmocka_unit_test(who_does_not_drive_keeps_nothing_and_uses_nothing),
		cmocka_unit_test(a_driver_that_leaves_keeps_it_unless_all_is_read),
		cmocka_unit_test(what_is_known_is_kept),
		cmocka_unit_test(the_newest_lines_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
