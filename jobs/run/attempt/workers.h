/*
 * Records a worker process of an agent that stays dead (jobs/node/workers.h), once per attempt.
 * While the attempt goes on, the drain that the agent asked for names the worker; at the end the
 * reports do. The agent drains the attempt by itself, so a failure to read or record is no error
 * here. The worker is kept in the watch, because it is the cause of the end (attempt_end.c).
 */
#ifndef STK_RUN_ATTEMPT_WORKERS_H
#define STK_RUN_ATTEMPT_WORKERS_H

#include <stdbool.h>

#include "jobs/run/attempt/watch_internal.h"

void workers_record(struct attempt_watch *watch, bool at_end);

#endif
