/* The checkpointers of two nodes with folders of their own, each with the test for an agent. */
#include "tests/unit/node/checkpointer_bench.h"

#define NODES 2

struct pair {
	struct bench of[NODES];
};

static json_t *order_of_two(const struct place *place, int64_t beat_ms)
{
	AUTO(auto_free) char *root = store_of(place);
	json_t *order = order_saving(place, root, beat_ms);

	js_put(order, "nodes", json_integer(NODES));
	js_put(order, "look_ms", json_integer(2));
	return order;
}

static void load_pair(struct pair *pair, struct place *place, int64_t beat_ms, int keep)
{
	for (int node = 0; node < NODES; node++) {
		json_t *order = order_of_two(place, beat_ms);

		if (keep)
			js_put(json_object_get(order, "checkpoint"), "keep", json_integer(keep));
		bench_load(&pair->of[node], place, order, node ? "1" : "0");
	}
}

static void start_pair(struct pair *pair)
{
	for (int node = 0; node < NODES; node++)
		start_checkpointer(&pair->of[node]);
}

static void end_pair(struct pair *pair, const char *order)
{
	AUTO(auto_free) char *claim = place_path(pair->of[0].place, "runs/r1/claim/train");
	AUTO(auto_free) char *text = read_file(claim, NULL);

	for (int node = 0; node < NODES && order; node++)
		tell(&pair->of[node], order);
	for (int node = NODES - 1; node >= 0; node--) {
		bench_end(&pair->of[node], 0);
		write_file(claim, text, 0600); /* it ends with each of them */
	}
	unlink(claim);
}

/* Saves this node's part of a checkpoint. */
static void save_part(const struct pair *pair, int node, int step)
{
	AUTO(auto_free) char *name = mem_format("step-%d/shard-%d.bin", step, node);

	save_file(&pair->of[node], name, "part");
}

static void save_parts(const struct pair *pair, int step)
{
	for (int node = 0; node < NODES; node++)
		save_part(pair, node, step);
}

static void what_both_have_saved_node_0_marks_and_tells(void **state)
{
	AUTO(auto_free) char *said = NULL;
	struct pair pair;

	load_pair(&pair, *state, BEAT_MS, 0);
	start_pair(&pair);
	for (int step = 10; step <= 20; step += 10) {
		save_parts(&pair, step);
		hear_marked(&pair.of[0], step);
	}
	tell(&pair.of[1], "\"last\"");
	tell(&pair.of[0], "\"last\"");
	said = rest(&pair.of[1]);
	assert_string_equal(said, "kept "); /* and it marks nothing */
	free(said);
	said = rest(&pair.of[0]);
	assert_string_equal(said, "kept ");
	end_pair(&pair, NULL);
	assert_true(is_there(&pair.of[0], "far/marks/step-20" MARK_SUFFIX));
	assert_true(is_there(&pair.of[0], "far/step-20/shard-0.bin"));
	assert_true(is_there(&pair.of[0], "far/step-20/shard-1.bin"));
}

/* Nothing settles any more, so the end is what makes it count. */
static void at_the_end_node_0_waits_for_the_others_part(void **state)
{
	AUTO(auto_free) char *said = NULL;
	struct pair pair;

	load_pair(&pair, *state, NEVER_MS, 0);
	save_parts(&pair, 10);
	start_pair(&pair);
	tell(&pair.of[0], "\"last\"");
	json_decref(hear(&pair.of[0], "copying")); /* it waits */
	tell(&pair.of[1], "\"last\"");
	hear_marked(&pair.of[0], 10);
	said = rest(&pair.of[0]);
	assert_string_equal(said, "kept ");
	end_pair(&pair, NULL);
}

static void what_is_kept_no_more_goes_on_both(void **state)
{
	struct pair pair;

	load_pair(&pair, *state, BEAT_MS, 1);
	start_pair(&pair);
	for (int step = 10; step <= 20; step += 10) {
		save_parts(&pair, step);
		hear_marked(&pair.of[0], step);
	}
	end_pair(&pair, "\"last\"");
	assert_false(is_there(&pair.of[0], "far/marks/step-10" MARK_SUFFIX));
	assert_false(is_there(&pair.of[0], "far/step-10/shard-0.bin"));
	assert_false(is_there(&pair.of[0], "far/step-10/shard-1.bin"));
	assert_true(is_there(&pair.of[0], "far/step-20/shard-1.bin"));
	assert_false(is_there(&pair.of[0], PREFIX "node-0/checkpoints/step-10"));
}

