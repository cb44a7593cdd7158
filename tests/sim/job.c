/*
 * What runs on the engine: a node agent with its command. It claims its phase
 * before anything else, looks at the claim again while it works and before it
 * marks a checkpoint, and ends as "not mine" where the claim is another's.
 */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

bool job_alive(const struct job *job)
{
	return job->state != JOB_OVER;
}

static int id_of(const struct world *w, const struct job *job)
{
	return (int)(job - w->jobs);
}

static bool holds(const struct world *w, const struct job *job)
{
	const struct claim *claim = &w->claims[job->phase];

	return claim->taken && claim->job == id_of(w, job) && claim->restart == job->restart;
}

bool job_effective(const struct world *w, const struct job *job)
{
	return job->state == JOB_RUNNING && holds(w, job);
}

struct job *job_new(struct world *w, const char *name, enum phase phase, int64_t attempt,
		    const struct checkpoint *resumed)
{
	int64_t resumed_step = resumed ? resumed->step : -1;
	struct job *job;

	if (w->job_count == JOBS_MAX)
		return NULL;
	job = &w->jobs[w->job_count++];
	memset(job, 0, sizeof *job);
	snprintf(job->name, sizeof job->name, "%s", name);
	job->phase = phase;
	job->attempt = attempt;
	job->visible_at = w->now;
	job->next_at = w->now + some_time(w, w->job_pace);
	job->end_seen_at = NEVER;
	job->saving = -1;
	job->first_step = -1;
	job->resumed_step = resumed_step;
	job->resumed_damaged = resumed && resumed->damaged_at <= w->now;
	job->step = resumed_step > 0 && !strikes(w, FAULT_CHECKPOINT_IGNORED) ? resumed_step : 0;
	job->drain_ignored = strikes(w, FAULT_DRAIN_IGNORED);
	job->never_starts = strikes(w, FAULT_START_HANGS);
	if (strikes(w, FAULT_QUEUE_LONG))
		job->next_at = w->now + 30 * w->job_pace;
	if (phase == PHASE_TRAIN && w->policy.compiles && strikes(w, FAULT_OTHER_COMPILER))
		job->other_compiler = rng_below(&w->rng, 2) ? "compiler/a" : "compiler/b";
	job->goal = phase == PHASE_TRAIN ? w->goal : 6 + rng_below(&w->rng, 10);
	return job;
}

/* Two failures of one cause have the same, and now and then it cannot be told. */
static const char *some_signature(struct world *w, enum failure_class class)
{
	static const char *const causes[] = { NULL, "first", "second", "third", "fourth", "fifth" };

	int64_t pick = rng_below(&w->rng, 12); /* half of them are the first */

	return class == CLASS_NONE ? NULL : causes[pick < 6 ? pick : 1];
}

static void end(struct world *w, struct job *job, enum failure_class class)
{
	job->over_at = w->now;
	job->state = JOB_OVER;
	job->saving = -1;
	TRACE(w, job->name, "job %d is over: %s%s", id_of(w, job),
	      job->lost_claim ? "not mine, " : "", flow_class_names[class]);
	if (job->orphan) /* the engine has said something else long ago */
		return;
	job->class = class;
	job->signature = some_signature(w, class);
	job->end_seen_at = w->now;
	if (strikes(w, FAULT_END_LATE))
		job->end_seen_at += some_time(w, 600 * SECOND);
}

static void end_as_not_mine(struct world *w, struct job *job)
{
	job->lost_claim = true;
	counts.doubled++;
	end(w, job, CLASS_UNKNOWN);
}

/* Created only if absent; superseded only by a higher attempt, or by a higher
 * restart of the same job. */
static bool claim(struct world *w, const struct job *job)
{
	struct claim *c = &w->claims[job->phase];
	int id = id_of(w, job);

	if (c->taken && c->attempt >= job->attempt && !(c->job == id && c->restart <= job->restart))
		return false;
	*c = (struct claim){ true, id, job->restart, job->attempt };
	return true;
}

