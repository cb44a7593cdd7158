/*
 * Rule 8, what the world saw: time in which nobody drove the run and no attempt was under way is
 * idle time, to within two seconds for each driver that came and went. The ledger may call more of
 * it idle: what a driver did between its last event and its death nobody knows.
 */
#include <string.h>

#include "tests/world/bucket.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"

#define CHANGE_MS 2000 /* what may be wrong for each change */

static struct {
	int64_t ms;       /* undriven, so far */
	int64_t since_ns; /* nobody drives since then; -1: somebody does */
	int64_t changes;
} undriven;

static void reset(void)
{
	undriven.ms = undriven.changes = 0;
	undriven.since_ns = -1;
}

static bool is_driven(void)
{
	for (const struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE && fault_target_of(p) == TARGET_DRIVER &&
		    !schedule_serves_neighbour(p))
			return true;
	return false;
}

/* A pause before the next attempt goes on though nobody is there, and is backoff. */
static bool is_backoff(const struct story *story)
{
	const struct story_event *retry = story_last(story, EV_RETRY_SCHEDULED, 0);
	const struct story_event *next = story_last(story, EV_ATTEMPT_INTENDED, 0);

	return retry && (!next || next->event.seq < retry->event.seq) &&
	       retry->event.until > WORLD_EPOCH_MS + now_ns / WORLD_MS - CHANGE_MS;
}

static void on_second(const struct story *story)
{
	bool over = story_last(story, EV_RUN_ENDED, 0);

	if (over || is_driven() || seen_has_job(story) || is_backoff(story)) {
		if (undriven.since_ns >= 0)
			undriven.ms += (now_ns - undriven.since_ns) / WORLD_MS;
		undriven.since_ns = -1;
	} else if (undriven.since_ns < 0) {
		undriven.since_ns = now_ns;
		undriven.changes++;
	}
}

/* While a job may be there, no time is idle: a driver that takes over looks for it first. */
static bool tells_idle_time(const struct story *story, enum event_kind kind)
{
	enum attempt_state state = story->shadow.attempt_state;

	if (kind == EV_ATTEMPT_MISSING)
		return true;
	return kind == EV_DRIVER_TOOK_OVER && state != ATTEMPT_INTENDED &&
	       state != ATTEMPT_UNCERTAIN;
}

static void on_event(const struct story *story, int64_t index)
{
	struct ledger_view view;
	int64_t least;

	/* What a reader tells of was written before its writer died: all was otherwise than it
	 * seemed. */
	if (!story->events[index].writer)
		reset();
	if (!tells_idle_time(story, story->events[index].event.kind) || schedule_clock_stepped())
		return;
	ledger_at(&story->shadow.ledger, story->events[index].event.at, &view);
	least = undriven.ms - (undriven.changes + 1) * CHANGE_MS;
	if (view.ms[BIN_IDLE] < least)
		rule_breaks("8", "nobody drove the run for %.1f s, and %.1f s are called idle",
			    (double)undriven.ms / 1e3, (double)view.ms[BIN_IDLE] / 1e3);
}

const struct clock_rule clock_ledger = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
};
