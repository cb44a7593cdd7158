/*
 * The work of a run's nodes while they trained (jobs/base/usage.h), as their agents have kept it
 * beside the series of their logs.
 */
#ifndef STK_RUN_ATTEMPT_RUN_USAGE_H
#define STK_RUN_ATTEMPT_RUN_USAGE_H

#include "jobs/run/attempt/run_series.h"

/* Calls `fn` for each figure, attempt by attempt, node by node, by rising time; 1 stops. `metric`
 * is the number of the figure. All of them count, also those of steps that are made again. */
int run_usage_each(struct run_series *series, run_series_fn fn, void *arg, struct err **err);

#endif
