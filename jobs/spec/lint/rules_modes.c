/* Rules of `benchmark` and `debug`: settings that contradict them. */
#include "jobs/spec/resolved.h"

/* A service's tool that the user asks for beside a benchmark, in which it would be measured, too.
 */
static void check_tool(struct binder *binder, enum spec_field field)
{
	const struct spec *spec = binder->spec;

	if (spec_is_set(spec, field) && spec_bool(spec, field))
		problem_hint(spec_error(binder, field, NULL,
					"'%s' works beside the steps that 'benchmark' measures",
					field_table[field].path),
			     "remove it, or 'benchmark'");
}

void rules_modes(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	bool benchmark = spec_bool(spec, SPEC_BENCHMARK), debug = spec_bool(spec, SPEC_DEBUG);

	if (benchmark && debug)
		problem_hint(spec_error(binder, SPEC_DEBUG, NULL,
					"'debug' and 'benchmark' exclude each other: a debug run's "
					"times mean nothing"),
			     "set one of them");
	if (debug && spec_is_set(spec, SPEC_SWEEP))
		problem_hint(spec_error(binder, SPEC_DEBUG, NULL,
					"a sweep compares its runs, and a debug run is in no "
					"comparison"),
			     "remove 'debug', or 'sweep'");
	if (benchmark && spec_says(spec, SPEC_ENGINE, "sagemaker")) {
		check_tool(binder, SPEC_SAGEMAKER_PROFILER);
		check_tool(binder, SPEC_SAGEMAKER_REMOTE_DEBUG);
	}
}
