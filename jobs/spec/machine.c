/*
 * A spec against its machines: how many workers a launcher starts on a node, against the
 * cores that are there and paid for; a limit of costs, against a price; a network that was asked
 * for, against what the instance has.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/spec/resolved.h"
#include "jobs/spec/scalar.h"

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

/* The text after `flag`, in the spelling with '-' or '_', and '=': "" is "in the next
 * argument"; NULL: it is another flag. */
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

/* What a node's launcher is told to start: torchrun's own flag, or accelerate's, which counts
 * all nodes. *ret_at: the argument that says it. 0: nothing says so in figures. */
static int64_t workers_of(const struct spec *spec, struct mark *ret_at)
{
	static const struct {
		const char *flag;
		bool of_all;
	} flags[] = { { "nproc_per_node", false }, { "num_processes", true } };
	const struct node *command = node_of_field(spec, SPEC_COMMAND);
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

/* As the job's runtime shows them. */
static int64_t cores_of(const struct spec *spec)
{
	bool one_each = js_is(spec_get(spec, SPEC_ENV), "NEURON_LOGICAL_NC_CONFIG", "1");
	int64_t cores = js_int(spec->instance, "cores", 0);

	return one_each ? js_int(spec->instance, "physical_cores", cores) : cores;
}

static void check_workers(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	struct mark at;
	int64_t cores = cores_of(spec), workers = workers_of(spec, &at);
	const char *type = js_str(spec->instance, "type");

	/* What this machine has, nobody has said. */
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
	struct mark at = mark_of_field(spec, SPEC_LIMITS_COST);

	if (!type) {
		problem_hint(problem_error(&binder->reporter, at, "limits.cost",
					   "'limits.cost' needs 'resources.price'"),
			     "say what a node costs an hour, in USD: resources: {price: 21.50}");
		return;
	}
	problem_hint(
		problem_error(&binder->reporter, at, "limits.cost",
			      "'limits.cost' needs a price, and the catalogue has none of '%s'",
			      type),
		"say what a node costs an hour, in USD: resources: {price: 21.50}, or write it "
		"into your own catalogue (STOKER_INSTANCES)");
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

	/* What this machine or a cluster has, nobody has said. */
	if (is_local(spec) || spec_says(spec, SPEC_ENGINE, "slurm") ||
	    !json_is_true(spec_get(spec, SPEC_RESOURCES_EFA)) || !type ||
	    js_int(spec->instance, "efa", 0) > 0)
		return;
	problem_hint(problem_error(&binder->reporter, mark_of_field(spec, SPEC_RESOURCES_EFA),
				   "resources.efa",
				   "'resources.efa' is true, but '%.80s' is not known to have it",
				   type),
		     "leave it out, name an instance type that has EFA, or write it into your own "
		     "catalogue (STOKER_INSTANCES)");
}

void machine_check(struct binder *binder)
{
	check_efa(binder);
	check_workers(binder);
	check_cost(binder);
}
