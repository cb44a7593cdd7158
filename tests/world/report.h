/* What came of a schedule, and of all of them: the counts that show that everything was reached. */
#ifndef STK_TESTS_WORLD_REPORT_H
#define STK_TESTS_WORLD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/flow/event.h"
#include "jobs/flow/flow.h"
#include "tests/world/call.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/reached.h"

#define PLANT_WORDS 4 /* bits for each of the bugs that can be put in (plants.h) */

/* Of one schedule; it passes through a pipe, so it has no pointers. */
struct report {
	uint64_t number;
	char broken[8]; /* the rule; "": none */
	char why[512];
	bool died; /* the simulator itself crashed, or a sanitizer spoke */
	struct setting setting;
	uint64_t events, runs, processes, calls, drivers;
	struct reached reached;
	int64_t seconds; /* virtual */
	uint64_t digest; /* of every event */
	int64_t calm_from_ns;
	uint64_t asked[PLANT_WORDS]; /* plants_asked() */
	/* Of a schedule that is shrunk: its habits and faults, as lines of a script. */
	char habits[64];
	uint64_t fault_count;
	char script[FAULTS_MAX][160];
};

struct reports {
	uint64_t schedules, broken_count, long_ones;
	struct report sum, first_broken;
	uint64_t nodes[5], far_state, cloud, calm, died;
	uint64_t digest;
};

/* Of the schedule that has just been played in this process. */
void report_make(struct report *ret);
/* One line: what it was made of. */
void report_print_short(const struct report *report);
/* In the order of their numbers. */
void reports_add(struct reports *reports, const struct report *report);
/* Prints all; false if a rule was broken, or something was not reached. `program`, `seed`: for the
 * command that replays. */
bool reports_print(const struct reports *reports, const char *program, uint64_t seed, bool counts);

#endif
