/*
 * The phases of a run: one row each, by which flow, driver and report treat it. A question about a
 * phase is asked of its row; only what exists once (the training's checkpoints) is asked by name.
 */
#ifndef STK_FLOW_PHASE_H
#define STK_FLOW_PHASE_H

#include "jobs/flow/event.h"

/* Check-up of the nodes before the command. */
enum phase_check_up {
	CHECK_UP_NONE,
	CHECK_UP_BRIEF, /* disk, memory and clock */
	CHECK_UP_FULL   /* devices and collectives too */
};

struct phase_row {
	bool has_jobs;    /* attempts: jobs on the engine */
	bool is_trial;    /* the phase's results are thrown away; its product is the cache */
	bool resumes;     /* attempts save checkpoints, and go on from the newest complete one */
	bool drains;      /* told to end, an attempt with the claim may save first */
	bool has_tasks;   /* the command runs once for each task that is not done */
	bool reads_steps; /* numbers in its log are steps and metrics of a training */
	bool counts_late; /* graphs that it compiles are counted and shown as late */
	enum phase_check_up check_up;
	/* The progress that counts for budgets, in words: "without ... between". */
	const char *progress;
};

extern const struct phase_row flow_phases[PHASE_COUNT];

#endif
