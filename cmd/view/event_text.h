/* Events as sentences, by the sentence of their row. */
#ifndef STK_CMD_VIEW_EVENT_TEXT_H
#define STK_CMD_VIEW_EVENT_TEXT_H

#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

/* Returns "precompile 1 ended: user-code; exit 1"; NULL if the event is not shown or has no
 * content. The caller frees it. */
char *event_sentence(const struct event *ev, const json_t *row);

#endif
