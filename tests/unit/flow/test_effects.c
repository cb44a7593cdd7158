/*
 * The effects that a driver is asked for, in full: the fields of an order, the words of a record,
 * and orders that must not be given at all. A driver does them without a question.
 */
#include "tests/unit/flow/story.h"

#include "jobs/base/exitcode.h"
#include "jobs/flow/internal.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct flow flow;
static struct effects effects;

static void place(enum flow_state state, enum attempt_state attempt_state)
{
	struct flow_policy policy = story_policy();

	policy.jit_graphs = -1;
	flow_init(&flow, &policy);
	flow.at.ms = 1000;
	flow.state = state;
	flow.attempt_state = attempt_state;
	flow.phase = state == FLOW_PRECOMPILE ? PHASE_PRECOMPILE : PHASE_TRAIN;
	flow.attempt = flow.attempts[flow.phase] = 1;
	snprintf(flow.job, sizeof flow.job, "job");
}

/* Returns the effect of that kind, NULL if it is not asked for. */
static const struct effect *asked(enum effect_kind kind)
{
	flow_effects(&flow, flow.at, &effects);
	for (int i = 0; i < effects.count; i++)
		if (effects.list[i].kind == kind)
			return &effects.list[i];
	return NULL;
}

static const struct event *recorded(enum event_kind kind)
{
	flow_effects(&flow, flow.at, &effects);
	for (int i = 0; i < effects.count; i++)
		if (effects.list[i].kind == EFFECT_RECORD && effects.list[i].event.kind == kind)
			return &effects.list[i].event;
	return NULL;
}

static void the_cache_is_verified_in_a_phase_of_its_own(void **state)
{
	(void)state;
	place(FLOW_VERIFY, ATTEMPT_NONE);
	assert_int_equal(asked(EFFECT_VERIFY)->phase, PHASE_VERIFY);
	place(FLOW_TRAIN, ATTEMPT_UNCERTAIN);
	assert_int_equal(asked(EFFECT_FIND)->phase, PHASE_TRAIN);
}

/* Compilers that ran out of memory together get half as many, and one at least. */
static void a_precompile_after_a_lack_of_memory_runs_with_half_the_workers(void **state)
{
	static const int64_t rows[][2] = { { 0, 1 }, { 1, 1 }, { 2, 1 }, { 3, 1 },
					   { 4, 2 }, { 5, 2 }, { 8, 4 }, { 64, 32 } };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		place(FLOW_PRECOMPILE, ATTEMPT_NONE);
		flow.key_held = flow.fewer_workers = true;
		flow.policy.compile_workers = rows[i][0];
		assert_true(EVENT_HAS(recorded(EV_ATTEMPT_INTENDED), workers));
		assert_int_equal(recorded(EV_ATTEMPT_INTENDED)->workers, rows[i][1]);
	}
	flow.fewer_workers = false;
	assert_false(EVENT_HAS(recorded(EV_ATTEMPT_INTENDED), workers));
	/* A training has workers of its own. */
	place(FLOW_TRAIN, ATTEMPT_NONE);
	flow.fewer_workers = flow.chosen = true;
	assert_false(EVENT_HAS(recorded(EV_ATTEMPT_INTENDED), workers));
}

/* The job is found again by its name, whatever becomes of the driver. */
static void an_intent_names_the_job(void **state)
{
	(void)state;
	place(FLOW_TRAIN, ATTEMPT_NONE);
	flow.chosen = true;
	assert_string_equal(recorded(EV_ATTEMPT_INTENDED)->job, "stk-r1-train-2");
	assert_string_equal(asked(EFFECT_RECORD)->job, "stk-r1-train-2");
	assert_int_equal(asked(EFFECT_RECORD)->attempt, 2);
}

/* Step 0 is a step. */
static void a_training_goes_on_from_any_checkpoint_that_is_complete(void **state)
{
	(void)state;
	for (int64_t step = -1; step < 3; step++) {
		place(FLOW_TRAIN, ATTEMPT_NONE);
		flow.chosen = true;
		flow.checkpoint_step = step;
		snprintf(flow.checkpoint_url, sizeof flow.checkpoint_url, "u");
		assert_int_equal(EVENT_HAS(recorded(EV_ATTEMPT_INTENDED), resumed_from), step >= 0);
		assert_int_equal(EVENT_HAS(recorded(EV_ATTEMPT_INTENDED), step), step >= 0);
		if (step >= 0)
			assert_int_equal(recorded(EV_ATTEMPT_INTENDED)->step, step);
		/* Phase 1 saves zeros. */
		place(FLOW_PRECOMPILE, ATTEMPT_NONE);
		flow.key_held = true;
		flow.checkpoint_step = step;
		assert_false(EVENT_HAS(recorded(EV_ATTEMPT_INTENDED), resumed_from));
	}
}

