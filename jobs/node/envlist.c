/* Builds the command's environment and expands what refers to it: see envlist.h. */
#include "jobs/node/envlist.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "jobs/base/text.h"
#include "jobs/base/variable.h"
#include "jobs/node/fetch.h"
#include "jobs/node/network.h"

#define REFERENCE      "${STOKER_"
#define EXEC_TIMEOUT_S "600" /* as in the SDK's samples */

static char **find(const struct envlist *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->list[i], name, len) == 0 && env->list[i][len] == '=')
			return &env->list[i];
	return NULL;
}

void envlist_put(struct envlist *env, const char *name, const char *value)
{
	char **there = find(env, name);

	if (there) {
		free(*there);
		*there = mem_format("%s=%s", name, value);
		return;
	}
	env->list = mem_grow(env->list, env->count + 2, sizeof *env->list);
	env->list[env->count++] = mem_format("%s=%s", name, value);
	env->list[env->count] = NULL;
}

void envlist_drop(struct envlist *env, const char *name)
{
	char **there = find(env, name);

	if (!there)
		return;
	free(*there);
	/* The last one, or itself, in its place. */
	*there = env->list[--env->count];
	env->list[env->count] = NULL;
}

const char *envlist_get(const struct envlist *env, const char *name)
{
	char **there = find(env, name);

	return there ? strchr(*there, '=') + 1 : NULL;
}

void envlist_release(struct envlist *env)
{
	auto_strv(&env->list);
	*env = (struct envlist){ 0 };
}

/* A value of NULL leaves the variable out. */
static void put(struct envlist *env, enum variable variable, const char *value)
{
	if (value)
		envlist_put(env, variables[variable].name, value);
}

static void put_number(struct envlist *env, enum variable variable, int64_t value)
{
	AUTO(auto_free) char *text = mem_format("%lld", (long long)value);

	put(env, variable, text);
}

/* Cores of an accelerator, or where the order knows of none, the CPUs that we
 * may use. */
