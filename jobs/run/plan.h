/*
 * The plan: a spec with every default resolved, the source pinned, the graph
 * key computed and each phase's command as the script will see it. Making one
 * changes nothing anywhere.
 *
 * A plan is one JSON object, journalled in run.created, from which any driver
 * on any machine carries the run on without the spec file:
 *
 *   {"v":1, "name", "engine", "spec_file", "nodes", "grace_ms",
 *    "spec": {the resolved spec},
 *    "instance": what the catalogue knows of the machines (jobs/spec/instance.h; absent: the
 *               spec names no type),
 *    "aws": {"region", "account"} that were in force when the run was created (only in
 *           run.created, and of an engine that sends its jobs to AWS; "account" absent: STS
 *           could not tell),
 *    "workspace": absolute path, or URL without a slash at its end,
 *    "source": {"kind", "commit", "dirty", "digest", "files": count, "root",
 *               "bundle": key in the workspace, "links": [[name, target]…]},
 *    "compile": {"kind", "cache", "graph_key", "ingredients", "compiler",
 *                "quiet_ms", "timeout_ms", "on_incomplete", "mode": "aot" | "jit",
 *                "jit_graphs", "on_exceed": "warn" | "stop" | "recompile"}
 *               (absent: nothing is compiled),
 *    "phases": [{"phase", "command": […], "env": {…}, "front": a program that is
 *               put in front of the command (absent: none)}…]; without "mode"
 *               "aot" the training alone,
 *    "secrets": {name: where its value comes from},
 *    "metrics": [{"name","regex"}…], "steps": {phase: max_steps},
 *    "notify": [{"when": […], "command": […] | "webhook": URL}…] (absent: nobody is told),
 *    "retry": {…}, "limits": {"deadline_ms", "queue_ms", "start_ms",
 *     "unreachable_ms" (0: none), "cost", "price" (USD, of a node and hour; absent: none,
 * unknown)}, "stall": as in the order (jobs/store/order.h), "checkpoint": {"url" (absolute; absent:
 * where the command writes), "kind", "sync", "keep", "signal", "grace_ms", "on_mismatch"}}
 *
 * Values of secrets are never in it.
 */
#ifndef STK_RUN_PLAN_H
#define STK_RUN_PLAN_H

#include "jobs/base/json.h"
#include "jobs/cache/lock.h"
#include "jobs/flow/flow.h"
#include "jobs/run/journal.h"
#include "jobs/source/source.h"
#include "jobs/spec/spec.h"

struct plan {
	json_t *json;
	char digest[SHA256_HEX];   /* of its canonical form: the identity of the plan */
	struct source_pin *pin;    /* what `json.source` was made from; NULL after a reload */
	char *root, *rev, *memory; /* the request that made the pin */
};

/* The journal gives the default workspace, and where digests of sources are remembered.
 * The spec must be ready to run (see spec_unready). */
int plan_make(const struct spec *spec, const struct journal *journal, struct plan **ret,
	      struct err **err);
void plan_freep(struct plan **plan);

/* The identity of a plan. What the catalogue knows is no part of it, nor is "aws": a repeated
 * step goes on with its run though a price has changed, or the caller's region. */
void plan_digest(const json_t *plan, char ret_hex[SHA256_HEX]);

/* Do attempts run stoker's agent? Without it nothing is claimed, checked, marked or resumed,
 * and the driver watches from outside (outside.h). */
bool plan_has_agent(const json_t *plan);
/* What this plan's runs are not given for want of an agent, in words for people: a new array
 * of texts; NULL: nothing. */
json_t *plan_not_held(const json_t *plan);

/* Bring the source bundle into the workspace, where it is not there yet. */
int plan_publish(const struct plan *plan, struct err **err);

/* The phase's part of a plan, NULL if it has no such phase. */
json_t *plan_phase(const json_t *plan, const char *phase);

void plan_policy(const json_t *plan, const char *run, struct flow_policy *ret);

/* What the cache says to a plan right now. */
struct cache_view {
	enum cache_state verdict;
	int64_t graphs;            /* that the lock names */
	json_t *changed;           /* [{"field","old","new"}]: why it is cold */
	json_t *problems;          /* entries of the lock that are not as it says; may be NULL */
	char *reason;              /* one line for people */
	struct compile_lock *lock; /* for this graph key; NULL if there is none */
	struct lock_report report; /* of that lock */
};
int cache_view_make(const json_t *plan, struct cache_view *ret, struct err **err);
void cache_view_clear(struct cache_view *view); /* for AUTO() */

#endif
