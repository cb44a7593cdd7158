/*
 * doctor --inside: what the jobs of a spec can do where they run. One job of one node, with the
 * spec's engine, image, role and network, holds stoker's agent alone, which tries each place and
 * secret, and counts the devices (jobs/node/look.h). It is a run like any other: whoever kills the
 * doctor finds it in `list`, and can stop it. It ends by itself, and is forgotten with all that it
 * wrote.
 */
#ifndef STK_RUN_DOCTOR_DOCTOR_INSIDE_H
#define STK_RUN_DOCTOR_DOCTOR_INSIDE_H

#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/lease.h"
#include "jobs/run/plan/plan.h"

/* The longest time for which the job may have its machine. */
#define DOCTOR_INSIDE_MINUTES 5

/* All is borrowed. */
struct doctor_inside {
	struct journal *journal;
	const json_t *plan;                                /* of the spec */
	const struct lease_rules *rules;                   /* as of lease_take() */
	void (*on_begin)(const char *run);                 /* called with the id of the run */
	void (*on_away)(void *arg, const struct err *why); /* as in driver_options */
};

/* Returns the most that the job costs, in USD; below 0: not known. */
double doctor_inside_cost(const json_t *plan);
/* Runs the job, and forgets it. Returns the findings, as doctor_examine() does. */
json_t *doctor_inside_examine(const struct doctor_inside *inside);

#endif
