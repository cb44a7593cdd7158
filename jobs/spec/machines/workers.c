/*
 * Workers of a spec, or of a stage, against the cores or GPUs that a node has and that are paid
 * for; and what the command says of its nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/resolved.h"

/* The subject of the checks: the spec itself, or a stage of it. */
struct subject {
	struct binder binder;
	struct launch launch;
	const char *stage; /* "evaluate." before the names of its fields; "": none */
};

/* Returns the place of an argument of the command. */
static struct mark place_of_word(const struct spec *spec, size_t at)
{
	const struct node *command = access_node_of_field(spec, SPEC_COMMAND);

	if (command && command->kind == NODE_LIST && at < command->count)
		return command->entries[at].value->at;
	return access_mark_of_field(spec, SPEC_COMMAND);
}

/* Returns the place of a variable: in the environment, or else in the command. *ret_field: the
 * field's name, to be freed. */
static struct mark place_of_variable(const struct subject *subject, const char *name,
				     char **ret_field)
{
	const struct spec *spec = subject->binder.spec;
	AUTO(auto_free) char *path = mem_format("env.%s", name);
	struct mark at = access_mark_of_field(spec, SPEC_COMMAND);
	bool in_env = access_mark_of_path(spec, path, &at);

	*ret_field = mem_format("%s%s", subject->stage, in_env ? path : "command");
	return at;
}

/* Returns the place that says how many workers there are. *ret_field: the field's name, to be
 * freed. */
static struct mark place_of_number(const struct subject *subject, const json_t *processes,
				   char **ret_field)
{
	const struct spec *spec = subject->binder.spec;
	struct mark at = place_of_word(spec, subject->launch.at);
	const char *field = "command";

	if (js_is(processes, "by", "resources.workers")) {
		at = access_mark_of_field(spec, SPEC_RESOURCES_WORKERS);
		field = "resources.workers";
	} else if (js_is(processes, "by", "env")) {
		return place_of_variable(subject, LAUNCH_VARIABLE, ret_field);
	}
	*ret_field = mem_format("%s%s", subject->stage, field);
	return at;
}

/* Returns what the unused part of a node costs, in words. The caller frees it. */
static char *waste(const struct spec *spec, int64_t unused, int64_t all)
{
	double price = spec_price(spec);

	if (price <= 0)
		return mem_copy(" and are paid for");
	return mem_format(": %.2f of %.2f USD an hour on each node are paid for nothing",
			  price * (double)unused / (double)all, price);
}

/* Checks the number of workers against what a node has. */
static void check_number(struct subject *subject, const json_t *processes)
{
	const struct spec *spec = subject->binder.spec;
	struct reporter *reporter = &subject->binder.reporter;
	json_auto_t *env = spec_env(spec, false);
	const struct accelerator *kind = accelerator_of(spec->instance);
	int64_t all = processes_cores_of(spec, env);
	int64_t workers = js_int(processes, "per_node", 0);
	const char *type = js_str(spec->instance, "type");
	AUTO(auto_free) char *field = NULL, *paid = NULL;
	struct mark at = place_of_number(subject, processes, &field);

	if (!kind || all <= 0 || workers <= 0 || workers == all)
		return;
	if (workers > all) {
		problem_hint(problem_error(reporter, at, field,
					   "%lld workers on a node, but '%s' has %lld %ss",
					   (long long)workers, type, (long long)all, kind->unit),
			     "start at most %lld workers on a node, or take a larger instance",
			     (long long)all);
		return;
	}
	paid = waste(spec, all - workers, all);
	problem_hint(problem_lint(reporter, at, field,
				  "%lld workers on a node: %lld of the %lld %ss of '%s' stay "
				  "unused%s",
				  (long long)workers, (long long)(all - workers), (long long)all,
				  kind->unit, type, paid),
		     "start %lld workers, or take a smaller instance", (long long)all);
}

/* True if something says how many workers there are, so that they are not counted. */
static bool has_number(const json_t *processes)
{
	return js_is(processes, "by", "command") || js_is(processes, "by", "env") ||
	       js_is(processes, "by", "resources.workers");
}

