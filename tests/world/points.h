/*
 * Every place of a scenario: at each call that touches the outside the world is forked, and in the
 * child the call fails with one of its legal errors, or its process is killed, or its machine loses
 * power, just before it or just after; or its process is killed, and another one, or the next of
 * its kind, a moment later. The parent goes on as if nothing were; so each case costs the rest of
 * the scenario, not the whole of it.
 */
#ifndef STK_TESTS_WORLD_POINTS_H
#define STK_TESTS_WORLD_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/world/report.h"

enum points_mode { POINTS_ERRORS, POINTS_KILLS, POINTS_CUTS, POINTS_DOUBLES, POINTS_MODES };
extern const char *const points_mode_names[POINTS_MODES];

struct points {
	enum points_mode mode;
	uint64_t every, first; /* places first, first + every, … */
	int jobs;              /* children at once */
};

/* Has the schedule that plays next fork at its places; points_hook() once its faults are drawn. */
void points_begin(const struct points *points);
void points_hook(void);
/* After the play: true in a child, whose report this is; it goes to the parent. */
bool points_is_case(void);
_Noreturn void points_end_case(const struct report *report);
/* In the parent, after the play: waits for all children and adds their reports. */
void points_finish(struct reports *reports);
/* What was done in this case: "write of stoker-node failed with EIO"; "" in the parent. */
const char *points_case(void);

#endif
