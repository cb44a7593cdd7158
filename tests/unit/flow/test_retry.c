/* Budgets, classes and backoff: what follows a failure, and when it is the last. */
#include "jobs/flow/internal.h"
#include "tests/unit/flow/story.h"

static void lose(struct story *s, int64_t attempt, enum failure_class class)
{
	int64_t now = s->flow.at.ms;

	story_at(s, now, ended(PHASE_TRAIN, attempt, class));
	if (s->flow.state != FLOW_TRAIN)
		return;
	story_wait(s, s->flow.until.ms);
	assert_int_equal(s->flow.attempt, attempt + 1);
	story_at(s, s->flow.at.ms, about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, attempt + 1));
}

struct class_case {
	enum failure_class class;
	enum action action;
	bool counts;
	enum flow_state after; /* one failure */
	int exit_code;
};

static const struct class_case classes[] = {
	{ CLASS_TRANSIENT_INFRA, ACTION_RETRY, true, FLOW_TRAIN, 0 },
	{ CLASS_CAPACITY, ACTION_WAIT, false, FLOW_TRAIN, 0 },
	{ CLASS_SPOT, ACTION_RETRY, false, FLOW_TRAIN, 0 },
	{ CLASS_HARDWARE_NODE, ACTION_EXCLUDE, true, FLOW_TRAIN, 0 },
	{ CLASS_COMM, ACTION_RETRY, true, FLOW_TRAIN, 0 },
	{ CLASS_USER_CODE, ACTION_STOP, true, FLOW_ENDED, 1 },
	{ CLASS_USER_CONFIG, ACTION_STOP, true, FLOW_ENDED, 1 },
	{ CLASS_QUOTA_PERMISSION, ACTION_STOP, true, FLOW_ENDED, 4 },
	{ CLASS_DATA, ACTION_FALL_BACK, true, FLOW_TRAIN, 0 },
	{ CLASS_COMPILE, ACTION_RETRY, true, FLOW_TRAIN, 0 },
	{ CLASS_TIMEOUT_HANG, ACTION_RETRY, true, FLOW_TRAIN, 0 },
	{ CLASS_STOPPED, ACTION_STOP, false, FLOW_ENDED, 6 },
	{ CLASS_UNKNOWN, ACTION_RETRY, true, FLOW_TRAIN, 0 },
};

static void each_class_has_its_action(void **state)
{
	struct flow_policy policy = story_policy();

	(void)state;
	assert_int_equal(sizeof classes / sizeof classes[0], CLASS_COUNT - 1);
	for (size_t i = 0; i < CLASS_COUNT - 1; i++) {
		const struct class_case *c = &classes[i];
		struct story s;

		assert_int_equal(c->class, i + 1);
		assert_int_equal(retry_rows[c->class].action, c->action);
		assert_int_equal(retry_rows[c->class].counts, c->counts);
		story_begin_training(&s, &policy);
		story_at(&s, MIN(1), ended(PHASE_TRAIN, 1, c->class));
		assert_int_equal(s.flow.state, c->after);
		assert_int_equal(s.flow.exit_code, c->exit_code);
		if (c->after == FLOW_TRAIN)
			assert_int_equal(s.journal[s.journalled - 1].kind,
					 s.flow.attempt_state == ATTEMPT_BACKOFF
						 ? EV_RETRY_SCHEDULED
						 : EV_ATTEMPT_INTENDED);
	}
}

static void the_attempts_of_the_spec_are_used_and_no_more(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.retry_attempts = 3;
	story_begin_training(&s, &policy);
	lose(&s, 1, CLASS_UNKNOWN);
	lose(&s, 2, CLASS_COMM);
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	lose(&s, 3, CLASS_TRANSIENT_INFRA);
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.outcome, OUTCOME_FAILED);
	assert_string_equal(
		s.flow.end_reason,
		"train failed 3 times (transient-infra last): retry.attempts is used up");
}

static void failures_without_a_new_checkpoint_in_a_row_end_the_run(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.retry_without_progress = 2;
	story_begin_training(&s, &policy);
	lose(&s, 1, CLASS_UNKNOWN);
	story_at(&s, s.flow.at.ms, checkpoint(2, 100, "ckpt/100"));
	lose(&s, 2, CLASS_UNKNOWN);
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	lose(&s, 3, CLASS_UNKNOWN);
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_string_equal(s.flow.end_reason,
			    "train failed 2 times in a row (unknown last) without a new "
			    "checkpoint: retry.without_progress is used up");
}

