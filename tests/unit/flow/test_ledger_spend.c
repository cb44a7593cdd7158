/* Putting time into bins, by hand: how long machines were held, which time was not observed, and
 * how steps, saving and compiling share a stretch. A ledger's state is written down, not played. */
#include "tests/unit/flow/story.h"

#include "jobs/flow/ledger_spend.h"

static struct ledger l;

/* Nothing is spent up to `mark`. */
static void begin(int64_t mark)
{
	memset(&l, 0, sizeof l);
	l.mark.ms = l.at.ms = mark;
	l.stage = STAGE_STEPS;
	l.phase = PHASE_TRAIN;
}

static struct utc at(int64_t ms)
{
	return (struct utc){ ms };
}

/* ---- machines held ---- */

static void time_is_held_until_the_machines_are_released(void **state)
{
	static const struct {
		int64_t released, held;
	} rows[] = { { 0, 100 }, { 1, 0 },    { 99, 0 },    { 100, 0 },
		     { 101, 1 }, { 199, 99 }, { 200, 100 }, { 201, 100 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		begin(100);
		l.held = true;
		l.released.ms = rows[i].released;
		ledger_spend_to(&l, at(200), BIN_STEPS);
		assert_int_equal(l.ms[BIN_STEPS], 100);
		assert_int_equal(l.held_ms[BIN_STEPS], rows[i].held);
		assert_int_equal(l.attempt_held_ms, rows[i].held);
	}
	begin(100);
	ledger_spend_to(&l, at(200), BIN_STEPS);
	assert_int_equal(l.held_ms[BIN_STEPS], 0);
}

static void no_time_is_spent_twice_or_backwards(void **state)
{
	(void)state;
	begin(100);
	ledger_spend_to(&l, at(100), BIN_QUEUE);
	ledger_spend_to(&l, at(99), BIN_QUEUE);
	assert_int_equal(l.ms[BIN_QUEUE], 0);
	assert_int_equal(l.mark.ms, 100);
	ledger_spend_to(&l, at(101), BIN_QUEUE);
	assert_int_equal(l.ms[BIN_QUEUE], 1);
	ledger_spend(&l, 50, at(111), BIN_PULL);
	assert_int_equal(l.ms[BIN_PULL], 10);
	ledger_spend(&l, 4, at(121), BIN_PULL);
	assert_int_equal(l.ms[BIN_PULL], 14);
	assert_int_equal(l.mark.ms, 115);
}

/* Ends an attempt that held its machines for 70 ms, and returns what is paid for it. */
static int64_t paid_for(int64_t billable)
{
	struct event ev = ended(PHASE_TRAIN, 2, CLASS_SPOT);

	begin(0);
	l.held = true;
	l.attempt_held_ms = 70;
	if (billable != -2)
		EVENT_SET(&ev, billable, billable);
	ledger_held_end(&l, &ev);
	assert_int_equal(l.has_billed, billable >= 0);
	assert_int_equal(l.attempt_held_ms, 0);
	assert_int_equal(l.released.ms, 0);
	assert_int_equal(l.ended_attempt, 2);
	return l.billed_ms;
}

static void an_attempt_costs_what_is_billed_or_what_it_held(void **state)
{
	(void)state;
	assert_int_equal(paid_for(50), 50);
	assert_int_equal(paid_for(0), 0);
	assert_int_equal(paid_for(-1), 70);
	assert_int_equal(paid_for(-2), 70);
}

/* An attempt without machines does not take the place of the one that had some. */
static void machines_are_kept_for_the_attempt_that_had_them(void **state)
{
	(void)state;
	for (int which = 0; which < 3; which++) {
		struct event ev = ended(PHASE_TRAIN, 3, CLASS_SPOT);

		begin(0);
		l.ended_phase = PHASE_PRECOMPILE;
		l.ended_attempt = 1;
		l.kept_reported = true;
		l.held = which == 1;
		if (which == 2)
			EVENT_SET(&ev, held, 5);
		ledger_held_end(&l, &ev);
		assert_int_equal(l.ended_attempt, which ? 3 : 1);
		assert_int_equal(l.ended_phase, which ? PHASE_TRAIN : PHASE_PRECOMPILE);
		assert_int_equal(l.kept_reported, which == 0);
	}
}

/* Returns the milliseconds that count for an attempt.kept, told after attempt 2 of the training. */
static int64_t kept(enum phase phase, int64_t attempt, double seconds, bool reported)
{
	struct event ev = about(EV_ATTEMPT_KEPT, phase, attempt);

	EVENT_SET(&ev, seconds, seconds);
	begin(0);
	l.ended_phase = PHASE_TRAIN;
	l.ended_attempt = 2;
	l.kept_reported = reported;
	ledger_held_kept(&l, &ev);
	assert_int_equal(l.kept_reported, reported || l.kept_ms > 0);
	return l.kept_ms;
}

static void kept_machines_count_once_for_the_newest_attempt(void **state)
{
	(void)state;
	assert_int_equal(kept(PHASE_TRAIN, 2, 1.5, false), 1500);
	assert_int_equal(kept(PHASE_TRAIN, 2, 0.0015, false), 2);
	assert_int_equal(kept(PHASE_TRAIN, 2, 0.001, false), 1);
	assert_int_equal(kept(PHASE_TRAIN, 2, 1.5, true), 0);
	assert_int_equal(kept(PHASE_TRAIN, 1, 1.5, false), 0);
	assert_int_equal(kept(PHASE_PRECOMPILE, 2, 1.5, false), 0);
	assert_int_equal(kept(PHASE_PRECOMPILE, 1, 1.5, false), 0);
	assert_int_equal(kept(PHASE_TRAIN, 2, 0, false), 0);
	assert_int_equal(kept(PHASE_TRAIN, 2, -0.5, false), 0);
	assert_int_equal(kept(PHASE_TRAIN, 2, NAN, false), 0);
	assert_int_equal(kept(PHASE_TRAIN, 2, 999999999.5, false), INT64_C(999999999500));
	assert_int_equal(kept(PHASE_TRAIN, 2, 1e9, false), 0);
}

static void a_machine_that_is_kept_but_for_nothing_is_not_reported(void **state)
{
	struct event ev = about(EV_ATTEMPT_KEPT, PHASE_TRAIN, 2);

	(void)state;
	begin(0);
	l.ended_phase = PHASE_TRAIN;
	l.ended_attempt = 2;
	EVENT_SET(&ev, seconds, 0);
	ledger_held_kept(&l, &ev);
	assert_false(l.kept_reported);
}

/* ---- unobserved time ---- */

/* The holes as text: "10-20 30-40". */
static const char *holes(void)
{
	static char text[400];
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < l.hole_count; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld-%lld", i ? " " : "",
					(long long)l.holes[i].from.ms, (long long)l.holes[i].to.ms);
	return text;
}

