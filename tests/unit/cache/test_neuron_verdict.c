/* The verdict on a Neuron cache: each way in which exit statuses, summaries and markers
 * have been seen to lie. */
#include "tests/unit/cache/neuron_world.h"

#include <sys/stat.h>

static int64_t said(const struct cache_verdict *verdict, const char *field)
{
	return js_int(json_object_get(verdict->evidence, "front_end"), field, -1);
}

static void every_named_graph_done_is_complete_with_its_evidence(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_HIT(MOD_B) N_TOTALS("1", "1", "0"));

	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	put_todo(*state, MOD_C); /* another team's */
	put_failed(*state, MOD_D, "ERROR");
	verdict = verify(&world);
	assert_true(verdict.complete);
	assert_null(verdict.remark);
	assert_int_equal(verdict.graphs, 2);
	assert_int_equal(said(&verdict, "blocks"), 1);
	assert_int_equal(said(&verdict, "good"), 1);
	assert_string_equal(js_str(json_object_get(verdict.evidence, "front_end"), "program"),
			    "neuron_parallel_compile");
}

static void exit_0_with_failed_graphs_is_incomplete_with_the_compilers_words(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_EXTRACTED(MOD_B) N_ROW("", MOD_A, "true", "")
		      N_ROW("", MOD_B, "false", "") N_TOTALS("2", "1", "1"));

	put_done(*state, MOD_A);
	put_failed(*state, MOD_B, "Starting\nERROR [TEN404]: Internal tensorizer error\nmore\n");
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.failed, 1);
	assert_true(verdict.retry_helps);
	assert_true(verdict.fewer_workers);
	assert_string_equal(js_str(json_array_get(verdict.problems, 0), "graph"), PLACE "/" MOD_B);
	assert_string_equal(js_str(json_array_get(verdict.problems, 0), "error"),
			    "ERROR [TEN404]: Internal tensorizer error");
	assert_contains(what(&verdict, 0), "TEN404");
	assert_int_equal(said(&verdict, "bad"), 1);
}

static void failures_that_make_the_exit_0_by_their_number_are_seen(void **state)
{
	AUTO(sb_release) struct sb log = SB_INIT;
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };

	for (int i = 0; i < 256; i++) {
		AUTO(auto_free) char *module = mem_format("MODULE_%d+3cc9a3cb", 1000 + i);

		sb_addf(&log,
			"Extracting graphs (/cache/" PLACE "/%s/model.hlo_module.pb) for "
			"ahead-of-time parallel compilation.\n",
			module);
		put_part_text(*state, module, "model.log", "ERROR: no");
	}
	sb_adds(&log, N_TOTALS("256", "0", "256"));
	{
		AUTO(world_clear) struct world world = world_of(*state, log.text);

		verdict = verify(&world);
		assert_false(verdict.complete);
		assert_int_equal(verdict.failed, 256);
		assert_int_equal(said(&verdict, "bad"), 256);
	}
}

static void a_dead_worker_leaves_a_graph_behind_with_exit_0(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_EXTRACTED(
		MOD_B) "sub-process 3 got exception: A process in the process pool was terminated "
		       "abruptly\n" N_TOTALS("1", "1", "0"));

	put_done(*state, MOD_A);
	put_todo(*state, MOD_B);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_true(verdict.retry_helps);
	assert_int_equal(verdict.missing, 1);
	assert_string_equal(js_str(json_array_get(verdict.problems, 0), "state"), "todo");
	assert_contains(what(&verdict, 0), "terminated abruptly");
	assert_int_equal(said(&verdict, "workers_died"), 1);
}

static void valid_graphs_reported_as_failed_are_done_and_it_says_so(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_EXTRACTED(MOD_B) N_MISS(MOD_A) N_DONE(MOD_A)
		      N_FAILED(MOD_A, "expected str, bytes or os.PathLike object, not NoneType")
			      N_ROW("", MOD_A, "false", "") N_ROW("", MOD_B, "false", "")
				      N_TOTALS("2", "0", "2"));

	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	verdict = verify(&world);
	assert_true(verdict.complete);
	assert_contains(verdict.remark, "are done in the cache: 2");
	assert_int_equal(said(&verdict, "failed_but_done"), 2);
	assert_string_equal(js_str(verdict.evidence, "remark"), verdict.remark);
	/* The exit status that comes of it is no more than that. */
	cache_verdict_clear(&verdict);
	world.request.job_ok = false;
	world.request.job_words = "exit 2";
	world.request.exit_status = 2;
	verdict = verify(&world);
	assert_true(verdict.complete);
	assert_contains(verdict.remark, "exit status is only their number");
	assert_true(json_is_false(js_path(verdict.evidence, "job.ended_well")));
}

