/* What a checkpointer says while the command runs, what it does on orders, and what it leaves
 * alone. */
#include "tests/unit/node/checkpointer_bench.h"

/* ---- while the command runs ---- */

static void what_is_saved_is_told_marked_and_told_to_be_done(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	struct bench bench;
	json_auto_t *saving = NULL, *marked = NULL, *saved = NULL, *again = NULL;

	open_checkpointer(&bench, *state, order_saving(*state, root, BEAT_MS));
	save(&bench, 10);
	saving = hear(&bench, "saving");
	marked = hear(&bench, "marked");
	assert_int_equal(js_int(marked, "step", -1), 10);
	assert_has(js_str(marked, "url"), "/far/step-10");
	saved = hear(&bench, "saved");
	assert_true(is_there(&bench, "far/step-10/state.bin"));
	/* A file that is no checkpoint is a sign of life, too. */
	save_file(&bench, "log.txt", "line");
	again = hear(&bench, "saving");
	json_decref(saved);
	saved = hear(&bench, "saved");
	tell(&bench, "\"last\"");
	close_checkpointer(&bench);
}

static void what_is_not_whole_is_not_told_to_be_done(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	struct bench bench;

	open_checkpointer(&bench, *state, order_saving(*state, root, BEAT_MS));
	save_file(&bench, "step-10/meta.json", "{\"state_bytes\":5}");
	save_file(&bench, "step-10/state.bin", "he");
	save_file(&bench, "step-20/other.json", "{");
	json_decref(hear(&bench, "passed"));
	tell(&bench, "\"last\"");
	for (json_t *line; (line = next(&bench)); json_decref(line)) {
		assert_false(js_is(line, "news", "saved"));
		assert_false(js_is(line, "news", "marked"));
	}
	close_checkpointer(&bench);
}

/* More would tell nothing new, and a script may save each second. */
static void what_is_not_whole_is_told_again_if_it_changes_but_twice_at_most(void **state)
{
	static const char *const contents[] = { "{", "{\"a\"", "{\"a\":" };
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *said = NULL;
	struct bench bench;

	open_checkpointer(&bench, *state, order_saving(*state, root, BEAT_MS));
	for (int i = 0; i < 2; i++) {
		save_file(&bench, "step-10/state.json", contents[i]);
		json_decref(hear(&bench, "passed"));
	}
	save_file(&bench, "step-10/state.json", contents[2]);
	json_decref(hear(&bench, "saving"));
	/* A later checkpoint is whole: by then the third would have been told. */
	save(&bench, 20);
	hear_marked(&bench, 20);
	tell(&bench, "\"last\"");
	said = rest(&bench);
	assert_string_equal(said, "partial kept ");
	close_checkpointer(&bench);
}

static void only_the_newest_are_kept_and_their_sources(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	json_t *order = order_saving(*state, root, BEAT_MS);
	struct bench bench;

	js_put(json_object_get(order, "checkpoint"), "keep", json_integer(2));
	open_checkpointer(&bench, *state, order);
	for (int step = 1; step <= 3; step++) {
		save(&bench, step);
		hear_marked(&bench, step);
	}
	tell(&bench, "\"last\"");
	close_checkpointer(&bench);
	for (int step = 1; step <= 3; step++) {
		AUTO(auto_free) char *copy = mem_format("far/step-%d", step);
		AUTO(auto_free) char *mark = mem_format("far/step-%d" MARK_SUFFIX, step);
		AUTO(auto_free)
		char *source = mem_format(PREFIX "node-0/checkpoints/step-%d", step);

		assert_int_equal(is_there(&bench, copy), step > 1);
		assert_int_equal(is_there(&bench, mark), step > 1);
		assert_int_equal(is_there(&bench, source), step > 1);
	}
}