static void spot_and_capacity_use_up_no_budget(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.retry_attempts = 2;
	policy.retry_without_progress = 2;
	story_begin_training(&s, &policy);
	for (int attempt = 1; attempt <= 12; attempt++)
		lose(&s, attempt, attempt % 2 ? CLASS_SPOT : CLASS_CAPACITY);
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_int_equal(s.flow.budget[PHASE_TRAIN].failures, 0);
	lose(&s, 13, CLASS_UNKNOWN);
	assert_int_equal(s.flow.state, FLOW_TRAIN);
}

static void a_reclaimed_machine_waits_for_the_first_pause_too(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), ended(PHASE_TRAIN, 1, CLASS_SPOT));
	assert_int_equal(s.flow.attempt_state, ATTEMPT_BACKOFF);
	assert_int_equal(s.flow.until.ms - s.flow.at.ms, policy.backoff_first_ms);
}

static void a_compile_failure_gets_one_retry(void **state)
{
	struct flow_policy policy = story_policy();
	struct event last = ended(PHASE_PRECOMPILE, 2, CLASS_COMPILE);
	struct story s;

	(void)state;
	EVENT_SET_STR(&last, hint, "give it more memory");
	story_begin(&s, &policy);
	story_at(&s, 0, checked(CACHE_COLD));
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_COMPILE));
	assert_int_equal(s.flow.state, FLOW_VERIFY);
	story_at(&s, MIN(3), verified(1, false, "a graph failed"));
	story_at(&s, MIN(60), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 2));
	story_at(&s, MIN(61), last);
	story_at(&s, MIN(62), verified(2, false, "a graph failed"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 1);
	assert_int_equal(s.flow.end_class, CLASS_COMPILE);
	assert_int_equal(s.flow.end_phase, PHASE_VERIFY);
	assert_string_equal(s.flow.end_hint, "give it more memory");
}

static void a_compile_failure_that_the_cache_knows_nothing_of_is_none(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, 0, checked(CACHE_COLD));
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_COMPILE));
	story_at(&s, MIN(3), verified(1, true, NULL));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_true(s.flow.cache_proved);
	assert_int_equal(s.flow.budget[PHASE_PRECOMPILE].failures, 0);
}

/* The verdict has the failing graphs and the compiler's words; nothing is tried again. */
static void what_the_compiler_refuses_is_looked_at_once_and_not_retried(void **state)
{
	static const struct {
		enum failure_class class;
		int64_t failed;
		enum flow_state after;
	} cases[] = {
		{ CLASS_USER_CODE, 1, FLOW_VERIFY },
		{ CLASS_USER_CONFIG, 2, FLOW_VERIFY },
		{ CLASS_USER_CODE, 0, FLOW_ENDED },
		{ CLASS_QUOTA_PERMISSION, 1, FLOW_ENDED },
	};
	struct flow_policy policy = story_policy();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct event end = ended(PHASE_PRECOMPILE, 1, cases[i].class);
		struct story s;

		EVENT_SET(&end, failed, cases[i].failed);
		story_begin(&s, &policy);
		story_at(&s, 0, checked(CACHE_COLD));
		story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
		story_at(&s, MIN(2), end);
		assert_int_equal(s.flow.state, cases[i].after);
		if (cases[i].after != FLOW_VERIFY)
			continue;
		story_at(&s, MIN(3), verified(1, false, "a graph failed"));
		assert_int_equal(s.flow.state, FLOW_ENDED);
		assert_int_equal(s.flow.exit_code, 1);
		assert_int_equal(s.flow.end_class, cases[i].class);
		assert_non_null(strstr(s.flow.end_reason, "a graph failed"));
	}
}

static void failures_of_phase_1_do_not_count_in_training(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, 0, checked(CACHE_COLD));
	story_at(&s, MIN(1), ended(PHASE_PRECOMPILE, 1, CLASS_COMPILE));
	story_at(&s, MIN(2), verified(1, false, "a graph failed"));
	story_wait(&s, MIN(60));
	story_at(&s, MIN(61), ended(PHASE_PRECOMPILE, 2, CLASS_NONE));
	story_at(&s, MIN(62), verified(2, true, NULL));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_int_equal(s.flow.budget[s.flow.phase].failures_without_checkpoint, 0);
	assert_int_equal(s.flow.budget[s.flow.phase].of_class[CLASS_COMPILE], 0);
	assert_int_equal(s.flow.budget[PHASE_TRAIN].failures, 0);
	assert_int_equal(s.flow.attempts[PHASE_PRECOMPILE], 2);
	assert_int_equal(s.flow.attempt, 1);
}

