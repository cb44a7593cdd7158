/*
 * A driver as the real one is: append an event, apply it, carry out what the
 * machine effects, and make an event of what came of it. Each of these is a step
 * of its own, and between any two it may die, be paused, or find that someone
 * else has written.
 */
#include "tests/sim/sim.h"

#include <string.h>

/* The host's wall clock, but never behind the newest event plus the time since. */
static struct utc driver_now(const struct world *w, int who)
{
	const struct driver *d = &w->drivers[who];
	int64_t wall = WALL_BEGIN + w->now + w->wall_offset[who];
	int64_t least = d->flow.at.ms + (w->now - d->heard_at);

	return (struct utc){ wall > least ? wall : least };
}

static void die(struct world *w, int who, const char *how)
{
	TRACE(w, driver_name(who), "%s", how);
	w->drivers[who].alive = false;
	for (int i = 0; i < DRIVERS; i++)
		if (w->drivers[i].alive && w->drivers[i].paused_until == 0)
			return;
	w->start_at = w->now + some_time(w, 30 * SECOND);
}

static void apply(struct world *w, int who, const struct event *ev)
{
	struct driver *d = &w->drivers[who];

	machine_apply(w, &d->flow, ev);
	d->heard_at = w->now;
	w->dirty = true;
}

/* ---- pending events --------------------------------------------------------------- */

struct event *driver_pend(struct driver *d, enum event_kind kind)
{
	memset(&d->pending, 0, sizeof d->pending);
	d->pending.kind = kind;
	d->has_pending = true;
	d->pending_is_record = false;
	d->maybe_written = false;
	return &d->pending;
}

static struct event *pend_about(struct driver *d, enum event_kind kind)
{
	struct event *ev = driver_pend(d, kind);

	EVENT_SET(ev, phase, d->flow.phase);
	EVENT_SET(ev, attempt, d->flow.attempt);
	if ((event_rows[kind].required >> EVF_job & 1) != 0)
		EVENT_SET_STR(ev, job, d->flow.job);
	return ev;
}

static void pend_creation(struct world *w, struct driver *d)
{
	struct event *ev = driver_pend(d, EV_RUN_CREATED);

	EVENT_SET_STR(ev, name, "simulated");
	EVENT_SET_STR(ev, engine, "fake");
	EVENT_SET(ev, plan, NULL);
	EVENT_SET_STR(ev, plan_digest, "0");
	EVENT_SET(ev, seed, rng_below(&w->rng, INT64_MAX));
}

static void pend_takeover(struct driver *d)
{
	struct event *ev = driver_pend(d, EV_DRIVER_TOOK_OVER);

	d->epoch = d->flow.epoch + 1;
	EVENT_SET_STR(ev, host, "host");
	EVENT_SET(ev, pid, 1);
	EVENT_SET(ev, epoch, d->epoch);
}

/* ---- reading and appending ---------------------------------------------------------- */

/* Is that the event that we were told was not written? */
static bool is_own(const struct driver *d, const struct event *ev)
{
	return d->has_pending && d->maybe_written && ev->kind == d->pending.kind &&
	       ev->at.ms == d->pending.at.ms && ev->present == d->pending.present &&
	       ev->attempt == d->pending.attempt;
}

static void settle(struct driver *d)
{
	d->has_pending = false;
	d->maybe_written = false;
	if (d->pending.kind == EV_DRIVER_TOOK_OVER)
		d->in_command = true;
	if (d->pending.kind == EV_RUN_CREATED)
		pend_takeover(d);
}

/* Read and apply what others have written. False: there is a newer driver. */
static bool absorb(struct world *w, int who)
{
	struct driver *d = &w->drivers[who];
	bool news = false;

	while (d->seen < w->count) {
		const struct event *ev = &w->events[d->seen];

		if (is_own(d, ev)) {
			apply(w, who, ev);
			d->seen++;
			settle(d);
			continue;
		}
		if (d->in_command && ev->kind == EV_DRIVER_TOOK_OVER && ev->epoch > d->epoch &&
		    !(w->plant && w->plant->epochs_ignored)) {
			counts.stood_down++;
			die(w, who, "stands down");
			return false;
		}
		apply(w, who, ev);
		d->seen++;
		news = true;
	}
	/* Someone else has created the run: it is not to begin twice. */
	if (news && d->has_pending && d->pending.kind == EV_RUN_CREATED) {
		counts.stood_down++;
		die(w, who, "stands down");
		return false;
	}
	/* A decision is good only for the state that it was made from. */
	if (news && d->has_pending && d->pending_is_record)
		d->has_pending = false;
	if (d->has_pending && d->pending.kind == EV_DRIVER_TOOK_OVER)
		pend_takeover(d);
	return true;
}

