/* Settling: what is complete and has not changed for a while, told the time. */
#include "tests/unit/checkpoint/trees.h"

#define SETTLE 1000

static struct ckpt_watch *watch_on(const char *root)
{
	return ckpt_watch_new(root, ckpt_kind_find("auto"), SETTLE);
}

static void look(struct ckpt_watch *watch, int64_t ms)
{
	AUTO(err_freep) struct err *err = NULL;

	ckpt_watch_look(watch, (struct mono){ ms }, &err);
	assert_no_error(err);
}

static void assert_next(struct ckpt_watch *watch, const char *name)
{
	const struct ckpt *next = ckpt_watch_next(watch);

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
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

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
	ckpt_watch_take(watch, "step-00000010");
	assert_next(watch, NULL);
	look(watch, 9999);
	assert_next(watch, NULL);
}

static void every_change_starts_the_clock_anew(void **state)
{
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

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
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	drop(*state, "step-00000010/meta.json");
	make_files(*state, "step-00000020", 20);
	put_text(*state, "step-00000020/state.npz.tmp", "half");
	look(watch, 0);
	look(watch, 1000);
	assert_true(ckpt_watch_busy(watch));
	look(watch, 1001);
	assert_false(ckpt_watch_busy(watch));
	assert_next(watch, NULL);
	assert_contains(ckpt_watch_partial(watch, 0)->why, "still being written");
	assert_contains(ckpt_watch_partial(watch, 1)->why, "meta.json");
	assert_null(ckpt_watch_partial(watch, 2));
	make_files(*state, "step-00000010", 10);
	look(watch, 1100);
	look(watch, 2100);
	assert_next(watch, "step-00000010");
}

static void one_call_proves_one_the_oldest_first(void **state)
{
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	make_files(*state, "step-00000009", 9);
	make_files(*state, "step-00000100", 100);
	look(watch, 0);
	assert_false(ckpt_watch_busy(watch));
	look(watch, 1000);
	assert_true(ckpt_watch_busy(watch));
	assert_next(watch, "step-00000009");
	ckpt_watch_take(watch, "step-00000009");
	look(watch, 1001);
	assert_next(watch, "step-00000010");
	look(watch, 1002);
	assert_false(ckpt_watch_busy(watch));
	assert_next(watch, "step-00000010");
	ckpt_watch_take(watch, "step-00000010");
	assert_next(watch, "step-00000100");
}

static void a_taken_one_is_the_neighbour_of_those_that_follow(void **state)
{
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	make_files(*state, "step-00000010", 10);
	put_text(*state, "step-00000010/optimizer.raw", "0123456789");
	ckpt_watch_take(watch, "step-00000010");
	make_files(*state, "step-00000020", 20);
	look(watch, 0);
	look(watch, 1000);
	assert_next(watch, NULL);
	assert_contains(ckpt_watch_partial(watch, 0)->why, "optimizer.raw");
}

static void what_was_taken_in_an_earlier_life_is_not_offered(void **state)
{
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

	ckpt_watch_take(watch, "step-00000010");
	ckpt_watch_take(watch, "step-00000077");
	make_files(*state, "step-00000010", 10);
	make_files(*state, "step-00000020", 20);
	look(watch, 0);
	look(watch, 1000);
	assert_next(watch, "step-00000020");
}

static void what_vanishes_is_forgotten(void **state)
{
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

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
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);
	uint64_t before;

	look(watch, 0);
	before = ckpt_watch_changes(watch);
	look(watch, 1);
	assert_int_equal(ckpt_watch_changes(watch), before);
	put_text(*state, "tmp-checkpoint-10/model.bin", "1");
	look(watch, 2);
	assert_int_equal(ckpt_watch_changes(watch), before + 1);
	put_text(*state, "tmp-checkpoint-10/model.bin", "12");
	look(watch, 3);
	assert_int_equal(ckpt_watch_changes(watch), before + 2);
	make_files(*state, "step-00000010", 10);
	look(watch, 4);
	assert_int_equal(ckpt_watch_changes(watch), before + 3);
	look(watch, 5);
	assert_int_equal(ckpt_watch_changes(watch), before + 3);
	/* A mark is this project's own doing. */
	put_text(*state, "step-00000010.stoker.json", "{}");
	look(watch, 6);
	assert_int_equal(ckpt_watch_changes(watch), before + 3);
}

static void each_kind_settles(void **state)
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++) {
		AUTO(auto_free) char *root = mem_format("%s/%zu", (char *)*state, m);
		AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(root);

		make_all(&makers[m], root, 3);
		look(watch, 0);
		for (int i = 0; i < 3; i++) {
			look(watch, 1000 + i);
			assert_next(watch, makers[m].names[i]);
			ckpt_watch_take(watch, makers[m].names[i]);
		}
	}
}

static void a_pointer_that_follows_late_completes_what_waits_for_it(void **state)
{
	AUTO(ckpt_watch_freep) struct ckpt_watch *watch = watch_on(*state);

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
		test_in_scratch(a_checkpoint_is_offered_once_it_has_settled_and_until_it_is_taken),
		test_in_scratch(every_change_starts_the_clock_anew),
		test_in_scratch(partial_ones_are_not_offered_but_told),
		test_in_scratch(one_call_proves_one_the_oldest_first),
		test_in_scratch(a_taken_one_is_the_neighbour_of_those_that_follow),
		test_in_scratch(what_was_taken_in_an_earlier_life_is_not_offered),
		test_in_scratch(what_vanishes_is_forgotten),
		test_in_scratch(any_change_beneath_the_root_is_a_sign_of_life),
		test_in_scratch(each_kind_settles),
		test_in_scratch(a_pointer_that_follows_late_completes_what_waits_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