static void what_the_command_saves_in_the_root_itself_stays_where_it_is(void **state)
{
	AUTO(auto_free) char *root = place_path(*state, PREFIX "node-0/checkpoints");
	json_t *order = order_saving(*state, root, BEAT_MS);
	struct bench bench;

	js_put(json_object_get(order, "checkpoint"), "keep", json_integer(1));
	open_checkpointer(&bench, *state, order);
	save(&bench, 1);
	hear_marked(&bench, 1);
	save(&bench, 2);
	hear_marked(&bench, 2);
	tell(&bench, "\"last\"");
	close_checkpointer(&bench);
	assert_false(is_there(&bench, PREFIX "node-0/checkpoints/step-1"));
	assert_true(is_there(&bench, PREFIX "node-0/checkpoints/step-2/state.bin"));
}

/* A checkpoint that cannot be copied holds up none behind it. */
static void what_cannot_be_copied_is_passed_over_and_told(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	json_auto_t *passed = NULL;
	struct bench bench;

	block(*state, 10);
	bench_load(&bench, *state, order_saving(*state, root, BEAT_MS), "0");
	save(&bench, 10);
	save(&bench, 20);
	start_checkpointer(&bench);
	passed = hear(&bench, "passed");
	assert_string_equal(js_str(passed, "name"), "step-10");
	assert_has(js_str(passed, "why"), "far/step-10");
	assert_has(js_str(passed, "hint"), "the upload is retried");
	assert_int_equal(js_int(passed, "step", -1), 10);
	hear_marked(&bench, 20);
	tell(&bench, "\"last\"");
	close_checkpointer(&bench);
	assert_false(is_there(&bench, "far/step-10" MARK_SUFFIX));
}

static void trouble_is_told_once(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *more = NULL;
	json_auto_t *first = NULL;
	struct bench bench;

	write_file(root, "in the way", 0600);
	bench_load(&bench, *state, order_saving(*state, root, BEAT_MS), "0");
	save(&bench, 10);
	start_checkpointer(&bench);
	first = hear(&bench, "trouble");
	assert_has(js_str(first, "why"), "far");
	json_decref(hear(&bench, "passed")); /* it has tried again */
	tell(&bench, "\"last\"");
	more = rest(&bench);
	assert_string_equal(more, "lost ");
	close_checkpointer(&bench);
}

/* Though it was put aside for a while. */
static void what_was_passed_over_is_tried_once_more_at_the_end(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *blocked = place_path(*state, "far/step-10");
	AUTO(auto_free) char *said = NULL;
	struct bench bench;

	block(*state, 10);
	bench_load(&bench, *state, order_saving(*state, root, LONG_BEAT_MS), "0");
	save(&bench, 10);
	start_checkpointer(&bench);
	tell(&bench, "\"drain\"");
	json_decref(hear(&bench, "passed"));
	assert_int_equal(unlink(blocked), 0);
	tell(&bench, "\"last\"");
	said = rest(&bench);
	assert_string_equal(said, "marked kept ");
	close_checkpointer(&bench);
}

/* ---- another program uploads ---- */

static void what_another_program_uploads_is_marked_once_it_is_there(void **state)
{
	AUTO(auto_free) char *root = store_of(*state);
	AUTO(auto_free) char *copy = NULL;
	json_t *order = order_saving(*state, root, BEAT_MS);
	json_auto_t *saving = NULL;
	struct bench bench;

	js_put_str(json_object_get(order, "checkpoint"), "sync", "none");
	open_checkpointer(&bench, *state, order);
	save(&bench, 10);
	saving = hear(&bench, "saving");
	copy = mem_format("mkdir -p %s/far && cp -r %s/step-10 %s/far/", bench.place->root,
			  bench.config.checkpoint, bench.place->root);
	assert_int_equal(system(copy), 0);
	hear_marked(&bench, 10);
	tell(&bench, "\"last\"");
	close_checkpointer(&bench);
	assert_true(is_there(&bench, "far/marks/step-10" MARK_SUFFIX));
}

