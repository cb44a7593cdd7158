/*
 * A spec against its machines: the devices that a job can get, how many workers a launcher starts
 * on a node, against the cores that are there and paid for; a limit of costs, against a price; a
 * network that was asked for, against what the instance has.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/spec/resolved.h"

static bool is_local(const struct spec *spec)
{
	return spec_says(spec, SPEC_ENGINE, "local");
}

double spec_price(const struct spec *spec)
{
	const json_t *price = spec_get(spec, SPEC_RESOURCES_PRICE);

	if (json_is_number(price))
		return json_number_value(price);
	return is_local(spec) ? 0 : js_real(spec->instance, "price", 0);
}

/* ---- workers -------------------------------------------------------------------- */

/* Returns the text after `flag`, in the spelling with '-' or '_', and '='; "" if it is in the
 * next argument; NULL for another flag. */
static const char *after_flag(const char *text, const char *flag)
{
	size_t len = strlen(flag);

	if (!text_starts(text, "--"))
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (text[2 + i] != flag[i] && !(flag[i] == '_' && text[2 + i] == '-'))
			return NULL;
	text += 2 + len;
	return *text == '=' ? text + 1 : *text ? NULL : text;
}

/* Returns the number of workers that another launcher than torchrun is told to start on a node:
 * by torchrun's own flag, or accelerate's, which counts all nodes. *ret_at: the argument that
 * says it. 0: no argument gives a number. */
static int64_t flag_workers(const struct spec *spec, struct mark *ret_at)
{
	static const struct {
		const char *flag;
		bool of_all;
	} flags[] = { { "nproc_per_node", false }, { "num_processes", true } };
	const struct node *command = access_node_of_field(spec, SPEC_COMMAND);
	int64_t nodes = spec_int(spec, SPEC_RESOURCES_NODES), count;

	for (size_t i = 0; command && command->kind == NODE_LIST && i < command->count; i++) {
		for (size_t f = 0; f < STK_LENGTH(flags); f++) {
			const struct node *node = command->entries[i].value;
			const char *text = node->kind == NODE_SCALAR
						   ? after_flag(node->text, flags[f].flag)
						   : NULL;

			if (text && !*text && i + 1 < command->count) {
				node = command->entries[i + 1].value;
				text = node->text;
			}
			*ret_at = node->at;
			if (text && scalar_kind(text) == SCALAR_INT && scalar_int(text, &count) &&
			    count > 0)
				return flags[f].of_all && nodes > 0 ? (count + nodes - 1) / nodes
								    : count;
		}
	}
	return 0;
}

/* Returns the number of workers that a node's launcher is told to start, and the place; 0: no
 * number is given. */
static int64_t workers_of(const struct spec *spec, struct mark *ret_at)
{
	struct launch launch = launch_find(spec);
	const struct node *command = access_node_of_field(spec, SPEC_COMMAND);
	json_auto_t *processes = launch.torchrun ? spec_processes(spec, false) : NULL;

	if (!launch.torchrun)
		return flag_workers(spec, ret_at);
	*ret_at = access_mark_of_field(spec, SPEC_COMMAND);
	if (launch.given && command && command->kind == NODE_LIST && launch.at < command->count)
		*ret_at = command->entries[launch.at].value->at;
	else if (js_is(processes, "by", "env"))
		spec_position(spec, "env." LAUNCH_VARIABLE, &ret_at->line, &ret_at->column);
	return js_is(processes, "by", "command") || js_is(processes, "by", "env")
		       ? js_int(processes, "per_node", 0)
		       : 0;
}

static void check_workers(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	json_auto_t *env = spec_env(spec, false);
	struct mark at;
	int64_t cores = processes_cores_of(spec, env), workers = workers_of(spec, &at);
	const char *type = js_str(spec->instance, "type");

	/* The cores of this machine are not known. */
	if (is_local(spec) || cores <= 0 || workers <= 0 || workers == cores)
		return;
	if (workers > cores)
		problem_hint(problem_error(&binder->reporter, at, "command",
					   "%lld workers on a node, but '%s' has %lld cores",
					   (long long)workers, type, (long long)cores),
			     "start at most %lld workers on a node, or take a larger instance",
			     (long long)cores);
	else
		problem_hint(problem_lint(&binder->reporter, at, "command",
					  "%lld workers on a node: %lld of the %lld cores of '%s' "
					  "stay unused and are paid for",
					  (long long)workers, (long long)(cores - workers),
					  (long long)cores, type),
			     "start %lld workers, or take a smaller instance", (long long)cores);
}

/* ---- price ---------------------------------------------------------------------- */

static void refuse_cost(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *type = is_local(spec) ? NULL : js_str(spec->instance, "type");

	if (!type) {
		problem_hint(spec_error(binder, SPEC_LIMITS_COST, NULL,
					"'limits.cost' needs 'resources.price'"),
			     "set the price of a node and hour in USD: resources: {price: 21.50}");
		return;
	}
	problem_hint(spec_error(binder, SPEC_LIMITS_COST, NULL,
				"'limits.cost' needs a price, and the catalogue has none of '%s'",
				type),
		     "set the price of a node and hour in USD: resources: {price: 21.50}, or write "
		     "it into your own catalogue (STOKER_INSTANCES)");
}

