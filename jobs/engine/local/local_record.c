/* The local engine's record of an attempt, and the agents' reports: see local.h for the format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/engine/local/local_internal.h"
#include "jobs/store/order.h"

#define RECORD_MAX ((size_t)16 << 20)
#define NODES_MAX  100000

static const char *const stop_names[] = {
	[STOP_NONE] = "none",
	[STOP_REQUEST] = "request",
	[STOP_PEER] = "peer",
};

char *local_key(const char *prefix, const char *name)
{
	return mem_format("%s%s", prefix, name);
}

char *local_node_key(const char *prefix, int node, const char *name)
{
	return mem_format("%snode-%d/%s", prefix, node, name);
}

char *local_order(const struct local *local, const char *prefix)
{
	AUTO(auto_free) char *key = local_key(prefix, ORDER_FILE);

	return local->cache ? mem_format("%s/%s", store_url(local->store), key)
			    : fs_join(local->root, key);
}

char *local_node_path(const struct local *local, const char *prefix, int node, const char *name)
{
	const char *root = local_object_workspace_root(local, prefix);
	AUTO(auto_free) char *key = local_node_key(prefix, node, name);

	return root ? fs_join(root, key) : NULL;
}

void local_record_release(struct local_record *record)
{
	free(record->agents);
	free(record->ends);
	free(record->work);
	*record = (struct local_record){ 0 };
}

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

void local_record_init(struct local_record *record, const struct local *local, const char *job,
		       int nodes)
{
	*record = (struct local_record){ .nodes = nodes, .submitted_ms = clock_utc_now().ms };
	hash_random_hex((TOKEN_TEXT - 1) / 2, record->token);
	copy_text(record->job, sizeof record->job, job);
	copy_text(record->boot, sizeof record->boot, local->boot);
	copy_text(record->pidns, sizeof record->pidns, local->pidns);
	copy_text(record->host, sizeof record->host, local->host);
	record->work = mem_copy(local->root);
	record->agents = mem_zero((size_t)nodes, sizeof *record->agents);
	record->ends = mem_zero((size_t)nodes, sizeof *record->ends);
	proc_identify(getpid(), &record->submitter);
}

static json_t *process_json(const struct proc_id *id)
{
	json_t *process = json_object();

	js_put(process, "pid", json_integer(id->pid));
	js_put(process, "start", json_integer((json_int_t)id->start_ticks));
	return process;
}

static void process_read(const json_t *process, const char *boot, struct proc_id *ret)
{
	*ret = (struct proc_id){ .pid = (pid_t)js_int(process, "pid", 0),
				 .start_ticks = (uint64_t)js_int(process, "start", 0) };
	copy_text(ret->boot_id, sizeof ret->boot_id, boot);
}

static char *record_text(const struct local_record *record)
{
	json_auto_t *body = json_object();
	json_t *agents = json_array();

	js_put(body, "v", json_integer(1));
	js_put_str(body, "job", record->job);
	js_put_str(body, "token", record->token);
	js_put(body, "nodes", json_integer(record->nodes));
	js_put_str(body, "state", record->started ? "started" : "starting");
	js_put_str(body, "host", record->host);
	js_put_str(body, "boot", record->boot);
	js_put_str(body, "pidns", record->pidns);
	js_put_str(body, "work", record->work);
	js_put(body, "submitted", json_integer(record->submitted_ms));
	js_put(body, "submitter", process_json(&record->submitter));
	for (int i = 0; i < record->nodes && record->started; i++) {
		json_t *agent = process_json(&record->agents[i]);

		if (record->ends[i].known)
			js_put(agent, "status", json_integer(record->ends[i].status));
		json_array_append_new(agents, agent);
	}
	js_put(body, "agents", agents);
	if (record->stop != STOP_NONE) {
		json_t *stop = json_object();

		js_put(stop, "at", json_integer(record->stop_at_ms));
		js_put_str(stop, "why", stop_names[record->stop]);
		js_put(body, "stop", stop);
	}
	return js_line(body);
}

static void read_stop(struct local_record *record, const json_t *stop)
{
	const char *why = js_str(stop, "why");

	for (size_t i = 0; why && i < STK_LENGTH(stop_names); i++)
		if (strcmp(stop_names[i], why) == 0)
			record->stop = (enum stop_why)i;
	record->stop_at_ms = js_int(stop, "at", 0);
}

static int record_read(struct local_record *record, const json_t *body, struct err **err)
{
	int64_t nodes = js_int(body, "nodes", 0);
	const char *state = js_str(body, "state");
	const json_t *agents = json_object_get(body, "agents");

	if (js_int(body, "v", 0) != 1 || nodes < 1 || nodes > NODES_MAX || !state)
		return err_set(err, EXIT_REFUSED, "not a record of this version");
	record->nodes = (int)nodes;
	record->started = strcmp(state, "started") == 0;
	copy_text(record->job, sizeof record->job, js_str(body, "job"));
	copy_text(record->token, sizeof record->token, js_str(body, "token"));
	copy_text(record->boot, sizeof record->boot, js_str(body, "boot"));
	copy_text(record->pidns, sizeof record->pidns, js_str(body, "pidns"));
	copy_text(record->host, sizeof record->host, js_str(body, "host"));
	record->work = js_str(body, "work") ? mem_copy(js_str(body, "work")) : NULL;
	record->submitted_ms = js_int(body, "submitted", 0);
	process_read(json_object_get(body, "submitter"), record->boot, &record->submitter);
	record->agents = mem_zero((size_t)nodes, sizeof *record->agents);
	record->ends = mem_zero((size_t)nodes, sizeof *record->ends);
	for (int i = 0; i < record->nodes; i++) {
		const json_t *agent = json_array_get(agents, (size_t)i);

		process_read(agent, record->boot, &record->agents[i]);
		record->ends[i].known = json_object_get(agent, "status") != NULL;
		record->ends[i].status = (int)js_int(agent, "status", 0);
	}
	read_stop(record, json_object_get(body, "stop"));
	if (!*record->token)
		return err_set(err, EXIT_REFUSED, "no token");
	return 0;
}

/* Reads the file if it exists: 1, 0, -1. */
static int read_file(const char *path, size_t max, struct sb *ret, struct err **err)
{
	if (fs_read(path, max, ret, err) == 0)
		return 1;
	if ((*err)->os_errno != ENOENT)
		return -1;
	err_freep(err);
	return 0;
}

