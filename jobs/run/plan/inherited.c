/* The environment that a command of this plan inherits from its container: see plan.h. */
#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/run/plan/plan.h"

static json_t *ours(void)
{
	json_t *names = json_pack("[s]", "STOKER_*");

	for (enum variable i = 0; i < VAR_COUNT; i++)
		if (variable_rows[i].uses & VAR_OURS)
			json_array_append_new(names, json_string(variable_rows[i].name));
	return names;
}

/* Names, and prefixes that end in '*'. */
static json_t *steering(const json_t *plan)
{
	const char *name = js_str(json_object_get(plan, "compile"), "kind");
	const struct compile_kind *kind = name ? compile_kind_find(name) : NULL;
	json_t *names = json_array();

	for (const char *const *row = kind ? kind->steering : NULL; row && *row; row++)
		json_array_append_new(names, json_string(*row));
	return names;
}

json_t *inherited_of_plan(const json_t *plan)
{
	json_t *inherited;

	if (agent_delivery_way(plan) == AGENT_DELIVERY_NONE || !toolkit_limits_has_agent(plan))
		return NULL;
	inherited = json_object();
	js_put(inherited, "left_out", ours());
	js_put(inherited, "steering", steering(plan));
	return inherited;
}

static void add_names(struct sb *words, const json_t *names)
{
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		sb_addf(words, "%s%s", i ? ", " : "", json_string_value(name));
}

char *inherited_words(const json_t *plan)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	json_auto_t *inherited = inherited_of_plan(plan);
	const json_t *steering = json_object_get(inherited, "steering");

	if (!inherited)
		return NULL;
	sb_adds(&words, "the container's own, less ");
	add_names(&words, json_object_get(inherited, "left_out"));
	if (json_array_size(steering) > 0) {
		sb_adds(&words, "; of ");
		add_names(&words, steering);
		sb_adds(&words, " only if the spec or the image sets them; other values would "
				"falsify the graph key and are withheld, and named");
	}
	return sb_take(&words);
}
