/*
 * Counts of what schedules have reached: states and transitions of the flow, events, effects,
 * limits, bins of the ledger, ends, faults and errors. What a large number of schedules never
 * reaches is a failure, unless unreached.def says why it cannot be reached here.
 */
#ifndef STK_TESTS_WORLD_REACHED_H
#define STK_TESTS_WORLD_REACHED_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/flow/flow.h"
#include "tests/world/faults.h"
#include "tests/world/story.h"

#define REACHED_RULES  96
#define REACHED_ERRORS 160 /* greater than each errno */

/* Passes through shared memory: no pointers. */
struct reached {
	uint64_t kinds[EV_COUNT];
	uint64_t states[FLOW_STATE_COUNT][ATTEMPT_STATE_COUNT];
	uint64_t rules[REACHED_RULES]; /* rows of the flow's table */
	uint64_t effects[EFFECT_KIND_COUNT];
	uint64_t limits[LIMIT_COUNT];
	uint64_t bins[BIN_COUNT];        /* runs in which it was not empty at the end */
	uint64_t exits[128];             /* run.ended by exit code */
	uint64_t faults[FAULT_KINDS];    /* that struck */
	uint64_t modes[MODE_COUNT];      /* of calls that failed: how often in a row */
	uint64_t errors[REACHED_ERRORS]; /* of calls that failed, by errno */
	uint64_t calls[CALL_COUNT];      /* that failed */
};

/* Adds what the events of a run come to. */
void reached_add_story(struct reached *ret, const struct story *story);
/* Adds the faults of the schedule that has just been played. */
void reached_add_faults(struct reached *ret);
void reached_add(struct reached *sum, const struct reached *more);
/* Prints all of it. With `must`, false if something was not reached that unreached.def does not
 * name. */
bool reached_print(const struct reached *reached, bool must);

#endif
