/*
 * Watches an attempt without an agent of ours (sagemaker.launcher: toolkit) from outside: only its
 * logs show whether it makes progress. They feed the same detector of stalls as in an agent
 * (jobs/base/stall.h), all nodes together; compile.timeout is measured by the engine's clock. An
 * attempt that is to end is stopped through the engine. The reason is written beneath the attempt's
 * prefix first (stopped.json: {"v":1, "stopped", "stall", "at"}, as in a report), so that the next
 * driver knows it too.
 *
 * Lines come some seconds late: that delay is added to limits.stall. Lines from before this driver
 * came teach no pace, and a log that cannot be read is not silence.
 */
#ifndef STK_RUN_ATTEMPT_TOOLKIT_MONITOR_H
#define STK_RUN_ATTEMPT_TOOLKIT_MONITOR_H

#include "jobs/engine/engine.h"
#include "jobs/run/attempt/watch_internal.h"

struct toolkit_monitor;

/* Makes a monitor in `*ret`; NULL (and 0) if the attempt has agents. */
int toolkit_monitor_new(struct attempt_watch *watch, struct toolkit_monitor **ret,
			struct err **err);
void toolkit_monitor_freep(struct toolkit_monitor **monitor);

/* Takes bytes of a node's log, as they come. This and the next two do nothing with NULL. */
void toolkit_monitor_scan(struct toolkit_monitor *monitor, int node, const char *bytes, size_t len);
/* Sets the step that reading had reached before, -1: none; from here on another driver reads. */
void toolkit_monitor_go_on(struct toolkit_monitor *monitor, int64_t step);
/* The backlog is read to its end for the first time. */
void toolkit_monitor_caught_up(struct toolkit_monitor *monitor);

/* Judges whether the attempt must be stopped. If so, each call asks the engine to stop it. */
int toolkit_monitor_check(struct attempt_watch *watch, const struct engine_status *status,
			  struct err **err);

/* Gets what the engine reports in place of an agent, and why the driver stopped the attempt. */
int toolkit_monitor_report(struct attempt_watch *watch, int node, struct node_report *ret,
			   struct err **err);

#endif
