/* Checks of what jobs are made of: the engine's own, the image, and what goes together. */
#include <string.h>

#include "aws/image/image.h"
#include "jobs/engine/batch/batch.h"
#include "jobs/engine/engine.h"
#include "jobs/run/doctor/doctor_internal.h"
#include "jobs/spec/machines/compatibility.h"

static const char *spec_text(const json_t *plan, const char *path)
{
	return json_string_value(js_path(json_object_get(plan, "spec"), path));
}

/* ---- the engine ---- */

/* What a run has the engine check before its first job. AWS Batch's own check asks the service: its
 * questions are checks of their own here (doctor_batch.c). */
static int check_engine(const struct engine_ops *ops, const json_t *plan, struct err **err)
{
	const struct engine_where where = { .workspace = js_str(plan, "workspace"), .plan = plan };
	struct engine *engine = NULL;
	int result;

	if (ops == &batch_ops)
		return batch_check_definition(plan, err);
	if (ops->open(&where, &engine, err) < 0)
		return -1;
	result = ops->check(engine, err);
	ops->close(engine);
	return result;
}

void doctor_jobs_engine(struct doctor_talk *talk)
{
	const struct engine_ops *ops = engine_find(js_str(talk->plan, "engine"));
	AUTO(err_freep) struct err *why = NULL;

	if (!ops)
		doctor_finding(talk, DOCTOR_FAIL, NULL, "engine '%s' is not part of this version",
			       js_str(talk->plan, "engine"));
	else if (check_engine(ops, talk->plan, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "its jobs can be made for engine %s",
			       ops->name);
}

/* ---- the image ---- */

static void tell_rules(struct doctor_talk *talk, const json_t *rules)
{
	const json_t *rule;
	size_t i;

	json_array_foreach (rules, i, rule) {
		json_t *finding = doctor_finding(talk,
						 js_is(rule, "state", "fail")   ? DOCTOR_FAIL
						 : js_is(rule, "state", "warn") ? DOCTOR_WARN
										: DOCTOR_OK,
						 js_str(rule, "cure"), "%s", js_str(rule, "says"));

		js_put_str(finding, "on", spec_text(talk->plan, "image"));
	}
}

void doctor_jobs_compatibility(struct doctor_talk *talk)
{
	const struct compatibility_job job = {
		.engine = js_str(talk->plan, "engine"),
		.compiler = spec_text(talk->plan, "compile.kind"),
		.image = spec_text(talk->plan, "image"),
		.type = spec_text(talk->plan, "resources.instance"),
		.accelerator = js_str(json_object_get(talk->plan, "instance"), "accelerator"),
	};
	json_auto_t *facts = compatibility_facts(&job);
	json_auto_t *rules = compatibility_check(facts);

	tell_rules(talk, rules);
	if (json_array_size(rules) == 0)
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "nothing is known against image, compiler and machines together");
}

void doctor_jobs_image(struct doctor_talk *talk)
{
	AUTO(err_freep) struct err *why = NULL;
	char digest[IMAGE_DIGEST];

	if (image_resolve(talk->on, DOCTOR_LIMIT_MS, digest, &why) < 0)
		doctor_finding_of(talk, why, "ecr:BatchGetImage");
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the image is %s%s", digest,
			       image_digest(talk->on) ? ", as the spec names it" : "");
}
