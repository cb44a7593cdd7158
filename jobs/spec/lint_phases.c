/*
 * Warnings about how the phases fit the job: a phase 1 that is a whole
 * training, training that could not resume, machines that cannot work together.
 */
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/spec/lint.h"
#include "jobs/spec/scalar.h"

#define PRECOMPILE_STEPS 100  /* from here on phase 1 is no short run */
#define LONG_RUN_STEPS   1000 /* from here on a lost run hurts */
#define LONG_RUN_MS      (INT64_C(12) * 3600000)

/* A whole number among hyperparameters; -1 if there is none of that name. */
static int64_t number_in(const struct node *map, const char *name, struct mark *ret_at)
{
	const struct entry *entry = map && map->kind == NODE_MAP ? node_entry(map, name) : NULL;
	int64_t number;

	if (!entry || entry->value->kind != NODE_SCALAR || entry->value->quoted ||
	    scalar_kind(entry->value->text) != SCALAR_INT ||
	    !scalar_int(entry->value->text, &number))
		return -1;
	*ret_at = entry->value->at;
	return number;
}

static size_t size_of(const struct node *map)
{
	return map && map->kind == NODE_MAP ? map->count : 0;
}

static void lint_precompile(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const struct node *all = node_of_field(spec, SPEC_HYPERPARAMETERS);
	const struct node *over = node_of_field(spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS);
	bool has_short = spec_is_set(spec, SPEC_COMPILE_MAX_STEPS);
	struct mark at = mark_of_field(spec, SPEC_COMPILE_MAX_STEPS), of_training;
	int64_t steps = has_short ? spec_int(spec, SPEC_COMPILE_MAX_STEPS)
				  : number_in(over, "max_steps", &at);

	if (spec_says(spec, SPEC_COMPILE_KIND, "none") ||
	    !spec_says(spec, SPEC_COMPILE_MODE, "aot"))
		return;
	if (steps < 0)
		steps = number_in(all, "max_steps", &at);
	if (steps >= PRECOMPILE_STEPS)
		problem_hint(problem_lint(&binder->reporter, at, "compile.max_steps",
					  "phase 1 would take %lld steps", (long long)steps),
			     "5 to 10 steps trace every graph: compile: {max_steps: 10}");
	else if (steps < 0 && size_of(over) == 0 &&
		 size_of(node_of_field(spec, SPEC_COMPILE_OVERRIDES_ENV)) == 0)
		problem_hint(problem_lint(&binder->reporter, mark_of_field(spec, SPEC_COMPILE),
					  "compile.overrides",
					  "nothing makes phase 1 shorter than the training"),
			     "give compile.max_steps, or what your script calls it in "
			     "compile.overrides");
	if (has_short && number_in(all, "max_steps", &of_training) < 0)
		problem_hint(
			problem_lint(&binder->reporter, mark_of_field(spec, SPEC_COMPILE_MAX_STEPS),
				     "compile.max_steps",
				     "'hyperparameters' has no 'max_steps' that this replaces"),
			"phase 1 gets --max_steps: does the script know it? else use "
			"compile.overrides");
}

/* Without a phase 1 there is nothing that a graph could be late for. */
static void lint_jit(struct binder *binder)
{
	static const enum spec_field budget[] = { SPEC_COMPILE_JIT_BUDGET_GRAPHS,
						  SPEC_COMPILE_JIT_BUDGET_ON_EXCEED };
	const struct spec *spec = binder->spec;

	if (!spec_says(spec, SPEC_COMPILE_MODE, "jit"))
		return;
	for (size_t i = 0; i < STK_LENGTH(budget); i++)
		if (spec_is_set(spec, budget[i]))
			problem_hint(problem_lint(&binder->reporter, mark_of_field(spec, budget[i]),
						  spec_field_path(budget[i]),
						  "compile.mode jit compiles every graph in "
						  "training: this is not looked at"),
				     "take compile.jit_budget out, or use compile.mode: aot");
}

/* The hyperparameter that a name is nearly, but not quite: a typing mistake. */
static const char *nearly(const struct node *map, const char *name)
{
	for (size_t i = 0; i < size_of(map) && i < 1000; i++)
		if (strlen(name) > 3 && text_distance(name, map->entries[i].key, 1) == 1)
			return map->entries[i].key;
	return NULL;
}

static void lint_overrides(struct binder *binder)
{
	const struct node *all = node_of_field(binder->spec, SPEC_HYPERPARAMETERS);
	const struct node *over =
		node_of_field(binder->spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS);

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
	const struct node *all = node_of_field(spec, SPEC_HYPERPARAMETERS);
	struct mark at = mark_of_field(spec, SPEC_ENGINE);
	int64_t steps = number_in(all, "max_steps", &at);
	bool is_long =
		steps >= LONG_RUN_STEPS || spec_ms(spec, SPEC_LIMITS_DEADLINE) >= LONG_RUN_MS;

	/* On this machine the run's own directory outlives its attempts. */
	if (spec_says(spec, SPEC_ENGINE, "local") || spec_is_set(spec, SPEC_CHECKPOINT_URL) ||
	    !is_long)
		return;
	problem_hint(problem_lint(&binder->reporter, at, "checkpoint.url",
				  "a long run without 'checkpoint.url' begins anew after each "
				  "failure"),
		     "add checkpoint: {url: s3://bucket/prefix}");
}

static void lint_topology(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *instance = spec_str(spec, SPEC_RESOURCES_INSTANCE);
	const char *queue = spec_str(spec, SPEC_BATCH_JOB_QUEUE);

	if (spec_int(spec, SPEC_RESOURCES_NODES) < 2)
		return;
	if (spec_says(spec, SPEC_ENGINE, "batch") && queue && strcasestr(queue, "spot"))
		problem_hint(problem_lint(&binder->reporter,
					  mark_of_field(spec, SPEC_BATCH_JOB_QUEUE),
					  "batch.job_queue",
					  "AWS Batch runs no multi-node job on Spot, which queue "
					  "'%s' seems to be",
					  queue),
			     "use an On-Demand queue, or one node");
	if (instance && (strstr(instance, "trn1.2xlarge") || strstr(instance, "inf2.")))
		problem_hint(problem_lint(&binder->reporter,
					  mark_of_field(spec, SPEC_RESOURCES_INSTANCE),
					  "resources.instance",
					  "'%s' has no collectives between nodes", instance),
			     "use trn1.32xlarge or larger, or one node");
}

void lint_phases(struct binder *binder)
{
	lint_precompile(binder);
	lint_jit(binder);
	lint_overrides(binder);
	lint_checkpoint(binder);
	lint_topology(binder);
}
