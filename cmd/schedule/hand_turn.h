/* The turn of a model that is begun by hand: one at a time, of all machines. */
#ifndef STK_CMD_SCHEDULE_HAND_TURN_H
#define STK_CMD_SCHEDULE_HAND_TURN_H

#include "jobs/run/journal/journal.h"
#include "jobs/store/store.h"

/* Claims it for `run`, which has data to begin with. Returns 1; 0 if another one is being begun or
 * driven, with its run; -1. A claim ends with its run, or with its process; as that of another
 * machine cannot be looked at, with ten minutes in which no run came of it. */
int hand_turn_claim(struct journal *journal, struct store *place, const char *name, const char *run,
		    char ret_other[JOURNAL_RUN_MAX], struct err **err);

/* No run comes of the claim. A failure is of no harm: this process ends. */
void hand_turn_release(struct store *place);

#endif