static int64_t cores(const struct task *task)
{
	int64_t ordered = js_int(task->order, "cores", 0);
	cpu_set_t cpus;

	if (ordered > 0)
		return ordered;
	return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

/* What authors of training scripts may rely on. */
static void put_stoker(struct envlist *env, const struct task *task, const struct claim *claim)
{
	const json_t *order = task->order;
	AUTO(auto_free) char *resumed = fetch_resumed(task);
	AUTO(auto_free) char *cache = fetch_cache(task);
	int64_t workers = js_int(json_object_get(order, "compile"), "workers", 0);

	put(env, VAR_PHASE, task->phase);
	put(env, VAR_RUN, task->run);
	put_number(env, VAR_ATTEMPT, task->attempt);
	put(env, VAR_INIT_FROM, js_str(order, "init_from"));
	put(env, VAR_RESUME_FROM, resumed);
	put(env, VAR_CHECKPOINT_DIR, task->checkpoint);
	put(env, VAR_OUTPUT_DIR, task->output);
	put(env, VAR_DATA_MANIFEST, js_str(order, "data_manifest"));
	put_number(env, VAR_NODES, task->nodes);
	put_number(env, VAR_NODE_RANK, task->node);
	put_number(env, VAR_CORES, cores(task));
	put(env, VAR_CACHE_DIR, cache);
	if (workers > 0)
		put_number(env, VAR_COMPILE_WORKERS, workers);
	put(env, VAR_MASTER_ADDR, claim->master_addr);
	put_number(env, VAR_MASTER_PORT, claim->master_port);
	put(env, VAR_TOKEN, *task->token ? task->token : NULL);
}

/* libfabric before 5.15 of the kernel cannot tell registered memory from a child's copy. */
static bool fork_is_unsafe(void)
{
	struct utsname kernel;
	int major, minor;

	return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
	       (major < 5 || (major == 5 && minor < 15));
}

/* How nodes on machines of their own see each other: which interface the libraries take to
 * meet over (they would take the first, which may lead nowhere), and EFA where the order
 * says that the machines have it. */
static void put_network(struct envlist *env, const struct task *task, const struct claim *claim)
{
	AUTO(auto_free) char *interface = NULL;
	AUTO(auto_free) char *root = NULL;

	if (task->nodes < 2 || !task->platform.apart)
		return;
	interface = network_interface(&task->platform, NETWORK_FOLDER);
	put(env, VAR_CCOM_IFNAME, interface);
	put(env, VAR_NCCL_IFNAME, interface);
	put(env, VAR_GLOO_IFNAME, interface);
	if (!js_bool(task->order, "efa", false))
		return;
	root = network_join(claim->master_addr, claim->master_port + 1);
	put(env, VAR_FI_PROVIDER, "efa");
	put(env, VAR_FI_EFA_RDMA, "1");
	if (fork_is_unsafe())
		put(env, VAR_FI_EFA_FORK, "1");
	put(env, VAR_NEURON_ROOT_COMM, root);
}

/* What the runtime does where nothing is said is told in three ways, 2, 30 and 600 seconds: too
 * little for a long graph, whose words then are those of a hang. */
static void put_runtime(struct envlist *env, const struct task *task)
{
	const json_t *compile = json_object_get(task->order, "compile");

	if (js_int(task->order, "cores", 0) > 0 || js_is(compile, "kind", "neuron"))
		put(env, VAR_NEURON_EXEC_TIMEOUT, EXEC_TIMEOUT_S);
}

/* The same for launchers. torchrun takes each of its options from PET_ and the
 * option's name in capitals (torch/distributed/argparse_util.py). How many
 * processes it starts on a node stays its own affair. */
static void put_launcher(struct envlist *env, const struct task *task, const struct claim *claim)
{
	put(env, VAR_PLAIN_MASTER_ADDR, claim->master_addr);
	put_number(env, VAR_PLAIN_MASTER_PORT, claim->master_port);
	put_number(env, VAR_PET_NNODES, task->nodes);
	put_number(env, VAR_PET_NODE_RANK, task->node);
	put(env, VAR_PET_MASTER_ADDR, claim->master_addr);
	put_number(env, VAR_PET_MASTER_PORT, claim->master_port);
}

/* The order's variables whose names begin with `prefix`. */
static int put_expanded(struct envlist *env, const struct envlist *known, const struct task *task,
			const char *prefix, struct err **err)
{
	const char *name;
	json_t *value;

	json_object_foreach (json_object_get(task->order, "env"), name, value) {
		AUTO(auto_free) char *where = mem_format("env.%s", name);
		AUTO(auto_free) char *expanded = NULL;

		if (!text_starts(name, prefix))
			continue;
		if (envlist_expand(known, json_string_value(value), where, &expanded, err) < 0)
			return -1;
		envlist_put(env, name, expanded);
	}
	return 0;
}

/* `env` holds the STOKER_* already: the values refer to them, and to the
 * hyperparameters. */
static int put_ordered(struct envlist *env, const struct task *task, struct err **err)
{
	AUTO(envlist_release) struct envlist known = { 0 };
	const char *name;
	json_t *value;

	for (size_t i = 0; i < env->count; i++) {
		AUTO(auto_free) char *ours = mem_copy(env->list[i]);
		char *equals = strchr(ours, '=');

		*equals = '\0';
		envlist_put(&known, ours, equals + 1);
	}
	/* One may refer to another, wherever that stands. */
	json_object_foreach (json_object_get(task->order, "env"), name, value)
		if (text_starts(name, "STOKER_HP_"))
			envlist_put(&known, name, json_string_value(value));
	if (put_expanded(&known, &known, task, "STOKER_HP_", err) < 0)
		return -1;
	return put_expanded(env, &known, task, "", err);
}

static int put_secrets(struct envlist *env, const struct task *task, struct err **err)
{
	const json_t *name;
	size_t i;

	json_array_foreach (json_object_get(task->order, "secrets"), i, name) {
		AUTO(auto_free)
		char *apart = mem_format(ORDER_SECRET "%s", json_string_value(name));
		const char *value = getenv(apart);

		if (!value)
			value = getenv(json_string_value(name));
		if (!value)
			return err_set(err, EXIT_REFUSED, "the secret '%s' did not reach the node",
				       json_string_value(name));
		envlist_put(env, json_string_value(name), value);
	}
	return 0;
}

int envlist_build(const struct task *task, const struct claim *claim, struct envlist *ret,
		  struct err **err)
{
	AUTO(envlist_release) struct envlist env = { 0 };

	for (enum variable i = 0; i < VAR_COUNT; i++)
		if (variables[i].uses & VAR_PASSED)
			put(&env, i, getenv(variables[i].name));
	put_launcher(&env, task, claim);
	put_network(&env, task, claim);
	put_runtime(&env, task);
	put_stoker(&env, task, claim);
	if (put_ordered(&env, task, err) < 0 || put_secrets(&env, task, err) < 0)
		return -1;
	/* Once more: what we promise to scripts is nothing to override. */
	put_stoker(&env, task, claim);
	*ret = env;
	env = (struct envlist){ 0 };
	return 0;
}

int envlist_command(const struct task *task, const struct envlist *env, char ***ret,
		    struct err **err)
{
	const json_t *command = json_object_get(task->order, "command"), *text;
	AUTO(auto_strv) char **argv = mem_zero(json_array_size(command) + 1, sizeof *argv);
	size_t i;

	json_array_foreach (command, i, text)
		if (envlist_expand(env, json_string_value(text), "the command", &argv[i], err) < 0)
			return -1;
	*ret = TAKE(argv);
	return 0;
}

/* The reference at `text` (which begins with REFERENCE): its name, its fallback
 * or NULL, and its length. False if it is no whole reference. */
static bool parse_reference(const char *text, char **ret_name, char **ret_fallback, size_t *ret_len)
{
	const char *name = text + 2, *end, *close;

	end = name + strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	close = strchr(end, '}');
	if (!close || (close != end && strncmp(end, ":-", 2) != 0))
		return false;
	*ret_name = mem_copy_n(name, (size_t)(end - name));
	*ret_fallback = close == end ? NULL : mem_copy_n(end + 2, (size_t)(close - end - 2));
	*ret_len = (size_t)(close - text) + 1;
	return true;
}

/* How many dollar signs stand right before `at`. */
static size_t dollars_before(const char *text, const char *at)
{
	size_t count = 0;

	while (at - count > text && *(at - count - 1) == '$')
		count++;
	return count;
}

int envlist_expand(const struct envlist *env, const char *text, const char *where, char **ret,
		   struct err **err)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	const char *at;

	while ((at = strstr(text, REFERENCE))) {
		AUTO(auto_free) char *name = NULL;
		AUTO(auto_free) char *fallback = NULL;
		size_t len, before = dollars_before(text, at);
		const char *value;

		sb_add(&out, text, (size_t)(at - text) - before);
		for (size_t i = 0; i < (before + 1) / 2; i++)
			sb_addc(&out, '$');
		if (before % 2) {
			text = at + 1;
			continue;
		}
		if (!parse_reference(at, &name, &fallback, &len)) {
			sb_adds(&out, REFERENCE);
			text = at + strlen(REFERENCE);
			continue;
		}
		value = envlist_get(env, name);
		if (fallback && (!value || !*value))
			value = fallback;
		if (!value) {
			err_set(err, EXIT_SPEC, "'%s' is not set here, but %s refers to it", name,
				where);
			return err_hint(err, "write ${%s:-text} where it may be absent", name);
		}
		sb_adds(&out, value);
		text = at + len;
	}
	sb_adds(&out, text);
	*ret = sb_take(&out);
	return 0;
}
