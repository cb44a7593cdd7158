/*
 * The rules that hold under any schedule of faults, each one function that
 * begins with the rule's own words. They look at what happened since they
 * looked last, after every single step, and know nothing of how the machine
 * decides.
 */
#include "tests/sim/sim.h"
#include "tests/support/flow_names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void broken(struct world *w, int rule, const char *fmt, ...)
{
	va_list args;

	if (w->broken != 0)
		return;
	w->broken = rule;
	va_start(args, fmt);
	vsnprintf(w->why, sizeof w->why, fmt, args);
	va_end(args);
}

static bool is_ended(const struct world *w, const struct job *job)
{
	return job->end_seen_at <= w->now;
}

/* A job of that phase and attempt. */
static bool is_of(const struct job *job, enum phase phase, int64_t attempt)
{
	return job->phase == phase && job->attempt == attempt;
}

/* The last submission of that attempt before `seq` events were written. */
static const struct submit *submit_before(const struct world *w, enum phase phase, int64_t attempt,
					  int64_t seq)
{
	for (int i = w->submit_count - 1; i >= 0; i--)
		if (w->submits[i].phase == phase && w->submits[i].attempt == attempt &&
		    w->submits[i].seq < seq)
			return &w->submits[i];
	return NULL;
}

/* What the engine knows of an attempt's end. */
static bool has_evidence(const struct world *w, const struct event *ev)
{
	const struct submit *s = submit_before(w, ev->phase, ev->attempt, ev->seq);
	bool any = false, like_it = false;

	for (int i = 0; i < w->job_count; i++) {
		if (!is_of(&w->jobs[i], ev->phase, ev->attempt))
			continue;
		if (!is_ended(w, &w->jobs[i]))
			return false;
		any = true;
		like_it |= w->jobs[i].class == ev->class;
	}
	return any ? like_it : s && s->refused && ev->class != CLASS_NONE;
}

/* A claim is superseded by a higher attempt, or by a higher restart of the same job,
 * and by nothing else: no driver touches it. */
static void check_claims(struct world *w)
{
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		const struct claim *was = &w->claims_checked[phase], *is = &w->claims[phase];
		bool same_job = is->job == was->job && is->attempt == was->attempt;

		if (was->taken && !(is->taken && (is->attempt > was->attempt ||
						  (same_job && is->restart >= was->restart))))
			broken(w, 1, "the claim of %s was taken from job %d, which is healthy",
			       flow_phase_names[phase], was->job);
	}
	memcpy(w->claims_checked, w->claims, sizeof w->claims);
}

/* Who has been superseded writes nothing more. */
static void check_writers(struct world *w)
{
	for (int64_t s = w->checked; s < w->count; s++) {
		if (w->events[s].kind == EV_DRIVER_TOOK_OVER)
			w->epoch_checked = w->events[s].epoch;
		else if (w->writer[s] >= 0 && w->writer[s] < w->epoch_checked)
			broken(w, 1, "driver epoch %d wrote event %d although %d had taken over",
			       (int)w->writer[s], (int)s + 1, (int)w->epoch_checked);
	}
}

/* 1. At most one attempt of a phase is effective, that is, holds the claim,
 * across drivers and machines. An attempt that the engine has not reported ended
 * is never replaced. */
static void rule1(struct world *w)
{
	int effective[PHASE_COUNT] = { 0 };

	for (int i = 0; i < w->job_count; i++) {
		const struct job *job = &w->jobs[i];

		if (job->ran_without_claim && job_alive(job))
			broken(w, 1, "job %d runs and has never held the claim", i);
		if (job_effective(w, job) && ++effective[job->phase] > 1)
			broken(w, 1, "two jobs of %s are effective", flow_phase_names[job->phase]);
	}
	for (int64_t s = w->checked; s < w->count; s++) {
		const struct event *ev = &w->events[s];

		if (ev->kind != EV_ATTEMPT_INTENDED)
			continue;
		for (int i = 0; i < w->job_count; i++)
			if (!is_of(&w->jobs[i], ev->phase, ev->attempt) &&
			    !is_ended(w, &w->jobs[i]))
				broken(w, 1, "%s %d is intended while job %d (%s) is under way",
				       flow_phase_names[ev->phase], (int)ev->attempt, i,
				       w->jobs[i].name);
		if (ev->attempt > 1 &&
		    journal_find(w, EV_ATTEMPT_ENDED, ev->phase, ev->attempt - 1, s) == 0)
			broken(w, 1, "%s %d is intended and the one before has not ended",
			       flow_phase_names[ev->phase], (int)ev->attempt);
	}
	check_claims(w);
	check_writers(w);
	if (w->unclaimed_mark)
		broken(w, 1, "%s was marked without the claim", w->unclaimed_mark);
}

