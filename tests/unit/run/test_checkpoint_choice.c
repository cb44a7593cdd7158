/* The checkpoint that a training goes on from, where something cannot be looked at: it does not
 * begin anew for want of an answer. See jobs/run/checkpoints.c. */
#include "tests/unit/checkpoint/trees.h"

#include "faulty_store.h"

#include "attempt_clock.h"
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

/* Begins after attempt 1, with checkpoints there. */
static void begin_at(const char *url)
{
	AUTO(auto_free) char *plan = mem_format(PLAN, url);

	(void)begin(PHASE_TRAIN, plan);
	ops.describe = describe;
	driver.flow.state = FLOW_TRAIN;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	driver.flow.checkpoint_step = -1;
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

/* The agent, if it is dead, may have left checkpoints. */
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

static void any_object_there_allows_to_begin_anew(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	(void)begin_in_bucket();
	driver.flow.checkpoint_step = 7;
	snprintf(driver.flow.checkpoint_url, sizeof driver.flow.checkpoint_url,
		 "s3://bucket/saved/r1/attempt-1/checkpoint-7");
	assert_int_equal(store_put(driver.checkpoints, "r1/attempt-1/note", "x", 1, &err), 0);
	assert_int_equal(choose(&err), 0);
	assert_string_equal(newest("checkpoint.chosen", "reason"),
			    "no complete checkpoint yet: from the start");
	end_in_bucket();
	/* and nothing need be there where nothing was saved */
	(void)begin_in_bucket();
	assert_int_equal(choose(&err), 0);
	assert_recorded(1);
	end_in_bucket();
}

/* ---- marks ---- */

static char saved[80]; /* of attempt 1 */
static enum engine_state state_of_job;

static int describe_state(struct engine *of, const char *name, const char *prefix,
			  struct engine_status *ret, struct err **err)
{
	(void)of, (void)prefix, (void)err;
	assert_string_equal(name, "stk-r1-train-1");
	*ret = (struct engine_status){ .state = state_of_job };
	return 0;
}

/* Begins after attempt 1, which has saved some steps and whose agent has ended. */
static void begin_saved(const int *steps, size_t count)
{
	AUTO(auto_free) char *url = NULL;

	begin_at("/nowhere");
	url = fs_join(dir, "saved");
	json_object_set_new(json_object_get(driver.plan, "checkpoint"), "url", json_string(url));
	snprintf(saved, sizeof saved, "%s/r1/attempt-1", url);
	ops.report = NULL;
	ops.describe = describe_state;
	state_of_job = ENGINE_ENDED;
	put_text(dir, "ws/runs/r1/train-1/node-0/report.json",
		 "{\"v\":1,\"state\":\"ended\",\"exit\":0}");
	for (size_t i = 0; i < count; i++) {
		AUTO(auto_free) char *name = mem_format("checkpoint-%d", steps[i]);

		make_hf(saved, name, steps[i]);
	}
}

static void mark(int step, const char *run, int64_t attempt)
{
	AUTO(checkpoint_list_release) struct ckpt_list list = found_in(saved, "hf");
	const struct ckpt_owner owner = { run, "n", attempt, NULL, 0 };
	struct err *err = NULL;

	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].step == step) {
			checkpoint_mark(CKPT_FOLDER(saved), &list.items[i], &owner,
					(struct utc){ 1 }, &err);
			assert_no_error(err);
			return;
		}
	fail_msg("there is no step %d", step);
}

/* The steps of the events of this name, in their order. */
static void assert_steps(const char *event, const char *want)
{
	AUTO(sb_release) struct sb got = SB_INIT;
	size_t i;
	const json_t *row;

	json_array_foreach (recorded, i, row)
		if (js_is(row, "event", event))
			sb_addf(&got, "%lld ", (long long)js_int(row, "step", -1));
	assert_string_equal(got.text ? got.text : "", want);
}

static void chooses(const char *steps)
{
	struct err *err = NULL;

	choose(&err);
	assert_no_error(err);
	assert_steps("checkpoint.chosen", steps);
}

static void new_marks_of_an_attempt_are_recorded_once_the_oldest_first(void **state)
{
	static const int steps[] = { 10, 20, 30, 40, 50 };
	AUTO(auto_free) char *url = NULL;
	struct err *err = NULL;

	(void)state;
	begin_saved(steps, STK_LENGTH(steps));
	url = fs_join(saved, "checkpoint-40");
	mark(40, "r1", 1);
	mark(20, "r1", 1);
	mark(30, "another", 1);
	mark(50, "r1", 2);
	for (int times = 0; times < 2; times++) {
		checkpoints_record_marks(&driver, 1, &err);
		assert_no_error(err);
		assert_steps("checkpoint.complete", "20 40 ");
	}
	assert_string_equal(newest("checkpoint.complete", "url"), url);
	/* A mark that is older than the newest is known, or was passed over. */
	mark(10, "r1", 1);
	checkpoints_record_marks(&driver, 1, &err);
	assert_no_error(err);
	assert_steps("checkpoint.complete", "20 40 ");
	end();
}