static void holes_that_touch_are_one(void **state)
{
	(void)state;
	begin(10);
	ledger_hole_add(&l, at(5), at(10));
	ledger_hole_add(&l, at(20), at(20));
	ledger_hole_add(&l, at(20), at(19));
	assert_string_equal(holes(), "");
	ledger_hole_add(&l, at(5), at(20));
	assert_string_equal(holes(), "10-20");
	ledger_hole_add(&l, at(20), at(30));
	assert_string_equal(holes(), "10-30");
	ledger_hole_add(&l, at(15), at(25));
	assert_string_equal(holes(), "10-30");
	ledger_hole_add(&l, at(31), at(40));
	assert_string_equal(holes(), "10-30 31-40");
	ledger_hole_add(&l, at(35), at(50));
	assert_string_equal(holes(), "10-30 31-50");
}

static void without_room_the_newest_hole_grows(void **state)
{
	(void)state;
	begin(0);
	for (int i = 0; i < LEDGER_HOLES_MAX; i++) {
		assert_int_equal(l.hole_count, i);
		ledger_hole_add(&l, at(10 * i + 1), at(10 * i + 2));
	}
	assert_int_equal(l.hole_count, LEDGER_HOLES_MAX);
	ledger_hole_add(&l, at(1000), at(1001));
	assert_int_equal(l.hole_count, LEDGER_HOLES_MAX);
	assert_int_equal(l.holes[LEDGER_HOLES_MAX - 1].from.ms, 10 * (LEDGER_HOLES_MAX - 1) + 1);
	assert_int_equal(l.holes[LEDGER_HOLES_MAX - 1].to.ms, 1001);
	/* A full list does not split a hole: it stays whole. */
	ledger_hole_fill(&l, at(500), at(600));
	assert_int_equal(l.hole_count, LEDGER_HOLES_MAX);
	assert_int_equal(l.holes[LEDGER_HOLES_MAX - 1].to.ms, 1001);
}

