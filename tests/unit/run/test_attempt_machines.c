/* Machines that are kept from one attempt to the next, and what the service says of them. See
 * jobs/run/attempt/attempt_cost.c. */
#include "attempt_fixture.h"

#define PLAN "{'nodes':1,'metrics':[]}"

static struct {
	int kept; /* the answer of release */
	int64_t seconds;
	enum exit_code code; /* of its refusal */
	int calls;
} says;

static int say_release(struct engine *of, const char *name, const char *prefix,
		       int64_t *ret_seconds, struct err **err)
{
	(void)of;
	assert_string_equal(name, "stk-r1-train-2");
	assert_string_equal(prefix, "runs/r1/train-2/");
	says.calls++;
	*ret_seconds = says.seconds;
	if (says.kept >= 0)
		return says.kept;
	(void)!err_set(err, says.code, "they are in use");
	return err_hint(err, "wait");
}

/* Attempt 2 has ended, and it is not known what became of its machines. */
static struct attempt_watch *begin_kept(int kept, int64_t seconds, enum exit_code code)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	ops.release = say_release;
	driver.flow.ledger.ended_phase = PHASE_TRAIN;
	driver.flow.ledger.ended_attempt = 2;
	says.kept = kept;
	says.seconds = seconds;
	says.code = code;
	says.calls = 0;
	return watch;
}

static int64_t release(bool next)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = -1;

	if (attempt_cost_release(&driver, next, &wait_ms, &err) < 0)
		fail_msg("%s", err->message);
	return wait_ms;
}

static void what_was_kept_is_billed(void **state)
{
	(void)state;
	for (int next = 0; next < 2; next++) {
		begin_kept(1, 1, EXIT_DONE);
		assert_int_equal(release(next), 0);
		assert_int_equal(says.calls, 1);
		assert_true(json_real_value(newest_value("attempt.kept", "seconds")) == 1);
		assert_string_equal(newest("attempt.kept", "phase"), "train");
		assert_int_equal(newest_int("attempt.kept", "attempt"), 2);
		assert_null(newest_value("attempt.kept", "reason"));
		end();
	}
	/* no time, or nothing at all, is nothing to tell */
	begin_kept(1, 0, EXIT_DONE);
	assert_int_equal(release(false), 0);
	assert_recorded(0);
	says.kept = 0;
	assert_int_equal(release(false), 0);
	assert_recorded(0);
	end();
}

static void what_cannot_be_released_is_told_with_its_cost(void **state)
{
	(void)state;
	begin_kept(-1, 9, EXIT_REFUSED);
	assert_int_equal(release(false), 0);
	assert_true(json_real_value(newest_value("attempt.kept", "seconds")) == 9);
	assert_string_equal(newest("attempt.kept", "reason"), "they are in use");
	assert_string_equal(newest("attempt.kept", "hint"), "wait");
	end();
	/* the next attempt may take them all the same */
	begin_kept(-1, 9, EXIT_REFUSED);
	assert_int_equal(release(true), 0);
	assert_null(newest_value("attempt.kept", "seconds"));
	assert_string_equal(newest("attempt.kept", "reason"), "they are in use");
	end();
}

static void what_is_not_known_yet_is_asked_again(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	begin_kept(-1, 9, EXIT_BUSY);
	assert_int_equal(release(false), 1000);
	assert_recorded(0);
	says.code = EXIT_UNREACHABLE;
	assert_int_equal(attempt_cost_release(&driver, false, &wait_ms, &err), -1);
	assert_string_equal(err->message, "they are in use");
	assert_recorded(0);
	end();
}

static void where_nothing_can_be_kept_nobody_is_asked(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		begin_kept(1, 5, EXIT_DONE);
		if (i == 0)
			ops.release = NULL;
		else if (i == 1)
			driver.flow.ledger.ended_attempt = 0;
		else if (i == 2)
			driver.flow.ledger.kept_reported = true;
		else
			driver.engine = NULL;
		assert_int_equal(release(false), 0);
		assert_int_equal(says.calls, 0);
		assert_recorded(0);
		driver.engine = &engine;
		end();
	}
}

/* ---- machines of the attempt at hand ---- */

static void a_claim_tells_since_when_machines_are_held(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	for (int held = 0; held < 2; held++) {
		const struct engine_status status = { .held = { held } };
		struct event ev = { .kind = EV_ATTEMPT_CLAIMED };

		begin_kept(1, 5, EXIT_DONE);
		assert_int_equal(attempt_cost_claimed(&driver, &status, &ev, &err), 0);
		assert_int_equal(EVENT_HAS(&ev, held), held);
		if (held)
			assert_int_equal(ev.held, 1);
		assert_true(json_real_value(newest_value("attempt.kept", "seconds")) == 5);
		end();
	}
	/* what was kept comes first */
	{
		const struct engine_status status = { .held = { 1 } };
		struct event ev = { .kind = EV_ATTEMPT_CLAIMED };

		begin_kept(-1, 5, EXIT_UNREACHABLE);
		assert_int_equal(attempt_cost_claimed(&driver, &status, &ev, &err), -1);
		assert_false(EVENT_HAS(&ev, held));
		says.code = EXIT_BUSY; /* is no reason to wait with a claim */
		err_freep(&err);
		assert_int_equal(attempt_cost_claimed(&driver, &status, &ev, &err), 0);
		end();
	}
}

static void at_the_end_it_is_told_if_there_was_no_claim(void **state)
{
	static const struct {
		bool claimed;
		int64_t held;
		int calls;
	} rows[] = { { true, 5, 0 }, { false, 0, 0 }, { false, 1, 1 }, { true, 0, 0 } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch = begin_kept(1, 5, EXIT_DONE);
		const struct engine_status status = { .held = { rows[i].held } };
		AUTO(err_freep) struct err *err = NULL;

		driver.flow.claimed = rows[i].claimed;
		assert_int_equal(attempt_cost_at_end(watch, &status, &err), 0);
		assert_int_equal(says.calls, rows[i].calls);
		end();
	}
}

static void an_end_tells_until_when_and_what_is_billed(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct engine_status status = { .held = { 1 },
						      .released = { i == 2 },
						      .billable_ms = i == 3 };
		struct event ev = { .kind = EV_ATTEMPT_ENDED };

		begin_kept(1, 5, EXIT_DONE);
		driver.flow.claimed = i != 1;
		attempt_cost_ended(&driver, &status, &ev);
		assert_int_equal(EVENT_HAS(&ev, held), i == 1);
		assert_int_equal(EVENT_HAS(&ev, released), i == 2);
		assert_int_equal(EVENT_HAS(&ev, billable), i == 3);
		if (i == 2)
			assert_int_equal(ev.released, 1);
		if (i == 3)
			assert_int_equal(ev.billable, 1);
		assert_int_equal(says.calls, 0);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_kept_is_billed),
		cmocka_unit_test(what_cannot_be_released_is_told_with_its_cost),
		cmocka_unit_test(what_is_not_known_yet_is_asked_again),
		cmocka_unit_test(where_nothing_can_be_kept_nobody_is_asked),
		cmocka_unit_test(a_claim_tells_since_when_machines_are_held),
		cmocka_unit_test(at_the_end_it_is_told_if_there_was_no_claim),
		cmocka_unit_test(an_end_tells_until_when_and_what_is_billed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
