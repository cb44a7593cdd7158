/* The instance catalogue, one's own rows over it, and what a spec's machines mean for it. */
#include "jobs/spec/machines/instance.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/spec/spec_fixture.h"

#define BATCH                                                                                      \
	"version: 1\nname: x\nengine: batch\nworkspace: s3://bucket/w\nimage: i:1\n"               \
	"batch: {job_queue: q}\n"

static char own_path[64];

static const char *own_variable(const char *name)
{
	return strcmp(name, "STOKER_INSTANCES") == 0 ? own_path : NULL;
}

static void write_own(const char *text)
{
	FILE *file;
	int fd;

	snprintf(own_path, sizeof own_path, "/tmp/instances-XXXXXX");
	fd = mkstemp(own_path);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void ours_holds_what_is_documented(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = instances_load(no_variables, &problems);
	json_auto_t *trn1 = instance_find(catalogue, "trn1.32xlarge");
	json_auto_t *trn2u = instance_find(catalogue, "trn2u.48xlarge");
	json_auto_t *other = instance_find(catalogue, "c6i.large");

	(void)state;
	assert_int_equal(problems.count, 0);
	assert_int_equal(json_object_size(catalogue), 10);
	assert_int_equal(js_int(trn1, "devices", 0), 16);
	assert_int_equal(js_int(trn1, "cores", 0), 32);
	assert_int_equal(js_int(trn1, "memory_mib", 0), 512 << 10);
	assert_int_equal(js_int(trn1, "vcpus", 0), 128);
	assert_int_equal(js_int(trn1, "efa", -1), 8);
	assert_true(js_real(trn1, "price", 0) == 21.5);
	assert_string_equal(js_str(trn1, "dated"), "2026-06-25");
	assert_int_equal(js_int(trn2u, "cores", 0), 64);
	assert_int_equal(js_int(trn2u, "physical_cores", 0), 128);
	assert_null(json_object_get(trn2u, "price"));
	assert_int_equal(json_object_size(other), 1);
	assert_string_equal(js_str(other, "type"), "c6i.large");
}

static void a_price_says_where_it_is_from(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = instances_load(no_variables, &problems);
	const char *type;
	json_t *row;

	(void)state;
	json_object_foreach (catalogue, type, row) {
		assert_true(js_int(row, "cores", 0) > 0);
		assert_int_equal(js_int(row, "cores", 0) % js_int(row, "devices", 1), 0);
		if (!json_object_get(row, "price"))
			continue;
		assert_non_null(js_str(row, "region"));
		assert_non_null(js_str(row, "dated"));
		assert_non_null(js_str(row, "source"));
	}
}

static void sagemaker_has_the_machine_and_no_price(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = instances_load(no_variables, &problems);
	json_auto_t *ml = instance_find(catalogue, "ml.trn1.32xlarge");

	(void)state;
	assert_string_equal(js_str(ml, "type"), "ml.trn1.32xlarge");
	assert_int_equal(js_int(ml, "cores", 0), 32);
	assert_null(json_object_get(ml, "price"));
	assert_null(json_object_get(ml, "dated"));
}

static void own_rows_go_over_ours(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = NULL, *trn1 = NULL, *ml = NULL, *big = NULL;

	(void)state;
	write_own("version: 1\ninstances:\n"
		  "  trn1.32xlarge: {price: 20}\n"
		  "  ml.trn1.32xlarge: {price: 24.73, region: us-west-2, dated: 2026-11-01}\n"
		  "  big.metal: {devices: 2, cores: 8, ram: 1TiB}\n");
	catalogue = instances_load(own_variable, &problems);
	unlink(own_path);
	assert_int_equal(problems.count, 0);
	trn1 = instance_find(catalogue, "trn1.32xlarge");
	ml = instance_find(catalogue, "ml.trn1.32xlarge");
	big = instance_find(catalogue, "ml.big.metal");
	/* Not our date for one's own price. */
	assert_true(js_real(trn1, "price", 0) == 20);
	assert_null(json_object_get(trn1, "dated"));
	assert_string_equal(js_str(trn1, "source"), own_path);
	assert_int_equal(js_int(trn1, "cores", 0), 32);
	assert_true(js_real(ml, "price", 0) == 24.73);
	assert_string_equal(js_str(ml, "region"), "us-west-2");
	assert_int_equal(js_int(ml, "cores", 0), 32);
	assert_int_equal(js_int(big, "cores", 0), 8);
	assert_int_equal(js_int(big, "ram_mib", 0), 1 << 20);
}

static void check_mistake(const char *text, const char *said)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = NULL;
	AUTO(auto_free) char *first = NULL;
	AUTO(auto_free) char *expected = NULL;

	write_own(text);
	catalogue = instances_load(own_variable, &problems);
	unlink(own_path);
	assert_int_equal(problems.errors, 1);
	first = problem_format(&problems.list[0]);
	expected = mem_format("%s:%s", own_path, said);
	assert_string_equal(first, expected);
}