/* News that the journal may get twice, out of place. */
static bool may_echo(enum event_kind kind)
{
	switch (kind) {
	case EV_ATTEMPT_CLAIMED:
	case EV_ATTEMPT_LOST:
	case EV_ATTEMPT_FOUND:
	case EV_ATTEMPT_ENDED:
	case EV_CACHE_VERIFIED:
	case EV_CHECKPOINT_COMPLETE:
	case EV_TRAIN_PROGRESS:
	case EV_COMPILE_PROGRESS:
		return true;
	default:
		return false;
	}
}

static void append(struct world *w, int who)
{
	struct driver *d = &w->drivers[who];
	bool first = w->plant && w->plant->applies_first && !d->maybe_written;

	if (!d->maybe_written)
		d->pending.at = driver_now(w, who);
	if (w->plant && w->plant->event && !d->maybe_written)
		w->plant->event(w, who, &d->pending);
	if (first)
		apply(w, who, &d->pending);
	switch (journal_append(w, d->seen + 1, &d->pending, who)) {
	case APPEND_DONE:
		if (!first)
			apply(w, who, &w->events[d->seen]);
		d->seen++;
		if (may_echo(d->pending.kind) && strikes(w, FAULT_REPORT_TWICE)) {
			d->echo = w->events[d->seen - 1];
			d->has_echo = true;
		}
		settle(d);
		break;
	case APPEND_TAKEN:
		absorb(w, who);
		break;
	case APPEND_FAILED:
		d->maybe_written = true;
		break;
	}
}

/* ---- carrying out effects ------------------------------------------------------------- */

static void submit(struct world *w, struct driver *d, const struct effect *effect)
{
	enum failure_class class = CLASS_NONE;
	struct event *ev;

	switch (engine_submit(w, effect, &class)) {
	case SUBMIT_DONE:
		pend_about(d, EV_ATTEMPT_SUBMITTED);
		break;
	case SUBMIT_UNKNOWN:
		ev = pend_about(d, EV_ATTEMPT_UNCERTAIN);
		EVENT_SET_STR(ev, reason, "no answer");
		break;
	case SUBMIT_REFUSED:
		ev = pend_about(d, EV_ATTEMPT_ENDED);
		EVENT_SET(ev, class, class);
		EVENT_SET_STR(ev, evidence, "refused");
		break;
	}
}

static void find(struct world *w, struct driver *d, const struct effect *effect)
{
	int found = engine_find(w, effect->job);

	if (found >= 0)
		pend_about(d, found ? EV_ATTEMPT_SUBMITTED : EV_ATTEMPT_MISSING);
}

/* The oldest checkpoint of the attempt that the journal does not know. */
static const struct checkpoint *unreported(const struct world *w, const struct flow *flow)
{
	for (int i = 0; i < w->checkpoint_count; i++) {
		const struct checkpoint *c = &w->checkpoints[i];

		if (c->complete && c->phase == flow->phase && c->attempt == flow->attempt &&
		    c->step > flow->checkpoint_step)
			return c;
	}
	return NULL;
}

static bool tell_checkpoint(struct world *w, struct driver *d)
{
	const struct checkpoint *c = d->flow.phase == PHASE_TRAIN ? unreported(w, &d->flow) : NULL;
	struct event *ev;

	if (!c)
		return false;
	ev = driver_pend(d, EV_CHECKPOINT_COMPLETE);
	EVENT_SET(ev, attempt, c->attempt);
	EVENT_SET(ev, step, c->step);
	EVENT_SET_STR(ev, url, c->url);
	if (rng_below(&w->rng, 2) == 0)
		EVENT_SET(ev, seconds, (double)rng_below(&w->rng, 4 * w->job_pace) / 1000);
	return true;
}

