/* Every millisecond in one bin: what each event says about time. */
#include "jobs/base/mem.h"
#include "tests/unit/flow/ledger_book.h"

static void a_plain_run_is_in_its_bins_to_the_millisecond(void **state)
{
	struct book b;

	(void)state;
	memset(&b, 0, sizeof b);
	add(&b, 1000, created());
	add(&b, 1005, took_over(1));
	add(&b, 1100, checked(CACHE_COLD));
	add(&b, 1110, intended(PHASE_PRECOMPILE, 1, -1));
	add(&b, 1200, about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	add(&b, 1500, about(EV_ATTEMPT_CLAIMED, PHASE_PRECOMPILE, 1));
	add(&b, 1700, about(EV_ATTEMPT_STARTED, PHASE_PRECOMPILE, 1));
	add(&b, 11700, ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	add(&b, 12000, verified(1, true, NULL));
	add(&b, 12001, intended(PHASE_TRAIN, 1, -1));
	add(&b, 12002, about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	add(&b, 12302, claimed_since(1, 12102));
	add(&b, 12400, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
	add(&b, 15000, progress(1, 1));
	add(&b, 25000, progress(1, 100));
	add(&b, 26000, ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_int_equal(bin(&b, BIN_IDLE), 5);
	assert_int_equal(bin(&b, BIN_VERIFY), 95 + 300);
	assert_int_equal(bin(&b, BIN_QUEUE), 10 + 390 + 1 + 101);
	assert_int_equal(bin(&b, BIN_PRECOMPILE), 10000);
	assert_int_equal(bin(&b, BIN_SETUP), 200 + 298 + 2600);
	assert_int_equal(bin(&b, BIN_STEPS), 11000);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 0);
	/* from claim to end; of the training by the agent's own clock */
	assert_int_equal(held(&b), 10200 + 26000 - 12102);
}

static void nothing_is_counted_before_the_run_or_after_its_end(void **state)
{
	struct event end = event_of(EV_RUN_ENDED);
	struct ledger_view view;
	struct book b;

	(void)state;
	memset(&b, 0, sizeof b);
	ledger_at(&b.ledger, (struct utc){ 5000 }, &view);
	assert_int_equal(view.total_ms, 0);
	begin_training(&b);
	add(&b, 4000, ended(PHASE_TRAIN, 1, CLASS_NONE));
	EVENT_SET(&end, state, OUTCOME_SUCCEEDED);
	EVENT_SET(&end, exit_code, 0);
	add(&b, 4001, end);
	ledger_at(&b.ledger, (struct utc){ 999000 }, &view);
	assert_int_equal(view.total_ms, 3001);
	ledger_add(&b.ledger, &end);
	ledger_at(&b.ledger, (struct utc){ 999000 }, &view);
	assert_int_equal(view.total_ms, 3001);
}

static void steps_that_were_made_before_are_replayed(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 13000, progress(1, 101));
	add(&b, 13000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	add(&b, 13000, retry(14000));
	add(&b, 14000, intended(PHASE_TRAIN, 2, 51)); /* from the checkpoint of step 51 */
	add(&b, 14000, about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
	add(&b, 14500, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 2));
	add(&b, 14600, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 2));
	add(&b, 16600, progress(2, 52));
	assert_int_equal(bin(&b, BIN_RESTORE), 2000);
	add(&b, 21500, progress(2, 101));
	assert_int_equal(bin(&b, BIN_REPLAYED), 4900);
	assert_int_equal(bin(&b, BIN_STEPS), 10000);
	add(&b, 22500, progress(2, 111));
	assert_int_equal(bin(&b, BIN_REPLAYED), 4900);
	assert_int_equal(bin(&b, BIN_STEPS), 11000);
	assert_int_equal(bin(&b, BIN_BACKOFF), 1000);
}

static void a_stretch_over_the_old_and_the_new_is_divided_by_steps(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 13000, progress(1, 101));
	add(&b, 13000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	add(&b, 13000, intended(PHASE_TRAIN, 2, 61));
	add(&b, 13000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 2));
	add(&b, 13000, progress(2, 61));
	add(&b, 23001, progress(2, 161)); /* 40 of 100 steps again */
	assert_int_equal(bin(&b, BIN_REPLAYED), 4000);
	assert_int_equal(bin(&b, BIN_STEPS), 16001);
}

static struct event saved(int64_t step, double seconds)
{
	struct event ev = checkpoint(1, step, "ckpt");

	EVENT_SET(&ev, seconds, seconds);
	return ev;
}

static void saving_is_checkpoint_as_far_as_its_time_is_told(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, saved(10, 0.4));
	add(&b, 5000, progress(1, 11));
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 400);
	assert_int_equal(bin(&b, BIN_STEPS), 1600);
}

