/* What nodes with folders of their own tell each other about a checkpoint, and what is made of it.
 */
#include "tests/unit/node/coordinator_sides.h"

#define SETTLED 3 /* heartbeats until a node says that it has none */

/* ---- parts ---- */

static void of_many_parts_the_newest_are_told(void **state)
{
	enum { MANY = 66, TOLD = 64, FIRST = 30 };
	struct side side;
	json_auto_t *told = NULL;
	const json_t *parts;

	side_open(&side, *state, 1, 1);
	/* The oldest come neither first nor last. */
	for (int i = 0; i < MANY; i++) {
		AUTO(auto_free) char *name = mem_format("step-%d", (i + FIRST) % MANY + 1);

		save_and_send(&side, name);
	}
	(void)go(&side);
	told = told_by(*state, 1);
	parts = json_object_get(told, "parts");
	assert_int_equal(json_object_size(parts), TOLD);
	for (int step = 1; step <= MANY; step++) {
		AUTO(auto_free) char *name = mem_format("step-%d", step);
		const json_t *part = json_object_get(parts, name);

		assert_int_equal(part != NULL, step > MANY - TOLD);
		assert_int_equal(js_int(part, "step", step), step);
	}
	side_close(&side);
}

static void a_part_is_sent_once_and_again_when_it_changes(void **state)
{
	AUTO(auto_free) char *far = place_path(*state, "far/step-10/shard-1.bin");
	AUTO(auto_free) char *text = NULL;
	struct side side;

	side_open(&side, *state, 1, 1);
	save_and_send(&side, "step-10");
	assert_int_equal(unlink(far), 0);
	send(&side, "step-10");
	assert_false(fs_exists(far)); /* nothing was sent */
	save(&side, "step-10", "shard-1.bin", "another part");
	send(&side, "step-10");
	text = read_file(far, NULL);
	assert_string_equal(text, "another part");
	assert_null(side.trouble);
	side_close(&side);
}

static void a_part_that_another_node_has_otherwise_is_told_as_trouble(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	save(&sides[1], "step-10", "common.bin", "one");
	send(&sides[1], "step-10");
	save(&sides[2], "step-10", "common.bin", "two");
	send(&sides[2], "step-10");
	assert_null(sides[1].trouble);
	assert_has(sides[2].trouble, "cannot copy '");
	assert_has(sides[2].trouble, "common.bin");
	checkpoint_coordinator_finish(sides[0].coordinator, NULL, false);
	assert_int_equal(go_all(sides), 0);
	assert_true(only_unmarked(&sides[0]).lost);
	assert_string_equal(only_unmarked(&sides[0]).class, "user-config");
	close_all(sides);
}

/* A look costs requests: there is one each look_ms, and at once where something waits. */
static void a_look_comes_when_it_is_due_or_something_waits_for_it(void **state)
{
	const struct coordinator_own calm = { .quiet = true };
	struct coordinator_own draining = { .quiet = true, .draining = true };
	json_auto_t *bad = json_pack("{s:s}", "step-5", "is not whole");
	struct side side;

	side_open(&side, *state, 1, LATER_MS);
	assert_int_equal(checkpoint_coordinator_round(side.coordinator, &calm), 0);
	draining.bad = bad;
	(void)checkpoint_coordinator_round(side.coordinator,
					   &(struct coordinator_own){ .quiet = true, .bad = bad });
	assert_false(tells(*state, 1, "bad", "step-5")); /* too early */
	(void)checkpoint_coordinator_round(side.coordinator, &draining);
	assert_true(tells(*state, 1, "bad", "step-5"));
	save_and_send(&side, "step-10");
	assert_false(tells(*state, 1, "parts", "step-10"));
	(void)checkpoint_coordinator_round(side.coordinator, &calm);
	assert_true(tells(*state, 1, "parts", "step-10"));
	assert_true(checkpoint_coordinator_finish(side.coordinator, NULL, false));
	side.own.bad = bad;
	(void)checkpoint_coordinator_round(side.coordinator, &side.own);
	assert_true(tells(*state, 1, "bad", "step-5"));
	side_close(&side);
}

/* ---- messages to node 0 ---- */

