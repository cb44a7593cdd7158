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
		(void)access_mark_of_path(spec, "env." LAUNCH_VARIABLE, &at);
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

static void check(struct subject *subject)
{
	const struct spec *spec = subject->binder.spec;
	json_auto_t *processes = spec_has_toolkit(spec) ? NULL : spec_processes(spec, false);

	subject->launch = launch_find(spec_get(spec, SPEC_COMMAND));
	if (spec_has_toolkit(spec))
		return;
	check_override(subject);
	check_nodes(subject);
	if (js_is(processes, "by", "command") || js_is(processes, "by", "env") ||
	    js_is(processes, "by", "resources.workers"))
		check_number(subject, processes);
}

void workers_check(struct binder *binder, const char *stage)
{
	struct subject subject = { .binder = *binder, .stage = stage };

	check(&subject);
}
