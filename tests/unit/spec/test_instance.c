/* The instance catalogue, one's own rows over it, and what a spec's machines mean for it. */
#include "jobs/spec/machines/instance.h"

#include <stdio.h>
#include <unistd.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/sb.h"
#include "jobs/spec/machines/catalogue.h"
#include "jobs/spec/yaml.h"
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
	json_auto_t *other = instance_find(catalogue, "z9.large");

	(void)state;
	assert_int_equal(problems.count, 0);
	assert_int_equal(js_int(trn1, "devices", 0), 16);
	assert_int_equal(js_int(trn1, "cores", 0), 32);
	assert_int_equal(js_int(trn1, "memory_mib", 0), 512 << 10);
	assert_int_equal(js_int(trn1, "vcpus", 0), 128);
	assert_int_equal(js_int(trn1, "efa", -1), 8);
	assert_true(js_real(trn1, "price", 0) == 21.5);
	assert_string_equal(js_str(trn1, "dated"), "2026-07-20");
	assert_int_equal(js_int(trn2u, "cores", 0), 64);
	assert_int_equal(js_int(trn2u, "physical_cores", 0), 128);
	assert_null(json_object_get(trn2u, "price"));
	assert_int_equal(json_object_size(other), 1);
	assert_string_equal(js_str(other, "type"), "z9.large");
}

static void read_mapping(const struct node *map, json_t *ret)
{
	for (size_t i = 0; i < map->count; i++)
		js_put_str(ret, map->entries[i].key, map->entries[i].value->text);
}

/* The rows are read by the lines of the file; as YAML it has the same rows. */
static void the_lines_of_our_file_are_its_yaml(void **state)
{
	const struct embedded_file *file = catalogue_files;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	struct reporter reporter = { "instances.yaml", &problems };
	struct catalogue_row row = { 0 };
	const struct node *groups;
	struct node *tree;

	(void)state;
	while (strcmp(file->name, "instances") != 0)
		file++;
	assert_int_equal(spec_file_parse(arena, &reporter, file->text, file->len, &tree), 0);
	groups = node_entry(tree, "groups")->value;
	for (size_t g = 0; g < groups->count; g++) {
		const struct node *group = groups->entries[g].value;
		const struct node *rows = node_entry(group, "instances")->value;

		for (size_t i = 0; i < rows->count; i++) {
			const char *type = rows->entries[i].key;
			json_auto_t *wanted = json_object(), *read = json_object();
			struct node *map;

			assert_true(catalogue_next(&row));
			assert_int_equal(row.type.len, strlen(type));
			assert_memory_equal(row.type.text, type, row.type.len);
			read_mapping(node_entry(group, "all")->value, wanted);
			read_mapping(rows->entries[i].value, wanted);
			assert_int_equal(spec_tree_parse(arena, &reporter, row.all.text,
							 row.all.len, NULL, &map),
					 0);
			read_mapping(map, read);
			assert_int_equal(spec_tree_parse(arena, &reporter, row.own.text,
							 row.own.len, NULL, &map),
					 0);
			read_mapping(map, read);
			assert_true(json_equal(wanted, read));
		}
	}
	assert_false(catalogue_next(&row));
	assert_int_equal(problems.count, 0);
}

/* Our rows by the reader of the user's rows, which tells every mistake. */
static void ours_has_no_mistake(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT;
	struct catalogue_row row = { 0 };
	json_auto_t *catalogue = NULL;
	size_t count = 0;

	(void)state;
	sb_adds(&text, "version: 1\ninstances:\n");
	for (; catalogue_next(&row); count++) {
		sb_addf(&text, "  x%zu.all:%.*s", count, (int)row.all.len, row.all.text);
		sb_addf(&text, "  x%zu.own:%.*s", count, (int)row.own.len, row.own.text);
	}
	write_own(text.text);
	catalogue = instances_load(own_variable, &problems);
	unlink(own_path);
	assert_int_equal(problems.count, 0);
	assert_int_equal(json_object_size(catalogue), 2 * count);
	assert_true(count > 100);
}

static void a_price_says_where_it_is_from(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = instances_load(no_variables, &problems);
	json_auto_t *types = instance_types(catalogue);
	json_t *type;
	size_t i;

	(void)state;
	json_array_foreach (types, i, type) {
		json_auto_t *row = instance_find(catalogue, json_string_value(type));

		assert_non_null(js_str(row, "figures"));
		assert_non_null(js_str(row, "figures_dated"));
		assert_true(js_int(row, "vcpus", 0) > 0 && js_int(row, "ram_mib", 0) > 0);
		assert_non_null(js_str(row, "arch"));
		assert_non_null(js_str(row, "quota"));
		assert_non_null(js_str(row, "spot_quota"));
		if (!json_object_get(row, "price")) {
			assert_null(js_str(row, "region"));
			assert_null(js_str(row, "dated"));
			assert_null(js_str(row, "source"));
			continue;
		}
		assert_non_null(js_str(row, "region"));
		assert_non_null(js_str(row, "dated"));
		assert_non_null(js_str(row, "source"));
	}
}