static void saving_that_is_told_late_is_found_in_the_steps_it_held_up(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, progress(1, 11));
	add(&b, 8000, progress(1, 21)); /* three seconds too long */
	add(&b, 9000, progress(1, 31));
	add(&b, 9500, saved(20, 2.5));
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 2500);
	add(&b, 10000, progress(1, 41));
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 2500);
	assert_int_equal(bin(&b, BIN_STEPS), 4500);
}

static void saving_beside_the_steps_costs_what_it_slows_them(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, progress(1, 11));
	add(&b, 5000, progress(1, 21));
	add(&b, 5500, saved(20, 60));
	add(&b, 6200, progress(1, 31));
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 200);
	add(&b, 7200, progress(1, 41));
	add(&b, 8000, ended(PHASE_TRAIN, 1, CLASS_NONE)); /* no steps were shown in that */
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 1000);
	assert_int_equal(bin(&b, BIN_STEPS), 4000);
}

static void where_nothing_shows_the_pace_saving_is_believed(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	for (int i = 1; i <= 5; i++) {
		add(&b, 2500 + i * 1000, saved(i, 0.3));
		add(&b, 3000 + i * 1000, progress(1, 1 + i));
	}
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 1500);
	assert_int_equal(bin(&b, BIN_STEPS), 3500);
}

static void what_is_saved_in_a_drain_is_not_counted_twice(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, progress(1, 11));
	add(&b, 5000, stop("enough"));
	add(&b, 6000, saved(12, 0.9));
	add(&b, 6500, ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 1500);
}

static void a_drain_is_checkpoint(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 5000, stop("enough"));
	add(&b, 6000, checkpoint(1, 10, "ckpt/10"));
	add(&b, 6500, ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 1500);
}

static void a_hang_is_what_the_agent_says_and_no_more_than_there_was(void **state)
{
	struct event end = ended(PHASE_TRAIN, 1, CLASS_TIMEOUT_HANG);
	struct book b, c;

	(void)state;
	begin_training(&b);
	c = b;
	EVENT_SET(&end, hang, 3000);
	add(&b, 7000, progress(1, 1)); /* the same step again is no progress */
	add(&b, 8000, end);
	assert_int_equal(bin(&b, BIN_HANG), 3000);
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	EVENT_SET(&end, hang, 999000);
	add(&c, 8000, end);
	assert_int_equal(bin(&c, BIN_HANG), 5000);
	assert_int_equal(bin(&c, BIN_STEPS), 0);
}

static void a_hang_begins_when_the_last_step_was_seen(void **state)
{
	struct event end = ended(PHASE_TRAIN, 1, CLASS_TIMEOUT_HANG), late = progress(1, 50);
	struct book b;

	(void)state;
	begin_training(&b);
	EVENT_SET(&late, since, 5000); /* journalled at the end only */
	add(&b, 12000, late);
	EVENT_SET(&end, hang, 7000);
	add(&b, 12000, end);
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	assert_int_equal(bin(&b, BIN_HANG), 7000);
}

static void a_backoff_is_backoff_until_its_time_and_then_idle_without_a_driver(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, ended(PHASE_TRAIN, 1, CLASS_UNKNOWN));
	add(&b, 4000, retry(6000));
	add(&b, 4500, left());
	add(&b, 9000, took_over(2));
	assert_int_equal(bin(&b, BIN_BACKOFF), 2000);
	assert_int_equal(bin(&b, BIN_IDLE), 3000);
	add(&b, 9100, intended(PHASE_TRAIN, 2, -1));
	assert_int_equal(bin(&b, BIN_BACKOFF), 2100);
}

static void a_driver_that_died_was_away_since_its_last_word(void **state)
{
	struct book b;

	(void)state;
	memset(&b, 0, sizeof b);
	add(&b, 1000, created());
	add(&b, 1000, took_over(1));
	add(&b, 2000, checked(CACHE_WARM));
	add(&b, 9000, took_over(2));
	assert_int_equal(bin(&b, BIN_VERIFY), 1000);
	assert_int_equal(bin(&b, BIN_IDLE), 7000);
}