static void the_end_carries_evidence_and_cure(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;
	struct event ev = ended(PHASE_TRAIN, 1, CLASS_USER_CONFIG);
	const struct event *end;

	(void)state;
	EVENT_SET_STR(&ev, evidence, "No module named 'x'");
	EVENT_SET_STR(&ev, hint, "install 'x'");
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), ev);
	end = &s.journal[s.journalled - 1];
	assert_int_equal(end->kind, EV_RUN_ENDED);
	assert_true(event_well_formed(end));
	assert_string_equal(end->evidence, "No module named 'x'");
	assert_string_equal(end->hint, "install 'x'");
	assert_int_equal(end->class, CLASS_USER_CONFIG);
	assert_int_equal(end->phase, PHASE_TRAIN);
	assert_string_equal(end->reason,
			    "train failed in attempt 1: user-config, which a retry does not cure");
}

static int64_t delay_of(const struct flow_policy *policy, int64_t seed, int64_t failures)
{
	struct flow flow;

	flow_init(&flow, policy);
	flow.seed = seed;
	flow.last_class = CLASS_UNKNOWN;
	flow.budget[flow.phase].backoff_failures = failures + 1;
	return retry_wait_ms(&flow);
}

static void the_backoff_is_jittered_and_bounded(void **state)
{
	struct flow_policy policy = story_policy();
	int64_t ceiling = policy.backoff_first_ms, highest = 0;
	int distinct = 0;

	(void)state;
	for (int64_t failures = 0; failures < 70; failures++) {
		int64_t last = -1;

		for (int64_t seed = 0; seed < 200; seed++) {
			int64_t delay = delay_of(&policy, seed, failures);

			assert_true(delay >= policy.backoff_first_ms && delay <= ceiling);
			assert_int_equal(delay, delay_of(&policy, seed, failures));
			distinct += delay != last;
			highest = delay > highest ? delay : highest;
			last = delay;
		}
		ceiling = ceiling * 2 > policy.backoff_max_ms ? policy.backoff_max_ms : ceiling * 2;
	}
	assert_true(distinct > 13000);
	assert_true(highest > policy.backoff_max_ms * 9 / 10);
}

/* The pauses of many seeds fill the range, to its ends: from the first (or the longest, if that is
 * less) to the first doubled with each failure before, and never beyond the longest. */
static void pauses_fill_the_range_of_the_spec(void **state)
{
	struct flow_policy policy = story_policy();

	(void)state;
	for (policy.backoff_first_ms = 1; policy.backoff_first_ms < 8; policy.backoff_first_ms++) {
		for (policy.backoff_max_ms = 1; policy.backoff_max_ms < 16;
		     policy.backoff_max_ms++) {
			int64_t ceiling = policy.backoff_first_ms;

			for (int64_t failures = 0; failures < 5; failures++, ceiling *= 2) {
				int64_t low = INT64_MAX, high = 0, max = policy.backoff_max_ms;

				for (int64_t seed = 0; seed < 250; seed++) {
					int64_t delay = delay_of(&policy, seed, failures);

					low = delay < low ? delay : low;
					high = delay > high ? delay : high;
				}
				assert_int_equal(high, ceiling < max ? ceiling : max);
				assert_int_equal(low, policy.backoff_first_ms < max
							      ? policy.backoff_first_ms
							      : max);
			}
		}
	}
}

/* Machines are short for longer than a service is busy. */
static void a_wait_for_machines_begins_at_eight_times_the_first_pause(void **state)
{
	struct flow_policy policy = story_policy();
	int64_t high = 0;

	(void)state;
	policy.backoff_first_ms = 2;
	policy.backoff_max_ms = 1000;
	for (int64_t seed = 0; seed < 250; seed++) {
		struct flow flow;
		int64_t delay;

		flow_init(&flow, &policy);
		flow.seed = seed;
		flow.last_class = CLASS_CAPACITY;
		flow.budget[flow.phase].backoff_failures = 1;
		delay = retry_wait_ms(&flow);
		high = delay > high ? delay : high;
	}
	assert_int_equal(high, 16);
}

static struct event signed_failure(const char *signature)
{
	struct event ev = ended(PHASE_TRAIN, 1, CLASS_UNKNOWN);

	EVENT_SET_STR(&ev, signature, signature);
	return ev;
}

/* Causes are recognised after others came between; of more than there is room for, the one that was
 * seen longest ago is forgotten. */
