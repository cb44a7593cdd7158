/* What 'stoker resume RUN --salvage' believes of the damaged part of a journal, on every kind: a
 * stop, and an end that does not stand in the place of the damage. See jobs/run/salvage.h. */
#include "salvage_fixture.h"

#include "jobs/run/journal/journal_dir_internal.h"
#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/salvage.h"
#include "tests/unit/run/faulty_store.h"

static json_t *told; /* the events that the salvage has recorded */

static void note_told(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)ev;
	json_decref(told);
	told = json_deep_copy(row);
}

static int salvage(struct err **err)
{
	const struct driver_options options = { .run = "r", .on_event = note_told };

	json_decref(told);
	told = NULL;
	return salvage_run(journal, &options, err);
}

static void assert_salvaged(int64_t seq)
{
	struct err *err = NULL;

	assert_int_equal(salvage(&err), 1);
	assert_no_error(err);
	assert_true(js_is(told, "event", "journal.salvaged"));
	assert_int_equal(js_int(told, "seq", 0), seq);
	assert_whole("r", (int)seq);
	assert_whole("other", 1);
}

static void drop_told(void)
{
	json_decref(told);
	told = NULL;
}

static void append_end(int64_t seq, const char *reason)
{
	struct event ev = { .kind = EV_RUN_ENDED, .seq = seq, .at = { 1795000000000 + seq } };
	struct err *err = NULL;

	EVENT_SET(&ev, state, OUTCOME_FAILED);
	EVENT_SET(&ev, exit_code, 5);
	EVENT_SET(&ev, class, CLASS_DATA);
	EVENT_SET_STR(&ev, reason, reason);
	journal_append(journal, "r", &ev, &err);
	assert_no_error(err);
}

static void a_whole_run_is_left_as_it_is(void **state)
{
	struct err *err = NULL;

	(void)state;
	assert_int_equal(salvage(&err), 0);
	assert_no_error(err);
	assert_null(told);
	assert_whole("r", LAST);
}

static void a_stop_behind_the_damage_is_kept_with_its_reason(void **state)
{
	(void)state;
	append("r", LAST + 1, "another reason");
	damage(3, "{");
	assert_salvaged(3);
	assert_string_equal(js_str(told, "requested"), "another reason"); /* the newest */
	assert_non_null(strstr(js_str(told, "reason"), "event 3 of run r"));
	assert_int_equal(js_int(told, "put_aside", 0), LAST + 1 - 2);
	assert_null(json_object_get(told, "state"));
	/* A stop without a reason is one all the same. */
	append("r", 4, "x");
	append("r", 5, NULL);
	damage(4, "{");
	assert_salvaged(4);
	assert_string_equal(js_str(told, "requested"), "");
	drop_told();
}

static void where_no_stop_was_requested_none_is_kept(void **state)
{
	struct event ev = { .kind = EV_DRIVER_LEFT, .seq = LAST + 1, .at = { 1795000000100 } };
	struct err *err = NULL;

	(void)state;
	EVENT_SET(&ev, epoch, 1);
	journal_append(journal, "r", &ev, &err);
	assert_no_error(err);
	damage(LAST, "{"); /* those before it are not lost */
	assert_salvaged(LAST);
	assert_null(json_object_get(told, "requested"));
	assert_null(json_object_get(told, "state"));
	drop_told();
}

