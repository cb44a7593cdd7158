/* The one table of exit codes: see exitcode.h. */
#include "jobs/base/exitcode.h"

#include "jobs/base/auto.h"

const struct exit_row exitcode_rows[] = {
	{ EXIT_DONE, "done", "done as asked" },
	{ EXIT_RUN_FAILED, "failed",
	  "diff: they differ; else the run failed for good: user code, configuration found at run "
	  "time, data, compile error, budget used up" },
	{ EXIT_USAGE, "usage", "wrong usage of the command line" },
	{ EXIT_SPEC, "spec", "the spec is invalid, or the id belongs to another plan" },
	{ EXIT_REFUSED, "refused",
	  "the environment refused: credentials, permission, quota, missing bucket, image, queue "
	  "or tool" },
	{ EXIT_GATE, "gate",
	  "a gate failed: cache never complete, evaluation below the baseline, deadline, queue, "
	  "start or cost limit reached" },
	{ EXIT_STOPPED, "stopped", "stopped on request" },
	{ EXIT_BUSY, "busy", "another driver has this run" },
	{ EXIT_DETACHED, "detached", "an interrupt detached stoker; the run goes on" },
	{ EXIT_NOT_FOUND, "absent", "not found: no such run" },
	{ EXIT_DEFECT, "defect", "a defect in stoker itself" },
	{ EXIT_UNREACHABLE, "unreachable",
	  "a service could not be reached for limits.unreachable; the run is safe, resume it" },
};
const size_t exitcode_row_count = STK_LENGTH(exitcode_rows);

const struct exit_row *exitcode_row_find(int code)
{
	for (size_t i = 0; i < exitcode_row_count; i++)
		if ((int)exitcode_rows[i].code == code)
			return &exitcode_rows[i];
	return NULL;
}
