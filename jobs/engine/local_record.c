/* What the local engine writes down about an attempt, and the agents' reports
 * as it reads them: see local.h for the format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs.h"
#include "jobs/base/hash.h"
#include "jobs/engine/local_inside.h"
#include "jobs/store/order.h"

#define RECORD_MAX ((size_t)16 << 20)
#define NODES_MAX  100000

static const char *const stop_names[] = {
	[STOP_NONE] = "none",
	[STOP_REQUEST] = "request",
	[STOP_PEER] = "peer",
};

char *local_path(const struct local *local, const char *prefix, const char *name)
{
	AUTO(auto_free) char *folder = fs_join(local->root, prefix);

	return fs_join(folder, name);
}

char *local_node_path(const struct local *local, const char *prefix, int node, const char *name)
{
	AUTO(auto_free) char *inside = mem_format("node-%d/%s", node, name);

	return local_path(local, prefix, inside);
}

void record_release(struct record *record)
{
	free(record->agents);
	free(record->ends);
	*record = (struct record){ 0 };
}

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

void record_init(struct record *record, const struct local *local, const char *job, int nodes)
{
	unsigned char bytes[(TOKEN_TEXT - 1) / 2];

	*record = (struct record){ .nodes = nodes, .submitted_ms = utc_now().ms };
	random_bytes(bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(record->token + 2 * i, 3, "%02x", bytes[i]);
	copy_text(record->job, sizeof record->job, job);
	copy_text(record->boot, sizeof record->boot, local->boot);
	copy_text(record->pidns, sizeof record->pidns, local->pidns);
	copy_text(record->host, sizeof record->host, local->host);
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

static char *record_text(const struct record *record)
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

static void read_stop(struct record *record, const json_t *stop)
{
	const char *why = js_str(stop, "why");

	for (size_t i = 0; why && i < STK_LENGTH(stop_names); i++)
		if (strcmp(stop_names[i], why) == 0)
			record->stop = (enum stop_why)i;
	record->stop_at_ms = js_int(stop, "at", 0);
}

static int record_read(struct record *record, const json_t *body, struct err **err)
{
	int64_t nodes = js_int(body, "nodes", 0);
	const char *state = js_str(body, "state");
	const json_t *agents = json_object_get(body, "agents");

	if (js_int(body, "v", 0) != 1 || nodes < 1 || nodes > NODES_MAX || !state)
		return err_set(err, EXIT_REFUSED, "it is not a record of this version");
	record->nodes = (int)nodes;
	record->started = strcmp(state, "started") == 0;
	copy_text(record->job, sizeof record->job, js_str(body, "job"));
	copy_text(record->token, sizeof record->token, js_str(body, "token"));
	copy_text(record->boot, sizeof record->boot, js_str(body, "boot"));
	copy_text(record->pidns, sizeof record->pidns, js_str(body, "pidns"));
	copy_text(record->host, sizeof record->host, js_str(body, "host"));
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
		return err_set(err, EXIT_REFUSED, "it holds no token");
	return 0;
}

/* 1 loaded, 0 absent, -1 error. */
static int load_if_there(const char *path, size_t max, json_t **ret, struct err **err)
{
	if (js_load(path, max, ret, err) == 0)
		return 1;
	if ((*err)->os_errno != ENOENT)
		return -1;
	err_freep(err);
	return 0;
}

int record_load(const struct local *local, const char *prefix, struct record *ret, struct err **err)
{
	AUTO(auto_free) char *path = local_path(local, prefix, ENGINE_FILE);
	AUTO(record_release) struct record record = { 0 };
	json_auto_t *body = NULL;
	int there = load_if_there(path, RECORD_MAX, &body, err);

	if (there > 0 && record_read(&record, body, err) < 0)
		there = -1;
	if (there < 0)
		return err_wrap(err, "cannot read the engine's record '%s'", path);
	if (there == 0)
		return 0;
	*ret = record;
	record = (struct record){ 0 };
	return 1;
}

int record_save(const struct local *local, const char *prefix, const struct record *record,
		struct err **err)
{
	AUTO(auto_free) char *path = local_path(local, prefix, ENGINE_FILE);
	AUTO(auto_free) char *text = record_text(record);

	return fs_write_atomic(path, text, strlen(text), 0600, err);
}

int record_create(const struct local *local, const char *prefix, const struct record *record,
		  struct err **err)
{
	AUTO(auto_free) char *path = local_path(local, prefix, ENGINE_FILE);
	AUTO(auto_free) char *text = record_text(record);

	return fs_create_atomic(path, text, strlen(text), 0600, err);
}

int report_load(const struct local *local, const char *prefix, int node, const char *token,
		json_t **ret, struct err **err)
{
	AUTO(auto_free) char *path = local_node_path(local, prefix, node, REPORT_FILE);
	json_auto_t *body = NULL;
	const char *theirs;
	int there = load_if_there(path, REPORT_MAX, &body, err);

	if (there <= 0)
		return there < 0 ? err_wrap(err, "cannot read the report of node %d", node) : 0;
	theirs = js_str(body, "token");
	if (token && strcmp(theirs ? theirs : "", token) != 0)
		return 0;
	*ret = json_incref(body);
	return 1;
}

bool report_is_final(const json_t *report)
{
	const char *state = js_str(report, "state");

	return state && (strcmp(state, REPORT_ENDED) == 0 || strcmp(state, REPORT_FAILED) == 0 ||
			 strcmp(state, REPORT_NOT_MINE) == 0);
}

bool report_process_of(const json_t *report, const char *name, struct proc_id *ret)
{
	const json_t *process = json_object_get(report, name);

	if (js_int(process, "pid", 0) <= 1)
		return false;
	process_read(process, js_str(process, "boot"), ret);
	return true;
}