static void an_end_behind_the_damage_is_believed(void **state)
{
	static const struct {
		const char *reason, *evidence;
	} rows[] = { { "no data", "no data (as journalled behind the damage)" },
		     { NULL, "it had ended (as journalled behind the damage)" },
		     { "", "it had ended (as journalled behind the damage)" } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		append_end(LAST + 1, rows[i].reason);
		damage(LAST, "{");
		assert_salvaged(LAST);
		assert_string_equal(js_str(told, "state"), "failed");
		assert_string_equal(js_str(told, "class"), "data");
		assert_int_equal(js_int(told, "exit_code", 0), 5);
		assert_string_equal(js_str(told, "evidence"), rows[i].evidence);
		assert_null(json_object_get(told, "requested"));
		tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
	drop_told();
}

/* The event in the place of the first bad one may be anything. */
static void an_end_in_place_of_the_first_bad_event_is_not_believed(void **state)
{
	(void)state;
	damage(3, "{\"v\":1,\"run\":\"r\",\"seq\":3,\"at\":\"2026-11-21T11:36:00.123Z\","
		  "\"event\":\"run.ended\",\"state\":\"succeeded\",\"exit_code\":0,\"sum\":"
		  "\"00\"}");
	assert_salvaged(3);
	assert_null(json_object_get(told, "state"));
	assert_string_equal(js_str(told, "requested"), "a reason");
	drop_told();
}

/* The clock of this machine may be behind that of the one that wrote it. */
static void a_salvage_is_dated_no_earlier_than_the_newest_good_event(void **state)
{
	struct event ev = { .kind = EV_DRIVER_LEFT,
			    .seq = LAST + 1,
			    .at = { INT64_C(9000000000000) } };
	struct err *err = NULL;

	(void)state;
	EVENT_SET(&ev, epoch, 1);
	journal_append(journal, "r", &ev, &err);
	assert_no_error(err);
	append("r", LAST + 2, "x");
	damage(LAST + 2, "{");
	assert_salvaged(LAST + 2);
	assert_string_equal(js_str(told, "at"), "2255-03-14T16:00:00.000Z");
	drop_told();
}

/* ---- looks that differ ---- */

/* An event reads otherwise at some of the looks: bit n stands for the nth. */
static void spoil_event(const char *event, unsigned reads)
{
	struct dir_journal *objects = journal->store;
	struct faulty_store *store = faulty_new(dir);

	store->base.directory = dir; /* nothing is remembered then */
	store->spoilt = event;
	store->spoilt_reads = reads;
	store_freep(&objects->store);
	objects->store = &store->base;
}

static void spoil_event_2(unsigned reads)
{
	spoil_event("events/000000000002", reads);
}

/* A journal without a good event was not seen before. */
static void a_first_event_that_is_damaged_is_looked_at_twice_too(void **state)
{
	struct err *err = NULL;

	(void)state;
	spoil_event("events/000000000001", 1);
	assert_int_equal(salvage(&err), 0);
	assert_no_error(err);
	assert_null(told);
	assert_whole("r", LAST);
}

/* The fifth look may agree with the fourth. */
static void five_looks_are_taken(void **state)
{
	(void)state;
	damage(4, "{");
	spoil_event_2(5); /* at the first and third look */
	assert_salvaged(4);
	drop_told();
}

static void a_read_that_fails_once_sets_nothing_aside(void **state)
{
	struct err *err = NULL;

	(void)state;
	spoil_event_2(1);
	assert_int_equal(salvage(&err), 0);
	assert_no_error(err);
	assert_null(told);
	assert_whole("r", LAST);
	/* Damage begins where two looks in a row see it. */
	damage(4, "{");
	spoil_event_2(1);
	assert_salvaged(4);
	assert_int_equal(js_int(told, "put_aside", 0), LAST - 3);
	drop_told();
}

static void a_journal_that_reads_otherwise_each_time_is_left(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	damage(4, "{");
	spoil_event_2(5 | 16); /* at the first, third and fifth look */
	assert_int_equal(salvage(&err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_contains(err->message, "the journal of run r reads otherwise each time: ");
	assert_null(told);
	spoil_event_2(0);
	assert_damaged(4);
}

static void a_run_that_is_driven_is_not_salvaged(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	damage(3, "{");
	assert_int_equal(lease_try(journal, "r", NULL, &lease, &wait_ms, &err), 1);
	assert_int_equal(salvage(&err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_null(told);
	assert_damaged(3);
}

int main(void)
{
	static const struct journal_ops *const kinds[] = { &journal_objects, &journal_sqlite };
	const struct CMUnitTest in_objects[] = {
		OF(a_first_event_that_is_damaged_is_looked_at_twice_too),
		OF(five_looks_are_taken),
		OF(a_read_that_fails_once_sets_nothing_aside),
		OF(a_journal_that_reads_otherwise_each_time_is_left),
	};
	const struct CMUnitTest tests[] = {
		OF(a_whole_run_is_left_as_it_is),
		OF(a_stop_behind_the_damage_is_kept_with_its_reason),
		OF(where_no_stop_was_requested_none_is_kept),
		OF(an_end_behind_the_damage_is_believed),
		OF(an_end_in_place_of_the_first_bad_event_is_not_believed),
		OF(a_salvage_is_dated_no_earlier_than_the_newest_good_event),
		OF(a_run_that_is_driven_is_not_salvaged),
	};
	int failed = 0;

	for (size_t i = 0; i < STK_LENGTH(kinds); i++) {
		ops = kinds[i];
		failed += cmocka_run_group_tests_name(ops->scheme, tests, NULL, NULL);
	}
	ops = &journal_objects;
	return failed + cmocka_run_group_tests(in_objects, NULL, NULL);
}
