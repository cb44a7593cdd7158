/* The table of phases: see phase.h. */
#include "jobs/flow/phase.h"

const struct phase_row flow_phases[PHASE_COUNT] = {
	[PHASE_PRECOMPILE] = { .has_jobs = true,
			       .is_trial = true,
			       .check_up = CHECK_UP_BRIEF,
			       .progress = "a new checkpoint" },
	[PHASE_VERIFY] = { .progress = "a new checkpoint" },
	[PHASE_TRAIN] = { .has_jobs = true,
			  .resumes = true,
			  .drains = true,
			  .reads_steps = true,
			  .counts_late = true,
			  .check_up = CHECK_UP_FULL,
			  .progress = "a new checkpoint" },
	[PHASE_EVALUATE] = { .has_jobs = true,
			     .has_tasks = true,
			     .counts_late = true,
			     .check_up = CHECK_UP_FULL,
			     .progress = "a task done" },
	[PHASE_GATE] = { .progress = "a new checkpoint" },
	[PHASE_INFER] = { .has_jobs = true,
			  .has_tasks = true,
			  .counts_late = true,
			  .check_up = CHECK_UP_FULL,
			  .progress = "a task done" },
	[PHASE_PROMOTE] = { .progress = "a new checkpoint" },
};
