/*
 * Phase 1 has a length and a width: how many steps it takes, and how many graphs are compiled at
 * once.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/machines/launch.h"
#include "jobs/spec/resolved.h"

/* Figure of neuron_parallel_compile itself (neuron_parallel_compile.py of torch-neuronx): with
 * fewer GiB a compiler, large graphs end with "Received error code: -9". */
#define GIB_A_COMPILER 64
#define OPTION         "--num_parallel"

/* ---- length --------------------------------------------------------------------- */

/* Dashes and underscores are the same to scripts that take such options. */
static bool same_name(const char *name, const char *row, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] != row[i] && !(name[i] == '-' && row[i] == '_'))
			return false;
	return name[len] == '\0';
}

static bool has_value(const struct node *value)
{
	return value->kind == NODE_SCALAR && !node_is_null(value) &&
	       (value->quoted || scalar_kind(value->text) != SCALAR_BOOL);
}

/* Returns the entry of a map that counts steps, the first one of the table; NULL if there is
 * none. */
static const struct entry *steps_in(const struct node *map)
{
	const char *row = field_table[SPEC_COMPILE_MAX_STEPS].stands_for;

	for (; map && map->kind == NODE_MAP && *row; row += *row == ' ') {
		size_t len = strcspn(row, " ");

		for (size_t i = 0; i < map->count; i++)
			if (same_name(map->entries[i].key, row, len) &&
			    has_value(map->entries[i].value))
				return &map->entries[i];
		row += len;
	}
	return NULL;
}

/* Returns 0 if the value is not such a number. */
static int64_t steps_of(const struct node *value)
{
	char *end;
	double steps = strtod(value->text, &end);

	return end != value->text && *end == '\0' && steps >= 1 && steps <= 1e15 ? (int64_t)steps
										 : 0;
}

struct length phase_one_length_of(const struct spec *spec)
{
	const struct entry *own = steps_in(access_node_of_field(spec, SPEC_HYPERPARAMETERS));
	const struct entry *over =
		steps_in(access_node_of_field(spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS));
	int64_t given = spec_int(spec, SPEC_COMPILE_MAX_STEPS);
	struct length ret = { .training = own };

	if (spec_is_set(spec, SPEC_COMPILE_MAX_STEPS)) {
		ret.by = LENGTH_GIVEN;
		ret.name = own ? own->key : over ? over->key : "max_steps";
		ret.steps = given;
	} else if (over) {
		ret.by = LENGTH_OVERRIDE;
		ret.name = over->key;
		ret.steps = steps_of(over->value);
	} else if (own) {
		int64_t steps = steps_of(own->value);

		ret.by = steps > 0 && steps < given ? LENGTH_OWN : LENGTH_DEFAULT;
		ret.name = own->key;
		ret.steps = ret.by == LENGTH_OWN ? steps : given;
	}
	return ret;
}

int64_t spec_steps(const struct spec *spec, bool with_overrides)
{
	const struct entry *own = steps_in(access_node_of_field(spec, SPEC_HYPERPARAMETERS));
	struct length length = phase_one_length_of(spec);

	if (!with_overrides)
		return own ? steps_of(own->value) : 0;
	return length.by == LENGTH_UNKNOWN ? 0 : length.steps;
}

static char *length_words(const struct spec *spec, const struct length *length)
{
	static const char *const by[LENGTH_WAYS] = {
		[LENGTH_GIVEN] = "as compile.max_steps says",
		[LENGTH_OVERRIDE] = "as compile.overrides say",
		[LENGTH_DEFAULT] = "the default of compile.max_steps",
		[LENGTH_OWN] = "as the training itself",
	};
	bool changes = spec_is_set(spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS) ||
		       spec_is_set(spec, SPEC_COMPILE_OVERRIDES_ENV);

	if (length->by == LENGTH_UNKNOWN)
		return mem_format("not known: no hyperparameter has a name that is known to count "
				  "steps%s; give compile.max_steps for a script that takes "
				  "--max_steps, or what yours takes in "
				  "compile.overrides.hyperparameters",
				  changes ? ", but compile.overrides may shorten it" : "");
	if (length->steps == 0)
		return mem_format("%s (--%s)", by[length->by], length->name);
	return mem_format("%lld step%s (--%s), %s", (long long)length->steps,
			  length->steps == 1 ? "" : "s", length->name, by[length->by]);
}

json_t *spec_length(const struct spec *spec)
{
	static const char *const by[LENGTH_WAYS] = {
		[LENGTH_UNKNOWN] = "unknown",
		[LENGTH_GIVEN] = "compile.max_steps",
		[LENGTH_OVERRIDE] = "compile.overrides",
		[LENGTH_DEFAULT] = "default",
		[LENGTH_OWN] = "hyperparameters",
	};
	struct length length = phase_one_length_of(spec);
	AUTO(auto_free) char *reason = length_words(spec, &length);
	json_t *ret = json_object();

	js_put_str(ret, "hyperparameter", length.name);
	if (length.steps > 0)
		js_put(ret, "steps", json_integer(length.steps));
	js_put_str(ret, "by", by[length.by]);
	js_put_str(ret, "reason", reason);
	return ret;
}