/* Returns the path of the record's copy beneath `root`. The caller frees it. */
static char *copy_path(const char *root, const char *prefix)
{
	AUTO(auto_free) char *key = local_key(prefix, ENGINE_FILE);

	return fs_join(root, key);
}

/* Looks for the attempt's files here. They can be read, on whatever machine it was started, if they
 * include a copy of this very record. */
static void find_files(const struct local *local, const char *prefix,
		       const struct local_record *record)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(RECORD_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *path = NULL;
	json_auto_t *body = NULL;

	if (!local->cache || local_object_workspace_root(local, prefix) || !record->work ||
	    record->work[0] != '/')
		return;
	path = copy_path(record->work, prefix);
	if (read_file(path, RECORD_MAX, &text, &ignored) <= 0 ||
	    js_parse(text.text, text.len, path, &body, &ignored) < 0)
		return;
	if (js_is(body, "token", record->token))
		local_remember_root(local, prefix, record->work);
}

/* Reads the nearest copy of the record: 1, 0, -1. */
static int record_get(const struct local *local, const char *prefix, struct sb *text,
		      struct err **err)
{
	AUTO(auto_free) char *key = local_key(prefix, ENGINE_FILE);
	const char *root = local->cache ? local_object_workspace_root(local, prefix) : NULL;

	if (root) {
		AUTO(auto_free) char *path = copy_path(root, prefix);
		int there = read_file(path, RECORD_MAX, text, err);

		if (there != 0)
			return there;
	}
	return local_get(local, key, RECORD_MAX, text, err);
}

