/*
 * Gaps of the ledger: a driver that left, a job that was lost, a precompile that nobody saw, the
 * time between attempts, machines that come late and go late. Who pays for machines reads it here:
 * an hour in a wrong bin is a wrong reason for the bill.
 */
#include "tests/unit/flow/ledger_book.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- time without a driver ------------------------------------------------------ */

static void between_attempts_time_without_a_driver_is_idle(void **state)
{
	struct book b;

	(void)state;
	begin_run(&b);
	assert_int_equal(bin_at(&b, 1500, BIN_VERIFY), 500);
	add(&b, 1500, left());
	assert_int_equal(bin_at(&b, 2000, BIN_VERIFY), 500);
	assert_int_equal(bin_at(&b, 2000, BIN_IDLE), 500);
	add(&b, 2000, took_over(2));
	add(&b, 2000, checked(CACHE_WARM));
	/* killed, after its word at 2300 */
	add(&b, 2300, word());
	assert_int_equal(bin_at(&b, 2900, BIN_QUEUE), 900);
	add(&b, 3000, took_over(3));
	assert_int_equal(bin(&b, BIN_QUEUE), 300);
	assert_int_equal(bin(&b, BIN_IDLE), 500 + 700);
}

static void before_the_first_driver_nobody_was_there(void **state)
{
	struct book b;

	(void)state;
	memset(&b, 0, sizeof b);
	add(&b, 1000, created());
	add(&b, 1200, word());
	add(&b, 1500, took_over(1));
	assert_int_equal(bin(&b, BIN_IDLE), 500);
}

static void a_job_that_waits_for_machines_waits_without_a_driver_too(void **state)
{
	struct book b;

	(void)state;
	intend_training(&b);
	add(&b, 2000, left());
	add(&b, 4000, took_over(2));
	assert_int_equal(bin_at(&b, 5000, BIN_QUEUE), 4000);
}

static void a_run_may_be_known_to_be_without_a_driver(void **state)
{
	struct event end = event_of(EV_RUN_ENDED);
	struct ledger before;
	struct book b;

	(void)state;
	memset(&b, 0, sizeof b);
	ledger_undriven(&b.ledger);
	assert_int_equal(b.ledger.away_since.ms, 0);
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 0);
	begin_training(&b);
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 0);
	add(&b, 4000, progress(1, 11));
	ledger_undriven(&b.ledger);
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 4000);
	assert_int_equal(bin_at(&b, 5000, BIN_UNKNOWN), 1000);
	/* it stays the time at which that began */
	add(&b, 4500, word());
	ledger_undriven(&b.ledger);
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 4000);
	add(&b, 4600, took_over(2));
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 0);
	add(&b, 4700, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 4000);
	EVENT_SET(&end, state, OUTCOME_FAILED);
	EVENT_SET(&end, exit_code, 1);
	add(&b, 5000, end);
	before = b.ledger;
	ledger_undriven(&b.ledger);
	assert_memory_equal(&b.ledger, &before, sizeof before);
	assert_int_equal(ledger_unobserved_since(&b.ledger).ms, 0);
}

/* ---- an attempt that is not seen ------------------------------------------------ */

static void a_lost_attempt_is_unknown_until_it_is_found(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	add(&b, 5000, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	assert_int_equal(bin_at(&b, 6000, BIN_UNKNOWN), 2000);
	add(&b, 6000, about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	assert_int_equal(bin_at(&b, 9000, BIN_UNKNOWN), 2000);
	assert_int_equal(bin_at(&b, 9000, BIN_STEPS), 4000);
	add(&b, 9000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 2000);
}

static void what_is_found_and_was_never_lost_leaves_no_gap(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	add(&b, 5000, progress(1, 11));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 0);
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
}

/* An attempt that is lost when the driver changes was lost before. */
static void a_lost_attempt_stays_lost_over_a_takeover(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	add(&b, 5000, left());
	add(&b, 6000, took_over(2));
	add(&b, 7000, about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	add(&b, 8000, progress(1, 11));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 3000);
}

static void an_end_is_unknown_since_the_attempt_was_last_seen(void **state)
{
	struct book b;

	(void)state;
	/* the first attempt */
	begin_silent(&b);
	add(&b, 3000, left());
	add(&b, 5000, took_over(2));
	add(&b, 6000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 5000); /* and it had shown nothing before */
	/* lost, found, and then without a driver */
	begin_training(&b);
	add(&b, 4000, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	add(&b, 5000, about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	add(&b, 6000, left());
	add(&b, 7000, took_over(2));
	add(&b, 8000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 1000 + 2000);
	/* told to stop, while nobody saw it */
	begin_training(&b);
	add(&b, 4000, about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	add(&b, 6000, stop("enough"));
	add(&b, 8000, ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 4000);
}

/* ---- precompile ----------------------------------------------------------------- */

static void precompile_is_precompile_while_somebody_sees_it(void **state)
{
	struct book b, plain;
	struct event end = ended(PHASE_PRECOMPILE, 1, CLASS_NONE);

	(void)state;
	begin_precompile(&b);
	assert_int_equal(bin_at(&b, 3000, BIN_PRECOMPILE), 1000);
	add(&b, 3000, left());
	add(&b, 5000, took_over(2));
	plain = b;
	assert_int_equal(bin_at(&b, 6000, BIN_PRECOMPILE), 4000);
	/* Nobody saw it between. */
	add(&b, 8000, end);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 5000);
	/* The graphs of an attempt show that it went on; those of another attempt do not. */
	b = plain;
	add(&b, 5500, compiling(1));
	add(&b, 8000, end);
	assert_int_equal(bin(&b, BIN_PRECOMPILE), 6000);
	b = plain;
	add(&b, 5500, compiling(2));
	add(&b, 8000, end);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 5000);
	/* The time is not that of the driver after the next. */
	b = plain;
	add(&b, 5500, compiling(1));
	add(&b, 6000, left());
	add(&b, 7000, took_over(3));
	add(&b, 8000, end);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 2000);
	/* The agent says when it ended. */
	b = plain;
	EVENT_SET(&end, finished, 4500);
	add(&b, 8000, end);
	assert_int_equal(bin(&b, BIN_PRECOMPILE), 2500);
	assert_int_equal(bin(&b, BIN_IDLE), 3500);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 0);
}

