/* run, retrain: start a run from a spec, driven here or in the background. */
#include "cmd/cmd.h"
#include "cmd/follow/start.h"

int cmd_run(const struct args *args, struct err **err)
{
	const struct start_how how = { 0 };

	return args->given[OPT_DRY_RUN] ? cmd_plan(args, err) : start_run(args, &how, NULL, err);
}

int cmd_retrain(const struct args *args, struct err **err)
{
	const struct start_how how = { .retrain = true };

	return start_run(args, &how, NULL, err);
}
