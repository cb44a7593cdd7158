/* Whole runs, told as stories: what the machine does, and in which order. */
#include "tests/unit/flow/story.h"

static void a_cold_cache_is_filled_proved_and_then_trained_on(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(0), checked(CACHE_COLD));
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(2), about(EV_ATTEMPT_CLAIMED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(12), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(14), verified(1, true, NULL));
	story_at(&s, MIN(15), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(16), about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	story_at(&s, MIN(90), ended(PHASE_TRAIN, 1, CLASS_NONE));
	STORY(&s, "00:00 new -> planned\n"
		  "00:00   check the cache\n"
		  "00:00 planned -> precompile\n"
		  "00:00   claim the graph key, and look again\n"
		  "00:00   record attempt.intended precompile 1\n"
		  "00:00 precompile 1 intended\n"
		  "00:00   submit stk-r1-precompile-1\n"
		  "00:01 precompile 1 submitted\n"
		  "00:01   watch precompile 1\n"
		  "00:02 precompile 1 running\n"
		  "00:12 precompile -> verify\n"
		  "00:12   verify the cache\n"
		  "00:14 verify -> train\n"
		  "00:14   record attempt.intended train 1\n"
		  "00:14 train 1 intended\n"
		  "00:14   submit stk-r1-train-1\n"
		  "00:15 train 1 submitted\n"
		  "00:15   watch train 1\n"
		  "00:16 train 1 running\n"
		  "01:30 train -> ending\n"
		  "01:30   record run.ended succeeded 0: training succeeded\n"
		  "01:30 ending -> ended\n"
		  "01:30   done\n");
}

static void a_warm_cache_needs_no_precompile_job(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_WARM));
	assert_true(s.flow.cache_proved);
	STORY(&s, "00:00 new -> planned\n"
		  "00:00   check the cache\n"
		  "00:01 planned -> train\n"
		  "00:01   record attempt.intended train 1\n"
		  "00:01 train 1 intended\n"
		  "00:01   submit stk-r1-train-1\n");
}

static void without_a_compile_phase_training_begins_at_once(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.compiles = false;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_NONE));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_false(s.flow.cache_proved);
}

static void no_verdict_on_a_cache_that_the_spec_wants_means_cold(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_NONE));
	assert_int_equal(s.flow.state, FLOW_PRECOMPILE);
}

