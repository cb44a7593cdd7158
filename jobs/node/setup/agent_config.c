/* Reads and checks the order: see agent_config.h. */
#include "jobs/node/setup/agent_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/store/local_store_dir.h"
#include "jobs/store/store.h"

#define NODES_MAX 100000

static int bad(struct err **err, const char *member, const char *what)
{
	return err_set(err, EXIT_DEFECT, "the order's '%s' %s", member, what);
}

/* True for a text without NUL bytes: it becomes an argument, a variable or a path. */
static bool is_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

static int need_text(const json_t *order, const char *member, const char **ret, struct err **err)
{
	const json_t *value = json_object_get(order, member);

	if (!is_text(value) || json_string_length(value) == 0)
		return bad(err, member, "is missing or not a string");
	*ret = json_string_value(value);
	return 0;
}

static int check_texts(const json_t *list, const char *member, struct err **err)
{
	const json_t *value;
	size_t i;

	if (list && !json_is_array(list))
		return bad(err, member, "is not a list");
	json_array_foreach (list, i, value)
		if (!is_text(value))
			return bad(err, member, "holds an item that is not a string");
	return 0;
}

static int check_links(const json_t *links, struct err **err)
{
	const json_t *pair;
	size_t i;

	if (links && !json_is_array(links))
		return bad(err, "links", "is not a list");
	json_array_foreach (links, i, pair)
		if (json_array_size(pair) != 2 || !is_text(json_array_get(pair, 0)) ||
		    !is_text(json_array_get(pair, 1)))
			return bad(err, "links", "holds an item that is not [name, target]");
	return 0;
}

static int check_env(json_t *env, const char *member, struct err **err)
{
	const char *name;
	json_t *value;

	if (env && !json_is_object(env))
		return bad(err, member, "is not a mapping");
	json_object_foreach (env, name, value)
		if (!*name || strchr(name, '=') || !is_text(value))
			return bad(err, member, "holds an invalid variable");
	return 0;
}

/* True for a plain word: the nonce stands in log lines that readers take apart. */
static bool is_word(const char *text)
{
	return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789-_")] == '\0';
}

static int check_shape(const json_t *order, struct err **err)
{
	if (!json_is_object(order) || js_int(order, "v", 0) != 1)
		return err_set(err, EXIT_DEFECT, "unknown version %lld of the order",
			       (long long)js_int(order, "v", 0));
	if (check_texts(json_object_get(order, "command"), "command", err) < 0 ||
	    check_texts(json_object_get(order, "secrets"), "secrets", err) < 0 ||
	    check_links(json_object_get(order, "links"), err) < 0 ||
	    check_env(json_object_get(order, "env"), "env", err) < 0 ||
	    check_env(json_object_get(order, "secret_from"), "secret_from", err) < 0)
		return -1;
	if (json_array_size(json_object_get(order, "command")) == 0)
		return bad(err, "command", "is empty");
	return 0;
}

static int read_texts(struct agent_config *config, struct err **err)
{
	const json_t *order = config->order;
	size_t len;

	if (need_text(order, "run", &config->run, err) < 0 ||
	    need_text(order, "phase", &config->phase, err) < 0 ||
	    need_text(order, "job", &config->job, err) < 0 ||
	    need_text(order, "nonce", &config->nonce, err) < 0 ||
	    need_text(order, "workspace", &config->workspace, err) < 0 ||
	    need_text(order, "prefix", &config->prefix, err) < 0 ||
	    need_text(order, "run_prefix", &config->run_prefix, err) < 0)
		return -1;
	if (!is_word(config->nonce))
		return bad(err, "nonce", "is not a plain word");
	len = strlen(config->prefix);
	if (config->prefix[len - 1] != '/')
		return bad(err, "prefix", "does not end in a slash");
	len = strlen(config->run_prefix);
	if (config->run_prefix[len - 1] != '/')
		return bad(err, "run_prefix", "does not end in a slash");
	config->source = js_str(order, "source");
	return 0;
}

static int read_numbers(struct agent_config *config, struct err **err)
{
	const json_t *order = config->order;
	int64_t nodes = js_int(order, "nodes", 1);

	config->attempt = js_int(order, "attempt", 0);
	if (config->attempt < 1)
		return bad(err, "attempt", "is not a number from 1");
	if (nodes < 1 || nodes > NODES_MAX)
		return bad(err, "nodes", "is out of range");
	config->nodes = (int)nodes;
	config->scratch = js_bool(order, "scratch", false);
	config->grace_ms = js_int(order, "grace_ms", ORDER_GRACE_MS);
	config->timeout_ms = js_int(order, "timeout_ms", 0);
	config->stop_ms = js_int(order, "stop_ms", 0);
	config->heartbeat_ms = js_int(order, "heartbeat_ms", ORDER_HEARTBEAT_MS);
	config->look_ms = js_int(order, "look_ms", ORDER_LOOK_MS);
	config->claim_wait_ms = js_int(order, "claim_wait_ms", ORDER_CLAIM_WAIT_MS);
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
	const char *checkpoint = js_str(config->order, "checkpoint_dir");
	const char *output = js_str(config->order, "output_dir");
	AUTO(auto_free) char *shared = fs_join(folder, "checkpoints");
	AUTO(auto_free) char *kept = NULL;

	config->dir = mem_format("%s/node-%d", folder, config->node);
	config->src = fs_join(config->dir, "src");
	if (!checkpoint && js_bool(config->order, "shared_checkpoints", false))
		checkpoint = shared;
	if (config->scratch || !checkpoint)
		checkpoint = config->scratch ? "scratch/checkpoints" : "checkpoints";
	config->outputs = config->scratch ? NULL : js_str(config->order, "outputs");
	/* A workspace that is a directory holds the outputs from the beginning. */
	if (!output && config->outputs && !config->far)
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

	if (!config->far) {
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
	struct agent_config config = { .far = strstr(order, "://") != NULL };
	const char *token = getenv(ORDER_TOKEN);
	AUTO(auto_free) char *folder = NULL;

	if ((config.far ? fetch_order(order, &config.order, err)
			: js_load(order, ORDER_MAX, &config.order, err)) < 0)
		return err_wrap(err, "cannot read the order '%s'", order);
	if (check_shape(config.order, err) < 0 || read_texts(&config, err) < 0 ||
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
	json_decref(config->order);
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
	return config->scratch ? NULL : js_str(config->order, "resume_from");
}

char *agent_config_resumed(const struct agent_config *config)
{
	const char *url = agent_config_resumed_url(config);

	if (!url || url[0] == '/')
		return url ? mem_copy(url) : NULL;
	return mem_format("%s/resume/%s", config->dir, fs_basename(url));
}

const struct compile_kind *agent_config_compile_kind(const struct agent_config *config)
{
	const char *name = js_str(json_object_get(config->order, "compile"), "kind");

	return name ? compile_kind_find(name) : NULL;
}

char *agent_config_cache(const struct agent_config *config)
{
	const char *cache = js_str(json_object_get(config->order, "compile"), "cache");
	const struct compile_kind *kind = agent_config_compile_kind(config);

	if (!cache || cache[0] == '/' || !kind || !kind->caches || kind->opens_urls)
		return NULL;
	return fs_join(config->dir, "cache");
}