static void what_all_have_sent_is_marked(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	assert_int_equal(checkpoint_coordinator_newest(sides[0].coordinator), -1);
	for (int i = 0; i < NODES; i++)
		save_and_send(&sides[i], "step-10");
	(void)go(&sides[1]);
	assert_int_equal(go(&sides[0]), 0); /* of the last one it has not heard */
	assert_string_equal(only_unmarked(&sides[0]).why, "node 2 has not reported its part");
	assert_true(tells(*state, 0, "asked", "step-10"));
	assert_int_equal(go_all(sides), 1);
	assert_true(is_marked(*state, "step-10"));
	assert_int_equal(json_array_size(sides[0].marked), 1);
	assert_int_equal(json_integer_value(json_array_get(sides[0].marked, 0)), 10);
	assert_int_equal(checkpoint_coordinator_newest(sides[0].coordinator), 10);
	assert_int_equal(go_all(sides), 0); /* it is no news */
	assert_false(tells(*state, 0, "asked", "step-10"));
	assert_false(checkpoint_coordinator_unmarked(sides[0].coordinator, 0,
						     &(struct coordinator_unmarked){ 0 }));
	close_all(sides);
}

static void who_has_not_reported_is_counted(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	save_and_send(&sides[0], "step-10");
	assert_int_equal(go(&sides[0]), 0);
	assert_string_equal(only_unmarked(&sides[0]).why,
			    "node 1 and 1 more have not reported their parts");
	assert_true(only_unmarked(&sides[0]).lost);
	assert_string_equal(only_unmarked(&sides[0]).class, "transient-infra");
	close_all(sides);
}

/* An earlier start of the job, or another job, may have left its words there. */
static void words_of_another_life_do_not_count(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	for (int i = 0; i < NODES; i++)
		save_and_send(&sides[i], "step-10");
	(void)go(&sides[1]);
	(void)go(&sides[2]);
	side_close(&sides[0]);
	side_open(&sides[0], *state, 0, 1);
	checkpoint_coordinator_freep(&sides[0].coordinator);
	sides[0].config.restart = 1;
	sides[0].coordinator = checkpoint_coordinator_new(
		&sides[0].config, &sides[0].root, checkpoint_kind_find("files"),
		sides[0].config.checkpoint,
		&(struct coordinator_hooks){ &sides[0], say_held, note_marked, note_trouble });
	send(&sides[0], "step-10");
	assert_int_equal(go(&sides[0]), 0);
	assert_has(only_unmarked(&sides[0]).why, "node 1 and 1 more");
	close_all(sides);
}

static void states_that_cannot_be_listed_are_told_and_read_later(void **state)
{
	AUTO(auto_free) char *shards = place_path(*state, "far/shards");
	struct side sides[NODES];

	open_all(sides, *state);
	write_file(shards, "in the way", 0600);
	assert_int_equal(go(&sides[0]), 0);
	assert_has(sides[0].trouble, "cannot open the folder 'shards'");
	assert_int_equal(unlink(shards), 0);
	for (int i = 0; i < NODES; i++)
		save_and_send(&sides[i], "step-10");
	assert_int_equal(go_all(sides), 1);
	close_all(sides);
}

static void a_state_that_makes_no_sense_is_as_none(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "far/shards/node-1.json");
	struct side sides[NODES];

	open_all(sides, *state);
	for (int i = 0; i < NODES; i++)
		save_and_send(&sides[i], "step-10");
	(void)go(&sides[2]);
	write_file(path, "{\"v\":1,", 0600);
	assert_int_equal(go(&sides[0]), 0);
	assert_string_equal(only_unmarked(&sides[0]).why, "node 1 has not reported its part");
	assert_int_equal(go_all(sides), 1);
	close_all(sides);
}

/* ---- the claim ---- */