/* 2. Every engine job belongs to a journalled intent; one found without an
 * outcome is adopted or stopped, never doubled, never lost. */
static void rule2(struct world *w)
{
	for (int i = w->submits_checked; i < w->submit_count; i++) {
		const struct submit *s = &w->submits[i];
		int64_t intended =
			journal_find(w, EV_ATTEMPT_INTENDED, s->phase, s->attempt, s->seq);
		int64_t missing = journal_find(w, EV_ATTEMPT_MISSING, s->phase, s->attempt, s->seq);

		if (intended == 0 || strcmp(w->events[intended - 1].job, s->name) != 0)
			broken(w, 2, "%s is submitted without an intent", s->name);
		else if (journal_find(w, EV_ATTEMPT_SUBMITTED, s->phase, s->attempt, s->seq) >
				 missing ||
			 journal_find(w, EV_ATTEMPT_UNCERTAIN, s->phase, s->attempt, s->seq) >
				 missing)
			broken(w, 2, "%s is submitted again and was not missing", s->name);
	}
	for (int64_t s = w->checked; s < w->count; s++) {
		if (w->events[s].kind != EV_RUN_ENDED)
			continue;
		for (int i = 0; i < w->job_count; i++)
			if (!is_ended(w, &w->jobs[i]))
				broken(w, 2, "the run ended and job %d (%s) is lost", i,
				       w->jobs[i].name);
	}
}

bool is_refused(const struct world *w, const struct event *ev)
{
	/* News that is told again is none. */
	return ev->kind == EV_ATTEMPT_ENDED && EVENT_HAS(ev, changed) &&
	       journal_find(w, EV_ATTEMPT_ENDED, ev->phase, ev->attempt, ev->seq - 1) == 0;
}

/* Is the cache proved at this place of the journal? */
static bool is_proved(const struct world *w, int64_t seq)
{
	for (int64_t i = seq; i > 0; i--) {
		const struct event *ev = &w->events[i - 1];

		if (ev->kind == EV_CACHE_VERIFIED && ev->complete)
			return true;
		if (ev->kind == EV_JIT_EXCEEDED && ev->on_exceed == JIT_RECOMPILE)
			return false;
		if (is_refused(w, ev))
			return false;
		if (ev->kind == EV_CACHE_CHECKED)
			return ev->verdict == CACHE_WARM;
	}
	return false;
}

/* 3. Training starts only on a cache verified complete for its graph key, or
 * without a compile phase, or where the spec says `on_incomplete: train`. */
static void rule3(struct world *w)
{
	if (!w->policy.compiles || w->policy.train_on_incomplete)
		return;
	for (int64_t s = w->checked; s < w->count; s++)
		if (w->events[s].kind == EV_ATTEMPT_INTENDED && w->events[s].phase == PHASE_TRAIN &&
		    !(is_proved(w, s) && w->cache_whole))
			broken(w, 3, "training is intended and the cache is not proved");
	for (int i = w->submits_checked; i < w->submit_count; i++)
		if (w->submits[i].phase == PHASE_TRAIN && !is_proved(w, w->submits[i].seq))
			broken(w, 3, "training is submitted and the cache is not proved");
}

const struct checkpoint *checkpoint_find(const struct world *w, const char *url)
{
	for (int i = 0; i < w->checkpoint_count; i++)
		if (strcmp(w->checkpoints[i].url, url) == 0)
			return &w->checkpoints[i];
	return NULL;
}

/* Of what was there when the driver looked, the newest that may be trusted. */
static void check_choice(struct world *w, const struct event *ev)
{
	int64_t below = trusted_below(w, ev->seq), newest = -1;
	const struct checkpoint *c = NULL;

	for (int i = 0; i < w->checkpoint_count; i++) {
		c = &w->checkpoints[i];
		if (c->complete && c->marked_at <= w->chose_at && c->damaged_at > w->chose_at &&
		    c->phase == PHASE_TRAIN && c->step < below && c->step > newest)
			newest = c->step;
	}
	c = EVENT_HAS(ev, url) ? checkpoint_find(w, ev->url) : NULL;
	if (!EVENT_HAS(ev, url) && newest >= 0)
		broken(w, 4, "nothing is chosen, although step %d is complete", (int)newest);
	else if (EVENT_HAS(ev, url) &&
		 (!c || !c->complete || c->phase != PHASE_TRAIN || c->damaged_at <= w->chose_at))
		broken(w, 4, "%s is chosen, which is not a complete checkpoint", ev->url);
	else if (EVENT_HAS(ev, url) && (c->step != ev->step || ev->step != newest))
		broken(w, 4, "%s is chosen and not step %d", ev->url, (int)newest);
}