static void mistakes_are_told_with_their_place(void **state)
{
	(void)state;
	check_mistake("version: 1\ninstances:\n  a.b: {pice: 3}\n",
		      "3:9: unknown field 'pice' of an instance type");
	check_mistake("version: 1\ninstances:\n  a.b: {price: dear}\n",
		      "3:16: 'price' of an instance type must be a number from 0 to 100000");
	check_mistake("version: 1\ninstances:\n  a.b: {cores: 1.5}\n",
		      "3:16: 'cores' of an instance type must be an integer from 0 to 65536");
	check_mistake("version: 1\ninstances:\n  a.b: {ram: 512}\n",
		      "3:14: 'ram' of an instance type must be a size such as 512GiB");
	check_mistake("version: 1\ninstances:\n  a.b: {region: [x]}\n",
		      "3:17: 'region' of an instance type must be a string");
	check_mistake("version: 1\ninstances: {a.b: 21.5}\n",
		      "2:13: 'a.b' must be a mapping of its figures");
	check_mistake("version: 1\ninstances: {}\nprices: {}\n",
		      "3:1: unknown field 'prices' of a catalogue of instances");
	check_mistake("instances: {}\n",
		      "1:1: a catalogue of instances has 'version: 1' and a mapping "
		      "'instances'");
	check_mistake("",
		      "1:1: a catalogue of instances has 'version: 1' and a mapping 'instances'");
	check_mistake("- a\n",
		      "1:1: a catalogue of instances has 'version: 1' and a mapping 'instances'");
}

static void a_named_catalogue_must_be_there(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = NULL;

	(void)state;
	snprintf(own_path, sizeof own_path, "/nowhere/instances.yaml");
	catalogue = instances_load(own_variable, &problems);
	assert_int_equal(problems.errors, 1);
	assert_string_equal(problems.list[0].file, own_path);
	/* Ours is as good as ever. */
	assert_int_equal(json_object_size(catalogue), 10);
}

static void the_price_is_what_is_said_or_the_catalogues(void **state)
{
	AUTO(spec_freep)
	struct spec *listed = good_spec(BATCH "command: [a]\nresources: {instance: trn1.32xlarge}\n"
					      "limits: {cost: 100}\n",
					NULL);
	AUTO(spec_freep)
	struct spec *said = good_spec(
		BATCH "command: [a]\nresources: {instance: trn1.32xlarge, price: 9}\n", NULL);
	AUTO(spec_freep)
	struct spec *local = good_spec(HEAD "resources: {instance: trn1.32xlarge}\n", NULL);

	(void)state;
	assert_true(spec_price(listed) == 21.5);
	assert_true(spec_price(said) == 9);
	assert_true(spec_price(local) == 0);
	assert_int_equal(js_int(spec_instance(local), "cores", 0), 32);
}

static void check_refused(const char *text, const char *message)
{
	AUTO(auto_free) char *said = bad_spec(text, NULL);

	assert_string_equal(said, message);
}

static void a_cost_limit_needs_a_price(void **state)
{
	(void)state;
	check_refused(BATCH "command: [a]\nresources: {instance: trn2.48xlarge}\n"
			    "limits: {cost: 100}\n",
		      "spec.yaml:9:16: 'limits.cost' needs a price, and the catalogue has none of "
		      "'trn2.48xlarge'");
	check_refused(BATCH "command: [a]\nresources: {instance: ml.trn1.32xlarge}\n"
			    "limits: {cost: 100}\n",
		      "spec.yaml:9:16: 'limits.cost' needs a price, and the catalogue has none of "
		      "'ml.trn1.32xlarge'");
	/* This machine is none of them, whatever the spec says of others. */
	check_refused(HEAD "resources: {instance: trn1.32xlarge}\nlimits: {cost: 100}\n",
		      "spec.yaml:5:16: 'limits.cost' needs 'resources.price'");
}