/* That somebody was told of something decides nothing. */
static bool tell_notified(struct world *w, struct driver *d)
{
	bool sent = rng_below(&w->rng, 2) == 0;
	struct event *ev = driver_pend(d, sent ? EV_NOTIFY_SENT : EV_NOTIFY_FAILED);

	EVENT_SET(ev, rule, 0);
	EVENT_SET(ev, about, 1);
	if (!sent)
		EVENT_SET_STR(ev, reason, "nobody there");
	return true;
}

static bool tell_progress(struct world *w, struct driver *d, struct job *job)
{
	struct event *ev;

	if (!job->has_news || w->count > EVENTS_MAX / 2)
		return false;
	if (rng_below(&w->rng, 100) == 0)
		return tell_notified(w, d);
	job->has_news = false;
	if (job->phase == PHASE_TRAIN && rng_below(&w->rng, 2000) == 0) {
		ev = driver_pend(d, EV_TRAIN_SPOILED);
		EVENT_SET_STR(ev, reason, "nothing is computed");
	} else if (job->late > job->late_told) {
		job->late_told = job->late;
		job->has_news = true; /* its steps come next */
		ev = driver_pend(d, EV_JIT_COMPILED);
		EVENT_SET(ev, graphs, job->late);
		EVENT_SET(ev, seconds, (double)rng_below(&w->rng, 8 * w->job_pace) / 1000);
	} else {
		ev = driver_pend(d, job->phase == PHASE_TRAIN ? EV_TRAIN_PROGRESS
							      : EV_COMPILE_PROGRESS);
		if (job->phase == PHASE_TRAIN) {
			EVENT_SET(ev, step, job->step);
			EVENT_SET(ev, since, WALL_BEGIN + job->stepped_at + w->job_offset);
			if (rng_below(&w->rng, 2) == 0)
				EVENT_SET(ev, eta,
					  (double)rng_below(&w->rng, 400 * w->job_pace) / 1000);
		} else {
			EVENT_SET(ev, graphs, job->graphs);
		}
	}
	EVENT_SET(ev, attempt, job->attempt);
	return true;
}

static bool tell_start(struct world *w, struct driver *d, const struct sight *sight)
{
	struct event *ev;

	if (!sight->job->started || d->flow.started || !d->flow.claimed)
		return false;
	if (w->policy.health_ms > 0 && !d->flow.checked && rng_below(&w->rng, 4) != 0) {
		int64_t took = 1 + rng_below(&w->rng, w->policy.health_ms);

		ev = pend_about(d, EV_HEALTH_CHECKED);
		EVENT_SET(ev, healthy, rng_below(&w->rng, 8) != 0);
		EVENT_SET(ev, finished, WALL_BEGIN + sight->job->started_at + w->job_offset);
		EVENT_SET(ev, since, ev->finished - took);
		return true;
	}
	if (sight->job->other_compiler && rng_below(&w->rng, 2) == 0) {
		ev = driver_pend(d, EV_COMPILER_CHECKED);
		EVENT_SET(ev, attempt, sight->job->attempt);
		EVENT_SET_STR(ev, reason, "it is another one");
		return true;
	}
	ev = pend_about(d, EV_ATTEMPT_STARTED);
	EVENT_SET(ev, started, WALL_BEGIN + sight->job->started_at + w->job_offset);
	return true;
}

/* After a resume: did its first step follow the checkpoint's? */
static bool tell_continuity(struct driver *d, struct job *job)
{
	struct event *ev;

	if (job->phase != PHASE_TRAIN || job->resumed_step < 0 || job->first_step < 0 ||
	    job->told_first)
		return false;
	job->told_first = true;
	ev = driver_pend(d, EV_TRAIN_CONTINUITY);
	EVENT_SET(ev, attempt, job->attempt);
	EVENT_SET(ev, first_step, job->first_step);
	EVENT_SET(ev, continuity,
		  job->first_step > job->resumed_step ? CONTINUITY_VERIFIED : CONTINUITY_FAILED);
	return true;
}

/* What the agent says of time is by its own clock. */
static void tell_claim(const struct world *w, struct driver *d, const struct job *job)
{
	struct event *ev = pend_about(d, EV_ATTEMPT_CLAIMED);

	if (job->claimed_at > 0)
		EVENT_SET(ev, since, WALL_BEGIN + job->claimed_at + w->job_offset);
}

