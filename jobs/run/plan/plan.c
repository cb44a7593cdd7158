/* From a spec to a plan: see plan.h. */
#include "jobs/run/plan/plan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/variable.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/flow/rules.h"
#include "jobs/run/plan/health.h"
#include "jobs/run/plan/own_places.h"
#include "jobs/run/plan/plan_internal.h"
#include "jobs/run/plan/plan_modes.h"

#define QUIET_S3_MS 30000
/* Placeholder for the folder on the node that stands for a remote cache; the agent fills it in. */
#define CACHE_ON_NODE "${STOKER_CACHE_DIR}"

void plan_freep(struct plan **plan)
{
	struct plan *p = *plan;

	if (!p)
		return;
	json_decref(p->json);
	source_pin_freep(&p->pin);
	free(p->root);
	free(p->rev);
	free(p->memory);
	auto_strv(&p->layers);
	free(p);
	*plan = NULL;
}

static json_t *array_of(char *const *strings)
{
	json_t *array = json_array();

	for (; *strings; strings++)
		json_array_append_new(array, js_text(*strings, strlen(*strings)));
	return array;
}

static bool is_s3(const char *place)
{
	return strncmp(place, "s3:", 3) == 0;
}

char *plan_place(const struct spec *spec, const char *place)
{
	size_t len;

	if (!is_s3(place))
		return plan_beside_spec(spec, place);
	place += strspn(place + 3, "/") + 3;
	len = strlen(place);
	while (len > 0 && place[len - 1] == '/')
		len--;
	return mem_format("s3://%.*s", (int)len, place);
}

struct env_edit {
	json_t *env;
	const char *cache; /* known to the agent only, which fills in the value */
};

static void set_variable(void *arg, const char *name, const char *value)
{
	const struct env_edit *edit = arg;
	AUTO(auto_free) char *deferred = spec_deferred(value);

	js_put_str(edit->env, name, value == edit->cache ? CACHE_ON_NODE : deferred);
}

/* The variables of the command beyond the agent's own: the spec's env, STOKER_HP_*, and what the
 * compiler kind needs to fill and show its cache. */
static json_t *phase_env(const struct spec *spec, const struct compile_kind *kind,
			 const char *cache, bool overrides)
{
	json_auto_t *hyperparameters = spec_hyperparameter_texts(spec, overrides);
	bool elsewhere = cache && is_s3(cache) && !kind->opens_urls;
	struct env_edit edit = { spec_env(spec, overrides), elsewhere ? cache : NULL };
	const char *name;
	json_t *value;

	json_object_foreach (hyperparameters, name, value) {
		AUTO(auto_free) char *variable = mem_format("STOKER_HP_%s", name);

		for (char *c = variable; *c; c++)
			*c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
		json_object_set(edit.env, variable, value);
	}
	compile_kind_environment(kind, cache, set_variable, &edit);
	if (kind->front_variable)
		json_object_del(edit.env, kind->front_variable);
	if (kind->front_variable && overrides)
		js_put_str(edit.env, kind->front_variable, "1");
	return edit.env;
}

static json_t *phase_json(const struct spec *spec, const struct compile_kind *kind,
			  const char *cache, enum phase phase)
{
	bool overrides = flow_phases[phase].is_trial;
	AUTO(auto_strv) char **arguments = spec_arguments(spec, overrides);
	json_t *processes = spec_processes(spec, overrides);
	json_t *env = phase_env(spec, kind, cache, overrides);
	json_t *object = json_object();

	js_put_str(object, "phase", flow_phase_names[phase]);
	if (overrides && !spec_has_front(spec))
		js_put_str(object, "front", kind->front_end);
	js_put(object, "command", array_of(arguments));
	if (js_str(processes, "variable")) {
		AUTO(auto_free)
		char *count = mem_format("%lld", (long long)js_int(processes, "per_node", 1));

		js_put_str(env, js_str(processes, "variable"), count);
	}
	if (!processes || js_int(processes, "per_node", 0) > 0) {
		AUTO(auto_free)
		char *count = mem_format("%lld", (long long)js_int(processes, "per_node", 1));

		js_put_str(env, variable_rows[VAR_WORKERS].name, count);
	}
	js_put(object, "env", env);
	js_put(object, "processes", processes);
	return object;
}

