/*
 * The name of an instance type on its engine: AWS Batch asks for a machine by figures, SageMaker
 * has names of its own, and elsewhere a type that no catalogue has leaves cores and price unknown.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/machines/catalogue.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/spec/resolved.h"

#define ML "ml."

/* ---- a type that no catalogue has ----------------------------------------------- */

/* Hints at the type that was meant, and at the row that would make this one known. */
static void hint_at_row(struct binder *binder, struct problem *problem, const char *type,
			const char *meant)
{
	AUTO(auto_free) char *own = instances_own_path(binder->getenv_fn);
	AUTO(auto_free) char *row = instance_row(type);
	AUTO(auto_free)
	char *guess = meant ? mem_format("did you mean '%s'? else ", meant) : mem_copy("");

	problem_hint(
		problem,
		"%swrite its row beneath 'instances:' of %s (which begins with 'version: 1'), with "
		"the figures that 'aws ec2 describe-instance-types --instance-types %s' shows for "
		"each N: %s",
		guess, own ? own : "the file that STOKER_INSTANCES names", type, row);
}

/* AWS Batch selects a machine by its resources, so they must be known. */
static void need_figures(struct binder *binder, enum spec_field field, const char *member,
			 const json_t *row)
{
	const char *type = js_str(row, "type");
	bool is_known = instance_known(binder->catalogue, type);
	AUTO(auto_free) char *nearest = is_known ? NULL : instance_nearest(binder->catalogue, type);

	if (is_known && text_starts(type, ML)) {
		problem_hint(spec_error(binder, field, member,
					"'%.80s' is a name of SageMaker's, not of AWS Batch's",
					type),
			     "did you mean '%s'?", type + strlen(ML));
		return;
	}
	if (js_int(row, "vcpus", 0) > 0 && js_int(row, "ram_mib", 0) > 0)
		return;
	hint_at_row(
		binder,
		spec_error(binder, field, member,
			   is_known ? "the row of '%.80s' in your catalogue has no vcpus or no ram"
				    : "no catalogue has '%.80s', so its resources are not known",
			   type),
		type, nearest);
}

static void tell_unknown(struct binder *binder, enum spec_field field, const char *member,
			 const char *type)
{
	AUTO(auto_free) char *meant = NULL;

	if (instance_known(binder->catalogue, type))
		return;
	meant = instance_meant(binder->catalogue, type);
	if (meant)
		problem_hint(spec_lint(binder, field, member, "no catalogue has '%.80s'", type),
			     "did you mean '%s'?", meant);
	else
		hint_at_row(
			binder,
			spec_lint(binder, field, member,
				  "no catalogue has '%.80s', so its cores, memory and price are "
				  "not known",
				  type),
			type, NULL);
}

/* ---- SageMaker ------------------------------------------------------------------ */

static int64_t workers_of(const json_t *row)
{
	int64_t units = accelerator_units(row);

	return units > 0 ? units : 1;
}

static double apart(int64_t a, int64_t b)
{
	return fabs(log((double)(a > 0 ? a : 1)) - log((double)(b > 0 ? b : 1)));
}

/* Returns how unlike two machines are: their families first, then their accelerators, then how much
 * there is of them. */
static double unlike(const json_t *a, const json_t *b)
{
	const char *first = js_str(a, "type"), *second = js_str(b, "type");
	size_t family = strcspn(first, ".") + 1;
	const char *kind = js_str(a, "accelerator"), *other = js_str(b, "accelerator");
	double far = strncmp(first, second, family) == 0 ? 0 : 100;

	if (!kind || !other ? kind != other : strcmp(kind, other) != 0)
		far += 1000;
	return far + 10 * apart(workers_of(a), workers_of(b)) +
	       apart(js_int(a, "vcpus", 0), js_int(b, "vcpus", 0));
}

/* Returns the machine that SageMaker trains on and that is most like this one, by its name there.
 * The caller frees it; NULL if none has its accelerator. */
static char *nearest_trained(struct binder *binder, const char *plain)
{
	json_auto_t *types = instance_types(binder->catalogue);
	json_auto_t *wanted = instance_find(binder->catalogue, plain);
	char *nearest = NULL;
	double least = 1000;
	json_t *type;
	size_t i;

	json_array_foreach (types, i, type) {
		json_auto_t *row = instance_find(binder->catalogue, json_string_value(type));
		double far = unlike(wanted, row);

		if (!json_is_true(json_object_get(row, "sagemaker")) || far >= least)
			continue;
		auto_free(&nearest);
		nearest = mem_format(ML "%s", json_string_value(type));
		least = far;
	}
	return nearest;
}

