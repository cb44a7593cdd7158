/*
 * C7. Backoff: every pause lies within retry.backoff: never 0 unless the spec says so (Spot and
 * capacity too), never above max, and from first again after a new checkpoint.
 */
#include <string.h>

#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"

/* Without machines to be had, the pauses begin at eight times the first. */
#define CAPACITY_TIMES 8

/* The attempts of a phase that failed since it got ahead: by its newest checkpoint, or whole. */
static struct {
	int64_t failures, attempt, known;
	enum failure_class class; /* of the newest */
	int64_t due_ns;           /* the next attempt, at the earliest; 0: no matter */
	const struct process *by; /* who scheduled it */
} phases[PHASE_COUNT];

static void reset(void)
{
	memset(phases, 0, sizeof phases);
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		phases[phase].known = -1;
}

static void check_delay(const struct story *story, const struct event *ev)
{
	const struct flow_policy *p = &story->policy;
	int64_t most = p->backoff_first_ms, least = p->backoff_first_ms;

	if (phases[ev->phase].class == CLASS_CAPACITY)
		most *= CAPACITY_TIMES;
	for (int64_t i = 1; i < phases[ev->phase].failures && most < p->backoff_max_ms; i++)
		most *= 2;
	if (most > p->backoff_max_ms)
		most = p->backoff_max_ms;
	if (least > most)
		least = most;
	if (ev->delay < least || ev->delay > most)
		rule_breaks("C7", "%s pauses for %d ms after %d failures; allowed are %d to %d ms",
			    flow_phase_names[ev->phase], (int)ev->delay,
			    (int)phases[ev->phase].failures, (int)least, (int)most);
}

/* The pause is made as well: the wall clock does not matter to the driver that announced it. When
 * it announced an event that was first seen by a reader is not known. */
static void check_pause(const struct story *story, int64_t index)
{
	const struct story_event *told = &story->events[index];
	enum phase phase = told->event.phase;

	if (phases[phase].due_ns && told->writer && told->writer == phases[phase].by &&
	    told->at_ns < phases[phase].due_ns)
		rule_breaks("C7", "%s %d begins %d ms before its pause is over",
			    flow_phase_names[phase], (int)told->event.attempt,
			    (int)((phases[phase].due_ns - told->at_ns) / WORLD_MS));
	phases[phase].due_ns = 0;
}

static void on_event(const struct story *story, int64_t index)
{
	const struct story_event *told = &story->events[index];
	const struct event *ev = &told->event;

	switch (ev->kind) {
	case EV_ATTEMPT_INTENDED:
		check_pause(story, index);
		phases[ev->phase].attempt = ev->attempt;
		break;
	case EV_ATTEMPT_ENDED:
		if (ev->attempt != phases[ev->phase].attempt)
			break;
		phases[ev->phase].class = ev->class;
		phases[ev->phase].failures =
			ev->class == CLASS_NONE ? 0 : phases[ev->phase].failures + 1;
		break;
	case EV_CACHE_VERIFIED:
		if (ev->complete)
			phases[PHASE_PRECOMPILE].failures = 0;
		break;
	case EV_CACHE_CHECKED:
		if (EVENT_HAS(ev, stage)) /* phase 1 begins for another stage, if at all */
			phases[PHASE_PRECOMPILE].failures = 0;
		break;
	case EV_CHECKPOINT_CHOSEN:
		phases[PHASE_TRAIN].known = EVENT_HAS(ev, step) ? ev->step : -1;
		break;
	case EV_CHECKPOINT_COMPLETE:
		if (ev->attempt == phases[PHASE_TRAIN].attempt &&
		    ev->step > phases[PHASE_TRAIN].known) {
			phases[PHASE_TRAIN].known = ev->step;
			phases[PHASE_TRAIN].failures = 0;
		}
		break;
	case EV_RETRY_SCHEDULED:
		check_delay(story, ev);
		phases[ev->phase].by = told->writer;
		/* It was decided on a little before it was journalled. */
		phases[ev->phase].due_ns = told->made_ns + (ev->until - ev->at.ms - 1) * WORLD_MS;
		break;
	default:
		break;
	}
}

const struct clock_rule clock_backoff = { .reset = reset, .on_event = on_event };
