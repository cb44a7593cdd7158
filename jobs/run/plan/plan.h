/*
 * The plan: a spec with every default resolved, the source pinned, the graph key computed and each
 * phase's command as the script will see it. Making a plan changes nothing anywhere.
 *
 * A plan is one JSON object, journalled in run.created, from which any driver on any machine
 * carries the run on without the spec file:
 *
 *   {"v":1, "name", "engine", "spec_file", "nodes", "grace_ms",
 *    "spec": {the resolved spec},
 *    "origins": where each value came from, as spec_origins() has it,
 *    "instance": what the catalogue knows of the machines (jobs/spec/machines/instance.h; absent:
 *               the spec names no type),
 *    "aws": {"region", "account"} that were in force when the run was created (only in
 *           run.created, and of an engine that sends its jobs to AWS; "account" absent: STS could
 *           not tell),
 *    "workspace": absolute path, or URL without a slash at its end,
 *    "source": {"kind", "commit", "dirty", "digest", "files": count, "root", "bundle": key in the
 *              workspace, "links": [[name, target]…]},
 *    "image": {"reference": as the spec has it, "digest", "pinned": the reference with that
 *             digest; until it is resolved neither, and why not in "unknown" and "hint", with
 *             "unasked": true if a command that only looks could ask nobody; of a run
 *             also "env": those variables of the image's ENV that steer the kind's compiler, or
 *             why they are not known in "env_unknown" and "env_hint"} (absent: the jobs run in no
 *             image),
 *    "compile": {"kind", "cache", "graph_key" (absent until the image is resolved),
 *               "ingredients", "compiler": what this machine has installed (absent: "image"),
 *               "quiet_ms", "timeout_ms", "on_incomplete", "mode": "aot" | "jit",
 *               "jit_graphs", "on_exceed": "warn" | "stop" | "recompile"}
 *              (absent: nothing is compiled),
 *    "benchmark": true (absent: it is none),
 *    "debug": {"kind": as the spec names it, "variables": {name: value} that the training has for
 *             it} (absent: no debug run),
 *    "phases": [{"phase", "command": […], "env": {…}, "front": a program that is
 *               put in front of the command (absent: none), "processes": as spec_processes()
 *               (absent: not a torchrun command)}…]; without "mode" "aot" the training alone,
 *    "length", "width": of phase 1, as spec_length() and spec_width() (absent: no phase 1),
 *    "secrets": {name: where its value comes from},
 *    "metrics": [{"name","regex"}…], "steps": {phase: how many},
 *    "look": what the agent tries in place of the command (jobs/store/order.def; absent: the
 * command runs), of a run that 'doctor --inside' begins, "notify": [{"when": […], "command": […] |
 * "webhook": URL}…] (absent: no notifications), "retry": {…}, "limits": {"deadline_ms", "queue_ms",
 * "start_ms", "unreachable_ms" (0: none), "cost", "price" (USD, of a node and hour; absent: none,
 *     unknown)}, "stall": as in the order (jobs/store/order.h),
 *    "checkpoint": {"url" (absolute; absent: where the command writes), "kind", "sync", "keep",
 *                  "signal", "grace_ms", "on_mismatch"}}
 *
 * If the spec has any section of retraining (spec_retrains()), also the following, with defaults
 * resolved; places are absolute paths or URLs. What the run is given (manifest, parent, baseline)
 * is not in the plan, but in the inputs of run.created.
 *
 *   {"data": {"url", "include": [pattern…], "incremental", "done_marker" (absent: none),
 * "settle_ms", "min_new", "fetch", "on_change": "warn" | "stop", "after_refusal": "offer" |
 *            "set_aside"} (absent: the spec has none),
 *    "parent": {"from": "auto" | "promoted" | "none" | place, "first" (absent: none), "kind",
 *              "reshard"},
 *    "evaluate": {"data": hold-out (absent: none), "repeat", "baseline": "promoted" | "none",
 * STAGE} (absent: the spec has none), "gate": as spec_gate(); empty: none, "infer": {"input",
 * "output", "shards" (absent: auto), "together", STAGE} (absent: none), "promote": {"url", "from":
 * "checkpoint" | "output:PATH", "when": "gate" | "manual" | "always", "keep": number | "all"}}
 *
 * STAGE is "nodes", "price" (USD, of a node and hour; absent: not known), "timeout_ms", "compile":
 * "jit" | "aot", and "job": those members of the plan that are others for this stage: "nodes",
 * "instance", "image", "compile", "length", "width", "phases", and of "spec" those that engines
 * read. plan_of_phase() puts them in their places. "phases" of the plan has the commands of both
 * stages, too, behind that of the training.
 *
 * Values of secrets are never in it.
 *
 * What a run is given is not in its plan, because it differs from turn to turn: `inputs` in
 * run.created, {"data": {"manifest": URL, "digest", "objects", "new", "replaced", "bytes", "seen":
 * URL of the cumulative list, "seen_digest"}, "hold_out": the same, "infer": the same, "parent":
 * {"url", "generation", "digest", "kind"}, "baseline": like the parent, "pointer": {"generation",
 * "digest"} of the promoted version, "promotes": true, "turn": {"name","due","at"}}; each only
 * where it is there.
 *
 * run/plan: the plan of a run: defaults resolved, source pinned, graph key, account and image
 * asked. It changes nothing anywhere.
 */
