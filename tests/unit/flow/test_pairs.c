/*
 * Every pair of state and event. The pairs that mean something are listed here,
 * by hand and apart from the rules; all others must change nothing but the time.
 */
#include "tests/unit/flow/story.h"

/* The attempt states in which an event of the current attempt means something,
 * as letters: n i u s r l f b (none, intended … backoff); other states take any. */
struct pair {
	const char *state;
	const char *event;
	const char *attempts; /* "" where the attempt state does not matter */
};

static const struct pair meant[] = {
	{ "new", "run.created", "" },
	{ "planned", "cache.checked", "" },
	{ "planned", "request.stop", "" },
	{ "planned", "request.drain", "" },
	{ "planned", "limit.reached", "" },
	{ "precompile", "cache.claimed", "nb" },
	{ "precompile", "cache.waiting", "nb" },
	{ "precompile", "attempt.intended", "nb" },
	{ "precompile", "attempt.submitted", "iu" },
	{ "precompile", "attempt.uncertain", "i" },
	{ "precompile", "attempt.missing", "u" },
	{ "precompile", "attempt.claimed", "sl" },
	{ "precompile", "attempt.started", "rl" },
	{ "precompile", "health.checked", "rl" },
	{ "precompile", "attempt.lost", "sr" },
	{ "precompile", "attempt.found", "l" },
	{ "precompile", "attempt.ended", "iusrl" },
	{ "precompile", "retry.scheduled", "f" },
	{ "precompile", "request.stop", "niusrlfb" },
	{ "precompile", "request.drain", "niusrlfb" },
	{ "precompile", "limit.reached", "niusrlfb" },
	{ "verify", "cache.verified", "" },
	{ "verify", "request.stop", "" },
	{ "verify", "request.drain", "" },
	{ "verify", "limit.reached", "" },
	{ "train", "attempt.intended", "nb" },
	{ "train", "attempt.submitted", "iu" },
	{ "train", "attempt.uncertain", "i" },
	{ "train", "attempt.missing", "u" },
	{ "train", "attempt.claimed", "sl" },
	{ "train", "attempt.started", "rl" },
	{ "train", "health.checked", "rl" },
	{ "train", "attempt.lost", "sr" },
	{ "train", "attempt.found", "l" },
	{ "train", "attempt.ended", "iusrl" },
	{ "train", "retry.scheduled", "f" },
	{ "train", "checkpoint.complete", "usrlfb" },
	{ "train", "checkpoint.chosen", "nb" },
	{ "train", "train.continuity", "srl" },
	{ "train", "jit.compiled", "srl" },
	{ "train", "train.spoiled", "srl" },
	{ "train", "train.progress", "srl" },
	{ "train", "run.at_risk", "srl" },
	{ "train", "jit.exceeded", "srl" },
	{ "train", "request.stop", "niusrlfb" },
	{ "train", "request.drain", "niusrlfb" },
	{ "train", "limit.reached", "niusrlfb" },
	{ "evaluate", "attempt.intended", "nb" },
	{ "evaluate", "attempt.submitted", "iu" },
	{ "evaluate", "attempt.uncertain", "i" },
	{ "evaluate", "attempt.missing", "u" },
	{ "evaluate", "attempt.claimed", "sl" },
	{ "evaluate", "attempt.started", "rl" },
	{ "evaluate", "health.checked", "rl" },
	{ "evaluate", "attempt.lost", "sr" },
	{ "evaluate", "attempt.found", "l" },
	{ "evaluate", "attempt.ended", "iusrl" },
	{ "evaluate", "retry.scheduled", "f" },
	{ "evaluate", "candidate.chosen", "nb" },
	{ "evaluate", "task.done", "usrlfb" },
	{ "evaluate", "request.stop", "niusrlfb" },
	{ "evaluate", "request.drain", "niusrlfb" },
	{ "evaluate", "limit.reached", "niusrlfb" },
	{ "infer", "attempt.intended", "nb" },
	{ "infer", "attempt.submitted", "iu" },
	{ "infer", "attempt.uncertain", "i" },
	{ "infer", "attempt.missing", "u" },
	{ "infer", "attempt.claimed", "sl" },
	{ "infer", "attempt.started", "rl" },
	{ "infer", "health.checked", "rl" },
	{ "infer", "attempt.lost", "sr" },
	{ "infer", "attempt.found", "l" },
	{ "infer", "attempt.ended", "iusrl" },
	{ "infer", "retry.scheduled", "f" },
	{ "infer", "candidate.chosen", "nb" },
	{ "infer", "task.done", "usrlfb" },
	{ "infer", "request.stop", "niusrlfb" },
	{ "infer", "request.drain", "niusrlfb" },
	{ "infer", "limit.reached", "niusrlfb" },
	{ "gate", "request.stop", "" },
	{ "gate", "request.drain", "" },
	{ "gate", "limit.reached", "" },
	{ "promote", "request.stop", "" },
	{ "promote", "request.drain", "" },
	{ "promote", "limit.reached", "" },
	{ "paused", "request.stop", "" },
	{ "paused", "request.drain", "" },
	{ "paused", "limit.reached", "" },
	{ "gate", "candidate.chosen", "nb" },
	{ "gate", "gate.judged", "" },
	{ "promote", "candidate.chosen", "nb" },
	{ "promote", "promote.intended", "" },
	{ "promote", "promote.overtaken", "" },
	{ "verify", "run.paused", "n" },
	{ "train", "run.paused", "n" },
	{ "evaluate", "run.paused", "n" },
	{ "gate", "run.paused", "n" },
	{ "infer", "run.paused", "n" },
	{ "promote", "run.paused", "n" },
	{ "ending", "run.ended", "" },
};

