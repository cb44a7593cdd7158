/* The environment that a command finds: of its container, of the order, of the network and of
 * secrets; and what is said where a part of it cannot be had. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/setup/command_env.h"
#include "jobs/node/setup/compiler.h"
#include "jobs/node/setup/container_env.h"
#include "jobs/node/setup/secrets.h"
#include "jobs/store/message.h"

static int begin_clean(void **state)
{
	clearenv();
	return place_make(state);
}

static const struct claim claim = { .master_addr = (char[]){ "10.0.0.7" }, .master_port = 29500 };

static void build(const struct agent_config *config, struct command_env *ret)
{
	AUTO(err_freep) struct err *err = NULL;

	must(command_env_build(config, &claim, ret, &err), &err);
}

static void assert_value(const struct command_env *env, const char *name, const char *wanted)
{
	const char *value = command_env_get(env, name);

	if (!wanted ? value != NULL : !value || strcmp(value, wanted) != 0)
		fail_msg("%s is %s", name, value ? value : "not set");
}

/* ---- a container ---- */

static void a_command_inherits_its_container_but_what_is_ours_or_steers(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(command_env_release) struct command_env env = { 0 };
	json_t *order = order_for(*state, "true");

	setenv("LD_LIBRARY_PATH", "/opt/aws/neuron/lib", 1);
	setenv("STOKER_WORK", "/elsewhere", 1);
	setenv("NEURON_CC_FLAGS", "--of-the-machine", 1);
	setenv("XLA_FLAGS", "--changed", 1);
	setenv("NEURON_FUSE_SOFTMAX", "1", 1);
	setenv("PT_XLA_DEBUG", "1", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	putenv((char *)"=no name");
	js_put(order, "compile", json_pack("{s:s}", "kind", "neuron"));
	js_put(order, "env", json_pack("{s:s}", "PT_XLA_DEBUG", "2"));
	js_put(order, "image_env",
	       json_pack("{s:s, s:s}", "XLA_FLAGS", "--of-the-image", "NEURON_FUSE_SOFTMAX", "1"));
	load(&config, *state, order, "0");
	config.platform.container = true;
	build(&config, &env);
	assert_value(&env, "LD_LIBRARY_PATH", "/opt/aws/neuron/lib");
	assert_value(&env, "STOKER_WORK", NULL);
	assert_value(&env, "NEURON_CC_FLAGS", NULL);
	assert_value(&env, "XLA_FLAGS", "--of-the-image");
	assert_value(&env, "NEURON_FUSE_SOFTMAX", "1");
	assert_value(&env, "PT_XLA_DEBUG", "2");
	assert_value(&env, "AWS_DEFAULT_REGION", "eu-west-1");
}

static json_t *environment_reported(const struct agent_config *config)
{
	AUTO(node_report_release) struct node_report said = { 0 };
	json_auto_t *all = NULL;

	container_env_report(config, &said);
	all = message_encode(node_report_message, &said);
	return json_incref(json_object_get(all, "environment"));
}

static void what_was_withheld_or_set_back_is_reported_by_name(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	json_auto_t *none = NULL, *some = NULL, *unknown = NULL;
	json_t *order = order_for(*state, "true");

	setenv("HOME", "/root", 1);
	js_put(order, "compile", json_pack("{s:s}", "kind", "jax"));
	js_put(order, "image_env", json_pack("{s:s}", "XLA_FLAGS", "--of-the-image"));
	load(&config, *state, order, "0");
	config.platform.container = true;
	none = environment_reported(&config);
	assert_null(none);
	setenv("XLA_FLAGS", "--changed", 1);
	setenv("JAX_PLATFORMS", "cpu", 1);
	some = environment_reported(&config);
	assert_string_equal(json_string_value(json_array_get(json_object_get(some, "withheld"), 0)),
			    "JAX_PLATFORMS");
	assert_string_equal(json_string_value(json_array_get(json_object_get(some, "set_back"), 0)),
			    "XLA_FLAGS");
	assert_true(js_bool(some, "image_known", false));
	config.platform.container = false;
	unknown = environment_reported(&config);
	assert_null(unknown);
}

/* ---- the order ---- */

static void a_hyperparameter_that_refers_to_nothing_is_named(void **state)
{
	static const struct {
		const char *name, *words;
	} rows[] = {
		{ "STOKER_HP_LR", "env.STOKER_HP_LR" },
		{ "LR", "env.LR" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(command_env_release) struct command_env env = { 0 };
		AUTO(err_freep) struct err *err = NULL;
		json_t *order = order_for(*state, "true");

		js_put(order, "env", json_pack("{s:s}", rows[i].name, "${STOKER_NOWHERE}"));
		load(&config, *state, order, "0");
		assert_int_equal(command_env_build(&config, &claim, &env, &err), -1);
		assert_has(err->message, "'STOKER_NOWHERE' is not set here");
		assert_has(err->message, rows[i].words);
	}
}

static void what_the_order_sets_more_of_reaches_the_command(void **state)
{
	AUTO(auto_free) char *cache = mem_format("dir:%s/cache", ((struct place *)*state)->root);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(command_env_release) struct command_env env = { 0 };
	json_t *order = order_for(*state, "true");

	js_put(order, "compile",
	       json_pack("{s:s, s:s, s:i}", "kind", "jax", "cache", cache, "workers", 3));
	js_put_str(order, "data_manifest", "/data/manifest.json");
	load(&config, *state, order, "0");
	build(&config, &env);
	assert_value(&env, "STOKER_COMPILE_WORKERS", "3");
	assert_value(&env, "STOKER_DATA_MANIFEST", "/data/manifest.json");
	assert_has(command_env_get(&env, "STOKER_CACHE_DIR"), "node-0/cache");
	assert_true(atoi(command_env_get(&env, "STOKER_CORES")) > 0); /* its CPUs */
	assert_value(&env, "STOKER_TOKEN", NULL);
	assert_value(&env, "NEURON_RT_EXEC_TIMEOUT", NULL);
}

/* ---- several machines ---- */

static void nodes_on_machines_of_their_own_know_their_way(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(command_env_release) struct command_env plain = { 0 };
	AUTO(command_env_release) struct command_env efa = { 0 };
	json_t *order = order_for(*state, "true");

	js_put(order, "nodes", json_integer(2));
	load(&config, *state, order, "1");
	config.platform.apart = true;
	config.platform.interface = mem_copy("lo");
	build(&config, &plain);
	assert_value(&plain, "GLOO_SOCKET_IFNAME", "lo");
	assert_value(&plain, "FI_PROVIDER", NULL);
	config.order->efa = true;
	build(&config, &efa);
	assert_value(&efa, "FI_PROVIDER", "efa");
	assert_value(&efa, "PET_NODE_RANK", "1");
}

/* Variables that are for one kind alone, on two nodes with EFA: the order of an earlier driver
 * names no kind, and only Neuron's cores. */
static void each_kind_of_accelerator_gets_its_own_variables(void **state)
{
	static const struct {
		const char *kind;
		int cores;
		const char *ccom, *nccl, *rdma, *root, *timeout;
	} rows[] = {
		{ "neuron", 32, "lo", NULL, "1", "10.0.0.7:29501", "600" },
		{ NULL, 32, "lo", NULL, "1", "10.0.0.7:29501", "600" },
		{ "nvidia", 8, NULL, "lo", NULL, NULL, NULL },
		{ NULL, 0, NULL, NULL, NULL, NULL, NULL },
		{ "tomorrow's", 4, NULL, NULL, NULL, NULL, NULL },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(command_env_release) struct command_env env = { 0 };
		json_t *order = order_for(*state, "true");

		js_put(order, "nodes", json_integer(2));
		js_put(order, "efa", json_true());
		js_put_str(order, "accelerator", rows[i].kind);
		if (rows[i].cores > 0)
			js_put(order, "cores", json_integer(rows[i].cores));
		load(&config, *state, order, "1");
		config.platform.apart = true;
		config.platform.interface = mem_copy("lo");
		build(&config, &env);
		assert_value(&env, "FI_PROVIDER", "efa");
		assert_value(&env, "GLOO_SOCKET_IFNAME", "lo");
		assert_value(&env, "CCOM_SOCKET_IFNAME", rows[i].ccom);
		assert_value(&env, "NCCL_SOCKET_IFNAME", rows[i].nccl);
		assert_value(&env, "FI_EFA_USE_DEVICE_RDMA", rows[i].rdma);
		assert_value(&env, "NEURON_RT_ROOT_COMM_ID", rows[i].root);
		assert_value(&env, "NEURON_RT_EXEC_TIMEOUT", rows[i].timeout);
	}
}

/* ---- secrets ---- */

static int fetch(const struct place *place, const char *from, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	json_t *order = order_for(place, "true");

	if (from)
		js_put(order, "secret_from", json_pack("{s:s}", "WANDB_API_KEY", from));
	load(&config, place, order, "0");
	return secrets_fetch(&config, err);
}

static void a_secret_that_lies_nowhere_a_job_can_read_is_named(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	must(fetch(*state, NULL, &err), &err);
	assert_int_equal(fetch(*state, "env:WANDB", &err), -1);
	assert_string_equal(err->message, "secret 'WANDB_API_KEY': no job on AWS can read it from "
					  "'env:WANDB'");
	assert_has(err->hint, "Secrets Manager");
}

/* The set-up has no keys, and no service to ask for some. */
static void a_secret_that_cannot_be_read_is_named_with_its_place(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("HOME", ((struct place *)*state)->root, 1);
	assert_int_equal(fetch(*state, "secretsmanager:wandb", &err), -1);
	assert_has(err->message, "secret 'WANDB_API_KEY' ('secretsmanager:wandb')");
	assert_null(getenv(ORDER_SECRET "WANDB_API_KEY"));
}

static void a_secret_of_the_agents_own_goes_before_the_environments(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(command_env_release) struct command_env env = { 0 };
	AUTO(command_env_release) struct command_env none = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_t *order = order_for(*state, "true");

	js_put(order, "secrets", json_pack("[s]", "KEY"));
	load(&config, *state, order, "0");
	assert_int_equal(command_env_build(&config, &claim, &none, &err), -1);
	assert_has(err->message, "the secret 'KEY' did not reach the node");
	setenv("KEY", "the environment's", 1);
	setenv(ORDER_SECRET "KEY", "the agent's", 1);
	build(&config, &env);
	assert_value(&env, "KEY", "the agent's");
}

/* ---- the compiler ---- */

static void a_compiler_that_cannot_be_looked_for_is_unknown_and_no_failure(void **state)
{
	static const struct {
		const char *program, *words;
	} rows[] = {
		{ NULL, "the order names no program" },
		{ "${STOKER_NOWHERE}/python", "'STOKER_NOWHERE' is not set here" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(node_report_release) struct node_report said = { 0 };
		AUTO(command_env_release) struct command_env env = { 0 };
		AUTO(err_freep) struct err *err = NULL;
		json_t *order = order_for(*state, "true");

		js_put(order, "compile",
		       json_pack("{s:s, s:s*}", "kind", "jax", "program", rows[i].program));
		load(&config, *state, order, "0");
		command_env_put(&env, "PATH", "/nowhere");
		must(compiler_inspect(&config, &env, &said, &err), &err);
		assert_has(said.compiler.unknown, rows[i].words);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_clean, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_command_inherits_its_container_but_what_is_ours_or_steers),
		TEST(what_was_withheld_or_set_back_is_reported_by_name),
		TEST(a_hyperparameter_that_refers_to_nothing_is_named),
		TEST(what_the_order_sets_more_of_reaches_the_command),
		TEST(nodes_on_machines_of_their_own_know_their_way),
		TEST(each_kind_of_accelerator_gets_its_own_variables),
		TEST(a_secret_that_lies_nowhere_a_job_can_read_is_named),
		TEST(a_secret_that_cannot_be_read_is_named_with_its_place),
		TEST(a_secret_of_the_agents_own_goes_before_the_environments),
		TEST(a_compiler_that_cannot_be_looked_for_is_unknown_and_no_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
