/* The sections of retraining in a plan: see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/image/image.h"
#include "jobs/base/fs/fs.h"
#include "jobs/run/plan/plan_internal.h"

/* Enters a place, unless the text is a word that names none. */
static void put_place(const struct spec *spec, json_t *to, const char *name, const char *text,
		      const char *none)
{
	AUTO(auto_free) char *place = NULL;

	if (!text || (none && strcmp(text, none) == 0))
		return;
	place = plan_place(spec, text);
	js_put_str(to, name, place);
}

/* Copies members as they are. */
static void put_members(json_t *to, const json_t *section, const char *const names[])
{
	for (; *names; names++)
		js_put(to, *names, json_incref(json_object_get(section, *names)));
}

static json_t *data_json(const struct spec *spec)
{
	static const char *const as_is[] = { "include",   "incremental",   "min_new", "fetch",
					     "on_change", "after_refusal", NULL };
	const json_t *section = spec_get(spec, SPEC_DATA);
	json_t *data = json_object();

	put_place(spec, data, "url", js_str(section, "url"), NULL);
	put_members(data, section, as_is);
	if (!js_is(section, "done_marker", "none"))
		js_put_str(data, "done_marker", js_str(section, "done_marker"));
	js_put(data, "settle_ms", json_integer(spec_ms(spec, SPEC_DATA_SETTLE)));
	return data;
}

static json_t *parent_json(const struct spec *spec)
{
	static const char *const words[] = { "auto", "promoted", "none" };
	static const char *const as_is[] = { "kind", "reshard", NULL };
	json_auto_t *section = spec_section(spec, SPEC_PARENT);
	const char *from = js_str(section, "from");
	json_t *parent = json_object();
	bool word = false;

	for (size_t i = 0; i < STK_LENGTH(words); i++)
		word = word || (from && strcmp(from, words[i]) == 0);
	if (word)
		js_put_str(parent, "from", from);
	else
		put_place(spec, parent, "from", from, NULL);
	put_place(spec, parent, "first", js_str(section, "first"), "none");
	put_members(parent, section, as_is);
	return parent;
}

/* A retraining has promoted models without a section `promote` too. */
static char *models_of(const struct spec *spec, const char *workspace)
{
	const char *url = spec_str(spec, SPEC_PROMOTE_URL);

	return url ? plan_place(spec, url)
		   : mem_format("%s/models/%s", workspace, spec_str(spec, SPEC_NAME));
}

char *plan_models(const struct spec *spec, const char *workspace)
{
	return spec_is_set(spec, SPEC_PROMOTE) ? models_of(spec, workspace) : NULL;
}

static json_t *promote_json(const struct spec *spec, const char *workspace)
{
	static const char *const as_is[] = { "from", "when", "keep", NULL };
	json_auto_t *section = spec_section(spec, SPEC_PROMOTE);
	AUTO(auto_free) char *models = models_of(spec, workspace);
	json_t *promote = json_object();

	js_put_str(promote, "url", models);
	put_members(promote, section, as_is);
	return promote;
}

/* --- stages --- */

/* Members of a plan that are others for a stage. "spec" is merged: see of_spec. */
static const char *const of_job[] = { "nodes",  "instance", "image",  "compile",
				      "length", "width",    "phases", NULL };
/* Members of its "spec" that engines read, and a stage may have of its own. */
static const char *const of_spec[] = { "resources", "image", "batch", NULL };

/* A key of graphs needs the image by its digest, which only the training's tag is resolved to. */
static int check_image(const struct spec *spec, const struct spec *stage, const json_t *job,
		       enum spec_field image, struct err **err)
{
	const char *own = spec_str(stage, SPEC_IMAGE), *trained = spec_str(spec, SPEC_IMAGE);

	if (!own || (trained && strcmp(own, trained) == 0) || image_digest(own) ||
	    !plan_phase(job, flow_phase_names[PHASE_PRECOMPILE]))
		return 0;
	err_set(err, EXIT_SPEC, "'compile: aot' needs the digest of the image '%.300s'", own);
	err_field(err, image == SPEC_EVALUATE_IMAGE ? "evaluate.image" : "infer.image");
	return err_hint(err, "name the digest: REPOSITORY@sha256:…, or use compile: jit");
}

/* Returns the stage's job, as members of a plan; NULL with an error. */
static json_t *job_json(const struct plan *plan, const struct spec *stage,
			const struct compile_kind *kind, enum phase phase, struct err **err)
{
	struct plan own = { .json = json_object(), .pin = plan->pin, .root = plan->root };
	json_t *job = NULL, *spec;

	js_put_str(own.json, "engine", js_str(plan->json, "engine"));
	js_put_str(own.json, "spec_file", js_str(plan->json, "spec_file"));
	js_put(own.json, "spec", json_incref((json_t *)(uintptr_t)spec_root(stage)));
	js_put(own.json, "nodes", json_integer(spec_int(stage, SPEC_RESOURCES_NODES)));
	js_put(own.json, "instance", json_incref((json_t *)(uintptr_t)spec_instance(stage)));
	if (plan_put_jobs(&own, stage, kind, phase, err) == 0) {
		job = json_object();
		put_members(job, own.json, of_job);
		/* The source is the training's, and its list may be long. */
		json_object_del(js_path(job, "compile.ingredients"), "source");
		spec = json_object();
		put_members(spec, spec_root(stage), of_spec);
		js_put(job, "spec", spec);
	}
	json_decref(own.json);
	return job;
}

