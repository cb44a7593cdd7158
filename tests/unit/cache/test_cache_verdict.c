/* The verdict: each of the three sources may lie, and is caught by the others. */
#include "tests/unit/cache/verdict_world.h"

static struct world world_of(const char *dir, const char *log)
{
	return world_with(jax(), dir, graph_tally_of(log));
}

#define TWO_COMPILED                                                                               \
	MISS("jit_f", KEY_F) WRITING("jit_f", KEY_F) MISS("jit_g", KEY_G) WRITING("jit_g", KEY_G)

static void every_named_graph_done_is_complete(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, TWO_COMPILED);
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };
	json_t *log;

	write_entry(*state, KEY_F, "");
	write_entry(*state, KEY_G, "");
	verdict = verify(&world);
	assert_true(verdict.complete);
	assert_int_equal(verdict.graphs, 2);
	assert_int_equal(verdict.done, 2);
	assert_int_equal(verdict.again_ms, 0);
	assert_true(json_is_true(js_path(verdict.evidence, "job.ended_well")));
	assert_string_equal(js_str(json_object_get(verdict.evidence, "job"), "words"), "exit 0");
	assert_int_equal(js_int(json_object_get(verdict.evidence, "listing"), "done", -1), 2);
	log = json_object_get(verdict.evidence, "log");
	assert_int_equal(js_int(log, "named", -1), 2);
	assert_int_equal(js_int(log, "misses", -1), 2);
}

static void the_job_lies_a_bad_end_is_incomplete_with_a_full_cache(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, TWO_COMPILED);
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	write_entry(*state, KEY_F, "");
	write_entry(*state, KEY_G, "");
	world.request.job_ok = false;
	world.request.job_words = "exit 3";
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_true(verdict.retry_helps);
	assert_contains(verdict.reason, "exit 3");
	assert_int_equal(verdict.done, 2);
}

static void the_log_lies_a_graph_it_says_was_written_is_missing(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, TWO_COMPILED);
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };
	const json_t *problem;

	write_entry(*state, KEY_F, "");
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_true(verdict.retry_helps);
	assert_int_equal(verdict.done, 1);
	assert_int_equal(verdict.missing, 1);
	problem = json_array_get(verdict.problems, 0);
	assert_string_equal(js_str(problem, "graph"), KEY_G);
	assert_string_equal(js_str(problem, "name"), "jit_g");
	assert_string_equal(js_str(problem, "state"), "missing");
	assert_contains(js_str(problem, "what"), "reported as written");
}

static void the_listing_lies_a_full_cache_of_others_proves_nothing(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, "step: 1 loss: 2.3\n");
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	write_entry(*state, KEY_F, "");
	write_entry(*state, KEY_G, "");
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_false(verdict.retry_helps);
	assert_int_equal(verdict.graphs, 0);
	assert_contains(verdict.reason, "name no graph");
	assert_non_null(verdict.hint);
}

static void a_cache_that_the_script_switched_off_is_named_as_that(void **state)
{
	AUTO(sb_release) struct sb log = data("off.txt");
	AUTO(world_clear) struct world world = world_of(*state, log.text);
	AUTO(cache_verdict_clear) struct cache_verdict verdict = verify(&world);

	assert_false(verdict.complete);
	assert_contains(verdict.reason, "without it");
	assert_contains(verdict.hint, "switches the compile cache off");
}

static void a_hit_on_an_entry_that_is_gone_is_incomplete(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, HIT("jit_f", KEY_F));
	AUTO(cache_verdict_clear) struct cache_verdict verdict = verify(&world);

	assert_false(verdict.complete);
	assert_contains(js_str(json_array_get(verdict.problems, 0), "what"),
			"reported as found, but");
}

static void empty_and_cut_entries_are_damaged_and_repair_removes_only_them(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, TWO_COMPILED HIT("jit_h", KEY_H));
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	write_entry(*state, KEY_F, "");
	cut_entry(*state, KEY_F, 0);
	write_entry(*state, KEY_G, "");
	cut_entry(*state, KEY_G, 300);
	write_entry(*state, KEY_H, "");
	write_text(*state, "jit_other-" HEX_A "-cache", ""); /* damaged, but not ours */
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.failed, 2);
	assert_string_equal(js_str(json_array_get(verdict.problems, 0), "state"), "empty");
	assert_string_equal(js_str(json_array_get(verdict.problems, 1), "state"), "partial");
	assert_contains(js_str(json_array_get(verdict.problems, 1), "what"), "cut off");
	cache_repair(&world.request, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 2);
	assert_false(has_entry(*state, KEY_F));
	assert_false(has_entry(*state, KEY_G));
	assert_true(has_entry(*state, KEY_H));
	assert_true(has_entry(*state, "jit_other-" HEX_A));
}

static void a_whole_entry_that_the_framework_refuses_is_damaged(void **state)
{
	AUTO(world_clear)
	struct world world = world_of(
		*state, READ_ERROR("jit_f", "JaxRuntimeError: INVALID_ARGUMENT: Failed to parse")
				MISS("jit_f", KEY_F) WRITING("jit_f", KEY_F));
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	write_entry(*state, KEY_F, "");
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.failed, 1);
	assert_contains(js_str(json_array_get(verdict.problems, 0), "what"), "Failed to parse");
}

