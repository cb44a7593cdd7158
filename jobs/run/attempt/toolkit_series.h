/*
 * Keeps the readings of an attempt without agents (sagemaker.launcher: toolkit), from the service's
 * log, which the driver reads anyway (jobs/series/series_stream.h). The bookmark of the driver
 * (bookmark.c) is put only behind what is kept, so that the next driver meets every line that is
 * not.
 */
#ifndef STK_RUN_ATTEMPT_TOOLKIT_SERIES_H
#define STK_RUN_ATTEMPT_TOOLKIT_SERIES_H

#include "jobs/run/attempt/watch_internal.h"

struct toolkit_series;

/* Goes on with what is kept of this attempt. NULL (and 0) if the driver keeps nothing: the attempt
 * has agents, or no readings, or what is kept cannot be read. -1: the workspace cannot be reached
 * now. */
int toolkit_series_new(struct attempt_watch *watch, struct toolkit_series **ret, struct err **err);
void toolkit_series_freep(struct toolkit_series **series);

/* All of these do nothing with NULL. */
/* Takes a line of a node's log; `count` readings are on it. */
void toolkit_series_line(struct attempt_watch *watch, const struct node_log *log,
			 const struct metric_reading *readings, size_t count);
/* Writes what is not kept yet, if it is due, and else if `all`. True if all is kept. */
bool toolkit_series_write(struct attempt_watch *watch, bool all);
/* All logs are read to their ends. */
int toolkit_series_end(struct attempt_watch *watch, struct err **err);

/* The place up to which the readings of a log are kept, for the bookmark; -1: none are. */
int64_t toolkit_series_place(const struct attempt_watch *watch, int node);
/* Says that a log is read on from a bookmark, behind which nothing is left out. */
void toolkit_series_go_on(struct attempt_watch *watch, int node);

#endif
