/* From a plan to an order: see order.h. */
#include "jobs/run/attempt/order.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/cache/graphs/graph_key.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/engine/engine.h"
#include "jobs/run/plan/health.h"
#include "jobs/run/plan/parent.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/plan/stage.h"
#include "jobs/store/order.h"

char *order_attempt_prefix(const char *run, enum phase phase, int64_t attempt)
{
	return mem_format("runs/%s/%s-%lld/", run, flow_phase_names[phase], (long long)attempt);
}

char *order_job_name(const char *run, enum phase phase, int64_t attempt)
{
	return mem_format("stk-%s-%s-%lld", run, flow_phase_names[phase], (long long)attempt);
}

/* Returns the phase whose model, data and tasks a job has: of the phase 1 of a stage that stage. */
static enum phase served(const json_t *plan, const struct order_of *of)
{
	const char *stage = flow_phases[of->phase].is_trial ? js_str(plan, "stage") : NULL;
	int found = stage ? flow_name_find(flow_phase_names, PHASE_COUNT, stage) : -1;

	return found >= 0 ? (enum phase)found : of->phase;
}

static json_t *names_of(json_t *object)
{
	json_t *names = json_array(), *value;
	const char *name;

	json_object_foreach (object, name, value)
		json_array_append_new(names, json_string(name));
	return names;
}

char *order_outputs(const char *run, enum phase phase, int64_t attempt)
{
	return mem_format("runs/%s/outputs/%s-%lld/", run, flow_phase_names[phase],
			  (long long)attempt);
}

char *order_checkpoint_root(const json_t *plan, const char *workspace, const char *run,
			    int64_t attempt)
{
	const char *url = js_str(json_object_get(plan, "checkpoint"), "url");
	AUTO(auto_free) char *prefix = order_attempt_prefix(run, PHASE_TRAIN, attempt);

	if (url)
		return mem_format("%s/%s/attempt-%lld", url, run, (long long)attempt);
	return mem_format("%s/%scheckpoints", workspace, prefix);
}

static bool machines_apart(const json_t *plan)
{
	const struct engine_ops *engine = engine_find(js_str(plan, "engine"));

	return engine && engine->machines_apart && js_int(plan, "nodes", 1) > 1;
}

/* Sets where the command saves. */
static void put_checkpoint_dir(struct order *order, const json_t *plan, const struct order_of *of,
			       const char *root, const char *prefix)
{
	AUTO(auto_free) char *folder = mem_format("%s/%scheckpoints", of->workspace, prefix);

	/* Only a folder that machines share keeps their shards together. */
	if (of->workspace[0] != '/' && machines_apart(plan)) {
		if (root[0] == '/')
			MESSAGE_SET_TEXT(order, checkpoint_dir, root);
		return; /* else each node has its own, and their agents upload the shards */
	}
	/* Nodes share a workspace folder; without one they are on one machine and share the agents'
	 * folder. */
	if (of->workspace[0] == '/')
		MESSAGE_SET_TEXT(order, checkpoint_dir, folder);
	else
		MESSAGE_SET(order, shared_checkpoints, true);
}

static void put_stall(struct order *order, const json_t *stall)
{
	if (!stall)
		return;
	MESSAGE_MARK(order, stall);
	MESSAGE_SET_TEXT(&order->stall, mode, js_str(stall, "mode"));
	if (json_object_get(stall, "limit_ms"))
		MESSAGE_SET(&order->stall, limit_ms, js_int(stall, "limit_ms", 0));
}

/* Only for training: what phase 1 saves is computed from nothing. */
static void put_checkpoint(struct order *order, const json_t *plan, const struct order_of *of,
			   const char *prefix)
{
	const json_t *planned = json_object_get(plan, "checkpoint");
	struct order_checkpoint *checkpoint = &order->checkpoint;
	const char *sync = js_str(planned, "sync");
	AUTO(auto_free)
	char *root = order_checkpoint_root(plan, of->workspace, of->run, of->attempt);

	put_checkpoint_dir(order, plan, of, root, prefix);
	MESSAGE_MARK(order, checkpoint);
	MESSAGE_SET_TEXT(checkpoint, kind, js_str(planned, "kind"));
	MESSAGE_SET_TEXT(checkpoint, sync, strcmp(sync, "agent") == 0 ? "agent" : "none");
	MESSAGE_SET_JSON(checkpoint, keep, json_incref(json_object_get(planned, "keep")));
	if (json_is_true(json_object_get(plan, "benchmark")))
		MESSAGE_SET(checkpoint, postponed, true);
	MESSAGE_SET_TEXT(checkpoint, signal, js_str(planned, "signal"));
	if (json_object_get(planned, "grace_ms"))
		MESSAGE_SET(checkpoint, grace_ms, js_int(planned, "grace_ms", 0));
	MESSAGE_SET_TEXT(checkpoint, root, root);
	put_stall(order, json_object_get(plan, "stall"));
	if (of->resumed_from) {
		MESSAGE_SET_TEXT(order, resume_from, of->resumed_from);
		MESSAGE_SET(order, resume_step, of->resume_step);
	}
}