static void start(struct world *w, struct job *job)
{
	job->state = JOB_RUNNING;
	if (claim(w, job)) {
		job->ever_held = true;
		if (job->claimed_at == 0)
			job->claimed_at = w->now;
		TRACE(w, job->name, "job %d claims %s", id_of(w, job),
		      flow_phase_names[job->phase]);
	} else if (w->plant && w->plant->claims_ignored) {
		job->ran_without_claim = true;
	} else {
		end_as_not_mine(w, job);
	}
}

static enum failure_class some_class(struct world *w)
{
	static const enum failure_class likely[] = {
		CLASS_TRANSIENT_INFRA,
		CLASS_TRANSIENT_INFRA,
		CLASS_TRANSIENT_INFRA,
		CLASS_HARDWARE_NODE,
		CLASS_HARDWARE_NODE,
		CLASS_COMM,
		CLASS_COMM,
		CLASS_TIMEOUT_HANG,
		CLASS_TIMEOUT_HANG,
		CLASS_UNKNOWN,
		CLASS_UNKNOWN,
		CLASS_UNKNOWN,
		CLASS_DATA,
		CLASS_DATA,
		CLASS_COMPILE,
		CLASS_USER_CODE,
		CLASS_USER_CONFIG,
		CLASS_QUOTA_PERMISSION,
	};

	return likely[rng_below(&w->rng, sizeof likely / sizeof likely[0])];
}

static int save(struct world *w, const struct job *job)
{
	struct checkpoint *c;

	if (w->checkpoint_count == CHECKPOINTS_MAX)
		return -1;
	c = &w->checkpoints[w->checkpoint_count];
	memset(c, 0, sizeof *c);
	/* A drain may save the same step again. */
	snprintf(c->url, sizeof c->url, "ckpt/%s/%d/%d/%d", flow_phase_names[job->phase],
		 id_of(w, job), (int)job->step, w->checkpoint_count);
	c->phase = job->phase;
	c->attempt = job->attempt;
	c->step = job->step;
	c->damaged_at = NEVER;
	return w->checkpoint_count++;
}

static void mark(struct world *w, struct job *job)
{
	struct checkpoint *c = &w->checkpoints[job->saving];

	if (strikes(w, FAULT_CHECKPOINT_PARTIAL)) {
		end(w, job, some_class(w));
		return;
	}
	job->saving = -1;
	if (!holds(w, job) && !(w->plant && w->plant->claims_ignored)) {
		end_as_not_mine(w, job);
		return;
	}
	/* What phase 1 saves are zeros: never marked. */
	if (c->phase != PHASE_TRAIN)
		return;
	c->complete = true;
	c->marked_at = w->now;
	if (!holds(w, job))
		w->unclaimed_mark = c->url;
	TRACE(w, job->name, "job %d marks the checkpoint of step %d", id_of(w, job), (int)c->step);
	if (job->drain_asked && !job->drain_ignored) {
		counts.drained++;
		end(w, job, CLASS_STOPPED);
	}
}

/* True if something happened that ended it, or sent it back. */
static bool suffers(struct world *w, struct job *job)
{
	if (job->orphan)
		return false;
	if (strikes(w, FAULT_JOB_FAILS)) {
		end(w, job, some_class(w));
	} else if (strikes(w, FAULT_SPOT)) {
		end(w, job, CLASS_SPOT);
	} else if (strikes(w, FAULT_CANCELLED)) {
		end(w, job, CLASS_STOPPED);
	} else if (strikes(w, FAULT_ENGINE_RESTART)) {
		job->restart++;
		job->state = JOB_STARTING;
		job->saving = -1;
		job->never_starts = false;
		TRACE(w, job->name, "job %d is restarted by the engine", id_of(w, job));
	} else if (strikes(w, FAULT_ORPHAN)) {
		job->orphan = true;
		job->class = CLASS_HARDWARE_NODE;
		job->end_seen_at = w->now;
		TRACE(w, job->name, "job %d is reported as ended, but lives", id_of(w, job));
	} else {
		return false;
	}
	return true;
}