/* Adds a digest of each file that compile.depends_on names. */
static int depends_on(const struct plan *plan, const struct spec *spec, json_t *ingredients,
		      struct err **err)
{
	const json_t *paths = spec_get(spec, SPEC_COMPILE_DEPENDS_ON);
	json_t *digests = json_object();
	size_t i;
	json_t *path;

	json_array_foreach (plan_is_bare(plan) ? NULL : paths, i, path) {
		AUTO(auto_free) char *absolute = plan_beside_spec(spec, json_string_value(path));
		AUTO(auto_free) char *field = mem_format("compile.depends_on[%zu]", i);
		char hex[SHA256_HEX];

		if (source_file_digest(absolute, hex, err) < 0) {
			json_decref(digests);
			err_field(err, field);
			plan_add_origin(spec, field, err);
			return err_hint(err, "name an existing file, or remove the entry");
		}
		/* The path as written: the home folder of the user changes no graph. */
		js_put_str(digests, spec_text(spec, field), hex);
	}
	if (json_object_size(digests))
		js_put(ingredients, "depends_on", digests);
	else
		json_decref(digests);
	return 0;
}

/* Returns the caches that an empty one is filled from; NULL: none. */
static json_t *preload_json(const struct spec *spec)
{
	const json_t *urls = spec_get(spec, SPEC_CACHE_PRELOAD), *url;
	json_t *places = json_array_size(urls) > 0 ? json_array() : NULL;
	size_t i;

	json_array_foreach (urls, i, url) {
		AUTO(auto_free) char *place = plan_place(spec, json_string_value(url));

		json_array_append_new(places, js_text(place, strlen(place)));
	}
	return places;
}

static int compile_json(struct plan *plan, const struct spec *spec, const struct compile_kind *kind,
			const char *cache, struct err **err)
{
	const json_t *command = spec_get(spec, SPEC_COMMAND);
	json_auto_t *env = spec_env(spec, false);
	const char *path = js_str(env, "PATH"), *home = js_str(env, "HOME");
	struct program_place place = {
		.program = json_string_value(json_array_get(command, 0)),
		.cwd = plan->root,
		.path = path ? path : getenv("PATH"),
		.home = home ? home : getenv("HOME"),
		.python_path = js_str(env, "PYTHONPATH"),
	};
	json_auto_t *ingredients = spec_key_ingredients(spec);
	json_t *compiler = NULL, *compile;
	int64_t quiet_ms = spec_ms(spec, SPEC_COMPILE_QUIET_PERIOD);

	js_put_str(ingredients, KEY_RULES, KEY_RULES_NOW);
	js_put(ingredients, "source", key_source(plan));
	if (depends_on(plan, spec, ingredients, err) < 0)
		return -1;
	/* If jobs run in an image, this machine compiles nothing, and its compiler does not
	 * matter. */
	if (!image_plan_name(plan->json) && kind->fingerprint(&place, &compiler, err) < 0)
		return -1;
	js_put(ingredients, "compiler", json_incref(compiler));
	graph_key_ingredients_hide_secrets(ingredients);
	compile = json_object();
	js_put_str(compile, "kind", kind->name);
	js_put_str(compile, "cache", cache);
	js_put(compile, "ingredients", json_incref(ingredients));
	js_put(compile, "compiler", compiler);
	js_put(compile, "preload", preload_json(spec));
	/* Writers to a directory have ended with their job, so no quiet period is needed. */
	if (quiet_ms == SPEC_WORD)
		quiet_ms = is_s3(cache) ? QUIET_S3_MS : 0;
	js_put(compile, "quiet_ms", json_integer(quiet_ms));
	js_put(compile, "timeout_ms", json_integer(spec_ms(spec, SPEC_COMPILE_TIMEOUT)));
	js_put_str(compile, "on_incomplete", spec_str(spec, SPEC_COMPILE_ON_INCOMPLETE));
	js_put_str(compile, "mode", spec_str(spec, SPEC_COMPILE_MODE));
	js_put(compile, "jit_graphs", json_integer(spec_int(spec, SPEC_COMPILE_JIT_BUDGET_GRAPHS)));
	js_put_str(compile, "on_exceed", spec_str(spec, SPEC_COMPILE_JIT_BUDGET_ON_EXCEED));
	js_put(plan->json, "compile", compile);
	image_plan_compute_key(plan->json);
	return 0;
}

