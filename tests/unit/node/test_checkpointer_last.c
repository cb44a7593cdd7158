/* The last pass of a checkpointer: what is marked, and what it says of the rest. */
#include "tests/unit/node/checkpointer_bench.h"

static void at_the_end_all_that_is_whole_is_marked_and_kept(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *said = NULL;
	struct bench bench;

	bench_load(&bench, *state, order_saving(*state, root, NEVER_MS), "0");
	for (int step = 1; step <= 3; step++)
		save(&bench, step);
	start_checkpointer(&bench);
	tell(&bench, "\"last\"");
	for (int step = 3; step >= 1; step--)
		hear_marked(&bench, step);
	said = rest(&bench);
	assert_string_equal(said, "kept ");
	close_checkpointer(&bench);
}

static void with_nothing_saved_nothing_is_lost(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *said = NULL;
	struct bench bench;

	open_checkpointer(&bench, *state, order_saving(*state, root, NEVER_MS));
	tell(&bench, "\"last\"");
	said = rest(&bench);
	assert_string_equal(said, "kept ");
	close_checkpointer(&bench);
}

/* The newest is what the next attempt goes on from: whether it is lost is what counts. */
static void at_the_end_older_ones_are_marked_though_the_newest_cannot_be(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	json_auto_t *lost = NULL;
	struct bench bench;

	block(*state, 3);
	bench_load(&bench, *state, order_saving(*state, root, NEVER_MS), "0");
	for (int step = 1; step <= 3; step++)
		save(&bench, step);
	start_checkpointer(&bench);
	tell(&bench, "\"last\"");
	hear_marked(&bench, 1);
	hear_marked(&bench, 2);
	lost = hear(&bench, "lost");
	assert_string_equal(js_str(lost, "name"), "step-3");
	assert_has(js_str(lost, "why"), "far/step-3");
	close_checkpointer(&bench);
}

/* The failure has a class. A folder that takes nothing is the user's, by its error. */
static void what_is_lost_is_told_with_its_cause(void **state)
{
	for (int far = 0; far < 2; far++) {
		AUTO(auto_free) char *folder = far_of(*state);
		AUTO(auto_free) char *root = far ? store_of(*state) : mem_copy(folder);
		json_auto_t *lost = NULL;
		struct bench bench;

		write_file(folder, "in the way", 0600);
		bench_load(&bench, *state, order_saving(*state, root, NEVER_MS), "0");
		save(&bench, 10);
		start_checkpointer(&bench);
		tell(&bench, "\"last\"");
		lost = hear(&bench, "lost");
		assert_string_equal(js_str(lost, "name"), "step-10");
		assert_has(js_str(lost, "why"), "far");
		assert_null(js_str(lost, "class"));
		assert_true(js_int(lost, "errno", 0) > 0);
		close_checkpointer(&bench);
	}
}

static void what_a_cut_command_leaves_counts_if_something_shows_that_it_is_whole(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);

	for (int shown = 0; shown < 2; shown++) {
		AUTO(auto_free) char *path = NULL;
		AUTO(auto_free) char *said = NULL;
		json_auto_t *partial = NULL;
		AUTO(err_freep) struct err *err = NULL;
		struct bench bench;

		bench_load(&bench, *state, order_saving(*state, root, NEVER_MS), "0");
		if (shown)
			save(&bench, 10);
		else
			save_file(&bench, "step-10/state.bin", "hello");
		path = mem_copy(bench.config.checkpoint);
		start_checkpointer(&bench);
		tell(&bench, "\"last\",\"cut\":true");
		if (shown)
			hear_marked(&bench, 10);
		else
			partial = hear(&bench, "partial");
		assert_int_equal(js_is(partial, "name", "step-10"), !shown);
		said = rest(&bench);
		assert_string_equal(said, "kept ");
		close_checkpointer(&bench);
		assert_int_equal(is_there(&bench, "far/step-10" MARK_SUFFIX), shown);
		must(fs_remove_tree(path, &err), &err);
	}
}

static void at_the_end_what_is_not_whole_is_named_with_its_cause(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *said = NULL;
	json_auto_t *partial = NULL, *passed = NULL;
	struct bench bench;

	bench_load(&bench, *state, order_saving(*state, root, NEVER_MS), "0");
	save_file(&bench, "step-10/state.json", "{\"a\":");
	start_checkpointer(&bench);
	tell(&bench, "\"last\"");
	passed = hear(&bench, "passed");
	assert_string_equal(js_str(passed, "name"), "step-10");
	partial = hear(&bench, "partial");
	assert_string_equal(js_str(partial, "name"), "step-10");
	assert_has(js_str(partial, "why"), "state.json");
	said = rest(&bench);
	assert_string_equal(said, "kept ");
	close_checkpointer(&bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(at_the_end_all_that_is_whole_is_marked_and_kept),
		TEST(with_nothing_saved_nothing_is_lost),
		TEST(at_the_end_older_ones_are_marked_though_the_newest_cannot_be),
		TEST(what_is_lost_is_told_with_its_cause),
		TEST(what_a_cut_command_leaves_counts_if_something_shows_that_it_is_whole),
		TEST(at_the_end_what_is_not_whole_is_named_with_its_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
