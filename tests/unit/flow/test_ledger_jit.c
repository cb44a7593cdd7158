/* The ledger's bin for graphs that are compiled in training: what jit.compiled tells is
 * taken out of the bins in which its time has been put. */
#include "tests/unit/flow/ledger_book.h"

static void compiling_during_training_is_jit_and_no_step(void **state)
{
	struct event jit = event_of(EV_JIT_COMPILED);
	struct book b;

	(void)state;
	begin_training(&b);
	EVENT_SET(&jit, attempt, 1);
	EVENT_SET(&jit, graphs, 1);
	EVENT_SET(&jit, seconds, 2.5);
	add(&b, 6000, jit);
	add(&b, 8000, progress(1, 10));
	assert_int_equal(bin(&b, BIN_JIT), 2500);
	assert_int_equal(bin(&b, BIN_STEPS), 2500);
	/* it tells the sum; and many compilers at once are no more than the time from the
	 * start of the command until they were told of */
	EVENT_SET(&jit, seconds, 99.0);
	add(&b, 8500, jit);
	assert_int_equal(bin(&b, BIN_JIT), 6400);
	add(&b, 9000, progress(1, 20));
	assert_int_equal(bin(&b, BIN_JIT), 6400);
	add(&b, 10000, progress(1, 30));
	assert_int_equal(bin(&b, BIN_JIT), 6400);
	assert_int_equal(bin(&b, BIN_STEPS), 1500);
}

static struct event compiled(int64_t attempt, double seconds)
{
	struct event ev = event_of(EV_JIT_COMPILED);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, graphs, 1);
	EVENT_SET(&ev, seconds, seconds);
	return ev;
}

static void compiling_that_is_told_after_the_first_step_was_no_setup(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b); /* started at 2100, its first step at 3000 */
	assert_int_equal(bin(&b, BIN_SETUP), 1000);
	add(&b, 3200, compiled(1, 0.7));
	assert_int_equal(bin(&b, BIN_JIT), 700);
	add(&b, 5000, progress(1, 11));
	assert_int_equal(bin(&b, BIN_JIT), 700);
	assert_int_equal(bin(&b, BIN_SETUP), 500);
	assert_int_equal(bin(&b, BIN_STEPS), 1800);
}

static void compiling_that_is_told_after_a_step_was_none(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 13000, progress(1, 21)); /* 8 s of these 10 were one graph */
	add(&b, 13200, compiled(1, 8.0));
	add(&b, 14200, progress(1, 33));
	assert_int_equal(bin(&b, BIN_JIT), 8000);
	assert_int_equal(bin(&b, BIN_STEPS), 3200);
	assert_int_equal(bin(&b, BIN_SETUP), 1000);
}

static void compiling_goes_on_behind_the_step_that_is_told_later(void **state)
{
	struct event step = progress(1, 2);
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 8500, compiled(1, 5.0));
	EVENT_SET(&step, since, 3400);
	add(&b, 9000, step);
	add(&b, 9400, progress(1, 4));
	assert_int_equal(bin(&b, BIN_JIT), 5000);
	assert_int_equal(bin(&b, BIN_STEPS), 1400);
	assert_int_equal(bin(&b, BIN_SETUP), 1000);
}

static void compiling_of_an_attempt_is_not_taken_from_another(void **state)
{
	struct book b;

	(void)state;
	begin_training(&b);
	add(&b, 13000, progress(1, 21));
	add(&b, 13000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	add(&b, 13000, intended(PHASE_TRAIN, 2, 11));
	add(&b, 13000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 2));
	add(&b, 13000, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 2));
	add(&b, 14000, progress(2, 11));
	add(&b, 15000, progress(2, 21));
	add(&b, 15100, compiled(2, 99.0));
	assert_int_equal(bin(&b, BIN_JIT), 2100);
	assert_int_equal(bin(&b, BIN_RESTORE), 0);
	assert_int_equal(bin(&b, BIN_REPLAYED), 0);
	assert_int_equal(bin(&b, BIN_STEPS), 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compiling_during_training_is_jit_and_no_step),
		cmocka_unit_test(compiling_that_is_told_after_the_first_step_was_no_setup),
		cmocka_unit_test(compiling_that_is_told_after_a_step_was_none),
		cmocka_unit_test(compiling_goes_on_behind_the_step_that_is_told_later),
		cmocka_unit_test(compiling_of_an_attempt_is_not_taken_from_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
