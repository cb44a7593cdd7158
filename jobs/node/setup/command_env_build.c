/* Fills the command's environment: see command_env.h. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/node/setup/container_env.h"
#include "jobs/node/setup/network.h"
#include "jobs/node/tasks/node_task.h"

#define EXEC_TIMEOUT_S "600" /* as in the SDK's samples */

/* Leaves the variable out if the value is NULL, and VAR_COUNT. */
static void put_variable(struct command_env *env, enum variable variable, const char *value)
{
	if (value && variable < VAR_COUNT)
		command_env_put(env, variable_rows[variable].name, value);
}

static void put_number(struct command_env *env, enum variable variable, int64_t value)
{
	AUTO(auto_free) char *text = mem_format("%lld", (long long)value);

	put_variable(env, variable, text);
}

/* Returns the cores of the accelerator, or if the order has none, the CPUs that we may use. */
static int64_t cores(const struct agent_config *config)
{
	int64_t ordered = config->order->cores;
	cpu_set_t cpus;

	if (ordered > 0)
		return ordered;
	return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

/* Variables of a task of evaluate or infer. */
static void put_task(struct command_env *env, const struct agent_config *config)
{
	const struct node_task *task = config->task;
	AUTO(auto_free) char *model = agent_config_model(config, task->role);

	put_variable(env, VAR_OUTPUT_DIR, config->task_output);
	put_variable(env, VAR_DATA_MANIFEST, config->task_manifest);
	put_variable(env, VAR_MODEL, model);
	put_variable(env, VAR_MODEL_ROLE, task->role);
	if (task->repeat > 0)
		put_number(env, VAR_REPEAT, task->repeat);
	if (task->shard >= 0) {
		put_number(env, VAR_SHARD, task->shard);
		put_number(env, VAR_SHARDS, config->order->tasks.shards);
	}
}

/* Variables that authors of training scripts may rely on. */
static void put_stoker(struct command_env *env, const struct agent_config *config,
		       const struct claim *claim)
{
	const struct order *order = config->order;
	AUTO(auto_free) char *resumed = agent_config_resumed(config);
	AUTO(auto_free) char *cache = agent_config_cache(config);
	AUTO(auto_free) char *manifest = agent_config_data_manifest(config);
	AUTO(auto_free) char *data = agent_config_data_dir(config);
	AUTO(auto_free) char *parent = agent_config_init_from(config);
	int64_t workers = order->compile.workers;

	put_variable(env, VAR_PHASE, config->phase);
	put_variable(env, VAR_STAGE, order->stage);
	put_variable(env, VAR_RUN, config->run);
	put_number(env, VAR_ATTEMPT, config->attempt);
	put_variable(env, VAR_INIT_FROM, parent);
	put_variable(env, VAR_RESUME_FROM, resumed);
	put_variable(env, VAR_CHECKPOINT_DIR, config->checkpoint);
	put_variable(env, VAR_OUTPUT_DIR, config->output);
	put_variable(env, VAR_DATA_MANIFEST, manifest);
	put_variable(env, VAR_DATA_DIR, data);
	put_number(env, VAR_NODES, config->nodes);
	put_number(env, VAR_NODE_RANK, config->node);
	put_number(env, VAR_CORES, cores(config));
	put_variable(env, VAR_CACHE_DIR, cache);
	if (workers > 0)
		put_number(env, VAR_COMPILE_WORKERS, workers);
	put_variable(env, VAR_MASTER_ADDR, claim->master_addr);
	put_number(env, VAR_MASTER_PORT, claim->master_port);
	if (config->task)
		put_task(env, config);
	put_variable(env, VAR_TOKEN, *config->token ? config->token : NULL);
}

/* True for kernels before 5.15: libfabric cannot tell registered memory from a child's copy
 * there. */
static bool fork_is_unsafe(void)
{
	struct utsname kernel;
	int major, minor;

	return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
	       (major < 5 || (major == 5 && minor < 15));
}

/* Network of nodes on machines of their own: the interface that the libraries meet over (they would
 * take the first, which may lead nowhere), and EFA if the order says that the machines have it. */
static void put_network(struct command_env *env, const struct agent_config *config,
			const struct claim *claim)
{
	const struct accelerator *kind = agent_config_accelerator(config);
	AUTO(auto_free) char *interface = NULL;
	AUTO(auto_free) char *root = NULL;

	if (config->nodes < 2 || !config->platform.apart)
		return;
	interface = network_interface(&config->platform, NETWORK_FOLDER);
	put_variable(env, VAR_GLOO_IFNAME, interface);
	if (kind)
		put_variable(env, kind->interface, interface);
	if (!config->order->efa)
		return;
	root = network_join(claim->master_addr, claim->master_port + 1);
	put_variable(env, VAR_FI_PROVIDER, "efa");
	if (kind && kind->rdma)
		put_variable(env, VAR_FI_EFA_RDMA, "1");
	if (fork_is_unsafe())
		put_variable(env, VAR_FI_EFA_FORK, "1");
	if (kind)
		put_variable(env, kind->meeting, root);
}

/* The runtime's default is documented in three ways, 2, 30 and 600 seconds: too little for a long
 * graph, and the error then reads like a hang. */
static void put_runtime(struct command_env *env, const struct agent_config *config)
{
	const struct accelerator *kind = agent_config_accelerator(config);

	if (kind)
		put_variable(env, kind->timeout, EXEC_TIMEOUT_S);
}

/* Variables for launchers. torchrun takes each of its options from PET_ and the option's name in
 * capitals (torch/distributed/argparse_util.py). The order's env says how many processes it
 * starts on a node. */
static void put_launcher(struct command_env *env, const struct agent_config *config,
			 const struct claim *claim)
{
	put_variable(env, VAR_PLAIN_MASTER_ADDR, claim->master_addr);
	put_number(env, VAR_PLAIN_MASTER_PORT, claim->master_port);
	put_number(env, VAR_PET_NNODES, config->nodes);
	put_number(env, VAR_PET_NODE_RANK, config->node);
	put_variable(env, VAR_PET_MASTER_ADDR, claim->master_addr);
	put_number(env, VAR_PET_MASTER_PORT, claim->master_port);
}

/* Puts the order's variables with names that begin with `prefix`, expanded. */
static int put_expanded(struct command_env *env, const struct command_env *known,
			const struct agent_config *config, const char *prefix, struct err **err)
{
	const char *name;
	json_t *value;

	json_object_foreach (config->order->env, name, value) {
		AUTO(auto_free) char *where = mem_format("env.%s", name);
		AUTO(auto_free) char *expanded = NULL;

		if (!text_starts(name, prefix))
			continue;
		if (command_env_expand(known, json_string_value(value), where, &expanded, err) < 0)
			return -1;
		command_env_put(env, name, expanded);
	}
	return 0;
}

/* Puts the order's variables. `env` holds the STOKER_* already: the values refer to them, and to
 * the hyperparameters. */
static int put_ordered(struct command_env *env, const struct agent_config *config, struct err **err)
{
	AUTO(command_env_release) struct command_env known = { 0 };
	const char *name;
	json_t *value;

	for (size_t i = 0; i < env->count; i++) {
		AUTO(auto_free) char *ours = mem_copy(env->list[i]);
		char *equals = strchr(ours, '=');

		*equals = '\0';
		command_env_put(&known, ours, equals + 1);
	}
	/* A hyperparameter may refer to another, in any order. */
	json_object_foreach (config->order->env, name, value)
		if (text_starts(name, "STOKER_HP_") ||
		    strcmp(name, variable_rows[VAR_WORKERS].name) == 0)
			command_env_put(&known, name, json_string_value(value));
	if (put_expanded(&known, &known, config, "STOKER_HP_", err) < 0)
		return -1;
	return put_expanded(env, &known, config, "", err);
}

static int put_secrets(struct command_env *env, const struct agent_config *config, struct err **err)
{
	const json_t *name;
	size_t i;

	json_array_foreach (config->order->secrets, i, name) {
		AUTO(auto_free)
		char *apart = mem_format(ORDER_SECRET "%s", json_string_value(name));
		const char *value = getenv(apart);

		if (!value)
			value = getenv(json_string_value(name));
		if (!value)
			return err_set(err, EXIT_REFUSED, "the secret '%s' did not reach the node",
				       json_string_value(name));
		command_env_put(env, json_string_value(name), value);
	}
	return 0;
}

int command_env_build(const struct agent_config *config, const struct claim *claim,
		      struct command_env *ret, struct err **err)
{
	AUTO(command_env_release) struct command_env env = { 0 };

	if (config->platform.container)
		container_env_put(&env, config);
	for (enum variable i = 0; !config->platform.container && i < VAR_COUNT; i++)
		if (variable_rows[i].uses & VAR_PASSED)
			put_variable(&env, i, getenv(variable_rows[i].name));
	put_launcher(&env, config, claim);
	put_network(&env, config, claim);
	put_runtime(&env, config);
	put_stoker(&env, config, claim);
	if (put_ordered(&env, config, err) < 0 || put_secrets(&env, config, err) < 0)
		return -1;
	/* Once more: nothing may override what scripts are promised. */
	put_stoker(&env, config, claim);
	*ret = env;
	env = (struct command_env){ 0 };
	return 0;
}
