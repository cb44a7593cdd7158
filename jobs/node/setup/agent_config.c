/* Reads and checks the order: see agent_config.h. */
#include "jobs/node/setup/agent_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/store/local_store_dir.h"
#include "jobs/store/store.h"

#define NODES_MAX 100000
/* Number of nodes up to which they hear of each other every two beats and a half; more nodes do so
 * more slowly. */
#define PEERS_FAST   16
#define PEERS_FAR_MS 30000 /* at least, where each look is a request */

static int bad(struct err **err, const char *member, const char *what)
{
	return err_set(err, EXIT_DEFECT, "the order's '%s' %s", member, what);
}

/* Names of variables have no "=" in them. */
static int check_env(json_t *env, const char *member, struct err **err)
{
	const char *name;
	json_t *value;

	json_object_foreach (env, name, value)
		if (!*name || strchr(name, '='))
			return bad(err, member, "holds an invalid variable");
	return 0;
}

/* True for a plain word: the nonce stands in log lines that readers take apart. */
static bool is_word(const char *text)
{
	return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789-_")] == '\0';
}

static int read_order(struct agent_config *config, const json_t *json, struct err **err)
{
	struct order *order = config->order = mem_zero(1, sizeof *order);

	if (!json_is_object(json) || js_int(json, "v", 0) != 1)
		return err_set(err, EXIT_DEFECT, "unknown version %lld of the order",
			       (long long)js_int(json, "v", 0));
	if (message_decode(order_message, json, order, err) < 0 ||
	    check_env(order->env, "env", err) < 0 ||
	    check_env(order->secret_from, "secret_from", err) < 0)
		return -1;
	if (json_array_size(order->command) == 0)
		return bad(err, "command", "is empty");
	return 0;
}

static int read_texts(struct agent_config *config, struct err **err)
{
	const struct order *order = config->order;
	const struct {
		const char *name, **ret, *text;
	} texts[] = {
		{ "run", &config->run, order->run },
		{ "phase", &config->phase, order->phase },
		{ "job", &config->job, order->job },
		{ "nonce", &config->nonce, order->nonce },
		{ "workspace", &config->workspace, order->workspace },
		{ "prefix", &config->prefix, order->prefix },
		{ "run_prefix", &config->run_prefix, order->run_prefix },
	};

	for (size_t i = 0; i < STK_LENGTH(texts); i++) {
		if (!*texts[i].text)
			return bad(err, texts[i].name, "is empty");
		*texts[i].ret = texts[i].text;
	}
	if (!is_word(config->nonce))
		return bad(err, "nonce", "is not a plain word");
	if (config->prefix[strlen(config->prefix) - 1] != '/')
		return bad(err, "prefix", "does not end in a slash");
	if (config->run_prefix[strlen(config->run_prefix) - 1] != '/')
		return bad(err, "run_prefix", "does not end in a slash");
	config->source = order->source;
	return 0;
}

static int read_numbers(struct agent_config *config, struct err **err)
{
	const struct order *order = config->order;

	if (order->attempt < 1)
		return bad(err, "attempt", "is not a number from 1 on");
	if (order->nodes < 1 || order->nodes > NODES_MAX)
		return bad(err, "nodes", "is out of range");
	config->attempt = order->attempt;
	config->nodes = (int)order->nodes;
	config->scratch = order->scratch;
	config->grace_ms = order->grace_ms;
	config->timeout_ms = order->timeout_ms;
	config->stop_ms = order->stop_ms;
	config->heartbeat_ms = order->heartbeat_ms;
	config->look_ms = order->look_ms;
	config->claim_wait_ms = order->claim_wait_ms;
	if (config->timeout_ms < 0)
		return bad(err, "timeout_ms", "is negative");
	if (config->stop_ms < 0)
		return bad(err, "stop_ms", "is negative");
	if (config->grace_ms < 0)
		return bad(err, "grace_ms", "is negative");
	if (config->heartbeat_ms < 1)
		return bad(err, "heartbeat_ms", "is not positive");
	if (config->look_ms < 1)
		return bad(err, "look_ms", "is not positive");
	return 0;
}

/* Reads this node's rank. On SageMaker the files that go with a workspace on S3 lie on its volume:
 * the rest of a container's disk is small. */
