/* Values of the names in an expression: see known.h. */
#include "jobs/spec/derive/known.h"

#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/fields/names.h"

/* Finds the value of one name; NULL with the two texts if it cannot be known. */
typedef json_t *known_fn(const struct spec *spec, char **ret_why, char **ret_hint);

static json_t *not_known(char **ret_why, char **ret_hint, char *why, char *hint)
{
	*ret_why = why;
	*ret_hint = hint;
	return NULL;
}

static const json_t *hyperparameter(const struct spec *spec, const char *name)
{
	return json_object_get(spec_get(spec, SPEC_HYPERPARAMETERS), name);
}

static json_t *nodes(const struct spec *spec, char **ret_why, char **ret_hint)
{
	(void)ret_why;
	(void)ret_hint;
	return json_integer(spec_int(spec, SPEC_RESOURCES_NODES));
}

static json_t *processes(const struct spec *spec, char **ret_why, char **ret_hint)
{
	json_auto_t *workers = spec_processes(spec, false);

	if (!workers)
		return json_integer(1);
	if (json_object_get(workers, "per_node"))
		return json_incref(json_object_get(workers, "per_node"));
	return not_known(
		ret_why, ret_hint,
		mem_format("only the job will know how many workers the launcher starts on a "
			   "node (%s)",
			   js_str(workers, "reason")),
		mem_copy("write the number as resources.workers, or in the expression"));
}

static json_t *world(const struct spec *spec, char **ret_why, char **ret_hint)
{
	json_auto_t *each = processes(spec, ret_why, ret_hint);

	return each ? json_integer(json_integer_value(each) * spec_int(spec, SPEC_RESOURCES_NODES))
		    : NULL;
}

/* Returns a hyperparameter that says that processes share a batch; NULL: none does. */
static const char *shares_batch(const struct spec *spec)
{
	/* The names of Megatron-LM, NeMo and neuronx-distributed. */
	static const char *const patterns[] = { "tensor*parallel*",  "pipeline*parallel*",
						"context*parallel*", "model_parallel*",
						"tp_size",           "tp_degree",
						"pp_size",           "pp_degree" };
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)spec_get(spec, SPEC_HYPERPARAMETERS), name,
			     value) {
		for (size_t i = 0; i < STK_LENGTH(patterns); i++)
			if (names_match(patterns[i], name) && json_is_integer(value) &&
			    json_integer_value(value) > 1)
				return name;
	}
	return NULL;
}

/* Returns the first of these hyperparameters that there is; NULL: none. */
static const char *first_of(const struct spec *spec, const char *const names[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (hyperparameter(spec, names[i]))
			return names[i];
	return NULL;
}

static json_t *global_batch(const struct spec *spec, char **ret_why, char **ret_hint)
{
	static const char *const sizes[] = { "per_device_train_batch_size", "batch_size" };
	static const char *const accumulations[] = { "gradient_accumulation_steps" };
	const char *of[] = { first_of(spec, sizes, STK_LENGTH(sizes)),
			     first_of(spec, accumulations, STK_LENGTH(accumulations)) };
	const char *shared = shares_batch(spec);
	static const char hint[] = "write samples_per_step, or the product in the expression";
	json_auto_t *all = NULL;
	int64_t product = 1;

	if (spec_int(spec, SPEC_SAMPLES_PER_STEP) > 0)
		return json_integer(spec_int(spec, SPEC_SAMPLES_PER_STEP));
	if (!of[0])
		return not_known(ret_why, ret_hint,
				 mem_copy("the hyperparameters have neither batch_size nor "
					  "per_device_train_batch_size"),
				 mem_copy(hint));
	if (shared)
		return not_known(
			ret_why, ret_hint,
			mem_format("by hyperparameters.%s several processes share a batch", shared),
			mem_copy(hint));
	all = world(spec, ret_why, ret_hint);
	if (!all)
		return NULL;
	for (size_t i = 0; i < STK_LENGTH(of); i++) {
		const json_t *value = of[i] ? hyperparameter(spec, of[i]) : NULL;
		int64_t factor = json_integer_value(value);

		if (!of[i])
			continue;
		if (factor <= 0 || __builtin_mul_overflow(product, factor, &product))
			return not_known(
				ret_why, ret_hint,
				mem_format("hyperparameters.%s is no number of samples", of[i]),
				mem_copy("write it as a positive integer"));
	}
	if (__builtin_mul_overflow(product, json_integer_value(all), &product))
		return not_known(ret_why, ret_hint, mem_copy("it is too large"), mem_copy(hint));
	return json_integer(product);
}

static const struct {
	const char *name;
	known_fn *find;
} own[] = {
	{ "nodes", nodes },
	{ "processes_per_node", processes },
	{ "world_size", world },
	{ "global_batch", global_batch },
};

json_t *known_value(const struct spec *spec, const char *name, char **ret_why, char **ret_hint)
{
	*ret_why = *ret_hint = NULL;
	for (size_t i = 0; i < STK_LENGTH(own); i++)
		if (strcmp(own[i].name, name) == 0)
			return own[i].find(spec, ret_why, ret_hint);
	return json_incref((json_t *)(uintptr_t)hyperparameter(spec, name));
}

char *known_names(const struct spec *spec)
{
	struct sb text = SB_INIT_MAX(400);
	const char *name;
	json_t *value;

	for (size_t i = 0; i < STK_LENGTH(own); i++)
		sb_addf(&text, "%s$%s", i > 0 ? ", " : "", own[i].name);
	json_object_foreach ((json_t *)(uintptr_t)spec_get(spec, SPEC_HYPERPARAMETERS), name,
			     value) {
		if (!strpbrk(name, ".-"))
			sb_addf(&text, ", $%s", name);
	}
	return sb_take(&text);
}