static void causes_are_remembered_while_there_is_room(void **state)
{
	static const char *const causes[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
	struct event ev = signed_failure(""), none = ended(PHASE_TRAIN, 1, CLASS_UNKNOWN);
	struct flow_policy policy = story_policy();
	struct flow flow;
	struct flow_budget *budget;

	(void)state;
	flow_init(&flow, &policy);
	flow.phase = PHASE_TRAIN;
	budget = &flow.budget[PHASE_TRAIN];
	/* without a signature there is nothing to recognise */
	retry_remember(budget, &ev);
	retry_remember(budget, &none);
	assert_int_equal(retry_times(&flow, &ev), 0);
	assert_int_equal(retry_times(&flow, &none), 0);
	for (int64_t round = 1; round <= 2; round++) {
		for (size_t i = 0; i < FLOW_CAUSES; i++) {
			ev = signed_failure(causes[i]);
			assert_int_equal(retry_times(&flow, &ev), round - 1);
			budget->failures++;
			retry_remember(budget, &ev);
			assert_int_equal(retry_times(&flow, &ev), round);
		}
	}
	ev = signed_failure("c");
	budget->failures++;
	retry_remember(budget, &ev);
	/* "a" was seen longest ago, then "b"; "c" just now */
	ev = signed_failure("i");
	budget->failures++;
	retry_remember(budget, &ev);
	assert_int_equal(retry_times(&flow, &ev), 1);
	for (size_t i = 0; i < FLOW_CAUSES; i++) {
		ev = signed_failure(causes[i]);
		assert_int_equal(retry_times(&flow, &ev), i == 0 ? 0 : i == 2 ? 3 : 2);
	}
	ev = signed_failure("j");
	budget->failures++;
	retry_remember(budget, &ev);
	ev = signed_failure("b");
	assert_int_equal(retry_times(&flow, &ev), 0);
}

static void an_attempt_had_machines_if_anything_shows_it(void **state)
{
	struct event ev = ended(PHASE_TRAIN, 1, CLASS_UNKNOWN);
	struct flow flow = { .claimed = true };

	(void)state;
	assert_true(retry_had_machines(&flow, &ev));
	flow.claimed = false;
	assert_false(retry_had_machines(&flow, &ev));
	EVENT_SET(&ev, exit, 0);
	assert_true(retry_had_machines(&flow, &ev));
	ev = ended(PHASE_TRAIN, 1, CLASS_UNKNOWN);
	EVENT_SET(&ev, started, 1000);
	assert_true(retry_had_machines(&flow, &ev));
}

/* limits.attempts bounds the attempts that cost. */
static void only_attempts_with_machines_use_up_their_number(void **state)
{
	struct event ev = ended(PHASE_TRAIN, 1, CLASS_SPOT);
	struct flow_policy policy = story_policy();
	struct flow flow;

	(void)state;
	policy.attempts = 1;
	flow_init(&flow, &policy);
	flow.phase = PHASE_TRAIN;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_GOES_ON);
	flow.claimed = true;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_LIMIT);
	flow.policy.attempts = 2;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_GOES_ON);
	flow.machines = 1;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_LIMIT);
	flow.policy.attempts = 0;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_GOES_ON);
}

/* Machines that are taken away are nobody's failure, however many came before. */
static void a_class_that_does_not_count_ends_no_budget(void **state)
{
	struct event spot = ended(PHASE_TRAIN, 1, CLASS_SPOT),
		     comm = ended(PHASE_TRAIN, 1, CLASS_COMM);
	struct flow_policy policy = story_policy();
	struct flow flow;

	(void)state;
	flow_init(&flow, &policy);
	flow.phase = PHASE_TRAIN;
	flow.budget[PHASE_TRAIN].failures = policy.retry_attempts - 1;
	assert_int_equal(retry_end_after(&flow, &comm), RETRY_ATTEMPTS);
	assert_int_equal(retry_end_after(&flow, &spot), RETRY_GOES_ON);
	flow.budget[PHASE_TRAIN].failures = 0;
	flow.budget[PHASE_TRAIN].failures_without_checkpoint = policy.retry_without_progress - 1;
	assert_int_equal(retry_end_after(&flow, &comm), RETRY_NO_PROGRESS);
	assert_int_equal(retry_end_after(&flow, &spot), RETRY_GOES_ON);
}

