/* The local engine's calls, except describe: see local.h. */
#include "jobs/engine/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs.h"
#include "jobs/engine/agent_files.h"
#include "jobs/engine/local_inside.h"
#include "jobs/store/order.h"
#include "jobs/store/work.h"

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
		err_set(err, EXIT_REFUSED, "cannot tell processes apart: /proc is not there");
		return err_hint(err, "mount it: mount -t proc proc /proc");
	}
	local = mem_zero(1, sizeof *local);
	local->engine.ops = &local_ops;
	local->far = store_directory(store) ? NULL : far_new(store);
	local->near = near_new();
	local->root = work_folder(store);
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
	far_freep(&local->far);
	near_freep(&local->near);
	store_freep(&local->store);
	free(local->root);
	free(local);
}

/* The nearest folder that is there must take new ones. What a workspace elsewhere allows,
 * only requests show: that is the driver's to find out. */
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
		return fs_error(err, ENOTDIR, "cannot use the workspace '%s'", local->root);
	if (access(path, W_OK | X_OK) < 0)
		return fs_error(err, errno, "cannot write to the workspace '%s'", local->root);
	return 0;
}

/* A directory store keeps no modes; what is to be executed must be executable. */
static int make_executable(const char *path, struct err **err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return fs_error(err, errno, "cannot find the agent's '%s'", path);
	if ((st.st_mode & 0100) == 0 && chmod(path, 0700) < 0)
		return fs_error(err, errno, "cannot make '%s' executable", path);
	return 0;
}

/* How an agent is started: by its own loader where the bundle has one. */
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

