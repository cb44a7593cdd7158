/* Checks of what jobs are made of: the engine's own, the image, and what goes together. */
#include <stdlib.h>
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
	if (why)
		return;
	free(talk->own);
	talk->own = mem_copy(digest);
	talk->release = free;
}

/* A registry that does not tell is no failure: machines may have a login that stoker has not. */
static void tell_unread(struct doctor_talk *talk, const struct err *why)
{
	if (why->code == EXIT_UNREACHABLE || doctor_finding_is_denied(why))
		doctor_finding_of(talk, why, "ecr:GetDownloadUrlForLayer");
	else
		doctor_finding(talk, DOCTOR_UNKNOWN, why->hint, "%s", why->message);
}

/* Returns "amd64, arm64". The caller frees it. */
static char *words_of(const json_t *names)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(512);
	const json_t *name;
	size_t i;

	sb_adds(&words, "");
	json_array_foreach (names, i, name)
		sb_addf(&words, "%s%s", i > 0 ? ", " : "", json_string_value(name));
	return mem_copy(words.text);
}

static bool has_name(const json_t *names, const char *wanted)
{
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		if (strcmp(json_string_value(name), wanted) == 0)
			return true;
	return false;
}

void doctor_jobs_platform(struct doctor_talk *talk)
{
	bool is_arm = js_is(json_object_get(talk->plan, "instance"), "arch", "arm64");
	const char *wanted = is_arm ? "arm64" : "amd64";
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *names = NULL, *cure = NULL;
	json_auto_t *facts = NULL;

	if (!talk->own) {
		doctor_finding_untried(talk, "the image's digest is not known");
		return;
	}
	if (image_facts(talk->on, talk->own, wanted, DOCTOR_LIMIT_MS, &facts, &why) < 0) {
		tell_unread(talk, why);
		return;
	}
	names = words_of(json_object_get(facts, "architectures"));
	cure = mem_format(
		"build the image with --platform linux/%s, or name a type of its architecture",
		wanted);
	if (!has_name(json_object_get(facts, "architectures"), wanted))
		doctor_finding(talk, DOCTOR_FAIL, cure,
			       "the image is made for %s, the machines are %s",
			       *names ? names : "no architecture", wanted);
	else
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "%.1f GiB in %lld layers to fetch, compressed; made for %s",
			       js_real(facts, "bytes", 0) / (double)(1 << 30),
			       (long long)js_int(facts, "layers", 0), names);
}
