/*
 * Statistics over many runs, from what each adds (status_tally() in status.h): how many succeeded,
 * what failed and what was done about it, where time and money went, and which machines fail more
 * than their share. Pure. jobs/report/printed/lines.def has the keys of the result.
 *
 * The definitions:
 *
 *   success   succeeded / (succeeded + failed + refused by the environment), of runs that have
 *             ended, with Wilson's interval at 95 %. Runs that were stopped on request, that a gate
 *             or a limit of the spec ended, that are debug runs, and that go on, are counted
 *             apart. Of debug runs time and cost count, failures and machines do not.
 *   goodput   time in steps / time for which machines were held or kept, on all nodes, without
 *             debug runs.
 *   mtbf      time for which jobs held machines, without debug runs, / attempts that were
 * interrupted: by a class of failure for which run_tally_interrupts(). suspect   a machine on which
 * at least STATS_SUSPECT_RUNS runs failed, by a class that a machine can cause, and on which so
 * many fail by chance with a probability of at most STATS_SUSPECT_CHANCE: the tail of the binomial
 * distribution of all failed runs with the machine's share, times the number of machines. The share
 * is that of the hours or that of the runs, whichever is larger. Retries of one run are no
 * independent failures: a run counts once on a machine, and its hours there up to that failure.
 */
#ifndef STK_REPORT_STATS_H
#define STK_REPORT_STATS_H

#include "jobs/base/text/js.h"

enum stats_by {
	STATS_ALL,
	STATS_BY_SPEC,
	STATS_BY_ENGINE,
	STATS_BY_INSTANCE,
	STATS_BY_NODE,
	STATS_BY_MONTH,
	STATS_BY_COUNT
};
/* The words of the command line; of STATS_ALL: "all". */
extern const char *const stats_by_names[STATS_BY_COUNT];

#define STATS_SUSPECT_RUNS   2
#define STATS_SUSPECT_CHANCE 0.01

struct stats;

struct stats *stats_new(enum stats_by by);
void stats_freep(struct stats **stats); /* for AUTO() */

/* Adds a run by its tally. */
void stats_add(struct stats *stats, const json_t *tally);

/* Returns an array, a new reference: by node a row for each machine, those that fail most first;
 * else an object for each group, by name; for STATS_ALL exactly one. */
json_t *stats_json(const struct stats *stats);

#endif
