/*
 * Events as JSON: what the journal stores, what `--json` prints. One object a
 * line: {"v":1,"run","seq","at","event",fields…}. Fields may be added in later
 * versions; readers ignore those they do not know.
 */
#ifndef STK_RUN_JOURNAL_EVENT_JSON_H
#define STK_RUN_JOURNAL_EVENT_JSON_H

#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

/* Returns a new object. JSON fields of the event are shared, not copied. */
json_t *event_encode(const char *run, const struct event *ev);

/* Returns 1, or 0 for an event kind that this version does not know (skip it), or -1 for a damaged
 * row. Strings and JSON values of `ret` are borrowed from `object`. */
int event_decode(const json_t *object, struct event *ret, struct err **err);

#endif
