/* The book of graphs: each graph once, whoever prints it how often. */
#include "tests/unit/cache/neuron.h"

static struct graph_tally_counts counts_of(const struct graph_tally *tally)
{
	struct graph_tally_counts counts;

	graph_tally_counts(tally, &counts);
	return counts;
}

static void a_cold_run_is_all_misses_with_their_times(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of_file("cold.txt");
	struct graph_tally_counts counts = counts_of(tally);

	(void)state;
	assert_int_equal(counts.named, 5);
	assert_int_equal(counts.misses, 5);
	assert_int_equal(counts.hits, 0);
	assert_int_equal(counts.stored, 5);
	assert_int_equal(counts.bypassed, 0);
	/* 0.0886 + 0.0332 + 0.0209 + 0.0203 + 0.0225: two of them share a name. */
	assert_true(counts.seconds > 0.1855 && counts.seconds < 0.1857);
}

static void a_warm_run_compiles_nothing_although_jax_says_finished(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of_file("warm.txt");
	struct graph_tally_counts counts = counts_of(tally);

	(void)state;
	assert_int_equal(counts.named, 5);
	assert_int_equal(counts.hits, 5);
	assert_int_equal(counts.misses, 0);
	assert_true(counts.seconds == 0);
	assert_int_equal(counts.bypassed, 0);
}

static void lines_printed_twice_count_once(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of_file("twice.txt");

	(void)state;
	assert_int_equal(counts_of(tally).named, 5);
	assert_int_equal(counts_of(tally).hits, 5);
}

static void a_graph_missed_on_one_rank_and_found_by_others_is_one_miss(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	struct graph_tally_counts counts;

	(void)state;
	scan_text(tally, 0, MISS("jit_f", KEY_F) FINISHED("f", "0.5"));
	for (int node = 1; node < 32; node++)
		scan_text(tally, node, HIT("jit_f", KEY_F) FINISHED("f", "0.01"));
	counts = counts_of(tally);
	assert_int_equal(counts.named, 1);
	assert_int_equal(counts.misses, 1);
	assert_int_equal(counts.hits, 0);
	assert_true(counts.seconds == 0.5);
}

static void thirty_two_ranks_that_compile_the_same_graph_wait_for_the_slowest(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

	(void)state;
	for (int rank = 0; rank < 32; rank++)
		scan_text(tally, rank / 8, MISS("jit_f", KEY_F));
	for (int rank = 0; rank < 32; rank++)
		scan_text(tally, rank / 8,
			  rank == 17 ? FINISHED("f", "3.5") : FINISHED("f", "2.0"));
	assert_int_equal(counts_of(tally).misses, 1);
	assert_true(counts_of(tally).seconds == 3.5);
}

static void loading_time_of_a_hit_is_not_compile_time_of_an_earlier_miss(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = graph_tally_of(MISS("jit_f", KEY_F) FINISHED("f", "0.5") HIT(
		"jit_f", "jit_f-" HEX_B) FINISHED("f", "4.0"));

	(void)state;
	assert_int_equal(counts_of(tally).misses, 1);
	assert_int_equal(counts_of(tally).hits, 1);
	assert_true(counts_of(tally).seconds == 0.5);
}

static void a_second_graph_of_a_name_has_its_own_time(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = graph_tally_of(MISS("jit_f", KEY_F) FINISHED("f", "0.5") MISS(
		"jit_f", "jit_f-" HEX_B) HIT("jit_f", "jit_f-" HEX_C) FINISHED("f", "2.0"));

	(void)state;
	assert_true(graph_tally_find(tally, KEY_F)->seconds == 0.5);
	assert_true(graph_tally_find(tally, "jit_f-" HEX_B)->seconds == 2.0);
}

static void a_lambda_has_its_time_although_its_name_is_spelt_in_two_ways(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = graph_tally_of(MISS("jit__lambda", "jit__lambda-" HEX_A)
							   FINISHED("<lambda>", "0.25"));

	(void)state;
	assert_true(counts_of(tally).seconds == 0.25);
	assert_int_equal(counts_of(tally).bypassed, 0);
}

static void reasons_reach_the_graph_that_was_missed_last(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	const struct tally_graph *graph;

	(void)state;
	scan_text(tally, 0,
		  READ_ERROR("jit_f", "JaxRuntimeError: INTERNAL: no") MISS("jit_f", KEY_F));
	scan_text(tally, 1, MISS("jit_g", KEY_G) WRITE_ERROR("jit_g", "OSError: [Errno 28] No"));
	scan_text(tally, 0,
		  "Not writing persistent cache entry for 'jit_f' because it uses host "
		  "callbacks (e.g. from jax.debug.print or breakpoint)\n");
	scan_text(tally, 0, WRITE_ERROR("jit_g", "another node's graph"));
	graph = graph_tally_find(tally, KEY_F);
	assert_non_null(graph);
	assert_string_equal(graph->failed, "JaxRuntimeError: INTERNAL: no");
	assert_true(graph->unreadable);
	assert_true(graph->never_stored);
	assert_contains(graph->not_stored, "host callbacks");
	graph = graph_tally_find(tally, KEY_G);
	assert_non_null(graph);
	assert_string_equal(graph->failed, "OSError: [Errno 28] No");
	assert_false(graph->unreadable);
	assert_int_equal(counts_of(tally).failed, 2);
}