static void without_the_claim_nothing_is_marked(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	for (int i = 0; i < NODES; i++)
		save_and_send(&sides[i], "step-10");
	sides[0].held = 0;
	assert_int_equal(go_all(sides), 0);
	assert_null(sides[0].trouble);
	sides[0].held = -1;
	assert_int_equal(go_all(sides), 0);
	assert_has(sides[0].trouble,
		   "cannot mark 'step-10': the claim in the workspace cannot be read");
	assert_true(only_unmarked(&sides[0]).lost);
	assert_false(is_marked(*state, "step-10"));
	sides[0].held = 1;
	assert_int_equal(go_all(sides), 1);
	assert_true(is_marked(*state, "step-10"));
	close_all(sides);
}

/* ---- nodes that have none ---- */

static void who_is_quiet_says_that_it_has_none(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	save_and_send(&sides[0], "step-10");
	assert_int_equal(go(&sides[0]), 0);
	go_until_told(*state, &sides[1], "none", "step-10");
	assert_int_equal(go(&sides[0]), 0);
	assert_string_equal(only_unmarked(&sides[0]).why, "node 2 has not reported its part");
	go_until_told(*state, &sides[2], "none", "step-10");
	assert_int_equal(go(&sides[0]), 1);
	/* A part that comes all the same counts: it is one checkpoint. */
	save_and_send(&sides[1], "step-10");
	assert_int_equal(go_all(sides), 1);
	assert_false(tells(*state, 1, "none", "step-10"));
	close_all(sides);
}

static void node_0_too_answers_what_others_saved(void **state)
{
	struct side sides[NODES];
	int marked = 0;

	open_all(sides, *state);
	save_and_send(&sides[1], "step-10");
	(void)go(&sides[1]);
	(void)go(&sides[0]);
	assert_true(tells(*state, 0, "asked", "step-10"));
	go_until_told(*state, &sides[2], "none", "step-10");
	for (int i = 0; i < LOOKS && !marked; i++) {
		marked = go(&sides[0]);
		ticks_ms++;
	}
	assert_int_equal(marked, 1);
	close_all(sides);
}

static void who_still_saves_or_has_something_there_does_not_say_none(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	save_and_send(&sides[0], "step-10");
	(void)go(&sides[0]);
	sides[1].own.quiet = false;
	sides[1].own.changes = 7;
	save(&sides[2], "step-10", "shard-2.bin", "not sent yet");
	for (int node = 1; node < NODES; node++) {
		json_auto_t *told = NULL;

		for (int i = 0; i < 4 * SETTLED * HEART_MS; i++) {
			(void)go(&sides[node]);
			ticks_ms++;
		}
		told = told_by(*state, node);
		assert_null(json_object_get(json_object_get(told, "none"), "step-10"));
		/* Node 0 sees by it that the node lives. */
		assert_int_equal(js_int(told, "changes", -1), node == 1 ? 7 : 0);
	}
	close_all(sides);
}

/* A checkpoint takes so long to settle: before that the node may have one, too. */
static void none_is_said_after_three_beats_of_quiet(void **state)
{
	struct side sides[NODES];

	open_all(sides, *state);
	save_and_send(&sides[0], "step-10");
	(void)go(&sides[0]);
	(void)go(&sides[1]);
	ticks_ms += SETTLED * HEART_MS - 1;
	(void)go(&sides[1]);
	assert_false(tells(*state, 1, "none", "step-10"));
	ticks_ms++;
	(void)go(&sides[1]);
	assert_true(tells(*state, 1, "none", "step-10"));
	close_all(sides);
}

static void an_answer_that_is_waited_for_comes_before_the_next_look(void **state)
{
	const struct coordinator_own calm = { .quiet = true };

	for (int slow = 0; slow < 2; slow++) {
		AUTO(auto_free) char *far = place_path(*state, "far");
		AUTO(err_freep) struct err *err = NULL;
		struct side head, peer;

		side_open(&head, *state, 0, 1);
		side_open(&peer, *state, 1, slow ? LATER_MS : SETTLED * HEART_MS - 1);
		save_and_send(&head, "step-10");
		(void)go(&head);
		(void)checkpoint_coordinator_round(peer.coordinator, &calm); /* it is asked */
		ticks_ms += SETTLED * HEART_MS - 1;
		(void)checkpoint_coordinator_round(peer.coordinator, &calm);
		assert_false(tells(*state, 1, "none", "step-10"));
		ticks_ms++;
		(void)checkpoint_coordinator_round(peer.coordinator, &calm);
		/* If the node looks more often than that, it answers as often. */
		assert_int_equal(tells(*state, 1, "none", "step-10"), slow);
		side_close(&head);
		side_close(&peer);
		must(fs_remove_tree(far, &err), &err);
	}
}

