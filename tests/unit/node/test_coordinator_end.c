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

/* Node 0 at the end of its command, with a checkpoint that the others have yet to answer for. */
static void leave_waiting(struct side sides[NODES], struct place *place, int64_t look_ms)
{
	side_open(&sides[0], place, 0, look_ms);
	side_open(&sides[1], place, 1, 1);
	side_open(&sides[2], place, 2, 1);
	save_and_send(&sides[0], "step-10");
	assert_true(checkpoint_coordinator_finish(sides[0].coordinator, NULL, false));
	(void)go(&sides[0]);
}

static bool is_waiting(struct side *side)
{
	(void)go(side);
	return checkpoint_coordinator_waiting(side->coordinator);
}

static void who_is_silent_for_thirty_beats_is_not_waited_for(void **state)
{
	struct side sides[NODES];

	leave_waiting(sides, *state, 1);
	for (int i = 0; i < 30; i++) {
		assert_true(is_waiting(&sides[0]));
		ticks_ms += HEART_MS;
	}
	assert_true(is_waiting(&sides[0]));
	ticks_ms++;
	assert_false(is_waiting(&sides[0]));
	assert_has(only_unmarked(&sides[0]).why, "have not reported their parts");
	close_all(sides);
}

/* A node whose command never began: thirty beats of a far workspace would be five minutes. */
static void who_never_said_anything_is_waited_for_twenty_seconds(void **state)
{
	struct side sides[NODES];

	leave_waiting(sides, *state, 1);
	sides[0].config.heartbeat_ms = 10000;
	for (int i = 0; i < 20; i++) {
		assert_true(is_waiting(&sides[0]));
		ticks_ms += 1000;
	}
	assert_true(is_waiting(&sides[0]));
	ticks_ms++;
	assert_false(is_waiting(&sides[0]));
	close_all(sides);
}

static void who_has_said_something_is_waited_for_longer(void **state)
{
	struct side sides[NODES];

	leave_waiting(sides, *state, 1);
	sides[0].config.heartbeat_ms = 10000;
	for (int i = 1; i < NODES; i++)
		(void)go(&sides[i]);
	for (int i = 0; i <= 300; i++) {
		assert_true(is_waiting(&sides[0]));
		ticks_ms += 1000;
	}
	assert_false(is_waiting(&sides[0]));
	close_all(sides);
}

static void who_says_anything_is_waited_for_anew(void **state)
{
	struct side sides[NODES];

	leave_waiting(sides, *state, 1);
	for (int i = 0; i < 60; i++) {
		if (i == 20) {
			sides[2].own.changes = 7;
			sides[2].own.quiet = false;
			(void)go(&sides[2]);
		}
		assert_int_equal(is_waiting(&sides[0]), i <= 20 + 30);
		ticks_ms += HEART_MS;
	}
	close_all(sides);
}

/* Machines that sleep together wake one after the other. */
static void time_in_which_node_0_itself_was_stopped_does_not_count(void **state)
{
	struct side sides[NODES];

	leave_waiting(sides, *state, 1);
	for (int i = 0; i < 20; i++) {
		assert_true(is_waiting(&sides[0]));
		ticks_ms += HEART_MS;
	}
	ticks_ms += LATER_MS;
	for (int i = 0; i <= 30; i++) {
		assert_true(is_waiting(&sides[0]));
		ticks_ms += HEART_MS;
	}
	assert_false(is_waiting(&sides[0]));
	close_all(sides);
}

/* Half of the silence is no such gap. */
static void a_short_pause_of_node_0_counts(void **state)
{
	struct side sides[NODES];

	leave_waiting(sides, *state, 1);
	assert_true(is_waiting(&sides[0]));
	ticks_ms += 15 * HEART_MS;
	assert_true(is_waiting(&sides[0]));
	ticks_ms += 15 * HEART_MS;
	assert_true(is_waiting(&sides[0]));
	ticks_ms++;
	assert_false(is_waiting(&sides[0]));
	close_all(sides);
}

