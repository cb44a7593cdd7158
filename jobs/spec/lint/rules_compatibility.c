/*
 * A spec against the rules about what goes together (jobs/spec/machines/compatibility.h): for each
 * type of machine that it names, and for the stages that have an image or machines of their own.
 */
#include <string.h>

#include "jobs/spec/machines/compatibility.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/spec/resolved.h"

/* The fields from which the facts of a job come. */
struct place {
	enum spec_field image, instance;
};

static const struct place training = { SPEC_IMAGE, SPEC_RESOURCES_INSTANCE };
static const struct place stages[] = {
	{ SPEC_EVALUATE_IMAGE, SPEC_EVALUATE_RESOURCES_INSTANCE },
	{ SPEC_INFER_IMAGE, SPEC_INFER_RESOURCES_INSTANCE },
};

/* Returns the field that a finding is about: the image if the rule looks at it, else the machine.
 */
static enum spec_field field_of(const json_t *finding, const struct place *at)
{
	static const char of_job[] = "engine compiler machine accelerator ami";
	const json_t *name;
	size_t i;

	json_array_foreach (json_object_get(finding, "of"), i, name)
		if (!field_word_in(of_job, json_string_value(name)))
			return at->image;
	return at->instance;
}

static void report(struct binder *binder, const struct place *at, const json_t *finding)
{
	enum spec_field field = field_of(finding, at);
	const char *says = js_str(finding, "says"), *dated = js_str(finding, "dated");
	struct problem *problem =
		js_is(finding, "state", "fail")
			? spec_error(binder, field, NULL, "%s (as of %s)", says, dated)
			: spec_lint(binder, field, NULL, "%s (as of %s)", says, dated);

	if (problem)
		problem->remark = js_is(finding, "state", "note");
	problem_hint(problem, "%s", js_str(finding, "cure"));
}

static void check_job(struct binder *binder, const struct place *at, const char *image,
		      const char *type)
{
	const struct spec *spec = binder->spec;
	json_auto_t *row = type ? instance_find(binder->catalogue, type) : NULL;
	struct compatibility_job job = { .engine = spec_str(spec, SPEC_ENGINE),
					 .compiler = spec_str(spec, SPEC_COMPILE_KIND),
					 .image = image,
					 .type = type,
					 .accelerator = js_str(row, "accelerator") };
	json_auto_t *facts = compatibility_facts(&job);
	json_auto_t *findings = compatibility_check(facts);
	const json_t *finding;
	size_t i;

	json_array_foreach (findings, i, finding)
		report(binder, at, finding);
}

/* Checks the training, on each type of machine that it may run on. */
static void check_training(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *image = spec_str(spec, SPEC_IMAGE);
	const json_t *groups = spec_get(spec, SPEC_SAGEMAKER_GROUPS), *group;
	size_t i;

	json_array_foreach (groups, i, group)
		check_job(binder, &training, image, js_str(group, "instance"));
	if (json_array_size(groups) == 0)
		check_job(binder, &training, image, spec_str(spec, SPEC_RESOURCES_INSTANCE));
}

void rules_compatibility(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *image = spec_str(spec, SPEC_IMAGE);
	const char *type = spec_str(spec, SPEC_RESOURCES_INSTANCE);

	check_training(binder);
	for (size_t i = 0; i < STK_LENGTH(stages); i++) {
		const char *own_image = spec_str(spec, stages[i].image);
		const char *own_type = spec_str(spec, stages[i].instance);

		if (own_image || own_type)
			check_job(binder, &stages[i], own_image ? own_image : image,
				  own_type ? own_type : type);
	}
}