/* The first problem of a spec that is valid all the same, "" for none. */
static char *lint_of(const char *text)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;

	assert_int_equal(
		spec_parse("spec.yaml", text, strlen(text), NULL, no_variables, &spec, &problems),
		0);
	return problems.count ? problem_format(&problems.list[0]) : mem_copy("");
}

static void check_lint(const char *text, const char *message)
{
	AUTO(auto_free) char *said = lint_of(text);

	assert_string_equal(said, message);
}

static void workers_are_held_against_cores(void **state)
{
	(void)state;
	check_lint(BATCH "command: [torchrun, --nproc_per_node, 16, a.py]\n"
			 "resources: {instance: trn1.32xlarge}\n",
		   "spec.yaml:7:39: warning: 16 workers on a node: 16 of the 32 cores of "
		   "'trn1.32xlarge' stay unused and are paid for");
	check_lint(BATCH "command: [torchrun, --nproc-per-node=32, a.py]\n"
			 "resources: {instance: trn1.32xlarge}\n",
		   "");
	check_lint(BATCH "command: [torchrun, --nproc_per_node, auto, a.py]\n"
			 "resources: {instance: trn1.32xlarge}\n",
		   "");
	/* accelerate counts all nodes. */
	check_lint(BATCH "command: [accelerate, launch, --num_processes=64, a.py]\n"
			 "resources: {instance: trn1.32xlarge, nodes: 2}\n",
		   "");
	/* The same machine shows more cores when asked to. */
	check_lint(BATCH "command: [torchrun, --nproc_per_node=128, a.py]\n"
			 "env: {NEURON_LOGICAL_NC_CONFIG: 1}\n"
			 "resources: {instance: trn2.48xlarge}\n",
		   "");
	check_refused(BATCH "command: [torchrun, --nproc_per_node=128, a.py]\n"
			    "resources: {instance: trn2.48xlarge}\n",
		      "spec.yaml:7:21: 128 workers on a node, but 'trn2.48xlarge' has 64 cores");
	check_refused(BATCH "command: [torchrun, --nproc_per_node, 33, a.py]\n"
			    "resources: {instance: ml.trn1.32xlarge}\n",
		      "spec.yaml:7:39: 33 workers on a node, but 'ml.trn1.32xlarge' has 32 cores");
}

static void a_slip_is_told_from_another_type(void **state)
{
	static const struct {
		const char *type, *meant;
	} rows[] = {
		{ "trn1.32xlagre", "trn1.32xlarge" },
		{ "ml.trn1.32xlagre", "ml.trn1.32xlarge" },
		{ "trn1.31xlarge", "trn1.32xlarge" },
		{ "tnr1.32xlarge", "trn1.32xlarge" },
		{ "trm1.32xlarge", "trn1.32xlarge" },
		{ "inf2.large", "inf2.xlarge" },
		{ "trn1.32xlarge", NULL },
		{ "ml.trn1.32xlarge", NULL },
		{ "trn3.48xlarge", NULL }, /* may be new */
		{ "inf1.xlarge", NULL },   /* is an old one */
		{ "i2.xlarge", NULL },     /* two letters off */
		{ "m5.large", NULL },
		{ "trn1.metal", NULL },
	};
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = instances_load(no_variables, &problems);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *meant = instance_meant(catalogue, rows[i].type);

		if (!rows[i].meant && meant)
			fail_msg("'%s' is taken for '%s'", rows[i].type, meant);
		if (rows[i].meant)
			assert_string_equal(meant ? meant : "(none)", rows[i].meant);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slip_is_told_from_another_type),
		cmocka_unit_test(ours_holds_what_is_documented),
		cmocka_unit_test(a_price_says_where_it_is_from),
		cmocka_unit_test(sagemaker_has_the_machine_and_no_price),
		cmocka_unit_test(own_rows_go_over_ours),
		cmocka_unit_test(mistakes_are_told_with_their_place),
		cmocka_unit_test(a_named_catalogue_must_be_there),
		cmocka_unit_test(the_price_is_what_is_said_or_the_catalogues),
		cmocka_unit_test(a_cost_limit_needs_a_price),
		cmocka_unit_test(workers_are_held_against_cores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
