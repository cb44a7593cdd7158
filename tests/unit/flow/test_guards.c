/*
 * Rules over all states: whatever the run is doing, news of another attempt is no news, a run that
 * is to end begins nothing, and what is no event changes nothing. An agent that was cut off for an
 * hour may tell of an attempt of yesterday: if that moved today's, a job that runs would be
 * forgotten, or paid for twice.
 */
#include "tests/unit/flow/story.h"

#include "jobs/flow/internal.h"

#define ATTEMPT 3

/* A flow in the middle of everything; `bits` are its conditions. */
#define CONDITIONS 8
static void place(struct flow *flow, int state, int attempt_state, unsigned bits)
{
	struct flow_policy policy = story_policy();

	policy.stop_on_mismatch = true;
	policy.train_on_incomplete = true;
	flow_init(flow, &policy);
	flow->state = (enum flow_state)state;
	flow->attempt_state = (enum attempt_state)attempt_state;
	flow->phase =
		state == FLOW_PRECOMPILE || state == FLOW_VERIFY ? PHASE_PRECOMPILE : PHASE_TRAIN;
	flow->attempt = ATTEMPT;
	flow->attempts[PHASE_PRECOMPILE] = flow->attempts[PHASE_TRAIN] = ATTEMPT;
	flow->stop_requested = (bits & 1) != 0;
	flow->recompile = (bits & 2) != 0;
	flow->claimed = (bits & 4) != 0;
}

/* A whole event of a kind about an attempt, in the form that would have the most effect. */
static struct event whole(enum event_kind kind, enum phase phase, int64_t attempt)
{
	struct event ev = about(kind, phase, attempt);

	EVENT_SET(&ev, step, 100);
	EVENT_SET_STR(&ev, url, "ckpt");
	EVENT_SET_STR(&ev, reason, "x");
	EVENT_SET_STR(&ev, signature, "s");
	EVENT_SET(&ev, changed, NULL);
	EVENT_SET(&ev, failed, 2);
	EVENT_SET(&ev, complete, true);
	EVENT_SET(&ev, graphs, 9);
	EVENT_SET(&ev, continuity, CONTINUITY_FAILED);
	EVENT_SET(&ev, healthy, true);
	EVENT_SET(&ev, delay, 1);
	EVENT_SET(&ev, until, 1);
	EVENT_SET(&ev, action, ACTION_RETRY);
	return ev;
}

/* The kinds that move an attempt. */
static const enum event_kind about_attempts[] = {
	EV_ATTEMPT_INTENDED, EV_ATTEMPT_SUBMITTED, EV_ATTEMPT_UNCERTAIN,   EV_ATTEMPT_MISSING,
	EV_ATTEMPT_CLAIMED,  EV_ATTEMPT_STARTED,   EV_HEALTH_CHECKED,      EV_ATTEMPT_LOST,
	EV_ATTEMPT_FOUND,    EV_ATTEMPT_ENDED,     EV_CHECKPOINT_COMPLETE, EV_TRAIN_CONTINUITY,
	EV_TRAIN_PROGRESS,   EV_TRAIN_SPOILED,     EV_JIT_COMPILED,        EV_JIT_EXCEEDED,
	EV_CACHE_VERIFIED,
};

static void is_no_news(int state, int attempt_state, unsigned bits, struct event ev)
{
	struct flow flow;

	place(&flow, state, attempt_state, bits);
	for (int class = 0; class < CLASS_COUNT; class ++) {
		for (int action = 0; action < 3; action++) {
			int rule;

			ev.class = (enum failure_class) class;
			ev.present |= FIELD_SET_OF(EVF_class);
			EVENT_SET(&ev, on_exceed, (enum jit_action)action);
			rule = flow_rule_find(&flow, &ev);
			if (rule >= 0)
				fail_msg("in %s, %s: %s of attempt %d: %s", flow_state_names[state],
					 attempt_state_names[attempt_state],
					 event_rows[ev.kind].name, (int)ev.attempt,
					 flow_rule_name(rule));
			if (ev.kind != EV_ATTEMPT_ENDED && ev.kind != EV_JIT_EXCEEDED)
				return;
		}
	}
}