static void a_submission_carries_what_the_attempt_was_intended_with(void **state)
{
	(void)state;
	place(FLOW_TRAIN, ATTEMPT_INTENDED);
	assert_null(asked(EFFECT_SUBMIT)->resumed_from);
	assert_null(asked(EFFECT_SUBMIT)->tolerated);
	snprintf(flow.resumed_from, sizeof flow.resumed_from, "u");
	snprintf(flow.other_compiler, sizeof flow.other_compiler, "c");
	flow.workers = 3;
	assert_string_equal(asked(EFFECT_SUBMIT)->resumed_from, "u");
	assert_string_equal(asked(EFFECT_SUBMIT)->tolerated, "c");
	assert_int_equal(asked(EFFECT_SUBMIT)->workers, 3);
}

static void a_pause_says_whether_it_counts(void **state)
{
	(void)state;
	place(FLOW_TRAIN, ATTEMPT_FAILED);
	flow.last_class = CLASS_COMM;
	flow.budget[PHASE_TRAIN].failures = 2;
	assert_string_equal(recorded(EV_RETRY_SCHEDULED)->reason, "comm: failure 2 of 20");
	flow.last_class = CLASS_SPOT;
	assert_string_equal(recorded(EV_RETRY_SCHEDULED)->reason, "spot: does not count");
	assert_int_equal(recorded(EV_RETRY_SCHEDULED)->until,
			 1000 + recorded(EV_RETRY_SCHEDULED)->delay);
}

/* ---- the end ----------------------------------------------------- */

static void an_end_says_what_is_known_and_no_more(void **state)
{
	const struct event *ev;

	(void)state;
	place(FLOW_ENDING, ATTEMPT_NONE);
	flow.outcome = OUTCOME_FAILED;
	flow.exit_code = EXIT_RUN_FAILED;
	ev = recorded(EV_RUN_ENDED);
	assert_false(EVENT_HAS(ev, class) || EVENT_HAS(ev, evidence) || EVENT_HAS(ev, hint) ||
		     EVENT_HAS(ev, phase));
	flow.end_has_phase = true;
	flow.end_phase = PHASE_VERIFY;
	snprintf(flow.end_evidence, sizeof flow.end_evidence, "e");
	snprintf(flow.end_hint, sizeof flow.end_hint, "h");
	for (int class = CLASS_NONE + 1; class < CLASS_COUNT; class ++) {
		flow.end_class = (enum failure_class) class;
		ev = recorded(EV_RUN_ENDED);
		assert_true(EVENT_HAS(ev, class));
		assert_int_equal(ev->class, class);
	}
	assert_string_equal(ev->evidence, "e");
	assert_string_equal(ev->hint, "h");
	assert_int_equal(ev->phase, PHASE_VERIFY);
}

/* The run of one attempt, from its start to the record of its end. */
static void end_by(struct story *s, struct event last)
{
	struct flow_policy policy = story_policy();

	story_begin_training(s, &policy);
	EVENT_SET_STR(&last, evidence, "e");
	EVENT_SET_STR(&last, hint, "h");
	story_at(s, MIN(1), last);
}

static const struct event *last_of(const struct story *s)
{
	const struct event *ev = &s->journal[s->journalled - 1];

	assert_int_equal(ev->kind, EV_RUN_ENDED);
	return ev;
}