static void precompile_that_is_told_to_stop_saves_nothing(void **state)
{
	struct book b;

	(void)state;
	begin_precompile(&b);
	add(&b, 3000, left());
	add(&b, 5000, took_over(2));
	add(&b, 5500, compiling(1));
	add(&b, 6000, stop("enough"));
	add(&b, 7000, ended(PHASE_PRECOMPILE, 1, CLASS_STOPPED));
	assert_int_equal(bin(&b, BIN_PRECOMPILE), 5000);
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 0);
}

static void news_of_a_training_are_no_news_of_a_precompile(void **state)
{
	struct book b;

	(void)state;
	begin_precompile(&b);
	add(&b, 3000, progress(1, 5));
	add(&b, 4000, progress(1, 9));
	add(&b, 4000, checkpoint(1, 9, "ckpt"));
	assert_int_equal(bin(&b, BIN_PRECOMPILE), 2000);
	assert_int_equal(bin(&b, BIN_STEPS), 0);
	/* and the other way round */
	begin_silent(&b);
	add(&b, 2000, left());
	add(&b, 3000, took_over(2));
	add(&b, 4000, compiling(1));
	add(&b, 5000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 4000);
}

/* The cache of a precompile attempt is looked at, also if some graphs failed to compile. */
static void after_an_attempt_comes_verification_a_pause_or_nothing(void **state)
{
	static const struct {
		enum phase phase;
		enum failure_class class;
		enum ledger_bin bin;
	} rows[] = {
		{ PHASE_PRECOMPILE, CLASS_NONE, BIN_VERIFY },
		{ PHASE_PRECOMPILE, CLASS_COMPILE, BIN_VERIFY },
		{ PHASE_PRECOMPILE, CLASS_TIMEOUT_HANG, BIN_BACKOFF },
		{ PHASE_PRECOMPILE, CLASS_COMM, BIN_BACKOFF },
		{ PHASE_TRAIN, CLASS_COMPILE, BIN_BACKOFF },
		{ PHASE_TRAIN, CLASS_COMM, BIN_BACKOFF },
		{ PHASE_TRAIN, CLASS_NONE, BIN_VERIFY },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct book b;
		int64_t before;

		if (rows[i].phase == PHASE_PRECOMPILE)
			begin_precompile(&b);
		else
			begin_silent(&b);
		add(&b, 3000, ended(rows[i].phase, 1, rows[i].class));
		before = bin(&b, rows[i].bin);
		assert_int_equal(bin_at(&b, 4000, rows[i].bin), before + 1000);
		/* The cache is looked at behind a precompile attempt alone. */
		add(&b, 5000, verified(1, true, NULL));
		assert_int_equal(
			bin_at(&b, 6000, BIN_QUEUE),
			rows[i].phase == PHASE_PRECOMPILE && rows[i].bin == BIN_VERIFY ? 1000 : 0);
	}
}

/* ---- between attempts ----------------------------------------------------------- */

static void to_wait_for_another_run_is_to_wait_in_a_queue(void **state)
{
	struct book b;

	(void)state;
	begin_precompile(&b);
	add(&b, 2000, ended(PHASE_PRECOMPILE, 1, CLASS_COMM));
	{
		struct event pause = retry(3000);

		EVENT_SET(&pause, phase, PHASE_PRECOMPILE);
		add(&b, 2000, pause);
	}
	add(&b, 5000, key_event(EV_CACHE_WAITING));
	assert_int_equal(bin(&b, BIN_BACKOFF), 1000);
	assert_int_equal(bin(&b, BIN_QUEUE), 2000);
	add(&b, 6000, key_event(EV_CACHE_CLAIMED));
	add(&b, 7000, intended(PHASE_PRECOMPILE, 2, -1));
	assert_int_equal(bin(&b, BIN_BACKOFF), 1000);
	assert_int_equal(bin(&b, BIN_QUEUE), 4000);
	/* While the cache is looked at, it is a look at the cache. */
	begin_run(&b);
	add(&b, 2000, key_event(EV_CACHE_CLAIMED));
	assert_int_equal(bin_at(&b, 3000, BIN_VERIFY), 2000);
}

