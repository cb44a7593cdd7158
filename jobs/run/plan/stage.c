/* The stages after a training: see stage.h. */
#include "jobs/run/plan/stage.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/store/order.h"

#define SHARDS_PER_NODE 4 /* of infer.shards: auto, so that slow nodes take fewer */

/* Whole numbers without a sign or a leading zero, as the agents write them. */
static bool read_number(const char *text, int64_t *ret)
{
	char *end;

	if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && text[1]))
		return false;
	*ret = strtoll(text, &end, 10);
	return *end == '\0' && *ret < FLOW_TASKS_MAX;
}

static bool find_repeat(const struct flow_policy *policy, const char *name, struct stage_task *ret)
{
	static const char *const roles[] = { "candidate", "baseline" };
	int64_t step = policy->has_baseline ? 2 : 1;

	for (int64_t role = 0; role < step; role++) {
		size_t len = strlen(roles[role]);

		if (strncmp(name, roles[role], len) != 0 || name[len] != '-' ||
		    !read_number(name + len + 1, &ret->repeat) || ret->repeat < 1)
			continue;
		ret->role = roles[role];
		ret->index = (ret->repeat - 1) * step + role;
		return true;
	}
	return false;
}

bool stage_task_find(enum phase phase, const struct flow_policy *policy, const char *name,
		     struct stage_task *ret)
{
	static const char shard[] = "shard-";
	bool found = false;

	*ret = (struct stage_task){ 0 };
	if (phase == PHASE_EVALUATE)
		found = find_repeat(policy, name, ret);
	else if (phase == PHASE_INFER && strncmp(name, shard, sizeof shard - 1) == 0)
		found = read_number(name + sizeof shard - 1, &ret->index);
	return found && ret->index < policy->stages[phase].tasks;
}

char *stage_results(const char *run, enum phase phase)
{
	return mem_format("runs/%s/" TASKS_DIR "%s/", run, flow_phase_names[phase]);
}

/* ---- the policy ------------------------------------------------------------------- */

static void put_stage(const json_t *plan, const json_t *section, int64_t tasks,
		      struct flow_stage *ret)
{
	int nodes = (int)js_int(section, "nodes", js_int(plan, "nodes", 1));
	const json_t *own = json_object_get(section, "price");
	double price = json_number_value(own ? own : js_path(plan, "limits.price"));
	const json_t *width = json_object_get(json_object_get(section, "job"), "width");

	*ret = (struct flow_stage){ .is_asked = section != NULL,
				    .nodes = nodes,
				    .price_per_ms = price * nodes / (3600.0 * 1000.0),
				    .tasks = tasks < FLOW_TASKS_MAX ? tasks : FLOW_TASKS_MAX,
				    .compiles = js_is(section, "compile", "aot"),
				    .compile_workers = js_int(width, "workers", 0) };
}

/* A shard has at least one object. */
static int64_t shards_of(const json_t *plan, const json_t *inputs)
{
	const json_t *infer = json_object_get(plan, "infer");
	const json_t *input = json_object_get(inputs, "infer");
	int64_t shards = js_int(infer, "shards", 0), objects;

	objects = js_int(input ? input : json_object_get(inputs, "data"), "objects", 1);
	if (shards <= 0)
		shards = SHARDS_PER_NODE * js_int(infer, "nodes", js_int(plan, "nodes", 1));
	if (shards > objects)
		shards = objects;
	return shards < 1 ? 1 : shards;
}

#define TOOK_MAX_S 1e8 /* longer took no stage */

/* Adds the time and cost that a stage is expected to take: its time in the last promoted turn, at
 * its price of now. */
static void expect(const json_t *inputs, enum phase phase, struct flow_policy *policy)
{
	const json_t *took =
		json_object_get(json_object_get(inputs, "took"), flow_phase_names[phase]);
	double seconds = js_real(took, "seconds", 0), machine = js_real(took, "machine_seconds", 0);
	const struct flow_stage *stage = &policy->stages[phase];

	if (!stage->is_asked)
		return;
	if (seconds > 0 && seconds < TOOK_MAX_S)
		policy->later_ms += (int64_t)(seconds * 1000);
	if (machine > 0 && machine < TOOK_MAX_S)
		policy->later_usd += machine * 1000 * stage->price_per_ms;
}

void stage_policy(const json_t *plan, const json_t *inputs, struct flow_policy *policy)
{
	const json_t *evaluate = json_object_get(plan, "evaluate");
	const json_t *promote = json_object_get(plan, "promote");
	bool promotes = promote && json_is_true(json_object_get(inputs, "promotes")) &&
			!js_is(promote, "when", "manual");

	policy->has_baseline = json_object_get(inputs, "baseline") != NULL;
	policy->generation = js_int(json_object_get(inputs, "pointer"), "generation", 0);
	policy->gate_advises = promotes && js_is(promote, "when", "always");
	put_stage(plan, evaluate, js_int(evaluate, "repeat", 1) * (policy->has_baseline ? 2 : 1),
		  &policy->stages[PHASE_EVALUATE]);
	put_stage(plan, json_object_get(plan, "infer"), shards_of(plan, inputs),
		  &policy->stages[PHASE_INFER]);
	policy->later_ms = 0;
	policy->later_usd = 0;
	expect(inputs, PHASE_EVALUATE, policy);
	expect(inputs, PHASE_INFER, policy);
	/* Nothing is promoted without a verdict, be it that of a gate without entries. */
	policy->stages[PHASE_GATE].is_asked =
		json_array_size(json_object_get(plan, "gate")) > 0 || promotes;
	policy->stages[PHASE_PROMOTE].is_asked = promotes;
}