static void refuse_name(struct binder *binder, enum spec_field field, const char *member,
			const char *type, const char *plain)
{
	AUTO(auto_free) char *ml = mem_format(ML "%s", plain);
	bool is_bare = catalogue_trains_on(ml);
	AUTO(auto_free)
	char *nearest = is_bare ? mem_copy(ml) : nearest_trained(binder, plain);
	AUTO(auto_free)
	char *guess = nearest ? mem_format("did you mean '%s'?", nearest) : mem_copy("");
	AUTO(auto_free) char *version = catalogue_names_version();
	AUTO(auto_free) char *own = instances_own_path(binder->getenv_fn);
	struct problem *problem =
		spec_error(binder, field, member,
			   "SageMaker trains on no '%.80s' (its names in %s)", type, version);

	if (is_bare)
		problem_hint(problem, "%s", guess);
	else
		problem_hint(problem,
			     "%s%sif the name is newer, say so beneath 'instances:' of %s: %s: "
			     "{sagemaker: true}",
			     guess, nearest ? " " : "",
			     own ? own : "the file that STOKER_INSTANCES names", ml);
}

/* A name may be newer than SageMaker's service model, and than our rows, but not both be ours and
 * none of SageMaker's. Returns false for a name that SageMaker refuses. */
static bool check_name(struct binder *binder, enum spec_field field, const char *member,
		       const json_t *row)
{
	const char *type = js_str(row, "type");
	bool is_ml = text_starts(type, ML);
	const char *plain = is_ml ? type + strlen(ML) : type;
	AUTO(auto_free) char *ml = mem_format(ML "%s", plain);
	AUTO(auto_free) char *meant = NULL;
	AUTO(auto_free) char *version = NULL;

	if (is_ml && (catalogue_trains_on(type) || json_is_true(json_object_get(row, "sagemaker"))))
		return true;
	if (catalogue_trains_on(ml) || instance_known(binder->catalogue, type)) {
		refuse_name(binder, field, member, type, plain);
		return false;
	}
	meant = catalogue_nearest_name(type);
	version = catalogue_names_version();
	problem_hint(spec_lint(binder, field, member,
			       "'%.80s' is in no catalogue, and none of SageMaker's names in %s",
			       type, version),
		     meant ? "did you mean '%s'? a newer name may be right all the same"
			   : "a newer name may be right all the same%s",
		     meant ? meant : "");
	return true;
}

/* A disk of the machine's own takes the place of the volume that is asked for. */
static void check_volume(struct binder *binder, enum spec_field field, const char *member,
			 const json_t *row)
{
	const json_t *nvme = json_object_get(row, "nvme_gb");
	bool is_set = spec_is_set(binder->spec, SPEC_SAGEMAKER_VOLUME);
	const char *type = js_str(row, "type");

	if (!nvme)
		return;
	if (json_integer_value(nvme) > 0 && is_set)
		problem_hint(
			spec_lint(
				binder, SPEC_SAGEMAKER_VOLUME, NULL,
				"'sagemaker.volume' has no effect on '%.80s', which has %lld GB of "
				"NVMe storage",
				type, (long long)json_integer_value(nvme)),
			"leave sagemaker.volume out, or take a type without storage of its own");
	if (json_integer_value(nvme) == 0 && !is_set)
		problem_hint(spec_lint(binder, field, member,
				       "'%.80s' has no storage of its own, so each machine gets %s",
				       type, spec_str(binder->spec, SPEC_SAGEMAKER_VOLUME)),
			     "say how much data, checkpoints and image need: sagemaker: {volume: "
			     "200GiB}");
}

void type_check(struct binder *binder, enum spec_field field, const char *member, const json_t *row)
{
	if (spec_says(binder->spec, SPEC_ENGINE, "batch")) {
		need_figures(binder, field, member, row);
	} else if (spec_says(binder->spec, SPEC_ENGINE, "sagemaker")) {
		if (check_name(binder, field, member, row))
			check_volume(binder, field, member, row);
	} else {
		tell_unknown(binder, field, member, js_str(row, "type"));
	}
}
