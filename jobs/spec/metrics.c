/* The metrics of a spec: see spec.h. */
#include "jobs/spec/resolved.h"

json_t *spec_metrics(const struct spec *spec)
{
	const json_t *own = spec_get(spec, SPEC_METRICS), *metric;
	json_t *ret = own ? json_deep_copy(own) : json_array();
	size_t i;

	json_array_foreach (spec_get(spec, SPEC_METRIC_DEFINITIONS), i, metric)
		json_array_append_new(ret, json_pack("{s:O, s:O}", "name",
						     json_object_get(metric, "Name"), "regex",
						     json_object_get(metric, "Regex")));
	return ret;
}
