/* Rows of a journal that are no events, or those of another version: see
 * jobs/run/journal/event_json.h. */
#include "jobs/run/journal/event_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/quoted.h"

#define ROW(event, fields)                                                                         \
	"{'v':1,'seq':7,'at':'2026-11-28T10:00:00.000Z','event':'" event "'" fields "}"
#define CLAIMED(since) ROW("attempt.claimed", ",'phase':'train','attempt':1,'since':" since)
#define ENDED(hang)                                                                                \
	ROW("attempt.ended", ",'phase':'train','attempt':1,'class':'timeout-hang','hang':" hang)

static void a_row_that_no_version_can_have_written_says_what_is_wrong_with_it(void **state)
{
	static const struct {
		const char *row, *words;
	} rows[] = {
		{ "{}", "a journal row lacks its event, seq or at" },
		{ "{'seq':0,'at':'2026-11-28T10:00:00.000Z','event':'run.ended'}",
		  "a journal row lacks its event, seq or at" },
		{ "{'seq':7,'event':'run.ended'}", "a journal row lacks its event, seq or at" },
		{ "{'seq':7,'at':'2026-11-28T10:00:00.000Z'}",
		  "a journal row lacks its event, seq or at" },
		{ "{'at':'2026-11-28T10:00:00.000Z','event':'run.ended'}",
		  "a journal row lacks its event, seq or at" },
		{ "{'seq':7,'at':'yesterday','event':'run.ended'}",
		  "journal row 7 has no valid time: 'yesterday'" },
		{ ROW("driver.left", ",'epoch':'1','reason':'r'"), "'epoch' has a wrong type" },
		{ ROW("driver.left", ",'epoch':1,'reason':2"), "'reason' has a wrong type" },
		{ ROW("driver.left", ",'reason':'r'"), "'driver.left' lacks a field" },
		{ ROW("cache.checked", ",'verdict':'lukewarm'"), "'verdict' has a wrong type" },
		{ ROW("cache.checked", ",'verdict':1"), "'verdict' has a wrong type" },
		{ ROW("train.progress", ",'attempt':1,'rate':'fast'"), "'rate' has a wrong type" },
		{ ROW("cache.verified", ",'attempt':1,'complete':1"),
		  "'complete' has a wrong type" },
		{ CLAIMED("'yesterday'"), "'since' has a wrong type" },
		{ CLAIMED("1.5"), "'since' has a wrong type" },
		{ CLAIMED("true"), "'since' has a wrong type" },
		{ ENDED("'61'"), "'hang' has a wrong type" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *row = quoted_json(rows[i].row);
		AUTO(err_freep) struct err *err = NULL;
		struct event ev;

		assert_int_equal(event_decode(row, &ev, &err), -1);
		assert_int_equal(err->code, EXIT_DEFECT);
		if (!strstr(err->message, rows[i].words))
			fail_msg("'%s' for %s", err->message, rows[i].row);
	}
}

static void what_a_later_version_has_written_is_passed_over(void **state)
{
	json_auto_t *kind = quoted_json(ROW("run.dreamt", ",'epoch':1"));
	json_auto_t *field = quoted_json(ROW("driver.left", ",'epoch':1,'reason':'r','mood':[1]"));
	AUTO(err_freep) struct err *err = NULL;
	struct event ev;

	(void)state;
	assert_int_equal(event_decode(kind, &ev, &err), 0);
	assert_int_equal(event_decode(field, &ev, &err), 1);
	assert_int_equal(ev.kind, EV_DRIVER_LEFT);
	assert_int_equal(ev.seq, 7);
	assert_string_equal(ev.reason, "r");
}

/* JSON has no NaN: null stands for it. */
static void a_number_that_is_none_is_null(void **state)
{
	json_auto_t *row = quoted_json(ROW("train.progress", ",'attempt':1,'rate':null"));
	json_auto_t *again = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct event ev;

	(void)state;
	assert_int_equal(event_decode(row, &ev, &err), 1);
	EVENT_SET(&ev, rate, __builtin_nan(""));
	again = event_encode("r", &ev);
	assert_true(json_is_null(json_object_get(again, "rate")));
}

static int64_t milliseconds_of(const char *quoted)
{
	json_auto_t *row = quoted_json(quoted);
	AUTO(err_freep) struct err *err = NULL;
	struct event ev;

	assert_int_equal(event_decode(row, &ev, &err), 1);
	return ev.kind == EV_ATTEMPT_CLAIMED ? ev.since : ev.hang;
}

static void instants_and_durations_of_earlier_versions_are_whole_milliseconds(void **state)
{
	(void)state;
	assert_int_equal(milliseconds_of(CLAIMED("'2026-11-18T11:06:40.123Z'")), 1795000000123);
	assert_int_equal(milliseconds_of(CLAIMED("1795000000123")), 1795000000123);
	assert_int_equal(milliseconds_of(ENDED("61.0")), 61000);
	assert_int_equal(milliseconds_of(ENDED("60.9999999")), 61000);
	assert_int_equal(milliseconds_of(ENDED("61000")), 61000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_that_no_version_can_have_written_says_what_is_wrong_with_it),
		cmocka_unit_test(what_a_later_version_has_written_is_passed_over),
		cmocka_unit_test(a_number_that_is_none_is_null),
		cmocka_unit_test(instants_and_durations_of_earlier_versions_are_whole_milliseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
