/*
 * News of a training, and the time that they tell of, in the order in which they come: steps that
 * only the agent saw, saving and compiling that are told late, an end that was asked for, and what
 * is no news at all.
 */
#include "tests/unit/flow/ledger_book.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct event stretch(int64_t attempt, int64_t since, int64_t until, int64_t first_step)
{
	struct event ev = event_of(EV_TRAIN_STRETCH);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, since, since);
	EVENT_SET(&ev, until, until);
	if (first_step > 0)
		EVENT_SET(&ev, first_step, first_step);
	return ev;
}

/* ---- steps ---------------------------------------------------------------------- */

static void the_agents_stretch_may_be_the_first_news_of_steps(void **state)
{
	struct book b;

	(void)state;
	begin_silent(&b);
	add(&b, 5000, stretch(1, 3000, 4000, 11));
	assert_int_equal(bin(&b, BIN_SETUP), 2000);
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	/* before the command, it is of another */
	intend_training(&b);
	add(&b, 5000, stretch(1, 3000, 4000, 11));
	assert_int_equal(bin(&b, BIN_QUEUE), 4000);
}

/* 100 steps, of which so many had been reached before: the replayed share of a second. */
static void a_stretch_tells_with_which_step_it_began(void **state)
{
	static const struct {
		int64_t from, first, step, replayed;
	} rows[] = {
		{ 51, 0, 151, 500 },  /* from the checkpoint: 50 of 100 */
		{ -1, 0, 200, 505 },  /* from scratch: 101 of 200 */
		{ -1, 51, 151, 500 }, /* from a checkpoint of its own, as the agent saw */
		{ 51, 10, 151, 500 }, /* never before its checkpoint */
		{ -1, 101, 201, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct book b;

		begin_again(&b, rows[i].from);
		add(&b, 21000, stretch(2, 21000, 21000, rows[i].first));
		add(&b, 22000, progress(2, rows[i].step));
		assert_int_equal(bin(&b, BIN_REPLAYED), rows[i].replayed);
	}
}

static void progress_counts_once_the_machines_are_there(void **state)
{
	struct book b;

	(void)state;
	intend_training(&b);
	add(&b, 2000, progress(1, 5));
	add(&b, 3000, progress(1, 9));
	assert_int_equal(bin(&b, BIN_QUEUE), 2000);
	assert_int_equal(bin(&b, BIN_STEPS), 0);
}

static void progress_without_a_step_is_progress_and_no_step(void **state)
{
	struct event only = event_of(EV_TRAIN_PROGRESS);
	struct book b;

	(void)state;
	EVENT_SET(&only, attempt, 1);
	begin_silent(&b);
	add(&b, 2000, progress(1, 1));
	add(&b, 3000, progress(1, 101));
	add(&b, 4000, only);
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	add(&b, 4000, ended(PHASE_TRAIN, 1, CLASS_COMM));
	add(&b, 4000, intended(PHASE_TRAIN, 2, 51));
	add(&b, 4000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 2));
	add(&b, 4000, progress(2, 51));
	add(&b, 5000, progress(2, 101));
	assert_int_equal(bin(&b, BIN_REPLAYED), 1000);
}

/* An attempt that came less far does not make the one before it forgotten. */
static void the_farthest_step_of_all_attempts_counts(void **state)
{
	struct book b;

	(void)state;
	begin_again(&b, 51);
	add(&b, 20000, progress(2, 51));
	add(&b, 20100, progress(2, 61));
	assert_int_equal(bin(&b, BIN_REPLAYED), 100);
	add(&b, 20100, ended(PHASE_TRAIN, 2, CLASS_COMM));
	add(&b, 20100, intended(PHASE_TRAIN, 3, 51));
	add(&b, 20100, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 3));
	add(&b, 20100, progress(3, 51));
	add(&b, 20600, progress(3, 101));
	assert_int_equal(bin(&b, BIN_REPLAYED), 600);
}

/* ---- saving and compiling ------------------------------------------------------- */

static struct event saved(int64_t step, double seconds)
{
	struct event ev = checkpoint(1, step, "ckpt");

	EVENT_SET(&ev, seconds, seconds);
	return ev;
}

static struct event jit(int64_t attempt, double seconds)
{
	struct event ev = event_of(EV_JIT_COMPILED);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, graphs, 1);
	EVENT_SET(&ev, seconds, seconds);
	return ev;
}