int local_record_load(const struct local *local, const char *prefix, struct local_record *ret,
		      struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(RECORD_MAX);
	AUTO(local_record_release) struct local_record record = { 0 };
	json_auto_t *body = NULL;
	int there = record_get(local, prefix, &text, err);

	if (there > 0 && (js_parse(text.text, text.len, ENGINE_FILE, &body, err) < 0 ||
			  record_read(&record, body, err) < 0))
		there = -1;
	if (there < 0)
		return err_wrap(err, "cannot read the engine's record '%s%s'", prefix, ENGINE_FILE);
	if (there == 0)
		return 0;
	find_files(local, prefix, &record);
	*ret = record;
	record = (struct local_record){ 0 };
	return 1;
}

/* Written before the store: this copy is read ten times a second. */
static int save_copy(const struct local *local, const char *prefix, const char *text,
		     struct err **err)
{
	const char *root = local_object_workspace_root(local, prefix);
	AUTO(auto_free) char *path = root && local->cache ? copy_path(root, prefix) : NULL;
	AUTO(auto_free) char *folder = path ? fs_dirname(path) : NULL;

	if (!path)
		return 0;
	return fs_mkdirs(folder, err) < 0 ||
			       fs_write_atomic(path, text, strlen(text), 0600, err) < 0
		       ? -1
		       : 0;
}

int local_record_save(const struct local *local, const char *prefix,
		      const struct local_record *record, struct err **err)
{
	AUTO(auto_free) char *key = local_key(prefix, ENGINE_FILE);
	AUTO(auto_free) char *text = record_text(record);

	if (save_copy(local, prefix, text, err) < 0)
		return -1;
	return store_put(local->store, key, text, strlen(text), err);
}

int local_record_create(const struct local *local, const char *prefix,
			const struct local_record *record, struct err **err)
{
	AUTO(auto_free) char *key = local_key(prefix, ENGINE_FILE);
	AUTO(auto_free) char *text = record_text(record);
	AUTO(auto_free) char *path = local->cache ? copy_path(local->root, prefix) : NULL;
	int made;

	if (path && fs_exists(path)) /* another process's: ours are cleared before */
		return 0;
	local_remember_root(local, prefix, local->root);
	/* The copy is written before the store: after a power cut it shows that this is the machine
	 * of the record, and that nothing of it runs any more. */
	if (save_copy(local, prefix, text, err) < 0)
		return -1;
	made = store_put_if_absent(local->store, key, text, strlen(text), err);
	if (made == 0)
		local_forget(local, prefix);
	return made;
}

int local_record_remove(const struct local *local, const char *prefix, struct err **err)
{
	AUTO(auto_free) char *key = local_key(prefix, ENGINE_FILE);

	local_forget(local, prefix);
	return store_delete(local->store, key, err);
}

int local_record_load_node(const struct local *local, const char *prefix, int node,
			   const char *file, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = local_node_key(prefix, node, file);
	AUTO(auto_free)
	char *path = local->cache ? local_node_path(local, prefix, node, file) : NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	int there = path ? read_file(path, REPORT_MAX, &text, err)
			 : local_get(local, key, REPORT_MAX, &text, err);

	if (there > 0 && js_parse(text.text, text.len, "an agent's object", ret, err) < 0)
		there = -1;
	return there < 0 ? err_wrap(err, "cannot read '%s' of node %d", file, node) : there;
}

int local_record_load_report(const struct local *local, const char *prefix, int node,
			     const char *token, struct node_report *ret, struct err **err)
{
	json_auto_t *body = NULL;
	int there = local_record_load_node(local, prefix, node, REPORT_FILE, &body, err);

	if (there <= 0)
		return there;
	if (message_decode(node_report_message, body, ret, err) < 0)
		return err_wrap(err, "cannot read '%s' of node %d", REPORT_FILE, node);
	if (!token || strcmp(ret->token ? ret->token : "", token) == 0)
		return 1;
	node_report_release(ret);
	return 0;
}

bool local_record_process_of_report(const struct node_report_process *process, struct proc_id *ret)
{
	if (process->pid <= 1)
		return false;
	*ret = (struct proc_id){ .pid = (pid_t)process->pid,
				 .start_ticks = (uint64_t)process->start };
	copy_text(ret->boot_id, sizeof ret->boot_id, process->boot);
	return true;
}