/* Checks a variable that shows the job fewer cores or GPUs than the machine has. */
static void check_limit(struct subject *subject, const json_t *processes)
{
	const struct spec *spec = subject->binder.spec;
	struct reporter *reporter = &subject->binder.reporter;
	json_auto_t *env = spec_env(spec, false);
	const struct accelerator *kind = accelerator_of(spec->instance);
	int64_t all = processes_cores_of(spec, env);
	struct processes_limit limit = { 0 };
	AUTO(auto_free) char *field = NULL, *paid = NULL;
	struct mark at;

	if (!js_str(processes, "launcher") || !kind || all <= 0)
		return;
	limit = processes_limit_of(spec, env, spec_get(spec, SPEC_COMMAND));
	if (limit.units == all || strchr(limit.value, '$'))
		return;
	at = place_of_variable(subject, limit.name, &field);
	if (limit.units < 0)
		problem_hint(problem_lint(reporter, at, field, "%s=%.80s is no list of %ss",
					  limit.name, limit.value, kind->unit),
			     kind->ranges ? "write numbers and ranges: 0-3,8"
					  : "write their numbers: 0,1");
	else if (limit.units > all)
		problem_hint(problem_lint(reporter, at, field, "%s=%.80s: '%s' has only %lld %ss",
					  limit.name, limit.value, js_str(spec->instance, "type"),
					  (long long)all, kind->unit),
			     "remove the variable, or name those that there are");
	if (limit.units < 0 || limit.units > all || has_number(processes))
		return;
	paid = waste(spec, all - limit.units, all);
	problem_hint(problem_lint(reporter, at, field,
				  "%s=%.80s: %lld of the %lld %ss of '%s' stay unused%s",
				  limit.name, limit.value, (long long)(all - limit.units),
				  (long long)all, kind->unit, js_str(spec->instance, "type"), paid),
		     "remove the variable, or take a smaller instance");
}

/* As the variable sets it, a logical core is some whole number of physical ones. */
static void check_logical(struct subject *subject)
{
	static const char *const names[] = { "NEURON_LOGICAL_NC_CONFIG",
					     "NEURON_RT_VIRTUAL_CORE_SIZE" };
	const struct spec *spec = subject->binder.spec;
	json_auto_t *env = spec_env(spec, false);
	int64_t physical = js_int(spec->instance, "physical_cores", 0);

	for (size_t i = 0; physical > 0 && i < STK_LENGTH(names); i++) {
		const char *value = js_str(env, names[i]);
		AUTO(auto_free) char *field = NULL;
		int64_t each = 0;
		struct mark at;

		if (!value || strchr(value, '$') ||
		    (scalar_kind(value) == SCALAR_INT && scalar_int(value, &each) && each > 0 &&
		     physical % each == 0))
			continue;
		at = place_of_variable(subject, names[i], &field);
		problem_hint(problem_lint(&subject->binder.reporter, at, field,
					  "%s=%.80s: no such number of the %lld cores of '%s' can "
					  "make a logical core",
					  names[i], value, (long long)physical,
					  js_str(spec->instance, "type")),
			     "write 1 or 2");
	}
}

/* Tells those of torchrun's words that its PyTorch refuses, or takes otherwise than meant. Returns
 * whether it told one. */
static bool check_word(struct subject *subject, struct mark at, const char *field, const char *how)
{
	const json_t *instance = subject->binder.spec->instance;
	const struct accelerator *kind = accelerator_of(instance);
	struct reporter *reporter = &subject->binder.reporter;
	const char *type = js_str(instance, "type");
	long long cpus = js_int(instance, "vcpus", 0);
	bool sees = kind && kind->word;
	struct problem *problem = NULL;

	if (!field_word_in("auto cpu gpu xpu", how))
		problem = problem_lint(reporter, at, field,
				       "torchrun takes a whole number, auto, cpu or gpu, not "
				       "'%.31s'",
				       how);
	else if (strcmp(how, "gpu") == 0 && cpus > 0 && !sees)
		problem = problem_lint(reporter, at, field,
				       "torchrun refuses 'gpu' on '%s', which has none", type);
	else if (kind && (strcmp(how, "cpu") == 0 || (strcmp(how, "auto") == 0 && !sees)))
		problem = problem_lint(reporter, at, field,
				       "torchrun's '%s' counts CPUs: %lld workers for the %lld %ss "
				       "of '%s'",
				       how, cpus, (long long)accelerator_units(instance),
				       kind->unit, type);
	problem_hint(problem,
		     kind ? "leave the number out: stoker starts one worker for each %s"
			  : "leave the number out: torchrun starts one worker on a %s",
		     kind ? kind->unit : "node");
	return problem != NULL;
}

