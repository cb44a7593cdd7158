/* The local engine's calls, except describe: see local.h. */
#include "jobs/engine/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/engine/delivery/agent_files.h"
#include "jobs/engine/local/local_internal.h"
#include "jobs/store/local_store_dir.h"
#include "jobs/store/order.h"

#define NODES_MAX 1024 /* agents on one machine */

static int local_open(const struct engine_where *where, struct engine **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	struct local *local;
	struct proc_id self;
	ssize_t len;

	if (store_open(where->workspace, &store, err) < 0)
		return -1;
	if (proc_identify(getpid(), &self) < 0) {
		err_set(err, EXIT_REFUSED, "cannot tell processes apart: /proc is missing");
		return err_hint(err, "mount /proc: mount -t proc proc /proc");
	}
	local = mem_zero(1, sizeof *local);
	local->engine.ops = &local_ops;
	local->cache = store_directory(store) ? NULL : workspace_cache_new(store);
	local->object_workspace = local_object_workspace_new();
	local->root = local_store_dir(store);
	local->store = TAKE(store);
	memcpy(local->boot, self.boot_id, sizeof local->boot);
	len = readlink("/proc/self/ns/pid", local->pidns, sizeof local->pidns - 1);
	local->pidns[len > 0 ? len : 0] = '\0';
	gethostname(local->host, sizeof local->host - 1);
	*ret = &local->engine;
	return 0;
}

static void local_close(struct engine *engine)
{
	struct local *local = (struct local *)engine;

	if (!local)
		return;
	workspace_cache_freep(&local->cache);
	log_times_release(&local->times);
	local_object_workspace_freep(&local->object_workspace);
	store_freep(&local->store);
	free(local->root);
	free(local);
}

/* Checks that the nearest existing folder is writable. Access to a remote workspace shows only in
 * requests: the driver finds out. */
static int local_check(struct engine *engine, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(auto_free) char *path = mem_copy(local->root);

	while (!fs_exists(path) && strcmp(path, "/") != 0) {
		char *parent = fs_dirname(path);

		free(path);
		path = parent;
	}
	if (!fs_is_dir(path))
		fs_error(err, ENOTDIR, "cannot use the workspace '%s'", local->root);
	else if (access(path, W_OK | X_OK) < 0)
		fs_error(err, errno, "cannot write to the workspace '%s'", local->root);
	else
		return 0;
	return err_field(err, "workspace");
}

/* A directory store keeps no modes; programs must be made executable. */
static int make_executable(const char *path, struct err **err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return fs_error(err, errno, "cannot find the agent's '%s'", path);
	if ((st.st_mode & 0100) == 0 && chmod(path, 0700) < 0)
		return fs_error(err, errno, "cannot make '%s' executable", path);
	return 0;
}

/* Command and environment of an agent; started by its own loader if the bundle has one. */
struct start {
	char *argv[8];
	char rank[16];
	char **env;
};

static void start_release(struct start *start)
{
	for (size_t i = 0; start->argv[i] && start->argv[i] != start->rank; i++)
		free(start->argv[i]);
	auto_strv(&start->env);
}

/* Returns the folder to start the agent from. The caller frees it. */
static char *agent_folder(const struct local *local, const struct engine_job *job, struct err **err)
{
	AUTO(auto_free) char *folder = fs_join(local->root, job->agent_key);

	if (local->cache && agent_fetch(local->store, job->agent_key, folder, err) < 0)
		return NULL;
	return TAKE(folder);
}

static char **agent_env(const struct local *local, const struct engine_job *job, const char *token)
{
	size_t count = 0, n = 0;
	char **env;

	while (job->env && job->env[count])
		count++;
	env = mem_zero(count + 3, sizeof *env);
	for (; n < count; n++)
		env[n] = mem_copy(job->env[n]);
	env[n++] = mem_format(ORDER_TOKEN "=%s", token);
	if (local->cache) {
		AUTO(auto_free) char *root = local_store_root();

		env[n] = mem_format(WORK_VARIABLE "=%s", root);
	}
	return env;
}

static int make_start(const struct local *local, const struct engine_job *job, const char *token,
		      struct start *start, struct err **err)
{
	AUTO(auto_free) char *folder = agent_folder(local, job, err);
	AUTO(auto_free) char *agent = folder ? fs_join(folder, AGENT_PROGRAM) : NULL;
	AUTO(auto_free) char *loader = folder ? fs_join(folder, "lib/loader") : NULL;
	size_t n = 0;