/* The front-end and its number of parallel compilations come before the command. */
static json_t *command_json(const struct compile_kind *kind, const struct order_of *of,
			    const json_t *plan, const json_t *phase)
{
	const char *front = js_str(phase, "front");
	int64_t planned = js_int(json_object_get(plan, "width"), "workers", 0);
	int64_t workers_max = of->workers > 0 ? of->workers : planned;
	json_t *command = json_array();

	if (front)
		json_array_append_new(command, json_string(front));
	if (front && workers_max > 0 && kind->workers_option) {
		AUTO(auto_free) char *workers = mem_format("%lld", (long long)workers_max);

		json_array_append_new(command, json_string(kind->workers_option));
		json_array_append_new(command, json_string(workers));
	}
	json_array_extend(command, json_object_get(phase, "command"));
	return command;
}

/* A logger that the spec names goes on with one run of its own in every attempt of a training;
 * phase 1 computes nothing to log. A value that the user sets stays. */
static void put_loggers(const json_t *plan, const struct order_of *of, json_t *env)
{
	const struct {
		const char *logger, *variable, *value;
	} rows[] = {
		{ "wandb", "WANDB_RUN_ID", of->run },
		{ "wandb", "WANDB_RESUME", "allow" },
		{ "mlflow", "MLFLOW_RUN_ID", of->run },
	};
	const json_t *loggers = js_path(plan, "spec.loggers"), *logger;
	const json_t *secrets = json_object_get(plan, "secrets");
	size_t i;

	json_array_foreach (loggers, i, logger)
		for (size_t row = 0; row < STK_LENGTH(rows); row++) {
			const char *variable = rows[row].variable;

			if (strcmp(json_string_value(logger), rows[row].logger) != 0)
				continue;
			if (flow_phases[of->phase].is_trial)
				json_object_del(env, variable);
			else if (!json_object_get(env, variable) &&
				 !json_object_get(secrets, variable))
				js_put_str(env, variable, rows[row].value);
		}
}

/* A retry of phase 1 compiles graphs again that an earlier attempt stored as failed. */
static json_t *env_json(const struct compile_kind *kind, const struct order_of *of,
			const json_t *plan, const json_t *phase)
{
	json_t *env = json_deep_copy(json_object_get(phase, "env"));
	const char *variable = kind->retry_variable;

	put_loggers(plan, of, env);
	if (flow_phases[of->phase].is_trial && of->attempt > 1 && variable) {
		const char *flags = js_str(env, variable);
		AUTO(auto_free)
		char *more = mem_format("%s%s%s", flags ? flags : "", flags && *flags ? " " : "",
					kind->retry_words);

		if (!flags || !strstr(flags, kind->retry_words))
			js_put_str(env, variable, more);
	}
	return env;
}

static void put_compile(struct order *order, const json_t *plan, const struct order_of *of)
{
	const json_t *compile = json_object_get(plan, "compile");
	const char *stage = js_str(plan, "stage");
	const json_t *command =
		json_object_get(plan_phase(plan, stage ? stage : "train"), "command");
	struct order_compile *ret = &order->compile;

	MESSAGE_MARK(order, compile);
	MESSAGE_SET_TEXT(ret, kind, js_str(compile, "kind"));
	MESSAGE_SET_TEXT(ret, cache, js_str(compile, "cache"));
	if (of->workers > 0)
		MESSAGE_SET(ret, workers, of->workers);
	MESSAGE_SET_TEXT(ret, program, json_string_value(json_array_get(command, 0)));
	if (!flow_phases[of->phase].is_trial && of->compiler)
		MESSAGE_SET_JSON(ret, compiler, json_incref((json_t *)of->compiler));
	MESSAGE_SET_TEXT(ret, tolerated, of->tolerated);
	MESSAGE_SET_TEXT(ret, lock, of->lock);
	if (flow_phases[of->phase].is_trial) {
		MESSAGE_SET_TEXT(ret, graph_key, js_str(compile, "graph_key"));
		MESSAGE_SET_TEXT(ret, claim, of->claim);
	}
}

