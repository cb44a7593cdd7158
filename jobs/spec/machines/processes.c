/*
 * How many workers a launcher starts on a node, and what says so: resources.workers, the command,
 * the environment or, where none of them does, the cores or GPUs of the instance. Launchers start
 * one by default, and all other cores are paid for and idle.
 *
 * The cores that the runtime shows follow the Neuron SDK: NEURON_LOGICAL_NC_CONFIG
 * (before 2.21: NEURON_RT_VIRTUAL_CORE_SIZE) says how many physical cores make a logical one, 2 by
 * default on trn2; NEURON_RT_VISIBLE_CORES ("0-3,8") overrides NEURON_RT_NUM_CORES, in
 * which 0 is all of them (neuron-runtime/guides/configuration-guide). CUDA shows the GPUs that
 * CUDA_VISIBLE_DEVICES lists, up to the first number that is none (CUDA C++ Programming Guide,
 * environment variables).
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

/* Returns how many "0,GPU-8932f937" are: the list ends at the first that is none. */
static int64_t count_list(const char *text)
{
	int64_t count = 0;

	for (; *text && *text != '-'; text += *text == ',') {
		text += strcspn(text, ",");
		count++;
	}
	return count;
}

struct processes_limit processes_limit_of(const struct spec *spec, const json_t *env,
					  const json_t *command)
{
	const struct accelerator *kind = accelerator_of(spec->instance);
	const char *visible = variable(env, command, kind->visible);
	const char *few = kind->limit ? variable(env, command, kind->limit) : NULL;
	struct processes_limit ret = { .units = processes_cores_of(spec, env) };

	if (visible)
		ret = (struct processes_limit){ kind->visible, visible,
						kind->ranges ? count_range(visible)
							     : count_list(visible) };
	else if (few && number(few, 0) != 0)
		ret = (struct processes_limit){ kind->limit, few, number(few, 0) };
	return ret;
}

/* Returns how many of the machine's cores or GPUs are left to the job; *ret_why says which they
 * are, and the caller frees it. 0: none, or a variable that limits them cannot be read here. */
static int64_t cores_for(const struct spec *spec, const json_t *env, const json_t *command,
			 char **ret_why)
{
	const struct accelerator *kind = accelerator_of(spec->instance);
	struct processes_limit limit = processes_limit_of(spec, env, command);
	int64_t all = processes_cores_of(spec, env);
	const char *type = js_str(spec->instance, "type");
	bool logical = all != js_int(spec->instance, "physical_cores", all);

	if (limit.units < 0)
		*ret_why = mem_format("%s=%s cannot be read before the job runs", limit.name,
				      limit.value);
	else if (limit.units < all || limit.name == kind->visible)
		*ret_why = mem_format("%s=%s, of the %lld %ss of '%s'", limit.name, limit.value,
				      (long long)all, kind->unit, type);
	else
		*ret_why = mem_format("1 for each %s%s of '%s'", logical ? "logical " : "",
				      kind->unit, type);
	return limit.units < 0 ? 0 : limit.units < all ? limit.units : all;
}

static void put_reason(json_t *ret, const char *by, char *why)
{
	js_put_str(ret, "by", by);
	js_put_str(ret, "reason", why);
	free(why);
}

/* Facts about the workers while their number is looked for. */
struct search {
	const struct spec *spec;
	const json_t *env, *secrets, *command;
	struct launch launch;
	int64_t nodes; /* nodes that run the command together */
	json_t *ret;
};

/* Returns the number that a word of torchrun's means on the instance; 0: only the job knows it.
 * `auto` counts what PyTorch sees: GPUs, else CPUs, unless it has another backend. */
static int64_t count_word(const struct search *search, const char *word)
{
	const struct spec *spec = search->spec;
	const struct accelerator *kind = accelerator_of(spec->instance);
	bool is_auto = strcmp(word, "auto") == 0;
	AUTO(auto_free) char *why = NULL;

	if (kind && kind->word && (is_auto || strcmp(word, kind->word) == 0))
		return cores_for(spec, search->env, search->command, &why);
	if (strcmp(word, "cpu") == 0 || (!kind && is_auto))
		return js_int(spec->instance, "vcpus", 0);
	return 0;
}

/* The number is given: the launcher reads it as it stands. Returns 0 if only the job knows it. */
static int64_t put_given(const struct search *search, const char *name, const char *how,
			 const char *by)
{
	const struct launcher *launcher = search->launch.launcher;
	int64_t count = number(how, 1);

	if (how && *how)
		put_reason(search->ret, by, mem_format("as %s says: %s", name, how));
	else
		put_reason(search->ret, by, mem_format("as %s says", name));
	if (how && count < 0 && launcher->has_variable)
		count = count_word(search, how);
	if (count > 0 && launcher->counts_all && strcmp(by, "command") == 0)
		count /= search->nodes;
	return count > 0 ? count : 0;
}

/* The command gives the number: its option, a word NAME=VALUE, a file. */
static int64_t put_command(const struct search *search)
{
	const struct launch *launch = &search->launch;
	AUTO(auto_free) char *option = mem_format("--%s", launch->launcher->count);

	for (char *c = option + 2; *c; c++)
		*c = *c == '-' ? '_' : *c;
	if (launch->by_file)
		return put_given(search, "its configuration file", NULL, "command");
	return put_given(search, launch->by_env ? LAUNCH_VARIABLE : option, launch->how, "command");
}

