/* The runs of a sweep, started and awaited until all have ended. */
#ifndef STK_CMD_SWEEP_SWEEP_WORK_H
#define STK_CMD_SWEEP_SWEEP_WORK_H

#include "jobs/run/journal/journal.h"
#include "jobs/spec/spec.h"

struct sweep_options {
	struct journal *journal;
	const struct spec *spec;
	json_t *record; /* of the sweep: changed, and written, as cells are decided on */
	const struct measure_question *question; /* by which the best cell is known */
	bool stop_on_interrupt;                  /* else the runs go on */
};

/* Starts the runs that have not begun, at most as many at once as the record allows, and awaits
 * all by their journals; what is under way gets a driver if it has none. Each run has a driver of
 * its own, which outlives this process, so that it may end at any instruction and be repeated.
 *
 * Nothing begins of a sweep that was stopped (sweep_record_stop()).
 *
 * Returns EXIT_DONE; EXIT_RUN_FAILED if no run succeeded; EXIT_GATE if a limit of the sweep was
 * reached and its runs were stopped; EXIT_REFUSED if what lies outside of the spec refused a cell;
 * EXIT_STOPPED after a stop, or a signal; EXIT_DETACHED after a signal; or -1. */
int sweep_work_run(const struct sweep_options *options, struct err **err);

#endif