static bool is_meant(enum flow_state state, enum attempt_state attempt, enum event_kind kind)
{
	/* A new driver may come at any time, and so may a salvage before the end. */
	if (kind == EV_DRIVER_TOOK_OVER)
		return true;
	if (kind == EV_JOURNAL_SALVAGED || kind == EV_JOURNAL_SETTLED)
		return state != FLOW_NEW && state != FLOW_ENDED;
	for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++)
		if (strcmp(meant[i].state, flow_state_names[state]) == 0 &&
		    strcmp(meant[i].event, event_rows[kind].name) == 0)
			return meant[i].attempts[0] == '\0' ||
			       strchr(meant[i].attempts, attempt_state_names[attempt][0]);
	return false;
}

/* A flow in that state, as far as the rules look. */
static void put(struct flow *flow, enum flow_state state, enum attempt_state attempt)
{
	struct flow_policy policy = story_policy();

	policy.stop_on_mismatch = true;
	flow_init(flow, &policy);
	flow->state = state;
	flow->attempt_state = attempt;
	flow->phase = PHASE_PRECOMPILE;
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		if (strcmp(flow_phase_names[phase], flow_state_names[state]) == 0 &&
		    flow_phases[phase].has_jobs)
			flow->phase = phase;
	flow->policy.stages[flow->phase].tasks = 9;
	flow->policy.generation = 4;
	flow->paused = FLOW_TRAIN;
	snprintf(flow->candidate, sizeof flow->candidate, "text");
	flow->attempt = 2;
	flow->attempts[flow->phase] = 2;
	flow->at.ms = 1000;
	flow->epoch = 1;
	flow->claimed = true;
}

/* The event that means most: of the current attempt, all required fields set. */
static struct event most(const struct flow *flow, enum event_kind kind)
{
	struct event ev = event_of(kind);

	for (int id = 0; id < EVF_COUNT; id++) {
		if ((event_rows[kind].required >> id & 1) == 0)
			continue;
		ev.present |= FIELD_SET_OF(id);
		if (event_fields[id].type == EVT_STR)
			*(const char **)((char *)&ev + event_fields[id].offset) = "text";
	}
	ev.phase = flow->phase;
	ev.attempt = kind == EV_ATTEMPT_INTENDED ? 3 : 2;
	ev.class = CLASS_UNKNOWN;
	ev.verdict = CACHE_COLD;
	ev.continuity = CONTINUITY_FAILED;
	ev.limit = LIMIT_COST;
	ev.step = 100;
	ev.graphs = 7;
	ev.epoch = 2;
	ev.generation = kind == EV_PROMOTE_INTENDED ? 5 : 4;
	ev.index = 3;
	if (kind == EV_RUN_PAUSED)
		ev.phase = PHASE_PRECOMPILE;
	ev.at.ms = 1000;
	return ev;
}

