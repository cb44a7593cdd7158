/*
 * A spec against its machines: the devices that a job can get; a limit of costs, against a price; a
 * network that was asked for, against what the instance has.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/spec/resolved.h"

static bool is_local(const struct spec *spec)
{
	return spec_says(spec, SPEC_ENGINE, "local");
}

/* True for 'auto' before this machine has been asked for its type. */
static bool is_asked(const struct spec *spec)
{
	return spec_says(spec, SPEC_RESOURCES_INSTANCE, "auto");
}

double spec_price(const struct spec *spec)
{
	const json_t *price = spec_get(spec, SPEC_RESOURCES_PRICE);

	if (json_is_number(price))
		return json_number_value(price);
	return js_real(spec->instance, "price", 0);
}

/* ---- price ---------------------------------------------------------------------- */

static void refuse_cost(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *type = js_str(spec->instance, "type");
	struct problem *problem;

	if (!type) {
		problem = problem_error(&binder->reporter,
					access_mark_of_field(spec, SPEC_LIMITS_COST),
					field_table[SPEC_RESOURCES_PRICE].path,
					"'limits.cost' needs 'resources.price'");
		problem_missing(problem);
		problem_hint(problem,
			     "set the price of a node and hour in USD: resources: {price: 21.50}");
		return;
	}
	problem_hint(spec_error(binder, SPEC_LIMITS_COST, NULL,
				"'limits.cost' needs a price, and the catalogue has none of '%s'",
				type),
		     "set the price of a node and hour in USD: resources: {price: 21.50}, or write "
		     "it into your own catalogue (STOKER_INSTANCES)");
}

/* A limit that the user's configuration gives to every spec does not count where there is no
 * price. */
static void leave_cost_out(struct binder *binder)
{
	problem_hint(spec_lint(binder, SPEC_LIMITS_COST, NULL,
			       "'limits.cost' of your configuration does not count: the price of "
			       "the machines is not known"),
		     "set the price of a node and hour in USD: resources: {price: 21.50}");
	js_put(json_object_get(binder->spec->root, "limits"), "cost",
	       bind_default(SPEC_LIMITS_COST));
}