static json_t *retry_json(const struct spec *spec)
{
	json_t *retry = json_object();

	js_put(retry, "attempts", json_integer(spec_int(spec, SPEC_RETRY_ATTEMPTS)));
	js_put(retry, "without_progress",
	       json_integer(spec_int(spec, SPEC_RETRY_WITHOUT_PROGRESS)));
	js_put(retry, "backoff_first_ms", json_integer(spec_ms(spec, SPEC_RETRY_BACKOFF_FIRST)));
	js_put(retry, "backoff_max_ms", json_integer(spec_ms(spec, SPEC_RETRY_BACKOFF_MAX)));
	return retry;
}

/* A duration of the spec; its words ("none", "auto") mean 0: no limit. */
static json_t *limit_ms(const struct spec *spec, enum spec_field field)
{
	int64_t ms = spec_ms(spec, field);

	return json_integer(ms == SPEC_WORD ? 0 : ms);
}

static json_t *limits_json(const struct spec *spec)
{
	json_t *limits = json_object();

	js_put(limits, "deadline_ms", limit_ms(spec, SPEC_LIMITS_DEADLINE));
	js_put(limits, "attempts", json_integer(spec_int(spec, SPEC_LIMITS_ATTEMPTS)));
	js_put(limits, "queue_ms", limit_ms(spec, SPEC_LIMITS_QUEUE));
	js_put(limits, "start_ms", limit_ms(spec, SPEC_LIMITS_START));
	js_put(limits, "unreachable_ms", limit_ms(spec, SPEC_LIMITS_UNREACHABLE));
	if (json_is_number(spec_get(spec, SPEC_LIMITS_COST)))
		js_put(limits, "cost", json_real(spec_real(spec, SPEC_LIMITS_COST)));
	if (spec_price(spec) > 0)
		js_put(limits, "price", json_real(spec_price(spec)));
	return limits;
}

static json_t *stall_json(const struct spec *spec)
{
	json_t *stall = json_object();

	if (spec_ms(spec, SPEC_LIMITS_STALL) != SPEC_WORD) {
		js_put_str(stall, "mode", "fixed");
		js_put(stall, "limit_ms", limit_ms(spec, SPEC_LIMITS_STALL));
	} else {
		js_put_str(stall, "mode",
			   spec_says(spec, SPEC_LIMITS_STALL, "none") ? "off" : "auto");
	}
	return stall;
}

static json_t *checkpoint_json(const struct spec *spec)
{
	const char *url = spec_str(spec, SPEC_CHECKPOINT_URL);
	int64_t keep = spec_int(spec, SPEC_CHECKPOINT_KEEP);
	json_t *checkpoint = json_object();

	if (url) {
		AUTO(auto_free) char *place = plan_place(spec, url);

		js_put_str(checkpoint, "url", place);
	}
	js_put_str(checkpoint, "kind", spec_str(spec, SPEC_CHECKPOINT_KIND));
	js_put_str(checkpoint, "sync", spec_str(spec, SPEC_CHECKPOINT_SYNC));
	js_put(checkpoint, "keep", keep > 0 ? json_integer(keep) : json_string("all"));
	js_put_str(checkpoint, "signal", spec_str(spec, SPEC_CHECKPOINT_SIGNAL));
	js_put(checkpoint, "grace_ms", limit_ms(spec, SPEC_CHECKPOINT_GRACE));
	js_put_str(checkpoint, "on_mismatch", spec_str(spec, SPEC_CHECKPOINT_ON_MISMATCH));
	return checkpoint;
}

