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

/* A debug run trains otherwise than the model that is to be judged. */
static void check_judged(struct binder *binder)
{
	static const enum spec_field judging[] = { SPEC_GATE, SPEC_EVALUATE_METRIC, SPEC_PROMOTE };

	for (size_t i = 0; i < STK_LENGTH(judging); i++)
		if (spec_is_set(binder->spec, judging[i])) {
			problem_hint(spec_error(binder, SPEC_DEBUG, NULL,
						"a debug run passes no gate and is never promoted"),
				     "remove 'debug', or '%s'", field_table[judging[i]].path);
			return;
		}
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
	if (debug)
		check_judged(binder);
	if (benchmark && spec_says(spec, SPEC_CHECKPOINT_SYNC, "engine"))
		problem_hint(spec_lint(binder, SPEC_CHECKPOINT_SYNC, NULL,
				       "the service copies checkpoints beside the steps that "
				       "'benchmark' measures"),
			     "leave out 'checkpoint.url', or save seldom");
	if (benchmark && spec_says(spec, SPEC_ENGINE, "sagemaker")) {
		check_tool(binder, SPEC_SAGEMAKER_PROFILER);
		check_tool(binder, SPEC_SAGEMAKER_REMOTE_DEBUG);
	}
}