static void a_real_truncated_entry_is_one_miss_among_hits(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of_file("truncated.txt");
	struct graph_tally_counts counts = counts_of(tally);

	(void)state;
	assert_int_equal(counts.hits, 4);
	assert_int_equal(counts.misses, 1);
	assert_int_equal(counts.failed, 1);
	assert_true(graph_tally_at(tally, 0)->missed);
	assert_contains(graph_tally_at(tally, 0)->failed, "truncated stream");
	assert_false(graph_tally_at(tally, 0)->unreadable); /* its form tells as much */
}

static void compiles_past_a_switched_off_cache_are_seen(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of_file("off.txt");
	struct graph_tally_counts counts = counts_of(tally);

	(void)state;
	assert_int_equal(counts.named, 0);
	assert_int_equal(counts.bypassed, 4); /* five, two of one name */
	assert_true(counts.bypassed_seconds > 0);
}

static void a_full_book_says_what_it_dropped(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

	(void)state;
	for (int i = 0; i < TALLY_GRAPHS_MAX + 10; i++) {
		AUTO(auto_free)
		char *line = mem_format("PERSISTENT COMPILATION CACHE MISS for 'jit_f%d' with key "
					"'jit_f%d-" HEX_A "'\n",
					i, i);

		scan_text(tally, 0, line);
	}
	assert_int_equal(counts_of(tally).named, TALLY_GRAPHS_MAX);
	assert_int_equal(counts_of(tally).dropped, 10);
}

/* A file that was written from two places at once can have holes, which read as NUL. */
static void a_hole_in_the_log_does_not_hide_the_cache_in_use(void **state)
{
	static const char holed[] = "Compile cache path: s3://a\0b\n"
				    "CalledProcessError: Command x.MODULE_77+e30acd3a.pb "
				    "returned non-zero exit status\0 70\n";
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	struct graph_tally_cache cache;

	(void)state;
	for (int i = 0; i < 20; i++)
		graph_tally_scan(tally, compile_kind_find("neuron"), 0, holed, sizeof holed - 1);
	neuron_scan_text(tally, 0, N_CACHE("s3://bucket"));
	assert_true(graph_tally_cache_at(tally, 0, &cache));
	assert_string_equal(cache.url, "s3://bucket");
	assert_false(graph_tally_cache_at(tally, 1, &cache));
	assert_string_equal(graph_tally_at(tally, 0)->failed, "returned non-zero exit status");
}

static void the_json_puts_the_costly_misses_first(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = graph_tally_of(HIT("jit_h", KEY_H) MISS(
		"jit_f", KEY_F) FINISHED("f", "0.5") MISS("jit_g", KEY_G) FINISHED("g", "2.5"));
	json_auto_t *json = graph_tally_json(tally, 2);
	json_t *graphs = json_object_get(json, "graphs");

	(void)state;
	assert_int_equal(js_int(json, "named", 0), 3);
	assert_int_equal(js_int(json, "misses", 0), 2);
	assert_int_equal(json_array_size(graphs), 2);
	assert_string_equal(js_str(json_array_get(graphs, 0), "key"), KEY_G);
	assert_string_equal(js_str(json_array_get(graphs, 1), "key"), KEY_F);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cold_run_is_all_misses_with_their_times),
		cmocka_unit_test(a_warm_run_compiles_nothing_although_jax_says_finished),
		cmocka_unit_test(lines_printed_twice_count_once),
		cmocka_unit_test(a_graph_missed_on_one_rank_and_found_by_others_is_one_miss),
		cmocka_unit_test(thirty_two_ranks_that_compile_the_same_graph_wait_for_the_slowest),
		cmocka_unit_test(loading_time_of_a_hit_is_not_compile_time_of_an_earlier_miss),
		cmocka_unit_test(a_second_graph_of_a_name_has_its_own_time),
		cmocka_unit_test(a_lambda_has_its_time_although_its_name_is_spelt_in_two_ways),
		cmocka_unit_test(reasons_reach_the_graph_that_was_missed_last),
		cmocka_unit_test(a_real_truncated_entry_is_one_miss_among_hits),
		cmocka_unit_test(compiles_past_a_switched_off_cache_are_seen),
		cmocka_unit_test(a_full_book_says_what_it_dropped),
		cmocka_unit_test(a_hole_in_the_log_does_not_hide_the_cache_in_use),
		cmocka_unit_test(the_json_puts_the_costly_misses_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
