/*
 * The stages of a run after its training: which it has, by its plan and by what it was given, and
 * the tasks of each.
 */
#ifndef STK_RUN_PLAN_STAGE_H
#define STK_RUN_PLAN_STAGE_H

#include "jobs/base/text/js.h"
#include "jobs/flow/flow.h"

/* Fills `stages`, `gate_advises` and `generation` of a policy. `inputs`: what the run was given
 * (plan.h); NULL: nothing. */
void stage_policy(const json_t *plan, const json_t *inputs, struct flow_policy *policy);

/* A task by its name. */
struct stage_task {
	int64_t index;    /* among the tasks of its phase, from 0 */
	const char *role; /* evaluate: candidate or baseline; NULL: a shard */
	int64_t repeat;   /* evaluate: from 1 */
};

/* False if the phase has no task of that name. */
bool stage_task_find(enum phase phase, const struct flow_policy *policy, const char *name,
		     struct stage_task *ret);

/* Returns "runs/<run>/tasks/<phase>/", beneath which a task has a folder of its name. The caller
 * frees it. */
char *stage_results(const char *run, enum phase phase);

#endif