static void training_resumes_from_the_newest_checkpoint_after_node_loss(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(30), checkpoint(1, 2000, "ckpt/2000"));
	story_at(&s, MIN(60), checkpoint(1, 4000, "ckpt/4000"));
	story_at(&s, MIN(65), ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	story_wait(&s, MIN(67));
	story_at(&s, MIN(67), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
	STORY(&s, "01:05 train 1 failed\n"
		  "01:05   record retry.scheduled train exclude (hardware-node: failure 1 of 20)\n"
		  "01:05 train 1 backoff\n"
		  "01:05   wait\n"
		  "01:07   choose a checkpoint\n"
		  "01:07   record attempt.intended train 2 resume=ckpt/4000\n"
		  "01:07 train 2 intended\n"
		  "01:07   submit stk-r1-train-2 resume=ckpt/4000\n"
		  "01:07 train 2 submitted\n"
		  "01:07   watch train 2\n");
}

static void a_submission_without_an_answer_is_looked_for_before_it_is_repeated(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	s.len = 0;
	story_at(&s, MIN(0), checked(CACHE_WARM));
	story_at(&s, MIN(1), about(EV_ATTEMPT_UNCERTAIN, PHASE_TRAIN, 1));
	story_at(&s, MIN(2), about(EV_ATTEMPT_MISSING, PHASE_TRAIN, 1));
	story_at(&s, MIN(3), about(EV_ATTEMPT_UNCERTAIN, PHASE_TRAIN, 1));
	story_at(&s, MIN(4), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	STORY(&s, "00:00 planned -> train\n"
		  "00:00   record attempt.intended train 1\n"
		  "00:00 train 1 intended\n"
		  "00:00   submit stk-r1-train-1\n"
		  "00:01 train 1 uncertain\n"
		  "00:01   find train 1\n"
		  "00:02 train 1 intended\n"
		  "00:02   submit stk-r1-train-1\n"
		  "00:03 train 1 uncertain\n"
		  "00:03   find train 1\n"
		  "00:04 train 1 submitted\n"
		  "00:04   watch train 1\n");
}

static void a_new_driver_finds_an_intent_before_it_submits(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	s.len = 0;
	story_at(&s, MIN(0), checked(CACHE_WARM));
	story_at(&s, MIN(9), took_over(2));
	assert_int_equal(s.flow.epoch, 2);
	STORY(&s, "00:00 planned -> train\n"
		  "00:00   record attempt.intended train 1\n"
		  "00:00 train 1 intended\n"
		  "00:00   submit stk-r1-train-1\n"
		  "00:09 train 1 uncertain\n"
		  "00:09   find train 1\n");
}

static void a_new_driver_goes_on_watching_what_runs(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(9), took_over(2));
	assert_int_equal(s.flow.attempt_state, ATTEMPT_RUNNING);
	assert_int_equal(s.effects.list[0].kind, EFFECT_WATCH);
}

static void an_attempt_that_cannot_be_seen_is_waited_for(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	story_wait(&s, MIN(500));
	story_at(&s, MIN(501), about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	STORY(&s, "00:01 train 1 lost\n"
		  "08:21 train 1 running\n");
}

static void an_attempt_lost_in_the_queue_is_found_in_the_queue(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(0), checked(CACHE_WARM));
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(2), about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	story_at(&s, MIN(3), about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	assert_int_equal(s.flow.attempt_state, ATTEMPT_SUBMITTED);
	story_at(&s, MIN(4), about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	story_at(&s, MIN(5), about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	assert_int_equal(s.flow.attempt_state, ATTEMPT_RUNNING);
}

static void an_incomplete_cache_is_precompiled_once_more_and_then_refused(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	s.len = 0;
	story_at(&s, MIN(0), checked(CACHE_COLD));
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(3), verified(1, false, "1 of 3 graphs is missing"));
	story_at(&s, MIN(4), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 2));
	story_at(&s, MIN(5), ended(PHASE_PRECOMPILE, 2, CLASS_NONE));
	story_at(&s, MIN(6), verified(1, true, NULL)); /* late: of the first attempt */
	story_at(&s, MIN(7), verified(2, false, "1 of 3 graphs is missing"));
	STORY(&s, "00:00 planned -> precompile\n"
		  "00:00   claim the graph key, and look again\n"
		  "00:00   record attempt.intended precompile 1\n"
		  "00:00 precompile 1 intended\n"
		  "00:00   submit stk-r1-precompile-1\n"
		  "00:01 precompile 1 submitted\n"
		  "00:01   watch precompile 1\n"
		  "00:02 precompile -> verify\n"
		  "00:02   verify the cache\n"
		  "00:03 verify -> precompile\n"
		  "00:03   claim the graph key\n"
		  "00:03   record attempt.intended precompile 2\n"
		  "00:03 precompile 2 intended\n"
		  "00:03   submit stk-r1-precompile-2\n"
		  "00:04 precompile 2 submitted\n"
		  "00:04   watch precompile 2\n"
		  "00:05 precompile -> verify\n"
		  "00:05   verify the cache\n"
		  "00:07 verify -> ending\n"
		  "00:07   record run.ended refused 5: the cache is not complete: 1 of 3 graphs is "
		  "missing\n"
		  "00:07 ending -> ended\n"
		  "00:07   done\n");
	assert_int_equal(s.flow.end_phase, PHASE_VERIFY);
}

static void an_incomplete_cache_is_trained_on_where_the_spec_says_so(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.train_on_incomplete = true;
	story_begin(&s, &policy);
	story_at(&s, MIN(0), checked(CACHE_COLD));
	for (int attempt = 1; attempt <= 2; attempt++) {
		story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, attempt));
		story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, attempt, CLASS_NONE));
		story_at(&s, MIN(3), verified(attempt, false, NULL));
	}
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_false(s.flow.cache_proved);
}

static void a_stop_waits_for_the_attempt_to_end(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), stop("out of budget"));
	story_at(&s, MIN(2), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "00:01   stop train 1\n"
		  "00:01   watch train 1\n"
		  "00:02 train -> ending\n"
		  "00:02   record run.ended stopped 6: stopped on request: out of budget\n"
		  "00:02 ending -> ended\n"
		  "00:02   done\n");
}

static void a_training_that_ends_well_while_it_is_stopped_has_succeeded(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), stop(NULL));
	story_at(&s, MIN(2), ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_int_equal(s.flow.outcome, OUTCOME_SUCCEEDED);
	assert_int_equal(s.flow.exit_code, 0);
}

static void a_precompile_that_ends_well_while_it_is_stopped_is_stopped(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(0), checked(CACHE_COLD));
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(2), stop(NULL));
	story_at(&s, MIN(3), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	assert_int_equal(s.flow.outcome, OUTCOME_STOPPED);
	assert_int_equal(s.flow.exit_code, 6);
	assert_string_equal(s.flow.end_reason, "stopped on request");
}