static void an_exit_status_that_counts_failed_graphs_leads_to_them(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_EXTRACTED(MOD_B) N_ROW("", MOD_A, "false", "") N_TOTALS(
		"2", "1", "1") "neuronx-cc exited with error.Received error code: -9\n");

	put_failed(*state, MOD_A, "ERROR: killed");
	put_done(*state, MOD_B);
	world.request.job_ok = false;
	world.request.exit_status = 1;
	world.request.job_words = "exit 1";
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(verdict.reason, "in the cache: 1 of 2");
	assert_contains(verdict.hint, "--num_parallel");
	assert_true(verdict.retry_helps);
	assert_true(verdict.fewer_workers);
}

static void an_exit_status_that_failed_graphs_do_not_explain_stays_bad(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_ROW("", MOD_A, "false", "") N_TOTALS("2", "0", "2"));

	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	world.request.job_ok = false;
	world.request.exit_status = 3;
	world.request.job_words = "exit 3";
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(verdict.reason, "exit 3");
}

static void a_compiled_graph_of_5_bytes_is_a_failure(void **state)
{
	WORLD(N_HIT(MOD_A));

	put_failed(*state, MOD_A, "neuronx-cc: ERROR: out of luck\n");
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.failed, 1);
	assert_contains(what(&verdict, 0), "out of luck");
}

static void an_old_failure_that_was_replayed_is_named_as_such(void **state)
{
	WORLD(N_CACHED_FAILURE(MOD_A));

	put_failed(*state, MOD_A, "ERROR: fixed long ago\n");
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_true(verdict.retry_helps);
	assert_false(verdict.fewer_workers);
	assert_contains(what(&verdict, 0), "earlier run");
	assert_contains(what(&verdict, 0), "fixed long ago");
}

static void old_layouts_without_a_marker_are_done(void **state)
{
	WORLD(N_HIT(MOD_A) N_HIT(MOD_B));

	put_part(*state, MOD_A, "model.hlo.pb", 300);
	put_part(*state, MOD_A, "compile_flags.txt", 0);
	put_part(*state, MOD_A, "model.neff", 5000);
	put_part(*state, MOD_B, "model.hlo_module.pb", 300);
	put_part(*state, MOD_B, "compile_flags.txt", 41);
	put_part(*state, MOD_B, "model.neff", 5000);
	verdict = verify(&world);
	assert_true(verdict.complete);
}

static void a_new_layout_without_its_marker_is_cut_off(void **state)
{
	WORLD(N_HIT(MOD_A));

	put_todo(*state, MOD_A);
	put_part(*state, MOD_A, "model.neff", 5000);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_string_equal(js_str(json_array_get(verdict.problems, 0), "state"), "partial");
	assert_contains(what(&verdict, 0), "not marked as whole");
}

static void nothing_to_do_on_a_warm_cache_is_complete(void **state)
{
	WORLD(N_HIT(MOD_A) N_HIT(MOD_B) N_NOTHING);

	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	verdict = verify(&world);
	assert_true(verdict.complete);
	assert_int_equal(said(&verdict, "blocks"), 0);
	assert_int_equal(said(&verdict, "nothing_to_do"), 1);
}

static void swallowed_output_proves_nothing(void **state)
{
	WORLD(N_NOTHING);

	put_done(*state, MOD_A);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_false(verdict.retry_helps);
	assert_contains(verdict.reason, "found nothing to do");
	assert_non_null(verdict.hint);
}

static void a_summary_that_counts_more_than_the_logs_name_is_incomplete(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_TOTALS("3", "3", "0"));

	put_done(*state, MOD_A);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(verdict.reason, "counted 3 graphs on one node");
	assert_contains(verdict.reason, "only 1");
	assert_contains(verdict.hint, "redirection");
}

static void four_nodes_with_a_summary_each_are_one_cache(void **state)
{
	WORLD("");

	for (int node = 0; node < 4; node++)
		neuron_scan_text(world.tally, node,
				 N_EXTRACTED(MOD_A) N_EXTRACTED(MOD_B) N_TOTALS("2", "2", "0"));
	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	verdict = verify(&world);
	assert_true(verdict.complete);
	assert_int_equal(verdict.graphs, 2);
	assert_int_equal(said(&verdict, "nodes"), 4);
	assert_int_equal(said(&verdict, "graphs"), 8);
}

