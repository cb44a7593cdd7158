/*
 * Records of turns, below promote.url: one object a turn, whether a schedule or a person asked for
 * it,
 *
 *   turns/<at>.json   {"v":1, "name", "at": UTC: the due time of a schedule's turn, else --at or
 *                      now, "by": "schedule" | "hand", "outcome": "run" | "nothing_new" | "queued"
 *                      | "skipped", "run": id (absent: none), "reason" (absent: it was due),
 *                      "listed": UTC up to which data had settled (absent: none was listed yet),
 *                      "counts": {…} of its data, "host", "pid", "started", "boot": the process
 *                      that decided it, "exit_code" (absent: its run goes on, or never was)}
 *
 * It is written only if absent, so that of several alarms, machines and schedulers one decides, and
 * the others find out what. The run's id is derived from name and due time: whoever begins a turn
 * of a schedule, it is the same run.
 */
#ifndef STK_RUN_SCHEDULE_TURN_RECORD_H
#define STK_RUN_SCHEDULE_TURN_RECORD_H

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"
#include "jobs/store/store.h"

/* Writes the id of a scheduled turn's run: "m5-20261130t0200" or, if the name does not fit an id, a
 * part of it and the begin of its SHA-256. */
void turn_run_id(const char *name, struct utc due, char ret[JOURNAL_RUN_MAX]);

/* Makes a record of what this process decides, a new reference. `run` and `reason` may be NULL. */
json_t *turn_make(const char *name, struct utc at, const char *by, const char *outcome,
		  const char *run, const char *reason);
/* True if the process that decided the turn is known to have ended. False if it is of another
 * machine. */
bool turn_is_left(const json_t *record);
/* The moment that the record stands for. */
struct utc turn_at(const json_t *record);

/* Writes a record. Returns 1; 0 if the turn is recorded already; -1. */
int turn_claim(struct store *place, const json_t *record, struct err **err);
/* Returns 1; 0 if there is none of this moment; -1, EXIT_REFUSED for a damaged one. */
int turn_read(struct store *place, struct utc at, json_t **ret, struct err **err);
/* The newest record before a moment; NULL: of all. Returns 1; 0 if there is none; -1. */
int turn_before(struct store *place, const struct utc *before, json_t **ret, struct err **err);
/* Changes members of a record (null: it has none) whose outcome is `from`; NULL: whatever it is.
 * Returns 1; 0 if there is no such record; -1. */
int turn_update(struct store *place, struct utc at, const char *from, const json_t *members,
		struct err **err);

/* The claim of a turn that is begun by hand, turns/hand.json: a record as above, of one that may
 * not have asked for data yet; `at` is now. Read: returns 1; 0 if there is none; -1. Write: in
 * place of what `tag` names (NULL: of none); returns 1; 0 if another process was faster; -1. */
int turn_hand_read(struct store *place, json_t **ret, char ret_tag[STORE_TAG], struct err **err);
int turn_hand_write(struct store *place, const char *tag, const json_t *claim, struct err **err);

/* EXIT_REFUSED if `at` lies before the last turn that asked for data: what was settled then was
 * given already. */
int turn_check_order(struct store *place, struct utc at, struct err **err);

#endif