/* Sets what the agent needs if a service runs the nodes, out of this driver's reach. */
static void put_service(struct order *order, const json_t *plan)
{
	const struct engine_ops *engine = engine_find(js_str(plan, "engine"));
	const json_t *instance = json_object_get(plan, "instance");
	const json_t *efa = js_path(plan, "spec.resources.efa");

	if (agent_delivery_way(plan) == AGENT_DELIVERY_NONE)
		return;
	if (json_object_size(json_object_get(plan, "secrets")) > 0)
		MESSAGE_SET_JSON(order, secret_from, json_incref(json_object_get(plan, "secrets")));
	MESSAGE_SET_JSON(order, image_env, json_incref(js_path(plan, "image.env")));
	if (accelerator_units(instance) > 0)
		MESSAGE_SET(order, cores, accelerator_units(instance));
	if (js_int(plan, "nodes", 1) > 1 && js_int(instance, "efa", 0) > 0 && !json_is_false(efa))
		MESSAGE_SET(order, efa, true);
	if (engine && engine->stop_ms > 0)
		MESSAGE_SET(order, stop_ms, engine->stop_ms);
}

/* A checkpoint of the training is of the training's kind. */
static void put_candidate(struct order_tasks *tasks, const json_t *plan, const struct order_of *of)
{
	const char *kind = js_str(json_object_get(plan, "checkpoint"), "kind");

	MESSAGE_MARK(tasks, candidate);
	MESSAGE_SET_TEXT(&tasks->candidate, url, of->flow->candidate);
	MESSAGE_SET_TEXT(&tasks->candidate, kind, of->flow->candidate_step >= 0 ? kind : "auto");
}

/* Adds what a phase with tasks works on: the models, and the data of the phase. */
static void put_tasks(struct order *order, const json_t *plan, const struct order_of *of)
{
	enum phase stage = served(plan, of);
	const json_t *section = json_object_get(plan, flow_phase_names[stage]);
	const json_t *baseline = json_object_get(of->inputs, "baseline");
	AUTO(auto_free) char *results = stage_results(of->run, stage);
	struct order_tasks *tasks = &order->tasks;

	MESSAGE_MARK(order, tasks);
	MESSAGE_SET_TEXT(tasks, results, results);
	if (of->flow)
		put_candidate(tasks, plan, of);
	if (stage == PHASE_EVALUATE) {
		MESSAGE_SET(tasks, repeat, js_int(section, "repeat", 1));
		/* Phase 1 does the first task alone, which is the candidate's. */
		if (baseline && stage == of->phase) {
			MESSAGE_MARK(tasks, baseline);
			parent_order(&tasks->baseline, baseline);
		}
	} else {
		AUTO(auto_free)
		char *output = mem_format("%s/%s", js_str(section, "output"), of->run);

		if (of->flow)
			MESSAGE_SET(tasks, shards, of->flow->policy.stages[stage].tasks);
		if (json_is_true(json_object_get(section, "together")))
			MESSAGE_SET(tasks, together, true);
		MESSAGE_SET_TEXT(tasks, output, output);
	}
	if (js_int(section, "timeout_ms", 0) > 0)
		MESSAGE_SET(order, timeout_ms, js_int(section, "timeout_ms", 0));
}

/* The parent is the same in phase 1 and in every attempt of the training. */
static void put_parent(struct order *order, const json_t *plan, const struct order_of *of)
{
	const json_t *parent = json_object_get(of->inputs, "parent");
	int64_t world_size = plan_world_size(plan);

	enum phase stage = served(plan, of);

	if (stage != PHASE_PRECOMPILE && stage != PHASE_TRAIN)
		return;
	if (parent) {
		MESSAGE_MARK(order, parent);
		parent_order(&order->parent, parent);
	}
	if (of->phase != PHASE_TRAIN)
		return;
	if (world_size > 0)
		MESSAGE_SET(order, world_size, world_size);
	if (!json_object_get(plan, "health")) /* which has it too */
		MESSAGE_SET_TEXT(order, instance,
				 js_str(json_object_get(plan, "instance"), "type"));
}

/* Adds whether the nodes are to have the objects themselves, and what the objects' URLs begin
 * with. */