static void tell_end(struct world *w, struct driver *d, const struct sight *sight)
{
	struct event *ev = pend_about(d, EV_ATTEMPT_ENDED);
	const struct job *job = sight->job;

	EVENT_SET(ev, class, sight->class);
	EVENT_SET(ev, by_driver, d->flow.stop_requested);
	EVENT_SET_STR(ev, evidence, "as the engine says");
	EVENT_SET_STR(ev, signature, job->signature);
	if (job->other_compiler && job->signature == job->other_compiler)
		EVENT_SET(ev, changed, NULL);
	if (job->over_at > 0 && job->ever_held && rng_below(&w->rng, 4) != 0)
		EVENT_SET(ev, finished, WALL_BEGIN + job->over_at + w->job_offset);
	if (sight->class == CLASS_TIMEOUT_HANG && rng_below(&w->rng, 2) == 0)
		EVENT_SET(ev, hang, 1 + rng_below(&w->rng, 30 * w->job_pace));
}

/* There is no machine, and the engine says so. */
static bool tell_waiting(const struct world *w, struct driver *d, const struct sight *sight)
{
	struct event *ev;

	if (sight->claimed || sight->ended || w->now >= w->drought_until ||
	    sight->job->told_waiting)
		return false;
	sight->job->told_waiting = true;
	ev = pend_about(d, EV_ATTEMPT_WAITING);
	EVENT_SET_STR(ev, reason, "no capacity");
	return true;
}

/* One piece of news, the oldest first; the end last of all. */
static void watch(struct world *w, struct driver *d)
{
	struct sight sight;
	struct event *ev;

	engine_describe(w, d->flow.job, &sight);
	if (!sight.seen) {
		if (d->flow.attempt_state != ATTEMPT_LOST) {
			ev = pend_about(d, EV_ATTEMPT_LOST);
			EVENT_SET_STR(ev, reason, "the engine does not answer");
		}
		return;
	}
	/* The claim of an attempt that cannot be seen may be read all the same. */
	if (d->flow.attempt_state == ATTEMPT_LOST && !(sight.claimed && rng_below(&w->rng, 4) == 0))
		pend_about(d, EV_ATTEMPT_FOUND);
	else if (sight.claimed && d->flow.attempt_state != ATTEMPT_RUNNING)
		tell_claim(w, d, sight.job);
	else if (tell_waiting(w, d, &sight) || (!sight.ended && strikes(w, FAULT_REPORT_LATE)))
		return;
	else if (tell_start(w, d, &sight) || tell_continuity(d, sight.job) ||
		 tell_checkpoint(w, d) || tell_progress(w, d, sight.job))
		return;
	else if (sight.ended)
		tell_end(w, d, &sight);
}

/* The newest of this run's training that is whole: highest step, then attempt. */
static void choose(struct world *w, struct driver *d, int64_t below)
{
	const struct checkpoint *best = NULL;
	struct event *ev;

	if (strikes(w, FAULT_CHOICE_UNKNOWN))
		return;
	for (int i = 0; i < w->checkpoint_count; i++) {
		const struct checkpoint *c = &w->checkpoints[i];

		if (c->complete && c->phase == PHASE_TRAIN && c->step < below &&
		    (c->damaged_at > w->now || (w->plant && w->plant->marks_suffice)) &&
		    (!best || c->step > best->step ||
		     (c->step == best->step && c->attempt > best->attempt)))
			best = c;
	}
	w->chose_at = w->now;
	ev = driver_pend(d, EV_CHECKPOINT_CHOSEN);
	if (best) {
		EVENT_SET(ev, step, best->step);
		EVENT_SET_STR(ev, url, best->url);
	}
}

/* Whether it can be said or not, the driver leaves. */
static void leave(struct world *w, int who)
{
	struct driver *d = &w->drivers[who];

	if (rng_below(&w->rng, 2) == 0) {
		driver_pend(d, EV_DRIVER_LEFT);
		EVENT_SET(&d->pending, epoch, d->epoch);
		append(w, who);
	}
	d->alive = false;
}

