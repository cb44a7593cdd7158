/* Does the tasks of an attempt: see tasks.h and tasks_work.h. */
#include "jobs/node/tasks/tasks_work.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/checkpoint/pin.h"
#include "jobs/data/data.h"
#include "jobs/node/news.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/node/setup/prepare.h"
#include "jobs/node/tasks/metrics_file.h"
#include "jobs/node/tasks/task_command.h"
#include "jobs/node/tasks/task_manifest.h"
#include "jobs/node/tasks/task_place.h"
#include "jobs/node/tasks/task_queue.h"
#include "jobs/store/order.h"

#define OBJECTS_NAMED 8 /* of a shard */
/* A service that is away that long may be away for good. */
#define AWAY_MS  ((int64_t)10 * 60 * 1000)
#define AGAIN_MS 2000

struct task_runner {
	struct agent_config config; /* a copy, with the task in it; its members are the agent's */
	const struct claim *claim;
	int news_fd;
	struct store *store;
	struct task_queue queue;
	struct task_command *command;
	char *manifest; /* path of the whole manifest on this node; NULL: none */
	char *cut;      /* path of that of a shard */
	int64_t lines;  /* of the manifest */
	/* the task at work */
	int64_t index;
	struct node_task task;
	struct task_place place;
};

static void work_release(struct task_runner *work)
{
	task_command_freep(&work->command);
	task_queue_release(&work->queue);
	task_place_release(&work->place);
	store_freep(&work->store);
	free(work->manifest);
	free(work->cut);
}

/* ---- messages to the agent ---- */

static void say_task(const struct task_runner *work, bool at_work)
{
	json_t *line = news_of("task");

	if (at_work) {
		js_put_str(line, "task", work->task.name);
		if (work->task.shard >= 0)
			js_put(line, "objects", task_manifest_urls(work->cut, OBJECTS_NAMED));
	}
	js_put(line, "done", json_integer(work->queue.done));
	js_put(line, "of", json_integer(work->queue.count));
	news_say(work->news_fd, line);
}

/* Tells which task ends the attempt; `why` NULL: its command's status tells the rest. */
static void say_failed(const struct task_runner *work, const struct err *why, const char *class)
{
	json_t *line = news_of("failed");

	if (work->place.folder) {
		js_put_str(line, "task", work->task.name);
		if (work->task.shard >= 0)
			js_put(line, "objects", task_manifest_urls(work->cut, OBJECTS_NAMED));
	}
	if (why) {
		js_put_str(line, "message", why->message);
		js_put_str(line, "hint", why->hint);
		js_put_str(line, "class", class);
		js_put(line, "code", json_integer(why->code));
		js_put(line, "errno", json_integer(why->os_errno));
	}
	news_say(work->news_fd, line);
}

static const char *class_of(const struct err *why)
{
	if (why->code == EXIT_RUN_FAILED)
		return "user-code";
	if (why->code == EXIT_UNREACHABLE || why->code == EXIT_BUSY)
		return "transient-infra";
	return why->os_errno ? NULL : "quota-permission";
}

/* ---- patience ---- */

static bool stop_is_due(void *arg)
{
	const struct task_runner *work = arg;

	return task_command_stopping(work->command);
}

/* Does something with a service, again while it does not answer. */
static int patiently(struct task_runner *work,
		     int (*fn)(struct task_runner *work, struct err **err), struct err **err)
{
	int64_t end_ms = clock_mono_now().ms + AWAY_MS;
	int done;

	while ((done = fn(work, err)) < 0) {
		if (!err_passes(*err) || task_command_stopping(work->command) ||
		    clock_mono_now().ms >= end_ms || !cancel_pause(AGAIN_MS))
			return -1;
		err_freep(err);
	}
	return done;
}

static int open_queue(struct task_runner *work, struct err **err)
{
	task_queue_release(&work->queue);
	return task_queue_open(&work->queue, &work->config, work->store, err);
}

static int next_task(struct task_runner *work, struct err **err)
{
	return task_queue_next(&work->queue, &work->index, err);
}

static int wait_for_all(struct task_runner *work, struct err **err)
{
	return task_queue_wait(&work->queue, err);
}

/* ---- the command of a task ---- */

/* True in a precompile: the first task is done for its graphs alone. Nothing of it is kept or told,
 * and no attempt of the stage itself finds it done. */
static bool is_trial(const struct task_runner *work)
{
	return work->config.order->scratch;
}

/* Begins the task. The command learns of its task by its environment, which is made from the
 * config. */
static int begin(struct task_runner *work, struct err **err)
{
	node_task_at(&work->config, work->index, &work->task);
	task_place_release(&work->place);
	work->config.task = &work->task;
	if (is_trial(work)) {
		work->config.task_output = work->config.output;
	} else {
		task_place_of(&work->config, &work->task, &work->place);
		work->config.task_output = work->place.folder;
	}
	work->config.task_manifest = work->manifest;
	if (work->manifest && work->task.shard >= 0) {
		work->config.task_manifest = work->cut;
		if (task_manifest_cut(work->manifest, work->lines, work->task.shard,
				      work->config.order->tasks.shards, work->cut, err) < 0)
			return -1;
	}
	if (is_trial(work))
		return 0;
	say_task(work, true);
	return task_place_make(&work->place, err);
}