/* A program may say any number of itself. */
static void only_a_duration_that_can_be_is_believed(void **state)
{
	static const struct {
		double seconds;
		int64_t ms;
	} rows[] = {
		{ -1, 0 },  { -0.5, 0 },      { 0, 0 },     { 0.5, 500 },  { 1e9 - 0.5, 2000 },
		{ 1e9, 0 }, { 1e9 + 0.5, 0 }, { 1e300, 0 }, { 1.5, 1500 },
	};
	struct event silent = event_of(EV_JIT_COMPILED);

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct book b;

		begin_training(&b);
		add(&b, 5000, progress(1, 21));
		add(&b, 5000, jit(1, rows[i].seconds));
		/* of a first step at once, nothing before it is compiling */
		assert_int_equal(bin(&b, BIN_JIT) > 2000 ? 2000 : bin(&b, BIN_JIT), rows[i].ms);
		begin_training(&b);
		add(&b, 5000, saved(20, rows[i].seconds));
		add(&b, 5000, progress(1, 21));
		assert_int_equal(bin(&b, BIN_CHECKPOINT), rows[i].ms);
	}
	EVENT_SET(&silent, attempt, 1);
	EVENT_SET(&silent, graphs, 1);
	silent.seconds = 0.5; /* not set */
	{
		struct book b;

		begin_training(&b);
		add(&b, 5000, silent);
		assert_int_equal(bin(&b, BIN_JIT), 0);
	}
}

static void saving_that_is_told_behind_the_end_is_found(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 8000, ended(PHASE_TRAIN, 1, CLASS_NONE));
	add(&b, 8100, saved(20, 0.5));
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 500);
}

/* The first steps of an attempt show its pace. */
static void the_first_pace_is_kept(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, progress(1, 11));
	add(&b, 7500, progress(1, 21));
	add(&b, 7500, saved(20, 60));
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 2500);
}

static void each_attempt_compiles_for_itself(void **state)
{
	struct book b;

	(void)state;
	begin_again(&b, -1);
	add(&b, 25000, jit(2, 1));
	assert_int_equal(bin(&b, BIN_JIT), 1000);
}

/* A gap is unknown wherever it lies; the rest is shared by the steps. */
static void steps_around_a_gap_are_replayed_and_new(void **state)
{
	static const int64_t gaps[][2] = { { 20000, 21000 }, { 20500, 21500 }, { 20999, 21999 },
					   { 21000, 22000 }, { 21500, 22500 }, { 22000, 23000 } };

	(void)state;
	for (size_t i = 0; i < COUNT(gaps); i++) {
		struct book b;
		int64_t steps;

		begin_again(&b, 51);
		add(&b, 20000, progress(2, 51));
		steps = bin(&b, BIN_STEPS);
		add(&b, gaps[i][0], left());
		add(&b, gaps[i][1], took_over(2));
		add(&b, 23000, progress(2, 151));
		assert_int_equal(bin(&b, BIN_REPLAYED), 1000);
		assert_int_equal(bin(&b, BIN_STEPS) - steps, 1000);
		assert_int_equal(bin(&b, BIN_UNKNOWN), 1000);
		/* two gaps, before and behind the border */
		begin_again(&b, 51);
		add(&b, 20000, progress(2, 51));
		add(&b, 20000 + 100 * (int64_t)i, left());
		add(&b, 20500 + 100 * (int64_t)i, took_over(2));
		add(&b, 21600 + 100 * (int64_t)i, left());
		add(&b, 22100 + 100 * (int64_t)i, took_over(3));
		add(&b, 23000, progress(2, 151));
		assert_int_equal(bin(&b, BIN_REPLAYED), 1000);
		assert_int_equal(bin(&b, BIN_STEPS) - steps, 1000);
		assert_int_equal(bin(&b, BIN_UNKNOWN), 1000);
	}
}

/* Steps that are made again may go by in no time: they are no pace for new ones. */
static void replayed_steps_show_no_pace(void **state)
{
	struct event save = checkpoint(2, 200, "ckpt");
	struct book b;

	(void)state;
	begin_again(&b, 51);
	add(&b, 20000, progress(2, 51));
	add(&b, 20050, progress(2, 101));
	add(&b, 21050, progress(2, 201));
	EVENT_SET(&save, seconds, 0.3);
	add(&b, 21050, save);
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 0);
}

/* Compiling before the first step is taken from the time that was seen before it, and no more. */
static void compiling_is_not_found_where_nobody_looked(void **state)
{
	struct book b;

	(void)state;
	begin_silent(&b);
	add(&b, 2000, left());
	add(&b, 4000, took_over(2));
	add(&b, 5000, progress(1, 1));
	assert_int_equal(bin(&b, BIN_SETUP), 2000);
	add(&b, 5000, jit(1, 10));
	assert_int_equal(bin(&b, BIN_SETUP), 0);
	assert_int_equal(bin(&b, BIN_JIT), 2000);
	assert_int_equal(bin(&b, BIN_UNKNOWN), 2000);
}

