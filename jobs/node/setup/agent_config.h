/*
 * The order as one agent understands it: order.json, checked, with the rank and the folders of this
 * node. Read once at the start; later only the claim sets `restart`, and resume.h the checkpoint to
 * resume from.
 *
 * The order is named by its path or by a URL of the workspace. For a path the node's folder lies
 * beside the order, for a URL in the folder that goes with the workspace
 * (jobs/store/local_store_dir.h).
 */
#ifndef STK_NODE_SETUP_AGENT_CONFIG_H
#define STK_NODE_SETUP_AGENT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"
#include "jobs/node/setup/engine_env.h"
#include "jobs/store/order.h"

struct accelerator;
struct compile_kind;
struct node_task;

/* Strings are borrowed from `order`, except those marked as owned. */
struct agent_config {
	struct order *order; /* owned */
	const char *run, *phase, *job, *nonce, *workspace, *prefix, *run_prefix;
	const char *source; /* key of the bundle, or NULL */
	int64_t attempt;
	int64_t restart; /* start of the job, by the engine; if it gives none, by the claim */
	int nodes, node;
	struct engine_env platform; /* owned */
	const char *token;          /* from the environment; "" if the engine has none */
	bool scratch;
	bool object_workspace; /* the workspace is not a directory: requests may take time */
	int64_t grace_ms, heartbeat_ms, claim_wait_ms;
	int64_t look_ms;    /* between two looks at a far workspace */
	int64_t timeout_ms; /* limit of the command; 0: none */
	int64_t stop_ms;    /* from a signal to the end of all; 0: no limit */
	char *dir;          /* owned: node-<k>, absolute */
	char *src;          /* owned: working directory of the command */
	char *checkpoint;   /* owned: absolute */
	char *output;       /* owned: absolute */
	/* Key of the workspace beneath which the attempt's outputs are; NULL: they are not kept. */
	const char *outputs;
	/* The task that the command works on, its STOKER_OUTPUT_DIR and STOKER_DATA_MANIFEST (NULL:
	 * none); all borrowed; NULL: the order has no tasks (jobs/node/tasks/tasks.h). */
	const struct node_task *task;
	const char *task_output, *task_manifest;
};

/* Errors say what in the order is wrong (EXIT_DEFECT: stoker wrote it). */
int agent_config_load(const char *order, const char *rank, struct agent_config *ret,
		      struct err **err);
void agent_config_release(struct agent_config *config); /* for AUTO(); { 0 } is fine */

/* Returns the kind of the node's accelerators, as far as the order tells: by its compiler where it
 * names none; NULL: none, or not known. */
const struct accelerator *agent_config_accelerator(const struct agent_config *config);

/* Milliseconds after a signal from outside until which the command may live, checkpoints may be
 * copied, outputs may be uploaded, and the log and the report may be uploaded. Each is the grace,
 * or less if the machine is gone so soon that no time would be left for the steps that follow. */
int64_t agent_config_kill_ms(const struct agent_config *config);
int64_t agent_config_keep_ms(const struct agent_config *config);
int64_t agent_config_outputs_ms(const struct agent_config *config);
int64_t agent_config_bring_ms(const struct agent_config *config);

/* Interval at which nodes hear of each other's progress, in milliseconds. */
int64_t agent_config_exchange_ms(const struct agent_config *config);

/* Returns a key beneath the attempt's prefix or this node's folder. The caller frees it. */
char *agent_config_key(const struct agent_config *config, const char *name);
char *agent_config_node_key(const struct agent_config *config, const char *name);
/* Returns the key of this node's outputs, with config->outputs; each start after the first has a
 * key of its own. The caller frees it. */
char *agent_config_outputs_key(const struct agent_config *config);

/* Returns the URL, or path, of the checkpoint that the command resumes from; NULL if none. */
const char *agent_config_resumed_url(const struct agent_config *config);
/* Returns the path on this node that the command resumes from, NULL if none. The caller frees
 * it. */
char *agent_config_resumed(const struct agent_config *config);
/* Return the list of the data on this node, and the folder with its objects, once they were fetched
 * (fetch.h); NULL if there is none. The caller frees it. */
char *agent_config_data_manifest(const struct agent_config *config);
char *agent_config_data_dir(const struct agent_config *config);
/* Returns the value of STOKER_INIT_FROM: the parent where it is on this node, once it was fetched
 * (fetch.h); NULL if there is none. The caller frees it. */
char *agent_config_init_from(const struct agent_config *config);
/* The same for a model of the tasks, of that role. */
char *agent_config_model(const struct agent_config *config, const char *role);
/* Returns the folder that stands for the compile cache on this node; NULL if the command uses the
 * cache where it lies, or there is none. The caller frees it. */
char *agent_config_cache(const struct agent_config *config);
/* Returns the row of the order's compiler kind; NULL if the order names none. */
const struct compile_kind *agent_config_compile_kind(const struct agent_config *config);

#endif