/* Reports two settings for one number. */
static void check_length(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const struct node *map = access_node_of_field(spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS);
	struct length length = phase_one_length_of(spec);
	const struct entry *same = length.by == LENGTH_GIVEN && map && map->kind == NODE_MAP
					   ? node_entry(map, length.name)
					   : NULL;
	AUTO(auto_free) char *field = NULL;

	if (!same || (same->value->kind == NODE_SCALAR && steps_of(same->value) == length.steps))
		return;
	field = mem_format("compile.overrides.hyperparameters.%s", length.name);
	problem_hint(
		problem_error(&binder->reporter, same->at, field,
			      "'%.80s' differs from 'compile.max_steps', which is short for it",
			      length.name),
		"keep one of the two");
}

/* ---- width ---------------------------------------------------------------------- */

/* Returns why the agent's option in front of the command would have no effect; NULL if it has
 * one. */
static const char *no_width(const struct spec *spec, const char **ret_hint)
{
	const char *kind = spec_str(spec, SPEC_COMPILE_KIND);

	*ret_hint = "remove compile.parallel, the number of graphs that neuron_parallel_compile "
		    "compiles at once";
	if (!kind || strcmp(kind, "none") == 0)
		return "with 'compile.kind: none' nothing is compiled ahead";
	if (strcmp(kind, "neuron") != 0)
		return "kind 'jax' compiles in the process that trains, one graph after the other";
	if (!spec_says(spec, SPEC_COMPILE_MODE, "aot"))
		return "with 'compile.mode: jit' nothing is compiled ahead";
	if (spec_has_front(spec)) {
		*ret_hint = "take neuron_parallel_compile out of 'command', where stoker puts it "
			    "for phase 1, or write " OPTION " N behind it there";
		return "'command' begins with neuron_parallel_compile, so that stoker does not "
		       "start it";
	}
	if (spec_has_toolkit(spec)) {
		*ret_hint = "use 'sagemaker.launcher: node', or take it out";
		return "with launcher 'toolkit' the image starts neuron_parallel_compile, and "
		       "reads "
		       "nothing but RUN_NEURON_PARALLEL_COMPILE";
	}
	return NULL;
}

static void check_width(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	const char *hint, *why = no_width(spec, &hint);
	int64_t vcpus = js_int(spec->instance, "vcpus", 0);
	int64_t workers = spec_int(spec, SPEC_COMPILE_PARALLEL);

	if (!spec_is_set(spec, SPEC_COMPILE_PARALLEL) || workers <= 0)
		return;
	if (why)
		problem_hint(spec_error(binder, SPEC_COMPILE_PARALLEL, NULL,
					"'compile.parallel' has no effect: %s", why),
			     "%s", hint);
	else if (vcpus > 0 && workers > vcpus)
		problem_hint(spec_lint(binder, SPEC_COMPILE_PARALLEL, NULL,
				       "%lld compilers at once on the %lld vCPUs of '%s'",
				       (long long)workers, (long long)vcpus,
				       js_str(spec->instance, "type")),
			     "use 'auto', or at most %lld; a compiler uses one vCPU",
			     (long long)vcpus);
}

/* Returns the number of compilers: one for each 64 GiB of the machine's memory, at least one, at
 * most one a vCPU. */
static int64_t width_of(const struct spec *spec)
{
	int64_t gib = js_int(spec->instance, "ram_mib", 0) >> 10;
	int64_t vcpus = js_int(spec->instance, "vcpus", 0);
	int64_t workers = gib / GIB_A_COMPILER;

	if (gib <= 0)
		return 0;
	if (vcpus > 0 && workers > vcpus)
		workers = vcpus;
	return workers > 0 ? workers : 1;
}

static char *width_words(const struct spec *spec, int64_t workers, bool given)
{
	const char *type = js_str(spec->instance, "type");
	long long gib = (long long)(js_int(spec->instance, "ram_mib", 0) >> 10);

	if (workers == 0)
		return mem_format("neuron_parallel_compile decides by the available memory: %s%s%s",
				  type ? "no catalogue knows that of '" : "", type ? type : "",
				  type ? "'" : "resources.instance is not given");
	if (given && gib > 0)
		return mem_format("compile.parallel says so; '%s' has %lld GiB of memory for them",
				  type, gib);
	if (given)
		return mem_copy("compile.parallel says so");
	return mem_format("1 for each %d GiB of memory of '%s', which has %lld GiB", GIB_A_COMPILER,
			  type, gib);
}

json_t *spec_width(const struct spec *spec)
{
	int64_t given = spec_int(spec, SPEC_COMPILE_PARALLEL);
	int64_t workers = given > 0 ? given : width_of(spec);
	AUTO(auto_free) char *reason = NULL;
	const char *hint;
	json_t *ret;

	if (no_width(spec, &hint))
		return NULL;
	ret = json_object();
	reason = width_words(spec, workers, given > 0);
	if (workers > 0)
		js_put(ret, "workers", json_integer(workers));
	js_put_str(ret, "option", OPTION);
	js_put_str(ret, "by", given > 0 ? "compile.parallel" : workers > 0 ? "auto" : "front end");
	js_put_str(ret, "reason", reason);
	return ret;
}

void phase_one_check(struct binder *binder)
{
	check_length(binder);
	check_width(binder);
}
