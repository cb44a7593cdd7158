/*
 * News of the uploader: what it sees in the workspace drains or stops the command; what became of
 * its orders is minded here.
 */
#ifndef STK_NODE_UPLOADER_NEWS_H
#define STK_NODE_UPLOADER_NEWS_H

#include "jobs/base/text/js.h"
#include "jobs/node/upload/uploader.h"

/* Handler for uploader_init(); `agent` is a struct agent. */
void uploader_news_heed(void *agent, enum uploader_news news, const json_t *line);

#endif