static void a_request_is_no_word_of_a_driver(void **state)
{
	struct book b;

	(void)state;
	begin_run(&b);
	add(&b, 2000, checked(CACHE_WARM));
	add(&b, 8000, event_of(EV_REQUEST_STOP));
	add(&b, 9000, took_over(2));
	assert_int_equal(bin(&b, BIN_IDLE), 7000);
	add(&b, 9500, event_of(EV_REQUEST_STOP));
	ledger_undriven(&b.ledger);
	assert_int_equal(bin_at(&b, 12000, BIN_IDLE), 10000);
}

static void what_a_job_did_without_a_driver_is_unknown(void **state)
{
	struct event end = ended(PHASE_TRAIN, 1, CLASS_NONE);
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, left());
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 4000);
	assert_int_equal(bin_at(&b, 60000, BIN_STEPS), 1000);
	assert_int_equal(bin_at(&b, 60000, BIN_UNKNOWN), 56000);
	add(&b, 9000, took_over(2));
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 0);
	add(&b, 9100, progress(1, 70));
	assert_int_equal(bin(&b, BIN_STEPS), 1100);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 5000);
	assert_int_equal(bin(&b, BIN_IDLE), 0);
	add(&b, 9200, left());
	add(&b, 20000, took_over(3));
	EVENT_SET(&end, finished, 11000);
	add(&b, 20100, end);
	assert_int_equal(bin(&b, BIN_STEPS), 1200);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 6800);
	assert_int_equal(bin(&b, BIN_IDLE), 9100);
	assert_int_equal(held(&b), 9000);
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 0);
}

static struct event stretch(int64_t since, int64_t until, int64_t first, int64_t step)
{
	struct event ev = event_of(EV_TRAIN_STRETCH);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, since, since);
	EVENT_SET(&ev, until, until);
	EVENT_SET(&ev, first_step, first);
	EVENT_SET(&ev, step, step);
	return ev;
}

static void steps_that_an_agent_saw_are_known(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, left());
	add(&b, 20000, took_over(2));
	/* steps until 8000, a pause, and steps from 12000 to 16000 */
	add(&b, 20000, stretch(3000, 8000, 1, 51));
	add(&b, 20000, stretch(12000, 16000, 51, 91));
	add(&b, 20100, progress(1, 92));
	assert_int_equal(bin(&b, BIN_STEPS), 5000 + 4000 + 100);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 4000 + 4000);
}

static void stretches_need_no_room_that_is_not_there(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, left());
	add(&b, 104000, took_over(2));
	for (int64_t i = 0; i < 3 * LEDGER_HOLES_MAX; i++)
		add(&b, 104000, stretch(4100 + i * 1000, 4600 + i * 1000, i, i + 1));
	assert_true(b.ledger.hole_count <= LEDGER_HOLES_MAX);
	add(&b, 104000, progress(1, 92));
	assert_int_equal(bin(&b, BIN_STEPS), 1000 + (LEDGER_HOLES_MAX - 1) * 500);
}

static void a_driver_that_was_killed_leaves_no_steps_behind(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 5000, progress(1, 50));
	ledger_undriven(&b.ledger);
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 5000);
	assert_int_equal(bin_at(&b, 65000, BIN_STEPS), 2000);
	assert_int_equal(bin_at(&b, 65000, BIN_UNKNOWN), 60000);
}

static void an_end_that_nobody_saw_is_unknown(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 5000, progress(1, 50));
	add(&b, 65000, took_over(2));
	add(&b, 65100, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 60100);
}

static void what_a_lost_attempt_did_is_unknown(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 4000);
	assert_int_equal(bin_at(&b, 7000, BIN_UNKNOWN), 3000);
	add(&b, 8000, about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	add(&b, 9000, progress(1, 50));
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 4000);
	add(&b, 10000, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	add(&b, 14000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	assert_int_equal(bin(&b, BIN_STEPS), 3000);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 8000);
}

static void what_was_never_submitted_left_the_time_idle(void **state)
{
	struct book b;

	(void)state;
	intend_training(&b);
	add(&b, 61000, took_over(2));
	add(&b, 61500, about(EV_ATTEMPT_MISSING, PHASE_TRAIN, 1));
	assert_int_equal(bin(&b, BIN_IDLE), 60000);
	assert_int_equal(bin(&b, BIN_QUEUE), 500);
}

