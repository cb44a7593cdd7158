/*
 * An attempt in which no agent of ours runs (sagemaker.launcher: toolkit), watched from outside:
 * its logs are all that shows whether it gets on. They go to the same judge of stalls as in an
 * agent (jobs/base/stall.h), of all nodes together; compile.timeout is kept by the engine's
 * clock. What is to end is stopped through the engine, and why is written beneath the attempt's
 * prefix first (stopped.json: {"v":1, "stopped", "stall", "at"}, as in a report), so that the
 * next driver knows it too.
 *
 * Lines come late, by some seconds: a limit of limits.stall counts with so much on top. What was
 * in the log before a driver came teaches no pace, and a log that cannot be read is no silence.
 */
#ifndef STK_RUN_OUTSIDE_H
#define STK_RUN_OUTSIDE_H

#include "jobs/engine/engine.h"
#include "jobs/run/watch_inside.h"

struct outside;

/* NULL (and 0) where the attempt has agents. */
int outside_new(struct attempt_watch *watch, struct outside **ret, struct err **err);
void outside_freep(struct outside **outside);

/* Bytes of a node's log, as they come; all of these do nothing with NULL. */
void outside_hear(struct outside *outside, int node, const char *bytes, size_t len);
/* All that there was is read, for the first time. */
void outside_caught_up(struct outside *outside);

/* Is it time to stop it? Then it is being stopped, at each call. */
int outside_judge(struct attempt_watch *watch, const struct engine_status *status,
		  struct err **err);

/* What the engine says in place of an agent, and why we stopped it. */
int outside_report(struct attempt_watch *watch, int node, json_t **ret, struct err **err);

#endif
