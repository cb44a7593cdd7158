/* Limits of `sagemaker.launcher: toolkit`: no agent of stoker's is in its jobs, and a shell
 * stands between a hyperparameter and the script (sagemaker-training 4.8.1: mapping.py,
 * torch_distributed.py, process.py). */
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/spec/resolved.h"

/* Characters that a shell leaves as they are, as in Python's shlex.quote(). */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

bool spec_has_toolkit(const struct spec *spec)
{
	return spec_says(spec, SPEC_ENGINE, "sagemaker") &&
	       spec_says(spec, SPEC_SAGEMAKER_LAUNCHER, "toolkit");
}

static void check_health(struct binder *binder)
{
	const struct spec *spec = binder->spec;

	if (!spec_is_set(spec, SPEC_HEALTH) || json_is_false(spec_get(spec, SPEC_HEALTH_DEVICE)))
		return;
	problem_hint(
		spec_error(binder, SPEC_HEALTH, NULL,
			   "'health' needs stoker's agent, which launcher 'toolkit' leaves out"),
		"use 'sagemaker.launcher: node', or remove 'health'");
}

/* jobs/engine/sagemaker/sagemaker_toolkit.h reads it in the same way. */
static bool is_program(const struct spec *spec)
{
	const json_t *command = spec_get(spec, SPEC_COMMAND);
	const char *launcher = json_string_value(json_array_get(command, 0));
	const char *program = json_string_value(json_array_get(command, 1));
	size_t len = program ? strlen(program) : 0;

	if (json_array_size(command) != 2 || !launcher || len < 4)
		return false;
	if (!text_starts(launcher, "python") && strcmp(launcher, "torchrun") != 0)
		return false;
	return program[0] != '/' && program[0] != '-' && strspn(program, PLAIN) == len &&
	       strcmp(program + len - 3, ".py") == 0;
}

static void check_command(struct binder *binder)
{
	if (!spec_is_set(binder->spec, SPEC_COMMAND) || is_program(binder->spec))
		return;
	problem_hint(spec_error(binder, SPEC_COMMAND, NULL,
				"launcher 'toolkit' starts torchrun itself, with one Python "
				"program of the source and its hyperparameters"),
		     "write [torchrun, train.py], options as hyperparameters, or use "
		     "'sagemaker.launcher: node'");
}

static bool is_shell_safe(const char *text)
{
	return text[0] != '\0' && text[strspn(text, PLAIN)] == '\0';
}

static void check_values(struct binder *binder, enum spec_field field, const json_t *values)
{
	json_t *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)values, name, value) {
		AUTO(auto_free) char *member = mem_format(".%s", name);

		/* Numbers, true and false are words to a shell. */
		if (!json_is_array(value) &&
		    (!json_is_string(value) || is_shell_safe(json_string_value(value))))
			continue;
		problem_hint(spec_error(binder, field, member,
					"the toolkit passes '%.80s' through a shell, which would "
					"split this value",
					name),
			     "use letters, digits and _@%%+=:,./- alone, put the value into a file "
			     "of the source, or use 'sagemaker.launcher: node'");
	}
}

static void check_variables(struct binder *binder, enum spec_field field)
{
	json_t *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)spec_get(binder->spec, field), name, value) {
		AUTO(auto_free) char *member = mem_format(".%s", name);
		const struct node *map = access_node_of_field(binder->spec, field);
		struct entry *entry = map ? node_entry(map, name) : NULL;

		/* A deferred text only looks like a reference. */
		if (!strstr(json_string_value(value), "${STOKER_") ||
		    (entry && entry->value->deferred))
			continue;
		problem_hint(spec_error(binder, field, member,
					"'%.80s' refers to a variable that stoker's agent fills "
					"in, which launcher 'toolkit' leaves out",
					name),
			     "write the value out, or use 'sagemaker.launcher: node'");
	}
}

static void check_places(struct binder *binder)
{
	const struct spec *spec = binder->spec;

	if (spec_says(spec, SPEC_HYPERPARAMETER_STYLE_BOOLEANS, "flag"))
		problem_hint(
			spec_error(binder, SPEC_HYPERPARAMETER_STYLE_BOOLEANS, NULL,
				   "the toolkit itself writes hyperparameters as '--name value'"),
			"let the script take a value, or use 'sagemaker.launcher: node'");
	if (spec_says(spec, SPEC_COMPILE_KIND, "jax"))
		problem_hint(spec_error(binder, SPEC_COMPILE_KIND, NULL,
					"the cache of kind 'jax' needs stoker's agent, which "
					"launcher 'toolkit' leaves out"),
			     "use 'sagemaker.launcher: node'");
	if (spec_is_set(spec, SPEC_CHECKPOINT_URL) &&
	    spec_says(spec, SPEC_CHECKPOINT_SYNC, "agent"))
		problem_hint(spec_error(binder, SPEC_CHECKPOINT_URL, NULL,
					"checkpoint uploads need stoker's agent, which launcher "
					"'toolkit' leaves out"),
			     "set 'checkpoint.sync: engine', with which SageMaker copies "
			     "/opt/ml/checkpoints, or 'sync: script'");
}