static void check_cost(struct binder *binder)
{
	const struct spec *spec = binder->spec;

	/* The price of 'auto' is known once this machine has been asked. */
	if (!json_is_real(spec_get(spec, SPEC_LIMITS_COST)) || spec_price(spec) > 0 ||
	    is_asked(spec) || json_is_real(spec_get(spec, SPEC_RESOURCES_PRICE)))
		return;
	if (spec_is_configured(spec, SPEC_LIMITS_COST))
		leave_cost_out(binder);
	else
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

/* AWS Batch gives a job as many accelerators as it is asked for. Returns false if the row of a type
 * that is known does not say how many it has. */
static bool check_count(struct binder *binder, enum spec_field field, const char *member,
			const json_t *row)
{
	const struct accelerator *kind = accelerator_of(row);
	const char *type = js_str(row, "type");

	if (!kind || accelerator_count(row) > 0 || !spec_says(binder->spec, SPEC_ENGINE, "batch") ||
	    !instance_known(binder->catalogue, type))
		return true;
	problem_hint(spec_error(binder, field, member,
				"'%.80s' has %ss, and its row in your catalogue does not say how "
				"many",
				type, kind->noun),
		     "add '%s: N' to the row, or 'accelerator: none'", kind->count);
	return false;
}

/* Checks the type at that place by its row. True if there is nothing more to say about it. */
static bool check_accelerator(struct binder *binder, enum spec_field field, const char *member,
			      const json_t *row)
{
	const char *type = js_str(row, "type"), *kind = js_str(row, "accelerator");
	int64_t devices = js_int(row, "devices", 0);

	if (kind && !accelerator_find(kind)) {
		problem_hint(spec_error(binder, field, member,
					"'%.80s' has accelerators that stoker can give to no job",
					type),
			     "name a type with Neuron devices, such as trn1.32xlarge, one with "
			     "GPUs, such as g5.xlarge, or one without accelerators");
		return true;
	}
	if (kind || devices == 0)
		return !check_count(binder, field, member, row);
	problem_hint(spec_error(binder, field, member,
				"'%.80s' has %lld devices by your catalogue, which does not say "
				"of what kind",
				type, (long long)devices),
		     "add 'accelerator: neuron' to the row, or the kind of the devices");
	return true;
}

/* A machine without accelerators may well compile for others. */
static void check_compiler(struct binder *binder, const json_t *row)
{
	const char *compiler = spec_str(binder->spec, SPEC_COMPILE_KIND);
	const struct accelerator *kind = accelerator_of(row), *other;
	const char *type = js_str(row, "type");

	if (!kind || !compiler || accelerator_compiles(kind, compiler))
		return;
	other = accelerator_compiled(compiler);
	problem_hint(spec_error(binder, SPEC_COMPILE_KIND, NULL,
				"'compile.kind: %s' is not for '%.80s', which has %ss", compiler,
				type, kind->noun),
		     "leave 'compile' out (in a profile: 'compile: null') or use one of %s, or "
		     "name a type with %ss",
		     kind->compilers, other ? other->noun : "other accelerator");
}

/* compiles: the compiler works for these machines. */
static void check_row(struct binder *binder, enum spec_field field, const char *member,
		      const json_t *row, bool compiles)
{
	const struct spec *spec = binder->spec;
	bool is_lent =
		spec_says(spec, SPEC_ENGINE, "batch") || spec_says(spec, SPEC_ENGINE, "sagemaker");

	if (!is_lent || !check_accelerator(binder, field, member, row))
		type_check(binder, field, member, row);
	if (compiles)
		check_compiler(binder, row);
}

/* Checks a type that stands elsewhere than in resources.instance; NULL: none does. */
static void check_other(struct binder *binder, enum spec_field field, const char *member,
			const char *type, bool compiles)
{
	json_auto_t *row = NULL;

	if (!type)
		return;
	if (!binder->catalogue)
		binder->catalogue = instances_load(binder->getenv_fn, binder->reporter.problems);
	row = instance_find(binder->catalogue, type);
	check_row(binder, field, member, row, compiles);
}

/* Compares a group with resources.instance, whose family is in the graph key, and by whose figures
 * workers, devices and costs are counted. */
static void compare(struct binder *binder, const char *member, const char *type)
{
	const char *main = js_str(binder->spec->instance, "type");
	struct problem *problem;
	size_t family;

	if (!type || !main)
		return;
	type += text_starts(type, "ml.") ? 3 : 0;
	main += text_starts(main, "ml.") ? 3 : 0;
	family = strcspn(main, ".");
	if (strcmp(type, main) == 0)
		return;
	if (strncmp(type, main, family) != 0 || type[family] != '.')
		problem = spec_error(binder, SPEC_SAGEMAKER_GROUPS, member,
				     "the graph key is of '%s', as resources.instance says, and a "
				     "cache of it is none for '%.80s'",
				     main, type);
	else
		problem = spec_lint(binder, SPEC_SAGEMAKER_GROUPS, member,
				    "workers, devices and costs of '%.80s' are counted as those "
				    "of '%s', as resources.instance says",
				    type, main);
	problem_hint(problem, "give resources.instance the type of the groups");
}

/* Checks the machines of `sagemaker.instance_groups`, which replace resources.instance. */
static void check_groups(struct binder *binder)
{
	const json_t *group;
	size_t i;

	json_array_foreach (spec_get(binder->spec, SPEC_SAGEMAKER_GROUPS), i, group) {
		AUTO(auto_free) char *member = mem_format("[%zu].instance", i);

		check_other(binder, SPEC_SAGEMAKER_GROUPS, member, js_str(group, "instance"), true);
		compare(binder, member, js_str(group, "instance"));
	}
}

/* Only the machine that this is can be asked for its type. */
static void check_auto(struct binder *binder)
{
	const struct spec *spec = binder->spec;

	if (is_asked(spec) && !is_local(spec))
		problem_hint(
			spec_error(binder, SPEC_RESOURCES_INSTANCE, NULL,
				   "'resources.instance: auto' is this machine, and engine '%s' "
				   "runs jobs on others",
				   spec_str(spec, SPEC_ENGINE)),
			"name the type: resources: {instance: trn1.32xlarge}");
}

/* Checks the types of the job and of the stages that have machines of their own. */
static void check_machines(struct binder *binder)
{
	static const struct {
		enum spec_field type, compile;
	} stages[] = { { SPEC_EVALUATE_RESOURCES_INSTANCE, SPEC_EVALUATE_COMPILE },
		       { SPEC_INFER_RESOURCES_INSTANCE, SPEC_INFER_COMPILE } };
	const struct spec *spec = binder->spec;

	if (spec_says(spec, SPEC_ENGINE, "sagemaker"))
		check_groups(binder);
	if (spec->instance)
		check_row(binder, SPEC_RESOURCES_INSTANCE, NULL, spec->instance, true);
	for (size_t i = 0; i < STK_LENGTH(stages); i++)
		check_other(binder, stages[i].type, NULL, spec_str(spec, stages[i].type),
			    spec_says(spec, stages[i].compile, "aot"));
}

void machine_check(struct binder *binder)
{
	check_auto(binder);
	check_machines(binder);
	check_efa(binder);
	check_cost(binder);
}