static void a_part_that_is_not_whole_is_told_at_the_end(void **state)
{
	json_auto_t *passed = NULL;
	struct pair pair;

	load_pair(&pair, *state, BEAT_MS, 0);
	start_pair(&pair);
	save_part(&pair, 0, 10);
	save_file(&pair.of[1], "step-10/state.json", "{\"a\":");
	save_parts(&pair, 20);
	hear_marked(&pair.of[0], 20);
	tell(&pair.of[1], "\"last\"");
	tell(&pair.of[0], "\"last\"");
	passed = hear(&pair.of[0], "passed");
	assert_string_equal(js_str(passed, "name"), "step-10");
	assert_has(js_str(passed, "why"), "on node 1");
	assert_int_equal(js_int(passed, "step", -1), 10);
	end_pair(&pair, NULL);
	assert_false(is_there(&pair.of[0], "far/marks/step-10" MARK_SUFFIX));
	assert_true(is_there(&pair.of[0], "far/marks/step-20" MARK_SUFFIX));
}

static void what_two_nodes_do_not_agree_on_is_lost_by_the_user(void **state)
{
	json_auto_t *lost = NULL, *trouble = NULL;
	struct pair pair;

	load_pair(&pair, *state, NEVER_MS, 0);
	save_file(&pair.of[0], "step-10/common.bin", "one");
	save_file(&pair.of[1], "step-10/common.bin", "two");
	start_pair(&pair);
	tell(&pair.of[1], "\"last\"");
	json_decref(hear(&pair.of[1], "kept"));
	tell(&pair.of[0], "\"last\"");
	trouble = hear(&pair.of[0], "trouble");
	assert_has(js_str(trouble, "why"), "common.bin");
	lost = hear(&pair.of[0], "lost");
	assert_string_equal(js_str(lost, "name"), "step-10");
	assert_string_equal(js_str(lost, "class"), "user-config");
	assert_int_equal(js_int(lost, "errno", -1), 0);
	end_pair(&pair, NULL);
}

/* The other node's agent is gone, and no word of it comes any more. */
static void what_waits_for_a_dead_node_is_lost_by_its_machine(void **state)
{
	json_auto_t *lost = NULL;
	struct pair pair;

	load_pair(&pair, *state, BEAT_MS, 0);
	save_part(&pair, 0, 10);
	start_checkpointer(&pair.of[0]);
	tell(&pair.of[0], "\"last\"");
	lost = hear(&pair.of[0], "lost");
	assert_string_equal(js_str(lost, "name"), "step-10");
	assert_has(js_str(lost, "why"), "node 1 has not reported its part");
	assert_string_equal(js_str(lost, "class"), "transient-infra");
	start_checkpointer(&pair.of[1]);
	tell(&pair.of[1], "\"last\"");
	end_pair(&pair, NULL);
}

/* The checkpoint is not lost: the next attempt goes on from the one before. */
static void what_a_node_was_cut_off_from_is_told_at_the_end(void **state)
{
	json_auto_t *partial = NULL, *lost = NULL;
	struct pair pair;

	load_pair(&pair, *state, BEAT_MS, 0);
	save_part(&pair, 0, 10);
	start_pair(&pair);
	while (!is_there(&pair.of[0], "far/shards/step-10/node-0.json"))
		pause_ms(BEAT_MS);
	tell(&pair.of[1], "\"last\",\"cut\":true");
	json_decref(hear(&pair.of[1], "kept"));
	tell(&pair.of[0], "\"last\",\"cut\":true");
	partial = hear(&pair.of[0], "partial");
	assert_string_equal(js_str(partial, "name"), "step-10");
	assert_has(js_str(partial, "why"), "node 1 was disconnected");
	lost = hear(&pair.of[0], "lost");
	assert_string_equal(js_str(lost, "class"), "transient-infra");
	end_pair(&pair, NULL);
}

/* The node may have been cut off in the middle of a file. */
static void what_was_saved_just_before_a_node_was_cut_off_does_not_count(void **state)
{
	AUTO(auto_free) char *said = NULL;
	struct pair pair;

	load_pair(&pair, *state, NEVER_MS, 0);
	save_parts(&pair, 10);
	start_pair(&pair);
	tell(&pair.of[1], "\"last\"");
	json_decref(hear(&pair.of[1], "kept"));
	tell(&pair.of[0], "\"last\",\"cut\":true");
	said = rest(&pair.of[0]);
	assert_has(said, "partial ");
	end_pair(&pair, NULL);
	assert_false(is_there(&pair.of[0], "far/marks/step-10" MARK_SUFFIX));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_both_have_saved_node_0_marks_and_tells),
		TEST(at_the_end_node_0_waits_for_the_others_part),
		TEST(what_is_kept_no_more_goes_on_both),
		TEST(a_part_that_is_not_whole_is_told_at_the_end),
		TEST(what_two_nodes_do_not_agree_on_is_lost_by_the_user),
		TEST(what_waits_for_a_dead_node_is_lost_by_its_machine),
		TEST(what_a_node_was_cut_off_from_is_told_at_the_end),
		TEST(what_was_saved_just_before_a_node_was_cut_off_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