/* If the run is to end, nothing is submitted any more, so that nobody has to look for it again; if
 * it goes on, a driver that died may have submitted it. */
static void what_a_stop_finds_was_never_there_leaves_the_time_after_it_idle(void **state)
{
	const struct {
		enum event_kind kind;
		enum run_limit limit;
		int64_t idle;
	} rows[] = {
		{ EV_REQUEST_STOP, LIMIT_NONE, 60000 },
		{ EV_LIMIT_REACHED, LIMIT_DEADLINE, 60000 },
		{ EV_LIMIT_REACHED, LIMIT_UNREACHABLE, 0 },
		{ EV_REQUEST_DRAIN, LIMIT_NONE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct event asked = { .kind = rows[i].kind };
		int64_t idle;
		struct book b;

		if (rows[i].limit != LIMIT_NONE)
			EVENT_SET(&asked, limit, rows[i].limit);
		EVENT_SET_STR(&asked, reason, "it is late");
		intend_training(&b);
		add(&b, 1100, asked);
		add(&b, 1200, took_over(2));
		add(&b, 1500, about(EV_ATTEMPT_MISSING, PHASE_TRAIN, 1));
		idle = bin(&b, BIN_IDLE);
		add(&b, 61500, took_over(3));
		assert_int_equal(bin(&b, BIN_IDLE) - idle, rows[i].idle);
	}
}

static void a_training_without_steps_is_judged_by_its_end(void **state)
{
	struct book b, c;

	(void)state;
	intend_training(&b);
	add(&b, 1000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	add(&b, 1500, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
	c = b;
	add(&b, 9500, ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_int_equal(bin(&b, BIN_STEPS), 8000);
	add(&c, 9500, ended(PHASE_TRAIN, 1, CLASS_USER_CODE));
	assert_int_equal(bin(&c, BIN_UNKNOWN), 8000);
	assert_int_equal(bin(&c, BIN_SETUP), 500);
}

static void evaluation_and_inference_have_their_own_bins(void **state)
{
	static const struct {
		enum phase phase;
		enum ledger_bin bin;
	} cases[] = { { PHASE_EVALUATE, BIN_EVALUATE }, { PHASE_INFER, BIN_INFER } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct book b;

		begin_training(&b);
		add(&b, 4000, ended(PHASE_TRAIN, 1, CLASS_NONE));
		add(&b, 4000, intended(cases[i].phase, 1, -1));
		add(&b, 4000, about(EV_ATTEMPT_CLAIMED, cases[i].phase, 1));
		add(&b, 4100, about(EV_ATTEMPT_STARTED, cases[i].phase, 1));
		add(&b, 5100, ended(cases[i].phase, 1, CLASS_NONE));
		assert_int_equal(bin(&b, cases[i].bin), 1000);
	}
}

static void clocks_of_others_are_held_within_the_journal(void **state)
{
	struct event started = about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1);
	struct event end = ended(PHASE_TRAIN, 1, CLASS_NONE);
	struct book b;

	(void)state;
	intend_training(&b);
	add(&b, 2000, claimed_since(1, -500)); /* an hour back: not before the intent */
	assert_int_equal(bin(&b, BIN_QUEUE), 0);
	EVENT_SET(&started, started, INT64_MAX);
	add(&b, 3000, started);
	assert_int_equal(bin(&b, BIN_SETUP), 2000);
	EVENT_SET(&end, finished, INT64_MIN);
	add(&b, 9000, took_over(2));
	add(&b, 9000, end);
	assert_int_equal(held(&b), 2000);
}

/* A service may say late that a job has ended: a limit that comes before is recorded after the
 * machines were given back. Of a clock that is an hour behind nothing is believed. */
static void machines_are_not_held_after_they_were_given_back(void **state)
{
	static const struct {
		int64_t released, held;
	} rows[] = { { 9000, 7000 }, { 12000, 10000 }, { 1500, 13000 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct event limit = event_of(EV_LIMIT_REACHED);
		struct event end = ended(PHASE_TRAIN, 1, CLASS_NONE);
		struct book b;

		intend_training(&b);
		add(&b, 2000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
		add(&b, 2000, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
		add(&b, 3000, progress(1, 1));
		EVENT_SET(&limit, limit, LIMIT_DEADLINE);
		EVENT_SET_STR(&limit, reason, "limits.deadline");
		add(&b, 15000, limit);
		EVENT_SET(&end, released, rows[i].released);
		add(&b, 16000, end);
		assert_int_equal(held(&b), rows[i].held);
	}
}

static void news_of_another_attempt_is_of_no_account(void **state)
{
	struct book b, before;

	(void)state;
	begin_training(&b);
	before = b;
	add(&b, 3000, progress(7, 999));
	add(&b, 3000, ended(PHASE_TRAIN, 2, CLASS_NONE));
	add(&b, 3000, ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	add(&b, 3000, checkpoint(2, 9, "ckpt"));
	assert_memory_equal(&b, &before, sizeof b);
}

static void a_check_up_is_neither_setup_nor_training(void **state)
{
	struct event ev = about(EV_HEALTH_CHECKED, PHASE_TRAIN, 1);
	struct book b;

	(void)state;
	intend_training(&b);
	add(&b, 1000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	EVENT_SET(&ev, healthy, true);
	EVENT_SET(&ev, since, 1200);
	EVENT_SET(&ev, finished, 3700);
	add(&b, 4000, ev);
	assert_int_equal(bin(&b, BIN_SETUP), 500);
	assert_int_equal(bin(&b, BIN_HEALTH), 2500);
	add(&b, 4000, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
	add(&b, 5000, progress(1, 1));
	assert_int_equal(bin(&b, BIN_HEALTH), 2500);
	assert_int_equal(bin(&b, BIN_SETUP), 1500);
}

static void bins_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < BIN_COUNT; i++) {
		assert_true(ledger_bin_names[i][0] != '\0');
		assert_string_not_equal(ledger_bin_names[i], "total");
		for (int j = 0; j < i; j++)
			assert_string_not_equal(ledger_bin_names[i], ledger_bin_names[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_run_is_in_its_bins_to_the_millisecond),
		cmocka_unit_test(nothing_is_counted_before_the_run_or_after_its_end),
		cmocka_unit_test(steps_that_were_made_before_are_replayed),
		cmocka_unit_test(a_stretch_over_the_old_and_the_new_is_divided_by_steps),
		cmocka_unit_test(saving_is_checkpoint_as_far_as_its_time_is_told),
		cmocka_unit_test(saving_that_is_told_late_is_found_in_the_steps_it_held_up),
		cmocka_unit_test(saving_beside_the_steps_costs_what_it_slows_them),
		cmocka_unit_test(where_nothing_shows_the_pace_saving_is_believed),
		cmocka_unit_test(what_is_saved_in_a_drain_is_not_counted_twice),
		cmocka_unit_test(a_drain_is_checkpoint),
		cmocka_unit_test(a_hang_is_what_the_agent_says_and_no_more_than_there_was),
		cmocka_unit_test(a_hang_begins_when_the_last_step_was_seen),
		cmocka_unit_test(
			a_backoff_is_backoff_until_its_time_and_then_idle_without_a_driver),
		cmocka_unit_test(a_driver_that_died_was_away_since_its_last_word),
		cmocka_unit_test(a_request_is_no_word_of_a_driver),
		cmocka_unit_test(what_a_job_did_without_a_driver_is_unknown),
		cmocka_unit_test(steps_that_an_agent_saw_are_known),
		cmocka_unit_test(stretches_need_no_room_that_is_not_there),
		cmocka_unit_test(a_driver_that_was_killed_leaves_no_steps_behind),
		cmocka_unit_test(an_end_that_nobody_saw_is_unknown),
		cmocka_unit_test(what_a_lost_attempt_did_is_unknown),
		cmocka_unit_test(what_was_never_submitted_left_the_time_idle),
		cmocka_unit_test(what_a_stop_finds_was_never_there_leaves_the_time_after_it_idle),
		cmocka_unit_test(a_training_without_steps_is_judged_by_its_end),
		cmocka_unit_test(evaluation_and_inference_have_their_own_bins),
		cmocka_unit_test(clocks_of_others_are_held_within_the_journal),
		cmocka_unit_test(machines_are_not_held_after_they_were_given_back),
		cmocka_unit_test(news_of_another_attempt_is_of_no_account),
		cmocka_unit_test(a_check_up_is_neither_setup_nor_training),
		cmocka_unit_test(bins_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