static void carry_out(struct world *w, int who, struct effect *effect)
{
	struct driver *d = &w->drivers[who];
	int64_t left;

	counts.effects[effect->kind]++;
	if (w->plant && w->plant->driver && w->plant->driver(w, who, effect))
		return;
	switch (effect->kind) {
	case EFFECT_RECORD:
		d->pending = effect->event;
		d->has_pending = true;
		d->pending_is_record = true;
		d->maybe_written = false;
		break;
	case EFFECT_CHECK_CACHE:
		cache_check(w, d);
		break;
	case EFFECT_CLAIM_KEY:
		key_claim(w, d, effect);
		break;
	case EFFECT_FIND:
		find(w, d, effect);
		break;
	case EFFECT_SUBMIT:
		submit(w, d, effect);
		break;
	case EFFECT_WATCH:
		watch(w, d);
		break;
	case EFFECT_CHOOSE_CHECKPOINT:
		if (!cache_lost(w, d))
			choose(w, d, effect->below);
		break;
	case EFFECT_DRAIN:
		engine_drain(w, effect->job);
		break;
	case EFFECT_STOP:
		engine_stop(w, effect->job);
		break;
	case EFFECT_LEAVE:
		leave(w, who);
		counts.left++;
		w->start_at = w->now + some_time(w, HOUR);
		break;
	case EFFECT_VERIFY:
		cache_verify(w, d);
		break;
	case EFFECT_WAIT:
		left = effect->until.ms - driver_now(w, who).ms;
		if (left < d->next_at - w->now || rng_below(&w->rng, 2) == 0)
			d->next_at = w->now + (left > 0 ? left : 0);
		break;
	case EFFECT_DONE:
		leave(w, who);
		w->start_at = NEVER;
		break;
	case EFFECT_SETTLE: /* no journal is damaged here */
	case EFFECT_KIND_COUNT:
		break;
	}
}

/* ---- a driver's life ------------------------------------------------------------------ */

void driver_start(struct world *w, int who)
{
	struct driver *d = &w->drivers[who];

	/* Not the large buffers: they are written before they are read. */
	d->alive = true;
	d->paused_until = 0;
	d->check_lease = false;
	d->in_command = false;
	d->epoch = 0;
	d->has_pending = false;
	d->has_echo = false;
	d->key_other = 0;
	d->key_seen_at = NEVER;
	d->seen = 0;
	d->heard_at = w->now;
	d->next_at = w->now + some_time(w, w->driver_pace);
	flow_init(&d->flow, &w->policy);
	while (d->seen < w->count)
		machine_apply(w, &d->flow, &w->events[d->seen++]);
	w->dirty = true;
	if (w->count == 0)
		pend_creation(w, d);
	else
		pend_takeover(d);
}

/* Whoever took over while this one stood still has the lease. */
static bool has_lost_lease(const struct world *w, int who)
{
	for (int i = 0; i < DRIVERS; i++)
		if (i != who && w->drivers[i].alive && w->drivers[i].paused_until == 0)
			return true;
	return false;
}

void driver_act(struct world *w, int who)
{
	struct driver *d = &w->drivers[who];

	d->next_at = w->now + some_time(w, w->driver_pace);
	if (d->paused_until != 0) {
		d->paused_until = 0;
		d->check_lease = true;
		return;
	}
	if (strikes(w, FAULT_CRASH)) {
		die(w, who, "crashes");
		return;
	}
	if (d->check_lease && has_lost_lease(w, who)) {
		counts.stood_down++;
		die(w, who, "stands down");
		return;
	}
	if (d->check_lease || (!d->has_pending && rng_below(&w->rng, 8) == 0)) {
		d->check_lease = false;
		absorb(w, who);
		return;
	}
	if (d->has_pending) {
		append(w, who);
		return;
	}
	if (d->has_echo && rng_below(&w->rng, 16) == 0) {
		d->pending = d->echo;
		d->has_pending = true;
		d->pending_is_record = false;
		d->has_echo = false;
		return;
	}
	if (flow_keeps_key(&d->flow))
		key_renew(w);
	else
		key_release(w);
	flow_effects(&d->flow, driver_now(w, who), &d->effects);
	if (d->effects.count == 0)
		return;
	for (int i = 0; i < d->effects.count && d->alive && !d->has_pending; i++)
		carry_out(w, who, &d->effects.list[i]);
	/* Nothing new: look again when something may have happened. */
	if (d->alive && !d->has_pending && d->next_at < w->now + w->job_pace / 2)
		d->next_at = w->now + some_time(w, w->job_pace);
}
