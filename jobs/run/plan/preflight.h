/*
 * Checks that a run can rely on its buckets. A missing right, and a server that does not keep the
 * conditions of writes (conditions.h), are found before the run begins, not after an hour of
 * compiling or by a second driver.
 *
 * Each process that drives tries each place once, and the conditions once for all places in one
 * bucket: another machine may use another endpoint.
 */
#ifndef STK_RUN_PLAN_PREFLIGHT_H
#define STK_RUN_PLAN_PREFLIGHT_H

#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

#define PREFLIGHT_PLACES 4 /* state, workspace, cache, checkpoints */

/* A place of a run, and what it is to the run; url NULL: not used by the run. */
struct preflight_place {
	const char *what, *url;
	const char *field; /* of the spec */
};

/* The places of a plan that are neither a directory nor an earlier one's URL; the others have no
 * url. `state`: URL of the journal, NULL if it is on a local disk. Borrowed. */
void preflight_find(const json_t *plan, const char *state,
		    struct preflight_place ret[PREFLIGHT_PLACES]);

/* State of the trials; begins as zeroes. */
struct preflight {
	char *buckets[PREFLIGHT_PLACES]; /* buckets that keep the conditions of writes */
	size_t count;
};
void preflight_release(struct preflight *probe);

/* Tries the conditions in the store of the state. Called before its lease is taken, which rests on
 * them. Errors as of conditions_try(). */
int preflight_state(struct preflight *probe, const struct journal *journal, struct err **err);

/* Tries the conditions in all places of a plan. */
int preflight_conditions(struct preflight *probe, const json_t *plan, struct err **err);

/* The same before a run begins, and the rights: list, write, read and delete beneath every prefix
 * that the plan and the journal name and that is not a directory, each once: four requests.
 * Leftovers of killed probes are deleted. EXIT_REFUSED names the failed operation, its place, and
 * the right that it needs. */
int preflight_places(struct preflight *probe, const json_t *plan, const struct journal *journal,
		     struct err **err);

#endif