/* Checks the number as the command or the environment writes it. Returns whether it told
 * something. */
static bool check_given(struct subject *subject, const json_t *processes)
{
	const struct launch *launch = &subject->launch;
	json_auto_t *env = spec_env(subject->binder.spec, false);
	bool by_env = js_is(processes, "by", "env");
	const char *how = by_env ? js_str(env, LAUNCH_VARIABLE) : launch->how;
	AUTO(auto_free) char *field = NULL;
	struct mark at = place_of_number(subject, processes, &field);
	int64_t count = 1;

	if (!(by_env || js_is(processes, "by", "command")) || !how || launch->by_file ||
	    strchr(how, '$'))
		return false;
	if (scalar_kind(how) != SCALAR_INT && *how && launch->launcher->has_variable)
		return check_word(subject, at, field, how);
	if (scalar_kind(how) == SCALAR_INT && (!scalar_int(how, &count) || count > 0))
		return false;
	problem_hint(problem_error(&subject->binder.reporter, at, field,
				   "%s takes a number of workers of at least 1, not '%.31s'",
				   launch->launcher->name, how),
		     "write the number of workers on a node, or leave the option out");
	return true;
}

/* A line for a shell stays as it is written: no other number can be put into it. */
static void check_override(struct subject *subject)
{
	const struct spec *spec = subject->binder.spec;
	const struct launch *launch = &subject->launch;
	AUTO(auto_free) char *field = mem_format("%sresources.workers", subject->stage);
	int64_t asked = spec_int(spec, SPEC_RESOURCES_WORKERS);
	bool reads = launch->launcher && launch->launcher->has_variable;

	if (asked == 0 || !launch->launcher || !launch->in_line || launch->follows ||
	    (reads && !launch->given))
		return;
	problem_hint(problem_error(&subject->binder.reporter,
				   access_mark_of_field(spec, SPEC_RESOURCES_WORKERS), field,
				   "'%s' cannot change the number of workers in a line for a shell",
				   field),
		     "write $STOKER_WORKERS into the line, or the command as a list of words");
}

/* The nodes in the command are those of the job: any other number waits for nodes that never come,
 * or leaves some out. */
static void check_nodes(struct subject *subject)
{
	const struct spec *spec = subject->binder.spec;
	const struct launch *launch = &subject->launch;
	AUTO(auto_free) char *field = mem_format("%scommand", subject->stage);
	int64_t said, nodes = processes_nodes_of(spec);

	if (!launch->launcher || scalar_kind(launch->nodes) != SCALAR_INT ||
	    !scalar_int(launch->nodes, &said) || said == nodes)
		return;
	problem_hint(problem_lint(&subject->binder.reporter,
				  access_mark_of_field(spec, SPEC_COMMAND), field,
				  "the command says %lld nodes, and %lld run it together",
				  (long long)said, (long long)nodes),
		     "remove the launcher's options for nodes, rank and rendezvous: stoker sets "
		     "them");
}

/* accelerate refuses --multi_gpu for a single worker. */
static void check_multi(struct subject *subject, const json_t *processes)
{
	AUTO(auto_free) char *field = mem_format("%scommand", subject->stage);

	if (subject->launch.is_multi && js_int(processes, "world", 0) == 1)
		problem_hint(problem_error(&subject->binder.reporter,
					   access_mark_of_field(subject->binder.spec, SPEC_COMMAND),
					   field, "accelerate takes no --multi_gpu for one worker"),
			     "remove --multi_gpu: stoker adds it where there are several");
}

static void check(struct subject *subject)
{
	const struct spec *spec = subject->binder.spec;
	json_auto_t *processes = spec_has_toolkit(spec) ? NULL : spec_processes(spec, false);

	subject->launch = launch_find(spec_get(spec, SPEC_COMMAND));
	if (spec_has_toolkit(spec))
		return;
	check_override(subject);
	check_nodes(subject);
	check_multi(subject, processes);
	check_logical(subject);
	check_limit(subject, processes);
	if (!check_given(subject, processes) && has_number(processes))
		check_number(subject, processes);
}

void workers_check(struct binder *binder, const char *stage)
{
	struct subject subject = { .binder = *binder, .stage = stage };

	check(&subject);
}