/* The folder to start the agent from. Yours to free. */
static char *agent_folder(const struct local *local, const struct engine_job *job, struct err **err)
{
	AUTO(auto_free) char *folder = fs_join(local->root, job->agent_key);

	if (local->far && agent_fetch(local->store, job->agent_key, folder, err) < 0)
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
	if (local->far) {
		AUTO(auto_free) char *root = work_root();

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
	/* Our child: it keeps its pid until we reap it. */
	proc_identify(pid, ret);
	return 0;
}

/* Was anything of this submission ever there? 1 yes, 0 no, -1 cannot say. */
static int has_trace(const struct local *local, const char *prefix, const struct record *record,
		     struct err **err)
{
	AUTO(auto_free) char *order_path = local_order(local, prefix);
	struct found found;

	if (scan_processes(record ? record->token : NULL, order_path, &found, 1) > 0)
		return 1;
	for (int i = 0; i < (record ? record->nodes : 1); i++) {
		json_auto_t *report = NULL;
		int there =
			report_load(local, prefix, i, record ? record->token : NULL, &report, err);

		if (there != 0)
			return there;
	}
	return 0;
}

/* Whether /proc here tells of all that the submission may have started: on the same
 * machine, in the same PID namespace; after a restart of it there is nothing left. Another
 * boot of the same host name may be another machine: only its disk tells that it is not. */
static bool seen_here(const struct local *local, const char *prefix, const struct record *record)
{
	if (strcmp(record->boot, local->boot) == 0)
		return strcmp(record->pidns, local->pidns) == 0;
	return strcmp(record->host, local->host) == 0 && local_near_root(local, prefix) != NULL;
}

/* A record of elsewhere of which nothing is known to have been started: 1 somebody is at
 * work by its locks, 0 nobody is, -1 cannot say. */
static int find_elsewhere(const struct local *local, const char *name, const char *prefix,
			  struct err **err)
{
	AUTO(view_release) struct view view = { 0 };
	AUTO(auto_free) char *key = local_key(prefix, ENGINE_FILE);
	int there = view_load(local, prefix, &view, err);

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

/* What engine.h says of find. */
static int find_job(const struct local *local, const char *name, const char *prefix,
		    struct err **err)
{
	AUTO(record_release) struct record record = { 0 };
	int there;

	local_forget(local, prefix);
	there = record_load(local, prefix, &record, err);
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

/* Start all agents. 0 all, -1 none, 1 some or none: unknown. */
static int start_all(const struct local *local, const struct engine_job *job, struct record *record,
		     struct start *start, struct err **err)
{
	for (int i = 0; i < job->nodes; i++)
		if (start_agent(local, job->prefix, start, i, &record->agents[i], err) < 0) {
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
		return err_set(err, EXIT_DEFECT, "there is no order at '%s'", order);
	return there;
}

/* Files of an attempt of that name that is forgotten: nothing of it runs, and whoever
 * forgot it may not have reached this machine. */
static int clear_rests(const struct local *local, const char *prefix, struct err **err)
{
	AUTO(auto_free) char *folder = local->far ? fs_join(local->root, prefix) : NULL;
	AUTO(auto_free) char *made = NULL;

	if (!folder)
		return 0;
	return fs_remove_tree(folder, err) < 0 || work_folder_make(local->store, &made, err) < 0
		       ? -1
		       : 0;
}

/* It was not started: 1 where it cannot be known whether a note of it is there. */
static int not_started(const struct err *why)
{
	return why->code == EXIT_UNREACHABLE ? 1 : -1;
}

static int local_submit(struct engine *engine, const struct engine_job *job, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(record_release) struct record record = { 0 };
	AUTO(start_release) struct start start = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;
	int there = find_job(local, job->name, job->prefix, err), made, outcome;

	if (there != 0)
		return there > 0 ? 0 : 1;
	if (check_job(local, job, err) < 0 || clear_rests(local, job->prefix, err) < 0)
		return not_started(*err);
	record_init(&record, local, job->name, job->nodes);
	/* There may be a record of a submitter that died before it started anything. */
	if (make_start(local, job, record.token, &start, err) < 0 ||
	    record_remove(local, job->prefix, err) < 0)
		return not_started(*err);
	made = record_create(local, job->prefix, &record, err);
	if (made < 0)
		return not_started(*err);
	if (made == 0) {
		err_set(err, EXIT_BUSY, "someone else is starting '%s'", job->name);
		return 1;
	}
	outcome = start_all(local, job, &record, &start, err);
	if (outcome < 0)
		(void)!record_remove(local, job->prefix, &ignored);
	if (outcome != 0)
		return outcome;
	/* Not writing it costs a look at /proc each time, nothing else. */
	record.started = true;
	(void)!record_save(local, job->prefix, &record, &ignored);
	return 0;
}

static int local_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		      struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(auto_free) char *order = local_order(local, prefix);
	AUTO(view_release) struct view view = { 0 };
	int there = view_load(local, prefix, &view, err);

	if (there < 0)
		return -1;
	if (there == 0) {
		struct found found[16];
		size_t count = scan_processes(NULL, order, found, STK_LENGTH(found));

		for (size_t i = 0; i < count; i++)
			signal_process(&found[i].id, SIGTERM);
		return 0;
	}
	if (view_is_over(&view))
		return 0; /* describe kills what may be left */
	if (view.sight == SIGHT_NONE || view.sight == SIGHT_HELD) {
		err_set(err, EXIT_REFUSED, "cannot stop '%s': it runs on '%s'", name,
			view.record.host);
		return err_hint(err, "stop it there");
	}
	return view_stop(local, prefix, &view, STOP_REQUEST, grace_ms, err);
}

/* Where the files are is learnt from the record; before there is one, there is no log. */
static bool know_files(const struct local *local, const char *prefix)
{
	AUTO(record_release) struct record record = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;

	if (!local_near_root(local, prefix))
		(void)!record_load(local, prefix, &record, &ignored);
	return local_near_root(local, prefix) != NULL;
}

static int local_logs(struct engine *engine, const char *name, const char *prefix, int node,
		      uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_close) int fd = -1;
	char buffer[16384];

	(void)name;
	if (!know_files(local, prefix))
		return far_logs(local->far, prefix, node, offset, max, ret, err);
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
		/* What the builder has no room for is read by the next call. */
		*offset += ret->len - before;
		max -= ret->len - before;
		if (len == 0 || ret->len - before < (size_t)len)
			break;
	}
	return 0;
}

static int local_report(struct engine *engine, const char *name, const char *prefix, int node,
			json_t **ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;

	(void)name;
	*ret = NULL;
	know_files(local, prefix);
	return report_load(local, prefix, node, NULL, ret, err);
}

static int local_wake(struct engine *engine, const char *name, const char *prefix, pid_t *ret,
		      int max)
{
	const struct local *local = (const struct local *)engine;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(view_release) struct view view = { 0 };
	int count = 0;

	(void)name;
	if (view_load(local, prefix, &view, &ignored) <= 0)
		return 0;
	for (int i = 0; i < view.record.nodes && count < max; i++)
		if (view.nodes[i].alive)
			ret[count++] = view.nodes[i].id.pid;
	return count;
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
	.logs = local_logs,
	.report = local_report,
	.wake = local_wake,
};