/* Nothing gives the number. *ret_why: why it is this one; the caller frees it. Returns 0 if nothing
 * is known of the machine. */
static int64_t count_devices(const struct search *search, char **ret_why)
{
	const struct spec *spec = search->spec;
	const char *type = js_str(spec->instance, "type");

	if (accelerator_of(spec->instance) && processes_cores_of(spec, search->env) > 0)
		return cores_for(spec, search->env, search->command, ret_why);
	if (!type)
		*ret_why = mem_copy("resources.instance is not given");
	else if (js_int(spec->instance, "vcpus", 0) > 0)
		*ret_why = mem_format("'%s' has no accelerators", type);
	else
		*ret_why = mem_format("no catalogue knows cores of '%s'", type);
	return 0;
}

static int64_t put_devices(const struct search *search)
{
	const struct launcher *launcher = search->launch.launcher;
	char *why = NULL;
	int64_t count;

	if (!launcher->has_variable && search->launch.in_line && !search->launch.follows) {
		put_reason(search->ret, launcher->name,
			   mem_copy("a line for a shell is run as it is written"));
		return 0;
	}
	count = count_devices(search, &why);
	put_reason(search->ret, count > 0 ? "resources.instance" : launcher->name, why);
	if (count > 0 && launcher->has_variable)
		js_put_str(search->ret, "variable", LAUNCH_VARIABLE);
	return count > 0 ? count : 1;
}

/* The toolkit puts torchrun in front of any program, or mpirun, with as many processes as it counts
 * GPUs, or neuron-ls cores (sagemaker-training 4.8.1: environment.py, runner.py,
 * torch_distributed.py). */
static int64_t put_toolkit(const struct search *search)
{
	const struct accelerator *kind = accelerator_of(search->spec->instance);

	js_put_str(search->ret, "launcher", "torchrun");
	put_reason(search->ret, "toolkit",
		   mem_format("SageMaker's toolkit starts one for each %s that it finds",
			      kind ? kind->unit : "core"));
	return processes_cores_of(search->spec, search->env);
}

static int64_t put_number(const struct search *search)
{
	const struct launcher *launcher = search->launch.launcher;
	int64_t asked = spec_int(search->spec, SPEC_RESOURCES_WORKERS);
	const char *pet = js_str(search->env, LAUNCH_VARIABLE);
	bool reads = launcher && launcher->has_variable;

	if (launcher)
		js_put_str(search->ret, "launcher", launcher->name);
	if (launcher && search->launch.is_alone) {
		put_reason(search->ret, launcher->name,
			   mem_copy("accelerate starts one with --cpu"));
		return 1;
	}
	if (asked > 0) {
		put_reason(search->ret, "resources.workers", mem_copy("as resources.workers says"));
		if (reads && !search->launch.given)
			js_put_str(search->ret, "variable", LAUNCH_VARIABLE);
		return asked;
	}
	if (!launcher)
		return 0;
	if (search->launch.given)
		return put_command(search);
	if (reads && pet)
		return put_given(search, LAUNCH_VARIABLE, pet, "env");
	if (reads && json_object_get(search->secrets, LAUNCH_VARIABLE))
		return put_given(search, LAUNCH_VARIABLE, NULL, "secrets");
	return put_devices(search);
}

json_t *spec_processes(const struct spec *spec, bool with_overrides)
{
	const json_t *command = spec_get(spec, SPEC_COMMAND);
	json_auto_t *env = spec_env(spec, with_overrides);
	json_auto_t *secrets = spec_secrets(spec);
	struct search search = { .spec = spec,
				 .env = env,
				 .secrets = secrets,
				 .command = command,
				 .launch = launch_find(command),
				 .nodes = processes_nodes_of(spec) };
	bool is_toolkit = spec_has_toolkit(spec);
	int64_t count;

	if (is_toolkit ? spec_says(spec, SPEC_SAGEMAKER_DISTRIBUTION, "none")
		       : !search.launch.launcher && spec_int(spec, SPEC_RESOURCES_WORKERS) == 0)
		return NULL;
	search.ret = json_object();
	count = is_toolkit ? put_toolkit(&search) : put_number(&search);
	if (count > 0) {
		js_put(search.ret, "per_node", json_integer(count));
		js_put(search.ret, "world", json_integer(count * search.nodes));
	}
	return search.ret;
}

int64_t processes_nodes_of(const struct spec *spec)
{
	return spec->alone ? 1 : spec_int(spec, SPEC_RESOURCES_NODES);
}

json_t *processes_command(const struct spec *spec, bool with_overrides, const json_t *texts)
{
	json_auto_t *processes = spec_processes(spec, with_overrides);
	int64_t per_node = js_int(processes, "per_node", 0);

	if (spec_has_toolkit(spec))
		return json_deep_copy(texts);
	/* A number that is given, or in a variable, needs no option. */
	if (js_str(processes, "variable") || !(js_is(processes, "by", "resources.workers") ||
					       js_is(processes, "launcher", "accelerate")))
		per_node = 0;
	if (js_is(processes, "by", "command"))
		per_node = 0;
	return launch_with_workers(texts, per_node, processes_nodes_of(spec));
}

bool spec_has_front(const struct spec *spec)
{
	return launch_has_front(spec_get(spec, SPEC_COMMAND));
}
