/* Whose figures make a node sick, which ones only warn, and what becomes of the baseline. */
#include "tests/unit/node/place.h"

#include "jobs/node/health/health_internal.h"

#define OP       "all_reduce"
#define BASELINE "health/trn1.32xlarge.json"

/* A check-up as node 0 has it when all have told. */
struct bench {
	struct checkup c;
	struct agent_config config;
	struct order order;
	json_t *nodes, *across;
	json_t *sick, *warned; /* of the last look */
};

static void bench_make(struct bench *bench, struct place *place)
{
	AUTO(err_freep) struct err *err = NULL;

	*bench = (struct bench){ 0 };
	MESSAGE_SET_TEXT(&bench->order, instance, "trn1.32xlarge");
	bench->order.health = (struct order_health){ .ops = json_pack("[s]", OP), .size = 4 << 20 };
	bench->config = (struct agent_config){ .order = &bench->order, .workspace = place->root };
	bench->c = (struct checkup){ .config = &bench->config, .order = &bench->order.health };
	must(store_open(place->root, &bench->c.store, &err), &err);
}

static void forget(struct bench *bench)
{
	json_decref(bench->nodes);
	json_decref(bench->across);
	json_decref(bench->sick);
	json_decref(bench->warned);
	bench->nodes = bench->across = bench->sick = bench->warned = NULL;
}

static void bench_release(struct bench *bench)
{
	forget(bench);
	store_freep(&bench->c.store);
	order_release(&bench->order);
}

/* Compare nodes with these figures, and what is between them (0: nothing). */
static void look(struct bench *bench, const double *busbw, size_t count, double across)
{
	AUTO(health_baseline_release) struct baseline baseline = { 0 };

	forget(bench);
	bench->nodes = json_array();
	bench->warned = json_array();
	bench->config.nodes = (int)count;
	for (size_t i = 0; i < count; i++)
		json_array_append_new(bench->nodes,
				      json_pack("{s:{s:{s:f, s:i}}, s:[]}", "figures", OP, "busbw",
						busbw[i], "ranks", 32, "rows"));
	if (across > 0)
		bench->across = json_pack("{s:s, s:{s:{s:f, s:i}}}", "how", "torch", "figures", OP,
					  "busbw", across, "ranks", 64);
	bench->c.told = json_array_get(bench->nodes, 0);
	health_baseline_load(&bench->c, &baseline);
	bench->sick = health_compare_nodes(&bench->c, bench->nodes, &baseline, bench->warned);
	health_compare_across(&bench->c, bench->across, &baseline, bench->warned);
	if (json_array_size(bench->sick) == 0 || bench->config.nodes == 1)
		health_remember_figures(&bench->c, bench->nodes, bench->across);
}

#define LOOK(bench, across, ...)                                                                   \
	look(bench, (const double[]){ __VA_ARGS__ },                                               \
	     sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double), across)

static double kept(struct place *place, const char *name, const char *member)
{
	AUTO(auto_free) char *path = place_path(place, BASELINE);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *object = NULL;
	const json_t *figure;

	must(js_load(path, 1 << 20, &object, &err), &err);
	figure = json_object_get(json_object_get(object, "figures"), name);
	return js_real(json_object_get(figure, "slower"), member, js_real(figure, member, -1));
}

static bool is_about(double found, double wanted)
{
	return found > wanted - 0.01 && found < wanted + 0.01;
}

/* The one that is sick, -1: none is. */
static int sick_one(const struct bench *bench)
{
	assert_true(json_array_size(bench->sick) <= 1);
	return (int)js_int(json_array_get(bench->sick, 0), "node", -1);
}

static const char *warning(const struct bench *bench)
{
	assert_int_equal(json_array_size(bench->warned), 1);
	return json_string_value(json_array_get(bench->warned, 0));
}

#define KEPT_OP     OP " of 4194304 bytes over 32 ranks"
#define KEPT_ACROSS OP " by torch between 2 nodes of 4194304 bytes over 64 ranks"

static void one_that_is_slow_among_others_is_sick(void **state)
{
	struct bench bench;

	bench_make(&bench, *state);
	LOOK(&bench, 0, 40, 41, 20, 42);
	assert_int_equal(sick_one(&bench), 2);
	LOOK(&bench, 0, 40, 42);
	assert_int_equal(sick_one(&bench), -1);
	LOOK(&bench, 0, 40, 20);
	assert_int_equal(sick_one(&bench), 1);
	assert_int_equal(json_array_size(bench.warned), 0);
	assert_true(is_about(kept(*state, KEPT_OP, "busbw"), 41));
	bench_release(&bench);
}

static void all_of_them_slower_than_before_is_no_nodes_doing(void **state)
{
	struct bench bench;

	bench_make(&bench, *state);
	LOOK(&bench, 0, 40);
	LOOK(&bench, 0, 20, 20);
	assert_int_equal(sick_one(&bench), -1);
	assert_non_null(strstr(warning(&bench), OP " of 4.0 MiB on all 2 nodes runs at 20.00 GB/s; "
						   "the baseline of healthy runs is 40.00"));
	assert_non_null(
		strstr(warning(&bench),
		       "/" BASELINE
		       "; 3 slower runs in a row replace the baseline, and this is number 1)"));
	/* The median of many, too; and one that is slower than that is sick all the same. */
	LOOK(&bench, 0, 20, 20, 10);
	assert_int_equal(sick_one(&bench), 2);
	assert_non_null(strstr(warning(&bench), "on all 3 nodes runs at 20.00"));
	LOOK(&bench, 0, 20, 20, 20);
	assert_int_equal(sick_one(&bench), -1);
	assert_non_null(strstr(warning(&bench), "this is number 2)"));
	bench_release(&bench);
}

