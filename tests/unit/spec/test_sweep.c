/* The section `sweep`: its cells, and what is wrong with one. */
#include "spec_fixture.h"

#include "jobs/base/sb.h"

static json_t *sweep_of(const char *text)
{
	AUTO(auto_free) char *whole = mem_format(HEAD "hyperparameters: {lr: 0.1}\n%s", text);
	AUTO(spec_freep) struct spec *spec = good_spec(whole, NULL);

	return spec_sweep(spec);
}

/* "name: set set; name: …" of all cells. */
static void cells_are(const char *text, const char *expected)
{
	json_auto_t *sweep = sweep_of(text);
	AUTO(sb_release) struct sb all = SB_INIT;
	json_t *cell, *set;
	size_t i, k;

	json_array_foreach (json_object_get(sweep, "cells"), i, cell) {
		sb_addf(&all, "%s%s:", i ? "; " : "", js_str(cell, "name"));
		json_array_foreach (json_object_get(cell, "sets"), k, set)
			sb_addf(&all, " %s", json_string_value(set));
	}
	assert_string_equal(all.text, expected);
}

static void is_wrong(const char *text, const char *expected)
{
	AUTO(auto_free) char *whole = mem_format(HEAD "%s", text);
	AUTO(auto_free) char *said = bad_spec(whole, NULL);

	assert_string_equal(said, expected);
}

static void test_none(void **state)
{
	json_auto_t *sweep = sweep_of("");

	(void)state;
	assert_null(sweep);
}

static void test_grid(void **state)
{
	(void)state;
	cells_are("sweep:\n  grid: {hyperparameters.b: [16, 32], env.X: [a, 'b c'], "
		  "resources.nodes: 2}\n",
		  "b=16, X=a, resources.nodes=2: hyperparameters.b=16 env.X=a resources.nodes=2; "
		  "b=16, X=b c, resources.nodes=2: hyperparameters.b=16 env.X=b c "
		  "resources.nodes=2; "
		  "b=32, X=a, resources.nodes=2: hyperparameters.b=32 env.X=a resources.nodes=2; "
		  "b=32, X=b c, resources.nodes=2: hyperparameters.b=32 env.X=b c "
		  "resources.nodes=2");
}

static void test_one_at_a_time(void **state)
{
	(void)state;
	cells_are("sweep: {one_at_a_time: {hyperparameters.b: [16, 32], resources.nodes: [2]}}\n",
		  "the spec as it is:; b=16: hyperparameters.b=16; b=32: hyperparameters.b=32; "
		  "resources.nodes=2: resources.nodes=2");
}

static void test_list_and_names(void **state)
{
	(void)state;
	cells_are("sweep:\n  list:\n  - {}\n  - {name: big, hyperparameters.b: 64}\n",
		  "the spec as it is:; big: name=big hyperparameters.b=64");
}

static void test_ladder(void **state)
{
	static const char steps[] =
		"sweep:\n  ladder:\n  - {env.X: a}\n  - {env.Y: b}\n  - {env.X: c}\n";
	AUTO(auto_free) char *best = mem_format("%s  on_top_of: best\n", steps);
	json_auto_t *sweep = sweep_of(best);

	(void)state;
	cells_are(steps, "the spec as it is:; X=a: env.X=a; Y=b: env.X=a env.Y=b; "
			 "X=c: env.X=a env.Y=b env.X=c");
	cells_are(best, "the spec as it is:; X=a: env.X=a; Y=b: env.Y=b; X=c: env.X=c");
	assert_true(js_bool(sweep, "on_best", false));
	assert_string_equal(js_str(sweep, "kind"), "ladder");
}

/* Values keep their form: a quoted number is a text, a number keeps its digits, a list is one. */
static void test_forms(void **state)
{
	(void)state;
	cells_are("sweep:\n  list:\n  - {hyperparameters.a: 3.0e-4, hyperparameters.b: '1', "
		  "hyperparameters.c: [1, 'x, y', true], hyperparameters.d: null, "
		  "hyperparameters.e: \"a\\tb\"}\n",
		  "a=3.0e-4, b=\"1\", c=[1, \"x, y\", true], d=null, e=\"a\\tb\": "
		  "hyperparameters.a=3.0e-4 hyperparameters.b=\"1\" "
		  "hyperparameters.c=[1, \"x, y\", true] hyperparameters.d=null "
		  "hyperparameters.e=\"a\\tb\"");
	cells_are("sweep:\n  grid: {command: [[a, 'b c'], [d]]}\n",
		  "command=[\"a\", \"b c\"]: command=[\"a\", \"b c\"]; command=[\"d\"]: "
		  "command=[\"d\"]");
}

/* A cell that is loaded with its sets is the spec with these values. */
static void test_cell_as_spec(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(HEAD "hyperparameters: {a: 1}\nsweep:\n  list:\n"
					   "  - {hyperparameters.a: '1', env.X: 007, "
					   "resources.nodes: 4}\n",
				      NULL);
	json_auto_t *sweep = spec_sweep(spec);
	const json_t *cell = json_array_get(json_object_get(sweep, "cells"), 0);
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *other = NULL;
	char *sets[4] = { 0 };
	json_t *set;
	size_t i;

	(void)state;
	json_array_foreach (json_object_get(cell, "sets"), i, set)
		sets[i] = (char *)json_string_value(set);
	assert_int_equal(spec_with(spec, sets, &other, &problems), 0);
	assert_int_equal(spec_int(other, SPEC_RESOURCES_NODES), 4);
	assert_string_equal(js_str(spec_get(other, SPEC_HYPERPARAMETERS), "a"), "1");
	assert_string_equal(js_str(spec_get(other, SPEC_ENV), "X"), "007");
}