/* Steps that each phase is asked for, if a known name says so. */
static json_t *steps_json(const struct spec *spec)
{
	json_t *steps = json_object();

	for (int overrides = 0; overrides < 2; overrides++) {
		int64_t value = spec_steps(spec, overrides);

		if (value > 0)
			js_put(steps, flow_phase_names[overrides ? PHASE_PRECOMPILE : PHASE_TRAIN],
			       json_integer(value));
	}
	return steps;
}

static void put_phases(struct plan *plan, const struct spec *spec, const struct compile_kind *kind,
		       const char *cache, enum phase last)
{
	bool aot = kind->caches && strcmp(spec_str(spec, SPEC_COMPILE_MODE), "jit") != 0;
	json_t *phases = json_array();

	if (aot) {
		js_put(plan->json, "length", spec_length(spec));
		js_put(plan->json, "width", spec_width(spec));
		json_array_append_new(phases, phase_json(spec, kind, cache, PHASE_PRECOMPILE));
		json_array_append_new(phases,
				      json_pack("{s:s}", "phase", flow_phase_names[PHASE_VERIFY]));
	}
	json_array_append_new(phases, phase_json(spec, kind, cache, last));
	js_put(plan->json, "phases", phases);
}

int plan_put_jobs(struct plan *plan, const struct spec *spec, const struct compile_kind *kind,
		  enum phase last, struct err **err)
{
	AUTO(auto_free) char *cache = NULL;

	if (kind->caches)
		cache = plan_place(spec, spec_str(spec, SPEC_COMPILE_CACHE_URL));
	if (kind->caches && compile_json(plan, spec, kind, cache, err) < 0)
		return -1;
	if (!kind->caches)
		image_plan_name(plan->json);
	put_phases(plan, spec, kind, cache, last);
	return 0;
}

static json_t *or_empty(const json_t *value, json_t *empty)
{
	if (!value)
		return empty;
	json_decref(empty);
	return json_deep_copy(value);
}

char *plan_workspace(const struct spec *spec, const struct journal *journal)
{
	const char *workspace = spec_str(spec, SPEC_WORKSPACE);

	return workspace ? plan_place(spec, workspace) : fs_join(journal_url(journal), "workspace");
}

/* Returns the folder or URL that this field gives stoker to write to; NULL if it is not set. */
static char *own_place(const struct spec *spec, enum spec_field field)
{
	const char *place = spec_str(spec, field);

	return place ? plan_place(spec, place) : NULL;
}

/* Collects the local folders that stoker writes, in which no source is looked for: NULL-terminated,
 * borrowed. */
static void own_folders(const char *const places[], size_t count, char *ret[])
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (places[i] && places[i][0] == '/')
			ret[n++] = (char *)places[i];
	ret[n] = NULL;
}

/* Returns the absolute paths of the files that the spec extends. */
static char **layers_of(const struct spec *spec)
{
	json_auto_t *files = spec_extended(spec);
	char **layers = plan_strings(files);

	for (char **layer = layers; *layer; layer++) {
		AUTO(auto_free) char *written = *layer;

		*layer = fs_absolute(written);
	}
	return layers;
}

static int make(const struct spec *spec, const struct journal *journal, bool bare,
		struct plan **ret, struct err **err)
{
	AUTO(plan_freep) struct plan *plan = mem_zero(1, sizeof *plan);
	const struct compile_kind *named = compile_kind_find(spec_str(spec, SPEC_COMPILE_KIND));
	/* Debug variables change graphs: debug.def says why no cache is used. */
	const struct compile_kind *kind =
		spec_bool(spec, SPEC_DEBUG) ? compile_kind_find("none") : named;
	AUTO(auto_free) char *workspace = plan_workspace(spec, journal);
	AUTO(auto_free) char *file = fs_absolute(spec_file(spec));
	AUTO(auto_free) char *own_state = fs_absolute(journal_dir(journal));
	AUTO(auto_free) char *cache = NULL;
	AUTO(auto_free) char *checkpoints = own_place(spec, SPEC_CHECKPOINT_URL);
	AUTO(auto_free) char *results = own_place(spec, SPEC_INFER_OUTPUT);
	AUTO(auto_free) char *models = own_place(spec, SPEC_PROMOTE_URL);
	json_t *json = json_object();
	char *own[7];

