/* Members of a plan that all engines read alike: see engine.h. It is below all engines, registry.c
 * above. */
#include "jobs/engine/engine.h"

const char *engine_image(const json_t *plan)
{
	const char *pinned = js_str(json_object_get(plan, "image"), "pinned");

	return pinned ? pinned : json_string_value(js_path(plan, "spec.image"));
}