static void to_choose_a_checkpoint_belongs_to_restoring_it(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 3000, event_of(EV_CHECKPOINT_CHOSEN));
	add(&b, 3500, event_of(EV_CHECKPOINT_CHOSEN));
	assert_int_equal(bin(&b, BIN_RESTORE), 0);
	add(&b, 4000, ended(PHASE_TRAIN, 1, CLASS_COMM));
	add(&b, 4000, retry(5000));
	add(&b, 5500, event_of(EV_CHECKPOINT_CHOSEN));
	assert_int_equal(bin(&b, BIN_BACKOFF), 1000);
	assert_int_equal(bin(&b, BIN_RESTORE), 500);
}

/* ---- machines ------------------------------------------------------------------- */

static void machines_come_then_the_image_then_the_setup(void **state)
{
	struct event claim = claimed_since(1, 1800), end = ended(PHASE_TRAIN, 1, CLASS_CAPACITY);
	struct book b;

	(void)state;
	EVENT_SET(&claim, held, 1500);
	intend_training(&b);
	add(&b, 2500, claim);
	assert_int_equal(bin(&b, BIN_QUEUE), 500);
	assert_int_equal(bin(&b, BIN_PULL), 300);
	assert_int_equal(bin(&b, BIN_SETUP), 700);
	/* The image may be all that it came to. */
	intend_training(&b);
	EVENT_SET(&end, held, 2000);
	add(&b, 3000, end);
	assert_int_equal(bin(&b, BIN_QUEUE), 1000);
	assert_int_equal(bin(&b, BIN_PULL), 1000);
	assert_int_equal(held(&b), 1000);
}

/* Machines cost until they are given back, also behind the command's end. */
static void machines_are_held_idle_until_they_are_given_back(void **state)
{
	struct event end = ended(PHASE_TRAIN, 1, CLASS_COMM);
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 5000, left());
	add(&b, 9000, took_over(2));
	EVENT_SET(&end, finished, 6000);
	EVENT_SET(&end, released, 7000);
	add(&b, 9500, end);
	assert_int_equal(bin(&b, BIN_IDLE), 3500);
	assert_int_equal(held(&b), 5000);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 1000);
}

static void a_check_up_counts_with_its_end_before_the_command(void **state)
{
	struct event check = about(EV_HEALTH_CHECKED, PHASE_TRAIN, 1), half = check;
	struct book b;

	(void)state;
	EVENT_SET(&check, healthy, true);
	half = check;
	EVENT_SET(&half, finished, 2400);
	EVENT_SET(&check, since, 2200);
	EVENT_SET(&check, finished, 2400);
	/* the command has begun: it is told late */
	begin_training(&b);
	add(&b, 3000, check);
	assert_int_equal(bin(&b, BIN_HEALTH), 0);
	begin_silent(&b);
	add(&b, 2500, check);
	assert_int_equal(bin_at(&b, 2500, BIN_HEALTH), 0);
	/* without a begin nothing is known of it */
	intend_training(&b);
	add(&b, 2000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	add(&b, 2500, half);
	assert_int_equal(bin(&b, BIN_HEALTH), 0);
	add(&b, 2600, check);
	assert_int_equal(bin(&b, BIN_HEALTH), 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_attempts_time_without_a_driver_is_idle),
		cmocka_unit_test(before_the_first_driver_nobody_was_there),
		cmocka_unit_test(a_job_that_waits_for_machines_waits_without_a_driver_too),
		cmocka_unit_test(a_run_may_be_known_to_be_without_a_driver),
		cmocka_unit_test(a_lost_attempt_is_unknown_until_it_is_found),
		cmocka_unit_test(what_is_found_and_was_never_lost_leaves_no_gap),
		cmocka_unit_test(a_lost_attempt_stays_lost_over_a_takeover),
		cmocka_unit_test(an_end_is_unknown_since_the_attempt_was_last_seen),
		cmocka_unit_test(precompile_is_precompile_while_somebody_sees_it),
		cmocka_unit_test(precompile_that_is_told_to_stop_saves_nothing),
		cmocka_unit_test(news_of_a_training_are_no_news_of_a_precompile),
		cmocka_unit_test(after_an_attempt_comes_verification_a_pause_or_nothing),
		cmocka_unit_test(to_wait_for_another_run_is_to_wait_in_a_queue),
		cmocka_unit_test(to_choose_a_checkpoint_belongs_to_restoring_it),
		cmocka_unit_test(machines_come_then_the_image_then_the_setup),
		cmocka_unit_test(machines_are_held_idle_until_they_are_given_back),
		cmocka_unit_test(a_check_up_counts_with_its_end_before_the_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
