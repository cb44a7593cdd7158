/* What a plan says of a phase: see plan.h. Below all other files that make or read plans. */
#include "jobs/run/plan/plan.h"

json_t *plan_phase(const json_t *plan, const char *phase)
{
	json_t *object;
	size_t i;

	json_array_foreach (json_object_get(plan, "phases"), i, object)
		if (js_is(object, "phase", phase))
			return object;
	return NULL;
}

int plan_nodes(const json_t *plan, enum phase phase)
{
	const json_t *section = json_object_get(plan, flow_phase_names[phase]);

	return (int)js_int(section, "nodes", js_int(plan, "nodes", 1));
}

int64_t plan_world_size(const json_t *plan)
{
	const json_t *train = plan_phase(plan, flow_phase_names[PHASE_TRAIN]);

	return js_int(json_object_get(train, "processes"), "world", 0);
}

const char *plan_graph_key(const json_t *plan)
{
	return js_str(json_object_get(plan, "compile"), "graph_key");
}
