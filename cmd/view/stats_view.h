/* Statistics over many runs as text and as comma-separated values, from the JSON of
 * jobs/report/stats.h. */
#ifndef STK_CMD_VIEW_STATS_VIEW_H
#define STK_CMD_VIEW_STATS_VIEW_H

#include "jobs/base/text/js.h"
#include "jobs/report/stats.h"

/* Prints what stats_json() returned on stdout. */
void stats_view_print(enum stats_by by, const json_t *stats);
/* The same, a line of names first. */
void stats_view_print_csv(enum stats_by by, const json_t *stats);

#endif