	if (!folder || make_executable(agent, err) < 0)
		return -1;
	if (fs_exists(loader)) {
		if (make_executable(loader, err) < 0)
			return -1;
		start->argv[n++] = TAKE(loader);
		start->argv[n++] = mem_copy("--library-path");
		start->argv[n++] = fs_join(folder, "lib");
	}
	start->argv[n++] = TAKE(agent);
	start->argv[n++] = local_order(local, job->prefix);
	start->argv[n] = start->rank;
	start->env = agent_env(local, job, token);
	return 0;
}

static int open_log(const struct local *local, const char *prefix, int node, int *ret_fd,
		    struct err **err)
{
	AUTO(auto_free) char *key = local_node_key(prefix, node, LOG_FILE);
	AUTO(auto_free) char *path = fs_join(local->root, key);
	AUTO(auto_free) char *folder = fs_dirname(path);

	if (fs_mkdirs(folder, err) < 0)
		return -1;
	*ret_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return *ret_fd < 0 ? fs_error(err, errno, "cannot open the log '%s'", path) : 0;
}

static int start_agent(const struct local *local, const char *prefix, struct start *start, int node,
		       struct proc_id *ret, struct err **err)
{
	AUTO(auto_close) int log_fd = -1;
	struct proc_start what = {
		.program = start->argv[0], .argv = start->argv, .envp = start->env, .in = -1
	};
	pid_t pid;

	if (open_log(local, prefix, node, &log_fd, err) < 0)
		return -1;
	snprintf(start->rank, sizeof start->rank, "%d", node);
	what.out = what.err = log_fd;
	if (proc_spawn(&what, &pid, err) < 0)
		return -1;
	/* A child keeps its pid until it is reaped. */
	proc_identify(pid, ret);
	return 0;
}

/* Looks for any trace of this submission: 1 found, 0 none, -1 not known. */
static int has_trace(const struct local *local, const char *prefix,
		     const struct local_record *record, struct err **err)
{
	AUTO(auto_free) char *order_path = local_order(local, prefix);
	struct local_found found;
	int running =
		local_scan_processes(record ? record->token : NULL, order_path, &found, 1, err);

	if (running != 0)
		return running;
	for (int i = 0; i < (record ? record->nodes : 1); i++) {
		AUTO(node_report_release) struct node_report report = { 0 };
		int there = local_record_load_report(local, prefix, i,
						     record ? record->token : NULL, &report, err);

		if (there != 0)
			return there;
	}
	return 0;
}

/* True if /proc here shows everything that the submission may have started: on the same machine and
 * in the same PID namespace; after a restart of the machine nothing is left. Another boot with the
 * same host name may be another machine: only the files on its disk show that it is the same. */
static bool seen_here(const struct local *local, const char *prefix,
		      const struct local_record *record)
{
	if (strcmp(record->boot, local->boot) == 0)
		return strcmp(record->pidns, local->pidns) == 0;
	return strcmp(record->host, local->host) == 0 &&
	       local_object_workspace_root(local, prefix) != NULL;
}

/* Handles a record of another machine that proves no start: 1 if an agent holds its lock, 0 if none
 * does, -1 if not known. */
static int find_elsewhere(const struct local *local, const char *name, const char *prefix,
			  struct err **err)
{
	AUTO(local_view_release) struct local_view view = { 0 };
	AUTO(auto_free) char *key = local_key(prefix, ENGINE_FILE);
	int there = local_view_load(local, prefix, &view, err);

	if (there < 0)
		return -1;
	if (there == 0)
		return err_set(err, EXIT_BUSY, "the record of '%s' has just gone", name);
	if (view.sight == SIGHT_HELD || view.sight == SIGHT_GONE)
		return view.sight == SIGHT_HELD;
	err_set(err, EXIT_UNREACHABLE,
		"'%s' may have been started on '%s', which cannot be seen from here", name,
		view.record.host);
	return err_hint(err,
			"resume the run there; if that machine is gone for good, remove '%s/%s'",
			store_url(local->store), key);
}

/* Implements `find` of engine.h. */
static int find_job(const struct local *local, const char *name, const char *prefix,
		    struct err **err)
{
	AUTO(local_record_release) struct local_record record = { 0 };
	int there;

	local_forget(local, prefix);
	there = local_record_load(local, prefix, &record, err);
	if (there < 0)
		return -1;
	if (there == 0)
		return has_trace(local, prefix, NULL, err);
	if (record.started)
		return 1;
	if (record.submitter.pid != getpid() && strcmp(record.boot, local->boot) == 0 &&
	    proc_alive(&record.submitter))
		return err_set(err, EXIT_BUSY, "'%s' is being started by process %ld", name,
			       (long)record.submitter.pid);
	there = has_trace(local, prefix, &record, err);
	return there == 0 && !seen_here(local, prefix, &record)
		       ? find_elsewhere(local, name, prefix, err)
		       : there;
}