/* Returns what is left of the holes 10-20, 30-40 and 50-60 when this was observed. */
static const char *filled(int64_t from, int64_t to)
{
	begin(0);
	for (int i = 1; i < 6; i += 2)
		ledger_hole_add(&l, at(10 * i), at(10 * i + 10));
	memset(&l.holes[3], 1, sizeof l.holes[3]); /* what was there before is no hole */
	ledger_hole_fill(&l, at(from), at(to));
	return holes();
}

static void what_was_observed_is_no_hole(void **state)
{
	(void)state;
	assert_string_equal(filled(0, 10), "10-20 30-40 50-60");
	assert_string_equal(filled(20, 30), "10-20 30-40 50-60");
	assert_string_equal(filled(60, 70), "10-20 30-40 50-60");
	assert_string_equal(filled(30, 40), "10-20 50-60");
	assert_string_equal(filled(10, 20), "30-40 50-60");
	assert_string_equal(filled(0, 55), "55-60");
	assert_string_equal(filled(15, 70), "10-15");
	assert_string_equal(filled(0, 70), "");
	assert_string_equal(filled(35, 37), "10-20 30-35 37-40 50-60");
	assert_string_equal(filled(30, 37), "10-20 37-40 50-60");
	assert_string_equal(filled(33, 40), "10-20 30-33 50-60");
	assert_string_equal(filled(12, 52), "10-12 52-60");
}

static void only_time_outside_of_holes_was_seen(void **state)
{
	(void)state;
	filled(0, 0);
	l.mark.ms = 15;
	assert_int_equal(ledger_hole_seen_ms(&l, at(15)), 0);
	assert_int_equal(ledger_hole_seen_ms(&l, at(14)), 0);
	assert_int_equal(ledger_hole_seen_ms(&l, at(20)), 0);
	assert_int_equal(ledger_hole_seen_ms(&l, at(21)), 1);
	assert_int_equal(ledger_hole_seen_ms(&l, at(30)), 10);
	assert_int_equal(ledger_hole_seen_ms(&l, at(35)), 10);
	assert_int_equal(ledger_hole_seen_ms(&l, at(45)), 15);
	l.mark.ms = 40; /* the first two lie behind */
	assert_int_equal(ledger_hole_seen_ms(&l, at(55)), 10);
	l.mark.ms = 65;
	assert_int_equal(ledger_hole_seen_ms(&l, at(70)), 5);
}

/* A stretch of a training from 0 to `to`: what was not observed is unknown, the rest is what went
 * on. */
