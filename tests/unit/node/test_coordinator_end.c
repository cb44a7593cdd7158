/* Nodes with folders of their own whose command is over: whose word node 0 waits for, and what it
 * takes who was cut off for. */
#include "tests/unit/node/coordinator_sides.h"

static void node_0_waits_for_the_last_word_of_who_lives(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	for (int i = 0; i < NODES; i++) {
		/* No node is taken for dead here. */
		sides[i].config.heartbeat_ms = LATER_MS;
		save_and_send(&sides[i], "step-10");
	}
	(void)go_all(sides);
	assert_true(checkpoint_coordinator_finish(sides[0].coordinator, NULL, false));
	for (int i = 1; i < NODES; i++) {
		(void)go(&sides[0]);
		assert_true(checkpoint_coordinator_waiting(sides[0].coordinator));
		assert_true(checkpoint_coordinator_finish(sides[i].coordinator, NULL, false));
	}
	(void)go(&sides[0]);
	assert_false(checkpoint_coordinator_waiting(sides[0].coordinator));
	close_all(sides);
}

static void without_a_checkpoint_node_0_waits_for_nobody(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	sides[0].config.heartbeat_ms = LATER_MS;
	(void)go_all(sides);
	assert_true(checkpoint_coordinator_finish(sides[0].coordinator, NULL, false));
	(void)go(&sides[0]);
	assert_false(checkpoint_coordinator_waiting(sides[0].coordinator));
	close_all(sides);
}

static void who_is_silent_is_not_waited_for_without_end(void **state)
{
	struct side sides[NODES];
	int i;

	open_all(sides, *state);
	save_and_send(&sides[0], "step-10");
	assert_true(checkpoint_coordinator_finish(sides[0].coordinator, NULL, false));
	(void)go(&sides[0]);
	for (i = 0; i < LOOKS && checkpoint_coordinator_waiting(sides[0].coordinator); i++) {
		(void)go(&sides[0]);
		pause_ms(1);
	}
	assert_in_range(i, 1, LOOKS - 1);
	assert_has(only_unmarked(&sides[0]).why, "have not reported their parts");
	close_all(sides);
}

/* Its last word says that there is no more to come. */
static void who_has_ended_well_has_no_part_of_what_it_did_not_send(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	save_and_send(&sides[1], "step-10");
	for (int i = 0; i < NODES; i++)
		assert_true(checkpoint_coordinator_finish(sides[i].coordinator, NULL, false));
	assert_int_equal(go(&sides[0]), 1);
	close_all(sides);
}

static void who_was_cut_off_before_it_saved_anything_is_named(void **state)
{
	for (int cut = 0; cut < 2; cut++) {
		AUTO(auto_free)
		char *why = mem_format("node %d was disconnected before it saved any part",
				       cut ? 2 : 0);
		AUTO(auto_free) char *far = place_path(*state, "far");
		AUTO(err_freep) struct err *err = NULL;
		struct side sides[NODES];

		open_all(sides, *state);
		save_and_send(&sides[1], "step-10");
		for (int i = 0; i < NODES; i++)
			assert_true(checkpoint_coordinator_finish(sides[i].coordinator, NULL,
								  i == (cut ? 2 : 0)));
		assert_int_equal(go(&sides[0]), 0);
		assert_string_equal(only_unmarked(&sides[0]).why, why);
		assert_true(only_unmarked(&sides[0]).lost);
		close_all(sides);
		must(fs_remove_tree(far, &err), &err);
	}
}

/* It has no part in any of them. */
static void who_was_cut_off_and_never_saves_is_not_missing(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	save_and_send(&sides[1], "step-10");
	(void)go(&sides[1]);
	(void)go(&sides[0]);
	go_until_told(*state, &sides[0], "none", "step-10");
	go_until_told(*state, &sides[2], "none", "step-10");
	(void)go(&sides[0]);
	assert_true(is_marked(*state, "step-10"));
	save_and_send(&sides[1], "step-20");
	for (int i = 0; i < NODES; i++)
		assert_true(checkpoint_coordinator_finish(sides[i].coordinator, NULL, i == 2));
	assert_int_equal(go(&sides[0]), 1);
	assert_true(is_marked(*state, "step-20"));
	close_all(sides);
}

/* It let this one pass: it had begun the next one. */
static void who_was_cut_off_in_a_later_one_had_no_part_in_this_one(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	for (int i = 0; i < 2; i++)
		save_and_send(&sides[i], "step-10");
	save_and_send(&sides[2], "step-20");
	for (int i = 0; i < NODES; i++)
		assert_true(checkpoint_coordinator_finish(sides[i].coordinator, NULL, i == 2));
	(void)go(&sides[0]);
	assert_true(is_marked(*state, "step-10"));
	close_all(sides);
}

static void what_a_node_says_grows_while_node_0_waits_for_it(void **state)
{
	struct side sides[NODES];
	int64_t before = 0;

	open_all(sides, *state);
	save_and_send(&sides[0], "step-10");
	assert_true(checkpoint_coordinator_finish(sides[0].coordinator, NULL, false));
	for (int i = 0; i < 3; i++) {
		json_auto_t *told = NULL;

		(void)go(&sides[1]);
		told = told_by(*state, 1);
		assert_true(js_int(told, "beats", 0) > before);
		before = js_int(told, "beats", 0);
	}
	close_all(sides);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(node_0_waits_for_the_last_word_of_who_lives),
		TEST(without_a_checkpoint_node_0_waits_for_nobody),
		TEST(who_is_silent_is_not_waited_for_without_end),
		TEST(who_has_ended_well_has_no_part_of_what_it_did_not_send),
		TEST(who_was_cut_off_before_it_saved_anything_is_named),
		TEST(who_was_cut_off_and_never_saves_is_not_missing),
		TEST(who_was_cut_off_in_a_later_one_had_no_part_in_this_one),
		TEST(what_a_node_says_grows_while_node_0_waits_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
