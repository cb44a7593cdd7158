/* Requests that an engine would send for the orders of a plan: see order.h. */
#include <string.h>

#include "jobs/cache/graphs/graph_key.h"
#include "jobs/engine/engine.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/plan.h"

/* Without an agent no order is delivered: only what is sent is shown. */
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

static int sends_of(struct engine *engine, const json_t *plan, json_t *order, struct err **err)
{
	const char *phase = js_str(order, "phase");
	AUTO(auto_free) char *name = mem_format("stk-<id>-%s-1", phase);
	AUTO(auto_free) char *prefix = mem_format("runs/<id>/%s-1/", phase);
	const struct engine_job job = {
		.name = name,
		.run = "<id>",
		.phase = phase,
		.attempt = 1,
		.nodes = (int)js_int(plan, "nodes", 1),
		.prefix = prefix,
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

int sends_of_order(const json_t *plan, json_t *orders, struct err **err)
{
	const struct engine_ops *ops = engine_find(js_str(plan, "engine"));
	const struct engine_where where = { js_str(plan, "workspace"), plan };
	struct engine *engine;
	json_t *order;
	int outcome = 0;
	size_t i;

	if (!ops || !ops->requests)
		return 0;
	if (aws_account_enter_region(plan, err) < 0 || ops->open(&where, &engine, err) < 0)
		return -1;
	json_array_foreach (orders, i, order)
		if (outcome == 0)
			outcome = sends_of(engine, plan, order, err);
	ops->close(engine);
	return outcome;
}
