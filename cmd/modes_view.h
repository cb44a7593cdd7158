/* What precompiling saves, from the runs in the state's journal: see
 * jobs/report/modes.h for what is compared. */
#ifndef STK_CMD_MODES_VIEW_H
#define STK_CMD_MODES_VIEW_H

#include "jobs/base/json.h"
#include "jobs/run/journal.h"

/* The newest measurement of each mode among the newest MODES_RUNS_MAX runs, as
 * modes_json() has it; of the mode that was recorded last, the newest one that the
 * other can be compared with. A new reference; NULL where there is none, or name or
 * key are NULL. What cannot be read is passed over: nobody is kept from anything. */
#define MODES_RUNS_MAX 200
json_t *modes_find(struct journal *journal, const char *name, const char *graph_key);

/* On stdout, if both modes were measured; NULL prints nothing. */
void print_modes(const json_t *modes);

/* The same, and if only one was measured what to run for the other. */
void print_modes_or_advice(const json_t *modes);

#endif