static void news_of_another_attempt_or_phase_are_no_news(void **state)
{
	static const int64_t others[] = { ATTEMPT - 2, ATTEMPT - 1, ATTEMPT + 2, ATTEMPT + 9 };

	(void)state;
	for (int in = FLOW_PLANNED; in < FLOW_STATE_COUNT; in++)
		for (int with = 0; with < ATTEMPT_STATE_COUNT; with++)
			for (unsigned bits = 0; bits < CONDITIONS; bits++)
				for (size_t k = 0;
				     k < sizeof about_attempts / sizeof about_attempts[0]; k++) {
					enum event_kind kind = about_attempts[k];
					bool of_phase =
						(event_rows[kind].required >> EVF_phase & 1) != 0;
					enum phase phase =
						in == FLOW_PRECOMPILE || in == FLOW_VERIFY
							? PHASE_PRECOMPILE
							: PHASE_TRAIN;
					enum phase other = phase == PHASE_TRAIN ? PHASE_PRECOMPILE
										: PHASE_TRAIN;
					int64_t own = ATTEMPT + (kind == EV_ATTEMPT_INTENDED);

					for (size_t i = 0; i < sizeof others / sizeof others[0];
					     i++)
						is_no_news(in, with, bits,
							   whole(kind, phase, others[i]));
					if (of_phase)
						is_no_news(in, with, bits, whole(kind, other, own));
				}
}

/* A pause is one of its phase. */
static void a_retry_of_another_phase_is_none(void **state)
{
	struct event ev = whole(EV_RETRY_SCHEDULED, PHASE_PRECOMPILE, ATTEMPT);
	struct flow flow;

	(void)state;
	place(&flow, FLOW_TRAIN, ATTEMPT_FAILED, 0);
	assert_int_equal(flow_rule_find(&flow, &ev), -1);
	ev.phase = PHASE_TRAIN;
	assert_true(flow_rule_find(&flow, &ev) >= 0);
}

/* ---- a run that is to end -------------------------------------------------- */

static void a_run_that_is_to_end_ends_with_its_attempt(void **state)
{
	(void)state;
	for (int in = 0; in < 2; in++)
		for (int with = ATTEMPT_INTENDED; with <= ATTEMPT_LOST; with++)
			for (int class = 0; class < CLASS_COUNT; class ++)
				for (unsigned bits = 1; bits < CONDITIONS; bits += 2) {
					struct flow flow;
					struct event ev;

					place(&flow, in ? FLOW_TRAIN : FLOW_PRECOMPILE, with, bits);
					flow.stop_cause = STOP_OUTPUT_INVALID;
					ev = whole(EV_ATTEMPT_ENDED, flow.phase, ATTEMPT);
					EVENT_SET(&ev, class, (enum failure_class) class);
					flow_apply(&flow, &ev);
					assert_int_equal(flow.state, FLOW_ENDING);
					/* what computed nothing did not succeed */
					assert_int_not_equal(flow.outcome, OUTCOME_SUCCEEDED);
				}
}

