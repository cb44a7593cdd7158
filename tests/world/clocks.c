/* Rules with clocks: see clocks.h. */
#include "tests/world/clocks.h"

#include "tests/world/clocks_seen.h"
#include "tests/world/once.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"

void clocks_begin(void)
{
	seen_begin();
}

void clocks_reset(void)
{
	seen_next_run();
}

/* The candidate was made too bad, or the run beside this one has promoted its own first. */
static bool is_refused(const struct story *story)
{
	const struct story_event *verdict = story_last(story, EV_GATE_JUDGED, 0);

	return (verdict && !verdict->event.passed && setting_is_refused(playing)) ||
	       (playing->neighbour[0] && story_last(story, EV_PROMOTE_OVERTAKEN, 0));
}

/* An attempt of its phase, of phase 1 for the same stage, was begun before. */
static bool is_relaunch(const struct story *story, int64_t index)
{
	const struct event *ev = &story->events[index].event;

	for (int64_t i = 0; i < index; i++) {
		const struct event *before = &story->events[i].event;

		if (before->kind == EV_ATTEMPT_INTENDED && before->phase == ev->phase &&
		    EVENT_HAS(before, stage) == EVENT_HAS(ev, stage) && before->stage == ev->stage)
			return true;
	}
	return false;
}

/* C15. Without faults: no relaunch, no false stall, no warning, one attempt a phase. */
static void health(const struct story *story)
{
	for (int64_t s = rules_checked();
	     s < story->count && playing->setting.calm && !playing->setting.deadline_s; s++) {
		const struct event *ev = &story->events[s].event;

		if ((ev->kind == EV_ATTEMPT_INTENDED && is_relaunch(story, s)) ||
		    ev->kind == EV_RETRY_SCHEDULED || ev->kind == EV_ATTEMPT_STALLED ||
		    ev->kind == EV_ATTEMPT_LOST || ev->kind == EV_CHORE_FAILED ||
		    ev->kind == EV_DRIVER_WAITING || ev->kind == EV_WORKER_LOST ||
		    ev->kind == EV_OUTPUTS_LEFT || ev->kind == EV_CHECKPOINT_REJECTED ||
		    ev->kind == EV_ATTEMPT_UNCERTAIN || ev->kind == EV_ATTEMPT_MISSING ||
		    (ev->kind == EV_JIT_COMPILED && ev->graphs > 0))
			rule_breaks("C15", "%s although nothing went wrong",
				    event_rows[ev->kind].name);
		if (ev->kind == EV_RUN_ENDED && ev->exit_code != 0 && !is_refused(story))
			rule_breaks("C15", "the run ended with %d although nothing went wrong: %s",
				    (int)ev->exit_code, ev->reason);
	}
}

void clocks_check(const struct story *story)
{
	if (playing->mishap)
		once_check(story);
	else
		health(story);
	seen_look(story);
}

void clocks_check_end(const struct story *story)
{
	seen_look_end(story);
}