/* A new driver or compiler would refuse each run otherwise. */
static void what_is_slower_three_times_in_a_row_is_the_baseline(void **state)
{
	struct bench bench;

	bench_make(&bench, *state);
	LOOK(&bench, 0, 40);
	LOOK(&bench, 0, 10);
	assert_int_equal(sick_one(&bench), 0);
	assert_int_equal(json_array_size(bench.warned), 0);
	LOOK(&bench, 0, 40);
	LOOK(&bench, 0, 20);
	LOOK(&bench, 0, 22);
	assert_int_equal(sick_one(&bench), 0);
	assert_non_null(strstr(js_str(json_array_get(bench.sick, 0), "words"),
			       "runs at 22.0 GB/s; the baseline of healthy runs is 40.00 GB/s ("));
	assert_true(is_about(kept(*state, KEPT_OP, "busbw"), 22));
	LOOK(&bench, 0, 21);
	assert_int_equal(sick_one(&bench), -1);
	assert_non_null(strstr(warning(&bench), "this is number 3)"));
	LOOK(&bench, 0, 21);
	assert_int_equal(sick_one(&bench), -1);
	assert_int_equal(json_array_size(bench.warned), 0);
	assert_true(is_about(kept(*state, KEPT_OP, "busbw"), 0.8 * 22 + 0.2 * 21));
	bench_release(&bench);
}

static void a_slow_way_between_the_nodes_is_told(void **state)
{
	struct bench bench;

	bench_make(&bench, *state);
	LOOK(&bench, 12, 40, 40);
	LOOK(&bench, 0.5, 40, 40);
	assert_int_equal(sick_one(&bench), -1);
	assert_non_null(strstr(warning(&bench),
			       OP " by torch between 2 nodes runs at 0.50 GB/s; the baseline of "
				  "healthy runs is 12.00 GB/s ("));
	assert_true(is_about(kept(*state, KEPT_ACROSS, "busbw"), 0.5));
	LOOK(&bench, 11, 40, 40);
	assert_int_equal(json_array_size(bench.warned), 0);
	assert_true(is_about(kept(*state, KEPT_ACROSS, "busbw"), 0.8 * 12 + 0.2 * 11));
	bench_release(&bench);
}

/* ---- failures of all nodes ------------------------------------------------------------ */

/* Each has this failed row, the last one perhaps another, and another number of devices. */
static json_t *nodes_with(size_t count, const char *check, const char *last, int devices)
{
	json_t *nodes = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(nodes,
				      json_pack("{s:i, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}]}",
						"devices", i + 1 == count ? devices : 16, "rows",
						"check", "devices", "verdict", ROW_OK, "words", "",
						"check", i + 1 == count ? last : check, "verdict",
						ROW_SICK, "words", "fails"));
	return nodes;
}

static void what_the_image_fails_on_all_nodes_is_no_nodes_doing(void **state)
{
	const struct {
		size_t count;
		const char *check, *last;
		int devices;
		bool common;
	} rows[] = {
		{ 2, "tensor", "tensor", 16, true },
		{ 3, "collectives", "collectives", 16, true },
		{ 1, "tensor", "tensor", 16, false },
		{ 2, "tensor", "collectives", 16, false },
		{ 2, "tensor", "tensor", 15, false },
		{ 2, "devices", "devices", 16, false },
		{ 2, "tensor", "counters", 16, false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *nodes =
			nodes_with(rows[i].count, rows[i].check, rows[i].last, rows[i].devices);
		AUTO(auto_free) char *words = health_common_failure(nodes);

		assert_int_equal(words != NULL, rows[i].common);
		if (words && i == 0)
			assert_string_equal(words, "fails; the same on all 2 nodes, which have "
						   "the image in common");
		/* A node that tells nothing is not like the others. */
		json_array_append_new(nodes, json_null());
		assert_null(health_common_failure(nodes));
	}
}

static void what_is_no_baseline_is_none(void **state)
{
	static const char *const texts[] = { "",
					     "{",
					     "[]",
					     "{\"figures\":[]}",
					     "{\"figures\":{\"" KEPT_OP "\":7}}",
					     "{\"figures\":{\"" KEPT_OP
					     "\":{\"busbw\":-1,\"slower\":[]}}}" };
	AUTO(auto_free) char *path = place_path(*state, BASELINE);
	struct bench bench;

	bench_make(&bench, *state);
	LOOK(&bench, 0, 40);
	for (size_t i = 0; i < STK_LENGTH(texts); i++) {
		write_file(path, texts[i], 0600);
		LOOK(&bench, 0, 20);
		assert_int_equal(sick_one(&bench), -1);
		assert_true(is_about(kept(*state, KEPT_OP, "busbw"), 20));
	}
	bench_release(&bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_that_is_slow_among_others_is_sick),
		TEST(all_of_them_slower_than_before_is_no_nodes_doing),
		TEST(what_is_slower_three_times_in_a_row_is_the_baseline),
		TEST(a_slow_way_between_the_nodes_is_told),
		TEST(what_the_image_fails_on_all_nodes_is_no_nodes_doing),
		TEST(what_is_no_baseline_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
