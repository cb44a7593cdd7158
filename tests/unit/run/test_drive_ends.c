/* How a driver lets a job save and stops it, what it does at a limit, and where it goes on after a
 * failure. See jobs/run/driver.c. */
#include "tests/unit/checkpoint/trees.h"

#include "drive_fixture.h"

#include "jobs/checkpoint/checkpoint.h"

#include "jobs/store/order.h"

#define SAVES "'checkpoint':{'kind':'auto','sync':'none','grace_ms':60000,'on_mismatch':'stop'}"

static const char drain_name[] = "ws/runs/r1/train-1/" DRAIN_FILE;

static bool lies(const char *name)
{
	AUTO(auto_free) char *path = in_dir(name);

	return fs_exists(path);
}

static void remove_now(const char *name)
{
	AUTO(auto_free) char *path = in_dir(name);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_remove_tree(path, &err), 0);
}

/* A file where a folder has to be. */
static void obstruct(const char *name)
{
	AUTO(auto_free) char *path = in_dir(name);
	AUTO(auto_free) char *above = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(above, &err), 0);
	assert_int_equal(fs_write_atomic(path, "", 0, 0600, &err), 0);
}

/* ---- end after saving ---- */

/* The agents have seen that they are to save. */
static void end_once_drained(int number)
{
	(void)number;
	play.until_end = lies(drain_name) ? 0 : 1;
	play.end.exit = 128 + SIGTERM;
}

static void a_training_is_told_to_save_and_not_stopped_meanwhile(void **state)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *drain = NULL;
	int64_t begun = clock_utc_now().ms;

	(void)state;
	create_under_way(10000, true, SAVES);
	append_stop_ago(0);
	play.at_describe = end_once_drained;
	drive_ends(EXIT_STOPPED);
	path = in_dir(drain_name);
	assert_int_equal(js_load(path, 4096, &drain, &err), 0);
	assert_int_equal(js_int(drain, "v", 0), 1);
	assert_string_equal(js_str(drain, "reason"), "enough");
	assert_true(js_int(drain, "at", 0) >= begun);
	assert_int_equal(play.stops, 0);
	assert_int_equal(count_of("chore.failed"), 0);
}

static void what_has_not_the_claim_is_stopped_at_once(void **state)
{
	(void)state;
	create_under_way(10000, false, SAVES);
	append_stop_ago(0);
	play.ends_at_stop = 1;
	drive_ends(EXIT_STOPPED);
	assert_false(lies(drain_name));
	assert_int_equal(play.stop_grace_ms, 1234);
}

/* 64 s to save, and 30 s to be stopped. */
static void after_the_time_to_save_the_job_is_stopped(void **state)
{
	(void)state;
	create_under_way(HOUR_MS, true, SAVES);
	append_stop_ago(94001);
	play.ends_at_stop = 1;
	drive_ends(EXIT_STOPPED);
	assert_false(lies(drain_name));
}

/* However often that is tried. */
static void assert_untold_once(void)
{
	static const char words[] = "cannot ask the job to save; the job is stopped unless that "
				    "works within seconds: cannot open ";
	size_t count = 0, i;
	const json_t *row;

	json_array_foreach (recorded, i, row)
		if (js_is(row, "event", "chore.failed") &&
		    strncmp(js_str(row, "reason"), words, sizeof words - 1) == 0) {
			assert_string_equal(js_str(row, "phase"), "train");
			assert_int_equal(js_int(row, "attempt", 0), 1);
			count++;
		}
	assert_int_equal(count, 1);
}

/* The job ends by itself, a little later. */
static void end_soon(int number)
{
	play.until_end = number < 5;
	play.end.exit = 128 + SIGTERM;
}

static void a_job_that_cannot_be_told_is_not_stopped_within_seconds(void **state)
{
	(void)state;
	create_under_way(HOUR_MS, true, SAVES);
	append_stop_ago(0);
	obstruct("ws/runs/r1/train-1");
	play.at_describe = end_soon;
	drive_ends(EXIT_STOPPED);
	assert_untold_once();
	assert_int_equal(play.stops, 0);
}