static void a_bill_is_what_a_service_says_if_it_says_so(void **state)
{
	struct event end = ended(PHASE_TRAIN, 1, CLASS_COMM);
	struct ledger_view view;
	struct book b;

	(void)state;
	begin_training(&b);
	ledger_at(&b.ledger, b.ledger.at, &view);
	assert_int_equal(view.billed_ms, -1);
	EVENT_SET(&end, billable, 700);
	add(&b, 5000, end);
	ledger_at(&b.ledger, b.ledger.at, &view);
	assert_int_equal(view.billed_ms, 700);
	assert_int_equal(view.paid_ms, 700);
}

/* Machines that were given back while nobody knew are taken out of what they were last counted for.
 */
static void what_was_given_back_is_taken_from_the_last_bin_first(void **state)
{
	struct event end = ended(PHASE_TRAIN, 1, CLASS_COMM);
	struct ledger_view view;
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 5000, progress(1, 21));
	EVENT_SET(&end, released, 4999);
	add(&b, 6000, end);
	ledger_at(&b.ledger, b.ledger.at, &view);
	assert_int_equal(view.held_ms[BIN_STEPS], 1999);
	assert_int_equal(view.held_ms[BIN_SETUP], 1000);
	assert_int_equal(view.held_total_ms, 2999);
}

/* ---- the end -------------------------------------------------------------------- */

static struct event limit(enum run_limit which)
{
	struct event ev = event_of(EV_LIMIT_REACHED);

	EVENT_SET(&ev, limit, which);
	EVENT_SET_STR(&ev, reason, "x");
	return ev;
}

static struct event exceeded(enum jit_action action)
{
	struct event ev = event_of(EV_JIT_EXCEEDED);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, graphs, 9);
	EVENT_SET(&ev, on_exceed, action);
	return ev;
}

