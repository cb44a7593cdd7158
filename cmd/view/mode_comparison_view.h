/* Savings of precompiling, from the runs in the state's journal: see
 * jobs/report/mode_comparison.h for the comparison. */
#ifndef STK_CMD_VIEW_MODE_COMPARISON_VIEW_H
#define STK_CMD_VIEW_MODE_COMPARISON_VIEW_H

#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

/* Returns the newest measurement of each mode among the newest MODE_COMPARISON_RUNS_MAX runs, in
 * the form of mode_comparison_json(): of the mode recorded last the newest run, of the other mode
 * the newest run comparable with it. A new reference; NULL if there is none, or name or key are
 * NULL. Unreadable runs are skipped, so that they never block a command. */
#define MODE_COMPARISON_RUNS_MAX 200
json_t *mode_comparison_find(struct journal *journal, const char *name, const char *graph_key);

/* Prints the comparison on stdout, if both modes were measured; NULL prints nothing. */
void cmd_print_comparison(const json_t *comparison);

/* Like cmd_print_modes(); if only one mode was measured, prints what to run for the other. */
void cmd_print_comparison_or_advice(const json_t *comparison);

#endif
