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

/* C15. Without faults: no relaunch, no false stall, no warning, one attempt a phase. */
static void health(const struct story *story)
{
	for (int64_t s = rules_checked();
	     s < story->count && playing->setting.calm && !playing->setting.deadline_s; s++) {
		const struct event *ev = &story->events[s].event;

		if ((ev->kind == EV_ATTEMPT_INTENDED && ev->attempt > 1) ||
		    ev->kind == EV_RETRY_SCHEDULED || ev->kind == EV_ATTEMPT_STALLED ||
		    ev->kind == EV_ATTEMPT_LOST || ev->kind == EV_CHORE_FAILED ||
		    ev->kind == EV_DRIVER_WAITING || ev->kind == EV_WORKER_LOST ||
		    ev->kind == EV_OUTPUTS_LEFT || ev->kind == EV_CHECKPOINT_REJECTED ||
		    ev->kind == EV_ATTEMPT_UNCERTAIN || ev->kind == EV_ATTEMPT_MISSING ||
		    (ev->kind == EV_JIT_COMPILED && ev->graphs > 0))
			rule_breaks("C15", "%s although nothing went wrong",
				    event_rows[ev->kind].name);
		if (ev->kind == EV_RUN_ENDED && ev->exit_code != 0)
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