static void an_entry_read_while_another_rank_wrote_it_is_done_in_the_end(void **state)
{
	AUTO(world_clear)
	struct world world = world_of(
		*state,
		READ_ERROR(
			"jit_f",
			"error: Error -5 while decompressing data: incomplete or truncated stream")
			MISS("jit_f", KEY_F));
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	write_entry(*state, KEY_F, "");
	verdict = verify(&world);
	assert_true(verdict.complete);
}

static void a_graph_that_is_never_stored_is_no_reason_to_try_again(void **state)
{
	AUTO(sb_release) struct sb log = data("callback.txt");
	AUTO(world_clear) struct world world = world_of(*state, log.text);
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	for (size_t i = 0; graph_tally_at(world.tally, i); i++)
		if (!graph_tally_at(world.tally, i)->never_stored)
			write_entry(*state, graph_tally_at(world.tally, i)->key, "");
	verdict = verify(&world);
	assert_int_equal(verdict.graphs, 3);
	assert_int_equal(verdict.missing, 1);
	assert_false(verdict.complete);
	assert_false(verdict.retry_helps);
	assert_contains(js_str(json_array_get(verdict.problems, 0), "what"), "host callbacks");
	assert_contains(verdict.hint, "jax.debug.print");
}

static void the_quiet_period_needs_two_equal_looks(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, MISS("jit_f", KEY_F));
	AUTO(cache_verdict_clear) struct cache_verdict first = { 0 };
	AUTO(cache_verdict_clear) struct cache_verdict early = { 0 };
	AUTO(cache_verdict_clear) struct cache_verdict changed = { 0 };
	AUTO(cache_verdict_clear) struct cache_verdict late = { 0 };

	write_entry(*state, KEY_F, "some");
	world.request.quiet_ms = 30000;
	first = verify(&world);
	assert_false(first.complete);
	assert_int_equal(first.again_ms, 30000);
	world.request.seen_before = first.seen;
	world.request.seen_ago_ms = 10000;
	early = verify(&world);
	assert_false(early.complete);
	assert_int_equal(early.again_ms, 20000);
	write_entry(*state, KEY_F, "more");
	world.request.seen_ago_ms = 40000;
	changed = verify(&world);
	assert_false(changed.complete);
	assert_int_equal(changed.again_ms, 30000);
	world.request.seen_before = changed.seen;
	world.request.seen_ago_ms = 30000;
	late = verify(&world);
	assert_true(late.complete);
	assert_int_equal(late.again_ms, 0);
}

static void atime_files_temporary_files_and_folders_are_no_entries(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, HIT("jit_f", KEY_F));
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	write_text(*state, KEY_F "-atime", "12345678");
	write_text(*state, KEY_F "-cache/x", "a folder in its place");
	write_text(*state, ".lockfile", "");
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.missing, 1);
}

static void a_key_too_long_for_a_file_is_missing_not_an_error(void **state)
{
	AUTO(sb_release) struct sb log = SB_INIT;
	AUTO(sb_release) struct sb name = SB_INIT;
	AUTO(world_clear) struct world world = { 0 };
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	for (int i = 0; i < 240; i++)
		sb_addc(&name, 'n');
	sb_addf(&log, "Persistent compilation cache hit for '%s' with key '%s-" HEX_A "'",
		name.text, name.text);
	world = world_of(*state, log.text);
	verdict = verify(&world);
	assert_int_equal(verdict.graphs, 1);
	assert_int_equal(verdict.missing, 1);
}

static void a_cache_that_cannot_be_read_is_unknown_not_incomplete(void **state)
{
	AUTO(auto_free) char *dir = mem_format("%s/file", (char *)*state);
	AUTO(world_clear) struct world world = { 0 };
	struct cache_verdict verdict = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	write_text(*state, "file", "no folder");
	world = world_of(dir, MISS("jit_f", KEY_F));
	assert_int_equal(cache_verify(&world.request, &verdict, &err), -1);
	assert_non_null(err);
	assert_contains(err->message, "cannot verify the cache");
	assert_null(verdict.problems);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(every_named_graph_done_is_complete),
		test_in_scratch(the_job_lies_a_bad_end_is_incomplete_with_a_full_cache),
		test_in_scratch(the_log_lies_a_graph_it_says_was_written_is_missing),
		test_in_scratch(the_listing_lies_a_full_cache_of_others_proves_nothing),
		test_in_scratch(a_cache_that_the_script_switched_off_is_named_as_that),
		test_in_scratch(a_hit_on_an_entry_that_is_gone_is_incomplete),
		test_in_scratch(empty_and_cut_entries_are_damaged_and_repair_removes_only_them),
		test_in_scratch(a_whole_entry_that_the_framework_refuses_is_damaged),
		test_in_scratch(an_entry_read_while_another_rank_wrote_it_is_done_in_the_end),
		test_in_scratch(a_graph_that_is_never_stored_is_no_reason_to_try_again),
		test_in_scratch(the_quiet_period_needs_two_equal_looks),
		test_in_scratch(atime_files_temporary_files_and_folders_are_no_entries),
		test_in_scratch(a_key_too_long_for_a_file_is_missing_not_an_error),
		test_in_scratch(a_cache_that_cannot_be_read_is_unknown_not_incomplete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