/* Nothing that comes later changes why it ends, or begins its saving again. */
static void the_first_cause_of_an_end_stands(void **state)
{
	struct event later[16];
	size_t count = 0;

	(void)state;
	later[count++] = event_of(EV_REQUEST_DRAIN);
	for (int limit = 0; limit < LIMIT_COUNT; limit++) {
		later[count] = event_of(EV_LIMIT_REACHED);
		EVENT_SET_STR(&later[count], reason, "late");
		EVENT_SET(&later[count], limit, (enum run_limit)limit);
		count++;
	}
	later[count++] = whole(EV_TRAIN_SPOILED, PHASE_TRAIN, ATTEMPT);
	later[count++] = whole(EV_TRAIN_CONTINUITY, PHASE_TRAIN, ATTEMPT);
	for (int action = 0; action < 3; action++) {
		later[count] = whole(EV_JIT_EXCEEDED, PHASE_TRAIN, ATTEMPT);
		EVENT_SET(&later[count], on_exceed, (enum jit_action)action);
		count++;
	}
	for (size_t i = 0; i < count; i++)
		for (int with = ATTEMPT_SUBMITTED; with <= ATTEMPT_RUNNING; with++)
			for (unsigned bits = 1; bits < CONDITIONS; bits += 2) {
				struct flow flow, before;

				place(&flow, FLOW_TRAIN, with, bits);
				flow.stop_cause = STOP_LIMIT;
				flow.limit = LIMIT_COST;
				flow.drain_until.ms = 77;
				snprintf(flow.stop_reason, sizeof flow.stop_reason, "first");
				before = flow;
				later[i].at.ms = 5;
				flow_apply(&flow, &later[i]);
				assert_int_equal(flow.stop_cause, before.stop_cause);
				assert_int_equal(flow.limit, before.limit);
				assert_int_equal(flow.drain_until.ms, 77);
				assert_int_equal(flow.recompile, before.recompile);
				assert_int_equal(flow.recompiles, before.recompiles);
				assert_string_equal(flow.stop_reason, "first");
			}
}

static void room_is_made_once(void **state)
{
	(void)state;
	for (int action = 0; action < 3; action++) {
		struct event ev = whole(EV_JIT_EXCEEDED, PHASE_TRAIN, ATTEMPT);
		struct flow flow;

		EVENT_SET(&ev, on_exceed, (enum jit_action)action);
		place(&flow, FLOW_TRAIN, ATTEMPT_RUNNING, 2);
		flow.recompiles = 1;
		flow_apply(&flow, &ev);
		assert_int_equal(flow.recompiles, 1);
		assert_false(flow.stop_requested);
	}
}

/* A limit by which nothing is meant ends nothing, and one of sight stops no job. */
static void only_a_limit_of_the_spec_ends_a_run(void **state)
{
	(void)state;
	for (int in = FLOW_PLANNED; in < FLOW_ENDING; in++)
		for (int with = 0; with < ATTEMPT_STATE_COUNT; with++)
			for (int limit = 0; limit < LIMIT_COUNT; limit++) {
				struct event ev = event_of(EV_LIMIT_REACHED);
				struct flow flow;

				EVENT_SET_STR(&ev, reason, "x");
				EVENT_SET(&ev, limit, (enum run_limit)limit);
				place(&flow, in, with, 0);
				flow_apply(&flow, &ev);
				if (limit == LIMIT_NONE || limit == LIMIT_UNREACHABLE)
					assert_true(!flow.stop_requested &&
						    flow.state == (enum flow_state)in);
				else
					assert_true(flow.stop_requested);
			}
}

/* ---- guards with a border -------------------------------------------------- */

static const char *repeat(char *text, size_t len)
{
	memset(text, 'x', len);
	text[len] = '\0';
	return text;
}

