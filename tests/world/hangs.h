/*
 * A workspace folder that hangs, as on a network file system whose server is away: whatever a
 * node's processes ask of it is answered only when it is back. The machine of the driver is the
 * server. In every twelfth schedule; in half of those a user stops the run meanwhile.
 */
#ifndef STK_TESTS_WORLD_HANGS_H
#define STK_TESTS_WORLD_HANGS_H

#include <stdbool.h>

#include "tests/world/call.h"
#include "tests/world/faults.h"

/* Adds the faults of it, if the schedule that plays has them. */
void hangs_draw(void);
/* True if that call of the process waits for the folder. */
bool hangs_for(const struct process *process, enum call_id id, const char *path);

#endif
