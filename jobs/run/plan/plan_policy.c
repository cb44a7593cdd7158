/* The rules of the workflow that a plan sets: see plan.h. */
#include "jobs/run/plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "jobs/engine/engine.h"
#include "jobs/flow/rules.h"
#include "jobs/run/plan/health.h"
#include "jobs/run/plan/stage.h"
#include "jobs/store/order.h"

void plan_policy(const json_t *plan, const json_t *inputs, const char *run, struct flow_policy *ret)
{
	const json_t *compile = json_object_get(plan, "compile");
	const json_t *retry = json_object_get(plan, "retry");
	const json_t *limits = json_object_get(plan, "limits");
	const json_t *checkpoint = json_object_get(plan, "checkpoint");
	const char *on_incomplete = js_str(compile, "on_incomplete");
	const char *on_mismatch = js_str(checkpoint, "on_mismatch");
	const char *mode = js_str(compile, "mode"), *on_exceed = js_str(compile, "on_exceed");
	bool aot = compile && !(mode && strcmp(mode, "jit") == 0);
	int on_jit = flow_name_find(flow_jit_action_names, JIT_ACTION_COUNT,
				    on_exceed ? on_exceed : "warn");
	int nodes = (int)js_int(plan, "nodes", 1);
	double price = json_number_value(json_object_get(limits, "price"));
	const struct engine_ops *engine = engine_find(js_str(plan, "engine"));

	*ret = (struct flow_policy){
		.compiles = aot,
		.train_on_incomplete = on_incomplete && strcmp(on_incomplete, "train") == 0,
		.nodes = nodes,
		.compile_workers = js_int(json_object_get(plan, "width"), "workers", 0),
		.retry_attempts = js_int(retry, "attempts", 1),
		.retry_without_progress = js_int(retry, "without_progress", 1),
		.backoff_first_ms = js_int(retry, "backoff_first_ms", 0),
		.backoff_max_ms = js_int(retry, "backoff_max_ms", 0),
		.stop_on_mismatch = on_mismatch && strcmp(on_mismatch, "stop") == 0,
		.drain_ms = js_int(checkpoint, "grace_ms", 0),
		/* Without a phase 1 every graph is compiled in training. */
		.jit_graphs = aot ? js_int(compile, "jit_graphs", -1) : -1,
		.jit_action = on_jit < 0 ? JIT_WARN : (enum jit_action)on_jit,
		.attempts = js_int(limits, "attempts", 0),
		.deadline_ms = js_int(limits, "deadline_ms", 0),
		.queue_ms = js_int(limits, "queue_ms", 0),
		.start_ms = js_int(limits, "start_ms", 0),
		.health_ms = health_plan_ms(plan),
		.unreachable_ms = js_int(limits, "unreachable_ms", 0),
		.cost_usd = json_number_value(json_object_get(limits, "cost")),
		.price_per_ms = price * nodes / (3600.0 * 1000.0),
	};
	if (!toolkit_limits_has_agent(plan))
		ret->drain_ms = 0; /* no agent would notice it */
	/* The agent looks for a drain only with each heartbeat. */
	if (ret->drain_ms > 0)
		ret->drain_ms += 2 * ORDER_HEARTBEAT_MS;
	/* The service's own time limit comes soon after ours, and machines billed by the second are
	 * still paid for while a training saves. */
	if (ret->drain_ms > 0 && engine && engine->machines_apart)
		ret->lead_ms = ret->drain_ms + FLOW_DRAIN_MARGIN_MS;
	stage_policy(plan, inputs, ret);
	snprintf(ret->run, sizeof ret->run, "%s", run);
}
