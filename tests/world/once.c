/* What one mishap may cost: see once.h. */
#include "tests/world/once.h"

#include <string.h>
#include <sys/wait.h>

#include "jobs/base/exitcode.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/story.h"

/* By mishap: the rule, what the journal calls it, and what it may cost. */
static const struct cost {
	const char *rule, *words;
	int attempts; /* of a phase */
	int drivers;
	bool retries; /* retry.scheduled: the attempt was started, and is over */
} costs[] = {
	[MISHAP_ERROR] = { "C9", "one call that failed once", 1, 1, false },
	[MISHAP_DRIVER_KILLED] = { "C13", "the driver was killed", 2, 2, false },
	[MISHAP_HELPER_KILLED] = { "C11", "a helper was killed", 1, 1, false },
	[MISHAP_AGENT_KILLED] = { "C13", "an agent was killed", 2, 1, true },
	/* The compiler's lock may outlast what it stood for, which costs one more. */
	[MISHAP_POWER] = { "C13", "a machine lost power", 3, 2, true },
	[MISHAP_KILLED_TWICE] = { "C13", "two kills", 3, 3, true },
};

/* No mishap of these loses what was saved, or has a machine or a process be taken for lost that
 * works. */
static bool is_never_due(const struct event *ev)
{
	return ev->kind == EV_OUTPUTS_LEFT || ev->kind == EV_CHECKPOINT_REJECTED ||
	       ev->kind == EV_ATTEMPT_STALLED;
}

static bool costs_too_much(const struct cost *cost, const struct event *ev)
{
	return is_never_due(ev) ||
	       (ev->kind == EV_ATTEMPT_INTENDED && ev->attempt > cost->attempts) ||
	       (ev->kind == EV_RETRY_SCHEDULED && !cost->retries) ||
	       (ev->kind == EV_WORKER_LOST && !cost->retries) ||
	       (ev->kind == EV_DRIVER_TOOK_OVER && ev->epoch > cost->drivers) ||
	       (ev->kind == EV_JIT_COMPILED && ev->graphs > 0);
}

/* A command that was refused before its run was begun says so and ends: nothing has been submitted,
 * and whoever typed it is still there to type it again. It would be no kindness to retry for them
 * what may as well be a wrong name or a disk that is broken. */
static bool was_never_begun(const struct story *story)
{
	const struct process *struck = playing->struck;

	return fault_target_of(struck) == TARGET_DRIVER && struck->state != PROCESS_ALIVE &&
	       WIFEXITED(struck->status) &&
	       (WEXITSTATUS(struck->status) == EXIT_REFUSED ||
		WEXITSTATUS(struck->status) == EXIT_UNREACHABLE ||
		WEXITSTATUS(struck->status) == EXIT_SPEC) &&
	       story->count > 0 && story->events[0].writer != struck;
}

/* A power cut may leave a compiler's lock, and nothing of the log that says whose it was. The gate
 * then names the locks that are left: another job may hold them (orphaned_own_locks.h). */
static bool is_left_locked(const struct event *ev)
{
	return playing->mishap == MISHAP_POWER && ev->exit_code == EXIT_GATE && ev->reason &&
	       strstr(ev->reason, ": locked for ");
}

/* A driver that is killed while it starts one agent after the other leaves a job without some of
 * its nodes, of which no exit is known, and which can only be begun again. */
static bool is_half_started(const struct story *story, int64_t at)
{
	const struct story_event *end = story_last(story, EV_ATTEMPT_ENDED, at + 1);
	int64_t submitted;

	if ((playing->mishap != MISHAP_DRIVER_KILLED && playing->mishap != MISHAP_KILLED_TWICE) ||
	    !end || story->events[at].event.kind != EV_RETRY_SCHEDULED ||
	    EVENT_HAS(&end->event, exit) || end->event.node == 0)
		return false;
	submitted = story_find(story, EV_ATTEMPT_SUBMITTED, end->event.phase, end->event.attempt,
			       at + 1);
	return submitted == 0 || story->events[submitted - 1].writer != playing->struck;
}

void once_check(const struct story *story)
{
	const struct cost *cost = &costs[playing->mishap];

	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (costs_too_much(cost, ev) && !is_half_started(story, s))
			rule_breaks(cost->rule, "%s after %s", event_rows[ev->kind].name,
				    cost->words);
		if (ev->kind == EV_RUN_ENDED && ev->exit_code != 0 &&
		    !playing->setting.deadline_s && !is_left_locked(ev))
			rule_breaks(cost->rule, "the run ended with %d after %s: %s",
				    (int)ev->exit_code, cost->words, ev->reason);
	}
	if (playing->drivers > cost->drivers && !was_never_begun(story))
		rule_breaks(cost->rule, "a driver ended after %s", cost->words);
}