static void what_another_program_has_not_uploaded_yet_is_not_lost(void **state)
{
	AUTO(auto_free) char *root = store_of(*state);
	AUTO(auto_free) char *said = NULL;
	json_t *order = order_saving(*state, root, BEAT_MS);
	struct bench bench;

	js_put_str(json_object_get(order, "checkpoint"), "sync", "none");
	bench_load(&bench, *state, order, "0");
	save(&bench, 10);
	start_checkpointer(&bench);
	tell(&bench, "\"last\"");
	said = rest(&bench);
	assert_string_equal(said, "kept ");
	assert_false(is_there(&bench, "far"));
	close_checkpointer(&bench);
}

/* ---- a drain ---- */

/* The drain waits neither for the beat nor for a checkpoint to settle that shows that it is
 * whole. */
static void a_drain_marks_what_is_there_at_once(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	struct bench bench;

	bench_load(&bench, *state, order_saving(*state, root, NEVER_MS), "0");
	save(&bench, 10);
	start_checkpointer(&bench);
	tell(&bench, "\"drain\"");
	hear_marked(&bench, 10);
	save(&bench, 20);
	hear_marked(&bench, 20);
	tell(&bench, "\"last\"");
	close_checkpointer(&bench);
}

/* ---- the claim ---- */

static void claim_of_another(const struct bench *bench, const char *text)
{
	AUTO(auto_free) char *path = place_path(bench->place, "runs/r1/claim/train");

	write_file(path, text, 0600);
}

static void who_is_superseded_marks_nothing_and_ends(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *said = NULL;
	struct bench bench;

	bench_load(&bench, *state, order_saving(*state, root, BEAT_MS), "0");
	claim_of_another(&bench, "{\"attempt\":2,\"holder\":\"other\",\"job\":\"stk-r1-train-2\"}");
	save(&bench, 10);
	start_checkpointer(&bench);
	said = rest(&bench); /* though it is not told to */
	assert_string_equal(said, "");
	assert_false(is_there(&bench, "far/step-10" MARK_SUFFIX));
	close_checkpointer(&bench);
}

static void without_a_readable_claim_a_mark_waits(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *claim = NULL;
	json_auto_t *trouble = NULL;
	struct bench bench;

	bench_load(&bench, *state, order_saving(*state, root, BEAT_MS), "0");
	claim = read_file(path, NULL);
	claim_of_another(&bench, "{");
	save(&bench, 10);
	start_checkpointer(&bench);
	trouble = hear(&bench, "trouble");
	assert_has(js_str(trouble, "why"), "/far/step-10': the claim in the workspace cannot be "
					   "read");
	assert_false(is_there(&bench, "far/step-10" MARK_SUFFIX));
	claim_of_another(&bench, claim);
	hear_marked(&bench, 10);
	tell(&bench, "\"last\"");
	close_checkpointer(&bench);
}

static void without_its_agent_it_marks_nothing_more(void **state)
{
	AUTO(auto_free) char *root = far_of(*state);
	AUTO(auto_free) char *said = NULL;
	struct bench bench;

	bench_load(&bench, *state, order_saving(*state, root, NEVER_MS), "0");
	save(&bench, 10);
	start_checkpointer(&bench);
	close(bench.orders_fd);
	said = rest(&bench);
	assert_string_equal(said, "");
	assert_false(is_there(&bench, "far/step-10"));
	bench.orders_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	close_checkpointer(&bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_saved_is_told_marked_and_told_to_be_done),
		TEST(what_is_not_whole_is_not_told_to_be_done),
		TEST(what_is_not_whole_is_told_again_if_it_changes_but_twice_at_most),
		TEST(only_the_newest_are_kept_and_their_sources),
		TEST(what_the_command_saves_in_the_root_itself_stays_where_it_is),
		TEST(what_cannot_be_copied_is_passed_over_and_told),
		TEST(trouble_is_told_once),
		TEST(what_was_passed_over_is_tried_once_more_at_the_end),
		TEST(what_another_program_uploads_is_marked_once_it_is_there),
		TEST(what_another_program_has_not_uploaded_yet_is_not_lost),
		TEST(a_drain_marks_what_is_there_at_once),
		TEST(who_is_superseded_marks_nothing_and_ends),
		TEST(without_a_readable_claim_a_mark_waits),
		TEST(without_its_agent_it_marks_nothing_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
