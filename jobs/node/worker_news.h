/*
 * News of the checkpointer (workers.h): they go into the report, to drains and to the watchdog.
 */
#ifndef STK_NODE_WORKER_NEWS_H
#define STK_NODE_WORKER_NEWS_H

#include "jobs/base/text/js.h"
#include "jobs/node/checkpoints/checkpointer.h"

/* Handler for checkpointer_start(); `agent` is a struct agent. */
void worker_news_of_checkpointer(void *agent, enum checkpointer_news kind, const json_t *news);

#endif