/* Fetches the items of the node's shard: all items may not fit on its disk. */
static int fetch_shard(struct task_runner *work, struct err **err)
{
	AUTO(auto_free) char *folder = agent_config_data_dir(&work->config);

	if (!folder || work->task.shard < 0)
		return 0;
	if (fs_remove_tree(folder, err) < 0 ||
	    data_fetch_objects(work->cut, work->config.order->data_base, folder, err) < 0)
		return err_wrap(err, "cannot fetch the data");
	return 0;
}

/* A node that does a shard alone is all there are to the shard's command, which would wait for the
 * others else. Nodes of one machine have a port each. */
static int build_command(const struct task_runner *work, struct command_env *ret_env,
			 char ***ret_argv, struct err **err)
{
	struct agent_config config = work->config;
	struct claim claim = *work->claim;
	char here[] = "127.0.0.1";

	if (config.nodes > 1 && !node_task_is_shared(&config)) {
		claim.master_addr = here;
		claim.master_port += config.node;
		config.nodes = 1;
		config.node = 0;
	}
	return command_env_build(&config, &claim, ret_env, err) < 0 ||
			       command_env_command(&config, ret_env, ret_argv, err) < 0
		       ? -1
		       : 0;
}

static int run(struct task_runner *work, int *ret_status, struct err **err)
{
	AUTO(command_env_release) struct command_env env = { 0 };
	AUTO(auto_strv) char **argv = NULL;
	AUTO(auto_free) char *program = NULL;
	int exit_status = 0;

	if (build_command(work, &env, &argv, err) < 0 ||
	    prepare_program(&work->config, argv[0], command_env_get(&env, "PATH"), &program,
			    &exit_status, err) < 0)
		return -1;
	return task_command_run(work->command, program, argv, env.list, work->config.src,
				ret_status, err);
}

/* ---- result of a task ---- */

/* Only an evaluation is measured. */
static int put_metrics(struct task_runner *work, json_t *body, struct err **err)
{
	AUTO(metrics_file_release) struct metrics_file file = { 0 };
	json_auto_t *values = NULL, *invalid = NULL;
	int there;

	if (work->task.repeat == 0)
		return 0;
	there = metrics_file_read(work->place.folder, &file, err);
	if (there < 0)
		return -1;
	if (there > 0) {
		values = json_incref(file.values);
		invalid = json_incref(file.invalid);
	} else {
		values = task_command_readings(work->command, &invalid);
	}
	if (json_object_size(values) + json_object_size(invalid) == 0)
		return 0;
	js_put(body, "metrics", json_incref(values));
	js_put_str(body, "metrics_from", there > 0 ? "metrics.json" : "log");
	if (json_object_size(invalid) > 0)
		js_put(body, "invalid", json_incref(invalid));
	return 0;
}

/* The first task of the candidate tells the sums of the model's files, as they are on this disk:
 * whoever promotes it need not read them again. */
static int put_model(struct task_runner *work, json_t *body, struct err **err)
{
	AUTO(auto_free) char *path = agent_config_model(&work->config, "candidate");
	json_auto_t *files = NULL;
	json_t *model;

	if (work->index != 0 || !path)
		return 0;
	if (checkpoint_pin_sums(path, &files, err) < 0)
		return -1;
	model = json_object();
	js_put_str(model, "digest", work->config.order->tasks.candidate.digest);
	js_put(model, "files", json_incref(files));
	js_put(body, "model", model);
	return 0;
}

static int make_body(struct task_runner *work, json_t **ret, struct err **err)
{
	json_auto_t *body = json_object();
	json_t *files = NULL;

	js_put(body, "v", json_integer(1));
	js_put_str(body, "task", work->task.name);
	js_put(body, "attempt", json_integer(work->config.attempt));
	js_put(body, "node", json_integer(work->config.node));
	js_put_str(body, "url", work->place.base);
	if (put_metrics(work, body, err) < 0 || task_place_keep(&work->place, &files, err) < 0)
		return -1;
	js_put(body, "files", files);
	if (work->config.node == 0 || !node_task_is_shared(&work->config))
		if (put_model(work, body, err) < 0)
			return -1;
	*ret = TAKE(body);
	return 0;
}

/* Joins the parts of the other nodes: the values are those of the lowest node that has any. */
static int join(struct task_runner *work, json_t *body, struct err **err)
{
	static const char *const members[] = { "metrics", "metrics_from", "invalid" };

	for (int node = 1; node < work->config.nodes; node++) {
		json_auto_t *part = NULL;
		bool measured = json_object_get(body, "metrics") != NULL;

		if (task_queue_get_part(&work->queue, work->index, node, &part, err) < 0)
			return -1;
		json_array_extend(json_object_get(body, "files"), json_object_get(part, "files"));
		for (size_t i = 0; !measured && i < STK_LENGTH(members); i++)
			if (json_object_get(part, members[i]))
				js_put(body, members[i],
				       json_incref(json_object_get(part, members[i])));
	}
	return 0;
}

