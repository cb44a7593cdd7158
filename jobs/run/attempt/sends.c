/* Requests that an engine would send for the orders of a plan: see order.h. */
#include <string.h>

#include "jobs/cache/graphs/graph_key.h"
#include "jobs/engine/engine.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/plan.h"

/* An order is not delivered without an agent: only what is sent is shown. */
static void keep_sent(json_t *order)
{
	static const char *const kept[] = { "phase", "command", "sends" };
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe (order, next, name, value) {
		bool keep = false;

		for (size_t i = 0; i < STK_LENGTH(kept); i++)
			keep |= strcmp(name, kept[i]) == 0;
		if (!keep)
			json_object_del(order, name);
	}
}

json_t *sends_command_as_run(const json_t *plan, const char *phase)
{
	const struct engine_ops *ops = engine_find(js_str(plan, "engine"));

	json_t *words = ops && ops->command ? ops->command(plan, phase) : NULL;
	json_auto_t *hidden = words ? json_pack("{s:O}", "command", words) : NULL;

	if (words)
		graph_key_ingredients_hide_secrets(hidden);
	return words;
}

static json_t *or_same(json_t *made, json_t *other)
{
	return made ? made : json_incref(other);
}

static int sends_of_engine(struct engine *engine, const json_t *plan, json_t *order,
			   struct err **err)
{
	const char *phase = js_str(order, "phase");
	const struct engine_job job = {
		.name = js_str(order, "job"),
		.run = "<id>",
		.phase = phase,
		.attempt = (int)js_int(order, "attempt", 1),
		.nodes = (int)js_int(order, "nodes", 1),
		.prefix = js_str(order, "prefix"),
		.agent_key = "agents/<digest>/",
		.order = order, /* as it is shown: secrets are hashes */
	};
	json_t *sends = NULL;

	if (engine->ops->requests(engine, &job, &sends, err) < 0)
		return -1;
	js_put(order, "sends", sends);
	if (!toolkit_limits_has_agent(plan))
		keep_sent(order);
	js_put(order, "command",
	       or_same(sends_command_as_run(plan, phase), json_object_get(order, "command")));
	return 0;
}

/* The jobs of a phase may have a queue, an image and machines of their own. */
static int sends_of(const struct engine_ops *ops, const json_t *plan, json_t *order,
		    struct err **err)
{
	const char *stage = js_str(order, "stage");
	int at = flow_name_find(flow_phase_names, PHASE_COUNT,
				stage ? stage : js_str(order, "phase"));
	json_auto_t *job_plan = plan_of_phase(plan, (enum phase)at);
	const struct engine_where where = { js_str(plan, "workspace"), job_plan };
	struct engine *engine;
	int outcome;

	if (ops->open(&where, &engine, err) < 0)
		return -1;
	outcome = sends_of_engine(engine, job_plan, order, err);
	ops->close(engine);
	return outcome;
}

int sends_of_order(const json_t *plan, json_t *orders, struct err **err)
{
	const struct engine_ops *ops = engine_find(js_str(plan, "engine"));
	json_t *order;
	int outcome = 0;
	size_t i;

	if (!ops || !ops->requests)
		return 0;
	if (aws_account_enter_region(plan, err) < 0)
		return -1;
	json_array_foreach (orders, i, order)
		if (outcome == 0)
			outcome = sends_of(ops, plan, order, err);
	return outcome;
}