static void assert_passed_over(const char *name)
{
	const json_t *rejected = newest_value("checkpoint.chosen", "rejected");

	assert_int_equal(json_array_size(rejected), name ? 1 : 0);
	if (name)
		assert_contains(js_str(json_array_get(rejected, 0), "url"), name);
}

static void the_newest_checkpoint_that_is_whole_is_chosen(void **state)
{
	static const int steps[] = { 10, 20, 30 };
	AUTO(err_freep) struct err *err = NULL;
	bool again;

	(void)state;
	begin_saved(steps, STK_LENGTH(steps));
	for (size_t i = 0; i < STK_LENGTH(steps); i++)
		mark(steps[i], "r1", 1);
	chooses("30 ");
	assert_passed_over(NULL);
	assert_int_equal(checkpoints_choose(&driver, 30, &again, &err), 0);
	assert_steps("checkpoint.chosen", "30 20 ");
	assert_passed_over("checkpoint-30");
	drop(saved, "checkpoint-30/optimizer.pt");
	chooses("30 20 20 ");
	assert_passed_over("checkpoint-30");
	end();
}

static void what_the_agent_called_incomplete_is_told_with_the_choice(void **state)
{
	const json_t *first;

	(void)state;
	begin_saved(NULL, 0);
	put_text(dir, "ws/runs/r1/train-1/node-0/report.json",
		 "{\"v\":1,\"state\":\"ended\",\"exit\":0,\"checkpoint\":{\"partial\":[{\"name\":"
		 "\"checkpoint-7\",\"why\":\"a file is missing\"}]}}");
	chooses("-1 ");
	first = json_array_get(newest_value("checkpoint.chosen", "rejected"), 0);
	assert_string_equal(js_str(first, "why"), "a file is missing");
	assert_non_null(strstr(js_str(first, "url"), "attempt-1/checkpoint-7"));
	assert_string_equal(newest("checkpoint.chosen", "reason"),
			    "no complete checkpoint yet: from the start");
	end();
}

