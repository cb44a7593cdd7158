/*
 * Strikes: one thing that stoker is asked to do, and each call of it that touches the outside fails
 * in turn, in a fork of the world, with each of its errors: once; from then on, as long as the
 * process lives; or once although it was carried out. What must come of it:
 *
 *   it ends: done as asked, or with an error that has words and is no defect of stoker;
 *   it leaves no descriptor open;
 *   asked again, when nothing fails any more, it does what it was asked to do, and what it
 *   leaves is what it leaves when nothing ever fails.
 *
 * points.h does the like with a whole run.
 */
#ifndef STK_TESTS_WORLD_STRIKES_H
#define STK_TESTS_WORLD_STRIKES_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "tests/world/play.h"

/* Done by a process of the world; `run` is that of the scenario. 0 or more, or -1 with an error. */
typedef int (*strike_fn)(const char *run, struct err **err);

struct strike_action {
	const char *scenario;                    /* of setting.c */
	void (*before)(struct schedule *places); /* by the world's own hand; NULL: nothing */
	strike_fn act;
	strike_fn again; /* what is asked afterwards; NULL: the same */
	strike_fn check; /* looks at what is left then; NULL: again says it */
	bool others;     /* processes that it starts are struck too */
};

/* Strikes it; false if something broke, which is printed then. Prints how many cases there were. */
bool strikes_play_apart(const char *name, const struct strike_action *action);

/* For `before`: plays the run to its end, or until it has so many events, and kills its drivers. */
void strikes_run_to_end(struct schedule *places);
void strikes_run_until(struct schedule *places, int64_t events);

#endif
