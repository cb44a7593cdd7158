/* What a plan can know of the promoted model: see retrain_known.h. */
#include "cmd/view/retrain_known.h"

#include <math.h>
#include <string.h>

#include "jobs/flow/gate.h"
#include "jobs/model/model.h"

static bool compares(const json_t *plan)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_object_get(plan, "gate"), i, entry)
		if (json_object_get(entry, gate_form_names[GATE_MAX_DROP]))
			return true;
	return false;
}

/* Adds the numbers of one repeat to the sums and counts of their metrics. What was no number makes
 * the mean none. */
static void add_repeat(const json_t *metrics, json_t *sums, json_t *counts)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)metrics, name, value) {
		json_t *sum = json_object_get(sums, name);

		js_put(counts, name, json_integer(js_int(counts, name, 0) + 1));
		if (json_is_number(value) && (!sum || json_is_number(sum)))
			js_put(sums, name,
			       json_real(json_number_value(sum) + json_number_value(value)));
		else
			js_put(sums, name, json_null());
	}
}

/* Returns the means of what was measured of a version when it was the candidate; NULL: nothing. */
static json_t *means_of(const json_t *measured)
{
	json_auto_t *sums = json_object(), *counts = json_object();
	json_t *means = json_object(), *row, *sum;
	const char *name;
	size_t i;

	json_array_foreach (measured, i, row)
		if (js_is(row, "role", gate_role_names[GATE_CANDIDATE]))
			add_repeat(json_object_get(row, "metrics"), sums, counts);
	json_object_foreach (sums, name, sum)
		if (json_is_number(sum))
			js_put(means, name,
			       json_real(json_number_value(sum) / (double)js_int(counts, name, 1)));
	if (json_object_size(means) > 0)
		return means;
	json_decref(means);
	return NULL;
}

json_t *retrain_known(const json_t *plan, struct err **ret_why)
{
	const char *url = js_str(json_object_get(plan, "promote"), "url");
	AUTO(model_freep) struct model *model = NULL;
	AUTO(model_entry_release) struct model_entry head = { 0 };

	if (!url || !compares(plan))
		return NULL;
	if (model_open(url, js_str(plan, "name"), &model, ret_why) < 0 ||
	    model_head(model, false, &head, ret_why) <= 0)
		return NULL;
	return means_of(js_path(head.body, "version.evaluate"));
}
