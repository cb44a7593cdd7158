/*
 * The engines of a run. A stage may have a queue, an image and machines of its own: then its jobs
 * have an engine of their own, opened for the plan as they see it. All other phases share one,
 * but phase 1 has that of the stage whose graphs it compiles.
 */
#include "jobs/run/driver_internal.h"

/* Returns the phase whose engine the jobs of `phase` have: phase 1 that of the stage at hand. */
static enum phase engine_phase(const struct driver *driver, enum phase phase)
{
	enum phase served = flow_served(&driver->flow, phase);
	const json_t *section = json_object_get(driver->plan, flow_phase_names[served]);

	return json_object_get(section, "job") ? served : PHASE_TRAIN;
}

const json_t *job_engine_plan(struct driver *driver, enum phase phase)
{
	enum phase at = engine_phase(driver, phase);

	if (at == PHASE_TRAIN)
		return driver->plan;
	if (!driver->job_plans[at])
		driver->job_plans[at] = plan_of_phase(driver->plan, at);
	return driver->job_plans[at];
}

const json_t *job_engine_cache_plan(struct driver *driver)
{
	return job_engine_plan(driver, driver->flow.stage);
}

/* An engine that was set by other hands is the training's. */
static void adopt_engine(struct driver *driver)
{
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		if (driver->engines[phase] == driver->engine)
			return;
	driver->engines[PHASE_TRAIN] = driver->engine;
}

int job_engine_enter(struct driver *driver, enum phase phase, struct err **err)
{
	enum phase at = engine_phase(driver, phase);

	adopt_engine(driver);
	if (!driver->engines[at]) {
		const struct engine_ops *ops = engine_find(js_str(driver->plan, "engine"));
		struct engine_where where = { .workspace = js_str(driver->plan, "workspace") };

		where.plan = job_engine_plan(driver, at);
		if (ops->open(&where, &driver->engines[at], err) < 0)
			return -1;
	}
	driver->engine = driver->engines[at];
	return 0;
}

bool job_engine_is_own(const struct driver *driver, enum phase phase)
{
	return phase != PHASE_TRAIN && engine_phase(driver, phase) == phase;
}

static void close_engine(struct driver *driver, enum phase phase)
{
	struct engine **engine = &driver->engines[phase];

	if (*engine)
		(*engine)->ops->close(*engine);
	*engine = NULL;
	json_decref(driver->job_plans[phase]);
	driver->job_plans[phase] = NULL;
}

void job_engine_forget_stages(struct driver *driver)
{
	adopt_engine(driver);
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		if (phase != PHASE_TRAIN)
			close_engine(driver, phase);
	driver->engine = driver->engines[PHASE_TRAIN];
}

void job_engine_close_all(struct driver *driver)
{
	adopt_engine(driver);
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		close_engine(driver, phase);
}
