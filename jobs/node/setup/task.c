/* Reads and checks the order: see task.h. */
#include "jobs/node/setup/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
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
		return bad(err, member, "is missing or no text");
	*ret = json_string_value(value);
	return 0;
}

static int check_texts(const json_t *list, const char *member, struct err **err)
{
	const json_t *value;
	size_t i;

	if (list && !json_is_array(list))
		return bad(err, member, "is no list");
	json_array_foreach (list, i, value)
		if (!is_text(value))
			return bad(err, member, "holds something that is no text");
	return 0;
}

static int check_links(const json_t *links, struct err **err)
{
	const json_t *pair;
	size_t i;

	if (links && !json_is_array(links))
		return bad(err, "links", "is no list");
	json_array_foreach (links, i, pair)
		if (json_array_size(pair) != 2 || !is_text(json_array_get(pair, 0)) ||
		    !is_text(json_array_get(pair, 1)))
			return bad(err, "links", "holds something other than [name, target]");
	return 0;
}

static int check_env(json_t *env, const char *member, struct err **err)
{
	const char *name;
	json_t *value;

	if (env && !json_is_object(env))
		return bad(err, member, "is no object");
	json_object_foreach (env, name, value)
		if (!*name || strchr(name, '=') || !is_text(value))
			return bad(err, member, "holds something that cannot be a variable");
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
		return err_set(err, EXIT_DEFECT, "this agent does not know orders of version %lld",
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

static int read_texts(struct task *task, struct err **err)
{
	const json_t *order = task->order;
	size_t len;

	if (need_text(order, "run", &task->run, err) < 0 ||
	    need_text(order, "phase", &task->phase, err) < 0 ||
	    need_text(order, "job", &task->job, err) < 0 ||
	    need_text(order, "nonce", &task->nonce, err) < 0 ||
	    need_text(order, "workspace", &task->workspace, err) < 0 ||
	    need_text(order, "prefix", &task->prefix, err) < 0 ||
	    need_text(order, "run_prefix", &task->run_prefix, err) < 0)
		return -1;
	if (!is_word(task->nonce))
		return bad(err, "nonce", "is no plain word");
	len = strlen(task->prefix);
	if (task->prefix[len - 1] != '/')
		return bad(err, "prefix", "does not end in a slash");
	len = strlen(task->run_prefix);
	if (task->run_prefix[len - 1] != '/')
		return bad(err, "run_prefix", "does not end in a slash");
	task->source = js_str(order, "source");
	return 0;
}

static int read_numbers(struct task *task, struct err **err)
{
	const json_t *order = task->order;
	int64_t nodes = js_int(order, "nodes", 1);

	task->attempt = js_int(order, "attempt", 0);
	if (task->attempt < 1)
		return bad(err, "attempt", "is not a number from 1 on");
	if (nodes < 1 || nodes > NODES_MAX)
		return bad(err, "nodes", "is out of range");
	task->nodes = (int)nodes;
	task->scratch = js_bool(order, "scratch", false);
	task->grace_ms = js_int(order, "grace_ms", ORDER_GRACE_MS);
	task->timeout_ms = js_int(order, "timeout_ms", 0);
	task->stop_ms = js_int(order, "stop_ms", 0);
	task->heartbeat_ms = js_int(order, "heartbeat_ms", ORDER_HEARTBEAT_MS);
	task->look_ms = js_int(order, "look_ms", ORDER_LOOK_MS);
	task->claim_wait_ms = js_int(order, "claim_wait_ms", ORDER_CLAIM_WAIT_MS);
	if (task->timeout_ms < 0)
		return bad(err, "timeout_ms", "is negative");
	if (task->stop_ms < 0)
		return bad(err, "stop_ms", "is negative");
	if (task->grace_ms < 0)
		return bad(err, "grace_ms", "is negative");
	if (task->heartbeat_ms < 1)
		return bad(err, "heartbeat_ms", "is not positive");
	if (task->look_ms < 1)
		return bad(err, "look_ms", "is not positive");
	return 0;
}

/* Reads this node's rank. On SageMaker the files that go with a workspace on S3 lie on its volume:
 * the rest of a container's disk is small. */
static int read_platform(struct task *task, const char *rank, struct err **err)
{
	if (engine_env_read(rank, task->nodes, &task->platform, err) < 0)
		return -1;
	task->node = task->platform.node;
	task->restart = task->platform.restart < 0 ? 0 : task->platform.restart;
	if (strcmp(rank, ORDER_RANK_SAGEMAKER) == 0 &&
	    access(ENGINE_ENV_SAGEMAKER_ROOT, W_OK | X_OK) == 0)
		setenv(WORK_VARIABLE, ENGINE_ENV_SAGEMAKER_ROOT "/stoker", 0);
	return 0;
}

/* Sets the folders of this node, and of what the command leaves behind, as the order says. */
static void set_folders(struct task *task, const char *folder)
{
	const char *checkpoint = js_str(task->order, "checkpoint_dir");
	const char *output = js_str(task->order, "output_dir");
	AUTO(auto_free) char *shared = fs_join(folder, "checkpoints");
	AUTO(auto_free) char *kept = NULL;

	task->dir = mem_format("%s/node-%d", folder, task->node);
	task->src = fs_join(task->dir, "src");
	if (!checkpoint && js_bool(task->order, "shared_checkpoints", false))
		checkpoint = shared;
	if (task->scratch || !checkpoint)
		checkpoint = task->scratch ? "scratch/checkpoints" : "checkpoints";
	task->outputs = task->scratch ? NULL : js_str(task->order, "outputs");
	/* A workspace that is a directory holds the outputs from the beginning. */
	if (!output && task->outputs && !task->far)
		output = kept =
			mem_format("%s/%snode-%d", task->workspace, task->outputs, task->node);
	if (task->scratch || !output)
		output = task->scratch ? "scratch/output" : "output";
	task->checkpoint = fs_join(task->dir, checkpoint);
	task->output = fs_join(task->dir, output);
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
		return err_set(err, EXIT_REFUSED, "there is none");
	return there < 0 ? -1 : js_parse(text.text, text.len, "it", ret, err);
}

/* Gives the folder of the attempt, beneath which this node has its own. The caller frees it. */
static int find_folder(struct task *task, const char *order, char **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *work = NULL;

	if (!task->far) {
		AUTO(auto_free) char *absolute = fs_absolute(order);

		*ret = fs_dirname(absolute);
		return 0;
	}
	if (store_open(task->workspace, &store, err) < 0 ||
	    local_store_dir_make(store, &work, err) < 0)
		return -1;
	*ret = fs_join(work, task->prefix);
	(*ret)[strlen(*ret) - 1] = '\0';
	return 0;
}

int task_load(const char *order, const char *rank, struct task *ret, struct err **err)
{
	AUTO(task_release) struct task task = { .far = strstr(order, "://") != NULL };
	const char *token = getenv(ORDER_TOKEN);
	AUTO(auto_free) char *folder = NULL;

	if ((task.far ? fetch_order(order, &task.order, err)
		      : js_load(order, ORDER_MAX, &task.order, err)) < 0)
		return err_wrap(err, "cannot read the order '%s'", order);
	if (check_shape(task.order, err) < 0 || read_texts(&task, err) < 0 ||
	    read_numbers(&task, err) < 0 || read_platform(&task, rank, err) < 0 ||
	    find_folder(&task, order, &folder, err) < 0)
		return -1;
	task.token = token ? token : "";
	set_folders(&task, folder);
	*ret = task;
	task = (struct task){ 0 };
	return 0;
}

void task_release(struct task *task)
{
	json_decref(task->order);
	engine_env_release(&task->platform);
	free(task->dir);
	free(task->src);
	free(task->checkpoint);
	free(task->output);
	*task = (struct task){ 0 };
}

static int64_t share(const struct task *task, int64_t parts, int64_t of)
{
	int64_t ms = task->stop_ms * parts / of;

	return task->stop_ms > 0 && ms < task->grace_ms ? ms : task->grace_ms;
}

int64_t task_kill_ms(const struct task *task)
{
	return share(task, 1, 2);
}

int64_t task_keep_ms(const struct task *task)
{
	return share(task, 3, 4);
}

int64_t task_outputs_ms(const struct task *task)
{
	return share(task, 5, 6);
}

int64_t task_bring_ms(const struct task *task)
{
	return share(task, 14, 15);
}

char *task_key(const struct task *task, const char *name)
{
	return mem_format("%s%s", task->prefix, name);
}

char *task_node_key(const struct task *task, const char *name)
{
	return mem_format("%snode-%d/%s", task->prefix, task->node, name);
}

char *task_outputs_key(const struct task *task)
{
	if (task->restart > 0)
		return mem_format("%snode-%d.restart-%lld", task->outputs, task->node,
				  (long long)task->restart);
	return mem_format("%snode-%d", task->outputs, task->node);
}