static int local_find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	return find_job((const struct local *)engine, name, prefix, err);
}

#define START_TRIES    4
#define START_PAUSE_MS 100 /* doubled with each try */

/* If one agent cannot be started, those that were are lost: a start that failed for what may pass
 * is tried again. */
static int start_patiently(const struct local *local, const char *prefix, struct start *start,
			   int node, struct proc_id *ret, struct err **err)
{
	for (int i = 1; start_agent(local, prefix, start, node, ret, err) < 0; i++) {
		if (i == START_TRIES || !err_passes(*err) || !cancel_pause(START_PAUSE_MS << i))
			return -1;
		err_freep(err);
	}
	return 0;
}

/* Starts all agents. 0 all, -1 none, 1 some or none: unknown. */
static int start_all(const struct local *local, const struct engine_job *job,
		     struct local_record *record, struct start *start, struct err **err)
{
	for (int i = 0; i < job->nodes; i++)
		if (start_patiently(local, job->prefix, start, i, &record->agents[i], err) < 0) {
			err_wrap(err, "cannot start the agent of node %d", i);
			return i == 0 ? -1 : 1;
		}
	return 0;
}

static int check_job(const struct local *local, const struct engine_job *job, struct err **err)
{
	AUTO(auto_free) char *key = local_key(job->prefix, ORDER_FILE);
	AUTO(auto_free) char *order = local_order(local, job->prefix);
	struct store_object object;
	int there;

	if (job->nodes < 1 || job->nodes > NODES_MAX)
		return err_set(err, EXIT_SPEC, "%d nodes cannot be started on one machine",
			       job->nodes);
	there = store_stat(local->store, key, &object, err);
	if (there == 0)
		return err_set(err, EXIT_DEFECT, "no order at '%s'", order);
	return there;
}

/* Removes files of a forgotten attempt of that name: none of its processes runs, and the process
 * that forgot it may not have had access to this machine. */
static int clear_rests(const struct local *local, const char *prefix, struct err **err)
{
	AUTO(auto_free) char *folder = local->cache ? fs_join(local->root, prefix) : NULL;
	AUTO(auto_free) char *made = NULL;

	if (!folder)
		return 0;
	return fs_remove_tree(folder, err) < 0 || local_store_dir_make(local->store, &made, err) < 0
		       ? -1
		       : 0;
}

/* Result of a submit that started nothing: 1 if it is unknown whether a record was written, else
 * -1. */
static int not_started(const struct err *why)
{
	return why->code == EXIT_UNREACHABLE ? 1 : -1;
}

static int local_submit(struct engine *engine, const struct engine_job *job, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(local_record_release) struct local_record record = { 0 };
	AUTO(start_release) struct start start = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;
	int there = find_job(local, job->name, job->prefix, err), made, outcome;

	if (there != 0)
		return there > 0 ? 0 : 1;
	if (check_job(local, job, err) < 0 || clear_rests(local, job->prefix, err) < 0)
		return not_started(*err);
	local_record_init(&record, local, job->name, job->nodes);
	/* A submitter that died before it started anything may have left a record. */
	if (make_start(local, job, record.token, &start, err) < 0 ||
	    local_record_remove(local, job->prefix, err) < 0)
		return not_started(*err);
	made = local_record_create(local, job->prefix, &record, err);
	if (made < 0)
		return not_started(*err);
	if (made == 0) {
		err_set(err, EXIT_BUSY, "another process is starting '%s'", job->name);
		return 1;
	}
	outcome = start_all(local, job, &record, &start, err);
	if (outcome < 0)
		(void)!local_record_remove(local, job->prefix, &ignored);
	if (outcome != 0)
		return outcome;
	/* If this write fails, each describe has to scan /proc, nothing else. */
	record.started = true;
	(void)!local_record_save(local, job->prefix, &record, &ignored);
	return 0;
}

