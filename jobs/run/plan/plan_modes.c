/* Members that a benchmark or a debug run adds to a plan: see plan_modes.h. */
#include "jobs/run/plan/plan_modes.h"

#include "jobs/cache/kinds/debug.h"
#include "jobs/run/plan/plan.h"

/* Additions to the environment of a debug run. */
struct debug_edit {
	json_t *env, *added;
	const json_t *own, *secrets; /* set by the spec: they stay */
};

static void add_debug_variable(void *arg, const char *name, const char *value)
{
	const struct debug_edit *edit = arg;

	if (json_object_get(edit->own, name) || json_object_get(edit->secrets, name))
		return;
	js_put_str(edit->env, name, value);
	js_put_str(edit->added, name, value);
}

void plan_modes_put(json_t *plan, const struct spec *spec, const struct compile_kind *named)
{
	json_t *train = plan_phase(plan, flow_phase_names[PHASE_TRAIN]);
	json_auto_t *own = spec_env(spec, false), *secrets = spec_secrets(spec);
	struct debug_edit edit = { json_object_get(train, "env"), json_object(), own, secrets };

	if (spec_bool(spec, SPEC_BENCHMARK))
		js_put(plan, "benchmark", json_true());
	if (!spec_bool(spec, SPEC_DEBUG)) {
		json_decref(edit.added);
		return;
	}
	debug_variables(named, add_debug_variable, &edit);
	js_put(plan, "debug",
	       json_pack("{s:s, s:o}", "kind", named->name, "variables", edit.added));
}