/* Bad data may be a damaged checkpoint: then the one before it is tried. */
static void bad_data_are_a_checkpoints_only_where_it_was_read_and_none_was_written(void **state)
{
	struct flow_policy policy = story_policy();
	struct event ev = ended(PHASE_TRAIN, 1, CLASS_DATA);
	struct flow flow;

	(void)state;
	flow_init(&flow, &policy);
	flow.phase = PHASE_TRAIN;
	flow.budget[PHASE_TRAIN].of_class[CLASS_DATA] = 1;
	flow.budget[PHASE_TRAIN].of_class[CLASS_COMPILE] = 1;
	flow.budget[PHASE_PRECOMPILE].of_class[CLASS_DATA] = 1;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_OF_CLASS);
	snprintf(flow.resumed_from, sizeof flow.resumed_from, "c");
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_GOES_ON);
	flow.saved = true;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_OF_CLASS);
	flow.saved = false;
	flow.phase = PHASE_PRECOMPILE;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_OF_CLASS);
	flow.phase = PHASE_TRAIN;
	ev = ended(PHASE_TRAIN, 1, CLASS_COMPILE);
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_OF_CLASS);
	flow.budget[PHASE_TRAIN].of_class[CLASS_COMPILE] = 0;
	assert_int_equal(retry_end_after(&flow, &ev), RETRY_GOES_ON);
}

static void odd_backoffs_neither_overflow_nor_wait(void **state)
{
	struct flow_policy policy = story_policy();

	(void)state;
	policy.backoff_first_ms = 0;
	assert_int_equal(delay_of(&policy, 1, 50), 0);
	policy.backoff_first_ms = INT64_MAX / 2;
	policy.backoff_max_ms = INT64_MAX;
	assert_true(delay_of(&policy, 1, 50) >= 0);
	policy.backoff_max_ms = 10; /* less than the first */
	assert_true(delay_of(&policy, 1, 50) <= 10);
	policy.backoff_max_ms = -1;
	assert_int_equal(delay_of(&policy, 1, 50), 0);
}

static void nonces_differ_by_seed_phase_and_attempt(void **state)
{
	struct flow_policy policy = story_policy();
	char seen[24][FLOW_ID_MAX];
	int count = 0;

	(void)state;
	for (int seed = 1; seed <= 3; seed++) {
		struct story s;

		story_begin(&s, &policy);
		s.flow.seed = seed;
		s.flow.state = FLOW_TRAIN;
		for (int phase = 0; phase < 2; phase++) {
			s.flow.phase = phase ? PHASE_TRAIN : PHASE_PRECOMPILE;
			for (int attempt = 0; attempt < 4; attempt++) {
				s.flow.attempts[s.flow.phase] = attempt;
				s.flow.chosen = s.flow.key_held = true;
				flow_effects(&s.flow, s.flow.at, &s.effects);
				assert_int_equal(s.effects.list[0].kind, EFFECT_RECORD);
				snprintf(seen[count++], FLOW_ID_MAX, "%s",
					 s.effects.list[0].event.nonce);
			}
		}
	}
	for (int i = 0; i < count; i++) {
		assert_int_equal(strlen(seen[i]), 26);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	}
}

static void a_long_run_id_still_makes_a_whole_job_name(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	memset(policy.run, 'r', 40);
	policy.run[40] = '\0';
	story_begin(&s, &policy);
	story_at(&s, 0, checked(CACHE_COLD));
	assert_string_equal(s.flow.job,
			    "stk-rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr-precompile-1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_class_has_its_action),
		cmocka_unit_test(what_the_compiler_refuses_is_looked_at_once_and_not_retried),
		cmocka_unit_test(the_attempts_of_the_spec_are_used_and_no_more),
		cmocka_unit_test(failures_without_a_new_checkpoint_in_a_row_end_the_run),
		cmocka_unit_test(spot_and_capacity_use_up_no_budget),
		cmocka_unit_test(a_reclaimed_machine_waits_for_the_first_pause_too),
		cmocka_unit_test(a_compile_failure_gets_one_retry),
		cmocka_unit_test(a_compile_failure_that_the_cache_knows_nothing_of_is_none),
		cmocka_unit_test(failures_of_phase_1_do_not_count_in_training),
		cmocka_unit_test(the_end_carries_evidence_and_cure),
		cmocka_unit_test(the_backoff_is_jittered_and_bounded),
		cmocka_unit_test(pauses_fill_the_range_of_the_spec),
		cmocka_unit_test(a_wait_for_machines_begins_at_eight_times_the_first_pause),
		cmocka_unit_test(causes_are_remembered_while_there_is_room),
		cmocka_unit_test(a_class_that_does_not_count_ends_no_budget),
		cmocka_unit_test(an_attempt_had_machines_if_anything_shows_it),
		cmocka_unit_test(only_attempts_with_machines_use_up_their_number),
		cmocka_unit_test(
			bad_data_are_a_checkpoints_only_where_it_was_read_and_none_was_written),
		cmocka_unit_test(odd_backoffs_neither_overflow_nor_wait),
		cmocka_unit_test(nonces_differ_by_seed_phase_and_attempt),
		cmocka_unit_test(a_long_run_id_still_makes_a_whole_job_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