/* A text that does not fit is not kept in part: a URL without its end is another one. */
static void a_text_that_does_not_fit_is_not_taken(void **state)
{
	static char text[FLOW_URL_MAX + 2];
	struct flow flow;

	(void)state;
	for (size_t len = FLOW_URL_MAX - 1; len <= FLOW_URL_MAX + 1; len++) {
		struct event done = checkpoint(ATTEMPT, 5, repeat(text, len));
		struct event choice = event_of(EV_CHECKPOINT_CHOSEN);

		EVENT_SET(&choice, step, 5);
		EVENT_SET_STR(&choice, url, text);
		place(&flow, FLOW_TRAIN, ATTEMPT_RUNNING, 0);
		assert_int_equal(flow_rule_find(&flow, &done) >= 0, len < FLOW_URL_MAX);
		place(&flow, FLOW_TRAIN, ATTEMPT_BACKOFF, 0);
		assert_int_equal(flow_rule_find(&flow, &choice) >= 0, len < FLOW_URL_MAX);
	}
	for (size_t len = FLOW_ID_MAX - 1; len <= FLOW_ID_MAX + 1; len++) {
		struct event ev = ended(PHASE_TRAIN, ATTEMPT, CLASS_COMPILE);

		EVENT_SET(&ev, changed, NULL);
		EVENT_SET_STR(&ev, signature, repeat(text, len));
		place(&flow, FLOW_TRAIN, ATTEMPT_RUNNING, 0);
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state == FLOW_PRECOMPILE, len < FLOW_ID_MAX);
	}
}

static void only_a_step_of_a_trusted_checkpoint_is_chosen(void **state)
{
	static const struct {
		int64_t step, below;
		bool taken;
	} rows[] = { { -2, 10, false }, { -1, 10, false }, { 0, 10, true },  { 1, 10, true },
		     { 9, 10, true },   { 10, 10, false }, { 11, 10, false } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct event ev = event_of(EV_CHECKPOINT_CHOSEN);
		struct flow flow;

		EVENT_SET(&ev, step, rows[i].step);
		EVENT_SET_STR(&ev, url, "u");
		place(&flow, FLOW_TRAIN, ATTEMPT_BACKOFF, 0);
		flow.below = rows[i].below;
		assert_int_equal(flow_rule_find(&flow, &ev) >= 0, rows[i].taken);
	}
}

/* Another compiler than phase 1 had is known by the difference and by its name. */
static void another_compiler_is_named(void **state)
{
	(void)state;
	for (int bits = 0; bits < 4; bits++) {
		struct event ev = ended(PHASE_TRAIN, ATTEMPT, CLASS_COMPILE);
		struct flow flow;

		if (bits & 1)
			EVENT_SET(&ev, changed, NULL);
		if (bits & 2)
			EVENT_SET_STR(&ev, signature, "s");
		ev.signature = "s";
		place(&flow, FLOW_TRAIN, ATTEMPT_RUNNING, 0);
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state == FLOW_PRECOMPILE, bits == 3);
	}
}

static void another_compiler_is_met_by_a_failure_to_compile(void **state)
{
	(void)state;
	for (int class = CLASS_NONE + 1; class < CLASS_COUNT; class ++) {
		struct event ev = whole(EV_ATTEMPT_ENDED, PHASE_TRAIN, ATTEMPT);
		struct flow flow;

		EVENT_SET(&ev, class, (enum failure_class) class);
		place(&flow, FLOW_TRAIN, ATTEMPT_RUNNING, 0);
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state == FLOW_PRECOMPILE, class == CLASS_COMPILE);
	}
}

/* Graphs that failed make a failure one of the compiler's; where none did, it is the program's. */
static void a_program_that_failed_without_graphs_is_not_the_compilers_fault(void **state)
{
	static const struct {
		bool told;
		int64_t failed;
		enum failure_class class;
		enum flow_state state;
	} rows[] = {
		{ true, 1, CLASS_USER_CODE, FLOW_VERIFY },
		{ true, 1, CLASS_USER_CONFIG, FLOW_VERIFY },
		{ true, 0, CLASS_USER_CODE, FLOW_ENDING },
		{ true, -1, CLASS_USER_CODE, FLOW_ENDING },
		{ false, 1, CLASS_USER_CODE, FLOW_ENDING },
		{ true, 1, CLASS_COMM, FLOW_PRECOMPILE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct event ev = ended(PHASE_PRECOMPILE, ATTEMPT, rows[i].class);
		struct flow flow;

		ev.failed = rows[i].failed;
		if (rows[i].told)
			EVENT_SET(&ev, failed, rows[i].failed);
		place(&flow, FLOW_PRECOMPILE, ATTEMPT_RUNNING, 0);
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state, rows[i].state);
	}
}