static void put_fetch(struct order *order, const json_t *plan, const struct order_of *of,
		      const json_t *given)
{
	const json_t *data = json_object_get(plan, "data");
	const char *input = js_str(json_object_get(plan, "infer"), "input");
	enum phase stage = served(plan, of);
	const char *base = stage == PHASE_EVALUATE
				   ? js_str(json_object_get(plan, "evaluate"), "data")
			   : stage == PHASE_INFER && input ? input
							   : js_str(data, "url");

	if (!given || !json_is_true(json_object_get(data, "fetch")))
		return;
	MESSAGE_SET(order, data_fetch, true);
	MESSAGE_SET_TEXT(order, data_base, base);
}

/* The data that the phase is given: of the training, of the evaluation the hold-out, of the
 * inference its items. */
static void put_data(struct order *order, const json_t *plan, const struct order_of *of)
{
	static const char *const members[PHASE_COUNT] = { [PHASE_PRECOMPILE] = "data",
							  [PHASE_TRAIN] = "data",
							  [PHASE_EVALUATE] = "hold_out",
							  [PHASE_INFER] = "infer" };
	const char *member = members[served(plan, of)];
	const json_t *given = member ? json_object_get(of->inputs, member) : NULL;

	MESSAGE_SET_TEXT(order, data_manifest, js_str(given, "manifest"));
	put_fetch(order, plan, of, given);
}

/* The machine, as far as it is known. */
static void put_machine(struct order *order, const json_t *plan)
{
	const char *kind = js_str(json_object_get(plan, "instance"), "accelerator");

	/* Kinds that stoker gives to no job have no row. */
	MESSAGE_SET_TEXT(order, accelerator, accelerator_find(kind) ? kind : NULL);
	if (json_is_true(js_path(plan, "spec.resources.core_dumps")))
		MESSAGE_SET(order, core_dumps, true);
	put_service(order, plan);
}

static void put_identity(struct order *order, const json_t *plan, const struct order_of *of,
			 const char *prefix)
{
	AUTO(auto_free) char *run_prefix = mem_format("runs/%s/", of->run);

	MESSAGE_SET(order, v, 1);
	MESSAGE_SET_TEXT(order, run, of->run);
	MESSAGE_SET_TEXT(order, phase, flow_phase_names[of->phase]);
	if (served(plan, of) != of->phase)
		MESSAGE_SET_TEXT(order, stage, flow_phase_names[served(plan, of)]);
	MESSAGE_SET(order, attempt, of->attempt);
	MESSAGE_SET_TEXT(order, job, of->job);
	MESSAGE_SET_TEXT(order, nonce, of->nonce);
	MESSAGE_SET(order, nodes, plan_nodes(plan, of->phase));
	MESSAGE_SET_TEXT(order, workspace, of->workspace);
	MESSAGE_SET_TEXT(order, prefix, prefix);
	MESSAGE_SET_TEXT(order, agent, of->agent);
	MESSAGE_SET_TEXT(order, run_prefix, run_prefix);
}

json_t *order_make(const json_t *plan, const struct order_of *of)
{
	const json_t *phase = plan_phase(plan, flow_phase_names[of->phase]);
	const json_t *compile = json_object_get(plan, "compile");
	const struct compile_kind *kind =
		compile_kind_find(compile ? js_str(compile, "kind") : "none");
	AUTO(auto_free) char *prefix = order_attempt_prefix(of->run, of->phase, of->attempt);
	AUTO(auto_free) char *outputs = order_outputs(of->run, of->phase, of->attempt);
	AUTO(order_release) struct order order = { 0 };

	put_identity(&order, plan, of, prefix);
	MESSAGE_SET_TEXT(&order, source, js_str(json_object_get(plan, "source"), "bundle"));
	MESSAGE_SET_JSON(&order, links, json_incref(js_path(plan, "source.links")));
	MESSAGE_SET_JSON(&order, command, command_json(kind, of, plan, phase));
	MESSAGE_SET_JSON(&order, env, env_json(kind, of, plan, phase));
	MESSAGE_SET_JSON(&order, secrets, names_of(json_object_get(plan, "secrets")));
	put_machine(&order, plan);
	if (compile)
		put_compile(&order, plan, of);
	put_parent(&order, plan, of);
	put_data(&order, plan, of);
	MESSAGE_SET_JSON(&order, metrics, json_incref(json_object_get(plan, "metrics")));
	MESSAGE_SET(&order, scratch, flow_phases[of->phase].is_trial);
	if (!flow_phases[of->phase].is_trial)
		MESSAGE_SET_TEXT(&order, outputs, outputs);
	if (flow_phases[of->phase].resumes)
		put_checkpoint(&order, plan, of, prefix);
	if (flow_phases[served(plan, of)].has_tasks)
		put_tasks(&order, plan, of);
	if (flow_phases[of->phase].is_trial)
		MESSAGE_SET(&order, timeout_ms, js_int(compile, "timeout_ms", 0));
	if (json_object_get(plan, "look")) {
		MESSAGE_SET_JSON(&order, look, json_incref(json_object_get(plan, "look")));
		MESSAGE_SET(&order, timeout_ms, ORDER_LOOK_MS);
	}
	health_order(&order, plan, of->phase);
	MESSAGE_SET(&order, grace_ms, js_int(plan, "grace_ms", 60000));
	return message_encode(order_message, &order);
}

