/* Node 0 waits for the others before it leaves: see main_node_exit.h. */
#include "jobs/node/main_node_exit.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/base/process/cancel.h"
#include "jobs/node/agent.h"
#include "jobs/node/command/command_stop.h"
#include "jobs/node/node_flag.h"
#include "jobs/store/store_json.h"

#define FIRST_PAUSE_MS  250
#define PEERS_SILENT_MS ((int64_t)10 * 60 * 1000)
/* Time beyond the grace: to hear that the attempt has failed, and to upload what is left. */
#define PEERS_STOP_MS ((int64_t)60 * 1000)

struct leaver {
	char life[SHA256_HEX]; /* digest of all that the node has in the workspace */
	char report[STORE_TAG], seen[STORE_TAG];
	struct mono at;    /* when `life` changed */
	bool over, brings; /* the report is final; outputs are being uploaded */
};

struct leaving {
	struct leaver *nodes;
	int count;
	size_t prefix;
};

static bool is_needed(const struct agent *agent)
{
	const struct agent_config *config = &agent->config;

	/* If the service names the nodes, it lets each end by itself. */
	return config->node == 0 && config->nodes > 1 && config->object_workspace &&
	       config->platform.apart && config->platform.host_count == 0 && !agent->told_at.ms &&
	       strcmp(agent->state, REPORT_NOT_MINE) != 0;
}

/* Notes an object "node-<k>/…": a change of any of them is a sign of life. */
static int note_object(void *arg, const struct store_object *object, struct err **err)
{
	struct leaving *leaving = arg;
	const char *at = object->key + leaving->prefix;
	AUTO(auto_free) char *text = NULL;
	struct leaver *node;
	char *rest;
	long k = strtol(at, &rest, 10);

	(void)err;
	if (rest == at || *rest != '/' || k < 1 || k >= leaving->count)
		return 0;
	node = &leaving->nodes[k];
	text = mem_format("%s %s %s", node->life, rest, object->tag);
	hash_sha256_hex(text, strlen(text), node->life);
	if (strcmp(rest, "/" REPORT_FILE) == 0)
		memcpy(node->report, object->tag, sizeof node->report);
	return 0;
}

static void read_report(const struct agent *agent, int k, struct leaver *node)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/" REPORT_FILE, agent->config.prefix, k);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX + 1);
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };

	if (strcmp(node->report, node->seen) == 0 ||
	    store_get(agent->store, key, REPORT_MAX, &text, node->seen, &ignored) <= 0 ||
	    node_report_parse(text.text, text.len, &report, &ignored) < 0)
		return;
	node->over = node_report_is_final(&report);
	node->brings = outputs_under_way(&report);
}

/* A single listing shows all nodes. */
static void read_nodes(const struct agent *agent, struct leaving *leaving, struct mono now)
{
	AUTO(auto_free) char *prefix = mem_format("%snode-", agent->config.prefix);
	AUTO(auto_free)
	struct leaver *before = mem_zero((size_t)leaving->count, sizeof *before);
	AUTO(err_freep) struct err *ignored = NULL;

	memcpy(before, leaving->nodes, (size_t)leaving->count * sizeof *before);
	for (int k = 0; k < leaving->count; k++)
		leaving->nodes[k].life[0] = '\0';
	leaving->prefix = strlen(prefix);
	if (store_list(agent->store, prefix, note_object, leaving, &ignored) < 0) {
		/* A failed listing is not the silence of a node. */
		memcpy(leaving->nodes, before, (size_t)leaving->count * sizeof *before);
		for (int k = 0; k < leaving->count; k++)
			leaving->nodes[k].at = now;
		return;
	}
	for (int k = 1; k < leaving->count; k++) {
		struct leaver *node = &leaving->nodes[k];

		if (strcmp(node->life, before[k].life) != 0)
			node->at = now;
		read_report(agent, k, node);
	}
}

static bool all_gone(const struct leaving *leaving, struct mono now)
{
	for (int k = 1; k < leaving->count; k++) {
		const struct leaver *node = &leaving->nodes[k];

		if (!node->over && now.ms - node->at.ms < PEERS_SILENT_MS)
			return false;
	}
	return true;
}

/* True if a node still uploads outputs; the others are stopped by now. */
static bool any_brings(const struct leaving *leaving, struct mono now)
{
	for (int k = 1; k < leaving->count; k++) {
		const struct leaver *node = &leaving->nodes[k];

		if (!node->over && node->brings && now.ms - node->at.ms < PEERS_SILENT_MS)
			return true;
	}
	return false;
}

/* Nodes of one start begin within this time; a service takes longer to start a job again. */
#define SAME_START_MS ((int64_t)60 * 1000)

static bool ended_in_this_start(const struct agent *agent, const json_t *report)
{
	const char *token = js_str(report, "token");

	/* If node 0 was stopped from outside, this may be its restart. */
	return (js_is(report, "state", REPORT_ENDED) || js_is(report, "state", REPORT_FAILED)) &&
	       !js_str(report, "stopped") && js_is(report, "job", agent->config.job) &&
	       strcmp(token ? token : "", agent->config.token) == 0 &&
	       js_int(report, "ended", 0) >= agent->begun.ms - SAME_START_MS;
}

bool main_node_exit_missed(struct agent *agent)
{
	const struct agent_config *config = &agent->config;
	AUTO(auto_free) char *key = mem_format("%snode-0/" REPORT_FILE, config->prefix);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *report = NULL;

	if (config->node == 0 || config->platform.restart >= 0 || agent->claim.believed ||
	    store_json_get(agent->store, key, REPORT_MAX, &report, NULL, &ignored) <= 0 ||
	    !ended_in_this_start(agent, report))
		return false;
	if (js_int(report, "exit", 1) != 0)
		command_stop(agent, STOPPED_PEER);
	else
		agent->claim.believed = true;
	return true;
}

void main_node_exit_wait(struct agent *agent)
{
	const struct agent_config *config = &agent->config;
	struct leaving leaving = { .count = config->nodes };
	struct mono begun = clock_mono_now(), now = begun;
	AUTO(auto_free) struct leaver *nodes = mem_zero((size_t)config->nodes, sizeof *nodes);
	int64_t pause = FIRST_PAUSE_MS;
	/* Time for nodes that were told to stop. */
	int64_t limit =
		agent->exit != 0 || agent->stopped ? config->grace_ms + PEERS_STOP_MS : INT64_MAX;

	leaving.nodes = nodes;
	for (;;) {
		if (agent->ended_due) /* no uploader is left to do it */
			agent->ended_due =
				!node_flag_set(config, agent->store, ENDED_FILE, json_object());
		/* Without the flag nobody would judge the silence of the others. */
		if (!agent->ended_due && !is_needed(agent))
			return;
		read_nodes(agent, &leaving, now);
		now = clock_mono_now();
		if (all_gone(&leaving, now) ||
		    (now.ms - begun.ms >= limit && !any_brings(&leaving, now)))
			return;
		for (int64_t left = pause; left > 0; left -= FIRST_PAUSE_MS) {
			if (loop_stop_take())
				return;
			cancel_pause_briefly(FIRST_PAUSE_MS);
		}
		pause = 2 * pause < config->look_ms ? 2 * pause : config->look_ms;
	}
}
