/*
 * The fake engine. It keeps to what engines promise and to nothing more: a
 * submission may be accepted without a word, listings may lag, and it may not
 * be there for hours. It never says "ended" or "certainly not there" in error.
 */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

bool engine_unseen(const struct world *w)
{
	return w->now < w->unseen_until;
}

static bool is_named(const struct job *job, const char *name)
{
	return strcmp(job->name, name) == 0;
}

static bool has(const struct world *w, const char *name)
{
	for (int i = 0; i < w->job_count; i++)
		if (is_named(&w->jobs[i], name))
			return true;
	return false;
}

static enum failure_class some_refusal(struct world *w)
{
	static const enum failure_class likely[] = { CLASS_QUOTA_PERMISSION, CLASS_USER_CONFIG,
						     CLASS_CAPACITY, CLASS_TRANSIENT_INFRA };

	return likely[rng_below(&w->rng, 4)];
}

static void note_submit(struct world *w, const struct effect *effect)
{
	struct submit *s;

	if (w->submit_count == SUBMITS_MAX)
		return;
	s = &w->submits[w->submit_count++];
	memset(s, 0, sizeof *s);
	snprintf(s->name, sizeof s->name, "%s", effect->job);
	s->phase = effect->phase;
	s->attempt = effect->attempt;
	s->seq = w->count;
}

static void put_up_with(struct job *job, const struct effect *effect)
{
	job->tolerates = job->other_compiler && effect->tolerated &&
			 strcmp(job->other_compiler, effect->tolerated) == 0;
}

enum submit_result engine_submit(struct world *w, const struct effect *effect,
				 enum failure_class *ret_class)
{
	const struct checkpoint *resumed =
		effect->resumed_from ? checkpoint_find(w, effect->resumed_from) : NULL;
	struct job *job, *twin = NULL;

	note_submit(w, effect);
	/* Not reached: it may have been, for all the caller knows. */
	if (engine_unseen(w) || strikes(w, FAULT_SUBMIT_REQUEST_LOST))
		return SUBMIT_UNKNOWN;
	if (w->engine_dedupes && has(w, effect->job))
		return SUBMIT_DONE;
	if (strikes(w, FAULT_SUBMIT_REFUSED)) {
		*ret_class = some_refusal(w);
		w->submits[w->submit_count - 1].refused = true;
		return SUBMIT_REFUSED;
	}
	job = job_new(w, effect->job, effect->phase, effect->attempt, resumed);
	if (!job)
		return SUBMIT_UNKNOWN;
	put_up_with(job, effect);
	TRACE(w, "engine", "accepts %s as job %d", effect->job, w->job_count - 1);
	if (w->drought_left > 0)
		w->drought_left--, job->dry = true;
	if (!w->engine_dedupes && strikes(w, FAULT_SUBMIT_DOUBLED)) {
		twin = job_new(w, effect->job, effect->phase, effect->attempt, resumed);
		put_up_with(twin, effect);
		TRACE(w, "engine", "accepts %s again as job %d", effect->job, w->job_count - 1);
	}
	if (strikes(w, FAULT_SUBMIT_LATE)) {
		job->visible_at = w->now + some_time(w, 60 * SECOND);
		if (twin)
			twin->visible_at = job->visible_at;
		return SUBMIT_UNKNOWN;
	}
	return strikes(w, FAULT_SUBMIT_REPLY_LOST) ? SUBMIT_UNKNOWN : SUBMIT_DONE;
}

int engine_find(struct world *w, const char *name)
{
	bool late = false;

	if (engine_unseen(w))
		return -1;
	for (int i = 0; i < w->job_count; i++) {
		if (!is_named(&w->jobs[i], name))
			continue;
		if (w->jobs[i].visible_at <= w->now)
			return 1;
		late = true;
	}
	/* "Certainly not" only after its listings have had time to catch up. */
	return late ? -1 : 0;
}

void engine_stop(struct world *w, const char *name)
{
	if (engine_unseen(w) || strikes(w, FAULT_STOP_LOST))
		return;
	for (int i = 0; i < w->job_count; i++)
		if (is_named(&w->jobs[i], name) && w->jobs[i].visible_at <= w->now)
			w->jobs[i].stop_asked = true;
}

/* By a file in the workspace: the engine has no part in it. */
void engine_drain(struct world *w, const char *name)
{
	for (int i = 0; i < w->job_count; i++)
		if (is_named(&w->jobs[i], name))
			w->jobs[i].drain_asked = true;
}

/* Of several jobs of one name, the one with the claim counts. */
static bool counts_more(const struct job *a, const struct job *b)
{
	return !b || (!b->ever_held && a->ever_held);
}

/* Time and again it does not answer, and it is there for everything else. */
static bool is_silent(struct world *w)
{
	if (w->silent_left == 0 && strikes(w, FAULT_DESCRIBE_SILENT))
		w->silent_left = SILENT_ROW;
	if (w->calm)
		w->silent_left = 0;
	if (w->silent_left == 0)
		return false;
	w->silent_row++;
	w->silent_left--;
	return true;
}

void engine_describe(struct world *w, const char *name, struct sight *ret)
{
	*ret = (struct sight){ .ended = true };
	if (engine_unseen(w) || is_silent(w))
		return;
	if (w->silent_row >= SILENT_ROW)
		counts.silences++;
	w->silent_row = 0;
	for (int i = 0; i < w->job_count; i++) {
		struct job *job = &w->jobs[i];

		if (!is_named(job, name) || job->visible_at > w->now)
			continue;
		ret->ended &= job->end_seen_at <= w->now;
		/* "Not mine" says nothing about the attempt: another has the claim. */
		if (job->lost_claim)
			continue;
		ret->seen = true;
		ret->claimed |= job->ever_held;
		if (counts_more(job, ret->job))
			ret->job = job;
	}
	ret->ended &= ret->seen;
	if (ret->ended)
		ret->class = ret->job->class;
}
