/*
 * Warnings about how the phases fit the job: a phase 1 that is a whole
 * training, training that could not resume, machines that do not fit together.
 */
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/lint/lint.h"

#define PRECOMPILE_STEPS 100  /* from this length on, phase 1 is not a short run */
#define LONG_RUN_STEPS   1000 /* from this length on, a lost run is costly */
#define LONG_RUN_MS      (INT64_C(12) * 3600000)

static size_t size_of(const struct node *map)
{
	return map && map->kind == NODE_MAP ? map->count : 0;
}

/* Reports a phase 1 as long as a training, or of unknown length. */
static void lint_length(struct binder *binder, const struct length *length)
{
	const struct spec *spec = binder->spec;
	const struct node *over =
		access_node_of_field(spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS);
	struct mark at = access_mark_of_field(spec, SPEC_COMPILE_MAX_STEPS);

	if (length->by == LENGTH_OVERRIDE)
		at = node_entry(over, length->name)->value->at;
	if (length->steps >= PRECOMPILE_STEPS)
		problem_hint(problem_lint(&binder->reporter, at, "compile.max_steps",
					  "phase 1 would take %lld steps",
					  (long long)length->steps),
			     "5 to 10 steps trace every graph: compile: {max_steps: 10}");
	else if (length->by == LENGTH_UNKNOWN && size_of(over) == 0 &&
		 size_of(access_node_of_field(spec, SPEC_COMPILE_OVERRIDES_ENV)) == 0)
		problem_hint(problem_lint(&binder->reporter,
					  access_mark_of_field(spec, SPEC_COMPILE),
					  "compile.overrides",
					  "nothing makes phase 1 shorter than the training"),
			     "set compile.max_steps, or the script's own name for it in "
			     "compile.overrides");
}

static void lint_precompile(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	struct length length = phase_one_length_of(spec);

	if (spec_says(spec, SPEC_COMPILE_KIND, "none") ||
	    !spec_says(spec, SPEC_COMPILE_MODE, "aot"))
		return;
	lint_length(binder, &length);
	if (length.by == LENGTH_GIVEN && !length.training)
		problem_hint(spec_lint(binder, SPEC_COMPILE_MAX_STEPS, NULL,
				       "'hyperparameters' has no '%.80s' to replace", length.name),
			     "check that the script knows --%.80s, or use compile.overrides",
			     length.name);
	if (spec_has_front(spec))
		problem_hint(spec_lint(binder, SPEC_COMMAND, NULL,
				       "the training only traces with neuron_parallel_compile "
				       "before it: all outputs are zeros"),
			     "remove it; stoker adds it for phase 1");
}

/* Reports a number of steps, which changes from training to training, that the user's own list
 * leaves in the graph key. */
static void lint_ignore(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	struct length length = phase_one_length_of(spec);
	AUTO(auto_free) char *name = NULL;
	json_auto_t *key = NULL;

	if (!length.training || length.by == LENGTH_UNKNOWN || length.by == LENGTH_OWN ||
	    !spec_is_set(spec, SPEC_COMPILE_IGNORE) || spec_says(spec, SPEC_COMPILE_KIND, "none") ||
	    !spec_says(spec, SPEC_COMPILE_MODE, "aot"))
		return;
	key = spec_key_ingredients(spec);
	name = mem_format("hyperparameters.%s", length.training->key);
	if (json_object_get(key, name))
		problem_hint(
			spec_lint(
				binder, SPEC_COMPILE_IGNORE, NULL,
				"every change of '%.80s' needs another phase 1, of the same length",
				length.training->key),
			"add %.100s to compile.ignore", name);
}

/* Without a phase 1 no graph can be late. */
static void lint_jit(struct binder *binder)
{
	static const enum spec_field budget[] = { SPEC_COMPILE_JIT_BUDGET_GRAPHS,
						  SPEC_COMPILE_JIT_BUDGET_ON_EXCEED };
	const struct spec *spec = binder->spec;

	if (!spec_says(spec, SPEC_COMPILE_MODE, "jit"))
		return;
	for (size_t i = 0; i < STK_LENGTH(budget); i++)
		if (spec_is_set(spec, budget[i]))
			problem_hint(spec_lint(binder, budget[i], NULL,
					       "unused with compile.mode jit, which compiles "
					       "every graph in training"),
				     "remove compile.jit_budget, or use compile.mode: aot");
}

/* Returns the hyperparameter with nearly this name: a typing mistake. */
static const char *nearly(const struct node *map, const char *name)
{
	for (size_t i = 0; i < size_of(map) && i < 1000; i++)
		if (strlen(name) > 3 && text_distance(name, map->entries[i].key, 1) == 1)
			return map->entries[i].key;
	return NULL;
}

static void lint_overrides(struct binder *binder)
{
	const struct node *all = access_node_of_field(binder->spec, SPEC_HYPERPARAMETERS);
	const struct node *over =
		access_node_of_field(binder->spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS);

	for (size_t i = 0; i < size_of(over) && i < 1000; i++) {
		const struct entry *entry = &over->entries[i];
		AUTO(auto_free) char *field = NULL;
		const char *meant;

		if (size_of(all) == 0 || node_entry(all, entry->key))
			continue;
		meant = nearly(all, entry->key);
		if (!meant)
			continue;
		field = mem_format("compile.overrides.hyperparameters.%s", entry->key);
		problem_hint(problem_lint(&binder->reporter, entry->at, field,
					  "'hyperparameters' has no '%.80s' to override",
					  entry->key),
			     "did you mean '%.80s'?", meant);
	}
}

static void lint_checkpoint(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const struct entry *training = phase_one_length_of(spec).training;
	struct mark at = training ? training->value->at : access_mark_of_field(spec, SPEC_ENGINE);
	bool is_long = spec_steps(spec, false) >= LONG_RUN_STEPS ||
		       spec_ms(spec, SPEC_LIMITS_DEADLINE) >= LONG_RUN_MS;

	/* With the local engine the run's own directory outlives its attempts. */
	if (spec_says(spec, SPEC_ENGINE, "local") || spec_is_set(spec, SPEC_CHECKPOINT_URL) ||
	    !is_long)
		return;
	problem_hint(problem_lint(&binder->reporter, at, "checkpoint.url",
				  "a long run without 'checkpoint.url' starts from scratch after "
				  "each failure"),
		     "add checkpoint: {url: s3://bucket/prefix}");
}

static void lint_topology(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const struct accelerator *kind = accelerator_of(spec->instance);
	const char *queue = spec_str(spec, SPEC_BATCH_JOB_QUEUE);

	if (spec_int(spec, SPEC_RESOURCES_NODES) < 2)
		return;
	if (spec_says(spec, SPEC_ENGINE, "batch") && queue && strcasestr(queue, "spot"))
		problem_hint(spec_lint(binder, SPEC_BATCH_JOB_QUEUE, NULL,
				       "AWS Batch runs no multi-node job on Spot, which queue "
				       "'%s' seems to be",
				       queue),
			     "use an On-Demand queue, or one node");
	if (kind && kind->needs_efa && js_int(spec->instance, "efa", -1) == 0)
		problem_hint(spec_lint(binder, SPEC_RESOURCES_INSTANCE, NULL,
				       "'%s' has no collectives between nodes",
				       js_str(spec->instance, "type")),
			     "use trn1.32xlarge or larger, or one node");
}

void lint_phases(struct binder *binder)
{
	lint_precompile(binder);
	lint_ignore(binder);
	lint_jit(binder);
	lint_overrides(binder);
	lint_checkpoint(binder);
	lint_topology(binder);
}
