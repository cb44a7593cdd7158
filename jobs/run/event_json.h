/*
 * Events as JSON: what the journal stores, what `--json` prints. One object a
 * line: {"v":1,"run","seq","at","event",fields…}. Fields may be added in later
 * versions; readers ignore those they do not know.
 */
#ifndef STK_RUN_EVENT_JSON_H
#define STK_RUN_EVENT_JSON_H

#include "jobs/base/json.h"
#include "jobs/flow/event.h"

/* A new object. JSON fields of the event are shared, not copied. */
json_t *event_encode(const char *run, const struct event *ev);

/* Strings and JSON values of `ret` are borrowed from `object`. An event kind
 * that this version does not know gives 0 (skip it), a known one 1; -1 is a
 * damaged row. */
int event_decode(const json_t *object, struct event *ret, struct err **err);

#endif