#ifndef STK_RUN_PLAN_PLAN_H
#define STK_RUN_PLAN_PLAN_H

#include "jobs/base/text/js.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/flow/flow.h"
#include "jobs/run/journal/journal.h"
#include "jobs/source/source.h"
#include "jobs/spec/spec.h"

struct plan {
	json_t *json;
	char digest[SHA256_HEX];   /* digest of the canonical form: the identity of the plan */
	struct source_pin *pin;    /* source of `json.source`; NULL after a reload */
	char *root, *rev, *memory; /* the request that made the pin */
	char **layers; /* absolute paths of the files that the spec extends; NULL: none */
};

/* Makes the plan of a spec. The journal gives the default workspace, and the place where digests of
 * sources are remembered. The spec must be ready to run (see spec_not_yet). */
int plan_make(const struct spec *spec, const struct journal *journal, struct plan **ret,
	      struct err **err);
/* The same without the files of the source and those of compile.depends_on, which are not looked
 * at: for rights, not for a run. */
int plan_make_bare(const struct spec *spec, const struct journal *journal, struct plan **ret,
		   struct err **err);
/* The same of a plan that was made before; takes the reference. Its source is in the workspace. */
struct plan *plan_of_json(json_t *json);
void plan_freep(struct plan **plan);
/* Returns the workspace of a spec; and where its promoted models are, NULL if it has no section
 * `promote`. The caller frees them. */
char *plan_workspace(const struct spec *spec, const struct journal *journal);
char *plan_models(const struct spec *spec, const char *workspace);

/* Returns the identity of a plan. The catalogue's facts, "origins", "aws" and the target of the
 * image's tag are not part of it: a repeated step continues its run though a price, the caller's
 * region or a tag has changed. */
void plan_digest(const json_t *plan, char ret_hex[SHA256_HEX]);

/* ---- the image (image.c) ---- */

/* Enters "image" into a plan in the making. Returns true if its jobs run in one. */
bool image_plan_name(json_t *plan);
/* Computes the graph key, if all of its ingredients are known. */
void image_plan_compute_key(json_t *plan);
/* Removes from the copy of a plan everything that the image's tag resolves to. */
void image_plan_left_out(json_t *identity);

/* Resolves the tag of the image, unless the plan has its digest: image and graph key are in the
 * plan then. Any failure is EXIT_REFUSED, with its reason and a remedy; if nothing is compiled, it
 * is noted in the plan, and the job is submitted with the tag. */
int image_plan_resolve(json_t *plan, struct err **err);
/* The same for commands that only look: a failure is noted in the plan. */
void image_plan_try(json_t *plan);
/* Returns the plan for requests that are shown: if nobody could be asked for the image's
 * digest, with placeholders (engine.h) for it and for the graph key, unless the job would be
 * submitted with the tag. A new reference. */
json_t *image_plan_marked(const json_t *plan);
/* Returns the digest that the tag of a run's image leads to now, if it has changed; the caller
 * frees it. NULL if it is the same, or cannot be found out. */
