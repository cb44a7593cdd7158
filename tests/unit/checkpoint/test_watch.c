/* Settling: what is complete and has not changed for a while, told the time. */
#include "tests/unit/checkpoint/trees.h"

#define SETTLE 1000
#define MANY   300

static struct ckpt_watch *watch_on(const char *root)
{
	return checkpoint_watch_new(root, checkpoint_kind_find("auto"), SETTLE);
}

static void look(struct ckpt_watch *watch, int64_t ms)
{
	AUTO(err_freep) struct err *err = NULL;

	checkpoint_watch_scan(watch, (struct mono){ ms }, &err);
	assert_no_error(err);
}

/* Returns how many looks the watch took. */
static int look_until_idle(struct ckpt_watch *watch, int64_t ms)
{
	int looks = 0;

	do {
		look(watch, ms + looks);
		looks++;
	} while (checkpoint_watch_busy(watch));
	return looks;
}

static void assert_next(struct ckpt_watch *watch, const char *name)
{
	const struct ckpt *next = checkpoint_watch_next(watch);

	if (!name) {
		assert_null(next);
		return;
	}
	assert_non_null(next);
	assert_string_equal(next->name, name);
	assert_true(next->complete);
}

static void a_checkpoint_is_offered_once_it_has_settled_and_until_it_is_taken(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	look(watch, 0);
	assert_next(watch, NULL);
	make_files(*state, "step-00000010", 10);
	look(watch, 100);
	look(watch, 1099);
	assert_next(watch, NULL);
	look(watch, 1100);
	assert_next(watch, "step-00000010");
	look(watch, 1200);
	assert_next(watch, "step-00000010");
	checkpoint_watch_take(watch, "step-00000010");
	assert_next(watch, NULL);
	look(watch, 9999);
	assert_next(watch, NULL);
}

/* The end of an attempt costs nothing for what is marked already. */
static void at_the_end_only_what_is_new_is_offered(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	look(watch, 0);
	look(watch, SETTLE);
	checkpoint_watch_take(watch, "step-00000010");
	make_files(*state, "step-00000020", 20);
	checkpoint_watch_quiet(watch, 0);
	look(watch, SETTLE + 1);
	assert_next(watch, "step-00000020");
	checkpoint_watch_take(watch, "step-00000020");
	assert_next(watch, NULL);
	assert_false(checkpoint_watch_busy(watch));
}

/* A drain waits for it; but where nothing vouches for it, its writer may only have paused. */
static void in_a_hurry_what_is_vouched_for_settles_early(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	checkpoint_watch_quiet_verified(watch, 300);
	make_hf(*state, "checkpoint-10", 10);
	look(watch, 0);
	look(watch, 299);
	assert_next(watch, NULL);
	look(watch, 300);
	assert_next(watch, "checkpoint-10");
	checkpoint_watch_take(watch, "checkpoint-10");
	make_files(*state, "step-00000020", 20);
	drop(*state, "step-00000020/meta.json");
	look(watch, 1000);
	look(watch, 1300);
	assert_next(watch, NULL);
}

/* A file that was cut off in its second half is like its older one, but shorter. */
static void an_older_one_vouches_for_what_is_no_shorter(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	put_text(*state, "step-00000010/state.bin", "1234567890");
	look(watch, 0);
	look(watch, SETTLE);
	checkpoint_watch_take(watch, "step-00000010");
	checkpoint_watch_quiet_verified(watch, 0);
	put_text(*state, "step-00000020/state.bin", "123456789");
	look(watch, SETTLE + 1);
	look(watch, SETTLE + 2);
	assert_next(watch, NULL);
	put_text(*state, "step-00000020/state.bin", "1234567890");
	look(watch, SETTLE + 3);
	look(watch, SETTLE + 4);
	assert_next(watch, "step-00000020");
	checkpoint_watch_take(watch, "step-00000020");
	/* An older one does not vouch for a file that it lacks. */
	put_text(*state, "step-00000030/state.bin", "1234567890");
	put_text(*state, "step-00000030/more.bin", "1");
	look(watch, SETTLE + 5);
	look(watch, SETTLE + 6);
	assert_next(watch, NULL);
	look(watch, 2 * SETTLE + 6);
	assert_next(watch, "step-00000030");
}

static void every_change_starts_the_clock_anew(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	look(watch, 0);
	put_text(*state, "step-00000010/notes.txt", "more");
	look(watch, 900);
	look(watch, 1000);
	assert_next(watch, NULL);
	look(watch, 1900);
	assert_next(watch, "step-00000010");
	put_text(*state, "step-00000010/notes.txt", "and more");
	look(watch, 2000);
	assert_next(watch, NULL);
}

static void partial_ones_are_not_offered_but_told(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	drop(*state, "step-00000010/meta.json");
	make_files(*state, "step-00000020", 20);
	put_text(*state, "step-00000020/state.npz.tmp", "half");
	look(watch, 0);
	look_until_idle(watch, 1000);
	assert_next(watch, NULL);
	assert_contains(checkpoint_watch_partial(watch, 0)->why, "still being written");
	assert_contains(checkpoint_watch_partial(watch, 1)->why, "meta.json");
	assert_null(checkpoint_watch_partial(watch, 2));
	make_files(*state, "step-00000010", 10);
	look(watch, 1100);
	look(watch, 2100);
	assert_next(watch, "step-00000010");
}