static void pairs_mean_what_is_listed_and_no_other_pair_means_anything(void **state)
{
	int some = 0, none = 0;

	(void)state;
	for (enum flow_state s = 0; s < FLOW_STATE_COUNT; s++)
		for (enum attempt_state a = 0; a < ATTEMPT_STATE_COUNT; a++)
			for (enum event_kind k = 0; k < EV_COUNT; k++) {
				struct flow flow, before;
				struct event ev;
				bool expected = is_meant(s, a, k);

				put(&flow, s, a);
				ev = most(&flow, k);
				before = flow;
				if ((flow_rule_find(&flow, &ev) >= 0) != expected)
					fail_msg("%s in %s/%s is %s", event_rows[k].name,
						 flow_state_names[s], attempt_state_names[a],
						 expected ? "not known" : "not listed");
				flow_apply(&flow, &ev);
				if (!expected)
					assert_memory_equal(&flow, &before, sizeof flow);
				some += expected;
				none += !expected;
			}
	assert_int_equal(some + none, FLOW_STATE_COUNT * ATTEMPT_STATE_COUNT * EV_COUNT);
	assert_true(some > 100 && none > 900);
}

static void a_pair_without_meaning_still_moves_the_time(void **state)
{
	struct flow flow;
	struct event ev;

	(void)state;
	put(&flow, FLOW_ENDED, ATTEMPT_NONE);
	ev = most(&flow, EV_TRAIN_PROGRESS);
	ev.at.ms = 2000;
	flow_apply(&flow, &ev);
	assert_int_equal(flow.at.ms, 2000);
}

static void an_end_is_final(void **state)
{
	struct flow flow, before;

	(void)state;
	for (enum event_kind k = 0; k < EV_COUNT; k++) {
		struct event ev;

		put(&flow, FLOW_ENDED, ATTEMPT_NONE);
		flow.epoch = 9;
		before = flow;
		ev = most(&flow, k);
		flow_apply(&flow, &ev);
		assert_memory_equal(&flow, &before, sizeof flow);
	}
}

static void every_state_but_the_first_effects_for_something(void **state)
{
	(void)state;
	for (enum flow_state s = 0; s < FLOW_STATE_COUNT; s++)
		for (enum attempt_state a = 0; a < ATTEMPT_STATE_COUNT; a++) {
			struct flow flow;
			struct effects effects;

			put(&flow, s, a);
			flow_effects(&flow, flow.at, &effects);
			assert_int_equal(effects.count > 0, s != FLOW_NEW);
			assert_true(effects.count <= FLOW_EFFECTS_MAX);
			for (int i = 0; i < effects.count; i++)
				if (effects.list[i].kind == EFFECT_RECORD)
					assert_true(event_well_formed(&effects.list[i].event));
		}
}

static void what_the_machine_asks_to_record_has_a_meaning(void **state)
{
	(void)state;
	for (enum flow_state s = 0; s < FLOW_STATE_COUNT; s++)
		for (enum attempt_state a = 0; a < ATTEMPT_STATE_COUNT; a++) {
			struct flow flow;
			struct effects effects;

			put(&flow, s, a);
			flow_effects(&flow, flow.at, &effects);
			for (int i = 0; i < effects.count; i++)
				if (effects.list[i].kind == EFFECT_RECORD)
					assert_true(flow_rule_find(&flow, &effects.list[i].event) >=
						    0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_mean_what_is_listed_and_no_other_pair_means_anything),
		cmocka_unit_test(a_pair_without_meaning_still_moves_the_time),
		cmocka_unit_test(an_end_is_final),
		cmocka_unit_test(every_state_but_the_first_effects_for_something),
		cmocka_unit_test(what_the_machine_asks_to_record_has_a_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
