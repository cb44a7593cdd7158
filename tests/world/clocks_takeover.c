/*
 * C13. Takeover: a driver that takes over at any event wishes what its predecessor would have
 * wished, leftovers of a killed agent included. No decision rests on state held only in memory.
 *
 * Two things are looked at. After each event, what the flow wishes is compared with what it would
 * wish if a driver took over at this moment. And at each turn of a driver, what it knows of the run
 * is compared with what somebody knows who has read nothing but the journal up to the same event.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "jobs/run/driver_internal.h"
#include "tests/support/flow_names.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"

int __real_chores_do(struct driver *driver, int64_t *ret_wait_ms, struct err **err);
int __wrap_chores_do(struct driver *driver, int64_t *ret_wait_ms, struct err **err);

/* ---- what is wished ---- */

static bool is_same(const struct effect *a, const struct effect *b)
{
	return a->kind == b->kind && a->phase == b->phase && a->attempt == b->attempt &&
	       a->workers == b->workers && a->below == b->below && a->until.ms == b->until.ms &&
	       a->event.kind == b->event.kind && a->event.limit == b->event.limit &&
	       a->event.delay == b->event.delay && a->event.exit_code == b->event.exit_code;
}

/* The claim on the graph key is its holder's own, and is taken again. */
static bool is_claim_again(const struct effect *own, const struct effect *theirs)
{
	return theirs->kind == EFFECT_CLAIM_KEY && own->kind == EFFECT_RECORD &&
	       own->event.kind == EV_ATTEMPT_INTENDED;
}

/* An attempt that is to be submitted may have been: it is looked for before all else. */
static bool is_looked_for(const struct flow *own, const struct effects *theirs)
{
	return own->attempt_state == ATTEMPT_INTENDED && theirs->count > 0 &&
	       theirs->list[0].kind == EFFECT_FIND;
}

/* A new driver is as patient with a job that it cannot see as the last one was at first. */
static bool is_out_of_patience(const struct effects *own)
{
	const struct effect *last = &own->list[own->count - 1];

	return own->count > 0 && last->kind == EFFECT_RECORD &&
	       last->event.kind == EV_LIMIT_REACHED && last->event.limit == LIMIT_UNREACHABLE;
}

static const char *effect_name(const struct effects *effects, int at)
{
	if (at >= effects->count)
		return "nothing";
	return effects->list[at].kind == EFFECT_RECORD
		       ? event_rows[effects->list[at].event.kind].name
		       : effect_kind_names[effects->list[at].kind];
}

/* The event that a driver would make that takes over now, told to pause where this one is. */
static void take_over(struct flow *flow)
{
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER, .at = flow->at };

	EVENT_SET_STR(&ev, host, "another");
	EVENT_SET(&ev, pid, 1);
	EVENT_SET(&ev, epoch, flow->epoch + 1);
	if (flow->pause_after >= 0)
		EVENT_SET(&ev, pause_after, (enum phase)flow->pause_after);
	flow_apply(flow, &ev);
}

static void check_wishes(const struct flow *own)
{
	static struct flow theirs;
	static struct effects wished, again;

	/* A driver that leaves, or has paused, wishes nothing more. */
	if (own->state == FLOW_NEW || own->state == FLOW_PAUSED || own->leaving)
		return;
	theirs = *own;
	take_over(&theirs);
	flow_effects(own, own->at, &wished);
	flow_effects(&theirs, own->at, &again);
	if (is_out_of_patience(&wished) || is_looked_for(own, &again))
		return;
	for (int i = 0; i < wished.count || i < again.count; i++)
		if (i >= wished.count || i >= again.count ||
		    (!is_same(&wished.list[i], &again.list[i]) &&
		     !is_claim_again(&wished.list[i], &again.list[i])))
			rule_breaks("C13",
				    "in %s/%s a driver wishes %s, and who takes over wishes %s",
				    flow_state_names[own->state],
				    attempt_state_names[own->attempt_state],
				    effect_name(&wished, i), effect_name(&again, i));
}

/* ---- what is known ---- */

/* Somebody who reads the journal of the run that plays, and does nothing. */
static struct {
	struct driver driver;
	bool busy; /* it reads */
} reader;

static void reset(void)
{
	json_decref(reader.driver.plan);
	memset(&reader, 0, sizeof reader);
}

/* Reads on up to that event. False if that cannot be told: it has read more, or has not been told
 * yet. */
static bool read_up_to(const struct story *story, int64_t seq)
{
	static const struct driver_options options;

	if (reader.busy || reader.driver.seq > seq || seq > story->count)
		return false;
	reader.busy = true; /* a clock is read meanwhile, which takes time: others run */
	reader.driver.options = &options;
	reader.driver.run = story->run;
	while (reader.driver.seq < seq && !rules_broken)
		replay_apply(&reader.driver, &story->events[reader.driver.seq++].event);
	reader.busy = false;
	return !rules_broken;
}

/* Chores that were done are done again by who takes over, until the next attempt: that is not in
 * the journal, and need not be. */
static bool knows_chores(const struct owed *own, const struct owed *theirs)
{
	return (!own->due || theirs->due) && own->went_well == theirs->went_well &&
	       own->phase == theirs->phase && own->attempt == theirs->attempt;
}

/* The policy, a flow's first member, is the plan's in both; its padding is anything. */
static bool stands_elsewhere(const struct flow *own, const struct flow *theirs)
{
	size_t policy = sizeof own->policy;

	return memcmp((const char *)own + policy, (const char *)theirs + policy,
		      sizeof *own - policy) != 0;
}

static const char *what_differs(const struct driver *own, const struct driver *theirs)
{
	const struct run_facts *a = &own->facts, *b = &theirs->facts;

	if (stands_elsewhere(&own->flow, &theirs->flow))
		return "where the run stands";
	if (!knows_chores(&a->owed, &b->owed))
		return "the chores of the attempt that ended";
	if (a->resume_step != b->resume_step || a->continuity_known != b->continuity_known)
		return "the step that a training goes on from";
	if (a->worker_recorded != b->worker_recorded)
		return "a helper that is lost";
	if (a->passed_count != b->passed_count || a->passed_at != b->passed_at)
		return "checkpoints that were passed over";
	if (a->stop_lost != b->stop_lost || strcmp(a->lost_stop, b->lost_stop) != 0)
		return "a stop that was lost";
	if (a->silent_until != b->silent_until)
		return "an attempt that is silent";
	return NULL;
}

int __wrap_chores_do(struct driver *driver, int64_t *ret_wait_ms, struct err **err)
{
	const struct story *story = story_of(driver->run);

	if (story && strcmp(story->run, playing->run) == 0 && !rules_broken &&
	    read_up_to(story, driver->seq) && reader.driver.seq == driver->seq) {
		const char *what = what_differs(driver, &reader.driver);

		if (what)
			rule_breaks("C13", "after event %d a driver knows %s; the journal does not",
				    (int)driver->seq, what);
	}
	return __real_chores_do(driver, ret_wait_ms, err);
}

static void on_event(const struct story *story, int64_t index)
{
	if (index + 1 == story->count)
		check_wishes(&story->shadow);
}

const struct clock_rule clock_takeover = { .reset = reset, .on_event = on_event };