static void a_graph_extracted_on_node_3_only_must_be_done_too(void **state)
{
	WORLD("");

	for (int node = 0; node < 4; node++)
		neuron_scan_text(world.tally, node, N_EXTRACTED(MOD_A) N_TOTALS("1", "1", "0"));
	neuron_scan_text(world.tally, 3, N_EXTRACTED(MOD_B));
	put_done(*state, MOD_A);
	put_todo(*state, MOD_B);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.graphs, 2);
	assert_string_equal(js_str(json_array_get(verdict.problems, 0), "graph"), PLACE "/" MOD_B);
}

static void a_cache_that_cannot_be_read_is_unknown(void **state)
{
	WORLD(N_EXTRACTED(MOD_A));
	AUTO(auto_free) char *place = fs_join(*state, PLACE);
	AUTO(auto_free) char *folder = fs_join(place, MOD_A);
	AUTO(err_freep) struct err *err = NULL;
	bool root = geteuid() == 0; /* who may read everything */
	int done;

	put_done(*state, MOD_A);
	assert_int_equal(chmod(*state, 0755) | chmod(place, 0755) | chmod(folder, 0), 0);
	assert_int_equal(root ? seteuid(65534) : 0, 0);
	done = cache_verify(&world.request, &verdict, &err);
	assert_int_equal(root ? seteuid(0) : 0, 0);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(done, -1);
	assert_non_null(err);
	assert_contains(err->message, MOD_A);
}

static void a_full_disk_is_told_in_the_compilers_words(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_EXTRACTED(
		MOD_B) "sub-process 0 got exception: [Errno 28] No space left on device: "
		       "'/cache/model.neff'\n");

	put_failed(*state, MOD_A, "Traceback\nOSError: [Errno 28] No space left on device\n");
	put_todo(*state, MOD_B);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(what(&verdict, 0), "No space left on device");
	assert_contains(what(&verdict, 1), "No space left on device");
}

static void out_of_memory_asks_for_fewer_workers(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) "neuronx-cc exited with error.Received error code: -9\n");

	put_todo(*state, MOD_A);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_true(verdict.fewer_workers);
	assert_true(verdict.retry_helps);
	assert_contains(verdict.hint, "--num_parallel");
	assert_contains(what(&verdict, 0), "Received error code: -9");
}

static void another_cache_in_use_is_incomplete_with_that_reason(void **state)
{
	WORLD(N_CACHE("/var/tmp/elsewhere") N_HIT(MOD_A));

	put_done(*state, MOD_A);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(verdict.reason, "/var/tmp/elsewhere");
	assert_contains(verdict.hint, "--cache_dir");
}

static void the_cache_that_was_meant_is_known_by_other_spellings(void **state)
{
	AUTO(auto_free)
	char *log = mem_format("Compile cache path: %s/\nCompile cache path: file://%s\n"
			       "Compile cache path: %s/x2024-01-01 12:0\n" N_HIT(MOD_A),
			       (const char *)*state, (const char *)*state, (const char *)*state);
	WORLD(log);

	put_done(*state, MOD_A);
	verdict = verify(&world);
	assert_true(verdict.complete); /* the third is a line that was merged */
	cache_verdict_clear(&verdict);
	neuron_scan_text(world.tally, 1, N_CACHE("/other") N_CACHE("/other"));
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(verdict.reason, "'/other'");
}

static void torn_lines_of_many_ranks_name_no_other_cache(void **state)
{
	AUTO(auto_free)
	char *meant = mem_format("Compile cache path: %s\n", (const char *)*state);
	AUTO(auto_free)
	char *torn = mem_format("Compile cache path: %.5s\n", (const char *)*state);
	WORLD(N_HIT(MOD_A));

	put_done(*state, MOD_A);
	for (int rank = 0; rank < 12; rank++) {
		AUTO(auto_free) char *mixed = mem_format(N_CACHE("/%d loss: 0.5"), rank);

		neuron_scan_text(world.tally, 0, mixed);
	}
	verdict = verify(&world);
	assert_true(verdict.complete); /* as many caches as lines: nobody is believed */
	cache_verdict_clear(&verdict);
	for (int rank = 0; rank < 32; rank++)
		neuron_scan_text(world.tally, 0, rank < 2 ? torn : meant);
	verdict = verify(&world);
	assert_true(verdict.complete);
	cache_verdict_clear(&verdict);
	for (int rank = 0; rank < 8; rank++) /* the ranks of one node of four */
		neuron_scan_text(world.tally, 3, N_CACHE("/other"));
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(verdict.reason, "'/other'");
}

