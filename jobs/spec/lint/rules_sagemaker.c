/* Rules over several fields for SageMaker that the service would report only after a while. */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/resolved.h"

#define OWN_CHANNEL "stoker" /* channel of the agent */

/* Reports items of a list with the same name. */
static void names_once(struct binder *binder, enum spec_field list, const char *taken)
{
	json_auto_t *names = json_object();
	const json_t *item;
	size_t i;

	if (taken)
		json_object_set_new(names, taken, json_true());
	json_array_foreach (spec_get(binder->spec, list), i, item) {
		const char *name = json_string_value(json_object_get(item, "name"));
		AUTO(auto_free) char *member = mem_format("[%zu].name", i);

		if (!name)
			continue;
		if (taken && strcmp(name, taken) == 0)
			problem_hint(spec_error(binder, list, member,
						"the name '%s' is reserved for stoker's agent",
						name),
				     "choose another name");
		else if (json_object_get(names, name))
			problem_hint(
				spec_error(binder, list, member, "duplicate name '%.80s'", name),
				"give each a unique name");
		json_object_set_new(names, name, json_true());
	}
}

static void check_groups(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const json_t *item;
	int64_t nodes = 0;
	size_t i;

	names_once(binder, SPEC_SAGEMAKER_GROUPS, NULL);
	json_array_foreach (spec_get(spec, SPEC_SAGEMAKER_GROUPS), i, item)
		nodes += json_integer_value(json_object_get(item, "nodes"));
	if (i > 0 && nodes != spec_int(spec, SPEC_RESOURCES_NODES))
		problem_hint(spec_error(binder, SPEC_SAGEMAKER_GROUPS, NULL,
					"the groups have %lld nodes, 'resources.nodes' says %lld",
					(long long)nodes,
					(long long)spec_int(spec, SPEC_RESOURCES_NODES)),
			     "make them agree");
}

static void check_vpc(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	bool subnets = json_array_size(spec_get(spec, SPEC_SAGEMAKER_VPC_SUBNETS)) > 0;
	bool groups = json_array_size(spec_get(spec, SPEC_SAGEMAKER_VPC_SECURITY)) > 0;

	if (subnets != groups)
		problem_hint(spec_error(binder, SPEC_SAGEMAKER_VPC, NULL,
					"'sagemaker.vpc' has no '%s'",
					subnets ? "security_groups" : "subnets"),
			     "SageMaker takes subnets and security groups together");
}

static void check_waits(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	int64_t runtime = spec_ms(spec, SPEC_SAGEMAKER_MAX_RUNTIME);
	int64_t wait = spec_ms(spec, SPEC_SAGEMAKER_MAX_WAIT);

	if (wait > 0 && !spec_bool(spec, SPEC_SAGEMAKER_SPOT))
		problem_hint(spec_error(binder, SPEC_SAGEMAKER_MAX_WAIT, NULL,
					"'sagemaker.max_wait' is for Spot alone"),
			     "add 'spot: true', or use limits.queue");
	if (wait > 0 && runtime > wait)
		problem_hint(
			spec_error(binder, SPEC_SAGEMAKER_MAX_WAIT, NULL,
				   "'sagemaker.max_wait' (%s) is shorter than 'max_runtime' (%s)",
				   spec_str(spec, SPEC_SAGEMAKER_MAX_WAIT),
				   spec_str(spec, SPEC_SAGEMAKER_MAX_RUNTIME)),
			"raise max_wait, which includes the run");
	if (spec_bool(spec, SPEC_SAGEMAKER_SPOT) && spec_ms(spec, SPEC_SAGEMAKER_WARM_POOL) > 0)
		problem_hint(spec_error(binder, SPEC_SAGEMAKER_WARM_POOL, NULL,
					"'sagemaker.warm_pool' does not work with Spot"),
			     "keep one of the two: Spot machines are not kept");
}

void rules_sagemaker(struct binder *binder)
{
	if (!spec_says(binder->spec, SPEC_ENGINE, "sagemaker"))
		return;
	check_groups(binder);
	names_once(binder, SPEC_SAGEMAKER_CHANNELS, OWN_CHANNEL);
	check_vpc(binder);
	check_waits(binder);
}
