/*
 * Bugs put in on purpose: the rules are worth what they notice. Each is a mistake that somebody
 * could make or has made: a patch in plants/, applied to a copy of the sources, that does its
 * wrong where planted(NAME) is true. Its first lines say which rule must notice it and what it is:
 *
 *	rule: C6
 *	what: locks are written before attempt.ended
 *	rare: why few schedules show it (where they are: ./test plays too few, tests/soak plays it)
 *
 * All patches are in one program, world_planted; in the others there is none.
 */
#ifndef STK_TESTS_WORLD_PLANTS_H
#define STK_TESTS_WORLD_PLANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/world/host.h"

struct plant {
	const char *name;
	const char *rule; /* that notices it */
	const char *what;
	const char *rare; /* why few schedules show it; "": they are not few */
};

/* The list, which apply.sh makes from the patches; last: name NULL. */
const struct plant *plants_all(void);

/* Puts a bug in for all that is played from now on, in place of the one that was in; false if there
 * is no such. */
bool plant_turn_on(const char *name);
/* Those, by their places in the list, for which the schedule that this process has played asked
 * while none was in; a bit each. */
void plants_asked(uint64_t ret[PLANT_WORDS]);
/* Plays schedules 0 to most-1 with each of the bugs, `jobs` at once, until the rule of the bug is
 * broken; prints the number of schedules that it took, in the order in which they are found. Played
 * with a bug are the schedules alone that ask for it when they are played without any: the others
 * are the same with it. False if a bug was not noticed, or a rule is broken without any. Those that
 * were turned on are the only ones that are played with; else `rare`: also those that few
 * schedules show. */
bool plants_play(uint64_t most, int jobs, bool rare, host_play_fn fn, const void *arg);

#endif