static void finish(struct world *w, struct job *job)
{
	enum failure_class class = CLASS_NONE;

	if (job->phase == PHASE_PRECOMPILE && strikes(w, FAULT_CACHE_INCOMPLETE)) {
		TRACE(w, job->name, "job %d leaves the cache incomplete", id_of(w, job));
	} else if (job->phase == PHASE_PRECOMPILE) {
		if (!w->cache_whole)
			w->whole_at = w->now;
		w->cache_whole = true;
		if (strikes(w, FAULT_EXIT_LIES))
			class = CLASS_COMPILE;
	}
	end(w, job, class);
}

static void work(struct world *w, struct job *job)
{
	/* Heartbeats look at the claim, but not at every moment. */
	if (!holds(w, job) && !job->ran_without_claim && rng_below(&w->rng, 2) == 0) {
		end_as_not_mine(w, job);
		return;
	}
	if (job->stop_asked && !job->orphan) {
		bool done_anyway = rng_below(&w->rng, 16) == 0;

		if (done_anyway)
			finish(w, job);
		else
			end(w, job, CLASS_STOPPED);
		return;
	}
	if (job->saving >= 0) {
		mark(w, job);
		return;
	}
	if (job->phase == PHASE_PRECOMPILE)
		key_renew(w);
	if (suffers(w, job) || (job->never_starts && !job->orphan && !w->calm))
		return;
	if (!job->started && job->other_compiler && !job->tolerates) {
		end(w, job, CLASS_COMPILE);
		if (!job->orphan)
			job->signature = job->other_compiler;
		return;
	}
	if (!job->started) {
		job->started = true;
		job->started_at = w->now;
		if (job->resumed_damaged) {
			end(w, job, CLASS_DATA);
			return;
		}
	}
	if (job->drain_asked && !job->drain_ignored && job->phase == PHASE_TRAIN) {
		job->saving = save(w, job);
		return;
	}
	job->step += 1 + rng_below(&w->rng, 1 + job->goal / 8);
	if (job->first_step < 0)
		job->first_step = job->step;
	job->stepped_at = w->now;
	job->graphs++;
	job->has_news = true;
	if (job->phase == PHASE_TRAIN && rng_below(&w->rng, w->cache_whole ? 24 : 4) == 0)
		job->late++;
	if (rng_below(&w->rng, 3) == 0)
		job->saving = save(w, job);
	else if (job->step >= job->goal)
		finish(w, job);
}

/* SageMaker fails such a job, Batch lets it wait. */
static void wait_for_machine(struct world *w, struct job *job)
{
	if (!job->dry && w->drought_waits)
		return;
	w->capacity_ends++;
	end(w, job, CLASS_CAPACITY);
}

static void provide(struct world *w, struct job *job)
{
	job->state = JOB_STARTING;
	if (w->capacity_ends >= DRY_SUBMITS)
		counts.dry++;
	w->capacity_ends = 0;
	if (w->drought_until > 0 && !w->calm)
		counts.dry_hours++;
	w->drought_until = 0;
}

void job_act(struct world *w, struct job *job)
{
	job->next_at = w->now + some_time(w, w->job_pace);
	switch (job->state) {
	case JOB_QUEUED:
		if (job->stop_asked)
			end(w, job, CLASS_STOPPED);
		else if (job->dry || w->now < w->drought_until)
			wait_for_machine(w, job);
		else if (strikes(w, FAULT_CAPACITY))
			end(w, job, CLASS_CAPACITY);
		else
			provide(w, job);
		break;
	case JOB_STARTING:
		if (job->stop_asked)
			end(w, job, CLASS_STOPPED);
		else
			start(w, job);
		break;
	case JOB_RUNNING:
		work(w, job);
		break;
	case JOB_OVER:
		break;
	}
}