static int local_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		      struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(auto_free) char *order = local_order(local, prefix);
	AUTO(local_view_release) struct local_view view = { 0 };
	int there = local_view_load(local, prefix, &view, err);

	if (there < 0)
		return -1;
	if (there == 0) {
		struct local_found found[16];
		int count = local_scan_processes(NULL, order, found, STK_LENGTH(found), err);

		for (int i = 0; i < count; i++)
			local_scan_signal(&found[i].id, SIGTERM);
		return count < 0 ? -1 : 0;
	}
	if (local_view_is_over(&view))
		return 0; /* describe kills what may be left */
	if (view.sight == SIGHT_NONE || view.sight == SIGHT_HELD) {
		err_set(err, EXIT_REFUSED, "cannot stop '%s', which runs on '%s'", name,
			view.record.host);
		return err_hint(err, "stop the job there");
	}
	return local_view_stop(local, prefix, &view, STOP_REQUEST, grace_ms, err);
}

/* True if the attempt's files can be read here. Their place is in the record; before there is a
 * record, there is no log. */
static bool has_files(const struct local *local, const char *prefix)
{
	AUTO(local_record_release) struct local_record record = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;

	if (!local_object_workspace_root(local, prefix))
		(void)!local_record_load(local, prefix, &record, &ignored);
	return local_object_workspace_root(local, prefix) != NULL;
}

static int local_logs(struct engine *engine, const char *name, const char *prefix, int node,
		      uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_close) int fd = -1;
	char buffer[16384];

	(void)name;
	if (!has_files(local, prefix))
		return workspace_cache_logs(local->cache, prefix, node, offset, max, ret, err);
	path = local_node_path(local, prefix, node, LOG_FILE);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot open the log '%s'", path);
	while (max > 0) {
		size_t want = max < sizeof buffer ? max : sizeof buffer, before = ret->len;
		ssize_t len = pread(fd, buffer, want, (off_t)*offset);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return fs_error(err, errno, "cannot read the log '%s'", path);
		sb_add(ret, buffer, (size_t)len);
		/* Bytes that do not fit into `ret` are read by the next call. */
		*offset += ret->len - before;
		max -= ret->len - before;
		if (len == 0 || ret->len - before < (size_t)len)
			break;
	}
	return 0;
}

static int local_log_size(struct engine *engine, const char *name, const char *prefix, int node,
			  uint64_t *ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(auto_free) char *path = NULL;
	struct stat st;

	(void)name;
	if (!has_files(local, prefix))
		return workspace_cache_log_size(local->cache, prefix, node, ret, err);
	path = local_node_path(local, prefix, node, LOG_FILE);
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot see the log '%s'", path);
	*ret = (uint64_t)st.st_size;
	return 1;
}

static struct utc local_log_written(struct engine *engine, const char *name, const char *prefix,
				    int node, uint64_t offset)
{
	struct local *local = (struct local *)engine;
	AUTO(auto_free) char *path = NULL;

	(void)name;
	if (local->cache)
		return workspace_cache_log_written(local->cache, prefix, node, offset);
	path = local_node_path(local, prefix, node, TIMES_FILE);
	return log_times_find(&local->times, path, offset);
}

static int local_report(struct engine *engine, const char *name, const char *prefix, int node,
			struct node_report *ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;

	(void)name;
	has_files(local, prefix);
	return local_record_load_report(local, prefix, node, NULL, ret, err);
}

static int local_beside(struct engine *engine, const char *name, const char *prefix, int node,
			const char *file, json_t **ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;

	(void)name;
	*ret = NULL;
	has_files(local, prefix);
	return local_record_load_node(local, prefix, node, file, ret, err);
}

static int local_wake(struct engine *engine, const char *name, const char *prefix, pid_t *ret,
		      int max)
{
	const struct local *local = (const struct local *)engine;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(local_view_release) struct local_view view = { 0 };
	int count = 0;

	(void)name;
	if (local_view_load(local, prefix, &view, &ignored) <= 0)
		return 0;
	for (int i = 0; i < view.record.nodes && count < max; i++)
		if (view.nodes[i].alive)
			ret[count++] = view.nodes[i].id.pid;
	return count;
}

static int local_process(struct engine *engine, const char *name, const char *prefix, int node,
			 pid_t *ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(local_view_release) struct local_view view = { 0 };
	int there = local_view_load(local, prefix, &view, err);

	(void)name;
	if (there <= 0)
		return there;
	if (node >= view.record.nodes || !view.nodes[node].alive)
		return 0;
	return local_scan_command(view.nodes[node].id.pid, node, ret, err);
}

const struct engine_ops local_ops = {
	.name = "local",
	.open = local_open,
	.close = local_close,
	.check = local_check,
	.submit = local_submit,
	.find = local_find,
	.describe = local_describe,
	.stop = local_stop,
	.process = local_process,
	.logs = local_logs,
	.log_size = local_log_size,
	.log_written = local_log_written,
	.report = local_report,
	.beside = local_beside,
	.wake = local_wake,
};