/* An incomplete cache is filled once more, unless that would be in vain. */
static void an_incomplete_cache_is_filled_again_where_it_may_help(void **state)
{
	static const struct {
		bool told, failed, last, retried;
		enum action action;
		enum flow_state state;
	} rows[] = {
		{ false, false, false, false, ACTION_STOP, FLOW_PRECOMPILE },
		{ true, false, false, false, ACTION_STOP, FLOW_TRAIN },
		{ true, false, false, false, ACTION_RETRY, FLOW_PRECOMPILE },
		{ false, true, true, false, ACTION_STOP, FLOW_TRAIN },
		{ false, true, false, false, ACTION_STOP, FLOW_PRECOMPILE },
		{ false, false, true, false, ACTION_STOP, FLOW_PRECOMPILE },
		{ false, false, false, true, ACTION_STOP, FLOW_TRAIN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct event ev = verified(ATTEMPT, false, "x");
		struct flow flow;

		ev.action = rows[i].action;
		if (rows[i].told)
			EVENT_SET(&ev, action, rows[i].action);
		place(&flow, FLOW_VERIFY, ATTEMPT_NONE, 0);
		flow.compile_failed = rows[i].failed;
		flow.compile_last = rows[i].last;
		flow.incomplete_retried = rows[i].retried;
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state, rows[i].state);
	}
}

/* A training that makes room makes it also by a failure that another attempt may cure, and by no
 * other. */
static void room_is_made_by_any_end_that_another_attempt_may_follow(void **state)
{
	static const struct {
		enum failure_class class;
		enum flow_state state;
	} rows[] = { { CLASS_STOPPED, FLOW_PRECOMPILE },
		     { CLASS_COMM, FLOW_PRECOMPILE },
		     { CLASS_USER_CODE, FLOW_ENDING },
		     { CLASS_NONE, FLOW_ENDING } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct event ev = ended(PHASE_TRAIN, ATTEMPT, rows[i].class);
		struct flow flow;

		place(&flow, FLOW_TRAIN, ATTEMPT_RUNNING, 2);
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state, rows[i].state);
	}
}

/* The length of a check-up is known by both of its times. */
static void a_checkup_without_a_begin_took_no_known_time(void **state)
{
	struct event ev = about(EV_HEALTH_CHECKED, PHASE_TRAIN, ATTEMPT);
	struct flow flow;

	(void)state;
	EVENT_SET(&ev, healthy, true);
	EVENT_SET(&ev, finished, 5000);
	place(&flow, FLOW_TRAIN, ATTEMPT_RUNNING, 4);
	flow.policy.health_ms = 1000;
	flow_apply(&flow, &ev);
	assert_true(flow.checked);
	assert_int_equal(flow.checkup_ms, 0);
	EVENT_SET(&ev, since, 4500);
	flow_apply(&flow, &ev);
	assert_int_equal(flow.checkup_ms, 500);
}

/* The cache is asked about again before each attempt; graphs can only be lost that were there. */
static void graphs_are_lost_only_if_they_were_proved(void **state)
{
	(void)state;
	for (int bits = 0; bits < 4; bits++) {
		struct event ev = checked(bits & 1 ? CACHE_WARM : CACHE_COLD);
		struct flow flow;

		place(&flow, FLOW_TRAIN, ATTEMPT_BACKOFF, 0);
		flow.cache_proved = (bits & 2) != 0;
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state == FLOW_PRECOMPILE, bits == 2);
	}
}

/* ---- broken events ----------------------------------------------------- */

/* A journal of another version may hold anything: it is passed over, and nothing is read beyond a
 * table. */