static void a_training_that_is_to_end_saves(void **state)
{
	const struct {
		struct event ev;
		bool ends;
	} rows[] = {
		{ stop("x"), true },
		{ event_of(EV_REQUEST_DRAIN), true },
		{ limit(LIMIT_COST), true },
		{ limit(LIMIT_DEADLINE), true },
		{ limit(LIMIT_UNREACHABLE), false },
		{ exceeded(JIT_WARN), false },
		{ exceeded(JIT_STOP), true },
		{ exceeded(JIT_RECOMPILE), true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct book b;

		begin_training(&b);
		add(&b, 4000, rows[i].ev);
		assert_int_equal(bin_at(&b, 5000, BIN_CHECKPOINT), rows[i].ends ? 1000 : 0);
		assert_int_equal(bin_at(&b, 5000, BIN_STEPS), rows[i].ends ? 1000 : 2000);
		/* told twice is told once */
		add(&b, 4500, rows[i].ev);
		assert_int_equal(bin_at(&b, 5000, BIN_CHECKPOINT), rows[i].ends ? 1000 : 0);
	}
}

static void a_training_without_a_step_may_save_too(void **state)
{
	struct book b;

	(void)state;
	begin_silent(&b);
	add(&b, 3000, stop("x"));
	add(&b, 5000, ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(bin(&b, BIN_SETUP), 2000);
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 2000);
	/* before its command it has nothing to save */
	intend_training(&b);
	add(&b, 3000, stop("x"));
	add(&b, 5000, ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(bin(&b, BIN_CHECKPOINT), 0);
	assert_int_equal(bin(&b, BIN_QUEUE), 4000);
}

/* A training that made a checkpoint has made steps, whatever it printed. */
static void a_checkpoint_shows_steps(void **state)
{
	struct book b;

	(void)state;
	begin_silent(&b);
	add(&b, 3000, checkpoint(1, 9, "ckpt"));
	add(&b, 5000, ended(PHASE_TRAIN, 1, CLASS_COMM));
	assert_int_equal(bin(&b, BIN_STEPS), 4000);
	begin_silent(&b);
	add(&b, 5000, ended(PHASE_TRAIN, 1, CLASS_COMM));
	assert_int_equal(bin(&b, BIN_UNKNOWN), 4000);
}

static void a_hang_is_a_time_above_zero(void **state)
{
	static const struct {
		int64_t hang, ms;
	} rows[] = {
		{ -1, 0 }, { 0, 0 }, { 1, 1 }, { 1999, 1999 }, { 2000, 2000 }, { 9999, 2000 }
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct event end = ended(PHASE_TRAIN, 1, CLASS_TIMEOUT_HANG);
		struct book b;

		begin_training(&b);
		EVENT_SET(&end, hang, rows[i].hang);
		add(&b, 5000, end);
		assert_int_equal(bin(&b, BIN_HANG), rows[i].ms);
		assert_int_equal(bin(&b, BIN_STEPS), 2000 - rows[i].ms);
	}
}

/* ---- the journal ---------------------------------------------------------------- */

static void what_is_no_event_or_half_of_one_changes_nothing(void **state)
{
	struct event half = event_of(EV_RETRY_SCHEDULED), none = event_of(EV_COUNT);
	struct ledger before;
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 4000, ended(PHASE_TRAIN, 1, CLASS_COMM));
	add(&b, 4000, retry(6000));
	EVENT_SET(&half, phase, PHASE_TRAIN); /* no delay, no time */
	half.at.ms = none.at.ms = 4500;
	before = b.ledger;
	ledger_add(&b.ledger, &half);
	assert_memory_equal(&b.ledger, &before, sizeof before);
	ledger_add(&b.ledger, &none);
	assert_memory_equal(&b.ledger, &before, sizeof before);
	none.kind = (enum event_kind)(EV_COUNT + 1000000);
	ledger_add(&b.ledger, &none);
	assert_memory_equal(&b.ledger, &before, sizeof before);
}

/* A driver that died after it recorded something may record it once more. */
static void what_is_told_twice_or_late_is_told_once(void **state)
{
	struct event half = about(EV_HEALTH_CHECKED, PHASE_TRAIN, 1);
	struct event end = ended(PHASE_TRAIN, 1, CLASS_COMM);
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 3200, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	add(&b, 3300, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
	add(&b, 3400, about(EV_ATTEMPT_MISSING, PHASE_TRAIN, 1));
	{
		struct event again = created();

		again.at.ms = 3500;
		ledger_add(&b.ledger, &again);
	}
	add(&b, 5000, progress(1, 21));
	assert_int_equal(bin(&b, BIN_STEPS), 2000);
	assert_int_equal(bin(&b, BIN_SETUP), 1000);
	add(&b, 6000, end);
	add(&b, 7000, end);
	add(&b, 8000, progress(1, 50));
	assert_int_equal(bin_at(&b, 9000, BIN_BACKOFF), 3000);
	/* of a check-up, the end is missing */
	intend_training(&b);
	add(&b, 2000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	EVENT_SET(&half, healthy, true);
	EVENT_SET(&half, since, 2100);
	add(&b, 2500, half);
	assert_int_equal(bin(&b, BIN_SETUP), 500);
	/* what never was there was not given back */
	intend_training(&b);
	EVENT_SET(&end, released, 1500);
	add(&b, 3000, end);
	assert_int_equal(held(&b), 0);
}

static void time_does_not_go_back(void **state)
{
	struct ledger_view now, early;
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 5000, progress(1, 11));
	{
		struct event ev = word();

		ev.at.ms = 4000;
		ledger_add(&b.ledger, &ev);
	}
	assert_int_equal(b.ledger.at.ms, 5000);
	ledger_at(&b.ledger, (struct utc){ 5000 }, &now);
	ledger_at(&b.ledger, (struct utc){ 2000 }, &early);
	assert_memory_equal(&now, &early, sizeof now);
	assert_int_equal(now.total_ms, 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_agents_stretch_may_be_the_first_news_of_steps),
		cmocka_unit_test(a_stretch_tells_with_which_step_it_began),
		cmocka_unit_test(progress_counts_once_the_machines_are_there),
		cmocka_unit_test(progress_without_a_step_is_progress_and_no_step),
		cmocka_unit_test(the_farthest_step_of_all_attempts_counts),
		cmocka_unit_test(only_a_duration_that_can_be_is_believed),
		cmocka_unit_test(saving_that_is_told_behind_the_end_is_found),
		cmocka_unit_test(the_first_pace_is_kept),
		cmocka_unit_test(each_attempt_compiles_for_itself),
		cmocka_unit_test(steps_around_a_gap_are_replayed_and_new),
		cmocka_unit_test(replayed_steps_show_no_pace),
		cmocka_unit_test(compiling_is_not_found_where_nobody_looked),
		cmocka_unit_test(a_bill_is_what_a_service_says_if_it_says_so),
		cmocka_unit_test(what_was_given_back_is_taken_from_the_last_bin_first),
		cmocka_unit_test(a_training_that_is_to_end_saves),
		cmocka_unit_test(a_training_without_a_step_may_save_too),
		cmocka_unit_test(a_checkpoint_shows_steps),
		cmocka_unit_test(a_hang_is_a_time_above_zero),
		cmocka_unit_test(what_is_no_event_or_half_of_one_changes_nothing),
		cmocka_unit_test(what_is_told_twice_or_late_is_told_once),
		cmocka_unit_test(time_does_not_go_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