static void a_stop_looks_for_an_intent_before_it_gives_it_up(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	s.len = 0;
	story_at(&s, MIN(0), checked(CACHE_WARM));
	story_at(&s, MIN(1), stop(NULL));
	story_at(&s, MIN(2), about(EV_ATTEMPT_MISSING, PHASE_TRAIN, 1));
	STORY(&s, "00:00 planned -> train\n"
		  "00:00   record attempt.intended train 1\n"
		  "00:00 train 1 intended\n"
		  "00:00   submit stk-r1-train-1\n"
		  "00:01 train 1 uncertain\n"
		  "00:01   find train 1\n"
		  "00:02 train -> ending\n"
		  "00:02   record run.ended stopped 6: stopped on request\n"
		  "00:02 ending -> ended\n"
		  "00:02   done\n");
}

/* The driver had submitted when the request took the number of its record. */
static void a_stop_that_overtakes_a_submission_loses_no_job(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(0), checked(CACHE_WARM));
	story_at(&s, MIN(1), stop(NULL));
	s.len = 0;
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	STORY(&s, "00:01 train 1 submitted\n"
		  "00:01   stop train 1\n"
		  "00:01   watch train 1\n");
}

static void a_stop_before_the_first_attempt_ends_the_run_at_once(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), stop("changed my mind"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 6);
	assert_false(EVENT_HAS(&s.journal[s.journalled - 1], phase));
	assert_string_equal(s.flow.end_reason, "stopped on request: changed my mind");
}

static void a_job_stopped_by_someone_else_is_not_started_again(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "00:01 train -> ending\n"
		  "00:01   record run.ended stopped 6: the job was stopped on the engine, not by "
		  "stoker\n"
		  "00:01 ending -> ended\n"
		  "00:01   done\n");
}

static void news_of_another_attempt_changes_nothing(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;
	struct flow before;

	(void)state;
	story_begin_training(&s, &policy);
	before = s.flow;
	story_at(&s, MIN(0), ended(PHASE_TRAIN, 2, CLASS_USER_CODE));
	story_at(&s, MIN(0), ended(PHASE_PRECOMPILE, 1, CLASS_USER_CODE));
	story_at(&s, MIN(0), about(EV_ATTEMPT_LOST, PHASE_TRAIN, 7));
	story_at(&s, MIN(0), about(EV_ATTEMPT_INTENDED, PHASE_TRAIN, 2));
	story_at(&s, MIN(0), checkpoint(2, 100, "ckpt/orphan"));
	assert_memory_equal(&before, &s.flow, sizeof before);
	STORY(&s, "");
}

static void checkpoints_never_go_backwards(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), checkpoint(1, 200, "ckpt/200"));
	story_at(&s, MIN(2), checkpoint(1, 100, "ckpt/100"));
	story_at(&s, MIN(2), checkpoint(1, 200, "ckpt/other"));
	assert_int_equal(s.flow.checkpoint_step, 200);
	assert_string_equal(s.flow.checkpoint_url, "ckpt/200");
}

static void bad_data_falls_back_to_the_checkpoint_before(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), checkpoint(1, 100, "ckpt/100"));
	story_at(&s, MIN(2), checkpoint(1, 200, "ckpt/200"));
	story_at(&s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_DATA));
	story_wait(&s, MIN(9));
	assert_string_equal(s.flow.resumed_from, "ckpt/100");
	story_at(&s, MIN(9), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
	story_at(&s, MIN(10), ended(PHASE_TRAIN, 2, CLASS_DATA));
	story_wait(&s, MIN(30));
	assert_string_equal(s.flow.resumed_from, "");
	/* Nothing is left to blame but the input. */
	story_at(&s, MIN(30), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 3));
	story_at(&s, MIN(31), ended(PHASE_TRAIN, 3, CLASS_DATA));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 1);
	assert_string_equal(s.flow.end_reason, "train failed 3 times: data, which gets 1 retry");
}

static void time_never_runs_backwards(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(100), checkpoint(1, 100, "ckpt/100"));
	story_at(&s, MIN(50), ended(PHASE_TRAIN, 1, CLASS_UNKNOWN));
	assert_int_equal(s.flow.at.ms, MIN(100));
	assert_true(s.flow.until.ms >= MIN(100));
}