/* ---- orders before there is a run ----------------------------------------------- */

/* PATH and the like as on this machine now, but no password of a proxy; secrets as where they come
 * from. */
static json_t *agent_env(const json_t *plan)
{
	json_t *secrets = json_object_get(plan, "secrets"), *from;
	json_t *env = json_object();
	const char *name;
	bool is_ours = agent_delivery_way(plan) == AGENT_DELIVERY_NONE;

	for (enum variable i = 0; is_ours && i < VAR_COUNT; i++)
		if (variable_rows[i].uses & VAR_PASSED) {
			const char *value = getenv(variable_rows[i].name);

			js_put_str(env, variable_rows[i].name,
				   value && text_has_login(value) ? "(from this shell)" : value);
		}
	json_object_foreach (secrets, name, from) {
		AUTO(auto_free)
		char *hidden = mem_format("(secret from %s)", json_string_value(from));

		js_put_str(env, name, hidden);
	}
	return env;
}

/* The order of a phase's first attempt; for `stage` that of its phase 1, attempts of which are
 * counted together with the training's. */
static json_t *planned(const json_t *plan, enum phase phase, enum phase stage, int64_t attempt)
{
	AUTO(auto_free) char *job = order_job_name("<id>", phase, attempt);
	json_auto_t *job_plan = plan_of_phase(plan, stage);
	bool held = !flow_phases[phase].is_trial &&
		    plan_phase(job_plan, flow_phase_names[PHASE_PRECOMPILE]);
	const struct order_of of = {
		.run = "<id>",
		.nonce = "<nonce>",
		.job = job,
		.workspace = js_str(plan, "workspace"),
		.phase = phase,
		.attempt = attempt,
		.lock = held ? plan_graph_key(job_plan) : NULL,
		.claim = "<claim>",
	};
	json_auto_t *made = order_make(job_plan, &of);
	json_t *order = json_deep_copy(made); /* the plan shares members and must not change */
	json_auto_t *hidden = json_pack("{s:O, s:O}", "command", json_object_get(order, "command"),
					"env", json_object_get(order, "env"));

	graph_key_ingredients_hide_secrets(hidden);
	js_put(order, "agent_env", agent_env(plan));
	return order;
}

json_t *order_planned(const json_t *plan)
{
	json_t *orders = json_array(), *phase;
	int64_t trials = 0;
	size_t i;

	json_array_foreach (json_object_get(plan, "phases"), i, phase) {
		int which = flow_name_find(flow_phase_names, PHASE_COUNT, js_str(phase, "phase"));
		const json_t *section = json_object_get(plan, js_str(phase, "phase"));

		if (which < 0 || !json_object_get(phase, "command"))
			continue;
		if (flow_phases[which].has_tasks && js_is(section, "compile", "aot"))
			json_array_append_new(orders, planned(plan, PHASE_PRECOMPILE,
							      (enum phase)which, ++trials));
		trials += which == PHASE_PRECOMPILE;
		json_array_append_new(orders,
				      planned(plan, (enum phase)which, (enum phase)which, 1));
	}
	return orders;
}

json_t *order_difference(const json_t *precompile, const json_t *train)
{
	json_auto_t *changes = graph_key_ingredients_diff(precompile, train);
	json_t *rows = json_array(), *change;
	size_t i;

	json_array_foreach (changes, i, change)
		json_array_append_new(rows, json_pack("{s:O, s:O, s:O}", "field",
						      json_object_get(change, "field"),
						      "precompile", json_object_get(change, "old"),
						      "train", json_object_get(change, "new")));
	return rows;
}
