/*
 * The story: every event of the journal, as those who wrote or read it know it. journal_append()
 * and journal_read() are wrapped: an event is part of the story as soon as one of them has called
 * it durable. So an event that was acknowledged and is lost later, or reads otherwise, is noticed;
 * the rules read the story and the truth (truth.h), never the product's state.
 */
#ifndef STK_TESTS_WORLD_STORY_H
#define STK_TESTS_WORLD_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"
#include "jobs/flow/flow.h"
#include "tests/world/kernel.h"

#define STORY_RUN_MAX 48

struct story_event {
	struct event event;           /* its texts and values live as long as `row` */
	json_t *row;                  /* as the journal holds it */
	int64_t at_ns;                /* when it was first called durable */
	int64_t made_ns;              /* when its writer began to append it; else as at_ns */
	const struct process *writer; /* who appended it; NULL: it was first seen by a reader */
};

/* The events of one run, by number: events[i] has seq i + 1. */
struct story {
	char run[STORY_RUN_MAX];
	struct story_event *events;
	int64_t count;
	struct flow_policy policy; /* of the plan in run.created */
	struct flow shadow;        /* what the events give */
	const char *contradiction; /* two tellings differ, or an event is lost; NULL: none */
	struct story *next;
};
extern struct story *stories; /* of all runs */

void story_reset(void);
struct story *story_of(const char *run); /* NULL: nothing is known of that run */
/* The newest event of that kind (before number `before`; 0: of all); NULL: none. */
const struct story_event *story_last(const struct story *story, enum event_kind kind,
				     int64_t before);
/* When its writer began to append it. That one may have been killed before anybody knew of the
 * event: then its own time is all there is. */
int64_t story_begun_ns(const struct story_event *told);
/* Number of the first event of that kind, phase and attempt up to `seq`; 0: none. */
int64_t story_find(const struct story *story, enum event_kind kind, enum phase phase,
		   int64_t attempt, int64_t seq);

#endif