static void a_success_has_no_class_and_keeps_its_words(void **state)
{
	struct story s;

	(void)state;
	end_by(&s, ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_int_equal(last_of(&s)->state, OUTCOME_SUCCEEDED);
	assert_int_equal(last_of(&s)->exit_code, EXIT_DONE);
	assert_int_equal(last_of(&s)->phase, PHASE_TRAIN);
	assert_false(EVENT_HAS(last_of(&s), class));
	assert_string_equal(last_of(&s)->evidence, "e");
}

static void what_was_stopped_is_of_that_class(void **state)
{
	struct event limit = event_of(EV_LIMIT_REACHED), foreign;
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	EVENT_SET(&limit, limit, LIMIT_COST);
	EVENT_SET_STR(&limit, reason, "r");
	/* at a limit: its own cure is none */
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), limit);
	foreign = ended(PHASE_TRAIN, 1, CLASS_STOPPED);
	EVENT_SET_STR(&foreign, hint, "h");
	EVENT_SET_STR(&foreign, evidence, "e");
	story_at(&s, MIN(2), foreign);
	assert_int_equal(last_of(&s)->class, CLASS_STOPPED);
	assert_int_equal(last_of(&s)->exit_code, EXIT_GATE);
	assert_false(EVENT_HAS(last_of(&s), hint));
	assert_string_equal(last_of(&s)->evidence, "e");
	assert_string_equal(last_of(&s)->reason, "limits.cost is reached: r");
	/* on request, with a word or without */
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), stop("r"));
	story_at(&s, MIN(2), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(last_of(&s)->class, CLASS_STOPPED);
	assert_string_equal(last_of(&s)->reason, "stopped on request: r");
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), event_of(EV_REQUEST_STOP));
	story_at(&s, MIN(2), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_string_equal(last_of(&s)->reason, "stopped on request");
	/* by another hand */
	end_by(&s, ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_string_equal(last_of(&s)->reason,
			    "the job was stopped on the engine, not by stoker");
}

/* The words of an end are read by people: one time is not two times. */
static void failures_are_counted_in_words(void **state)
{
	static const struct {
		int64_t attempts, progress;
		const char *one, *two;
	} rows[] = {
		{ 1, 9, "train failed 1 time (comm last): retry.attempts is used up", NULL },
		{ 2, 9, NULL, "train failed 2 times (comm last): retry.attempts is used up" },
		{ 9, 1,
		  "train failed 1 time in a row (comm last) without a new checkpoint: "
		  "retry.without_progress is used up",
		  NULL },
		{ 9, 2, NULL,
		  "train failed 2 times in a row (comm last) without a new checkpoint: "
		  "retry.without_progress is used up" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct flow_policy policy = story_policy();
		struct story s;

		policy.retry_attempts = rows[i].attempts;
		policy.retry_without_progress = rows[i].progress;
		story_begin_training(&s, &policy);
		story_at(&s, MIN(1), ended(PHASE_TRAIN, 1, CLASS_COMM));
		if (rows[i].one) {
			assert_string_equal(last_of(&s)->reason, rows[i].one);
			continue;
		}
		assert_int_equal(s.flow.state, FLOW_TRAIN);
		story_wait(&s, s.flow.until.ms);
		story_at(&s, s.flow.at.ms, about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
		story_at(&s, s.flow.at.ms, ended(PHASE_TRAIN, 2, CLASS_COMM));
		assert_string_equal(last_of(&s)->reason, rows[i].two);
	}
}

/* The graph key of the verdict stays known, for who looks into the cache. */
static void a_cache_that_never_became_complete_ends_the_run_with_or_without_a_word(void **state)
{
	static const char *const words[][2] = {
		{ NULL, "the cache is not complete" },
		{ "g1 is missing", "the cache is not complete: g1 is missing" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(words); i++) {
		struct event ev = verified(1, false, words[i][0]);

		ev.reason = words[i][0] ? words[i][0] : "unset";
		EVENT_SET_STR(&ev, graph_key, "k1");
		EVENT_SET_STR(&ev, evidence, "e");
		place(FLOW_VERIFY, ATTEMPT_NONE);
		flow.phase = PHASE_PRECOMPILE;
		flow.attempts[PHASE_PRECOMPILE] = 1;
		flow.incomplete_retried = true;
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state, FLOW_ENDING);
		assert_string_equal(flow.end_reason, words[i][1]);
		assert_string_equal(flow.lock_key, "k1");
		assert_int_equal(flow.end_class, CLASS_NONE);
		assert_int_equal(flow.exit_code, EXIT_GATE);
		assert_string_equal(flow.end_evidence, "e");
	}
}

/* The exit status tells whether it was the run or the account. */
static void a_refusal_is_no_failure_of_the_run(void **state)
{
	struct story s;

	(void)state;
	end_by(&s, ended(PHASE_TRAIN, 1, CLASS_QUOTA_PERMISSION));
	assert_int_equal(last_of(&s)->state, OUTCOME_REFUSED);
	assert_int_equal(last_of(&s)->exit_code, EXIT_REFUSED);
	end_by(&s, ended(PHASE_TRAIN, 1, CLASS_USER_CODE));
	assert_int_equal(last_of(&s)->state, OUTCOME_FAILED);
	assert_int_equal(last_of(&s)->exit_code, EXIT_RUN_FAILED);
}

static void a_compiler_that_failed_is_a_failure_and_a_cache_with_holes_a_refusal(void **state)
{
	(void)state;
	for (int failed = 0; failed < 2; failed++) {
		struct event ev = verified(1, false, "x");

		place(FLOW_VERIFY, ATTEMPT_NONE);
		flow.phase = PHASE_PRECOMPILE;
		flow.attempts[PHASE_PRECOMPILE] = 1;
		flow.incomplete_retried = true;
		flow.compile_failed = failed;
		flow.last_class = CLASS_COMPILE;
		flow_apply(&flow, &ev);
		assert_int_equal(flow.outcome, failed ? OUTCOME_FAILED : OUTCOME_REFUSED);
		assert_int_equal(flow.end_class, failed ? CLASS_COMPILE : CLASS_NONE);
	}
}

static void a_pause_lasts_until_its_end_or_a_limit(void **state)
{
	(void)state;
	place(FLOW_TRAIN, ATTEMPT_BACKOFF);
	flow.until.ms = 5000;
	assert_int_equal(asked(EFFECT_WAIT)->until.ms, 5000);
	flow.created.ms = 1;
	flow.policy.deadline_ms = 8000;
	assert_int_equal(asked(EFFECT_WAIT)->until.ms, 5000);
	flow.policy.deadline_ms = 2000;
	assert_int_equal(asked(EFFECT_WAIT)->until.ms, 2001);
}

/* ---- orders that are not given ------------------------------------- */

/* A training that is to end, or makes room for phase 1, is not judged again. */
static void what_ends_is_not_judged_by_its_graphs(void **state)
{
	static const struct {
		int64_t allowed, graphs;
		bool stop, recompile, reported, asked;
	} rows[] = {
		{ 0, 1, false, false, false, true },  { 2, 3, false, false, false, true },
		{ 2, 2, false, false, false, false }, { -1, 9, false, false, false, false },
		{ 2, 3, true, false, false, false },  { 2, 3, false, true, false, false },
		{ 2, 3, false, false, true, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		place(FLOW_TRAIN, ATTEMPT_RUNNING);
		flow.policy.jit_graphs = rows[i].allowed;
		flow.jit_graphs = rows[i].graphs;
		flow.stop_requested = rows[i].stop;
		flow.recompile = rows[i].recompile;
		flow.jit_reported = rows[i].reported;
		assert_int_equal(recorded(EV_JIT_EXCEEDED) != NULL, rows[i].asked);
		/* nor is phase 1, which compiles by trade */
		place(FLOW_PRECOMPILE, ATTEMPT_RUNNING);
		flow.policy.jit_graphs = rows[i].allowed;
		flow.jit_graphs = rows[i].graphs;
		assert_null(recorded(EV_JIT_EXCEEDED));
	}
}

static void phase_1_runs_again_once_for_graphs_and_a_stop_is_a_stop(void **state)
{
	static const struct {
		enum jit_action action, asked;
		int64_t recompiles;
	} rows[] = {
		{ JIT_STOP, JIT_STOP, 0 },      { JIT_STOP, JIT_STOP, 1 },
		{ JIT_WARN, JIT_WARN, 1 },      { JIT_RECOMPILE, JIT_RECOMPILE, 0 },
		{ JIT_RECOMPILE, JIT_WARN, 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		bool again = rows[i].action != rows[i].asked;

		place(FLOW_TRAIN, ATTEMPT_RUNNING);
		flow.policy.jit_graphs = 1;
		flow.policy.jit_action = rows[i].action;
		flow.jit_graphs = 5;
		flow.recompiles = rows[i].recompiles;
		assert_int_equal(recorded(EV_JIT_EXCEEDED)->on_exceed, rows[i].asked);
		assert_string_equal(
			recorded(EV_JIT_EXCEEDED)->reason,
			again ? "graphs compiled in training: 5, allowed: 1; phase 1 has "
				"run again already"
			      : "graphs compiled in training: 5, allowed: 1");
	}
}

static void a_risk_is_told_of_a_training_that_goes_on(void **state)
{
	static const struct {
		int64_t times;
		bool stop, recompile, asked;
	} rows[] = {
		{ 1, false, false, false }, { 2, false, false, true }, { 3, false, false, true },
		{ 2, true, false, false },  { 2, false, true, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		place(FLOW_TRAIN, ATTEMPT_RUNNING);
		flow.forecast.limit = LIMIT_DEADLINE;
		flow.forecast.times = rows[i].times;
		flow.stop_requested = rows[i].stop;
		flow.recompile = rows[i].recompile;
		assert_int_equal(recorded(EV_RUN_AT_RISK) != NULL, rows[i].asked);
		flow.forecast.limit = LIMIT_NONE;
		assert_null(recorded(EV_RUN_AT_RISK));
		place(FLOW_PRECOMPILE, ATTEMPT_RUNNING);
		flow.forecast.limit = LIMIT_DEADLINE;
		flow.forecast.times = rows[i].times;
		assert_null(recorded(EV_RUN_AT_RISK));
	}
}

/* A run has no age before it is created, and no limit after its end. */
static void no_limit_is_reached_outside_of_the_run(void **state)
{
	(void)state;
	for (int in = FLOW_NEW; in < FLOW_STATE_COUNT; in++) {
		place((enum flow_state)in, ATTEMPT_NONE);
		flow.created.ms = in == FLOW_NEW ? 0 : 1;
		flow.policy.deadline_ms = 100;
		flow.ledger.begun.ms = 1;
		assert_int_equal(recorded(EV_LIMIT_REACHED) != NULL,
				 in > FLOW_NEW && in < FLOW_ENDING);
	}
}

/* A driver that may leave has an end to record first. */
static void a_driver_does_not_leave_what_has_ended(void **state)
{
	(void)state;
	for (int in = FLOW_PLANNED; in < FLOW_STATE_COUNT; in++) {
		place((enum flow_state)in, ATTEMPT_NONE);
		flow.leaving = true;
		assert_int_equal(asked(EFFECT_LEAVE) != NULL, in < FLOW_ENDING);
		assert_int_equal(recorded(EV_RUN_ENDED) != NULL, in == FLOW_ENDING);
		assert_int_equal(asked(EFFECT_DONE) != NULL, in == FLOW_ENDED || in == FLOW_PAUSED);
	}
}

static void an_attempt_is_open_from_its_intent_to_its_end(void **state)
{
	(void)state;
	for (int in = 0; in < 2; in++)
		for (int with = 0; with < ATTEMPT_STATE_COUNT; with++) {
			place(in ? FLOW_TRAIN : FLOW_PRECOMPILE, (enum attempt_state)with);
			assert_int_equal(flow_attempt_is_open(&flow),
					 with >= ATTEMPT_INTENDED && with <= ATTEMPT_LOST);
			assert_int_equal(flow_may_have_job(&flow),
					 with >= ATTEMPT_UNCERTAIN && with <= ATTEMPT_LOST);
			flow.unsettled = true;
			assert_true(flow_may_have_job(&flow));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cache_is_verified_in_a_phase_of_its_own),
		cmocka_unit_test(a_precompile_after_a_lack_of_memory_runs_with_half_the_workers),
		cmocka_unit_test(an_intent_names_the_job),
		cmocka_unit_test(a_training_goes_on_from_any_checkpoint_that_is_complete),
		cmocka_unit_test(a_submission_carries_what_the_attempt_was_intended_with),
		cmocka_unit_test(a_pause_says_whether_it_counts),
		cmocka_unit_test(an_end_says_what_is_known_and_no_more),
		cmocka_unit_test(a_success_has_no_class_and_keeps_its_words),
		cmocka_unit_test(what_was_stopped_is_of_that_class),
		cmocka_unit_test(failures_are_counted_in_words),
		cmocka_unit_test(
			a_cache_that_never_became_complete_ends_the_run_with_or_without_a_word),
		cmocka_unit_test(a_refusal_is_no_failure_of_the_run),
		cmocka_unit_test(
			a_compiler_that_failed_is_a_failure_and_a_cache_with_holes_a_refusal),
		cmocka_unit_test(a_pause_lasts_until_its_end_or_a_limit),
		cmocka_unit_test(what_ends_is_not_judged_by_its_graphs),
		cmocka_unit_test(phase_1_runs_again_once_for_graphs_and_a_stop_is_a_stop),
		cmocka_unit_test(a_risk_is_told_of_a_training_that_goes_on),
		cmocka_unit_test(no_limit_is_reached_outside_of_the_run),
		cmocka_unit_test(a_driver_does_not_leave_what_has_ended),
		cmocka_unit_test(an_attempt_is_open_from_its_intent_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
