/*
 * A stop that cannot be journalled: the disk of the state is full, read-only, locked or absent. The
 * stop reaches the job all the same.
 *
 * In this order: the request is left in the workspace (`runs/<run>/stop.json`), where this driver
 * or the next one finds it; a driver on this machine gets SIGUSR1; if no driver obeys, the engine
 * is asked to stop the job, and if it refuses, the agents are told to save and stop. None of that
 * needs the lease: it may be done beside the run's driver, and twice.
 */
#ifndef STK_RUN_BESIDE_H
#define STK_RUN_BESIDE_H

#include "jobs/flow/flow.h"
#include "jobs/run/journal/lease.h"

struct stop_beside {
	bool over;             /* the run had ended before */
	bool damaged;          /* only a part of the journal could be read */
	bool idle;             /* no job is under way, as far as the journal tells */
	bool ended;            /* the engine says that nothing of the job runs any more */
	bool left;             /* the request lies in the workspace: the next driver ends the run */
	bool driven;           /* a driver lives */
	char holder[300];      /* name of the driver, for messages */
	char job[FLOW_ID_MAX]; /* "" if none is under way */
	char by_hand[300];     /* the engine's own command that ends the job */
	char trouble[600];     /* why the engine could not be asked; "" if it was */
	char cure[1200];       /* the remedy for that; may be "" */
};

/* Stops the run. `on_step` is called with each step done, as text for the user; may be NULL.
 * Returns 0 whatever came of it; -1 if not even the journal could be read. */
int beside_stop(struct journal *journal, const char *run, const char *reason,
		void (*on_step)(void *arg, const char *what), void *arg, struct stop_beside *ret,
		struct err **err);

#endif