/* Each accelerator has a number, and figures that go with it. */
static void an_accelerator_has_its_figures(void **state)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = instances_load(no_variables, &problems);
	json_auto_t *types = instance_types(catalogue);
	json_t *type;
	size_t i;

	(void)state;
	json_array_foreach (types, i, type) {
		json_auto_t *row = instance_find(catalogue, json_string_value(type));
		bool neuron = js_is(row, "accelerator", ACCELERATOR_NEURON);
		bool nvidia = js_is(row, "accelerator", ACCELERATOR_NVIDIA);

		assert_int_equal(js_int(row, "devices", 0) > 0, neuron);
		assert_int_equal(js_int(row, "cores", 0) > 0, neuron);
		assert_int_equal(js_int(row, "memory_mib", 0) > 0, neuron);
		assert_int_equal(js_int(row, "gpus", 0) > 0, nvidia);
		assert_int_equal(js_int(row, "gpu_memory_mib", 0) > 0, nvidia);
		assert_int_equal(js_str(row, "gpu") != NULL, nvidia);
		if (neuron)
			assert_int_equal(js_int(row, "cores", 0) % js_int(row, "devices", 1), 0);
	}
}

/* The figures are those of EC2's descriptions and its Price List, as the issue that asked for these
 * rows has them. */
static void the_figures_are_aws_own(void **state)
{
	static const struct {
		const char *type, *gpu;
		int gpus, gpu_gib, devices, vcpus, ram_gib, efa, nvme;
		double price;
		bool sagemaker;
	} rows[] = {
		{ "trn1.2xlarge", NULL, 0, 0, 1, 8, 32, 0, 474, 1.34375, true },
		{ "trn1.32xlarge", NULL, 0, 0, 16, 128, 512, 8, 7600, 21.5, true },
		{ "trn1n.32xlarge", NULL, 0, 0, 16, 128, 512, 16, 7600, 24.78, true },
		{ "trn2.3xlarge", NULL, 0, 0, 1, 12, 128, 1, 470, 0, false },
		{ "trn2.48xlarge", NULL, 0, 0, 16, 192, 2048, 16, 7600, 0, true },
		{ "inf2.xlarge", NULL, 0, 0, 1, 4, 16, 0, 0, 0.7582, false },
		{ "inf2.48xlarge", NULL, 0, 0, 12, 192, 768, 0, 0, 12.98127, false },
		{ "p3.2xlarge", "V100", 1, 16, 0, 8, 61, 0, 0, 3.06, true },
		{ "p3dn.24xlarge", "V100", 8, 32, 0, 96, 768, 1, 1800, 31.212, true },
		{ "p4d.24xlarge", "A100", 8, 40, 0, 96, 1152, 4, 8000, 21.957642, true },
		{ "p4de.24xlarge", "A100", 8, 80, 0, 96, 1152, 4, 8000, 27.44705, true },
		{ "p5.4xlarge", "H100", 1, 80, 0, 16, 256, 1, 3800, 6.88, true },
		{ "p5.48xlarge", "H100", 8, 80, 0, 192, 2048, 32, 30400, 55.04, true },
		{ "p5e.48xlarge", "H200", 8, 141, 0, 192, 2048, 32, 30400, 0, true },
		{ "p5en.48xlarge", "H200", 8, 141, 0, 192, 2048, 16, 30400, 63.296, true },
		{ "g4dn.xlarge", "T4", 1, 16, 0, 4, 16, 0, 125, 0.526, true },
		{ "g4dn.metal", "T4", 8, 16, 0, 96, 384, 1, 1800, 7.824, false },
		{ "g5.4xlarge", "A10G", 1, 22, 0, 16, 64, 0, 600, 1.624, true },
		{ "g5.48xlarge", "A10G", 8, 22, 0, 192, 768, 1, 7600, 16.288, true },
		{ "g6.8xlarge", "L4", 1, 22, 0, 32, 128, 1, 900, 2.0144, true },
		{ "g6e.24xlarge", "L40S", 4, 44, 0, 96, 768, 2, 3800, 15.06559, true },
		{ "g6e.48xlarge", "L40S", 8, 44, 0, 192, 1536, 4, 7600, 30.13118, true },
		{ "m5.large", NULL, 0, 0, 0, 2, 8, 0, 0, 0.096, true },
		{ "r6i.32xlarge", NULL, 0, 0, 0, 128, 1024, 1, 0, 8.064, true },
	};
	AUTO(problems_release) struct problems problems = { 0 };
	json_auto_t *catalogue = instances_load(no_variables, &problems);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *row = instance_find(catalogue, rows[i].type);

		print_message("%s\n", rows[i].type);
		assert_int_equal(js_int(row, "devices", 0), rows[i].devices);
		assert_int_equal(js_int(row, "gpus", 0), rows[i].gpus);
		assert_int_equal(js_int(row, "gpu_memory_mib", 0) >> 10, rows[i].gpu_gib);
		assert_string_equal(rows[i].gpu ? rows[i].gpu : "",
				    js_str(row, "gpu") ? js_str(row, "gpu") : "");
		assert_int_equal(js_int(row, "vcpus", 0), rows[i].vcpus);
		assert_int_equal(js_int(row, "ram_mib", 0), rows[i].ram_gib << 10);
		assert_int_equal(js_int(row, "efa", -1), rows[i].efa);
		assert_int_equal(js_int(row, "nvme_gb", -1), rows[i].nvme);
		assert_true(js_real(row, "price", 0) == rows[i].price);
		assert_int_equal(json_is_true(json_object_get(row, "sagemaker")),
				 rows[i].sagemaker);
	}
}

