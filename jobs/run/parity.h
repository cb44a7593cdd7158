/*
 * Two trainings compared step by step, by one metric: the readings of both runs come from their
 * series (run_series.h), and jobs/flow/gate.h compares them.
 */
#ifndef STK_RUN_PARITY_H
#define STK_RUN_PARITY_H

#include "jobs/flow/gate.h"
#include "jobs/run/journal/journal.h"

/* Number of points of a run that are compared; memory is 16 bytes for each. */
#define PARITY_POINTS_MAX 2000000

/* Compares the metric of an entry in `run` and in entry->run. Returns 1 with the outcome, 0 if the
 * two cannot be compared, and why in *ret_why (the caller frees it), -1 with an error that may
 * pass: a store or service that does not answer. Points that a later attempt makes again count
 * once; readings before the first step do not count. */
int parity_read(struct journal *journal, const char *run, const struct gate_entry *entry,
		struct gate_parity *ret, char **ret_why, struct err **err);

#endif