	plan->json = json;
	if (!kind)
		return err_set(err, EXIT_DEFECT, "compiler kind '%s' is not part of this version",
			       spec_str(spec, SPEC_COMPILE_KIND));
	if (kind->caches)
		cache = plan_place(spec, spec_str(spec, SPEC_COMPILE_CACHE_URL));
	js_put(json, "v", json_integer(1));
	js_put_str(json, "name", spec_str(spec, SPEC_NAME));
	js_put_str(json, "engine", spec_str(spec, SPEC_ENGINE));
	js_put_str(json, "spec_file", file);
	js_put(json, "nodes", json_integer(spec_int(spec, SPEC_RESOURCES_NODES)));
	js_put(json, "grace_ms", json_integer(spec_ms(spec, SPEC_LIMITS_GRACE)));
	js_put(json, "spec", json_deep_copy(spec_root(spec)));
	/* The cells of a sweep are runs of their own. */
	json_object_del(json_object_get(json, "spec"), "sweep");
	js_put(json, "origins", spec_origins(spec));
	js_put(json, "derived", json_deep_copy(spec_derived(spec)));
	if (spec_instance(spec))
		js_put(json, "instance", json_deep_copy(spec_instance(spec)));
	if (spec_here(spec))
		js_put(json, "here", json_deep_copy(spec_here(spec)));
	js_put_str(json, "workspace", workspace);
	plan->layers = layers_of(spec);
	own_folders(
		(const char *const[]){ own_state, workspace, cache, checkpoints, results, models },
		6, own);
	if (plan_pin_source(plan, spec, bare, own_state, own, err) < 0 ||
	    env_file_keep_out(plan, spec, err) < 0)
		return -1;
	js_put(json, "source", plan_source(plan, spec));
	if (plan_put_jobs(plan, spec, kind, PHASE_TRAIN, err) < 0)
		return -1;
	plan_modes_put(json, spec, named);
	js_put(json, "secrets", spec_secrets(spec));
	js_put(json, "failures", or_empty(spec_failures(spec), json_array()));
	js_put(json, "metrics", spec_metrics(spec));
	if (spec_int(spec, SPEC_SAMPLES_PER_STEP) > 0)
		js_put(json, "samples_per_step",
		       json_integer(spec_int(spec, SPEC_SAMPLES_PER_STEP)));
	if (spec_get(spec, SPEC_NOTIFY))
		js_put(json, "notify", json_deep_copy(spec_get(spec, SPEC_NOTIFY)));
	js_put(json, "steps", steps_json(spec));
	js_put(json, "retry", retry_json(spec));
	js_put(json, "limits", limits_json(spec));
	js_put(json, "stall", stall_json(spec));
	js_put(json, "checkpoint", checkpoint_json(spec));
	js_put(json, "health", health_plan(spec));
	if (plan_put_retraining(plan, spec, kind, err) < 0)
		return -1;
	plan_digest(json, plan->digest);
	*ret = TAKE(plan);
	return 0;
}

int plan_make(const struct spec *spec, const struct journal *journal, struct plan **ret,
	      struct err **err)
{
	return make(spec, journal, false, ret, err);
}

int plan_make_bare(const struct spec *spec, const struct journal *journal, struct plan **ret,
		   struct err **err)
{
	return make(spec, journal, true, ret, err);
}

struct plan *plan_of_json(json_t *json)
{
	struct plan *plan = mem_zero(1, sizeof *plan);

	plan->json = json;
	plan_digest(json, plan->digest);
	return plan;
}

void plan_digest(const json_t *plan, char ret_hex[SHA256_HEX])
{
	json_auto_t *identity = json_copy((json_t *)(uintptr_t)plan);
	json_t *limits = json_copy(json_object_get(plan, "limits"));

	json_object_del(limits, "price");
	js_put(identity, "limits", limits);
	json_object_del(identity, "instance");
	json_object_del(identity, "origins");
	json_object_del(identity, "here");
	/* The spec has its own rows; rows of a user's configuration do not change the plan's
	 * identity. */
	json_object_del(identity, "failures");
	json_object_del(identity, "aws");
	image_plan_left_out(identity);
	js_digest(identity, ret_hex);
}