static int read_platform(struct agent_config *config, const char *rank, struct err **err)
{
	if (engine_env_read(rank, config->nodes, &config->platform, err) < 0)
		return -1;
	config->node = config->platform.node;
	config->restart = config->platform.restart < 0 ? 0 : config->platform.restart;
	if (strcmp(rank, ORDER_RANK_SAGEMAKER) == 0 &&
	    access(ENGINE_ENV_SAGEMAKER_ROOT, W_OK | X_OK) == 0)
		setenv(WORK_VARIABLE, ENGINE_ENV_SAGEMAKER_ROOT "/stoker", 0);
	return 0;
}

/* Sets the folders of this node, and of what the command leaves behind, as the order says. */
static void set_folders(struct agent_config *config, const char *folder)
{
	const char *checkpoint = config->order->checkpoint_dir;
	const char *output = config->order->output_dir;
	AUTO(auto_free) char *shared = fs_join(folder, "checkpoints");
	AUTO(auto_free) char *kept = NULL;

	config->dir = mem_format("%s/node-%d", folder, config->node);
	config->src = fs_join(config->dir, "src");
	if (!checkpoint && config->order->shared_checkpoints)
		checkpoint = shared;
	if (config->scratch || !checkpoint)
		checkpoint = config->scratch ? "scratch/checkpoints" : "checkpoints";
	config->outputs = config->scratch ? NULL : config->order->outputs;
	/* A workspace that is a directory holds the outputs from the beginning. Tasks have folders
	 * of their own. */
	if (!output && config->outputs && !config->object_workspace &&
	    !config->order->tasks.results)
		output = kept = mem_format("%s/%snode-%d", config->workspace, config->outputs,
					   config->node);
	if (config->scratch || !output)
		output = config->scratch ? "scratch/output" : "output";
	config->checkpoint = fs_join(config->dir, checkpoint);
	config->output = fs_join(config->dir, output);
}

/* Reads the order at a URL: all before the last slash is a store of its own. */
static int fetch_order(const char *url, json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(ORDER_MAX);
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *above = fs_dirname(url);
	int there;

	if (store_open(above, &store, err) < 0)
		return -1;
	there = store_get(store, fs_basename(url), ORDER_MAX, &text, NULL, err);
	if (there == 0)
		return err_set(err, EXIT_REFUSED, "not found");
	return there < 0 ? -1 : js_parse(text.text, text.len, "it", ret, err);
}

/* Gives the folder of the attempt, beneath which this node has its own. The caller frees it. */
static int find_folder(struct agent_config *config, const char *order, char **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *work = NULL;

	if (!config->object_workspace) {
		AUTO(auto_free) char *absolute = fs_absolute(order);

		*ret = fs_dirname(absolute);
		return 0;
	}
	if (store_open(config->workspace, &store, err) < 0 ||
	    local_store_dir_make(store, &work, err) < 0)
		return -1;
	*ret = fs_join(work, config->prefix);
	(*ret)[strlen(*ret) - 1] = '\0';
	return 0;
}

int agent_config_load(const char *order, const char *rank, struct agent_config *ret,
		      struct err **err)
{
	AUTO(agent_config_release)
	struct agent_config config = { .object_workspace = strstr(order, "://") != NULL };
	const char *token = getenv(ORDER_TOKEN);
	AUTO(auto_free) char *folder = NULL;
	json_auto_t *json = NULL;

	if ((config.object_workspace ? fetch_order(order, &json, err)
				     : js_load(order, ORDER_MAX, &json, err)) < 0)
		return err_wrap(err, "cannot read the order '%s'", order);
	if (read_order(&config, json, err) < 0 || read_texts(&config, err) < 0 ||
	    read_numbers(&config, err) < 0 || read_platform(&config, rank, err) < 0 ||
	    find_folder(&config, order, &folder, err) < 0)
		return -1;
	config.token = token ? token : "";
	set_folders(&config, folder);
	*ret = config;
	config = (struct agent_config){ 0 };
	return 0;
}

void agent_config_release(struct agent_config *config)
{
	if (config->order)
		order_release(config->order);
	free(config->order);
	engine_env_release(&config->platform);
	free(config->dir);
	free(config->src);
	free(config->checkpoint);
	free(config->output);
	*config = (struct agent_config){ 0 };
}

