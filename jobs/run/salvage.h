/*
 * Going on with a run whose journal is damaged: 'stoker resume RUN --salvage'.
 *
 * Under the lease, what lies behind the last good event is set aside (journal_set_aside()), and
 * journal.salvaged takes its place. From then on the journal is whole, and the run is resumed as
 * ever; but before its driver submits anything, it asks the engine and the workspace what the lost
 * events were about (EFFECT_SETTLE, settle.c).
 *
 * Of the damaged part two things count, though nothing proves them: a request to stop, which is
 * made again, and the end of the run.
 */
#ifndef STK_RUN_SALVAGE_H
#define STK_RUN_SALVAGE_H

#include "jobs/run/driver.h"

/* Returns 1 if there was damage and it is set aside now; `on_event` of the options gets the
 * event. Returns 0 if the journal of the run is whole. EXIT_BUSY: the run has a driver. */
int salvage_run(struct journal *journal, const struct driver_options *options, struct err **err);

#endif