static void of_many_names_the_last_ones_are_said_to_be_none(void **state)
{
	enum { MANY = 70, TOLD = 64 };
	AUTO(auto_free) char *path = place_path(*state, "far/shards/node-0.json");
	json_auto_t *head = NULL, *told = NULL;
	json_t *asked = json_object();
	AUTO(auto_free) char *text = NULL;
	struct side zero, one;
	size_t said = 0;

	side_open(&zero, *state, 0, 1);
	side_open(&one, *state, 1, 1);
	(void)go(&zero);
	head = told_by(*state, 0);
	for (int i = 0; i < MANY; i++) {
		AUTO(auto_free) char *name = mem_format("step-%d", i);

		js_put(asked, name, json_true());
	}
	js_put(head, "asked", asked);
	text = js_line(head);
	write_file(path, text, 0600);
	(void)go(&one);
	ticks_ms += SETTLED * HEART_MS;
	(void)go(&one);
	told = told_by(*state, 1);
	said = json_object_size(json_object_get(told, "none"));
	assert_int_equal(said, TOLD);
	assert_true(tells(*state, 1, "none", "step-69"));
	side_close(&zero);
	side_close(&one);
}

static void who_sends_tells_now_and_then_that_it_lives(void **state)
{
	enum { LOOK_MS = 1000 };
	json_auto_t *first = NULL, *second = NULL, *third = NULL;
	struct side side;

	side_open(&side, *state, 1, LOOK_MS);
	ticks_ms += LOOK_MS;
	checkpoint_coordinator_moved(side.coordinator);
	first = told_by(*state, 1);
	assert_int_equal(js_int(first, "node", -1), 1);
	assert_int_equal(js_int(first, "moved", -1), 0); /* it has sent nothing yet */
	save_and_send(&side, "step-10");
	ticks_ms += LOOK_MS - 1;
	checkpoint_coordinator_moved(side.coordinator);
	second = told_by(*state, 1);
	assert_null(json_object_get(json_object_get(second, "parts"), "step-10"));
	ticks_ms++;
	checkpoint_coordinator_moved(side.coordinator);
	third = told_by(*state, 1);
	assert_non_null(json_object_get(json_object_get(third, "parts"), "step-10"));
	side_close(&side);
}

/* ---- a part that changes ---- */

static void a_mark_goes_when_any_part_changes_and_comes_anew(void **state)
{
	for (int node = 0; node < NODES; node++) {
		AUTO(auto_free) char *far = place_path(*state, "far");
		AUTO(auto_free) char *file = mem_format("shard-%d.bin", node);
		AUTO(err_freep) struct err *err = NULL;
		struct side sides[NODES];

		open_all(sides, *state);
		for (int i = 0; i < NODES; i++)
			save_and_send(&sides[i], "step-10");
		assert_int_equal(go_all(sides), 1);
		save(&sides[node], "step-10", file, "another part");
		send(&sides[node], "step-10");
		sides[0].held = 0;
		assert_int_equal(go_all(sides), 0);
		assert_false(is_marked(*state, "step-10"));
		sides[0].held = 1;
		assert_int_equal(go_all(sides), 1);
		assert_true(is_marked(*state, "step-10"));
		close_all(sides);
		must(fs_remove_tree(far, &err), &err);
	}
}

static void a_part_that_is_not_whole_is_told_and_takes_the_mark_away(void **state)
{
	json_auto_t *bad = json_pack("{s:s}", "step-10", "'x' is cut off");
	struct side sides[NODES];

	open_all(sides, *state);
	for (int i = 0; i < NODES; i++)
		save_and_send(&sides[i], "step-10");
	assert_int_equal(go_all(sides), 1);
	for (int node = 0; node < 2; node++) {
		AUTO(auto_free) char *why = mem_format("on node %d 'x' is cut off", node);

		sides[node].own.bad = bad;
		assert_int_equal(go_all(sides), 0);
		assert_false(is_marked(*state, "step-10"));
		assert_string_equal(only_unmarked(&sides[0]).why, why);
		assert_false(only_unmarked(&sides[0]).lost);
		assert_null(only_unmarked(&sides[0]).class);
		sides[node].own.bad = NULL;
		assert_int_equal(go_all(sides), 1);
		assert_true(is_marked(*state, "step-10"));
	}
	close_all(sides);
}