static const struct stage_fields {
	enum phase phase;
	enum spec_field section, timeout, image;
} stages[] = {
	{ PHASE_EVALUATE, SPEC_EVALUATE, SPEC_EVALUATE_TIMEOUT, SPEC_EVALUATE_IMAGE },
	{ PHASE_INFER, SPEC_INFER, SPEC_INFER_TIMEOUT, SPEC_INFER_IMAGE },
};

/* Puts STAGE into a section, and the stage's command into the phases of the plan. */
static int put_stage(const struct plan *plan, const struct spec *spec,
		     const struct stage_fields *fields, const struct compile_kind *kind,
		     json_t *section, struct err **err)
{
	AUTO(spec_freep) struct spec *stage = NULL;
	AUTO(problems_release) struct problems problems = { 0 };
	json_t *job;

	if (spec_stage(spec, fields->section, &stage, &problems) < 0)
		return err_set(err, EXIT_SPEC, "%s: %s", flow_phase_names[fields->phase],
			       problems.count > 0 ? problems.list[0].message : "invalid");
	job = job_json(plan, stage, kind, fields->phase, err);
	if (!job)
		return -1;
	js_put(section, "job", job);
	if (check_image(spec, stage, job, fields->image, err) < 0)
		return -1;
	js_put(section, "nodes", json_integer(spec_int(stage, SPEC_RESOURCES_NODES)));
	if (spec_price(stage) > 0)
		js_put(section, "price", json_real(spec_price(stage)));
	js_put(section, "timeout_ms", json_integer(spec_ms(spec, fields->timeout)));
	js_put_str(section, "compile",
		   plan_phase(job, flow_phase_names[PHASE_PRECOMPILE]) ? "aot" : "jit");
	json_array_append(json_object_get(plan->json, "phases"),
			  plan_phase(job, flow_phase_names[fields->phase]));
	return 0;
}

static json_t *evaluate_json(const struct spec *spec)
{
	static const char *const as_is[] = { "repeat", "baseline", NULL };
	const json_t *section = spec_get(spec, SPEC_EVALUATE);
	json_t *evaluate = json_object();

	put_place(spec, evaluate, "data", js_str(section, "data"), "none");
	put_members(evaluate, section, as_is);
	return evaluate;
}

static json_t *infer_json(const struct spec *spec)
{
	const json_t *section = spec_get(spec, SPEC_INFER);
	const char *input = js_str(section, "input");
	json_t *infer = json_object();

	put_place(spec, infer, "input",
		  strcmp(input, "data.url") == 0 ? spec_str(spec, SPEC_DATA_URL) : input, NULL);
	put_place(spec, infer, "output", js_str(section, "output"), NULL);
	if (json_is_integer(json_object_get(section, "shards")))
		js_put(infer, "shards", json_incref(json_object_get(section, "shards")));
	js_put(infer, "together", json_incref(json_object_get(section, "together")));
	return infer;
}

int plan_put_retraining(struct plan *plan, const struct spec *spec, const struct compile_kind *kind,
			struct err **err)
{
	if (!spec_retrains(spec))
		return 0;
	if (spec_get(spec, SPEC_DATA))
		js_put(plan->json, "data", data_json(spec));
	js_put(plan->json, "parent", parent_json(spec));
	if (spec_get(spec, SPEC_EVALUATE))
		js_put(plan->json, "evaluate", evaluate_json(spec));
	js_put(plan->json, "gate", spec_gate(spec));
	if (spec_get(spec, SPEC_INFER))
		js_put(plan->json, "infer", infer_json(spec));
	js_put(plan->json, "promote", promote_json(spec, js_str(plan->json, "workspace")));
	for (size_t i = 0; i < STK_LENGTH(stages); i++) {
		json_t *section = json_object_get(plan->json, flow_phase_names[stages[i].phase]);

		if (section && put_stage(plan, spec, &stages[i], kind, section, err) < 0)
			return -1;
	}
	return 0;
}

json_t *plan_of_phase(const json_t *plan, enum phase phase)
{
	const json_t *section = json_object_get(plan, flow_phase_names[phase]);
	const json_t *job = json_object_get(section, "job"), *image;
	json_t *ret, *spec, *value;
	const char *name;

	if (!job)
		return json_incref((json_t *)(uintptr_t)plan);
	ret = json_copy((json_t *)(uintptr_t)plan);
	for (size_t i = 0; of_job[i]; i++)
		json_object_del(ret, of_job[i]);
	json_object_foreach ((json_t *)(uintptr_t)job, name, value)
		if (strcmp(name, "spec") != 0)
			js_put(ret, name, json_deep_copy(value));
	spec = json_copy(json_object_get(plan, "spec"));
	for (size_t i = 0; of_spec[i]; i++)
		json_object_del(spec, of_spec[i]);
	json_object_update(spec, json_object_get(job, "spec"));
	js_put(ret, "spec", spec);
	js_put_str(ret, "stage", flow_phase_names[phase]);
	/* The digest of the training's image is known by now. */
	js_put(js_path(ret, "compile.ingredients"), "source",
	       json_incref(js_path(plan, "compile.ingredients.source")));
	image = json_object_get(plan, "image");
	if (image &&
	    json_equal(json_object_get(image, "reference"), js_path(ret, "image.reference")))
		js_put(ret, "image", json_incref((json_t *)(uintptr_t)image));
	image_plan_compute_key(ret);
	return ret;
}
