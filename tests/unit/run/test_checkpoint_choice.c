/* The checkpoint that a training goes on from, where something cannot be looked at: it does not
 * begin anew for want of an answer. See jobs/run/checkpoints.c. */
#include "faulty_store.h"

#include "attempt_fixture.h"

#define PLAN "{'nodes':1,'checkpoint':{'kind':'hf','url':'%s'}}"

static int describe(struct engine *of, const char *name, const char *prefix,
		    struct engine_status *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix;
	if (said.away)
		return no_answer(err);
	*ret = (struct engine_status){ .state = ENGINE_ENDED };
	return 0;
}

/* After attempt 1, with checkpoints there. */
static void begin_at(const char *url)
{
	AUTO(auto_free) char *plan = mem_format(PLAN, url);

	(void)begin(PHASE_TRAIN, plan);
	ops.describe = describe;
}

static int choose(struct err **err)
{
	bool again = true;
	int result = checkpoints_choose(&driver, INT64_MAX, &again, err);

	assert_true(result < 0 || !again);
	return result;
}

static void a_place_that_cannot_be_opened_holds_no_choice(void **state)
{
	static const char words[] = "cannot look for checkpoints: 's3://b' names no bucket";

	(void)state;
	begin_at("s3://b");
	for (int marks = 0; marks < 2; marks++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(marks ? checkpoints_record_marks(&driver, 1, &err) : choose(&err),
				 -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_string_equal(err->message, words);
	}
	assert_recorded(0);
	end();
}

/* Whether the agent left some depends on whether it is dead. */
static void an_engine_that_does_not_answer_keeps_it_open(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *place = NULL;

	(void)state;
	begin_at("/nowhere");
	place = fs_join(dir, "saved");
	json_object_set_new(json_object_get(driver.plan, "checkpoint"), "url", json_string(place));
	ops.report = NULL;
	said.away = true;
	assert_away(choose(&err), &err);
	assert_recorded(0);
	assert_int_equal(choose(&err), 0);
	assert_string_equal(newest("checkpoint.chosen", "reason"),
			    "no complete checkpoint yet: from the start");
	end();
}

static struct faulty_store *begin_in_bucket(void)
{
	AUTO(auto_free) char *folder = NULL;
	struct faulty_store *store;

	begin_at("s3://bucket/saved");
	folder = fs_join(dir, "bucket");
	store = faulty_new(folder);
	driver.checkpoints = &store->base;
	return store;
}

static void end_in_bucket(void)
{
	store_freep(&driver.checkpoints);
	end();
}

/* A place that is empty and one that cannot be listed are two things, and neither is a reason to
 * begin anew once something was saved. */
static void a_known_checkpoint_is_not_given_up_for_want_of_an_answer(void **state)
{
	int after = 0, lost = 1;

	(void)state;
	for (; lost > 0; after++) {
		struct faulty_store *store = begin_in_bucket();
		AUTO(err_freep) struct err *err = NULL;

		store->code = EXIT_UNREACHABLE;
		driver.flow.checkpoint_step = 7;
		snprintf(driver.flow.checkpoint_url, sizeof driver.flow.checkpoint_url,
			 "s3://bucket/saved/r1/attempt-1/checkpoint-7");
		faulty_lose(store, after, 1);
		assert_int_equal(choose(&err), -1);
		lost = store->calls_lost;
		assert_string_equal(
			err->message,
			lost ? "the network is gone"
			     : "the checkpoint of step 7 is gone: "
			       "'s3://bucket/saved/r1/attempt-1/checkpoint-7' is empty");
		assert_int_equal(err->code, lost ? EXIT_UNREACHABLE : EXIT_REFUSED);
		if (!lost)
			assert_non_null(strstr(err->hint, "put any object below '"));
		assert_recorded(0);
		end_in_bucket();
	}
	assert_in_range(after, 3, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_that_cannot_be_opened_holds_no_choice),
		cmocka_unit_test(an_engine_that_does_not_answer_keeps_it_open),
		cmocka_unit_test(a_known_checkpoint_is_not_given_up_for_want_of_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