static void looks_come_each_second_for_a_minute_and_then_as_usual(void **state)
{
	enum { LOOK_MS = 30000 };
	static const int64_t pauses[] = { 500, 1000, 1000, 1000 };
	struct side sides[NODES];

	leave_waiting(sides, *state, LOOK_MS);
	sides[0].config.heartbeat_ms = LATER_MS;
	(void)go(&sides[1]);
	assert_int_equal(checkpoint_coordinator_pause(sides[0].coordinator), 250);
	for (size_t i = 0; i < STK_LENGTH(pauses); i++) {
		assert_true(is_waiting(&sides[0]));
		assert_int_equal(checkpoint_coordinator_pause(sides[0].coordinator), pauses[i]);
	}
	ticks_ms += 59999;
	assert_true(is_waiting(&sides[0]));
	assert_int_equal(checkpoint_coordinator_pause(sides[0].coordinator), 1000);
	ticks_ms++;
	for (int64_t pause = 2000; pause < 2 * LOOK_MS; pause *= 2) {
		assert_true(is_waiting(&sides[0]));
		assert_int_equal(checkpoint_coordinator_pause(sides[0].coordinator),
				 pause < LOOK_MS ? pause : LOOK_MS);
	}
	close_all(sides);
}

static void where_looks_are_cheap_they_come_as_often(void **state)
{
	struct side sides[NODES];

	leave_waiting(sides, *state, 400);
	assert_true(is_waiting(&sides[0]));
	assert_int_equal(checkpoint_coordinator_pause(sides[0].coordinator), 400);
	close_all(sides);
}

/* The node's last word says that there is no more to come. */
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

/* The node that was cut off has no part in any of them. */
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

/* The node let this one pass: it had begun the next one. */
/* A checkpoint of another series, or one that is not whole itself, says nothing. */
static void another_checkpoint_may_say_nothing_of_who_was_cut_off(void **state)
{
	static const struct {
		const char *other;
		int node; /* who has it */
	} rows[] = { { "other-20", 2 }, { "step-5", 2 }, { "step-20", 1 } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *far = place_path(*state, "far");
		AUTO(err_freep) struct err *err = NULL;
		struct side sides[NODES];

		open_all(sides, *state);
		for (int node = 0; node < 2; node++)
			save_and_send(&sides[node], "step-10");
		save_and_send(&sides[rows[i].node], rows[i].other);
		for (int node = 0; node < NODES; node++)
			assert_true(checkpoint_coordinator_finish(sides[node].coordinator, NULL,
								  node == 2));
		(void)go(&sides[0]);
		if (is_marked(*state, "step-10"))
			fail_msg("%s", rows[i].other);
		close_all(sides);
		must(fs_remove_tree(far, &err), &err);
	}
}

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(node_0_waits_for_the_last_word_of_who_lives),
		TEST(without_a_checkpoint_node_0_waits_for_nobody),
		TEST(who_is_silent_for_thirty_beats_is_not_waited_for),
		TEST(who_never_said_anything_is_waited_for_twenty_seconds),
		TEST(who_has_said_something_is_waited_for_longer),
		TEST(who_says_anything_is_waited_for_anew),
		TEST(time_in_which_node_0_itself_was_stopped_does_not_count),
		TEST(a_short_pause_of_node_0_counts),
		TEST(looks_come_each_second_for_a_minute_and_then_as_usual),
		TEST(where_looks_are_cheap_they_come_as_often),
		TEST(who_has_ended_well_has_no_part_of_what_it_did_not_send),
		TEST(who_was_cut_off_before_it_saved_anything_is_named),
		TEST(who_was_cut_off_and_never_saves_is_not_missing),
		TEST(another_checkpoint_may_say_nothing_of_who_was_cut_off),
		TEST(who_was_cut_off_in_a_later_one_had_no_part_in_this_one),
		TEST(what_a_node_says_grows_while_node_0_waits_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
