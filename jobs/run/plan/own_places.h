/*
 * Folders of this machine that stoker writes: state, workspace, cache, checkpoints, results. None
 * of them is ever part of a source, neither the current nor the former ones: they change with each
 * run, and each run would get a new source.
 *
 * The state directory keeps the former ones in the file `places`, one absolute path a line. If a
 * spec names other folders from now on, the old ones are still left out.
 */
#ifndef STK_RUN_PLAN_OWN_PLACES_H
#define STK_RUN_PLAN_OWN_PLACES_H

#include "jobs/base/text/js.h"

#define OWN_PLACES_FILE "places"

/* Returns the folders of earlier runs of this state directory: NULL-terminated, the caller frees
 * them (auto_strv). Empty if the file cannot be read. */
char **own_places_former(const char *state_dir);

/* Remembers the folders of a plan. After a failure they count as source once no spec names them any
 * more; the run goes on. */
void own_places_remember(const char *state_dir, const json_t *plan);

#endif
