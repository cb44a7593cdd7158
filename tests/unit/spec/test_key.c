/* What belongs to the graph key: too little would make a false warm. */
#include "tests/unit/spec/spec_fixture.h"

#include "jobs/base/hash.h"
#include "jobs/spec/fields/names.h"

#define JAX HEAD "compile: {kind: jax, cache_url: ./c, max_steps: 5}\n"

static json_t *key_of(const char *text, char *const *sets)
{
	AUTO(spec_freep) struct spec *spec = good_spec(text, sets);

	return spec_key_ingredients(spec);
}

/* Do two specs have one graph key? */
static bool alike(const char *text, const char *set)
{
	json_auto_t *before = key_of(text, NULL);
	json_auto_t *after = key_of(text, (char *[]){ (char *)(uintptr_t)set, NULL });

	return json_equal(before, after);
}

static void what_the_compiler_sees_changes_the_key(void **state)
{
	static const char *const sets[] = {
		"command=[python3, other.py]", "hyperparameters.batch_size=64",
		"hyperparameters.flag=true",   "env.XLA_FLAGS=--xla_cpu_enable_fast_math=true",
		"env.NEURON_CC_FLAGS=-O2",     "env.OMP_NUM_THREADS=3",
		"resources.nodes=2",           "compile.kind=none",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(sets); i++)
		if (alike(JAX, sets[i]))
			fail_msg("%s does not change the key", sets[i]);
}

static void what_changes_no_graph_leaves_the_key_alone(void **state)
{
	static const char *const sets[] = {
		"hyperparameters.lr=1.0e-3",
		"hyperparameters.max_steps=7",
		"hyperparameters.seed=7",
		"hyperparameters.absent=null",
		"compile.max_steps=9",
		"compile.overrides.hyperparameters.batch_size=1",
		"compile.overrides.env.XLA_FLAGS=--x",
		"compile.timeout=3h",
		"env.NEURON_RT_EXEC_TIMEOUT=600",
		"env.FI_PROVIDER=efa",
		"env.WANDB_PROJECT=p",
		"env.LOG_LEVEL=debug",
		"secrets.WANDB_API_KEY=env:KEY",
		"retry.attempts=3",
		"name=other",
		"tags.team=x",
		"workspace=/elsewhere",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(sets); i++)
		if (!alike(JAX, sets[i]))
			fail_msg("%s changes the key", sets[i]);
}

static void ignore_takes_patterns_and_replaces_the_default(void **state)
{
	static const char text[] =
		JAX "hyperparameters: {lr: 1.0e-3, eval_steps: 5, save_steps: 6}\n";
	json_auto_t *key =
		key_of(text, (char *[]){ "compile.ignore=[\"hyperparameters.*_steps\"]", NULL });

	(void)state;
	assert_non_null(json_object_get(key, "hyperparameters.lr"));
	assert_null(json_object_get(key, "hyperparameters.eval_steps"));
	assert_null(json_object_get(key, "hyperparameters.save_steps"));
}

static void numbers_count_as_they_are_written(void **state)
{
	json_auto_t *key = key_of(JAX "hyperparameters: {wd: 1.0e-2, n: 32}\n", NULL);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(key, "hyperparameters.wd")),
			    "1.0e-2");
	assert_string_equal(json_string_value(json_object_get(key, "hyperparameters.n")), "32");
}

static void values_under_secret_names_are_hashes(void **state)
{
	json_auto_t *key = key_of(JAX "env: {MY_TOKEN: hunter2}\n", NULL);
	const char *value = json_string_value(json_object_get(key, "env.MY_TOKEN"));
	char hex[SHA256_HEX];

	(void)state;
	hash_sha256_hex("hunter2", 7, hex);
	assert_int_equal(strncmp(value, "sha256:", 7), 0);
	assert_string_equal(value + 7, hex);
}

static void wrapper_flags_never_reach_the_compiler(void **state)
{
	json_auto_t *key =
		key_of(JAX "env: {NEURON_CC_FLAGS: \"--cache_dir s3://b/c  -O1 --no_cache "
			   "--log_level=INFO --model-type generic --retry_failed_compilation\"}\n",
		       NULL);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(key, "env.NEURON_CC_FLAGS")),
			    "--model-type generic -O1");
}

static void only_the_family_of_an_instance_counts(void **state)
{
	json_auto_t *key = key_of(JAX "resources: {instance: ml.trn1.32xlarge}\n", NULL);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(key, "resources.instance")), "trn1");
}

static void names_are_judged_by_whole_words(void **state)
{
	(void)state;
	assert_true(names_secret("WANDB_API_KEY"));
	assert_true(names_secret("hf-token"));
	assert_true(names_secret("AWS_SECRET_ACCESS_KEY"));
	assert_true(names_secret("db.password"));
	assert_true(names_secret("PGPASSWORD"));
	assert_true(names_secret("SLACK_WEBHOOK_URL"));
	assert_false(names_secret("TOKENIZERS_PARALLELISM"));
	assert_false(names_secret("max_tokens"));
	assert_false(names_secret("KEYBOARD"));
	assert_false(names_secret("monkey"));
	assert_non_null(names_reserved("STOKER_PHASE"));
	assert_null(names_reserved("MY_STOKER_PHASE"));
	assert_non_null(names_reserved("LD_PRELOAD"));
	assert_null(names_reserved("LD_LIBRARY_PATH"));
	assert_true(names_neutral("NEURON_RT_NUM_CORES"));
	assert_false(names_neutral("NEURON_RT_VIRTUAL_CORE_SIZE"));
	assert_false(names_neutral("NEURON_FUSE_SOFTMAX"));
	assert_false(names_neutral("XLA_FLAGS"));
	assert_false(names_neutral("JAX_ENABLE_X64"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_compiler_sees_changes_the_key),
		cmocka_unit_test(what_changes_no_graph_leaves_the_key_alone),
		cmocka_unit_test(ignore_takes_patterns_and_replaces_the_default),
		cmocka_unit_test(numbers_count_as_they_are_written),
		cmocka_unit_test(values_under_secret_names_are_hashes),
		cmocka_unit_test(wrapper_flags_never_reach_the_compiler),
		cmocka_unit_test(only_the_family_of_an_instance_counts),
		cmocka_unit_test(names_are_judged_by_whole_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