/* ---- checkpoints that are kept no more ---- */

static void what_is_removed_goes_on_all_nodes_and_nothing_else(void **state)
{
	AUTO(auto_free) char *note = place_path(*state, "far/shards/step-10/node-1.json");
	AUTO(auto_free) char *own = NULL;
	AUTO(auto_free) char *other = NULL;
	AUTO(auto_free) char *unsent = NULL;
	struct side sides[NODES];

	open_all(sides, *state);
	own = fs_join(sides[1].config.checkpoint, "step-10");
	other = fs_join(sides[1].config.checkpoint, "step-20");
	unsent = fs_join(sides[2].config.checkpoint, "step-10");
	for (int i = 0; i < 2; i++) {
		save_and_send(&sides[i], "step-10");
		save_and_send(&sides[i], "step-20");
	}
	save(&sides[2], "step-10", "shard-2.bin", "not sent yet");
	(void)go_all(sides);
	assert_true(fs_exists(note));
	checkpoint_coordinator_removed(sides[0].coordinator, "step-10");
	assert_false(fs_exists(note));
	(void)go(&sides[0]);
	(void)go_all(sides);
	assert_false(fs_exists(own));
	assert_true(fs_exists(other));
	assert_true(fs_exists(unsent));
	assert_false(tells(*state, 0, "parts", "step-10"));
	assert_false(tells(*state, 1, "parts", "step-10"));
	assert_string_equal(only_unmarked(&sides[0]).name, "step-20");
	assert_null(sides[0].trouble);
	close_all(sides);
}

static void the_last_ones_removed_are_told(void **state)
{
	enum { MANY = 66, TOLD = 64 };
	struct side side;
	json_auto_t *told = NULL;
	const json_t *removed;

	side_open(&side, *state, 0, 1);
	for (int i = 0; i < MANY; i++) {
		AUTO(auto_free) char *name = mem_format("step-%d", i);

		checkpoint_coordinator_removed(side.coordinator, name);
	}
	(void)go(&side);
	told = told_by(*state, 0);
	removed = json_object_get(told, "removed");
	assert_int_equal(json_object_size(removed), TOLD);
	assert_null(json_object_get(removed, "step-1"));
	assert_non_null(json_object_get(removed, "step-2"));
	assert_non_null(json_object_get(removed, "step-65"));
	side_close(&side);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_many_parts_the_newest_are_told),
		TEST(a_part_is_sent_once_and_again_when_it_changes),
		TEST(a_part_that_another_node_has_otherwise_is_told_as_trouble),
		TEST(a_look_comes_when_it_is_due_or_something_waits_for_it),
		TEST(what_all_have_sent_is_marked),
		TEST(who_has_not_reported_is_counted),
		TEST(words_of_another_life_do_not_count),
		TEST(states_that_cannot_be_listed_are_told_and_read_later),
		TEST(a_state_that_makes_no_sense_is_as_none),
		TEST(without_the_claim_nothing_is_marked),
		TEST(who_is_quiet_says_that_it_has_none),
		TEST(node_0_too_answers_what_others_saved),
		TEST(who_still_saves_or_has_something_there_does_not_say_none),
		TEST(none_is_said_after_three_beats_of_quiet),
		TEST(an_answer_that_is_waited_for_comes_before_the_next_look),
		TEST(of_many_names_the_last_ones_are_said_to_be_none),
		TEST(who_sends_tells_now_and_then_that_it_lives),
		TEST(a_mark_goes_when_any_part_changes_and_comes_anew),
		TEST(a_part_that_is_not_whole_is_told_and_takes_the_mark_away),
		TEST(what_is_removed_goes_on_all_nodes_and_nothing_else),
		TEST(the_last_ones_removed_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