static void a_script_that_broke_off_leaves_the_cache_incomplete(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) "There was an error in the training script.\n");

	put_done(*state, MOD_A);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_contains(verdict.reason, "broke off");
	assert_false(verdict.retry_helps);
}

static void repair_makes_this_runs_failures_todo_again(void **state)
{
	WORLD(N_FAILED(MOD_A, "x") N_HIT(MOD_B) N_EXTRACTED(MOD_D));
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	put_failed(*state, MOD_A, "ERROR");
	put_done(*state, MOD_B);
	put_failed(*state, MOD_C, "ERROR");
	put_todo(*state, MOD_D);
	put_part(*state, MOD_D, "model.done", 0); /* a marker for nothing */
	cache_repair(&world.request, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 2);
	assert_string_equal(js_str(json_array_get(removed, 0), "graph"), PLACE "/" MOD_A);
	assert_string_equal(js_str(json_array_get(removed, 0), "state"), "failed");
	assert_int_equal(json_array_size(js_path(json_array_get(removed, 0), "keys")), 2);
	assert_false(has_part(*state, MOD_A, "model.log"));
	assert_false(has_part(*state, MOD_A, "model.neff"));
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb"));
	assert_true(has_part(*state, MOD_A, "compile_flags.json"));
	assert_true(has_part(*state, MOD_B, "model.neff"));
	assert_true(has_part(*state, MOD_C, "model.log"));
	assert_false(has_part(*state, MOD_D, "model.done"));
	verdict = verify(&world);
	assert_int_equal(verdict.missing, 2);
}

static void a_graph_that_was_extracted_and_is_gone_is_missing(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_ROW("", MOD_B, "true", ""));

	put_done(*state, MOD_C);
	verdict = verify(&world);
	assert_int_equal(verdict.missing, 2);
	assert_contains(what(&verdict, 0), "reported as extracted, but");
	assert_contains(what(&verdict, 1), "reported as compiled, but");
}

static void entries_must_be_unchanged_for_the_quiet_period(void **state)
{
	WORLD(N_EXTRACTED(MOD_A));

	put_done(*state, MOD_A);
	world.request.quiet_ms = 1000;
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.again_ms, 1000);
	world.request.seen_before = verdict.seen;
	world.request.seen_ago_ms = 1500;
	{
		AUTO(cache_verdict_clear) struct cache_verdict later = verify(&world);

		assert_true(later.complete);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(every_named_graph_done_is_complete_with_its_evidence),
		test_in_scratch(exit_0_with_failed_graphs_is_incomplete_with_the_compilers_words),
		test_in_scratch(failures_that_make_the_exit_0_by_their_number_are_seen),
		test_in_scratch(a_dead_worker_leaves_a_graph_behind_with_exit_0),
		test_in_scratch(valid_graphs_reported_as_failed_are_done_and_it_says_so),
		test_in_scratch(an_exit_status_that_failed_graphs_do_not_explain_stays_bad),
		test_in_scratch(an_exit_status_that_counts_failed_graphs_leads_to_them),
		test_in_scratch(a_compiled_graph_of_5_bytes_is_a_failure),
		test_in_scratch(an_old_failure_that_was_replayed_is_named_as_such),
		test_in_scratch(old_layouts_without_a_marker_are_done),
		test_in_scratch(a_new_layout_without_its_marker_is_cut_off),
		test_in_scratch(nothing_to_do_on_a_warm_cache_is_complete),
		test_in_scratch(swallowed_output_proves_nothing),
		test_in_scratch(a_summary_that_counts_more_than_the_logs_name_is_incomplete),
		test_in_scratch(four_nodes_with_a_summary_each_are_one_cache),
		test_in_scratch(a_graph_extracted_on_node_3_only_must_be_done_too),
		test_in_scratch(a_cache_that_cannot_be_read_is_unknown),
		test_in_scratch(a_full_disk_is_told_in_the_compilers_words),
		test_in_scratch(out_of_memory_asks_for_fewer_workers),
		test_in_scratch(another_cache_in_use_is_incomplete_with_that_reason),
		test_in_scratch(the_cache_that_was_meant_is_known_by_other_spellings),
		test_in_scratch(torn_lines_of_many_ranks_name_no_other_cache),
		test_in_scratch(a_script_that_broke_off_leaves_the_cache_incomplete),
		test_in_scratch(repair_makes_this_runs_failures_todo_again),
		test_in_scratch(a_graph_that_was_extracted_and_is_gone_is_missing),
		test_in_scratch(entries_must_be_unchanged_for_the_quiet_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
