/*
 * What `schedule add` keeps, in two places.
 *
 * In the state, schedules/NAME.json, the entry: where the schedule is, and which scheduler wakes
 * it.
 *   {"v":1, "name", "url": promote.url, "to": kind of the scheduler, "alarm": what is its own there
 *    (cmd/schedule/kind.h), "added"}
 *
 * Below promote.url, schedule/pin.json, the pin: what a turn runs. It holds the whole plan, so that
 * neither an edit of the spec nor one of the source changes the next turn; the source's bundle lies
 * in the workspace, and a copy beside the pin, schedule/sources/….
 *   {"v":1, "name", "cron", "timezone", "overlap", "catch_up", "jitter_ms", "start_within_ms"
 *    (absent: none), "plan": {…}, "digest": of the plan, "added", "since": due times before it are
 * not missed, "sum": SHA-256 of all this as JSON with sorted names}
 *
 * run/schedule: schedules and their turns as objects. When a turn is due, and what follows, is
 * decided in cmd/schedule.
 */
#ifndef STK_RUN_SCHEDULE_SCHEDULE_RECORD_H
#define STK_RUN_SCHEDULE_SCHEDULE_RECORD_H

#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/plan/plan.h"

/* Entries. Reading returns 1; 0 if there is none of this name; -1, EXIT_REFUSED for a damaged one.
 */
int schedule_entry_read(struct journal *journal, const char *name, json_t **ret, struct err **err);
int schedule_entry_write(struct journal *journal, const json_t *entry, struct err **err);
int schedule_entry_remove(struct journal *journal, const char *name, struct err **err);
/* Appends all entries to an array, by name. */
int schedule_entries(struct journal *journal, json_t *ret, struct err **err);

/* Makes the pin of a plan and the section `schedule` of its spec, a new reference. `former`: the
 * one that it replaces; NULL: none. */
json_t *schedule_pin_make(const struct spec *spec, const struct plan *plan, const json_t *former);
/* Writes the pin below `url`, with a copy of the source's bundle, which must be in the workspace.
 */
int schedule_pin_write(const char *url, const json_t *pin, struct err **err);
/* Returns 1; 0 if there is none; -1, EXIT_REFUSED for a damaged one, one that was changed by
 * hand, or one of a later version. */
int schedule_pin_read(const char *url, json_t **ret, struct err **err);
/* Puts the bundle back into the workspace, if it is gone from there. */
int schedule_pin_restore(const char *url, const json_t *pin, struct err **err);
int schedule_pin_remove(const char *url, struct err **err);

#endif