/* SageMaker's own copying restores everything to every machine, and breaks on large checkpoints;
 * with an agent, stoker's own is better. */
static void check_engine_sync(struct binder *binder)
{
	if (spec_says(binder->spec, SPEC_CHECKPOINT_SYNC, "engine"))
		problem_hint(spec_error(binder, SPEC_CHECKPOINT_SYNC, NULL,
					"'checkpoint.sync: engine' is for 'sagemaker.launcher: "
					"toolkit' alone"),
			     "use 'sync: agent', or 'script' if the script uploads them");
}

/* Checks a distribution that is not torchrun's: what the toolkit, and the SDK before it, would
 * refuse or pass over (fw_utils.py: validate_distribution_for_instance_type). */
static void check_other(struct binder *binder, const char *name)
{
	const struct spec *spec = binder->spec;
	bool none = strcmp(name, "none") == 0;
	const json_t *command = spec_get(spec, SPEC_COMMAND);

	if (spec_says(spec, SPEC_COMPILE_KIND, "neuron") &&
	    spec_says(spec, SPEC_COMPILE_MODE, "aot"))
		problem_hint(spec_error(binder, SPEC_SAGEMAKER_DISTRIBUTION, NULL,
					"phase 1 of kind 'neuron' needs 'torch_distributed': the "
					"toolkit starts neuron_parallel_compile in front of "
					"torchrun alone"),
			     "remove 'sagemaker.distribution', or use 'compile.mode: jit'");
	else if (!none && accelerator_compiles(accelerator_of(spec->instance), "neuron"))
		problem_hint(spec_error(binder, SPEC_SAGEMAKER_DISTRIBUTION, NULL,
					"'%s' is not for '%.80s': SageMaker's SDK takes "
					"'torch_distributed' alone for Trainium",
					name, js_str(spec->instance, "type")),
			     "remove 'sagemaker.distribution'");
	if (none && strcmp(json_string_value(json_array_get(command, 0)), "torchrun") == 0)
		problem_hint(spec_error(binder, SPEC_COMMAND, "[0]",
					"with 'sagemaker.distribution: none' the toolkit starts no "
					"torchrun"),
			     "write [python3, train.py], or remove 'sagemaker.distribution'");
	else if (none && spec_int(spec, SPEC_RESOURCES_NODES) > 1)
		problem_hint(spec_lint(binder, SPEC_SAGEMAKER_DISTRIBUTION, NULL,
				       "with 'none' each of %lld nodes runs the program by itself",
				       (long long)spec_int(spec, SPEC_RESOURCES_NODES)),
			     "see that the script joins them by SM_HOSTS, or use "
			     "'torch_distributed'");
}

static void check_distribution(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *name = spec_str(spec, SPEC_SAGEMAKER_DISTRIBUTION);

	if (!name || !spec_is_set(spec, SPEC_SAGEMAKER_DISTRIBUTION))
		return;
	if (strcmp(name, "torch_distributed") == 0)
		return;
	if (!spec_has_toolkit(spec))
		problem_hint(spec_lint(binder, SPEC_SAGEMAKER_DISTRIBUTION, NULL,
				       "'sagemaker.distribution' is for 'sagemaker.launcher: "
				       "toolkit' alone"),
			     "remove it: with launcher 'node' the command itself is the launcher");
	else if (is_program(spec))
		check_other(binder, name);
}

void rules_toolkit(struct binder *binder)
{
	const struct spec *spec = binder->spec;

	if (!spec_has_toolkit(spec))
		check_engine_sync(binder);
	if (spec_says(spec, SPEC_SAGEMAKER_LAUNCHER, "toolkit"))
		check_health(binder);
	if (spec_has_toolkit(spec) && spec_int(spec, SPEC_RESOURCES_WORKERS) > 0)
		problem_hint(
			spec_error(binder, SPEC_RESOURCES_WORKERS, NULL,
				   "'resources.workers' does not reach SageMaker's toolkit, which "
				   "counts the cores itself"),
			"remove it, or use 'sagemaker.launcher: node'");
	check_distribution(binder);
	if (!spec_has_toolkit(spec))
		return;
	check_command(binder);
	check_values(binder, SPEC_HYPERPARAMETERS, spec_get(spec, SPEC_HYPERPARAMETERS));
	check_values(binder, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS,
		     spec_get(spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS));
	check_variables(binder, SPEC_ENV);
	check_variables(binder, SPEC_COMPILE_OVERRIDES_ENV);
	check_places(binder);
}