/* The folder may lie on a file system that is not mounted. */
static void a_folder_that_is_missing_is_no_reason_to_begin_anew(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *words = NULL;

	(void)state;
	begin_saved(NULL, 0);
	driver.flow.checkpoint_step = 7;
	snprintf(driver.flow.checkpoint_url, sizeof driver.flow.checkpoint_url, "%s/checkpoint-7",
		 saved);
	words = mem_format("the folder '%s' with the checkpoint of step 7 is missing", saved);
	assert_int_equal(choose(&err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_string_equal(err->message, words);
	assert_non_null(strstr(err->hint, "mount the folder"));
	assert_recorded(0);
	make_hf(saved, "checkpoint-5", 5); /* of another kind of trouble */
	chooses("-1 ");
	end();
}

/* ---- checkpoints that a killed agent has left without a mark ---- */

static void what_an_agent_has_left_unmarked_is_its_own_affair_while_it_may_live(void **state)
{
	static const int steps[] = { 10 };

	(void)state;
	/* The agent has ended, and passed the checkpoint over. */
	begin_saved(steps, STK_LENGTH(steps));
	chooses("-1 ");
	end();
	/* The job goes on. */
	begin_saved(steps, STK_LENGTH(steps));
	drop(dir, "ws/runs/r1/train-1/node-0/report.json");
	state_of_job = ENGINE_RUNNING;
	chooses("-1 ");
	end();
}

static bool is_to_be_waited_for(void)
{
	struct err *err = NULL;
	bool again = false;

	checkpoints_choose(&driver, INT64_MAX, &again, &err);
	assert_no_error(err);
	return again;
}

/* The agent of attempt 1 was killed, and no mark was written. */
static void begin_killed(const int *steps, size_t count)
{
	now.ms = 0;
	begin_saved(steps, count);
	drop(dir, "ws/runs/r1/train-1/node-0/report.json");
	now.ms = 100000;
}

static void end_killed(void)
{
	now.ms = 0;
	checkpoint_watch_freep(&driver.leftovers);
	end();
}

static void what_a_killed_agent_has_left_is_marked_and_chosen(void **state)
{
	static const int steps[] = { 10, 20 };

	(void)state;
	begin_killed(steps, STK_LENGTH(steps));
	drop(saved, "checkpoint-20/optimizer.pt");
	state_of_job = ENGINE_UNKNOWN; /* it may live */
	assert_true(is_to_be_waited_for());
	state_of_job = ENGINE_ENDED;
	assert_true(is_to_be_waited_for());
	now.ms = 102999;
	assert_true(is_to_be_waited_for());
	assert_recorded(0);
	now.ms = 103000;
	assert_false(is_to_be_waited_for());
	assert_steps("checkpoint.complete", "10 ");
	assert_steps("checkpoint.chosen", "10 ");
	assert_null(driver.leftovers);
	/* it is not looked for again */
	state_of_job = ENGINE_UNKNOWN;
	assert_false(is_to_be_waited_for());
	end_killed();
}

static void what_its_agent_has_to_copy_is_not_waited_for(void **state)
{
	static const int steps[] = { 10 };

	(void)state;
	begin_killed(steps, STK_LENGTH(steps));
	state_of_job = ENGINE_ENDED;
	js_put_str(json_object_get(driver.plan, "checkpoint"), "sync", "agent");
	assert_false(is_to_be_waited_for());
	assert_steps("checkpoint.chosen", "-1 ");
	end_killed();
	/* nor what is older than the newest that is known, or of no known kind */
	begin_killed(steps, STK_LENGTH(steps));
	state_of_job = ENGINE_ENDED;
	mark(10, "r1", 1);
	driver.flow.checkpoint_step = 10;
	snprintf(driver.flow.checkpoint_url, sizeof driver.flow.checkpoint_url, "%s/checkpoint-10",
		 saved);
	assert_false(is_to_be_waited_for());
	end_killed();
	begin_killed(steps, STK_LENGTH(steps));
	state_of_job = ENGINE_ENDED;
	js_put_str(json_object_get(driver.plan, "checkpoint"), "kind", "newer");
	assert_false(is_to_be_waited_for());
	end_killed();
}

static void one_of_which_nobody_knows_is_not_waited_for_for_ever(void **state)
{
	static const int steps[] = { 10 };

	(void)state;
	begin_killed(steps, STK_LENGTH(steps));
	state_of_job = ENGINE_UNKNOWN;
	assert_true(is_to_be_waited_for());
	now.ms = 114999;
	assert_true(is_to_be_waited_for());
	assert_recorded(0);
	now.ms = 115000;
	chooses("-1 ");
	/* and then not asked about again */
	now.ms = 100001;
	chooses("-1 -1 ");
	end_killed();
}

/* ---- looks ---- */

static void looks_at_a_service_are_rarer(void **state)
{
	AUTO(auto_free) char *folder = NULL;

	(void)state;
	begin_at("/nowhere");
	assert_int_equal(checkpoints_interval_ms(&driver), 1000);
	js_put_str(json_object_get(driver.plan, "checkpoint"), "url", "s3://b/x");
	assert_int_equal(checkpoints_interval_ms(&driver), 15000);
	json_object_del(json_object_get(driver.plan, "checkpoint"), "url");
	assert_int_equal(checkpoints_interval_ms(&driver), 1000);
	folder = fs_join(dir, "far");
	store_freep(&driver.workspace);
	driver.workspace = &faulty_new(folder)->base;
	assert_int_equal(checkpoints_interval_ms(&driver), 15000);
	end();
}

static void a_mark_says_how_long_the_saving_took(void **state)
{
	static const int steps[] = { 10 };
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *body = NULL;
	struct err *err = NULL;

	(void)state;
	begin_saved(steps, STK_LENGTH(steps));
	mark(10, "r1", 1);
	path = fs_join(saved, "checkpoint-10.stoker.json");
	js_load(path, 100000, &body, &err);
	assert_no_error(err);
	js_put(body, "saving_ms", json_integer(2500));
	text = js_line(body);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
	checkpoints_record_marks(&driver, 1, &err);
	assert_no_error(err);
	assert_true(json_real_value(newest_value("checkpoint.complete", "seconds")) == 2.5);
	assert_int_equal(newest_int("checkpoint.complete", "attempt"), 1);
	end();
}

static void who_was_taken_over_chooses_nothing(void **state)
{
	static const int steps[] = { 10 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_saved(steps, STK_LENGTH(steps));
	mark(10, "r1", 1);
	driver.stood_down = true;
	assert_taken_over(choose(&err), &err);
	driver.stood_down = true;
	assert_taken_over(checkpoints_record_marks(&driver, 1, &err), &err);
	assert_recorded(0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_that_cannot_be_opened_holds_no_choice),
		cmocka_unit_test(an_engine_that_does_not_answer_keeps_it_open),
		cmocka_unit_test(a_known_checkpoint_is_not_given_up_for_want_of_an_answer),
		cmocka_unit_test(any_object_there_allows_to_begin_anew),
		cmocka_unit_test(new_marks_of_an_attempt_are_recorded_once_the_oldest_first),
		cmocka_unit_test(the_newest_checkpoint_that_is_whole_is_chosen),
		cmocka_unit_test(what_the_agent_called_incomplete_is_told_with_the_choice),
		cmocka_unit_test(a_folder_that_is_missing_is_no_reason_to_begin_anew),
		cmocka_unit_test(
			what_an_agent_has_left_unmarked_is_its_own_affair_while_it_may_live),
		cmocka_unit_test(what_a_killed_agent_has_left_is_marked_and_chosen),
		cmocka_unit_test(what_its_agent_has_to_copy_is_not_waited_for),
		cmocka_unit_test(one_of_which_nobody_knows_is_not_waited_for_for_ever),
		cmocka_unit_test(looks_at_a_service_are_rarer),
		cmocka_unit_test(a_mark_says_how_long_the_saving_took),
		cmocka_unit_test(who_was_taken_over_chooses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