/* It goes on from what was chosen since the attempt before it was intended. */
static void check_resume(struct world *w, const struct event *ev)
{
	int64_t before =
		journal_find(w, EV_ATTEMPT_INTENDED, PHASE_TRAIN, ev->attempt - 1, ev->seq - 1);
	const struct event *chosen = NULL;

	for (int64_t i = ev->seq - 1; i > before && !chosen; i--)
		if (w->events[i - 1].kind == EV_CHECKPOINT_CHOSEN)
			chosen = &w->events[i - 1];
	if (ev->attempt == 1) {
		if (EVENT_HAS(ev, resumed_from))
			broken(w, 4, "the first training resumes from %s", ev->resumed_from);
	} else if (!chosen) {
		broken(w, 4, "train %d begins and no checkpoint was chosen", (int)ev->attempt);
	} else if (EVENT_HAS(chosen, url) != EVENT_HAS(ev, resumed_from)) {
		broken(w, 4, "train %d does not begin with what was chosen", (int)ev->attempt);
	} else if (EVENT_HAS(chosen, url) &&
		   (strcmp(chosen->url, ev->resumed_from) != 0 || chosen->step != ev->step)) {
		broken(w, 4, "train %d resumes from %s and not from %s", (int)ev->attempt,
		       ev->resumed_from, chosen->url);
	}
}

/* What an attempt saved and marked is in the journal before its end is. */
static void check_all_reported(struct world *w, const struct event *ev)
{
	int64_t newest = -1;

	for (int64_t i = 0; i < ev->seq; i++)
		if (w->events[i].kind == EV_CHECKPOINT_COMPLETE && w->events[i].step > newest)
			newest = w->events[i].step;
	for (int i = 0; i < w->job_count; i++)
		if (w->jobs[i].orphan) /* it saves on, and nobody is to know */
			return;
	for (int i = 0; i < w->checkpoint_count; i++) {
		const struct checkpoint *c = &w->checkpoints[i];

		if (c->complete && c->phase == PHASE_TRAIN && c->attempt == ev->attempt &&
		    c->step > newest)
			broken(w, 4, "train %d ended and %s is not reported", (int)ev->attempt,
			       c->url);
	}
}

/* 4. A retry starts from the newest *complete* checkpoint of this run, or from
 * its parent or scratch where there is none; never from a partial one, never
 * from one that phase 1 wrote. */
static void rule4(struct world *w)
{
	for (int64_t s = w->checked; s < w->count; s++) {
		const struct event *ev = &w->events[s];

		if (ev->kind == EV_ATTEMPT_INTENDED && ev->phase == PHASE_TRAIN)
			check_resume(w, ev);
		else if (ev->kind == EV_CHECKPOINT_CHOSEN)
			check_choice(w, ev);
		else if (ev->kind == EV_ATTEMPT_INTENDED && EVENT_HAS(ev, resumed_from))
			broken(w, 4, "phase 1 resumes from a checkpoint");
		else if (ev->kind == EV_ATTEMPT_ENDED && ev->phase == PHASE_TRAIN &&
			 has_evidence(w, ev) &&
			 journal_find(w, EV_ATTEMPT_ENDED, PHASE_TRAIN, ev->attempt, s) == 0)
			check_all_reported(w, ev);
	}
}

/* 6. Unknown is not failed: a job that cannot be seen is not relaunched; only
 * evidence from the engine ends an attempt. */
static void rule6(struct world *w)
{
	for (int64_t s = w->checked; s < w->count; s++)
		if (w->events[s].kind == EV_ATTEMPT_ENDED && !has_evidence(w, &w->events[s]))
			broken(w, 6, "%s %d is said to have ended, and the engine has not said so",
			       flow_phase_names[w->events[s].phase], (int)w->events[s].attempt);
}

/* flow_init() clears the padding too, so those that lived the same are the same bytes. */
static bool is_same(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct flow)) == 0;
}

