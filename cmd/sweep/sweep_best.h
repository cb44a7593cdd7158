/* The best cell of a ladder so far. */
#ifndef STK_CMD_SWEEP_SWEEP_BEST_H
#define STK_CMD_SWEEP_SWEEP_BEST_H

#include "cmd/compare/measure.h"
#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

/* Finds the cell that a next step is on top of, from 0: among the cells whose runs have ended the
 * one that compare() calls the best; without repeats, which alone can show that, the fastest by its
 * mean. If none is faster than the first, and of its quality, it is the first. */
int sweep_best_find(struct journal *journal, const json_t *record,
		    const struct measure_question *question, size_t *ret, struct err **err);

#endif