static void test_limits(void **state)
{
	json_auto_t *sweep = sweep_of("resources: {price: 2}\nsweep:\n  list: [{}]\n  repeat: 3\n"
				      "  parallel: 2\n  stop_when: {cost: 10, deadline: 2h}\n");
	json_auto_t *plain = sweep_of("sweep: {list: [{}]}\n");

	(void)state;
	assert_int_equal(js_int(sweep, "repeat", 0), 3);
	assert_int_equal(js_int(sweep, "parallel", 0), 2);
	assert_int_equal(js_int(sweep, "deadline_ms", 0), 7200000);
	assert_true(js_real(sweep, "cost", 0) == 10);
	assert_int_equal(js_int(plain, "repeat", 0), 1);
	assert_int_equal(js_int(plain, "parallel", 0), 1);
	assert_null(json_object_get(plain, "cost"));
	assert_null(json_object_get(plain, "deadline_ms"));
}

static void test_wrong(void **state)
{
	(void)state;
	is_wrong("sweep: {repeat: 2}\n", "spec.yaml:4:1: 'sweep' has no cells");
	is_wrong("sweep:\n", "spec.yaml:4:1: 'sweep' has no cells");
	is_wrong("sweep: {grid: {}}\n", "spec.yaml:4:9: 'sweep.grid' has no cells");
	is_wrong("sweep: {list: []}\n", "spec.yaml:4:15: 'sweep.list' is empty");
	is_wrong("sweep: {grid: {resources.nodes: []}}\n",
		 "spec.yaml:4:16: 'resources.nodes' in 'sweep.grid' has no values");
	is_wrong("sweep: {grid: {resources.node: [1]}}\n",
		 "spec.yaml:4:16: unknown field 'resources.node' in 'sweep.grid'");
	is_wrong("sweep: {grid: {resources.nodes: [1, many]}}\n",
		 "spec.yaml:4:37: 'resources.nodes' must be an integer, not 'many'");
	is_wrong("sweep: {list: [{resources.nodes: 0}]}\n",
		 "spec.yaml:4:34: 'resources.nodes' is 0, but must be from 1 to 10000");
	is_wrong("sweep: {list: [{env: 1}]}\n",
		 "spec.yaml:4:17: 'env' is no field, but has fields");
	is_wrong("sweep: {list: [{sweep.repeat: 1}]}\n",
		 "spec.yaml:4:17: 'sweep.repeat' cannot differ between cells");
	is_wrong("sweep: {list: [{command: a}]}\n",
		 "spec.yaml:4:26: 'command' must be a list, not a string");
	is_wrong("sweep: {list: [{}], ladder: [{}]}\n",
		 "spec.yaml:4:21: 'sweep.list' and 'sweep.ladder' exclude each other");
	is_wrong("sweep: {list: [{}], on_top_of: best}\n",
		 "spec.yaml:4:32: 'sweep.on_top_of' is of a ladder, and there is none");
	is_wrong("sweep: {list: [{}], stop_when: {cost: 3}}\n",
		 "spec.yaml:4:39: 'sweep.stop_when.cost' needs a price, and none is known");
	is_wrong("sweep: {list: [{env.A-B: x}]}\n",
		 "spec.yaml:4:17: 'env.A-B' in 'sweep.list' must be a variable name: letters, "
		 "digits and '_', not beginning with a digit");
}

/* Returns a grid with `count` values of one field. */
static char *grid_of(size_t count)
{
	struct sb text = SB_INIT;

	sb_adds(&text, HEAD "sweep:\n  one_at_a_time:\n    hyperparameters.x: [0");
	for (size_t i = 1; i < count; i++)
		sb_addf(&text, ", %zu", i);
	sb_adds(&text, "]\n");
	return sb_take(&text);
}

static void test_too_many(void **state)
{
	AUTO(auto_free) char *most = grid_of(999);
	AUTO(auto_free) char *more = grid_of(1000);
	AUTO(spec_freep) struct spec *spec = good_spec(most, NULL);
	AUTO(auto_free) char *said = bad_spec(more, NULL);

	(void)state;
	assert_non_null(spec);
	assert_string_equal(said, "spec.yaml:5:3: 'sweep.one_at_a_time' has more than 1000 cells");
	is_wrong("sweep:\n  grid: {hyperparameters.a: [1,2,3,4,5,6,7,8,9,10], "
		 "hyperparameters.b: [1,2,3,4,5,6,7,8,9,10]}\n  repeat: 21\n",
		 "spec.yaml:6:11: 100 cells, 21 times each, are more than 2000 runs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),          cmocka_unit_test(test_grid),
		cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_list_and_names),
		cmocka_unit_test(test_ladder),        cmocka_unit_test(test_forms),
		cmocka_unit_test(test_cell_as_spec),  cmocka_unit_test(test_limits),
		cmocka_unit_test(test_wrong),         cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
