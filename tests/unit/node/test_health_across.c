/* Whom node 0 names where all nodes fail together. It has no Python, so it fails itself; what
 * the others say is there from the beginning, whatever they are asked. */
#include "tests/unit/node/place.h"

#include "jobs/node/health/health_internal.h"
#include "jobs/node/node_flag.h"

#define NODES      3
#define TIMEOUT_MS 20000

struct bench {
	struct checkup c;
	struct agent_config config;
	struct claim claim;
	struct order order;
	json_t *told, *sick, *report;
};

static void bench_grow(struct bench *bench, int nodes)
{
	bench->config.nodes = nodes;
	while ((int)json_array_size(bench->told) < nodes)
		json_array_append_new(bench->told, json_pack("{s:b, s:s, s:i}", "torch", 1, "addr",
							     "127.0.0.1", "port", 32000));
}

static void bench_make(struct bench *bench, struct place *place)
{
	AUTO(err_freep) struct err *err = NULL;

	*bench = (struct bench){ .told = json_array(), .sick = json_array() };
	bench->order.health = (struct order_health){ .size = 1 << 20, .timeout_ms = TIMEOUT_MS };
	bench->config = (struct agent_config){ .order = &bench->order,
					       .nonce = NONCE,
					       .token = "t",
					       .prefix = PREFIX,
					       .workspace = place->root };
	bench->c = (struct checkup){ .config = &bench->config,
				     .claim = &bench->claim,
				     .order = &bench->order.health,
				     .folder = place->root,
				     .told = json_pack("{s:s}", "state", "done"),
				     .figures = json_object() };
	health_find_kind(&bench->c);
	must(store_open(place->root, &bench->c.store, &err), &err);
	bench_grow(bench, NODES);
}

static void bench_release(struct bench *bench)
{
	store_freep(&bench->c.store);
	json_decref(bench->c.told);
	json_decref(bench->c.figures);
	order_release(&bench->order);
	json_decref(bench->told);
	json_decref(bench->sick);
	json_decref(bench->report);
}

/* Node k, in each round. */
static void answers(struct bench *bench, struct place *place, int node, bool well)
{
	AUTO(auto_free) char *name = mem_format(PREFIX "node-%d/" HEALTH_FILE, node);
	AUTO(auto_free) char *path = place_path(place, name);
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *body = json_pack("{s:s, s:s, s:i, s:s, s:i, s:{s:b, s:s}}", "nonce", NONCE,
				      "token", bench->config.token, "restart", 0, "state", "done",
				      "round", 99, "result", "well", well, "words", "a wrong sum");
	AUTO(auto_free) char *line = js_line(body);

	must(fs_mkdirs(folder, &err), &err);
	write_file(path, line, 0600);
}

static void test_within(struct bench *bench, int64_t left_ms)
{
	struct mono end = { clock_mono_now().ms + left_ms };

	bench->report = health_test_across(&bench->c, bench->told, end, bench->sick);
}

static void test(struct bench *bench)
{
	test_within(bench, TIMEOUT_MS);
}

static void the_one_that_fails_alone_is_named(void **state)
{
	struct bench bench;

	bench_make(&bench, *state);
	answers(&bench, *state, 1, true);
	answers(&bench, *state, 2, true);
	test(&bench);
	assert_int_equal(json_array_size(bench.sick), 1);
	assert_int_equal(js_int(json_array_get(bench.sick, 0), "node", -1), 0);
	assert_null(js_str(bench.report, "failing"));
	bench_release(&bench);
}

static void what_each_fails_alone_is_no_nodes_doing(void **state)
{
	const char *words;
	struct bench bench;

	bench_make(&bench, *state);
	answers(&bench, *state, 1, false);
	answers(&bench, *state, 2, false);
	test(&bench);
	assert_int_equal(json_array_size(bench.sick), 0);
	words = js_str(bench.report, "failing");
	assert_non_null(words);
	assert_non_null(strstr(words, "between the 3 nodes fails, and on each of them alone, too: "
				      "node 0: an all-reduce over torchrun: Python not"));
	bench_release(&bench);
}

/* The last rounds, by which somebody is blamed, have no less than those before. */
static void each_round_has_its_share_of_the_time(void **state)
{
	/* Shares for sixteen nodes: all of them, then eights, fours, twos, single ones; and after
	 * these the crosswise ones are still to come. */
	const int shares[] = { 2, 5, 4, 3, 2 };
	const json_t *rounds, *round;
	struct bench bench;
	size_t i;

	bench_make(&bench, *state);
	bench_grow(&bench, 16);
	for (int node = 1; node < 16; node++)
		answers(&bench, *state, node, false);
	/* The limit has been told to be more than it is: a slow machine is no matter then. */
	test_within(&bench, 50 * TIMEOUT_MS);
	rounds = json_object_get(bench.report, "rounds");
	assert_int_equal(json_array_size(rounds), STK_LENGTH(shares));
	json_array_foreach (rounds, i, round) {
		int64_t limit_ms = js_int(round, "limit_ms", 0) * shares[i];

		assert_in_range(limit_ms, 45 * TIMEOUT_MS, 50 * TIMEOUT_MS);
	}
	bench_release(&bench);
}

/* A node that begins slowly does not hang. */
static void no_round_is_begun_that_would_be_too_short(void **state)
{
	const struct {
		bool object_workspace;
		int64_t left_ms, timeout_ms;
	} rows[] = { { false, 5000, 200000 }, { true, 20000, 20000 } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct bench bench;

		bench_make(&bench, *state);
		bench.config.object_workspace = rows[i].object_workspace;
		bench.order.health.timeout_ms = rows[i].timeout_ms;
		answers(&bench, *state, 1, false);
		answers(&bench, *state, 2, true);
		test_within(&bench, rows[i].left_ms);
		assert_int_equal(json_array_size(bench.sick), 0);
		assert_int_equal(json_array_size(json_object_get(bench.report, "rounds")), 1);
		assert_non_null(strstr(js_str(bench.report, "failing"), "within health.timeout"));
		bench_release(&bench);
	}
}

/* The end of the one may be that of others that nobody has heard of yet. */
static void who_is_silent_after_another_has_left_is_not_named(void **state)
{
	struct bench bench;

	bench_make(&bench, *state);
	answers(&bench, *state, 1, true);
	node_flag_set(&bench.config, bench.c.store, FAILED_FILE, json_pack("{s:i}", "node", 2));
	test(&bench);
	assert_int_equal(json_array_size(bench.sick), 0);
	assert_int_equal(json_array_size(json_object_get(bench.report, "rounds")), 1);
	bench_release(&bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_one_that_fails_alone_is_named),
		TEST(what_each_fails_alone_is_no_nodes_doing),
		TEST(each_round_has_its_share_of_the_time),
		TEST(no_round_is_begun_that_would_be_too_short),
		TEST(who_is_silent_after_another_has_left_is_not_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