static void names_of_sagemaker(void **state)
{
	static const struct {
		const char *name, *nearest;
		bool trains;
	} rows[] = {
		{ "ml.trn1.32xlarge", "ml.trn1.32xlarge", true },
		{ "ml.m4.10xlarge", "ml.m4.10xlarge", true },
		{ "ml.trn2.3xlarge", "ml.trn2.48xlarge", false },
		{ "ml.m5.xlrage", "ml.m5.xlarge", false },
		{ "ml.m5", NULL, false },
		{ "trn1.32xlarge", NULL, false },
		{ "ml.quantum.xlarge", NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *nearest = catalogue_nearest_name(rows[i].name);

		assert_int_equal(catalogue_trains_on(rows[i].name), rows[i].trains);
		assert_string_equal(nearest ? nearest : "", rows[i].nearest ? rows[i].nearest : "");
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
	assert_string_equal(js_str(big, "figures"), own_path);
	assert_string_equal(js_str(trn1, "figures_dated"), "2026-08-02");
	/* One's own price does not get our date. */
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
	assert_true(instance_known(catalogue, "trn1.32xlarge"));
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
	assert_true(spec_price(local) == 21.5);
	assert_int_equal(js_int(spec_instance(local), "cores", 0), 32);
}

static void check_refused(const char *text, const char *message)
{
	AUTO(auto_free) char *said = bad_spec(text, NULL);

	assert_string_equal(said, message);
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

static void a_cost_limit_needs_a_price(void **state)
{
	(void)state;
	check_refused(BATCH "command: [a]\nresources: {instance: trn2.48xlarge}\n"
			    "limits: {cost: 100}\n",
		      "spec.yaml:9:16: 'limits.cost' needs a price, and the catalogue has none of "
		      "'trn2.48xlarge'");
	check_refused(BATCH "command: [a]\nresources: {instance: ml.trn1.32xlarge, price: 9}\n",
		      "spec.yaml:8:23: 'ml.trn1.32xlarge' is a name of SageMaker's, not of AWS "
		      "Batch's");
	/* This machine is none of these types; one that is 'auto' is not asked yet. */
	check_refused(HEAD "limits: {cost: 100}\n",
		      "spec.yaml:4:16: 'limits.cost' needs 'resources.price'");
	check_refused(HEAD "resources: {instance: trn2.48xlarge}\nlimits: {cost: 100}\n",
		      "spec.yaml:5:16: 'limits.cost' needs a price, and the catalogue has none of "
		      "'trn2.48xlarge'");
	check_lint(HEAD "resources: {instance: auto}\nlimits: {cost: 100}\n", "");
	check_refused(BATCH "command: [a]\nresources: {instance: auto}\n",
		      "spec.yaml:8:23: 'resources.instance: auto' is this machine, and engine "
		      "'batch' runs jobs on others");
}

static void workers_are_held_against_cores(void **state)
{
	(void)state;
	check_lint(
		BATCH "command: [torchrun, --nproc_per_node, 16, a.py]\n"
		      "resources: {instance: trn1.32xlarge}\n",
		"spec.yaml:7:39: warning: 16 workers on a node: 16 of the 32 cores of "
		"'trn1.32xlarge' stay unused: 10.75 of 21.50 USD an hour on each node are paid for "
		"nothing");
	check_lint(BATCH "command: [torchrun, --nproc-per-node=32, a.py]\n"
			 "resources: {instance: trn1.32xlarge}\n",
		   "");
	check_lint(BATCH "command: [torchrun, --nproc_per_node, auto, a.py]\n"
			 "resources: {instance: trn1.32xlarge}\n",
		   "spec.yaml:7:39: warning: torchrun's 'auto' counts CPUs: 128 workers for the 32 "
		   "cores of 'trn1.32xlarge'");
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
	check_refused("version: 1\nname: x\ncommand: [torchrun, --nproc_per_node, 3, a.py]\n"
		      "resources: {instance: trn1.2xlarge}\n",
		      "spec.yaml:3:39: 3 workers on a node, but 'trn1.2xlarge' has 2 cores");
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
		cmocka_unit_test(the_lines_of_our_file_are_its_yaml),
		cmocka_unit_test(ours_has_no_mistake),
		cmocka_unit_test(an_accelerator_has_its_figures),
		cmocka_unit_test(the_figures_are_aws_own),
		cmocka_unit_test(names_of_sagemaker),
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
