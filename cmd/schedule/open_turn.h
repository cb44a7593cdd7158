/* The turn of a model that is under way: of its schedule, or begun by hand. */
#ifndef STK_CMD_SCHEDULE_OPEN_TURN_H
#define STK_CMD_SCHEDULE_OPEN_TURN_H

#include "jobs/run/journal/journal.h"
#include "jobs/run/schedule/turn_record.h"

enum turn_run {
	TURN_RUN_ABSENT, /* not begun, or not in this state */
	TURN_RUN_ENDED,
	TURN_RUN_PAUSED, /* by --until: it is somebody's to go on with */
	TURN_RUN_DRIVEN, /* on a shared store also one whose driver died a moment ago */
	TURN_RUN_ALONE,  /* goes on, and nobody drives it */
};

/* Looks at the run of a record. */
int open_turn_look(struct journal *journal, const json_t *record, enum turn_run *ret,
		   struct err **err);

struct open_turn {
	char run[JOURNAL_RUN_MAX];
	struct utc at;
	enum turn_run state; /* DRIVEN or ALONE */
	bool has_waiter;     /* another turn waits for it */
	struct utc waiter;
};

/* Finds the newest turn below promote.url, other than that of `own` (NULL: none), whose run is
 * under way. Returns 1, 0 if there is none, -1. */
int open_turn_find(struct journal *journal, struct store *place, const struct utc *own,
		   struct open_turn *ret, struct err **err);

/* Notifies of a turn that made no run, as the plan's `notify` asks. A failure is printed. */
void open_turn_tell(const json_t *plan, struct utc at, const char *occasion, const char *reason);

#endif