char *image_plan_moved(const json_t *plan);

/* True if attempts run stoker's agent. Without it no claim is held, nothing is checked, marked or
 * resumed, and the driver watches from outside (toolkit_monitor.h). */
bool toolkit_limits_has_agent(const json_t *plan);
/* Returns what this plan's runs lack without an agent, in sentences for the user: a new array of
 * texts; NULL if they lack nothing. */
json_t *toolkit_limits_not_held(const json_t *plan);

/* Returns what a command inherits from its container (jobs/node/setup/container_env.h):
 * {"left_out": names, "steering": names that only the spec or the image may set; a prefix ends in
 * '*'}, a new reference; inherited_words() as text, which the caller frees. NULL if commands run in
 * no container, or without our agent in it. */
json_t *inherited_of_plan(const json_t *plan);
char *inherited_words(const json_t *plan);

/* EXIT_SPEC if a file of env_file is part of the source. */
int env_file_keep_out(const struct plan *plan, const struct spec *spec, struct err **err);

/* Uploads the source bundle to the workspace, unless it is there already. */
int plan_publish(const struct plan *plan, struct err **err);

/* Returns the plan as the jobs of a phase see it: of evaluate and infer with the stage's own nodes,
 * instance, image, job queue, compile part and phases (its phase 1 among them, if its graphs are
 * compiled ahead), and with "stage": its name; of all other phases the plan itself. Whatever takes
 * a plan takes this one: engines, orders, the gate of the cache. A new reference. */
json_t *plan_of_phase(const json_t *plan, enum phase phase);

/* Returns the phase's part of a plan, NULL if the plan has no such phase. */
json_t *plan_phase(const json_t *plan, const char *phase);
/* Returns the number of nodes that jobs of a phase have. */
int plan_nodes(const json_t *plan, enum phase phase);
/* Returns the number of processes that the training has on all nodes; 0: only the command knows. */
int64_t plan_world_size(const json_t *plan);
/* Returns the graph key of a plan; NULL until it is known. */
const char *plan_graph_key(const json_t *plan);

/* Returns the rules of the workflow for a run of this plan that was given `inputs` (as in
 * run.created; NULL: nothing). */
void plan_policy(const json_t *plan, const json_t *inputs, const char *run,
		 struct flow_policy *ret);

/* State of the cache for a plan. */
struct cache_view {
	enum cache_state verdict;
	int64_t graphs;   /* graphs in the manifest */
	json_t *changed;  /* [{"field","old","new"}]: reasons why it is cold */
	json_t *problems; /* entries of the manifest that differ from it; may be NULL */
	char *reason;     /* a line for the user */
	char *hint;       /* a remedy; may be NULL */
	struct compile_manifest *lock; /* manifest of this graph key; NULL if absent */
	struct lock_report report;     /* check of that manifest */
};
/* Returns the verdict's name for JSON; NULL: it was not asked for (patience.h). */
const char *cache_view_verdict(const struct cache_view *view);
int cache_view_make(const json_t *plan, struct cache_view *ret, struct err **err);
/* Returns the content of the packed files, as far as a compiler sees it: {path: digest}, a new
 * reference. This spec and others beside it are not part of it. */
json_t *key_source(const struct plan *plan);
/* Returns the remedy if the source has new files that no compiler is known to read: the line of the
 * spec that keeps them out of the key. `changed`: rows as above. NULL if there are no such files;
 * else the caller frees it. */
char *key_hint(const json_t *ingredients, const json_t *changed);
/* The same for a caller that can continue without: if a remote cache cannot be read, for want of a
 * network, credentials or rights, the verdict is CACHE_UNKNOWN, the reason begins with "not known:
 * ", and `ret->hint` is a remedy. */
int cache_view_try(const json_t *plan, struct cache_view *ret, struct err **err);
void cache_view_clear(struct cache_view *view); /* for AUTO() */

/* Looks whether something is at each URL of cache.preload: a new array of {"url", "why": why
 * nothing can be had from there (absent: something can)}. */
json_t *cache_preload_view(const json_t *plan);

#endif
