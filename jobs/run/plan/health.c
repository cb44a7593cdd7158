/* Health check of the nodes, in plan and order: see health.h. */
#include "jobs/run/plan/health.h"

#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/flow/phase.h"
#include "jobs/store/order.h"

/* Value of health.device; "auto" is true on instances with accelerators. */
static bool checks_devices(const struct spec *spec)
{
	const json_t *setting = spec_get(spec, SPEC_HEALTH_DEVICE);

	if (json_is_boolean(setting))
		return json_is_true(setting);
	return accelerator_of(spec_instance(spec)) != NULL;
}

json_t *health_plan(const struct spec *spec)
{
	bool device = checks_devices(spec);
	bool collectives = device || spec_is_set(spec, SPEC_HEALTH_COLLECTIVES);
	const char *launcher = spec_str(spec, SPEC_SAGEMAKER_LAUNCHER);
	json_t *health;

	/* The toolkit launcher runs no agent that could check. */
	if (launcher && strcmp(launcher, "toolkit") == 0)
		return NULL;
	if (!collectives)
		return NULL;
	health = json_object();
	js_put(health, "device", json_boolean(device));
	js_put(health, "ops", json_deep_copy(spec_get(spec, SPEC_HEALTH_COLLECTIVES_OPS)));
	js_put(health, "size", json_integer(spec_bytes(spec, SPEC_HEALTH_COLLECTIVES_SIZE)));
	js_put(health, "timeout_ms", json_integer(spec_ms(spec, SPEC_HEALTH_TIMEOUT)));
	return health;
}

/* With several nodes, the others come later, and then all are tested together. */
int64_t health_plan_ms(const json_t *plan)
{
	int64_t timeout = js_int(json_object_get(plan, "health"), "timeout_ms", 0);

	if (timeout <= 0 || js_int(plan, "nodes", 1) == 1)
		return timeout;
	return ORDER_CLAIM_WAIT_MS + 2 * timeout;
}

char *health_plan_words(const json_t *plan)
{
	const json_t *health = json_object_get(plan, "health"), *op;
	AUTO(auto_free) char *time = text_format_duration(js_int(health, "timeout_ms", 0));
	AUTO(auto_free) char *size = text_format_bytes((uint64_t)js_int(health, "size", 0));
	AUTO(sb_release) struct sb words = SB_INIT;
	size_t i;

	if (!health)
		return NULL;
	sb_adds(&words, "disk, memory, clock");
	if (js_bool(health, "device", false)) {
		const json_t *instance = json_object_get(plan, "instance");
		const struct accelerator *kind = accelerator_of(instance);

		sb_adds(&words, ", devices");
		if (accelerator_count(instance) > 0)
			sb_addf(&words, " (%lld)", (long long)accelerator_count(instance));
		sb_addf(&words, ", error counters, a tensor operation on each %s",
			kind ? kind->unit : "core");
	}
	json_array_foreach (json_object_get(health, "ops"), i, op)
		sb_addf(&words, "%s%s", i ? ", " : "; ", json_string_value(op));
	if (i > 0)
		sb_addf(&words, " of %s on each node%s", size,
			js_int(plan, "nodes", 1) > 1 ? ", an all_reduce between them" : "");
	sb_addf(&words, "; within %s", time);
	return sb_take(&words);
}

void health_order(struct order *order, const json_t *plan, enum phase phase)
{
	const json_t *health = json_object_get(plan, "health");
	const json_t *instance = json_object_get(plan, "instance");
	struct order_health *ret = &order->health;

	if (!health)
		return;
	MESSAGE_SET_TEXT(order, instance, js_str(instance, "type"));
	if (accelerator_count(instance) > 0)
		MESSAGE_SET(order, devices, accelerator_count(instance));
	MESSAGE_MARK(order, health);
	MESSAGE_SET(ret, device, js_bool(health, "device", false));
	MESSAGE_SET_JSON(ret, ops, json_incref(json_object_get(health, "ops")));
	MESSAGE_SET(ret, size, js_int(health, "size", 0));
	MESSAGE_SET(ret, timeout_ms, js_int(health, "timeout_ms", 0));
	MESSAGE_SET(ret, full, flow_phases[phase].check_up == CHECK_UP_FULL);
}