static void the_oldest_are_proved_first(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	make_files(*state, "step-00000009", 9);
	make_files(*state, "step-00000100", 100);
	look(watch, 0);
	assert_false(checkpoint_watch_busy(watch));
	look(watch, 1000);
	assert_next(watch, "step-00000009");
	checkpoint_watch_take(watch, "step-00000009");
	look_until_idle(watch, 1001);
	assert_next(watch, "step-00000010");
	checkpoint_watch_take(watch, "step-00000010");
	assert_next(watch, "step-00000100");
}

/* Each look lists them all: many looks for many checkpoints would cost their square. */
static void many_that_settle_at_once_take_few_looks(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);
	char name[32];

	for (int i = 1; i <= MANY; i++) {
		snprintf(name, sizeof name, "step-%08d", i);
		make_files(*state, name, i);
	}
	look(watch, 0);
	assert_in_range(look_until_idle(watch, 1000), 1, MANY / 4);
	assert_next(watch, "step-00000001");
}

static void a_taken_one_is_the_neighbour_of_those_that_follow(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	put_text(*state, "step-00000010/optimizer.raw", "0123456789");
	checkpoint_watch_take(watch, "step-00000010");
	make_files(*state, "step-00000020", 20);
	look(watch, 0);
	look(watch, 1000);
	assert_next(watch, NULL);
	assert_contains(checkpoint_watch_partial(watch, 0)->why, "optimizer.raw");
}

static void what_was_taken_in_an_earlier_life_is_not_offered(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	checkpoint_watch_take(watch, "step-00000010");
	checkpoint_watch_take(watch, "step-00000077");
	make_files(*state, "step-00000010", 10);
	make_files(*state, "step-00000020", 20);
	look(watch, 0);
	look(watch, 1000);
	assert_next(watch, "step-00000020");
}

static void what_vanishes_is_forgotten(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	look(watch, 0);
	look(watch, 1000);
	assert_next(watch, "step-00000010");
	drop(*state, "step-00000010");
	look(watch, 1001);
	assert_next(watch, NULL);
	make_files(*state, "step-00000010", 10);
	look(watch, 1002);
	assert_next(watch, NULL);
	look(watch, 2002);
	assert_next(watch, "step-00000010");
}

static void any_change_beneath_the_root_is_a_sign_of_life(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);
	uint64_t before;

	look(watch, 0);
	before = checkpoint_watch_changes(watch);
	look(watch, 1);
	assert_int_equal(checkpoint_watch_changes(watch), before);
	put_text(*state, "tmp-checkpoint-10/model.bin", "1");
	look(watch, 2);
	assert_int_equal(checkpoint_watch_changes(watch), before + 1);
	put_text(*state, "tmp-checkpoint-10/model.bin", "12");
	look(watch, 3);
	assert_int_equal(checkpoint_watch_changes(watch), before + 2);
	make_files(*state, "step-00000010", 10);
	look(watch, 4);
	assert_int_equal(checkpoint_watch_changes(watch), before + 3);
	look(watch, 5);
	assert_int_equal(checkpoint_watch_changes(watch), before + 3);
	/* A mark is this project's own doing. */
	put_text(*state, "step-00000010.stoker.json", "{}");
	look(watch, 6);
	assert_int_equal(checkpoint_watch_changes(watch), before + 3);
}

static void each_kind_settles(void **state)
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++) {
		AUTO(auto_free) char *root = mem_format("%s/%zu", (char *)*state, m);
		AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(root);

		make_all(&makers[m], root, 3);
		look(watch, 0);
		for (int i = 0; i < 3; i++) {
			look(watch, 1000 + i);
			assert_next(watch, makers[m].names[i]);
			checkpoint_watch_take(watch, makers[m].names[i]);
		}
	}
}

static void a_pointer_that_follows_late_completes_what_waits_for_it(void **state)
{
	AUTO(checkpoint_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_deepspeed(*state, "global_step10", 10);
	put_text(*state, "latest", "global_step5");
	look(watch, 0);
	look(watch, 1000);
	assert_next(watch, NULL);
	put_text(*state, "latest", "global_step10");
	look(watch, 1100);
	look(watch, 2100);
	assert_next(watch, "global_step10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(at_the_end_only_what_is_new_is_offered),
		test_in_scratch(in_a_hurry_what_is_vouched_for_settles_early),
		test_in_scratch(an_older_one_vouches_for_what_is_no_shorter),
		test_in_scratch(a_checkpoint_is_offered_once_it_has_settled_and_until_it_is_taken),
		test_in_scratch(every_change_starts_the_clock_anew),
		test_in_scratch(partial_ones_are_not_offered_but_told),
		test_in_scratch(the_oldest_are_proved_first),
		test_in_scratch(many_that_settle_at_once_take_few_looks),
		test_in_scratch(a_taken_one_is_the_neighbour_of_those_that_follow),
		test_in_scratch(what_was_taken_in_an_earlier_life_is_not_offered),
		test_in_scratch(what_vanishes_is_forgotten),
		test_in_scratch(any_change_beneath_the_root_is_a_sign_of_life),
		test_in_scratch(each_kind_settles),
		test_in_scratch(a_pointer_that_follows_late_completes_what_waits_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