static bool is_true(const struct world *w, const struct event *ev)
{
	const struct checkpoint *c;
	bool any = false, held = false;

	for (int i = 0; i < w->job_count; i++)
		if (is_of(&w->jobs[i], ev->phase, ev->attempt)) {
			any = true;
			held |= w->jobs[i].ever_held;
		}
	switch (ev->kind) {
	case EV_ATTEMPT_SUBMITTED:
		return any;
	case EV_ATTEMPT_MISSING:
		return !any;
	case EV_ATTEMPT_CLAIMED:
		return held;
	case EV_CHECKPOINT_COMPLETE:
		c = checkpoint_find(w, ev->url);
		return c && c->complete && c->step == ev->step;
	case EV_CACHE_VERIFIED:
		/* Another run may have filled it since it was looked at. */
		return ev->complete == w->cache_whole || (!ev->complete && w->key.other > 0);
	case EV_LIMIT_REACHED:
		return limit_is_true(w, ev);
	case EV_CACHE_CLAIMED:
		return w->key.taken_at != NEVER;
	case EV_CACHE_WAITING:
		return w->key.other > 0;
	case EV_CACHE_CHECKED:
		return ev->verdict != CACHE_WARM || w->cache_whole;
	default:
		return true;
	}
}

/* 7. What the journal says happened, happened; what it does not say can be found
 * out again from the engine. So a driver's state is what the journal alone gives. */
static void rule7(struct world *w)
{
	for (int64_t s = w->checked; s < w->count; s++) {
		const struct event *ev = &w->events[s];

		if (ev->seq != s + 1)
			broken(w, 7, "event %d has the number %d", (int)s + 1, (int)ev->seq);
		/* A verdict that is told again may have been overtaken since. */
		if (ev->kind == EV_CACHE_VERIFIED &&
		    journal_find(w, EV_CACHE_VERIFIED, ev->phase, ev->attempt, s) != 0)
			continue;
		if (!is_true(w, ev))
			broken(w, 7, "%s of %s %d is not true", event_rows[ev->kind].name,
			       flow_phase_names[ev->phase], (int)ev->attempt);
	}
	if (!w->dirty)
		return;
	w->dirty = false;
	for (int i = 0; i < DRIVERS; i++) {
		const struct driver *d = &w->drivers[i];

		if (d->alive && d->seen == w->count && !is_same(&d->flow, &w->shadow))
			broken(w, 7, "driver %d lives in %s/%s, the journal says %s/%s", i,
			       flow_state_names[d->flow.state],
			       attempt_state_names[d->flow.attempt_state],
			       flow_state_names[w->shadow.state],
			       attempt_state_names[w->shadow.attempt_state]);
	}
}

/* Is the claim on the graph key taken for what is intended at this place? */
static bool is_claimed_for(const struct world *w, int64_t seq)
{
	for (int64_t i = seq; i > 0; i--)
		switch (w->events[i - 1].kind) {
		case EV_CACHE_CLAIMED:
			return true;
		case EV_CACHE_WAITING:
		case EV_ATTEMPT_INTENDED:
		case EV_DRIVER_TOOK_OVER:
			return false;
		default:
			break;
		}
	return false;
}

/* 9. Of the runs with one graph key one precompiles at a time, and what it has filled
 * is not filled again: an attempt of phase 1 is intended by who has claimed the key for
 * it and has looked at the cache since. */
static void rule9(struct world *w)
{
	for (int64_t s = w->checked; s < w->count; s++) {
		const struct event *ev = &w->events[s];

		if (ev->kind != EV_ATTEMPT_INTENDED || ev->phase != PHASE_PRECOMPILE)
			continue;
		if (!is_claimed_for(w, s))
			broken(w, 9, "precompile %d is intended without a claim on its graph key",
			       (int)ev->attempt);
		else if (ev->attempt == 1 &&
			 journal_find(w, EV_ATTEMPT_INTENDED, PHASE_TRAIN, 1, s) == 0 &&
			 w->cache_whole && w->whole_at < w->key.taken_at)
			broken(w, 9,
			       "precompile 1 is intended, and another run has filled the "
			       "cache before");
	}
}

static void (*const rules[RULES])(struct world *w) = { rule1, rule2, rule3, rule4, rule5,
						       rule6, rule7, rule8, rule9 };

void rules_check(struct world *w)
{
	for (int i = 0; i < RULES && w->broken == 0; i++)
		rules[i](w);
	w->checked = w->count;
	w->submits_checked = w->submit_count;
}

void rules_check_end(struct world *w)
{
	static struct flow again;

	flow_init(&again, &w->policy);
	for (int64_t i = 0; i < w->count; i++)
		machine_apply(w, &again, &w->events[i]);
	if (!is_same(&again, &w->shadow))
		broken(w, 7, "the journal played again gives another end");
}