static void a_hole_in_a_stretch_is_unknown(void **state)
{
	static const struct {
		int64_t to, steps, unknown;
		const char *left;
	} rows[] = {
		{ 5, 5, 0, "10-20 30-40 50-60" },
		{ 10, 10, 0, "10-20 30-40 50-60" },
		{ 15, 10, 5, "10-20 30-40 50-60" },
		{ 20, 10, 10, "30-40 50-60" },
		{ 25, 15, 10, "30-40 50-60" },
		{ 35, 20, 15, "30-40 50-60" },
		{ 40, 20, 20, "50-60" },
		{ 60, 30, 30, "" },
		{ 70, 40, 30, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		filled(0, 0);
		ledger_spend_training(&l, at(rows[i].to), BIN_RESTORE);
		assert_int_equal(l.ms[BIN_RESTORE], rows[i].steps);
		assert_int_equal(l.ms[BIN_UNKNOWN], rows[i].unknown);
		assert_string_equal(holes(), rows[i].left);
		assert_int_equal(l.mark.ms, rows[i].to);
	}
}

static void a_stretch_that_begins_in_a_hole_is_unknown_first(void **state)
{
	(void)state;
	filled(0, 0);
	l.mark.ms = 12;
	ledger_spend_training(&l, at(32), BIN_RESTORE);
	assert_int_equal(l.ms[BIN_UNKNOWN], 10);
	assert_int_equal(l.ms[BIN_RESTORE], 10);
	begin(10);
	ledger_hole_add(&l, at(10), at(20));
	ledger_spend_training(&l, at(20), BIN_RESTORE);
	assert_int_equal(l.ms[BIN_UNKNOWN], 10);
	assert_int_equal(l.ms[BIN_RESTORE], 0);
	assert_string_equal(holes(), "");
}

/* ---- steps, saving, compiling ---- */

/* Steps from 100 to `step` in 60 ms, where an attempt before reached `reached`: how many of these
 * were replayed. */
static int64_t replayed(int64_t step, int64_t reached)
{
	begin(0);
	l.step = 100;
	l.reached = reached;
	ledger_spend_steps(&l, at(60), step);
	assert_int_equal(l.ms[BIN_REPLAYED] + l.ms[BIN_STEPS], 60);
	assert_int_equal(l.again_ms, l.ms[BIN_REPLAYED]);
	return l.ms[BIN_REPLAYED];
}

static void steps_that_were_reached_before_are_replayed(void **state)
{
	(void)state;
	assert_int_equal(replayed(106, -1), 0);
	assert_int_equal(l.made, 6);
	assert_int_equal(replayed(106, 99), 0);
	assert_int_equal(l.made, 6);
	assert_int_equal(replayed(106, 100), 0);
	assert_int_equal(replayed(106, 101), 10);
	assert_int_equal(l.made, 5);
	assert_int_equal(replayed(106, 105), 50);
	assert_int_equal(l.made, 1);
	assert_int_equal(replayed(106, 106), 60);
	assert_int_equal(l.made, 0);
	assert_int_equal(replayed(106, 200), 60);
	assert_int_equal(l.made, 0);
}

/* Steps that took no time that was seen say nothing about their speed. */
static void steps_without_time_have_no_speed(void **state)
{
	(void)state;
	begin(0);
	l.step = 100;
	l.reached = 103;
	ledger_hole_add(&l, at(0), at(60));
	ledger_spend_steps(&l, at(60), 106);
	assert_int_equal(l.ms[BIN_UNKNOWN], 60);
	assert_int_equal(l.ms[BIN_STEPS] + l.ms[BIN_REPLAYED], 0);
	assert_int_equal(l.made, 0);
	begin(0);
	l.step = 100;
	l.reached = 102;
	ledger_spend_steps(&l, at(1), 103);
	assert_int_equal(l.made, 1);
	assert_int_equal(l.ms[BIN_REPLAYED] + l.ms[BIN_STEPS], 1);
}

/* The fastest steps: of the attempt's own, whole, and beside which nothing was saved. */
static void the_fastest_steps_are_those_beside_which_nothing_went_on(void **state)
{
	struct step_rate none = { 0 };

	(void)state;
	begin(0);
	ledger_spend_steps(&l, at(60), 6);
	assert_true(step_rate_ms(l.fastest, 6) == 60);
	l.step = 6;
	ledger_spend_steps(&l, at(180), 12); /* slower */
	assert_true(step_rate_ms(l.fastest, 6) == 60);
	l.step = 12;
	l.saving_reported = true;
	ledger_spend_steps(&l, at(186), 18); /* a save was reported in it */
	assert_true(step_rate_ms(l.fastest, 6) == 60);
	assert_false(l.saving_reported);
	l.step = 18;
	ledger_hole_add(&l, at(186), at(189));
	ledger_spend_steps(&l, at(192), 24); /* not all of it was seen */
	assert_true(step_rate_ms(l.fastest, 6) == 60);
	l.step = 24;
	ledger_spend_steps(&l, at(222), 30);
	assert_true(step_rate_ms(l.fastest, 6) == 30);
	begin(0);
	l.stage = STAGE_FIRST;
	ledger_spend_steps(&l, at(60), 6);
	assert_memory_equal(&l.fastest, &none, sizeof none);
}

/* Saving is what steps took beyond their fastest time, up to what was reported. */
static void saving_is_taken_out_of_slow_steps(void **state)
{
	static const struct {
		int64_t reported, steps, saving;
	} rows[] = { { 0, 100, 0 },   { 1, 100, 1 }, { 39, 100, 39 }, { 40, 100, 40 },
		     { 41, 100, 40 }, { 41, 61, 1 }, { 41, 60, 0 },   { 41, 59, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		begin(0);
		l.fastest = step_rate_of(6, 60);
		l.made = 6;
		l.steps_ms = l.ms[BIN_STEPS] = rows[i].steps;
		l.held_ms[BIN_STEPS] = 20;
		l.saving_ms = rows[i].reported;
		ledger_spend_saving(&l);
		assert_int_equal(l.ms[BIN_CHECKPOINT], rows[i].saving);
		assert_int_equal(l.ms[BIN_STEPS], rows[i].steps - rows[i].saving);
		assert_int_equal(l.steps_ms, rows[i].steps - rows[i].saving);
		assert_int_equal(l.saving_ms, rows[i].reported - rows[i].saving);
		assert_int_equal(l.held_ms[BIN_STEPS] + l.held_ms[BIN_CHECKPOINT], 20);
		assert_int_equal(l.held_ms[BIN_CHECKPOINT],
				 rows[i].saving < 20 ? rows[i].saving : 20);
	}
}

static void saving_is_found_in_the_steps_that_come_after_it(void **state)
{
	(void)state;
	begin(0);
	l.fastest = step_rate_of(6, 60);
	l.saving_ms = 25;
	l.saving_reported = true;
	ledger_spend_steps(&l, at(100), 6);
	assert_int_equal(l.ms[BIN_CHECKPOINT], 25);
	assert_int_equal(l.ms[BIN_STEPS], 75);
}

/* Compiling that was reported late is taken out of steps, then of replayed ones, then of the time
 * before the first. */
static void late_compiling_is_taken_from_the_attempt_s_bins_in_order(void **state)
{
	static const struct {
		int64_t ms, steps, replayed, first;
	} rows[] = { { 10, 10, 0, 0 },  { 30, 30, 0, 0 },   { 31, 30, 1, 0 },
		     { 50, 30, 20, 0 }, { 60, 30, 20, 10 }, { 99, 30, 20, 10 } };

	(void)state;
	for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
		int64_t ms = rows[i / 2].ms,
			sum = rows[i / 2].steps + rows[i / 2].replayed + rows[i / 2].first;
		enum ledger_bin first = i % 2 ? BIN_RESTORE : BIN_SETUP;

		begin(0);
		l.resumed = i % 2;
		l.steps_ms = l.ms[BIN_STEPS] = 30;
		l.again_ms = l.ms[BIN_REPLAYED] = 20;
		l.first_ms = l.ms[first] = 10;
		ledger_spend_found_jit(&l, ms);
		assert_int_equal(l.ms[BIN_JIT], sum);
		assert_int_equal(l.steps_ms, 30 - rows[i / 2].steps);
		assert_int_equal(l.ms[BIN_STEPS], 30 - rows[i / 2].steps);
		assert_int_equal(l.again_ms, 20 - rows[i / 2].replayed);
		assert_int_equal(l.first_ms, 10 - rows[i / 2].first);
		assert_int_equal(l.ms[first], 10 - rows[i / 2].first);
	}
}

/* Steps that compiled meanwhile were faster than they looked; steps that did not stay as they were.
 */
static void compiling_that_is_found_makes_steps_faster(void **state)
{
	struct step_rate none = { 0 };

	(void)state;
	begin(0);
	l.fastest = step_rate_of(1, 60);
	l.made = 1;
	l.steps_ms = l.ms[BIN_STEPS] = 60;
	ledger_spend_found_jit(&l, 20);
	assert_true(step_rate_ms(l.fastest, 1) == 40);
	begin(0);
	l.fastest = step_rate_of(6, 60);
	l.made = 6;
	l.steps_ms = l.ms[BIN_STEPS] = 100;
	ledger_spend_found_jit(&l, 20);
	assert_true(step_rate_ms(l.fastest, 6) == 60);
	begin(0);
	ledger_spend_found_jit(&l, 20);
	assert_memory_equal(&l.fastest, &none, sizeof none);
}

/* Compiling of 30 ms, known at `known`, in a stretch of 50 ms from 100: in it, behind it, or before
 * it. */
static void compiling_lies_in_its_stretch(int64_t jit, int64_t known, int64_t in, int64_t behind,
					  int64_t before)
{
	begin(100);
	l.jit_ms = jit;
	l.jit_at.ms = known;
	l.steps_ms = l.ms[BIN_STEPS] = 40;
	ledger_spend_training(&l, at(150), BIN_RESTORE);
	assert_int_equal(l.ms[BIN_JIT], in + before);
	assert_int_equal(l.ms[BIN_RESTORE], 50 - in);
	assert_int_equal(l.jit_ms, behind);
	assert_int_equal(l.ms[BIN_STEPS], 40 - before);
}

static void compiling_is_spent_in_at_most_its_stretch(void **state)
{
	(void)state;
	compiling_lies_in_its_stretch(0, 0, 0, 0, 0);
	compiling_lies_in_its_stretch(30, 150, 30, 0, 0);
	compiling_lies_in_its_stretch(50, 150, 50, 0, 0);
	compiling_lies_in_its_stretch(60, 170, 50, 10, 0);
	compiling_lies_in_its_stretch(70, 170, 50, 20, 0);
	compiling_lies_in_its_stretch(75, 170, 50, 20, 5);
	compiling_lies_in_its_stretch(60, 150, 50, 0, 10);
	compiling_lies_in_its_stretch(60, 149, 50, 0, 10);
}

static void steps_have_their_compiling_taken_out_first(void **state)
{
	(void)state;
	begin(0);
	l.jit_ms = 30;
	l.jit_at.ms = 90;
	ledger_spend_steps(&l, at(90), 6);
	assert_int_equal(l.ms[BIN_JIT], 30);
	assert_int_equal(l.ms[BIN_STEPS], 60);
}

/* ---- between two attempts ---- */

static void a_backoff_lasts_until_its_end(void **state)
{
	(void)state;
	begin(0);
	l.stage = STAGE_BACKOFF;
	l.until.ms = 40;
	ledger_spend_wait(&l, at(30), BIN_IDLE);
	assert_int_equal(l.ms[BIN_BACKOFF], 30);
	ledger_spend_wait(&l, at(100), BIN_IDLE);
	assert_int_equal(l.ms[BIN_BACKOFF], 40);
	assert_int_equal(l.ms[BIN_IDLE], 60);
	begin(0);
	l.stage = STAGE_READY;
	l.until.ms = 40; /* of a backoff that is over */
	ledger_spend_wait(&l, at(30), BIN_IDLE);
	assert_int_equal(l.ms[BIN_IDLE], 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_held_until_the_machines_are_released),
		cmocka_unit_test(no_time_is_spent_twice_or_backwards),
		cmocka_unit_test(an_attempt_costs_what_is_billed_or_what_it_held),
		cmocka_unit_test(machines_are_kept_for_the_attempt_that_had_them),
		cmocka_unit_test(kept_machines_count_once_for_the_newest_attempt),
		cmocka_unit_test(a_machine_that_is_kept_but_for_nothing_is_not_reported),
		cmocka_unit_test(holes_that_touch_are_one),
		cmocka_unit_test(without_room_the_newest_hole_grows),
		cmocka_unit_test(what_was_observed_is_no_hole),
		cmocka_unit_test(only_time_outside_of_holes_was_seen),
		cmocka_unit_test(a_hole_in_a_stretch_is_unknown),
		cmocka_unit_test(a_stretch_that_begins_in_a_hole_is_unknown_first),
		cmocka_unit_test(steps_that_were_reached_before_are_replayed),
		cmocka_unit_test(steps_without_time_have_no_speed),
		cmocka_unit_test(the_fastest_steps_are_those_beside_which_nothing_went_on),
		cmocka_unit_test(saving_is_taken_out_of_slow_steps),
		cmocka_unit_test(saving_is_found_in_the_steps_that_come_after_it),
		cmocka_unit_test(late_compiling_is_taken_from_the_attempt_s_bins_in_order),
		cmocka_unit_test(compiling_that_is_found_makes_steps_faster),
		cmocka_unit_test(compiling_is_spent_in_at_most_its_stretch),
		cmocka_unit_test(steps_have_their_compiling_taken_out_first),
		cmocka_unit_test(a_backoff_lasts_until_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
