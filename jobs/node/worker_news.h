/*
 * News of the agent's workers (workers.h): those of the checkpointer go into the report, to drains
 * and to the watchdog; those of the uploader, about the workspace, drain or stop the command.
 */
#ifndef STK_NODE_WORKER_NEWS_H
#define STK_NODE_WORKER_NEWS_H

#include "jobs/base/text/js.h"
#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/upload/uploader.h"

/* Handlers for checkpointer_start() and uploader_start(); `agent` is a struct agent. */
void worker_news_of_checkpointer(void *agent, enum checkpointer_news kind, const json_t *news);
void worker_news_of_uploader(void *agent, enum uploader_news news);

#endif
