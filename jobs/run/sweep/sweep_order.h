/*
 * The order in which the runs of a sweep begin: shuffled, so that what changes with time (a warm
 * machine, a neighbour) falls on all cells alike, and the same whenever the sweep is repeated.
 *
 * run/sweep: a sweep as it is kept beside its runs, and their order. Nothing here starts a run.
 */
#ifndef STK_RUN_SWEEP_SWEEP_ORDER_H
#define STK_RUN_SWEEP_SWEEP_ORDER_H

#include <stddef.h>

/* Sets `ret` to the numbers from 0 to `count` - 1 in an order that `id` decides. */
void sweep_order(const char *id, size_t count, size_t *ret);

#endif
