/* Runs, and all runs of sweeps, measured and put into rows beside each other. */
#ifndef STK_CMD_COMPARE_COMPARE_RUNS_H
#define STK_CMD_COMPARE_COMPARE_RUNS_H

#include "cmd/args/args.h"
#include "cmd/compare/compare_text.h"

/* Start from { 0 }. */
struct compare {
	struct measure *runs; /* in the order in which they were added */
	size_t count;
	struct compare_sheet sheet;
	json_t *known;  /* ids of all runs; NULL: not asked for yet */
	size_t waiting; /* runs that have not begun, of cells of which none has */
};
void compare_runs_release(struct compare *compare); /* for AUTO() */

/* Adds the run that the user wrote, or all runs of a sweep in the order of its cells: by the id of
 * the sweep. */
int compare_runs_add(struct compare *compare, struct journal *journal, const char *ref,
		     struct err **err);

/* Reads the options of commands that compare; EXIT_USAGE. */
int compare_runs_question(const struct args *args, struct measure_question *ret, struct err **err);

/* Finds the id of the run, or of the sweep, that the user wrote. */
int compare_runs_name(struct journal *journal, const char *ref, char ret[JOURNAL_RUN_MAX],
		      struct err **err);

/* True if no run of the sheet goes on, and none is to begin. A sweep of which a run was stopped
 * begins no others by itself. */
bool compare_runs_have_ended(const struct compare *compare);

/* Makes the sheet of runs that are all measured. */
void compare_runs_sheet(struct compare *compare, const char *metric);
/* Measures the runs, of which there is one at least, and makes the sheet. Cells of a sweep are rows
 * of their own, whatever their settings; other runs are in one row if nothing differs but what
 * differs between repeats. Prints warnings of runs that did not succeed. */
int compare_runs_make(struct compare *compare, struct journal *journal,
		      const struct measure_question *question, struct err **err);

/* Returns how many of the runs are benchmarks. */
size_t compare_runs_benchmarks(const struct compare_sheet *sheet);

#endif