static int64_t share(const struct agent_config *config, int64_t parts, int64_t of)
{
	int64_t ms = config->stop_ms * parts / of;

	return config->stop_ms > 0 && ms < config->grace_ms ? ms : config->grace_ms;
}

int64_t agent_config_kill_ms(const struct agent_config *config)
{
	return share(config, 1, 2);
}

int64_t agent_config_keep_ms(const struct agent_config *config)
{
	return share(config, 3, 4);
}

int64_t agent_config_outputs_ms(const struct agent_config *config)
{
	return share(config, 5, 6);
}

int64_t agent_config_bring_ms(const struct agent_config *config)
{
	return share(config, 14, 15);
}

int64_t agent_config_exchange_ms(const struct agent_config *config)
{
	int64_t ms = config->heartbeat_ms * 5 / 2;

	if (config->object_workspace && ms < PEERS_FAR_MS)
		ms = PEERS_FAR_MS;
	return config->nodes > PEERS_FAST ? ms * config->nodes / PEERS_FAST : ms;
}

char *agent_config_key(const struct agent_config *config, const char *name)
{
	return mem_format("%s%s", config->prefix, name);
}

char *agent_config_node_key(const struct agent_config *config, const char *name)
{
	return mem_format("%snode-%d/%s", config->prefix, config->node, name);
}

char *agent_config_outputs_key(const struct agent_config *config)
{
	if (config->restart > 0)
		return mem_format("%snode-%d.restart-%lld", config->outputs, config->node,
				  (long long)config->restart);
	return mem_format("%snode-%d", config->outputs, config->node);
}

const char *agent_config_resumed_url(const struct agent_config *config)
{
	return config->scratch ? NULL : config->order->resume_from;
}

char *agent_config_resumed(const struct agent_config *config)
{
	const char *url = agent_config_resumed_url(config);

	if (!url || url[0] == '/')
		return url ? mem_copy(url) : NULL;
	return mem_format("%s/resume/%s", config->dir, fs_basename(url));
}

char *agent_config_data_manifest(const struct agent_config *config)
{
	const char *url = config->order->data_manifest;

	if (!url || url[0] == '/')
		return url ? mem_copy(url) : NULL;
	return fs_join(config->dir, "data.jsonl");
}

char *agent_config_data_dir(const struct agent_config *config)
{
	return config->order->data_manifest && config->order->data_fetch
		       ? fs_join(config->dir, "data")
		       : NULL;
}

/* Returns the path of a model of the order once it was fetched: fetch.h. */
static char *model_path(const struct agent_config *config, const struct order_model *model,
			const char *folder)
{
	if (!model->url)
		return NULL;
	if (model->url[0] == '/')
		return mem_copy(model->url);
	return mem_format("%s/%s/%s", config->dir, folder, fs_basename(model->url));
}

char *agent_config_init_from(const struct agent_config *config)
{
	const struct order *order = config->order;

	if (order->init_from)
		return mem_copy(order->init_from);
	return model_path(config, &order->parent, "parent");
}

char *agent_config_model(const struct agent_config *config, const char *role)
{
	const struct order_tasks *tasks = &config->order->tasks;

	return strcmp(role, "baseline") == 0 ? model_path(config, &tasks->baseline, "baseline")
					     : model_path(config, &tasks->candidate, "candidate");
}

const struct compile_kind *agent_config_compile_kind(const struct agent_config *config)
{
	const char *name = config->order->compile.kind;

	return name ? compile_kind_find(name) : NULL;
}

char *agent_config_cache(const struct agent_config *config)
{
	const char *cache = config->order->compile.cache;
	const struct compile_kind *kind = agent_config_compile_kind(config);

	if (!cache || cache[0] == '/' || !kind || !kind->caches || kind->opens_urls)
		return NULL;
	return fs_join(config->dir, "cache");
}

/* The order of an earlier driver names no kind: its cores are Neuron's. */
const struct accelerator *agent_config_accelerator(const struct agent_config *config)
{
	const struct order *order = config->order;

	if (order->accelerator)
		return accelerator_find(order->accelerator);
	return order->cores > 0 ? accelerator_next(NULL)
				: accelerator_compiled(order->compile.kind);
}
