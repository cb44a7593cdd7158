/* The data of a report, as jobs/report/page/page.h has it, from runs that exist. */
#ifndef STK_CMD_REPORT_REPORT_DATA_H
#define STK_CMD_REPORT_REPORT_DATA_H

#include "cmd/args/args.h"
#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

#define REPORT_RUNS_MAX  200 /* in one report */
#define REPORT_DRAWN_MAX 24  /* of these with curves and a section */

/* Measures the runs that the operands name, and returns the data, a new reference. `renewed`: the
 * file will be written again; it is noted only while a run goes on. `*ret_ended`: all runs have
 * ended. EXIT_NOT_FOUND, EXIT_USAGE, EXIT_REFUSED. */
int report_data_collect(const struct args *args, struct journal *journal, bool renewed,
			bool *ret_ended, json_t **ret, struct err **err);

#endif