static void check_cost(struct binder *binder)
{
	const struct spec *spec = binder->spec;

	if (json_is_real(spec_get(spec, SPEC_LIMITS_COST)) && spec_price(spec) <= 0 &&
	    !json_is_real(spec_get(spec, SPEC_RESOURCES_PRICE)))
		refuse_cost(binder);
}

/* ---- network -------------------------------------------------------------------- */

static void check_efa(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *type = spec_str(spec, SPEC_RESOURCES_INSTANCE);

	/* The network of this machine or a cluster is not known. */
	if (is_local(spec) || spec_says(spec, SPEC_ENGINE, "slurm") ||
	    !json_is_true(spec_get(spec, SPEC_RESOURCES_EFA)) || !type ||
	    js_int(spec->instance, "efa", 0) > 0)
		return;
	problem_hint(spec_error(binder, SPEC_RESOURCES_EFA, NULL,
				"'resources.efa' is true, but '%.80s' is not known to have EFA",
				type),
		     "omit resources.efa, name an instance type that has EFA, or add the type to "
		     "your own catalogue (STOKER_INSTANCES)");
}

/* ---- the machine itself ----------------------------------------------------------- */

static void refuse_accelerator(struct binder *binder, enum spec_field field, const char *member,
			       const char *type, const char *kind)
{
	problem_hint(spec_error(binder, field, member,
				"'%.80s' has %s, which this version of stoker cannot use yet", type,
				strcmp(kind, INSTANCE_GPU) == 0
					? "GPUs"
					: "accelerators that are not Neuron's"),
		     "name a type with Neuron devices, such as trn1.32xlarge, or one without "
		     "accelerators");
}

/* Checks the type at that place by its row. True if there is nothing more to say about it. */
static bool check_accelerator(struct binder *binder, enum spec_field field, const char *member,
			      const json_t *row)
{
	const char *type = js_str(row, "type"), *kind = js_str(row, "accelerator");
	int64_t devices = js_int(row, "devices", 0);

	if (kind && strcmp(kind, INSTANCE_NEURON) != 0) {
		refuse_accelerator(binder, field, member, type, kind);
		return true;
	}
	if (kind || devices == 0)
		return false;
	problem_hint(spec_error(binder, field, member,
				"'%.80s' has %lld devices by your catalogue, which does not say "
				"of what kind",
				type, (long long)devices),
		     "add 'accelerator: neuron' to the row, or the kind of the devices");
	return true;
}

/* A type that no catalogue has may be new, or mistyped. */
static void lint_name(struct binder *binder, enum spec_field field, const char *member,
		      const char *type)
{
	AUTO(auto_free) char *meant = type ? instance_meant(binder->catalogue, type) : NULL;

	if (meant)
		problem_hint(spec_lint(binder, field, member, "no catalogue has '%.80s'", type),
			     "did you mean '%s'?", meant);
}

/* Checks the machines of `sagemaker.instance_groups`, which replace resources.instance. */
static void check_groups(struct binder *binder)
{
	const json_t *group;
	size_t i;

	json_array_foreach (spec_get(binder->spec, SPEC_SAGEMAKER_GROUPS), i, group) {
		AUTO(auto_free) char *member = mem_format("[%zu].instance", i);
		const char *type = js_str(group, "instance");
		json_auto_t *row = type ? instance_find(binder->catalogue, type) : NULL;

		lint_name(binder, SPEC_SAGEMAKER_GROUPS, member, type);
		if (row)
			check_accelerator(binder, SPEC_SAGEMAKER_GROUPS, member, row);
	}
}

/* AWS Batch selects a machine by its resources, so they must be known. */
static void need_figures(struct binder *binder)
{
	const json_t *known = binder->spec->instance;
	const char *type = js_str(known, "type");
	bool has_row = json_object_get(binder->catalogue, type) != NULL;
	const char *nearest = has_row ? NULL : instance_nearest(binder->catalogue, type);
	AUTO(auto_free) char *own = instances_own_path(binder->getenv_fn);
	AUTO(auto_free) char *row = instance_row(type);
	AUTO(auto_free)
	char *meant = nearest ? mem_format("did you mean '%s'? else ", nearest) : mem_copy("");

	if (js_int(known, "vcpus", 0) > 0 && js_int(known, "ram_mib", 0) > 0)
		return;
	problem_hint(
		spec_error(binder, SPEC_RESOURCES_INSTANCE, NULL,
			   has_row ? "the row of '%.80s' in your catalogue has no vcpus or no ram"
				   : "no catalogue has '%.80s', so its resources are not known",
			   type),
		"%swrite its row beneath 'instances:' of %s (which begins with 'version: 1'), with "
		"the figures that 'aws ec2 describe-instance-types --instance-types %s' shows: %s",
		meant, own ? own : "the file that STOKER_INSTANCES names", type, row);
}

static void check_machine(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	bool batch = spec_says(spec, SPEC_ENGINE, "batch");

	if (!batch)
		lint_name(binder, SPEC_RESOURCES_INSTANCE, NULL,
			  spec_str(spec, SPEC_RESOURCES_INSTANCE));
	if (!spec->instance || (!batch && !spec_says(spec, SPEC_ENGINE, "sagemaker")))
		return;
	if (!check_accelerator(binder, SPEC_RESOURCES_INSTANCE, NULL, spec->instance) && batch)
		need_figures(binder);
	if (!batch)
		check_groups(binder);
}

void machine_check(struct binder *binder)
{
	check_machine(binder);
	check_efa(binder);
	check_workers(binder);
	check_cost(binder);
}