static void what_is_no_event_fires_no_rule(void **state)
{
	struct event good = stop("x"), ev;
	struct flow flow;

	(void)state;
	place(&flow, FLOW_PLANNED, ATTEMPT_NONE, 0);
	assert_true(flow_rule_find(&flow, &good) >= 0);
	for (int i = 0; i < 2; i++) {
		ev = good;
		ev.kind = (enum event_kind)(i ? -1 : EV_COUNT);
		assert_int_equal(flow_rule_find(&flow, &ev), -1);
		ev = good;
		ev.phase = (enum phase)(i ? -1 : PHASE_COUNT);
		assert_int_equal(flow_rule_find(&flow, &ev), -1);
		ev = good;
		ev.class = (enum failure_class)(i ? -1 : CLASS_COUNT);
		assert_int_equal(flow_rule_find(&flow, &ev), -1);
		ev = good;
		ev.limit = (enum run_limit)(i ? -1 : LIMIT_COUNT);
		assert_int_equal(flow_rule_find(&flow, &ev), -1);
	}
	ev = good;
	ev.phase = (enum phase)(PHASE_COUNT - 1);
	ev.class = (enum failure_class)(CLASS_COUNT - 1);
	ev.limit = (enum run_limit)(LIMIT_COUNT - 1);
	assert_true(flow_rule_find(&flow, &ev) >= 0);
}

static void each_rule_is_one_sentence_of_its_own(void **state)
{
	int count = flow_rule_count();

	(void)state;
	assert_true(count > 50);
	for (int i = 0; i < count; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(flow_rule_name(i), flow_rule_name(k));
}

/* Time passes also by events that move nothing, but not before the run is created. */
static void any_event_of_a_run_spends_its_time(void **state)
{
	struct event ev = event_of(EV_NOTIFY_SENT), bad = created();
	struct flow flow;
	struct story s;
	struct flow_policy policy = story_policy();

	(void)state;
	story_begin(&s, &policy);
	EVENT_SET(&ev, rule, 1);
	EVENT_SET(&ev, about, 1);
	ev.at.ms = 5000;
	flow_apply(&s.flow, &ev);
	assert_int_equal(s.flow.at.ms, 5000);
	assert_int_equal(s.flow.ledger.at.ms, 5000);
	/* one that says less than it must creates nothing */
	flow_init(&flow, &policy);
	bad.present = 0;
	bad.at.ms = 5000;
	flow_apply(&flow, &bad);
	assert_int_equal(flow.state, FLOW_NEW);
	assert_int_equal(flow.ledger.stage, STAGE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(news_of_another_attempt_or_phase_are_no_news),
		cmocka_unit_test(a_retry_of_another_phase_is_none),
		cmocka_unit_test(a_run_that_is_to_end_ends_with_its_attempt),
		cmocka_unit_test(the_first_cause_of_an_end_stands),
		cmocka_unit_test(room_is_made_once),
		cmocka_unit_test(only_a_limit_of_the_spec_ends_a_run),
		cmocka_unit_test(a_text_that_does_not_fit_is_not_taken),
		cmocka_unit_test(only_a_step_of_a_trusted_checkpoint_is_chosen),
		cmocka_unit_test(another_compiler_is_named),
		cmocka_unit_test(another_compiler_is_met_by_a_failure_to_compile),
		cmocka_unit_test(a_program_that_failed_without_graphs_is_not_the_compilers_fault),
		cmocka_unit_test(an_incomplete_cache_is_filled_again_where_it_may_help),
		cmocka_unit_test(room_is_made_by_any_end_that_another_attempt_may_follow),
		cmocka_unit_test(a_checkup_without_a_begin_took_no_known_time),
		cmocka_unit_test(graphs_are_lost_only_if_they_were_proved),
		cmocka_unit_test(what_is_no_event_fires_no_rule),
		cmocka_unit_test(each_rule_is_one_sentence_of_its_own),
		cmocka_unit_test(any_event_of_a_run_spends_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