static void a_job_that_cannot_be_told_is_stopped_after_seconds(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		create_under_way(HOUR_MS, true, SAVES);
		/* of the drain or of its end */
		append_stop_ago(late ? 63000 : 5001);
		obstruct("ws/runs/r1/train-1");
		play.stops = 0;
		play.ends_at_stop = 1;
		drive_ends(EXIT_STOPPED);
		assert_untold_once();
		assert_true(play.stops > 0);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

/* The watch goes on, though the stop is refused. */
static void a_stop_that_is_refused_is_asked_for_again(void **state)
{
	(void)state;
	create_under_way(HOUR_MS, false, NULL);
	append_stop_ago(1000);
	play.ends_at_stop = 1;
	play.silent_stops = 2;
	drive_ends(EXIT_STOPPED);
	assert_int_equal(play.stops, 1);
	assert_int_equal(play.describes, 3);
	assert_string_equal(newest("driver.waiting", "reason"), "the engine does not answer");
	/* what is to end is looked at soon */
	assert_int_equal(waits_of(1000), 1);
	assert_int_equal(waits_of(2000), 1);
}

/* ---- limits ---- */

static void a_limit_that_is_reached_meanwhile_ends_the_run(void **state)
{
	static const struct {
		const char *members, *limit;
	} rows[] = {
		{ "'limits':{'deadline_ms':1000}", "deadline" },
		{ "'limits':{'queue_ms':1000}", "queue" },
		{ "'limits':{'cost':0.01,'price':1000}", "cost" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		create_under_way(HOUR_MS, i == 2, rows[i].members);
		play.ends_at_stop = 1;
		play.stops = 0;
		drive_ends(EXIT_GATE);
		assert_string_equal(newest("limit.reached", "limit"), rows[i].limit);
		assert_int_equal(play.stops, 1);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

static int looks_at_limit; /* looks before the limit was recorded */

static void note_limit(void *arg, const struct event *ev, json_t *row)
{
	keep_event(arg, ev, row);
	if (ev->kind == EV_LIMIT_REACHED)
		looks_at_limit = play.describes;
}

/* The first look fails, and what is due by time alone is done all the same; what depends on the
 * look is not. */
static void a_look_that_fails_keeps_no_limit_of_the_run_waiting(void **state)
{
	static const struct {
		const char *members;
		int looks;
	} rows[] = {
		{ "'limits':{'deadline_ms':1000}", 1 },
		{ "'limits':{'cost':0.01,'price':1000}", 1 },
		{ "'limits':{'queue_ms':1000}", 2 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		create_under_way(HOUR_MS, i == 1, rows[i].members);
		options.on_event = note_limit;
		play.ends_at_stop = 1;
		play.silent_describes = 1;
		drive_ends(EXIT_GATE);
		assert_int_equal(count_of("limit.reached"), 1);
		assert_int_equal(looks_at_limit, rows[i].looks);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

static int releases;

static int play_release(struct engine *engine, const char *name, const char *prefix,
			int64_t *ret_seconds, struct err **err)
{
	(void)engine, (void)name, (void)prefix, (void)ret_seconds, (void)err;
	releases++;
	return 0;
}

static void fail_once(int number)
{
	(void)number;
	play.until_end = 0;
	play.end.exit = play.submits < 2 ? 75 : 0;
}

/* A next attempt may take its machines over. */
static void machines_are_not_given_back_before_a_retry(void **state)
{
	(void)state;
	create(NULL);
	releases = 0;
	play_ops.release = play_release;
	play.report = "{'v':1,'claimed':7,'host':'a','nonce':'n','ended':9}";
	play.at_describe = fail_once;
	drive_ends(EXIT_DONE);
	assert_int_equal(play.submits, 2);
	assert_int_equal(count_of("retry.scheduled"), 1);
	assert_int_equal(releases, 2); /* once the next one runs, and at the end */
}

static void an_engine_that_never_answers_is_given_up(void **state)
{
	(void)state;
	create_under_way(10, false, "'limits':{'unreachable_ms':300}");
	play.silent_describes = 1000000;
	drive_fails(EXIT_UNREACHABLE, "the engine does not answer",
		    "run r1 is safe; 'stoker resume r1' continues it");
	assert_string_equal(newest("driver.left", "reason"), "the engine does not answer");
	assert_int_equal(play.stops, 0);
	assert_int_equal(count_of("run.ended"), 0);
}

static void see_nothing(int number)
{
	(void)number;
	play.end.state = ENGINE_UNKNOWN;
	play.until_end = 0;
	snprintf(play.end.reason, sizeof play.end.reason, "the machine is not there");
}

static void a_job_out_of_sight_is_left(void **state)
{
	(void)state;
	create_under_way(10, false, "'limits':{'unreachable_ms':300}");
	play.at_describe = see_nothing;
	drive_ends(EXIT_UNREACHABLE);
	assert_string_equal(newest("attempt.lost", "reason"), "the machine is not there");
	assert_string_equal(newest("limit.reached", "limit"), "unreachable");
	assert_string_equal(newest("driver.left", "reason"),
			    "the job was out of sight for limits.unreachable");
	assert_int_equal(play.stops, 0);
}

static void lose_and_find(int number)
{
	play.end.state = number < 3 ? ENGINE_UNKNOWN : ENGINE_ENDED;
	play.until_end = number == 3;
}

static void a_job_that_is_seen_again_is_watched_on(void **state)
{
	(void)state;
	create_under_way(10, false, NULL);
	play.at_describe = lose_and_find;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over attempt.lost attempt.found attempt.ended run.ended");
}

/* ---- retries ---- */

static void fail_twice(int number)
{
	(void)number;
	play.until_end = 0;
	play.end.exit = play.submits < 3 ? 75 : 0;
}

static void a_failure_that_passes_is_retried_from_the_start(void **state)
{
	(void)state;
	create(NULL);
	play.at_describe = fail_twice;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
		    "attempt.ended retry.scheduled checkpoint.chosen attempt.intended "
		    "attempt.submitted attempt.ended retry.scheduled checkpoint.chosen "
		    "attempt.intended attempt.submitted attempt.ended run.ended");
	assert_string_equal(newest("checkpoint.chosen", "reason"),
			    "no complete checkpoint yet: from the start");
	assert_string_equal(newest("attempt.submitted", "job"), "stk-r1-train-3");
	assert_int_equal(play.submits, 3);
}

/* Leaves a checkpoint of attempt 1 that its agent has marked. */
static void mark_checkpoint(const char *run, int step)
{
	AUTO(auto_free) char *root = in_dir("ws/runs/r1/train-1/checkpoints");
	AUTO(auto_free) char *name = mem_format("checkpoint-%d", step);
	const struct ckpt_owner owner = { run, "n", 1, NULL, 0 };
	struct err *err = NULL;

	make_hf(root, name, step);
	{
		AUTO(checkpoint_list_release) struct ckpt_list list = found_in(root, "hf");

		for (size_t i = 0; i < list.count; i++)
			if (list.items[i].step == step)
				checkpoint_mark(CKPT_FOLDER(root), &list.items[i], &owner,
						(struct utc){ 1 }, &err);
	}
	assert_no_error(err);
}

static void save_and_fail(int number)
{
	if (number == 1) {
		mark_checkpoint("r1", 10);
		mark_checkpoint("r1", 20);
		mark_checkpoint("r2", 15); /* not of this run */
	}
	play.until_end = number < 2;
	play.end.exit = play.submits < 2 ? 75 : 0;
}

static void a_retry_goes_on_from_the_newest_checkpoint(void **state)
{
	AUTO(auto_free) char *url = NULL;

	(void)state;
	create(NULL);
	play.at_describe = save_and_fail;
	drive_ends(EXIT_DONE);
	url = in_dir("ws/runs/r1/train-1/checkpoints/checkpoint-20");
	assert_int_equal(count_of("checkpoint.complete"), 2);
	assert_int_equal(newest_int("checkpoint.complete", "step"), 20);
	assert_int_equal(newest_int("checkpoint.complete", "attempt"), 1);
	assert_string_equal(newest("checkpoint.complete", "url"), url);
	assert_int_equal(newest_int("checkpoint.chosen", "step"), 20);
	assert_string_equal(newest("checkpoint.chosen", "url"), url);
	assert_string_equal(newest("attempt.intended", "resumed_from"), url);
	remove_now("ws/runs/r1/train-2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_training_is_told_to_save_and_not_stopped_meanwhile),
		TEST(what_has_not_the_claim_is_stopped_at_once),
		TEST(after_the_time_to_save_the_job_is_stopped),
		TEST(a_job_that_cannot_be_told_is_not_stopped_within_seconds),
		TEST(a_job_that_cannot_be_told_is_stopped_after_seconds),
		TEST(a_stop_that_is_refused_is_asked_for_again),
		TEST(a_limit_that_is_reached_meanwhile_ends_the_run),
		TEST(a_look_that_fails_keeps_no_limit_of_the_run_waiting),
		TEST(machines_are_not_given_back_before_a_retry),
		TEST(an_engine_that_never_answers_is_given_up),
		TEST(a_job_out_of_sight_is_left),
		TEST(a_job_that_is_seen_again_is_watched_on),
		TEST(a_failure_that_passes_is_retried_from_the_start),
		TEST(a_retry_goes_on_from_the_newest_checkpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