/* Records what was done, in the order in which it can be believed. */
static int finish(struct task_runner *work, struct err **err)
{
	bool shared = node_task_is_shared(&work->config);
	json_auto_t *body = NULL;

	if (make_body(work, &body, err) < 0)
		return -1;
	if (shared && work->config.node > 0)
		return task_queue_put_part(&work->queue, work->index, body, err);
	if (shared && join(work, body, err) < 0)
		return -1;
	/* Another attempt may have the phase meanwhile; it does the task again. */
	if (claim_check(work->claim, &work->config, work->store) == 0)
		return err_set(err, EXIT_BUSY, "another attempt has the claim");
	return task_queue_finish(&work->queue, work->index, body, err);
}

/* ---- all tasks ---- */

static int result_of(void *arg, int64_t index, json_t **ret, struct err **err)
{
	struct task_runner *work = arg;

	return task_queue_result(&work->queue, index, ret, err);
}

static int write_manifest(struct task_runner *work, struct err **err)
{
	if (claim_check(work->claim, &work->config, work->store) == 0)
		return err_set(err, EXIT_BUSY, "another attempt has the claim");
	return task_place_finish(&work->config, result_of, work, err);
}

/* The outputs of an inference are complete once their manifest, written after the last task, says
 * so. */
static int conclude(struct task_runner *work, struct err **err)
{
	work->config.task = NULL;
	task_place_discard(&work->place);
	task_place_release(&work->place); /* no task is to blame */
	if (work->config.node > 0)
		return 0;
	if (!node_task_is_shared(&work->config) && patiently(work, wait_for_all, err) < 0)
		return -1;
	if (work->config.order->tasks.shards == 0 || !work->config.order->tasks.output)
		return 0;
	return patiently(work, write_manifest, err);
}

static int prepare(struct task_runner *work, struct err **err)
{
	AUTO(auto_free) char *folder = fs_join(work->config.dir, "tasks");
	const struct order *order = work->config.order;

	if (task_command_new(order->metrics, &work->command, err) < 0)
		return -1;
	cancel_when(stop_is_due, work);
	if (fs_mkdirs(folder, err) < 0 || store_open(work->config.workspace, &work->store, err) < 0)
		return -1;
	work->cut = fs_join(folder, "shard.jsonl");
	work->manifest = agent_config_data_manifest(&work->config);
	if (work->manifest && order->tasks.shards > 0 &&
	    task_manifest_count(work->manifest, &work->lines, err) < 0)
		return -1;
	return is_trial(work) ? 0 : patiently(work, open_queue, err);
}

/* Ends as the command ended: the agent, and whoever reads its report, see it as theirs. */
static int end_like(int status)
{
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

/* Does one task. Returns 1 if it is done, 0 if its command failed, -1. */
static int do_task(struct task_runner *work, int *ret_status, struct err **err)
{
	if (begin(work, err) < 0 || patiently(work, fetch_shard, err) < 0 ||
	    run(work, ret_status, err) < 0)
		return -1;
	if (*ret_status != 0)
		return 0;
	if (patiently(work, finish, err) < 0)
		return -1;
	task_place_discard(&work->place);
	say_task(work, false);
	return 1;
}

/* The first task, on every node. Nodes that do shards alone each do that one, with the same graphs:
 * the compiler's locks let one of them compile each. Returns its exit status, -1 with an error. */
static int do_trial(struct task_runner *work, struct err **err)
{
	int status = 0;

	work->index = 0;
	if (prepare(work, err) < 0 || begin(work, err) < 0 ||
	    patiently(work, fetch_shard, err) < 0 || run(work, &status, err) < 0)
		return -1;
	return end_like(status);
}

/* Ends with what keeps the tasks from being done. */
static int end_early(const struct task_runner *work, const struct err *why)
{
	/* Told to stop: as a command that ends on SIGTERM. */
	if (work->command && task_command_stopping(work->command))
		return 128 + SIGTERM;
	if (why)
		say_failed(work, why, class_of(why));
	return AGENT_EXIT_FAILED;
}

int tasks_work(const struct helper_task *task, int news_fd)
{
	AUTO(work_release)
	struct task_runner work = { .config = task->config,
				    .claim = &task->claim,
				    .news_fd = news_fd };
	AUTO(err_freep) struct err *why = NULL;
	int next = -1, done = 1, status = 0;

	if (is_trial(&work)) {
		status = do_trial(&work, &why);
		return status >= 0 ? status : end_early(&work, why);
	}
	if (prepare(&work, &why) == 0) {
		say_task(&work, false);
		while (done > 0 && !task_command_stopping(work.command) &&
		       (next = patiently(&work, next_task, &why)) > 0)
			done = do_task(&work, &status, &why);
		if (done == 0) {
			say_failed(&work, NULL, NULL);
			return end_like(status);
		}
		if (!why && next == 0 && conclude(&work, &why) == 0)
			return 0;
	}
	return end_early(&work, why);
}