static void a_retry_waits_no_longer_than_the_longest_backoff(void **state)
{
	struct flow_policy policy = story_policy();
	struct event retry = event_of(EV_RETRY_SCHEDULED);
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	s.flow.attempt_state = ATTEMPT_FAILED;
	EVENT_SET(&retry, phase, PHASE_TRAIN);
	EVENT_SET(&retry, delay, 1);
	EVENT_SET(&retry, until, INT64_MAX); /* from a clock gone mad */
	EVENT_SET(&retry, action, ACTION_RETRY);
	flow_apply(&s.flow, &retry);
	assert_int_equal(s.flow.attempt_state, ATTEMPT_BACKOFF);
	assert_int_equal(s.flow.until.ms, MIN(4));
}

static void long_texts_are_cut_and_stay_utf8(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;
	char text[4001], url[FLOW_URL_MAX + 1];
	struct event ev = ended(PHASE_TRAIN, 1, CLASS_USER_CODE);
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof text - 1; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[sizeof text - 1] = '\0';
	memset(url, 'u', sizeof url - 1);
	url[sizeof url - 1] = '\0';
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), checkpoint(1, 100, url));
	assert_int_equal(s.flow.checkpoint_step, -1); /* half a URL is no URL */
	story_at(&s, MIN(1), stop(text));
	EVENT_SET_STR(&ev, evidence, text);
	EVENT_SET_STR(&ev, hint, text);
	story_at(&s, MIN(1), ev);
	len = strlen(s.flow.end_evidence);
	assert_int_equal(len, sizeof s.flow.end_evidence - 2);
	assert_int_equal((unsigned char)s.flow.end_evidence[len - 1], 0xa4);
	assert_true(strlen(s.flow.end_hint) < sizeof s.flow.end_hint);
	assert_true(strlen(s.flow.stop_reason) < sizeof s.flow.stop_reason);
}

static void an_event_that_lacks_what_it_needs_means_nothing(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;
	struct event ev = event_of(EV_ATTEMPT_ENDED);

	(void)state;
	story_begin_training(&s, &policy);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	assert_int_equal(flow_rule_find(&s.flow, &ev), -1);
	EVENT_SET(&ev, class, CLASS_COUNT);
	assert_int_equal(flow_rule_find(&s.flow, &ev), -1);
	ev.kind = EV_COUNT;
	assert_int_equal(flow_rule_find(&s.flow, &ev), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cold_cache_is_filled_proved_and_then_trained_on),
		cmocka_unit_test(a_warm_cache_needs_no_precompile_job),
		cmocka_unit_test(without_a_compile_phase_training_begins_at_once),
		cmocka_unit_test(no_verdict_on_a_cache_that_the_spec_wants_means_cold),
		cmocka_unit_test(training_resumes_from_the_newest_checkpoint_after_node_loss),
		cmocka_unit_test(
			a_submission_without_an_answer_is_looked_for_before_it_is_repeated),
		cmocka_unit_test(a_new_driver_finds_an_intent_before_it_submits),
		cmocka_unit_test(a_new_driver_goes_on_watching_what_runs),
		cmocka_unit_test(an_attempt_that_cannot_be_seen_is_waited_for),
		cmocka_unit_test(an_attempt_lost_in_the_queue_is_found_in_the_queue),
		cmocka_unit_test(an_incomplete_cache_is_precompiled_once_more_and_then_refused),
		cmocka_unit_test(an_incomplete_cache_is_trained_on_where_the_spec_says_so),
		cmocka_unit_test(a_stop_waits_for_the_attempt_to_end),
		cmocka_unit_test(a_training_that_ends_well_while_it_is_stopped_has_succeeded),
		cmocka_unit_test(a_precompile_that_ends_well_while_it_is_stopped_is_stopped),
		cmocka_unit_test(a_stop_looks_for_an_intent_before_it_gives_it_up),
		cmocka_unit_test(a_stop_that_overtakes_a_submission_loses_no_job),
		cmocka_unit_test(a_stop_before_the_first_attempt_ends_the_run_at_once),
		cmocka_unit_test(a_job_stopped_by_someone_else_is_not_started_again),
		cmocka_unit_test(news_of_another_attempt_changes_nothing),
		cmocka_unit_test(checkpoints_never_go_backwards),
		cmocka_unit_test(bad_data_falls_back_to_the_checkpoint_before),
		cmocka_unit_test(time_never_runs_backwards),
		cmocka_unit_test(a_retry_waits_no_longer_than_the_longest_backoff),
		cmocka_unit_test(long_texts_are_cut_and_stay_utf8),
		cmocka_unit_test(an_event_that_lacks_what_it_needs_means_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
