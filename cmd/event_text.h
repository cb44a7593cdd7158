/* Events as sentences, by the sentence of their row. */
#ifndef STK_CMD_EVENT_TEXT_H
#define STK_CMD_EVENT_TEXT_H

#include "jobs/base/json.h"
#include "jobs/flow/event.h"

/* "precompile 1 ended: user-code; exit 1". NULL if the event is not one to be
 * shown, or says nothing. Yours to free. */
char *event_sentence(const struct event *ev, const json_t *row);

#endif
