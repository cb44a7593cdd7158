/*
 * How many processes torchrun starts on a node, and what says so: the command, the environment,
 * or, where neither does, the cores or GPUs of the instance. By default it starts one, and all
 * others are paid for and idle.
 *
 * The cores that the runtime shows follow the Neuron SDK: NEURON_LOGICAL_NC_CONFIG
 * (before 2.21: NEURON_RT_VIRTUAL_CORE_SIZE) says how many physical cores make a logical one, 2 by
 * default on trn2; NEURON_RT_VISIBLE_CORES ("0-3,8") overrides NEURON_RT_NUM_CORES, in
 * which 0 is all of them (neuron-runtime/guides/configuration-guide).
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/spec/machines/launch.h"
#include "jobs/spec/resolved.h"

#define CORES_MOST 65536

/* Returns a whole number of at least `least` that is all of the text; else -1. */
static int64_t number(const char *text, int64_t least)
{
	char *end;
	long long value = text ? strtoll(text, &end, 10) : -1;

	return text && *text && *end == '\0' && value >= least && value <= CORES_MOST ? value : -1;
}

/* Returns the variable as the command sees it: a word NAME=VALUE in front of its program
 * overrides the rest. */
static const char *variable(const json_t *env, const json_t *command, const char *name)
{
	const json_t *word;
	const char *found = js_str(env, name);
	size_t i, len = strlen(name);

	json_array_foreach (command, i, word) {
		const char *text = json_string_value(word);

		if (strncmp(text, name, len) == 0 && text[len] == '=')
			found = text + len + 1;
		else if (i > 0 && !strchr(text, '='))
			break;
	}
	return found;
}

int64_t processes_cores_of(const struct spec *spec, const json_t *env)
{
	int64_t cores = accelerator_units(spec->instance);
	int64_t physical = js_int(spec->instance, "physical_cores", 0), each;
	const char *text = js_str(env, "NEURON_LOGICAL_NC_CONFIG");

	each = number(text ? text : js_str(env, "NEURON_RT_VIRTUAL_CORE_SIZE"), 1);
	return physical > 0 && each > 0 && physical % each == 0 ? physical / each : cores;
}

/* Returns how many cores "0-3,8" are; -1 if it cannot be read. */
static int64_t count_range(const char *text)
{
	int64_t count = 0;

	for (;;) {
		char *end;
		long long first = strtoll(text, &end, 10), last = first;

		if (end == text || first < 0)
			return -1;
		if (*end == '-') {
			text = end + 1;
			last = strtoll(text, &end, 10);
			if (end == text || last < first)
				return -1;
		}
		if (last - first >= CORES_MOST)
			return -1;
		count += last - first + 1;
		if (*end == '\0')
			return count <= CORES_MOST ? count : -1;
		if (*end != ',')
			return -1;
		text = end + 1;
	}
}

/* Returns how many of the machine's cores are left to the job; *ret_why says which they are, and
 * the caller frees it. 0: a variable that limits them cannot be read here. */
static int64_t cores_for(const struct spec *spec, const json_t *env, const json_t *command,
			 char **ret_why)
{
	const struct accelerator *kind = accelerator_of(spec->instance);
	int64_t all = processes_cores_of(spec, env), some;
	const char *type = js_str(spec->instance, "type");
	const char *range = variable(env, command, kind->visible);
	const char *few = kind->limit ? variable(env, command, kind->limit) : NULL;
	const char *name = range ? kind->visible : kind->limit;

	some = range ? count_range(range) : few ? number(few, 0) : 0;
	if (some < 0) {
		*ret_why = mem_format("%s=%s cannot be read before the job runs", name,
				      range ? range : few);
		return 0;
	}
	if (some == 0 || (some >= all && !range)) {
		bool logical = all != js_int(spec->instance, "physical_cores", all);

		*ret_why = mem_format("1 for each %s%s of '%s'", logical ? "logical " : "",
				      kind->unit, type);
		return all;
	}
	*ret_why = mem_format("%s=%s, of the %lld %ss of '%s'", name, range ? range : few,
			      (long long)all, kind->unit, type);
	return some < all ? some : all;
}

static void put_reason(json_t *ret, const char *by, char *why)
{
	js_put_str(ret, "by", by);
	js_put_str(ret, "reason", why);
	free(why);
}

/* The number is given: torchrun reads it as it stands. */
static int64_t put_given(json_t *ret, const char *name, const char *how, const char *by)
{
	int64_t count = number(how, 1);

	if (how)
		put_reason(ret, by, mem_format("as %s says: %s", name, how));
	else
		put_reason(ret, by, mem_format("as %s says", name));
	return count > 0 ? count : 0;
}

/* The number is not given. */
static int64_t put_cores(const struct spec *spec, const json_t *env, const json_t *command,
			 json_t *ret)
{
	const char *type = js_str(spec->instance, "type");
	char *why = NULL;
	int64_t cores;

	if (!type || processes_cores_of(spec, env) <= 0) {
		if (type)
			why = mem_format("no catalogue knows cores of '%s'", type);
		else
			why = mem_copy("resources.instance is not given");
		put_reason(ret, "torchrun", why);
		return 1;
	}
	cores = cores_for(spec, env, command, &why);
	if (cores == 0) {
		put_reason(ret, "torchrun", why);
		return 1;
	}
	js_put_str(ret, "variable", LAUNCH_VARIABLE);
	put_reason(ret, "resources.instance", why);
	return cores;
}

/* The toolkit puts torchrun in front of any program, or mpirun, with as many processes as it counts
 * GPUs, or neuron-ls cores (sagemaker-training 4.8.1: environment.py, runner.py,
 * torch_distributed.py). */
static int64_t put_toolkit(const struct spec *spec, const json_t *env, json_t *ret)
{
	const struct accelerator *kind = accelerator_of(spec->instance);

	put_reason(ret, "toolkit",
		   mem_format("SageMaker's toolkit starts one for each %s that it finds",
			      kind ? kind->unit : "core"));
	return processes_cores_of(spec, env);
}

json_t *spec_processes(const struct spec *spec, bool with_overrides)
{
	const json_t *command = spec_get(spec, SPEC_COMMAND);
	struct launch launch = launch_find(spec);
	json_auto_t *env = NULL, *secrets = NULL;
	const char *pet;
	int64_t count;
	json_t *ret;

	if (spec_has_toolkit(spec) ? spec_says(spec, SPEC_SAGEMAKER_DISTRIBUTION, "none")
				   : !launch.torchrun)
		return NULL;
	env = spec_env(spec, with_overrides);
	secrets = spec_secrets(spec);
	pet = js_str(env, LAUNCH_VARIABLE);
	ret = json_object();
	js_put_str(ret, "launcher", "torchrun");
	if (spec_has_toolkit(spec))
		count = put_toolkit(spec, env, ret);
	else if (launch.given)
		count = put_given(ret, launch.by_env ? LAUNCH_VARIABLE : "--nproc_per_node",
				  launch.how, "command");
	else if (pet)
		count = put_given(ret, LAUNCH_VARIABLE, pet, "env");
	else if (json_object_get(secrets, LAUNCH_VARIABLE))
		count = put_given(ret, LAUNCH_VARIABLE, NULL, "secrets");
	else
		count = put_cores(spec, env, command, ret);
	if (count > 0) {
		js_put(ret, "per_node", json_integer(count));
		js_put(ret, "world", json_integer(count * spec_int(spec, SPEC_RESOURCES_NODES)));
	}
	return ret;
}
